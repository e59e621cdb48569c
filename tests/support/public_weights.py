"""Public extractors, for tests that are skipped where their packages cannot be had."""

import pytest

from pacpredict.exceptions import InvalidInput
from pacpredict.features.named import extractors_of


def public_extractor(name):
    try:
        (extractor,) = extractors_of(name)
    except InvalidInput as problem:
        pytest.skip(f"the weights of {name} are not here: {problem}")
    return extractor
