"""An auditor reads transcripts: she recomputes what should have happened, and notes what did."""

from typing import NamedTuple

import numpy as np
from scipy.special import ndtri

from pacpredict.audit.self_test.evidence import Evidence, Rows
from pacpredict.audit.self_test.oracle import Expected, LabelLaw, NoiseLaw, Posterior, Question
from pacpredict.audit.self_test.transcripts import Transcript
from pacpredict.mechanism.ledger import Entry, State
from pacpredict.mechanism.question import Release
from pacpredict.types import FloatArray

# What a belief may differ by: this share of all that its session has moved, or of 1, and what sums round away.
_SHARE, _ROUNDING = 1e-6, 1e-10
# What differs by less is tied, so that either label follows; and a subset that is less likely is all but ruled out.
_TIED = 1e-9
# The ends of uniform numbers, which have finite normal quantiles.
_LEAST, _MOST = 1e-300, 1 - 2.0**-53


class Drawn(NamedTuple):
    """A label that was drawn, and how likely each was."""

    slot: int
    chances: FloatArray


class Reader:
    """Reads one transcript after the other. Her own random numbers decide ties within a label's share."""

    def __init__(self, rng: np.random.Generator) -> None:
        self.evidence = Evidence()
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
            self.evidence.twins.append((float(one.chances @ other.chances), one.slot == other.slot))
        self._twin = None


class _Reading:
    """One transcript, entry by entry."""

    def __init__(self, reader: Reader, transcript: Transcript) -> None:
        self.evidence, self.rng = reader.evidence, reader.rng
        self.transcript, self.claim = transcript, transcript.claim
        self.posterior = Posterior(transcript.claim, transcript.start.log_belief)
        self.number = len(self.evidence.groups)
        self.spent, self.position = transcript.start.spent_steps, 0
        self.drawn: dict[int, Drawn] = {}

    def read(self) -> None:
        evidence, transcript = self.evidence, self.transcript
        evidence.groups.append(transcript.group)
        if transcript.drew_secret:
            evidence.drawn_secrets.append(transcript.secret)
        evidence.note("records", breached=len(transcript.entries) != len(transcript.questions))
        rows = list(zip(transcript.questions, transcript.told, transcript.entries, strict=False))
        for state in transcript.turns:
            while self.position < min(len(rows), state.sequence - transcript.start.sequence):
                self._read_entry(*rows[self.position])
                self.position += 1
            self._check_state(state)
        for told, again in transcript.repeated:
            evidence.note("repeats", breached=again != told._replace(charge=0.0))
        if transcript.repeated:
            evidence.note("repeats", breached=transcript.repeats_recorded > 0)
        self._check_guarantee()

    def _read_entry(self, question: Question, told: Release, entry: Entry) -> None:
        evidence, budget = self.evidence, self.claim.budget
        number = self.transcript.start.sequence + self.position + 1
        evidence.note("records", breached=not _is_record_of(entry, number, question, told))
        evidence.note("charges", breached=not _is_charged(told, entry.charged_steps * budget.step))
        left = budget.total_steps - self.spent
        self.spent += entry.charged_steps
        if question.is_contested:
            self._read_contested(question, entry, left)
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
            evidence.note("odds", breached=wrong)
        slots = np.flatnonzero(question.classes == entry.label)
        evidence.note("labels", breached=slots.size == 0)
        if slots.size == 0:
            return
        if from_belief:
            self._read_belief(question, expected.belief, int(slots[0]))
        else:
            self._read_release(question, expected, entry, int(slots[0]))

    def _read_belief(self, question: Question, law: LabelLaw, slot: int) -> None:
        """Read a label that should not depend on the secret at all."""
        if self.claim.decode == "map":  # the likeliest label, without a draw
            self.evidence.note("labels", breached=bool(law.masses[slot] < law.masses.max() - _TIED))
        else:
            self._score_label(self.evidence.beliefs, question, law, slot)

    def _read_release(self, question: Question, expected: Expected, entry: Entry, slot: int) -> None:
        law = expected.release or self.posterior.unlimited(question)  # a breach was noted; go on as it did
        noisy, evidence = entry.noisy, self.evidence
        if isinstance(law, LabelLaw):
            evidence.note("labels", breached=entry.kind != "sample" or noisy is not None)
            self._score_label(evidence.labels, question, law, slot)
            likelihoods = law.log_likelihoods(slot)
        elif entry.kind != self.claim.decode or noisy is None or noisy.shape != law.variances.shape:
            evidence.note("labels", breached=True)
            return
        else:
            self._score_noise(question, law, expected.belief.masses, noisy)
            likelihoods = law.log_likelihoods(noisy)
            evidence.note("labels", breached=not self._follows(law, expected.belief, noisy, slot))
        self.posterior.learn(question, likelihoods)
        if self.claim.budget.odds_limit is not None:
            passed = self.posterior.spread() > self.claim.budget.odds_limit * (1 + _SHARE)
            evidence.note("odds", breached=passed)

    def _follows(self, law: NoiseLaw, belief: LabelLaw, noisy: FloatArray, slot: int) -> bool:
        """Tell whether a noisy release leads to its label, by the decoder that is claimed."""
        if self.claim.decode == "argmax":
            by_class = law.points @ noisy
            return bool(by_class[slot] >= by_class.max() - _TIED * np.abs(by_class).max())
        by_class = np.log(belief.masses) + law.log_likelihoods(noisy)
        return bool(by_class[slot] >= by_class.max() - _TIED)

    def _score_noise(self, question: Question, law: NoiseLaw, masses: FloatArray, noisy: FloatArray) -> None:
        secret = self.transcript.secret
        slot = int(question.slots[secret])
        leak = law.leak(masses)
        self.evidence.note("certificate", breached=leak > self.claim.budget.step * (1 + _SHARE))
        sides = np.where(law.points[slot] >= masses @ law.points, 1.0, -1.0)
        where, label = (self.number, secret, self.position), int(question.classes[slot])
        for score, side, value in zip(law.scores(noisy, slot), sides, noisy, strict=True):
            self.evidence.noise.rows.append((*where, score, side, value, label, 0))

    def _score_label(self, rows: Rows, question: Question, law: LabelLaw, slot: int) -> None:
        secret = self.transcript.secret
        own = int(question.slots[secret])
        chances = law.chances(own)
        chances /= chances.sum()
        share = float(chances[:slot].sum() + self.rng.random() * chances[slot])
        score = float(ndtri(min(max(share, _LEAST), _MOST)))
        side = 1.0 if 2 * own >= question.classes.size else -1.0
        where, label = (self.number, secret, self.position), int(question.classes[own])
        rows.rows.append((*where, score, side, float(chances[own]), label, slot == own))
        self.drawn[self.position] = Drawn(slot, chances)

    def _check_state(self, state: State) -> None:
        """Hold belief and count at a turn's end against what follows from the entries."""
        posterior = self.posterior
        margin = _SHARE * min(posterior.movement, 1.0) + _ROUNDING
        known = posterior.log_belief > np.log(_TIED)
        expected, stated = posterior.log_belief[known], state.log_belief[known]
        astray = not bool((np.abs(stated - expected) <= margin * (1 - expected)).all())
        self.evidence.note("belief", breached=astray)
        self.evidence.note("charges", breached=state.spent_steps != self.spent)
        self.evidence.note("total", breached=self.spent > self.claim.budget.total_steps)

    def _check_guarantee(self) -> None:
        """Hold what the session states of itself against what it was opened with, and did."""
        stated, budget = self.transcript.guarantee, self.claim.budget
        is_right = (
            stated is not None
            and stated.total_nats == budget.total
            and stated.odds_limit == budget.odds_limit
            and stated.spent_nats >= self.spent * budget.step * (1 - _SHARE)
        )
        self.evidence.note("total", breached=not is_right)


def _is_record_of(entry: Entry, number: int, question: Question, told: Release) -> bool:
    """Tell whether an entry has the number, votes and label of what was asked and told."""
    votes = entry.question
    as_asked = votes is None if not question.is_contested else np.array_equal(votes, question.votes)
    return bool(as_asked and entry.sequence == told.sequence == number and entry.label == told.label)


def _is_charged(told: Release, nats: float) -> bool:
    return told.charge == told.first_charge == nats
