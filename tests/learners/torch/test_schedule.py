"""Learning rates, step by step."""

import pytest
import torch
from transformers import get_linear_schedule_with_warmup

from pacpredict.learners.torch.schedule import falling, warming_up


def rates_of(scheduler, n_steps):
    """Return the rate that PyTorch's scheduler has at each step."""
    rates = []
    for _ in range(n_steps):
        rates.append(scheduler.optimizer.param_groups[0]["lr"])
        scheduler.optimizer.step()
        scheduler.step()
    return rates


def sgd(rate):
    return torch.optim.SGD([torch.nn.Parameter(torch.zeros(1))], lr=rate)


@pytest.mark.parametrize("factor", [0.2, 0.8])
def test_falls_as_pytorchs_multistep_schedule(factor):
    """The rate is that of MultiStepLR, whose steps are epochs: 0.1, from epoch 60 on less, from 120 on still less."""
    steps_per_epoch = 3
    rate = falling(0.1, factor, (60, 120), steps_per_epoch)
    theirs = rates_of(torch.optim.lr_scheduler.MultiStepLR(sgd(0.1), [60, 120], factor), 200)
    ours = [rate(epoch * steps_per_epoch) for epoch in range(200)]
    assert ours == pytest.approx(theirs, rel=1e-12)
    assert rate(60 * steps_per_epoch - 1) == 0.1
    assert rate(60 * steps_per_epoch + steps_per_epoch - 1) == pytest.approx(0.1 * factor)


@pytest.mark.parametrize("n_warm", [0, 1, 5])
def test_warms_up_as_transformers_linear_schedule(n_warm):
    """The rate is that of transformers' Trainer at every step."""
    rate = warming_up(1e-4, n_warm, 40)
    theirs = rates_of(get_linear_schedule_with_warmup(sgd(1e-4), n_warm, 40), 40)
    assert [rate(step) for step in range(40)] == pytest.approx(theirs, rel=1e-12)
