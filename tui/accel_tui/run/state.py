"""What is known of a run: one immutable value. How it comes about is in ``fold``."""

from collections.abc import Mapping
from dataclasses import dataclass, field

from accel_engine import clock
from accel_engine.events import (
    CheckpointSaved,
    CommandAnswered,
    DevicesFound,
    EpochEnded,
    MicroBatchesTried,
    ModelBuilt,
    PhaseChanged,
    RunEnded,
    RunStarted,
    Validated,
    Warned,
    WorkCounted,
    WorkersMet,
    XlaTried,
)
from accel_engine.run import RunInfo, Status
from accel_engine.run.series_names import MEAN_PREFIXES
from accel_tui.run.curve import Curve
from accel_tui.run.device_curves import DeviceCurves
from accel_tui.run.device_meter import Meter
from accel_tui.run.marks import Kind, Marks, Track
from accel_tui.run.step_rate import StepRate

Notice = Warned | CommandAnswered
Points = tuple[tuple[int, float], ...]


@dataclass(frozen=True, slots=True, eq=False)
class RunState:
    """A run as far as it was followed.

    Attributes:
        info: What the run is and how it stands; ``None`` before it was read.
        started: The latest engine's first word.
        devices: TensorFlow's view of the devices.
        built: What the plan came to.
        ended: The last word; ``None`` while more may come.
        phase: What the engine is busy with, and since when.
        halted: Whether it was paused and did not go on since, whatever else it does for a moment.
        step: Steps taken.
        curves: Every per-step series by name.
        throughput: Steps a second, on the axis of steps.
        ended_at: When each step ended, in seconds since the Unix epoch; of a bucket only the mean counts.
        rates: The first step of each learning rate, and the rate.
        marks: Where on the axis of steps something happened that can be marked there.
        readings: What was recorded of devices, on the axis of steps, where somebody looks at it.
        details: A part of the series more finely than in ``curves``, where somebody looks at it closely, by name;
            the throughput under :data:`~accel_engine.run.steps.RATE`.
        validation: Points of step and value by metric.
        epoch: The latest epoch that ended.
        xla: What trying XLA has shown; ``None`` while it was not tried.
        micro_batches: The same of micro-batches.
        work: What a step computes and the devices could; ``None`` before that was counted.
        learning_rate: That of the latest step, or what was set since; ``None`` where it is not known.
        schedule: The class of the schedule that it follows; empty where it stays as it is.
        checkpoint: The last one.
        validated: The last validation.
        notices: The latest warnings and answers, newest last.
        noticed: How many there were in all.
        meters: The devices' readings by device id.
        pace: The speed of training of late, of the latest engine alone.
        worked: Seconds that engines before the latest one worked on the run; ``None`` where nobody has read that.
        heard: When the latest engine said something last, in seconds since the Unix epoch.
        met: The workers that train together, once they have met; ``None`` for who trains alone.
        workers: What the others among them say, their steps apart, by name; those whose runs can be seen from here.
    """

    info: RunInfo | None = None
    started: RunStarted | None = None
    devices: DevicesFound | None = None
    built: ModelBuilt | None = None
    ended: RunEnded | None = None
    phase: PhaseChanged | None = None
    halted: bool = False
    step: int = 0
    curves: Mapping[str, Curve] = field(default_factory=dict)
    throughput: Curve = field(default_factory=Curve)
    ended_at: Curve = field(default_factory=Curve)
    rates: Points = ()
    marks: Marks = field(default_factory=dict)
    readings: DeviceCurves = field(default_factory=dict)
    details: Mapping[str, Curve] = field(default_factory=dict)
    validation: Mapping[str, Points] = field(default_factory=dict)
    epoch: EpochEnded | None = None
    xla: XlaTried | None = None
    micro_batches: MicroBatchesTried | None = None
    work: WorkCounted | None = None
    learning_rate: float | None = None
    schedule: str = ""
    checkpoint: CheckpointSaved | None = None
    validated: Validated | None = None
    notices: tuple[Notice, ...] = ()
    noticed: int = 0
    meters: Mapping[str, Meter] = field(default_factory=dict)
    pace: StepRate = field(default_factory=StepRate)
    worked: float | None = None
    heard: float = 0.0
    met: WorkersMet | None = None
    workers: Mapping[str, "RunState"] = field(default_factory=dict)

    @property
    def live(self) -> bool:
        """Whether more is to come."""
        return self.info is not None and self.info.status.live

    @property
    def now(self) -> float:
        """The time by the clock of the run's events, which nobody sets, in seconds since the Unix epoch."""
        return self.info.now() if self.info else clock.now()

    @property
    def lost(self) -> bool:
        """Whether the engine died without a word."""
        return self.info is not None and self.info.status is Status.LOST

    @property
    def over(self) -> bool:
        """Whether it is known how it came to its end; a moment later than that it did."""
        return self.lost or (self.ended is not None and not self.live)

    @property
    def paused(self) -> bool:
        """Whether the engine waits to be resumed; in a pause it may write a checkpoint or validate."""
        return self.live and self.halted

    @property
    def is_awaited(self) -> bool:
        """Whether an engine has taken the run up that has said nothing yet: all that is known is of another."""
        if self.info is None or self.started is None or not self.live:
            return False
        return self.info.status is Status.STARTING or self.info.pid != self.started.pid

    @property
    def worked_until_end(self) -> float | None:
        """Seconds that engines have worked on the run once the latest has ended, the time between two left out.

        Of one that ended without a word, the time until the last event counts, whichever steps came after it.
        """
        if self.started is None:
            return 0.0
        if self.worked is None:
            return None
        return self.worked + (self.ended.seconds if self.ended else max(0.0, self.heard - self.started.time))

    def elapsed(self, now: float) -> float | None:
        """Seconds that engines have worked on the run so far, the time between two left out.

        Args:
            now: Seconds since the Unix epoch.
        """
        worked = self.worked_until_end
        if worked is None or self.started is None or self.ended or not self.live or self.is_awaited:
            return worked
        return max(worked, (self.worked or 0.0) + now - self.started.time)

    @property
    def rate(self) -> float | None:
        """Steps a second of late; ``None`` before the latest engine has trained at full speed."""
        return None if self.is_awaited else self.pace.rate

    @property
    def resumed_at(self) -> int:
        """The step that the latest engine went on from; 0 where it began."""
        return self.started.first_step if self.started else 0

    @property
    def total_steps(self) -> int | None:
        """Steps of the whole plan, once they are known."""
        return self.built.epochs * self.built.steps_per_epoch if self.built and self.built.steps_per_epoch else None

    @property
    def goes_to(self) -> int | None:
        """The step that the run goes no further than: its last, once it is over; ``None`` while that is not known."""
        return self.step if self.over else self.total_steps

    @property
    def current_epoch(self) -> int | None:
        """The epoch that the next step belongs to, counted from 1."""
        if self.built is None:
            return None
        if self.built.steps_per_epoch is None:
            return 1  # it is known as soon as one has ended
        return min(self.step // self.built.steps_per_epoch + 1, self.built.epochs)

    @property
    def remaining(self) -> float | None:
        """Seconds of work that are left, at the pace of late; ``None`` when that cannot be said yet.

        Each epoch to come is given the time of the last validation, and that of the last checkpoint as often as epochs
        had one.
        """
        rate = self.rate
        if not (self.built and self.built.steps_per_epoch and rate and self.total_steps is not None):
            return None
        epochs_left = self.built.epochs - self.step // self.built.steps_per_epoch
        epochs, checkpoints = (self.marks.get(kind, Track()).count for kind in (Kind.EPOCH, Kind.CHECKPOINT))
        between = self.validated.seconds if self.validated else 0.0
        if self.checkpoint:
            between += self.checkpoint.seconds * min(checkpoints / max(epochs, 1), 1.0)
        return (self.total_steps - self.step) / rate + epochs_left * between

    def validation_of(self, series: str) -> Points:
        """What validations measured of the metric that a series has, be it means of it."""
        metric = next((series.removeprefix(mean) for mean in MEAN_PREFIXES if series.startswith(mean)), series)
        return self.validation.get(series) or self.validation.get(metric, ())

    @property
    def flops_per_second(self) -> float | None:
        """Floating-point operations a second at the pace of late; ``None`` where they were not counted."""
        rate = self.rate
        return rate * self.work.flops if rate and self.work and self.work.flops is not None else None

    @property
    def mfu(self) -> float | None:
        """Their share of what the devices could do; ``None`` where that is not known."""
        reached = self.flops_per_second
        return reached / self.work.peak if reached is not None and self.work and self.work.peak else None

    @property
    def metrics(self) -> dict[str, float]:
        """The latest value of every series, and of validation's, which are prefixed with ``validation_``."""
        latest = {name: curve.last for name, curve in self.curves.items()}
        return latest | {f"validation_{name}": points[-1][1] for name, points in self.validation.items() if points}
