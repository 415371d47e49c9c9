"""Predictions equal the saved model's on the same examples, also once the run's data is gone."""

import wave
from pathlib import Path
from typing import Any

import keras
import numpy as np
import pytest
import tensorflow as tf

from accel_engine import data, formats
from accel_engine.data.data_options import DataOptions
from accel_engine.data.standardization import Standardization
from accel_engine.errors import AccelError, DataError, RunError
from accel_engine.model_export.artefacts import Artefacts
from accel_engine.models.saved_model import custom_objects
from accel_engine.plan import Plan
from accel_engine.requests.predict import PredictionRequest
from accel_engine.run import diagnostics
from accel_engine.run.directory.run_paths import trained_model
from accel_engine.trained.open_trained import open_trained
from accel_engine.trained.outputs import OutputForm, PredictedOutput
from accel_engine.trained.prediction.predict import predict
from accel_engine.trained.prediction.table_examples import read_last_windows
from accel_engine.training.core.task import Task
from accel_engine.training.reporting.data_formats import data_format_of

from ...training.conftest import Gym


@pytest.fixture
def predicted():
    """Predicts files; returns the predictions, and the arrays of each output."""

    def ask(target: Path, *files: Path, **more: Any) -> Any:
        found = predict(PredictionRequest(target, files, **more))
        arrays = {f"values {index}": each.values for index, each in enumerate(found.outputs)}
        chances = {f"chances {index}": each.chances for index, each in enumerate(found.outputs)}
        return found, arrays | {name: each for name, each in chances.items() if each is not None}

    return ask


def saved(directory: Path) -> keras.Model:
    file = trained_model(directory)
    assert file is not None
    return keras.models.load_model(file)


def exported(directory: Path, path: Path) -> Path:
    """A run's model as ``export --to keras`` writes it."""
    Artefacts(open_trained(directory, keeps_raw=True), "m").write(formats.format_named("keras"), "none", path)
    return path


HOUSES = "id,area,city,built,price\n" + "".join(
    f"{1000 + 7 * row},{'' if row % 9 == 4 else 40 + row},{('Bonn', 'Trier', 'Ulm')[row % 3]},20{10 + row % 10}-03-0"
    f"{1 + row % 9},{100.5 + 3 * row}\n"
    for row in range(60)
)


def test_rows_are_predicted_in_units_without_the_training_file(gym: Gym, tmp_path: Path, predicted) -> None:
    source = tmp_path / "houses.csv"
    source.write_text(HOUSES)
    directory = gym.train(Plan(data=str(source), target=("price",), epochs=1, batch_size=12)).directory
    source.unlink()
    rows = tmp_path / "new.csv"
    rows.write_text("city,built,other,area\nUlm,2012-03-04,x,51\nKiel,,y,\nBonn,2013-01-01,z,inf\n")
    reply, arrays = predicted(directory, rows)
    assert reply.outputs[0].columns == ("price",)
    assert (reply.names, reply.problems) == (
        ((str(rows), "1"), (str(rows), "2"), (str(rows), "3")),
        {2: "row 3 of new.csv has an infinite number in area"},
    )
    raw: dict[str, Any] = {"area": [51, np.nan], "city": ["Ulm", "Kiel"], "built_year": [2012, np.nan]}
    raw |= {"built_month": [3, np.nan], "built_day": [4, np.nan], "built_weekday": [6, np.nan], "built_hour": [0, 0]}
    model = saved(directory)
    expected = model({each.name: tf.constant(raw[each.name], shape=(2, 1)) for each in model.inputs})
    np.testing.assert_allclose(arrays["values 0"], expected, rtol=1e-5)


def test_classes_have_their_names_and_a_row_that_lacks_a_column_is_an_error(
    gym: Gym, tmp_path: Path, predicted
) -> None:
    source = tmp_path / "wine.csv"
    rows_of = (f"{row % 7},{row % 2},{('red', 'white')[row % 2]}\n" for row in range(60))
    source.write_text("acid,sugar,kind\n" + "".join(rows_of))
    directory = gym.train(Plan(data=str(source), epochs=8, batch_size=10, learning_rate=0.05)).directory
    rows = tmp_path / "new.jsonl"
    rows.write_text('{"sugar": 1, "acid": 3}\n{"sugar": 0, "acid": 3}\n')
    reply, arrays = predicted(directory, rows)
    classes = reply.outputs[0].classes
    assert classes == ("red", "white")
    assert [classes[place] for place in arrays["values 0"].argmax(1)] == ["white", "red"]
    table = tmp_path / "new.csv"
    table.write_text("acid,sugar\n1,1\n2\n")
    with pytest.raises(AccelError, match=r"new.csv, line 3: 1 fields instead of 2: '2'$"):
        predicted(directory, table)
    rows.write_text('{"acid": 3}\n')
    with pytest.raises(AccelError, match=r"new.jsonl has no column sugar, which the model needs; it has acid"):
        predicted(directory, rows)


def test_a_file_with_a_model_takes_raw_columns(gym: Gym, tmp_path: Path, predicted) -> None:
    source = tmp_path / "houses.csv"
    source.write_text(HOUSES)
    directory = gym.train(Plan(data=str(source), target=("price",), epochs=1, batch_size=12)).directory
    rows = tmp_path / "new.csv"
    rows.write_text("city,built,area\nUlm,2012-03-04,51\nBonn,2013-02-05,60\n")
    file = trained_model(directory)
    assert file is not None
    of_file, of_run = predicted(file, rows)[1], predicted(directory, rows)[1]
    np.testing.assert_allclose(of_file["values 0"].reshape(-1), of_run["values 0"].reshape(-1), rtol=1e-5)


SERIES = "hour,station,level\n" + "".join(
    f"{hour},{station},{base + 5 * np.sin(hour / 3):.3f}\n"
    for station, base in (("North", 10), ("South", 90))
    for hour in range(40)
)


def test_a_forecast_follows_the_last_window_of_each_series(gym: Gym, tmp_path: Path, predicted) -> None:
    source = tmp_path / "tides.csv"
    source.write_text(SERIES)
    plan = Plan(
        model="lstm",
        data=str(source),
        time="hour",
        group="station",
        target=("level",),
        window=4,
        horizon=2,
        epochs=1,
        batch_size=20,
    )
    directory = gym.train(plan).directory
    source.unlink()
    rows = tmp_path / "new.csv"
    rows.write_text(
        "station,hour,level\nSouth,3,89\nSouth,1,\nSouth,2,88\nSouth,4,91\nSouth,5,90\nEast,1,7\n"
        "West,1,5\nWest,2,\nWest,3,5\nWest,4,5\n"
    )
    reply, arrays = predicted(directory, rows)
    assert [name for _, name in reply.names] == ["East", "South", "West"]
    assert reply.problems == {
        0: "East has 1 rows; a window has 4",
        2: "row 8 of new.csv, in the last window of West, is not finite",
    }
    window = np.array([[[88], [89], [91], [90]]], np.float32)
    np.testing.assert_allclose(arrays["values 0"], saved(directory)([window]), rtol=1e-4)
    assert arrays["values 0"].min() > 40  # as the levels of the data, not in standard deviations


def test_arrays_are_found_by_name_or_shape(gym: Gym, tmp_path: Path, predicted) -> None:
    x = np.random.default_rng(0).normal(size=(80, 3)).astype(np.float32)
    np.savez(tmp_path / "train.npz", x=x, y=(x > 0).astype(np.int32))
    directory = gym.train(Plan(data=str(tmp_path / "train.npz"), epochs=1, batch_size=20)).directory
    (tmp_path / "train.npz").unlink()
    np.savez(tmp_path / "new.npz", rows=x[:4].astype(np.float64), other=np.zeros(9))
    np.save(tmp_path / "one.npy", x[0])
    reply, arrays = predicted(directory, tmp_path / "new.npz", tmp_path / "one.npy")
    assert reply.outputs[0].task == "multi-label"
    np.testing.assert_allclose(arrays["values 0"][:4], saved(directory)(x[:4]), atol=1e-5)
    np.testing.assert_allclose(arrays["values 0"][4], arrays["values 0"][0], atol=1e-6)
    np.savez(tmp_path / "bad.npz", x=np.zeros((2, 5)))
    with pytest.raises(AccelError, match=r"the array x has the shape \[2, 5\]; the model takes examples of float32 3"):
        predicted(directory, tmp_path / "bad.npz")
    x[1, 2] = np.nan
    np.save(tmp_path / "nan.npy", x[:3])
    assert list(predicted(directory, tmp_path / "nan.npy")[0].problems) == [1]


def test_texts_are_classified_by_the_words_of_the_trained_model(gym: Gym, tmp_path: Path, predicted) -> None:
    for name, word in (("glad", "great fine"), ("sorry", "dull grey")):
        folder = tmp_path / "reviews" / name
        folder.mkdir(parents=True)
        for index in range(12):
            (folder / f"{index}.txt").write_text(f"{word} film {index}")
    plan = Plan(model="bag-of-words", data=str(tmp_path / "reviews"), epochs=8, batch_size=4, learning_rate=0.01)
    directory = gym.train(plan).directory
    file = exported(directory, tmp_path / "m.keras")
    (tmp_path / "reviews").rename(tmp_path / "gone")
    lines = tmp_path / "new.txt"
    lines.write_text("dull grey\n\na great film\n")
    reply, arrays = predicted(directory, lines, texts=("fine film",))
    assert [name for _, name in reply.names] == ["fine film", "dull grey", "a great film"]
    assert arrays["values 0"].argmax(1).tolist() == [0, 1, 0]
    expected = saved(directory)(tf.constant(["dull grey"])).numpy()
    np.testing.assert_allclose(arrays["values 0"][1], expected[0], atol=1e-5)
    table = tmp_path / "new.csv"
    table.write_text("id,review\n1,dull grey and much more\n2,a great film with all of it\n")
    assert predicted(directory, table)[1]["values 0"].argmax(1).tolist() == [1, 0]
    of_file, its_arrays = predicted(file, lines)
    assert of_file.outputs[0].classes == ("glad", "sorry")
    np.testing.assert_allclose(its_arrays["values 0"], arrays["values 0"][1:], atol=1e-5)
    (directory / "model.keras").unlink()  # as in a run that trains: only its data has the words
    with pytest.raises(AccelError, match="reviews': not a folder"):
        predicted(directory, lines)
    (tmp_path / "gone").rename(tmp_path / "reviews")
    np.testing.assert_allclose(predicted(directory, lines)[1]["values 0"], arrays["values 0"][1:], atol=1e-5)


def wav(path: Path, samples: int, rate: int = 2000) -> Path:
    path.parent.mkdir(parents=True, exist_ok=True)
    content = (8000 * np.sin(np.arange(samples) / 3)).astype("<i2").tobytes()
    with wave.open(str(path), "wb") as file:
        file.setnchannels(1)
        file.setsampwidth(2)
        file.setframerate(rate)
        file.writeframes(content)
    return path


def test_sounds_are_padded_and_resampled(gym: Gym, tmp_path: Path, predicted) -> None:
    for name in ("high", "low"):
        for index in range(6):
            wav(tmp_path / "tones" / name / f"{index}.wav", 200)
    directory = gym.train(Plan(model="mlp", data=str(tmp_path / "tones"), epochs=1, batch_size=4)).directory
    short, other = wav(tmp_path / "short.wav", 150), wav(tmp_path / "other.wav", 1000, rate=8000)
    damaged = tmp_path / "damaged.flac"
    damaged.write_bytes(b"fLaC")
    reply, arrays = predicted(directory, short, other, damaged)
    assert reply.notes == (
        f"{short}: padded with silence from 150 to 200 samples",
        f"{other}: resampled from 8,000 to 2,000 samples per second",
        f"{other}: cut from 250 to 200 samples, where it is loudest",
    )
    assert reply.problems == {2: f"cannot read the sound {damaged}: not a valid FLAC file"}
    assert arrays["values 0"].shape == (2, 2)


LOGITS = """
import keras

def build(input_shape, classes):
    return keras.Sequential([keras.Input(input_shape), keras.layers.Flatten(), keras.layers.Dense(classes)])
"""


def test_the_probabilities_of_a_long_sound_are_the_means_of_its_windows(gym: Gym, tmp_path: Path, predicted) -> None:
    (tmp_path / "logits.py").write_text(LOGITS)
    for name in ("high", "low"):
        for index in range(6):
            wav(tmp_path / "tones" / name / f"{index}.wav", 200)
    model = f"{tmp_path / 'logits.py'}:build"
    plan = Plan(model=model, data=str(tmp_path / "tones"), epochs=1, batch_size=4, window=100, learning_rate=0.1)
    directory = gym.train(plan).directory
    first, second, both = wav(tmp_path / "a.wav", 100), tmp_path / "silence.wav", tmp_path / "both.wav"
    second.write_bytes(first.read_bytes()[:44] + bytes(200))
    with wave.open(str(both), "wb") as file, wave.open(str(first)) as one, wave.open(str(second)) as other:
        file.setparams(one.getparams())
        file.writeframes(one.readframes(100) + other.readframes(100))
    reply, arrays = predicted(directory, first, second, both)
    assert reply.notes == (f"{both}: divided into 2 windows of 100 samples; the prediction is the mean of theirs",)
    values = arrays["values 0"]
    np.testing.assert_allclose(values.sum(1), 1.0, rtol=1e-5)
    np.testing.assert_allclose(values[2], values[:2].mean(0), rtol=1e-4)
    assert abs(values[0, 0] - values[1, 0]) > 0.05  # so that the mean of the logits would be another one


PIXELS = """
import keras
from keras import layers

def build(input_shape, classes):
    return keras.Sequential([keras.Input(input_shape), layers.Conv2D(classes, 3, padding="same", activation="softmax")])
"""


def write_image(path: Path, pixels: np.ndarray[Any, Any]) -> Path:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_bytes(tf.io.encode_png(pixels).numpy())
    return path


CNN = Plan(model="cnn", epochs=1, batch_size=100, last_batch="drop", optimizer="sgd")


def test_images_are_classified_as_by_the_saved_model(gym: Gym, tmp_path: Path, predicted) -> None:
    trained = gym.train_once(CNN)
    validation = data.load("digits", DataOptions()).validation
    assert validation is not None
    files = [write_image(tmp_path / f"{row}.png", validation.inputs[row]) for row in range(3)]
    reply, arrays = predicted(trained.directory, *files)
    assert (reply.step, reply.notes, reply.problems) == (14, (), {})
    assert reply.outputs[0].classes == tuple(map(str, range(10)))
    expected = saved(trained.directory).predict(validation.inputs[:3] / 255, verbose=0)
    np.testing.assert_allclose(arrays["values 0"], expected, atol=1e-5)


def test_a_folder_of_images_has_class_names_and_a_size(gym: Gym, tmp_path: Path, predicted) -> None:
    rng = np.random.default_rng(0)
    for value, name in enumerate(("cat", "dog")):
        for index in range(20):
            pixels = rng.integers(150 * value, 150 * value + 100, (9, 8, 3)).astype(np.uint8)
            write_image(tmp_path / "pets" / name / f"{index}.png", pixels)
    plan = Plan(model="mlp", data=str(tmp_path / "pets"), epochs=20, batch_size=8, image_size="8x8", validation="end")
    dog, missing = tmp_path / "pets" / "dog" / "3.png", tmp_path / "missing.png"
    reply, arrays = predicted(gym.train(plan).directory, dog, missing)
    assert reply.outputs[0].classes == ("cat", "dog")
    assert arrays["values 0"].argmax() == 1
    assert reply.notes == (f"{dog}: resized from 9x8 to 8x8",)
    assert reply.problems[1].startswith("cannot read the image")


def test_a_run_of_other_data_does_not_take_images(gym: Gym, tmp_path: Path, predicted) -> None:
    directory = gym.train(Plan(model="mlp", data="synthetic:20:3:500", epochs=1)).directory
    with pytest.raises(DataError, match=r"any.png is an image, which .* does not take: its examples are uint8 20"):
        predicted(directory, tmp_path / "any.png")


def test_a_changed_model_is_refused(gym: Gym, tmp_path: Path, predicted) -> None:
    source = tmp_path / "own.py"
    source.write_text(OWN.format(units="1"))
    directory = gym.train(CNN.replace(model=f"{source}:build", data="synthetic:6x6x1:3:300", batch_size=50)).directory
    source.write_text(OWN.format(units="30"))  # Python sees a change within a second by the size
    with pytest.raises(RunError, match="does not fit the model"):
        predicted(directory, write_image(tmp_path / "any.png", np.zeros((6, 6, 1), np.uint8)))


OWN = """
import keras

class Own(keras.Sequential):
    def train_step(self, data):
        return super().train_step(data)

def build(input_shape, classes):
    model = Own([keras.Input(input_shape), keras.layers.Flatten(), keras.layers.Dense({units})])
    model.compile("sgd", "mse")
    return model
"""


def test_masks_are_classes_of_pixels(gym: Gym, tmp_path: Path, predicted) -> None:
    rng = np.random.default_rng(0)
    for index in range(12):
        mask = (rng.random((8, 8, 1)) > 0.5).astype(np.uint8)
        for part, pixels in (("images", np.repeat(200 * mask, 3, axis=2)), ("masks", mask)):
            path = tmp_path / "scenes" / part / f"{index}.png"
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_bytes(tf.io.encode_png(pixels).numpy())
    source = tmp_path / "own.py"
    source.write_text(PIXELS)
    plan = Plan(model=f"{source}:build", data=str(tmp_path / "scenes"), epochs=1, batch_size=6)
    directory = gym.train(plan).directory
    reply, arrays = predicted(directory, tmp_path / "scenes" / "images" / "3.png", tmp_path / "missing.png")
    assert reply.outputs[0].task == "segmentation"
    assert list(reply.problems) == [1]
    pixels = tf.io.decode_png((tmp_path / "scenes" / "images" / "3.png").read_bytes()).numpy()
    expected = saved(directory)(pixels[np.newaxis] / np.float32(255)).numpy()
    assert arrays["values 0"].shape == (1, 8, 8)
    np.testing.assert_array_equal(arrays["values 0"], expected.argmax(-1))
    np.testing.assert_allclose(arrays["chances 0"], expected.max(-1), atol=1e-5)


def test_models_that_were_built_in_any_way_are_predicted(tmp_path: Path, predicted) -> None:
    x = np.random.default_rng(0).normal(size=(6, 4)).astype(np.float32)
    np.savez(tmp_path / "x.npz", x=x)
    inner, given = keras.Sequential([keras.Input((4,)), keras.layers.Dense(5)]), keras.Input((4,))
    models: dict[str, keras.Model] = {
        "with-input.keras": keras.Sequential([keras.Input((4,)), keras.layers.Dense(3, "softmax")]),
        "with-input.h5": keras.Sequential([keras.Input((4,)), keras.layers.Dense(3, "softmax")]),
        "built-late.keras": keras.Sequential([keras.layers.Dense(3, "softmax")]),
        "nested.keras": keras.Sequential([keras.Input((4,)), inner, keras.layers.Dense(3, "softmax")]),
        "functional.keras": keras.Model(given, keras.layers.Dense(3, "softmax")(inner(given))),
    }
    for name, model in models.items():
        model.build((None, 4))
        model.save(tmp_path / name)
        reply, arrays = predicted(tmp_path / name, tmp_path / "x.npz")
        assert reply.outputs[0].task == "classification"
        np.testing.assert_allclose(arrays["values 0"], model(x), atol=1e-6)


def test_the_classes_of_a_files_layers_can_be_given(tmp_path: Path, predicted) -> None:
    (tmp_path / "own.py").write_text("import keras\n\nclass Own(keras.layers.Dense):\n    pass\n")
    own = custom_objects(str(tmp_path / "own.py"))["Own"]
    x = np.ones((3, 4), np.float32)
    np.savez(tmp_path / "x.npz", x=x)
    model = keras.Sequential([keras.Input((4,)), own(2)])
    model.save(tmp_path / "m.keras")
    with pytest.raises(AccelError, match=r"Own is not known.*add --custom-objects FILE.py"):
        predicted(tmp_path / "m.keras", tmp_path / "x.npz")
    _, arrays = predicted(tmp_path / "m.keras", tmp_path / "x.npz", custom_objects=str(tmp_path / "own.py"))
    np.testing.assert_allclose(arrays["values 0"], model(x), atol=1e-6)


def test_examples_of_different_sizes_are_predicted_one_file_at_a_time(tmp_path: Path, predicted) -> None:
    file = tmp_path / "own.keras"
    given = keras.Input((None, 2))
    model = keras.Model(given, keras.layers.Dense(1)(given))
    model.compile("sgd", "mse")
    model.save(file)
    x = np.random.default_rng(0).normal(size=(2, 5, 2)).astype(np.float32)
    np.save(tmp_path / "five.npy", x)
    np.save(tmp_path / "four.npy", x[:, 1:])
    _, arrays = predicted(file, tmp_path / "five.npy")
    np.testing.assert_allclose(arrays["values 0"], model(x), atol=1e-5)
    with pytest.raises(AccelError, match="different shapes: predict one file at a time"):
        predicted(file, tmp_path / "five.npy", tmp_path / "four.npy")


def test_a_checkpoint_can_be_chosen_and_a_run_without_a_recorded_form_reads_its_data(
    gym: Gym, tmp_path: Path, predicted, monkeypatch
) -> None:
    x = np.random.default_rng(0).normal(size=(80, 3)).astype(np.float32)
    np.savez(tmp_path / "train.npz", x=x, y=x.sum(1))
    plan = Plan(data=str(tmp_path / "train.npz"), epochs=2, batch_size=20, learning_rate=0.05)
    directory = gym.train(plan.replace(checkpoint_every="2 steps")).directory
    file = tmp_path / "train.npz"
    first, last = (predicted(directory, file, checkpoint=each) for each in ("4", "last"))
    assert (first[0].step, last[0].step) == (4, 8)
    assert not np.allclose(first[1]["values 0"], last[1]["values 0"])
    read = diagnostics.read(directory)
    old = diagnostics.Diagnostics(read.input_spec, read.data, None, read.layers, read.validation)
    monkeypatch.setattr("accel_engine.run.diagnostics.read", lambda _: old)
    np.testing.assert_allclose(predicted(directory, file)[1]["values 0"], last[1]["values 0"], atol=1e-6)


def test_exported_keras_files_are_predicted_with_their_classes(gym: Gym, tmp_path: Path, predicted) -> None:
    source = tmp_path / "wine.csv"
    rows = (f"{row % 7},{row % 2},{('red', 'white')[row % 2]}\n" for row in range(60))
    source.write_text("acid,sugar,kind\n" + "".join(rows))
    directory = gym.train(Plan(data=str(source), epochs=2, batch_size=10)).directory
    file = exported(directory, tmp_path / "m.keras")
    (tmp_path / "new.csv").write_text("acid,sugar\n3,1\n2,0\n")
    reply, arrays = predicted(file, tmp_path / "new.csv")
    expected = predicted(directory, tmp_path / "new.csv")[1]
    found = [(each.name, each.task, each.classes) for each in reply.outputs]
    assert found == [("", "classification", ("red", "white"))]
    np.testing.assert_allclose(arrays["values 0"], expected["values 0"], atol=1e-5)


def test_exported_keras_files_of_numbers_and_images_are_predicted(gym: Gym, tmp_path: Path, predicted) -> None:
    source = tmp_path / "houses.csv"
    source.write_text(HOUSES)
    directory = gym.train(Plan(data=str(source), target=("price",), epochs=1, batch_size=12)).directory
    (tmp_path / "new.csv").write_text("city,built,area\nUlm,2012-03-04,51\nBonn,2013-02-05,60\n")
    of_file = predicted(exported(directory, tmp_path / "n.keras"), tmp_path / "new.csv")[1]["values 0"]
    of_run_ = predicted(directory, tmp_path / "new.csv")[1]["values 0"]
    np.testing.assert_allclose(of_file.ravel(), of_run_.ravel(), rtol=1e-4)
    directory = gym.train_once(Plan(model="mlp", epochs=1, batch_size=100, last_batch="drop")).directory
    np.save(tmp_path / "new.npy", np.random.default_rng(0).integers(0, 17, (3, 8, 8, 1)).astype(np.uint8))
    file = exported(directory, tmp_path / "d.keras")
    reply, arrays = predicted(file, tmp_path / "new.npy")
    assert [each.task for each in reply.outputs] == ["classification"]
    np.testing.assert_allclose(arrays["values 0"], predicted(directory, tmp_path / "new.npy")[1]["values 0"], atol=1e-5)
    with pytest.raises(AccelError, match=r"d.keras takes arrays \(.npz, .npy\), not photo.png: give the run"):
        predicted(file, tmp_path / "photo.png")


def test_examples_whose_outputs_are_not_finite_have_a_problem(tmp_path: Path, predicted) -> None:
    given = keras.Input((2,))
    numbers = keras.layers.Rescaling([1.0, np.inf])(given)
    x = np.array([[1, 2], [3, 3e38], [5, 6]], np.float32)
    np.save(tmp_path / "x.npy", x)
    for name, output in (("c", keras.layers.Softmax()(keras.layers.Rescaling(1e2)(given))), ("n", numbers)):
        keras.Model(given, output).save(tmp_path / f"{name}.keras")
    reply, arrays = predicted(tmp_path / "c.keras", tmp_path / "x.npy")
    assert reply.problems == {1: "the model's outputs for 2 are not finite"}
    np.testing.assert_allclose(arrays["values 0"], keras.ops.softmax(1e2 * x[[0, 2]]), atol=1e-6)
    reply, arrays = predicted(tmp_path / "n.keras", tmp_path / "x.npy")  # one of two numbers is finite
    assert (reply.problems, arrays["values 0"][:, 0].tolist()) == ({}, [1, 3, 5])


def test_times_are_read_as_in_training(tmp_path: Path) -> None:
    source, rows = tmp_path / "days.csv", tmp_path / "new.csv"
    days = [f"{row % 28 + 1:02d}/{row // 28 + 1:02d}/2024,{row}\n" for row in range(60)]
    source.write_text("day,level\n" + "".join(days))
    plan = Plan(data=str(source), time="day", window=2, scale="none")
    form = data_format_of(data.load(str(source), plan.data_options), plan, "regression")
    assert form is not None
    rows.write_text("day,level\n01/03/2024,30\n02/01/2024,1\n05/02/2024,20\n")  # either order of day and month fits
    assert read_last_windows(rows, form, plan).inputs[0].reshape(-1).tolist() == [20, 30]


def test_outputs_keep_the_digits_of_large_numbers() -> None:
    units = Standardization(np.array([1.2e8]), np.array([2.0]))
    for form, outputs in (
        (OutputForm("", Task("regression")), np.array([[120_000_002.25]])),
        (OutputForm("", Task("regression"), units=units), np.array([[1.125]], np.float32)),
    ):
        found = PredictedOutput()
        found.add(form, outputs)
        assert found.values[0].tolist() == [[120_000_002.25]]
