"""Wide residual networks: the paper's, and one step of their training beside a plain one."""

import numpy as np
import torch
from tiny_networks import TINY_RESNET, coloured_images
from torch.nn import functional

from pacpredict.learners.journal import NoJournal
from pacpredict.learners.torch import augment, wide_resnet
from pacpredict.learners.torch.settings import WideResNetSettings
from pacpredict.learners.torch.wide_resnet import WideResNet

SEED = 5


def n_parameters(network):
    return sum(parameter.numel() for parameter in network.parameters())


def test_has_the_size_of_the_paper():
    """WRN-28-10 for ten classes has 36.5 million parameters, 25 convolutions of 3 x 3 and 3 shortcuts."""
    with torch.device("meta"):
        network = WideResNet(28, 10, 10)
    assert n_parameters(network) == 36_479_194
    sides = [layer.kernel_size for layer in network.modules() if isinstance(layer, torch.nn.Conv2d)]
    assert (sides.count((3, 3)), sides.count((1, 1))) == (25, 3)
    assert not any(isinstance(layer, torch.nn.Dropout) for layer in network.modules())


def plain_forward(state, images, depth):
    """Write the network out with functions, as in figure 1d and table 1 of the original."""

    def norm_relu(x, name):
        mean, variance = (
            x.mean(dim=(0, 2, 3), keepdim=True),
            x.var(dim=(0, 2, 3), keepdim=True, unbiased=False),
        )
        scaled = (x - mean) / torch.sqrt(variance + 1e-5)
        weight, bias = (state[f"{name}.{part}"][:, None, None] for part in ("weight", "bias"))
        return torch.clamp(scaled * weight + bias, min=0)

    x = functional.conv2d(images, state["stem.weight"], padding=1)
    per_group = (depth - 4) // 6
    for i in range(3 * per_group):
        stride = 2 if i in {per_group, 2 * per_group} else 1
        name = f"blocks.{i}"
        active = norm_relu(x, f"{name}.norm1")
        residual = functional.conv2d(active, state[f"{name}.conv1.weight"], stride=stride, padding=1)
        residual = norm_relu(residual, f"{name}.norm2")
        residual = functional.conv2d(residual, state[f"{name}.conv2.weight"], padding=1)
        shortcut = state.get(f"{name}.shortcut.weight")
        x = residual + (x if shortcut is None else functional.conv2d(active, shortcut, stride=stride))
    return norm_relu(x, "norm").mean(dim=(2, 3)) @ state["head.weight"].T + state["head.bias"]


def test_one_step_equals_a_plain_one():
    """A step of momentum with weight decay on a mixed batch changes all parameters as formulas written out do."""
    images, labels = coloured_images(16)
    settings = WideResNetSettings.of({**TINY_RESNET, "epochs": 1})
    after = wide_resnet.train(images, labels, 3, settings, SEED, NoJournal()).state
    torch.manual_seed(SEED)
    state = dict(WideResNet(10, 1, 3).named_parameters())
    order = np.random.default_rng([SEED, 0, 0]).permutation(16)
    generator = np.random.default_rng([SEED, 1, 0])
    generator.integers(2**63)  # the seed of dropout, of which there is none
    guises = augment.flip(augment.crop(images[order], 4, generator), generator)
    mix = augment.draw_mix(16, (32, 32), 1.0, 1.0, generator)
    inputs = augment.mix_images(augment.normalise(guises), mix)
    truth = torch.eye(3)[labels[order]]
    truth = mix.kept * truth + (1 - mix.kept) * truth[mix.partners]
    scores = plain_forward(state, inputs, depth=10)
    loss = -(truth * torch.log_softmax(scores, dim=1)).sum(dim=1).mean()
    gradients = torch.autograd.grad(loss, list(state.values()))
    for (name, before), gradient in zip(state.items(), gradients, strict=True):
        expected = before - 0.1 * (gradient + 5e-4 * before)  # momentum has nothing to remember yet
        assert torch.allclose(after[name], expected, atol=2e-6), name


def test_second_step_remembers_the_first():
    """The second step of SGD moves by its gradient and by 0.9 of the first."""
    images, labels = coloured_images(16)
    params = {**TINY_RESNET, "mixup": 0, "cutmix": 0, "crop_padding": 0, "flip": False, "decay_epochs": []}

    def state_after(**changed):
        settings = WideResNetSettings.of({**params, **changed})
        return wide_resnet.train(images, labels, 3, settings, SEED, NoJournal()).state

    torch.manual_seed(SEED)
    start = WideResNet(10, 1, 3).state_dict()
    one, two, forgetful = (
        state_after(epochs=1),
        state_after(epochs=2),
        state_after(epochs=2, momentum=0.0),
    )
    for name in ("stem.weight", "head.weight"):
        assert torch.allclose(two[name], forgetful[name] + 0.9 * (one[name] - start[name]), atol=1e-6)


def test_learns():
    """A tiny network tells bright colours apart after some epochs."""
    images, labels = coloured_images(60)
    settings = WideResNetSettings.of({**TINY_RESNET, "epochs": 6, "decay_epochs": [4]})
    state = wide_resnet.train(images, labels, 3, settings, SEED, NoJournal()).state
    network = WideResNet(10, 1, 3)
    network.load_state_dict(state)
    fresh, truth = coloured_images(30, seed=9)
    with torch.no_grad():
        answers = network.eval()(augment.normalise(fresh)).argmax(dim=1).numpy()
    assert (answers == truth).mean() > 0.9
