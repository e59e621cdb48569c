"""Training is repeatable to the bit: whenever it is interrupted, whatever else the process does."""

from concurrent.futures import ThreadPoolExecutor

import pytest
import torch
from tiny_networks import TINY_BERT, TINY_RESNET, coloured_images, plain_texts

from pacpredict.exceptions import TrainingDiverged
from pacpredict.learners.journal import NoJournal
from pacpredict.learners.torch import bert, wide_resnet
from pacpredict.learners.torch.settings import BertSettings, WideResNetSettings
from pacpredict.learners.torch.weights import to_bytes
from pacpredict.learners.torch.wordpiece import learn_vocabulary


class Interrupted(Exception):
    pass


class Interrupting(NoJournal):
    """Keeps every state, and interrupts the training after some steps."""

    def __init__(self, n_steps):
        self.left = n_steps
        self.last = None
        self.stages = []

    def kept(self):
        return self.last

    def keep(self, state):
        self.last = state()
        self.left -= 1
        if self.left == 0:
            raise Interrupted

    def report(self, stage):
        self.stages.append(stage())


def resnet(journal, **changed):
    images, labels = coloured_images(24)
    settings = WideResNetSettings.of({**TINY_RESNET, **changed})
    return to_bytes(wide_resnet.train(images, labels, 3, settings, 1, journal).state)


def tiny_bert(journal, **changed):
    texts, labels = plain_texts()
    settings = BertSettings.of({**TINY_BERT, "patience": 2, **changed})
    pieces = learn_vocabulary(texts, 300)
    return to_bytes(bert.train(texts, labels, 2, pieces, settings, 1, journal).state)


@pytest.mark.parametrize(("train", "steps"), [(resnet, (1, 2, 1)), (tiny_bert, (2, 1, 3, 1))])
@pytest.mark.parametrize("precision", ["single", "mixed"])
def test_interrupted_training_gives_the_same_bytes(train, steps, precision):
    """From any step on, in the middle of an epoch too, what is kept leads to the same network."""
    whole = train(NoJournal(), precision=precision)
    journal = Interrupting(0)
    for n in steps:
        journal.left = n
        with pytest.raises(Interrupted):
            train(journal, precision=precision)
    journal.left = -1
    assert train(journal, precision=precision) == whole


def test_two_trainings_in_threads_do_not_disturb_each_other():
    """Dropout draws from numbers that a process has only once; trainings in threads still repeat."""
    with ThreadPoolExecutor(2) as threads:
        assert len(set(threads.map(lambda _: tiny_bert(NoJournal()), range(3)))) == 1


def test_leaves_no_trace():
    """The process has its threads, its random numbers and its switches as before."""
    torch.manual_seed(7)
    expected = torch.rand(3)
    torch.manual_seed(7)
    torch.set_num_threads(2)
    resnet(NoJournal())
    assert torch.equal(torch.rand(3), expected)
    assert torch.get_num_threads() == 2
    assert not torch.are_deterministic_algorithms_enabled()


def test_seed_and_settings_matter():
    """Another seed or setting gives another network."""
    images, labels = coloured_images(24)
    assert resnet(NoJournal()) != resnet(NoJournal(), mixup=0)
    settings = WideResNetSettings.of(TINY_RESNET)
    one, other = (
        to_bytes(wide_resnet.train(images, labels, 3, settings, seed, NoJournal()).state) for seed in (1, 2)
    )
    assert one != other


def test_reports_epoch_loss_and_share():
    """Whoever watches sees the epochs go by, the loss, and how much of the training is done."""
    journal = Interrupting(-1)
    resnet(journal)
    assert [stage.epoch for stage in journal.stages] == [1, 1, 2, 2, 3, 3]
    assert {stage.n_epochs for stage in journal.stages} == {3}
    assert [stage.share for stage in journal.stages] == pytest.approx([n / 6 for n in range(1, 7)])
    assert all(0 < stage.loss < 10 for stage in journal.stages)


def test_divergence_is_named():
    """A learning rate that blows up ends in an error that says so, not in a network that knows nothing."""
    with pytest.raises(TrainingDiverged, match="lower the learning rate"):
        resnet(NoJournal(), learning_rate=1e30)
