"""What a forecast recommends, and what it warns of."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from pacpredict.core.decode import DECODERS, Decoder
from pacpredict.evaluation.contested import HIGH
from pacpredict.evaluation.evaluate import Evaluation
from pacpredict.evaluation.forecast import Case
from pacpredict.show import percent

# Decoders from the one whose answers tell least about the pool to the one whose tell most (docs/threat-model.md).
_FROM_CAUTIOUS = ("argmax", "sample", "map")
_TELLING = "{} tells more about the records of the pool than {}: the page 'Threat model' says what"
# What a decoder that tells more about the pool must be better by: less is not worth it.
_WORTH = 0.01


@dataclass(frozen=True)
class Advice:
    learner: str
    decode: Decoder
    step_budget: float
    accuracy: float
    sd: float
    half_data: float  # lost because a model trains on half of the records
    noise: float  # lost to noise where models differ; negative if the decoder is better than a model
    warnings: tuple[str, ...]

    def to_json(self) -> dict[str, Any]:
        return {
            "recommended": {
                name: getattr(self, name) for name in ("learner", "decode", "step_budget", "accuracy", "sd")
            },
            "loss": {"half_data": self.half_data, "noise": self.noise},
            "warnings": list(self.warnings),
        }


def advise(evaluations: Sequence[Evaluation], step_budget: float) -> Advice:
    """Recommend a learner and a decoder for a budget: the most accurate, and the more cautious of nearly equal ones."""
    best = max(evaluations, key=lambda one: max(case.accuracy for case in _at(one, step_budget)))
    cases = _at(best, step_budget)
    most = max(case.accuracy for case in cases)
    case = next(one for one in cases if one.accuracy >= most - _WORTH)
    found = best.forecast
    half_data, noise = found.unprotected.accuracy - found.half.accuracy, found.half.accuracy - case.accuracy
    warnings = _warnings(best, cases, case)
    return Advice(
        best.learner, case.decode, step_budget, case.accuracy, case.sd, half_data, noise, tuple(warnings)
    )


def _at(evaluation: Evaluation, step_budget: float) -> list[Case]:
    """Return the cases at a budget, the most cautious decoder first; one that is new here comes last."""
    known = [name for name in _FROM_CAUTIOUS if name in DECODERS]
    order = [*known, *(name for name in DECODERS if name not in known)]
    cases = {case.decode: case for case in evaluation.forecast.cases if case.step_budget == step_budget}
    return [cases[name] for name in order if name in cases]


def _warnings(evaluation: Evaluation, cases: Sequence[Case], chosen: Case) -> list[str]:
    found = evaluation.forecast
    said = [] if chosen is cases[0] else [_TELLING.format(chosen.decode, cases[0].decode)]
    said += [
        f"{case.decode} is right in {percent(case.accuracy)} of cases, no better than always answering with the most "
        f"frequent class ({percent(found.majority)})"
        for case in cases
        if case.accuracy <= found.majority + case.sd
    ]
    if found.unprotected.accuracy <= found.majority + chosen.sd:
        said.append(
            "an unprotected model is no better than that either: the columns say little about the target"
        )
    if found.contested >= HIGH:
        said.append(
            f"models disagree on {percent(found.contested)} of queries, and each of these is charged: learners that "
            "vary less with their records would help, or more records"
        )
    return said
