"""The data owner's records: what the subsets are drawn from."""

import hashlib
from collections.abc import Collection, Iterator
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np

from pacpredict import defaults
from pacpredict.exceptions import InvalidTable
from pacpredict.rows.infer import KINDS, learn_rows
from pacpredict.rows.kind import AnyRows, AnySchema, RowKind
from pacpredict.rows.sizes import ImageSize
from pacpredict.show import show
from pacpredict.tables.beside import persons_beside
from pacpredict.tables.classes import Classes
from pacpredict.tables.column import Column, Values
from pacpredict.tables.forms import is_pandas
from pacpredict.tables.identifiers import identifier_hint
from pacpredict.tables.options import TableOptions
from pacpredict.tables.persons import Coded, facts_of_persons, person_hint
from pacpredict.tables.resemblance import resemblance_hint
from pacpredict.tables.schema import Rows, Schema, Types
from pacpredict.tables.survey import continuous_target
from pacpredict.tables.values import is_missing
from pacpredict.training.units import Units, number_by_first
from pacpredict.training.weights import check_weights, where
from pacpredict.types import BoolArray, FloatArray, IntArray

# A half-subset of fewer units is no training set, and five folds of it would be empty.
FEWEST_UNITS = 10


@dataclass(frozen=True, eq=False)
class Pool:
    schema: AnySchema
    classes: Classes
    rows: AnyRows
    labels: IntArray  # indices into the classes
    contents: IntArray  # of each record a number that equal records share, whatever their labels
    units: Units
    weights: FloatArray | None = None  # what each record counts in training, above 0; None: all alike

    def __repr__(self) -> str:
        n_columns = sum(self.schema.summary().values())
        return f"Pool({len(self)} records, {n_columns} columns, {len(self.classes)} classes)"

    def __len__(self) -> int:
        return len(self.labels)

    @classmethod
    def of(
        cls,
        records: Any,
        labels: Any,
        *,
        types: Types | None = None,
        min_category: int = defaults.MIN_CATEGORY,
        weights: Any = None,
        persons: Any = None,
        person_per_row: bool = False,
        kinds: Collection[RowKind] = KINDS,
        column: str | None = None,
        image_size: ImageSize | None = None,
    ) -> "Pool":
        """Check records, their labels and their weights, before anything is trained.

        Records are a table, images or texts; `kinds` says which of these a learner takes, and `column` in which column
        of a table the images or texts are. With `image_size`, such as 64 or (64, 48) for height and width, images of
        any size are scaled to it, and queries will be.

        `persons` names, for each record, whose it is; then each person is a unit. With `person_per_row` each row is
        of another person. Otherwise each content is a unit: all records that are equal but for the label. The label
        does not count, because an attacker who knows the rest asks about that, and of two records that differ in
        the label alone one would be in 3/4 of the subsets.

        A category that fewer than `min_category` units have is not listed unless `types` declares it: models see all
        such categories as one. Records that differ in them are different units.
        """
        if person_per_row:
            persons = _one_each(persons, len(labels))
        named = None if persons is None else Units.persons(persons, len(labels))
        schema, rows = learn_rows(
            records,
            kinds,
            column,
            types,
            image_size,
            min_category=min_category,
            persons=None if named is None else named.of_record,
        )
        if len(rows) != len(labels):
            raise InvalidTable(
                f"there are {len(rows)} records and {len(labels)} labels: give one label per record"
            )
        classes = Classes.infer(labels)
        if len(rows) < FEWEST_UNITS:
            raise InvalidTable(
                f"too few records to draw subsets from (n_samples = {len(rows)}): at least {FEWEST_UNITS} are needed"
            )
        checked = None if weights is None else check_weights(weights, len(rows))
        contents = number_by_first(schema.digests(rows))
        units = Units(contents, "record") if named is None else named
        _check_count(units)
        return cls(schema, classes, rows, classes.codes(labels), contents, units, checked)

    @classmethod
    def of_frame(cls, frame: Any, options: TableOptions | str) -> "Pool":
        """Take the columns of a frame as they are said to be; a text is the name of the column to predict."""
        options = TableOptions(options) if isinstance(options, str) else options
        options.check_of_table(list(map(str, frame.columns)))
        weights = None
        if options.weights is not None:
            every = check_weights(frame[options.weights], len(frame), zero=True)
            frame, weights = frame[every > 0], every[every > 0]
        labels = frame[options.target]
        if (problem := continuous_target(options.target, labels)) is not None:
            raise InvalidTable(problem)
        return cls.of(
            frame[options.features(list(frame.columns))],
            labels,
            types=options.types,
            min_category=options.min_category,
            weights=weights,
            persons=None if options.person is None else frame[options.person],
            person_per_row=options.person_per_row,
        )

    def part(self, chosen: BoolArray) -> "Pool":
        """Return a pool of some of the records, with the columns and classes of the whole."""
        return Pool(
            self.schema,
            self.classes,
            self.rows.take(chosen),
            self.labels[chosen],
            self.contents[chosen],
            self.units.part(chosen),
            None if self.weights is None else self.weights[chosen],
        )

    def hints(self, records: Any = None) -> list[str]:
        """Say what makes one doubt whether the units are the persons that they should be.

        Of images and texts that are a column of a frame, the others are in these `records` alone.
        """
        if not isinstance(self.schema, Schema) or not isinstance(self.rows, Rows):
            return persons_beside(_others(records, self.schema)) if self.units.kind == "record" else []
        facts = facts_of_persons(list(_coded(self.schema, self.rows))) if self.units.kind == "record" else {}
        hints = [
            _person_hint(column.name, _values(column, self.rows, j), facts.get(column.name, []))
            for j, column in enumerate(self.schema.columns)
            if column.kind in {"number", "category", "text"} and not (column.is_declared or column.is_dtype)
        ]
        if self.units.kind == "record":
            hints.append(resemblance_hint(self.schema, self.rows))
        return [hint for hint in hints if hint is not None]

    @classmethod
    def of_records(cls, records: Any, options: TableOptions, kinds: Collection[RowKind]) -> "Pool":
        """Take a table as it is said to be or, for learners of images or texts, one column of what was read."""
        if "table" in kinds:
            return cls.of_frame(check_table(records), options)
        names = list(map(str, records))
        options.check(names)
        column, weights = options.whole_column(names), None
        if options.weights is not None:
            every = check_weights(records[options.weights], len(records[options.target]), zero=True)
            records, weights = {name: where(every > 0, records[name]) for name in names}, every[every > 0]
        return cls.of(
            records[column],
            records[options.target],
            weights=weights,
            persons=None if options.person is None else records[options.person],
            person_per_row=options.person_per_row,
            kinds=kinds,
            column=column,
            image_size=options.image_size,
        )

    def digest(self) -> str:
        """Return a hash of all records in order: the same data, whatever file they came from, give the same."""
        return self._digest

    @cached_property
    def _digest(self) -> str:
        whole = hashlib.sha256()
        for digest in self.schema.digests(self.rows):
            whole.update(digest)
        whole.update(np.asarray(self.labels, "<i8").tobytes())
        if self.weights is not None:
            whole.update(np.asarray(self.weights, "<f8").tobytes())
        return whole.hexdigest()


def _others(records: Any, schema: AnySchema) -> dict[str, Any]:
    """Return the columns of a frame beside that of images or texts; other forms have none."""
    column = schema.to_json()["column"]
    if not is_pandas(records, "DataFrame") or column not in records:
        return {}
    return {str(name): records[name] for name in records if name != column}


def check_table(records: Any) -> Any:
    """Return a frame as it is; what came from a folder of images or from arrays is none."""
    if not hasattr(records, "columns"):
        raise InvalidTable(
            "these are no table, and the learner takes tables; images and texts need --features, such as lite2 or "
            "tfidf, or a network: --learner wide-resnet or bert-small"
        )
    return records


def _values(column: Column, rows: Rows, j: int) -> Values:
    if column.kind == "text":
        return rows.texts[j]
    numbers = rows.numbers[:, j]
    return column.decode(numbers) if column.kind == "category" else numbers


def _coded(schema: Schema, rows: Rows) -> Iterator[Coded]:
    for j, column in enumerate(schema.columns):
        known = ~np.isnan(rows.numbers[:, j])
        values = np.array(rows.texts[j], object) if j in rows.texts else rows.numbers[:, j]
        codes = np.full(len(rows), -1)
        distinct, codes[known] = np.unique(values[known], return_inverse=True)
        is_whole = column.kind == "number" and bool((distinct == np.floor(distinct)).all())
        yield Coded(column.name, codes, is_whole or column.kind in {"category", "text"})


def _person_hint(name: str, values: Values, facts: list[str]) -> str | None:
    hint = identifier_hint(name, values)
    if hint is not None or not facts:
        return hint
    present = [value for value in values if not is_missing(value)]
    return f"column {show(name)} {person_hint(name, len(set(present)), len(present), facts)}"


def _one_each(persons: Any, n_records: int) -> IntArray:
    if persons is not None:
        raise InvalidTable("either persons are named, or each row is of another one: not both")
    return np.arange(n_records)


def _check_count(units: Units) -> None:
    if units.count >= FEWEST_UNITS:
        return
    advice = "give records of more persons"
    if units.kind == "record":
        advice = (
            "identical ones are protected together, as one; if each row is of another person, say so: "
            "--person-per-row, or person_per_row=True in Python"
        )
    raise InvalidTable(
        f"too few different {units.kind}s to draw subsets from ({units.count} in {len(units.of_record):,} rows; "
        f"at least {FEWEST_UNITS} are needed): {advice}"
    )
