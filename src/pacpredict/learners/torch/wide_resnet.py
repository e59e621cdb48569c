"""Wide residual networks for small images (Zagoruyko and Komodakis, 2016), trained as the paper trains them."""

import numpy as np
import torch
from torch import nn
from torch.nn import functional

from pacpredict.exceptions import InvalidModel
from pacpredict.learners.journal import Journal
from pacpredict.learners.torch import augment
from pacpredict.learners.torch.augment import Images
from pacpredict.learners.torch.course import Course, Outcome, Plan, steps_per_epoch
from pacpredict.learners.torch.device import repeatable_training
from pacpredict.learners.torch.schedule import falling
from pacpredict.learners.torch.settings import WideResNetSettings
from pacpredict.learners.torch.voter import Form, Group
from pacpredict.learners.torch.ways import Shape
from pacpredict.learners.torch.weights import Tensors
from pacpredict.types import IntArray

_STEM = 16  # channels before the first block
_GROUPS = 3  # of blocks; each but the first halves the image and doubles the channels


class WideResNet(nn.Module):
    """Blocks whose activation comes first: WRN-depth-width of the original, without dropout."""

    def __init__(self, depth: int, width: int, n_classes: int) -> None:
        super().__init__()
        self.stem = _convolution(3, _STEM, 3)
        blocks: list[nn.Module] = []
        channels = _STEM
        for group in range(_GROUPS):
            wide = _STEM * width * 2**group
            for i in range(n_blocks(depth)):
                blocks.append(_Block(channels, wide, stride=2 if group > 0 and i == 0 else 1))
                channels = wide
        self.blocks = nn.Sequential(*blocks)
        self.norm = nn.BatchNorm2d(channels)
        self.head = nn.Linear(channels, n_classes)
        nn.init.zeros_(self.head.bias)

    def forward(self, images: torch.Tensor) -> torch.Tensor:
        features = functional.relu(self.norm(self.blocks(self.stem(images))))
        return self.head(features.mean(dim=(2, 3)))


class _Block(nn.Module):
    def __init__(self, before: int, after: int, stride: int) -> None:
        super().__init__()
        self.norm1, self.norm2 = nn.BatchNorm2d(before), nn.BatchNorm2d(after)
        self.conv1, self.conv2 = _convolution(before, after, 3, stride), _convolution(after, after, 3)
        self.shortcut = None if before == after else _convolution(before, after, 1, stride)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        active = functional.relu(self.norm1(x))
        residual = self.conv2(functional.relu(self.norm2(self.conv1(active))))
        return residual + (x if self.shortcut is None else self.shortcut(active))


def n_blocks(depth: int) -> int:
    """Return the blocks of each group: two convolutions each, and four layers outside of the groups."""
    return (depth - 4) // 6


def _convolution(before: int, after: int, side: int, stride: int = 1) -> nn.Conv2d:
    layer = nn.Conv2d(before, after, side, stride, padding=side // 2, bias=False)
    nn.init.kaiming_normal_(layer.weight, mode="fan_out", nonlinearity="relu")
    return layer


class ImageProblem:
    """Augmented images and their labels; the targets of mixed images are mixed as they are."""

    def __init__(
        self, network: nn.Module, images: Images, labels: IntArray, settings: WideResNetSettings
    ) -> None:
        self._network, self._images, self._settings = network, images, settings
        self._labels = torch.from_numpy(np.asarray(labels, np.int64)).to(settings.device)

    @property
    def n_records(self) -> int:
        return len(self._images)

    def loss(self, batch: IntArray, generator: np.random.Generator) -> torch.Tensor:
        settings = self._settings
        images = augment.crop(self._images[batch], settings.crop_padding, generator)
        if settings.flip:
            images = augment.flip(images, generator)
        inputs, labels = augment.normalise(images, settings.device), self._labels[torch.from_numpy(batch)]
        size = images.shape[1], images.shape[2]
        mix = augment.draw_mix(len(batch), size, settings.mixup, settings.cutmix, generator)
        if mix is None:
            return functional.cross_entropy(self._network(inputs), labels)
        scores = self._network(augment.mix_images(inputs, mix))
        of_partners = functional.cross_entropy(scores, labels[torch.from_numpy(mix.partners)])
        return mix.kept * functional.cross_entropy(scores, labels) + (1.0 - mix.kept) * of_partners

    def accuracy(self) -> float | None:
        return None


def train(
    images: Images,
    labels: IntArray,
    n_classes: int,
    settings: WideResNetSettings,
    seed: int,
    journal: Journal,
) -> Outcome:
    with repeatable_training():
        torch.manual_seed(seed)
        network = WideResNet(settings.depth, settings.width, n_classes).to(settings.device)
        network.to(memory_format=torch.channels_last)  # type: ignore[call-overload]  # its types leave this out
        optimizer = torch.optim.SGD(
            network.parameters(),
            lr=settings.learning_rate,
            momentum=settings.momentum,
            weight_decay=settings.weight_decay,
        )
        n_steps = steps_per_epoch(len(images), settings.batch)
        rate = falling(settings.learning_rate, settings.decay, settings.decay_epochs, n_steps)
        plan = Plan(settings.epochs, settings.batch, rate, mixed=settings.is_mixed)
        problem = ImageProblem(network, images, labels, settings)
        return Course(network, optimizer, problem, plan, seed).run(journal)


class WideResNets:
    """What the voter must know of wide residual networks."""

    def __init__(self, settings: WideResNetSettings) -> None:
        self._settings = settings

    def split(self, stored: Tensors) -> tuple[Form, Tensors]:
        if "head.bias" not in stored:
            raise InvalidModel("this file does not hold a wide residual network")
        return Form((len(stored["head.bias"]),)), stored

    def skeleton(self, shape: Shape) -> WideResNet:
        with torch.device("meta"):
            return WideResNet(self._settings.depth, self._settings.width, *shape).eval()

    def groups(self, reader: bytes, prepared: Images) -> list[Group]:  # noqa: ARG002  # all read images alike
        return [Group(np.arange(len(prepared)), (augment.normalise(prepared),))]
