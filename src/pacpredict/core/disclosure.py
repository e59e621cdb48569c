"""What disclosed memberships tell about everyone else's: nobody may be told whether they were trained on.

m subsets are log2(m) bits. Whoever knows the subsets and the membership of j people can strike out every subset that
does not fit; what is left decides the next person's membership, without a single answer.
"""

from math import comb

from pacpredict.core.scalars import check_model_count
from pacpredict.exceptions import InvalidInput


def success_with_known(n_models: int, n_known: int, n_holding: int | None = None) -> float:
    """Return how often the next membership is guessed right by someone who knows the subsets and some memberships.

    Exact for balanced subsets: each unit is in `n_holding` of the `n_models` subsets, drawn independently of all other
    units. The number of subsets that fit what is known is then a Markov chain; it always counts the secret one.

    Parameters
    ----------
    n_models
        Subsets, one of which is the secret.
    n_known
        People whose membership the attacker was told.
    n_holding
        Subsets that each unit is in; half of them by default.

    Returns
    -------
    float
        The success rate of the best guess, on average over subsets, secrets and people.

    Examples
    --------
    >>> [round(success_with_known(128, known), 3) for known in (0, 4, 7, 10, 14)]
    [0.5, 0.635, 0.84, 0.973, 0.998]

    """
    m = check_model_count(n_models)
    k = m // 2 if n_holding is None else n_holding
    if n_known < 0 or not 0 < k < m:
        raise InvalidInput(f"{n_known} known memberships in {k} of {m} subsets each: that cannot be")
    fitting = {m: 1.0}  # how many subsets fit, and with which probability
    for _ in range(n_known):
        fitting = _told_one_more(fitting, m, k)
    return sum(p * _best_guess(n, m, k) for n, p in fitting.items())


def _told_one_more(fitting: dict[int, float], m: int, k: int) -> dict[int, float]:
    after: dict[int, float] = {}
    for n, p in fitting.items():
        for chance, alike in (
            (k / m, k - 1),
            ((m - k) / m, m - k - 1),
        ):  # the secret subset holds the unit, or not
            for others, q in _hypergeometric(m - 1, alike, n - 1).items():
                after[others + 1] = after.get(others + 1, 0.0) + p * chance * q
    return after


def _best_guess(n: int, m: int, k: int) -> float:
    """Return the share of n fitting subsets that the more common answer has, on average."""
    return sum(q * max(holding, n - holding) / n for holding, q in _hypergeometric(m, k, n).items())


def _hypergeometric(population: int, marked: int, drawn: int) -> dict[int, float]:
    """Return the probabilities of how many of the drawn are marked."""
    ways = comb(population, drawn)
    least, most = max(0, drawn - (population - marked)), min(marked, drawn)
    return {i: comb(marked, i) * comb(population - marked, drawn - i) / ways for i in range(least, most + 1)}
