"""A look at a table before anything is trained: what each column is, what is done with it, what to think about.

What is noticed here are guesses, from names and values. They are said, and decide nothing.
"""

import re
import shlex
from dataclasses import asdict, dataclass
from itertools import islice
from typing import Any, NamedTuple

import numpy as np

from pacpredict.exceptions import InvalidTable
from pacpredict.show import percent, show, show_some
from pacpredict.tables.association import cells_of_numbers, share_explained
from pacpredict.tables.classes import Classes
from pacpredict.tables.column import Column
from pacpredict.tables.declared import Declared, parse_types
from pacpredict.tables.forms import as_values, declared_categories
from pacpredict.tables.identifiers import identifier_hint
from pacpredict.tables.infer import infer_column
from pacpredict.tables.options import TableOptions
from pacpredict.tables.persons import Coded, facts_of_persons, person_hint
from pacpredict.tables.resemblance import resemblance_hint
from pacpredict.tables.schema import Schema
from pacpredict.tables.separators import guess_forms, number_written
from pacpredict.tables.values import as_limit, as_number
from pacpredict.tables.words import N_WORD_FEATURES
from pacpredict.types import IntArray

# A number that takes more values than this is hardly the name of a class.
_MOST_CLASSES_OF_NUMBERS = 20
# Of a class with fewer records many subsets have next to none.
_FEW_OF_A_CLASS = 10
# A column that explains this share of the target's entropy by itself says the same thing in other words.
_TELLS_TOO_MUCH = 0.9
# Texts of which this share are numbers were meant to be numbers.
_NEARLY_NUMBERS = 0.5
_MISSING_A_LOT = 0.5
# Different texts that are looked at to see whether they are numbers with separators.
_LOOKED_AT = 1000
# Words among numbers, up to which they may mean that the number is missing.
_MOST_WORDS_FOR_MISSING = 5
# Parts of names by which outcomes go; a column of such a name is asked about, not judged.
_OUTCOMES = {
    *(
        "outcome",
        "outcomes",
        "died",
        "death",
        "dead",
        "deceased",
        "mortality",
        "survived",
        "survival",
        "expired",
    ),
    *(
        "readmitted",
        "readmission",
        "relapse",
        "recurrence",
        "los",
        "stay",
        "discharged",
        "disposition",
        "result",
    ),
    *("target", "label", "churned", "defaulted", "response"),
}
_PARTS = re.compile(r"[A-Za-z][a-z]+|[A-Z]+|\d+")


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


class _Series(NamedTuple):
    """A column taken apart: its different values, and which of them each record has."""

    name: str
    values: Any  # a pandas series
    codes: IntArray  # -1 where the value is missing
    distinct: list[Any]

    @property
    def counts(self) -> tuple[int, int]:
        return int((self.codes < 0).sum()), len(self.distinct)


def survey(frame: Any, options: TableOptions) -> Survey:
    """Look at every column of a frame; nothing is refused but columns that are not there."""
    names = list(map(str, frame.columns))
    options.check(names)
    columns = [_take_apart(name, frame.iloc[:, j]) for j, name in enumerate(names)]
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


def _facts(features: list[_Series], options: TableOptions) -> dict[str, list[str]]:
    """Return the columns that may tell persons apart, with what never varies within one of their values."""
    if options.person is not None or options.person_per_row:
        return {}
    return facts_of_persons([Coded(one.name, *_in_order(one)) for one in features])


def _in_order(given: _Series) -> tuple[IntArray, bool]:
    """Return codes in the order of the values, and whether the column may name somebody: no fractions, no booleans."""
    try:
        ranks = np.argsort(np.argsort(np.array(given.distinct)))
    except TypeError:  # texts beside numbers, which are refused
        ranks = np.arange(len(given.distinct))
    codes = np.where(given.codes < 0, -1, ranks[given.codes])
    return codes, all(
        isinstance(one, str | int) or (isinstance(one, float) and one.is_integer()) for one in given.distinct
    )


def _hints(frame: Any, options: TableOptions) -> tuple[str, ...]:
    """Say whether records are nearly the same, unless it is known whose they are."""
    if options.person is not None or options.person_per_row:
        return ()
    table = frame[options.features(list(frame.columns))]
    schema = Schema.infer(table, options.unknown, options.types)
    hint = resemblance_hint(schema, schema.rows(table))
    return () if hint is None else (hint,)


def continuous_target(name: str, labels: Any) -> str | None:
    """Say why a series of numbers cannot be classes: many different ones, with fractions."""
    distinct = [value for value in labels.dropna().unique() if isinstance(value, float | np.floating)]
    if len(distinct) <= _MOST_CLASSES_OF_NUMBERS or all(float(value).is_integer() for value in distinct):
        return None
    return (
        f"column {show(name)} looks continuous ({len(distinct):,} different numbers), and what is predicted are "
        "classes: make some of it, such as above or below a limit"
    )


def _take_apart(name: str, series: Any) -> _Series:
    try:
        codes, distinct = series.factorize()
    except TypeError:  # lists and the like, which are refused
        return _Series(name, series, np.zeros(len(series), np.int64), [None])
    return _Series(name, series, codes.astype(np.int64), distinct.tolist())


def _other(column: _Series, options: TableOptions) -> ColumnReport:
    if column.name == options.target:
        return _target(column)
    if column.name == options.weights:
        return ColumnReport(column.name, "weights", *column.counts, "what each record counts")
    if column.name == options.person:
        return ColumnReport(column.name, "person", *column.counts, "whose a record is", (), _nobody(column))
    return ColumnReport(column.name, "dropped", *column.counts, "left out")


def _nobody(column: _Series) -> str | None:
    missing, _ = column.counts
    return f"column {show(column.name)} names nobody in {missing:,} records" if missing else None


def _target(column: _Series) -> ColumnReport:
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
    counts = np.bincount(column.codes)
    if rare := [str(value) for value, n in zip(column.distinct, counts, strict=True) if n < _FEW_OF_A_CLASS]:
        warnings.append(f"has classes of fewer than {_FEW_OF_A_CLASS} records ({show_some(rare)})")
    return ColumnReport(name, "target", missing, distinct, f"predicted: {distinct} classes", tuple(warnings))


def _feature(
    given: _Series, of_dtype: list[Any] | None, declared: Declared | None, labels: _Series, facts: list[str]
) -> ColumnReport:
    name, (missing, distinct) = given.name, given.counts
    try:
        # What a column is depends on its different values, and these are fewer.
        column = infer_column(name, [*given.distinct, *([None] if missing else [])], of_dtype, declared)
    except InvalidTable:
        return ColumnReport(name, "?", missing, distinct, "refused", (), _why(given, of_dtype, declared))
    warnings = [] if of_dtype is not None or declared is not None else _doubts(column, given, facts)
    if distinct == 1:
        warnings.append(f"has one value only: --drop {shlex.quote(name)}")
    if missing > _MISSING_A_LOT * len(given.codes):
        warnings.append(f"is missing in {percent(missing / len(given.codes))} of the records")
    if (suspicion := _outcome(column, given, labels)) is not None:
        warnings.append(
            f"{suspicion}: is it known when the question is asked? If not, --drop {shlex.quote(name)}"
        )
    return ColumnReport(name, column.kind, missing, distinct, _action(column), tuple(warnings))


def _why(given: _Series, of_dtype: list[Any] | None, declared: Declared | None) -> str:
    """Return why a column is refused, with the number of the row where there is one."""
    try:
        infer_column(given.name, as_values(given.name, given.values, InvalidTable), of_dtype, declared)
    except InvalidTable as refusal:
        return str(refusal)
    return f"column {show(given.name)} cannot be used"


def _action(column: Column) -> str:
    if column.kind == "number":
        return "<0.5 counts as 0.5" if column.has_limits else column.form or "as it is"
    return {
        "boolean": "yes or no",
        "category": f"{len(column.categories)} categories",
        "text": f"{N_WORD_FEATURES} hashed words",
        "date": "days since 1970",
    }[column.kind]


def _doubts(column: Column, given: _Series, facts: list[str]) -> list[str]:
    """Say why a column may not be what its values make of it."""
    doubts = []
    hint = identifier_hint(column.name, as_values(column.name, given.values, InvalidTable))
    if hint is not None:
        doubts.append(hint.removeprefix(f"column {show(column.name)} "))
    elif facts:
        missing, distinct = given.counts
        doubts.append(person_hint(column.name, distinct, len(given.codes) - missing, facts))
    if column.kind in {"category", "text"} and (near := _nearly_numbers(given)) is not None:
        doubts.append(near)
    if column.kind == "number" and _look_like_days(given.distinct):
        doubts.append(
            f"has numbers such as {given.distinct[0]:.0f}, which look like dates: "
            f"{_types(given.name, 'date:%Y%m%d')}"
        )
    return doubts


def _nearly_numbers(given: _Series) -> str | None:
    texts = [value for value in given.distinct if isinstance(value, str)]
    if forms := guess_forms(islice(texts, _LOOKED_AT)):
        return _separated_numbers(given.name, texts, forms)
    others = [value for value in given.distinct if as_number(value) is None]
    if len(given.distinct) - len(others) < _NEARLY_NUMBERS * len(given.distinct):
        return None
    words = [value for value in others if as_number(as_limit(value) or "") is None]
    if not others or len(words) > _MOST_WORDS_FOR_MISSING:
        return None
    return f"has numbers beside {show_some(others, 3)}: {_types(given.name, 'number')}{_as_missing(words)}"


def _separated_numbers(name: str, texts: list[str], forms: list[str]) -> str:
    """Say how a column of numbers with separators can be declared; where it may mean two things, which is which."""
    numbers = {form: {text: number_written(text, form) for text in texts} for form in forms}

    def tells_most(text: str) -> tuple[int, bool]:
        return len({found[text] for found in numbers.values()} - {None}), as_number(text) is None

    example = max(texts, key=tells_most)
    words = [text for text in texts if all(found[text] is None for found in numbers.values())]
    meaning = _as_missing(words[:_MOST_WORDS_FOR_MISSING])
    ways = [f"{_types(name, f'number:{form}')}{meaning}" for form in forms]
    if len(forms) > 1:
        ways = [
            way if (number := numbers[form][example]) is None else f"{way} if that is {number:.15g}"
            for form, way in zip(forms, ways, strict=True)
        ]
    return f"has numbers with separators, such as {show(example)}: {', or '.join(ways)}"


def _types(name: str, kind: str) -> str:
    return f"--types {shlex.quote(f'{name}={kind}')}"


def _as_missing(words: list[str]) -> str:
    return "".join(f" --missing {word!r}" for word in words)


def _look_like_days(distinct: list[Any]) -> bool:
    """Tell whether all numbers are like 20240131, of the last and of this century."""
    numbers = np.array([as_number(value) for value in distinct], dtype=np.float64)
    years, days = numbers // 10_000, numbers % 10_000
    months, days = days // 100, days % 100
    plausible = (years >= 1900) & (years < 2100) & (months >= 1) & (months <= 12) & (days >= 1) & (days <= 31)
    return bool(plausible.all() and (numbers == np.floor(numbers)).all())


def _outcome(column: Column, given: _Series, labels: _Series) -> str | None:
    """Say why a column may be an outcome itself, or follow from the target."""
    parts, of_target = (set(map(str.lower, _PARTS.findall(one.name))) for one in (given, labels))
    if shared := {part for part in parts & of_target if not part.isdigit()}:
        return f"is named like the target ({min(shared)!r})"
    if sounds := parts & _OUTCOMES:
        return f"sounds like an outcome ({min(sounds)!r})"
    if (labels.codes < 0).any() or len(labels.distinct) < 2:
        return None
    cells = given.codes + 1
    if column.kind == "number":
        numbers = column.numbers([None, *given.distinct], "missing")
        cells = cells_of_numbers(np.array(numbers, np.float64)[cells])
    share = share_explained(cells, labels.codes)
    return f"says {percent(share)} of the target by itself" if share >= _TELLS_TOO_MUCH else None
