"""Runs checks in parallel threads, so that one that hangs or fails does not affect the others."""

import time
from collections.abc import Iterator, Sequence
from functools import partial

from accel_engine.doctor.check import Check, Report, failed
from accel_engine.doctor.time_limit import call_in_thread


def run_checks(checks: Sequence[Check]) -> Iterator[Report]:
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
            yield Report(check.name, timed_out, time.monotonic() - started)


def _run(check: Check) -> Report:
    started = time.monotonic()
    try:
        finding = check.run()
    except Exception as error:  # noqa: BLE001 (an error in a check must not affect the others)
        finding = failed(
            "the check itself failed",
            f"{type(error).__name__}: {error}",
            "report this bug of accel-tui in the project's issue tracker",
        )
    return Report(check.name, finding, time.monotonic() - started)
