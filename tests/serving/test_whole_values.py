"""Images and texts over HTTP: every form of one value is the same query, and what cannot be used costs nothing."""

import base64
import gc
import re
import threading
import time
from concurrent.futures import ThreadPoolExecutor

import httpx
import numpy as np
import pytest
from live_server import NAME, LiveServer, curator_of
from records import recipe
from tritonclient import http as triton
from whole_values import SIDE, image_pool, images, letters, png, small_heads, text_pool, texts

from pacpredict.serving.limits import Limits
from pacpredict.serving.page.form import render_form
from pacpredict.training.fit import fit
from pacpredict.training.pool import Pool

PIXELS, TEXTS = images(8, seed=5)[0], texts(8, seed=5)[0]


@pytest.fixture(scope="module")
def image_server():
    with LiveServer(curator_of(fit(image_pool(), small_heads(), recipe(n_models=8), n_jobs=1))) as server:
        yield server


@pytest.fixture(scope="module")
def text_server():
    with LiveServer(
        curator_of(fit(text_pool(), small_heads(letters), recipe(n_models=8), n_jobs=1))
    ) as server:
        yield server


def encoded(pixels):
    return base64.b64encode(png(pixels)).decode()


def tensor(shape, datatype, data, name="image"):
    return [{"name": name, "shape": shape, "datatype": datatype, "data": data}]


def labels(reply):
    assert reply.status_code == 200, reply.text
    content = reply.json()
    return content["predictions"] if "predictions" in content else content["outputs"][0]["data"]


IMAGE_FORMS = {
    "numbers, nested": lambda p: {"inputs": tensor([1, SIDE, SIDE, 3], "UINT8", p[None].tolist())},
    "numbers, flat": lambda p: {"inputs": tensor([1, SIDE, SIDE, 3], "UINT8", p.ravel().tolist())},
    "floats": lambda p: {"inputs": tensor([1, SIDE, SIDE, 3], "FP32", p.ravel().tolist(), "any name")},
    "base64": lambda p: {"inputs": tensor([1], "BYTES", [encoded(p)])},
    "base64, [n, 1]": lambda p: {"inputs": tensor([1, 1], "BYTES", [encoded(p)])},
}
IMAGE_BODIES = {
    "instances": lambda p: {"instances": [encoded(p)]},
    "instances of lists": lambda p: {"instances": [[encoded(p)]]},
    "instances of pixels": lambda p: {"instances": p[None].tolist()},
    "records": lambda p: {"dataframe_records": [{"image": encoded(p)}]},
    "records with further columns": lambda p: {
        "dataframe_records": [{"patient": "P-7", "image": encoded(p), "age": 7}]
    },
    "lines of base64": lambda p: {"instances": [base64.encodebytes(png(p)).decode()]},
    "split": lambda p: {"dataframe_split": {"columns": ["image"], "data": [[encoded(p)]]}},
    "columns": lambda p: {"inputs": {"image": [encoded(p)]}},
}


def test_every_form_of_an_image_is_the_same_query(image_server):
    """By whichever protocol and form it comes, it is answered once, and the stored answer is sent again."""
    first = labels(image_server.infer(IMAGE_FORMS["numbers, nested"](PIXELS[0])["inputs"]))
    released = image_server.n_released
    for form in IMAGE_FORMS.values():
        assert labels(image_server.infer(form(PIXELS[0])["inputs"])) == first
    for form in IMAGE_BODIES.values():
        assert labels(image_server.http.post("/invocations", json=form(PIXELS[0]))) == first
    assert image_server.n_released == released


def test_images_by_a_real_client(image_server):
    """tritonclient sends numbers and files in binary; both are the query that JSON asked."""
    expected = labels(image_server.infer(tensor([8, SIDE, SIDE, 3], "UINT8", PIXELS.tolist())))
    released = image_server.n_released
    client = triton.InferenceServerClient(image_server.url.removeprefix("http://"))
    (about,) = client.get_model_metadata(NAME)["inputs"]
    assert (about["name"], about["datatype"], about["shape"]) == ("image", "UINT8", [-1, SIDE, SIDE, 3])
    numbers = triton.InferInput("image", PIXELS.shape, "UINT8")
    numbers.set_data_from_numpy(PIXELS)
    files = triton.InferInput("image", [8], "BYTES")
    files.set_data_from_numpy(np.array([png(image) for image in PIXELS], dtype=object))
    for given in (numbers, files):
        answer = client.infer(NAME, [given]).as_numpy("label")
        assert [label.decode() for label in answer] == expected
    client.close()
    assert image_server.n_released == released


GOOD = encoded(PIXELS[1])
BAD_IMAGES = {
    "corrupt": (tensor([2], "BYTES", [GOOD, encoded(PIXELS[2])[:60]]), r"row 1 \(from 0\).*damaged"),
    "no base64": (tensor([2], "BYTES", [GOOD, "not base64!"]), r"row 1 \(from 0\).*base64"),
    "null": (tensor([2], "BYTES", [GOOD, None]), r"row 1 \(from 0\).*base64"),
    "wrong size": (
        tensor([2], "BYTES", [GOOD, encoded(np.zeros((5, 6, 3), np.uint8))]),
        r"row 1 \(from 0\).*5 x 6 pixels, expected 6 x 6",
    ),
    "wrong shape": (tensor([1, 5, 6, 3], "UINT8", [0] * 90), "5 x 6 pixels, expected 6 x 6"),
    "channels first": (tensor([1, 3, SIDE, SIDE], "UINT8", [0] * 108), "shape"),
    "five dimensions": (tensor([1, 1, SIDE, SIDE, 3], "UINT8", [0] * 108), "1 to 4 lengths"),
    "fractions": (tensor([1, SIDE, SIDE, 3], "FP32", [0.5] * 108), "whole numbers"),
    "a missing pixel": (tensor([1, SIDE, SIDE, 3], "UINT8", [None] + [0] * 107), "whole numbers"),
    "no image of many pixels": (tensor([0, 10**18, SIDE, 3], "UINT8", []), "holds no numbers"),
    "images of no pixels": (tensor([1, 0, 10**18, 3], "UINT8", []), "holds no numbers"),
    "too few": (tensor([2, SIDE, SIDE, 3], "UINT8", [0] * 108), "needs 216 values"),
    "ragged": (tensor([1, SIDE, SIDE, 3], "UINT8", [[[0] * 18] * 5]), "nested data"),
    "two tensors": (tensor([1], "BYTES", [GOOD]) * 2, "expected one input, got 2"),
    "a table of files": (tensor([1, 2], "BYTES", [GOOD, GOOD]), r"\[n\] or \[n, 1\]"),
}


@pytest.mark.parametrize("name", BAD_IMAGES)
def test_bad_images_are_refused_and_not_charged(image_server, name):
    """All rows or none: one that cannot be used refuses the request, with its row, and nothing is released."""
    inputs, said = BAD_IMAGES[name]
    before = image_server.n_released
    reply = image_server.infer(inputs)
    assert reply.status_code == 400
    assert re.search(said, reply.json()["error"]), reply.text
    assert image_server.n_released == before


def test_files_as_they_are_are_explained(image_server):
    """Whoever sends a file itself, or the URL of its content, is told how it comes; nothing is released."""
    before = image_server.n_released
    reply = image_server.http.post("/invocations", content=png(PIXELS[0]))
    assert reply.status_code == 400
    assert 'the file of an image, which comes in base64: {"instances": ["..."]}' in reply.json()["error"]
    url = f"data:image/png;base64,{encoded(PIXELS[0])}"
    reply = image_server.http.post("/invocations", json={"instances": [url]})
    assert reply.status_code == 400
    assert "as base64, without what stands before the comma" in reply.json()["error"]
    assert image_server.n_released == before


def test_small_files_of_large_images_are_counted_by_their_pixels():
    """A file of black takes a hundredth of its pixels: how many a request may hold is known before one is decoded."""
    fitted = fit(image_pool(), small_heads(), recipe(n_models=4), n_jobs=1)
    with LiveServer(curator_of(fitted), limits=Limits(pixel_bytes=3 * SIDE * SIDE * 3)) as server:
        four, three = ([encoded(image) for image in PIXELS[:n]] for n in (4, 3))
        forms = {
            "instances": four,
            "inputs": {"image": four},
            "dataframe_records": [{"image": one} for one in four],
        }
        replies = [server.http.post("/invocations", json={form: rows}) for form, rows in forms.items()]
        replies.append(server.infer(tensor([4], "BYTES", four)))
        for reply in replies:
            assert reply.status_code == 400
            assert "4 rows in one request are too many; send at most 3" in reply.json()["error"]
        assert server.n_released == 0
        assert len(labels(server.infer(tensor([3], "BYTES", three)))) == 3


@pytest.fixture(scope="module")
def scaling():
    """What answers images of any size, scaled to one."""
    pixels, colours = images()
    pool = Pool.of(pixels, colours, image_size=(4, 5))
    return fit(pool, small_heads(), recipe(n_models=4), n_jobs=1)


def test_files_that_are_scaled_are_counted_by_the_pixels_that_they_have_before(scaling, monkeypatch):
    """Scaled down they would be few: how many are decoded for one request is known, and limited, before one is."""
    black = [encoded(np.zeros((90, 100, 3), np.uint8))] * 4
    large = encoded(np.zeros((271, 100, 3), np.uint8))
    with LiveServer(curator_of(scaling), limits=Limits(pixel_bytes=3 * 90 * 100 * 3)) as server:
        with monkeypatch.context() as patched:
            patched.setattr("pacpredict.rows.images.read_pixels", None)  # or nobody could be answered
            replies = [
                server.http.post("/invocations", json={"instances": black}),
                server.http.post("/invocations", json={"inputs": {"image": black}}),
                server.http.post(
                    "/invocations", json={"dataframe_records": [{"image": one} for one in black]}
                ),
                server.infer(tensor([4], "BYTES", black)),
                server.http.post("/invocations", json={"instances": [large]}),
            ]
        for reply, n_bytes in zip(replies, ["108,000"] * 4 + ["81,300"], strict=True):
            assert reply.status_code == 400
            assert f"have {n_bytes} bytes of pixels, more than 81,000" in reply.json()["error"]
        assert server.n_released == 0
        assert len(labels(server.http.post("/invocations", json={"instances": black[:3]}))) == 3
        assert server.n_released == 1  # they are one picture


def test_an_image_of_the_models_size_is_within_every_limit(scaling):
    """As where nothing is scaled, a limit below one image lets one through."""
    with LiveServer(curator_of(scaling), limits=Limits(pixel_bytes=1)) as server:
        small, large = (encoded(np.zeros((4, width, 3), np.uint8)) for width in (5, 6))
        assert len(labels(server.http.post("/invocations", json={"instances": [small]}))) == 1
        assert server.http.post("/invocations", json={"instances": [large]}).status_code == 400


@pytest.mark.parametrize(
    ("inputs", "said"),
    [
        (tensor([6, 6, 3], "UINT8", [0] * 108), "got the array of one"),
        (tensor([1, 1, 16_385], "UINT8", [0] * 16_385), "1 x 16385 pixels; what is scaled has sides"),
        (tensor([2], "BYTES", [encoded(PIXELS[1]), encoded(PIXELS[2])[:60]]), r"row 1 \(from 0\).*damaged"),
        (tensor([1, 3, 6, 6], "UINT8", [0] * 108), "puts the channels last"),
    ],
)
def test_what_cannot_be_scaled_is_refused_and_not_charged(scaling, inputs, said):
    """One image for many, a side beyond the limit, damage and channels first: named, and nothing is released."""
    with LiveServer(curator_of(scaling)) as server:
        reply = server.infer(inputs)
        assert reply.status_code == 400
        assert re.search(said, reply.json()["error"]), reply.text
        assert server.n_released == 0


def test_clients_are_told_that_images_are_scaled(scaling):
    """The description and the form of the page say that any size is taken, and to which it is brought."""
    with LiveServer(curator_of(scaling)) as server:
        described = server.http.get("/openapi.json").json()["components"]["schemas"]["Record"]["properties"]
        assert described["image"]["description"] == "the file of an image of any size, scaled to 4 x 5 pixels"
        (about,) = server.http.get(f"/v2/models/{NAME}").json()["inputs"]
        assert about["shape"] == [-1, -1, -1, 3]
    budget = scaling.recipe.budget
    form = str(render_form(scaling.ensemble.schema, budget, 0))
    assert "image of any size, scaled to 4 x 5 pixels: a PNG, JPEG, WebP or BMP file" in form


def test_small_requests_of_large_images_are_counted_together(monkeypatch):
    """Who has images decoded while those of others fill the memory is told to come again, and then is answered."""
    curator = curator_of(fit(image_pool(), small_heads(), recipe(n_models=4), n_jobs=1))
    real, is_voting, may_go_on = curator.requests, threading.Event(), threading.Event()

    def vote(*given):
        is_voting.set()
        assert may_go_on.wait(30)
        return real(*given)

    monkeypatch.setattr(curator, "requests", vote)
    limits = Limits(pixel_bytes=3 * SIDE * SIDE * 3, held_bodies=1)
    three, one = ({"instances": [encoded(image) for image in some]} for some in (PIXELS[:3], PIXELS[3:4]))
    with LiveServer(curator, limits=limits) as server, ThreadPoolExecutor(1) as pool:
        first = pool.submit(server.http.post, "/invocations", json=three)
        assert is_voting.wait(30)
        refused = server.http.post("/invocations", json=one)
        may_go_on.set()
        assert (refused.status_code, refused.json()["code"]) == (503, "busy")
        assert len(labels(first.result())) == 3
        wait_until_nothing_is_held(server)
        assert len(labels(server.http.post("/invocations", json=one))) == 1


def test_images_of_requests_that_fail_are_forgotten(monkeypatch):
    """Images of a request that fails when they are decoded already go with the reply, without a search for garbage."""
    curator = curator_of(fit(image_pool(), small_heads(), recipe(n_models=4), n_jobs=1))

    def fail(*_):
        raise RuntimeError

    with LiveServer(curator) as server:
        monkeypatch.setattr(curator, "requests", fail)
        gc.disable()
        try:
            assert (
                server.http.post("/invocations", json={"instances": [encoded(PIXELS[0])]}).status_code == 500
            )
            wait_until_nothing_is_held(server)
        finally:
            gc.enable()


def wait_until_nothing_is_held(server):
    deadline = time.monotonic() + 10
    while server.service._pixels._n_held:
        assert time.monotonic() < deadline
        time.sleep(0.005)


def test_csv_without_a_line_of_names(text_server):
    """Texts one below the other are refused: the first would be taken for a name, and every label be of the next."""
    released = text_server.n_released
    reply = text_server.http.post(
        "/invocations", content=b"a lovely film\ndull and loud\n", headers={"content-type": "text/csv"}
    )
    assert reply.status_code == 400
    assert "the only column is called 'a lovely film'" in reply.json()["error"]
    assert text_server.n_released == released


def test_every_form_of_a_text_is_the_same_query(text_server):
    """BYTES in JSON and binary, MLflow's forms and CSV, with blanks around and other line ends."""
    text = TEXTS[0]
    first = labels(text_server.infer(tensor([1], "BYTES", [text], "text")))
    released = text_server.n_released
    for form in (
        {"instances": [f" {text}\n"]},
        {"instances": [[text]]},
        {"instances": [{"text": text}]},
        {"dataframe_records": [{"text": text}]},
        {"dataframe_split": {"columns": ["text"], "data": [[text]]}},
        {"inputs": {"text": [text]}},
    ):
        assert labels(text_server.http.post("/invocations", json=form)) == first
    csv = httpx.Request("POST", f"{text_server.url}/invocations", content=f"text\n{text}\n".encode())
    csv.headers["content-type"] = "text/csv"
    assert labels(text_server.http.send(csv)) == first
    client = triton.InferenceServerClient(text_server.url.removeprefix("http://"))
    given = triton.InferInput("text", [1, 1], "BYTES")
    given.set_data_from_numpy(np.array([[text.encode()]], dtype=object))
    assert [label.decode() for label in client.infer(NAME, [given]).as_numpy("label")] == first
    client.close()
    assert text_server.n_released == released


@pytest.mark.parametrize(
    ("inputs", "said"),
    [
        (tensor([2], "BYTES", ["good", " "], "text"), "row 1 (from 0): the text is empty"),
        (tensor([1], "BYTES", ["x" * 32_769], "text"), "more than the limit of 32,768"),
        (tensor([1], "BYTES", [None], "text"), "row 0 (from 0): the text is missing"),
        (tensor([1], "INT64", [5], "text"), "texts come as BYTES"),
        (tensor([1, 2], "BYTES", ["a", "b"], "text"), "texts come as BYTES"),
    ],
)
def test_bad_texts_are_refused_and_not_charged(text_server, inputs, said):
    """An empty text, one beyond the limit, a missing one and numbers: named, and nothing is released."""
    before = text_server.n_released
    reply = text_server.infer(inputs)
    assert reply.status_code == 400
    assert said in reply.json()["error"]
    assert text_server.n_released == before


@pytest.mark.parametrize(
    ("texts", "images", "said"),
    [
        ([None], None, r"row 0 \(from 0\): the text is missing"),
        (["good", None], None, r"row 1 \(from 0\): the text is missing"),
        ([[5]], None, r"row 0 \(from 0\): expected a text, got 5"),
        (None, [None], r"row 0 \(from 0\): expected an image"),
        (None, [GOOD, None], r"row 1 \(from 0\).*base64"),
        (None, [[5]], r"row 0 \(from 0\): expected an image"),
    ],
)
def test_rows_of_json_are_named_as_they_were_sent(text_server, image_server, texts, images, said):
    """What is no text or image is refused as what it is, not as the list in which it came."""
    server, rows = (text_server, texts) if images is None else (image_server, images)
    before = server.n_released
    reply = server.http.post("/invocations", json={"instances": rows})
    assert reply.status_code == 400
    assert re.search(said, reply.json()["error"]), reply.text
    assert server.n_released == before


@pytest.mark.parametrize("column", ["good", {"good": 0, "bad": 1}, 5, None, True], ids=str)
@pytest.mark.parametrize("form", ["inputs", "instances", "dataframe_records"])
def test_a_column_that_is_no_list_is_refused(text_server, image_server, form, column):
    """A text in place of a list is not taken for its letters, nor an object for its keys: beyond the limit of rows."""
    for server, name in ((text_server, "text"), (image_server, "image")):
        before = server.n_released
        reply = server.http.post("/invocations", json={form: {name: column}})
        assert reply.status_code == 400, reply.text
        assert f"column '{name}' must be a list" in reply.json()["error"]
        assert server.n_released == before


BAD_FEATURES = {
    "not a finite number": lambda text: letters(text) * np.nan,
    "were trained on": lambda text: letters(text)[:-1],
    "failed": lambda text: letters(text)[1000],
}


@pytest.mark.parametrize("said", BAD_FEATURES)
def test_bad_features_are_refused_and_not_charged(said):
    """An extractor that fails on a client's input refuses that request, and no other that shares its batch."""
    pool = text_pool()
    fitted = fit(pool, small_heads(letters), recipe(n_models=4), n_jobs=1)
    fitted.ensemble.learner = small_heads(
        lambda text: BAD_FEATURES[said](text) if text == "bad" else letters(text)
    )
    with LiveServer(curator_of(fitted)) as server:
        reply = server.infer(tensor([1], "BYTES", ["bad"], "text"))
        assert reply.status_code == 400
        assert said in reply.json()["error"]
        assert server.n_released == 0
        labels(server.infer(tensor([1], "BYTES", ["good"], "text")))
        assert server.n_released == 1
