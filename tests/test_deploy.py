"""The files of deploy/ are what their programs take, and speak of figures, settings and files that there are."""

import json
import re
import shlex
import shutil
import subprocess
import sys
from pathlib import Path

import pytest
import yaml
from artifacts import fit_small
from programs import needs, program
from prometheus_client.parser import text_string_to_metric_families
from records import labels_of, mixed_table, small_learner

from pacpredict.cli import main
from pacpredict.serving.metrics import Counted, LedgerFigures, Request, Spent
from pacpredict.training.pool import Pool

ROOT = Path(__file__).parents[1]
DEPLOY = ROOT / "deploy"
BIN = Path(sys.executable).parent
COMPOSE = yaml.safe_load((DEPLOY / "compose.yaml").read_text())
DASHBOARD = json.loads((DEPLOY / "grafana" / "dashboard.json").read_text())
RULES = yaml.safe_load((DEPLOY / "alerts.yml").read_text())["groups"][0]["rules"]


def run(*command, **options):
    done = subprocess.run(command, capture_output=True, text=True, check=False, timeout=120, **options)
    assert done.returncode == 0, done.stdout + done.stderr
    return done.stdout + done.stderr


@pytest.fixture(scope="module")
def series():
    """Every series of a server that has counted one of each, with its labels."""
    counted = Counted()
    counted.begin()
    counted.end(Request("/invocations", 200, 0.1, "busy", "lab"))
    key = {"name": "lab", "state": "valid", "used_queries": 1, "queries": 2, "used_nats": 0.1, "nats": 0.2}
    text = counted.write(LedgerFigures(True, True, Spent(0.1, 1.0, 1, 1), [key])).decode()
    return {
        sample.name: set(sample.labels)
        for family in text_string_to_metric_families(text)
        for sample in family.samples
    }


EXPRESSIONS = [
    *((f"alert {rule['alert']}", rule["expr"]) for rule in RULES),
    *(
        (f"panel {panel['title']}", target["expr"])
        for panel in DASHBOARD["panels"]
        for target in panel["targets"]
    ),
]


@pytest.mark.parametrize(("where", "expression"), EXPRESSIONS, ids=[where for where, _ in EXPRESSIONS])
def test_figures_exist(series, where, expression):
    """Dashboard and alerts use series and labels that the server has."""
    names = re.findall(r"\bpacpredict_\w+", expression)
    assert names or expression.startswith("up{")
    assert set(names) <= series.keys()
    grouped = {
        label.strip() for found in re.findall(r"by \(([^)]*)\)", expression) for label in found.split(",")
    }
    selected = {
        label for found in re.findall(r"\{([^}]*)\}", expression) for label in re.findall(r"(\w+)=", found)
    }
    known = {"job", "instance", "le"}.union(*(series[name] for name in names))
    assert grouped | selected <= known


def test_every_figure_is_looked_at(series):
    """A figure that neither dashboard nor alerts show is forgotten, or not worth counting."""
    used = set(re.findall(r"\bpacpredict_\w+", " ".join(expression for _, expression in EXPRESSIONS)))
    parts = {
        name for name in series if name.endswith(("_sum", "_count"))
    }  # of histograms, whose buckets are used
    assert series.keys() - parts == used


@needs("promtool", "prometheus")
def test_alerts_go_off_when_they_should():
    """Prometheus itself takes the rules and the configuration, and each alert goes off in its case and not before."""
    promtool = program("promtool")
    assert f"{len(RULES)} rules found" in run(promtool, "check", "rules", "alerts.yml", cwd=DEPLOY)
    run(promtool, "test", "rules", "alerts_test.yml", cwd=DEPLOY)
    run(promtool, "check", "config", "--syntax-only", "prometheus.yml", cwd=DEPLOY)


@needs("amtool", "prometheus-alertmanager")
def test_alerts_reach_somebody():
    """Alertmanager takes its settings, and Prometheus sends to where compose has it."""
    assert "1 receivers" in run(program("amtool"), "check-config", "alertmanager.yml", cwd=DEPLOY)
    sent = yaml.safe_load((DEPLOY / "prometheus.yml").read_text())["alerting"]["alertmanagers"][0]
    (target,) = sent["static_configs"][0]["targets"]
    host, _, port = target.partition(":")
    assert COMPOSE["services"][host]["ports"] == [f"127.0.0.1:{port}:{port}"]


def test_every_alert_has_a_case():
    """So that none is there which never goes off."""
    cases = (DEPLOY / "alerts_test.yml").read_text()
    page = (ROOT / "docs" / "operate.md").read_text()
    for rule in RULES:
        assert rule["alert"] in cases
        assert f"| {rule['alert']} |" in page


def test_dockerfile_is_clean():
    """hadolint finds nothing, and the image does not run as root."""
    run(BIN / "hadolint", DEPLOY / "Dockerfile")
    lines = (DEPLOY / "Dockerfile").read_text().splitlines()
    assert "USER 10001" in lines[[line.startswith("FROM") for line in lines].index(True) :]


def test_nothing_but_the_package_gets_into_the_image():
    """What Docker sees is the package and what it is built with; a secret that lies around is not."""
    ignored = (ROOT / ".dockerignore").read_text().splitlines()
    kept = {line.removeprefix("!") for line in ignored if line.startswith("!")}
    assert "*" in ignored
    assert kept == {"pyproject.toml", "constraints.txt", "README.md", "LICENSE", "src"}
    copied = re.findall(r"^COPY (?!--from)(.*) \S+$", (DEPLOY / "Dockerfile").read_text(), re.MULTILINE)
    assert set(" ".join(copied).split()) == kept


def test_compose_names_what_there_is():
    """Every file, volume and secret that a service uses is there, is made by the walk, or is declared."""
    page = (ROOT / "docs" / "operate.md").read_text()
    for name, secret in COMPOSE["secrets"].items():
        assert f"> secrets/{name}" in page, "the walk must make it"
        assert secret["file"] == f"./secrets/{name}"
    for name, service in COMPOSE["services"].items():
        assert re.fullmatch(r"[\w/]+:[\w.]+", service["image"]), "a version, never the latest"
        assert set(service.get("secrets", [])) <= COMPOSE["secrets"].keys()
        assert set(service.get("depends_on", [])) <= COMPOSE["services"].keys()
        for volume in service["volumes"]:
            source = volume.split(":")[0]
            if source.startswith("./"):
                assert (DEPLOY / source).exists() or source == "./census.pac", source
            else:
                assert source in COMPOSE["volumes"], source
        for port in service.get("ports", []):
            assert port.startswith("127.0.0.1:"), f"{name} would be reachable from everywhere"


def test_image_has_the_version_of_the_package():
    """The tag is not forgotten with a release."""
    version = re.search(r'^version = "(.*)"$', (ROOT / "pyproject.toml").read_text(), re.MULTILINE)[1]
    assert COMPOSE["services"]["server"]["image"] == f"pacpredict:{version}"


def test_settings_are_taken(tmp_path, capsys, monkeypatch):
    """The server takes deploy/serve.toml; Prometheus reaches it by a name that it goes by."""
    table = mixed_table()
    fit_small(tmp_path / "census.pac", Pool.of(table, labels_of(table)), small_learner("logistic"))
    for name in ("ARTIFACT", "WORKERS"):
        monkeypatch.delenv(f"PACPREDICT_SERVE_{name}", raising=False)
    config = str(DEPLOY / "serve.toml")
    here = ["serve", str(tmp_path / "census.pac"), "--config", config, "--workers", "1", "--check", "--json"]
    assert main(["keys", "make", str(tmp_path / "census.pac"), "lab"]) == 0
    capsys.readouterr()
    assert main(here) == 0
    found = json.loads(capsys.readouterr().out)
    scraped = yaml.safe_load((DEPLOY / "prometheus.yml").read_text())["scrape_configs"][0]
    assert scraped["static_configs"][0]["targets"] == ["server:8000"]
    assert "server" in str(found)
    assert scraped["authorization"]["credentials_file"] == "/run/secrets/metrics_key"


def test_systemd_walk(tmp_path, capsys, monkeypatch):
    """The commands of the walk, in their order, lead to a server that may start, from an artifact of another disk."""
    page = (ROOT / "docs" / "operate.md").read_text()
    walk = page.partition("## By systemd")[2].partition("\n## ")[0]
    table = mixed_table()
    fit_small(tmp_path / "made" / "census.pac", Pool.of(table, labels_of(table)), small_learner("logistic"))
    shutil.copytree(tmp_path / "made" / "census.pac", tmp_path / "state" / "census.pac")  # as mv does there
    shutil.rmtree(tmp_path / "made" / "census.pac")
    (tmp_path / "serve.toml").write_text((DEPLOY / "serve.toml").read_text())
    done = []
    for line in re.findall(r"^    (sudo .*)$", walk, re.MULTILINE):
        here = line.replace("/var/lib/pacpredict", str(tmp_path / "state"))
        words = shlex.split(here.replace("/etc/pacpredict", str(tmp_path)))[1:]
        if words[0] == "sed":
            run(*words)
            done.append("sed")
        elif words[:2] == ["-u", "pacpredict"]:
            assert words[2] == "/usr/local/lib/pacpredict/bin/pacpredict"
            config = tmp_path / "serve.toml"
            config.write_text(config.read_text().replace("/var/lib/pacpredict", str(tmp_path / "state")))
            assert main(words[3:]) == 0, (line, capsys.readouterr().err)
            done.append(" ".join(words[3:5]))
    assert [each.split(" /")[0] for each in done] == ["ledger moved", "sed", "keys make", "serve --config"]
    assert "there are 1 that are valid" in " ".join(capsys.readouterr().out.split())


@pytest.mark.skipif(shutil.which("systemd-analyze") is None, reason="systemd is not installed")
def test_systemd_takes_the_unit(tmp_path):
    """systemd knows every line, and finds little that the service could still do."""
    unit = tmp_path / "pacpredict.service"
    text = (DEPLOY / "pacpredict.service").read_text()
    unit.write_text(text.replace("/usr/local/lib/pacpredict/bin/pacpredict", str(BIN / "pacpredict")))
    assert run("systemd-analyze", "verify", "--man=no", unit).strip() == ""
    found = run("systemd-analyze", "security", "--offline=true", "--threshold=20", unit)
    assert re.search(r"Overall exposure level for pacpredict.service: [01]\.\d OK", found)
