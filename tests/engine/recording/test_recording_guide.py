"""The loops of the guide run as they are."""

import re
import subprocess
import sys
from pathlib import Path

import pytest

from accel_engine import Recorder
from accel_engine.events import EpochEnded, Validated
from accel_engine.run import Status, runs_directory

from .conftest import Read

GUIDE = Path(__file__).parents[3] / "docs" / "recording.md"
LOOPS = [
    block
    for block in re.findall(r"^```python\n(.*?)^```", GUIDE.read_text(), re.MULTILINE | re.DOTALL)
    if "import Recorder" in block
]


@pytest.mark.parametrize("number", range(len(LOOPS)))
def test_a_loop_of_the_guide_is_recorded(number: int) -> None:
    done = subprocess.run([sys.executable, "-c", LOOPS[number]], capture_output=True, text=True, check=False)

    assert (done.returncode, done.stderr) == (0, "")
    (directory,) = runs_directory().iterdir()
    read = Read(directory)
    assert read.info.status is Status.FINISHED
    if number == 0:
        assert len(read.series("loss")) == 1000
        assert [len(read.all(kind)) for kind in (EpochEnded, Validated)] == [10, 10]


def test_the_guide_has_all_that_a_recorder_offers() -> None:
    public = {name for name in vars(Recorder) if not name.startswith("_")}
    assert public == {
        "close",
        "command",
        "directory",
        "log",
        "log_histogram",
        "log_image",
        "log_text",
        "should_stop",
        "show",
    }
    assert public <= set(re.findall(r"`?\w+\.(\w+)", GUIDE.read_text()))


def test_the_guide_has_loops() -> None:
    assert len(LOOPS) == 3
