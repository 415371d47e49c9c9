"""The start of a script under ``accel-tui run``: it waits for Keras, and leaves no trace."""

import importlib
import importlib.util
import io
import os
import subprocess
import sys
from collections.abc import Iterator
from importlib.machinery import PathFinder
from pathlib import Path
from typing import Any

import pytest

from accel_engine.recording import fit_calls, run_link, supervisor_address
from accel_engine.recording.every_fit import hook
from accel_engine.recording.every_fit.added_recorder import recorder_added

STARTUP = Path(hook.__file__).parent / "startup"
NAME = "sitecustomize"


@pytest.fixture(autouse=True)
def _is_undone(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    monkeypatch.setattr(supervisor_address, "given_address", "")
    monkeypatch.setattr(sys, "meta_path", [PathFinder])
    monkeypatch.setattr(sys, "path", list(sys.path))
    for name in (hook.SUPERVISOR, hook.PATH, "PYTHONPATH"):
        monkeypatch.delenv(name, raising=False)
    for name in ("keras", NAME):
        monkeypatch.setitem(sys.modules, name, None)  # type: ignore[arg-type] # it is set again after the test
        del sys.modules[name]
    yield
    for name in (hook.SUPERVISOR, hook.PATH, "PYTHONPATH"):
        os.unsetenv(name)


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


def inherited(name: str) -> str:
    """A variable of the processes that this one starts."""
    return subprocess.run(["printenv", name], capture_output=True, text=True, check=False).stdout.strip()


@pytest.mark.parametrize("users", [None, "/lib"])
def test_a_script_sees_the_users_path_and_what_it_starts_gets_ours(
    monkeypatch: pytest.MonkeyPatch, users: str | None
) -> None:
    monkeypatch.setenv(hook.SUPERVISOR, "/run")
    monkeypatch.setenv("PYTHONPATH", f"{STARTUP}:{users}")
    if users:
        monkeypatch.setenv(hook.PATH, users)
    sys.path[:] = ["", str(STARTUP), "/lib"]
    monkeypatch.setitem(sys.path_importer_cache, str(STARTUP), None)

    assert hook.hide_variables(str(STARTUP)) == "/run"

    assert (os.environ.get("PYTHONPATH"), {hook.PATH, hook.SUPERVISOR} & os.environ.keys()) == (users, set())
    assert sys.path == ["", "/lib"]
    assert str(STARTUP) not in sys.path_importer_cache
    assert inherited("PYTHONPATH") == f"{STARTUP}:{users}"
    assert (inherited(hook.SUPERVISOR), inherited(hook.PATH)) == ("/run", users or "")


def test_lines_are_written_when_they_are_printed(monkeypatch: pytest.MonkeyPatch) -> None:
    log = io.TextIOWrapper(io.BytesIO())
    monkeypatch.setattr(sys, "stdout", log)
    monkeypatch.setattr(sys, "stderr", io.StringIO())

    hook.install_hook("/run")

    assert log.line_buffering
    assert supervisor_address.given_address == "/run"


def test_fits_are_observed_once_keras_is_imported(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    observed: list[Any] = []
    monkeypatch.setattr(fit_calls, "observe", observed.append)
    write(tmp_path, "keras", "name = 'the module of a test'")
    hook.install_hook("/run")
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
    monkeypatch.setattr(run_link, "report_to_run", reports.append)

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
    assert supervisor_address.given_address == address
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

    monkeypatch.setattr(hook, "hide_variables", fail)
    write(tmp_path, NAME, "started = True")

    start_python()

    assert capsys.readouterr().err == "accel-tui: this script's training is not recorded: LookupError: a fault\n"
    assert sys.modules[NAME].started


def test_another_python_that_the_script_starts_is_left_alone(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    write(tmp_path, NAME, "started = True")
    monkeypatch.setitem(sys.modules, hook.__name__, None)  # type: ignore[arg-type] # as if it were not installed

    start_python()

    assert not capsys.readouterr().err
    assert sys.modules[NAME].started
