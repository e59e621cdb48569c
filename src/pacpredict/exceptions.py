"""Everything that pacpredict raises on purpose.

PacPredictError
├── InvalidInput (also a ValueError)
│   ├── InvalidProbability    a success rate, prior, delta, alpha or epsilon out of its range
│   ├── InvalidBudget         nats that are negative, zero, NaN or infinite where they must not be
│   ├── InvalidModelCount     an odd number of models, or fewer than two
│   ├── InvalidSubsets        a membership matrix or a group of records of the wrong shape or kind
│   ├── InvalidBelief         a belief or prior that is not a distribution over the models
│   ├── InvalidVotes          labels out of range, of the wrong type or shape, or none at all
│   ├── InvalidOutputs        real outputs with NaN or infinity, or of the wrong shape
│   ├── InvalidModel          a trained model that cannot be packed, or stored parts of one that do not fit together
│   ├── InvalidTable          training data that cannot be read or learned from
│   ├── InvalidFeatures       an extractor that returned NaN, an infinity, another number of features or none
│   ├── InvalidQuery          rows to be answered that do not fit the columns of the training data
│   └── InvalidPlan           not exactly two of the three quantities that a plan relates
├── InvalidArtifact           a directory that is no artifact, or one whose files are damaged, missing or foreign
│   └── UntrustedArtifact     its files can name code to run, and nobody has said that they may
├── DeviceUnavailable         no GPU where one was asked for
├── TrainingDiverged          the loss of a network is no number any more
├── ClusterUnavailable        a Ray cluster that cannot be reached, or has not what was asked of it
├── VotersUnavailable         some of the m models cannot vote now, so that no answer is given
├── MissingExtra              a package that is not installed with pacpredict alone (also an ImportError)
├── NothingToLearn            the labels that were kept cannot train a student; they stay on record
├── StudentRefuted            a student is not what its card says, or not of this deployment
├── PromiseBroken             an audit found what contradicts what is promised of a deployment
├── DemoFailed                the server of the demo did not start, or refused a question
├── RequestRefused            an HTTP request that is not looked into
│   ├── InvalidHttp           something that is no HTTP
│   ├── UrlTooLong            more bytes than a URL may have
│   ├── HeadTooLarge          more bytes than URL and headers may have
│   ├── HeadTooSlow           URL and headers did not arrive in time
│   ├── UnknownHost           sent to a name that this server does not go by
│   ├── ForeignOrigin         sent by a web page of somebody else
│   ├── KeyMissing            a request without a key, or with one that is not valid
│   ├── RoleMissing           a key whose role does not allow this
│   ├── UnknownModel          there is no model of this name or version here
│   ├── BodyTooLarge          more bytes than the server takes
│   ├── BodyTooSlow           the body did not arrive in time
│   ├── UnsupportedEncoding   a compressed body
│   └── ServerBusy            too many connections, requests or bytes at a time
├── QuotaReached              the key may not ask more; nothing was drawn or charged
│   └── RateReached           it may, after a while
├── BudgetExhausted           the release would pass the total budget; nothing was drawn or charged
├── OddsLimitReached          a vector could move odds past the limit; nothing was drawn or charged
└── LedgerError               the ledger could not take the release; nothing was released
    ├── LedgerConflict        the ledger is not where this session left it
    │   └── ForeignLedger     the ledger belongs to another deployment
    ├── IdConflict            the id of this request was used for another request
    ├── LedgerUnavailable     the ledger cannot be reached or written now; works again when the cause is gone
    └── LedgerDamaged         what the ledger holds is not what was written to it

Whatever is raised, no answer was given, nothing was charged and no state changed, with one exception: when a ledger
becomes unavailable in the middle of a commit the release may be on record; asking again gives the recorded answer.
"""

from functools import partial
from typing import Any


class PacPredictError(Exception):
    """Base of all errors of this package."""


class InvalidInput(PacPredictError, ValueError):
    """An argument that cannot be used; the text says what was wrong and what to do."""


class InvalidProbability(InvalidInput):
    pass


class InvalidBudget(InvalidInput):
    pass


class InvalidModelCount(InvalidInput):
    pass


class InvalidSubsets(InvalidInput):
    pass


class InvalidBelief(InvalidInput):
    pass


class InvalidVotes(InvalidInput):
    pass


class InvalidOutputs(InvalidInput):
    pass


class InvalidModel(InvalidInput):
    pass


class InvalidTable(InvalidInput):
    pass


class InvalidFeatures(InvalidInput):
    pass


class InvalidQuery(InvalidInput):
    """What was asked cannot be answered; `row` says where in the table that is, from 0, if it is in one row."""

    def __init__(self, message: str, row: int | None = None) -> None:
        super().__init__(message)
        self.row = row


class TooManyRows(InvalidQuery):
    pass


class InvalidPlan(InvalidInput):
    pass


class InvalidArtifact(PacPredictError):
    pass


class UntrustedArtifact(InvalidArtifact):
    pass


class DeviceUnavailable(PacPredictError):
    pass


class TrainingDiverged(PacPredictError):
    pass


class ClusterUnavailable(PacPredictError):
    pass


class VotersUnavailable(PacPredictError):
    pass


class MissingExtra(PacPredictError, ImportError):
    def __init__(self, extra: str, purpose: str) -> None:
        super().__init__(
            f"{purpose} needs a package that is not installed: pip install 'pacpredict[{extra}]'"
        )
        self._arguments = extra, purpose

    def __reduce__(self) -> tuple[Any, tuple[str, str]]:  # it may come out of another process
        return MissingExtra, self._arguments


class NothingToLearn(PacPredictError):
    pass


class StudentRefuted(PacPredictError):
    pass


class PromiseBroken(PacPredictError):
    pass


class DemoFailed(PacPredictError):
    pass


class PrivacyWarning(UserWarning):
    """Something costs privacy that may not have been meant to: a second secret over the same records, a paid score."""


class RequestRefused(PacPredictError):
    pass


class InvalidHttp(RequestRefused):
    pass


class UrlTooLong(RequestRefused):
    pass


class HeadTooLarge(RequestRefused):
    pass


class HeadTooSlow(RequestRefused):
    pass


class UnknownHost(RequestRefused):
    pass


class ForeignOrigin(RequestRefused):
    pass


class KeyMissing(RequestRefused):
    pass


class RoleMissing(RequestRefused):
    pass


class UnknownModel(RequestRefused):
    pass


class BodyTooLarge(RequestRefused):
    pass


class BodyTooSlow(RequestRefused):
    pass


class UnsupportedEncoding(RequestRefused):
    pass


class ServerBusy(RequestRefused):
    pass


class QuotaReached(PacPredictError):
    pass


class RateReached(QuotaReached):
    """Carries after how many seconds there is room again."""

    def __init__(self, message: str, *, seconds: int) -> None:
        super().__init__(message)
        self.seconds = seconds

    def __reduce__(self) -> tuple[Any, tuple[str]]:  # it may come out of another process
        return partial(RateReached, seconds=self.seconds), (str(self),)


class BudgetExhausted(PacPredictError):
    """Carries what the refused release needed and what was left, both in nats."""

    def __init__(self, message: str, *, needed_nats: float, left_nats: float) -> None:
        super().__init__(message)
        self.needed_nats = needed_nats
        self.left_nats = left_nats

    def __reduce__(self) -> tuple[Any, tuple[str]]:  # it may come out of another process
        return partial(BudgetExhausted, needed_nats=self.needed_nats, left_nats=self.left_nats), (str(self),)


class OddsLimitReached(PacPredictError):
    """A release of real outputs that the limit on odds does not allow; a label would come from the belief."""


class LedgerError(PacPredictError):
    pass


class LedgerConflict(LedgerError):
    pass


class ForeignLedger(LedgerConflict):
    pass


class IdConflict(LedgerError):
    pass


class LedgerUnavailable(LedgerError):
    pass


class LedgerDamaged(LedgerError):
    pass
