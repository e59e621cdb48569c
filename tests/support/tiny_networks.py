"""Images and texts that tiny networks learn in seconds, for tests."""

import numpy as np

TINY_RESNET = {"depth": 10, "width": 1, "epochs": 3, "batch": 16, "decay_epochs": [2]}
TINY_BERT = {
    "layers": 2,
    "hidden": 32,
    "heads": 2,
    "feed_forward": 64,
    "tokens": 32,
    "vocabulary_size": 300,
    "epochs": 4,
    "batch": 16,
    "warmup_steps": 2,
    "learning_rate": 1e-2,
}


def coloured_images(n=48, n_classes=3, side=32, seed=0):
    """Return noise in which one colour, the label, is brighter."""
    rng = np.random.default_rng(seed)
    labels = np.arange(n) % n_classes
    images = rng.integers(0, 140, size=(n, side, side, 3), dtype=np.uint8)
    images[np.arange(n), :, :, labels] += 80
    return images, labels


def plain_texts(n=48, seed=0):
    """Return sentences with a good or a bad word among others; no two are the same."""
    rng = np.random.default_rng(seed)
    labels = np.arange(n) % 2
    moods = np.array([["dull", "poor", "bad"], ["warm", "great", "good"]])
    others = np.array(["film", "plot", "actor", "scene", "music", "ending"])
    texts = [
        f"the {rng.choice(others)} of number {i} was {rng.choice(moods[label])} and {rng.choice(moods[label])}"
        for i, label in enumerate(labels)
    ]
    return texts, labels
