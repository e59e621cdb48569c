"""Which kind of rows data are: by their form, where the learner leaves a choice."""

import numpy as np
import pandas as pd
import pytest

from pacpredict.exceptions import InvalidInput, InvalidTable
from pacpredict.rows.infer import learn_rows
from pacpredict.rows.texts import LONGEST_TEXT
from pacpredict.tables.options import TableOptions
from pacpredict.training.pool import Pool

IMAGES = np.arange(12, dtype=np.uint8)[:, None, None, None] * np.ones((1, 2, 2, 3), np.uint8)
TEXTS = [f"text {i}" for i in range(12)]
LABELS = [0, 1] * 6


@pytest.mark.parametrize(
    ("given", "kind"),
    [
        (IMAGES, "image"),
        (IMAGES[..., 0], "image"),
        (list(IMAGES), "image"),
        (TEXTS, "text"),
        (np.array(TEXTS), "text"),
        (np.array(TEXTS, dtype=object), "text"),
        (pd.Series(TEXTS), "text"),
        (pd.DataFrame({"note": TEXTS}), "table"),
        (np.arange(36.0).reshape(12, 3), "table"),
        ([[float(i), 2.0] for i in range(12)], "table"),
    ],
)
def test_form_decides(given, kind):
    """Bare texts and images are whole values; frames and matrices are tables, as ever."""
    schema, rows = learn_rows(given)
    assert schema.kind == kind
    assert len(rows) == 12
    assert Pool.of(given, LABELS).digest() == Pool.of(given, LABELS).digest()


def test_a_learner_of_whole_values_takes_the_column_of_a_frame():
    """What a table would be otherwise is images or texts for a learner that takes these only."""
    frame = pd.DataFrame({"id": range(12), "note": TEXTS})
    schema, rows = learn_rows(frame, ("text",), column="note")
    assert (schema.kind, schema.column, rows.texts[3]) == ("text", "note", "text 3")
    assert learn_rows(frame, ("image", "text"), column="note")[0].kind == "text"
    with pytest.raises(InvalidTable, match="look like a table"):
        learn_rows(frame, ("image", "text"), column="id")
    with pytest.raises(InvalidTable, match="the columns are 'id', 'note'"):
        learn_rows(frame, ("text",), column="absent")


def test_pools_of_other_records_have_other_digests():
    """One pixel or one letter makes another pool."""
    other = IMAGES.copy()
    other[3, 1, 1, 2] += 100
    assert Pool.of(IMAGES, LABELS).digest() != Pool.of(other, LABELS).digest()
    assert Pool.of(TEXTS, LABELS).digest() != Pool.of([*TEXTS[:-1], "text"], LABELS).digest()


@pytest.mark.parametrize(
    "given", [IMAGES, [f"{i} and {i}" for i in range(12)], pd.DataFrame({"n": range(12), "note": TEXTS})]
)
def test_mixtures_are_new_rows_of_the_same_kind(given):
    """What models are compared on beside the records is made of their parts, and is what a query could be."""
    schema, rows = learn_rows(given)
    mixed = rows.mixed(np.random.default_rng(3))
    assert len(mixed) == len(rows)
    assert len(set(schema.digests(mixed)) - set(schema.digests(rows))) > 6
    again = rows.mixed(np.random.default_rng(3))
    assert schema.digests(mixed) == schema.digests(again)


def test_mixed_texts_are_canonical():
    """Neither the limit nor the form of texts is broken by joining two of them, whatever their words are."""
    long = "x" * (LONGEST_TEXT - 2) + " y"
    schema, rows = learn_rows([long, "z " + "w" * (LONGEST_TEXT - 2), "one", "a b"], ("text",))
    for seed in range(20):
        mixed = rows.mixed(np.random.default_rng(seed))
        assert schema.rows(list(mixed.texts)).texts == mixed.texts


def test_mixed_images_have_a_half_of_each():
    """The left half is of one image and the right half of another."""
    mixed = learn_rows(IMAGES)[1].mixed(np.random.default_rng(0)).pixels
    assert np.array_equal(mixed[:, :, 0], IMAGES[:, :, 0])
    assert sorted(mixed[:, 0, 1, 0]) == sorted(IMAGES[:, 0, 1, 0])


def options(**said):
    return TableOptions(target="label", **said)


@pytest.mark.parametrize("records", [{"image": IMAGES}, {"text": TEXTS}, pd.DataFrame({"text": TEXTS})])
def test_whole_values_have_persons_and_weights(records):
    """As of tables: all records of a person are one unit, identical ones otherwise, and weight 0 leaves one out."""
    kinds = ("image", "text")
    named = {**records, "label": LABELS, "who": [i // 2 for i in range(12)], "counts": [0, *[2.0] * 11]}
    with pytest.raises(InvalidTable, match="too few different persons"):
        Pool.of_records(named, options(person="who", drop=("counts",)), kinds)
    pool = Pool.of_records(named, options(weights="counts", drop=("who",)), kinds)
    assert (len(pool), pool.units.kind, pool.units.count) == (11, "record", 11)
    twice = {name: [*column, *column] for name, column in named.items()}
    assert Pool.of_records(twice, options(drop=("who", "counts")), kinds).units.count == 12
    every = Pool.of_records(twice, options(drop=("who", "counts"), person_per_row=True), kinds)
    assert (every.units.kind, every.units.count) == ("person", 24)
    twice["who"] = [f"person {i % 11}" for i in range(24)]
    assert Pool.of_records(twice, options(person="who", drop=("counts",)), kinds).units.count == 11


@pytest.mark.parametrize(
    "said", [{"types": {"text": "category"}}, {"person": "who", "person_is_feature": True}]
)
def test_what_is_said_of_columns_is_for_tables(said):
    """Whoever declares what a text is, or wants to learn from persons beside it, is told that it is not done."""
    named = {"text": TEXTS, "who": TEXTS, "label": LABELS}
    with pytest.raises(InvalidInput, match="are for tables"):
        Pool.of_records(named, options(input="text", **said), ("text",))
