"""A configuration in a race: its process, and what was measured of it."""

import time
from collections.abc import Callable, Sequence
from dataclasses import replace

from accel_engine.measure.plan_trials import PlanTrial
from accel_engine.measure.trial_memory import Usage
from accel_engine.measure.trial_process import TrialFailedError
from accel_engine.memory import resident_bytes
from accel_engine.plan.placement import process_count
from accel_engine.race.configuration import (
    Configuration,
    ConfigurationResult,
    ConfigurationState,
    LossCheck,
    check_losses,
)
from accel_engine.race.energy import Meters
from accel_engine.requests.try_plan import TrialReady

LOSS_STEPS = 10
"""How many first losses are compared, at most."""

LOSS_SECONDS = 2.0
"""How long the steps for them take, about; at least two are taken."""


class ConfigurationTrial:
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
        is_live: Whether its process runs.
        is_out_of_memory: Whether it failed for lack of memory.
    """

    def __init__(
        self,
        configuration: Configuration,
        trial: PlanTrial,
        meters: Meters,
        on_result: Callable[[ConfigurationResult], object],
    ) -> None:
        self.configuration = configuration
        self.result = ConfigurationResult(
            configuration, ConfigurationState.COMPILING, energy_of=meters.measured, energy_problem=meters.problem
        )
        self.first_losses: tuple[float, ...] = ()
        self.is_live = True
        self.is_out_of_memory = False
        self._trial, self._meters, self._on_result = trial, meters, on_result
        self._joules, self._joule_examples = 0.0, 0

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
            TrialCancelledError: The trial was cancelled.
        """
        self._trial.wait_ready()
        if not self._trial.problem:
            try:
                self.first_losses = self._take_first()
            except TrialFailedError as error:
                self._trial.problem = error
        if self._has_failed():
            return
        ready = self._trial.ready
        self._set(
            replace(
                self.result,
                state=ConfigurationState.READY,
                compile_seconds=ready.compile_seconds,
                memory=self._trial.memory,
                memory_of=_memory_of(ready),
                losses=self._check(reference),
            )
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

    @property
    def measured_seconds(self) -> float:
        """How long its turns took."""
        return sum(turn.seconds for turn in self._trial.turns)

    def warm_up(self) -> None:
        """Take steps that do not count, before the first turn; raises as :meth:`prepare`."""
        if self.is_live:
            self._trial.warm_up()
            self._has_failed()

    def take_turn(self) -> float | None:
        """Take steps for a turn; examples a second, ``None`` if that fails. Raises as :meth:`prepare`."""
        self._meters.start()
        turn, joules = self._trial.take_turn(), self._meters.stop()
        if turn is None:
            self._has_failed()
            return None
        if joules is not None:
            self._joules, self._joule_examples = self._joules + joules, self._joule_examples + turn.examples
        return turn.examples_per_second

    def count(self, rate: float | None, reference: float | None) -> None:
        """Add the rate of a turn to the result.

        Args:
            rate: Examples a second; ``None`` if the turn failed.
            reference: The reference's rate in the same round; ``None`` without it.
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

    def _has_failed(self) -> bool:
        """Whether its plan cannot be tried any further, which ends it."""
        problem = self._trial.problem
        if problem is not None and self.is_live:
            self.is_out_of_memory = problem.out_of_memory
            self._set(replace(self.result, state=ConfigurationState.FAILED, reason=str(problem)))
            self.close()
        return problem is not None

    def _set(self, result: ConfigurationResult) -> None:
        self.result = result
        self._on_result(self.result)


def trial_result(configuration: Configuration, trial: PlanTrial) -> ConfigurationResult:
    """The result of a plan by its turns, without a comparison; or why it has failed."""
    if trial.problem:
        return ConfigurationResult(configuration, ConfigurationState.FAILED, str(trial.problem))
    return ConfigurationResult(
        configuration,
        ConfigurationState.FINISHED,
        compile_seconds=trial.ready.compile_seconds,
        memory=trial.memory,
        memory_of=_memory_of(trial.ready),
        rates=tuple(trial.rates),
    )


def _memory_of(ready: TrialReady) -> str:
    """``host``, or the kind of device whose memory a trial tells."""
    return "host" if ready.on_cpu else ready.devices[0].partition(":")[0].lower()
