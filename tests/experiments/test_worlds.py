"""Retrained worlds: what coins decide, what is kept, and that attackers find what is there and nothing else."""

import numpy as np
import pytest

from pacpredict.audit.presence import own_label_rates
from pacpredict.experiments.worlds import answers, tables
from pacpredict.experiments.worlds.answers import DECODERS, label_probability
from pacpredict.experiments.worlds.attack import Seen, attack, true_positives
from pacpredict.experiments.worlds.build import build
from pacpredict.experiments.worlds.explain import count, explain
from pacpredict.experiments.worlds.family import MODELS_PER_BLOCK
from pacpredict.experiments.worlds.measure import apply_rule, ensembles, measure
from pacpredict.experiments.worlds.rules import LEAVE_ONE_OUT, PLAIN, RULES
from pacpredict.experiments.worlds.variants import choose_variants, judge_votes, vary
from pacpredict.votes.leave_one_out import LeaveOneOut

SMALL = tables.Setting(tables.digits, tables.named("decision-tree"), 150, 40, 6, 1, 8)


@pytest.fixture(scope="module")
def small(tmp_path_factory):
    """A family of six small worlds, with ensembles of 128 models."""
    tables.SETTINGS["small"] = SMALL
    cache = tmp_path_factory.mktemp("worlds")
    (worlds,) = build("small", cache, 6, 2 * MODELS_PER_BLOCK, lambda *_: None)
    yield cache, worlds
    del tables.SETTINGS["small"]


def test_variants():
    """A variant has one to four columns of a donor, or lies at most half of the way towards one."""
    table = (1e6 * tables.cancer().drop(columns=tables.TARGET)).astype(int)
    rows = table.iloc[[3] * 400].reset_index(drop=True)
    donors = table.iloc[[7]]
    found = vary(rows, donors, np.random.default_rng(1)).to_numpy()
    own, other = table.to_numpy()[3], table.to_numpy()[7]
    n_changed = (found != own).sum(axis=1)
    swapped = found[n_changed <= 4]
    assert 150 < len(swapped) < 250
    assert set(n_changed) >= {1, 2, 3, 4}
    assert ((swapped == own) | (swapped == other)).all()
    moved = (found[n_changed > 4] - own) / (other - own)
    assert moved.min() > -0.01
    assert moved.max() < 0.51
    assert np.issubdtype(found.dtype, np.integer)


def test_candidates_are_judged_by_who_was_trained_on_the_record():
    """Promising is a candidate whose answer the record changes; among the unnoticed ones, by moving few votes."""
    trained = np.array([[True] * 10 + [False] * 10])
    own, other = np.int16(1), np.int16(0)
    decided = np.where(trained[0], own, other)  # 1/2 with it, 0 without
    far = np.full(20, other)
    close = np.array(([own] * 6 + [other] * 4) + ([own] * 5 + [other] * 5))  # .55 with it, .5 without
    votes = np.stack([far, decided, close]).astype(np.int16)
    every, below, little = judge_votes(votes, trained, np.array([1]), 2)
    assert every.shape == (1, 3)
    assert every[0, 1] > every[0, 2] > every[0, 0] == 0
    assert below[0, 1] == little[0, 1] == 0
    assert below[0, 2] == little[0, 2] == every[0, 2]


def test_variants_are_chosen_by_the_judge():
    """The record itself comes first; then candidates of both generations that the judge finds promising."""
    table = tables.digits().drop(columns=tables.TARGET)
    targets = table.iloc[[0, 1]].reset_index(drop=True)

    def judge(rows):
        return [rows.to_numpy().sum(axis=1).reshape(2, -1).astype(float)] * 3

    found = choose_variants(targets, table.iloc[10:200], 30, judge, seed=1).to_numpy().reshape(2, 31, -1)
    assert np.array_equal(found[:, 0], targets.to_numpy())
    sums = found[:, 1:].sum(axis=2)
    assert (np.diff(sums, axis=1) <= 0).all()
    assert (sums > found[:, :1].sum(axis=2) + 20).all()
    assert not np.array_equal(found[0], found[1])


def test_coins(small):
    """A target is in the pool if its coin says so; one whose label may be flipped is always in."""
    _, worlds = small
    family = worlds.family
    for world in worlds.worlds:
        asked = family.targets[: 2 * family.n_targets]
        assert np.array_equal(world.present[asked], world.coins[: 2 * family.n_targets])
        assert world.present[family.targets[2 * family.n_targets :]].all()
        assert world.membership([0, 1]).n_units == world.present.sum()
        assert (world.subsets([1]).sum(axis=0) == MODELS_PER_BLOCK // 2).all()
    coins = np.stack([world.coins for world in worlds.worlds])
    assert 0.3 < coins.mean() < 0.7


def test_trees_remember(small):
    """A tree that was trained on a flipped label, or on a record, gives it back: worlds differ where coins do."""
    _, worlds = small
    family = worlds.family
    told = family.hinted_labels()
    at_records = np.arange(len(family.targets)) * family.n_variants
    for world in worlds.worlds:
        votes, trained = world.votes([0])[at_records], world.subsets([0])[:, family.targets].T
        given = world.coins[:, None] & trained
        assert (votes[given] == np.broadcast_to(told[:, None], votes.shape)[given]).all()
        whole = world.votes_of_whole()[at_records, 0]
        assert (whole == told)[world.coins].all()
        assert not (whole == told)[2 * family.n_targets :][~world.coins[2 * family.n_targets :]].any()


def test_resumes(small):
    """What was trained before is not trained again, and a missing block is trained to the same votes."""
    cache, worlds = small
    world = worlds.worlds[2]
    paths = sorted(cache.rglob("world-*-*.npz"))
    before = {path: (path.stat().st_mtime_ns, path.read_bytes()) for path in paths}
    gone = world.folder / f"{world.name}-01.npz"
    gone.unlink()
    build("small", cache, 6, 2 * MODELS_PER_BLOCK, lambda *_: None)
    assert gone.read_bytes() == before[gone][1]
    assert all(path.stat().st_mtime_ns == before[path][0] for path in paths if path != gone)


def test_the_rule_is_the_package_s(small):
    """The rules that are compared include the package's own, with one round and with two."""
    _, worlds = small
    world = worlds.worlds[0]
    found, subsets = explain(world, [0, 1]), world.membership([0, 1])
    n_classes = worlds.family.n_classes
    for name, rounds in ((LEAVE_ONE_OUT, 1), ("two rounds", 2)):
        rule = LeaveOneOut.of(subsets.packed, subsets.n_units, n_classes, rounds=rounds)
        expected = count(rule.apply(world.votes([0, 1])), n_classes)
        assert np.array_equal(RULES[name](found), expected)
        assert not np.array_equal(RULES[PLAIN](found), expected)
    everything = [found.effect <= 1, found.effect >= 0, found.z >= found.effect]
    assert all(part.all() for part in everything)


def test_decoders_at_small_steps(monkeypatch):
    """Answers have the probabilities that the package's decoders have at the smallest step."""
    monkeypatch.setattr(answers, "_N_DRAWS", 4000)
    rng = np.random.default_rng(1)
    votes = np.stack([rng.choice(4, 33, p=p) for p in rng.dirichlet(np.ones(4), 60)]).astype(np.int16)
    labels = rng.integers(4, size=60)
    for decoder in DECODERS:
        mine = label_probability(count(votes, 4), labels, decoder)
        package = own_label_rates(votes, labels, decoder, 2.0**-32)
        assert np.abs(mine - package).mean() < 0.01


def seen_by(shift, n_worlds=16, n_targets=60, n_variants=30, seed=0):
    """Margins of votes that the coin shifts in a third of the variants."""
    rng = np.random.default_rng(seed)
    coins = rng.random((n_worlds, n_targets)) < 0.5
    margin = rng.normal(size=(n_targets, n_variants)) + 0.3 * rng.normal(
        size=(n_worlds, n_targets, n_variants)
    )
    margin[:, :, ::3] += shift * coins[:, :, None]
    return Seen(np.where(margin > 0, 1.0, 0.0), margin, None, coins, np.arange(n_worlds))


def test_attackers_find_what_is_there():
    """Where coins move answers nearly all are told; where they do not, as many as false positives."""
    rng = np.random.default_rng(2)
    assert attack([seen_by(2.0), seen_by(2.0, seed=1)], rng, n_asked=20).tpr > 0.95
    nothing = [attack([seen_by(0.0, seed=i)], rng, n_asked=20).tpr for i in range(3, 9)]
    assert np.mean(nothing) < 0.03
    charged = seen_by(0.0)._replace(charged=np.zeros((16, 60, 30), np.bool_))
    told_by_charge = charged._replace(charged=charged.charged | charged.coins[:, :, None])
    assert attack([charged], rng).tpr < 0.05
    assert attack([told_by_charge], rng).tpr > 0.95


def test_true_positives():
    """True positives count above the score that one in a hundred of the others exceeds."""
    scores = np.concatenate([np.arange(1000.0), [988.5, 989.5, 995.0, 0.0]])[None]
    coins = np.arange(1004)[None] >= 1000
    assert true_positives(scores, coins) == 0.5


def test_measure(small):
    """Plain votes of trees tell the flipped labels; leave-one-out votes of the same worlds tell fewer."""
    _, worlds = small
    found = [list(ensembles(worlds, 128))]
    plain, changed = (
        measure([worlds.family], [apply_rule(rule, found[0])], rule, "map") for rule in (PLAIN, LEAVE_ONE_OUT)
    )
    assert (plain.n_models, plain.n_ensembles) == (128, 6)
    assert [told.kind for told in plain.told] == ["remembered", "ordinary", "flipped"]
    assert plain.told[2].with_it > changed.told[2].with_it + 0.5
    assert plain.told[2].without == 0
    assert 0.4 < changed.accuracy <= 1
