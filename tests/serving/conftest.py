"""A small fit, and a server of it, for the tests of serving."""

import pytest

from live_server import LiveServer, curator_of, plain_rows
from records import mixed_table, quick_fit, recipe


@pytest.fixture(scope="session")
def fitted():
    return quick_fit(how=recipe(step=2.0**-16, total=0.1))


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
