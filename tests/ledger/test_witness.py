"""The file that remembers: what it keeps, what damages it, and that an answer it cannot note does not leave."""

import hmac
import json
import os
import threading
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st
from small_deployment import KEY, ask, found_home, make_session, serve_at

from pacpredict import files
from pacpredict.exceptions import LedgerConflict, LedgerDamaged, LedgerUnavailable
from pacpredict.ledger import witness
from pacpredict.ledger.witness import FileWitness, Sighting

SEEN = Sighting("ledger", "sqlite", "/here", "file 7", 0, "00" * 32)


def seen_at(sequence, chain=b"\1"):
    return SEEN._replace(sequence=sequence, chain=chain.hex() * 32)


@pytest.fixture
def path(tmp_path):
    return tmp_path / "witness.jsonl"


@pytest.fixture
def noted(path):
    """A witness that has seen the beginning."""
    file = FileWitness(path, KEY)
    file.replace(SEEN)
    yield file
    file.close()


def test_it_remembers_the_farthest(noted, path):
    """Whoever opens it later reads what was noted last; nothing goes backwards."""
    for number in (1, 2, 5, 9):
        assert noted.advance(seen_at(number)) == seen_at(number)
        assert FileWitness(path, KEY).read() == seen_at(number)
    assert noted.advance(seen_at(7)) == seen_at(9)
    assert noted.advance(seen_at(9, b"\2")) == seen_at(9)
    assert noted.read() == seen_at(9)
    assert path.stat().st_mode & 0o777 == 0o600


def test_it_remembers_that_there_were_keys(noted, path):
    """Whoever has seen keys notes it, also where others have come farther, and nobody takes it back."""
    noted.advance(seen_at(9))
    kept = seen_at(9)._replace(keyed=True)
    assert noted.advance(seen_at(7)._replace(keyed=True)) == kept
    assert noted.advance(seen_at(9)) == kept
    assert noted.advance(seen_at(10)) == seen_at(10)._replace(keyed=True)
    assert FileWitness(path, KEY).read().keyed


def test_keys_of_another_ledger_are_not_noted(noted):
    """What is said about another ledger changes nothing."""
    noted.advance(seen_at(1)._replace(ledger="another", keyed=True))
    assert noted.read() == SEEN


def test_a_line_of_an_earlier_version(noted, path):
    """Lines that do not know of keys are read as they are."""
    values = seen_at(3)._asdict()
    del values["keyed"]
    mac = hmac.new(KEY, json.dumps(values, sort_keys=True).encode(), "sha256").hexdigest()
    path.write_bytes(json.dumps({**values, "mac": mac}, sort_keys=True).encode().ljust(4095) + b"\n")
    assert noted.read() == seen_at(3)


NAMES = [
    "",
    '"',
    "\\",
    '\\"',
    "a\nb",
    "\0",
    "ü",
    "\u2028",
    "\ud800",
    "🗄",
    '", "sequence": 9, "',
    "b5f1c9d86b1f4d0d",
    "x" * 500,
]


@given(
    *(st.sampled_from(NAMES) | st.text(max_size=40) for _ in range(4)),
    st.none() | st.sampled_from(NAMES) | st.text(max_size=40),
    st.integers(0, 2**64),
    st.integers(0, 2**64),
    st.binary(max_size=32),
    st.booleans(),
)
def test_lines_are_json(ledger, kind, location, place, anchor, sequence, verified, chain, keyed):
    """Whatever names places have, a line is what a JSON encoder makes of it, and is read as it was written."""
    file = FileWitness(Path("never made"), KEY)
    sighting = Sighting(ledger, kind, location, place, sequence, chain.hex(), anchor, verified, keyed)
    text = json.dumps(sighting._asdict(), sort_keys=True)
    mac = hmac.new(KEY, text.encode(), "sha256").hexdigest()
    line = file._line(sighting)
    assert line.rstrip() == f'{text[:-1]}, "mac": "{mac}"}}'.encode()
    assert file._parse(line) == sighting


def test_what_it_wrote_is_read_again(noted, path):
    """Whoever has noted something sees what others make of the file afterwards, also of the very line."""
    for number in (1, 2, 3):
        noted.advance(seen_at(number))
        content = path.read_bytes()
        assert noted.read() == FileWitness(path, KEY).read() == seen_at(number)
        newest = 4096 * (b'"sequence": %d' % number in content[4096:])
        path.write_bytes(content[:newest] + b"x" * 4096 + content[newest + 4096 :])
        assert noted.read().sequence == number - 1
        path.write_bytes(content)
        assert noted.read() == seen_at(number)
    FileWitness(path, KEY).advance(seen_at(9))
    assert noted.read() == seen_at(9)


def test_there_is_none(path):
    """A missing file is told apart from one that has seen nothing, and is not made by noting."""
    assert FileWitness(path, KEY).read() is None
    with pytest.raises(LedgerUnavailable, match="missing"):
        FileWitness(path, KEY).advance(SEEN)
    assert not path.exists()


def test_a_write_that_was_cut_off(noted, path):
    """Half of a new line leaves the one before; the next note goes over the damaged one."""
    noted.advance(seen_at(1))
    noted.advance(seen_at(2))
    line = noted._line(seen_at(3))
    older = 0 if b'"sequence": 1' in path.read_bytes()[:4096] else 4096
    with path.open("r+b") as file:
        file.seek(older)
        file.write(line[:77])
    assert FileWitness(path, KEY).read() == seen_at(2)
    assert FileWitness(path, KEY).advance(seen_at(3)) == seen_at(3)
    assert FileWitness(path, KEY).read() == seen_at(3)


@pytest.mark.parametrize("content", [b"", b"{", b"[]", b"{}", b"\xff", b"null", b" " * 8192])
def test_damage_is_said(noted, path, content):
    """What cannot be read is not taken for a deployment that was never served."""
    path.write_bytes(content)
    with pytest.raises(LedgerDamaged, match=path.name):
        FileWitness(path, KEY).read()


@pytest.mark.parametrize(
    ("name", "value"),
    [("sequence", 3), ("chain", "11" * 32), ("ledger", "other"), ("place", ""), ("anchor", "x")],
)
def test_nobody_writes_it_without_the_key(noted, path, name, value):
    """A line that was changed by hand, or made with another key, does not count."""
    noted.advance(seen_at(5))
    values = json.loads(path.read_bytes()[4096:]) | {name: value}
    path.write_bytes(json.dumps(values).encode().ljust(4095) + b"\n")
    with pytest.raises(LedgerDamaged):
        FileWitness(path, KEY).read()
    noted.close()
    FileWitness(path, b"another key").replace(seen_at(1))
    with pytest.raises(LedgerDamaged):
        FileWitness(path, KEY).read()


def test_processes_and_threads_share_it(noted, path):
    """Witnesses of several processes note in any order; the farthest stands."""
    files_open = [FileWitness(path, KEY) for _ in range(4)]

    def note(i):
        for number in range(i, 200, 4):
            assert files_open[i].advance(seen_at(number)).sequence >= number

    threads = [threading.Thread(target=note, args=(i,)) for i in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert noted.read().sequence == 199
    for file in files_open:
        file.close()


def remove(path):
    path.unlink()


def exchange(path):
    path.rename(path.with_name("old"))
    path.write_bytes(path.with_name("old").read_bytes())


@pytest.mark.parametrize("meddle", [remove, exchange])
def test_a_witness_that_was_taken_away(tmp_path, meddle):
    """A running session notices that its witness is gone or another one, and answers nothing new."""
    home = found_home(tmp_path)
    with home.open() as ledger:
        session = make_session(ledger)
        session.serve([ask(1)])
        meddle(home.witness)
        with pytest.raises(LedgerConflict, match="removed or replaced"):
            session.serve([ask(2)])
        assert ledger.load().sequence == 1


def test_no_answer_leaves_that_cannot_be_noted(tmp_path, monkeypatch):
    """If the witness cannot be synced the client gets nothing; the answer is on record for when it can be."""
    home = found_home(tmp_path)
    with home.open() as ledger:
        session = make_session(ledger)
        session.serve([ask(1)])
        with monkeypatch.context() as patch:
            patch.setattr(witness.os, "fdatasync", lambda _: (_ for _ in ()).throw(OSError(28, "full")))
            with pytest.raises(LedgerUnavailable, match="no answer leaves"):
                session.serve([ask(2)])
            with pytest.raises(LedgerUnavailable, match="full"):
                session.check_ledger()
        session.check_ledger()
        ((release,),) = session.serve([ask(2)])
        assert (release.sequence, release.charge) == (2, 0.0)


def test_exhausted_file_descriptors_do_not_silence_it(tmp_path):
    """It needs no new descriptor: whoever takes all of them cannot freeze what it knows while answers go on."""
    home = found_home(tmp_path)
    with home.open() as ledger:
        session = make_session(ledger)
        session.serve([ask(1)])
        taken = []
        try:
            while True:
                taken.append(os.open("/dev/null", os.O_RDONLY))
        except OSError:
            pass
        try:
            session.serve([ask(2, 3)])
        finally:
            for handle in taken:
                os.close(handle)
    assert FileWitness(home.witness, KEY).read().sequence == 3


def test_it_is_noted_before_the_answer_leaves(tmp_path):
    """After every answer the witness is where the ledger is: there is no moment in which a copy could be put back."""
    home = found_home(tmp_path)
    with home.open() as ledger:
        session = make_session(ledger)
        for number in range(1, 20):
            ((release,),) = session.serve([ask(number)])
            assert FileWitness(home.witness, KEY).read().link == ledger.ledger.seen
            assert release.sequence == number


def test_repeated_answers_do_not_write(tmp_path):
    """An answer that was noted is given again while nothing can be written at all."""
    home = found_home(tmp_path)
    (first,) = serve_at(home, 1)
    with home.open() as ledger:
        session = make_session(ledger)
        asked = ask(1)
        known = session.recall(asked.digests)
        ledger.ledger._connections.turn = None
        ledger._witnesses[0].advance = None
        ((again,),) = session.serve([type(asked)(asked.digests, asked.ballots, asked.rows, known)])
    assert again[:2] == first[:2]


def test_files_are_replaced_whole(tmp_path, monkeypatch):
    """A write that fails leaves the old content and no draft; drafts of killed processes are removed."""
    path = tmp_path / "file"
    files.write_whole(path, b"old")
    with monkeypatch.context() as patch:
        patch.setattr(files.os, "fsync", lambda handle: (_ for _ in ()).throw(OSError("broken")))
        with pytest.raises(OSError, match="broken"):
            files.write_whole(path, b"new")
    assert path.read_bytes() == b"old"
    (tmp_path / "file.0123.new").touch()
    files.remove_drafts(path)
    assert [file.name for file in tmp_path.iterdir()] == ["file"]
