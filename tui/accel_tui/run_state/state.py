"""The state of a run: its history with its steps, an immutable value, made by ``fold_events``."""

from bisect import bisect_right
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path

from accel_engine import clock, events
from accel_engine.devices.peaks import utilization
from accel_engine.events import Phase
from accel_engine.run import RunInfo, Status
from accel_engine.run.history.history import History, Part, Points, best_point
from accel_engine.run.store.series_names import LEARNING_RATE, MEAN_PREFIXES, VALIDATION_PREFIX, choose_monitor
from accel_tui.run_state.curve import DeviceCurves, RecordedCurve
from accel_tui.run_state.device_meter import Meter
from accel_tui.run_state.marks import MarkKind, Marks, Track
from accel_tui.run_state.pace import StepRate, assumed_seconds, validations_left

Notice = events.Warned | events.CommandAnswered | events.Recovered | events.PlanChanged


@dataclass(frozen=True, slots=True, eq=False, kw_only=True)
class RunState(History):
    """The state of a run; ``learning_rate`` is the one of the latest step, or set since."""

    info: RunInfo | None = None
    """Metadata and status; ``None`` before they are read."""
    step: int = 0
    """Steps taken."""
    curves: Mapping[str, RecordedCurve] = field(default_factory=dict)
    """Per-step series by name."""
    throughput: RecordedCurve = field(default_factory=RecordedCurve)
    """Steps per second by step."""
    step_end_times: RecordedCurve = field(default_factory=RecordedCurve)
    """End time of each step, in seconds since the Unix epoch; of a bucket only the mean counts."""
    marks: Marks = field(default_factory=dict)
    """Marks on the step axis."""
    device_curves: DeviceCurves = field(default_factory=dict)
    """Device metrics by step, of the charts that are shown."""
    visible_series: Mapping[str, RecordedCurve] = field(default_factory=dict)
    """Series of the visible steps at full resolution, by name; the throughput under
    :data:`~accel_engine.run.store.steps.THROUGHPUT`."""
    validation: Mapping[str, Points] = field(default_factory=dict)
    """Points of step and value by metric."""
    notices: tuple[Notice, ...] = ()
    """The latest warnings and answers, newest last."""
    happened: tuple[events.Event, ...] = ()
    """The latest other events that are listed with them, newest last; without epochs and validations."""
    notice_count: int = 0
    """Number of all notices."""
    meters: Mapping[str, Meter] = field(default_factory=dict)
    """Device metrics by device id."""
    step_rate: StepRate = field(default_factory=StepRate)
    """Recent training speed of the latest engine."""
    workers: Mapping[str, "RunState"] = field(default_factory=dict)
    """States of the other workers by name, without steps, as far as their runs are visible from here."""
    model: Path | None = None
    """File of the trained model; ``None`` while the run is live or if there is none."""
    time: events.TimeMeasured | None = None
    """How its last steps spent their time; ``None`` before that is measured."""
    waits: str = ""
    """Why a queued run waits, in words."""
    link_problem: str = ""
    """Why its host does not answer, so that there is no news of it; empty for a run of this machine."""

    @property
    def is_queued(self) -> bool:
        """Whether the run waits in the queue."""
        return self.info is not None and self.info.status is Status.QUEUED

    @property
    def live(self) -> bool:
        """Whether the run is queued, starting, running or paused."""
        return self.info is not None and self.info.status.live

    @property
    def now(self) -> float:
        """Time by the clock of the run's events, in seconds since the Unix epoch; unaffected by clock changes."""
        return self.info.now() if self.info else clock.now()

    @property
    def is_directory_lost(self) -> bool:
        """Whether its directory was deleted, moved or replaced: no command finds the run."""
        return self.info is not None and self.info.is_directory_lost

    @property
    def lost(self) -> bool:
        """Whether the engine exited unexpectedly."""
        return self.info is not None and self.info.status is Status.LOST

    @property
    def has_ended(self) -> bool:
        """Whether the run has ended with an outcome, or is lost."""
        return self.lost or (self.ended is not None and not self.live)

    @property
    def paused(self) -> bool:
        """Whether the run is paused, also while it saves or validates during the pause."""
        return self.live and self.training_paused

    @property
    def is_engine_starting(self) -> bool:
        """Whether a new engine has taken the run and has not written any event yet."""
        if self.info is None or self.started is None or not self.live:
            return False
        return self.info.status is Status.STARTING or self.info.pid != self.started.pid

    def elapsed(self, now: float) -> float | None:
        """Seconds that engines have worked on the run so far, without the time in between.

        Args:
            now: Seconds since the Unix epoch.
        """
        worked = self.seconds_worked
        if worked is None or self.started is None or self.ended or not self.live or self.is_engine_starting:
            return worked
        return max(worked, (self.earlier_seconds or 0.0) + now - self.started.time)

    @property
    def steps_per_second(self) -> float | None:
        """Steps per second: the average of an ended run, else the recent rate.

        ``None`` if not measured, while an engine starts, between parts, and while the run waits for the disk.
        """
        if self.ended and self.has_ended and not self.is_engine_starting:
            return self.ended.steps_per_second or None
        waits = self.live and self.info is not None and self.info.waiting
        return None if self.is_engine_starting or self.is_between_parts or waits else self.step_rate.rate

    @property
    def is_launched(self) -> bool:
        """Whether ``accel-tui run`` started the script that trains the run."""
        return self.info is not None and self.info.launched

    @property
    def part(self) -> Part | None:
        """The part that is being recorded, or was when the script's supervisor was killed; ``None`` without one."""
        return None if self.ended or not self.parts or self.parts[-1].ended else self.parts[-1]

    @property
    def is_between_parts(self) -> bool:
        """Whether a script runs, and no part of its training: there may be another part, of unknown length."""
        return self.live and self.is_launched and self.part is None

    @property
    def can_control_training(self) -> bool:
        """Whether training can be paused, stopped, and its learning rate changed: in a script, only a ``fit``."""
        return (
            self.live
            and not self.is_queued
            and (not self.is_launched or (self.part is not None and not self.part.started.parsed))
        )

    @property
    def before_part(self) -> tuple[int, int]:
        """Steps and epochs before the latest part."""
        return (self.parts[-1].started.step, self.parts[-1].started.epoch) if self.parts else (0, 0)

    @property
    def steps_per_epoch(self) -> int | None:
        """Steps of an epoch: of the plan, else the mean of the epochs that have ended; ``None`` before that.

        In a script, of the latest part.
        """
        if self.built and self.built.epochs and self.built.steps_per_epoch:
            return self.built.steps_per_epoch
        step, epoch = self.before_part
        epochs = self.epoch.epoch - epoch if self.epoch else 0
        return max(round((self.epoch.step - step) / epochs), 1) if self.epoch and epochs > 0 else None

    @property
    def total_steps(self) -> int | None:
        """Steps of the whole plan, or of a script up to the end of the latest part; ``None`` if unknown."""
        if self.is_between_parts or not self.built:
            return None
        # A script's loop has no epochs, but a number of steps.
        length = self.steps_per_epoch if self.built.epochs else self.built.steps_per_epoch
        return self.before_part[0] + (self.epochs or 1) * length if length else None

    @property
    def progress(self) -> float | None:
        """Share of the steps that are taken, from 0 to 1; in a script, of the latest part. ``None`` if unknown."""
        if self.is_launched and self.ended:
            return 1.0 if self.ended.outcome is events.Outcome.FINISHED else None
        first = self.before_part[0]
        return (self.step - first) / (self.total_steps - first) if self.total_steps else None

    @property
    def last_step(self) -> int | None:
        """The last step of an ended run, else of the plan; ``None`` if unknown."""
        return self.step if self.has_ended else self.total_steps

    @property
    def epochs(self) -> int:
        """Epochs of the whole plan; in a script, of the latest part. 0 if unknown."""
        return self.built.epochs - self.before_part[1] if self.built and self.built.epochs else 0

    @property
    def current_epoch(self) -> int | None:
        """The epoch of the next step, or of the one that is validated, counted from 1; in a script, within its part.

        ``None`` if unknown, and in a script that is between parts or has ended.
        """
        if self.built is None or not self.epochs or (self.parts and not (self.live and self.part)):
            return None
        step, epoch = self.before_part
        is_after = self.step > step and self.phase is not None and self.phase.phase is Phase.VALIDATING
        if self.built.steps_per_epoch:
            return min((self.epoch_of(self.step - is_after) or 1) - epoch, self.epochs)
        ended = max(0, self.epoch.epoch - epoch if self.epoch else 0)
        has_ended = is_after and self.epoch is not None and self.epoch.step == self.step
        return min(ended + (not has_ended), self.epochs)  # epochs may differ in length

    def epoch_of(self, step: int) -> int | None:
        """The epoch, counted from 1, of a step, counted from 0; ``None`` if neither ends nor a length are known."""
        spans = self.epoch_spans
        first, epoch, length = spans[max(bisect_right(spans, step, key=lambda span: span[0]) - 1, 0)]
        return epoch + (step - first) // length if length else epoch or None

    @property
    def remaining(self) -> float | None:
        """Estimated seconds to the end at the recent rate; ``None`` if unknown.

        Includes the validations that are left, each as long as the last one, or before the first as the forward pass
        of their examples; and checkpoints, each as long as the last one, as often as past epochs had one.
        """
        rate = self.steps_per_second
        if not (self.built and rate and self.total_steps is not None):
            return None
        epochs_left = self.epochs - self.current_epoch + 1 if self.current_epoch else 0
        epochs, checkpoints = (self.marks.get(kind, Track()).count for kind in (MarkKind.EPOCH, MarkKind.CHECKPOINT))
        saving = self.checkpoint.seconds * min(checkpoints / max(epochs, 1), 1.0) if self.checkpoint else 0.0
        training = max(self.total_steps - self.step, 0) / rate
        done = self.validated if self.validated and self.validated.step > self.before_part[0] else None
        at = (done.epoch, done.step) if done else (0, 0)
        values = self.info.plan_values if self.info else self.plan
        validations = validations_left(values, self.epochs, self.total_steps, at, training)
        if validations is None:  # a script's: one per epoch, if there was one
            validations = epochs_left if done else 0
        each = done.seconds if done else assumed_seconds(self.built, rate)
        return training + validations * each + epochs_left * saving

    def validation_of(self, series: str) -> Points:
        """Validation points of a series' metric, also for series that are running means."""
        metric = next((series.removeprefix(mean) for mean in MEAN_PREFIXES if series.startswith(mean)), series)
        return self.validation.get(series) or self.validation.get(metric, ())

    @property
    def monitor(self) -> str:
        """The metric that counts, such as ``validation_accuracy``."""
        built = self.built
        wanted = (built.monitor if built else "") or (self.info.monitor if self.info else "")
        return choose_monitor(wanted, tuple(self.curves), tuple(self.validation), built.task if built else "")

    @property
    def monitored(self) -> Points:
        """The steps and values of the metric that counts."""
        return self.points_of(self.monitor)

    def points_of(self, series: str) -> Points:
        """The steps and values of a metric: of validations for a name with ``validation_``, else of epochs.

        Without those before the latest part of a script, if that is no ``fit`` and has values of its own.
        """
        name, first = series.removeprefix(VALIDATION_PREFIX), self.loop_start(self.step)
        points = self.points(name) if name == series else self.validation.get(name, ())
        own = tuple(point for point in points if point[0] > first) if first else points
        curve = self.curves.get(series)
        return own if own or (curve and curve.has_values_from(first)) else points

    @property
    def best(self) -> tuple[int, float] | None:
        """The best value of the metric that counts, and the steps taken before it; ``None`` if there is none."""
        return best_point(self.monitored, self.monitor, self.info.plan_values if self.info else self.plan)

    @property
    def patience_used(self) -> tuple[int, int] | None:
        """Validations or epochs since the last improvement, and the patience; ``None`` without, or before the first."""
        patience = self.info.plan_values.get("patience") if self.info else None
        last = next((each for each in (self.validated, self.epoch) if each and each.waited is not None), None)
        if patience is None or last is None or last.waited is None:
            return None
        return last.waited if last.step > self.patience_from else 0, patience

    @property
    def has_learning_rate(self) -> bool:
        """Whether any learning rate is known."""
        return bool(self.learning_rates) or LEARNING_RATE in self.curves

    @property
    def flops_per_second(self) -> float | None:
        """Floating-point operations per second at the recent rate; ``None`` if not counted."""
        rate = self.steps_per_second
        return rate * self.work.flops if rate and self.work and self.work.flops is not None else None

    @property
    def mfu(self) -> float | None:
        """Model FLOPs utilization: share of the devices' peak; ``None`` if unknown."""
        reached = self.flops_per_second
        return utilization(reached, self.work.peak) if reached is not None and self.work else None

    @property
    def metrics(self) -> dict[str, float]:
        """Latest value of every series; validation's are prefixed with ``validation_``."""
        latest = {name: curve.last_value for name, curve in self.curves.items()}
        return latest | {f"validation_{name}": points[-1][1] for name, points in self.validation.items() if points}
