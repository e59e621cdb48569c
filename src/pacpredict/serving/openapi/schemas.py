"""What bodies look like, as JSON Schema: queries by what this deployment takes, and all that is answered."""

from typing import Any

from pacpredict.promise import Promise
from pacpredict.rows.images import ImageSchema
from pacpredict.rows.kind import AnySchema
from pacpredict.rows.texts import TextSchema
from pacpredict.serving.inference_protocol import OUTPUT, VERSION
from pacpredict.serving.inputs import inputs_of
from pacpredict.serving.labels import Labels
from pacpredict.serving.limits import Limits
from pacpredict.tables.column import OTHER, Column
from pacpredict.tables.schema import Schema

Json = dict[str, Any]

_PLAIN = {"INT64": "integer", "FP64": "number", "BOOL": "boolean", "BYTES": "string"}
_CATEGORIES = ("string", "number", "boolean")  # in which categories may come
_COUNT: Json = {"type": "integer", "minimum": 0}
_NATS: Json = {"type": "number", "minimum": 0}
_RATE: Json = {"type": "number", "minimum": 0, "maximum": 1}


def schemas(model: str, schema: AnySchema, labels: Labels, limits: Limits) -> Json:
    """Return all components, by name."""
    label: Json = {"type": _PLAIN[labels.datatype]}
    return {
        "Record": _record(schema),
        "Row": _row(schema),
        "Scoring": _scoring(schema, limits),
        "Predictions": object_of({"predictions": _list(label), "parameters": reference("Releases")}),
        "Releases": _releases(),
        "Tensor": _tensor(schema),
        "Inference": _inference(),
        "Inferred": _inferred(model, labels),
        "Model": _model(),
        "Privacy": _privacy(),
        "Health": object_of({"live": {"type": "boolean"}, "ready": {"type": "boolean"}}),
        "Error": object_of({"error": {"type": "string"}, "code": {"type": "string"}})
        | {"description": "What went wrong"},
    }


def reference(name: str) -> Json:
    return {"$ref": f"#/components/schemas/{name}"}


def object_of(properties: Json, optional: Json | None = None) -> Json:
    return {"type": "object", "properties": {**properties, **(optional or {})}, "required": list(properties)}


def _list(items: Json, **limits: int) -> Json:
    return {"type": "array", "items": items, **limits}


def value_of(column: Column) -> Json:
    """Describe one value, which may be missing. Categories are listed only where the owner declared them."""
    described: Json
    if column.kind == "number" and column.form:
        described = {
            "type": ["number", "string"],
            "description": f"a number; as text, written as {column.form}",
        }
    elif column.kind == "number":
        described = {"type": "number"}
    elif column.kind == "boolean":
        described = {"type": "boolean"}
    elif column.kind == "category":
        known = ", ".join(map(str, column.categories)) if column.is_declared else "a category"
        described = {
            "type": list(_CATEGORIES),
            "description": f"{known}; any other value is taken as {OTHER!r}",
        }
    elif column.kind == "date" and not column.form:
        described = {"type": "string", "format": "date"}
    elif column.kind == "date":
        described = {"type": "string", "description": f"a date, as {column.form}"}
    else:
        described = {"type": "string"}
    return {"anyOf": [described, {"type": "null"}]}


def _values(schema: AnySchema) -> Json:
    """Describe what a query has, by name: the columns of a table, or one image or text."""
    if isinstance(schema, ImageSchema):
        file = {"type": "string", "contentEncoding": "base64"}
        return {schema.column: file | {"description": f"the file of an {next(iter(schema.summary()))}"}}
    if isinstance(schema, TextSchema):
        return {schema.column: {"type": "string", "minLength": 1, "maxLength": schema.longest}}
    if isinstance(schema, Schema):
        return {column.name: value_of(column) for column in schema.columns}
    raise TypeError(f"nobody has said how rows of kind {schema.kind!r} look")


def _record(schema: AnySchema) -> Json:
    return object_of(_values(schema)) | {
        "additionalProperties": False,
        "description": "A query, by names of columns",
    }


def _row(schema: AnySchema) -> Json:
    values = list(_values(schema).values())
    n = len(values)
    return {
        "type": "array",
        "prefixItems": values,
        "items": False,
        "minItems": n,
        "maxItems": n,
        "description": "A query, in the order of the columns",
    }


def _scoring(schema: AnySchema, limits: Limits) -> Json:
    rows = {"minItems": 1, "maxItems": limits.rows}
    forms = {
        "dataframe_records": _list(reference("Record"), **rows),
        "dataframe_split": object_of(
            {
                "columns": {"const": list(_values(schema))},
                "data": _list(reference("Row"), **rows),
            }
        ),
        "instances": {"anyOf": [_list(reference("Record"), **rows), _list(reference("Row"), **rows)]},
        "inputs": {"anyOf": [_list(reference("Record"), **rows), _list(reference("Row"), **rows)]},
    }
    params = object_of({}, {"id": {"type": "string", "maxLength": 1000}, "partial": {"type": "boolean"}})
    return {
        "description": "Exactly one of four forms; columns of dataframe_split may come in any order",
        "oneOf": [
            object_of({name: form}, {"params": params}) | {"additionalProperties": False}
            for name, form in forms.items()
        ],
    }


def _releases() -> Json:
    return object_of(
        {
            "sequence": _list({"type": "integer", "minimum": 1}) | {"description": "numbers in the history"},
            "charge_nats": _list(_NATS) | {"description": "what each was charged now; 0 for a repeated one"},
        },
        {"rows_asked": _COUNT, "rows_answered": _COUNT},
    )


def _tensor(schema: AnySchema) -> Json:
    inputs = inputs_of(schema)
    names = ", ".join(f"{each['name']} {each['datatype']}" for each in inputs.metadata())
    return object_of(
        {
            "name": {"type": "string", "description": f"One tensor for each column: {names}"},
            "shape": _list({"type": "integer", "minimum": 0}, minItems=1, maxItems=inputs.dimensions),
            "datatype": {"type": "string"},
        },
        {"data": _list({}), "parameters": {"type": "object"}},
    )


def _inference() -> Json:
    return object_of(
        {"inputs": _list(reference("Tensor"), minItems=1)},
        {
            "id": {"type": "string", "maxLength": 1000},
            "parameters": {"type": "object"},
            "outputs": _list({"type": "object"}),
        },
    )


def _inferred(model: str, labels: Labels) -> Json:
    output = object_of(
        {
            "name": {"const": OUTPUT},
            "datatype": {"const": labels.datatype},
            "shape": _list(_COUNT, minItems=1, maxItems=1),
            "data": _list({"type": _PLAIN[labels.datatype]}),
        }
    )
    return object_of(
        {
            "model_name": {"const": model},
            "model_version": {"const": VERSION},
            "parameters": reference("Releases"),
            "outputs": _list(output, minItems=1, maxItems=1),
        },
        {"id": {"type": "string"}},
    )


def _model() -> Json:
    text, tensor = (
        {"type": "string"},
        {"name": {"type": "string"}, "datatype": {"type": "string"}, "shape": _list({"type": "integer"})},
    )
    return object_of(
        {
            "name": text,
            "versions": _list(text),
            "platform": text,
            "inputs": _list(object_of(tensor)),
            "outputs": _list(object_of(tensor)),
        }
    )


def _privacy() -> Json:
    bound = object_of({"question": {"type": "string"}, "prior": _RATE, "success": _RATE})
    may_lack = {"type": ["number", "null"]}
    return object_of(
        {
            "queries": _COUNT,
            "contested": {"type": ["integer", "null"], "minimum": 0},
            "spent_nats": _NATS,
            "total_nats": _NATS,
            "step_budget_nats": _NATS,
            "bounds": {"type": "object", "additionalProperties": bound},
            "fpr": _RATE,
            "tpr": _RATE,
            "odds_limit": may_lack,
            "odds_delta": may_lack,
            "decoder": {"enum": ["argmax", "map", "sample"]},
            "votes": {"enum": ["plain", "leave-one-out", "leave-two-out"]},
            "noise": {"enum": ["least", "fair"]},
            "charging": {"enum": ["adaptive", "flat"]},
            "when_exhausted": {"enum": ["halt", "unanimous", "belief"]},
            "promise": object_of({name: {"type": "string"} for name in Promise._fields}),
            "explanations": _list({"type": "string"}),
        }
    )
