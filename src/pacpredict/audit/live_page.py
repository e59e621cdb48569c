"""What a live deployment has exposed, as a page for its owner."""

from collections.abc import Sequence

from pacpredict.audit.live import Exposure
from pacpredict.pages.document import document, figure, figures, legend, section
from pacpredict.pages.markup import Child, Markup, join, tag
from pacpredict.pages.svg import Point, Scale, Series, plot, ticks


def render_exposure(name: str, exposure: Exposure) -> str:
    """Return the page about a live deployment, for its owner."""
    last, unit = exposure.moments[-1], exposure.unit
    says = (
        f"{last.answers:,} answers, for which {last.charged_nats:.3g} of {exposure.total_nats:.3g} nats were charged, "
        f"revealed {last.learnt_nats:.3g} nats about the secret. Nobody's log-odds moved by more than "
        f"{last.largest_shift:.3g}"
    )
    limit = "." if exposure.limit is None else f"; the limit is {exposure.limit:g}."
    rows: list[list[Child]] = [
        [str(one.unit), _some(one.records), f"{100 * one.probability:.4f} %", f"{one.shift:+.3g}"]
        for one in exposure.most_exposed
    ]
    return document(
        f"Exposure of {name}",
        tag(
            "main",
            tag(
                "header",
                tag("h1", f"Exposure of {name}"),
                tag("p", "For the owner only: this tells who is in the pool.", class_="faint"),
            ),
            tag("div", tag("p", says + limit), class_="promise"),
            section("Over time", *_over_time(exposure)),
            section(
                f"The most exposed {unit}s",
                figures(
                    [unit, "rows of the data", "trained on, by belief", "log-odds moved"], rows, n_words=2
                ),
            ),
        ),
    )


def _over_time(exposure: Exposure) -> list[Markup]:
    moments = exposure.moments
    x = Scale(
        0, moments[-1].answers, [(v, f"{v:,.0f}") for v in ticks(0, moments[-1].answers, 5)], name="answers"
    )

    def scale(highest: float, name: str) -> Scale:
        top = highest or 1.0
        return Scale(0, top, [(value, f"{value:.2g}") for value in ticks(0, top, 4)], name=name)

    nats = scale(max(max(one.charged_nats, one.learnt_nats) for one in moments), "nats")
    odds = scale(max(one.largest_shift for one in moments), "log-odds, moved by")
    return [
        figure(
            plot(
                [
                    Series("limit", [Point(one.answers, one.charged_nats) for one in moments]),
                    Series("", [Point(one.answers, one.learnt_nats) for one in moments]),
                ],
                x,
                nats,
                "Nats charged and nats revealed, by answers",
            ),
            join(
                legend(("", "revealed by this history"), ("limit", "charged")),
                "On average over histories no more is revealed than charged; one may reveal more.",
            ),
        ),
        figure(
            plot(
                [
                    Series("", [Point(one.answers, one.largest_shift) for one in moments]),
                    Series("second", [Point(one.answers, one.typical_shift) for one in moments]),
                ],
                x,
                odds,
                "How far log-odds have moved, by answers",
            ),
            join(
                legend(("", "farthest"), ("second", "typical")),
                "How far the log-odds of having been trained on have moved.",
            ),
        ),
    ]


def _some(records: Sequence[int], most: int = 5) -> str:
    shown = ", ".join(map(str, records[:most]))
    return shown if len(records) <= most else f"{shown} and {len(records) - most} more"
