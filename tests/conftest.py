"""What holds for all tests."""

import pytest
from programs import occupied


@pytest.fixture(scope="session", autouse=True)
def default_port_is_taken():
    """Let somebody else listen at the port that `serve` and `demo` take by default, as on many machines."""
    with occupied(8000):
        yield
