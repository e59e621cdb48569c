"""Vocabularies: public ones as they are published, learned ones from the subset alone."""

import subprocess
import sys

import pytest
from tiny_networks import plain_texts

from pacpredict.exceptions import InvalidInput
from pacpredict.learners.torch.wordpiece import SPECIAL, Encoder, learn_vocabulary, read_vocabulary

PUBLIC = [*SPECIAL, "un", "##break", "##able", "glass", ",", "!", "##s"]
TRAIN = """
import hashlib, sys
sys.path.insert(0, sys.argv[1])
from tiny_networks import plain_texts
from pacpredict.learners.torch.wordpiece import learn_vocabulary
texts = plain_texts(200)[0] + ["Grüße, naïve Æsir", "数据 と 日本"]
print(hashlib.sha256("|".join(learn_vocabulary(texts, 300)).encode()).hexdigest())
"""


def test_same_texts_give_the_same_vocabulary():
    """Several processes learn the same pieces with the same numbers, which the library alone does not guarantee."""
    support = next(path for path in sys.path if path.endswith("tests/support"))
    learned = {
        subprocess.run([sys.executable, "-c", TRAIN, support], capture_output=True, check=True).stdout
        for _ in range(4)
    }
    assert len(learned) == 1


def test_learned_vocabulary_covers_its_texts():
    """Words of the texts become pieces, frequent ones whole; nothing of them is unknown."""
    texts, _ = plain_texts(100)
    pieces = learn_vocabulary(texts, 300)
    assert pieces[:5] == SPECIAL
    assert len(pieces) == len(set(pieces)) <= 300
    assert {"the", "was", "film"} <= set(pieces)
    unknown = pieces.index("[UNK]")
    assert not any(unknown in tokens for tokens in Encoder(pieces, 64)(texts))


def test_rare_characters_do_not_crowd_out_words():
    """A vocabulary keeps its size when there are more characters than it could hold."""
    texts = [chr(0x4E00 + i) for i in range(500)] + ["good film"] * 50
    pieces = learn_vocabulary(texts, 200)
    assert len(pieces) <= 200
    assert "good" in pieces


def test_encodes_as_transformers_does(tmp_path):
    """A published vocabulary gives the numbers that transformers' own tokenizer gives, cut at the same place."""
    from transformers import BertTokenizerFast  # noqa: PLC0415

    path = tmp_path / "vocab.txt"
    path.write_text("\n".join(PUBLIC) + "\n")
    theirs = BertTokenizerFast(str(path), do_lower_case=True)
    ours = Encoder(read_vocabulary(path), 8)
    for text in ("Unbreakable GLASS, glass!", "ünbreakables", "xyz", "glass " * 20):
        assert ours([text]) == [theirs(text, truncation=True, max_length=8)["input_ids"]]


@pytest.mark.parametrize(
    ("content", "complaint"),
    [
        (b"glass\n", r"lacks \[PAD\], \[UNK\], \[CLS\], \[SEP\]"),
        ("\n".join([*PUBLIC, "glass"]).encode(), "has pieces twice"),
        (b"\xff\xfe", "cannot be read"),
        (None, "cannot be read"),
    ],
)
def test_other_files_are_refused(tmp_path, content, complaint):
    """What is not a vocabulary of BERT is refused with what is wrong."""
    path = tmp_path / "vocab.txt"
    if content is not None:
        path.write_bytes(content)
    with pytest.raises(InvalidInput, match=complaint):
        read_vocabulary(path)
