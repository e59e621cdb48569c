"""Which lies of a mechanism the self-test of an audit catches, and how often.

    python -m pacpredict.experiments.liars --cache liars.jsonl
    python -m pacpredict.experiments.liars --cache liars.jsonl --seeds 20 --sessions 512

Runs the self-test on an honest mechanism and on each sabotaged one, with argmax and sample, over votes of 128 models
that a seed decides, at the default budget. Outcomes are kept in the cache: interrupted, it goes on where it was, and
`--seeds 0` prints what is there.
"""

import argparse
import json
from collections import Counter
from collections.abc import Iterator
from pathlib import Path

import numpy as np

from pacpredict import defaults
from pacpredict.audit.self_test.mechanism import bare_mechanism
from pacpredict.audit.self_test.oracle import Claim
from pacpredict.audit.self_test.run import run_self_test
from pacpredict.audit.self_test.sabotage.base import Sabotage
from pacpredict.audit.self_test.sabotage.registry import sabotages_of
from pacpredict.audit.self_test.stages import N_SESSIONS
from pacpredict.cli.progress import progress_bar
from pacpredict.core.decode import Decoder
from pacpredict.mechanism.budget import Budget
from pacpredict.types import Votes

DECODERS: tuple[Decoder, ...] = ("argmax", "sample")
_HONEST = "none: the mechanism as it is"
_N_QUERIES, _N_CLASSES, _RARE = 600, 3, 0.0005  # of the votes: how often the third label is voted for

Key = tuple[str, Decoder, int]


def claim_of(decode: Decoder) -> Claim:
    """Return what a deployment with the default settings claims."""
    budget = Budget(defaults.STEP_BUDGET, defaults.TOTAL_BUDGET, odds_limit=defaults.ODDS_LIMIT)
    return Claim(budget, decode, _N_CLASSES, defaults.MODELS)


def votes_of(seed: int) -> Votes:
    """Draw votes of all degrees of agreement on two labels, and now and then a third."""
    rng = np.random.default_rng([seed, 2])
    shape = _N_QUERIES, defaults.MODELS
    votes = (rng.random(shape) < rng.beta(0.5, 0.5, (_N_QUERIES, 1))).astype(np.int16)
    votes[rng.random(shape) < _RARE] = 2
    return votes


def cases() -> Iterator[tuple[Sabotage | None, Decoder]]:
    for decode in DECODERS:
        yield None, decode
        yield from ((sabotage, decode) for sabotage in sabotages_of(claim_of(decode)))


def outcome(sabotage: Sabotage | None, decode: Decoder, seed: int, n_sessions: int) -> list[str]:
    """Return the checks that fail."""
    mechanism = bare_mechanism(claim_of(decode))
    tested = mechanism if sabotage is None else sabotage.apply(mechanism)
    results = run_self_test(tested, votes_of(seed), seed=seed, n_sessions=n_sessions, stop_early=True)
    return [one.check for one in results if one.holds is False]


def _read(cache: Path) -> dict[Key, list[str]]:
    lines = cache.read_text().splitlines() if cache.exists() else []
    return {(name, decode, seed): failed for name, decode, seed, failed in map(json.loads, lines)}


def _name(sabotage: Sabotage | None) -> str:
    return _HONEST if sabotage is None else sabotage.name


def _print(found: dict[Key, list[str]]) -> None:
    print("| what is broken | leaks | decoder | caught | by |\n|---|---|---|---|---|")
    for sabotage, decode in cases():
        mine = [failed for (name, by, _), failed in found.items() if (name, by) == (_name(sabotage), decode)]
        checks = Counter(check for failed in mine for check in failed)
        leak = "" if sabotage is None else sabotage.leak
        caught, by = sum(map(bool, mine)), ", ".join(name for name, _ in checks.most_common(2))
        print(f"| {_name(sabotage)} | {leak} | {decode} | {caught} of {len(mine)} | {by} |")


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--cache", type=Path, default=Path("liars.jsonl"), help="where outcomes are kept")
    parser.add_argument("--seeds", type=int, default=20, help="self-tests of each mechanism (default: 20)")
    parser.add_argument("--sessions", type=int, default=N_SESSIONS, help="served sessions of each")
    parser.add_argument("--only", default="", help="mechanisms with this in their name")
    arguments = parser.parse_args()
    found = _read(arguments.cache)
    todo = [
        (sabotage, decode, seed)
        for seed in range(arguments.seeds)
        for sabotage, decode in cases()
        if arguments.only in _name(sabotage) and (_name(sabotage), decode, seed) not in found
    ]
    with progress_bar("self-tests") as progress:
        for done, (sabotage, decode, seed) in enumerate(todo, 1):
            failed = outcome(sabotage, decode, seed, arguments.sessions)
            found[_name(sabotage), decode, seed] = failed
            with arguments.cache.open("a") as out:
                out.write(json.dumps([_name(sabotage), decode, seed, failed]) + "\n")
            progress(done, len(todo))
    _print(found)


if __name__ == "__main__":
    main()
