"""Stand-ins for the trials of plans, whose losses, rates and memory follow from functions."""

from collections.abc import Callable, Sequence
from types import SimpleNamespace
from typing import Any, Self

from accel_engine.measure.trial_process import TrialCancelledError, TrialFailedError
from accel_engine.requests.try_plan import TrialReady, TrialStart, Turn


class Process:
    """A process whose loss follows from the rate of the step before, and the seed."""

    def __init__(self, loss: Callable[[float, int], float]) -> None:
        self.loss, self.seed, self.rate = loss, 0, 0.0
        self.asked: list[Any] = []

    def restore(self, seed: int | None = None, *, initialize: bool = False) -> None:
        self.seed, self.rate = seed or 0, 0.0
        self.asked.append(("restore", seed, initialize))

    def take_at(self, rates: Sequence[float]) -> Turn:
        losses = []
        for rate in rates:
            losses.append(self.loss(self.rate, self.seed))
            self.rate = rate
        self.asked.append(("rates", len(rates)))
        return Turn(len(rates), len(rates), 1.0, tuple(losses))

    def take(self, steps: int) -> Turn:
        return Turn(steps, steps, 1.0, (self.loss(self.rate, self.seed),) * steps)

    def validate(self) -> tuple[dict[str, float], float]:
        self.asked.append("validate")
        return {"loss": 1.0}, 0.5

    def save(self) -> float:
        self.asked.append("save")
        return 0.1


class Trials:
    """Stands in for :class:`accel_engine.measure.plan_trials.PlanTrials`.

    Attributes:
        made: What was tried.
        ready: What is known of each compiled plan.
        outcome: The throughput and memory of a batch size, or why it cannot be trained.
        loss: The loss at a rate and a seed.
    """

    made: list[TrialStart]
    ready: TrialReady
    outcome: Callable[[int], tuple[float, float] | TrialFailedError]
    loss: Callable[[float, int], float]

    def __init__(self, starts: Sequence[TrialStart], should_stop: Callable[[], bool]) -> None:
        (start,) = starts
        self.made.append(start)
        self._should_stop = should_stop
        found = type(self).outcome(start.plan.batch_size)
        failed = isinstance(found, TrialFailedError)
        throughput, memory = (1.0, 0.0) if failed else found
        self.trials = [
            SimpleNamespace(
                start=start,
                process=Process(type(self).loss),
                problem=found if failed else None,
                ready=self.ready,
                memory=memory,
                examples_per_second=throughput,
                examples_per_second_between=(throughput, throughput),
            )
        ]

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        pass

    def wait_ready(self, on_progress: Callable[[str], object]) -> None:
        if self._should_stop():
            raise TrialCancelledError
        on_progress("1 of 1 are compiled")

    def take_turns(self, seconds: float, on_progress: Callable[[float, float], object]) -> None:
        on_progress(seconds, seconds)


def stand_in(**settings: Any) -> type[Trials]:
    """A class of trials with some settings."""
    defaults: dict[str, Any] = {
        "made": [],
        "ready": TrialReady(1.0, 1.0, 32, 100, ("CPU:0",), True, 1, 0.001, "Adam", 1000),
        "outcome": staticmethod(lambda size: (1e4 * size / (size + 20), 1e6 * size)),
        "loss": staticmethod(lambda rate, seed: 0.3 + 2 / (1 + rate / 1e-3) + (rate / 0.5) ** 2 + 1e-4 * seed),
    }
    return type("StandIn", (Trials,), {**defaults, **settings})
