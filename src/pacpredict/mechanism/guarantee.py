"""What a budget promises against an attack, as numbers."""

from dataclasses import dataclass

from pacpredict.core.attacks import success_after, true_positives
from pacpredict.core.decode import Decoder, check_decoder
from pacpredict.core.roc import DEFAULT_FPR
from pacpredict.exceptions import InvalidInput
from pacpredict.mechanism.budget import Budget
from pacpredict.mechanism.ledger import State
from pacpredict.promise import Promise, promise_of


@dataclass(frozen=True)
class Guarantee:
    """What holds for the whole life of a deployment, whatever was asked and is asked.

    Attributes
    ----------
    queries, contested, spent_nats, total_nats
        What was answered, on what the models differed, what was charged for it, and what will be at most. No promise
        follows from what is spent by now: whoever asks in view of answers may stop when they have succeeded.
    prior, success
        How often an attack succeeds before any answer, and how often at most after all of them: on average over secrets
        and histories.
    fpr, tpr
        A rate of false alarms, and the highest rate of members that any test of membership finds at that rate.
    odds_limit, odds_delta
        How far the log-odds of any statement about the training set move at most, in every history except with
        probability `odds_delta`, whatever else an attacker knows about it. Without Gaussian noise `odds_delta` is 0.
        `odds_limit` is None if there is no limit.
    unit
        Whose membership these figures are about, "person" or "record"; None if the prior is that of another attack.

    """

    queries: int
    contested: int
    spent_nats: float
    total_nats: float
    prior: float
    success: float
    fpr: float
    tpr: float
    odds_limit: float | None
    odds_delta: float
    unit: str | None = None

    @classmethod
    def of(
        cls,
        budget: Budget,
        decode: Decoder,
        state: State | None,
        prior: float = 0.5,
        unit: str | None = None,
    ) -> "Guarantee":
        """State what a budget promises with a decoder; `state` is None before anything was answered.

        Labels of a channel keep the limit on odds always, unless noise was ever used in the same history.
        """
        queries, contested, spent = (
            (0, 0, 0) if state is None else (state.sequence, state.contested, state.spent_steps)
        )
        mechanism, _ = check_decoder(decode)
        is_noisy = mechanism == "gaussian" or (state is not None and state.noisy > 0)
        odds_delta = budget.odds_delta if is_noisy else 0.0
        return cls(
            queries=queries,
            contested=contested,
            spent_nats=budget.nats(spent),
            total_nats=budget.total,
            prior=prior,
            success=success_after(budget.total, prior),
            fpr=DEFAULT_FPR,
            tpr=true_positives(budget.total, prior, budget.odds_limit, odds_delta),
            odds_limit=budget.odds_limit,
            odds_delta=odds_delta,
            unit=unit,
        )

    def promise(self) -> Promise:
        """Word the promise in four sentences; `print` shows them.

        Raises
        ------
        InvalidInput
            If the prior is that of another attack than membership inference.

        """
        if self.unit is None:
            raise InvalidInput(
                "the promise is about membership, and this guarantee is about another attack: call guarantee() without "
                "a prior"
            )
        names = "prior", "success", "fpr", "tpr", "odds_limit", "odds_delta"
        return promise_of(unit=self.unit, **{name: getattr(self, name) for name in names})
