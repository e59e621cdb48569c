"""Students of given labels, and the files that are published of them."""

import sys
from pathlib import Path

import numpy as np

import pacpredict
from pacpredict.distill.formats import files_of, is_file_name
from pacpredict.distill.labels import Targets
from pacpredict.distill.student import Ground, train_student
from pacpredict.tables.classes import Classes


def everything(labels, weights=None):
    n = len(labels)
    return Targets(
        np.arange(n), np.asarray(labels), np.ones(n) if weights is None else weights, np.ones(n, bool)
    )


def trained(learner, schema, rows, labels, names, weights=None):
    """Train a student on all rows of a schema."""
    ground = Ground.of(learner, schema, rows)
    return train_student(learner, ground, Classes(tuple(names)), everything(labels, weights), seed=1)


def written(student, folder):
    places = Path(pacpredict.__file__).parent, Path(sys.prefix), Path.cwd()
    machine = [str(place.absolute()).encode() for place in places]
    for name, data in files_of(student).items():
        assert is_file_name(name)
        assert not any(place in data for place in machine), f"{name} names files of this machine"
        (folder / name).parent.mkdir(parents=True, exist_ok=True)
        (folder / name).write_bytes(data)
    return folder
