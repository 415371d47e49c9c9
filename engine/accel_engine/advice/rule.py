"""Rules of advice: their type, and how several are applied, of which some may fail."""

from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from typing import TypeAlias, TypeVar

from accel_engine.advice.finding import Finding
from accel_engine.advice.recorded import Recorded

Rule: TypeAlias = Callable[[Recorded], Iterator[Finding]]
"""Yields the findings of one subject, from what a run has recorded; nothing where it is not sure."""

SubjectT = TypeVar("SubjectT")


@dataclass(frozen=True, slots=True)
class FailedRule:
    """A rule that raised an exception: a fault of this program."""

    name: str
    """The rule."""
    error: Exception
    """The exception."""

    def __str__(self) -> str:
        return f"{self.name} ({type(self.error).__name__}: {self.error})"


class RulesFailedError(Exception):
    """Rules failed, after all findings of the others.

    Args:
        failed: The rules.
    """

    def __init__(self, failed: Iterable[FailedRule]) -> None:
        self.failed = tuple(failed)
        super().__init__("; ".join(map(str, self.failed)))


def apply_rules(
    rules: Iterable[Callable[[SubjectT], Iterator[Finding]]], subject: SubjectT, failed: list[FailedRule]
) -> Iterator[Finding]:
    """Yield the findings of rules.

    Args:
        rules: The rules, in order.
        subject: What they take.
        failed: The rules that fail are appended; the others apply all the same.
    """
    for rule in rules:
        try:
            yield from rule(subject)
        except RulesFailedError as error:
            failed += error.failed
        except Exception as error:  # noqa: BLE001 (a fault of one rule must not silence the others)
            failed.append(FailedRule(rule.__name__, error))
