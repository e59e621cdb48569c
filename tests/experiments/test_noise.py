"""The experiment on both kinds of noise runs from end to end, and its second run reads what the first made."""

import json
import sys

import pytest

from pacpredict.experiments import noise


@pytest.fixture
def run(tmp_path, monkeypatch, capsys):
    monkeypatch.setattr(noise, "N_DRAWS", 4000)
    monkeypatch.setattr(noise, "N_OTHERS", 100)

    def main(*options):
        argv = [
            "noise",
            "digits",
            "--artifact",
            str(tmp_path / "digits.pac"),
            "--models",
            "8",
            "--trials",
            "20",
        ]
        monkeypatch.setattr(sys, "argv", [*argv, "--jobs", "1", *options])
        noise.main()
        return capsys.readouterr().out

    return main


def test_digits(run):
    """Both tables have a row for each step and noise; fair noise is never less, and both agree on what is in them."""
    found = json.loads(run("--json"))
    kinds = [(step, kind) for step in noise.STEPS for kind in ("least", "fair")]
    assert [(row["step"], row["noise"]) for row in found["accuracy"]] == kinds
    assert 1 <= found["total_noise"]["least"] <= found["total_noise"]["most"] <= 9
    by_noise = {row["noise"]: row["argmax"]["mean"] for row in found["accuracy"] if row["step"] == "2^-32"}
    assert by_noise["fair"] < by_noise["least"] < 100
    remembered = [row for row in found["presence"] if row["which"] == "remembered"]
    assert len(remembered) == 1 + 2 * len(kinds)
    assert all(0 <= row["own_label_out"] <= row["own_label_in"] + 0.1 for row in remembered)
    assert [row["found_by_many"] is not None for row in remembered[1:3]] == [True, True]
    text = run()
    assert (
        len([line for line in text.splitlines() if line.startswith(("2^", "remembered", "others"))])
        == 4 + 2 * 9
    )
    assert f"{by_noise['fair']:.2f}%" in text
