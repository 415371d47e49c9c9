"""All checks of the engine, in order."""

from collections.abc import Callable
from functools import partial

from accel_engine.doctor import nvidia_checks, run_directory_checks, tensorflow_checks, tpu_checks, worker_checks
from accel_engine.doctor.check import CHECK_TIMEOUT, Check, Finding
from accel_engine.doctor.machine import Machine
from accel_engine.doctor.nvidia_driver import DRIVER_TIMEOUT
from accel_engine.doctor.python_checks import Interpreter, check_python
from accel_engine.doctor.tf_probe import PROBE_TIMEOUT
from accel_engine.strategies.tpu_endpoint import PROBE_TIMEOUT_SECONDS

_DRIVER, _IMPORT = DRIVER_TIMEOUT + 5.0, PROBE_TIMEOUT + 5.0  # longer than what they wait for

CHECKS: tuple[tuple[str, Callable[[Machine], Finding], float], ...] = (
    ("python", lambda _: check_python(Interpreter.here()), CHECK_TIMEOUT),
    ("tensorflow.packages", tensorflow_checks.check_packages, CHECK_TIMEOUT),
    ("tensorflow.import", tensorflow_checks.check_import, _IMPORT),
    ("nvidia.driver", nvidia_checks.check_driver, _DRIVER),
    ("nvidia.libraries", nvidia_checks.check_libraries, _IMPORT),
    ("nvidia.seen", nvidia_checks.check_visible_gpus, _IMPORT),
    ("nvidia.memory", nvidia_checks.check_memory, _DRIVER),
    ("tpu.library", tpu_checks.check_library, CHECK_TIMEOUT),
    ("tpu.chips", tpu_checks.check_chips, CHECK_TIMEOUT),
    ("tpu.lock", tpu_checks.check_lock, CHECK_TIMEOUT),
    ("tpu.address", tpu_checks.check_address, 4 * PROBE_TIMEOUT_SECONDS),
    ("tpu.metrics", tpu_checks.check_metrics, CHECK_TIMEOUT),
    ("workers.ports", worker_checks.check_ports, CHECK_TIMEOUT + 5.0),
    ("runs.directory", run_directory_checks.check_directory, CHECK_TIMEOUT),
    ("runs.space", run_directory_checks.check_space, CHECK_TIMEOUT),
    ("runs.database", run_directory_checks.check_database, CHECK_TIMEOUT),
    ("runs.lock", run_directory_checks.check_lock, CHECK_TIMEOUT),
)
"""Stable name, function and timeout in seconds of each check."""


def checks(machine: Machine | None = None) -> tuple[Check, ...]:
    """Collect the checks of a machine without running them.

    Args:
        machine: The machine to check; this machine by default.
    """
    machine = machine or Machine()
    return tuple(Check(name, partial(check, machine), timeout) for name, check, timeout in CHECKS)
