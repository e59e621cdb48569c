"""Accuracy of simulated deployments that answer every row once, by every decoder."""

from typing import NamedTuple

from pacpredict import defaults
from pacpredict.core.decode import DECODERS_OF, Decoder, NoiseRule
from pacpredict.core.simulate import simulate
from pacpredict.types import IntArray, Votes


class Percent(NamedTuple):
    mean: float
    sd: float  # over trials


def accuracy_by_decoder(
    votes: Votes,
    truth: IntArray,
    step_budget: float,
    *,
    n_trials: int,
    seed: int,
    n_classes: int,
    noise: NoiseRule = defaults.NOISE,
) -> dict[Decoder, Percent]:
    found = {}
    for mechanism, decoders in DECODERS_OF.items():
        result = simulate(
            votes,
            truth,
            step_budget,
            n_trials=n_trials,
            seed=seed,
            mechanism=mechanism,
            noise=noise,
            n_classes=n_classes,
        )
        for decoder in decoders:
            percent = 100 * result.accuracy(decoder)[:, -1]
            found[decoder] = Percent(round(float(percent.mean()), 3), round(float(percent.std()), 3))
    return found
