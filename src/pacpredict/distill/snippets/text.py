"""Labels for texts, one on each line, by the student in this folder: python predict.py texts.txt > labels.csv.

Needs NumPy and scikit-learn, ONNX Runtime and tokenizers, or transformers (student.json says which). Nothing is
asked of anybody.
"""

import csv
import json
import sys
from pathlib import Path
from typing import Any

import numpy as np

HOME = Path(__file__).parent
ABOUT = json.loads((HOME / "student.json").read_text("utf-8"))


def words(texts: list[str]) -> Any:
    """Return hashed counts of words and pairs of words, as rows of length 1."""
    from sklearn.feature_extraction.text import HashingVectorizer  # noqa: PLC0415
    from sklearn.preprocessing import normalize  # noqa: PLC0415

    counts = HashingVectorizer(n_features=2**18, ngram_range=(1, 2), norm=None).transform(texts)
    counts.data = np.sign(counts.data) * (1.0 + np.log(np.maximum(np.abs(counts.data), 1.0)))
    return normalize(counts)


def embedded(text: str) -> Any:
    """Return what the public extractors make of a text, rounded to 15 bits as in training."""
    import onnxruntime  # noqa: PLC0415
    from safetensors.numpy import load_file  # noqa: PLC0415
    from tokenizers import Tokenizer  # noqa: PLC0415

    parts = []
    for i, about in enumerate(ABOUT["features"]):
        folder = HOME / "extractors" / str(i)
        tokenizer = Tokenizer.from_file(str(folder / "tokenizer.json"))
        tokenizer.no_padding()
        tokenizer.no_truncation()
        if about["kind"] == "static-texts":
            (vectors,) = load_file(folder / "model.safetensors").values()
            unknown = tokenizer.token_to_id("[UNK]")
            ids = [i for i in tokenizer.encode(text, add_special_tokens=False).ids if i != unknown]
            found = vectors[ids].astype(np.float32).mean(axis=0) if ids else np.zeros(vectors.shape[1])
        else:
            tokenizer.enable_truncation(about["tokens"])
            tokens = tokenizer.encode(text)
            known = {
                "input_ids": tokens.ids,
                "attention_mask": tokens.attention_mask,
                "token_type_ids": tokens.type_ids,
            }
            session = onnxruntime.InferenceSession(folder / "model.onnx")
            given = {one.name: np.array([known[one.name]], np.int64) for one in session.get_inputs()}
            found = np.asarray(session.run(None, given)[0])[0]
            if found.ndim == 2:
                found = found[0] if about["pooling"] == "first" else found.mean(axis=0)
        length = np.linalg.norm(found)
        parts.append(found / length if length > 0 else found)
    whole = np.concatenate(parts)
    unit = np.ldexp(1.0, int(np.frexp(np.abs(whole).max())[1]) - 15)
    return np.rint(whole / unit) * unit


def predict(texts: list[str]) -> list[Any]:
    path = HOME / ABOUT["model"]
    if ABOUT["format"] == "heads":
        is_words = ABOUT["features"][0]["kind"] == "words"
        features = words(texts) if is_words else np.stack([embedded(text) for text in texts])
        with np.load(path, allow_pickle=False) as head:
            scores = features @ head["weights"].astype(float) + head["biases"]
        found = scores.argmax(axis=1) if scores.shape[1] > 1 else (scores[:, 0] > 0).astype(int)
    else:
        import torch  # noqa: PLC0415
        from transformers import AutoModelForSequenceClassification, AutoTokenizer  # noqa: PLC0415

        tokenizer = AutoTokenizer.from_pretrained(path)
        model = AutoModelForSequenceClassification.from_pretrained(path).eval()
        given = tokenizer(texts, padding=True, truncation=True, return_tensors="pt")
        with torch.inference_mode():
            found = model(**given).logits.argmax(dim=1).numpy()
    return [ABOUT["classes"][int(i)] for i in found]


if __name__ == "__main__":
    asked = Path(sys.argv[1]).read_text("utf-8").splitlines()
    csv.writer(sys.stdout, lineterminator="\n").writerows([["label"], *([label] for label in predict(asked))])
