"""JSON for programs: one object, floats that read back as the same floats, null for infinity."""

import json
import math
from collections.abc import Mapping
from typing import Any


def print_json(values: Mapping[str, Any]) -> None:
    """Print one object; JSON has no infinity, and null says as well that there is no bound."""
    print(json.dumps({name: _finite(value) for name, value in values.items()}, indent=2, allow_nan=False))


def _finite(value: Any) -> Any:
    return None if isinstance(value, float) and math.isinf(value) else value
