"""All checks of the engine, in order, and runs them in parallel: one that hangs or fails does not affect the others."""

import time
from collections.abc import Callable, Iterator, Sequence
from functools import partial

from accel_engine import network_namespace
from accel_engine.doctor import (
    gpu_settings,
    nvidia_checks,
    run_directory_checks,
    system_checks,
    tensorflow_checks,
    tpu_checks,
)
from accel_engine.doctor.check import (
    CHECK_TIMEOUT,
    Check,
    CheckFinding,
    CheckReport,
    call_in_thread,
    failed,
    passed,
    warned,
)
from accel_engine.doctor.check_inputs import DRIVER_TIMEOUT, Machine
from accel_engine.doctor.python_checks import check_python
from accel_engine.doctor.tf_probe import PROBE_TIMEOUT
from accel_engine.strategies.tpu_endpoint import PROBE_TIMEOUT_SECONDS

_DRIVER, _IMPORT = DRIVER_TIMEOUT + 5.0, PROBE_TIMEOUT + 5.0  # longer than what they wait for


def check_ports(machine: Machine) -> CheckFinding:  # noqa: ARG001
    """Check whether local workers can train where nobody else can reach the ports of TensorFlow's servers."""
    if not (problem := network_namespace.why_not()):
        return passed("local workers can have a separate network")
    return warned(
        "other users and machines can reach the ports of local workers",
        f"{problem}, and TensorFlow's servers run what anyone sends them",
        "allow unprivileged user namespaces, or use --local-workers only behind a firewall, without other users",
    )


CHECKS: tuple[tuple[str, Callable[[Machine], CheckFinding], float], ...] = (
    ("python", lambda machine: check_python(machine.python, in_colab=machine.in_colab), CHECK_TIMEOUT),
    ("tensorflow.packages", tensorflow_checks.check_packages, CHECK_TIMEOUT),
    ("tensorflow.requirements", tensorflow_checks.check_requirements, CHECK_TIMEOUT),
    ("tensorflow.import", tensorflow_checks.check_import, _IMPORT),
    ("tensorflow.tables", tensorflow_checks.check_tables, _IMPORT),
    ("tensorflow.flags", tensorflow_checks.check_flags, _IMPORT),
    ("nvidia.driver", nvidia_checks.check_driver, _IMPORT),
    ("nvidia.libraries", nvidia_checks.check_libraries, _IMPORT),
    ("nvidia.seen", nvidia_checks.check_visible_gpus, _IMPORT),
    ("nvidia.memory", nvidia_checks.check_gpu_memory, _IMPORT),
    ("nvidia.order", gpu_settings.check_order, _IMPORT),
    ("nvidia.files", gpu_settings.check_files, _IMPORT),
    ("nvidia.settings", gpu_settings.check_settings, _IMPORT),
    ("nvidia.health", gpu_settings.check_health, _IMPORT),
    ("nvidia.errors", gpu_settings.check_errors, _DRIVER),
    ("nvidia.links", gpu_settings.check_links, _IMPORT),
    ("nvidia.wsl", nvidia_checks.check_wsl, CHECK_TIMEOUT),
    ("tpu.library", tpu_checks.check_library, CHECK_TIMEOUT),
    ("tpu.chips", tpu_checks.check_chips, CHECK_TIMEOUT),
    ("tpu.lock", tpu_checks.check_tpu_lock, CHECK_TIMEOUT),
    ("tpu.address", tpu_checks.check_address, 4 * PROBE_TIMEOUT_SECONDS),
    ("tpu.metrics", tpu_checks.check_tpu_metrics, CHECK_TIMEOUT),
    ("system.limits", system_checks.check_limits, _DRIVER),
    ("system.processors", system_checks.check_processors, _DRIVER),
    ("system.memory", system_checks.check_memory, _DRIVER),
    ("workers.cluster", system_checks.check_cluster, CHECK_TIMEOUT),
    ("workers.ports", check_ports, CHECK_TIMEOUT + 5.0),
    ("runs.directory", run_directory_checks.check_directory, CHECK_TIMEOUT),
    ("runs.space", run_directory_checks.check_space, CHECK_TIMEOUT),
    ("runs.database", run_directory_checks.check_database, CHECK_TIMEOUT),
    ("runs.lock", run_directory_checks.check_run_lock, CHECK_TIMEOUT),
)
"""Stable name, function and timeout in seconds of each check."""

DEEP_CHECKS = (("tensorflow.computing", tensorflow_checks.check_computing, _IMPORT),)
"""The same for checks that let devices compute, which takes their time and memory."""


def checks_of(machine: Machine | None = None, *, deep: bool = False) -> tuple[Check, ...]:
    """Collect the checks of a machine without running them.

    Args:
        machine: The machine to check; this machine by default.
        deep: Whether devices compute, too.
    """
    machine, chosen = machine or Machine(), CHECKS + DEEP_CHECKS * deep
    return tuple(Check(name, partial(check, machine), timeout) for name, check, timeout in chosen)


def run_checks(checks: Sequence[Check]) -> Iterator[CheckReport]:
    """Run all checks in parallel.

    Yields:
        A report of every check, in the order of the checks, each as soon as it and those before it have ended or
        timed out.
    """
    started = time.monotonic()
    running = [(check, call_in_thread(partial(_run, check), f"check-{check.name}")) for check in checks]
    for check, report in running:
        try:
            yield report.result(max(0.0, started + check.timeout - time.monotonic()))
        except TimeoutError:
            timed_out = failed(
                f"no result within {check.timeout:g} s",
                "a driver, a disk or a network hangs",
                f"fix the other problems first, then run accel-tui doctor {check.name}",
            )
            yield CheckReport(check.name, timed_out, time.monotonic() - started)


def _run(check: Check) -> CheckReport:
    started = time.monotonic()
    try:
        finding = check.run()
    except Exception as error:  # noqa: BLE001 (an error in a check must not affect the others)
        finding = failed(
            "the check itself failed",
            f"{type(error).__name__}: {error}",
            "report this bug of accel-tui in the project's issue tracker",
        )
    return CheckReport(check.name, finding, time.monotonic() - started)
