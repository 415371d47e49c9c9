"""The types of a check and its finding; runs what may hang in a thread."""

import threading
from collections.abc import Callable, Iterable
from concurrent.futures import Future
from dataclasses import dataclass, replace
from enum import StrEnum
from typing import TypeVar

CHECK_TIMEOUT = 6.0
"""Timeout in seconds of a check of the local machine only."""


class CheckResult(StrEnum):
    """Severity of a finding: nothing was tested; no problem; training may be affected; something does not work."""

    SKIP = "skip"
    PASS = "pass"  # noqa: S105 (not a password)
    WARN = "warn"
    FAIL = "fail"


@dataclass(frozen=True, slots=True)
class CheckFinding:
    """The result of a check."""

    verdict: CheckResult
    """Its severity."""
    summary: str
    """The finding, in half a line."""
    cause: str = ""
    """Why it is a problem; empty if there is none."""
    fix: str = ""
    """How to fix it; empty if there is no problem."""


@dataclass(frozen=True, slots=True)
class Check:
    """One check."""

    name: str
    """Stable name: ``subject`` or ``subject.detail``."""
    run: Callable[[], CheckFinding]
    """Runs the check, and may block; called in a separate thread."""
    timeout: float = CHECK_TIMEOUT
    """Seconds after which it counts as failed."""


@dataclass(frozen=True, slots=True)
class CheckReport:
    """A check that was run."""

    check: str
    """Name of the check."""
    finding: CheckFinding
    """Its result."""
    seconds: float
    """How long it took."""


def skipped(summary: str) -> CheckFinding:
    """Make a finding of a check that tested nothing, and why not."""
    return CheckFinding(CheckResult.SKIP, summary)


def passed(summary: str) -> CheckFinding:
    """Make a finding without a problem."""
    return CheckFinding(CheckResult.PASS, summary)


def warned(summary: str, cause: str, fix: str) -> CheckFinding:
    """Make a finding of a problem that may affect training."""
    return CheckFinding(CheckResult.WARN, summary, cause, fix)


def failed(summary: str, cause: str, fix: str) -> CheckFinding:
    """Make a finding of something that does not work."""
    return CheckFinding(CheckResult.FAIL, summary, cause, fix)


def worst(findings: Iterable[CheckFinding]) -> CheckFinding | None:
    """The first failed finding, else the first one, with the number of the others in its summary; ``None`` of none."""
    found = sorted(findings, key=lambda finding: finding.verdict is not CheckResult.FAIL)
    if len(found) < 2:
        return next(iter(found), None)
    return replace(found[0], summary=f"{found[0].summary}; {len(found) - 1} more to mend")


_Result = TypeVar("_Result")


def call_in_thread(function: Callable[[], _Result], name: str) -> "Future[_Result]":
    """Call a function in another thread, which the end of the program does not wait for.

    Returns:
        The call's future, whose ``result`` takes a time limit.
    """
    future: Future[_Result] = Future()

    def call() -> None:
        try:
            future.set_result(function())
        except Exception as error:  # noqa: BLE001 (raised again by the future)
            future.set_exception(error)

    threading.Thread(target=call, name=name, daemon=True).start()
    return future
