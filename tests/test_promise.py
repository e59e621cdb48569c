"""Every place that prints a promise prints the sentences of one module, per decoder, and no other claim about odds."""

import json
import re
from html import unescape

import pytest
from artifacts import copy_artifact
from live_server import LiveServer
from records import labels_of, mixed_table
from students import fit_teacher, make_student

from pacpredict import PrivateClassifier
from pacpredict.cli import main
from pacpredict.core.roc import tpr_bound, tpr_for_epsilon
from pacpredict.deployment import Deployment
from pacpredict.exceptions import InvalidInput
from pacpredict.pages.svg import reach
from pacpredict.promise import (
    NEVER_TELL,
    NOT_PROMISED,
    TITLES,
    about_the_pool,
    explain_priors,
    on_erasure,
    plain,
    promise_of,
    why_never,
)
from pacpredict.report.facts import gather
from pacpredict.report.page import render

DECODERS = ("argmax", "map", "sample")
LIMIT = 0.5
FIGURES = {"prior": 0.5, "success": 0.5107891, "fpr": 0.001, "tpr": 0.00128403, "odds_limit": 0.25}

# What a second wording would be made of. Settings, such as "odds limit 0.5", are no claims.
CLAIM = re.compile(
    r"odds[^.]{0,80}\bmove|move[^.]{0,80}\bodds|factor of|(in|in any|in every|in no|single) histor|except with prob|"
    r"but for a prob|one in a billion|probability (of )?\d|false[- ](alarm|positive)|in more than|of the time|epsilon",
    re.IGNORECASE,
)


def words(text):
    """Return what a reader reads, whatever the page or the terminal makes of lines."""
    text = re.sub(r"<style>.*?</style>", "", text, flags=re.DOTALL)
    text = re.sub(r"</?(b|strong|code)>", "", text)
    return " ".join(plain(unescape(re.sub(r"<[^>]+>", " ", text))).split())


@pytest.fixture(scope="module")
def teacher(tmp_path_factory):
    home = tmp_path_factory.mktemp("teacher")
    table, _ = fit_teacher(home / "it.pac", odds_limit=LIMIT)
    return home / "it.pac", table


@pytest.fixture(scope="module", params=DECODERS)
def places(request, tmp_path_factory):
    """Everything that a deployment with this decoder shows, by the place that shows it, with its promise."""
    decode, home = request.param, tmp_path_factory.mktemp(request.param)
    table, _ = fit_teacher(home / "it.pac", odds_limit=LIMIT, decode=decode)
    make_student(home / "it.pac", table, home / "student")
    shown = {name: (home / "student" / name).read_text() for name in ("card.md", "card.html")}
    with Deployment.open(home / "it.pac") as deployment:
        shown["report"] = render(gather(deployment))
        shown["guarantee()"] = str(deployment.curator.guarantee().promise())
        with LiveServer(deployment.curator) as server:
            shown["/privacy"] = json.dumps(server.http.get("/privacy").json()["promise"])
            shown["page"] = server.http.get("/page/promise").text
        promise, privacy = deployment.curator.guarantee().promise(), deployment.privacy()
    return decode, home / "it.pac", shown, promise, privacy


@pytest.fixture
def show(places, capsys):
    assert main(["show", str(places[1])]) == 0
    return capsys.readouterr().out


def test_all_places_have_the_sentences_of_the_module(places, show):
    """`show`, `/privacy`, page, report, card and guarantee() print the same four sentences."""
    _, _, shown, promise, _ = places
    for place, text in {**shown, "show": show}.items():
        for sentence in promise:
            assert plain(sentence) in words(text), (place, sentence)


def test_no_place_has_a_claim_of_its_own(places, show):
    """Without the module's sentences no claim about odds, rates or probabilities is left anywhere."""
    _, _, shown, promise, privacy = places
    known = [
        *promise,
        *(about_the_pool(decoder, "least") for decoder in DECODERS),
        *privacy["explanations"],
        *TITLES,
    ]
    known += [why_never(8, 0.5, "record"), on_erasure(0.5, "record")]
    for place, text in {**shown, "show": show}.items():
        left = words(text)
        for sentence in sorted(known, key=len, reverse=True):
            left = left.replace(plain(sentence), "")
        assert not CLAIM.search(left), (place, left)


def test_only_noise_has_an_exception(places, show):
    """`argmax` and `map` keep the limit except with probability 1e-9; with `sample` there is no exception at all."""
    decode, _, shown, promise, privacy = places
    expected = 0.0 if decode == "sample" else 1e-9
    assert privacy["odds_delta"] == expected
    assert ("except with probability 1e-9" in promise.every_history) is (decode != "sample")
    for place, text in {**shown, "show": show}.items():
        assert ("except with probability" in words(text)) is (decode != "sample"), place
        assert ("1e-09" in words(text)) is False, place


def test_never_is_said_wherever_people_read(places, show):
    """The page, `show`, the report and the card say not to tell anyone whether they were trained on."""
    for place, text in {**places[2], "show": show}.items():
        assert (NEVER_TELL in words(text)) is (place not in ("/privacy", "guarantee()")), place


def test_a_deployment_has_one_promise(teacher, tmp_path):
    """Fitted with noise it keeps its exception whatever decodes; fitted without, it takes no noise."""
    path, table = teacher
    home = copy_artifact(path, tmp_path / "it.pac")
    for decode in DECODERS:
        with Deployment.open(home, decode=decode) as deployment:
            promises = [deployment.curator.guarantee().promise()]
            deployment.ask(table[:50])
            promises.append(deployment.curator.guarantee().promise())
            privacy = deployment.privacy()
        assert privacy["odds_delta"] == 1e-9
        for promise in promises:
            assert promise.to_json() == privacy["promise"]
    fit_teacher(tmp_path / "exact.pac", odds_limit=LIMIT, decode="sample")
    with pytest.raises(InvalidInput, match="keeps the odds limit in every history"):
        Deployment.open(tmp_path / "exact.pac", decode="map")


def test_the_estimator_words_its_promise():
    """guarantee() of a classifier is about records or people, and only about membership."""
    table = mixed_table(80).drop(columns="note")
    classifier = PrivateClassifier("logistic", n_models=4, n_jobs=1).fit(table, labels_of(table))
    guarantee = classifier.guarantee()
    assert guarantee.tpr == min(tpr_bound(guarantee.total_nats), tpr_for_epsilon(0.25, delta=1e-9))
    assert "whether a given record was in the training set more than 51.08% of the time" in str(
        guarantee.promise()
    )
    assert "a factor of 1.285, except with probability 1e-9." in str(guarantee.promise())
    with pytest.raises(InvalidInput, match="about another attack"):
        classifier.guarantee(prior=1 / 4).promise()
    people = [f"person {i // 2}" for i in range(80)]
    classifier = PrivateClassifier("logistic", n_models=4, n_jobs=1).fit(
        table, labels_of(table), groups=people
    )
    assert "0.1285% of the people who were in the training set" in str(classifier.guarantee().promise())


@pytest.mark.parametrize(
    ("odds_delta", "end"),
    [
        (0.0, "a factor of **1.285**."),
        (1e-9, "a factor of **1.285**, except with probability 1e-9."),
        (3.21e-13, "a factor of **1.285**, except with probability 3.3e-13."),
        (None, "a factor of **1.285** (with `argmax` and `map`, except with probability 1e-9)."),
    ],
)
def test_the_clause_about_delta(odds_delta, end):
    """Rounded up; absent where it is 0, and about the noisy decoders where the decoder is open."""
    assert promise_of(unit="person", odds_delta=odds_delta, **FIGURES).every_history.endswith(end)


def test_without_a_limit_nothing_is_said_of_single_histories():
    """Then the figures are averages, and the third sentence says so."""
    promise = promise_of(unit="record", odds_delta=None, **{**FIGURES, "odds_limit": None})
    assert "There is no limit on how far the odds" in promise.every_history
    assert "factor" not in promise.every_history
    assert promise.not_promised == NOT_PROMISED


def test_priors_above_a_half_are_explained():
    """Groups, records that people share, rates other than a half and models that agree have each their reason."""

    def bound(prior):
        return {"question": "it?", "prior": prior, "success": min(1.0, prior + 0.004321)}

    bounds = dict.fromkeys(("membership", "group-exact", "full-set", "model"), bound(0.5))
    bounds |= {"group-any": bound(0.97), "reconstruction": bound(0.859375)}
    group, shared = explain_priors(bounds, "person")
    assert group.startswith('"it?" starts at 97% because each person is in half of the subsets')
    assert "starts at 85.94% because several people have the same record" in shared
    assert shared.endswith("answers add at most 0.44 points.")
    quarter = dict.fromkeys(bounds, bound(0.75))
    assert sum("subsets do not hold half" in reason for reason in explain_priors(quarter, "record")) == 3
    (unknown,) = explain_priors(dict.fromkeys(bounds, bound(0.5)) | {"model": bound(1.0)}, "person")
    assert "could not be counted" in unknown
    assert explain_priors(dict.fromkeys(bounds, bound(0.5)), "person") == []


def test_noise_is_refused_where_no_exception_was_promised(tmp_path):
    """A deployment fitted with `sample` promises its limit without exception, so it does not change to noise."""
    fit_teacher(tmp_path / "it.pac", decode="sample", odds_limit=LIMIT)
    for decode in ("argmax", "map"):
        with pytest.raises(InvalidInput, match="except with probability 1e-09"):
            Deployment.open(tmp_path / "it.pac", decode=decode)
    with Deployment.open(tmp_path / "it.pac", decode="sample") as deployment:
        assert deployment.privacy()["odds_delta"] == 0
        assert "except" not in deployment.privacy()["promise"]["every_history"]


def test_every_decoder_of_a_noisy_deployment_has_one_promise(teacher):
    """A deployment that may use noise promises its limit except with probability 1e-9, whatever decodes now."""
    path, _ = teacher
    sentences = set()
    for decode in (None, *DECODERS):
        with Deployment.open(path, decode=decode) as deployment:
            sentences |= {deployment.privacy()["promise"]["every_history"]}
            sentences |= {plain(deployment.curator.guarantee().promise().every_history)}
    (sentence,) = sentences
    assert sentence.endswith("except with probability 1e-9.")


@pytest.mark.parametrize(("rate", "publishes"), [(0.5, True), (1 / 32, False)])
def test_replies_publish_the_training_set_only_where_they_do(rate, publishes):
    """With small subsets nearly every guess is "not a member", and right: that is not the training set."""
    assert ("all but publish the training set" in why_never(32, rate, "person")) == publishes


def test_pictures_round_bounds_up():
    """The text of a picture is a bound like any other."""
    assert "at most 14.3% ever" in str(reach(1 / 7, 0.142905))
