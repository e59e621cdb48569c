"""BERT: the paper's, and one step of its training beside a plain one."""

import numpy as np
import pytest
import torch
from tiny_networks import TINY_BERT, plain_texts
from torch.nn import functional

from pacpredict.learners.journal import NoJournal
from pacpredict.learners.torch import bert
from pacpredict.learners.torch.bert import Bert, hold_out, stored_pieces
from pacpredict.learners.torch.settings import BertSettings
from pacpredict.learners.torch.voter import Networks
from pacpredict.learners.torch.weights import to_bytes
from pacpredict.learners.torch.wordpiece import Encoder, learn_vocabulary

SEED = 5


@pytest.fixture(scope="module")
def texts():
    return plain_texts()


@pytest.fixture(scope="module")
def pieces(texts):
    return learn_vocabulary(texts[0], 300)


def train(texts, pieces, journal=None, **changed):
    settings = BertSettings.of({**TINY_BERT, **changed})
    return bert.train(*texts, 2, pieces, settings, SEED, journal or NoJournal())


def test_has_the_size_of_the_paper():
    """With the vocabulary of bert-base-uncased BERT-Small has 28.8 million parameters for two classes."""
    settings = BertSettings()
    with torch.device("meta"):
        network = Bert(settings, 30_522, 2)
    assert sum(parameter.numel() for parameter in network.parameters()) == 28_764_674
    layers = network.model.bert.encoder.layer
    assert len(layers) == settings.layers == 4
    dropouts = {layer.p for layer in network.modules() if isinstance(layer, torch.nn.Dropout)}
    assert dropouts == {0.1}


def test_one_step_equals_a_plain_one(texts, pieces):
    """A step of AdamW on a clipped gradient changes all parameters as formulas written out do; norms do not decay."""
    changed = {"dropout": 0.0, "epochs": 1, "batch": 64, "held_out": 0.0, "warmup_steps": 0}
    after = train(texts, pieces, **changed).state
    settings = BertSettings.of({**TINY_BERT, **changed})
    torch.manual_seed(SEED)
    network = Bert(settings, len(pieces), 2, attention="eager")
    order = np.random.default_rng([SEED, 0, 0]).permutation(len(texts[0]))
    tokens = Encoder(pieces, 32)([texts[0][i] for i in order])
    ids = torch.tensor([line + [0] * (32 - len(line)) for line in tokens])
    mask = torch.tensor([[1] * len(line) + [0] * (32 - len(line)) for line in tokens])
    scores = network.model(input_ids=ids, attention_mask=mask).logits
    loss = functional.cross_entropy(scores, torch.from_numpy(texts[1][order]))
    loss.backward()
    norm = torch.sqrt(sum((p.grad**2).sum() for p in network.parameters()))
    rate = settings.learning_rate
    for name, before in network.named_parameters():
        gradient = before.grad * min(1.0, 1.0 / (float(norm) + 1e-6))
        # After one step both averages of Adam, corrected for their start at 0, are the gradient and its square.
        expected = before * (1 - rate * (0.01 if before.ndim > 1 else 0.0))
        expected = expected - rate * gradient / (gradient.abs() + 1e-8)
        # Where a gradient is next to nothing its sign is rounding, and decides the step.
        sure = gradient.abs() > 1e-5
        assert torch.allclose(after[name][sure], expected[sure], atol=2e-5), name
        assert (after[name] - expected).abs().max() <= 2.1 * rate, name


def test_learns_and_stops_early(texts, pieces):
    """A tiny network learns good from bad, and training ends when held-out texts are not answered better any more."""
    outcome = train(texts, pieces, epochs=30, patience=4)
    assert outcome.notes["epochs"] == outcome.notes["best_epoch"] + 4 < 30
    fresh = plain_texts(40, seed=9)
    voter = Networks(bert.Berts(BertSettings.of(TINY_BERT)), [to_bytes(outcome.state)], [np.arange(2)])
    assert (voter.votes(fresh[0])[:, 0] == fresh[1]).mean() > 0.9


def test_stores_its_vocabulary(texts, pieces):
    """What is stored of a network suffices to read texts as it was trained to."""
    assert stored_pieces(train(texts, pieces, epochs=1).state) == pieces


def test_holds_out_whole_units():
    """Texts of one person are trained on or held out together; about a tenth is, and never everything."""
    units = np.repeat(np.arange(100) * 7, np.arange(100) % 5 + 1)
    for seed in range(20):
        held_out = hold_out(units, 0.1, seed)
        assert 30 <= held_out.sum() <= 34
        assert not set(units[held_out]) & set(units[~held_out])
    assert hold_out(np.arange(200), 0.1, 0).sum() == 20
    assert hold_out(np.arange(3), 0.1, 0).sum() == 1
    assert not hold_out(units, 0.0, 0).any()
    assert not hold_out(np.zeros(9, np.int64), 0.1, 0).any()
