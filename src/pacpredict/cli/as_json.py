"""JSON for programs: one object, floats that read back as the same floats, null for infinity."""

import json
import math
from collections.abc import Mapping
from typing import Any


def print_json(values: Mapping[str, Any]) -> None:
    """Print one object; JSON has no infinity, and null says as well that there is no bound."""
    print(json.dumps(_finite(values), indent=2, allow_nan=False))


def _finite(value: Any) -> Any:
    if isinstance(value, Mapping):
        return {name: _finite(each) for name, each in value.items()}
    return None if isinstance(value, float) and math.isinf(value) else value
