"""Runs the model on the example of this folder with LiteRT, and prints the answer beside the trained model's.

pip install ai-edge-litert numpy; python3 client.py [FILE.tflite]
"""

import json
import re
import sys
from pathlib import Path
from typing import Any

import numpy as np
from ai_edge_litert.interpreter import Interpreter

HERE = Path(__file__).resolve().parent
PUNCTUATION = re.compile(r"""[!"#$%&()*+,\-./:;<=>?@\[\\\]^_`{|}~']""")
"""What the training removed from texts."""


def encode(texts: list[str], how: dict[str, Any]) -> Any:
    """The numbers of some texts, as the file beside the model says: ``[texts]``, or ``[texts, length]``."""
    numbers = {word: number for number, word in enumerate(how["vocabulary"])}
    if how["kind"] == "category":
        found = [numbers.get(text, how["unknown"]) for text in texts]
        return np.array(found, how["dtype"]).reshape(len(texts), *how["shape"])
    rows = np.zeros((len(texts), how["length"]), how["dtype"])
    for row, text in zip(rows, texts, strict=True):
        words = [each.decode() for each in PUNCTUATION.sub("", text.encode().lower().decode()).encode().split()]
        grams = [" ".join(words[at : at + size]) for size in how["ngrams"] for at in range(len(words) - size + 1)]
        found = [numbers.get(gram, how["unknown"]) for gram in grams]
        if how["kind"] == "words":
            row[: len(found)] = found[: how["length"]]
        else:
            row[found] = 1
    return rows


def main() -> None:
    """Run the model, and print each output."""
    model = Path(sys.argv[1]) if len(sys.argv) > 1 else HERE / "model.tflite"
    described = json.loads(model.with_name(f"{model.name}.json").read_text("utf-8"))
    example = json.loads((HERE / "example.json").read_text("utf-8"))
    expected = json.loads((HERE / "expected.json").read_text("utf-8"))
    runner = Interpreter(str(model), num_threads=1).get_signature_runner()
    inputs = {}
    for name, details in runner.get_input_details().items():
        if name in described["texts"]:
            inputs[name] = encode(np.array(example[name]).reshape(-1).tolist(), described["texts"][name])
        else:
            inputs[name] = np.array(example[name], np.float64 if "float" in str(details["dtype"]) else None)
            inputs[name] = inputs[name].astype(details["dtype"])
    for name, output in runner(**inputs).items():
        found = output.reshape(-1).tolist()
        print(name, list(output.shape))
        print("  this file     ", *found[:10], "..." if len(found) > 10 else "")
        print("  trained model ", *expected[name][:10], "..." if len(found) > 10 else "")
        if len(found) == len(described["class_names"]):
            print("  label         ", described["class_names"][int(np.argmax(found))])


if __name__ == "__main__":
    main()
