"""Networks with random parameters, to be timed: a user's loop over them, and the voter of all."""

from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np
import torch

from pacpredict.learners.torch import augment, weights
from pacpredict.learners.torch.bert import Bert, Berts, pad, vocabulary_tensor
from pacpredict.learners.torch.settings import BertSettings, WideResNetSettings
from pacpredict.learners.torch.voter import Networks
from pacpredict.learners.torch.ways import Way
from pacpredict.learners.torch.wide_resnet import WideResNet, WideResNets
from pacpredict.learners.torch.wordpiece import SPECIAL, Encoder

N_CLASSES = 10
N_WORDS = 30_522
PIECES = (*SPECIAL, *(f"w{i}" for i in range(N_WORDS - len(SPECIAL))))
WORDS_PER_TEXT = 200  # as long as a review

# As large as in the paper, and small ones; how many of each are timed: a network of the first kind takes 146 MB.
SIZES: dict[str, tuple[int, dict[str, int]]] = {
    "wide-resnet": (4, {}),
    "wide-resnet, 10-1": (128, {"depth": 10, "width": 1}),
    "bert-small": (4, {}),
    "bert-small, 2 x 64": (128, {"layers": 2, "hidden": 64, "heads": 2, "feed_forward": 256}),
}


class Alone:
    """A network as it is asked without pacpredict: all rows in one batch."""

    def __init__(self, network: torch.nn.Module, read: Callable[[Any], tuple[torch.Tensor, ...]]) -> None:
        self._network, self._read = network.eval(), read

    def predict(self, rows: Any) -> Any:
        with torch.inference_mode():
            return self._network(*self._read(rows)).argmax(dim=1).numpy()


class RandomNetworks(NamedTuple):
    alone: list[Alone]
    voter: Callable[
        [Way | None], Networks
    ]  # all of them, ready to vote; by default in the way that is measured
    rows: Any  # to ask about


def random_networks(name: str, n_rows: int) -> RandomNetworks:
    return _resnets(name, n_rows) if name.startswith("wide") else _berts(name, n_rows)


def _resnets(name: str, n_rows: int) -> RandomNetworks:
    n_models, params = SIZES[name]
    settings = WideResNetSettings.of(params)
    networks = [WideResNet(settings.depth, settings.width, N_CLASSES) for _ in range(n_models)]
    stored = [weights.to_bytes(network.state_dict()) for network in networks]
    classes = [np.arange(N_CLASSES)] * n_models
    return RandomNetworks(
        [Alone(network, lambda images: (augment.normalise(images),)) for network in networks],
        lambda way: Networks(WideResNets(settings), stored, classes, way=way),
        np.random.default_rng(0).integers(256, size=(n_rows, 32, 32, 3), dtype=np.uint8),
    )


def _berts(name: str, n_rows: int) -> RandomNetworks:
    n_models, params = SIZES[name]
    settings = BertSettings.of(params)
    encode = Encoder(PIECES, settings.tokens)

    def read(texts: Any) -> tuple[torch.Tensor, ...]:
        return pad(encode(texts), WORDS_PER_TEXT + 2, encode.padding, "cpu")

    networks = [Bert(settings, N_WORDS, N_CLASSES) for _ in range(n_models)]
    vocabulary = {"vocabulary": vocabulary_tensor(PIECES)}
    stored = [weights.to_bytes({**network.state_dict(), **vocabulary}) for network in networks]
    classes = [np.arange(N_CLASSES)] * n_models
    return RandomNetworks(
        [Alone(network, read) for network in networks],
        lambda way: Networks(Berts(settings), stored, classes, way=way),
        random_texts(n_rows, WORDS_PER_TEXT),
    )


def random_texts(n: int, words: int) -> Any:
    drawn = np.random.default_rng(0).integers(len(SPECIAL), N_WORDS, size=(n, words))
    return np.array([" ".join(PIECES[i] for i in line) for line in drawn], dtype=object)
