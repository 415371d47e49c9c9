"""Faults in any function of the recorders, which must not reach a script."""

import importlib
import inspect
import pkgutil
from collections.abc import Callable, Iterable, Iterator
from types import ModuleType
from typing import Any

import keras
import pytest

import accel_engine.recording
from accel_engine import RunRecorder
from accel_engine.devices import Sampler
from accel_engine.run import RunWriter
from accel_engine.run.writing.owned_run import OwnedRun
from accel_engine.run.writing.step_writer import StepWriter
from accel_engine.scripts.patient_writer import PatientWriter
from accel_engine.scripts.recorder_runs import RecorderRun
from accel_engine.scripts.recorder_server import Recording
from accel_engine.scripts.supervised_run import SupervisedRun
from accel_engine.training.commands.command_mailbox import CommandMailbox

MODULES = {
    module.name.rpartition(".")[2]: importlib.import_module(module.name)
    for module in pkgutil.iter_modules(accel_engine.recording.__path__, "accel_engine.recording.")
}

OF_LOOPS = {name for name in MODULES if name.startswith("loop_")} | {"value_snapshots"}
"""The modules that only a loop's recorder uses."""

OF_BOTH = {"recorder_thread", "run_link", "watch_hint", "recorder_messages"}
"""The modules that both recorders use."""

ESCAPE = {"guarded", "_on_error", "warn", "observe", "FitCall.__init__", "RunLink._is_open"}
"""What a failure goes through on its way to the user, what runs at import alone, what sets two attributes, and what
tells whether a connection may be closed: one that is left open is a warning in whatever test runs later."""

Functions = dict[str, tuple[object, str]]
"""Owner and name of functions by label."""


def functions_of(modules: set[str]) -> Functions:
    """Every function and method of some modules, and of what writes the run in the supervisor."""
    found = {label: (owner, name) for module in sorted(modules) for label, owner, name in _functions(MODULES[module])}
    for kind in (
        OwnedRun,
        StepWriter,
        RunWriter,
        PatientWriter,
        SupervisedRun,
        RecorderRun,
        Recording,
        Sampler,
        CommandMailbox,
    ):
        for method, function in vars(kind).items():
            if inspect.isfunction(function):
                found[f"{kind.__name__}.{method}"] = kind, method
    return found


def functions_of_fit() -> Functions:
    """What can fail while a ``fit`` is recorded."""
    return functions_of(MODULES.keys() - OF_LOOPS) | {"RunRecorder._link": (RunRecorder, "_link")}


def shared_out(labels: Iterable[str]) -> list[Any]:
    """Labels as parameters of tests: every fifth of them is tried by other tests, too, all of them by ``campaign``."""
    return [pytest.param(label, marks=pytest.mark.campaign if place % 5 else ()) for place, label in enumerate(labels)]


def fail(*_: Any, **__: Any) -> Any:
    raise LookupError("a fault in the recorder")


def put(monkeypatch: pytest.MonkeyPatch, owner: Any, name: str, function: Callable[..., Any]) -> None:
    """Replace a function wherever the recorders have it."""
    original = inspect.getattr_static(owner, name)
    monkeypatch.setattr(owner, name, function)
    if inspect.ismodule(owner):
        for module in MODULES.values():
            if vars(module).get(name) is original:
                monkeypatch.setattr(module, name, function)


def _functions(module: ModuleType) -> Iterator[tuple[str, object, str]]:
    for name, value in vars(module).items():
        if getattr(value, "__module__", "") != module.__name__:
            continue
        if inspect.isfunction(value) and name not in ESCAPE:
            yield f"{module.__name__.rpartition('.')[2]}.{name}", module, name
        elif inspect.isclass(value) and not issubclass(value, keras.callbacks.Callback):
            for method, function in vars(value).items():
                if inspect.isfunction(function) and method not in ESCAPE and f"{name}.{method}" not in ESCAPE:
                    yield f"{name}.{method}", value, method
