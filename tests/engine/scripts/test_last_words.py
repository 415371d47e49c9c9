"""Why a script failed, from its output."""

import pytest

from accel_engine.scripts.terminal_relay import end_of_output

TRACEBACK = """\
Traceback (most recent call last):
  File "train.py", line 1, in <module>
    fail()
"""


@pytest.mark.parametrize(
    ("output", "found"),
    [
        ("", ""),
        ("step 1\nno GPU found\n\n", "; it last printed: no GPU found"),
        (f"step 1\n{TRACEBACK}ValueError: oh no\n", ": ValueError: oh no"),
        (
            f"{TRACEBACK}tf.InvalidArgumentError: Graph error\n\nDetected at node x\n [[x]] [Op:y]\n",
            ": tf.InvalidArgumentError: Graph error",
        ),
        (
            f"{TRACEBACK}KeyError: 1\n\nDuring handling, another:\n\n{TRACEBACK}ValueError: later\n",
            ": ValueError: later",
        ),
        (TRACEBACK, "; it last printed: fail()"),
    ],
)
def test_the_exception_of_the_last_traceback_counts_or_the_last_line(output: str, found: str) -> None:
    assert end_of_output(output) == found
