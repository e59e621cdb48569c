"""Extractors see one value at a time, and what they return is checked."""

import pickle
import sys
from importlib import metadata

import numpy as np
import onnx
import pytest
from onnx import TensorProto, helper, numpy_helper
from whole_values import letters, mean_colours, refused, texts

from pacpredict.exceptions import InvalidFeatures, InvalidInput, InvalidModel
from pacpredict.features.compute import Concatenation
from pacpredict.features.extractor import Extractor
from pacpredict.features.named import extractor_from_config, extractors_of
from pacpredict.features.onnx_images import OnnxImages
from pacpredict.features.own import OwnExtractor
from pacpredict.rows.images import Images
from pacpredict.rows.texts import TextSchema

PIXELS = np.random.default_rng(0).integers(0, 256, (5, 8, 8, 3), dtype=np.uint8)


def averages(path, shape, kind=TensorProto.FLOAT):
    """Write a model that averages each channel: of (n, 3, h, w) or (n, h, w, 3)."""
    axes = [2, 3] if shape[1] == 3 else [1, 2]
    nodes = [helper.make_node("Cast", ["x"], ["f"], to=TensorProto.FLOAT)]
    nodes += [helper.make_node("ReduceMean", ["f"], ["y"], axes=axes, keepdims=0)]
    x = helper.make_tensor_value_info("x", kind, shape)
    y = helper.make_tensor_value_info("y", TensorProto.FLOAT, None)
    model = helper.make_model(
        helper.make_graph(nodes, "averages", [x], [y]), opset_imports=[helper.make_opsetid("", 17)]
    )
    model.ir_version = 8
    onnx.save(model, path)
    return path


@pytest.mark.parametrize("shape", [("n", 3, "h", "w"), ("n", "h", "w", 3), (1, 3, 8, 8)])
def test_a_model_in_onnx(tmp_path, shape):
    """Channels first or last, pixels as floats from 0 to 1: the model's first output is the features."""
    extract = OnnxImages(averages(tmp_path / "model.onnx", shape))
    found = np.array([extract(image) for image in PIXELS])
    assert np.allclose(found, PIXELS.mean(axis=(1, 2)) / 255, atol=1e-6)


def test_settings_of_a_model(tmp_path):
    """Mean, scale, order of channels and bytes are as they are said to be; sizes that are declared are kept."""
    floats = averages(tmp_path / "floats.onnx", ("n", 3, "h", "w"))
    bgr = OnnxImages(floats, mean=(1.0, 2.0, 3.0), scale=(2.0, 4.0, 8.0), is_bgr=True)
    expected = (PIXELS[0].mean(axis=(0, 1))[::-1] - [1, 2, 3]) / [2, 4, 8]
    assert np.allclose(bgr(PIXELS[0]), expected, atol=1e-5)
    raw = OnnxImages(averages(tmp_path / "bytes.onnx", ("n", 3, "h", "w"), TensorProto.UINT8))
    assert np.allclose(raw(PIXELS[0]), PIXELS[0].mean(axis=(0, 1)), atol=1e-4)
    fixed = OnnxImages(averages(tmp_path / "fixed.onnx", ("n", 3, 16, 12)))
    flat = np.full((8, 8, 3), 100, np.uint8)  # scaling leaves one colour as it is
    assert np.allclose(fixed(flat), 100 / 255, atol=1e-6)


def test_wrong_models(tmp_path):
    """A missing file, something that is no model, and a model of something else are named."""
    assert "there is no model" in str(refused(OnnxImages, tmp_path / "absent.onnx"))
    (tmp_path / "text.onnx").write_bytes(b"not a model")
    with pytest.raises(InvalidModel, match=r"text\.onnx is not a model that ONNX Runtime can run"):
        OnnxImages(tmp_path / "text.onnx")(PIXELS[0])
    averages(tmp_path / "other.onnx", ("n", 4, "h", "w"))
    with pytest.raises(InvalidModel, match="takes"):
        OnnxImages(tmp_path / "other.onnx")(PIXELS[0])


def test_a_model_in_several_files_is_refused(tmp_path, monkeypatch):
    """What an artifact keeps and a cache goes by is one file: weights beside it could change, or stay behind."""
    weights = numpy_helper.from_array(np.ones((192, 4), np.float32), "w")
    nodes = [helper.make_node("Flatten", ["x"], ["f"]), helper.make_node("MatMul", ["f", "w"], ["y"])]
    x = helper.make_tensor_value_info("x", TensorProto.FLOAT, ("n", 3, 8, 8))
    y = helper.make_tensor_value_info("y", TensorProto.FLOAT, None)
    model = helper.make_model(
        helper.make_graph(nodes, "product", [x], [y], [weights]), opset_imports=[helper.make_opsetid("", 17)]
    )
    model.ir_version = 8
    onnx.save(model, tmp_path / "one.onnx")
    onnx.save(
        model, tmp_path / "two.onnx", save_as_external_data=True, location="weights.bin", size_threshold=0
    )
    monkeypatch.chdir(tmp_path)
    assert OnnxImages("one.onnx")(PIXELS[0]).shape == (4,)
    with pytest.raises(InvalidModel, match=r"two\.onnx .*one file"):
        OnnxImages("two.onnx")(PIXELS[0])


@pytest.mark.parametrize(
    ("returned", "said"),
    [
        (np.array([1.0, np.nan]), "not a finite number"),
        (np.array([1.0, -np.inf]), "not a finite number"),
        (np.array([1.0, 1e300]), "not a finite number"),
        (np.zeros(0), "one vector"),
        (np.zeros((2, 3)), "one vector"),
        (np.zeros((1, 2, 3)), "one vector"),
        ("text", "failed"),
        ([[1], [2, 3]], "failed"),
        (None, "failed|not a finite number"),
    ],
)
def test_what_an_extractor_returns_is_checked(returned, said):
    """NaN, infinities, nothing, and more than one vector are refused with the row."""
    extract = OwnExtractor(lambda _: returned)
    with pytest.raises(InvalidFeatures, match=rf"row 3 \(from 0\).*({said})"):
        extract("text", 3)


def test_a_width_that_changes_is_refused():
    """An extractor that returns another number of features for another row is named, with the row."""
    compute = Concatenation((OwnExtractor(lambda text: np.zeros(len(text))),))
    rows = TextSchema().rows(["four", "five", "seven"])
    with pytest.raises(InvalidFeatures, match=r"row 2 \(from 0\).* returned 5 features, and 4 before"):
        compute([b"a", b"b", b"c"], rows)


@pytest.mark.parametrize(
    "functions",
    [
        [lambda text: np.ones(4 if len(text) == 4 else 3)],
        [lambda text: np.ones(4 if len(text) == 4 else 1)],  # NumPy would repeat it
        [lambda text: np.ones(4 if len(text) == 4 else 5), lambda text: np.ones(5 if len(text) == 4 else 4)],
    ],
    ids=["3", "1", "together as many"],
)
def test_a_width_that_changes_later_is_refused(functions):
    """Features are computed some hundred rows at a time; what they must be like is what the first was like."""
    compute = Concatenation(tuple(map(OwnExtractor, functions)))
    given = [f"{i:04d}" if i < 256 else f"{i:05d}" for i in range(512)]
    rows = TextSchema().rows(given)
    with pytest.raises(InvalidFeatures, match=r"row 256 \(from 0\).* returned . features, and 4 before"):
        compute(TextSchema().digests(rows), rows)


def test_features_do_not_depend_on_the_batch():
    """Rows alone, together, in another order and on several threads have the same features."""
    schema, rows = TextSchema(), TextSchema().rows(texts(40)[0])
    digests = schema.digests(rows)
    compute = Concatenation((OwnExtractor(letters),))
    whole = compute(digests, rows)
    alone = [compute(digests[i : i + 1], rows.take([i])) for i in range(len(rows))]
    assert np.array_equal(np.concatenate(alone), whole)
    assert np.array_equal(compute(digests[::-1], rows.take(np.arange(40)[::-1]))[::-1], whole)
    assert np.array_equal(Concatenation((OwnExtractor(letters),), n_threads=3)(digests, rows), whole)


def test_concatenations():
    """Several extractors stand side by side; they must take the same kind of rows."""
    both = Concatenation(extractors_of([mean_colours, lambda image: image.max(axis=(0, 1))]))
    found = both([b"a"], Images(PIXELS[:1]))
    assert found.shape == (1, 3 + 8 + 3)
    assert np.array_equal(found[0, -3:], PIXELS[0].max(axis=(0, 1)))

    class Texts(OwnExtractor):
        takes = ("text",)

    class Pictures(OwnExtractor):
        takes = ("image",)

    with pytest.raises(InvalidInput, match="do not take the same kind"):
        Concatenation((Texts(letters), Pictures(mean_colours)))


def test_an_extractor_goes_to_another_process(tmp_path):
    """What was opened is left behind and opened again."""
    extract = OnnxImages(averages(tmp_path / "model.onnx", ("n", 3, "h", "w")))
    before = extract(PIXELS[0])
    again = pickle.loads(pickle.dumps(extract))
    assert np.array_equal(again(PIXELS[0]), before)


def test_extractors_are_restored(tmp_path):
    """What an artifact keeps of an extractor, its config and files, makes the same features."""
    (tmp_path / "0").mkdir()
    path = averages(tmp_path / "0" / "model.onnx", ("n", 3, "h", "w"))
    extract = OnnxImages(path, 16, (1.0, 1.0, 1.0), (2.0, 2.0, 2.0), name="mine")
    again = extractor_from_config(extract.config(), tmp_path / "0")
    assert again.identity == extract.identity
    assert np.array_equal(again(PIXELS[0]), extract(PIXELS[0]))
    for damaged in ({"kind": "onnx-images"}, {"kind": "other"}, {}):
        with pytest.raises(InvalidModel):
            extractor_from_config(damaged, tmp_path)


def test_identity_follows_weights_and_settings(tmp_path):
    """Another file or another setting is another extractor, and its features are cached apart."""
    one = averages(tmp_path / "one.onnx", ("n", 3, "h", "w"))
    other = averages(tmp_path / "other.onnx", ("n", "h", "w", 3))
    identities = {OnnxImages(one).identity, OnnxImages(other).identity, OnnxImages(one, 16).identity}
    assert len(identities) == 3
    assert OwnExtractor(letters).identity is None


@pytest.mark.parametrize("library", ["onnxruntime", "pillow", "numpy"])
def test_identity_follows_the_libraries(tmp_path, monkeypatch, library):
    """Another version may round otherwise: what it computes is not found among what the one before has kept."""
    path, real = averages(tmp_path / "model.onnx", ("n", 3, "h", "w")), metadata.version
    before = OnnxImages(path).identity
    assert OnnxImages(path).identity == before
    monkeypatch.setattr(metadata, "version", lambda name: "0.0" if name == library else real(name))
    assert OnnxImages(path).identity != before


def test_a_function_of_a_notebook_cannot_be_stored(monkeypatch):
    """In another process `__main__` is another program: it would have no such function, or another of this name."""

    def brightness(image):
        return image.mean(axis=(0, 1))

    brightness.__module__, brightness.__qualname__ = "__main__", "brightness"
    monkeypatch.setattr(sys.modules["__main__"], "brightness", brightness, raising=False)
    with pytest.raises(InvalidModel, match="none of a notebook"):
        OwnExtractor(brightness).files()


def test_a_function_is_found_again_by_its_name():
    """A function of a module is stored by name and imported when it is needed; others cannot be stored."""
    stored = OwnExtractor(letters).config()
    assert stored == {"kind": "function", "function": "whole_values:letters"}
    again = OwnExtractor.from_config(stored, None)
    assert np.array_equal(again("abc"), letters("abc"))
    assert OwnExtractor(letters).files() == {}
    for function in (lambda _: 1, np.array([1.0]).dot):
        with pytest.raises(InvalidModel, match="finds the function"):
            OwnExtractor(function).files()
    gone = OwnExtractor.from_config({"function": "whole_values:gone"}, None)  # nothing is imported as yet
    with pytest.raises(InvalidModel, match="cannot be imported"):
        gone("abc")


@pytest.mark.parametrize(
    "given", ["", "lite9", "lite2@", "lite2@0", "lite2@x", "potion@5", "lite2+", 7, [], None]
)
def test_names_that_there_are_not(given, monkeypatch, tmp_path):
    """A wrong name is refused, with those that there are; nothing is fetched for it."""
    monkeypatch.setenv("PACPREDICT_EXTRACTORS", str(tmp_path))
    assert isinstance(refused(extractors_of, given), InvalidInput)


def test_every_extractor_says_what_it_takes():
    """Kinds that configs name are different, and each takes images or texts."""
    kinds = Extractor.__subclasses__()
    assert len({kind.kind for kind in kinds}) >= 4
    assert all(set(kind.takes) <= {"image", "text"} and kind.takes for kind in kinds)
