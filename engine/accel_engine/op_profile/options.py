"""The options of a profile, its limits, and how XProf opens the trace."""

import shlex
from dataclasses import dataclass
from pathlib import Path

from accel_engine.errors import RunError
from accel_engine.op_profile.trace_file import SUFFIX
from accel_engine.plan.options import OptionSpec, option
from accel_engine.run.diagnostics.model_items import OpProfile
from accel_engine.run.directory.run_paths import PROFILES
from accel_engine.words import numbers

MIN_SECONDS, MAX_SECONDS = 0.1, 30.0
"""Limits of the seconds of a trace, which grows by megabytes a second."""

SEVERAL_PROCESSES = "a run of several processes is not profiled, as TensorFlow's profiler may end one of them"
"""Why: workers ended in native code in 3 of about 50 traces (TensorFlow 2.21, on CPUs)."""

MAX_BYTES = 256 << 20
"""The largest trace that is reduced."""


@dataclass(frozen=True, slots=True)
class ProfileOptions:
    """How a run is profiled."""

    seconds: float = option(
        3.0,
        OptionSpec("How long steps are traced.", float, minimum=MIN_SECONDS, maximum=MAX_SECONDS, label="time"),
    )
    """How long its steps are traced."""


def check_trace_size(folder: Path) -> None:
    """Check that a trace is small enough to be reduced.

    Raises:
        RunError: The trace is larger than :data:`MAX_BYTES`.
    """
    size = sum(file.stat().st_size for file in folder.glob(f"*{SUFFIX}"))
    if size > MAX_BYTES:
        raise RunError(
            f"the trace has {numbers.size(size)}, more than the {numbers.size(MAX_BYTES)} that are reduced: "
            "profile fewer seconds"
        )


def traced_text(profile: OpProfile, seconds: float) -> str:
    """The answer to the command: the steps and the time that were traced."""
    steps = f"{numbers.counted(profile.steps, 'step')} in " if profile.steps is not None else ""
    return f"profiled {steps}{seconds:.1f} s"


def xprof_command(directory: Path) -> str:
    """The command that opens all traces of a run in XProf, which is installed apart from this program."""
    return f"xprof --logdir {shlex.quote(str(directory / PROFILES))}"
