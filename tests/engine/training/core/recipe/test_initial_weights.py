"""Runs start from the weights of other runs and of files, and continue without them."""

from pathlib import Path
from typing import Any

import keras
import numpy as np
import pytest

from accel_engine.errors import PlanError
from accel_engine.events import Outcome, Validated, Warned
from accel_engine.plan import Plan
from accel_engine.process.start_run import prepare_run
from accel_engine.requests.revalidate import RevalidationRequest
from accel_engine.run import create
from accel_engine.run.directory.run_paths import MODEL
from accel_engine.trained.diagnose import revalidate
from accel_engine.training.core.recipe import initial_weights

from ...conftest import Gym, Trained

PLAN = Plan(model="mlp", data="synthetic:8x8x1:10:256", batch_size=64, epochs=1, validation="off", seed=3)


def notes(trained: Trained) -> list[str]:
    return [warned.message for warned in trained.all(Warned) if "initial weights" in warned.message]


def test_a_run_starts_from_the_checkpoint_of_another_and_not_from_its_optimizer(gym: Gym) -> None:
    source = gym.train(PLAN)
    (source.directory / MODEL).unlink()
    plan = PLAN.replace(initial_weights=str(source.directory), seed=9, optimizer="sgd", learning_rate=1e-9)

    trained = gym.train(plan)

    assert trained.ended.outcome is Outcome.FINISHED, trained.ended.reason
    assert notes(trained) == [f"initial weights from step 4 of run {source.directory.name}: 4 of 4 weights"]
    ours = keras.models.load_model(trained.directory / MODEL).get_weights()
    copy = gym.train_once(PLAN)  # the same run again, whose model.keras is there
    theirs = keras.models.load_model(copy.directory / MODEL)
    for weight, same in zip(ours, theirs.get_weights(), strict=True):
        np.testing.assert_allclose(weight, same, atol=1e-6)
    killed = gym.train(plan.replace(epochs=2, learning_rate=0.1), at={6: [("stop",)]})
    whole = gym.train(plan.replace(epochs=2, learning_rate=0.1))
    resumed = gym.train(plan.replace(epochs=2, learning_rate=0.1), run=killed.directory)
    np.testing.assert_array_equal(resumed.series["loss"], whole.series["loss"])


def test_layers_that_fit_are_taken_and_the_others_start_anew(gym: Gym, tmp_path: Path) -> None:
    source = gym.train_once(PLAN)
    other = PLAN.replace(data="synthetic:8x8x1:7:256", optimizer="sgd", learning_rate=1e-9)

    from_run = gym.train(other.replace(initial_weights=str(source.directory)))

    name = source.directory.name
    (note,) = notes(from_run)
    assert note.startswith(f"initial weights from model.keras of run {name}: 2 of 4 weights; new: dense")
    assert note.endswith(" (7 outputs)")
    model = keras.models.load_model(source.directory / MODEL)
    model.save_weights(tmp_path / "mine.weights.h5")
    from_file = gym.train(other.replace(initial_weights=str(tmp_path / "mine.weights.h5")))
    assert notes(from_file)[0].startswith("initial weights from mine.weights.h5: 2 of 4 weights; new: dense")
    trained = keras.models.load_model(from_file.directory / MODEL)
    np.testing.assert_allclose(trained.layers[1].get_weights()[0], model.layers[1].get_weights()[0], atol=1e-6)

    head_only = gym.train(PLAN.replace(data="synthetic:4x4x1:10:256", initial_weights=str(source.directory)))
    (warning,) = [each for each in head_only.all(Warned) if "initial weights" in each.message]
    assert warning.severity == "warning"
    assert warning.message.endswith("fewer than half of the model's parameters")

    nothing = gym.train(PLAN.replace(data="synthetic:4x4x1:7:256", initial_weights=str(source.directory)))
    assert nothing.ended.outcome is Outcome.FAILED
    assert "no layer of model mlp has weights of the same shapes" in nothing.ended.reason


def test_a_checkpoint_that_its_run_has_just_deleted_is_told_from_one_that_does_not_fit(
    gym: Gym, monkeypatch: pytest.MonkeyPatch
) -> None:
    source = gym.train_once(PLAN)
    plan = PLAN.replace(initial_weights=str(source.directory))
    model = keras.models.load_model(source.directory / MODEL)
    trained = model.get_weights()
    model.set_weights([0 * weight for weight in trained])
    found = iter([3, 4])
    monkeypatch.setattr(initial_weights, "chosen_step", lambda _: next(found))

    ((note,), _) = initial_weights.load_initial_weights(model, plan)

    assert note == f"initial weights from step 4 of run {source.directory.name}: 4 of 4 weights"
    for ours, theirs in zip(model.get_weights(), trained, strict=True):
        np.testing.assert_array_equal(ours, theirs)
    monkeypatch.setattr(initial_weights, "trained_model", lambda _: None)
    other = keras.Sequential([keras.Input((3,)), keras.layers.Dense(2)])
    for step, words in (
        (3, "the checkpoint of step 3 is damaged .its files are missing"),
        (4, "does not fit this model: "),
    ):
        monkeypatch.setattr(initial_weights, "chosen_step", lambda _, step=step: step)
        with pytest.raises(PlanError, match=words):
            initial_weights.load_initial_weights(other, plan)


@pytest.mark.parametrize("kind", ["images", pytest.param("table", marks=pytest.mark.campaign)])
def test_the_best_step_and_its_averages_are_taken(gym: Gym, tmp_path: Path, kind: str) -> None:
    plan = PLAN.replace(model="mlp")
    if kind == "table":  # whose model.keras also has the preprocessing
        rows = np.random.default_rng(0).normal(size=(256, 2))
        lines = [f"{a},{b},{'yes' if a > b else 'no'}" for a, b in rows]
        (tmp_path / "table.csv").write_text("\n".join(["a,b,label", *lines]))
        plan = plan.replace(data=str(tmp_path / "table.csv"))
    source = gym.train(
        plan.replace(
            epochs=5, validation="epoch", restore_best="on", ema_momentum=0.5, learning_rate=0.5, optimizer="sgd"
        )
    )
    accuracies = {event.step: event.metrics["accuracy"] for event in source.all(Validated)}
    best = max(accuracies, key=lambda step: accuracies[step])
    assert best < source.ended.steps
    assert source.ended.model_step == best
    assert revalidate(RevalidationRequest(source.directory)).step == best

    trained = gym.train(plan.replace(initial_weights=str(source.directory), optimizer="sgd", learning_rate=1e-9))

    name = source.directory.name
    assert notes(trained) == [f"initial weights from moving averages of step {best} of run {name}: 4 of 4 weights"]
    saved = [keras.models.load_model(run.directory / MODEL) for run in (source, trained)]
    for theirs, ours in zip(*(model.get_weights() for model in saved), strict=True):
        np.testing.assert_allclose(ours, theirs, atol=1e-6)
    if kind == "images":  # the optimizer has its last state, as the weights only are the best ones
        assert int(saved[0].optimizer.iterations) == source.ended.steps


@pytest.mark.campaign
def test_imagenet_weights_are_loaded_once_and_only_the_head_trains(
    gym: Gym, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    source = keras.applications.MobileNetV3Small(
        include_top=False, weights=None, input_shape=(32, 32, 3), pooling="avg"
    )
    source.save_weights(tmp_path / "small.weights.h5")
    with monkeypatch.context() as online:
        online.setattr("keras.src.utils.file_utils.get_file", lambda *_, **__: str(tmp_path / "small.weights.h5"))
        plan = PLAN.replace(
            model="MobileNetV3Small",
            data="synthetic:32x32x1:10:64",
            batch_size=32,
            initial_weights="imagenet",
            freeze=("all-but-head",),
            epochs=2,
        )
        stopped = gym.train(plan, at={2: [("stop",)]})
    assert stopped.ended.outcome is Outcome.STOPPED, stopped.ended.reason
    (note,) = notes(stopped)
    assert note == (
        "initial weights from ImageNet: 206 of 208 weights; new: logits (10 outputs); "
        "the images' one channel is repeated to three"
    )

    def offline(*_: Any, **__: Any) -> str:
        raise OSError("no network")

    monkeypatch.setattr("keras.src.utils.file_utils.get_file", offline)
    resumed = gym.train(plan, run=stopped.directory)

    assert resumed.ended.outcome is Outcome.FINISHED, resumed.ended.reason
    model = keras.models.load_model(resumed.directory / MODEL)
    for ours, theirs in zip(model.get_layer("MobileNetV3Small").get_weights(), source.get_weights(), strict=True):
        np.testing.assert_array_equal(ours, theirs)


def test_what_does_not_exist_is_refused_before_a_run_is_created(gym: Gym, tmp_path: Path) -> None:
    with pytest.raises(PlanError, match=r"no such file"):
        prepare_run(PLAN.replace(initial_weights=str(tmp_path / "none.keras")), ())
    with pytest.raises(PlanError, match=r"must be imagenet, a run, FILE\.keras or FILE\.weights\.h5: no runs yet"):
        create(PLAN.replace(initial_weights="nothing"))
    empty = create(PLAN)
    with pytest.raises(PlanError, match=r"has written neither a checkpoint nor model\.keras"):
        create(PLAN.replace(initial_weights=empty.name))


@pytest.mark.parametrize("harm", ["cut", "flipped"])
def test_a_damaged_model_is_named(tmp_path: Path, harm: str) -> None:
    model = keras.Sequential([keras.Input((3,)), keras.layers.Dense(2)])
    path = tmp_path / "model.keras"
    model.save(path)
    content = bytearray(path.read_bytes())
    content[len(content) // 2] ^= 255
    path.write_bytes(content if harm == "flipped" else content[:500])
    with pytest.raises(PlanError, match=r"= '.*model\.keras': model\.keras is damaged$"):
        initial_weights.load_initial_weights(model, PLAN.replace(initial_weights=str(path)))
