"""Negative control: the self-test must catch a deployment's own mechanism once it is broken on purpose."""

from typing import NamedTuple

from pacpredict.audit.self_test.mechanism import Mechanism
from pacpredict.audit.self_test.run import run_self_test
from pacpredict.audit.self_test.sabotage.base import Sabotage
from pacpredict.audit.self_test.sabotage.registry import sabotages_of
from pacpredict.training.fit import Progress, no_progress
from pacpredict.types import Votes

# Served sessions of each self-test: the breaches that users are shown are large.
N_SESSIONS = 128


class Control(NamedTuple):
    """One mechanism and which checks it failed."""

    sabotage: str | None  # None: the mechanism as it is
    leak: str
    failed: list[str]

    @property
    def is_right(self) -> bool:
        """Whether a broken mechanism was caught, or the honest one passed."""
        return bool(self.failed) == (self.sabotage is not None)


def run_negative_control(
    mechanism: Mechanism,
    votes: Votes,
    *,
    seed: int,
    n_sessions: int = N_SESSIONS,
    progress: Progress = no_progress,
) -> list[Control]:
    """Run the self-test on the mechanism as it is, and on it with each of a few sabotages."""
    shown: list[Sabotage | None] = [None, *(one for one in sabotages_of(mechanism.claim) if one.shown)]
    controls = []
    progress(0, len(shown))
    for done, sabotage in enumerate(shown, 1):
        tested = mechanism if sabotage is None else sabotage.apply(mechanism)
        results = run_self_test(tested, votes, seed=seed, n_sessions=n_sessions, stop_early=True)
        failed = [one.check for one in results if one.holds is False]
        name, leak = (None, "its budget") if sabotage is None else (sabotage.name, sabotage.leak)
        controls.append(Control(name, leak, failed))
        progress(done, len(shown))
    return controls
