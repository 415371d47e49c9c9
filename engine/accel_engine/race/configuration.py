"""A configuration of a plan: the plan with some fields changed."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from enum import StrEnum
from typing import Any

from accel_engine.plan import Plan
from accel_engine.plan.changed_plan import options_text


class ConfigurationKind(StrEnum):
    """What a configuration changes, as users name it."""

    DEVICES = "devices"
    XLA = "xla"
    PRECISION = "precision"
    MICRO_BATCHES = "micro-batches"
    REMAT = "remat"
    THREADS = "threads"
    CPU_KERNELS = "cpu-kernels"
    BATCH_SIZE = "batch-size"


@dataclass(frozen=True, slots=True)
class Configuration:
    """A configuration of a plan.

    Attributes:
        title: A short name, unique in a race.
        plan: The plan.
        changes: The fields that differ from the reference, with their values; empty for the reference.
        kinds: What it changes.
        changes_updates: Whether its updates are synchronous and the reference's are not.
    """

    title: str
    plan: Plan
    changes: Mapping[str, Any] = field(default_factory=dict)
    kinds: tuple[ConfigurationKind, ...] = ()
    changes_updates: bool = False

    @property
    def is_reference(self) -> bool:
        """Whether it is the plan as it is."""
        return not self.changes

    @property
    def changes_training(self) -> bool:
        """Whether it takes other steps than the reference."""
        return bool(self.other_training)

    @property
    def other_training(self) -> str:
        """What is different in its steps, so that losses cannot be compared; empty if nothing is."""
        if ConfigurationKind.BATCH_SIZE in self.kinds:
            return "other batches"
        return "other updates" if self.changes_updates else ""

    @property
    def options(self) -> str:
        """The changes as options of the command line."""
        return options_text(self.changes)


@dataclass(frozen=True, slots=True)
class UnsupportedConfiguration:
    """A configuration that cannot be run on this machine.

    Attributes:
        configuration: The configuration.
        reason: Why.
    """

    configuration: Configuration
    reason: str
