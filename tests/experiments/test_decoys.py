"""Decoys: what contributors can do to leave-one-out votes, and what a second round repairs."""

import json

from pacpredict.experiments.decoys import CASES, ROUNDS, main


def test_decoys(capsys):
    """One decoy defeats one round and not two, two defeat two; a false record that two units have needs two rounds."""
    main(["--models", "64", "--worlds", "1", "--json"])
    found = json.loads(capsys.readouterr().out)
    assert found["rounds"] == list(ROUNDS) == [0, 1, 2, 3]
    alone, one_decoy, two_decoys, twice = (row["told"] for row in found["rows"])
    assert [row["case"] for row in found["rows"]] == [case.name for case in CASES]
    assert alone[0] > 0.7 > 0.1 > max(alone[1:])
    assert one_decoy[1] > 0.5 > 0.1 > one_decoy[2]
    assert two_decoys[2] > 0.4 > 0.1 > two_decoys[1]
    assert twice[1] > 0.5 > 0.1 > twice[2]
