"""Texts as numbers of word pieces: with a public vocabulary, or with one that is learned from the subset alone."""

import os
from collections import Counter
from collections.abc import Sequence
from pathlib import Path

from tokenizers import Tokenizer, models, normalizers, pre_tokenizers, processors, trainers

from pacpredict.exceptions import InvalidInput

# One thread per model: many are trained at a time.
os.environ.setdefault("TOKENIZERS_PARALLELISM", "false")

PAD, UNKNOWN, FIRST, LAST, MASK = SPECIAL = ("[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]")
_INSIDE = "##"  # before pieces that do not begin a word


def read_vocabulary(path: str | Path) -> tuple[str, ...]:
    """Return the pieces of a file as BERT's are published: one on each line."""
    try:
        pieces = tuple(Path(path).read_text("utf-8").splitlines())
    except (OSError, UnicodeDecodeError) as problem:
        raise InvalidInput(f"the vocabulary {path} cannot be read: {problem}") from problem
    missing = [piece for piece in (PAD, UNKNOWN, FIRST, LAST) if piece not in pieces]
    if missing or len(set(pieces)) < len(pieces):
        what = f"lacks {', '.join(missing)}" if missing else "has pieces twice"
        raise InvalidInput(
            f"the vocabulary {path} {what}: give BERT's pieces, one on each line, as vocab.txt of bert-base-uncased has"
        )
    return pieces


def learn_vocabulary(texts: Sequence[str], size: int) -> tuple[str, ...]:
    """Return at most `size` pieces that make up the texts; the same texts always give the same.

    The trainer numbers characters in an order that changes from process to process, and breaks ties by these numbers.
    Therefore all characters are given to it beforehand, in the order of their code points.
    """
    prepare = normalizers.BertNormalizer(lowercase=True)
    counts: Counter[str] = Counter()
    for text in texts:
        counts.update(prepare.normalize_str(text))
    by_frequency = sorted(counts, key=lambda character: (-counts[character], character))
    # Each character is a piece at the beginning of a word and one inside; half of the vocabulary is left for words.
    kept = sorted(character for character in by_frequency[: size // 4] if not character.isspace())
    rare = dict.fromkeys(map(ord, by_frequency[size // 4 :]), " ")
    alphabet = [*kept, *(_INSIDE + character for character in kept)]
    trainer = trainers.WordPieceTrainer(
        vocab_size=size, special_tokens=[*SPECIAL, *alphabet], show_progress=False
    )
    tokenizer = Tokenizer(models.WordPiece(unk_token=UNKNOWN))
    tokenizer.pre_tokenizer = pre_tokenizers.BertPreTokenizer()
    tokenizer.train_from_iterator((prepare.normalize_str(text).translate(rare) for text in texts), trainer)
    numbers = tokenizer.get_vocab()
    return tuple(sorted(numbers, key=numbers.__getitem__))


class Encoder:
    """Cuts texts into pieces as BERT does, between the marks of the first and the last one."""

    def __init__(self, pieces: Sequence[str], most: int) -> None:
        numbers = {piece: i for i, piece in enumerate(pieces)}
        self.padding = numbers[PAD]
        self._tokenizer = Tokenizer(models.WordPiece(numbers, unk_token=UNKNOWN))
        self._tokenizer.normalizer = normalizers.BertNormalizer(lowercase=True)
        self._tokenizer.pre_tokenizer = pre_tokenizers.BertPreTokenizer()
        self._tokenizer.post_processor = processors.BertProcessing(
            (LAST, numbers[LAST]), (FIRST, numbers[FIRST])
        )
        self._tokenizer.enable_truncation(most)

    def __call__(self, texts: Sequence[str]) -> list[list[int]]:
        return [self._tokenizer.encode(text).ids for text in texts]
