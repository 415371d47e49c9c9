"""Making checks, each in a thread of its own, so that one that hangs or breaks costs only itself."""

import threading
import time
from collections.abc import Iterator, Sequence

from accel_engine.doctor.check import Check, Finding, Report, failed


def run_checks(checks: Sequence[Check]) -> Iterator[Report]:
    """Make all checks at once.

    Returns:
        A report of every check, in the order of the checks, each as soon as it and those before
        it have ended or have taken too long.
    """
    for under_way in [_UnderWay(check) for check in checks]:
        yield under_way.report()


class _UnderWay:
    """A check that is being made."""

    def __init__(self, check: Check) -> None:
        self._check = check
        self._finding: Finding | None = None
        self._begun = time.monotonic()
        self._ended = 0.0
        self._thread = threading.Thread(target=self._look, name=f"check-{check.name}", daemon=True)
        self._thread.start()

    def report(self) -> Report:
        """Wait for its end, no longer than it may take."""
        self._thread.join(max(0.0, self._begun + self._check.seconds - time.monotonic()))
        finding = self._finding
        if finding is not None:
            return Report(self._check.name, finding, self._ended - self._begun)
        late = failed(
            f"no answer within {self._check.seconds:g} s",
            "what was asked hangs: a driver, a disk or a network",
            f"look at the others first; then ask again: accel-tui doctor {self._check.name}",
        )
        return Report(self._check.name, late, time.monotonic() - self._begun)

    def _look(self) -> None:
        try:
            finding = self._check.look()
        except Exception as error:  # noqa: BLE001 (whatever breaks in a check must not take the others along)
            finding = failed(
                "the check itself broke",
                f"{type(error).__name__}: {error}",
                "this is a mistake in accel-tui: please report it in the project's issue tracker",
            )
        self._ended = time.monotonic()
        self._finding = finding
