"""The page in a real browser, against a real server with a ledger on disk."""

import re
from dataclasses import asdict

import numpy as np
import pandas as pd
import pytest
from artifacts import copy_artifact, fit_small
from browser import Seen, running_browser
from live_server import LiveServer, curator_of, plain_rows
from records import mixed_table, recipe, small_learner
from whole_values import image_pool, images, letters, png, small_heads, text_pool

from pacpredict.core.plan import plan
from pacpredict.deployment import Deployment
from pacpredict.ledger.keys import Terms
from pacpredict.serving.access import Keyed
from pacpredict.serving.metrics import Counted
from pacpredict.show import percent_up
from pacpredict.training.fit import fit
from pacpredict.training.pool import Pool

ODD_NAMES = (
    *("id", "action", "submit", "name", "elements", "length", "method", "reset", "target", "dataset"),
    *(
        "querySelectorAll",
        "getAttribute",
        "addEventListener",
        "__proto__",
        "constructor",
        "csv",
        'a "b" <c> &',
    ),
)
STEP, STEPS = 2.0**-12, 8
WAIT = 20_000  # milliseconds, on a machine with much else to do


@pytest.fixture(scope="module")
def browser():
    with running_browser() as browser:
        yield browser


@pytest.fixture(scope="module")
def fitted_home(tmp_path_factory):
    how = recipe(n_models=8, step=STEP, total=STEPS * STEP)
    return fit_small(tmp_path_factory.mktemp("fitted") / "mixed.pac", how=how).path


@pytest.fixture
def deployment(fitted_home, tmp_path):
    with Deployment.open(copy_artifact(fitted_home, tmp_path / "mixed.pac")) as deployment:
        yield deployment


@pytest.fixture
def contested(deployment):
    """Queries on which the models differ, as rows of JSON: each costs a step."""
    table, ensemble = mixed_table(200, seed=5), deployment.curator.ensemble
    votes = ensemble.votes(ensemble.schema.rows(table))
    return [row for row, labels in zip(plain_rows(table), votes, strict=True) if len(set(labels)) > 1]


def serve(deployment, access=None):
    options = {"keyring": deployment.keys, "metrics": Counted(), "course": deployment.course}
    return LiveServer(deployment.curator, access=access, **options)


class Visit:
    """A page of the server in a tab of its own, with what it asked for and complained about."""

    def __init__(self, browser, server, path="/", **options):
        self._context = browser.new_context(**{"viewport": {"width": 1000, "height": 900}, **options})
        self._context.set_default_timeout(WAIT)
        self.page = self._context.new_page()
        self.seen, self._url = Seen(self.page), server.url
        self.page.goto(server.url + path)

    def __enter__(self):
        return self

    def __exit__(self, failed, *_):
        self._context.close()
        if not failed:
            assert all(url.startswith((self._url, "data:")) for url in self.seen.requests)

    def loaded(self):
        self.page.wait_for_selector("body[data-loaded=true]")
        return self.page

    def use(self, key):
        self.page.fill("#key", key)
        self.page.keyboard.press("Enter")
        return self.loaded()


def fill_in(page, row):
    """Type a row into the form, as a person would: by the labels of its fields."""
    for name, value in row.items():
        quoted = name.replace('"', '\\"')
        field = page.locator(f'#ask [data-column="{quoted}"]')
        if field.evaluate("field => field.tagName") == "SELECT":
            field.select_option(
                "" if value is None else str(value).lower() if name == "married" else str(value)
            )
        else:
            field.fill("" if value is None else str(value))


def spent_width(page):
    return float(page.locator("#live svg rect.added").first.get_attribute("width"))


def test_the_picture_moves(browser, deployment, contested):
    """A query is said to cost at most a step, costs it, and moves the picture, all of it the library's numbers."""
    with serve(deployment) as server, Visit(browser, server) as visit:
        page = visit.loaded()
        assert spent_width(page) == 0
        assert "2^-12 nats" in page.inner_text("[data-live=cost]")
        assert f"one of {STEPS} that are left" in page.inner_text("[data-live=cost]")
        fill_in(page, contested[0])
        page.click("#ask button")
        page.wait_for_selector("#answer strong")
        assert f"number 1, charged {STEP} nats" in page.inner_text("#answer")
        page.wait_for_function(
            "() => document.querySelector('#live svg rect.added').getAttribute('width') > 0"
        )
        assert spent_width(page) == 640 / STEPS
        assert f"1 given, {STEPS - 1} left" in page.inner_text("#live")
        assert f"one of {STEPS - 1} that are left" in page.inner_text("[data-live=cost]")
        assert page.locator("#live svg rect.contested").count()
        assert page.input_value('#ask [data-column="age"]') == str(
            contested[0]["age"]
        )  # what was typed stays
        assert server.spent == 1
        page.click("#ask button")
        page.wait_for_function(
            "() => document.querySelector('#answer').textContent.includes('charged nothing')"
        )
        assert server.spent == 1
        assert not visit.seen.complaints


def test_what_was_asked_with_a_forgotten_key_is_not_shown(browser, deployment):
    """A reply that comes after the key was forgotten fills nothing, however late it is."""
    key = deployment.keys.make(Terms("officer", "read"))
    with serve(deployment, Keyed(deployment.keys)) as server, Visit(browser, server) as visit:
        page, held = visit.page, []
        page.wait_for_selector("#key-form:not([hidden])")
        visit.use(key)
        page.route("**/page/live", lambda route: held.append(route))  # noqa: PLW0108  # it is inspected
        with page.expect_request("**/page/live"):  # it is asked for again and again
            pass
        page.click("#forget")
        for route in held:
            with page.expect_response("**/page/live"):
                route.continue_()
        page.wait_for_timeout(300)
        assert page.locator("main section").count() == 0
        assert not [said for said in visit.seen.complaints if "Failed to load" not in said]


def test_columns_that_are_called_like_parts_of_a_form(browser, tmp_path):
    """A column may have any name: also one that browsers, forms and scripts know already."""
    generator = np.random.default_rng(0)
    table = pd.DataFrame({name: generator.normal(size=60) for name in ODD_NAMES})
    pool = Pool.of(table, np.array(["no", "yes"])[(table.to_numpy().sum(axis=1) > 0).astype(int)])
    fit_small(tmp_path / "odd.pac", pool, small_learner("logistic"))
    with Deployment.open(tmp_path / "odd.pac") as deployment, serve(deployment) as server:
        with Visit(browser, server) as visit:
            page = visit.loaded()
            row = {name: round(float(value), 3) for name, value in table.iloc[0].items()}
            fill_in(page, row)
            page.click("#ask button")
            page.wait_for_selector("#answer strong")
            assert not visit.seen.complaints
        asked = deployment.ask(pd.DataFrame([row]))
        assert server.n_released == 1  # what was typed is what the library reads: it is on record already
        assert asked.releases[0].sequence == 1


def test_an_image_is_asked_about_by_its_file(browser, tmp_path):
    """Whoever has an image chooses its file; the server gets its bytes, and says what is wrong with another."""
    curator = curator_of(fit(image_pool(), small_heads(), recipe(n_models=8), n_jobs=1))
    (tmp_path / "one.png").write_bytes(png(images(1, seed=5)[0][0]))
    (tmp_path / "other.png").write_bytes(b"no image")
    with LiveServer(curator) as server, Visit(browser, server) as visit:
        page = visit.loaded()
        assert page.get_by_label("image of 6 x 6 pixels").get_attribute("type") == "file"
        page.set_input_files('#ask [data-column="image"]', tmp_path / "other.png")
        page.click("#ask button")
        page.wait_for_selector("#answer.refused")
        assert "not an image that can be read" in page.inner_text("#answer")
        page.set_input_files('#ask [data-column="image"]', tmp_path / "one.png")
        page.click("#ask button")
        page.wait_for_selector("#answer strong")
        asked = curator.ask([(tmp_path / "one.png").read_bytes()])
        assert page.inner_text("#answer strong") == asked.labels[0]
        assert server.n_released == 1


def test_a_text_is_asked_about_as_it_is_typed(browser):
    """Whoever has a text types or pastes it, quotes and lines included."""
    curator = curator_of(fit(text_pool(), small_heads(letters), recipe(n_models=8), n_jobs=1))
    text = 'a "lovely" film;\nwarm,\nand ünusual'
    with LiveServer(curator) as server, Visit(browser, server) as visit:
        page = visit.loaded()
        page.get_by_label("text").fill(text)
        page.click("#ask button")
        page.wait_for_selector("#answer strong")
        assert page.inner_text("#answer strong") == curator.ask([text]).labels[0]
        assert server.n_released == 1


def test_a_server_that_is_gone(browser, deployment):
    """Whoever asks a server that does not answer any more is told so beside the form."""
    with serve(deployment) as server, Visit(browser, server) as visit:
        page = visit.loaded()
        fill_in(page, plain_rows(mixed_table(1, seed=5))[0])
        page.route("**/invocations", lambda route: route.abort())
        page.click("#ask button")
        page.wait_for_selector("#answer.refused")
        assert "This did not work" in page.inner_text("#answer")
        assert server.n_released == 0


def test_wrong_values_are_explained(browser, deployment):
    """What cannot be read is said beside the form, names the column, and costs nothing."""
    with serve(deployment) as server, Visit(browser, server) as visit:
        page = visit.loaded()
        for field in page.locator("#ask input, #ask textarea").all():
            field.fill("x")
        page.select_option('#ask [data-column="grade"]', "mid")
        page.click("#ask button")
        page.wait_for_selector("#answer.refused")
        assert "column 'age'" in page.inner_text("#answer")
        assert server.n_released == 0


def test_the_form_lists_what_the_owner_declared(browser, deployment):
    """Categories that an owner declared can be chosen; those that occurred in records are not told."""
    with serve(deployment) as server, Visit(browser, server) as visit:
        page = visit.loaded()
        assert page.locator('#ask select[data-column="grade"] option').all_inner_texts() == [
            "",
            "low",
            "mid",
            "high",
            "other",
        ]
        assert page.locator('#ask input[data-column="job"]').count() == 1
        assert not re.search("clerk|nurse|smith", page.content())


def test_exhausted(browser, deployment, contested):
    """When all is spent the page says so, and what that means for the next query."""
    deployment.ask(pd.DataFrame(contested[:STEPS]))
    with serve(deployment) as server, Visit(browser, server) as visit:
        page = visit.loaded()
        said = page.inner_text("#live")
        assert "The budget is spent." in said
        assert "0.00%" in said
        assert "New queries are refused" in said
        assert spent_width(page) == 640
        assert "can cost nothing any more" in page.inner_text("[data-live=cost]")
        fill_in(page, contested[STEPS])
        page.click("#ask button")
        page.wait_for_selector("#answer.refused")
        assert "the privacy budget is spent" in page.inner_text("#answer")


def test_a_key_is_needed(browser, deployment):
    """Without a key nothing of the deployment is shown; each role sees its part; no address has a key in it."""
    keys = {role: deployment.keys.make(Terms(role, role)) for role in ("query", "read", "admin")}
    with serve(deployment, Keyed(deployment.keys)) as server, Visit(browser, server) as visit:
        page = visit.page
        page.wait_for_selector("#key-form:not([hidden])")
        assert page.evaluate("document.activeElement.id") == "key"
        assert page.locator("main section").count() == 0
        assert "mixed" not in page.content()
        page.fill("#key", "pac_0_wrong")
        page.keyboard.press("Enter")
        page.wait_for_selector("#trouble:not([hidden])")
        assert "not valid" in page.inner_text("#trouble")
        shows = {
            "query": {"promise", "form", "planner"},
            "read": {"promise", "live", "planner"},
            "admin": {"promise", "live", "form", "planner", "keys"},
        }
        for role, parts in shows.items():
            visit.use(keys[role])
            filled = (
                "[...document.querySelectorAll('main > div')].filter(x => !x.hidden && x.children.length)"
            )
            assert set(page.evaluate(f"{filled}.map(x => x.id)")) == parts
            if role == "admin":
                assert all(name in page.inner_text("#keys") for name in keys)
            page.click("#forget")
            page.wait_for_selector("#key-form:not([hidden])")
            assert page.locator("main section").count() == 0
        assert page.evaluate("localStorage.length + sessionStorage.length + document.cookie.length") == 0
        assert not any(key in url for url in visit.seen.requests for key in keys.values())


def test_a_revoked_key_ends_the_view(browser, deployment):
    """When a key is revoked, the next look asks for another one."""
    key = deployment.keys.make(Terms("officer", "read"))
    with serve(deployment, Keyed(deployment.keys)) as server, Visit(browser, server) as visit:
        page = visit.page
        page.wait_for_selector("#key-form:not([hidden])")
        visit.use(key)
        deployment.keys.revoke("officer")
        page.wait_for_selector("#key-form:not([hidden])")
        assert page.locator("main section").count() == 0


@pytest.mark.parametrize(
    "given",
    [
        {"queries": "1e6", "step_budget": "2^-32"},
        {"queries": "1e6", "success": "51.08 %"},
        {"tpr": "0.3 %", "step_budget": "2^-32"},
    ],
)
def test_the_planner_has_the_librarys_numbers(browser, deployment, given):
    """As one types, the page shows what `plan` says, rounded up as bounds are."""
    numbers = {"1e6": 1_000_000, "2^-32": 2.0**-32, "51.08 %": 0.5108, "0.3 %": 0.003}
    expected = plan(**{name: numbers[text] for name, text in given.items()})
    with serve(deployment) as server, Visit(browser, server) as visit:
        page = visit.loaded()
        for field in ("queries", "success", "tpr", "step_budget"):
            page.fill(f"#plan-{field}", given.get(field, ""))
        for text in (
            f"{expected.queries:,}",
            f"{expected.total_budget_nats:.6g} nats",
        ):  # the last of four changes
            page.wait_for_function(
                "said => document.querySelector('#plan').textContent.includes(said)", arg=text
            )
        said = page.inner_text("#plan")
        assert percent_up(expected.success) in said
        assert percent_up(expected.tpr) in said
        assert f"{expected.total_budget_nats:.6g} nats" in said
        rows = page.locator("#plan td").all_inner_texts()
        assert rows[-2:] == [percent_up(expected.limited_tpr), percent_up(expected.tpr)]
        page.fill("#plan-queries", "many")
        page.wait_for_selector("#plan.refused")
        assert asdict(expected)["prior"] == 0.5


def test_narrow_and_dark(browser, deployment, contested):
    """On a phone nothing is cut off or needs scrolling sideways; in the dark the page is dark."""
    deployment.ask(pd.DataFrame(contested[:2]))
    deployment.keys.make(Terms("ward-7", queries=100_000, nats=0.005, expires="2027-01-31T00:00:00+00:00"))
    narrow = {"viewport": {"width": 360, "height": 700}, "color_scheme": "dark", "has_touch": True}
    with serve(deployment) as server, Visit(browser, server, **narrow) as visit:
        page = visit.loaded()
        assert page.evaluate("document.documentElement.scrollWidth") <= 360
        widths = page.evaluate(
            "[...document.querySelectorAll('.wide')].map(each => [each.scrollWidth, each.clientWidth])"
        )
        assert widths
        assert all(needed <= there for needed, there in widths)
        colour = page.evaluate("getComputedStyle(document.body).backgroundColor")
        assert all(int(part) < 64 for part in re.findall(r"\d+", colour))


def test_by_keyboard(browser, deployment):
    """All that can be done is reached with the tabulator, in order, and seen to be reached."""
    with serve(deployment) as server, Visit(browser, server) as visit:
        page = visit.loaded()
        reached = []
        for _ in range(40):
            page.keyboard.press("Tab")
            where = page.evaluate(
                "[document.activeElement.id, getComputedStyle(document.activeElement).outlineStyle]"
            )
            reached.append(where)
            if where[0] == "plan-step_budget":
                break
        names = [name for name, _ in reached]
        assert names[-1] == "plan-step_budget"
        assert names.index("field-0") < names.index("plan-queries")
        assert all(outline != "none" for name, outline in reached if name)


@pytest.mark.parametrize(("path", "scheme"), [("/", "light"), ("/", "dark"), ("/docs", "dark")])
def test_accessible(browser, deployment, contested, path, scheme):
    """axe finds nothing to object to: contrast, names, landmarks, order of headings."""
    axe = pytest.importorskip("axe_playwright_python.sync_playwright")
    deployment.keys.make(Terms("lab", "query", queries=10))
    deployment.ask(pd.DataFrame(contested[:STEPS]))
    with serve(deployment) as server, Visit(browser, server, path, color_scheme=scheme) as visit:
        page = visit.loaded()
        page.evaluate(
            "[...document.querySelectorAll('details')].slice(0, 4).forEach(each => { each.open = true; })"
        )
        found = axe.Axe().run(page).response["violations"]
        assert [(each["id"], [node["html"][:120] for node in each["nodes"]]) for each in found] == []


def test_accessible_without_a_key(browser, deployment):
    """Asking for a key is accessible, too."""
    axe = pytest.importorskip("axe_playwright_python.sync_playwright")
    with serve(deployment, Keyed(deployment.keys)) as server, Visit(browser, server) as visit:
        visit.page.wait_for_selector("#key-form:not([hidden])")
        assert axe.Axe().run(visit.page).response["violations"] == []
