"""docs/what-trains.md, and some of its commands as a user types them; the engine's tests train more of them."""

import json
import shlex
import subprocess
from pathlib import Path

import pytest

from .gallery_table import GALLERY, ROWS, copy_gallery, document_lines

DOCUMENT = Path(__file__).parents[2] / "docs" / "what-trains.md"

TYPED = ("feature_space", "object_detection")
"""A table, and several outputs from ``tf.data``."""


def test_the_document_has_exactly_these_rows() -> None:
    text = DOCUMENT.read_text(encoding="utf-8")
    tables = text[text.index("## ") :].splitlines()
    assert [line for line in tables if line.startswith(("## ", "|"))] == [line for line in document_lines() if line]


def test_every_file_of_the_gallery_has_a_row() -> None:
    files = {path.stem for path in GALLERY.glob("*.py")}
    assert files == {"make_files", *(row.name for row in ROWS)}
    assert len({row.title for row in ROWS}) == len(ROWS)


@pytest.mark.campaign  # training/test_gallery.py trains some of them, and test_train_command.py types commands
@pytest.mark.parametrize("name", TYPED)
def test_a_command_of_the_document_trains(program: Path, tmp_path: Path, name: str) -> None:
    (row,) = (row for row in ROWS if row.name == name)
    copy_gallery(tmp_path)

    command = [program, "train", *shlex.split(row.options), "--json"]
    done = subprocess.run(command, cwd=tmp_path, capture_output=True, text=True, timeout=240, check=False)

    assert done.returncode == 0, done.stderr
    lines = [json.loads(line) for line in done.stdout.splitlines()]
    steps = [line for line in lines if line["event"] == "steps"]
    ended = lines[-1]
    assert (ended["event"], ended["outcome"]) == ("run_ended", "finished")
    assert sum(line["count"] for line in steps) == ended["steps"]
    row.check(ended[row.metric] if row.metric in ended else steps[-1][row.metric][-1])
