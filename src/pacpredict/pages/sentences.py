"""Sentences with marks of Markdown, as HTML."""

import re

from pacpredict.pages.markup import Child, Markup, join, tag

_MARKS = re.compile(r"(\*\*[^*]+\*\*|__[^_]+__|`[^`]+`)")


def marked(text: str) -> Markup:
    """Turn **figures**, __titles__ and `code` into elements; everything else is escaped."""
    parts: list[Child] = []
    for piece in _MARKS.split(text):
        if piece.startswith("**"):
            parts.append(tag("strong", piece[2:-2]))
        elif piece.startswith("__"):
            parts.append(tag("b", piece[2:-2]))
        elif piece.startswith("`"):
            parts.append(tag("code", piece[1:-1]))
        else:
            parts.append(piece)
    return join(*parts)
