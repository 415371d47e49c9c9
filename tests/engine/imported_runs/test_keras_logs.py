"""What Keras' own callbacks write."""

import math
from pathlib import Path

import keras
import numpy as np
import pytest

from accel_engine.imported_runs import find, import_run
from accel_engine.imported_runs.source_run import SourceRun
from accel_engine.run import runs_directory
from accel_engine.run.runs.listing import summarize
from engine.imported_runs import reading as written


def the_run(path: Path) -> SourceRun:
    (source,) = find(path)
    return source.read()


@pytest.mark.parametrize("frequency", ["epoch", 1])
def test_logs_of_the_callbacks(tmp_path: Path, frequency: str | int) -> None:
    x = np.random.default_rng(0).normal(size=(48, 4)).astype(np.float32)
    model = keras.Sequential([keras.layers.Dense(1)])
    model.compile("sgd", "mse")
    callbacks = [
        keras.callbacks.TensorBoard(tmp_path / "logs", update_freq=frequency, histogram_freq=1),
        keras.callbacks.CSVLogger(tmp_path / "log.csv"),
    ]
    fitted = model.fit(x, x[:, :1], batch_size=8, epochs=3, validation_split=1 / 3, verbose=0, callbacks=callbacks)
    losses, validated = fitted.history["loss"], fitted.history["val_loss"]
    log, table = the_run(tmp_path / "logs"), the_run(tmp_path / "log.csv")

    assert log.validations["loss"].steps.tolist() == [4, 8, 12]
    for run in (log, table):
        assert run.validations["loss"].values == pytest.approx(validated)
        assert [epoch.metrics["loss"] for epoch in run.epochs] == pytest.approx(losses)
    assert [epoch.step for epoch in log.epochs] == [4, 8, 12]
    assert log.series["loss"].steps.tolist() == ([3, 7, 11] if frequency == "epoch" else [*range(12)])
    assert log.series["loss"].values[[-1]] == pytest.approx(losses[-1:])
    assert {(media.kind, tuple(media.points.steps.tolist())) for media in log.media} == {("histogram", (4, 8, 12))}


def test_the_csv_log_of_a_diverged_fit(tmp_path: Path) -> None:
    model = keras.Sequential([keras.layers.Dense(1)])
    model.compile("sgd", "mse")
    x = np.full((8, 2), np.nan, np.float32)
    model.fit(x, x[:, :1], epochs=2, verbose=0, callbacks=[keras.callbacks.CSVLogger(tmp_path / "log.csv")])
    (source,) = find(tmp_path / "log.csv")
    run_id, run = import_run(source)
    assert np.isnan(run.series["loss"].values).tolist() == [True, True]
    assert run.notes == []
    directory = runs_directory() / run_id
    assert [list(metrics) for _, _, metrics in written.epochs(directory)] == [["loss"], ["loss"]]
    assert math.isnan(summarize(directory).metrics["loss"])
