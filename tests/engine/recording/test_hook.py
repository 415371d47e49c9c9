"""The start of a script under ``accel-tui run``: it waits for Keras, and leaves no trace."""

import importlib
import importlib.util
import io
import os
import sys
from importlib.machinery import PathFinder
from pathlib import Path
from typing import Any

import pytest

from accel_engine.recording import fit_calls, supervised
from accel_engine.recording.every_fit import hook
from accel_engine.recording.every_fit.added_recorder import recorder_added
from accel_engine.recording.supervised import part

STARTUP = Path(hook.__file__).parent / "startup"
NAME = "sitecustomize"


@pytest.fixture(autouse=True)
def _is_undone(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(supervised, "address", "")
    monkeypatch.setattr(sys, "meta_path", [PathFinder])
    monkeypatch.setattr(sys, "path", list(sys.path))
    for name in (hook.SUPERVISOR, hook.PATH, "PYTHONPATH"):
        monkeypatch.delenv(name, raising=False)
    for name in ("keras", NAME):
        monkeypatch.setitem(sys.modules, name, None)  # type: ignore[arg-type] # it is set again after the test
        del sys.modules[name]


def write(directory: Path, name: str, text: str) -> None:
    (directory / f"{name}.py").write_text(text)
    sys.path[:] = [str(directory)]
    importlib.invalidate_caches()


def start_python() -> None:
    spec = importlib.util.spec_from_file_location(NAME, STARTUP / f"{NAME}.py")
    assert spec
    assert spec.loader
    sys.modules[NAME] = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(sys.modules[NAME])


@pytest.mark.parametrize("users", [None, "/lib"])
def test_the_users_path_is_as_without_it(monkeypatch: pytest.MonkeyPatch, users: str | None) -> None:
    monkeypatch.setenv("PYTHONPATH", f"{STARTUP}:{users}")
    if users:
        monkeypatch.setenv(hook.PATH, users)
    sys.path[:] = ["", str(STARTUP), "/lib"]
    monkeypatch.setitem(sys.path_importer_cache, str(STARTUP), None)

    hook.restore_path(str(STARTUP))

    assert (os.environ.get("PYTHONPATH"), hook.PATH in os.environ) == (users, False)
    assert sys.path == ["", "/lib"]
    assert str(STARTUP) not in sys.path_importer_cache


def test_lines_are_written_when_they_are_printed(monkeypatch: pytest.MonkeyPatch) -> None:
    log = io.TextIOWrapper(io.BytesIO())
    monkeypatch.setattr(sys, "stdout", log)
    monkeypatch.setattr(sys, "stderr", io.StringIO())

    hook.install("/run")

    assert log.line_buffering
    assert supervised.address == "/run"


def test_fits_are_observed_once_keras_is_imported(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    observed: list[Any] = []
    monkeypatch.setattr(fit_calls, "observe", observed.append)
    write(tmp_path, "keras", "name = 'the module of a test'")
    hook.install("/run")
    assert importlib.util.find_spec("keras")  # as TensorFlow looks for it
    assert importlib.util.find_spec("no_such_module") is None
    assert observed == []

    module = importlib.import_module("keras")

    assert module.name == "the module of a test"
    assert observed == [recorder_added]
    assert sys.meta_path == [PathFinder]
    assert "exec_module" not in vars(module.__loader__)


def test_a_fault_is_reported_and_raises_nothing(monkeypatch: pytest.MonkeyPatch) -> None:
    def fail(*_: object) -> None:
        raise LookupError("a fault")

    reports: list[str] = []
    monkeypatch.setattr(fit_calls, "observe", fail)
    monkeypatch.setattr(part, "report", reports.append)

    hook._observe_fit()

    assert reports == ["no fit is recorded: LookupError: a fault"]


@pytest.mark.parametrize("address", ["", "/run"])
def test_python_starts_with_the_hook_and_the_users_own_start(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, address: str
) -> None:
    write(tmp_path, NAME, "started = True")
    monkeypatch.setenv("PYTHONPATH", str(STARTUP))
    monkeypatch.setenv(hook.SUPERVISOR, address)

    start_python()

    assert sys.modules[NAME].started
    assert supervised.address == address
    assert len(sys.meta_path) == (2 if address else 1)
    assert not {"PYTHONPATH", hook.SUPERVISOR} & os.environ.keys()


def test_without_a_start_of_the_users_own_there_is_ours(tmp_path: Path) -> None:
    write(tmp_path, "other", "")
    ours: list[Any] = []

    class Finder:
        """Sees the import of the module that is hidden."""

        @staticmethod
        def find_spec(*arguments: Any) -> None:
            ours.append((arguments[0], NAME in sys.modules))

    sys.meta_path[:] = [Finder]
    start_python()

    assert ours == [(NAME, False)]
    assert NAME in sys.modules


def test_an_error_of_the_users_own_start_is_raised(tmp_path: Path) -> None:
    write(tmp_path, NAME, "import no_such_module")

    with pytest.raises(ImportError, match="no_such_module"):
        start_python()


def test_a_fault_at_the_start_is_printed(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    def fail(*_: object) -> None:
        raise LookupError("a fault")

    monkeypatch.setattr(hook, "restore_path", fail)
    write(tmp_path, NAME, "started = True")

    start_python()

    assert capsys.readouterr().err == "accel-tui: this script's training is not recorded: LookupError: a fault\n"
    assert sys.modules[NAME].started
