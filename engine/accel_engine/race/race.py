"""Races the configurations of a plan: each in its own processes, in turns, in groups that fit in memory."""

import time
from collections import deque
from collections.abc import Callable, Collection, Sequence
from contextlib import AbstractContextManager
from dataclasses import dataclass, replace

from accel_engine.devices.device_types import Device
from accel_engine.errors import UsageError
from accel_engine.measure.plan_trials import TURN_SECONDS, WARM_UP_SECONDS, PlanTrials
from accel_engine.measure.remaining_time import RemainingTime
from accel_engine.measure.trial_memory import MAX_CONCURRENT, MemoryBudget, devices_of, find_fitting_plans
from accel_engine.measure.trial_process import TrialCancelledError
from accel_engine.measure.trial_statistics import LEAST_ROUNDS, in_turn
from accel_engine.plan.field_spec import FieldSpec
from accel_engine.plan.options import OptionSpec, option
from accel_engine.plan.placement import process_count
from accel_engine.plan.resolved_plan import ResolvedPlan
from accel_engine.race.comparison import dominating, has_same_energy, winners, with_rates
from accel_engine.race.configuration import Configuration, ConfigurationKind, ConfigurationResult, ConfigurationState
from accel_engine.race.configuration_trial import ConfigurationTrial
from accel_engine.race.configurations import combine, find_configurations
from accel_engine.race.energy import MakeMeters, find_meters
from accel_engine.race.remembered_races import remember
from accel_engine.requests.try_plan import TrialStart

SECONDS = 5.0
"""How long each configuration is measured by default."""

PATIENCE = 4.0
"""How much longer than that a configuration may take until there are enough rounds, as a factor."""

FIRST_SECONDS = 1.2
"""How long a configuration is measured with the reference at first: dominated ones end then, and free their memory."""

CANNOT_TRAIN = "this plan cannot train"
"""Why the other configurations are not measured, if the plan itself fails, but not for lack of memory."""

OnResult = Callable[[ConfigurationResult], object]
"""Takes the result of a configuration, whenever it changes."""


MakeTrials = Callable[[Sequence[TrialStart], Callable[[], bool]], AbstractContextManager[PlanTrials]]
"""Makes what starts processes, and ends all of them after its block."""


_KINDS = FieldSpec(
    "Names of kinds.",
    tuple,
    choices=tuple(ConfigurationKind),
    aliases={kind.replace("-", "_"): kind for kind in ConfigurationKind},
)


def _read_kinds(text: str) -> tuple[ConfigurationKind, ...]:
    names = _KINDS.parse("kinds", text)
    if not names:
        raise UsageError(f"nothing may change: give {_KINDS.allowed}")
    return tuple(map(ConfigurationKind, names))


@dataclass(frozen=True, slots=True)
class RaceOptions:
    """The options of a race: what may change, and for how long."""

    seconds: float = option(
        SECONDS,
        OptionSpec("How long each configuration is measured.", float, minimum=0.1, maximum=3600, label="time each"),
    )
    kinds: Collection[ConfigurationKind] = option(
        tuple(ConfigurationKind),
        OptionSpec(
            "What may change.",
            tuple,
            choices=tuple(ConfigurationKind),
            label="may change",
            flags=("--vary",),
            read=_read_kinds,
        ),
    )
    combines: bool = True
    """Whether the changes that were faster are raced together, in a last group."""


class Race:
    """A race of the configurations of a plan.

    The reference is in every group, so that groups can be compared, except on devices that only one process can use.

    Args:
        resolved: The plan, checked and placed.
        devices: The machine's devices.
        options: What is raced.
        on_result: Called with the result of a configuration, whenever it changes.
        should_stop: Whether to give up; asked all the time.
        make_trials: Makes what starts processes.
        make_meters: Makes the meters of energy.
        budget: The memory for the configurations; by default of the devices and of this machine.

    Attributes:
        results: The results so far, the reference first; those that are refused last.
        was_stopped: Whether it was given up.

    Raises:
        EngineMissingError: No usable TensorFlow is installed.
    """

    def __init__(
        self,
        resolved: ResolvedPlan,
        devices: Sequence[Device],
        options: RaceOptions = RaceOptions(),
        on_result: OnResult = lambda _: None,
        should_stop: Callable[[], bool] = lambda: False,
        *,
        make_trials: MakeTrials = PlanTrials,
        make_meters: MakeMeters = find_meters,
        budget: MemoryBudget | None = None,
    ) -> None:
        self._resolved, self._devices, self._options = resolved, devices, options
        self._on_result, self._should_stop = on_result, should_stop
        self._make_trials, self._make_meters = make_trials, make_meters
        self._budget = budget or _budget_of(resolved)
        self._reference: ConfigurationTrial | None = None
        self._shares_devices = self._cannot_train = False
        self._retried: set[str] = set()
        self._found = find_configurations(resolved, devices, options.kinds)
        self.was_stopped = False
        self._results = {
            configuration.title: ConfigurationResult(configuration)
            for configuration in (self._found.reference, *self._found.others)
        }
        for refused in self._found.refused:
            self._results[refused.configuration.title] = ConfigurationResult(
                refused.configuration, ConfigurationState.REFUSED, refused.reason
            )

    @property
    def results(self) -> tuple[ConfigurationResult, ...]:
        """The results so far."""
        return tuple(sorted(self._results.values(), key=lambda each: each.state is ConfigurationState.REFUSED))

    @property
    def devices(self) -> tuple[str, ...]:
        """Ids of the devices that its configurations train on."""
        configurations = (self._found.reference, *self._found.others)
        placed = [devices_of(configuration.plan, self._devices) for configuration in configurations]
        return tuple(dict.fromkeys(name for each in placed for name in each))

    def set_seconds(self, seconds: float) -> None:
        """Set how long each configuration is measured, once their number is known."""
        self._options = replace(self._options, seconds=seconds)

    def run(self) -> tuple[ConfigurationResult, ...]:
        """Race all configurations, and return their results. Blocks; processes have ended when it returns or raises.

        Raises:
            RunError: The reference, or each other configuration, would take memory that a live run on its devices may
                need; or the directory of runs cannot be written.
        """
        others = {each.title: each.plan for each in self._found.others}
        fitting = find_fitting_plans(self._found.reference.plan, others, self._devices)
        self._shares_devices = fitting.has_runs
        for title, reason in fitting.refused.items():
            self._results[title] = replace(self._results[title], state=ConfigurationState.REFUSED, reason=reason)
        for result in self.results:
            self._on_result(result)
        with self._make_trials((), self._should_stop) as trials:
            try:
                self._race(trials)
            except TrialCancelledError:
                self.was_stopped = True
        reason = CANNOT_TRAIN if self._cannot_train else ""
        for result in self.results:
            if result.state in (ConfigurationState.WAITING, ConfigurationState.COMPILING, ConfigurationState.READY):
                self._update(replace(result, state=ConfigurationState.NOT_MEASURED, reason=reason))
        remember(self._resolved, self._devices, self.results)
        return self.results

    def _race(self, trials: PlanTrials) -> None:
        reference = self._enter(trials, self._found.reference)
        self._cannot_train = bool(reference and not reference.is_live and not reference.is_out_of_memory)
        if self._cannot_train:
            return
        if reference and reference.is_live:
            self._reference = reference
        if reference and self._budget.is_exclusive:
            self._measure([reference], self._options.seconds)
            self._finish(reference)
        others = [
            each for each in self._found.others if self._results[each.title].state is not ConfigurationState.REFUSED
        ]
        self._race_groups(trials, others)
        if self._options.combines and (configuration := self._combined()):
            self._race_groups(trials, (configuration,))
        elif reference and reference.is_live and not reference.result.rates:  # nothing raced against it
            self._measure([reference], self._options.seconds)
        if reference:
            self._finish(reference)

    def _finish(self, configuration: ConfigurationTrial) -> None:
        """End the process of a configuration that has been measured."""
        if configuration.is_live:
            self._update(replace(configuration.result, state=ConfigurationState.FINISHED))
            configuration.close()

    def _combined(self) -> Configuration | None:
        faster = [result.configuration for result in winners(self.results)]
        return combine(self._resolved, self._devices, faster)

    def _race_groups(self, trials: PlanTrials, configurations: Sequence[Configuration]) -> None:
        waiting = deque(configurations)
        while waiting:
            group: list[ConfigurationTrial] = []
            while waiting and (not group or self._fits(len(group), waiting[0])):
                configuration = waiting.popleft()
                entered = None if self._is_too_large(configuration) else self._enter(trials, configuration)
                if entered is None:
                    continue
                if entered.is_live:
                    self._measure([entered], min(FIRST_SECONDS, self._options.seconds))
                    group += [entered] if entered.is_live else []
                elif entered.is_out_of_memory and group and entered.configuration.title not in self._retried:
                    self._retried.add(entered.configuration.title)  # the others have taken the memory: once more, alone
                    waiting.append(entered.configuration)
            self._measure(group, self._options.seconds)
            for each in group:
                self._finish(each)

    def _fits(self, others: int, configuration: Configuration) -> bool:
        reference = self._reference
        if reference is None or not reference.is_live or self._shares_devices:
            return False
        usage = reference.usage_with(process_count(configuration.plan))
        return self._budget.fits(others + 1, usage, self._batch_factor(configuration))

    def _is_too_large(self, configuration: Configuration) -> bool:
        """Refuse a configuration that the host has too little memory for, also as the only one beside the reference."""
        if self._reference is None or not self._reference.is_live:
            return False
        usage = self._reference.usage_with(process_count(configuration.plan))
        problem = self._budget.lacking(usage, self._batch_factor(configuration))
        if problem:
            self._update(ConfigurationResult(configuration, ConfigurationState.REFUSED, problem))
        return bool(problem)

    def _batch_factor(self, configuration: Configuration) -> float:
        return configuration.plan.batch_size / self._resolved.plan.batch_size

    def _enter(self, trials: PlanTrials, configuration: Configuration) -> ConfigurationTrial | None:
        """Start a process, compile the steps, and check the first losses; ``None`` if no process can be started."""
        meters = self._make_meters(self._devices, devices_of(configuration.plan, self._devices))
        self._update(ConfigurationResult(configuration, ConfigurationState.COMPILING))
        try:
            trial = trials.add(TrialStart(configuration.plan))
        except OSError as error:  # such as too little memory
            reason = f"no process can be started: {error.strerror or error}"
            self._update(ConfigurationResult(configuration, ConfigurationState.FAILED, reason))
            return None
        entered = ConfigurationTrial(configuration, trial, meters, self._update)
        entered.prepare(None if self._reference is None else self._reference.first_losses)
        return entered

    def _measure(self, group: Sequence[ConfigurationTrial], seconds: float) -> None:
        """Let a group and the reference take turns until each configuration is measured, dominated or has failed.

        Args:
            group: The configurations.
            seconds: How long each is measured in all, with earlier turns.
        """
        with_reference = self._reference is not None and self._reference.is_live and self._reference not in group
        racing = [*([self._reference] if with_reference and self._reference else []), *group]
        for each in racing:
            each.warm_up()
        number, before = 0, dict(self._results)
        while any(each.is_live and not _is_enough(each, seconds) for each in group):
            taking = [each for each in racing if each.is_live]
            taken = {id(each): each.take_turn() for each in in_turn(taking, number)}
            number += 1
            self._count(taking, taken)
            self._end_dominated(group)
        for title, result in self._results.items():  # the reference's new rounds change the rates of earlier groups
            if result != before[title] and title not in {each.configuration.title for each in racing}:
                self._on_result(result)

    def _count(self, taking: Sequence[ConfigurationTrial], taken: dict[int, float | None]) -> None:
        """Add the rates of a round to the results, and express all of them by the reference's median so far."""
        rate = taken.get(id(self._reference)) if self._reference else None
        for each in taking:
            each.count(taken[id(each)], rate)
        rates = self._reference.result.rates if self._reference else ()
        self._results = {title: with_rates(result, rates) for title, result in self._results.items()}
        for each in taking:
            if each.is_live and each.result.rates:
                each.result = with_rates(each.result, rates)
                self._update(each.result)

    def _end_dominated(self, group: Sequence[ConfigurationTrial]) -> None:
        for each in group:
            if not each.is_live or each.configuration.is_reference or len(each.result.rates) < LEAST_ROUNDS:
                continue
            if other := dominating(each.result, self._results.values()):
                reason = f"clearly slower than {other.title}, which takes no more memory"
                reason += " and energy" if has_same_energy(each.result, other) else ""
                self._update(replace(each.result, state=ConfigurationState.ENDED_EARLY, reason=reason))
                each.close()

    def _update(self, result: ConfigurationResult) -> None:
        self._results[result.title] = result
        self._on_result(result)


def _is_enough(configuration: ConfigurationTrial, seconds: float) -> bool:
    done = configuration.measured_seconds
    return done >= seconds and (len(configuration.result.rates) >= LEAST_ROUNDS or done >= PATIENCE * seconds)


def _budget_of(resolved: ResolvedPlan) -> MemoryBudget:
    placement = resolved.placement
    kind = placement.kind if placement else "cpu"
    takes_all = kind == "gpu" and resolved.plan.memory_growth == "off"
    return MemoryBudget(placement.device_memory if placement and kind != "cpu" else None, kind == "tpu" or takes_all)


_TO_COMPILE = (ConfigurationState.WAITING, ConfigurationState.COMPILING)
_TO_MEASURE = (ConfigurationState.READY, ConfigurationState.MEASURING)

_SHARE = MAX_CONCURRENT / (MAX_CONCURRENT - 1)
"""Turns of a group of the usual size as a multiple of those without the reference."""


class RaceTime(RemainingTime):
    """Measures how long configurations take to compile, and adds what the others need if none ends early.

    Args:
        seconds: How long each configuration is measured.
        clock: Monotonic seconds.
    """

    def __init__(self, seconds: float = SECONDS, clock: Callable[[], float] = time.monotonic) -> None:
        super().__init__(clock)
        self._seconds = seconds
        self._results: dict[str, ConfigurationResult] = {}

    def note(self, result: ConfigurationResult) -> None:
        """Take the result of a configuration, whenever it changes."""
        before = self._results.get(result.title)
        self._results[result.title] = result
        if result.state is ConfigurationState.COMPILING:
            self.begin()
        elif before and before.state is ConfigurationState.COMPILING:
            self.end(counts=result.state is ConfigurationState.READY)

    def of_race(self) -> float | None:
        """Seconds that the race still takes; ``None`` before the first configuration is compiled."""
        results = self._results.values()
        to_compile = sum(each.state in _TO_COMPILE for each in results)
        first = min(FIRST_SECONDS, self._seconds)
        each_measured = WARM_UP_SECONDS + first * 2 + (self._seconds - first) * _SHARE  # first beside the reference
        entered = [each for each in results if each.state in _TO_MEASURE and not each.configuration.is_reference]
        turns = sum(max(0.0, self._seconds - TURN_SECONDS * len(each.rates)) for each in entered)
        return self.seconds_left(to_compile, to_compile * each_measured + turns * _SHARE)
