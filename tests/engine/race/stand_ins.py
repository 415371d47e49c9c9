"""Stand-ins for the processes of a race, whose rates are known."""

import os
from collections.abc import Callable, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field

from accel_engine.devices.device_types import Device
from accel_engine.measure.plan_trials import PlanTrial
from accel_engine.measure.trial_process import TrialCancelledError, TrialFailedError
from accel_engine.plan import Plan
from accel_engine.race.energy import Meters
from accel_engine.requests.try_plan import TrialReady, TrialStart, Turn

CPU = (Device("cpu:0", "cpu", "A CPU", cores=4),)
GPUS = (
    *CPU,
    Device("gpu:0", "gpu", "A GPU", memory=80 << 30, address="0000:01:00.0"),
    Device("gpu:1", "gpu", "A GPU", memory=80 << 30, address="0000:02:00.0"),
)


@dataclass
class Behaviour:
    """How a plan behaves.

    Attributes:
        rate: Examples a second.
        memory: Bytes.
        losses: Of its first steps.
        problem: Why it fails; empty if it does not.
        fails_after: Turns after which it fails; at once by default.
        out_of_memory: Whether that is for lack of memory.
    """

    rate: float = 1000.0
    memory: float = 1e8
    losses: Sequence[float] = (2.0, 1.5, 1.25)
    problem: str = ""
    fails_after: int = 0
    out_of_memory: bool = False


class StandInProcess:
    """Stands in for a process that tries a plan: each turn takes as long as it is asked for, without waiting."""

    def __init__(
        self,
        plan: Plan,
        behaviour: Behaviour,
        should_stop: Callable[[], bool],
        on_turn: Callable[[Plan], object] = lambda _: None,
        speed: Callable[[], float] = lambda: 1.0,
    ) -> None:
        self._on_turn, self._speed = on_turn, speed
        self.pid = os.getpid()
        self.plan, self._behaviour, self._should_stop = plan, behaviour, should_stop
        self._losses, self._turns = list(behaviour.losses), 0
        self.is_open, self.memory = True, behaviour.memory
        self.ready = TrialReady(1.0, 2.0, plan.batch_size, 10, ("CPU:0",), has_orders=True)

    def wait_ready(self, on_progress: Callable[[int, int], object]) -> TrialReady:
        self._check()
        return self.ready

    def take(self, steps: int) -> Turn:
        self._check()
        taken, self._losses = self._losses[:steps], self._losses[steps:]
        return Turn(steps, steps * self.plan.batch_size, 0.1, tuple(taken))

    def take_for(self, seconds: float) -> Turn:
        self._turns += 1
        self._on_turn(self.plan)
        self._check()
        return Turn(10, round(self._behaviour.rate * self._speed() * seconds), seconds, ())

    def close(self, seconds: float = 0.0) -> None:
        self.is_open = False

    def _check(self) -> None:
        assert self.is_open, "asked after its end"
        if self._should_stop():
            raise TrialCancelledError
        if self._behaviour.problem and self._turns >= self._behaviour.fails_after:
            raise TrialFailedError(self._behaviour.problem, out_of_memory=self._behaviour.out_of_memory)


@dataclass
class StandInTrials:
    """Makes trials whose behaviour follows from the changed fields of their plans.

    Attributes:
        behaviours: By the changes of the plan, as ``xla=on``; others behave as the reference, ``""``.
        slowdown: The factor by which the whole machine gets slower with each process that is started.
        on_turn: Called with the plan of each turn.
        processes: Those that were started.
        most_open: The largest number that were open at the same time.
    """

    behaviours: Mapping[str, Behaviour] = field(default_factory=dict)
    slowdown: float = 1.0
    on_turn: Callable[[Plan], object] = lambda _: None
    processes: list[StandInProcess] = field(default_factory=list)
    most_open: int = 0
    should_stop: Callable[[], bool] = lambda: False

    @contextmanager
    def __call__(self, starts, should_stop):
        assert not starts
        self.should_stop = should_stop
        try:
            yield self
        finally:
            for process in self.processes:
                process.close()

    def add(self, start: TrialStart) -> PlanTrial:
        before = (self.processes[0].plan if self.processes else start.plan).to_mapping()
        changes = {name: value for name, value in start.plan.to_mapping().items() if value != before[name]}
        name = ",".join(f"{key}={value}" for key, value in changes.items())
        behaviour = self.behaviours.get(name, self.behaviours.get("", Behaviour()))
        speed = lambda: self.slowdown ** len(self.processes)  # noqa: E731
        process = StandInProcess(start.plan, behaviour, self.should_stop, self.on_turn, speed)
        self.processes.append(process)
        self.most_open = max(self.most_open, sum(process.is_open for process in self.processes))
        return PlanTrial(start, process)


def no_meters(devices: Sequence[Device], names: Sequence[str]) -> Meters:
    """No energy."""
    return Meters(problem="not measured in tests")
