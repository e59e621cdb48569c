"""An auditor reads transcripts: she recomputes what should have happened, and notes what did."""

import math
from typing import NamedTuple

import numpy as np
from scipy.special import ndtri

from pacpredict.audit.self_test.evidence import ScoreLog, SelfTestEvidence
from pacpredict.audit.self_test.oracle import Expected, LabelLaw, NoiseLaw, Posterior, Question
from pacpredict.audit.self_test.transcripts import Transcript
from pacpredict.mechanism.guarantee import Guarantee
from pacpredict.mechanism.ledger import Entry, State
from pacpredict.mechanism.question import Release

# What a belief may differ by: this share of all that its session has moved, or of 1, and what sums round away.
_SHARE, _ROUNDING = 1e-6, 1e-10
# What differs by less is tied, so that either label follows; and a subset that is less likely is all but ruled out.
_TIED = 1e-9
# Noise of a smaller variance, beside numbers of about 1, has too few digits left to be read. It is that small where the
# belief is all but certain.
_LEAST_VARIANCE = 1e-8
# The ends of uniform numbers, which have finite normal quantiles.
_LEAST, _MOST = 1e-300, 1 - 2.0**-53


class Drawn(NamedTuple):
    """A label that was drawn, and how likely each was."""

    slot: int
    chances: list[float]


class Reader:
    """Reads one transcript after the other. Her own random numbers decide ties within a label's share."""

    def __init__(self, rng: np.random.Generator) -> None:
        self.evidence = SelfTestEvidence()
        self.rng = rng
        self._twin: dict[int, Drawn] | None = None  # the labels of the session before, by position

    def read(self, transcript: Transcript) -> None:
        reading = _Reading(self, transcript)
        reading.read()
        if transcript.group == "served":
            self._compare(reading.drawn)

    def _compare(self, drawn: dict[int, Drawn]) -> None:
        """Compare labels with those of a session that had the same secret and questions."""
        if self._twin is None:
            self._twin = drawn
            return
        for position in self._twin.keys() & drawn.keys():
            one, other = self._twin[position], drawn[position]
            chance = sum(p * q for p, q in zip(one.chances, other.chances, strict=True))
            self.evidence.twins.append((chance, one.slot == other.slot))
        self._twin = None


class _Reading:
    """One transcript, entry by entry."""

    def __init__(self, reader: Reader, transcript: Transcript) -> None:
        self.evidence, self.rng = reader.evidence, reader.rng
        self.transcript, self.claim = transcript, transcript.claim
        self.posterior = Posterior(transcript.claim, transcript.start)
        if any(question.classes.size > 2 for question in transcript.questions):
            self.posterior.follow_axes()
        self.number = len(self.evidence.groups)
        self.spent, self.position = transcript.start.spent_steps, 0
        self.drawn: dict[int, Drawn] = {}

    def read(self) -> None:
        evidence, transcript = self.evidence, self.transcript
        evidence.groups.append(transcript.group)
        if transcript.drew_secret:
            evidence.session_secrets.append(transcript.secret)
        for told, again in transcript.repeated:
            evidence.note("repeats", breached=again != told._replace(charge=0.0))
        if transcript.repeated:
            evidence.note("repeats", breached=transcript.repeats_recorded > 0)
        is_complete = len(transcript.entries) == len(transcript.questions) == len(transcript.told)
        evidence.note("records", breached=not is_complete)
        if is_complete:  # else nobody knows which entry is about which question
            self._read_turns()

    def _read_turns(self) -> None:
        transcript = self.transcript
        rows = list(zip(transcript.questions, transcript.told, transcript.entries, strict=True))
        for state in transcript.turns:
            while self.position < min(len(rows), state.sequence - transcript.start.sequence):
                self._read_entry(*rows[self.position])
                self.position += 1
            self._check_state(state)
        if transcript.guarantee is not None:
            self._check_guarantee(transcript.guarantee)

    def _read_entry(self, question: Question, told: Release, entry: Entry) -> None:
        evidence, budget = self.evidence, self.claim.budget
        number = self.transcript.start.sequence + self.position + 1
        evidence.note("records", breached=not _is_record_of(entry, number, question, told))
        evidence.note("charges", breached=not _is_charged(told, entry.charged_steps * budget.step))
        left = budget.total_steps - self.spent
        self.spent += entry.charged_steps
        if question.is_contested:
            self._read_contested(question, entry, left)
            self.posterior.contested += 1
        else:
            flat = budget.charging == "flat" and left > 0
            evidence.note("charges", breached=entry.charged_steps != flat)
            evidence.note("labels", breached=entry.kind != "agreed" or entry.label != question.classes[0])
            evidence.note("total", breached=left <= 0 and budget.when_exhausted == "halt")

    def _read_contested(self, question: Question, entry: Entry, left: int) -> None:
        evidence, budget = self.evidence, self.claim.budget
        expected, from_belief = self.posterior.expect(question, left), entry.kind == "belief"
        evidence.note("charges", breached=entry.charged_steps != (not from_belief))
        if left <= 0:
            evidence.note("total", breached=budget.when_exhausted != "belief" or not from_belief)
        elif budget.odds_limit is not None:
            wrong = not expected.is_open and from_belief != (expected.release is None)
            evidence.note("odds limit", breached=wrong)
        slot = question.slot_of(entry.label)
        evidence.note("labels", breached=slot is None)
        if slot is None:
            return
        if from_belief:
            self._read_belief(question, expected.belief, slot)
        else:
            self._read_release(question, expected, entry, slot)

    def _read_belief(self, question: Question, law: LabelLaw, slot: int) -> None:
        """Read a label that should not depend on the secret at all."""
        if self.claim.decode == "map":  # the likeliest label, without a draw
            self.evidence.note("labels", breached=law.masses[slot] < max(law.masses) - _TIED)
        else:
            self._score_label(self.evidence.beliefs, question, law, slot)

    def _read_release(self, question: Question, expected: Expected, entry: Entry, slot: int) -> None:
        law = expected.release or self.posterior.unlimited(question)  # a breach was noted; go on as it did
        noisy, evidence = [] if entry.noisy is None else entry.noisy.tolist(), self.evidence
        if isinstance(law, LabelLaw):
            evidence.note("labels", breached=entry.kind != "sample" or bool(noisy))
            self._score_label(evidence.labels, question, law, slot)
            likelihoods = law.log_likelihoods(slot)
        elif entry.kind != self.claim.decode or not _is_release(noisy, law):
            evidence.note("labels", breached=True)
            return
        else:
            self._score_noise(question, law, expected.belief.masses, noisy)
            likelihoods = law.log_likelihoods(noisy)
            evidence.note("labels", breached=not self._follows(law, expected.belief, noisy, slot))
        self.posterior.learn(question, expected.belief.masses, likelihoods, noisy)
        limit = self.claim.budget.epsilon * (1 + _SHARE)
        if self.posterior.spread_at_most > limit:
            evidence.note("odds limit", breached=self.posterior.spread() > limit)

    def _follows(self, law: NoiseLaw, belief: LabelLaw, noisy: list[float], slot: int) -> bool:
        """Tell whether a noisy release leads to its label, by the decoder that is claimed."""
        if self.claim.decode == "argmax":
            entries = [sum(u * x for u, x in zip(point, noisy, strict=True)) for point in law.points]
            return entries[slot] >= max(entries) - _TIED * max(map(abs, entries))
        gains = law.log_likelihoods(noisy)
        weights = [math.log(mass) + gain for mass, gain in zip(belief.masses, gains, strict=True)]
        return weights[slot] >= max(weights) - _TIED

    def _score_noise(
        self, question: Question, law: NoiseLaw, masses: list[float], noisy: list[float]
    ) -> None:
        if min(law.variances) < _LEAST_VARIANCE:
            return
        secret = self.transcript.secret
        slot = int(question.slots[secret])
        leak = law.leak(masses)
        self.evidence.note("certificate", breached=leak > self.claim.budget.step * (1 + _SHARE))
        where, label = (self.number, secret, self.position), int(question.classes[slot])
        for i, (score, value) in enumerate(zip(law.scores(noisy, slot), noisy, strict=True)):
            mean = sum(mass * point[i] for mass, point in zip(masses, law.points, strict=True))
            side = 1.0 if law.points[slot][i] >= mean else -1.0
            self.evidence.noise.add(*where, score, side, value, label, 0)

    def _score_label(self, rows: ScoreLog, question: Question, law: LabelLaw, slot: int) -> None:
        secret = self.transcript.secret
        own = int(question.slots[secret])
        chances = law.chances(own)
        share = sum(chances[:slot]) + self.rng.random() * chances[slot]
        score = float(ndtri(min(max(share, _LEAST), _MOST)))
        side = 1.0 if 2 * own >= question.classes.size else -1.0
        where, label = (self.number, secret, self.position), int(question.classes[own])
        rows.add(*where, score, side, chances[own], label, slot == own)
        self.drawn[self.position] = Drawn(slot, chances)

    def _check_state(self, state: State) -> None:
        """Hold belief and count at a turn's end against what follows from the entries."""
        posterior = self.posterior
        margin = _SHARE * min(posterior.movement, 1.0) + _ROUNDING + posterior.rounding
        known = posterior.log_belief > np.log(_TIED)
        expected, stated = posterior.log_belief[known], state.log_belief[known]
        astray = not bool((np.abs(stated - expected) <= margin * (1 - expected)).all())
        self.evidence.note("belief", breached=astray)
        self.evidence.note("charges", breached=state.spent_steps != self.spent)
        self.evidence.note("total", breached=self.spent > self.claim.budget.total_steps)

    def _check_guarantee(self, stated: Guarantee) -> None:
        """Hold what the session states of itself against what it was opened with, and did."""
        budget = self.claim.budget
        spent = self.spent * budget.step * (1 - _SHARE)
        promised = stated.total_nats == budget.total and stated.odds_limit == budget.odds_limit
        self.evidence.note("total", breached=not promised or stated.spent_nats < spent)


def _is_record_of(entry: Entry, number: int, question: Question, told: Release) -> bool:
    """Tell whether an entry has the number, votes and label of what was asked and told."""
    votes = entry.question
    as_asked = not question.is_contested if votes is None else np.array_equal(votes, question.votes)
    return bool(as_asked and entry.sequence == told.sequence == number and entry.label == told.label)


def _is_release(noisy: list[float], law: NoiseLaw) -> bool:
    return len(noisy) == len(law.variances) and all(map(math.isfinite, noisy))


def _is_charged(told: Release, nats: float) -> bool:
    return told.charge == told.first_charge == nats
