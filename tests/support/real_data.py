"""Where the real data sets are, for tests that are skipped without them."""

import os
from pathlib import Path

import pytest

DATA = Path(os.environ.get("PACPREDICT_DATA") or Path(__file__).parents[3] / "shared" / "data")


def real_file(*parts):
    path = DATA.joinpath(*parts)
    if not path.exists():
        pytest.skip(f"{'/'.join(parts)} is not here; say in PACPREDICT_DATA where the data is")
    return path
