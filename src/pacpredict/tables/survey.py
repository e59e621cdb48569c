"""A look at a table before anything is trained: what each column is, what is done with it, what to think about.

What is noticed here are guesses, from names and values. They are said, and decide nothing.
"""

import shlex
from collections.abc import Collection, Mapping, Sequence
from dataclasses import asdict, dataclass
from typing import Any

import numpy as np

from pacpredict.exceptions import InvalidTable
from pacpredict.show import percent, show, show_rows, show_some
from pacpredict.tables.categories import LONGEST_CATEGORY, Settled, settle_columns
from pacpredict.tables.cells import Reading
from pacpredict.tables.classes import Classes
from pacpredict.tables.column import Column
from pacpredict.tables.contents import number_contents
from pacpredict.tables.declared import MOST_CATEGORIES, parse_types
from pacpredict.tables.distinct import Distinct, take_apart
from pacpredict.tables.doubts import doubt_about_spelling, doubts_about, doubts_about_codes
from pacpredict.tables.forms import as_values, dtype_categories
from pacpredict.tables.infer import Draft, draft_column
from pacpredict.tables.options import TableOptions
from pacpredict.tables.outcomes import outcome_doubt
from pacpredict.tables.persons import Coded, facts_of_persons
from pacpredict.tables.resemblance import resemblance_hint
from pacpredict.tables.schema import Schema
from pacpredict.tables.values import as_limit, as_number
from pacpredict.tables.words import N_WORD_FEATURES
from pacpredict.types import IntArray

# A number that takes more values than this is hardly the name of a class.
_MOST_CLASSES_OF_NUMBERS = 20
# Of a class with fewer units many subsets have next to none.
_FEW_OF_A_CLASS = 10
_MISSING_A_LOT = 0.5
# Different texts, as a share of the records, up to which they look like categories.
_FEW_PER_VALUE = 0.5
# Columns that are named where categories become "other"; the rest are counted.
_MOST_NAMED = 3


@dataclass(frozen=True)
class ColumnReport:
    """What is known about one column."""

    name: str
    type: str  # the kind of a feature, or "target", "weights", "person" or "dropped"
    missing: int
    distinct: int
    action: str
    warnings: tuple[str, ...] = ()
    pooled: tuple[str, ...] = ()  # categories that become "other"
    problem: str | None = None  # why a fit would refuse it


@dataclass(frozen=True)
class Survey:
    records: int
    columns: tuple[ColumnReport, ...]
    hints: tuple[str, ...] = ()  # about records, not columns

    @property
    def warnings(self) -> list[str]:
        of_columns = [
            f"column {show(one.name)} {warning}" for one in self.columns for warning in one.warnings
        ]
        return [*of_columns, *self.hints]

    @property
    def problems(self) -> list[str]:
        return [one.problem for one in self.columns if one.problem is not None]

    def to_json(self) -> dict[str, Any]:
        return asdict(self)


def survey(frame: Any, options: TableOptions, readings: Mapping[str, Reading] | None = None) -> Survey:
    """Look at every column of a frame; nothing is refused but columns that are not there.

    `readings` are the columns of a CSV file that are numbers or booleans but for a few cells.
    """
    names = list(map(str, frame.columns))
    options.check_of_table(names)
    columns = [take_apart(name, frame.iloc[:, j]) for j, name in enumerate(names)]
    labels = columns[names.index(options.target)]
    features = options.features(names)
    drafts, problems = _drafts(frame, features, options)
    persons = _persons(frame, options)
    found = settle_columns(list(drafts.values()), persons, options.min_category) if drafts else []
    settled = dict(zip(drafts, found, strict=True))
    facts = _facts([column for column in columns if column.name in features], options)
    if persons is None and drafts:
        persons = number_contents(draft.cells for draft in drafts.values())
    reports = []
    for column in columns:
        if column.name in problems:
            reports.append(_refused(column, problems[column.name]))
        elif column.name in settled:
            about = settled[column.name], (readings or {}).get(column.name)
            reports.append(_feature(column, *about, labels, facts.get(column.name, []), options))
        else:
            reports.append(_other(column, options, persons))
    hints = () if any(one.problem for one in reports) else _hints(frame, options)
    return Survey(len(frame), tuple(reports), (*_pooled(reports, options), *hints))


def _drafts(
    frame: Any, features: Collection[str], options: TableOptions
) -> tuple[dict[str, Draft], dict[str, str]]:
    """Return what each feature is, and why some cannot be used."""
    declared, of_dtype = parse_types(options.types), dtype_categories(frame)
    drafts, problems = {}, {}
    for j, name in enumerate(map(str, frame.columns)):
        if name not in features:
            continue
        try:
            values = as_values(name, frame.iloc[:, j], InvalidTable)
            drafts[name] = draft_column(name, values, of_dtype.get(j), declared.get(name))
        except InvalidTable as refusal:
            problems[name] = str(refusal)
    return drafts, problems


def _persons(frame: Any, options: TableOptions) -> IntArray | None:
    """Return the number of each record's person, None if they are not named."""
    if options.person_per_row:
        return np.arange(len(frame))
    if options.person is None:
        return None
    return np.asarray(frame[options.person].factorize(use_na_sentinel=False)[0], np.int64)


def _facts(features: list[Distinct], options: TableOptions) -> dict[str, list[str]]:
    """Return the columns that may tell persons apart, with what never varies within one of their values."""
    if options.person is not None or options.person_per_row:
        return {}
    return facts_of_persons([Coded(one.name, *one.in_order()) for one in features])


def _hints(frame: Any, options: TableOptions) -> tuple[str, ...]:
    """Say whether records are nearly the same, unless it is known whose they are."""
    if options.person is not None or options.person_per_row:
        return ()
    table = frame[options.features(list(frame.columns))]
    schema = Schema.infer(table, options.types, min_category=options.min_category)
    hint = resemblance_hint(schema, schema.rows(table))
    return () if hint is None else (hint,)


def _pooled(reports: Sequence[ColumnReport], options: TableOptions) -> tuple[str, ...]:
    """Say which categories become "other"."""
    found = sorted((one for one in reports if one.pooled), key=lambda one: -len(one.pooled))
    if not found:
        return ()
    named = ", ".join(
        f"{len(one.pooled):,} in {show(one.name)} ({show_some(list(one.pooled), 2)})"
        for one in found[:_MOST_NAMED]
    )
    more = f" and more in {len(found) - _MOST_NAMED} columns" if len(found) > _MOST_NAMED else ""
    hint = (
        f"categories that fewer than {options.min_category} {_units_of(options)} have are pooled into 'other': "
        f"{named}{more}; {_remedy(options)}"
    )
    return (hint,)


def _remedy(options: TableOptions) -> str:
    """Say how categories can be listed all the same."""
    declare = "declare a list that is public (--types COLUMN=category:A,B)"
    is_told_whose = options.person is not None or options.person_per_row
    return (
        declare if is_told_whose else f"say --person-per-row if each row is of another person, or {declare}"
    )


def _units_of(options: TableOptions) -> str:
    return "records" if options.person is None and not options.person_per_row else "persons"


def continuous_target(name: str, labels: Any) -> str | None:
    """Say why a series of numbers cannot be classes: many different ones, with fractions."""
    distinct = [value for value in labels.dropna().unique() if isinstance(value, float | np.floating)]
    if len(distinct) <= _MOST_CLASSES_OF_NUMBERS or all(float(value).is_integer() for value in distinct):
        return None
    return (
        f"column {show(name)} looks continuous ({len(distinct):,} different numbers), and what is predicted are "
        "classes: make some of it, such as above or below a limit"
    )


def _other(column: Distinct, options: TableOptions, units: IntArray | None) -> ColumnReport:
    if column.name == options.target:
        return _target(column, options, units)
    if column.name == options.weights:
        return ColumnReport(column.name, "weights", *column.counts, "what each record counts")
    if column.name == options.person:
        return ColumnReport(
            column.name, "person", *column.counts, "whose a record is", problem=_nobody(column)
        )
    return ColumnReport(column.name, "dropped", *column.counts, "left out")


def _nobody(column: Distinct) -> str | None:
    missing, _ = column.counts
    if not missing:
        return None
    return f"column {show(column.name)} names nobody in {missing:,} records: {show_rows(column.codes < 0)}"


def _target(column: Distinct, options: TableOptions, units: IntArray | None) -> ColumnReport:
    name, (missing, distinct) = column.name, column.counts
    try:
        classes = Classes.infer(column.values)
    except InvalidTable as refusal:
        return ColumnReport(name, "target", missing, distinct, "cannot be predicted", problem=str(refusal))
    if (problem := continuous_target(name, column.values)) is not None:
        return ColumnReport(name, "target", missing, distinct, "cannot be predicted", problem=problem)
    warnings = []
    if distinct > _MOST_CLASSES_OF_NUMBERS and all(as_number(value) is not None for value in classes.values):
        warnings.append(f"has {distinct} different numbers: is it a quantity? Make fewer classes of it")
    if (spelling := doubt_about_spelling(column.distinct, "classes")) is not None:
        warnings.append(spelling)
    if (few := _few_of_a_class(column, options, units)) is not None:
        warnings.append(few)
    return ColumnReport(name, "target", missing, distinct, f"predicted: {distinct} classes", tuple(warnings))


def _few_of_a_class(column: Distinct, options: TableOptions, units: IntArray | None) -> str | None:
    fewest = max(_FEW_OF_A_CLASS, options.min_category)
    own = np.arange(len(column.codes)) if units is None else units
    pairs = np.unique(np.stack([column.codes, own]), axis=1)
    counts = np.bincount(pairs[0], minlength=len(column.distinct))
    rare = [str(value) for value, n in zip(column.distinct, counts, strict=True) if n < fewest]
    if not rare:
        return None
    return (
        f"has classes of fewer than {fewest} {_units_of(options)} ({show_some(rare)}): clients are told the classes, "
        "and such a class tells that one of these few is in the pool"
    )


def _could_be_categories(given: Distinct) -> bool:
    is_short = max(map(len, map(str, given.distinct))) <= LONGEST_CATEGORY
    return is_short and len(given.distinct) <= min(MOST_CATEGORIES, _FEW_PER_VALUE * len(given.codes))


def _refused(column: Distinct, problem: str) -> ColumnReport:
    return ColumnReport(column.name, "?", *column.counts, "refused", problem=problem)


def _feature(
    given: Distinct,
    settled: Settled,
    reading: Reading | None,
    labels: Distinct,
    facts: list[str],
    options: TableOptions,
) -> ColumnReport:
    name, (missing, distinct), column = given.name, given.counts, settled.column
    try:
        settled.check()
    except InvalidTable as refusal:
        return _refused(given, str(refusal))
    if name in options.types:
        warnings = doubts_about_codes(column, given)
    else:
        warnings = [] if column.is_dtype else doubts_about(column, given, facts)
    if column.kind == "text" and name not in options.types and not warnings and _could_be_categories(given):
        few = f"{options.min_category} {_units_of(options)}"
        warnings.append(
            f"is taken as free text, since fewer than {few} have most of its values: {_remedy(options)}"
        )
    if reading is not None and (mistakes := reading.warning) is not None:
        warnings.append(mistakes)
    if (
        column.kind == "category"
        and (spelling := doubt_about_spelling(given.distinct, "categories")) is not None
    ):
        warnings.append(spelling)
    if distinct == 1:
        warnings.append(f"has one value only: --drop {shlex.quote(name)}")
    if missing > _MISSING_A_LOT * len(given.codes):
        warnings.append(f"is missing in {percent(missing / len(given.codes))} of the records")
    if (suspicion := outcome_doubt(column, given, labels)) is not None:
        warnings.append(
            f"{suspicion}: is it known when the question is asked? If not, --drop {shlex.quote(name)}"
        )
    pooled = tuple(map(str, settled.rare))
    action = _action(column, given, reading) + (f", {len(pooled)} pooled" if pooled else "")
    return ColumnReport(name, column.kind, missing, distinct, action, tuple(warnings), pooled)


def _action(column: Column, given: Distinct, reading: Reading | None) -> str:
    if column.kind == "number":
        texts = given.distinct if reading is None else reading.limits
        pairs = ((text, as_limit(text)) for text in texts if isinstance(text, str))
        example = next(
            (f"{text.strip()} counts as {limit.strip()}" for text, limit in pairs if limit is not None), None
        )
        return example or column.form or "as it is"
    return {
        "boolean": "yes or no",
        "category": f"{len(column.categories)} categories",
        "text": f"{N_WORD_FEATURES} hashed words",
        "date": "days since 1970",
    }[column.kind]
