"""Networks as learners: what is known of them before PyTorch is imported."""

import hashlib
from abc import abstractmethod
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Self

import numpy as np
import numpy.typing as npt

from pacpredict.exceptions import InvalidModel, MissingExtra
from pacpredict.learners.journal import Journal, NoJournal
from pacpredict.learners.learner import Learner, Origin, Trained, TrainingSet
from pacpredict.learners.torch.settings import BertSettings, NetworkSettings, WideResNetSettings
from pacpredict.npz import Arrays
from pacpredict.rows.images import Images, ImageSchema
from pacpredict.rows.kind import RowKind
from pacpredict.rows.pixels import Pixels
from pacpredict.rows.texts import Texts, TextSchema
from pacpredict.types import IntArray

if TYPE_CHECKING:
    from pacpredict.learners.torch.voter import Architecture, Networks

# Decided by where training takes place, unless they are given.
_BY_PLACE = ("device", "precision")


class NetworkLearner(Learner):
    """What networks share: a model is the bytes of its file."""

    suffix = "safetensors"
    takes_weights = False
    settings: NetworkSettings

    @property
    def needs_gpu(self) -> bool:
        return self.settings.device == "cuda"

    def require(self) -> None:
        import_torch(self.name)

    def require_device(self) -> None:
        from pacpredict.learners.torch.device import check_device  # noqa: PLC0415  # as all below: takes seconds

        check_device(self.settings.device)

    def config(self) -> dict[str, Any]:
        return {"name": self.name, "params": self.settings.to_json()}

    def origin(self) -> Origin:
        return Origin(self.name, self.settings.to_json())

    def fit(self, records: TrainingSet, schema: Any, seed: int) -> Trained:
        return self.fit_resumably(records, schema, seed, NoJournal())

    def dump(self, model: bytes) -> bytes:
        return model

    def load(self, data: bytes) -> bytes:
        return data

    def voter(
        self,
        models: Sequence[bytes | None],
        classes: Sequence[IntArray],
        n_classes: int,  # noqa: ARG002  # the classes of each model are enough
        schema: Any,  # noqa: ARG002
    ) -> "Networks":
        """Put networks together; they vote on a GPU if they were trained on one and there is one."""
        import_torch(self.name)
        from pacpredict.learners.torch.device import default_device  # noqa: PLC0415
        from pacpredict.learners.torch.voter import Networks  # noqa: PLC0415

        device = default_device() if self.needs_gpu else "cpu"
        return Networks(self._architecture(), models, classes, device=device)

    def restore(self, arrays: Arrays) -> "Networks":
        raise InvalidModel(f"networks are stored one by one, not as {sorted(arrays)}")

    @abstractmethod
    def _architecture(self) -> "Architecture": ...


@dataclass(frozen=True)
class WideResNetLearner(NetworkLearner):
    settings: WideResNetSettings
    name = "wide-resnet"
    libraries = ("torch", "safetensors")

    @classmethod
    def from_config(cls, config: Mapping[str, Any]) -> Self:
        return cls(WideResNetSettings.of(_with_device(config)))

    @classmethod
    def defaults(cls, name: str) -> dict[str, Any]:  # noqa: ARG003
        return _defaults(WideResNetSettings())

    @property
    def takes(self) -> tuple[RowKind, ...]:
        return ("image",)

    def prepare(self, schema: ImageSchema, rows: Images) -> Pixels:  # noqa: ARG002
        return rows.pixels

    def fit_resumably(self, records: TrainingSet, schema: Any, seed: int, journal: Journal) -> Trained:  # noqa: ARG002
        from pacpredict.learners.torch import weights, wide_resnet  # noqa: PLC0415

        images, labels, n_classes = records.prepared, records.labels, len(records.names)
        outcome = wide_resnet.train(images, labels, n_classes, self.settings, seed, journal)
        return Trained(weights.to_bytes(outcome.state), outcome.notes)

    def _architecture(self) -> "Architecture":
        from pacpredict.learners.torch.wide_resnet import WideResNets  # noqa: PLC0415

        return WideResNets(self.settings)


@dataclass(frozen=True)
class BertLearner(NetworkLearner):
    """With a public vocabulary all networks share its pieces; otherwise each learns them from its own subset."""

    settings: BertSettings
    pieces: tuple[str, ...] | None = None  # of a public vocabulary, where it was read
    digest: str | None = None  # of these
    name = "bert-small"
    libraries = ("torch", "transformers", "tokenizers", "safetensors")

    @classmethod
    def from_config(cls, config: Mapping[str, Any]) -> Self:
        settings = BertSettings.of(_with_device(config))
        if not settings.vocabulary or "vocabulary_sha256" in config:
            return cls(settings, digest=config.get("vocabulary_sha256"))
        import_torch(cls.name)
        from pacpredict.learners.torch.wordpiece import read_vocabulary  # noqa: PLC0415

        pieces = read_vocabulary(settings.vocabulary)
        return cls(settings, pieces, _digest(pieces))

    @classmethod
    def defaults(cls, name: str) -> dict[str, Any]:  # noqa: ARG003
        return _defaults(BertSettings())

    def config(self) -> dict[str, Any]:
        return super().config() | ({} if self.digest is None else {"vocabulary_sha256": self.digest})

    def trainer(self, stored: Iterable[bytes | None]) -> "BertLearner":
        """Take the public vocabulary from a model, which has it."""
        first = next((data for data in stored if data is not None), None)
        if self.digest is None or first is None:
            return self
        from pacpredict.learners.torch.bert import stored_pieces  # noqa: PLC0415
        from pacpredict.learners.torch.weights import from_bytes  # noqa: PLC0415

        pieces = stored_pieces(from_bytes(first).tensors)
        if _digest(pieces) != self.digest:
            raise InvalidModel("a model was not trained with the vocabulary that the artifact names")
        return BertLearner(self.settings, pieces, self.digest)

    @property
    def takes(self) -> tuple[RowKind, ...]:
        return ("text",)

    def prepare(self, schema: TextSchema, rows: Texts) -> npt.NDArray[np.object_]:  # noqa: ARG002
        return np.array(rows.texts, dtype=object)

    def fit_resumably(self, records: TrainingSet, schema: Any, seed: int, journal: Journal) -> Trained:  # noqa: ARG002
        from pacpredict.learners.torch import bert, weights  # noqa: PLC0415
        from pacpredict.learners.torch.wordpiece import learn_vocabulary  # noqa: PLC0415

        texts, n_classes = records.prepared.tolist(), len(records.names)
        pieces = self.pieces or learn_vocabulary(texts, self.settings.vocabulary_size)
        outcome = bert.train(
            texts, records.labels, n_classes, pieces, self.settings, seed, journal, records.units
        )
        return Trained(weights.to_bytes(outcome.state), outcome.notes)

    def _architecture(self) -> "Architecture":
        from pacpredict.learners.torch.bert import Berts  # noqa: PLC0415

        return Berts(self.settings)


def import_torch(learner: str) -> None:
    """Import what networks need to be trained or to vote, or say how to install it."""
    try:
        import safetensors  # noqa: F401, PLC0415
        import torch  # noqa: F401, PLC0415

        if learner == BertLearner.name:
            import tokenizers  # noqa: F401, PLC0415
            import transformers  # noqa: F401, PLC0415
    except ImportError as problem:
        raise MissingExtra("torch", f"the learner {learner}") from problem


def _with_device(config: Mapping[str, Any]) -> dict[str, Any]:
    """Return the parameters; those of a new learner have no device yet, those of an artifact always do."""
    params = dict(config.get("params", {}))
    if "device" not in params:
        import_torch(config["name"])
        from pacpredict.learners.torch.device import default_device  # noqa: PLC0415

        params["device"] = default_device()
    return params


def _defaults(settings: NetworkSettings) -> dict[str, Any]:
    return {name: value for name, value in settings.to_json().items() if name not in _BY_PLACE}


def _digest(pieces: Sequence[str]) -> str:
    return hashlib.sha256("\n".join(pieces).encode()).hexdigest()
