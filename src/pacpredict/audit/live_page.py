"""What a live deployment has revealed, as a page for its owner."""

from collections.abc import Sequence

from pacpredict.audit.live import LedgerReview
from pacpredict.pages.document import document, figure, figures, legend, section
from pacpredict.pages.markup import Child, Markup, join, tag
from pacpredict.pages.svg import Point, Scale, Series, plot, ticks

# Files have a line of names first, and editors count from 1: without a word the wrong record would be looked up.
ROWS = "rows of the data, from 0"


def render_review(name: str, found: LedgerReview) -> str:
    """Return the page about a live deployment, for its owner."""
    last, unit = found.moments[-1], found.unit
    says = (
        f"{last.answers:,} answers, for which {last.charged_nats:.3g} of {found.total_nats:.3g} nats were charged, "
        f"revealed {last.learnt_nats:.3g} nats about the secret. The log-odds of statements about the training set "
        f"moved by at most {last.spread:.3g}"
    )
    limit = "." if found.limit is None else f"; the limit is {found.limit:g}."
    rows: list[list[Child]] = [
        [str(one.unit), some_records(one.records), f"{100 * one.probability:.4f} %", f"{one.shift:+.3g}"]
        for one in found.most_moved
    ]
    return document(
        f"What the answers of {name} revealed",
        tag(
            "main",
            tag(
                "header",
                tag("h1", f"What the answers of {name} revealed"),
                tag("p", "For the owner only: this tells who is in the pool.", class_="faint"),
            ),
            tag("div", tag("p", says + limit), class_="promise"),
            section("Over time", *_over_time(found)),
            section(
                f"{unit.capitalize()}s whose odds moved most",
                figures([unit, ROWS, "trained on, by belief", "log-odds moved"], rows, n_words=2),
            ),
        ),
    )


def _over_time(found: LedgerReview) -> list[Markup]:
    moments = found.moments
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


def some_records(records: Sequence[int], most: int = 5) -> str:
    """Name some rows, and say how many there are beside them."""
    shown = ", ".join(map(str, records[:most]))
    return shown if len(records) <= most else f"{shown} and {len(records) - most} more"
