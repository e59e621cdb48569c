"""What a server has done so far, for its page: from the ledger what was answered, from its own counts the rest."""

from collections import Counter, defaultdict
from typing import NamedTuple

from pacpredict.mechanism.ledger import State
from pacpredict.mechanism.session import Session
from pacpredict.serving.metrics import Metrics
from pacpredict.serving.page.traffic import Counts

# Routes by which queries are asked.
_ASKING = ("/infer", "/invocations")


class _Free(NamedTuple):
    """Answers that were charged nothing: by all models, or by the belief."""

    agreed: int = 0
    belief: int = 0


class Counting:
    """Adds up what there is to show.

    Once the budget is spent, whoever is answered by the belief is not told whether models differed. So from then on
    the two kinds of free answers are counted as one, from the last look before.
    """

    def __init__(self, session: Session, metrics: Metrics) -> None:
        self._session = session
        self._metrics = metrics
        self._last = _Free()

    def read(self) -> Counts:
        state = self._session.snapshot()
        counted: Counter[str] = Counter(self._answers(state))
        latency: defaultdict[float, float] = defaultdict(float)
        for sample in self._metrics.samples():
            route = sample.labels.get("route", "")
            if sample.name == "pacpredict_repeated_answers_total":
                counted["repeated"] += int(sample.value)
            elif not route.endswith(_ASKING):
                continue
            elif sample.name == "pacpredict_request_seconds_bucket":
                latency[float(sample.labels["le"])] += sample.value
            elif sample.name == "pacpredict_requests_total" and int(sample.labels["status"]) >= 400:
                counted["refused"] += int(sample.value)
        return Counts(counted, sorted(latency.items()))

    def _answers(self, state: State) -> dict[str, int]:
        budget, charged = self._session.budget, state.spent_steps
        is_flat = (
            budget.charging == "flat"
        )  # then only what the belief answers is free, and a charge tells nothing
        n_free = state.sequence - charged
        if not budget.is_silent(charged):
            belief = n_free if is_flat else state.contested - charged
            self._last = _Free(n_free - belief, belief)
        agreed, belief = self._last
        return {
            "charged" if is_flat else "contested": charged,
            "agreed": agreed,
            "belief": belief,
            "free": n_free - agreed - belief,
        }
