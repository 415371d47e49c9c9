"""Models to be measured have the metrics that an evaluation gives, on the same examples, in each format."""

import csv
import json
from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import keras
import numpy as np
import pytest

from accel_engine.errors import DataError
from accel_engine.formats import open_model
from accel_engine.inference.candidate import Candidate, HeldOutMetrics
from accel_engine.inference.comparison import comparisons
from accel_engine.inference.origin import origin_of
from accel_engine.model_export.export import export
from accel_engine.model_export.held_out_metrics import held_out_metrics
from accel_engine.plan import Plan
from accel_engine.process.inference_bench import ModelFile, measure_models
from accel_engine.requests.bench_models import BenchedModel, BenchOptions, BenchRequest
from accel_engine.requests.evaluate import EvaluatedModel, EvaluationOptions, EvaluationRequest
from accel_engine.requests.export_model import ExportRequest
from accel_engine.requests.held_out_metrics import HeldOutRequest
from accel_engine.requests.protocol.model_reference import ModelReference
from accel_engine.trained.bench.bench import bench
from accel_engine.trained.evaluation.evaluate import evaluate
from accel_engine.trained.file_data import load_for

from ..trained.evaluation.test_evaluate import CONFIDENT
from .conftest import Gym
from .test_model_export import DIGITS, exported, metrics_of, target

pytestmark = pytest.mark.usefixtures("few_requests")

OPTIONS = BenchOptions(devices=("cpu",), precisions=("float32",))


@pytest.fixture
def few_requests(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("accel_engine.model_export.proof.LATENCY_RUNS", 3)
    monkeypatch.setattr("accel_engine.model_export.serving_batching.SECONDS", 0.02)


def measured(*models: BenchedModel, **changes: Any) -> tuple[Sequence[Mapping[str, HeldOutMetrics]], Sequence[str]]:
    found = held_out_metrics(HeldOutRequest(models, replace(OPTIONS, **changes)))
    return found.models, found.notes


def benched(directory: Path, file: Path | str | None = None) -> BenchedModel:
    """The model of a run, or a file with its data."""
    path = Path(file) if file else None
    return BenchedModel((path or directory).name, ModelReference(directory), path)


def test_a_run_and_its_exports_have_their_metrics_on_the_same_examples(gym: Gym, tmp_path: Path) -> None:
    directory = gym.train_once(DIGITS).directory
    targets = [target(tmp_path, "tflite", "int8", 1.0), target(tmp_path, "savedmodel"), target(tmp_path, "keras")]
    written = exported(directory, tmp_path, *targets).exported
    files = [benched(directory, each.path) for each in written]
    (run, *others), notes = measured(benched(directory), *files, precisions=("float32", "mixed_bfloat16"))
    assert not notes
    assert list(run) == ["float32", "mixed_bfloat16"]
    assert run["float32"].values == pytest.approx(metrics_of(directory), rel=1e-4)
    assert list(run["float32"].values)[:2] == ["accuracy", "loss"]
    assert 1e-6 < abs(run["float32"].values["loss"] - run["mixed_bfloat16"].values["loss"]) < 0.1
    for each, (found,) in zip(written, map(dict.values, others), strict=True):
        assert found.values == pytest.approx(each.metrics, rel=1e-5)
        assert (found.split, found.examples, found.source) == ("validation", 360, directory.name)
        assert found.fingerprint == run["float32"].fingerprint
    assert [origin_of(Path(each.path)) for each in written] == [directory.name] * 3
    assert origin_of(tmp_path / "m") == directory.name


def test_what_is_no_export_of_the_run_has_a_note(gym: Gym, tmp_path: Path) -> None:
    run = gym.train_once(DIGITS).directory
    (tmp_path / "bad.onnx").write_bytes(b"no model")
    np.savez(tmp_path / "d.npz", x=np.zeros((30, 3), np.float32), y=np.arange(30) % 2)
    plan = Plan(model="mlp", data=f"{tmp_path}/d.npz", epochs=1, batch_size=30)
    exported(gym.train(plan).directory, tmp_path, target(tmp_path, "onnx"))
    files = [benched(run, tmp_path / name) for name in ("bad.onnx", "m.onnx")]
    found, notes = measured(*files, benched(run), BenchedModel("m.onnx", file=tmp_path / "m.onnx"))
    assert [bool(each) for each in found] == [False, False, True, False]
    assert [note.partition(":")[0] for note in notes] == ["no metrics of bad.onnx", "no metrics of m.onnx"]
    assert "takes examples of float32 3" in notes[1]


def test_what_was_measured_before_a_precision_failed_counts(gym: Gym) -> None:
    run = gym.train_once(DIGITS).directory
    (found,), (note,) = measured(benched(run), precisions=("float32", "no_precision"))
    assert list(found) == ["float32"]
    assert note.startswith(f"no metrics of {run.name}: ")


def test_a_model_with_a_train_step_of_its_own_has_none(gym: Gym, tmp_path: Path) -> None:
    (tmp_path / "nets.py").write_text(OWN_STEP)
    plan = Plan(model=f"{tmp_path}/nets.py:build", data="digits", epochs=1, batch_size=500)
    (found,), (note,) = measured(benched(gym.train(plan).directory))
    assert not found
    assert "has a custom train_step" in note


OWN_STEP = """
import keras

class Own(keras.Model):
    def train_step(self, data):
        return super().train_step(data)

def build(input_shape, classes):
    inputs = keras.Input(input_shape)
    model = Own(inputs, keras.layers.Dense(classes, "softmax")(keras.layers.Flatten()(inputs)))
    model.compile("sgd", "sparse_categorical_crossentropy")
    return model
"""


def test_files_take_the_raw_rows_of_other_data(gym: Gym, tmp_path: Path) -> None:
    rng = np.random.default_rng(1)
    for name, rows in (("people.csv", 90), ("others.csv", 40)):
        with (tmp_path / name).open("w", newline="") as file:
            writer = csv.writer(file)
            writer.writerow(["age", "city", "bought"])
            for age in rng.integers(20, 80, rows):
                writer.writerow([age, ["Rome", "Oslo"][age % 2], "yes" if age > 50 else "no"])
    plan = Plan(model="tabular", data=f"{tmp_path}/people.csv", target=("bought",), epochs=1, batch_size=30)
    directory = gym.train(plan).directory
    exported(directory, tmp_path, target(tmp_path, "onnx"))
    models = benched(directory), benched(directory, tmp_path / "m.onnx")
    found, notes = measured(*models, data=f"{tmp_path}/others.csv")
    assert not notes
    (run,), (file,) = (each.values() for each in found)
    assert file.values == pytest.approx(run.values, rel=1e-3)
    assert (file.split, file.examples) == ("others.csv", 40)
    parts: list[Any] = []
    options = replace(OPTIONS, batch_sizes=(1,), seconds=0.1, xla="off", data=f"{tmp_path}/others.csv")
    bench(BenchRequest((BenchedModel("m.onnx", file=tmp_path / "m.onnx"),), options), parts.append)
    assert [each.problem for each in parts if isinstance(each, Candidate)] == [""]


def test_engine_processes_measure_a_run_beside_its_export(gym: Gym, tmp_path: Path) -> None:
    directory = gym.train_once(DIGITS).directory
    (written,) = exported(directory, tmp_path, target(tmp_path, "tflite")).exported
    options = BenchOptions(batch_sizes=(1,), seconds=0.1, devices=("cpu",), precisions=("float32",), xla="off")
    parts: list[Any] = []
    assert measure_models([directory, ModelFile(tmp_path / "m.tflite")], options, parts.append) == ()
    found = [each for each in parts if isinstance(each, Candidate)]
    run, file = found
    assert run.metrics is not None
    assert file.metrics is not None
    assert run.metrics.main == ("accuracy", pytest.approx(written.metrics["accuracy"]))
    assert file.metrics.values == pytest.approx(written.metrics, rel=1e-5)
    assert file.size == written.size > 0
    (compared,) = comparisons(found, None)
    assert compared.metric_difference == pytest.approx(0, abs=1e-6)
    assert compared.size == file.size / run.size


def test_damaged_descriptions_tell_no_run(tmp_path: Path) -> None:
    beside = tmp_path / "m.onnx.json"
    for text in ("", "[]", "{}", json.dumps({"name": "../k3fp"}), json.dumps({"name": 3})):
        beside.write_text(text)
        assert origin_of(tmp_path / "m.onnx") == ""
    for content in (b"", b"no archive", b"PK\5\6" + bytes(18)):
        (tmp_path / "m.keras").write_bytes(content)
        assert origin_of(tmp_path / "m.keras") == ""
    assert origin_of(tmp_path) == origin_of(tmp_path / "missing.onnx") == origin_of(tmp_path / "missing.keras") == ""


@pytest.mark.parametrize("kind", [pytest.param("softmax", marks=pytest.mark.campaign), "sigmoid"])
def test_the_loss_of_an_export_of_a_confident_model_is_that_of_its_run(gym: Gym, tmp_path: Path, kind: str) -> None:
    """Keras clips the loss of an export's probabilities at 16.1 an example; a sigmoid of 1 tells no more than 17.3."""
    (tmp_path / "confident.py").write_text(CONFIDENT)
    numbers = np.random.default_rng(1).normal(size=(60, 8), scale=10).astype(np.float32)
    np.savez(tmp_path / "d.npz", x=numbers, y=np.arange(60) % 2)
    function, source = ("build", "digits") if kind == "softmax" else ("binary", f"{tmp_path}/d.npz")
    plan = Plan(model=f"{tmp_path}/confident.py:{function}", data=source, epochs=1, batch_size=30, learning_rate=1e-9)
    directory = gym.train(plan).directory
    written = exported(directory, tmp_path, target(tmp_path, "savedmodel"))
    evaluated, (file,) = metrics_of(directory), written.exported
    run, of_file = measured(benched(directory), benched(directory, file.path))[0]
    assert evaluated["loss"] > 10
    for found in (written.original.metrics, run["float32"].values):
        assert found["loss"] == pytest.approx(evaluated["loss"], rel=1e-5)
    assert of_file[""].values == pytest.approx(file.metrics, rel=1e-5)
    if kind == "softmax":
        assert file.metrics["loss"] == pytest.approx(evaluated["loss"], rel=1e-3)  # some are below 1e-38
        assert not [note for note in written.notes if "logits" in note]
    else:
        assert file.metrics["loss"] < 0.99 * evaluated["loss"]
        assert [note for note in written.notes if note.startswith("loss: ") and "from its probabilities" in note]


def evaluated(**plan: Any) -> EvaluatedModel:
    request = EvaluationRequest((ModelReference.of(Plan(**plan)),), EvaluationOptions(resamples=100))
    (found,) = evaluate(request).models
    return found


@pytest.mark.parametrize("target_name", [pytest.param("kind", marks=pytest.mark.campaign), "price"])
def test_an_exported_file_of_a_table_is_evaluated_as_its_run(gym: Gym, tmp_path: Path, target_name: str) -> None:
    table = tmp_path / "t.csv"
    acids = [row % 7 for row in range(80)]
    rows = (f"{('white', 'red')[acid > 2]},{acid},{'ABC'[row % 3]},{acid + row / 7}" for row, acid in enumerate(acids))
    table.write_text("\n".join(["kind,acid,cellar,price", *rows]) + "\n")
    ignore = ("price",) if target_name == "kind" else ("kind",)
    plan = Plan(data=str(table), target=(target_name,), ignore=ignore, epochs=2, batch_size=20)
    directory = gym.train(plan).directory
    exported(directory, tmp_path, target(tmp_path, "keras"))
    options = {"target": (target_name,), "ignore": ignore, "batch_size": 20}
    found = evaluated(model=str(tmp_path / "m.keras"), data=str(table), **options)
    expected = metrics_of(directory)
    assert {name: each.value for name, each in found.metrics.items()} == pytest.approx(expected, rel=1e-4)
    assert [each.name for each in found.classes] == (["red", "white"] if target_name == "kind" else [])


def test_an_exported_classifier_of_images_is_evaluated_as_its_run(gym: Gym, tmp_path: Path) -> None:
    directory = gym.train_once(DIGITS).directory
    exported(directory, tmp_path, target(tmp_path, "keras"))
    found = evaluated(model=str(tmp_path / "m.keras"), data="digits", batch_size=100)
    assert {name: each.value for name, each in found.metrics.items()} == pytest.approx(metrics_of(directory), rel=1e-4)


def test_classes_are_those_of_the_model_and_the_target_is_the_column_that_it_does_not_take(tmp_path: Path) -> None:
    """The data has two of three classes, and a category whose values are numbers here."""
    given = {"size": keras.Input((1,), name="size"), "code": keras.Input((1,), dtype="string", name="code")}
    code = keras.layers.StringLookup(vocabulary=["1", "2"], output_mode="one_hot")(given["code"])
    joined = keras.layers.Concatenate()([given["size"], code])
    chances = keras.layers.Dense(3, "softmax", kernel_initializer=keras.initializers.RandomNormal(seed=1))(joined)
    lookup = keras.layers.StringLookup(vocabulary=["a", "b", "c"], num_oov_indices=0, invert=True, name="label")
    label = lookup(keras.ops.argmax(chances, axis=-1))
    keras.Model(given, {"probabilities": chances, "label": label}).save(tmp_path / "m.keras")
    rows = [(("a", "c")[row % 2], row / 10, 1 + row % 2) for row in range(40)]
    (tmp_path / "t.csv").write_text("y,size,code\n" + "".join(f"{y},{size},{code}\n" for y, size, code in rows))
    found = evaluated(model=str(tmp_path / "m.keras"), data=str(tmp_path / "t.csv"))
    dataset = load_for(keras.models.load_model(tmp_path / "m.keras"), Plan(data=f"{tmp_path}/t.csv"), lambda *_: None)
    inputs = {name: keras.ops.convert_to_tensor(array) for name, array in dataset.validation.inputs.items()}
    expected = keras.losses.sparse_categorical_crossentropy(
        dataset.validation.targets, keras.Model(given, chances)(inputs)
    )
    assert set(dataset.validation.targets.tolist()) == {0, 2}
    assert next(iter(found.metrics.values())).value == pytest.approx(float(keras.ops.mean(expected)), rel=1e-5)
    (tmp_path / "u.csv").write_text(
        "y,size,code\n" + "".join(f"{'ad'[row % 2]},{row},{1 + row % 2}\n" for row in range(40))
    )
    with pytest.raises(DataError, match="has the class d, which the model does not know: a, b, c"):
        evaluated(model=str(tmp_path / "m.keras"), data=str(tmp_path / "u.csv"))


def test_the_file_of_a_model_is_exported_with_data_to_prove_it_on(tmp_path: Path) -> None:
    x = np.random.default_rng(0).normal(size=(60, 4)).astype(np.float32)
    np.savez(tmp_path / "d.npz", x=x, y=np.arange(60) % 3)
    model = keras.Sequential([keras.Input((4,)), keras.layers.Dense(3, "softmax")])
    model.save(tmp_path / "own.keras")
    folder = tmp_path / "temporary"
    folder.mkdir()
    plan = Plan(model=str(tmp_path / "own.keras"), data=str(tmp_path / "d.npz"))
    found = export(ExportRequest(ModelReference.of(plan), (target(tmp_path, "onnx"),), "auto", folder=folder))
    assert (found.name, found.exported[0].problem) == ("own.keras", "")
    outputs = open_model(tmp_path / "m.onnx").run({"inputs": x})
    np.testing.assert_allclose(outputs["probabilities"], model(x), atol=1e-5)


ADDS_LOSS = """
import keras

def build(input_shape, classes):
    hidden = keras.layers.ActivityRegularization(l2=0.1)
    return keras.Sequential([
        keras.Input(input_shape), keras.layers.Flatten(), keras.layers.Dense(4), hidden,
        keras.layers.Dense(classes, "softmax", kernel_regularizer="l2"),
    ])
"""


def test_an_export_of_a_model_whose_layers_add_losses_is_proved_by_its_outputs_alone(gym: Gym, tmp_path: Path) -> None:
    """Its outputs do not tell these losses; the trained model has them."""
    (tmp_path / "nets.py").write_text(ADDS_LOSS)
    directory = gym.train(DIGITS.replace(model=f"{tmp_path}/nets.py:build")).directory
    found = exported(directory, tmp_path, target(tmp_path, "keras"))
    assert (found.exported[0].problem, found.exported[0].metrics) == ("", {})
    assert found.original.metrics == pytest.approx(metrics_of(directory), rel=1e-4)


def test_a_file_that_names_its_inputs_takes_those_of_data_without_names(tmp_path: Path) -> None:
    source = "import numpy as np\n\ndef load():\n    x = np.arange(40, dtype='float32')[:, None] / 40\n"
    (tmp_path / "pairs.py").write_text(f"{source}    return (x, 2 * x), 3 * x[:, 0]\n")
    given = {name: keras.Input((1,), name=name) for name in ("input_0", "input_1")}
    both = keras.layers.Add()([given["input_0"], given["input_1"]])
    weights = keras.initializers.Constant(0.5)
    keras.Model(given, keras.layers.Dense(1, kernel_initializer=weights)(both)).save(tmp_path / "m.keras")
    found = evaluated(model=str(tmp_path / "m.keras"), data=f"{tmp_path}/pairs.py:load", split="random")
    x = load_for(keras.models.load_model(tmp_path / "m.keras"), Plan(data=f"{tmp_path}/pairs.py:load"), lambda *_: None)
    expected = np.mean((1.5 * x.validation.inputs["input_0"][:, 0] - x.validation.targets) ** 2)
    assert next(iter(found.metrics.values())).value == pytest.approx(float(expected), rel=1e-5)


def test_an_exported_file_of_a_series_is_evaluated_in_the_units_of_its_data(gym: Gym, tmp_path: Path) -> None:
    rows = "".join(f"{row},{20 + 5 * np.sin(row / 3):.3f}\n" for row in range(120))
    (tmp_path / "s.csv").write_text(f"hour,temperature\n{rows}")
    options = {"data": f"{tmp_path}/s.csv", "time": "hour", "target": ("temperature",), "window": 6, "batch_size": 20}
    directory = gym.train(Plan(model="linear", epochs=2, **options)).directory
    exported(directory, tmp_path, target(tmp_path, "keras"))
    expected = metrics_of(directory)
    found = {name: each.value for name, each in evaluated(model=f"{tmp_path}/m.keras", **options).metrics.items()}
    names = ("root_mean_squared_error", "r2_score")
    assert {name: found[name] for name in names} == pytest.approx({name: expected[name] for name in names}, rel=1e-3)
    assert found["loss"] == pytest.approx(expected["root_mean_squared_error"] ** 2, rel=1e-3)


def test_a_table_whose_numbers_float32_would_lose_is_evaluated_by_its_file(gym: Gym, tmp_path: Path) -> None:
    numbers = np.random.default_rng(0).normal(size=(60, 2))
    rows = "".join(f"{1.7e12 + a:.3f},{b:.3f},{1.2e8 + 3 * a + b:.3f}\n" for a, b in numbers)
    (tmp_path / "t.csv").write_text(f"when,size,price\n{rows}")
    options = {"data": f"{tmp_path}/t.csv", "target": ("price",), "kinds": ("when=number",)}
    directory = gym.train(Plan(model="linear", epochs=1, batch_size=20, **options)).directory
    model = keras.models.load_model(directory / "model.keras")  # a name was given twice, and nothing was saved
    assert {each.name: each.dtype for each in model.inputs} == {"when": "float64", "size": "float32"}
    assert model.output.dtype == "float64"
    found = {name: each.value for name, each in evaluated(model=f"{directory}/model.keras", **options).metrics.items()}
    assert found["mean_absolute_error"] == pytest.approx(metrics_of(directory)["mean_absolute_error"], rel=1e-3)

    given = {name: keras.Input((1,), name=name) for name in ("when", "size")}
    own = keras.Model(given, keras.layers.Dense(1)(given["size"]))  # which answers in units, in float32
    (warning,) = load_for(own, Plan(**options), lambda *_: None).warnings
    assert "has targets like these in steps of 8: smaller errors are not seen" in warning
