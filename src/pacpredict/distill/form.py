"""The form of a card: before a file is believed anything, it has the parts of a card, with values of their kinds."""

import re
from collections.abc import Mapping
from datetime import datetime
from pathlib import Path
from typing import Any

from pacpredict.core.filters import check_alpha, check_filter
from pacpredict.distill.card import FORMAT, VERSION, Mark, Settings, as_name
from pacpredict.distill.formats import is_file_name
from pacpredict.distill.questions import ORDERS
from pacpredict.distill.student import NOT_ON_CARDS
from pacpredict.exceptions import InvalidInput, StudentRefuted
from pacpredict.show import explain_format

_PARTS = {
    *("format", "version", "made", "pacpredict", "promise", "history", "labels", "settings", "notes"),
    *("curve", "evaluation", "files"),
}
_SHA256 = re.compile("[0-9a-f]{64}")
_VERSION = re.compile("[0-9A-Za-z.+!-]{1,50}")


def check_form(folder: Path, card: Mapping[str, Any]) -> None:
    """Refuse what is no card. What one says may still be wrong: that is for the ledger to tell.

    Raises
    ------
    StudentRefuted
        with the first part that has not its form.
    """
    _need(card.get("format") == FORMAT, "format")
    if type(version := card.get("version")) is not int or version != VERSION:
        raise StudentRefuted(explain_format(f"the student {folder}", version, VERSION, "distill again"))
    _need(card.keys() == _PARTS, "parts")
    _need(_is_time(card["made"]), "made")
    _need(_is_text(card["pacpredict"]) and _VERSION.fullmatch(card["pacpredict"]), "pacpredict")
    for name in ("promise", "history", "labels", "settings", "notes", "files"):
        _need(isinstance(card[name], dict), name)
    _need(_is_name(card["promise"].get("name")), "name")
    _need(_is_count(card["labels"].get("public_rows")), "public_rows")
    _check_settings(card["settings"])
    _check_accuracies(card["evaluation"], card["curve"])
    for name, digest in card["files"].items():
        if not is_file_name(name):
            raise StudentRefuted(f"{name!r:.100} does not belong to a student: no format has such a file")
        _need(_is_text(digest) and _SHA256.fullmatch(digest), "files")


def _need(holds: Any, part: str) -> None:
    if not holds:
        raise StudentRefuted(f"this is no card that this pacpredict reads: its {part} cannot be used")


def _check_settings(given: Mapping[str, Any]) -> None:
    _need(given.keys() == set(Settings._fields), "settings")
    params = given["params"]
    _need(_is_name(given["learner"]), "learner")
    _need(
        params is None or (isinstance(params, dict) and params and not params.keys() & NOT_ON_CARDS), "params"
    )
    _need(given["order"] in ORDERS, "order")
    _need(type(given["seed"]) is int and given["seed"] >= 0, "seed")
    _need(type(given["soft"]) is bool and type(given["balanced"]) is bool, "soft or balanced")
    try:
        check_filter(given["filter"])
        _need(type(given["alpha"]) is float, "alpha")
        check_alpha(given["alpha"])
    except InvalidInput as problem:
        raise StudentRefuted(f"this is no card that this pacpredict reads: {problem}") from problem


def _check_accuracies(evaluation: Any, curve: Any) -> None:
    """Check what nothing else does: whether an accuracy is one."""
    if evaluation is not None:
        _need(isinstance(evaluation, dict) and evaluation.keys() == {"rows", "accuracy"}, "evaluation")
        _need(_is_count(evaluation["rows"]) and _is_share(evaluation["accuracy"]), "evaluation")
    _need(isinstance(curve, list), "curve")
    for mark in curve:
        _need(isinstance(mark, dict) and mark.keys() == set(Mark._fields), "curve")
        _need(_is_count(mark["rows"]), "curve")
        is_given = evaluation is not None and _is_share(mark["accuracy"])
        _need(mark["accuracy"] is None or is_given, "accuracy in the curve")
    if curve and evaluation is not None:  # its last student is the one that was evaluated
        _need(curve[-1]["accuracy"] == evaluation["accuracy"], "last accuracy in the curve")


def _is_text(value: Any) -> bool:
    return type(value) is str


def _is_name(value: Any) -> bool:
    return _is_text(value) and as_name(value) == value


def _is_count(value: Any) -> bool:
    return type(value) is int and value >= 1


def _is_share(value: Any) -> bool:
    return type(value) is float and 0 <= value <= 1


def _is_time(value: Any) -> bool:
    try:
        return _is_name(value) and datetime.fromisoformat(value).tzinfo is not None
    except ValueError:
        return False
