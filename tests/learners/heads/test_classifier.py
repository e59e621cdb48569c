"""PrivateClassifier with images and texts."""

import numpy as np
import pandas as pd
import pytest
from sklearn.base import clone
from sklearn.model_selection import cross_val_score
from whole_values import images, letters, mean_colours, small_heads, texts

from pacpredict import PrivateClassifier
from pacpredict.exceptions import InvalidQuery, UntrustedArtifact

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
