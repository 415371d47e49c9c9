"""Remembers what races found on this machine, by everything that it depends on."""

import json
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

from accel_engine import clock
from accel_engine.devices.device_types import Device
from accel_engine.devices.host_probe import processors
from accel_engine.devices.installation import find_installation
from accel_engine.json_values import convert_or_none
from accel_engine.measure.plan_trials import LEAST_ROUNDS
from accel_engine.models import UserModel
from accel_engine.plan import SPECS, WORDS, Plan, affecting
from accel_engine.plan.resolved_plan import ResolvedPlan, resolve
from accel_engine.race.comparison import winners
from accel_engine.race.configuration_result import ConfigurationResult, ConfigurationState
from accel_engine.race.configurations import effective
from accel_engine.run.directory.run_paths import home
from accel_engine.tuning_cache import Rate, is_recent, load, save_all
from accel_engine.version import __version__

_FILE = "races.json"


@dataclass(frozen=True, slots=True)
class RememberedResult:
    """What a race measured of a plan.

    Attributes:
        examples_per_second: The median.
        memory: Bytes; ``None`` if unknown.
        memory_of: ``host``, or the kind of device whose memory that is.
        measured_at: When, in seconds since the Unix epoch.
        between: The confidence interval of the median; ``None`` if unknown.
        faster_changes: The fields that made it clearly faster, with their values; empty if nothing did, or it was not
            the reference.
        factor: By how much; 1 if nothing did.
    """

    examples_per_second: Rate
    memory: float | None
    memory_of: str
    measured_at: float
    between: tuple[float, float] | None = None
    faster_changes: Mapping[str, Any] = field(default_factory=dict)
    factor: float = 1.0

    def epoch_seconds(self, resolved: ResolvedPlan) -> float | None:
        """How long the steps of an epoch take; ``None`` while their number is unknown."""
        counts = resolved.step_counts
        if counts is None or not counts.steps_per_epoch:
            return None
        return sum(counts.step_sizes(0, counts.steps_per_epoch)) / self.examples_per_second


def remember(resolved: ResolvedPlan, devices: Sequence[Device], results: Iterable[ConfigurationResult]) -> None:
    """Remember the results of a race.

    Args:
        resolved: The reference, checked and placed.
        devices: The machine's devices.
        results: The results; those without a rate are left out, and those of a stopped race with few turns.
    """
    measured = [result for result in results if _is_settled(result)]
    best = next(iter(winners(measured)), None)
    now, found = clock.now(), dict[str, Any]()
    for result in measured:
        rate = result.examples_per_second or 0.0
        remembered = RememberedResult(rate, result.memory, result.memory_of, now, result.between)
        if result.configuration.is_reference and best and best.against_reference:
            changes = {name: best.configuration.plan.to_mapping()[name] for name in best.configuration.changes}
            remembered = replace(remembered, faster_changes=changes, factor=best.against_reference.value)
        found[_key(resolve(result.configuration.plan, devices).with_data(resolved.data), devices)] = remembered
    save_all(_FILE, found, keep=lambda value: _if_recent(convert_or_none(value, RememberedResult)) is not None)


def has_races() -> bool:
    """Whether there is a file of results; it is not read."""
    return (home() / _FILE).exists()


def recall(resolved: ResolvedPlan, devices: Sequence[Device]) -> RememberedResult | None:
    """What a race has measured of a plan on this machine; ``None`` without one, or if it is too old.

    ``--xla auto`` is without XLA, as in the race.

    Args:
        resolved: The plan, placed on devices.
        devices: The machine's devices.
    """
    if resolved.errors or resolved.placement is None:
        return None
    return _if_recent(load(_FILE, _key(resolved, devices), RememberedResult))


def _is_settled(result: ConfigurationResult) -> bool:
    return result.is_measured and (
        result.state is not ConfigurationState.MEASURING or len(result.rates) >= LEAST_ROUNDS
    )


def _key(resolved: ResolvedPlan, devices: Sequence[Device]) -> str:
    resolved = resolved.with_chosen_model()
    plan, paths = effective(resolved, devices), resolved.plan.absolute().to_mapping()
    plan |= {name: paths[name] for name, words in WORDS.items() if words.takes_files}
    defaults = Plan().to_mapping()
    differing = {name: plan[name] for name in SPECS if name in affecting("speed") and plan[name] != defaults[name]}
    return json.dumps(
        [
            differing,
            resolved.model.modified if isinstance(resolved.model, UserModel) else None,
            [device.name for device in devices],
            processors(),
            __version__,
            find_installation().version,
        ],
        sort_keys=True,
    )


def _if_recent(found: RememberedResult | None) -> RememberedResult | None:
    return found if found and is_recent(found.measured_at) else None
