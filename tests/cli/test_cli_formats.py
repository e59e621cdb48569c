"""Every command refuses what another version of pacpredict wrote: in one sentence, before anything is changed."""

import json

import pytest
from artifacts import fit_small
from records import mixed_table
from terminal import refused, run_here

from pacpredict.artifact.artifact import VERSION
from pacpredict.cli import COMMANDS

# What each command is given, with an artifact in the place of {}.
COMMAND_LINES = {
    "show": "show {}",
    "predict": "predict {} queries.csv",
    "serve": "serve {} --port 0",
    "serve --check": "serve {} --check",
    "distill": "distill {} queries.csv --out student",
    "distill --verify": "distill {} --verify student",
    "report": "report {} --out report.html",
    "audit": "audit {}",
    "verify": "verify {}",
    "keys make": "keys make {} zoe",
    "keys list": "keys list {}",
    "keys revoke": "keys revoke {} zoe",
    "ledger verify": "ledger verify {}",
    "ledger export": "ledger export {} out.csv",
    "ledger move": "ledger move {} postgresql://owner@localhost/nowhere",
    "ledger moved": "ledger moved {}",
    "ledger backup": "ledger backup {} backup",
    "ledger restore": "ledger restore {} backup",
}
WITHOUT_ARTIFACT = {"demo", "evaluate", "fit", "plan", "bounds", "compile", "completion"}


@pytest.fixture(scope="module")
def artifact(tmp_path_factory):
    folder = tmp_path_factory.mktemp("formats")
    mixed_table(5, seed=3).to_csv(folder / "queries.csv", index=False)
    return fit_small(folder / "a.pac").path


@pytest.fixture
def rewritten(artifact, monkeypatch):
    """Give the manifest of a real artifact another version, for the time of a test."""
    manifest = artifact / "manifest.json"
    genuine = manifest.read_bytes()
    monkeypatch.chdir(artifact.parent)

    def rewrite(version):
        manifest.write_text(json.dumps(json.loads(genuine) | {"version": version}))

    yield rewrite
    manifest.write_bytes(genuine)


def files_of(artifact):
    return {path: path.read_bytes() for path in sorted(artifact.parent.rglob("*")) if path.is_file()}


def test_no_command_is_left_out():
    """Commands that take an artifact are all in the table above."""
    tested = {line.partition(" --")[0] for line in COMMAND_LINES}
    assert tested == {command.name for command in COMMANDS} - WITHOUT_ARTIFACT


@pytest.mark.parametrize("line", COMMAND_LINES.values(), ids=COMMAND_LINES)
def test_an_artifact_of_the_previous_format_is_refused(artifact, rewritten, capsys, line):
    """Whatever is done with it, the answer is one sentence that says what to do, and status 2."""
    rewritten(VERSION - 1)
    before = files_of(artifact)
    said = refused(capsys, *line.format("a.pac").split())
    assert said == (
        f"pacpredict: error: the artifact a.pac has format {VERSION - 1}, but this version of pacpredict reads only "
        f"format {VERSION}: fit again\n"
    )
    assert files_of(artifact) == before


@pytest.mark.parametrize("version", [VERSION + 1, str(VERSION), float(VERSION), None, True])
def test_other_versions_are_refused(rewritten, capsys, version):
    """An artifact of a later format, or with a version that is no number, is not guessed at."""
    rewritten(version)
    assert f"reads only format {VERSION}: " in refused(capsys, "show", "a.pac")


def test_the_format_of_this_version_is_read(artifact, capsys):
    """Without the edit the same artifact opens."""
    assert json.loads((artifact / "manifest.json").read_text())["version"] == VERSION
    assert run_here(capsys, "show", artifact)[0] == 0


def test_a_witness_of_the_first_format_does_not_belong(artifact, rewritten, capsys):
    """A file that needed no key to write vouches for nothing: beside the witness under the key it is refused."""
    stray = artifact / "witness.json"
    stray.write_text(json.dumps({"ledger": "0" * 32, "kind": "sqlite", "sequence": 0, "chain": "00" * 32}))
    try:
        assert "a.pac/witness.json does not belong to this artifact: remove it" in refused(
            capsys, "show", "a.pac"
        )
    finally:
        stray.unlink()
