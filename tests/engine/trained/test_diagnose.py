"""Reports on evaluated examples, of the validation split the same as the engine's."""

from pathlib import Path

import numpy as np
import pytest

from accel_engine.errors import AccelError
from accel_engine.plan import Plan
from accel_engine.process.engine_call import ask
from accel_engine.requests.diagnose import DiagnosisRequest
from accel_engine.requests.evaluate import EvaluationOptions
from accel_engine.run.diagnostics import ClassificationReport, ValidationReport, modification_times, read
from accel_engine.run.diagnostics.views import Image
from accel_engine.trained import split_batches
from accel_engine.trained.diagnose import diagnose

from ..training.conftest import Gym

PLAN = Plan(model="mlp", epochs=1, batch_size=100, last_batch="drop")


def report_of(directory: Path, data: str = "", split: str = "auto") -> ClassificationReport:
    options = EvaluationOptions(data=data, split=split, checkpoint="last")
    (found,) = diagnose(DiagnosisRequest(directory, options)).report.outputs
    assert isinstance(found, ClassificationReport)
    return found


def test_the_report_of_the_validation_split_equals_the_engines(gym: Gym) -> None:
    directory = gym.train_once(PLAN).directory
    stored = read(directory).validation
    assert stored is not None
    (wanted,) = stored.outputs
    assert isinstance(wanted, ClassificationReport)
    before = modification_times(directory)
    found = report_of(directory)
    np.testing.assert_array_equal(found.counts, wanted.counts)
    assert [each.row for each in found.worst] == [each.row for each in wanted.worst]
    for judged, same in zip(found.worst, wanted.worst, strict=True):
        assert isinstance(judged.input, Image)
        assert isinstance(same.input, Image)
        np.testing.assert_array_equal(judged.input.pixels, same.input.pixels)
    assert modification_times(directory) == before  # nothing of the run was replaced


def test_another_split_is_reported_too(gym: Gym) -> None:
    directory = gym.train_once(PLAN).directory
    assert report_of(directory, split="training").counts.sum() == 1_437


def test_a_split_that_the_data_lacks_is_an_error(gym: Gym) -> None:
    with pytest.raises(AccelError, match="has no test examples"):
        report_of(gym.train_once(PLAN).directory, split="test")


def test_other_data_is_reported(gym: Gym, tmp_path: Path) -> None:
    def write(path: Path, seed: int, rows: int) -> str:
        rng = np.random.default_rng(seed)
        inputs = rng.normal(size=(rows, 4)).astype(np.float32)
        np.savez(path, x=inputs, y=(inputs.sum(1) > 0).astype(np.int64))
        return str(path)

    own, other = write(tmp_path / "own.npz", 0, 200), write(tmp_path / "other.npz", 1, 60)
    directory = gym.train(PLAN.replace(data=own, batch_size=32)).directory
    assert report_of(directory, data=other).counts.sum() == 60


def test_an_engine_process_reports(gym: Gym, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(split_batches, "PROGRESS_SECONDS", 0.0)
    directory = gym.train_once(PLAN).directory
    found = ask(DiagnosisRequest(directory, EvaluationOptions(split="validation")))
    assert (found.split, found.step, found.notes) == ("validation", 14, ())
    assert isinstance(found.report, ValidationReport)
    assert found.report.outputs[0].examples == 360
