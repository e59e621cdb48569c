"""Which versions can make a difference to a model."""

import platform
from contextlib import suppress
from importlib.metadata import PackageNotFoundError, version

from pacpredict.learners.learner import Learner


def library_versions(learner: Learner) -> dict[str, str]:
    versions = {"python": platform.python_version()}
    for library in ("pacpredict", "numpy", *learner.libraries):
        with suppress(PackageNotFoundError):
            versions[library] = version(library)
    return versions
