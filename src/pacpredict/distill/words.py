"""What a card says, in sentences and tables that Markdown and HTML share."""

from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple

from pacpredict.core.attacks import QUESTIONS
from pacpredict.pages.words import power
from pacpredict.promise import NEVER_TELL, explain_priors, promise_from, why_never
from pacpredict.show import percent_up

_FILTERS = {
    "corrected": "kept and different from the secret model's label with a probability of at most {0}, whatever that "
    "label is (Proposition 5.1 of the paper, with alpha divided among the rivals)",
    "paper": "kept by the test that the paper prints at alpha = {0}. For three and more labels among the votes it can "
    "keep wrong ones more often than that",
    "bayesian": "kept if, by all that the history tells, it is the secret model's own with a probability of at least "
    "1 - {0}. Of the kept ones a share of at most {0} differs, on average over secrets and histories",
}
_KINDS = {
    "agreed": "all models agreed: nothing was hidden, nothing was charged",
    "argmax": "largest entry of a noisy vote",
    "map": "most probable label, given a noisy vote and the belief",
    "sample": "drawn through a finite channel",
    "belief": "drawn from the belief, without the secret",
}


class Table(NamedTuple):
    columns: list[str]
    rows: list[list[str]]


class Part(NamedTuple):
    title: str
    content: list["str | Table | list[str]"]  # paragraphs, tables, and lists of points


def parts_of(card: Mapping[str, Any]) -> list[Part]:
    parts = [
        Part("What is promised", _promise(card["promise"], card["labels"])),
        Part("How often an attack can succeed", [_attacks(card["promise"]), *_explanations(card["promise"])]),
        Part("What was spent", _spent(card)),
        Part("What is not protected", [_unprotected(card)]),
        Part("The labels", _labels(card)),
        Part("How well it does", _evaluation(card)),
        Part(
            "How to use it",
            [
                "`python predict.py FILE > labels.csv` needs the library of the model, not pacpredict.",
                (
                    "For rows of a table and for texts FILE is CSV with a line of names; `student.json` says which "
                    "columns are read. Texts may also stand one on each line of a `.txt` file. For images FILE is an "
                    "image or a folder of them."
                ),
            ],
        ),
        Part("How to check this card", _checks(card)),
    ]
    return [part for part in parts if part.content]


def title_of(card: Mapping[str, Any]) -> str:
    return f"Privacy card of a student of {card['promise']['name']}"


def _promise(promise: Mapping[str, Any], labels: Mapping[str, Any]) -> list["str | Table | list[str]"]:
    sentences = [f"__{title}.__ {text}" for title, text in promise_from(promise, promise["unit"]).titled()]
    return [
        (
            f"This model was trained on {labels['kept']:,} private labels of public rows. Nothing else in it depends "
            "on which half of the records was the training set, so it may be asked without limit, and taken apart. The "
            "promise is about this model together with everything that the deployment has answered and ever will:"
        ),
        sentences,
        f"__{NEVER_TELL}__ {why_never(promise['models'], promise['rate'], promise['unit'])}",
    ]


def _attacks(promise: Mapping[str, Any]) -> Table:
    bounds = [promise["bounds"][attack] for attack in QUESTIONS]
    rows = [[bound["question"], percent_up(bound["prior"]), percent_up(bound["success"])] for bound in bounds]
    return Table(["what the attacker wants to know", "before", "at most"], rows)


def _explanations(promise: Mapping[str, Any]) -> list["str | Table | list[str]"]:
    reasons = explain_priors(promise["bounds"], promise["unit"])
    return [reasons] if reasons else []


def _spent(card: Mapping[str, Any]) -> list["str | Table | list[str]"]:
    history, promise = card["history"], card["promise"]
    others = history["other_releases"]
    was = (
        "none of them was for anything else"
        if not others
        else f"{others:,} of them were answers to other queries"
    )
    said: list[str | Table | list[str]] = [
        (
            f"The labels are among the first {history['releases']:,} releases of the deployment; {was}. By then "
            f"{history['spent_nats']:.6g} nats were charged, of a total of {promise['total_nats']:.6g}, in steps of "
            f"{power(promise['step_budget_nats'])}. The ceilings above are those of the total."
        ),
        (
            "What is spent by now bounds no attack: whoever asks in view of answers may stop when they have succeeded. "
            "And whoever else is answered by the deployment, before or after, counts as well."
        ),
    ]
    if history["success_if_settled"] is not None:
        said.append(
            "Only if rows, order and number had been settled before the first answer, and if the deployment never "
            f"answers anything else, the ceiling of {percent_up(promise['bounds']['membership']['success'])} would be "
            f"{percent_up(history['success_if_settled'])}."
        )
    return said


def _unprotected(card: Mapping[str, Any]) -> list[str]:
    settings, unit = card["settings"], card["promise"]["unit"]
    points = [
        "Being in the pool of records from which the training set was drawn.",
        "What a single record of the pool says, such as its label: the student learned from models of the whole pool.",
        "What the pool says as a whole: the model is meant to tell that.",
    ]
    if settings["soft"]:
        points.append(
            "How the models of the deployment are divided about the public rows: the student learned their shares."
        )
    if card["evaluation"] is not None:
        points.append(
            "The labelled rows of the evaluation. Its figures follow from their true labels, which no noise covers: "
            "they should be public, or of nobody."
        )
    if unit != "person":
        points.append(f"Several records of one person: the figures are for one {unit}.")
    return [*points, "Records that are in a second deployment, too: what both spend adds up."]


def _labels(card: Mapping[str, Any]) -> list["str | Table | list[str]"]:
    labels, settings = card["labels"], card["settings"]
    how = _FILTERS[settings["filter"]].format(f"{settings['alpha']:g}")
    order = {"random": "at random", "active": "those first on which most models agree"}[settings["order"]]
    kinds = [[_KINDS[kind], f"{n:,}"] for kind, n in labels["kinds"].items()]
    classes = [[label, f"{n:,}"] for label, n in labels["classes"]]
    targets = (
        "with all labels that models give, by their posterior" if settings["soft"] else "with its label alone"
    )
    weighed = ", classes weighed alike" if settings["balanced"] else ""
    return [
        (
            f"Of {labels['public_rows']:,} public rows {labels['asked']:,} were asked, {order} (seed "
            f"{settings['seed']}), and {labels['kept']:,} labels were kept. A label is {how}."
        ),
        f"The student is {settings['learner']}, trained on each kept row {targets}{weighed}.",
        Table(["how the labels came about", "rows"], kinds),
        Table(["label", "kept"], classes),
    ]


def _evaluation(card: Mapping[str, Any]) -> list["str | Table | list[str]"]:
    said: list[str | Table | list[str]] = []
    if card["evaluation"] is not None:
        found = card["evaluation"]
        said.append(
            f"Of {found['rows']:,} rows with known labels the student gets {100 * found['accuracy']:.2f} % right, "
            "says whoever made this card: it is not checked."
        )
    if card["curve"]:
        rows = [
            [
                f"{mark['rows']:,}",
                f"{mark['spent_nats']:.3g}",
                f"{mark['kept']:,}",
                "" if mark["accuracy"] is None else f"{100 * mark['accuracy']:.2f}%",
            ]
            for mark in card["curve"]
        ]
        said.append(Table(["rows asked", "nats spent by then", "kept", "accuracy"], rows))
    return said


def _checks(card: Mapping[str, Any]) -> list["str | Table | list[str]"]:
    history, name = card["history"], card["promise"]["name"]
    facts = [
        ["identity of the deployment", f"`{history['deployment']}`"],
        [f"hash of its ledger up to release {history['releases']:,}", f"`{history['chain']}`"],
        ["made", f"{card['made']}, by pacpredict {card['pacpredict']}"],
    ]
    return [Table(["", ""], facts), *_how_to_check(name)]


def _how_to_check(name: str) -> list[str]:
    command, with_rows = (
        f"`pacpredict distill {name}{rows} --verify FOLDER`" for rows in ("", " public.csv")
    )
    return [
        (
            f"The owner of the deployment says {command}, which replays the ledger and compares with it the promise, "
            "what was spent, the labels and how they are counted, and every file with card.json. Rows that were asked "
            f"at random are drawn again. With the public rows, {with_rows} also checks which rows were asked in any "
            "other order, and trains the student again."
        ),
        (
            "Accuracies, the name of the deployment, the date and the version of pacpredict are not checked by either: "
            "no ledger knows them, and they are the word of whoever made this card."
        ),
    ]


def markdown(card: Mapping[str, Any]) -> str:
    """Return the card in Markdown."""
    lines = [f"# {title_of(card)}", ""]
    for part in parts_of(card):
        lines += [f"## {part.title}", ""]
        for item in part.content:
            lines += [*_lines(item), ""]
    return "\n".join(lines).rstrip() + "\n"


def _lines(item: "str | Table | list[str]") -> Sequence[str]:
    if isinstance(item, str):
        return [item]
    if isinstance(item, list):
        return [f"- {point}" for point in item]
    rule = ["---"] + ["---:"] * (len(item.columns) - 1)
    cells = [item.columns, rule, *item.rows]
    return [f"| {' | '.join(map(_cell, row))} |" for row in cells]


def _cell(text: str) -> str:
    return " ".join(text.replace("|", "\\|").splitlines())
