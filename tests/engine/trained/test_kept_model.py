"""The model that a process keeps between two requests."""

from collections.abc import Callable, Iterator

import keras
import numpy as np
import pytest

from accel_engine.trained import kept_model
from accel_engine.trained.open_trained import TrainedModel, open_trained
from accel_engine.training.reporting.data_formats import data_format_of

from ..training.checkpoints.conftest import PLAN, Parts, parts

__all__ = ["parts"]


@pytest.fixture
def _keeping(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    monkeypatch.setattr(kept_model, "_keeps", False)
    kept_model.begin_request()
    yield
    kept_model.forget_kept_model()


@pytest.mark.usefixtures("_keeping")
def test_a_model_is_opened_once_until_its_run_changes(parts: Callable[..., Parts]) -> None:
    run = parts()
    assembly = run.assembly
    form = data_format_of(assembly.dataset, PLAN, assembly.task.name)
    assert form
    run.reporter.run.write_diagnostics(form, 0)

    def opened() -> TrainedModel:
        kept_model.begin_request()
        return open_trained(run.directory, data=None, checkpoint="3")

    run.checkpoints.save(3)
    first, second = opened(), opened()
    assert first.model is second.model
    assert first.notes == second.notes
    names = [layer.name for layer in first.model.layers]
    run.fill(0.5)
    run.checkpoints.save(3)
    third = opened()
    assert third.model is not first.model
    assert {float(value) for weight in third.model.weights for value in np.ravel(weight)} == {0.5}
    assert [layer.name for layer in third.model.layers] == names  # as in a new process
    raw = np.zeros((1, 8, 8, 1), np.float32)
    np.testing.assert_array_equal(third.outputs_of(raw), opened().outputs_of(raw))
    open_trained(run.directory, checkpoint="3")  # with data, which is not kept
    assert opened().model is not third.model


def test_other_processes_keep_none(parts: Callable[..., Parts]) -> None:
    run = parts()
    run.checkpoints.save(3)
    models = [open_trained(run.directory, data=None, checkpoint="3").model for _ in range(2)]
    assert models[0] is not models[1]
    assert isinstance(models[0], keras.Model)
