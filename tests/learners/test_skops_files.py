"""Files of estimators that have no format of their own."""

import subprocess
import sys
import zipfile
from io import BytesIO

import numpy as np
import pytest
from records import labels_of, mixed_table
from sklearn.compose import make_column_transformer
from sklearn.gaussian_process import GaussianProcessClassifier
from sklearn.naive_bayes import GaussianNB
from sklearn.neighbors import KNeighborsClassifier
from sklearn.neural_network import MLPClassifier
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import OneHotEncoder, StandardScaler
from sklearn.svm import SVC

from pacpredict.exceptions import InvalidModel
from pacpredict.learners.skops_files import dumps, loads

ESTIMATORS = [
    GaussianNB(),
    KNeighborsClassifier(3),
    SVC(),
    GaussianProcessClassifier(random_state=0),
    MLPClassifier(4, max_iter=3000, tol=1.0, random_state=0),
    make_pipeline(StandardScaler(), GaussianNB()),
]
PROGRAM = """
import sys, hashlib
import numpy as np
from sklearn.naive_bayes import GaussianNB
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler
from pacpredict.learners.skops_files import dumps
padding = [object() for _ in range(int(sys.argv[1]))]
X = np.random.default_rng(0).normal(size=(40, 3))
model = make_pipeline(StandardScaler(), GaussianNB()).fit(X, X[:, 0] > 0)
print(hashlib.sha256(dumps(model)).hexdigest())
"""


@pytest.mark.parametrize("estimator", ESTIMATORS, ids=lambda estimator: type(estimator).__name__)
def test_same_model_same_bytes_same_answers(estimator):
    """Trained twice, an estimator gives the same file; loaded, it gives the same answers and the same file again."""
    X = np.random.default_rng(0).normal(size=(40, 3))
    y = (X[:, 0] > 0).astype(int)
    model = estimator.fit(X, y)
    data = dumps(model)
    assert dumps(estimator.fit(X.copy(), y.copy())) == data
    again = loads(data)
    assert dumps(again) == data
    assert np.array_equal(again.predict(X), model.predict(X))


def test_pipelines_of_columns_are_stored():
    """A pipeline that chooses columns by name is stored and loaded."""
    table = mixed_table(40)
    y = labels_of(table)
    chooser = make_column_transformer((OneHotEncoder(handle_unknown="ignore"), ["job", "grade"]))
    model = make_pipeline(chooser, KNeighborsClassifier()).fit(table, y)
    data = dumps(model)
    assert np.array_equal(loads(data).predict(table), model.predict(table))
    assert dumps(loads(data)) == data


def test_bytes_do_not_depend_on_the_process():
    """Neither the place in memory nor the time of day is in a file."""
    digests = {
        subprocess.run(
            [sys.executable, "-c", PROGRAM, padding], capture_output=True, text=True, check=True
        ).stdout
        for padding in ("0", "5000")
    }
    assert len(digests) == 1
    with zipfile.ZipFile(BytesIO(dumps(GaussianNB()))) as archive:
        assert {info.date_time for info in archive.infolist()} == {(1980, 1, 1, 0, 0, 0)}


def test_equal_arrays_are_stored_once():
    """Arrays are named by what they hold, so that sharing one in memory or not makes no difference."""
    shared, together, apart = np.arange(5.0), GaussianNB(), GaussianNB()
    together.set_params(priors=shared).extra_ = shared
    apart.set_params(priors=shared.copy()).extra_ = shared.copy()
    assert dumps(together) == dumps(apart)


@pytest.mark.parametrize(
    "data", [b"", b"PK\x03\x04 nothing", b"\x80\x04K\x01."], ids=["empty", "cut", "pickle"]
)
def test_other_files_are_refused(data):
    """What is no file of skops is an InvalidModel, a pickle among others."""
    with pytest.raises(InvalidModel, match="skops"):
        loads(data)
