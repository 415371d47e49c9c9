"""The folder of a query is removed, also where the engine does not start."""

import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
from accel_engine.process.folder_query import FolderQuery

from accel_engine.errors import RunError
from accel_engine.process import engine_query

WRITES = """
import json, pathlib, sys
folder = pathlib.Path(json.loads(sys.stdin.read())["folder"])
(folder / "report").write_text("found")
print(json.dumps({"step": 40}))
"""


def test_a_folder_has_the_files_of_an_answer_until_the_end(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def spawn(*_: str, stderr: Any, **__: Any) -> subprocess.Popen[str]:
        pipes = {"stdin": subprocess.PIPE, "stdout": subprocess.PIPE, "stderr": stderr}
        return subprocess.Popen([sys.executable, "-c", WRITES], text=True, **pipes)

    monkeypatch.setattr(engine_query, "spawn", spawn)
    with FolderQuery((), lambda folder: {"folder": str(folder)}, tmp_path) as query:
        assert query.answer() == {"step": 40}
        assert (query.folder / "report").read_text() == "found"
        assert query.folder.parent == tmp_path
    assert not any(tmp_path.iterdir())


def test_nothing_is_left_where_no_engine_starts(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def spawn(*_: str, **__: Any) -> None:
        assert any(tmp_path.iterdir())
        raise RunError("no TensorFlow")

    monkeypatch.setattr(engine_query, "spawn", spawn)
    with pytest.raises(RunError, match="no TensorFlow"):
        FolderQuery((), lambda folder: {"folder": str(folder)}, tmp_path)
    assert not any(tmp_path.iterdir())


def test_a_directory_that_cannot_be_written_is_named(tmp_path: Path) -> None:
    with pytest.raises(RunError, match=f"cannot write to {tmp_path}/absent: No such file or directory"):
        FolderQuery((), lambda _: {}, tmp_path / "absent")
