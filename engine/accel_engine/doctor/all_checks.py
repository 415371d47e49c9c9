"""All checks of the engine, in order."""

from accel_engine.doctor import nvidia_checks, python_checks, run_directory_checks, tensorflow_checks, tpu_checks
from accel_engine.doctor.check import Check
from accel_engine.doctor.machine import Machine

SUBJECTS = (python_checks, tensorflow_checks, nvidia_checks, tpu_checks, run_directory_checks)
"""The modules with checks, in order."""


def checks(machine: Machine | None = None) -> tuple[Check, ...]:
    """Collect the checks of a machine without running them.

    Args:
        machine: The machine to check; this machine by default.
    """
    machine = machine or Machine()
    return tuple(check for subject in SUBJECTS for check in subject.checks(machine))
