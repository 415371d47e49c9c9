"""The type of a rule of advice."""

from collections.abc import Callable, Iterator
from typing import TypeAlias

from accel_engine.advice.finding import Finding
from accel_engine.advice.recorded import Recorded

Rule: TypeAlias = Callable[[Recorded], Iterator[Finding]]
"""Yields the findings of one subject, from what a run has recorded; nothing where it is not sure."""
