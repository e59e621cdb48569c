"""Networks as learners: parameters, what is missing, and what an artifact keeps of them."""

import json
import subprocess
import sys

import numpy as np
import pytest
from artifacts import fit_small, model_files, rehash
from records import recipe
from tiny_networks import TINY_BERT, TINY_RESNET, coloured_images, plain_texts

from pacpredict import PrivateClassifier
from pacpredict.artifact.artifact import Artifact
from pacpredict.artifact.verify import verify_models
from pacpredict.deployment import Deployment
from pacpredict.exceptions import DeviceUnavailable, InvalidArtifact, InvalidInput, MissingExtra
from pacpredict.learners.registry import learner_from, learner_named, learner_of_config
from pacpredict.learners.torch.settings import BertSettings, WideResNetSettings
from pacpredict.learners.torch.wordpiece import learn_vocabulary
from pacpredict.training.pool import Pool

QUICK_RESNET = {**TINY_RESNET, "epochs": 1}
QUICK_BERT = {**TINY_BERT, "epochs": 1}


@pytest.fixture(scope="module")
def images():
    return coloured_images(24, side=16)


@pytest.fixture(scope="module")
def texts():
    return plain_texts(24)


def pool_of(records, learner):
    return Pool.of(*records, kinds=learner.takes)


def test_defaults_are_the_papers():
    """Without parameters networks have the size and the training of appendix D."""
    resnet, bert = (learner_named(name).settings for name in ("wide-resnet", "bert-small"))
    assert (resnet.depth, resnet.width, resnet.epochs, resnet.batch) == (28, 10, 200, 128)
    assert (resnet.learning_rate, resnet.decay, resnet.decay_epochs) == (0.1, 0.2, (60, 120))
    assert (resnet.momentum, resnet.weight_decay) == (0.9, 5e-4)
    assert (bert.layers, bert.hidden, bert.heads, bert.feed_forward, bert.tokens) == (4, 512, 8, 2048, 512)
    assert (bert.dropout, bert.learning_rate, bert.warmup_steps, bert.weight_decay) == (0.1, 1e-4, 500, 0.01)
    assert (bert.batch, bert.epochs, bert.held_out, bert.vocabulary_size) == (64, 50, 0.1, 30_522)


@pytest.mark.parametrize(("name", "given"), [("wide-resnet", QUICK_RESNET), ("bert-small", QUICK_BERT)])
def test_configuration_makes_the_learner_again(name, given):
    """What an artifact keeps, through JSON, is the same learner; parameters stand beside the defaults."""
    learner = learner_from(name, given)
    assert learner_of_config(json.loads(json.dumps(learner.config()))) == learner
    assert learner.settings.to_json().items() >= given.items()
    assert learner_from(*learner.origin()) == learner


@pytest.mark.parametrize(
    ("kind", "params", "complaint"),
    [
        (WideResNetSettings, {"deep": 28}, "no parameter 'deep'; they have .*depth"),
        (WideResNetSettings, {"depth": 12}, "depth must be 6 n"),
        (WideResNetSettings, {"depth": 10.0}, "depth must be like 28"),
        (WideResNetSettings, {"depth": True}, "depth must be like 28"),
        (WideResNetSettings, {"width": 0}, "width must be at least 1"),
        (WideResNetSettings, {"epochs": 0}, "epochs must be at least 1"),
        (WideResNetSettings, {"momentum": 1}, "momentum must be at least 0 and below 1"),
        (WideResNetSettings, {"mixup": -1}, "mixup must be at least 0"),
        (WideResNetSettings, {"learning_rate": 0}, "learning_rate must be positive"),
        (WideResNetSettings, {"learning_rate": float("nan")}, "learning_rate must be like 0.1"),
        (WideResNetSettings, {"decay": 0}, "decay must be positive"),
        (WideResNetSettings, {"decay_epochs": ["60"]}, "decay_epochs must be like"),
        (WideResNetSettings, {"device": "tpu"}, "device must be one of cpu, cuda"),
        (WideResNetSettings, {"precision": "half"}, "precision must be one of single, mixed"),
        (BertSettings, {"heads": 7}, "hidden must be a multiple of heads"),
        (BertSettings, {"dropout": 1.5}, "dropout must be at least 0 and below 1"),
        (BertSettings, {"held_out": -0.1}, "held_out must be"),
        (BertSettings, {"clip": 0}, "clip must be positive"),
        (BertSettings, {"tokens": 2}, "tokens must be at least 8"),
        (BertSettings, {"vocabulary": 7}, "vocabulary must be like ''"),
    ],
)
def test_wrong_parameters_are_refused(kind, params, complaint):
    """What cannot be trained is refused by the name of the parameter, with what it must be like."""
    with pytest.raises(InvalidInput, match=complaint):
        kind.of(params)


def test_precision_follows_the_device():
    """As in the paper, half of the precision is enough on a GPU; a CPU has no use for it unless it is asked for."""
    assert WideResNetSettings(device="cuda").is_mixed
    assert not WideResNetSettings(device="cpu").is_mixed
    assert not WideResNetSettings(device="cuda", precision="single").is_mixed


def test_no_gpu_where_one_was_asked_for(images, tmp_path, monkeypatch):
    """Without a GPU device=cuda is refused before anything is made."""
    monkeypatch.setattr("torch.cuda.is_available", lambda: False)
    learner = learner_from("wide-resnet", {**QUICK_RESNET, "device": "cuda"})
    with pytest.raises(DeviceUnavailable, match="device=cpu"):
        fit_small(tmp_path / "a.pac", pool_of(images, learner), learner)
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize(
    ("name", "package"),
    [("wide-resnet", "torch"), ("bert-small", "transformers"), ("wide-resnet", "safetensors")],
)
def test_without_the_extra(name, package, monkeypatch):
    """Where a package is missing, whoever asks for networks is told how to install it."""
    monkeypatch.setitem(sys.modules, package, None)
    with pytest.raises(MissingExtra, match=r"the learner .* needs .*pip install 'pacpredict\[torch\]'"):
        learner_named(name, {})


def test_pacpredict_works_without_torch_and_ray(tmp_path):
    """Neither package is imported by what does not need it, and an artifact of networks can still be looked at."""
    code = (
        "import sys\n"
        "class Absent:\n"
        "    def find_spec(self, name, *_):\n"
        "        if name in {'torch', 'ray', 'transformers'}: raise ModuleNotFoundError(name)\n"
        "sys.meta_path.insert(0, Absent())\n"
        "import pacpredict, pacpredict.deployment, pacpredict.cli\n"
        "from pacpredict.learners.registry import learner_of_config\n"
        "learner = learner_of_config({'name': 'wide-resnet', 'params': {'device': 'cpu'}})\n"
        "assert learner.name == 'wide-resnet'\n"
        "from pacpredict import PrivateClassifier\n"
        "import numpy as np\n"
        "x = np.random.default_rng(0).normal(size=(20, 2))\n"
        "PrivateClassifier('ridge', n_models=2).fit(x, x[:, 0] > 0).predict(x[:2])\n"
    )
    subprocess.run([sys.executable, "-W", "ignore", "-c", code], check=True, cwd=tmp_path)


def test_trained_again_networks_are_identical(images, texts, tmp_path):
    """`verify` trains networks again to the same bytes, and notices one that was exchanged for another."""
    for name, given, records in (("wide-resnet", QUICK_RESNET, images), ("bert-small", QUICK_BERT, texts)):
        learner = learner_from(name, given)
        artifact = fit_small(tmp_path / name, pool_of(records, learner), learner)
        assert verify_models(artifact, pool_of(records, learner), 2, n_jobs=1) != []
        model = tmp_path / name / "models" / "000.safetensors"
        model.write_bytes((tmp_path / name / "models" / "001.safetensors").read_bytes())
        rehash(tmp_path / name)
        artifact = Artifact.open(tmp_path / name)
        with pytest.raises(InvalidArtifact, match="model 0 is not what training it again makes"):
            verify_models(artifact, pool_of(records, learner), 4, n_jobs=1)


def test_a_public_vocabulary_stays_with_the_models(texts, tmp_path):
    """The file may be gone: models vote and are trained again with the pieces that they keep."""
    vocabulary = tmp_path / "vocab.txt"
    vocabulary.write_text("\n".join(learn_vocabulary(texts[0], 200)))
    learner = learner_from("bert-small", {**QUICK_BERT, "vocabulary": str(vocabulary)})
    artifact = fit_small(tmp_path / "a.pac", pool_of(texts, learner), learner)
    vocabulary.unlink()
    with Deployment.open(tmp_path / "a.pac") as deployment:
        assert len(deployment.ask(texts[0]).labels) == 24
    assert len(verify_models(artifact, pool_of(texts, learner), 1, n_jobs=1)) == 1


def test_another_vocabulary_is_another_fit(texts, tmp_path):
    """The pieces of a public vocabulary are part of what an interrupted fit goes on with."""
    vocabulary = tmp_path / "vocab.txt"
    learners = []
    for size in (100, 200):
        vocabulary.write_text("\n".join(learn_vocabulary(texts[0], size)))
        learners.append(learner_from("bert-small", {**QUICK_BERT, "vocabulary": str(vocabulary)}))
    assert learners[0].config() != learners[1].config()
    assert learners[0].settings == learners[1].settings


def test_subsets_with_fewer_classes(tmp_path):
    """A subset that lacks a class makes a network without it, and one with a single class none at all."""
    images, _ = coloured_images(16, side=16)
    labels = np.array(["common"] * 13 + ["rare"] * 2 + ["unique"])
    learner = learner_from("wide-resnet", QUICK_RESNET)
    artifact = fit_small(tmp_path / "a.pac", pool_of((images, labels), learner), learner, recipe(n_models=16))
    sizes = {len(record["classes"]) for record in artifact.records()}
    assert len(sizes) > 1
    with Deployment.open(tmp_path / "a.pac") as deployment:
        votes = deployment.curator.ensemble.votes(deployment.artifact.schema.rows(images))
    for column, record in zip(votes.T, artifact.records(), strict=True):
        assert set(column.tolist()) <= set(record["classes"])


def test_in_the_classifier(images, tmp_path):
    """PrivateClassifier trains networks by name, saves them and goes on from there."""
    records, labels = images
    classifier = PrivateClassifier("wide-resnet", params=QUICK_RESNET, n_models=2, n_jobs=1, random_state=1)
    classifier.fit(records, labels)
    answers = classifier.predict(records)
    classifier.save(tmp_path / "a.pac")
    later = PrivateClassifier.load(tmp_path / "a.pac")
    assert np.array_equal(later.predict(records), answers)
    assert later.params.items() >= QUICK_RESNET.items()
    learner = learner_from("wide-resnet", QUICK_RESNET)
    again = fit_small(tmp_path / "b.pac", pool_of(images, learner), learner, recipe(n_models=2))
    assert again.recipe.seed == 1
    assert model_files(tmp_path / "a.pac") == model_files(tmp_path / "b.pac")
