"""PyArrow beside TensorFlow, which on macOS may end a process: against stand-ins for that process."""

import sys
from pathlib import Path
from types import ModuleType

import pytest

from accel_engine import arrow
from accel_engine.arrow import import_pyarrow, problem_beside_tensorflow
from accel_engine.errors import DataError

ABORTS = (sys.executable, "-c", "import os; os.abort()")
BLOCKS = (sys.executable, "-c", "import time; time.sleep(600)")
WORKS = (sys.executable, "-c", "")


@pytest.fixture
def on_macos(monkeypatch):
    """An engine on macOS that has TensorFlow, and not yet PyArrow."""
    problem_beside_tensorflow.cache_clear()
    monkeypatch.setattr(sys, "platform", "darwin")
    monkeypatch.setitem(sys.modules, "tensorflow", ModuleType("tensorflow"))
    monkeypatch.delitem(sys.modules, "pyarrow", raising=False)
    monkeypatch.setattr(arrow, "import_module", lambda name: name)
    yield
    problem_beside_tensorflow.cache_clear()


@pytest.mark.parametrize(
    ("command", "words"), [(ABORTS, "crash a process that loads both"), (BLOCKS, "block each other"), (WORKS, "")]
)
def test_what_would_end_the_engine_is_an_error_before(on_macos, monkeypatch, command, words) -> None:
    monkeypatch.setattr(arrow, "COMMAND", command)
    monkeypatch.setattr(arrow, "TIMEOUT", 1.0 if command is BLOCKS else 60.0)
    if not words:
        assert import_pyarrow(Path("table.csv")) == "pyarrow"
        return
    with pytest.raises(DataError, match=rf"table\.csv cannot be read here: .*{words}.*tensorflow>=2\.19,<2\.20"):
        import_pyarrow(Path("table.csv"))


def test_elsewhere_it_is_only_imported(on_macos, monkeypatch) -> None:
    monkeypatch.setattr(arrow, "COMMAND", ABORTS)
    monkeypatch.setattr(sys, "platform", "linux")
    assert import_pyarrow(Path("table.csv")) == "pyarrow"


def test_a_missing_pyarrow_is_told_with_its_cure(monkeypatch) -> None:
    monkeypatch.setattr(arrow, "import_module", lambda _: (_ for _ in ()).throw(ImportError))
    with pytest.raises(DataError, match=r"reading table\.csv needs PyArrow: pip install"):
        import_pyarrow(Path("table.csv"))
