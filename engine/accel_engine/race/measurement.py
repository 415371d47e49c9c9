"""A configuration in a race: its process, and what was measured of it."""

import time
from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import Protocol

from accel_engine.measure.plan_trials import TURN_SECONDS, WARM_UP_SECONDS
from accel_engine.measure.trial_process import TrialFailedError
from accel_engine.plan.placement import process_count
from accel_engine.race.configuration import Configuration
from accel_engine.race.configuration_result import ConfigurationResult, ConfigurationState
from accel_engine.race.energy import Meters
from accel_engine.race.loss_check import LossCheck, check_losses
from accel_engine.race.memory_budget import Usage, resident_bytes
from accel_engine.requests.try_plan import TrialReady, Turn

LOSS_STEPS = 10
"""How many first losses are compared, at most."""

LOSS_SECONDS = 2.0
"""How long the steps for them take, about; at least two are taken."""


class Process(Protocol):
    """A process that tries a plan, as :class:`accel_engine.measure.trial_process.TrialProcess`."""

    @property
    def pid(self) -> int:
        """Its id."""

    def wait_ready(self) -> TrialReady:
        """Wait until its steps are compiled."""

    def take(self, steps: int) -> Turn:
        """Take a number of steps."""

    def take_for(self, seconds: float) -> Turn:
        """Take steps for some seconds."""

    def close(self, seconds: float = ...) -> None:
        """End it; may be called again."""


class Trial(Protocol):
    """A plan that is tried, as :class:`accel_engine.measure.plan_trials.PlanTrial`."""

    @property
    def process(self) -> Process:
        """Its process."""

    @property
    def memory(self) -> float | None:
        """Bytes that it has taken at most."""


class Measurement:
    """A configuration in a race.

    Args:
        configuration: The configuration.
        trial: Tries its plan.
        meters: Measure the energy of its devices.
        on_result: Called with its result, whenever it changes.

    Attributes:
        configuration: The configuration.
        result: What is known of it.
        first_losses: Its losses from the start on.
        measured_seconds: How long its turns took.
        is_live: Whether its process runs.
        is_out_of_memory: Whether it failed for lack of memory.
    """

    def __init__(
        self,
        configuration: Configuration,
        trial: Trial,
        meters: Meters,
        on_result: Callable[[ConfigurationResult], object],
    ) -> None:
        self.configuration = configuration
        self.result = ConfigurationResult(
            configuration, ConfigurationState.COMPILING, energy_of=meters.measured, energy_problem=meters.problem
        )
        self.first_losses: tuple[float, ...] = ()
        self.measured_seconds = 0.0
        self.is_live = True
        self.is_out_of_memory = False
        self._trial, self._meters, self._on_result = trial, meters, on_result
        self._joules, self._joule_examples = 0.0, 0
        self._is_warm = False

    def usage_with(self, processes: int) -> Usage:
        """Its memory, if it had a number of processes."""
        share = processes / process_count(self.configuration.plan)
        resident, memory = share * resident_bytes(self._trial.process.pid), self.result.memory
        return Usage(resident, memory or 0.0) if self.result.memory_of == "host" else Usage(resident, device=memory)

    def prepare(self, reference: Sequence[float] | None) -> None:
        """Wait until its steps are compiled, and take the first ones.

        Args:
            reference: The first losses of the reference; ``None`` for the reference itself, or without it.

        Raises:
            TrialCancelledError: It should stop.
        """
        try:
            ready = self._trial.process.wait_ready()
            self.first_losses = self._take_first()
        except TrialFailedError as error:
            self._fail(error)
            return
        self._set(
            state=ConfigurationState.READY,
            compile_seconds=ready.compile_seconds,
            memory=self._trial.memory,
            memory_of="host" if ready.on_cpu else ready.devices[0].partition(":")[0].lower(),
            losses=self._check(reference),
        )

    def _check(self, reference: Sequence[float] | None) -> LossCheck:
        if self.configuration.changes_training:
            return LossCheck(problem=self.configuration.other_training)
        if self.configuration.is_reference:
            return LossCheck(problem="the reference")
        return LossCheck(problem="no reference") if reference is None else check_losses(reference, self.first_losses)

    def _take_first(self) -> tuple[float, ...]:
        losses, began = list[float](), time.monotonic()
        while len(losses) < LOSS_STEPS and (len(losses) < 2 or time.monotonic() - began < LOSS_SECONDS):
            found = self._trial.process.take(1).losses
            if not found:
                break
            losses += found
        return tuple(losses)

    def warm_up(self) -> None:
        """Take steps that do not count, before the first turn; raises as :meth:`prepare`."""
        if self.is_live and not self._is_warm:
            self._is_warm = True
            try:
                self._trial.process.take_for(WARM_UP_SECONDS)
            except TrialFailedError as error:
                self._fail(error)

    def take_turn(self) -> float | None:
        """Take steps for a turn; examples a second, ``None`` if that fails. Raises as :meth:`prepare`."""
        self._meters.start()
        try:
            turn = self._trial.process.take_for(TURN_SECONDS)
        except TrialFailedError as error:
            self._meters.stop()
            self._fail(error)
            return None
        joules = self._meters.stop()
        if joules is not None:
            self._joules, self._joule_examples = self._joules + joules, self._joule_examples + turn.examples
        self.measured_seconds += turn.seconds
        return turn.examples_per_second

    def count(self, rate: float | None, reference: float | None) -> None:
        """Add the rate of a turn to the result.

        Args:
            rate: Examples a second; ``None`` if the turn failed.
            reference: Those of the reference in the same round; ``None`` without it.
        """
        if rate is None or not self.is_live:
            return
        before = self.result
        self.result = replace(
            before,
            state=ConfigurationState.MEASURING,
            rates=(*before.rates, rate),
            ratios=before.ratios
            if reference is None or self.configuration.is_reference
            else (*before.ratios, rate / reference),
            memory=self._trial.memory,
            joules=self._joules / self._joule_examples if self._joules else None,
        )

    def close(self) -> None:
        """End its process."""
        self.is_live = False
        self._trial.process.close(0.0)

    def _fail(self, error: TrialFailedError) -> None:
        self.is_out_of_memory = error.out_of_memory
        self._set(state=ConfigurationState.FAILED, reason=str(error))
        self.close()

    def _set(self, **changes: object) -> None:
        self.result = replace(self.result, **changes)  # type: ignore[arg-type]
        self._on_result(self.result)
