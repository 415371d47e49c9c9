"""Nothing that fails in a loop's recorder reaches the loop."""

import inspect
import threading
import warnings

import numpy as np
import pytest

from accel_engine import Recorder
from accel_engine.recording import recorder_thread, run_link, supervisor_address

from .faults import MODULES, OF_BOTH, OF_LOOPS, fail, functions_of, put, shared_out

FUNCTIONS = functions_of(OF_LOOPS | OF_BOTH) | {
    "loop_recorder.image_of": (MODULES["loop_recorder"], "image_of"),
}
CALLS = {
    "Recorder.__del__",
    "Recorder.__enter__",
    "Recorder.__exit__",
    "Recorder.close",
    "Recorder.command",
    "Recorder.show",
}
CALLS |= {f"Recorder.{name}" for name in ("__init__", "log", "log_image", "log_text", "log_histogram")}
"""What a script or Python calls; each catches its own faults."""


@pytest.fixture(autouse=True)
def impatient(patient: None, monkeypatch: pytest.MonkeyPatch) -> None:
    """Wait for nothing long."""
    monkeypatch.setattr(run_link, "REPLY_SECONDS", 0.5)
    monkeypatch.setattr(run_link, "_silent", threading.Event())
    monkeypatch.setattr(supervisor_address, "start_supervisor", fail)
    monkeypatch.setattr(recorder_thread, "END_SECONDS", 0.5)
    monkeypatch.setattr(recorder_thread, "_UNFINISHED", set())


def loop() -> int:
    """Calls all of a recorder; the result does not depend on it."""
    total = 0
    with Recorder("faulty", config={"nested": {"lr": 0.1}}, steps=6) as run:
        run.show()
        for step in range(6):
            total += step
            run.log(step, loss=np.ones(2), epoch=step // 2, val_loss=1.0)
            run.log(0, {"back": 1.0})
            run.log_image(step, image=np.zeros((2, 2)))
            run.log_text(step, text="text")
            run.log_histogram(step, values=np.arange(3))
            run.command()
            total += run.should_stop
    return total


def test_every_call_of_a_script_is_guarded() -> None:
    public = {f"Recorder.{name}" for name, value in vars(Recorder).items() if inspect.isfunction(value)}

    assert public >= CALLS
    for name in CALLS - {"Recorder.__del__", "Recorder.__enter__"}:
        assert hasattr(getattr(Recorder, name.partition(".")[2]), "__wrapped__"), name


@pytest.mark.filterwarnings("ignore::pytest.PytestUnhandledThreadExceptionWarning")  # a thread whose target raises
@pytest.mark.parametrize("label", shared_out(sorted(FUNCTIONS.keys() - CALLS)))
def test_a_fault_in_any_function_leaves_the_loop_as_it_is(monkeypatch: pytest.MonkeyPatch, label: str) -> None:
    put(monkeypatch, *FUNCTIONS[label], fail)

    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        assert loop() == sum(range(6))

    assert len([each for each in caught if each.category is RuntimeWarning]) <= 3
