"""Servable folders and facts of them, with whatever names and texts a test wants."""

from pathlib import Path
from typing import Any

import numpy as np

from accel_engine.deploy_folder.facts import Facts, FolderMeasurement
from accel_engine.model_server.service import (
    Scale,
    ServedModelFile,
    Service,
    Tensor,
    UploadForm,
    write_examples,
    write_service,
)
from accel_engine.plan import Plan
from accel_engine.requests.evaluate import ClassScores, EvaluatedModel, Evaluation, Measurement
from accel_engine.requests.export_model import Export, MeasuredModel

MEASURED = FolderMeasurement(
    load_seconds=1.25, memory_bytes=150 << 20, threads=1, rate=512.3, p50=0.0012, p99=0.0043, connections=4
)


def service_of(kind: str = "onnx", name: str = "digits", text: str = "digits", **changes: Any) -> Service:
    """A description; ``text`` stands for all texts of a run."""
    path = {"onnx": "model.onnx", "tflite": "model.tflite", "savedmodel": "model/1"}[kind]
    values: dict[str, Any] = {
        "name": name,
        "run": text,
        "step": 69,
        "task": "classification",
        "kind": "images",
        "data": text,
        "data_hash": "0123abcd",
        "versions": {"accel-tui": "1", "tensorflow": "2.21.0", "keras": "3.15.1"},
        "model": ServedModelFile(kind, "none", path, 1e-3, size=1234),
        "inputs": (Tensor("inputs", (4, 4), "uint8"),),
        "outputs": (Tensor("probabilities", (2,), "float32"),),
        "scales": {"probabilities": Scale()},
        "class_names": (text, "other"),
        "metrics": {"loss": 0.5, "accuracy": 0.9},
        "split": "validation",
        "examples": 3,
        "files": UploadForm(kind="images"),
    }
    return Service(**values | changes)


def write_servable(folder: Path, service: Service, inputs: Any = None) -> Path:
    """Write a servable folder, whose model cannot be loaded."""
    folder.mkdir(parents=True)
    model = folder / service.model.path
    model.parent.mkdir(parents=True, exist_ok=True)
    if service.model.format == "savedmodel":
        model.mkdir()
        (model / "saved_model.pb").write_bytes(b"graph")
        (model.parent / "batching.config").write_text("max_batch_size { value: 8 }\n")
    else:
        model.write_bytes(b"graph")
    write_service(folder, service)
    if inputs is None:
        inputs = {each.name: np.zeros((3, *(side or 2 for side in each.shape)), each.dtype) for each in service.inputs}
    outputs = {each.name: np.ones((3, *(side or 2 for side in each.shape)), each.dtype) for each in service.outputs}
    write_examples(folder, inputs, outputs)
    return folder


def facts_of(service: Service, text: str = "digits") -> Facts:
    """What is known of a service; ``text`` stands for all texts of a run."""
    score = Measurement(0.9, 0.8, 0.95)
    model = EvaluatedModel(
        text,
        69,
        {"loss": Measurement(0.5, 0.4, 0.6), "accuracy": score},
        (ClassScores(text, 12, score, score, score), ClassScores("other", 400, score, score, score)),
        (f"note of {text}",),
        {"accuracy": 0.5},
        f"most frequent class: {text}",
    )
    original = MeasuredModel("trained model", {"loss": 0.5, "accuracy": 0.9}, None, None, 2048, 0.001)
    written = MeasuredModel(service.model.format, {"loss": 0.5, "accuracy": 0.9}, 1e-6, 1e-7, 1234, 2.5e-5)
    return Facts(
        service=service,
        export=Export(text, 69, "validation", 360, (), original, (written,)),
        evaluation=Evaluation("validation", 360, (model,), ()),
        plan=Plan(data="digits", model="mlp", epochs=3),
        model="mlp, 1,234 parameters, trained with sparse_categorical_crossentropy",
        trained="2026-11-29",
        training_examples=1437,
        validation_examples=360,
        note=text,
        licence=text,
        measured=MEASURED,
    )
