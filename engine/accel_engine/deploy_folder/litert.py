"""Writes a folder for phones and small devices: models for LiteRT, labels, clients and what was measured."""

import importlib
import shutil
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np

from accel_engine.deploy_folder.client_examples import EXPECTED, plain, read_both, whole_row, write_json_line
from accel_engine.deploy_folder.container import FILES, readme_values, write_file
from accel_engine.deploy_folder.facts import Facts, figure, markdown_table
from accel_engine.deploy_folder.rendering import Block, Value, clean, cpp_text, markdown_text
from accel_engine.inference.text_encoding import encode_texts, read_encodings, sidecar_of
from accel_engine.model_server.service import model_path
from accel_engine.requests.export_model import Export, MeasuredModel
from accel_engine.words import numbers

MODEL = "model.tflite"
"""The file in the trained model's own precision; the others have their precision in their names."""

LABELS = "labels.txt"
"""The file with the names of the classes, if the model has classes."""

EXAMPLE_FOLDER = "example"
"""The folder with the bytes of the example's inputs."""

_CPP_LABELS = 10_000
"""Labels that the C++ client has at most."""


def write_litert_folder(folder: Path, servable: Path, facts: Facts, quantized: Export | None) -> None:
    """Write the folder.

    Args:
        folder: The folder; it may have files of other precisions already, named ``model-PRECISION.tflite``.
        servable: The servable folder with the model in its own precision.
        facts: What is known of it.
        quantized: How the other precisions were verified; ``None`` if there are none.

    Raises:
        OSError: A file cannot be written.
    """
    service, (inputs, outputs) = read_both(servable)
    model = model_path(servable, service)
    shutil.copytree(FILES / "litert", folder, dirs_exist_ok=True, ignore=shutil.ignore_patterns("__pycache__"))
    shutil.copyfile(model, folder / MODEL)
    shutil.copyfile(sidecar_of(model), sidecar_of(folder / MODEL))
    row = whole_row(inputs)
    example = {name: array[row : row + 1] for name, array in inputs.items()}
    write_json_line(folder / "example.json", {name: plain(array) for name, array in example.items()})
    write_json_line(folder / EXPECTED, {name: plain(array[row].reshape(-1)) for name, array in outputs.items()})
    if service.class_names:
        (folder / LABELS).write_text("".join(f"{clean(each)}\n" for each in service.class_names), "utf-8")
    files = _write_bytes(folder, example)
    texts = read_encodings(sidecar_of(folder / MODEL))
    measured = [*facts.export.exported, *(quantized.exported if quantized else ())]
    labels = service.class_names if len(service.class_names) <= _CPP_LABELS else ()
    values: dict[str, Value] = readme_values(facts) | {
        "models": Block(_table(facts, measured)),
        "not_written": Block("\n".join(_not_written(measured))),
        "files": Block("\n".join(_files(measured, has_labels=bool(service.class_names)))),
        "and_labels": Block(f" and `{LABELS}`" if service.class_names else ""),
        "cpp_note": Block(_cpp_note(facts, bool(texts))),
        "texts_note": Block(_TEXTS if texts else ""),
        "example_files": Block(", ".join(map(cpp_text, files))),
        "labels": Block(", ".join(map(cpp_text, labels))),
    }
    write_file(folder, "client.cc", values, "litert/client.cc")
    write_file(folder, "README.md", values, "litert/README.md")


_TEXTS = (
    " Texts and categories are numbers to LiteRT: `model.tflite.json` has the vocabularies under `texts`, and `encode` "
    "in `client.py` shows how they become numbers."
)


def name_of(precision: str) -> str:
    """The name of the file of a precision."""
    return MODEL if precision == "none" else f"model-{precision}.tflite"


def _write_bytes(folder: Path, example: dict[str, Any]) -> list[str]:
    """Write the bytes of each input that LiteRT takes, in the order of the file's inputs; returns their paths."""
    (folder / EXAMPLE_FOLDER).mkdir(exist_ok=True)
    encoded = encode_texts(example, read_encodings(sidecar_of(folder / MODEL)))
    interpreter = importlib.import_module("ai_edge_litert.interpreter").Interpreter(model_path=str(folder / MODEL))
    order = [each["index"] for each in interpreter.get_input_details()]
    details = interpreter.get_signature_runner().get_input_details()
    paths: list[str] = []
    for name, each in sorted(details.items(), key=lambda item: order.index(item[1]["index"])):
        path = f"{EXAMPLE_FOLDER}/{len(paths)}.bin"
        np.asarray(encoded[name], each["dtype"]).tofile(folder / path)
        paths.append(path)
    return paths


def _precision(model: MeasuredModel) -> str:
    return model.name.partition("-")[2] or "none"


def _table(facts: Facts, measured: list[MeasuredModel]) -> str:
    """A table of the measurements of each file that was written."""
    names = list(facts.export.original.metrics)
    rows = [
        [
            f"`{name_of(_precision(each))}`",
            numbers.size(each.size),
            numbers.latency(each.latency) if each.latency is not None else "-",
            figure(each.largest, 2),
            *(figure(each.metrics.get(name)) for name in names),
        ]
        for each in measured
        if not each.problem
    ]
    original = facts.export.original
    rows.append(
        ["trained model", numbers.size(original.size), "", "", *(figure(original.metrics.get(name)) for name in names)]
    )
    return markdown_table(["File", "Size", "Latency", "Difference", *map(markdown_text, names)], rows)


def _not_written(measured: list[MeasuredModel]) -> Iterator[str]:
    for each in measured:
        if each.problem:
            yield f"- Not written: {name_of(_precision(each))}: {markdown_text(each.problem)}"


def _files(measured: list[MeasuredModel], *, has_labels: bool) -> Iterator[str]:
    for each in measured:
        if not each.problem:
            name = name_of(_precision(each))
            words = "float32" if name == MODEL else _precision(each)
            yield f"| `{name}`, `{name}.json` | The model, {words}, and what is known of it |"
    if has_labels:
        yield f"| `{LABELS}` | The name of each class, by its number |"


def _cpp_note(facts: Facts, has_texts: bool) -> str:
    sides = {each.name for each in facts.service.inputs if None in each.shape}
    note = "It reads the bytes of the inputs from `example/`, in the order of the model's inputs."
    if sides:
        note += " An input of the model has a side of any size: call `TfLiteInterpreterResizeInputTensor` before."
    if has_texts:
        note += " These are numbers that `client.py` made of the texts."
    return note
