"""How often the confidence test of Proposition 5.1 keeps a wrong label, beside the level it is run at.

The test is run as the paper writes it, and with alpha divided among the rivals (docs/theory.md, 7). Every query is
one release of 120 models under the uniform belief. The truth is class 0; in the uneven splits each other class has
the vote of one model. `confidence_levels.txt` holds the output.

    python examples/confidence_levels.py
"""

import bisect
import math

import numpy as np
import numpy.typing as npt

from pacpredict import Belief, Noise, calibrate_votes
from pacpredict.core.filters import Confidence, confidence, is_confident

N_MODELS = 120
N_DRAWS = 400_000
ALPHAS = (0.5, 0.3, 0.2, 0.1, 0.05, 0.01)
EVEN, UNEVEN = "even", "uneven"

Votes = npt.NDArray[np.int16]
FloatArray = npt.NDArray[np.float64]

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


def split(n_classes: int, how: str) -> Votes:
    """Let 120 models vote: in equal parts, or all but n_classes - 1 of them for class 0."""
    models = np.arange(N_MODELS, dtype=np.int16)
    return models % n_classes if how == EVEN else np.where(models < n_classes, models, 0).astype(np.int16)


def wrong_labels(votes: Votes, step_budget: float, rng: np.random.Generator) -> FloatArray:
    """Draw releases of model 0, which votes for class 0; return the statistics of the labels that came out wrong."""
    n_classes = int(votes.max()) + 1
    noise = calibrate_votes(votes, n_classes, Belief.uniform(N_MODELS), step_budget)
    # Drawn per class and projected: the same noise whichever orthonormal axes the calibration chose.
    normals = rng.standard_normal((N_DRAWS, n_classes)) @ noise.axes.T
    noisy = noise.coordinates[0] + np.sqrt(noise.variances) * normals
    labels = np.argmax(noise.centre + noisy @ noise.axes, axis=1)
    statistics = np.full(N_DRAWS, np.nan)
    for label in range(1, n_classes):
        statistics[labels == label] = statistics_of(noise, votes, noisy[labels == label], label)
    return statistics[labels != 0]


def statistics_of(noise: Noise, votes: Votes, noisy: FloatArray, label: int) -> FloatArray:
    """Compute what `confidence` computes, for many releases at once."""
    at = [noise.coordinates[np.flatnonzero(votes == c)[0]] for c in range(int(votes.max()) + 1)]
    smallest = np.full(len(noisy), np.inf)
    for rival in (position for c, position in enumerate(at) if c != label):
        direction = (at[label] - rival) / noise.variances
        length = math.sqrt(direction @ (at[label] - rival))
        smallest = np.minimum(smallest, (noisy - rival) @ direction / length)
    by_library = [confidence(noise, votes, row, label).statistic for row in noisy[:10]]
    np.testing.assert_allclose(smallest[:10], by_library, rtol=1e-9)
    return smallest


def kept_rate(statistics: FloatArray, n_rivals: int, alpha: float, *, corrected: bool) -> float:
    """Count the wrong labels that pass; the test is monotone, so looking for its threshold asks it 60 times."""
    ordered = np.sort(statistics)
    first = bisect.bisect_left(
        ordered,
        True,
        key=lambda value: bool(is_confident(Confidence(value, n_rivals), alpha, corrected=corrected)),
    )
    return (ordered.size - first) / N_DRAWS


def main() -> None:
    rng = np.random.default_rng(51)
    error = 100 * math.sqrt(0.25 / N_DRAWS)
    print(f"wrong labels kept, in % of {N_DRAWS:,} releases (standard error at most {error:.2f})")
    print("k classes voted for, b nats; * marks a rate above alpha by more than three standard errors\n")
    print("                    alpha" + "".join(f"{100 * alpha:9g}" for alpha in ALPHAS))
    for k, how, exponent in SETTINGS:
        statistics = wrong_labels(split(k, how), 2.0**exponent, rng)
        for name, corrected in (("paper", False), ("union", True)):
            rates = [kept_rate(statistics, k - 1, alpha, corrected=corrected) for alpha in ALPHAS]
            cells = [
                f"{100 * rate:8.2f}" + ("*" if is_above(rate, alpha) else " ")
                for rate, alpha in zip(rates, ALPHAS, strict=True)
            ]
            print(f"k={k:<2} {how:6} b=2^{exponent:<3} {name}" + "".join(cells).rstrip())


def is_above(rate: float, alpha: float) -> bool:
    return rate - alpha > 3 * math.sqrt(alpha * (1 - alpha) / N_DRAWS)


if __name__ == "__main__":
    main()
