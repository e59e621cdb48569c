"""One PostgreSQL server for all tests of a worker, with a database for each test."""

import itertools

import pytest
from postgres_server import PostgresServer

_numbers = itertools.count()


@pytest.fixture(scope="session")
def postgres():
    server = PostgresServer()
    yield server
    server.stop()


@pytest.fixture
def url(postgres):
    """An empty database."""
    return postgres.create_database(f"ledger_{next(_numbers)}")
