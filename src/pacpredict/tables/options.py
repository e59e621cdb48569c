"""What the owner of a table says about it: which column is what, on the command line or in a TOML file.

target = "readmitted"
person = "patient"
drop = ["record", "note"]
missing = ["?", "n/a"]
min_category = 20

[types]
crp = "number"
cost = "number:1.234,5"
admitted = "date"
ward = ["A", "B", "C"]
"""

import tomllib
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, field, fields
from pathlib import Path
from typing import Any

from pacpredict import defaults
from pacpredict.exceptions import InvalidInput, InvalidTable
from pacpredict.show import show, show_some
from pacpredict.tables.declared import Types, parse_types
from pacpredict.tables.schema import check_min_category

_TEXT, _SWITCH = (str, "a text"), (bool, "true or false")
_WANTED: dict[str, tuple[type, str]] = {
    **dict.fromkeys(("target", "input", "image_size", "weights", "person"), _TEXT),
    **dict.fromkeys(("person_is_feature", "person_per_row"), _SWITCH),
    "types": (Mapping, "a table of columns and types"),
    "min_category": (int, "a whole number"),
}


@dataclass(frozen=True)
class TableOptions:
    """Which column is to be predicted, which are left out, what others are, and how values are read."""

    target: str
    input: str | None = None  # the column of images or texts, for learners of these
    image_size: str | None = None  # to which images are scaled, height x width: "64x48"
    weights: str | None = None  # the column that says what each record counts
    drop: tuple[str, ...] = ()
    types: Types = field(default_factory=dict)
    missing: tuple[str, ...] = ()  # texts that mean missing, beside the empty one
    min_category: int = defaults.MIN_CATEGORY  # units that must have a category for it to be listed
    person: str | None = None  # the column that says whose a record is; it is not learned from
    person_is_feature: bool = False  # unless this says so
    person_per_row: bool = False  # each row is of another person

    def __post_init__(self) -> None:
        parse_types(self.types)
        check_min_category(self.min_category)
        if self.person_is_feature and self.person is None:
            raise InvalidInput("no column of persons is named that could be learned from: --person COLUMN")
        if self.person_per_row and self.person is not None:
            raise InvalidInput(
                f"either column {show(self.person)} names the persons, or each row is of another one: not both"
            )
        optional = (self.input, self.weights, self.person)
        roles = [self.target, *(name for name in optional if name is not None), *self.drop]
        if twice := [name for name in roles if roles.count(name) > 1]:
            raise InvalidInput(f"column {show(twice[0])} is said to be two things at once")
        if declared := [name for name in self.types if name in self._not_learned_from]:
            raise InvalidInput(f"column {show(declared[0])} is not learned from, so that it needs no type")

    def to_json(self) -> dict[str, Any]:
        return {
            name: list(value) if isinstance(value, tuple) else value for name, value in asdict(self).items()
        }

    @classmethod
    def from_json(cls, stored: Mapping[str, Any]) -> "TableOptions":
        """Return what to_json gave, or what a TOML file says; what is not known is refused."""
        known = [each.name for each in fields(cls)]
        if unknown := [name for name in stored if name not in known]:
            raise InvalidInput(f"a table has no {show_some(unknown)}; what can be said is {', '.join(known)}")
        for name, (kind, wanted) in _WANTED.items():
            if stored.get(name) is not None and not isinstance(stored[name], kind):
                raise InvalidInput(f"{name} must be {wanted}, got {show(stored[name])}")
        if stored.get("target") is None:
            raise InvalidInput("say which column is to be predicted: --target COLUMN")
        return cls(**{**stored, **{name: _texts(name, stored.get(name, [])) for name in ("drop", "missing")}})

    def check(self, columns: Sequence[str]) -> None:
        """Refuse columns that the table does not have."""
        for name, purpose in (
            (self.target, "to predict"),
            (self.input, "of images or texts"),
            (self.weights, "of weights"),
            (self.person, "of persons"),
            *((name, "to drop") for name in self.drop),
            *((name, "to declare") for name in self.types),
        ):
            if name is not None and name not in columns:
                known = show_some(list(columns), 20)
                raise InvalidTable(f"there is no column {name!r} {purpose}; the columns are {known}")

    def check_of_table(self, columns: Sequence[str]) -> None:
        """Refuse columns that the table does not have, and what is said of images."""
        self.check(columns)
        if self.image_size is not None:
            raise InvalidInput("an image size is for images, and these are a table")

    def features(self, columns: Sequence[str]) -> list[str]:
        """Return the columns that are learned from."""
        return [name for name in columns if name not in self._not_learned_from]

    @property
    def texts(self) -> list[str]:
        """Return the columns whose cells of a CSV file are taken as they are written: 1.234 may be no number."""
        declared = parse_types(self.types).items()
        return [
            name
            for name, each in declared
            if each.kind in {"category", "text"} or (each.kind == "number" and each.form)
        ]

    @property
    def _not_learned_from(self) -> set[str | None]:
        return {self.target, self.weights, None if self.person_is_feature else self.person, *self.drop}

    def whole_column(self, columns: Sequence[str]) -> str:
        """Return the column of images or texts: the one that was named, or the only one that is left."""
        if self.types or self.person_is_feature:
            raise InvalidInput(
                "images and texts are learned from as they are: --types and --person-is-feature are for tables"
            )
        left = [self.input] if self.input is not None else self.features(columns)
        if len(left) != 1:
            raise InvalidTable(
                "say which column has the images or texts: --input COLUMN; the columns are "
                f"{show_some(list(columns), 20)}"
            )
        return left[0]

    def beside(self, columns: Sequence[str]) -> list[str]:
        """Return the columns that are there beside images or texts, and have no role."""
        whole = self.whole_column(columns)
        return [name for name in self.features(columns) if name != whole]


def read_options(path: Path) -> dict[str, Any]:
    """Read what a TOML file says about a table."""
    try:
        with path.open("rb") as file:
            return tomllib.load(file)
    except FileNotFoundError as problem:
        raise InvalidInput(f"there is no file {path}") from problem
    except (tomllib.TOMLDecodeError, UnicodeDecodeError, IsADirectoryError) as problem:
        raise InvalidInput(f"{path} is no TOML file: {problem}") from problem


def _texts(name: str, given: Any) -> tuple[str, ...]:
    if not isinstance(given, list | tuple) or not all(isinstance(one, str) for one in given):
        raise InvalidInput(f"{name} must be a list of texts, got {show(given)}")
    return tuple(given)
