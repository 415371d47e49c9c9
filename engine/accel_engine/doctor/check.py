"""The shape of a check and of what it finds."""

from collections.abc import Callable
from dataclasses import dataclass
from enum import StrEnum

PATIENCE = 6.0
"""Seconds that a check may take which only looks at this machine."""


class Verdict(StrEnum):
    """How bad it is: nothing; training may suffer; something that should work does not."""

    PASS = "pass"  # noqa: S105 (not a password)
    WARN = "warn"
    FAIL = "fail"


@dataclass(frozen=True, slots=True)
class Finding:
    """What a check found.

    Attributes:
        verdict: How bad it is.
        found: What there is, in half a line.
        why: Why that is bad; empty when all is well.
        advice: What to do about it; empty when all is well.
    """

    verdict: Verdict
    found: str
    why: str = ""
    advice: str = ""


@dataclass(frozen=True, slots=True)
class Check:
    """One thing to look at.

    Attributes:
        name: Stays the same from version to version: ``subject`` or ``subject.detail``.
        look: Looks, and may block; called in a thread of its own.
        seconds: How long that may take before it counts as failed.
    """

    name: str
    look: Callable[[], Finding]
    seconds: float = PATIENCE


@dataclass(frozen=True, slots=True)
class Report:
    """A check that was made.

    Attributes:
        check: Its name.
        finding: What it found.
        seconds: How long it took.
    """

    check: str
    finding: Finding
    seconds: float


def passed(found: str) -> Finding:
    """All is well."""
    return Finding(Verdict.PASS, found)


def warned(found: str, why: str, advice: str) -> Finding:
    """Training may suffer."""
    return Finding(Verdict.WARN, found, why, advice)


def failed(found: str, why: str, advice: str) -> Finding:
    """Something that should work does not."""
    return Finding(Verdict.FAIL, found, why, advice)
