"""The folder for LiteRT: its table, its labels, and its clients."""

import dataclasses
import json
import runpy
import shutil
import subprocess
import sys
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest

from accel_engine.deploy_folder import litert
from accel_engine.deploy_folder.litert import write_litert_folder
from accel_engine.inference.text_encoding import CATEGORY, MULTI_HOT, WORDS, TextEncoding
from accel_engine.json_values import to_plain
from accel_engine.requests.export_model import Export, MeasuredModel
from engine.deploy_folder.servables import facts_of, service_of, write_servable

NASTY = 'a "b" \\ | ??/ %s 😀\nx'


class Interpreter:
    """Stands for LiteRT's, with two inputs whose order is not that of their names."""

    def __init__(self, model_path: str) -> None:
        del model_path

    def get_input_details(self) -> list[dict[str, Any]]:
        return [{"index": 7}, {"index": 3}]

    def get_signature_runner(self) -> "Interpreter":
        return self


def write(folder: Path, monkeypatch, **changes: Any) -> Path:
    service = service_of("tflite", text=NASTY, **changes)
    service = dataclasses.replace(service, inputs=tuple(dataclasses.replace(service.inputs[0], name=n) for n in "ab"))
    details = {"a": {"index": 3, "dtype": np.uint8}, "b": {"index": 7, "dtype": np.float32}}

    class Runner(Interpreter):
        def get_signature_runner(self) -> Any:
            class Found:
                def get_input_details(self) -> Any:
                    return details

            return Found()

    monkeypatch.setitem(sys.modules, "ai_edge_litert.interpreter", SimpleNamespace(Interpreter=Runner))
    inputs = {"a": np.full((3, 4, 4), 5, np.uint8), "b": np.full((3, 4, 4), 6, np.uint8)}
    servable = write_servable(folder / "servable", service, inputs)
    (servable / "model.tflite.json").write_text(json.dumps({"texts": {}, "class_names": [NASTY, "other"]}))
    int8 = MeasuredModel("tflite-int8", {"loss": 0.6, "accuracy": 0.89}, 0.03, 0.01, 400, 1e-5)
    dynamic = MeasuredModel("tflite-dynamic", {}, 1.0, 1.0, 0, None, problem="the mean | is too large")
    quantized = Export("x", 1, "validation", 9, (), int8, (int8, dynamic))
    (folder / "folder").mkdir()
    write_litert_folder(folder / "folder", servable, facts_of(service, NASTY), quantized)
    return folder / "folder"


def test_says_what_was_measured_and_what_was_not_written(tmp_path, monkeypatch) -> None:
    text = (write(tmp_path, monkeypatch) / "README.md").read_text("utf-8")

    assert "| `model-int8.tflite` | 400 B | 10.0 µs | 0.03 | 0.6 | 0.89 |" in text
    assert r"Not written: model-dynamic.tflite: the mean \| is too large" in text
    assert "`model-dynamic.tflite`, " not in text


def test_bytes_of_the_example_are_in_the_order_of_the_file(tmp_path, monkeypatch) -> None:
    folder = write(tmp_path, monkeypatch)

    assert (folder / "example/0.bin").read_bytes() == np.full((4, 4), 6, np.float32).tobytes()
    assert (folder / "example/1.bin").read_bytes() == bytes([5]) * 16
    assert (folder / "labels.txt").read_text("utf-8").count("\n") == 2
    assert "Copy the model and `labels.txt` to" in (folder / "README.md").read_text("utf-8")


def test_a_model_without_classes_has_no_labels(tmp_path, monkeypatch) -> None:
    folder = write(tmp_path, monkeypatch, class_names=())

    assert not (folder / "labels.txt").exists()
    assert "labels.txt" not in (folder / "README.md").read_text("utf-8")


def test_the_client_in_cpp_compiles(tmp_path, monkeypatch) -> None:
    if not (compiler := shutil.which("g++") or shutil.which("clang++")):
        pytest.skip("no C++ compiler")
    folder = write(tmp_path, monkeypatch)
    header = tmp_path / "include/tensorflow/lite/c/c_api.h"
    header.parent.mkdir(parents=True)
    shutil.copyfile(Path(__file__).with_name("c_api.h"), header)

    words = [compiler, "-std=c++17", "-Wall", "-Wextra", "-Werror", "-fsyntax-only", "-I", tmp_path / "include"]
    done = subprocess.run([*words, folder / "client.cc"], capture_output=True, text=True, check=False)

    assert (done.returncode, done.stderr) == (0, "")


@pytest.mark.parametrize(
    "encoding",
    [
        TextEncoding(CATEGORY, ("red", "", "grün"), 3, (1,)),
        TextEncoding(CATEGORY, ("red", "blue"), 2, ()),
        TextEncoding(WORDS, ("", "x", "good", "film", "good film"), 1, (), 4, (1, 2)),
        TextEncoding(MULTI_HOT, ("x", "good", "bad", "grün"), 0, (), 4, (1,), "float32"),
    ],
)
def test_the_client_encodes_texts_as_the_program_does(encoding: TextEncoding, monkeypatch) -> None:
    client = Path(litert.__file__).with_name("files") / "litert" / "client.py"
    encode = runpy.run_path(str(client))["encode"]
    texts = ["red", "GOOD, film! good", "", "Grün grün\u00a0x", "bad\tfilm's [good] film one two three"]

    found = encode(texts, json.loads(json.dumps(to_plain(encoding))))

    expected = encoding.encode(np.array(texts, object))
    np.testing.assert_array_equal(found, expected)
    assert found.dtype == expected.dtype
