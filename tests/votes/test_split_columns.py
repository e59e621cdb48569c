"""Every way to vote agrees with a walk through the trees in plain Python, whatever the trees look like."""

import os
import platform
import subprocess
import sys
from dataclasses import replace

import numpy as np
import pytest

from pacpredict.votes import column_kernel, perfect_trees
from pacpredict.votes.packed_trees import PackedTrees
from pacpredict.votes.split_columns import SplitColumns
from pacpredict.votes.trees import Tree, TreeModel, pack

N_NUMBERS, CODES = 3, (2, 62, 63, 64, 200)  # with two bits more, sets fill one word, just not, and several
N_FEATURES = N_NUMBERS + len(CODES)
THRESHOLDS = np.array(
    [-np.inf, -1.0, np.float32(0.1), 0.0, np.nextafter(np.float32(1), np.float32(2)), np.inf]
)


def random_tree(rng, n_leaves, width, output, dtype):
    """Grow a tree by splitting any of its leaves; some become chains."""
    left, right = [-1], [-1]
    leaves, chain = [0], rng.random() < 0.3
    while len(leaves) < n_leaves:
        node = leaves.pop(-1 if chain else int(rng.integers(len(leaves))))
        left[node], right[node] = len(left), len(left) + 1
        leaves += [len(left), len(left) + 1]
        left += [-1, -1]
        right += [-1, -1]
    n = len(left)
    feature = rng.integers(N_FEATURES, size=n)
    categorical = (feature >= N_NUMBERS) & (np.array(left) >= 0)
    pairs = [
        (node, code)
        for node in np.flatnonzero(categorical)
        for code in range(CODES[feature[node] - N_NUMBERS])
        if rng.random() < 0.5
    ]
    return Tree(
        left=np.array(left),
        right=np.array(right),
        feature=feature,
        threshold=rng.choice(THRESHOLDS, size=n),
        missing_left=rng.random(n) < 0.5,
        values=rng.normal(size=(n, width)).astype(dtype),
        output=output,
        others_right=rng.random(n) < 0.5,
        exceptions=(np.array([p for p, _ in pairs], np.int64), np.array([c for _, c in pairs], float)),
        categorical=categorical,
    )


def random_model(rng, sizes, n_classes, width, dtype):
    outputs = rng.integers(n_classes - width + 1, size=len(sizes))
    trees = [random_tree(rng, n, width, int(k), dtype) for n, k in zip(sizes, outputs, strict=True)]
    return TreeModel(trees, rng.normal(size=n_classes).astype(dtype), rng.permutation(n_classes))


def random_rows(rng, n_rows):
    numbers = rng.choice([*THRESHOLDS, 0.05, 0.1, 2.0, 1 + 1e-9], size=(n_rows, N_NUMBERS))
    codes = np.column_stack([rng.integers(-1, n + 2, size=n_rows) for n in CODES]).astype(float)
    rows = np.hstack([numbers, codes])
    rows[rng.random(rows.shape) < 0.1] = np.nan
    return rows


def goes_right(tree, node, x):
    if np.isnan(x):
        return not tree.missing_left[node]
    if not tree.categorical[node]:
        return x > tree.threshold[node]
    nodes, codes = tree.exceptions
    return bool(tree.others_right[node]) != bool(((nodes == node) & (codes == x)).any())


def label(model, row):
    """Walk and add in the type of the base, one tree after the other; the first of the largest wins."""
    sums = model.base.copy()
    for tree in model.trees:
        node = 0
        while tree.left[node] >= 0:
            right = goes_right(tree, node, row[tree.feature[node]])
            node = (tree.right if right else tree.left)[node]
        for j, value in enumerate(tree.values[node]):
            sums[tree.output + j] += value
    return model.labels[np.argmax(sums)]


def random_ensemble(seed, most_leaves, width, dtype):
    rng = np.random.default_rng(seed)
    models = [
        random_model(rng, rng.integers(1, most_leaves + 1, size=rng.integers(0, 40)), 3, width, dtype)
        for _ in range(4)
    ]
    rows = random_rows(rng, 90)
    single = dtype == np.float32
    with np.errstate(over="ignore"):
        seen = rows.astype(np.float32).astype(float) if single else rows
    expected = np.array([[label(model, row) for model in models] for row in seen])
    return PackedTrees(**pack(models, N_FEATURES, single=single)), rows, expected


CASES = [
    (leaves, width, dtype) for leaves in (2, 9, 40) for width, dtype in ((1, "f4"), (1, "f8"), (3, "f8"))
]


@pytest.mark.parametrize(("most_leaves", "width", "dtype"), [*CASES, (256, 1, "f4")])
def test_random_trees(most_leaves, width, dtype):
    """Chains and bushes, thresholds of any kind, known, unknown and missing categories, one value a leaf or several."""
    packed, rows, expected = random_ensemble(most_leaves, most_leaves, width, np.dtype(dtype))
    np.testing.assert_array_equal(packed.voting_by(None).votes(rows), expected)
    for least_swept in (1, sys.maxsize):
        other = packed.voting_by(replace(packed.columns, least_swept=least_swept))
        for size in (1, 7, 8, 9, 64, 65, 90):
            np.testing.assert_array_equal(other.votes(rows[:size]), expected[:size])


def test_large_trees_are_never_swept():
    """A byte numbers leaves in a sweep: with more than 256 of them each row walks, and votes are the same."""
    packed, rows, expected = random_ensemble(1, 600, 1, np.dtype("f4"))
    assert packed.columns.n_leaves > column_kernel.MOST_SWEPT_LEAVES
    assert packed.columns.least_swept > 10**9
    assert packed.perfect is None
    np.testing.assert_array_equal(packed.votes(np.tile(rows, (20, 1))), np.tile(expected, (20, 1)))


@pytest.mark.parametrize(("most_leaves", "dtype"), [(n, d) for n in range(1, 10) for d in ("f4", "f8")])
def test_any_shallow_trees_become_perfect(monkeypatch, most_leaves, dtype):
    """Chains and bushes of every depth, in models of any number of trees, for any classes, vote as they did."""
    monkeypatch.setattr(perfect_trees, "_MOST_CELLS_PER_LEAF", np.inf)
    packed, rows, expected = random_ensemble(most_leaves, most_leaves, 1, np.dtype(dtype))
    perfect = packed.perfect
    assert perfect is not None
    assert perfect.depths.max() == packed.depths.max(initial=0) == most_leaves - 1  # a chain
    for least_swept in (1, sys.maxsize):
        other = packed.voting_by(packed.columns, replace(perfect, least_swept=least_swept))
        for size in (1, 7, 8, 9, 64, 65, 90):
            np.testing.assert_array_equal(other.votes(rows[:size]), expected[:size])
        np.testing.assert_array_equal(other._votes(rows, 1, 3), expected[:, 1:3])  # a thread's part


@pytest.mark.skipif(platform.machine() != "x86_64", reason="compiles for other processors of this kind")
@pytest.mark.parametrize(("name", "features"), [("haswell", "+avx,+avx2"), ("x86-64", "+sse2")])
def test_other_processors(tmp_path, name, features):
    """Those with smaller registers, and those that cannot permute them, vote as this one does."""
    asked = [
        f"{__file__}::test_any_shallow_trees_become_perfect[{n}-{d}]" for n in (6, 9) for d in ("f4", "f8")
    ]
    target = {"NUMBA_CPU_NAME": name, "NUMBA_CPU_FEATURES": features, "NUMBA_CACHE_DIR": str(tmp_path)}
    command = [sys.executable, "-m", "pytest", "-q", "-p", "no:cacheprovider", *asked]
    run = subprocess.run(command, env={**os.environ, **target}, capture_output=True, text=True, check=False)
    assert "4 passed" in run.stdout, run.stdout


def test_trees_that_are_far_from_perfect_stay_as_they_are():
    """Filled up, chains of nine leaves would have 256: they vote by columns, bushes of four as perfect trees."""
    chains, *_ = random_ensemble(9, 9, 1, np.dtype("f4"))
    assert chains.perfect is None
    rng = np.random.default_rng(0)
    model = random_model(rng, [2] * 6, 3, 1, np.dtype("f4"))
    assert PackedTrees(**pack([model], N_FEATURES, single=True)).perfect is not None


def test_more_classes_than_labels_can_number():
    """Arrays that somebody edited may have them: trees count for their classes still, and write nowhere else."""
    n_classes, last = 40_000, 39_999
    rng = np.random.default_rng(0)
    tree = replace(random_tree(rng, 2, 1, last, np.dtype("f8")), values=np.ones((3, 1)))
    labels = np.where(np.arange(n_classes) == last, 7, 0)
    packed = PackedTrees(
        **pack([TreeModel([tree] * 8, np.zeros(n_classes), labels)], N_FEATURES, single=False)
    )
    assert packed.perfect is not None
    assert (packed.perfect.outputs == last).all()
    assert (packed.votes(random_rows(rng, 9)) == 7).all()


def test_too_many_splits_for_perfect_trees(monkeypatch):
    """A cell names a column by 16 bits: with more columns trees vote by their words, and the same."""
    packed, rows, expected = random_ensemble(2, 2, 1, np.dtype("f4"))
    assert packed.perfect is not None
    monkeypatch.setattr(SplitColumns, "nobody", 1 << 16)
    assert replace(packed).perfect is None
    np.testing.assert_array_equal(replace(packed).votes(rows), expected)


@pytest.mark.parametrize("bits", ["COLUMN_BITS", "STEP_BITS"])
def test_what_does_not_fit_votes_by_words(monkeypatch, bits):
    """With more columns, or farther children, than a node can name there are no columns, and votes are the same."""
    packed, rows, expected = random_ensemble(2, 40, 1, np.dtype("f4"))
    monkeypatch.setattr(column_kernel, bits, 3)
    assert packed.columns is None
    np.testing.assert_array_equal(packed.votes(rows), expected)


def test_equal_splits_share_a_column():
    """A second ensemble of the same trees adds no column, and half a tree's splits may be another's."""
    rng = np.random.default_rng(0)
    models = [random_model(rng, [20] * 10, 3, 1, np.dtype("f4")) for _ in range(2)]
    once, twice = (
        PackedTrees(**pack(each, N_FEATURES, single=True)).columns for each in (models, models * 2)
    )
    assert twice.set_columns[-1] == once.set_columns[-1]
    assert len(twice.words) == 2 * len(once.words)
    n_thresholds = len(once.ranks)
    assert n_thresholds <= 2 * N_NUMBERS * len(THRESHOLDS)  # with the missing to the left, and to the right
