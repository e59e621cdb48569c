"""HTML and SVG from Python calls. Texts are escaped unless they are markup already, so nothing can be injected."""

from collections.abc import Iterable
from html import escape
from typing import Union

_VOID = {"br", "hr", "img", "input", "link", "meta"}


class Markup(str):
    """Text that is HTML; what is not of this type gets escaped when it is put into a page."""

    __slots__ = ()


Child = Union[str, float, None, Iterable["Child"]]  # noqa: UP007  # a type that names itself
Attribute = str | float | bool | None


def tag(name: str, /, *children: Child, **attributes: Attribute) -> Markup:
    """Return an element.

    Of attributes, a final underscore is dropped (`class_`) and others become hyphens (`text_anchor`); False and None
    leave one out, True gives it no value.
    """
    given = "".join(_attribute(key, value) for key, value in attributes.items())
    if name in _VOID:
        return Markup(f"<{name}{given}>")
    return Markup(f"<{name}{given}>{join(*children)}</{name}>")


def join(*children: Child) -> Markup:
    """Put texts, numbers and elements together; None is nothing."""
    return Markup("".join(_child(child) for child in children))


def _child(child: Child) -> str:
    if child is None:
        return ""
    if isinstance(child, Markup):
        return child
    if isinstance(child, str | int | float):
        return escape(str(child), quote=False)
    return "".join(_child(each) for each in child)


def _attribute(key: str, value: Attribute) -> str:
    name = key.rstrip("_").replace("_", "-")
    if value is None or value is False:
        return ""
    if value is True:
        return f" {name}"
    return f' {name}="{escape(_number(value) if isinstance(value, float) else str(value))}"'


def _number(value: float) -> str:
    """Return a coordinate to a hundredth: more digits make pages larger and nothing clearer."""
    return f"{value:.2f}".rstrip("0").rstrip(".")
