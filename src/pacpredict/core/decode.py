"""How a release becomes a label.

With Gaussian noise decoding is post-processing, covered by the theorem at no further cost (theory.md, 2). `argmax` is
the paper's decoder. Of two labels its answer tends to a fair coin as the budget shrinks. Of three or more it follows
the vote shares at every budget with the least noise, which is the paper's, and tends to a uniform draw from the voted
labels with fair noise (theory.md, 4). `map` picks the most probable label given the release and the public belief: its
answer tends to the belief-weighted vote of all m models. All of these are functions of the pool, about which the
theorem says nothing (docs/threat-model.md). `sample` releases a label to begin with, through a finite channel.
"""

from typing import Literal

from pacpredict.exceptions import InvalidInput

Decoder = Literal["argmax", "map", "sample"]
Mechanism = Literal["gaussian", "channel"]
# How Gaussian noise is shared out among the directions in which votes differ: the least in all (Theorem 2.5, the
# paper's), or the same variance in each.
NoiseRule = Literal["least", "fair"]
NOISE_RULES: tuple[NoiseRule, ...] = ("least", "fair")

# The labels that a release of each mechanism has, in the order in which the kernels write them.
DECODERS_OF: dict[Mechanism, tuple[Decoder, ...]] = {"gaussian": ("argmax", "map"), "channel": ("sample",)}
DECODERS: tuple[Decoder, ...] = tuple(name for names in DECODERS_OF.values() for name in names)


def check_decoder(decoder: str) -> tuple[Mechanism, int]:
    """Return the mechanism of a decoder, and its row in the tables of labels that the release kernels write."""
    for mechanism, names in DECODERS_OF.items():
        for row, name in enumerate(names):
            if decoder == name:
                return mechanism, row
    raise InvalidInput(f"decode must be one of {', '.join(DECODERS)}, got {decoder!r}")


def check_noise(noise: str) -> bool:
    """Tell whether noise is fair."""
    if noise not in NOISE_RULES:
        raise InvalidInput(f"noise must be one of {', '.join(NOISE_RULES)}, got {noise!r}")
    return noise == "fair"
