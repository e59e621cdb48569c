"""Columns that look as if they named somebody. A guess, for hints: nothing is decided by it."""

import math
import re
import shlex
from collections.abc import Sequence
from typing import Any

import numpy as np

from pacpredict.show import show
from pacpredict.tables.column import Values
from pacpredict.tables.values import is_missing, is_number

# Parts of names that speak for themselves, once patient_id, PatientID and "patient id" are taken apart.
_TELLING = {"id", "ids", "identifier", "uuid", "guid", "ssn", "mrn", "email", "phone", "passport", "iban"}
# Words that name somebody where they end a name: the patient, not the patient's age.
_PERSONS = {
    *("subject", "person", "patient", "customer", "client", "member", "account", "participant", "employee"),
    *("user", "student", "kunde", "kundin", "klient", "proband", "mitglied", "konto"),
}
# Words that number something where they end a name of several: customer_no, not number_of_visits.
_NUMBERS = {"no", "nr", "num", "number", "nummer"}
_COMPOUND = re.compile(
    r"(?:kunden|patienten|personal|mitglieds?|versicherten|klienten|konto|fall)(?:nr|nummer|id)"
)
_PARTS = re.compile(r"[A-Z]?[a-z]+|[A-Z]+(?![a-z])")
# One word with letters and digits, such as P0012 or 7f3a-91c0, or an address; no date, quantity or sentence.
_CODE = re.compile(r"(?=\S*\d)(?=\S*[A-Za-z])[\w.:/-]{2,40}|\S+@\S+")
_DATE = re.compile(r"\d{1,4}[-/.]\d{1,2}[-/.]\d{1,4}.*")
# Groups of digits, such as 01-0000; if all are of one length, and longer than ages from 10-19.
_DIGITS = re.compile(r"\d+(?:[-/]\d+)+")
_SHORTEST_DIGITS = 6

# Nobody has more than this many records on average, where a name or the form of values gives it away.
_MOST_RECORDS_EACH = 50
_FEWEST_VALUES = 10
# Whole numbers that never repeat, and leave few out, look like row numbers, where there are enough to repeat.
_ENOUGH_NUMBERS = 100
_MOST_LEFT_OUT = 0.5
# A sample decides about the form of values; of a million it would take seconds.
_SAMPLE = 1000


def identifier_hint(name: str, values: Values) -> str | None:
    """Return what to say about a column if it looks like an identifier: of a person, a record or a row."""
    sample = _present(values[:: max(1, len(values) // _SAMPLE)])
    is_named, is_code = _has_telling_name(name), _are_codes(sample)
    if not sample or not (is_named or is_code or _are_whole_and_different(sample)):
        return None
    present = _present(values)
    n_different = len(_different(present))
    many = n_different >= max(_FEWEST_VALUES, len(present) / _MOST_RECORDS_EACH)
    is_row_number = len(present) >= _ENOUGH_NUMBERS and _are_row_numbers(present)
    if not (many and (is_named or is_code)) and not is_row_number:
        return None
    return (
        f"column {show(name)} looks like an identifier ({n_different:,} different values in {len(present):,} records): "
        "if it tells persons apart, say so, to have all records of a person protected together "
        f"(--person {shlex.quote(name)}, or groups= in Python); otherwise drop it"
    )


def _has_telling_name(name: str) -> bool:
    parts = [part.lower() for part in _PARTS.findall(name)]
    return bool(parts) and (
        not _TELLING.isdisjoint(parts)
        or parts[-1] in _PERSONS
        or (len(parts) > 1 and parts[-1] in _NUMBERS)
        or _COMPOUND.fullmatch(parts[-1]) is not None
    )


def _are_codes(values: Sequence[Any]) -> bool:
    if not all(isinstance(value, str) and not _DATE.fullmatch(value.strip()) for value in values):
        return False
    texts = [value.strip() for value in values]
    if all(map(_CODE.fullmatch, texts)):
        return True
    lengths = set(map(len, texts))
    return len(lengths) == 1 and min(lengths) >= _SHORTEST_DIGITS and all(map(_DIGITS.fullmatch, texts))


def _are_whole_and_different(values: Sequence[Any]) -> bool:
    if len(_different(values)) < len(values):
        return False
    return all(is_number(value) and math.isfinite(value) and value == math.floor(value) for value in values)


def _are_row_numbers(values: Sequence[Any]) -> bool:
    """Tell them from amounts, which may never repeat either, but are spread further."""
    return _are_whole_and_different(values) and (1 - _MOST_LEFT_OUT) * (max(values) - min(values)) < len(
        values
    )


def _different(values: Sequence[Any]) -> set[Any]:
    try:
        return set(values)
    except TypeError:  # values that cannot be hashed are refused elsewhere
        return set()


def _present(values: Values) -> list[Any]:
    given = values.tolist() if isinstance(values, np.ndarray) else values
    return [value for value in given if not is_missing(value)]
