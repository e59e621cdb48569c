"""What a deployment promises, on its page: the sentences of `pacpredict.promise`."""

from typing import Any

from pacpredict.pages.document import section
from pacpredict.pages.markup import Markup, tag
from pacpredict.pages.sentences import marked
from pacpredict.promise import NEVER_TELL, promise_from


def render_promise(name: str, unit: str, privacy: dict[str, Any]) -> Markup:
    """Return the four sentences; `privacy` is what Curator.privacy returns."""
    items = [
        tag("li", tag("b", f"{title}."), " ", marked(sentence))
        for title, sentence in promise_from(privacy, unit).titled()
    ]
    return section(
        f"What {name} promises",
        tag("div", tag("ol", items), tag("p", tag("b", NEVER_TELL)), class_="promise"),
    )
