"""The composition root: an artifact, its ledger and what witnesses it, opened and closed as one."""

from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import replace
from functools import cached_property
from pathlib import Path
from typing import Any, Self

from pacpredict.artifact.artifact import LEDGER, WITNESS, Artifact
from pacpredict.artifact.make import store_models, train_missing
from pacpredict.artifact.workshop import Workshop
from pacpredict.core.belief import Belief
from pacpredict.core.decode import Decoder, check_decoder
from pacpredict.core.vote_rule import VoteRule, check_vote_rule
from pacpredict.curator import Answers, Curator, report_privacy
from pacpredict.exceptions import InvalidInput, LedgerConflict
from pacpredict.learners.learner import Learner
from pacpredict.ledger.backup import back_up
from pacpredict.ledger.export import export
from pacpredict.ledger.home import Home
from pacpredict.ledger.keyring import Keyring
from pacpredict.ledger.spending import Course
from pacpredict.ledger.sql import Link
from pacpredict.ledger.verify import Verification, checked_entries, verify
from pacpredict.ledger.witnessed import WitnessedLedger
from pacpredict.mechanism.evidence import Evidence, weigh
from pacpredict.mechanism.ledger import Entry, Failpoints, State, nowhere
from pacpredict.mechanism.limit import limit_warning
from pacpredict.mechanism.secret import Secret
from pacpredict.training.cluster import Cluster
from pacpredict.training.fit import Fit, Progress, no_progress
from pacpredict.training.pool import Pool
from pacpredict.training.recipe import Recipe
from pacpredict.training.scratch import SECONDS_BETWEEN_STATES
from pacpredict.training.space import Space
from pacpredict.training.train import Backend, check_training
from pacpredict.types import FloatArray


class Deployment:
    """One secret with its models and its history; use it in a `with`.

    The models are loaded when something is asked for the first time.
    """

    def __init__(
        self,
        artifact: Artifact,
        ledger: WitnessedLedger,
        *,
        decode: Decoder | None = None,
        votes: VoteRule | None = None,
        voters: Cluster | None = None,
        at: Failpoints = nowhere,
    ) -> None:
        self.artifact = artifact
        self._voters = voters
        self._ledger = ledger
        self._decode = decode
        self._votes = votes
        self._at = at

    @classmethod
    def open(
        cls,
        path: str | Path,
        *,
        ledger: str | None = None,
        anchor: str | None = None,
        trust: bool = False,
        decode: Decoder | None = None,
        votes: VoteRule | None = None,
        to_look: bool = False,
        voters: Cluster | None = None,
        at: Failpoints = nowhere,
    ) -> "Deployment":
        """Open an artifact with its own ledger, or with the one at a URL.

        Parameters
        ----------
        ledger
            A PostgreSQL URL. A deployment that has answered nothing yet begins there; one that has must be moved there.
        anchor
            A file on another disk, or a PostgreSQL URL, where it is noted too how far the history has come. Once given,
            it must be given always.
        trust
            Lets models be loaded from files that can name code to run: only for artifacts that are one's own.
        decode
            Another decoder than the artifact's. One that was fitted to `sample` with a limit on odds keeps to it: noise
            would keep the limit only except with a small probability, which its promise does not mention.
        votes
            Another rule of votes than the artifact's: "plain", "leave-one-out" or "leave-two-out".
        to_look
            Does not begin to use a ledger or an anchor elsewhere: only one that is used already may be given.
        voters
            A cluster over which the models are spread; ledger, belief and noise stay here.
        at
            Called at each step of a turn, for tests that interrupt one there.
        """
        if votes is not None:
            check_vote_rule(votes)  # before a ledger is opened
        artifact = Artifact.open(path, trust=trust)
        _check_decoder_change(artifact.recipe, decode)
        home = home_of(artifact)
        if ledger is not None and not to_look:
            home.begin_at(ledger, anchor)
        opened = home.open(ledger, anchor, to_look=to_look, at=at)
        return cls(artifact, opened, decode=decode, votes=votes, voters=voters, at=at)

    @classmethod
    def fit(
        cls,
        path: str | Path,
        pool: Pool,
        learner: Learner,
        recipe: Recipe,
        *,
        source: Mapping[str, Any] | None = None,
        n_jobs: int | None = None,
        backend: Backend = None,
        progress: Progress = no_progress,
        seconds_between_states: float = SECONDS_BETWEEN_STATES,
    ) -> "Deployment":
        """Train what is missing, draw the secret and publish an artifact that has its ledger from the start."""
        check_training(learner, pool, n_jobs, backend)
        subsets = recipe.subsets(pool.units)  # may refuse, before there is a directory
        with Workshop(path, pool, learner, recipe).open() as workshop:
            voter = train_missing(
                workshop,
                subsets,
                n_jobs=n_jobs,
                backend=backend,
                progress=progress,
                seconds_between_states=seconds_between_states,
            )
            # From the operating system, never from the seed: whoever knows the recipe must not know the secret.
            secret = Secret.draw(Belief.uniform(recipe.n_models))
            space = Space.realised(pool, subsets, learner, voter, recipe.seed)
            identity = workshop.complete(voter, space, secret, source)
            _found(workshop, identity, secret)
            workshop.publish()
        return cls.open(path, trust=True)  # its own models were in this process already

    @classmethod
    def save(cls, path: str | Path, fitted: Fit, curator: Curator) -> "Deployment":
        """Write a deployment that lives in memory as an artifact, and return the one that goes on from there.

        The secret, the history and what is spent move with it: there is never a second history of one secret.
        """
        with Workshop(path, fitted.pool, fitted.learner, fitted.recipe).open() as workshop:
            store_models(workshop, fitted)
            secret, entries, state = curator.session.hand_over()
            try:
                identity = workshop.complete(fitted.ensemble.voter, fitted.ensemble.space, secret, None)
                _found(workshop, identity, secret, entries, replace(state, deployment=identity))
                workshop.publish()
            except BaseException:
                if not workshop.path.exists():  # once it is there, the history goes on there and nowhere else
                    curator.session.take_back()
                raise
        return cls.open(path, trust=True)

    @cached_property
    def curator(self) -> Curator:
        """What answers."""
        return Curator(
            self.artifact.ensemble(self._voters, self._votes),
            self.artifact.recipe,
            self._ledger,
            secret=self.artifact.secret(),
            deployment=self.artifact.identity,
            decode=self._decode,
            at=self._at,
        )

    @cached_property
    def keys(self) -> Keyring:
        """The keys by which clients of a server are known."""
        return Keyring(self._ledger.ledger, self.artifact.recipe.budget.step, self._ledger.note_keys)

    @property
    def was_keyed(self) -> bool:
        """Whether clients ever had keys. If there are none now, somebody has deleted them."""
        return self._ledger.was_keyed

    def ask(self, table: Any, *, request_id: str | None = None, client: str | None = None) -> Answers:
        """Answer all rows of a table, or none; see Curator.ask."""
        return self.curator.ask(table, request_id=request_id, client=client)

    def privacy(self) -> dict[str, Any]:
        """Return the guarantee as plain values, for programs and auditors."""
        return report_privacy(
            self.artifact.recipe, self.artifact.space, self._ledger.load(), self._decode, self._votes
        )

    def membership_posterior(self) -> FloatArray:
        """Return each unit's posterior probability of membership, given all answers so far.

        For the owner only: it reveals who is in the pool.
        """
        state, n_models = self._ledger.load(), self.artifact.recipe.n_models
        belief = Belief.uniform(n_models) if state is None else Belief(state.log_belief)
        return self.artifact.space.membership_posterior(belief)

    @property
    def decoder(self) -> Decoder:
        """How new answers become labels."""
        return self._decode or self.artifact.recipe.decode

    @property
    def vote_rule(self) -> VoteRule:
        """By which votes new answers are given."""
        return self._votes or self.artifact.recipe.votes

    @property
    def location(self) -> str:
        """Where the ledger is, without anything that gives access."""
        return self._ledger.ledger.location

    def describe(self) -> dict[str, Any]:
        """Say what the artifact is; nothing of the secret."""
        artifact, recipe, contested = self.artifact, self.artifact.recipe, self.artifact.contested
        decode = self.decoder
        warnings = (
            None if contested is None else contested.warning(decode),
            limit_warning(recipe.budget, decode, recipe.n_models),
        )
        return {
            "name": artifact.path.absolute().name,
            "identity": artifact.identity,
            "created": artifact.manifest["created"],
            "learner": artifact.learner.name,
            "title": artifact.learner.title,
            "models": recipe.n_models,
            "construction": recipe.construction,
            "rate": recipe.inclusion,
            "records": artifact.n_records,
            **artifact.space.units.summary(),
            "contested_share": None if contested is None else contested.share,
            "columns": artifact.schema.summary(),
            "classes": [str(label) for label in artifact.classes.values],
            "versions": artifact.manifest["versions"],
            "warnings": [warning for warning in warnings if warning is not None],
        }

    def weigh(self, sequences: Collection[int], points: Collection[int]) -> Evidence:
        """Say how clearly some labels were released, and what was believed and spent by some points of the history.

        It is computed from the ledger, whose records are checked on the way, so a later call gives the same. For the
        owner, to choose by: whoever may see it learns how models vote.
        """
        recipe, ledger = self.artifact.recipe, self._ledger.ledger
        prior = Belief.uniform(recipe.n_models)
        entries = checked_entries(ledger, ledger.head())
        n_classes = len(self.artifact.classes)
        return weigh(entries, n_classes, recipe.budget, prior, sequences, points)

    def chain_at(self, sequence: int) -> bytes | None:
        """Return what stands for the history up to a release; None if it has not come so far."""
        return self._ledger.ledger.chain_at(sequence)

    def verify(self) -> Verification:
        """Replay the chain, the spending and the belief of the ledger, and compare every bit."""
        self.keys.check_use()
        recipe = self.artifact.recipe
        prior = Belief.uniform(recipe.n_models)
        return verify(self._ledger.ledger, len(self.artifact.classes), recipe.budget, prior)

    def releases_at(self, chain: bytes) -> int:
        """Return after how many releases the chain was this one; refuses a chain that the history does not contain."""
        found = self._ledger.ledger.sequence_of(chain)
        if found is None:
            raise LedgerConflict(
                f"the ledger at {self.location} has no release with the chain {chain.hex()}: it was turned back since "
                "that was written down, or it is the chain of another deployment"
            )
        return found

    def entries(self) -> Iterator[Entry]:
        """Yield all releases as the ledger keeps them, votes and noisy numbers included: for the owner."""
        return self._ledger.entries()

    def export(self, path: Path) -> int:
        """Write what was answered to a CSV or Parquet file; returns the number of releases."""
        return export(
            self._ledger.ledger, path, self.artifact.recipe.budget, self.artifact.classes.values.__getitem__
        )

    @cached_property
    def course(self) -> Course:
        """How the budget was spent over time."""
        return Course(self._ledger.ledger)

    def link(self) -> Link:
        """Return how far the history has come: whoever writes it down can see later that it was continued."""
        head = self._ledger.ledger.head()
        return Link(head.sequence, head.chain)

    def back_up(self, path: Path) -> Link:
        """Write the ledger to a file that can be kept, but not continued by accident; returns how far it goes."""
        return back_up(self._ledger.ledger, path)

    def close(self) -> None:
        self.keys.close()
        self._ledger.close()
        if "curator" in self.__dict__:  # made when it was first needed
            self.curator.ensemble.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def __repr__(self) -> str:
        return f"Deployment({str(self.artifact.path)!r}, {self._ledger.ledger!r})"


def _check_decoder_change(recipe: Recipe, decode: Decoder | None) -> None:
    """Refuse noise where the promise of a channel, without an exception, was printed."""
    if decode is None or recipe.budget.odds_limit is None or recipe.decode != "sample":
        return
    if check_decoder(decode)[0] == "gaussian":
        raise InvalidInput(
            "this deployment was fitted with sample, which keeps the odds limit in every history; with "
            f"{decode} it would hold only except with probability {recipe.budget.odds_delta:g}. Leave --decode out, or "
            "fit with argmax or map, which can be changed to sample later"
        )


def home_of(artifact: Artifact) -> Home:
    """Say where an artifact has its ledger and its witness."""
    return _home(artifact.path, artifact.identity, artifact.secret())


def _home(directory: Path, identity: str, secret: Secret) -> Home:
    return Home(directory / LEDGER, directory / WITNESS, identity, secret.key("ledger"))


def _found(
    workshop: Workshop,
    identity: str,
    secret: Secret,
    entries: Sequence[Entry] = (),
    state: State | None = None,
) -> None:
    """Put a ledger into an artifact in the making, with the history that goes on, if one does."""
    location = str(workshop.path.absolute() / LEDGER)
    _home(workshop.partial, identity, secret).found(location, entries, state)
