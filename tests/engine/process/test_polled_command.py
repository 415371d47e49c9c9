"""A command whose output is asked for tells all of it, and ends with its input."""

import sys
from pathlib import Path

from accel_engine.process.polled_command import PolledCommand

from ...waiting import wait_until

PROGRAM = """
import sys
print("began", flush=True)
print("wrong", file=sys.stderr, flush=True)
sys.stdin.readline()
print("ended")
sys.exit(3)
"""


def test_what_a_command_prints_comes_with_its_exit_status_last(tmp_path: Path) -> None:
    command, printed, statuses = PolledCommand(), list[tuple[bool, str]](), list[int | None]()
    command.start([sys.executable, "-c", PROGRAM], str(tmp_path))

    def look() -> bool:
        lines, status = command.news()
        printed.extend(lines)
        statuses.append(status)
        return len(printed) >= 2 or status is not None

    wait_until(look)
    assert sorted(printed) == [(False, "began\n"), (True, "wrong\n")]
    assert statuses[-1] is None
    command.end()
    wait_until(lambda: look() and statuses[-1] is not None)
    assert (printed[2:], statuses[-1]) == ([(False, "ended\n")], 3)
    command.end()  # it has ended
