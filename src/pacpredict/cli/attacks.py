"""Which prior an attack has: the options --prior, --attack, --artifact, --models and --group-size."""

from argparse import ArgumentParser, Namespace
from pathlib import Path
from typing import NamedTuple

from pacpredict import defaults
from pacpredict.cli.numbers import count, real
from pacpredict.core.attacks import GROUP_SIZE, QUESTIONS, question
from pacpredict.core.scalars import check_model_count
from pacpredict.exceptions import InvalidInput

MEMBERSHIP_PRIOR = 0.5  # of subsets as they are drawn by default

# Without an artifact priors are counted in fresh subsets of 1000 units. With this seed everybody sees the same ones.
SEED = 128
N_UNITS = 1000


class Priors(NamedTuple):
    """By attack, counted in some subsets, with what its question needs."""

    by_attack: dict[str, float]
    unit: str
    n_models: int
    group_size: int

    def question(self, attack: str) -> str:
        return question(attack, unit=self.unit, n_models=self.n_models, group_size=self.group_size)


def add_attack_options(parser: ArgumentParser) -> None:
    which = parser.add_mutually_exclusive_group()
    which.add_argument(
        "--prior", type=real, metavar="Q", help="success rate of the attack before any answer, such as 1/128"
    )
    which.add_argument(
        "--attack",
        choices=QUESTIONS,
        help="take the prior of this attack (default: membership)",
    )
    subsets = parser.add_mutually_exclusive_group()
    subsets.add_argument(
        "--artifact", type=Path, metavar="DIR", help="count priors in the subsets and models of this artifact"
    )
    subsets.add_argument(
        "--models",
        type=count,
        metavar="M",
        help=f"count priors in M fresh subsets, drawn with seed {SEED} (default: {defaults.MODELS})",
    )
    parser.add_argument(
        "--group-size",
        type=count,
        metavar="K",
        help=f"persons in a group, chosen at random, for group-any and group-exact (default: {GROUP_SIZE})",
    )


def chosen_prior(arguments: Namespace) -> float:
    """Return the prior that the options ask for, that of membership if they ask for none."""
    if arguments.group_size is not None and not (arguments.attack or "").startswith("group-"):
        raise InvalidInput("--group-size means something with --attack group-any and group-exact only")
    if arguments.models is not None and arguments.attack is None:
        raise InvalidInput("--models means something with --attack only")
    if arguments.prior is not None:
        return float(arguments.prior)
    if arguments.attack is None and arguments.artifact is None:
        return MEMBERSHIP_PRIOR  # known without counting, and without the time to import what counts
    return priors_of(arguments).by_attack[arguments.attack or "membership"]


def reported_membership_prior(arguments: Namespace) -> float:
    """Return the prior of the membership inference that is compared with differential privacy."""
    if arguments.prior is not None:
        return float(arguments.prior)
    return MEMBERSHIP_PRIOR if arguments.artifact is None else priors_of(arguments).by_attack["membership"]


def priors_of(arguments: Namespace) -> Priors:
    """Count the priors of all attacks in the subsets of an artifact, or in fresh ones."""
    size = GROUP_SIZE if arguments.group_size is None else arguments.group_size
    if arguments.artifact is not None:
        return _of_artifact(arguments.artifact, size)
    return _of_fresh_subsets(defaults.MODELS if arguments.models is None else arguments.models, size)


def _of_artifact(path: Path, group_size: int) -> Priors:
    from pacpredict.artifact.artifact import Artifact  # noqa: PLC0415  # NumPy and more take time to import
    from pacpredict.core.priors import group_priors  # noqa: PLC0415

    space = Artifact.open(path).space
    by_attack = dict(space.priors)
    if group_size != GROUP_SIZE:
        by_attack |= group_priors(space.subsets.matrix(), group_size)
    return Priors(by_attack, space.units.kind, space.subsets.n_models, group_size)


def _of_fresh_subsets(models: int, group_size: int) -> Priors:
    import numpy as np  # noqa: PLC0415

    from pacpredict.core.priors import Records, attack_priors  # noqa: PLC0415
    from pacpredict.training.subsets import balanced  # noqa: PLC0415

    m, units = check_model_count(models), np.arange(N_UNITS)
    subsets = balanced(m, N_UNITS, np.random.default_rng(SEED))
    different = np.arange(m)[:, None]  # each model votes as no other does
    priors = attack_priors(subsets, Records(units, units), different, group_size=group_size)
    return Priors(priors, "person", m, group_size)
