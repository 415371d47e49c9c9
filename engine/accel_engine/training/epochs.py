"""Trains the epochs of a run: steps, and what comes between them."""

import time
from contextlib import closing
from dataclasses import replace
from functools import partial

from accel_engine import clock
from accel_engine.events import EpochEnded, Outcome, Phase, Validated, Warned
from accel_engine.measure.tried_gpus import note_tried
from accel_engine.run.history.history import skipped_steps
from accel_engine.training.autotuning.autotuner import AutoTuner
from accel_engine.training.autotuning.mode_choice import plan_mode
from accel_engine.training.autotuning.run_threads import RunThreads
from accel_engine.training.checkpoints.run_saver import RunSaver
from accel_engine.training.commands.command_handler import CommandHandler
from accel_engine.training.commands.command_mailbox import CommandMailbox, StopRequested
from accel_engine.training.core.assembly import Assembly
from accel_engine.training.core.batches import Batches
from accel_engine.training.core.feed import Segment
from accel_engine.training.core.loop import ChunkResult, Loop
from accel_engine.training.core.metric_states import EpochStates
from accel_engine.training.distributed.coordinated_loop import CoordinatedLoop
from accel_engine.training.distributed.worker_sync import SharedCommands, WorkerSync
from accel_engine.training.evaluation.smaller_batches import TOO_LARGE, AdaptiveValidation
from accel_engine.training.evaluation.validation import Validation
from accel_engine.training.model_analysis import layer_table
from accel_engine.training.progress.due_actions import DueActions, EndTraining
from accel_engine.training.recovery.loss_watch import LossWatch
from accel_engine.training.recovery.replay import advance_optimizers, separated
from accel_engine.training.reporting.mfu import MfuMeter
from accel_engine.training.reporting.op_profiler import OpProfiler
from accel_engine.training.reporting.run_reporter import RunReporter
from accel_engine.training.reporting.step_recorder import EPOCH_SECONDS, StepRecorder, TimeMeter


class Epochs:
    """Trains the epochs of an assembled run, whose checkpoint is restored.

    Args:
        assembly: Model, data and strategy.
        batches: The training batches.
        validation: Validates the model; or why that is off or impossible.
        saver: Saves checkpoints and the model.
        due_actions: Decides what is due.
        reporter: The run's step and phase.
        mailbox: Receives this process's commands.
        sync: Synchronizes the workers, if there are several.
        hardware: The devices' product names.
        threads: Remembers the rate of the run; ``None`` on a TPU.
        states: The metrics of the epoch so far.
    """

    def __init__(
        self,
        assembly: Assembly,
        batches: Batches,
        validation: Validation | str,
        saver: RunSaver,
        due_actions: DueActions,
        reporter: RunReporter,
        mailbox: CommandMailbox,
        sync: WorkerSync | None,
        hardware: tuple[str, ...],
        threads: RunThreads | None,
        states: EpochStates,
    ) -> None:
        self._assembly, self._batches = assembly, batches
        adapts = assembly.plan.on_oom == "adapt" and assembly.single_process  # several processes would have to agree
        self._validation = (
            validation if isinstance(validation, str) else AdaptiveValidation(validation, reporter, adapts=adapts)
        )
        self._saver, self._due_actions, self._reporter = saver, due_actions, reporter
        self._run = reporter.run
        self._mailbox, self._sync = mailbox, sync
        self._hardware, self._threads = hardware, threads
        commands = SharedCommands(mailbox, sync, reporter.run.is_withdrawn) if sync else mailbox
        self._profiler = OpProfiler(assembly, reporter, hardware, lambda: self._loop.graphs)
        self._commands = CommandHandler(
            commands, assembly, reporter, saver, self._validate_by_command, due_actions.change_interval, self._profiler
        )
        self._recorder = StepRecorder(reporter, states)
        self._time = TimeMeter(reporter, assembly.feed.take_input_wait)
        self._watch = LossWatch(assembly, reporter)
        self._skipped = skipped_steps(assembly.plan.skip_steps)
        self._loop: Loop
        self._autotuner: AutoTuner | None = None
        self._meter: MfuMeter | None = None

    @property
    def metrics(self) -> dict[str, float]:
        """The latest metrics of training and validation."""
        return self._due_actions.metrics

    @property
    def steps_per_second(self) -> float:
        """Steps per second, without the first chunk; 0 until the second."""
        return self._recorder.rate.value

    @property
    def flops_per_second(self) -> tuple[float | None, float | None]:
        """The achieved FLOP/s and the MFU, 0 to 1; ``None`` where unknown."""
        return self._meter.achieved(self._recorder.rate.value) if self._meter else (None, None)

    @property
    def has_compiled(self) -> bool:
        """Whether another execution mode was compiled beside the training, or is just being compiled."""
        return self._autotuner is not None and self._autotuner.has_compiled

    def wait_for_compilation(self) -> None:
        """Wait until nothing is compiled beside the training, so that its memory can be released."""
        if self._autotuner:
            self._autotuner.wait()

    def train(self) -> EndTraining | None:
        """Train the epochs that are left; returns what ended the run before the last one.

        Raises:
            StopRequested: A command stopped the run.
            NotANumberError: Losses or weights are not finite, and the plan does not say to continue.
        """
        try:
            end = self._train()
        except StopRequested as stop:
            if stop.now:
                self._profiler.abandon()
            raise
        finally:
            self._profiler.close()
        if self._assembly.on_gpu:
            note_tried(filter(None, self._hardware))
        return end

    def _train(self) -> EndTraining | None:
        self._handle_commands()
        self._trace()
        try:
            self._train_all()
        except EndTraining as end:
            if end.outcome is Outcome.FINISHED and self._due_actions.last_validation_is_due:
                self._validate()
            self._save_checkpoint()
            self._time.report()
            return end
        self._time.report()
        return None

    def _train_all(self) -> None:
        reporter, last = self._reporter, self._assembly.plan.epochs
        reporter.epochs, done = self._batches.restore(reporter.step)
        sizes = self._assembly.step_counts.step_sizes(reporter.step - done, reporter.step)
        self._recorder.continue_epoch(done, sizes, self._skipped)
        # Its engine may have exited between a checkpoint and the validation, or the end.
        missing = self._due_actions.validation_is_missing(None if done else reporter.epochs)
        if reporter.epochs >= last or missing:
            self._validate()
        if reporter.epochs < last:
            self._begin_epoch()
        while reporter.epochs < last:
            self._train_segments(done)
            done = 0

    def _begin_epoch(self) -> None:
        self._due_actions.raise_if_over()
        if self._assembly.freezing.is_due(self._reporter.epochs + 1):
            self._unfreeze()
        self._reporter.enter_phase(Phase.TRAINING)
        self._handle_commands()

    def _train_segments(self, done: int) -> None:
        """Train the epochs of the next segments: all that are left, or one of a stream."""
        first, batches = self._reporter.epochs, self._batches
        epochs = self._assembly.plan.epochs - first
        all_segments = batches.segments(first, done, lambda: self._loop.chunk_steps, epochs)
        segments = separated(all_segments, self._skipped, lambda: self._reporter.step)
        for (segment, is_skipped), waited in self._time.waiting(segments):
            if is_skipped:
                self._skip_step()
                continue
            position, last = 0, partial(self._last, segment, self._reporter.step)
            while position < segment.steps:
                loop = self._loop = self._loop_for(segment)
                with closing(loop.run(segment, position, last)) as chunks:
                    for chunk in chunks:
                        self._record(chunk if position else chunk.with_wait(waited))
                        position += chunk.count
                        if self._meter:
                            self._meter.update_peak(self._recorder.rate.seconds, self._recorder.rate.value)
                        self._observe(chunk, segment)
                        self._time.report_if_due()
                        self._do_between_chunks()
                        if loop.is_idle and self._loop_for(segment) is not loop:
                            break  # continue with the loop chosen
                self._time.add("tracing", loop.take_tracing_seconds())
        if not batches.spans_epochs:
            self._end_epoch()

    def _record(self, chunk: ChunkResult) -> None:
        """Write a chunk, and the ends of epochs within it, with which nothing is due."""
        self._recorder.rate.add(chunk)
        self._time.add("steps", chunk.seconds)
        for index, part in enumerate(chunk.divided(self._batches.divide(chunk.count))):
            if index:
                self._write_end_of_epoch()
            self._recorder.record(part)
            self._batches.count(part.count)
            self._watch.observe(part.series)

    def _skip_step(self) -> None:
        """Take a step without an update."""
        self._recorder.skip(self._assembly.learning_rate)
        self._watch.skip()
        advance_optimizers(self._assembly)
        self._batches.count(1)
        self._do_between_chunks()

    def _do_between_chunks(self) -> None:
        if self._batches.epoch_ended:  # EpochEnded comes before any command
            if self._batches.spans_epochs:
                self._end_epoch() if self._loop.is_idle else self._write_end_of_epoch()
        elif self._loop.is_idle:
            self._handle_commands()
            if self._due_actions.within_epochs:
                self._do_what_is_due(None)

    def _must_wait(self) -> bool:
        """Whether something is due between two chunks that does not follow from the step."""
        is_asked = self._mailbox.has_pending or self._profiler.is_due or self._due_actions.is_due_by_clock
        return is_asked or (self._autotuner is not None and self._autotuner.is_trying)

    def _observe(self, chunk: ChunkResult, segment: Segment) -> None:
        """Take note of the rate of a chunk, if its batches are full."""
        if self._autotuner is None or segment.examples != self._assembly.step_counts.global_batch:
            return
        self._autotuner.observe(chunk, segment)
        if self._threads and self._autotuner.has_chosen:
            self._threads.observe(chunk, self._loop.mode)

    def _loop_for(self, segment: Segment) -> Loop:
        return self._autotuner.loop_for(segment) if self._autotuner else self._loop

    def _last(self, segment: Segment, first_step: int, position: int) -> int:
        """The next position in a segment after whose steps something is due, or its end.

        Args:
            segment: The segment.
            first_step: Steps taken before it.
            position: The position of the next step; what was due there is done.
        """
        step = first_step + position
        ahead = self._due_actions.steps_until_next(step)
        last = segment.steps if ahead is None else min(segment.steps, position + ahead)
        if self._batches.spans_epochs:
            each = self._assembly.step_counts.steps_per_epoch
            last = min(last, self._next_epoch(1 + step // each) * each - first_step)
        return last

    def _next_epoch(self, epoch: int) -> int:
        """The first epoch, from one on, after which something may be due."""
        frozen, due = self._assembly.freezing.epoch, self._due_actions.next_epoch(epoch, lambda: self._saver.is_due)
        return min(due, frozen - 1) if frozen is not None and frozen > epoch else due

    def _trace(self) -> None:
        """Create and trace the loop in the plan's execution mode."""
        with self._time.measure("tracing"):
            self._create_loop()

    def _create_loop(self) -> None:
        assembly, began, mode = self._assembly, time.perf_counter(), plan_mode(self._assembly)
        self._reporter.enter_phase(Phase.TRACING, "compiling with XLA" if mode.xla else "")
        if assembly.coordinated:
            self._loop = CoordinatedLoop(assembly, self._must_wait)
        else:
            sync_count = self._sync_count if self._sync else int
            self._loop = Loop(assembly, mode, sync_count=sync_count, must_wait=self._must_wait)
        segment = self._batches.first_segment()
        graph = self._loop.trace(segment)
        if not assembly.coordinated:
            seconds = time.perf_counter() - began
            self._autotuner = AutoTuner(
                assembly, self._reporter, self._hardware, self._loop, seconds, self._due_actions.seconds_left
            )
        self._report_name_remarks()
        self._meter = MfuMeter(assembly, self._reporter, self._hardware)
        flops = self._meter.count_flops(graph, segment.examples)
        table = layer_table.tabulate(assembly.model, flops)
        if (stages := assembly.stages) is not None:
            table = replace(table, stages=stages.table, micro_batches=stages.micro_batches)
        self._run.write_diagnostics(table, self._reporter.step)
        if self._loop.compiles_chunks:
            self._loop.compile(
                segment
            )  # now, rather than in the first chunk, so that the phase tells why it takes long

    def _unfreeze(self) -> None:
        """Let the frozen layers train, with a loop that is traced again."""
        epoch = self._reporter.epochs + 1
        message = f"epoch {epoch}: {self._assembly.freezing.end()}"
        self._reporter.emit(Warned, message=message, severity="information")
        if not isinstance(self._validation, str):
            self._validation.retrace()
        self._trace()

    def _end_epoch(self) -> None:
        """End an epoch after whose last step no other has been taken, and begin the next one."""
        self._write_end_of_epoch()
        reporter = self._reporter
        self._watch.observe_scale()
        self._handle_commands()
        self._do_what_is_due(reporter.epochs)
        self._time.report_if_due(EPOCH_SECONDS)
        if reporter.epochs < self._assembly.plan.epochs:
            self._begin_epoch()

    def _write_end_of_epoch(self) -> None:
        reporter, measured = self._reporter, self._recorder.end_epoch(self._loop)
        reporter.epochs += 1
        if measured.measured < measured.steps:  # its checkpoint did not have the others
            part = f"the last {measured.measured:,} of {measured.steps:,} steps"
            reporter.emit(Warned, message=f"the metrics of epoch {reporter.epochs} are of {part}")
        ended = EpochEnded(
            time=clock.now(),
            epoch=reporter.epochs,
            step=reporter.step,
            metrics=measured.values,
            seconds=measured.seconds,
        )
        self._run.write_event(self._due_actions.observe(ended))

    def _do_what_is_due(self, epoch: int | None) -> None:
        """Validate, save a checkpoint and end the run, whichever is due.

        Args:
            epoch: Epochs taken, if the last one has just ended.
        """
        due_actions = self._due_actions
        if due_actions.validation_is_due(epoch):
            self._validate()
        if due_actions.checkpoint_is_due(epoch, lambda: self._saver.is_due):
            self._save_checkpoint()
        if epoch is None:
            due_actions.raise_if_over()
            self._reporter.resume_phase(Phase.TRAINING)

    def _validate_by_command(self) -> str:
        """Validate the model now; returns why that is impossible, empty if it is not."""
        problem = self._validate(by_command=True)
        if not problem and self._due_actions.must_save_best():
            self._save_checkpoint()
        return problem

    def _sync_count(self, count: int) -> int:
        """The number of steps of a chunk that the chief chooses; waits for the slowest worker."""
        assert self._sync is not None  # noqa: S101 (only several workers call it)
        with self._time.measure("workers"):
            return int(self._sync.broadcast(count))

    def _save_checkpoint(self) -> None:
        with self._time.measure("checkpoints"):
            self._saver.save_checkpoint(self._watch.weights_not_finite)

    def _handle_commands(self) -> None:
        """Handle the commands that have come, which may be a pause."""
        with self._time.measure("commands"):
            self._commands.handle()

    def _validate(self, *, by_command: bool = False) -> str:
        """Validate the model; returns why that is off or impossible, empty if it is not."""
        if isinstance(self._validation, str):
            return self._validation
        reporter = self._reporter
        reporter.enter_phase(Phase.VALIDATING)
        with self._time.measure("commands" if by_command else "validation") as own_seconds:
            metrics = self._validation.run(self._handle_commands)
            baseline = None if metrics is None else self._validation.baseline()
            seconds = own_seconds()
            for item in self._validation.report() if metrics is not None else ():
                self._run.write_diagnostics(item, reporter.step)
        if metrics is None:
            if not by_command:
                self._due_actions.leave_out_validation()
            return TOO_LARGE
        validated = Validated(
            time=clock.now(),
            epoch=reporter.epochs,
            step=reporter.step,
            metrics=metrics,
            seconds=seconds,
            by_command=by_command,
            baseline=baseline.metrics if baseline else {},
            baseline_name=baseline.name if baseline else "",
        )
        self._run.write_event(self._due_actions.observe(validated))
        self._report_name_remarks()
        return ""

    def _report_name_remarks(self) -> None:
        for remark in self._assembly.names.take_notes():
            self._reporter.emit(Warned, message=remark)
