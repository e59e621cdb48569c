"""Augmentation does what its names say, and draws from nothing but the generator that it is given."""

import numpy as np
import pytest
import torch

from pacpredict.learners.torch import augment

N, SIDE, PADDING = 400, 32, 4


@pytest.fixture
def rng():
    return np.random.default_rng(0)


@pytest.fixture
def images(rng):
    return rng.integers(1, 256, size=(N, SIDE, SIDE, 3), dtype=np.uint8)


def test_normalise_uses_the_statistics_of_imagenet():
    """A grey value v becomes (v / 255 - mean) / deviation in each channel, and channels come first."""
    images = np.zeros((1, 2, 2, 3), np.uint8)
    images[0, 0, 1] = (255, 128, 0)
    expected = [(1 - 0.485) / 0.229, (128 / 255 - 0.456) / 0.224, -0.406 / 0.225]
    normalised = augment.normalise(images)
    assert normalised.shape == (1, 3, 2, 2)
    assert torch.allclose(normalised[0, :, 0, 1], torch.tensor(expected), atol=1e-6)


def test_crops_are_shifted_images(images, rng):
    """Each crop is its image moved by at most the padding, black beyond the border; all 81 shifts occur alike."""
    shifts = np.zeros((2 * PADDING + 1, 2 * PADDING + 1), int)
    padded = np.pad(images, ((0, 0), (PADDING, PADDING), (PADDING, PADDING), (0, 0)))
    for _ in range(5):
        for whole, cropped in zip(padded, augment.crop(images, PADDING, rng), strict=True):
            places = [
                (top, left)
                for top, left in np.ndindex(shifts.shape)
                if np.array_equal(whole[top : top + SIDE, left : left + SIDE], cropped)
            ]
            assert len(places) == 1
            shifts[places[0]] += 1
    expected = shifts.sum() / shifts.size
    assert ((shifts - expected) ** 2 / expected).sum() < 130  # chi-squared, 80 degrees of freedom, p = 0.0004


def test_flips_mirror_half_of_the_images(images, rng):
    """An image stays as it is or is mirrored from left to right, each with probability 1/2."""
    flipped = augment.flip(images, rng)
    mirrored = [np.array_equal(new, old[:, ::-1]) for new, old in zip(flipped, images, strict=True)]
    same = [np.array_equal(new, old) for new, old in zip(flipped, images, strict=True)]
    assert all(a != b for a, b in zip(mirrored, same, strict=True))
    assert abs(sum(mirrored) - N / 2) < 4 * np.sqrt(N) / 2


def test_one_of_both_methods_is_chosen_for_each_batch(rng):
    """MixUp and CutMix are chosen equally often; with Beta(1, 1) the share that is kept is uniform."""
    mixes = [augment.draw_mix(8, (SIDE, SIDE), 1.0, 1.0, rng) for _ in range(1000)]
    mixups = [mix for mix in mixes if mix.box is None]
    assert abs(len(mixups) - 500) < 4 * np.sqrt(250)
    assert np.histogram([mix.kept for mix in mixups], bins=4, range=(0, 1))[0].min() > 0.18 * len(mixups)
    assert all(sorted(mix.partners) == list(range(8)) for mix in mixes)


@pytest.mark.parametrize(("mixup", "cutmix", "has_box"), [(1.0, 0.0, False), (0.0, 1.0, True)])
def test_a_method_can_be_left_out(rng, mixup, cutmix, has_box):
    """A parameter of 0 leaves a method out; with both at 0 nothing is mixed."""
    mixes = [augment.draw_mix(8, (SIDE, SIDE), mixup, cutmix, rng) for _ in range(50)]
    assert {mix.box is not None for mix in mixes} == {has_box}
    assert augment.draw_mix(8, (SIDE, SIDE), 0.0, 0.0, rng) is None


def test_mixup_adds_partners(rng):
    """A mixed image is kept * image + (1 - kept) * partner."""
    images = torch.from_numpy(rng.normal(size=(5, 3, 4, 4)).astype(np.float32))
    mix = augment.Mix(np.array([1, 2, 3, 4, 0]), 0.25)
    expected = 0.25 * images + 0.75 * images[[1, 2, 3, 4, 0]]
    assert torch.equal(augment.mix_images(images, mix), expected)


def test_cutmix_pastes_boxes(rng):
    """The box comes from the partner, the rest from the image, and `kept` is exactly the share of the rest."""
    images = torch.from_numpy(rng.normal(size=(6, 3, SIDE, SIDE)).astype(np.float32))
    sizes = []
    for _ in range(200):
        mix = augment.draw_mix(6, (SIDE, SIDE), 0.0, 1.0, rng)
        mixed = augment.mix_images(images, mix)
        inside = np.zeros((SIDE, SIDE), bool)
        inside[mix.box] = True
        assert mix.kept == 1 - inside.mean()
        partners = images[torch.from_numpy(mix.partners)]
        assert torch.equal(mixed, torch.where(torch.from_numpy(inside), partners, images))
        sizes.append(inside.mean())
    # A box of side s around a uniform place has s - s^2/4 of it inside; the mean of its square, where s^2 is uniform.
    assert abs(np.mean(sizes) - (1 / 2 - 1 / 5 + 1 / 48)) < 0.05


def test_the_generator_decides_everything(images):
    """The same generator gives the same crops, flips and mixes."""

    def guises(seed):
        rng = np.random.default_rng(seed)
        mix = augment.draw_mix(N, (SIDE, SIDE), 1.0, 1.0, rng)
        return augment.crop(images, PADDING, rng), augment.flip(images, rng), mix.partners, mix.kept

    for one, other in zip(guises(3), guises(3), strict=True):
        assert np.array_equal(one, other)
    assert not np.array_equal(guises(3)[0], guises(4)[0])
