"""A look at a table before anything is trained: what each column is, what is done with it, what to think about.

What is noticed here are guesses, from names and values. They are said, and decide nothing.
"""

import shlex
from dataclasses import asdict, dataclass
from typing import Any

import numpy as np

from pacpredict.exceptions import InvalidTable
from pacpredict.show import percent, show, show_rows, show_some
from pacpredict.tables.classes import Classes
from pacpredict.tables.column import Column
from pacpredict.tables.declared import Declared, parse_types
from pacpredict.tables.distinct import Distinct, take_apart
from pacpredict.tables.doubts import doubt_about_spelling, doubts_about, doubts_about_codes
from pacpredict.tables.forms import as_values, declared_categories
from pacpredict.tables.infer import infer_column
from pacpredict.tables.options import TableOptions
from pacpredict.tables.outcomes import outcome_doubt
from pacpredict.tables.persons import Coded, facts_of_persons
from pacpredict.tables.resemblance import resemblance_hint
from pacpredict.tables.schema import Rows, Schema
from pacpredict.tables.unseen import share_refused_alone
from pacpredict.tables.values import as_limit, as_number
from pacpredict.tables.words import N_WORD_FEATURES

# A number that takes more values than this is hardly the name of a class.
_MOST_CLASSES_OF_NUMBERS = 20
# Of a class with fewer records many subsets have next to none.
_FEW_OF_A_CLASS = 10
_MISSING_A_LOT = 0.5
# From here on refusals are worth a word.
_MANY_REFUSED = 0.005


@dataclass(frozen=True)
class ColumnReport:
    """What is known about one column."""

    name: str
    type: str  # the kind of a feature, or "target", "weights", "person" or "dropped"
    missing: int
    distinct: int
    action: str
    warnings: tuple[str, ...] = ()
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


def survey(frame: Any, options: TableOptions) -> Survey:
    """Look at every column of a frame; nothing is refused but columns that are not there."""
    names = list(map(str, frame.columns))
    options.check_of_table(names)
    columns = [take_apart(name, frame.iloc[:, j]) for j, name in enumerate(names)]
    labels = columns[names.index(options.target)]
    declared, of_dtype = parse_types(options.types), declared_categories(frame)
    features = set(options.features(names))
    persons = _facts([column for column in columns if column.name in features], options)
    reports = [
        _feature(column, of_dtype.get(j), declared.get(column.name), labels, persons.get(column.name, []))
        if column.name in features
        else _other(column, options)
        for j, column in enumerate(columns)
    ]
    hints = () if any(one.problem for one in reports) else _hints(frame, options)
    return Survey(len(frame), tuple(reports), hints)


def _facts(features: list[Distinct], options: TableOptions) -> dict[str, list[str]]:
    """Return the columns that may tell persons apart, with what never varies within one of their values."""
    if options.person is not None or options.person_per_row:
        return {}
    return facts_of_persons([Coded(one.name, *one.in_order()) for one in features])


def _hints(frame: Any, options: TableOptions) -> tuple[str, ...]:
    """Say whether records are nearly the same, unless it is known whose they are, and whether many would be refused."""
    is_told_whose = options.person is not None or options.person_per_row
    if is_told_whose and options.unknown != "refuse":
        return ()
    table = frame[options.features(list(frame.columns))]
    schema = Schema.infer(table, options.unknown, options.types)
    rows = schema.rows(table)
    hints = [_refusals(schema, rows, frame, options)]
    if not is_told_whose:
        hints.append(resemblance_hint(schema, rows))
    return tuple(hint for hint in hints if hint is not None)


def _refusals(schema: Schema, rows: Rows, frame: Any, options: TableOptions) -> str | None:
    if options.unknown != "refuse":
        return None
    persons = np.arange(len(frame)) if options.person is None else frame[options.person].factorize()[0]
    share, column = share_refused_alone(schema, rows, persons)
    if share < _MANY_REFUSED:
        return None
    return (
        f"about {percent(share)} of new rows would be refused, since they have what training never saw, most often in "
        f"{show(column)}: --unknown missing takes it as missing"
    )


def continuous_target(name: str, labels: Any) -> str | None:
    """Say why a series of numbers cannot be classes: many different ones, with fractions."""
    distinct = [value for value in labels.dropna().unique() if isinstance(value, float | np.floating)]
    if len(distinct) <= _MOST_CLASSES_OF_NUMBERS or all(float(value).is_integer() for value in distinct):
        return None
    return (
        f"column {show(name)} looks continuous ({len(distinct):,} different numbers), and what is predicted are "
        "classes: make some of it, such as above or below a limit"
    )


def _other(column: Distinct, options: TableOptions) -> ColumnReport:
    if column.name == options.target:
        return _target(column)
    if column.name == options.weights:
        return ColumnReport(column.name, "weights", *column.counts, "what each record counts")
    if column.name == options.person:
        return ColumnReport(column.name, "person", *column.counts, "whose a record is", (), _nobody(column))
    return ColumnReport(column.name, "dropped", *column.counts, "left out")


def _nobody(column: Distinct) -> str | None:
    missing, _ = column.counts
    if not missing:
        return None
    return f"column {show(column.name)} names nobody in {missing:,} records: {show_rows(column.codes < 0)}"


def _target(column: Distinct) -> ColumnReport:
    name, (missing, distinct) = column.name, column.counts
    try:
        classes = Classes.infer(column.values)
    except InvalidTable as refusal:
        return ColumnReport(name, "target", missing, distinct, "cannot be predicted", (), str(refusal))
    if (problem := continuous_target(name, column.values)) is not None:
        return ColumnReport(name, "target", missing, distinct, "cannot be predicted", (), problem)
    warnings = []
    if distinct > _MOST_CLASSES_OF_NUMBERS and all(as_number(value) is not None for value in classes.values):
        warnings.append(f"has {distinct} different numbers: is it a quantity? Make fewer classes of it")
    if (spelling := doubt_about_spelling(column.distinct, "classes")) is not None:
        warnings.append(spelling)
    counts = np.bincount(column.codes)
    if rare := [str(value) for value, n in zip(column.distinct, counts, strict=True) if n < _FEW_OF_A_CLASS]:
        warnings.append(f"has classes of fewer than {_FEW_OF_A_CLASS} records ({show_some(rare)})")
    return ColumnReport(name, "target", missing, distinct, f"predicted: {distinct} classes", tuple(warnings))


def _feature(
    given: Distinct, of_dtype: list[Any] | None, declared: Declared | None, labels: Distinct, facts: list[str]
) -> ColumnReport:
    name, (missing, distinct) = given.name, given.counts
    try:
        # What a column is depends on its different values, and these are fewer.
        column = infer_column(name, [*given.distinct, *([None] if missing else [])], of_dtype, declared)
    except InvalidTable:
        return ColumnReport(name, "?", missing, distinct, "refused", (), _why(given, of_dtype, declared))
    if declared is not None:
        warnings = doubts_about_codes(column, given)
    else:
        warnings = [] if of_dtype is not None else doubts_about(column, given, facts)
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
    return ColumnReport(name, column.kind, missing, distinct, _action(column, given), tuple(warnings))


def _why(given: Distinct, of_dtype: list[Any] | None, declared: Declared | None) -> str:
    """Return why a column is refused, with the number of the row where there is one."""
    try:
        infer_column(given.name, as_values(given.name, given.values, InvalidTable), of_dtype, declared)
    except InvalidTable as refusal:
        return str(refusal)
    return f"column {show(given.name)} cannot be used"


def _action(column: Column, given: Distinct) -> str:
    if column.has_limits:
        texts = (value for value in given.distinct if isinstance(value, str))
        example, limit = next((text, limit) for text in texts if (limit := as_limit(text)) is not None)
        return f"{example.strip()} counts as {limit.strip()}"
    if column.kind == "number":
        return column.form or "as it is"
    return {
        "boolean": "yes or no",
        "category": f"{len(column.categories)} categories",
        "text": f"{N_WORD_FEATURES} hashed words",
        "date": "days since 1970",
    }[column.kind]
