"""PrivateClassifier with images and texts."""

import numpy as np
import pandas as pd
import pytest
from sklearn.base import clone
from sklearn.model_selection import cross_val_score
from whole_values import images, letters, mean_colours, png, small_heads, texts

from pacpredict import PrivateClassifier, evaluate
from pacpredict.exceptions import InvalidInput, InvalidQuery, InvalidTable, UntrustedArtifact

FEW = {"n_models": 8, "n_jobs": 1, "random_state": 1, "step_budget": 2.0**-8, "total_budget": 4.0}


def classifier(features, **options):
    return PrivateClassifier(small_heads(features), **{**FEW, **options})


def test_images_in_any_form():
    """Arrays, lists of arrays and series are the same records, and every form of a query gets the same answer."""
    pixels, labels = images()
    fitted = classifier(mean_colours).fit(pixels, labels)
    again = classifier(mean_colours).fit(list(pixels), list(labels))
    rows = fitted.curator_.ensemble.schema.rows(pixels[:20])
    assert np.array_equal(fitted.curator_.ensemble.votes(rows), again.curator_.ensemble.votes(rows))
    first = fitted.predict(pixels[:20])
    assert np.array_equal(fitted.predict(list(pixels[:20])), first)
    assert fitted.guarantee().queries == 20
    assert set(fitted.classes_) == {"red", "green", "blue"}


def test_images_of_mixed_sizes(tmp_path):
    """With a size, pictures of any size are learned from and asked about, also after a save; without, none are."""
    pixels, labels = images()
    mixed = [image[: 3 + i % 4, : 3 + i % 3] for i, image in enumerate(pixels)]
    with pytest.raises(InvalidTable, match=r"images of 12 sizes .* \(image_size= in Python\)"):
        classifier(mean_colours).fit(mixed, labels)
    with pytest.raises(InvalidInput, match="is no size of images"):
        classifier(mean_colours, image_size=(0, 6)).fit(mixed, labels)
    fitted = clone(classifier(mean_colours, image_size=(6, 5))).fit(mixed, labels)
    first = fitted.predict(mixed[:20])
    assert np.array_equal(fitted.predict([png(image) for image in mixed[:20]]), first)
    assert fitted.guarantee().queries == 20
    fitted.save(tmp_path / "mixed.pac")
    later = PrivateClassifier.load(tmp_path / "mixed.pac", trust=True)
    assert later.image_size == (6, 5)
    assert np.array_equal(later.predict(mixed[:20]), first)
    assert later.guarantee().queries == 20


def test_what_mixed_sizes_would_be_worth():
    """`evaluate` takes the size that the classifier takes."""
    pixels, labels = images()
    mixed = [image[: 3 + i % 4] for i, image in enumerate(pixels)]
    how = {"n_models": 4, "folds": 2, "trials": 2, "n_jobs": 1}
    assert evaluate(mixed, labels, small_heads(mean_colours), image_size=6, **how).records == 120
    with pytest.raises(InvalidTable, match="images of 4 sizes"):
        evaluate(mixed, labels, small_heads(mean_colours), **how)


def test_texts_in_any_form():
    """Lists, arrays, series and a frame with one column."""
    given, labels = texts()
    fitted = PrivateClassifier("heads", params={"features": "tfidf"}, **FEW).fit(given, labels)
    first = fitted.predict(given[:15])
    for other in (np.array(given), pd.Series(given), pd.DataFrame({"text": given})):
        assert np.array_equal(fitted.predict(other[:15]), first)
    with pytest.raises(InvalidQuery, match=r"row 1 \(from 0\)"):
        fitted.predict(["good", ""])
    assert fitted.guarantee().queries == 15


def test_it_learns():
    """Private answers are right far more often than a guess, where the budget leaves the models' labels alone."""
    pixels, labels = images(400)
    fitted = classifier(mean_colours, step_budget=1.0, total_budget=100.0).fit(pixels[:300], labels[:300])
    assert (fitted.predict(pixels[300:]) == labels[300:]).mean() > 0.75


def test_scikit_learns_tools():
    """It is cloned and cross-validated like other classifiers."""
    given, labels = texts(90)
    one = classifier("tfidf", n_models=4)
    assert clone(one).get_params()["estimator"].features == "tfidf"
    assert len(cross_val_score(one, np.array(given), labels, cv=3)) == 3


def test_records_that_count_more():
    """Weights of records reach the heads: a record of weight 0 might as well be absent."""
    pixels, labels = images()
    weights = np.where(np.arange(120) < 100, 1.0, 0.0)
    schema = classifier(mean_colours).fit(pixels, labels).curator_.ensemble.schema
    rows = schema.rows(pixels)
    votes = [
        fitted.curator_.ensemble.votes(rows)
        for fitted in (
            classifier(mean_colours).fit(pixels, labels, sample_weight=weights),
            classifier(mean_colours).fit(pixels[:100], labels[:100]),
            classifier(mean_colours).fit(pixels, labels),
        )
    ]
    assert np.array_equal(votes[0], votes[1])
    assert not np.array_equal(votes[0], votes[2])


def test_save_and_load(tmp_path):
    """An artifact goes on where the classifier was; a function of one's own needs trust."""
    given, labels = texts()
    fitted = classifier(letters).fit(given, labels)
    first = fitted.predict(given[:10])
    fitted.save(tmp_path / "texts.pac")
    with pytest.raises(UntrustedArtifact):
        PrivateClassifier.load(tmp_path / "texts.pac")
    later = PrivateClassifier.load(tmp_path / "texts.pac", trust=True)
    assert np.array_equal(later.predict(given[:10]), first)
    assert later.guarantee().queries == 10
    assert later.estimator.takes == ("image", "text")
