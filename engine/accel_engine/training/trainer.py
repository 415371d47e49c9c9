"""Trains a run from its plan to its end."""

import time
import traceback
from contextlib import ExitStack
from functools import partial

import tensorflow as tf

from accel_engine import clock
from accel_engine.devices.device_types import Inventory
from accel_engine.events import (
    EpochEnded,
    Outcome,
    Phase,
    RunEnded,
    Validated,
    Warned,
)
from accel_engine.plan.resolved_plan import ResolvedPlan
from accel_engine.run import diagnostics
from accel_engine.run.writer import RunWriter
from accel_engine.training.assembly_report import report_assembly
from accel_engine.training.autotuner import AutoTuner
from accel_engine.training.checkpoints.run_saver import RunSaver
from accel_engine.training.commands.command_handler import CommandHandler
from accel_engine.training.commands.command_mailbox import CommandMailbox, CommandSource, StopRequested
from accel_engine.training.core import device_visibility
from accel_engine.training.core.allocated_memory import AllocatedMemory
from accel_engine.training.core.assembly import Assembly, assemble
from accel_engine.training.core.batches import Batches, training_batches
from accel_engine.training.core.deadline import Deadline
from accel_engine.training.core.loop import Loop
from accel_engine.training.distributed import tpu_builder
from accel_engine.training.distributed.coordinated_loop import CoordinatedLoop
from accel_engine.training.distributed.strategy_builders import reduction_over_workers
from accel_engine.training.distributed.tpu_errors import explain
from accel_engine.training.distributed.worker_sync import SharedCommands, WorkerSync, link_worker_runs
from accel_engine.training.evaluation.validation import Validation
from accel_engine.training.model_analysis import layer_table
from accel_engine.training.progress.milestones import EndTraining, Milestones
from accel_engine.training.reporting.error_explanation import explain_error
from accel_engine.training.reporting.mfu import MfuMeter
from accel_engine.training.reporting.model_summary import measured_metrics
from accel_engine.training.reporting.run_reporter import RunReporter
from accel_engine.training.reporting.step_recorder import StepRecorder

CONNECTION_ERRORS = (
    tf.errors.UnavailableError,
    tf.errors.AbortedError,
    tf.errors.CancelledError,
    tf.errors.InternalError,
    tf.errors.DeadlineExceededError,
)
"""Errors that TensorFlow raises in the remaining workers when one is lost."""


class Trainer:
    """Trains one plan, writes its events and series, and handles commands between two chunks.

    Args:
        resolved: The plan.
        run: Writes the run.
        mailbox: Receives commands.
        inventory: The machine's devices.
        first_step: The checkpoint's step that training continues from; 0 for none.
        began: When the engine started the run, by ``time.monotonic()``; now by default.
        deadline: Checked by the main thread, which can end the process while this thread is in native code.
    """

    _assembly: Assembly
    _batches: Batches
    _saver: RunSaver
    _command_handler: CommandHandler
    _milestones: Milestones
    _loop: Loop
    _autotuner: AutoTuner
    _validation: Validation | None
    _meter: MfuMeter | None = None
    _sync: WorkerSync | None = None

    allocated_memory: AllocatedMemory | None = None
    """Reads the allocated memory of the run's devices, once they are known."""

    lost_connection = False
    """Whether training failed because other workers were unreachable."""

    def __init__(
        self,
        resolved: ResolvedPlan,
        run: RunWriter,
        mailbox: CommandMailbox,
        inventory: Inventory,
        first_step: int = 0,
        began: float | None = None,
        deadline: Deadline | None = None,
    ) -> None:
        self._resolved, self._plan = resolved, resolved.plan
        self._run = run
        self._mailbox = mailbox
        self._inventory = inventory
        self._reporter = RunReporter(run, first_step)
        self._began = time.monotonic() if began is None else began
        self._deadline = deadline or Deadline()
        self._opened = ExitStack()
        self._recorder = StepRecorder(self._reporter)
        self._metrics: dict[str, float] = {}

    def train(self) -> RunEnded:
        """Train until the run finishes, stops or fails, and return the event that ends it."""
        try:
            self._prepare()
            end = self._train_to_end()
            self._saver.save_model()
            self._wait_for_workers()
        except StopRequested as stop:
            if not stop.now:
                self._wait_for_workers()
            return self.ended(Outcome.STOPPED, str(stop))
        except (Exception, SystemExit) as error:  # noqa: BLE001 (a user's model may raise anything)
            traceback.print_exc()
            self.lost_connection = self._resolved.strategy.processes and isinstance(error, CONNECTION_ERRORS)
            return self.ended(Outcome.FAILED, *explain_error(error, self._plan))
        finally:
            self._opened.close()
        return self.ended(end.outcome, str(end)) if end else self.ended(Outcome.FINISHED)

    def ended(self, outcome: Outcome, reason: str = "", hint: str = "") -> RunEnded:
        """The event that ends the run, with its current metrics."""
        achieved, mfu = self._meter.achieved(self._recorder.rate) if self._meter else (None, None)
        return RunEnded(
            time=clock.now(),
            outcome=outcome,
            steps=self._reporter.step,
            epochs=self._reporter.epochs,
            seconds=time.monotonic() - self._began,
            steps_per_second=self._recorder.rate,
            metrics=self._metrics,
            reason=reason,
            hint=hint,
            flops_per_second=achieved,
            mfu=mfu,
        )

    def _prepare(self) -> None:
        names = self._configure_devices()
        memory = device_visibility.device_memory(names, self._resolved, self._inventory)
        trained = diagnostics.read(self._run.directory) if self._reporter.step else None
        self._assembly = assembly = assemble(self._resolved, names, memory, trained, self._report_progress)
        if assembly.plan.model != self._plan.model:
            self._resolved, self._plan = assembly.resolved, assembly.plan
            self._run.write_plan(self._plan)
            self._reporter.emit(Warned, message=f"model auto: {self._plan.model}", severity="information")
        self._sync_start_step()
        self._batches = training_batches(assembly)
        self._opened.callback(self._batches.close)
        self._saver = RunSaver(assembly, self._reporter, self._batches)
        epochs, done = self._batches.restore(self._reporter.step)
        if assembly.freezing.is_due(epochs + (done > 0)):  # in an epoch that began before the checkpoint
            assembly.freezing.end()
        validate = partial(self._validate, by_command=True)
        self._command_handler = CommandHandler(self._commands(), assembly, self._reporter, self._saver, validate)
        problem = ""
        self._validation = None
        if self._plan.validation != "off" and assembly.dataset.validation is not None:
            validation = Validation(assembly, memory)
            problem = validation.problem()
            self._validation = validation if not problem else None
        report = report_assembly(assembly, names, self._inventory, self._reporter, can_validate=not problem)
        self._hardware = report.hardware
        self.allocated_memory = AllocatedMemory(report.devices)
        monitor, measured = report.built.monitor, measured_metrics(assembly)
        self._milestones = Milestones(
            self._plan,
            monitor,
            measured,
            report.built.series,
            self._reporter,
            self._agree,
            validates=self._validation is not None,
        )
        self._saver.best_step = self._milestones.best_step
        if problem:
            self._reporter.emit(Warned, message=f"training without validation: {problem}")
        self._command_handler.handle()
        self._choose_loop()

    def _configure_devices(self) -> tuple[str, ...]:
        """Configure the plan's devices, with a time limit for connecting to a TPU."""
        endpoint = self._resolved.tpu
        if endpoint is None:
            self._reporter.enter_phase(Phase.BUILDING)
            self._resolved = device_visibility.place_on_visible(self._resolved, self._inventory)
            return device_visibility.configure(self._resolved, self._inventory)
        self._reporter.enter_phase(Phase.BUILDING, f"connecting to the TPU: {endpoint.target}")
        limit = tpu_builder.TPU_CONNECT_TIMEOUT_SECONDS
        with self._deadline.within(limit, partial(explain, endpoint, f"no answer within {limit:g} s")):
            return tpu_builder.connect(endpoint)

    def _sync_start_step(self) -> None:
        """Synchronize the start step with the other workers, if there are any."""
        assembly, cluster = self._assembly, self._assembly.cluster
        if cluster is None or cluster.coordinated:  # a coordinator decides alone
            return
        self._sync = WorkerSync(assembly.strategy, cluster)
        self._reporter.step = self._sync.minimum(self._reporter.step)
        self._run.truncate(self._reporter.step)
        reduction = reduction_over_workers(assembly.devices, self._resolved)
        self._run.write_event(link_worker_runs(self._sync, cluster, self._run.directory, reduction))

    def _broadcast(self, number: int) -> int:
        """The chief's number, for all workers to use."""
        return self._sync.broadcast(number) if self._sync else number

    def _agree(self, flag: bool) -> bool:
        """The chief's decision, for all workers to follow."""
        return bool(self._broadcast(int(flag)))

    def _commands(self) -> CommandSource:
        return SharedCommands(self._mailbox, self._sync) if self._sync else self._mailbox

    def _wait_for_workers(self) -> None:
        """Wait for the other workers, so that none takes an earlier end for a lost connection."""
        if self._sync:
            self._sync.all_gather(0.0)

    def _train_to_end(self) -> EndTraining | None:
        """Train the epochs that are left; returns what ended the run before the last one."""
        try:
            self._train_epochs()
        except EndTraining as end:
            self._saver.save_checkpoint()
            return end
        return None

    def _train_epochs(self) -> None:
        reporter, batches = self._reporter, self._batches
        reporter.epochs, done = batches.restore(reporter.step)
        self._recorder.continue_epoch(done, self._assembly.step_counts.step_sizes(0, done))
        # Its engine may have exited between a checkpoint and the validation, or the end.
        missing = self._milestones.validation_is_missing(None if done else reporter.epochs)
        if reporter.epochs >= self._plan.epochs or missing:
            self._validate()
        while reporter.epochs < self._plan.epochs:
            self._milestones.raise_if_over()
            if self._assembly.freezing.is_due(reporter.epochs + 1):
                self._unfreeze()
            reporter.enter_phase(Phase.TRAINING)
            self._command_handler.handle()
            self._train_epoch(done)
            self._end_epoch()
            done = 0

    def _train_epoch(self, done: int) -> None:
        for segment in self._batches.segments(self._reporter.epochs, done, self._loop):
            position = 0
            while position < segment.steps:
                ahead = self._milestones.steps_until_next
                last = segment.steps if ahead is None else min(segment.steps, position + ahead)
                for chunk in self._loop.run(segment, position, last):
                    self._recorder.record(chunk)
                    self._batches.count(chunk.count)
                    position += chunk.count
                    # At the end of an epoch, EpochEnded comes before any command.
                    if not self._batches.epoch_ended and self._loop.is_idle:
                        self._command_handler.handle()
                        if self._milestones.within_epochs:
                            self._reach_milestones(None)
                    if self._meter:
                        self._meter.update_peak(self._recorder.seconds, self._recorder.rate)
                    is_whole = segment.examples == self._assembly.step_counts.global_batch
                    if is_whole and self._autotuner.is_due(self._recorder.seconds, self._recorder.rate):
                        self._loop = self._autotuner.run_trial(self._loop, segment)
                        break  # continue with the loop chosen

    def _choose_loop(self) -> None:
        """Create the loop in the plan's execution mode, or in the faster one of an earlier run."""
        assembly = self._assembly
        self._autotuner = AutoTuner(assembly, self._reporter, self._hardware)
        mode = self._autotuner.mode
        self._reporter.enter_phase(Phase.TRACING, "compiling with XLA" if mode.xla else "")
        if assembly.coordinated:
            self._loop = CoordinatedLoop(assembly, lambda: self._mailbox.has_pending)
        else:
            self._loop = Loop(assembly, mode, sync_count=self._broadcast)
        graph = self._loop.trace(self._batches.first_segment())
        self._report_name_remarks()
        self._meter = MfuMeter(assembly, self._reporter, self._hardware)
        flops = self._meter.count_flops(graph)
        self._run.write_diagnostics(layer_table.tabulate(assembly.model, flops), self._reporter.step)
        self._autotuner.report_cached()

    def _unfreeze(self) -> None:
        """Let the frozen layers train, with a loop that is traced again."""
        epoch = self._reporter.epochs + 1
        message = f"epoch {epoch}: {self._assembly.freezing.end()}"
        self._reporter.emit(Warned, message=message, severity="information")
        self._choose_loop()

    def _end_epoch(self) -> None:
        reporter, means = self._reporter, self._recorder.end_epoch()
        reporter.epochs += 1
        self._metrics |= means.value
        ended = EpochEnded(
            time=clock.now(),
            epoch=reporter.epochs,
            step=reporter.step,
            metrics=means.value,
            seconds=means.seconds,
        )
        self._write_observed(ended)
        self._command_handler.handle()
        self._reach_milestones(reporter.epochs)

    def _reach_milestones(self, epoch: int | None) -> None:
        """Validate, save a checkpoint and end the run, as far as it is due.

        Args:
            epoch: Epochs taken, if the last one has just ended.
        """
        milestones = self._milestones
        if milestones.validation_is_due(epoch):
            self._validate()
        if milestones.checkpoint_is_due(epoch, lambda: self._saver.is_due):
            self._saver.save_checkpoint()
        if epoch is None:
            milestones.raise_if_over()
            self._reporter.resume_phase(Phase.TRAINING)

    def _validate(self, *, by_command: bool = False) -> bool:
        """Validate the model; returns whether there is validation data."""
        if self._validation is None:
            return False
        reporter = self._reporter
        reporter.enter_phase(Phase.VALIDATING)
        began = time.perf_counter()
        metrics = self._validation.run(self._command_handler.handle)
        self._metrics |= {f"validation_{name}": value for name, value in metrics.items()}
        seconds = time.perf_counter() - began
        for item in self._validation.report():
            self._run.write_diagnostics(item, reporter.step)
        validated = Validated(
            time=clock.now(),
            epoch=reporter.epochs,
            step=reporter.step,
            metrics=metrics,
            seconds=seconds,
            by_command=by_command,
        )
        self._write_observed(validated)
        self._report_name_remarks()
        return True

    def _write_observed(self, event: EpochEnded | Validated) -> None:
        self._run.write_event(event)
        self._milestones.observe(event)
        self._saver.best_step = self._milestones.best_step

    def _report_name_remarks(self) -> None:
        for remark in self._assembly.names.take_notes():
            self._reporter.emit(Warned, message=remark)

    def _report_progress(self, done: int, total: int) -> None:
        """Show how much of the data is read, as a detail of the phase."""
        shown = f"reading {done:,} of {total:,}" if total else f"reading {done:,}"
        self._reporter.enter_phase(Phase.BUILDING, shown)
