"""An artifact that version 0.1 made: 8 logistic models on iris, 30 queries answered, 28 of them contested."""

import json
import tarfile
from pathlib import Path

from pacpredict.artifact.artifact import LEDGER, OLD_WITNESS

RELEASED = Path(__file__).parents[1] / "data" / "released-0.1.tar.gz"


def unpack_released(folder):
    """Return the artifact as the released code left it, at the place that its witness names."""
    with tarfile.open(RELEASED) as stored:
        stored.extractall(folder, filter="data")
    path = folder / "released.pac"
    witness = json.loads((path / OLD_WITNESS).read_text())
    (path / OLD_WITNESS).write_text(json.dumps({**witness, "location": str(path / LEDGER)}))
    return path
