"""What is tested: how sessions are opened, and how secrets are drawn."""

from collections.abc import Callable
from dataclasses import dataclass, replace

from pacpredict.audit.self_test.oracle import Claim
from pacpredict.core.belief import Belief
from pacpredict.core.decode import Decoder
from pacpredict.curator import Curator
from pacpredict.mechanism.budget import Budget
from pacpredict.mechanism.ledger import Ledger
from pacpredict.mechanism.secret import Secret
from pacpredict.mechanism.session import Session
from pacpredict.training.ensemble import Ensemble
from pacpredict.training.recipe import Recipe

# With this budget and ledger; a history that begins draws its secret if none is given.
Open = Callable[[Budget, Ledger, Secret | None], Session]


@dataclass(frozen=True)
class Mechanism:
    """A mechanism under test, with what is claimed of it. Sabotage replaces one of the functions."""

    claim: Claim
    open: Open
    draw_secret: Callable[[], Secret]


def served_mechanism(ensemble: Ensemble, recipe: Recipe, decode: Decoder | None = None) -> Mechanism:
    """Open sessions as a deployment does: by a curator, from the operating system's entropy."""
    claim = Claim(recipe.budget, decode or recipe.decode, len(ensemble.classes), recipe.n_models)

    def open_session(budget: Budget, ledger: Ledger, secret: Secret | None) -> Session:
        return Curator(ensemble, replace(recipe, budget=budget), ledger, secret=secret, decode=decode).session

    return Mechanism(claim, open_session, lambda: Secret.draw(Belief.uniform(recipe.n_models)))


def bare_mechanism(claim: Claim) -> Mechanism:
    """Open sessions without any models, of which only votes are known."""

    def open_session(budget: Budget, ledger: Ledger, secret: Secret | None) -> Session:
        return Session(
            claim.n_classes, budget, claim.n_models, secret=secret, decode=claim.decode, ledger=ledger
        )

    return Mechanism(claim, open_session, lambda: Secret.draw(Belief.uniform(claim.n_models)))
