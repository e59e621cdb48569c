"""BERT for texts (Devlin et al., 2019), small and trained from scratch, as the paper trains it."""

from collections.abc import Sequence
from functools import lru_cache
from typing import NamedTuple

import numpy as np
import torch
from torch import nn
from torch.nn import functional

from pacpredict.exceptions import InvalidModel
from pacpredict.learners.journal import Journal
from pacpredict.learners.torch.course import Course, Outcome, Plan, steps_per_epoch
from pacpredict.learners.torch.device import repeatable_training
from pacpredict.learners.torch.schedule import warming_up
from pacpredict.learners.torch.settings import BertSettings
from pacpredict.learners.torch.voter import Form, Group
from pacpredict.learners.torch.ways import Shape
from pacpredict.learners.torch.weights import Tensors
from pacpredict.learners.torch.wordpiece import Encoder
from pacpredict.types import BoolArray, IntArray

# Texts are padded to the next of these lengths. How far depends on the text alone, or in training on the batch.
_LENGTHS = (32, 64, 128, 256, 512)
_HELD_OUT = 2  # the stream of random numbers that decides which records are; Course uses 0 and 1

_VOCABULARY = "vocabulary"  # stored beside the parameters: its pieces, one on each line
_CLASSES = "model.classifier.bias"

Tokens = Sequence[Sequence[int]]


class Bert(nn.Module):
    """transformers' BertForSequenceClassification, which takes numbers of pieces and which of them count."""

    def __init__(
        self, settings: BertSettings, n_pieces: int, n_classes: int, attention: str = "sdpa"
    ) -> None:
        from transformers import BertConfig, BertForSequenceClassification  # noqa: PLC0415  # takes seconds

        super().__init__()
        self.model = BertForSequenceClassification(
            BertConfig(
                vocab_size=n_pieces,
                hidden_size=settings.hidden,
                num_hidden_layers=settings.layers,
                num_attention_heads=settings.heads,
                intermediate_size=settings.feed_forward,
                hidden_dropout_prob=settings.dropout,
                attention_probs_dropout_prob=settings.dropout,
                max_position_embeddings=settings.tokens,
                num_labels=n_classes,
                attn_implementation=attention,
            )
        )

    def forward(self, pieces: torch.Tensor, mask: torch.Tensor) -> torch.Tensor:
        # All inputs are given, so that nothing is taken from buffers that are not among the parameters.
        places = torch.arange(pieces.shape[1], device=pieces.device)[None]
        answer = self.model(
            input_ids=pieces,
            attention_mask=mask,
            position_ids=places,
            token_type_ids=torch.zeros_like(pieces),
        )
        return answer.logits


class Padded(NamedTuple):
    pieces: torch.Tensor  # (n, length)
    mask: torch.Tensor  # the same; 0 where there is only padding


def padded_length(n_tokens: int, most: int) -> int:
    return min(most, next((length for length in _LENGTHS if length >= n_tokens), most))


def pad(tokens: Tokens, length: int, padding: int, device: str) -> Padded:
    pieces = np.full((len(tokens), length), padding, np.int64)
    mask = np.zeros((len(tokens), length), np.int64)
    for i, text in enumerate(tokens):
        pieces[i, : len(text)] = text
        mask[i, : len(text)] = 1
    return Padded(torch.from_numpy(pieces).to(device), torch.from_numpy(mask).to(device))


class TextProblem:
    """Texts and their labels, some of them held out to decide when to stop."""

    def __init__(
        self,
        network: nn.Module,
        tokens: Tokens,
        labels: IntArray,
        settings: BertSettings,
        padding: int,
        held_out: BoolArray,
    ) -> None:
        self._network, self._tokens, self._settings, self._padding = network, tokens, settings, padding
        self._labels = torch.from_numpy(np.asarray(labels, np.int64)).to(settings.device)
        self._held_out, self._trained_on = np.flatnonzero(held_out), np.flatnonzero(~held_out)

    @property
    def n_records(self) -> int:
        return len(self._trained_on)

    def loss(self, batch: IntArray, generator: np.random.Generator) -> torch.Tensor:  # noqa: ARG002  # only dropout
        chosen = self._trained_on[batch]
        return functional.cross_entropy(self._scores(chosen), self._labels[torch.from_numpy(chosen)])

    def accuracy(self) -> float | None:
        if not len(self._held_out):
            return None
        self._network.eval()
        size = self._settings.batch
        n_right = 0
        with torch.no_grad():
            for start in range(0, len(self._held_out), size):
                chosen = self._held_out[start : start + size]
                answers = self._scores(chosen).argmax(dim=1)
                n_right += int((answers == self._labels[torch.from_numpy(chosen)]).sum())
        return n_right / len(self._held_out)

    def _scores(self, chosen: IntArray) -> torch.Tensor:
        tokens = [self._tokens[i] for i in chosen]
        length = padded_length(max(map(len, tokens)), self._settings.tokens)
        scores: torch.Tensor = self._network(*pad(tokens, length, self._padding, self._settings.device))
        return scores


def hold_out(units: IntArray, share: float, seed: int) -> BoolArray:
    """Choose about that share of the records, all of a unit or none: what others of it say would give one away."""
    _, own, sizes = np.unique(units, return_inverse=True, return_counts=True)
    order = np.random.default_rng([seed, _HELD_OUT]).permutation(len(sizes))
    reached = np.cumsum(sizes[order])
    n_chosen = 0 if share == 0 else 1 + int(np.searchsorted(reached, round(share * len(units))))
    # Somebody must be trained on.
    return np.isin(own, order[: min(n_chosen, len(sizes) - 1)])


def train(
    texts: Sequence[str],
    labels: IntArray,
    n_classes: int,
    pieces: Sequence[str],
    settings: BertSettings,
    seed: int,
    journal: Journal,
    units: IntArray | None = None,
) -> Outcome:
    encode = Encoder(pieces, settings.tokens)
    held_out = hold_out(np.arange(len(texts)) if units is None else units, settings.held_out, seed)
    with repeatable_training():
        torch.manual_seed(seed)
        network = Bert(settings, len(pieces), n_classes).to(settings.device)
        problem = TextProblem(network, encode(texts), labels, settings, encode.padding, held_out)
        n_steps = settings.epochs * steps_per_epoch(problem.n_records, settings.batch)
        rate = warming_up(settings.learning_rate, settings.warmup_steps, n_steps)
        plan = Plan(
            settings.epochs, settings.batch, rate, settings.clip, settings.patience, mixed=settings.is_mixed
        )
        outcome = Course(network, _optimizer(network, settings), problem, plan, seed).run(journal)
    return Outcome({**outcome.state, _VOCABULARY: vocabulary_tensor(pieces)}, outcome.notes)


def _optimizer(network: nn.Module, settings: BertSettings) -> torch.optim.Optimizer:
    """Let weights decay, but not biases and norms, as transformers' Trainer does: these have one dimension."""
    parameters = list(network.parameters())
    groups = [
        {"params": [p for p in parameters if p.ndim > 1], "weight_decay": settings.weight_decay},
        {"params": [p for p in parameters if p.ndim == 1], "weight_decay": 0.0},
    ]
    return torch.optim.AdamW(groups, lr=settings.learning_rate)


def vocabulary_tensor(pieces: Sequence[str]) -> torch.Tensor:
    return torch.frombuffer(bytearray("\n".join(pieces).encode()), dtype=torch.uint8)


def stored_pieces(stored: Tensors) -> tuple[str, ...]:
    """Return the vocabulary of a network that was stored."""
    if _VOCABULARY not in stored or stored[_VOCABULARY].dtype != torch.uint8:
        raise InvalidModel("this file does not hold a BERT with its vocabulary")
    return tuple(stored[_VOCABULARY].numpy().tobytes().decode("utf-8", "replace").split("\n"))


class Berts:
    """What the voter must know of BERT."""

    def __init__(self, settings: BertSettings) -> None:
        self._settings = settings
        self._encoder = lru_cache(maxsize=1)(
            self._make_encoder
        )  # all networks have the same, or each its own

    def split(self, stored: Tensors) -> tuple[Form, Tensors]:
        pieces = stored_pieces(stored)
        if _CLASSES not in stored:
            raise InvalidModel("this file does not hold a BERT that tells classes apart")
        parameters = {name: values for name, values in stored.items() if name != _VOCABULARY}
        return Form((len(pieces), len(stored[_CLASSES])), stored[_VOCABULARY].numpy().tobytes()), parameters

    def skeleton(self, shape: Shape) -> Bert:
        n_pieces, n_classes = shape
        with torch.device("meta"):
            return Bert(
                self._settings, n_pieces, n_classes, attention="eager"
            ).eval()  # the other cannot be stacked

    def groups(self, reader: bytes, prepared: Sequence[str]) -> list[Group]:
        encode = self._encoder(reader)
        tokens = encode(prepared)
        lengths = np.array([padded_length(len(text), self._settings.tokens) for text in tokens])
        return [
            Group(rows, pad([tokens[i] for i in rows], length, encode.padding, "cpu"))
            for length in np.unique(lengths).tolist()
            for rows in [np.flatnonzero(lengths == length)]
        ]

    def _make_encoder(self, reader: bytes) -> Encoder:
        return Encoder(reader.decode().split("\n"), self._settings.tokens)
