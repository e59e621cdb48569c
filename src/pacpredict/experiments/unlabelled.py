"""Unlabelled public rows beside a pool, from census income and from images, with what they truly are.

True labels are there to score with; nothing is trained on them but what says so.
"""

import io
from typing import Any, NamedTuple

import numpy as np

from pacpredict.exceptions import InvalidTable
from pacpredict.experiments.datasets import DATASETS
from pacpredict.experiments.image_data import CIFAR10, load_cifar
from pacpredict.experiments.public_files import find
from pacpredict.learners.heads.learner import Heads
from pacpredict.learners.learner import Learner
from pacpredict.learners.registry import learner_named
from pacpredict.rows.kind import AnyRows
from pacpredict.tables.options import TableOptions
from pacpredict.training.pool import Pool
from pacpredict.types import IntArray

SEED = 1  # of the split
TEST_SHARE, PUBLIC_SHARE = 0.2, 0.25
N_PUBLIC_CIFAR = 10_000
UNKNOWN = -1  # the true label of a public row that is of none of the classes


class Setting(NamedTuple):
    """A pool, public rows with what they truly are, and rows to score with."""

    pool: Pool
    learner: Learner
    public: AnyRows
    truth: IntArray  # of public rows
    test: AnyRows
    test_truth: IntArray
    balanced: bool  # whether students weigh classes alike, as the paper's do


def census() -> Setting:
    """Train on four fifths of the records, of which a quarter is held back without labels."""
    table, target = DATASETS["census"].load(), DATASETS["census"].target
    order = np.random.default_rng(SEED).permutation(len(table))
    n_test = round(TEST_SHARE * len(table))
    n_public = round(PUBLIC_SHARE * (len(table) - n_test))
    test, public, rest = np.split(order, [n_test, n_test + n_public])
    pool = Pool.of_frame(table.iloc[rest], TableOptions(target, person_per_row=True))  # as the paper draws

    def part(chosen: IntArray) -> tuple[AnyRows, IntArray]:
        rows = table.iloc[chosen]
        return pool.schema.rows(rows.drop(columns=target)), pool.classes.codes(rows[target])

    return Setting(pool, learner_named("xgboost"), *part(public), *part(test), balanced=False)


def cifar10(features: str, n_others: int | None, n_threads: int) -> Setting:
    """Hold 10,000 of the training images back, which with images of other sources are the public ones."""
    split = load_cifar(CIFAR10)
    order = np.random.default_rng(SEED).permutation(len(split.labels))
    held, rest = order[:N_PUBLIC_CIFAR], order[N_PUBLIC_CIFAR:]
    learner = Heads(features, n_threads=n_threads)
    pool = Pool.of(split.records[rest], split.labels[rest], person_per_row=True, kinds=learner.takes)
    others, truth = _public_images(n_others)
    public = pool.schema.rows(np.concatenate([split.records[held], others]))
    codes = np.concatenate([pool.classes.codes(split.labels[held]), truth])
    test = pool.schema.rows(split.asked), pool.classes.codes(split.truth)
    return Setting(pool, learner, public, codes, *test, balanced=True)


def _public_images(n_wanted: int | None) -> tuple[Any, IntArray]:
    """Return images of ImageNet, Caltech-101 and animal photographs (n, 32, 32, 3), and which of the ten classes."""
    import pandas as pd  # noqa: PLC0415
    from PIL import Image  # noqa: PLC0415

    files = [find(f"tiny_imagenet/{name}.parquet") for name in ("public_32px", "public_extra_32px")]
    if None in files:
        raise InvalidTable(
            "the public images are missing: tiny_imagenet/ below the directory of PACPREDICT_DATA"
        )
    table = pd.concat([pd.read_parquet(file) for file in files], ignore_index=True)
    table = table.iloc[np.random.default_rng(SEED).permutation(len(table))[:n_wanted]]
    images = [np.asarray(Image.open(io.BytesIO(data)).convert("RGB")) for data in table["image"]]
    return np.array(images, np.uint8).reshape(-1, 32, 32, 3), table["cifar10_label"].to_numpy(np.int64)
