"""How often the confidence test of Proposition 5.1 keeps a wrong label, beside the level it is run at.

The test is run as the paper writes it, and with alpha divided among the rivals (docs/theory.md, 7). Every query is
one release of 120 models under the uniform belief. The truth is class 0; in the uneven splits each other class has
the vote of one model. `confidence_levels.txt` holds the output.

    python examples/confidence_levels.py
"""

import math

import numpy as np
import numpy.typing as npt

from pacpredict import Belief, calibrate_votes
from pacpredict.core.decode import confidence, is_confident

N_MODELS = 120
N_DRAWS = 20_000
ALPHAS = (0.5, 0.3, 0.2, 0.1, 0.05, 0.01)
EVEN, UNEVEN = "even", "uneven"
SETTINGS = (
    (3, EVEN, -32),
    (3, UNEVEN, -32),
    (3, UNEVEN, -5),
    (3, UNEVEN, -3),
    (10, EVEN, -32),
    (10, UNEVEN, -32),
    (10, UNEVEN, -3),
    (10, UNEVEN, -1),
)


def split(n_classes: int, how: str) -> npt.NDArray[np.int16]:
    """Let 120 models vote: in equal parts, or all but n_classes - 1 of them for class 0."""
    models = np.arange(N_MODELS, dtype=np.int16)
    return models % n_classes if how == EVEN else np.where(models < n_classes, models, 0).astype(np.int16)


def wrong_labels(votes: npt.NDArray[np.int16], step_budget: float, rng: np.random.Generator) -> list[float]:
    """Draw releases of model 0, which votes for class 0; return the statistics of the labels that came out wrong."""
    n_classes = int(votes.max()) + 1
    noise = calibrate_votes(votes, n_classes, Belief.uniform(N_MODELS), step_budget)
    statistics = []
    # Drawn per class and projected: the same noise whichever orthonormal axes the calibration chose.
    for normals in rng.standard_normal((N_DRAWS, n_classes)) @ noise.axes.T:
        noisy = noise.draw(0, normals)
        label = int(np.argmax(noise.vector(noisy)))
        if label != votes[0]:
            statistics.append(confidence(noise, votes, noisy, label))
    return statistics


def kept_rate(statistics: list[float], alpha: float, n_rivals: int) -> float:
    return sum(is_confident(value, alpha, n_rivals=n_rivals) for value in statistics) / N_DRAWS


def main() -> None:
    rng = np.random.default_rng(51)
    error = 100 * math.sqrt(0.25 / N_DRAWS)
    print(f"wrong labels kept, in % of {N_DRAWS:,} releases (standard error at most {error:.2f})")
    print("k classes voted for, b nats; * marks a rate above alpha by more than three standard errors\n")
    print("                    alpha" + "".join(f"{100 * alpha:9g}" for alpha in ALPHAS))
    for k, how, exponent in SETTINGS:
        statistics = wrong_labels(split(k, how), 2.0**exponent, rng)
        for name, n_rivals in (("paper", 1), ("union", k - 1)):
            rates = [kept_rate(statistics, alpha, n_rivals) for alpha in ALPHAS]
            cells = [
                f"{100 * rate:8.2f}" + ("*" if is_above(rate, alpha) else " ")
                for rate, alpha in zip(rates, ALPHAS, strict=True)
            ]
            print(f"k={k:<2} {how:6} b=2^{exponent:<3} {name}" + "".join(cells).rstrip())


def is_above(rate: float, alpha: float) -> bool:
    return rate - alpha > 3 * math.sqrt(alpha * (1 - alpha) / N_DRAWS)


if __name__ == "__main__":
    main()
