"""Images in many guises: shifted, mirrored, mixed in pairs. Everything is drawn from the generator that is given."""

from typing import NamedTuple

import numpy as np
import numpy.typing as npt
import torch

from pacpredict.types import IntArray

Images = npt.NDArray[np.uint8]  # (n, height, width, 3)

# Of ImageNet, per channel: public figures, so nothing is learned from the records.
_MEAN = (0.485, 0.456, 0.406)
_DEVIATION = (0.229, 0.224, 0.225)


def normalise(images: Images, device: str = "cpu") -> torch.Tensor:
    """Return (n, 3, height, width) with ImageNet's mean 0 and deviation 1; in memory, channels stay last."""
    # A copy: PyTorch does not share memory that nobody may write to, such as that of a query.
    scaled = torch.tensor(np.ascontiguousarray(images), device=device).float() / 255
    mean, deviation = torch.tensor(_MEAN, device=device), torch.tensor(_DEVIATION, device=device)
    return ((scaled - mean) / deviation).permute(0, 3, 1, 2)


def crop(images: Images, padding: int, generator: np.random.Generator) -> Images:
    """Shift each image by up to `padding` pixels in both directions; what is missing is black."""
    n, height, width, _ = images.shape
    around = (padding, padding)
    padded = np.pad(images, ((0, 0), around, around, (0, 0)))
    top, left = generator.integers(0, 2 * padding + 1, size=(2, n, 1))
    rows, columns = top + np.arange(height), left + np.arange(width)
    return padded[np.arange(n)[:, None, None], rows[:, :, None], columns[:, None, :]]


def flip(images: Images, generator: np.random.Generator) -> Images:
    """Mirror each image with probability 1/2."""
    mirrored = generator.random(len(images)) < 0.5
    return np.where(mirrored[:, None, None, None], images[:, :, ::-1], images)


class Mix(NamedTuple):
    """How the images of a batch are mixed: each with that of `partners`, of which it keeps the share `kept`."""

    partners: IntArray
    kept: float
    box: tuple[slice, slice] | None = None  # CutMix: rows and columns that are the partner's; None: MixUp


def draw_mix(
    n: int, size: tuple[int, int], mixup: float, cutmix: float, generator: np.random.Generator
) -> Mix | None:
    """Choose MixUp or CutMix for a batch, with the same probability, and draw what it needs.

    `mixup` and `cutmix` are the parameters of their Beta distributions; 0 leaves one out.
    """
    methods = [name for name, alpha in (("mixup", mixup), ("cutmix", cutmix)) if alpha > 0]
    if not methods:
        return None
    method = methods[generator.integers(len(methods))]
    partners = generator.permutation(n)
    if method == "mixup":
        return Mix(partners, float(generator.beta(mixup, mixup)))
    return _draw_box(partners, size, float(generator.beta(cutmix, cutmix)), generator)


def _draw_box(partners: IntArray, size: tuple[int, int], kept: float, generator: np.random.Generator) -> Mix:
    """Draw a box of the area 1 - kept around a random pixel; beyond the border it is cut, and `kept` is corrected."""
    height, width = size
    half = 0.5 * np.sqrt(1.0 - kept)
    y, x = int(generator.integers(height)), int(generator.integers(width))
    rows = slice(max(0, y - int(half * height)), min(height, y + int(half * height)))
    columns = slice(max(0, x - int(half * width)), min(width, x + int(half * width)))
    area = (rows.stop - rows.start) * (columns.stop - columns.start)
    return Mix(partners, 1.0 - area / (height * width), (rows, columns))


def mix_images(images: torch.Tensor, mix: Mix) -> torch.Tensor:
    partners = images[torch.from_numpy(mix.partners).to(images.device)]
    if mix.box is None:
        return mix.kept * images + (1.0 - mix.kept) * partners
    mixed = images.clone()
    rows, columns = mix.box
    mixed[:, :, rows, columns] = partners[:, :, rows, columns]
    return mixed
