"""Trains a run from its plan to its end."""

import time
from contextlib import ExitStack
from dataclasses import replace
from functools import partial

import tensorflow as tf

from accel_engine import clock
from accel_engine.devices.device_types import Inventory
from accel_engine.events import Outcome, Phase, Recovered, RunEnded, Warned
from accel_engine.plan import Plan
from accel_engine.plan.resolved_plan import ResolvedPlan
from accel_engine.run import diagnostics
from accel_engine.run.run_paths import checkpoint_steps, latest_checkpoint, reference
from accel_engine.run.writer import RunWriter
from accel_engine.training.assembly_report import report_assembly
from accel_engine.training.autotuning.run_threads import RunThreads
from accel_engine.training.checkpoints.checkpoint import Checkpoints
from accel_engine.training.checkpoints.run_saver import RunSaver
from accel_engine.training.commands.command_mailbox import CommandMailbox, StopRequested
from accel_engine.training.core import device_visibility
from accel_engine.training.core.allocated_memory import AllocatedMemory
from accel_engine.training.core.assembly import Assembly, assemble, build_strategy
from accel_engine.training.core.batches import Batches, training_batches
from accel_engine.training.core.deadline import Deadline
from accel_engine.training.distributed import tpu_builder
from accel_engine.training.distributed.strategy_builders import reduction_over_workers
from accel_engine.training.distributed.tpu_errors import explain
from accel_engine.training.distributed.worker_sync import WorkerSync, link_worker_runs
from accel_engine.training.epochs import Epochs
from accel_engine.training.evaluation.validation import Validation
from accel_engine.training.progress.run_progress import RunProgress
from accel_engine.training.recovery.cause import Cause, find_cause
from accel_engine.training.recovery.loss_watch import NotANumberError, Trouble
from accel_engine.training.recovery.number_recovery import NumberRecovery, newest_until
from accel_engine.training.recovery.recovery import Recovery
from accel_engine.training.recovery.released_models import release_models
from accel_engine.training.recovery.repair import NewProcess, Repair
from accel_engine.training.reporting.data_profiler import start_profiling
from accel_engine.training.reporting.error_explanation import explain_error, print_traceback
from accel_engine.training.reporting.model_summary import measured_metrics
from accel_engine.training.reporting.run_reporter import RunReporter

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
        may_leave: Whether the run may continue in another process.
        is_remat_tried: Whether another process has chosen rematerialization, as memory ran out.
    """

    _device_names: tuple[str, ...] = ()
    _strategy: tf.distribute.Strategy | None = None
    _epochs: Epochs | None = None
    _saver: RunSaver | None = None
    _sync: WorkerSync | None = None
    _threads: RunThreads | None = None
    _trains_since: float | None = None

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
        *,
        may_leave: bool = False,
        is_remat_tried: bool = False,
    ) -> None:
        self._resolved, self._plan = resolved, resolved.plan
        self._run = run
        self._mailbox = mailbox
        self._inventory = inventory
        self._reporter = RunReporter(run, first_step)
        self._began = time.monotonic() if began is None else began
        self._deadline = deadline or Deadline()
        self._may_leave = may_leave
        self._opened = ExitStack()
        self._recovery = Recovery(run, is_remat_tried=is_remat_tried)
        self._numbers = NumberRecovery()

    def train(self) -> RunEnded | NewProcess:
        """Train until the run finishes, stops or fails, and return the event that ends it; or how it continues."""
        while True:
            ended = self._try_to_train()
            if isinstance(ended, RunEnded):
                return ended
            if self._may_leave and ended.needs_process:
                return NewProcess(self._changed_plan(ended), ended, self._reporter.step)
            self._apply(ended)

    def _try_to_train(self) -> RunEnded | Repair:
        """Train from the last checkpoint; returns the event that ends the run, or the repair with which it goes on."""
        try:
            self._epochs, self._saver = self._prepare()
            end = self._epochs.train()
            self._saver.save_model()
            self._wait_for_workers()
        except StopRequested as stop:
            if not stop.now:
                self._wait_for_workers()
            return self.ended(Outcome.STOPPED, str(stop), self._explain_unsaved() if stop.problem else "")
        except NotANumberError as error:
            return self._recover_from_not_a_number(error.trouble)
        except (Exception, SystemExit) as error:  # noqa: BLE001 (a user's model may raise anything)
            print_traceback(error)
            compiled = self._epochs is not None and self._epochs.has_compiled
            if repair := self._recovery.repair(error, self._resolved, self._reporter.step, compiled=compiled):
                return repair
            self.lost_connection = self._resolved.strategy.processes and isinstance(error, CONNECTION_ERRORS)
            ended = self.ended(Outcome.FAILED, *explain_error(error, self._plan))
            return replace(ended, temporary=isinstance(error, (*CONNECTION_ERRORS, ConnectionError, TimeoutError)))
        finally:
            self._opened.close()
        return self.ended(end.outcome, str(end)) if end else self.ended(Outcome.FINISHED)

    def _recover_from_not_a_number(self, trouble: Trouble) -> RunEnded | Repair:
        """Look for the cause of losses or weights that are not a number; returns the repair, or the end of the run."""
        ended, checkpoints = self.ended(Outcome.FAILED), checkpoint_steps(self._run.directory)
        if self._resolved.strategy.processes:  # whose workers would have to agree on the cause
            self._wait_for_workers()
            cause = Cause(unknown="it is not looked for with several processes, which stop here")
            repair = None
        else:
            cause = self._find_cause(trouble, newest_until(trouble.step, checkpoints))
            repair = self._numbers.repair(trouble, cause, self._plan, checkpoints)
        if repair:
            return repair
        reason, hint = self._numbers.end(trouble, cause, self._plan, checkpoints)
        return replace(ended, time=clock.now(), reason=reason, hint=hint)

    def _find_cause(self, trouble: Trouble, first: int) -> Cause:
        """Assemble the run again, and take its steps from a checkpoint to the trouble."""

        def assemble_again() -> Assembly:
            release_models()
            return assemble(self._resolved, self._device_names, memory, strategy=self._strategy)

        self._opened.close()
        self._release()
        self._reporter.enter_phase(Phase.BUILDING, f"looking for the cause: {trouble.text}")
        memory = device_visibility.device_memory(self._device_names, self._resolved, self._inventory)
        return find_cause(trouble, assemble_again, self._run.directory, first, lambda: self._mailbox.has_pending)

    def _release(self) -> None:
        """Release the model, its data and its graphs."""
        if self._epochs:
            self._epochs.wait_for_compilation()
        self._epochs = self._saver = self.allocated_memory = None
        self._opened = ExitStack()
        release_models()

    def _changed_plan(self, repair: Repair) -> Plan:
        """The plan with the changes of commands and of a repair."""
        return self._plan.replace(**{**self._reporter.changes, **repair.changes})

    def _apply(self, repair: Repair) -> None:
        """Return to the step of a repair, with its changes of the plan, and release what failed."""
        self._release()
        failed = self._reporter.step
        self._plan = self._changed_plan(repair)
        streams_data = self._resolved.streams_data or repair.streams_data
        self._resolved = replace(self._resolved, plan=self._plan, streams_data=streams_data)
        self._run.write_plan(self._plan)
        self._run.settle_log()
        self._run.rewind(repair.step)
        self._reporter.step, self._reporter.epochs = repair.step, 0
        self._reporter.emit(
            Recovered,
            trouble=repair.trouble,
            step=repair.step,
            failed_step=failed,
            reason=repair.reason,
            action=repair.action,
            changes=dict(repair.changes),
        )

    def ended(self, outcome: Outcome, reason: str = "", hint: str = "") -> RunEnded:
        """The event that ends the run, with its current metrics."""
        epochs = self._epochs
        achieved, mfu = epochs.flops_per_second if epochs else (None, None)
        return RunEnded(
            time=clock.now(),
            outcome=outcome,
            steps=self._reporter.step,
            epochs=self._reporter.epochs,
            seconds=time.monotonic() - self._began,
            steps_per_second=epochs.steps_per_second if epochs else 0.0,
            metrics=epochs.metrics if epochs else {},
            reason=reason,
            hint=hint,
            flops_per_second=achieved,
            mfu=mfu,
            model_step=self._saver.model_step if self._saver else None,
        )

    def _explain_unsaved(self) -> str:
        """Say from where a run can be continued whose last checkpoint may not have been written."""
        directory = self._run.directory
        last = latest_checkpoint(directory)
        if not last:
            return "there is no checkpoint to continue from"
        return f"continue it from step {last:,}: accel-tui continue {reference(directory)}"

    def _prepare(self) -> tuple[Epochs, RunSaver]:
        """Assemble the run, and restore the checkpoint that it continues from."""
        assembly, memory = self._assemble()
        self._recovery.note(assembly)
        batches, checkpoints = self._restore(assembly)
        validation, problem = _validation_of(assembly, memory)
        report = report_assembly(assembly, self._inventory, self._reporter, can_validate=not problem)
        if problem:
            self._reporter.emit(Warned, message=f"training without validation: {problem}")
        if assembly.chief and diagnostics.read(self._run.directory).profile is None:
            self._opened.callback(start_profiling(assembly, self._reporter))
        self.allocated_memory = AllocatedMemory(report.devices)
        progress = RunProgress(
            self._plan,
            report.built.monitor,
            measured_metrics(assembly),
            report.built.series,
            self._reporter,
            self._agree,
            validates=validation is not None,
            since=self._trains_since,
        )
        self._trains_since = self._trains_since or time.monotonic()
        saver = RunSaver(assembly, self._reporter, checkpoints, progress)
        epochs = Epochs(
            assembly,
            batches,
            validation,
            saver,
            progress,
            self._reporter,
            self._mailbox,
            self._sync,
            report.hardware,
            self._threads,
        )
        return epochs, saver

    def _assemble(self) -> tuple[Assembly, int | None]:
        """Assemble the run on its devices; returns their memory, too: bytes of each, or ``None`` for host memory."""
        if self._strategy is None:  # TensorFlow's devices are configured once in a process
            self._device_names = self._configure_devices()
            self._strategy = build_strategy(self._device_names, self._resolved)
            self._sync_start_step(self._strategy, self._device_names)
        names, strategy = self._device_names, self._strategy
        memory = device_visibility.device_memory(names, self._resolved, self._inventory)
        trained = diagnostics.read(self._run.directory) if self._reporter.step else None
        assembly = assemble(self._resolved, names, memory, trained, self._report_progress, strategy)
        if assembly.plan.model != self._plan.model:
            self._resolved, self._plan = assembly.resolved, assembly.plan
            self._run.write_plan(self._plan)
            self._reporter.emit(Warned, message=f"model auto: {self._plan.model}", severity="information")
        return assembly, memory

    def _restore(self, assembly: Assembly) -> tuple[Batches, Checkpoints]:
        """Restore the checkpoint that the run continues from, if it does, with the layers that trained then."""
        batches = training_batches(assembly)
        self._opened.callback(batches.close)
        checkpoints = Checkpoints(assembly, self._run.directory, batches)
        if self._reporter.step:
            self._restore_newest(checkpoints)
        step = self._reporter.step
        self._run.wait_for_disk(partial(checkpoints.delete_after, step))
        epochs, done = batches.restore(step)
        if assembly.freezing.is_due(epochs + (done > 0)):  # in an epoch that began before the checkpoint
            assembly.freezing.end()
        return batches, checkpoints

    def _restore_newest(self, checkpoints: Checkpoints) -> None:
        """Restore the newest checkpoint that is whole on all workers, and say what is lost."""
        step = first = self._reporter.step
        newest, damaged, agreed = max(checkpoints.steps, default=0), checkpoints.damage_after(first), False
        while not agreed:
            restored, more = checkpoints.restore_newest(step)
            damaged += more
            step = self._sync.start_step(restored) if self._sync else restored
            agreed = self._sync is None or bool(self._sync.all_gather(restored == step).all())
        if step < first:
            self._run.rewind(step)
            self._reporter.step = step
        if checkpoints.unverified:
            problem = f"the checksums of the checkpoint of step {step:,} were damaged: its files could not be verified"
            self._reporter.emit(Warned, message=problem)
        if damaged:
            lost = f"continuing from step {step:,}; steps {step + 1:,} to {newest:,} are trained again"
            self._reporter.emit(Warned, message=f"{'; '.join(damaged)}: {lost}")

    def _configure_devices(self) -> tuple[str, ...]:
        """Configure the plan's devices, with a time limit for connecting to a TPU."""
        endpoint = self._resolved.tpu
        if endpoint is None:
            self._reporter.enter_phase(Phase.BUILDING)
            self._resolved = device_visibility.place_on_visible(self._resolved, self._inventory)
            self._threads = RunThreads(self._resolved, self._inventory, self._reporter)
            self._threads.report()
            return device_visibility.configure(self._resolved, self._inventory, self._threads.choice.setting)
        self._reporter.enter_phase(Phase.BUILDING, f"connecting to the TPU: {endpoint.target}")
        limit = tpu_builder.TPU_CONNECT_TIMEOUT_SECONDS
        with self._deadline.within(limit, partial(explain, endpoint, f"no answer within {limit:g} s")):
            return tpu_builder.connect(endpoint)

    def _sync_start_step(self, strategy: tf.distribute.Strategy, names: tuple[str, ...]) -> None:
        """Continue from the newest checkpoint that all workers have, if there are several.

        Raises:
            RunError: A worker has no checkpoint, but others do.
        """
        cluster = self._resolved.cluster
        if cluster is None or cluster.coordinated:  # a coordinator decides alone
            return
        self._sync = WorkerSync(strategy, cluster)
        step = self._sync.start_step(self._reporter.step)
        if step < self._reporter.step:
            self._run.rewind(step)
            self._reporter.step = step
        reduction = reduction_over_workers(names, self._resolved)
        self._run.write_event(link_worker_runs(self._sync, cluster, self._run.directory, reduction))

    def _agree(self, flag: bool) -> bool:
        """The chief's decision, for all workers to follow."""
        return bool(self._sync.broadcast(flag)) if self._sync else flag

    def _wait_for_workers(self) -> None:
        """Wait for the other workers, so that none takes an earlier end for a lost connection."""
        if self._sync:
            self._sync.all_gather(0.0)

    def _report_progress(self, done: int, total: int) -> None:
        """Show how much of the data is read, as a detail of the phase."""
        shown = f"reading {done:,} of {total:,}" if total else f"reading {done:,}"
        self._reporter.enter_phase(Phase.BUILDING, shown)


def _validation_of(assembly: Assembly, device_memory: int | None) -> tuple[Validation | None, str]:
    """The validation of a run, and why it is impossible; neither if the plan has none."""
    if assembly.plan.validation == "off" or assembly.dataset.validation is None:
        return None, ""
    validation = Validation(assembly, device_memory)
    problem = validation.problem()
    return (None if problem else validation), problem
