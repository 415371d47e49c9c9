"""Races the ways to run a plan: each in a process of its own, in turns, in heats that fit in memory."""

from collections import deque
from collections.abc import Callable, Collection, Sequence
from contextlib import AbstractContextManager
from dataclasses import dataclass, replace
from typing import Protocol

from accel_engine.devices.device_types import Device
from accel_engine.launch.plan_trials import LEAST_ROUNDS, PlanTrials
from accel_engine.launch.trial_process import TrialCancelledError, TrialStart
from accel_engine.launch.trial_room import check_room_on
from accel_engine.launch.trial_statistics import turn_order
from accel_engine.plan.resolved_plan import ResolvedPlan, resolve
from accel_engine.race.energy import MakeMeters, find_meters
from accel_engine.race.judgement import dominating, has_same_energy, winners, with_rates
from accel_engine.race.measured_way import MeasuredWay, Trial
from accel_engine.race.remembered import remember
from accel_engine.race.room import Room
from accel_engine.race.way import Way, WayKind
from accel_engine.race.way_result import WayResult, WayState
from accel_engine.race.ways import combine, find_ways

SECONDS = 5.0
"""How long each way is measured by default."""

PATIENCE = 4.0
"""How much longer than that a way may take until there are enough rounds, as a factor."""

FIRST_SECONDS = 1.2
"""How long a way is measured with the reference at first: many that are dominated end then, and free their memory."""

OnResult = Callable[[WayResult], object]
"""Takes the result of a way, whenever it changes."""


class Trials(Protocol):
    """Starts processes that try plans."""

    def add(self, start: TrialStart) -> Trial:
        """Start the process of a plan."""


MakeTrials = Callable[[Sequence[TrialStart], Callable[[], bool]], AbstractContextManager[Trials]]
"""Makes what starts processes, and ends all of them after its block."""


@dataclass(frozen=True, slots=True)
class RaceOptions:
    """What is raced, and for how long.

    Attributes:
        seconds: How long each way is measured.
        kinds: What may change.
        combines: Whether the changes that were faster are raced together, in a last heat.
    """

    seconds: float = SECONDS
    kinds: Collection[WayKind] = tuple(WayKind)
    combines: bool = True


class Race:
    """A race of the ways to run a plan.

    The reference is in every heat, so that heats can be compared, except on devices that only one process can use.

    Args:
        resolved: The plan, checked and placed.
        devices: The machine's devices.
        options: What is raced.
        on_result: Called with the result of a way, whenever it changes.
        should_stop: Whether to give up; asked all the time.
        make_trials: Makes what starts processes.
        make_meters: Makes the meters of energy.
        room: The memory for the ways; by default that of the devices and of this machine.

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
        room: Room | None = None,
    ) -> None:
        self._resolved, self._devices, self._options = resolved, devices, options
        self._on_result, self._should_stop = on_result, should_stop
        self._make_trials, self._make_meters = make_trials, make_meters
        self._room = room or _room(resolved)
        self._reference: MeasuredWay | None = None
        self._shares_devices = False
        self._retried: set[str] = set()
        self._found = find_ways(resolved, devices, options.kinds)
        self.was_stopped = False
        self._results = {way.title: WayResult(way) for way in (self._found.reference, *self._found.others)}
        for refused in self._found.refused:
            self._results[refused.way.title] = WayResult(refused.way, WayState.REFUSED, refused.reason)

    @property
    def results(self) -> tuple[WayResult, ...]:
        """The results so far."""
        return tuple(sorted(self._results.values(), key=lambda each: each.state is WayState.REFUSED))

    @property
    def devices(self) -> tuple[str, ...]:
        """Ids of the devices that its ways train on."""
        ways = (self._found.reference, *self._found.others)
        placements = [resolve(way.plan, self._devices).placement for way in ways]
        return tuple(dict.fromkeys(name for each in placements if each for name in each.devices))

    def _refuse_larger_batches(self) -> None:
        """Refuse the ways that take more of an accelerator's memory than the plan, which a live run may need."""
        for way in self._found.others:
            if self._batch_factor(way) > 1:
                self._update(WayResult(way, WayState.REFUSED, "a live run trains on the same device"))

    def set_seconds(self, seconds: float) -> None:
        """Set how long each way is measured, once their number is known."""
        self._options = replace(self._options, seconds=seconds)

    def run(self) -> tuple[WayResult, ...]:
        """Race all ways, and return their results. Blocks; processes have ended when it returns or raises.

        Raises:
            RunError: It would take memory that a live run on its devices may need.
        """
        runs = check_room_on(self.devices, 2)
        self._shares_devices = bool(runs)
        if any(not device.startswith("cpu") for run in runs for device in run.devices):
            self._refuse_larger_batches()
        for result in self.results:
            self._on_result(result)
        with self._make_trials((), self._should_stop) as trials:
            try:
                self._race(trials)
            except TrialCancelledError:
                self.was_stopped = True
        for result in self.results:
            if result.state in (WayState.WAITING, WayState.COMPILING, WayState.READY):
                self._update(replace(result, state=WayState.NOT_MEASURED))
        remember(self._resolved, self._devices, self.results)
        return self.results

    def _race(self, trials: Trials) -> None:
        reference = self._enter(trials, self._found.reference)
        if reference and reference.is_live:
            self._reference = reference
        if reference and self._room.is_exclusive:
            self._measure([reference], self._options.seconds)
            self._finish(reference)
        others = [each for each in self._found.others if self._results[each.title].state is not WayState.REFUSED]
        self._race_heats(trials, others)
        if self._options.combines and (way := self._combined()):
            self._race_heats(trials, (way,))
        elif reference and reference.is_live and not reference.result.rates:  # nothing raced against it
            self._measure([reference], self._options.seconds)
        if reference:
            self._finish(reference)

    def _finish(self, way: MeasuredWay) -> None:
        """End the process of a way that has been measured."""
        if way.is_live:
            self._update(replace(way.result, state=WayState.FINISHED))
            way.close()

    def _combined(self) -> Way | None:
        faster = [result.way for result in winners(self.results)]
        return combine(self._resolved, self._devices, faster)

    def _race_heats(self, trials: Trials, ways: Sequence[Way]) -> None:
        waiting = deque(ways)
        while waiting:
            heat: list[MeasuredWay] = []
            while waiting and (not heat or self._has_room(len(heat), waiting[0])):
                way = waiting.popleft()
                entered = None if self._is_too_large(way) else self._enter(trials, way)
                if entered is None:
                    continue
                if entered.is_live:
                    self._measure([entered], min(FIRST_SECONDS, self._options.seconds))
                    heat += [entered] if entered.is_live else []
                elif entered.is_out_of_memory and heat and entered.way.title not in self._retried:
                    self._retried.add(entered.way.title)  # the others have taken the memory: once more, alone
                    waiting.append(entered.way)
            self._measure(heat, self._options.seconds)
            for each in heat:
                self._finish(each)

    def _has_room(self, others: int, way: Way) -> bool:
        reference = self._reference
        if reference is None or not reference.is_live or self._shares_devices:
            return False
        return self._room.fits(others + 1, reference.usage, self._batch_factor(way))

    def _is_too_large(self, way: Way) -> bool:
        """Refuse a way that the host has too little memory for, also as the only one beside the reference."""
        if self._reference is None or not self._reference.is_live:
            return False
        problem = self._room.lacking(self._reference.usage, self._batch_factor(way))
        if problem:
            self._update(WayResult(way, WayState.REFUSED, problem))
        return bool(problem)

    def _batch_factor(self, way: Way) -> float:
        return way.plan.batch_size / self._resolved.plan.batch_size

    def _enter(self, trials: Trials, way: Way) -> MeasuredWay | None:
        """Start a process for a way, compile it, and check its first losses; ``None`` if no process can be started."""
        placement = resolve(way.plan, self._devices).placement
        meters = self._make_meters(self._devices, placement.devices if placement else ())
        self._update(WayResult(way, WayState.COMPILING))
        try:
            trial = trials.add(TrialStart(way.plan))
        except OSError as error:  # such as too little memory
            reason = f"no process can be started: {error.strerror or error}"
            self._update(WayResult(way, WayState.FAILED, reason))
            return None
        entered = MeasuredWay(way, trial, meters, self._update)
        entered.prepare(None if self._reference is None else self._reference.first_losses)
        return entered

    def _measure(self, heat: Sequence[MeasuredWay], seconds: float) -> None:
        """Let a heat and the reference take turns until each way is measured, dominated or has failed.

        Args:
            heat: The ways.
            seconds: How long each is measured in all, with earlier turns.
        """
        with_reference = self._reference is not None and self._reference.is_live and self._reference not in heat
        racing = [*([self._reference] if with_reference and self._reference else []), *heat]
        for each in racing:
            each.warm_up()
        number, before = 0, dict(self._results)
        while any(each.is_live and not _is_enough(each, seconds) for each in heat):
            taking = [each for each in racing if each.is_live]
            taken = {id(taking[index]): taking[index].take_turn() for index in turn_order(len(taking), number)}
            number += 1
            self._count(taking, taken)
            self._end_dominated(heat)
        for title, result in self._results.items():  # the reference's new rounds change the rates of earlier heats
            if result != before[title] and title not in {each.way.title for each in racing}:
                self._on_result(result)

    def _count(self, taking: Sequence[MeasuredWay], taken: dict[int, float | None]) -> None:
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

    def _end_dominated(self, heat: Sequence[MeasuredWay]) -> None:
        for each in heat:
            if not each.is_live or each.way.is_reference or len(each.result.rates) < LEAST_ROUNDS:
                continue
            if other := dominating(each.result, self._results.values()):
                reason = f"clearly slower than {other.title}, which takes no more memory"
                reason += " and energy" if has_same_energy(each.result, other) else ""
                self._update(replace(each.result, state=WayState.ENDED_EARLY, reason=reason))
                each.close()

    def _update(self, result: WayResult) -> None:
        self._results[result.title] = result
        self._on_result(result)


def _is_enough(way: MeasuredWay, seconds: float) -> bool:
    done = way.measured_seconds
    return done >= seconds and (len(way.result.rates) >= LEAST_ROUNDS or done >= PATIENCE * seconds)


def _room(resolved: ResolvedPlan) -> Room:
    placement = resolved.placement
    kind = placement.kind if placement else "cpu"
    takes_all = kind == "gpu" and resolved.plan.memory_growth == "off"
    return Room(placement.device_memory if placement and kind != "cpu" else None, kind == "tpu" or takes_all)
