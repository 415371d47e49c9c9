"""Remembers what races found on this machine."""

import socket
from collections.abc import Iterable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

from accel_engine.advice import FasterPlan, Recorded, read_recorded
from accel_engine.devices import detect
from accel_engine.devices.device_types import Device
from accel_engine.errors import AccelError
from accel_engine.measure.cache import Cache, Rate, key_of
from accel_engine.measure.trial_statistics import LEAST_ROUNDS
from accel_engine.models import UserModel
from accel_engine.plan import PATH_FIELDS
from accel_engine.plan.resolved_plan import ResolvedPlan, resolve, resolve_to_train
from accel_engine.race.comparison import winners
from accel_engine.race.configuration import ConfigurationResult, ConfigurationState
from accel_engine.race.configurations import effective
from accel_engine.run.engine.status import RunInfo


@dataclass(frozen=True, slots=True)
class RememberedResult:
    """A race's measurements of a plan."""

    examples_per_second: Rate
    """The median."""
    memory: float | None
    """Bytes; ``None`` if unknown."""
    memory_of: str
    """``host``, or the kind of device whose memory that is."""
    between: tuple[float, float] | None = None
    """The confidence interval of the median; ``None`` if unknown."""
    faster_changes: Mapping[str, Any] = field(default_factory=dict)
    """The fields that made it clearly faster, with their values; empty if nothing did, or it was not the reference."""
    factor: float = 1.0
    """By how much; 1 if nothing did."""
    measured_at: float = 0.0
    """When, in seconds since the Unix epoch."""

    def epoch_seconds(self, resolved: ResolvedPlan) -> float | None:
        """How long the steps of an epoch take; ``None`` while their number is unknown."""
        counts = resolved.step_counts
        if counts is None or not counts.steps_per_epoch:
            return None
        return sum(counts.step_sizes(0, counts.steps_per_epoch)) / self.examples_per_second


_RACES = Cache("races", RememberedResult)


def remember(resolved: ResolvedPlan, devices: Sequence[Device], results: Iterable[ConfigurationResult]) -> None:
    """Remember the results of a race.

    Args:
        resolved: The reference, checked and placed.
        devices: The machine's devices.
        results: The results; those without a rate, or with few turns of a stopped race, are left out.
    """
    measured = [result for result in results if _is_settled(result)]
    best = next(iter(winners(measured)), None)
    found: dict[str, RememberedResult] = {}
    for result in measured:
        rate = result.examples_per_second or 0.0
        remembered = RememberedResult(rate, result.memory, result.memory_of, result.between)
        if result.configuration.is_reference and best and best.against_reference:
            changes = {name: best.configuration.plan.to_mapping()[name] for name in best.configuration.changes}
            remembered = replace(remembered, faster_changes=changes, factor=best.against_reference.value)
        found[_key(resolve(result.configuration.plan, devices).with_data(resolved.data), devices)] = remembered
    _RACES.save(found)


def remembered_result(resolved: ResolvedPlan, devices: Sequence[Device]) -> RememberedResult | None:
    """The result of a race for a plan on this machine; ``None`` without one, or if it is too old.

    ``--xla auto`` is without XLA, as in the race.

    Args:
        resolved: The plan, placed on devices.
        devices: The machine's devices.
    """
    if resolved.errors or resolved.placement is None:
        return None
    found = _RACES.all().get(_key(resolved, devices))
    return replace(found.value, measured_at=found.measured_at) if found else None


def _is_settled(result: ConfigurationResult) -> bool:
    return result.is_measured and (
        result.state is not ConfigurationState.MEASURING or len(result.rates) >= LEAST_ROUNDS
    )


def _key(resolved: ResolvedPlan, devices: Sequence[Device]) -> str:
    resolved = resolved.with_chosen_model()
    plan, paths = effective(resolved, devices), resolved.plan.absolute().to_mapping()
    plan |= {name: paths[name] for name in PATH_FIELDS}
    modified = resolved.model.modified if isinstance(resolved.model, UserModel) else None
    return key_of([device.name for device in devices], plan, modified=modified)


def read_with_races(directory: Path) -> Recorded:
    """Read the records of a run, with what a race has found to be faster for its plan.

    Raises:
        RunError: There is no run, or this program cannot read it.
    """
    recorded = read_recorded(directory)
    return replace(recorded, faster=_faster_plan(recorded.info))


def _faster_plan(info: RunInfo) -> FasterPlan | None:
    """The faster plan that a race on this machine has found for a run's; ``None`` for a run of another machine.

    Args:
        info: The run.
    """
    if not info.has_engine or info.plan is None or info.host != socket.gethostname() or not _RACES.path.exists():
        return None
    with suppress(AccelError):  # its data is gone, for example
        devices = detect().devices
        found = remembered_result(resolve_to_train(info.plan, devices), devices)
        tried = {"xla": "on"} if info.plan.xla == "auto" else {}  # by the run itself
        if found and found.faster_changes and found.faster_changes != tried:
            return FasterPlan(found.faster_changes, found.factor)
    return None
