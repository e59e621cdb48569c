"""The data owner's records: what the subsets are drawn from."""

import hashlib
from dataclasses import dataclass
from typing import Any

import numpy as np

from pacpredict.core.validate import IntArray
from pacpredict.ensemble.tables.classes import Classes
from pacpredict.ensemble.tables.schema import Rows, Schema, Unknown
from pacpredict.exceptions import InvalidTable

# A half-subset of fewer records is no training set, and five folds of it would be empty.
FEWEST_RECORDS = 10


@dataclass(frozen=True, eq=False)
class Pool:
    schema: Schema
    classes: Classes
    rows: Rows
    labels: IntArray  # indices into the classes

    def __repr__(self) -> str:
        return f"Pool({len(self)} records, {len(self.schema.columns)} columns, {len(self.classes)} classes)"

    def __len__(self) -> int:
        return len(self.labels)

    @classmethod
    def of(cls, table: Any, labels: Any, unknown: Unknown = "refuse") -> "Pool":
        """Check a table and its labels, before anything is trained."""
        schema = Schema.infer(table, unknown)
        rows = schema.rows(table)
        if len(rows) != len(labels):
            raise InvalidTable(
                f"there are {len(rows)} records and {len(labels)} labels: give one label per record"
            )
        if len(rows) < FEWEST_RECORDS:
            raise InvalidTable(
                f"too few records to draw subsets from (n_samples = {len(rows)}): at least {FEWEST_RECORDS} are needed"
            )
        classes = Classes.infer(labels)
        return cls(schema, classes, rows, classes.codes(labels))

    @classmethod
    def of_frame(cls, frame: Any, target: str, unknown: Unknown = "refuse") -> "Pool":
        """Take one column of a frame as the labels."""
        if target not in frame.columns:
            known = ", ".join(map(str, frame.columns[:20]))
            raise InvalidTable(f"there is no column {target!r} to predict; the columns are {known}")
        return cls.of(frame.drop(columns=target), frame[target], unknown)

    def digest(self) -> str:
        """Return a hash of all records in order: the same data, whatever file they came from, give the same."""
        whole = hashlib.sha256()
        for digest in self.schema.digests(self.rows):
            whole.update(digest)
        whole.update(np.asarray(self.labels, "<i8").tobytes())
        return whole.hexdigest()
