"""A student as files that its own library reads: no reader needs this package."""

import hashlib
import re
import tempfile
from importlib.resources import files
from pathlib import Path
from typing import Any

import numpy as np

from pacpredict.distill.student import Student
from pacpredict.exceptions import InvalidInput
from pacpredict.files import as_json
from pacpredict.learners.anything import EstimatorLearner
from pacpredict.learners.heads.learner import Heads
from pacpredict.learners.learner import Learner
from pacpredict.learners.torch.learner import BertLearner, WideResNetLearner
from pacpredict.learners.xgboost import XGBoostLearner
from pacpredict.rows.kind import RowKind
from pacpredict.tables.schema import Schema
from pacpredict.tables.values import codes_by_column

ABOUT, PROGRAM, LABELS = "student.json", "predict.py", "labels.csv"

# What the files of a student can be called. None of them is one that Python would import in place of a library.
_NAMES = re.compile(
    r"student\.json|predict\.py|labels\.csv|model\.(ubj|skops|npz|pt2)|model/[a-z_]+\.(json|safetensors|txt)"
    r"|extractors/[0-9]+/[a-z]+\.(onnx|json|safetensors)"
)
# SHA-256 of programs that were written before the present ones: a student that has one is no less true.
_EARLIER_PROGRAMS: dict[RowKind, frozenset[str]] = {
    "table": frozenset(
        {
            "26eee616ab072c82a5e31c72a252c7f0bb11292968dc644fd6e7b991cec73160",
            "6fef4a1c60979245353a67aeff2b5bc6cc44b1c2c81d6eda74885dab74691c8d",
            "5e4d800df91bb60e21afc5696ebe34cb4cdc6e39371bbb44ecaec172f9ed914b",
        }
    ),
    "image": frozenset(
        {
            "0979c531034772e24861d17f6311f9760346b847ca2bfa0d1695ba466004abb9",
            "d38dbcfd5435403bffb8e9230645e922026decc9741a03051e6310e05271f4c6",
        }
    ),
    "text": frozenset(
        {
            "b83eae991f8c6e404dd919a52b357882e57f53cd1c7c86fa9cefa0d2df0330cc",
            "53dfdbb05b2f39ed5e675cc6b6e152c12e4f0de2ee31ec4810ecb02e05f6b8d5",
            "5b8aee7fbc91d216f16eb8ca2c6a8b302e1c629077ff268e56cf02501f1e956c",
        }
    ),
}

# Files by their names below the folder of a student.
Files = dict[str, bytes]


def check_format(learner: Learner) -> None:
    """Refuse a learner whose models no other program could read, before anything is paid for."""
    known = XGBoostLearner, EstimatorLearner, WideResNetLearner, BertLearner, Heads
    if not isinstance(learner, known):
        raise InvalidInput(f"a student by {learner.name} has no format that is read without pacpredict")
    if isinstance(learner, Heads) and learner.needs_trust:
        raise InvalidInput(
            "a student cannot be published with features of a function of your own, which no file holds: write it as a "
            "model in ONNX"
        )


def files_of(student: Student) -> Files:
    """Return the model, what must be known to use it, and a program that does."""
    model = _model_files(student)
    about = {
        "format": _format(student.learner),
        "model": "model" if isinstance(student.learner, BertLearner) else next(iter(model)),
        "classes": [_plain(student.classes.values[i]) for i in student.own],
        **_inputs(student),
    }
    return {**model, ABOUT: as_json(about), PROGRAM: _program(student.schema.kind)}


def is_file_name(name: str) -> bool:
    """Tell whether a student can have a file of this name."""
    return _NAMES.fullmatch(name) is not None


def is_program(kind: RowKind, data: bytes) -> bool:
    """Tell whether a program is one that this package writes, or wrote, for students of a kind of rows."""
    return data == _program(kind) or hashlib.sha256(data).hexdigest() in _EARLIER_PROGRAMS[kind]


def _program(kind: RowKind) -> bytes:
    return (files("pacpredict.distill.snippets") / f"{kind}.py").read_bytes()


def _format(learner: Learner) -> str:
    if isinstance(learner, EstimatorLearner):
        return "skops"
    names = {WideResNetLearner: "torch-export", BertLearner: "transformers"}
    return next((name for kind, name in names.items() if isinstance(learner, kind)), learner.name)


def _model_files(student: Student) -> Files:
    learner = student.learner
    if isinstance(learner, WideResNetLearner):
        return {"model.pt2": _exported_network(student, learner)}
    if isinstance(learner, BertLearner):
        return _bert_folder(student, learner)
    extractors = {f"extractors/{name}": path.read_bytes() for name, path in learner.files().items()}
    return {f"model.{learner.suffix}": learner.dump(student.model), **extractors}


def _inputs(student: Student) -> dict[str, Any]:
    schema, learner = student.schema, student.learner
    if isinstance(schema, Schema):
        columns = schema.to_json()["columns"]
        codes = codes_by_column(schema.missing, (column["name"] for column in columns))
        described: dict[str, Any] = {
            "columns": [{**column, "missing": codes[column["name"]]} for column in columns],
            "feature_categories": list(schema.feature_categories),
        }
    else:
        described = schema.to_json()
    if isinstance(learner, Heads):
        described["features"] = learner.config()["params"]["features"]
    return described


def _exported_network(student: Student, learner: WideResNetLearner) -> bytes:
    """Write a network as a graph, which needs no class of ours to be loaded."""
    import torch  # noqa: PLC0415  # takes seconds

    from pacpredict.learners.torch import weights  # noqa: PLC0415
    from pacpredict.learners.torch.augment import normalise  # noqa: PLC0415
    from pacpredict.learners.torch.wide_resnet import WideResNet  # noqa: PLC0415
    from pacpredict.rows.images import ImageSchema  # noqa: PLC0415

    settings, schema = learner.settings, student.schema
    if not isinstance(schema, ImageSchema):
        raise InvalidInput("networks of images are trained on images")
    network = WideResNet(settings.depth, settings.width, len(student.own))
    network.load_state_dict(weights.from_bytes(student.model).tensors)
    example = normalise(np.zeros((2, schema.height, schema.width, 3), np.uint8)).contiguous()
    any_number = torch.export.Dim("n")
    graph = torch.export.export(network.eval(), (example,), dynamic_shapes=({0: any_number},))
    for node in graph.graph.nodes:
        node.meta.pop("stack_trace", None)  # which names files of this machine
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "model.pt2"
        torch.export.save(graph, path)
        return path.read_bytes()


def _bert_folder(student: Student, learner: BertLearner) -> Files:
    """Write a BERT as transformers does, with its tokenizer."""
    from transformers import BertTokenizerFast  # noqa: PLC0415  # takes seconds

    from pacpredict.learners.torch.bert import Berts, stored_pieces  # noqa: PLC0415
    from pacpredict.learners.torch.weights import from_bytes  # noqa: PLC0415

    stored = from_bytes(student.model).tensors
    form, parameters = Berts(learner.settings).split(stored)
    network = Berts(learner.settings).skeleton(form.shape).to_empty(device="cpu")
    network.load_state_dict(parameters)
    with tempfile.TemporaryDirectory() as folder:
        home, vocabulary = Path(folder) / "model", Path(folder) / "vocab.txt"
        network.model.save_pretrained(home)
        vocabulary.write_text("\n".join(stored_pieces(stored)) + "\n", "utf-8")
        tokenizer = BertTokenizerFast(str(vocabulary), model_max_length=learner.settings.tokens)
        tokenizer.save_pretrained(home)
        return {f"model/{path.name}": path.read_bytes() for path in sorted(home.iterdir())}


def _plain(label: Any) -> Any:
    return label if isinstance(label, bool | int | float | str) else str(label)
