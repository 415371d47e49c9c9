"""Fixtures of all tests: a separate data directory for each test, and waiting for a condition."""

import gc
import os
import signal
import sqlite3  # noqa: F401 (before TensorFlow, whose own copy of SQLite `failing_files` would find, and crash)
import sys
from collections.abc import Callable, Generator, Sequence
from importlib.abc import MetaPathFinder
from importlib.machinery import ModuleSpec, PathFinder
from pathlib import Path
from types import ModuleType

import pytest

import shares
from waiting import wait_until

signal.signal(signal.SIGINT, signal.default_int_handler)  # shells make background processes ignore Ctrl-C


class LogicalCpus(MetaPathFinder):
    """Gives TensorFlow four logical CPUs when it is imported, by whichever test: its first use fixes them."""

    def find_spec(self, name: str, path: Sequence[str] | None, target: ModuleType | None = None) -> ModuleSpec | None:
        """Find TensorFlow as usual, with more to execute; no other module."""
        spec = PathFinder.find_spec(name, path) if name == "tensorflow" else None
        if spec and spec.loader:
            execute = spec.loader.exec_module

            def exec_module(tensorflow: ModuleType) -> None:
                execute(tensorflow)
                config = tensorflow.config
                cpu, *_ = config.list_physical_devices("CPU")
                config.set_logical_device_configuration(cpu, [config.LogicalDeviceConfiguration()] * 4)

            spec.loader.exec_module = exec_module  # type: ignore[method-assign]
        return spec


sys.meta_path.insert(0, LogicalCpus())

SIGNALS = (signal.SIGHUP, signal.SIGINT, signal.SIGTERM, signal.SIGUSR1)

gc.disable()  # during imports: TensorFlow and the tests create millions of objects that are never freed


@pytest.hookimpl(optionalhook=True)
def pytest_xdist_auto_num_workers() -> int:
    """Return two processes more than there are cores, at most 4: many tests wait for a process or a timer."""
    return min(4, (os.cpu_count() or 1) + 2)


def pytest_report_header(config: pytest.Config) -> str:
    """Say which tests are drawn of those that are alike."""
    which = "all" if shares.all_are_wanted(config) else shares.SEED
    return f"share of tests that are alike: {which} (SHARE={which} repeats it, SHARE=all runs all)"


@pytest.hookimpl(tryfirst=True)
def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    """Run a share of the tests that are marked as alike."""
    shares.leave_out_others(config, items)


def pytest_collection_finish() -> None:
    """Collect garbage rarely, and only objects that tests create: scanning all others took a fifth of the time."""
    gc.freeze()
    gc.set_threshold(50_000, 20, 20)
    gc.enable()


@pytest.hookimpl(wrapper=True)
def pytest_runtest_protocol(item: pytest.Item, nextitem: pytest.Item | None) -> Generator[None, object, object]:
    """Give the next test the signals as they were, and leave what a file's tests have created out of collections.

    TensorFlow keeps graphs for ever, and runs collect garbage at their end, which took most of the time of tests of
    training after a while.
    """
    handlers = [(number, signal.getsignal(number)) for number in SIGNALS]
    result = yield
    for number, handler in handlers:
        if signal.getsignal(number) is not handler:  # as after a server of models that ran in this process
            signal.signal(number, handler)
    if nextitem is None or nextitem.path != item.path:
        gc.collect()
        gc.freeze()
    return result


@pytest.fixture(autouse=True)
def home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Give each test its own data directory and no settings, so that it never touches the user's."""
    place = tmp_path / "home"
    monkeypatch.setenv("ACCEL_TUI_HOME", str(place))
    monkeypatch.setenv("ACCEL_TUI_SETTINGS", os.devnull)
    monkeypatch.setenv("ACCEL_TUI_METADATA_HOST", "127.0.0.1:9")  # no test asks a cloud, wherever it runs
    return place


@pytest.fixture(name="wait_until")
def _wait_until() -> Callable[..., None]:
    """Return a function that waits for a condition, and fails the test after ``timeout`` seconds."""
    return wait_until
