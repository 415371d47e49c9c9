"""Runs are exported in each format, proved on their validation examples, and only what is right is kept."""

import csv
import json
import shutil
import zipfile
from pathlib import Path
from typing import Any, ClassVar

import keras
import numpy as np
import pytest

from accel_engine.data.structure import ArraySpec
from accel_engine.errors import AccelError, RunError
from accel_engine.formats import format_named, open_model, target_name
from accel_engine.formats.tflite_format import write_tflite
from accel_engine.inference.origin import DESCRIPTION
from accel_engine.inference.text_encoding import sidecar_of
from accel_engine.model_export import service_check
from accel_engine.model_export.export import _keep, _keep_all, _written, export
from accel_engine.plan import Plan
from accel_engine.process.engine_call import EngineCall, ask
from accel_engine.requests.check_service import CheckServiceRequest
from accel_engine.requests.evaluate import EvaluationOptions, EvaluationRequest
from accel_engine.requests.export_model import (
    Export,
    ExportRequest,
    ExportTarget,
    MeasuredModel,
    WritingFormat,
)
from accel_engine.requests.predict import PredictionRequest
from accel_engine.requests.protocol.model_reference import ModelReference
from accel_engine.run.directory.run_paths import trained_model
from accel_engine.service_client.transport import ServiceError
from accel_engine.trained.evaluation.evaluate import evaluate
from accel_engine.trained.open_trained import open_trained
from accel_engine.trained.prediction.predict import predict

from .conftest import Gym

PATHS = {"keras": "m.keras", "savedmodel": "m/1", "onnx": "m.onnx", "tflite": "m.tflite"}
DIGITS = Plan(model="mlp", epochs=1, batch_size=100, last_batch="drop")


@pytest.fixture(autouse=True)
def few_requests(monkeypatch: pytest.MonkeyPatch) -> None:
    """Latencies are measured, but not well."""
    monkeypatch.setattr("accel_engine.model_export.proof.LATENCY_RUNS", 3)
    monkeypatch.setattr("accel_engine.model_export.serving_batching.SECONDS", 0.02)


def target(folder: Path, kind: str, quantize: str = "none", tolerance: float | None = None) -> ExportTarget:
    name = target_name(kind, quantize)
    path = folder / PATHS[kind] if quantize == "none" else folder / f"{quantize}.tflite"
    return ExportTarget(
        name,
        kind,
        quantize,
        str(path),
        format_named(kind).precision(quantize).tolerance if tolerance is None else tolerance,
    )


def exported(
    directory: Path,
    tmp_path: Path,
    *targets: ExportTarget,
    target_latency: float | None = None,
    checkpoint: str = "auto",
) -> Export:
    temporary = tmp_path / "temporary"
    shutil.rmtree(temporary, ignore_errors=True)
    temporary.mkdir()
    return export(
        ExportRequest(ModelReference(directory), targets, checkpoint, target_latency, folder=temporary, umask=0o022)
    )


def metrics_of(directory: Path) -> dict[str, float | None]:
    request = EvaluationRequest((ModelReference(directory),), EvaluationOptions(resamples=100))
    return {name: each.value for name, each in evaluate(request).models[0].metrics.items()}


def test_all_formats_of_a_classifier_of_images(gym: Gym, tmp_path: Path) -> None:
    directory = gym.train_once(DIGITS).directory
    kinds = [(kind, "none") for kind in PATHS] + [
        ("tflite", each.name) for each in format_named("tflite").precisions if each.name != "none"
    ]
    found = exported(directory, tmp_path, *(target(tmp_path, *each) for each in kinds))
    assert (found.split, found.examples) == ("validation", 360)
    assert found.original.metrics == pytest.approx(metrics_of(directory), rel=1e-4)
    assert found.original.inputs == {"inputs": "uint8 8x8x1"}
    assert found.original.latency > 0
    for each in found.exported:
        assert not each.problem
        assert each.latency > 0
        assert each.metrics["accuracy"] == pytest.approx(found.original.metrics["accuracy"], abs=0.02)
        assert each.largest < (1e-5 if each.name in PATHS else 0.2)
    sizes = {each.name: each.size for each in found.exported}
    assert sizes["tflite-int8"] < sizes["tflite-float16"] < sizes["tflite"]
    assert sizes["tflite-int8-weights"] < sizes["tflite-float16"]
    model = open_trained(directory)
    batch = model.examples.take(np.arange(5))
    for name in PATHS:
        outputs = open_model(tmp_path / PATHS[name]).run({"inputs": batch.inputs})
        if name in ("keras", "savedmodel"):
            best = outputs["probabilities"].argmax(-1)
            assert [label.decode() for label in outputs["label"]] == [model.dataset.class_names[at] for at in best]
        assert outputs["probabilities"].sum(-1) == pytest.approx(np.ones(5), abs=1e-5)
    assert (tmp_path / "m" / "1" / "assets.extra" / "tf_serving_warmup_requests").stat().st_mode & 0o777 == 0o644
    assert json.loads((tmp_path / "m.onnx.json").read_text())["class_names"] == list(model.dataset.class_names)
    assert not any((tmp_path / "temporary").rglob("*.tflite"))


def test_keras_file_needs_nothing_of_ours_and_has_no_optimizer(gym: Gym, tmp_path: Path) -> None:
    directory = gym.train_once(DIGITS).directory
    exported(directory, tmp_path, target(tmp_path, "keras"))
    model = keras.models.load_model(tmp_path / "m.keras")
    assert not model.compiled
    assert (tmp_path / "m.keras").stat().st_size < 0.75 * trained_model(directory).stat().st_size


def test_a_savedmodel_has_a_batching_configuration_unless_the_user_has_changed_it(
    gym: Gym, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    # On a busy machine, batches may be no faster than single examples.
    monkeypatch.setattr("accel_engine.model_export.serving_batching.best_size", lambda *_: 8)
    directory, path = gym.train_once(DIGITS).directory, tmp_path / "m" / "batching.config"
    first = exported(directory, tmp_path, target(tmp_path, "savedmodel"))
    assert first.exported[0].batching == str(path)
    assert f"Chosen from measurements of {directory.name}" in path.read_text()
    assert path.stat().st_mode & 0o777 == 0o644
    path.write_text(f"{path.read_text()}# of an older version")
    notes = list[str]()
    assert keep_savedmodel(tmp_path, notes, "new") == str(path)
    assert (path.read_text(), notes) == ("new", [])
    path.write_text("max_batch_size { value: 7 }")
    shutil.rmtree(tmp_path / "m" / "2")
    assert keep_savedmodel(tmp_path, notes, "newer") == ""
    assert path.read_text() == "max_batch_size { value: 7 }"
    assert notes == [f"{path} was changed, and is not overwritten"]


def test_a_model_that_is_too_slow_for_the_target_is_written_without(gym: Gym, tmp_path: Path) -> None:
    directory = gym.train_once(DIGITS).directory
    found = exported(directory, tmp_path, target(tmp_path, "savedmodel"), target_latency=1e-9)
    assert "batching.config was not written: a single example takes" in found.notes[-1]
    assert (found.exported[0].problem, found.exported[0].batching) == ("", "")
    assert [path.name for path in (tmp_path / "m").iterdir()] == ["1"]


def test_what_is_beyond_the_tolerance_is_not_kept(gym: Gym, tmp_path: Path) -> None:
    directory = gym.train_once(DIGITS).directory
    found = exported(directory, tmp_path, target(tmp_path, "tflite", "int8", 1e-6), target(tmp_path, "keras"))
    int8, kept = found.exported
    assert "the mean difference of the outputs" in int8.problem
    assert int8.problem.endswith("beyond the tolerance of 1e-06")
    assert not kept.problem
    assert {path.name for path in tmp_path.iterdir()} - {"home"} == {"temporary", "m.keras"}


def test_an_engine_process_exports_and_leaves_nothing_else(gym: Gym, tmp_path: Path) -> None:
    directory, place = gym.train_once(DIGITS).directory, tmp_path / "place"
    place.mkdir()
    wanted = (
        ExportTarget("keras", "keras", "none", str(place / "new" / "m.keras"), 1e-4),
        ExportTarget("onnx", "onnx", "none", str(place / "m.onnx"), 0.0),
    )
    told: list[str] = []

    def tell(part: object) -> None:
        if isinstance(part, WritingFormat | MeasuredModel):
            told.append(part.name if isinstance(part, WritingFormat) else f"{part.name} compared")

    found = ask(ExportRequest(ModelReference(directory), wanted, "last", folder=place), tell)
    assert told == ["keras", "onnx", "trained model compared", "keras compared", "onnx compared"]
    assert (found.name, found.split, found.examples) == (directory.name, "validation", 360)
    assert found.written == (found.fastest,) == (found.exported[0],)
    assert found.exported[0].outputs == {"label": "string", "probabilities": "float32 10"}
    assert found.exported[1].problem.endswith(
        "beyond the tolerance of 0; export to keras or savedmodel, which TensorFlow runs"
    )
    assert [path.relative_to(place).as_posix() for path in sorted(place.rglob("*"))] == ["new", "new/m.keras"]


def test_an_export_that_is_ended_leaves_nothing(gym: Gym, tmp_path: Path) -> None:
    directory, place = gym.train_once(DIGITS).directory, tmp_path / "place"
    place.mkdir()
    wanted = (ExportTarget("keras", "keras", "none", str(place / "m.keras"), 1e-4),)
    with (
        pytest.raises(RunError, match="the engine exited"),
        EngineCall(ExportRequest(ModelReference(directory), wanted, "last", folder=place)) as asked,
    ):
        asked.result(lambda part: isinstance(part, WritingFormat) and asked.cancel())
    assert not any(place.iterdir())


@pytest.fixture
def table(tmp_path: Path) -> str:
    """A table with categories, texts and missing values."""
    rng, path = np.random.default_rng(1), tmp_path / "people.csv"
    with path.open("w", newline="") as file:
        writer = csv.writer(file)
        writer.writerow(["age", "city", "note", "bought"])
        for index in range(120):
            age, city = rng.integers(20, 80), ["Rome", "Oslo", ""][index % 3]
            words = " ".join(rng.choice(["very", "good", "bad", "service", "again", "never", "came", "late"], 9))
            writer.writerow([age if index % 7 else "", city, words, "yes" if age > 50 else "no"])
    return str(path)


def test_a_table_takes_raw_rows_in_every_format(gym: Gym, tmp_path: Path, table: str) -> None:
    plan = Plan(model="tabular", data=table, target=("bought",), kinds=("note=text",), epochs=1, batch_size=32)
    directory = gym.train(plan).directory
    found = exported(directory, tmp_path, *(target(tmp_path, kind) for kind in PATHS))
    assert [each.problem for each in found.exported] == [""] * 4
    assert found.original.metrics == pytest.approx(metrics_of(directory), rel=1e-4)
    row = {
        "age": np.float32([[30], [np.nan]]),
        "city": np.array([["Rome"], ["Bern"]], object),
        "note": np.array([["good, good service"], [""]], object),
    }
    expected = open_model(tmp_path / "m.keras").run(row)["probabilities"]
    for path in list(PATHS.values())[1:]:
        np.testing.assert_allclose(open_model(tmp_path / path).run(row)["probabilities"], expected, atol=1e-5)


SERIES = "hour,load,note,temperature\n" + "".join(
    f"{hour},{1000 + 30 * np.sin(hour / 4):.3f},x,{20 + 5 * np.cos(hour / 4):.3f}\n" for hour in range(160)
)


def of_client(path: Path, rows: list[dict[str, float]]) -> Any:
    """What a program gets that has nothing but the exported file and rows with their names."""
    if path.suffix == ".keras":
        described = json.loads(zipfile.ZipFile(path).comment)
    else:
        described = json.loads((path / DESCRIPTION if path.is_dir() else sidecar_of(path)).read_text())
    window = np.float32([[row[name] for name in described["feature_names"]] for row in rows])
    assert described["target_names"] == ["temperature", "load"]
    return open_model(path).run({"inputs": window[np.newaxis]})["values"][0]


@pytest.mark.parametrize(("model", "horizon"), [("tcn", 1), pytest.param("lstm", 3, marks=pytest.mark.campaign)])
def test_a_series_is_forecast_in_its_units_by_the_file_alone(
    gym: Gym, tmp_path: Path, model: str, horizon: int
) -> None:
    path = tmp_path / "series.csv"
    path.write_text(SERIES)
    plan = Plan(
        model=model,
        data=str(path),
        time="hour",
        ignore=("note",),
        target=("temperature", "load"),
        window=6,
        horizon=horizon,
        epochs=25,
        batch_size=16,
        learning_rate=0.01,
        validation="end",
    )
    directory = gym.train(plan).directory
    quantized = target(tmp_path, "tflite", "int8", 0.2)
    found = exported(directory, tmp_path, *(target(tmp_path, kind) for kind in PATHS), quantized)
    assert [each.problem for each in found.exported] == [""] * 5
    assert found.original.inputs == {"inputs": "float32 6x2"}
    assert found.original.metrics == pytest.approx(metrics_of(directory), rel=1e-4)
    for each in found.exported[:4]:
        assert each.metrics == pytest.approx(found.original.metrics, rel=1e-3)
    assert found.exported[4].metrics["r2_score"] > 0.9
    last = [dict(zip(("hour", "load", "temperature"), (h, 998 + h, 15 + h), strict=True)) for h in range(6)]
    rows = tmp_path / "new.csv"
    rows.write_text("temperature,hour,load\n" + "".join(f"{r['temperature']},{r['hour']},{r['load']}\n" for r in last))
    expected = predict(PredictionRequest(directory, (rows,))).outputs[0].values[0]
    assert (expected[..., 1] > 800).all()  # of the load, in its unit
    assert (expected[..., 0] < 100).all()
    for name in PATHS.values():
        np.testing.assert_allclose(of_client(tmp_path / name, last), expected, rtol=1e-4)


BINARY = """
import keras

def build(input_shape):
    model = keras.Sequential([keras.Input(input_shape), keras.layers.Flatten(), keras.layers.Dense(1)])
    model.compile("sgd", keras.losses.BinaryCrossentropy(from_logits=True), metrics=["accuracy"])
    return model

def lstm():
    inputs = keras.Input((300, 1))
    return keras.Model(inputs, keras.layers.Dense(2, "softmax")(keras.layers.SimpleRNN(2)(inputs)))
"""


def test_logits_of_two_classes_become_probabilities(gym: Gym, tmp_path: Path) -> None:
    (tmp_path / "nets.py").write_text(BINARY)
    x = np.random.default_rng(0).normal(size=(60, 3)).astype(np.float32)
    np.savez(tmp_path / "d.npz", x=x, y=(x[:, 0] > 0).astype(np.int32))
    plan = Plan(model=f"{tmp_path}/nets.py:build", data=f"{tmp_path}/d.npz", epochs=1, batch_size=20)
    directory = gym.train(plan).directory
    found = exported(directory, tmp_path, target(tmp_path, "keras"), target(tmp_path, "onnx"))
    for each in found.exported:
        assert not each.problem
        assert each.metrics == pytest.approx(metrics_of(directory), rel=1e-3)
    probabilities = open_model(tmp_path / "m.onnx").run({"inputs": x})["probabilities"]
    assert probabilities.shape == (60, 2)
    np.testing.assert_allclose(probabilities.sum(-1), 1, atol=1e-6)


def test_too_long_recurrent_models_are_refused_for_tflite_alone(gym: Gym, tmp_path: Path) -> None:
    (tmp_path / "nets.py").write_text(BINARY)
    x = np.random.default_rng(0).normal(size=(30, 300, 1)).astype(np.float32)
    np.savez(tmp_path / "d.npz", x=x, y=np.arange(30) % 2)
    plan = Plan(model=f"{tmp_path}/nets.py:lstm", data=f"{tmp_path}/d.npz", epochs=1, batch_size=30)
    found = exported(gym.train(plan).directory, tmp_path, target(tmp_path, "tflite"), target(tmp_path, "onnx"))
    refused, kept = found.exported
    assert "unrolled, over at most 256 steps: simple_rnn takes 300 steps" in refused.problem
    assert not kept.problem
    assert not (tmp_path / "m.tflite").exists()


SEVERAL = """
import keras
import numpy as np

def data():
    rng = np.random.default_rng(0)
    left, right = rng.normal(size=(60, 4)).astype("float32"), rng.integers(0, 5, (60, 3)).astype("int32")
    return {"train": ({"left": left, "right": right}, {"kind": (left[:, 0] > 0) * 1, "price": 100 * left[:, :1]})}

class Doubled(keras.layers.Layer):
    def call(self, x):
        return 2 * x

def build():
    left, right = keras.Input((4,), name="left"), keras.Input((3,), dtype="int32", name="right")
    embedded = keras.layers.Flatten()(keras.layers.Embedding(5, 2)(right))
    x = Doubled()(keras.layers.Concatenate()([left, embedded]))
    kind, price = keras.layers.Dense(2, "softmax", name="kind")(x), keras.layers.Dense(1, name="price")(x)
    model = keras.Model({"left": left, "right": right}, {"kind": kind, "price": price})
    model.compile("sgd", loss={"kind": "sparse_categorical_crossentropy", "price": "mse"})
    return model
"""


def test_several_inputs_and_outputs_and_a_layer_of_the_users_own(gym: Gym, tmp_path: Path) -> None:
    (tmp_path / "several.py").write_text(SEVERAL)
    plan = Plan(model=f"{tmp_path}/several.py:build", data=f"{tmp_path}/several.py:data", epochs=1, batch_size=20)
    found = exported(gym.train(plan).directory, tmp_path, *(target(tmp_path, kind) for kind in PATHS))
    refused, *kept = found.exported
    assert "class Doubled is not known: decorate it" in refused.problem
    assert not (tmp_path / "m.keras").exists()
    for each in kept:
        assert not each.problem
        assert each.inputs == {"left": "float32 4", "right": "int32 3"}
        assert each.outputs == {"kind": "float32 2", "price": "float32 1"}
        assert each.metrics == pytest.approx(found.original.metrics, rel=1e-3)


def test_a_file_that_cannot_be_moved_leaves_the_others(gym: Gym, tmp_path: Path) -> None:
    (tmp_path / "m.onnx" / "taken").mkdir(parents=True)
    (tmp_path / "m.tflite.json").write_text("of an older model")
    kinds = ("onnx", "tflite", "keras")
    found = exported(gym.train_once(DIGITS).directory, tmp_path, *(target(tmp_path, kind) for kind in kinds))
    assert [each.problem.partition(":")[0] for each in found.exported] == [
        f"cannot write {tmp_path / 'm.onnx'}",
        "",
        "",
    ]
    assert (tmp_path / "m.onnx" / "taken").is_dir()
    assert json.loads((tmp_path / "m.tflite.json").read_text())["task"] == "classification"


@pytest.mark.parametrize("name", ["m.onnx", "m.onnx.json"])
def test_a_model_never_has_the_vocabulary_of_another(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, name: str
) -> None:
    """Whichever of the two moves fails."""
    written = tmp_path / "new" / "m.onnx"
    written.parent.mkdir()
    for path, text in ((written, "new"), (tmp_path / "m.onnx", "old")):
        path.write_text(text)
        sidecar_of(path).write_text(text)
    move = Path.replace

    def fail(path: Path, to: Path) -> Path:
        if path.name == name:
            raise OSError(28, "No space left on device")
        return move(path, to)

    monkeypatch.setattr(Path, "replace", fail)
    with pytest.raises(OSError, match="No space"):
        _keep(written, tmp_path / "m.onnx", 0o022)
    assert not (tmp_path / "m.onnx.json").exists()


def keep_savedmodel(folder: Path, notes: list[str], batching: str = "") -> str:
    """Keep version 2 of a SavedModel, with a batching configuration or without; returns the path of the latter."""
    target = ExportTarget("savedmodel", "savedmodel", "none", str(folder / "m" / "2"), 1e-4)
    written = _written(target, folder / "new")
    written.mkdir(parents=True)
    if batching:
        written.with_name("batching.config").write_text(batching)
    return _keep_all(target, folder / "new", 0o022, notes)


def test_a_model_is_kept_where_its_batching_configuration_cannot_be_written(tmp_path: Path) -> None:
    path, notes = tmp_path / "m" / "batching.config", list[str]()
    path.mkdir(parents=True)
    assert keep_savedmodel(tmp_path, notes, "new") == ""
    assert notes == [f"cannot write {path}: Is a directory"]
    assert (tmp_path / "m" / "2").is_dir()


def test_a_batching_configuration_of_an_older_version_has_a_note(tmp_path: Path) -> None:
    path, notes = tmp_path / "m" / "batching.config", list[str]()
    path.parent.mkdir()
    path.write_text("old")
    assert keep_savedmodel(tmp_path, notes) == ""
    assert notes == [f"{path} is of an older version of the model"]
    assert path.read_text() == "old"


COPY = """
import keras

class Scaled(keras.layers.Layer):
    def __init__(self, factor):
        super().__init__()
        self.factor = factor

    def call(self, x):
        return self.factor * x

    def get_config(self):
        return {"name": self.name}

def build(input_shape):
    inputs = keras.Input(input_shape)
    return keras.Model(inputs, keras.layers.Dense(2, "softmax")(keras.layers.SimpleRNN(2)(Scaled(2.0)(inputs))))
"""


def test_an_error_of_one_format_leaves_the_others(gym: Gym, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "nets.py").write_text(COPY)
    x = np.random.default_rng(0).normal(size=(30, 4, 1)).astype(np.float32)
    np.savez(tmp_path / "d.npz", x=x, y=np.arange(30) % 2)
    plan = Plan(model=f"{tmp_path}/nets.py:build", data=f"{tmp_path}/d.npz", epochs=1, batch_size=30)
    directory = gym.train(plan).directory

    def full(*args: object) -> None:
        raise OSError(28, "No space left on device")

    monkeypatch.setattr("accel_engine.formats.onnx_format.write_onnx", full)
    found = exported(directory, tmp_path, *(target(tmp_path, kind) for kind in ("tflite", "onnx", "savedmodel")))
    tflite, onnx, kept = (each.problem for each in found.exported)
    assert "the model cannot be copied: TypeError" in tflite
    assert "No space left on device" in onnx
    assert not kept


def test_a_target_whose_digits_float32_would_lose_goes_out_with_all_of_them(gym: Gym, tmp_path: Path) -> None:
    x = np.random.default_rng(0).normal(size=(80, 3))
    np.savez(tmp_path / "d.npz", x=x.astype(np.float32), y=1.2e8 + 3 * x[:, 0])
    plan = Plan(model="linear", data=f"{tmp_path}/d.npz", task="regression", epochs=1, batch_size=20)
    directory = gym.train(plan).directory
    found = exported(directory, tmp_path, *(target(tmp_path, kind) for kind in PATHS))
    problems = {each.name: each.problem for each in found.exported}
    assert "float32 would lose digits of values" in problems.pop("tflite")
    assert problems == {"keras": "", "savedmodel": "", "onnx": ""}
    np.save(tmp_path / "new.npy", x[:4].astype(np.float32))
    expected = predict(PredictionRequest(directory, (tmp_path / "new.npy",))).outputs[0].values.ravel()
    assert np.ptp(expected) > 0.5
    for name in problems:
        outputs = open_model(tmp_path / PATHS[name]).run({"inputs": x[:4].astype(np.float32)})["values"]
        np.testing.assert_allclose(outputs.ravel(), expected, rtol=0, atol=1e-3)


@pytest.mark.parametrize("precision", ["mixed_bfloat16", pytest.param("mixed_float16", marks=pytest.mark.campaign)])
def test_half_precision_becomes_float32_where_a_format_has_none(gym: Gym, tmp_path: Path, precision: str) -> None:
    directory = gym.train(DIGITS.replace(precision=precision, force="on")).directory
    targets = [target(tmp_path, kind) for kind in ("savedmodel", "onnx", "tflite")]
    found = exported(directory, tmp_path, *targets, target(tmp_path, "tflite", "int8"))
    assert [each.problem for each in found.exported] == [""] * 4
    assert next(note for note in found.notes if "float32" in note).startswith(
        f"onnx, tflite, tflite-int8 compute in float32, which has the same weights as {precision[6:]}: outputs differ"
    )
    model = keras.models.load_model(trained_model(directory), compile=False)
    config = json.loads(json.dumps(model.get_config()).replace(precision, "float32"))
    in_float32 = type(model).from_config(config)
    in_float32.set_weights(model.get_weights())
    trained = open_trained(directory)
    images = trained.examples.take(np.arange(50)).inputs
    expected = in_float32(images * np.float32(trained.scale)).numpy()
    for name in ("m.onnx", "m.tflite"):
        outputs = open_model(tmp_path / name).run({"inputs": images})["probabilities"]
        np.testing.assert_allclose(outputs, expected, atol=1e-5)
    assert keras.config.dtype_policy().name == precision


@pytest.fixture
def large_and_small(tmp_path: Path) -> Plan:
    """Two numbers to predict: one near 250,000, the other between 1 and 5."""
    x = np.random.default_rng(0).uniform(-1, 1, (300, 3)).astype(np.float32)
    y = np.stack([250_000 + 3_000 * x[:, 0], 3 + 2 * x[:, 1]], axis=1).astype(np.float32)
    np.savez(tmp_path / "d.npz", x=x, y=y)
    return Plan(model="linear", data=f"{tmp_path}/d.npz", epochs=8, batch_size=10, learning_rate=0.05)


def test_a_value_that_is_lost_is_found_beside_a_large_one(gym: Gym, tmp_path: Path, large_and_small: Plan) -> None:
    directory = gym.train(large_and_small).directory
    found = exported(directory, tmp_path, target(tmp_path, "tflite", "int8"), target(tmp_path, "tflite"))
    ruined, kept = found.exported
    assert "the mean difference of values[1]" in ruined.problem
    assert ruined.mean > 0.5
    assert not (tmp_path / "int8.tflite").exists()
    assert not kept.problem
    assert kept.largest < 1e-3


def test_a_model_that_is_far_less_accurate_is_not_kept_and_not_the_fastest(
    gym: Gym, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Outputs that differ little in the mean, and a class that is lost."""
    monkeypatch.setattr("accel_engine.inference.output_differences.Differences.worst", lambda *_, by_mean: (0.0, 0, 0))
    monkeypatch.setattr("accel_engine.formats.tflite_format.write_tflite", confuse_classes)
    directory = gym.train_once(DIGITS).directory
    found = exported(directory, tmp_path, target(tmp_path, "tflite", "int8"), target(tmp_path, "keras"))
    ruined, kept = found.exported
    assert ruined.problem.startswith("the loss is ")
    assert not kept.problem
    assert found.fastest is not None
    assert found.fastest.name == "keras"


def confuse_classes(model: keras.Model, path: Path, quantize: str, examples: Any, units: None) -> None:
    """Write a model that takes one class for the next one."""
    (output,) = model.output.values()
    confused = keras.ops.concatenate([output[:, 1:], output[:, :1]], axis=-1)
    write_tflite(keras.Model(model.input, {"probabilities": confused}), path, quantize, examples)


def test_a_service_that_refuses_a_request_is_an_error_and_not_unequal(
    gym: Gym, monkeypatch: pytest.MonkeyPatch
) -> None:
    class Service:
        inputs: ClassVar = {"inputs": ArraySpec((8, 8, 1), "uint8")}
        platform = ""

        def run(self, _: Any) -> Any:
            raise ServiceError("ModelInfer: the server is busy", 429)

    monkeypatch.setattr(service_check, "find_service_of_run", lambda *_: (None, Service()))
    reference = ModelReference(gym.train_once(DIGITS).directory)
    with pytest.raises(ServiceError, match="the server is busy"):
        service_check.check_service(CheckServiceRequest(reference, "http://h"))


def test_a_checkpoint_that_is_not_there_is_an_error(gym: Gym, tmp_path: Path) -> None:
    with pytest.raises(AccelError, match="no checkpoint of step 3"):
        exported(gym.train_once(DIGITS).directory, tmp_path, target(tmp_path, "keras"), checkpoint="3")
