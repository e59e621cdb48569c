"""A picture of forecasts: accuracy against the budget of an answer, for every decoder."""

import math
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np

from pacpredict.core.decode import DECODERS
from pacpredict.evaluation.evaluate import Evaluation
from pacpredict.exceptions import InvalidInput, MissingExtra
from pacpredict.files import write_whole
from pacpredict.show import percent

FORMATS = ("png", "svg", "pdf")
# Told apart by people who do not see all colours, and in print by their markers.
_LOOKS = (("#0072b2", "o"), ("#d55e00", "s"), ("#009e73", "^"), ("#cc79a7", "D"))
_WIDTH, _HEIGHT = 4.6, 3.8  # inches, of one learner
_BESIDE = 1.4  # for the legend


def check_plot(path: Path) -> None:
    """Refuse what could not be drawn, before anything is trained."""
    if path.suffix[1:].lower() not in FORMATS:
        raise InvalidInput(
            f"a plot ends in {', '.join(f'.{name}' for name in FORMATS)}, not like {path.name!r}"
        )
    _figure()


def plot(evaluations: Sequence[Evaluation], path: Path) -> None:
    """Draw one panel for each learner, with the accuracy of a deployment and what it is compared with."""
    import io  # noqa: PLC0415

    figure = _figure()((_WIDTH * len(evaluations) + _BESIDE, _HEIGHT), layout="constrained")
    panels = figure.subplots(1, len(evaluations), sharey=True, squeeze=False)[0]
    for panel, evaluation in zip(panels, evaluations, strict=True):
        _draw(panel, evaluation)
    panels[0].set_ylabel("accuracy on held-out records, %")
    figure.legend(*panels[0].get_legend_handles_labels(), loc="outside right upper", frameon=False)
    stream = io.BytesIO()
    figure.savefig(stream, format=path.suffix[1:].lower(), dpi=150)
    write_whole(path, stream.getvalue())


def _draw(panel: Any, evaluation: Evaluation) -> None:
    found = evaluation.forecast
    for decode, (colour, marker) in zip(DECODERS, _LOOKS, strict=False):
        cases = sorted((one for one in found.cases if one.decode == decode), key=lambda one: -one.step_budget)
        x = [math.log2(one.step_budget) for one in cases]
        y, sd = (100 * np.array([getattr(one, name) for one in cases]) for name in ("accuracy", "sd"))
        panel.plot(x, y, color=colour, marker=marker, markersize=4, label=decode)
        panel.fill_between(x, y - sd, y + sd, color=colour, alpha=0.15, linewidth=0)
    for value, name, style in (
        (found.unprotected.accuracy, "unprotected", "-"),
        (found.half.accuracy, "on half the records", "--"),
        (found.majority, "most frequent class", ":"),
    ):
        panel.axhline(100 * value, color="0.35", linestyle=style, linewidth=1, label=name)
    panel.set_title(
        f"{evaluation.learner}: models differ on {percent(found.contested)} of queries", fontsize=10
    )
    panel.set_xlabel("nats per answer (more private to the right)")
    panel.set_xticks(sorted({round(math.log2(one.step_budget)) for one in found.cases}))
    panel.invert_xaxis()
    panel.xaxis.set_major_formatter(lambda exponent, _: f"$2^{{{exponent:.0f}}}$")
    panel.spines[["top", "right"]].set_visible(False)


def _figure() -> Any:
    try:
        from matplotlib.figure import Figure  # noqa: PLC0415  # an extra
    except ImportError as problem:
        raise MissingExtra("plot", "drawing") from problem
    return Figure
