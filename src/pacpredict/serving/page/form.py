"""A form for one query, from the schema.

Of the training data it shows what clients are told anyway: names and kinds of columns. Categories are listed only where
the owner has declared them. Every value may be left out.

A control has the name of its column in data-column, and no name: a form's properties can be hidden by what is called
like them, such as `id`, `action` or `submit`.
"""

from pacpredict.mechanism.budget import Budget
from pacpredict.pages.document import section
from pacpredict.pages.markup import Child, Markup, join, tag
from pacpredict.pages.words import power
from pacpredict.rows.folders import IMAGE_SUFFIXES
from pacpredict.rows.kind import AnySchema
from pacpredict.serving.page.budget import share_left
from pacpredict.tables.column import OTHER, Column
from pacpredict.tables.schema import Schema

# More fields than this nobody fills in; a line of CSV can be pasted.
_MOST_FIELDS = 40


def render_form(schema: AnySchema, budget: Budget, steps: int) -> Markup:
    return section(
        "Try a query",
        tag(
            "form",
            tag("div", _fields(schema), class_="fields"),
            _cost(budget, steps),
            tag("button", "Ask", type="submit"),
            tag("output", id="answer", aria_live="polite"),
            id="ask",
            class_="card",
        ),
    )


def _fields(schema: AnySchema) -> Child:
    if isinstance(schema, Schema):
        if len(schema.columns) > _MOST_FIELDS:
            return _csv_field(schema)
        return [_field(i, column) for i, column in enumerate(schema.columns)]
    name, hint = schema.to_json()["column"], next(iter(schema.summary()))
    control = tag("textarea", id="field-0", data_column=name, required=True)
    if schema.kind == "image":
        accepted = ",".join(IMAGE_SUFFIXES)
        control = tag("input", id="field-0", data_column=name, type="file", accept=accepted, required=True)
        hint += ": a PNG, JPEG, WebP or BMP file"
    label = tag("label", name, " ", tag("span", hint, class_="faint"), for_="field-0")
    return tag("div", label, control, class_="long")


def _cost(budget: Budget, steps: int) -> Markup:
    """Say what one row can cost at most, before it is asked."""
    if steps >= budget.total_steps:
        text: Child = "The budget is spent: this can cost nothing any more."
    else:
        most, left = tag("b", power(budget.step)), budget.total_steps - steps
        free = (
            " nothing if all models agree, or if it was asked before."
            if budget.charging == "adaptive"
            else (" nothing if it was asked before.")
        )
        text = join(
            "This costs at most ",
            most,
            f", one of {left:,} that are left (",
            share_left(left, budget.total_steps),
            ");",
            free,
        )
    return tag("p", text, data_live="cost")


def _field(number: int, column: Column) -> Markup:
    name, hint = f"field-{number}", f"{_hint(column)}, or nothing"
    label = tag("label", column.name, " ", tag("span", hint, class_="faint"), for_=name)
    return tag("div", label, _control(name, column), class_="long" if column.kind == "text" else None)


def _hint(column: Column) -> str:
    if column.kind == "date":
        return f"date, like {column.example_date}"
    if column.form:
        return f"{column.kind}, as {column.form}"
    if column.kind == "category":
        return "one of a list" if column.is_declared else "a category"
    return {"number": "number", "boolean": "yes or no", "text": "text"}[column.kind]


def _control(field: str, column: Column) -> Markup:
    name = column.name
    if column.kind == "text":
        return tag("textarea", id=field, data_column=name)
    if column.kind == "boolean":
        return _choice(field, name, {"true": "yes", "false": "no"})
    if column.kind == "category" and column.is_declared:
        return _choice(field, name, {text: text for text in map(str, (*column.categories, OTHER))})
    mode = "decimal" if column.kind == "number" and not column.form else None
    return tag("input", id=field, data_column=name, inputmode=mode, autocomplete="off")


def _choice(field: str, name: str, options: dict[str, str]) -> Markup:
    empty = tag("option", "", value="", label="nothing")
    chosen = [tag("option", text, value=value) for value, text in options.items()]
    return tag("select", empty, chosen, id=field, data_column=name)


def _csv_field(schema: Schema) -> Markup:
    hint = f"{len(schema.columns)} columns: a line of names, and a line of values below it"
    label = tag("label", "CSV ", tag("span", hint, class_="faint"), for_="csv")
    return tag("div", label, tag("textarea", id="csv", data_csv="", required=True), class_="long")
