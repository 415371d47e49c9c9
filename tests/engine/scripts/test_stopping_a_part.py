"""Who asks to stop one part of a script never interrupts the script because the part has just ended."""

from collections.abc import Iterator
from contextlib import closing
from pathlib import Path

import pytest

from accel_engine.events import Outcome, PartStarted, RunEnded
from accel_engine.run import RunReader, send_command
from accel_engine.run.engine.commands import read_answer
from accel_engine.scripts.start_script import Script, create_script_run, start_script
from waiting import wait_until

LOOP = """
import time
step = 0
while True:
    print(f"step {step} loss {1 / (step + 1):.3f}", flush=True)
    step += 1
    time.sleep(0.02)
"""

VALUES = r"step (?P<step>\d+) loss (?P<loss>[\d.]+)"


@pytest.fixture
def directory(home: Path, tmp_path: Path) -> Iterator[Path]:
    """The run of a live script whose output is its only part."""
    path = tmp_path / "loop.py"
    path.write_text(LOOP)
    script = Script(str(path))
    directory = create_script_run(script, "", ())
    start_script(directory, script, patterns=[VALUES])
    wait_until(lambda: of_kind(directory, PartStarted), "the first part")
    yield directory
    if not of_kind(directory, RunEnded):
        answer(directory, "stop_now")
    wait_until(lambda: of_kind(directory, RunEnded), "the end")


def of_kind(directory: Path, kind: type[PartStarted] | type[RunEnded]) -> list[object]:
    with closing(RunReader(directory)) as reader:
        return [event for _, event in reader.events(0, kind)]


def answer(directory: Path, command: str, part: float | None = None) -> tuple[bool, str]:
    number = send_command(directory, command, part)
    wait_until(lambda: read_answer(directory, number), f"the answer to {command}")
    reply = read_answer(directory, number)
    assert reply
    return reply


def test_a_part_that_is_over_is_not_stopped_and_neither_is_the_script(directory: Path) -> None:
    assert answer(directory, "stop", 7) == (False, "part 7 has ended already")
    assert not of_kind(directory, RunEnded)


def test_without_a_fit_the_script_is_interrupted(directory: Path) -> None:
    obeyed, said = answer(directory, "stop")
    assert obeyed
    assert said.startswith("sent SIGINT to the script, as Ctrl-C does")
    wait_until(lambda: of_kind(directory, RunEnded), "the end")
    (ended,) = of_kind(directory, RunEnded)
    assert isinstance(ended, RunEnded)
    assert ended.outcome is Outcome.STOPPED
    assert ended.reason.startswith("interrupt requested by ")
