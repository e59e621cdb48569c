"""How much memory the training of a network takes: for itself, and for each image or text of a batch.

Each case takes one step in a process of its own; its highest memory is compared with that before the training began.
Two sizes of batches, large enough for activations to decide, tell what is there in any case (parameters, gradients,
what the optimizer remembers) from what each record adds. Extrapolated to the batches of the paper.

    python benchmarks/memory.py            a table
    python benchmarks/memory.py --json     an object with `cases`
"""

import argparse
import json
import multiprocessing
import resource
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any, NamedTuple

import numpy as np
from networks import PIECES, random_texts

from pacpredict.learners.learner import TrainingSet
from pacpredict.learners.registry import learner_from

CLASSES = ["a", "b"]
PLAIN = {"device": "cpu", "epochs": 1}
TINY = {"layers": 1, "hidden": 8, "heads": 1, "feed_forward": 8}


class Case(NamedTuple):
    params: dict[str, Any]
    tiny: dict[str, Any]  # of a network that imports what there is to import
    batches: tuple[int, int]


CASES = {
    "wide-resnet": Case(PLAIN, {"depth": 10, "width": 1}, (24, 40)),
    "bert-small": Case({**PLAIN, "held_out": 0.0}, TINY, (2, 6)),
}


def records(learner: str, n: int) -> TrainingSet:
    """Return images, or texts that are as long as BERT reads them."""
    if learner == "wide-resnet":
        given = np.random.default_rng(0).integers(256, size=(n, 32, 32, 3), dtype=np.uint8)
    else:
        given = random_texts(n, words=600)
    return TrainingSet(given, np.arange(n) % 2, CLASSES)


def peak() -> int:
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * 1024


def train(learner: str, batch: int, folder: Path, answer: Any) -> None:
    params, tiny, _ = CASES[learner]
    if learner == "bert-small":
        vocabulary = folder / "vocab.txt"
        vocabulary.write_text("\n".join(PIECES))
        params = {**params, "vocabulary": str(vocabulary)}
    learner_from(learner, {**params, **tiny, "batch": 2}).fit(records(learner, 2), None, 0)
    before, how = peak(), learner_from(learner, {**params, "batch": batch})
    trained = how.fit(records(learner, batch), None, 0)
    answer.put((len(how.dump(trained.model)), peak() - before))


def measure(learner: str) -> dict[str, Any]:
    context, found = multiprocessing.get_context("spawn"), []
    few, many = CASES[learner].batches
    for batch in (few, many):
        answer = context.Queue()
        with TemporaryDirectory() as folder:
            process = context.Process(target=train, args=(learner, batch, Path(folder), answer))
            process.start()
            found.append(answer.get())
            process.join()
    (size, small), (_, large) = found
    each = (large - small) / (many - few)
    itself = small - few * each
    batch = learner_from(learner, CASES[learner].params).config()["params"]["batch"]
    return {
        "learner": learner,
        "file_megabytes": round(size / 1e6),
        "itself_megabytes": round(itself / 1e6),
        "record_megabytes": round(each / 1e6, 1),
        "batch": batch,
        "batch_gigabytes": round((itself + batch * each) / 1e9, 1),
    }


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--json", action="store_true", help="print an object for machines")
    parser.add_argument("--learner", choices=CASES, action="append", help="only this one")
    options = parser.parse_args()
    cases = [measure(learner) for learner in options.learner or CASES]
    if options.json:
        print(json.dumps({"cases": cases}, indent=2))
        return
    print(f"{'learner':<12} {'its file':>9} {'training':>9} {'each record':>12} {'with a batch':>20}")
    for case in cases:
        alone = f"{case['file_megabytes']:>6} MB {case['itself_megabytes']:>6} MB {case['record_megabytes']:>9} MB"
        print(f"{case['learner']:<12} {alone} {case['batch_gigabytes']:>9} GB of {case['batch']}")


if __name__ == "__main__":
    main()
