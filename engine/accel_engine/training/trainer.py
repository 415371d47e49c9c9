"""A run from its plan to its result."""

import time
import traceback
from functools import partial

import numpy as np
import numpy.typing as npt
import tensorflow as tf

from accel_engine import clock, strategies
from accel_engine.devices.reading import Inventory
from accel_engine.events import (
    DevicesFound,
    EpochEnded,
    Outcome,
    Phase,
    RunEnded,
    Validated,
    Warned,
)
from accel_engine.plan import Plan
from accel_engine.run import diagnostics
from accel_engine.run.writer import RunWriter
from accel_engine.strategies import tpu_builder
from accel_engine.strategies.builders import reduction_over_workers
from accel_engine.strategies.tpu_errors import explain
from accel_engine.training import device_visibility, layer_table
from accel_engine.training.allocated_memory import Allocator
from accel_engine.training.assembly import Assembly, assemble
from accel_engine.training.autotune import AutoTuner
from accel_engine.training.command_handler import CommandHandler
from accel_engine.training.command_mailbox import CommandMailbox, CommandSource, StopRequested
from accel_engine.training.coordinated_loop import CoordinatedLoop
from accel_engine.training.deadline import Deadline
from accel_engine.training.error_explanation import explain_error
from accel_engine.training.evaluation_report import intake_of
from accel_engine.training.feed import epoch_order, epoch_part
from accel_engine.training.loop import Loop, Measured
from accel_engine.training.means import Means
from accel_engine.training.model_summary import learning_rate_of, summarize
from accel_engine.training.run_reporter import RunReporter
from accel_engine.training.saving import Saving
from accel_engine.training.utilization import Utilization
from accel_engine.training.validation import Validation
from accel_engine.training.worker_introduction import introduce
from accel_engine.training.worker_sync import SharedCommands, WorkerSync

CUT_OFF = (
    tf.errors.UnavailableError,
    tf.errors.AbortedError,
    tf.errors.CancelledError,
    tf.errors.InternalError,
    tf.errors.DeadlineExceededError,
)
"""What TensorFlow raises in the workers that are left when one is gone."""


class Trainer:
    """Trains one plan, tells the run all about it, and obeys commands between two chunks.

    Args:
        plan: What to train.
        run: Where everything is written.
        mailbox: Where commands arrive.
        inventory: The machine's devices.
        first_step: The step of the checkpoint that training goes on from; 0 for none.
        began: When the engine took the run up, by ``time.monotonic()``; now, unless it is given.
        deadline: Asked by the thread that can end the process while this one is in native code.
    """

    _assembly: Assembly
    _saving: Saving
    _obeying: CommandHandler
    _loop: Loop
    _choice: AutoTuner
    _validation: Validation | None
    _utilization: Utilization | None = None
    _council: WorkerSync | None = None

    allocator: Allocator | None = None
    """What tells how much memory the devices of the run have in use, once they are known."""

    cut_off = False
    """Whether training failed because other workers could not be reached."""

    def __init__(
        self,
        plan: Plan,
        run: RunWriter,
        mailbox: CommandMailbox,
        inventory: Inventory,
        first_step: int = 0,
        began: float | None = None,
        deadline: Deadline | None = None,
    ) -> None:
        self._plan = plan
        self._run = run
        self._mailbox = mailbox
        self._inventory = inventory
        self._progress = RunReporter(run, first_step)
        self._began = time.monotonic() if began is None else began
        self._deadline = deadline or Deadline()
        self._means = Means()
        self._metrics: dict[str, float] = {}
        self._warm = False
        self._timed_steps, self._timed_seconds = 0, 0.0
        self._diverged = False

    def train(self) -> RunEnded:
        """Train to the end, whichever it is, and return the event that ends the run."""
        try:
            self._prepare()
            self._train_epochs()
            self._saving.model()
            self._part()
        except StopRequested as stop:
            if not stop.now:
                self._part()
            return self.ended(Outcome.STOPPED, str(stop))
        except (Exception, SystemExit) as error:  # noqa: BLE001 (whatever a user's model raises is the run's failure)
            traceback.print_exc()
            self.cut_off = strategies.find(self._plan.strategy).processes and isinstance(error, CUT_OFF)
            return self.ended(Outcome.FAILED, *explain_error(error, self._plan))
        return self.ended(Outcome.FINISHED)

    def ended(self, outcome: Outcome, reason: str = "", hint: str = "") -> RunEnded:
        """The event that ends the run as things stand now."""
        reached, share = self._utilization.reached(self._rate) if self._utilization else (None, None)
        return RunEnded(
            time=clock.now(),
            outcome=outcome,
            steps=self._progress.step,
            epochs=self._progress.epochs,
            seconds=time.monotonic() - self._began,
            steps_per_second=self._rate,
            metrics=self._metrics,
            reason=reason,
            hint=hint,
            flops_per_second=reached,
            mfu=share,
        )

    def _prepare(self) -> None:
        names = self._place()
        memory = device_visibility.memory(names, self._plan, self._inventory)
        trained = diagnostics.read(self._run.directory) if self._progress.step else None
        self._assembly = assembly = assemble(self._plan, names, memory, trained)
        self._meet()
        self._saving = Saving(assembly, self._progress)
        self._obeying = CommandHandler(self._commands(), assembly, self._progress, self._saving, self._validate)
        self._tell_assembly(names)
        self._validation = None
        if self._plan.validation != "off" and assembly.dataset.validation is not None:
            self._validation = Validation(assembly, memory)
        self._obeying.obey()
        self._choose_loop()

    def _place(self) -> tuple[str, ...]:
        """Take the devices of the plan; connecting to a TPU may not take for ever."""
        way = tpu_builder.endpoint_of(self._plan)
        if way is None:
            self._progress.enter(Phase.BUILDING)
            return device_visibility.configure(self._plan, self._inventory)
        self._progress.enter(Phase.BUILDING, f"connecting to the TPU: {way.target}")
        limit = tpu_builder.CONNECT_SECONDS
        with self._deadline.within(limit, partial(explain, way, f"no answer within {limit:g} s")):
            return tpu_builder.connect(way)

    def _meet(self) -> None:
        """Agree with the other workers, where there are any, on the step to go on from."""
        assembly, cluster = self._assembly, self._assembly.cluster
        if cluster is None or cluster.coordinated:  # who takes steps for a coordinator has no say
            return
        self._council = WorkerSync(assembly.strategy, cluster)
        self._progress.step = self._council.least(self._progress.step)
        self._run.truncate(self._progress.step)
        reduction = reduction_over_workers(assembly.devices, self._plan)
        self._run.event(introduce(self._council, cluster, self._run.directory, reduction))

    def _agree(self, number: int) -> int:
        """The number that all workers go by: the chief's, where there are several."""
        return self._council.follow(number) if self._council else number

    def _commands(self) -> CommandSource:
        return SharedCommands(self._mailbox, self._council) if self._council else self._mailbox

    def _part(self) -> None:
        """Wait for the other workers, so that nobody misses one who only had less to save."""
        if self._council:
            self._council.hear(0.0)

    def _train_epochs(self) -> None:
        progress = self._progress
        progress.epochs, done = divmod(progress.step, self._assembly.schedule.steps_per_epoch)
        self._means.add(*self._run.read_steps(progress.step - done, progress.step))
        if progress.epochs >= self._plan.epochs:  # its engine died between the last checkpoint and the end
            self._validate()
        while progress.epochs < self._plan.epochs:
            progress.enter(Phase.TRAINING)
            self._obeying.obey()
            self._train_epoch(done)
            self._end_epoch()
            done = 0

    def _train_epoch(self, done: int) -> None:
        part, steps = range(0), self._assembly.schedule.steps_per_epoch
        while done < steps:
            if done not in part:
                part = self._steps_with(done)
                order = self._order(self._progress.epochs, part)
            for measured in self._loop.run(order, done - part.start):
                self._record(measured)
                done += measured.count
                # At the end of an epoch, that is to be said before anything is obeyed.
                if done < steps and self._loop.at_rest:
                    self._obeying.obey()
                if self._utilization:
                    self._utilization.look(self._timed_seconds, self._rate)
                if self._choice.is_due(self._timed_seconds, self._rate):
                    self._loop = self._choice.tried(self._loop, order)
                    break  # the loop that goes on may be another

    def _choose_loop(self) -> None:
        """Take the way that the plan asks for, or that an earlier run of the kind found the faster."""
        assembly = self._assembly
        self._choice = AutoTuner(assembly, self._progress, self._hardware)
        way = self._choice.way
        self._progress.enter(Phase.TRACING, "compiling with XLA" if way.xla else "")
        if assembly.coordinated:
            self._loop = CoordinatedLoop(assembly, lambda: self._mailbox.waits)
        else:
            self._loop = Loop(assembly, way, agree=self._agree)
        graph = self._loop.trace(self._order(0, self._steps_with(0)))
        self._tell_names()
        self._utilization = Utilization(assembly, self._progress, self._hardware)
        self._run.write_diagnostics(
            layer_table.tabulate(assembly.model, self._utilization.count(graph)), self._progress.step
        )
        self._choice.tell_remembered()

    @property
    def _rate(self) -> float:
        """Steps a second while training, after the first chunk; 0 before there was another."""
        return self._timed_steps / self._timed_seconds if self._timed_seconds else 0.0

    def _end_epoch(self) -> None:
        progress, means = self._progress, self._means
        progress.epochs += 1
        self._metrics |= means.value
        progress.say(EpochEnded, epoch=progress.epochs, step=progress.step, metrics=means.value, seconds=means.seconds)
        self._means = Means()
        self._obeying.obey()
        last = progress.epochs == self._plan.epochs
        if last or self._plan.validation == "epoch":
            self._validate()
        if last or self._agree(self._saving.is_due):
            self._saving.checkpoint()

    def _validate(self) -> bool:
        """Try the model on the validation data, and tell whether there is any."""
        if self._validation is None:
            return False
        progress = self._progress
        progress.enter(Phase.VALIDATING)
        began = time.perf_counter()
        metrics = self._validation.run(self._obeying.obey)
        self._metrics |= {f"validation_{name}": value for name, value in metrics.items()}
        seconds = time.perf_counter() - began
        self._run.write_diagnostics(self._validation.examination.result(), progress.step)
        progress.say(Validated, epoch=progress.epochs, step=progress.step, metrics=metrics, seconds=seconds)
        self._tell_names()
        return True

    def _tell_names(self) -> None:
        for remark in self._assembly.names.take_notes():
            self._progress.say(Warned, message=remark)

    def _record(self, measured: Measured) -> None:
        first = self._progress.step
        self._progress.step += measured.count
        self._run.chunk(first, measured.started, measured.started + measured.seconds, measured.series)
        self._means.add(measured.series, measured.seconds)
        if self._warm:
            self._timed_steps += measured.count
            self._timed_seconds += measured.seconds
        self._warm = True
        wrong = ~np.isfinite(measured.series["loss"])
        if wrong.any() and not self._diverged:
            self._diverged = True
            step = first + int(np.argmax(wrong))
            self._progress.say(Warned, message=f"the loss of step {step} is not a number: try a lower learning rate")

    def _steps_with(self, step: int) -> range:
        schedule = self._assembly.schedule
        return epoch_part(step, len(self._assembly.dataset.train), schedule.steps_per_epoch, schedule.global_batch)

    def _order(self, epoch: int, part: range) -> npt.NDArray[np.int32]:
        assembly = self._assembly
        examples, batch = len(assembly.dataset.train), assembly.schedule.per_replica_batch
        return epoch_order(self._plan.seed, epoch, examples, len(part), assembly.replicas, batch, part.start)

    def _tell_assembly(self, names: tuple[str, ...]) -> None:
        assembly = self._assembly
        if assembly.coordinated:
            devices = device_visibility.found_at_workers()
            self._hardware = device_visibility.hardware_of_workers(self._plan, self._inventory)
        else:
            devices = device_visibility.found(names, self._inventory)
            self._hardware = device_visibility.hardware(devices, self._inventory)
        self.allocator = Allocator(devices)
        self._progress.say(
            DevicesFound,
            devices=devices,
            strategy=type(assembly.strategy).__name__,
            address=tpu_builder.address_of(self._plan),
        )
        self._run.event(summarize(assembly))
        self._run.write_diagnostics(intake_of(assembly.dataset, assembly.scale), self._progress.step)
        if (rate := learning_rate_of(assembly, self._progress.step)) is not None:
            self._run.event(rate)
        for note in assembly.notes:
            self._progress.say(Warned, message=note)
