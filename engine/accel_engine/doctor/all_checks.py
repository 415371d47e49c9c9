"""All checks of the engine's side, in order."""

from accel_engine.doctor import nvidia_checks, python_checks, run_directory_checks, tensorflow_checks, tpu_checks
from accel_engine.doctor.check import Check
from accel_engine.doctor.machine import Machine

SUBJECTS = (python_checks, tensorflow_checks, nvidia_checks, tpu_checks, run_directory_checks)
"""The modules that check, in the order in which their checks are told."""


def checks(machine: Machine | None = None) -> tuple[Check, ...]:
    """Give the checks of a machine; none is made yet.

    Args:
        machine: What is looked at; this machine when left out.
    """
    machine = machine or Machine()
    return tuple(check for subject in SUBJECTS for check in subject.checks(machine))
