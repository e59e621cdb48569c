"""Which prior an attack has: the options --prior, --attack, --models and --group-size."""

from argparse import ArgumentParser, Namespace

from pacpredict.cli.numbers import count, real
from pacpredict.core.scalars import check_model_count
from pacpredict.exceptions import InvalidInput

DEFAULT_MODELS = 128
DEFAULT_GROUP_SIZE = 5

ATTACKS = {
    "membership": "was this record trained on",
    "reconstruction": "name one record that was trained on",
    "group": "which records of a group were trained on",
    "full-set": "name all records that were trained on",
    "model": "name the model",
}

# The prior of a group depends on the subsets, so it is simulated on fresh ones: 1000 random groups among
# 1000 records. With this seed everybody sees the same number.
GROUP_SEED = 128
GROUP_RECORDS = 1000


def add_attack_options(parser: ArgumentParser) -> None:
    which = parser.add_mutually_exclusive_group()
    which.add_argument(
        "--prior", type=real, metavar="Q", help="success rate of the attack before any answer, such as 1/128"
    )
    which.add_argument(
        "--attack",
        choices=ATTACKS,
        help="take the prior of this attack: membership and reconstruction 1/2, full-set and model 1/models, "
        f"group the mean of a simulation with seed {GROUP_SEED} (default: membership)",
    )
    parser.add_argument(
        "--models", type=count, metavar="M", help=f"number of subsets and models (default: {DEFAULT_MODELS})"
    )
    parser.add_argument(
        "--group-size",
        type=count,
        metavar="K",
        help=f"records in a group, for --attack group (default: {DEFAULT_GROUP_SIZE})",
    )


def chosen_prior(arguments: Namespace) -> float:
    """Return the prior that the options ask for, 1/2 if they ask for none."""
    if arguments.group_size is not None and arguments.attack != "group":
        raise InvalidInput("--group-size means something with --attack group only")
    if arguments.models is not None and arguments.attack is None:
        raise InvalidInput("--models means something with --attack only")
    if arguments.prior is not None:
        return float(arguments.prior)
    return prior_of(arguments.attack or "membership", arguments.models, arguments.group_size)


def prior_of(attack: str, models: int | None = None, group_size: int | None = None) -> float:
    m = check_model_count(DEFAULT_MODELS if models is None else models)
    if attack == "group":
        return _simulated_group_prior(m, DEFAULT_GROUP_SIZE if group_size is None else group_size)
    return 1 / m if attack in ("full-set", "model") else 0.5


def _simulated_group_prior(models: int, group_size: int) -> float:
    import numpy as np  # noqa: PLC0415  # the only prior that needs arrays

    from pacpredict.core.priors import simulate_group_prior  # noqa: PLC0415
    from pacpredict.ensemble.subsets import balanced  # noqa: PLC0415

    rng = np.random.default_rng(GROUP_SEED)
    return simulate_group_prior(balanced(models, GROUP_RECORDS, rng), group_size, rng).mean
