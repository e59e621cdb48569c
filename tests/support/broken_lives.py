"""Lives of deployments that do not do what is claimed of them, for the audit to catch."""

from dataclasses import replace

import numpy as np
from voting import random_votes

from pacpredict.audit.lives import DELTA, STEP, TOTAL
from pacpredict.mechanism.budget import Budget
from pacpredict.mechanism.session import Session
from pacpredict.training.subsets import balanced

M, N_UNITS = 32, 40
CLAIMED = Budget(STEP, TOTAL, odds_limit=1.0, odds_delta=DELTA, when_exhausted="belief")


def scene(seed=0):
    """Votes and subsets: of each unit a record that is more or less remembered, and records that few dissent on."""
    rng = np.random.default_rng(seed)
    membership = balanced(M, N_UNITS, rng)
    forgets = rng.random((N_UNITS, M)) < rng.uniform(0, 0.4, (N_UNITS, 1))
    remembered = (membership.T ^ forgets).astype(np.int16)
    others = random_votes(rng, 60, M, 2, dissent=0.05)
    votes = np.concatenate([remembered, others])
    return votes[votes.min(axis=1) < votes.max(axis=1)], membership


class BeliefNotUpdated(Session):
    """Forgets what it has released: the next noise is calibrated as if nothing had been."""

    def _commit(self, entries, contested, log_belief):
        super()._commit(entries, contested, self.prior.log_probabilities.copy())


class PriorOnly(Session):
    """Keeps the belief, but calibrates noise to the prior."""

    def __init__(self, *arguments, **options):
        super().__init__(*arguments, **options)
        answer, prior = self._answering.answer, self.prior.log_probabilities

        def from_prior(before, *asked):
            answered = answer(replace(before, log_belief=prior.copy()), *asked)
            joint = before.log_belief + answered.log_belief
            joint -= joint.max()
            return answered._replace(log_belief=joint - np.log(np.exp(joint).sum()))

        self._answering.answer = from_prior


class ChargeForgotten(Session):
    """Charges every other release only."""

    def __init__(self, *arguments, **options):
        super().__init__(*arguments, **options)
        answer = self._answering.answer

        def generous(before, *asked):
            answered = answer(before, *asked)
            return answered._replace(charged=[0] * len(answered.charged)) if before.sequence % 2 else answered

        self._answering.answer = generous


class _Changed(Session):
    """Answers, and then changes what it answers with."""

    def __init__(self, *arguments, **options):
        super().__init__(*arguments, **options)
        answer = self._answering.answer

        def changed(before, votes, n_voted, secret):
            answered = answer(before, votes, n_voted, secret)
            weights = np.exp(before.log_belief)
            labels = [
                self._instead(votes[q], secret.reveal(), weights, label, kind)
                for q, (label, kind) in enumerate(zip(answered.labels, answered.kinds, strict=True))
            ]
            return answered._replace(labels=labels)

        self._answering.answer = changed


class BeliefTells(_Changed):
    """Says the secret's own label, free of charge, and calls it an answer of the belief."""

    def _instead(self, votes, secret, weights, label, kind):
        return int(votes[secret]) if kind == "belief" else label


class BeliefNotDrawn(_Changed):
    """Answers with what the belief makes most likely, instead of drawing from it."""

    def _instead(self, votes, secret, weights, label, kind):
        return int(np.argmax(np.bincount(votes, weights))) if kind == "belief" else label


class LabelTells(_Changed):
    """Draws, records and charges noise as claimed, and answers with the secret's own label."""

    def _instead(self, votes, secret, weights, label, kind):
        return label if kind == "belief" else int(votes[secret])


class AgreedTells(_Changed):
    """Says something about the secret where all models agree."""

    def _instead(self, votes, secret, weights, label, kind):
        return secret % 2 if kind == "agreed" else label


class TwiceAsClose(Session):
    """Draws labels of the channel that follow the secret twice as closely as it says, and believes what it says."""

    def __init__(self, *arguments, **options):
        super().__init__(*arguments, **options)
        answer, rng = self._answering.answer, options["generator"] or np.random.default_rng(0)

        def closer(before, votes, n_voted, secret):
            answered = answer(before, votes, n_voted, secret)
            if answered.kinds != ["sample"]:
                return answered
            learnt, voted = answered.log_belief - before.log_belief, votes[0] == answered.labels[0]
            odds = np.expm1(learnt[voted][0] - learnt[~voted][0]) * np.exp(before.log_belief)[voted].sum()
            # With coupling c = odds / (1 + odds) this makes it c + (1 - c) odds = 2 c.
            while rng.random() < odds and answered.labels[0] != votes[0][secret.reveal()]:
                answered = answer(before, votes, n_voted, secret)
                odds = 1.0  # again, until it is the secret's own
            return answered

        self._answering.answer = closer


class LimitForSome(Session):
    """Keeps the limit on odds for every other unit only."""

    def __init__(self, *arguments, membership, **options):
        members, odds = (part[::2] for part in membership.bits)
        some = replace(membership, bits=membership.bits._replace(members=members, prior_odds=odds))
        super().__init__(*arguments, membership=some, **options)


class _OtherNoise:
    """A source whose normals are others; what it gives otherwise is that of another source."""

    def __init__(self, source, normals):
        self.uniforms, self.normals = source.uniforms, normals


class NoiseCancels(Session):
    """Draws noise of the right variance for every other release, and takes it away again in the next."""

    def __init__(self, *arguments, **options):
        super().__init__(*arguments, **options)
        source, held = self._entropy, []

        def in_pairs(size):
            if held:
                return -held.pop()
            held.append(source.normals(size))
            return held[0]

        self._answering._entropy = _OtherNoise(source, in_pairs)


class NoiseComesAgain(Session):
    """Uses all noise twice, the second time after that of another release."""

    def __init__(self, *arguments, **options):
        super().__init__(*arguments, **options)
        source, held = self._entropy, []

        def twice(size):
            if size and not held:
                first, second = source.normals(size), source.normals(size)
                held[:] = [second, first, second, first]
            return held.pop() if size else source.normals(0)

        self._answering._entropy = _OtherNoise(source, twice)


class ServedFromSeed(Session):
    """Draws from a seed when no generator is given: whoever restarts it gets the same noise again."""

    def __init__(self, *arguments, **options):
        super().__init__(
            *arguments, **options | {"generator": options["generator"] or np.random.default_rng(0)}
        )


class NoiseCapped(Session):
    """Has noise for 2^-12 nats at least, which is too little for smaller steps."""

    def __init__(self, *arguments, **options):
        super().__init__(*arguments, **options)
        step, n_steps = max(self.budget.step, 2.0**-12), self.budget.total_steps
        self._answering._budget = replace(self.budget, step=step, total=step * n_steps)


class ServedWithoutNoise(Session):
    """Has no noise when no generator is given: what is served is the secret's own label."""

    def __init__(self, *arguments, **options):
        super().__init__(*arguments, **options)
        if options["generator"] is None:
            self._answering._entropy = _OtherNoise(self._entropy, np.zeros)


def as_served(budget):
    """Return as many steps of the size that deployments have by default."""
    return replace(budget, step=budget.step / 2**23, total=budget.total / 2**23)


def begin_with(kind, budget, decode):
    """Return what begins such lives, with smaller steps where they draw as they are served."""

    def begin(secret, ledger, rng):
        options = {"secret": secret, "ledger": ledger, "generator": rng, "decode": decode}
        return kind(2, as_served(budget) if rng is None else budget, M, **options)

    return begin


NO_LIMIT = replace(CLAIMED, odds_limit=None)
# By what is wrong: how a life begins, and what is claimed of it. Without a limit there is more to see of the noise.
BROKEN = {
    "half the variance": (Session, replace(NO_LIMIT, step=2 * STEP, total=2 * TOTAL), NO_LIMIT),
    "half the variance, with a limit": (Session, replace(CLAIMED, step=2 * STEP, total=2 * TOTAL), CLAIMED),
    "belief not updated": (BeliefNotUpdated, NO_LIMIT, NO_LIMIT),
    "calibrated to the prior only": (PriorOnly, NO_LIMIT, NO_LIMIT),
    "limit off while claimed": (Session, NO_LIMIT, CLAIMED),
    "charge forgotten": (ChargeForgotten, NO_LIMIT, NO_LIMIT),
}
# Likewise what few lives show, with the claim that it contradicts.
BROKEN_DRAWS = {
    "the belief's answers are the secret's": (BeliefTells, CLAIMED, CLAIMED, "draws"),
    "the belief's answers are the secret's, at the end": (BeliefTells, NO_LIMIT, NO_LIMIT, "draws"),
    "the belief's answers are not drawn": (BeliefNotDrawn, CLAIMED, CLAIMED, "draws"),
    "labels tell where all agree": (AgreedTells, CLAIMED, CLAIMED, "labels"),
}
# What can be wrong only with labels through a channel.
BROKEN_CHANNEL = {
    "labels follow the secret twice as closely": (TwiceAsClose, NO_LIMIT, NO_LIMIT, "noise"),
    "labels follow the secret twice as closely, with a limit": (TwiceAsClose, CLAIMED, CLAIMED, "noise"),
}
# And only where there is noise.
BROKEN_NOISE = {
    "labels are the secret's": (LabelTells, CLAIMED, CLAIMED, "labels"),
    "noise cancels": (NoiseCancels, NO_LIMIT, NO_LIMIT, "noise"),
    "noise cancels, with a limit": (NoiseCancels, CLAIMED, CLAIMED, "noise"),
    "noise comes again": (NoiseComesAgain, NO_LIMIT, NO_LIMIT, "noise"),
    "no noise is served": (ServedWithoutNoise, CLAIMED, CLAIMED, "served"),
    "noise comes again when it is served": (ServedFromSeed, CLAIMED, CLAIMED, "served"),
    "too little noise at small steps": (NoiseCapped, CLAIMED, CLAIMED, "served"),
}
