"""Runs checks in parallel threads, so that one that hangs or fails does not affect the others."""

import threading
import time
from collections.abc import Iterator, Sequence

from accel_engine.doctor.check import Check, Finding, Report, failed


def run_checks(checks: Sequence[Check]) -> Iterator[Report]:
    """Run all checks in parallel.

    Yields:
        A report of every check, in the order of the checks, each as soon as it and those before it have ended or
        timed out.
    """
    for running in [_RunningCheck(check) for check in checks]:
        yield running.report()


class _RunningCheck:
    """A check in a thread."""

    def __init__(self, check: Check) -> None:
        self._check = check
        self._finding: Finding | None = None
        self._started = time.monotonic()
        self._ended = 0.0
        self._thread = threading.Thread(target=self._run, name=f"check-{check.name}", daemon=True)
        self._thread.start()

    def report(self) -> Report:
        """Wait for the result, up to the check's timeout."""
        self._thread.join(max(0.0, self._started + self._check.timeout - time.monotonic()))
        finding = self._finding
        if finding is not None:
            return Report(self._check.name, finding, self._ended - self._started)
        timed_out = failed(
            f"no result within {self._check.timeout:g} s",
            "a driver, a disk or a network hangs",
            f"fix the other problems first, then run accel-tui doctor {self._check.name}",
        )
        return Report(self._check.name, timed_out, time.monotonic() - self._started)

    def _run(self) -> None:
        try:
            finding = self._check.run()
        except Exception as error:  # noqa: BLE001 (an error in a check must not affect the others)
            finding = failed(
                "the check itself failed",
                f"{type(error).__name__}: {error}",
                "report this bug of accel-tui in the project's issue tracker",
            )
        self._ended = time.monotonic()
        self._finding = finding
