"""Runs tests of a copy of the repository, each time in a process that is forked after the slow imports."""

import ctypes
import importlib
import inspect
import json
import os
import shutil
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager, suppress
from pathlib import Path
from types import FrameType
from typing import Any

import psutil
import pytest

_SUBREAPER = 36  # of <linux/prctl.h>: processes that tests leave behind become children of this one
_PLUGINS = ("pytest_asyncio.plugin", "pytest_timeout", "no:cacheprovider")  # all that pyproject.toml configures
_OPTIONS = ("-o", "addopts=--import-mode=importlib", *(part for name in _PLUGINS for part in ("-p", name)), "-q")
_TIMED_OUT = 124

EVERY = "every test"
"""Stands for all tests that import a module."""


class Copy:
    """A copy of the working tree, whose modules can be changed and whose tests can be run.

    Args:
        root: The repository.
        imports: Modules to import before tests.
    """

    def __init__(self, root: Path, imports: Sequence[str]) -> None:
        self.root = Path(tempfile.mkdtemp(prefix="mutants-"))
        listed = subprocess.run(
            ["git", "ls-files", "-co", "--exclude-standard", "-z"], cwd=root, capture_output=True, check=True, text=True
        )
        for name in filter(None, listed.stdout.split("\0")):
            target = self.root / name
            target.parent.mkdir(parents=True, exist_ok=True)
            if (root / name).is_file():
                shutil.copy2(root / name, target)
        self._changes = 0
        roots = [str(self.root / name) for name in ("engine", "tui")]
        sys.path[:0] = roots
        os.environ["PYTHONPATH"] = os.pathsep.join(roots)
        ctypes.CDLL(None).prctl(_SUBREAPER, 1, 0, 0, 0)
        for name in imports:
            importlib.import_module(name)

    def delete(self) -> None:
        """Delete the copy."""
        shutil.rmtree(self.root, ignore_errors=True)

    def read(self, module: str) -> str:
        """The code of a module."""
        return (self.root / module).read_text(encoding="utf-8")

    @contextmanager
    def changed(self, module: str, code: str) -> Iterator[None]:
        """Replace the code of a module for a while."""
        before = self.read(module)
        self._write(module, code)
        try:
            yield
        finally:
            self._write(module, before)

    def _write(self, module: str, code: str) -> None:
        path = self.root / module
        path.write_text(code, encoding="utf-8")
        self._changes += 1  # two changes within a second would be one to Python's cache of compiled modules
        os.utime(path, (self._changes, self._changes))

    def run(self, tests: Sequence[str], seconds: float, *, plugin: object = None, options: Sequence[str] = ()) -> int:
        """Run tests; returns pytest's exit status, or 124 after ``seconds``."""
        place = tempfile.mkdtemp(prefix="mutant-")
        os.chmod(place, 0o1777)  # as /tmp has: where root runs the tests, some run code as another user
        child = os.fork()
        if not child:
            _run_in_child(self.root, place, [*_OPTIONS, *options, f"--basetemp={place}/tests", *tests], plugin)
        try:
            return _wait(child, seconds)
        finally:
            _kill_children()
            shutil.rmtree(place, ignore_errors=True)


def _run_in_child(root: Path, place: str, arguments: list[str], plugin: object) -> None:
    status = 1
    try:
        os.setsid()
        os.chdir(root)
        os.environ["TMPDIR"] = tempfile.tempdir = place
        os.environ["PYTEST_DISABLE_PLUGIN_AUTOLOAD"] = "1"  # finding plugins takes longer than most tests
        silent = os.open(os.devnull, os.O_RDWR)
        for descriptor in range(3):
            os.dup2(silent, descriptor)
        for name in [name for name in sys.modules if name.split(".")[0] in ("accel_engine", "accel_tui")]:
            del sys.modules[name]
        status = pytest.main(arguments, plugins=[plugin] if plugin else [])
    finally:
        os._exit(status)


def _wait(child: int, seconds: float) -> int:
    deadline = time.monotonic() + seconds
    while time.monotonic() < deadline:
        found, status = os.waitpid(child, os.WNOHANG)
        if found:
            return os.waitstatus_to_exitcode(status)
        time.sleep(0.02)
    return _TIMED_OUT


def _kill_children() -> None:
    """End what a test has left behind, and tests that take too long."""
    me = psutil.Process()
    while left := me.children(recursive=True):
        for process in left:
            with suppress(psutil.NoSuchProcess):
                process.kill()
        with suppress(ChildProcessError):
            while os.waitpid(-1, 0)[0]:
                pass


class LineRecorder:
    """A plugin of pytest that records which tests execute which lines.

    Args:
        root: The repository's copy.
        modules: The modules to follow, as paths in it.
        output: File to write: the tests by line by module, the seconds of each test, and
            those that fail. Code of a module or class body
            counts for the test :data:`EVERY`.
    """

    def __init__(self, root: Path, modules: Sequence[str], output: Path) -> None:
        self._modules = {str(root / module): module for module in modules}
        self._lines: dict[str, dict[int, set[str]]] = {module: {} for module in modules}
        self._seconds: dict[str, float] = {}
        self._failed: set[str] = set()
        self._output = output
        self._test = EVERY
        self._began = 0.0

    @pytest.hookimpl(tryfirst=True)
    def pytest_cmdline_parse(self) -> None:
        """Follow all threads, from before conftest.py imports modules."""
        threading.settrace(self._call)
        sys.settrace(self._call)

    def pytest_runtest_logstart(self, nodeid: str) -> None:
        """Count lines for the test that begins."""
        self._test, self._began = nodeid, time.monotonic()

    def pytest_runtest_logfinish(self, nodeid: str) -> None:
        """Note how long a test took."""
        self._seconds[nodeid] = time.monotonic() - self._began

    def pytest_runtest_logreport(self, report: pytest.TestReport) -> None:
        """Note what fails."""
        if report.failed:
            self._failed.add(report.nodeid)

    def pytest_sessionfinish(self) -> None:
        """Write what was recorded."""
        sys.settrace(None)
        lines = {
            module: {line: sorted(tests) for line, tests in found.items()} for module, found in self._lines.items()
        }
        self._output.write_text(json.dumps([lines, self._seconds, sorted(self._failed)]))

    def _call(self, frame: FrameType, event: str, argument: Any) -> Callable[..., Any] | None:
        del event, argument
        module = self._modules.get(frame.f_code.co_filename)
        if module is None:
            return None
        found, in_function = self._lines[module], frame.f_code.co_flags & inspect.CO_OPTIMIZED

        def line(frame: FrameType, event: str, argument: Any) -> Callable[..., Any]:
            del event, argument
            found.setdefault(frame.f_lineno, set()).add(self._test if in_function else EVERY)
            return line

        return line
