"""``accel-tui advise --try`` and ``--apply``: tries and applies a cure of a finding."""

import math
from pathlib import Path

from accel_tui.cli.output import print_to_stderr, write, write_json

_FIGURES = ("before", "after", "low", "high")


def try_cure(directory: Path, finding: str, number: int, seconds: float, *, as_json: bool) -> None:
    """Train some seconds with and without a cure, and print what it gains.

    Args:
        directory: The run's directory.
        finding: The finding's id.
        number: Which of its cures that change the plan, from 1.
        seconds: How long both take turns, about.
        as_json: Whether to print JSON.

    Raises:
        AccelError: There is no such finding or cure, or it cannot be tried.
    """
    from accel_engine.advice.cures.advice_actions import try_finding  # its imports are slow
    from accel_engine.race.raced_runs import read_with_races

    shown = _Progress()
    found = try_finding(
        directory,
        finding,
        lambda reached: shown.show(reached.detail),
        number=number,
        seconds=seconds,
        read=read_with_races,
    )
    if not as_json:
        write(found.text)
        return
    figures = {name: value if math.isfinite(value := getattr(found, name)) else None for name in _FIGURES}
    write_json(
        {
            "run": directory.name,
            "finding": finding,
            **figures,
            "unit": found.unit,
            "better": found.better,
            "text": found.text,
        }
    )


def apply_cure(directory: Path, finding: str, number: int, *, as_json: bool) -> None:
    """Apply a cure to a run, take it back if the run is clearly worse with it, and print what was done.

    Args:
        directory: The run's directory.
        finding: The finding's id.
        number: Which of its cures that change the plan, from 1.
        as_json: Whether to print JSON.

    Raises:
        AccelError: There is no such finding or cure, or it cannot be applied.
    """
    from accel_engine.advice.cures.advice_actions import apply_finding  # see try_cure
    from accel_engine.race.raced_runs import read_with_races

    done = apply_finding(directory, finding, _Progress().show, number=number, read=read_with_races)
    if as_json:
        write_json({"run": directory.name, "finding": finding, "taken_back": done.taken_back, "text": done.text})
    else:
        write(done.text)


class _Progress:
    """Prints each step of an action once."""

    def __init__(self) -> None:
        self._last = ""

    def show(self, text: str) -> None:
        """Print a text to standard error, unless it was the last one."""
        if text != self._last:
            self._last = text
            print_to_stderr(text)
