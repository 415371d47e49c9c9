"""Runs of TensorBoard log directories."""

from contextlib import closing
from pathlib import Path

import numpy as np
import pytest

from accel_engine.events import Validated
from accel_engine.imported_runs import find, import_run
from accel_engine.imported_runs.source_run import SourceRun
from accel_engine.plan import Plan
from accel_engine.run import RunReader, RunWriter, create, runs_directory
from accel_engine.run.media import LoggedImage, LoggedText, histogram_of, image_of
from accel_engine.tensorboard.run_log import RunLog
from engine.imported_runs import reading
from engine.imported_runs.event_files import new, old, tensor, write
from engine.imported_runs.reading import values
from recorded_run import started


def the_run(path: Path) -> SourceRun:
    (source,) = find(path)
    return source.read()


def test_directories_of_event_files_are_runs(tmp_path: Path) -> None:
    for name in (".", "a", "b/train", "b/validation", "c/deep"):
        write(tmp_path / name, [old("loss", 0, 0.5, 1001.0)])
    assert [(source.path.relative_to(tmp_path).as_posix(), len(source.files)) for source in find(tmp_path)] == [
        (".", 1),
        ("a", 1),
        ("b", 2),
        ("c/deep", 1),
    ]
    assert [source.read().name for source in find(tmp_path)] == [tmp_path.name, "a", "b", "c/deep"]


def test_a_part_alone_is_a_run_too(tmp_path: Path) -> None:
    write(tmp_path / "train", [old("loss", 0, 0.5, 1001.0)])
    assert values(the_run(tmp_path / "train")) == {"loss": [(0, 0.5)]}


def test_names_tell_training_from_validation(tmp_path: Path) -> None:
    tags = ("Loss/train", "Loss/val", "train/acc", "eval/acc", "lr")
    run = the_run(write(tmp_path, [old(tag, 4, 0.5, 1001.0) for tag in tags]).parent)
    assert values(run) == {
        "Loss": [(4, 0.5)],
        "acc": [(4, 0.5)],
        "lr": [(4, 0.5)],
        "val Loss": [(5, 0.5)],
        "val acc": [(5, 0.5)],
    }


def test_tags_of_the_same_name_are_both_kept(tmp_path: Path) -> None:
    write(tmp_path / "run", [old("loss", 0, 0.5, 1001.0), old("train/loss", 0, 0.25, 1001.0)])
    write(tmp_path / "run" / "train", [old("loss", 0, 0.125, 1001.0)])
    run = the_run(tmp_path)
    assert sorted(points[0][1] for points in values(run).values()) == [0.125, 0.25, 0.5]


def keras(directory: Path, batches: bool, evaluations: bool) -> None:
    """Two epochs of three steps as Keras' callback logs them."""
    train, validation = [], []
    for epoch in range(2):
        for batch in range(3):
            step = 3 * epoch + batch + 1
            train += [new("batch_loss", step, 1.0 / step, 1000.0 + step)] * batches
        end = 1000.0 + 3 * epoch + 3.5
        validation += [new("evaluation_loss_vs_iterations", 3 * epoch + 3, 0.5, end)] * evaluations
        train += [new("epoch_loss", epoch, 0.25, end + 0.25), new("epoch_learning_rate", epoch, 0.125, end + 0.25)]
        validation += [new("epoch_loss", epoch, 0.5, end + 0.25)]
    write(directory / "train", train)
    write(directory / "validation", validation)


def test_batches_of_keras_are_steps(tmp_path: Path) -> None:
    keras(tmp_path, batches=True, evaluations=True)
    run = the_run(tmp_path)
    assert values(run) == {
        "loss": [(step, float(np.float32(1 / (step + 1)))) for step in range(6)],
        "learning_rate": [(2, 0.125), (5, 0.125)],
        "val loss": [(3, 0.5), (6, 0.5)],
    }
    assert [(epoch.number, epoch.step, epoch.metrics) for epoch in run.epochs] == [
        (1, 3, {"loss": 0.25}),
        (2, 6, {"loss": 0.25}),
    ]


def test_epochs_of_keras_are_at_their_last_steps(tmp_path: Path) -> None:
    keras(tmp_path, batches=False, evaluations=True)
    run = the_run(tmp_path)
    assert values(run) == {
        "loss": [(2, 0.25), (5, 0.25)],
        "learning_rate": [(2, 0.125), (5, 0.125)],
        "val loss": [(3, 0.5), (6, 0.5)],
    }
    assert [(epoch.number, epoch.step) for epoch in run.epochs] == [(1, 3), (2, 6)]


def test_without_evaluations_an_epoch_of_keras_is_a_step(tmp_path: Path) -> None:
    keras(tmp_path, batches=False, evaluations=False)
    run = the_run(tmp_path)
    assert values(run)["loss"] == [(0, 0.25), (1, 0.25)]
    assert values(run)["val loss"] == [(1, 0.5), (2, 0.5)]
    assert [(epoch.number, epoch.step) for epoch in run.epochs] == [(1, 1), (2, 2)]


def test_what_is_exported_comes_back_equal(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    directory = create(Plan(epochs=2))
    with closing(RunWriter(directory)) as writer:
        writer.begin(started(time=1000.0))
        loss, rate = np.linspace(1, 0, 10, dtype=np.float32), np.full(10, 0.1, np.float32)
        writer.write_chunk(0, 1000.0, 1001.0, {"loss": loss[:4], "learning_rate": rate[:4]})
        writer.write_chunk(4, 1001.0, 1004.0, {"loss": loss[4:], "learning_rate": rate[4:]})
        for step in (4, 10):
            writer.write_event(
                Validated(time=1000.0 + step, epoch=0, step=step, metrics={"loss": 0.1, "accuracy": 0.9}, seconds=0.5)
            )
    with closing(RunReader(directory)) as reader, closing(RunLog(reader, tmp_path / "log")) as log:
        log.extend()
    (source,) = find(tmp_path / "log")
    imported = runs_directory() / import_run(source)[0]
    assert reading.series(imported) == reading.series(directory)
    assert reading.validations(imported) == reading.validations(directory)
    assert reading.times(imported) == pytest.approx(reading.times(directory), abs=1e-5)


def test_exported_images_texts_and_histograms_come_back_equal(tmp_path: Path) -> None:
    directory, random = create(Plan()), np.random.default_rng(0)
    with closing(RunWriter(directory)) as writer:
        writer.begin(started(time=1000.0))
        writer.write_chunk(0, 1000.0, 1001.0, {"loss": np.ones(4)})
        for step in (0, 4):
            time = 1000.0 + step
            writer.write_media(step, time, "samples", LoggedImage(random.integers(0, 256, (5, 7, 3), np.uint8), "cut"))
            writer.write_media(step, time, "masks", image_of(random.random((3, 5, 7))[..., None]))
            writer.write_media(step, time, "words", LoggedText(f"é\n{step}" * 5000))
            writer.write_media(step, time, "empty", LoggedText(""))
            writer.write_media(step, time, "weights", histogram_of([*random.normal(size=100), np.nan]))
            writer.write_media(step, time, "zeros", histogram_of(np.zeros(3)))
            writer.write_media(step, time, "broken", histogram_of([np.nan, np.inf]))
    with closing(RunReader(directory)) as reader, closing(RunLog(reader, tmp_path / "log")) as log:
        log.extend()
    (source,) = find(tmp_path / "log")
    name, run = import_run(source)
    assert run.notes == []
    assert reading.stored(runs_directory() / name) == reading.stored(directory)


def test_names_of_images_of_several_directories(tmp_path: Path) -> None:
    for part in (".", "train", "validation"):
        write(tmp_path / "run" / part, [tensor("words", 1, part, "text"), old("loss", 0, 1.0, 1001.0)])
    run = the_run(tmp_path)
    assert [media.name for media in run.media] == ["words", "train/words", "validation/words"]


def test_weights_of_keras_are_at_the_ends_of_epochs(tmp_path: Path) -> None:
    keras(tmp_path, batches=True, evaluations=False)
    events = [tensor(f"dense/kernel/{kind}", epoch, "x", "text") for epoch in range(2) for kind in ("text", "other")]
    write(tmp_path / "train", events, time=2000)
    run = the_run(tmp_path)
    assert {media.name: media.points.steps.tolist() for media in run.media} == {
        "dense/kernel/text": [3, 6],
        "dense/kernel/other": [0, 1],
    }


def test_values_beyond_float32_are_imported_without_a_warning(tmp_path: Path) -> None:
    for part in ("train", "validation"):
        write(tmp_path / part, [new("epoch_loss", epoch, 1e308, 1001.0, dtype=np.float64) for epoch in range(2)])
    run_id, run = import_run(find(tmp_path)[0])
    assert run.notes == ["read as infinite: 2 values in epoch_loss: beyond the range of float32"] * 2
    assert values(run) == {"loss": [(0, np.inf), (1, np.inf)], "val loss": [(1, np.inf), (2, np.inf)]}
    assert list(reading.validations(runs_directory() / run_id)) == [1, 2]
