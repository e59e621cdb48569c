"""The parameters of networks and of their training; by default those of the paper (appendix D)."""

import math
from collections.abc import Mapping
from dataclasses import asdict, dataclass, fields
from typing import Any, Self

from pacpredict.exceptions import InvalidInput

DEVICES = ("cpu", "cuda")
PRECISIONS = ("single", "mixed")


@dataclass(frozen=True)
class NetworkSettings:
    """What all networks share."""

    epochs: int = 1
    batch: int = 1
    learning_rate: float = 1.0
    weight_decay: float = 0.0
    device: str = "cpu"
    precision: str = ""  # mixed on a GPU, as the paper, and single on a CPU, unless it is given

    @classmethod
    def of(cls, params: Mapping[str, Any]) -> Self:
        """Read parameters as a user gives them, or as an artifact has them."""
        known = {field.name: field.default for field in fields(cls)}
        if unknown := sorted(set(params) - set(known)):
            raise InvalidInput(f"networks have no parameter {unknown[0]!r}; they have {', '.join(known)}")
        return cls(**{name: _converted(name, value, known[name]) for name, value in params.items()})

    def __post_init__(self) -> None:
        if not self.precision:
            object.__setattr__(self, "precision", "mixed" if self.device == "cuda" else "single")
        self._check_choice("device", DEVICES)
        self._check_choice("precision", PRECISIONS)
        self._check_at_least(1, "epochs", "batch")
        self._check_at_least(0, "weight_decay")
        if self.learning_rate <= 0:
            raise InvalidInput(f"learning_rate must be positive, got {self.learning_rate}")

    @property
    def is_mixed(self) -> bool:
        return self.precision == "mixed"

    def to_json(self) -> dict[str, Any]:
        return {
            name: list(value) if isinstance(value, tuple) else value for name, value in asdict(self).items()
        }

    def _check_choice(self, name: str, choices: tuple[str, ...]) -> None:
        if getattr(self, name) not in choices:
            raise InvalidInput(f"{name} must be one of {', '.join(choices)}, got {getattr(self, name)!r}")

    def _check_at_least(self, least: float, *names: str) -> None:
        for name in names:
            if getattr(self, name) < least:
                raise InvalidInput(f"{name} must be at least {least}, got {getattr(self, name)}")

    def _check_share(self, *names: str) -> None:
        for name in names:
            if not 0 <= getattr(self, name) < 1:
                raise InvalidInput(f"{name} must be at least 0 and below 1, got {getattr(self, name)}")


@dataclass(frozen=True)
class WideResNetSettings(NetworkSettings):
    """WRN-28-10 for CIFAR."""

    depth: int = 28
    width: int = 10
    epochs: int = 200
    batch: int = 128  # not in the paper: that of the original
    learning_rate: float = 0.1
    # When each of decay_epochs begins the learning rate is multiplied by this. The paper's text says that it "drops by
    # 20 %", which would be 0.8; the usual schedule of this network, and this default, is 0.2.
    decay: float = 0.2
    decay_epochs: tuple[int, ...] = (60, 120)
    momentum: float = 0.9
    weight_decay: float = 5e-4
    crop_padding: int = 4
    flip: bool = True
    mixup: float = 1.0  # of the Beta distribution of MixUp; 0 leaves it out
    cutmix: float = 1.0

    def __post_init__(self) -> None:
        super().__post_init__()
        if self.depth < 10 or (self.depth - 4) % 6:
            raise InvalidInput(f"depth must be 6 n + 4, such as 10, 16, 22 or 28, got {self.depth}")
        self._check_at_least(1, "width")
        self._check_at_least(0, "crop_padding", "mixup", "cutmix")
        self._check_share("momentum")
        if self.decay <= 0:
            raise InvalidInput(f"decay must be positive, got {self.decay}")


@dataclass(frozen=True)
class BertSettings(NetworkSettings):
    """BERT-Small, trained from scratch."""

    layers: int = 4
    hidden: int = 512
    heads: int = 8
    feed_forward: int = 2048
    dropout: float = 0.1
    tokens: int = 512  # longer texts are cut
    vocabulary: str = ""  # a file of pieces that are public; without one they are learned from the subset
    vocabulary_size: int = 30_522
    epochs: int = 50
    batch: int = 64
    learning_rate: float = 1e-4
    warmup_steps: int = 500
    weight_decay: float = 0.01
    clip: float = 1.0  # not in the paper: the largest norm of a gradient, as transformers' Trainer has it
    held_out: float = 0.1  # the share of the subset that decides when to stop
    patience: int = 3  # not in the paper: epochs without a better accuracy

    def __post_init__(self) -> None:
        super().__post_init__()
        self._check_at_least(1, "layers", "hidden", "heads", "feed_forward", "patience")
        self._check_at_least(0, "warmup_steps")
        self._check_at_least(8, "tokens")
        self._check_at_least(64, "vocabulary_size")
        self._check_share("dropout", "held_out")
        if self.hidden % self.heads:
            raise InvalidInput(f"hidden must be a multiple of heads, got {self.hidden} and {self.heads}")
        if self.clip <= 0:
            raise InvalidInput(f"clip must be positive, got {self.clip}")


def _converted(name: str, value: Any, default: Any) -> Any:
    """Take a value of the default's type, or one that JSON writes for it."""
    if isinstance(default, tuple) and isinstance(value, list | tuple):
        return tuple(_converted(name, item, 0) for item in value)
    if isinstance(default, float):
        if type(value) in {int, float} and math.isfinite(value):
            return float(value)
    elif type(value) is type(default):
        return value
    raise InvalidInput(f"{name} must be like {default!r}, got {value!r}")
