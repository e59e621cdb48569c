"""Votes of networks: the same whatever the way, the batch, the threads, and whether the networks fit into memory."""

import numpy as np
import pytest
import torch
from racing import race
from tiny_networks import TINY_BERT, TINY_RESNET, plain_texts

from pacpredict.exceptions import InvalidModel
from pacpredict.learners.torch import augment
from pacpredict.learners.torch.bert import Bert, Berts, pad, padded_length, vocabulary_tensor
from pacpredict.learners.torch.settings import BertSettings, WideResNetSettings
from pacpredict.learners.torch.voter import Networks
from pacpredict.learners.torch.ways import Stack, Way, Ways
from pacpredict.learners.torch.weights import from_bytes, to_bytes
from pacpredict.learners.torch.wide_resnet import WideResNet, WideResNets
from pacpredict.learners.torch.wordpiece import Encoder, learn_vocabulary

RESNET, BERT = WideResNetSettings.of(TINY_RESNET), BertSettings.of(TINY_BERT)
M, N = 11, 12
WAYS = [Way(1), Way(1, is_stacked=True), Way(4), Way(4, is_stacked=True), None]
# Subsets with all classes, with two of them, and with one, which have no network.
CLASSES = [np.arange(3)] * 9 + [np.array([0, 2]), np.array([1])]


def resnets():
    """Return random networks whose scores depend on all of their parts, and images that they see differently."""
    rng = np.random.default_rng(0)
    tints = rng.random((N, 1, 1, 3)) * rng.random((N, 1, 1, 1))
    images = (rng.random((N, 32, 32, 3)) * tints * 256).astype(np.uint8)
    inputs = augment.normalise(images)
    stored, expected = [], np.full((N, M), 1)
    for i, own in enumerate(CLASSES):
        torch.manual_seed(i)
        network = WideResNet(10, 1, len(own)).eval()
        with torch.no_grad():
            for module in network.modules():
                if isinstance(module, torch.nn.BatchNorm2d):
                    module.running_mean.normal_(0, 0.5)
                    module.running_var.uniform_(0.5, 2)
            network.head.bias -= network(inputs).mean(dim=0)  # so that no class is ahead everywhere
            expected[:, i] = own[network(inputs).argmax(dim=1)]
        stored.append(to_bytes(network.state_dict()) if len(own) > 1 else None)
    return WideResNets(RESNET), stored, images, expected


def berts():
    """Return random networks with vocabularies of their own, and texts of several lengths."""
    texts = [*plain_texts(N - 5)[0], *(" ".join(["good film"] * n) for n in (1, 2, 8, 9, 40))]
    stored, expected = [], np.full((N, M), 1)
    for i, own in enumerate(CLASSES):
        pieces = learn_vocabulary(plain_texts(20 + 10 * (i % 2))[0], 300)  # there are two of them
        torch.manual_seed(i)
        network = Bert(BERT, len(pieces), len(own), attention="eager").eval()
        for parameter in network.parameters():
            parameter.data += 0.3 * torch.randn_like(parameter)
        state = {**network.state_dict(), "vocabulary": vocabulary_tensor(pieces)}
        stored.append(to_bytes(state) if len(own) > 1 else None)
        for row, tokens in enumerate(Encoder(pieces, BERT.tokens)(texts)):
            with torch.no_grad():
                scores = network(*pad([tokens], padded_length(len(tokens), BERT.tokens), 0, "cpu"))
            expected[row, i] = own[scores.argmax()]
    return Berts(BERT), stored, texts, expected


KINDS = {"wide-resnet": resnets, "bert": berts}


@pytest.fixture(scope="module", params=KINDS)
def case(request):
    return KINDS[request.param]()


def take(rows, indices):
    return rows[indices] if isinstance(rows, np.ndarray) else [rows[i] for i in indices]


def test_the_case_is_not_trivial(case):
    """The networks do not all agree, and no network always says the same."""
    _, _, _, expected = case
    assert len(np.unique(expected, axis=0)) > 5
    assert sum(len(np.unique(column)) > 1 for column in expected.T) > 5


@pytest.mark.parametrize("way", WAYS)
@pytest.mark.parametrize("n_threads", [1, 2])
def test_votes_are_those_of_each_network_alone(case, way, n_threads):
    """Each network votes as it does when it is asked by itself, in every way, measured or given."""
    architecture, stored, rows, expected = case
    votes = Networks(architecture, stored, CLASSES, way=way).votes(rows, n_threads)
    assert votes.dtype == np.int16
    assert np.array_equal(votes, expected)


def outputs_of(ways, stack, inputs):
    with torch.inference_mode():
        return ways.outputs(stack, inputs)


@pytest.mark.parametrize("way", [Way(1), Way(1, is_stacked=True), None])
def test_outputs_do_not_depend_on_the_batch(way, monkeypatch):
    """To the last bit: alone, among others, in any order, a row has the same outputs, in any way that is chosen."""
    # If all took the same time, the largest block would be chosen among those whose places make no difference.
    monkeypatch.setattr("pacpredict.learners.torch.ways._fastest", lambda _: 1.0)
    architecture, stored, images, _ = resnets()
    states = [from_bytes(data).tensors for data in stored[:8]]
    stack = Stack.of((3,), states, "cpu")
    inputs = augment.normalise(images)
    ways = Ways(architecture.skeleton, way)
    whole = outputs_of(ways, stack, (inputs,))
    assert whole.shape == (8, N, 3)
    rng = np.random.default_rng(0)
    for size in (1, 2, 5, N):
        chosen = torch.from_numpy(rng.permutation(N)[:size])
        assert torch.equal(outputs_of(ways, stack, (inputs[chosen],)), whole[:, chosen])


def test_a_size_whose_places_differ_is_not_used():
    """If the place within a block made a difference to the last bit, rows would be computed one by one."""

    class Uneven(torch.nn.Module):
        """A network as a careless kernel would compute it: another order of summation from the second row on."""

        def __init__(self):
            super().__init__()
            self.weight = torch.nn.Parameter(torch.zeros(300, 8))

        def forward(self, rows):
            products = rows[:, :, None] * self.weight
            return torch.cat([products[:1].sum(dim=1), products[1:].flip(1).sum(dim=1)])

    torch.manual_seed(0)
    stack = Stack((8,), {"weight": torch.randn(2, 300, 8)})
    inputs = (torch.randn(9, 300),)
    ways = Ways(lambda _: Uneven())
    whole = outputs_of(ways, stack, inputs)
    assert {way.rows for way in ways._chosen.values()} == {1}
    assert torch.equal(outputs_of(ways, stack, (inputs[0][4:6],)), whole[:, 4:6])


@pytest.mark.parametrize("n_kept", [0, 3, M])
def test_networks_that_do_not_fit_are_read_each_time(case, n_kept):
    """Memory for some networks only changes nothing but how often the others are read."""
    architecture, stored, rows, expected = case

    class Counting(list):
        def __getitem__(self, i):
            read[i] += 1
            return super().__getitem__(i)

    read = np.zeros(M, int)
    memory = n_kept * len(stored[0]) + 10
    voter = Networks(architecture, Counting(stored), CLASSES, memory=memory, way=Way(1))
    for _ in range(2):
        assert np.array_equal(voter.votes(rows), expected)
    read[0] -= 1  # to learn how large a network is
    assert read.tolist() == [1] * min(n_kept, M - 1) + [2] * (M - 1 - n_kept) + [0]


def test_threads_that_ask_at_the_same_time_do_not_disturb_each_other(case):
    """A skeleton holds the parameters of one network at a time, so each thread has its own."""
    architecture, stored, rows, expected = case
    voter = Networks(architecture, stored, CLASSES, way=Way(1))
    wrong = []

    def ask(thread):
        rng = np.random.default_rng(thread)
        for _ in range(2):
            chosen = rng.permutation(N)[:4]
            if not np.array_equal(voter.votes(take(rows, chosen)), expected[chosen]):
                wrong.append(thread)

    race(ask, 4)
    assert not wrong


def test_files_that_do_not_fit_are_refused():
    """A file of another architecture, of other classes, or of anything else is an InvalidModel."""
    architecture, stored, images, _ = resnets()
    state = from_bytes(stored[0]).tensors
    del state["norm.weight"]
    doubles = {name: values.double() for name, values in from_bytes(stored[0]).tensors.items()}
    for data in (
        b"",
        b"nonsense",
        stored[0][:-10],
        to_bytes(state),
        to_bytes(doubles),
        stored[9],
        to_bytes({}),
    ):
        with pytest.raises(InvalidModel):
            Networks(architecture, [data, *stored[1:]], CLASSES).votes(images)
    with pytest.raises(InvalidModel):
        Networks(WideResNets(WideResNetSettings(depth=16, width=1)), stored, CLASSES).votes(images)
    with pytest.raises(InvalidModel, match="vocabulary"):
        Networks(Berts(BERT), stored, CLASSES).votes(["text"])
