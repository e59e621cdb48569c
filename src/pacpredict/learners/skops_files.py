"""Estimators as files of skops: readable data, but data that names the code to run when it is loaded.

skops numbers objects by their place in memory and stamps its archives with the time, so that the same model never gives
the same bytes twice. Here objects are numbered as they come, arrays are named by their content, and there is no time.
"""

import hashlib
import io
import json
import warnings
import zipfile
from itertools import count
from typing import Any

from pacpredict.exceptions import InvalidModel, MissingExtra

_SCHEMA = "schema.json"


def dumps(model: Any) -> bytes:
    """Return the file of a model; the same model gives the same bytes."""
    with zipfile.ZipFile(io.BytesIO(_skops().dumps(model))) as archive:
        parts = {name: archive.read(name) for name in archive.namelist()}
    schema = json.loads(parts.pop(_SCHEMA))
    names = {name: _name_by_content(name, data) for name, data in parts.items()}
    _rename(schema, names, count(1))
    stored = {names[name]: data for name, data in parts.items()}
    stream = io.BytesIO()
    with zipfile.ZipFile(stream, "w") as archive:
        for name in sorted(stored):
            archive.writestr(zipfile.ZipInfo(name), stored[name])
        archive.writestr(zipfile.ZipInfo(_SCHEMA), json.dumps(schema))
    return stream.getvalue()


def loads(data: bytes) -> Any:
    """Load what the caller has decided to trust."""
    skops = _skops()
    try:
        return skops.loads(data, trusted=skops.get_untrusted_types(data=data))
    except (zipfile.BadZipFile, KeyError, ValueError, TypeError, ImportError, AttributeError) as problem:
        raise InvalidModel(f"this file of skops cannot be loaded: {problem}") from problem


def _name_by_content(name: str, data: bytes) -> str:
    return f"{hashlib.sha256(data).hexdigest()[:32]}.{name.rpartition('.')[2]}"


def _rename(node: Any, names: dict[str, str], numbers: "count[int]") -> None:
    """Give each node of a schema a number of its own: shared objects are written out in full wherever they occur."""
    if isinstance(node, list):
        for item in node:
            _rename(item, names, numbers)
    elif isinstance(node, dict):
        if "__loader__" in node:
            node["__id__"] = next(numbers)
            if isinstance(file := node.get("file"), str):
                node["file"] = names[file]
        for item in node.values():
            _rename(item, names, numbers)


def _skops() -> Any:
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # of modules that skops tries to import
            import skops.io  # noqa: PLC0415  # an extra
    except ImportError as problem:
        raise MissingExtra("skops", "storing or loading this estimator") from problem
    return skops.io
