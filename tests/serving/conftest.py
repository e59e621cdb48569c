"""A small fit, and a server of it, for the tests of serving."""

import pytest
from artifacts import copy_artifact, fit_small
from live_server import LiveServer, curator_of, plain_rows
from records import mixed_table, quick_fit, recipe

from pacpredict.serving.run import warm_up


@pytest.fixture(scope="session")
def fitted():
    """A fit whose kernels are compiled, so that no client waits for that."""
    fitted = quick_fit(how=recipe(step=2.0**-16, total=0.1))
    warm_up(curator_of(fitted))
    return fitted


@pytest.fixture(scope="session")
def fitted_home(tmp_path_factory):
    return fit_small(tmp_path_factory.mktemp("fitted") / "mixed.pac", how=recipe(step=2.0**-16)).path


@pytest.fixture
def home(fitted_home, tmp_path):
    """An artifact that has answered nothing."""
    return copy_artifact(fitted_home, tmp_path / "mixed.pac")


@pytest.fixture(scope="session")
def rows():
    """Queries with every kind of column, one of them with missing values."""
    return plain_rows(mixed_table(40, seed=3))


@pytest.fixture(scope="module")
def server(fitted):
    """A server that the tests of a module share."""
    with LiveServer(curator_of(fitted)) as running:
        yield running


@pytest.fixture
def fresh_server(fitted):
    with LiveServer(curator_of(fitted)) as running:
        yield running
