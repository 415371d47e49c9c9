"""Every kind of catalogue model trains on data that fits it, is what ``auto`` takes, and is saved as plain Keras."""

import wave
import zipfile
from contextlib import closing
from pathlib import Path

import keras
import numpy as np
import numpy.typing as npt
import pytest
import tensorflow as tf

from accel_engine.events import Outcome, Validated, Warned
from accel_engine.plan import Plan
from accel_engine.run import RunReader
from accel_engine.run.directory.run_paths import latest_checkpoint

from .conftest import Gym

N = 16
TEXT = "to be or not to be, that is the question. " * 8


@pytest.fixture(scope="module")
def files(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A file of data for each form of examples."""
    rng = np.random.default_rng(0)
    directory = tmp_path_factory.mktemp("data")
    labels = np.arange(N) % 2
    images = rng.integers(0, 256, (N, 11, 9, 3), np.uint8)

    def save(name: str, x: npt.NDArray[np.generic], y: npt.NDArray[np.generic]) -> None:
        np.savez(directory / f"{name}.npz", x=x, y=y)

    save("columns", rng.normal(50, 20, (N, 5)).astype(np.float32), labels)
    save("sensor", rng.normal(50, 20, (N, 20, 3)).astype(np.float32), labels)
    save("sound", rng.normal(0, 0.1, (N, 1100, 1)).astype(np.float32), labels)
    save("images", images, labels)
    save("prices", images, rng.normal(1e5, 1e4, N).astype(np.float32))
    save("masks", images, (images[..., 0] > 127).astype(np.uint8))
    save("series", rng.normal(50, 20, (40, 2)).astype(np.float32), rng.normal(1e3, 10, (40, 2)).astype(np.float32))
    (directory / "speech.txt").write_text(TEXT)
    for index in range(N):
        path = directory / "voices" / "ab"[index % 2] / f"{index}.wav"
        path.parent.mkdir(parents=True, exist_ok=True)
        with wave.open(str(path), "wb") as file:
            file.setparams((1, 2, 800, 0, "NONE", ""))
            file.writeframes(rng.normal(0, 1000, 500).astype("<i2").tobytes())
    for name, word in (("good", "fine"), ("bad", "poor")):
        (directory / "reviews" / name).mkdir(parents=True)
        for index in range(N // 2):
            (directory / "reviews" / name / f"{index}.txt").write_text(f"a {word} film, {word} indeed ({index})")
    return directory


@pytest.mark.share(5)
@pytest.mark.parametrize(
    ("model", "data", "fields", "shape"),
    [
        ("auto: tabular", "columns.npz", {}, (2,)),
        ("auto: tcn", "sensor.npz", {"strategy": "mirrored", "virtual_cpus": 2}, (2,)),
        ("lstm", "sensor.npz", {}, (2,)),
        ("vit", "images.npz", {}, (2,)),
        ("auto: cnn", "prices.npz", {"task": "regression", "optimizer": "adam"}, (1,)),
        ("auto: unet", "masks.npz", {}, (11, 9, 2)),
        ("auto: autoencoder", "images.npz", {"task": "reconstruction"}, (11, 9, 3)),
        ("auto: bag-of-words", "reviews", {}, (2,)),
        ("auto: sound-cnn", "voices", {}, (2,)),
        ("auto: gpt", "speech.txt", {"window": 8}, (8, None)),
        ("linear", "columns.npz", {}, (2,)),
        ("tcn", "sound.npz", {}, (2,)),
        ("auto: tcn", "series.npz", {"window": 6, "horizon": 3}, (3, 2)),
        ("auto: autoencoder", "columns.npz", {"task": "reconstruction"}, (5,)),
        ("text-cnn", "reviews", {}, (2,)),
    ],
)
def test_a_model_trains_and_is_saved_as_plain_keras(
    gym: Gym, files: Path, model: str, data: str, fields: dict[str, object], shape: tuple[int | None, ...]
) -> None:
    asked, _, taken = model.partition(": ")
    few = {"epochs": 1, "steps_per_epoch": 2, "batch_size": 4, "validation": "end"}
    few |= {"optimizer": "sgd", "learning_rate": 1e-5}
    plan = Plan.from_mapping({"model": asked, "data": str(files / data), **few, **fields})
    trained = gym.train(plan)
    assert trained.ended.outcome is Outcome.FINISHED, trained.ended.reason
    assert np.isfinite(trained.series["loss"]).all()
    assert np.isfinite(trained.only(Validated).metrics["loss"])
    with closing(RunReader(trained.directory)) as reader:
        assert reader.info().plan_values["model"] == (taken or asked)
    noted = [event.message for event in trained.all(Warned) if event.message.startswith("model auto")]
    assert noted == ([f"model auto: {taken}"] if taken else [])

    path = trained.directory / "model.keras"
    assert b"accel_engine" not in zipfile.ZipFile(path).read("config.json")
    saved = keras.models.load_model(path)
    assert all(got in (want, None) for got, want in zip(saved.output_shape[1:], shape, strict=True) if want)
    example = (
        tf.constant(["fine"]) if data == "reviews" else tf.zeros((1, *saved.input_shape[1:]), saved.inputs[0].dtype)
    )
    assert np.isfinite(saved(example).numpy()).all()


COMPILED: list[tuple[str, str, dict[str, object]]] = [("tabular", "columns.npz", {})]
COMPILED_SLOWLY: list[tuple[str, str, dict[str, object]]] = [
    ("lstm", "sensor.npz", {}),
    ("linear", "columns.npz", {}),
    ("mlp", "images.npz", {}),
    ("gpt", "speech.txt", {"window": 8}),
    ("cnn", "images.npz", {}),
    ("fashion-cnn", "images.npz", {}),
    ("resnet20", "synthetic:32x32x3:2:64", {"learning_rate": 1e-5}),
    ("vit", "images.npz", {}),
    ("unet", "masks.npz", {"learning_rate": 1e-5}),
    ("autoencoder", "images.npz", {"task": "reconstruction"}),
    ("tcn", "sensor.npz", {}),
]
"""Convolutions and attention take seconds to compile, and are slow on a CPU.

XLA does not take the models for texts.
"""


@pytest.mark.parametrize(
    ("model", "data", "fields"),
    [*COMPILED, *(pytest.param(*other, marks=pytest.mark.campaign) for other in COMPILED_SLOWLY)],
)
def test_xla_trains_a_model_as_tensorflow_does(
    gym: Gym, files: Path, model: str, data: str, fields: dict[str, object]
) -> None:
    """Two hundred steps of gradient descent: with Adam or a higher rate, rounding soon changes what is learned."""
    gym.steps = 50
    plan = Plan(
        model=model,
        data=data if data.startswith("synthetic") else str(files / data),
        epochs=1,
        steps_per_epoch=200,
        batch_size=4,
        last_batch="drop",
        validation="off",
        optimizer="sgd",
        **{"learning_rate": 1e-4, **fields},
    )
    plain, compiled = gym.train(plan.replace(xla="off")), gym.train(plan.replace(xla="on"))

    assert plain.ended.steps == compiled.ended.steps == 200, compiled.ended.reason
    for name, values in plain.series.items():
        # An output near one half counts as another class after rounding.
        tolerance = 1e-2 if name == "accuracy" else 1e-5
        np.testing.assert_allclose(compiled.series[name], values, atol=tolerance, rtol=1e-5, err_msg=name)


def test_auto_of_a_function_is_recorded_and_is_the_same_when_the_run_continues(gym: Gym, tmp_path: Path) -> None:
    source = tmp_path / "source.py"
    source.write_text(
        "import numpy as np\n"
        "def load():\n"
        "    x = np.random.default_rng(0).normal(size=(40, 12, 2)).astype('float32')\n"
        "    return x, (x.sum((1, 2)) > 0).astype('int32')\n"
    )
    plan = Plan(data=f"{source}:load", epochs=1, batch_size=12, last_batch="drop", optimizer="sgd")
    first = gym.train(plan)
    assert latest_checkpoint(first.directory)
    with closing(RunReader(first.directory)) as reader:
        recorded = reader.info().plan
    assert recorded == plan.replace(model="tcn")
    again = gym.train(recorded.replace(epochs=2), run=first.directory)
    assert again.ended.outcome is Outcome.FINISHED, again.ended.reason
    assert again.ended.epochs == 2


def test_auto_without_a_default_fails_before_the_first_step(
    gym: Gym, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    source = tmp_path / "source.py"
    source.write_text(
        "import numpy as np\n"
        "def load():\n"
        "    return {'a': np.zeros((9, 2), 'float32'), 'b': np.zeros((9, 2), 'float32')}, np.zeros(9, 'float32')\n"
    )
    ended = gym.train(Plan(data=f"{source}:load", epochs=1)).ended
    assert ended.outcome is Outcome.FAILED
    assert ended.reason == "model = 'auto': the data has several inputs: use a model of your own, FILE.py:FUNCTION"
    assert "Traceback" not in capsys.readouterr().err
