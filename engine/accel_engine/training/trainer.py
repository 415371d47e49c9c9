"""Trains a run from its plan to its end."""

import time
from dataclasses import replace

import tensorflow as tf

from accel_engine import clock
from accel_engine.devices.device_types import Inventory
from accel_engine.events import Outcome, Phase, Recovered, RunEnded
from accel_engine.plan import Plan
from accel_engine.plan.resolved_plan import ResolvedPlan
from accel_engine.run.directory.run_paths import checkpoint_steps, latest_checkpoint, reference
from accel_engine.run.history.history import read_epochs, read_history, read_session
from accel_engine.run.writing.writer import RunWriter
from accel_engine.training.checkpoints.run_saver import RunSaver
from accel_engine.training.commands.command_mailbox import CommandMailbox, StopRequested
from accel_engine.training.core.deadline import Deadline
from accel_engine.training.epochs import Epochs
from accel_engine.training.memory_meters import AllocatedMemory, release_models
from accel_engine.training.preparation import Preparation
from accel_engine.training.recovery.loss_watch import LossTrouble, NotANumberError
from accel_engine.training.recovery.not_finite_cause import Cause, find_cause
from accel_engine.training.recovery.number_recovery import NumberRecovery, newest_until
from accel_engine.training.recovery.out_of_memory import OutOfMemory
from accel_engine.training.recovery.recovery_action import NewProcess, RecoveryAction
from accel_engine.training.reporting.error_explanation import explain_error, print_traceback
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

    _epochs: Epochs | None = None
    _saver: RunSaver | None = None

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
        self._run = run
        self._mailbox = mailbox
        self._reporter = RunReporter(run, first_step, read_epochs(run.directory, first_step), began)
        session = read_session(run.directory)
        self._may_leave = may_leave
        self._memory = OutOfMemory(run, is_remat_tried=is_remat_tried)
        self._numbers = NumberRecovery(session.repairs)
        self._preparation = Preparation(
            resolved,
            self._reporter,
            mailbox,
            inventory,
            deadline or Deadline(),
            self._memory,
            time.monotonic() - max(0.0, clock.now() - session.began) if session.is_restarted else None,
        )

    @property
    def allocated_memory(self) -> AllocatedMemory | None:
        """Reads the allocated memory of the run's devices; ``None`` before they are known."""
        return self._preparation.allocated_memory

    @property
    def devices(self) -> tuple[str, ...]:
        """Ids of the devices that the run trains on; empty before they are known."""
        placement = self._preparation.resolved.placement
        return placement.devices if placement else ()

    def train(self) -> RunEnded | NewProcess:
        """Train until the run finishes, stops or fails, and return the event that ends it; or how it continues."""
        while True:
            ended = self._try_to_train()
            if isinstance(ended, RunEnded):
                return ended
            if self._may_leave and ended.needs_process:
                return NewProcess(self._changed_plan(ended), ended, self._reporter.step)
            self._apply(ended)

    def _try_to_train(self) -> RunEnded | RecoveryAction:
        """Train from the last checkpoint; returns the event that ends the run, or the repair with which it goes on."""
        try:
            self._epochs, self._saver = self._preparation.prepare()
            end = self._epochs.train()
            self._saver.save_model(prove=True)
            self._preparation.wait_for_workers()
        except StopRequested as stop:
            if not stop.now:
                self._preparation.wait_for_workers()
            return self.ended(Outcome.STOPPED, str(stop), self._explain_unsaved() if stop.problem else "")
        except NotANumberError as error:
            return self._recover_from_not_a_number(error.trouble)
        except (Exception, SystemExit) as error:  # noqa: BLE001 (a user's model may raise anything)
            print_traceback(error)
            resolved, compiled = self._preparation.resolved, bool(self._epochs and self._epochs.has_compiled)
            if repair := self._memory.repair(error, resolved, self._reporter.step, compiled=compiled):
                return repair
            self.lost_connection = resolved.strategy.processes and isinstance(error, CONNECTION_ERRORS)
            ended = self.ended(Outcome.FAILED, *explain_error(error, self._preparation.plan))
            return replace(ended, temporary=isinstance(error, (*CONNECTION_ERRORS, ConnectionError, TimeoutError)))
        finally:
            self._preparation.close()
        return self.ended(end.outcome, str(end)) if end else self.ended(Outcome.FINISHED)

    def _recover_from_not_a_number(self, trouble: LossTrouble) -> RunEnded | RecoveryAction:
        """Look for the cause of losses or weights that are not a number; returns the repair, or the end of the run."""
        ended, checkpoints = self.ended(Outcome.FAILED), checkpoint_steps(self._run.directory)
        if self._preparation.resolved.strategy.processes:  # whose workers would have to agree on the cause
            self._preparation.wait_for_workers()
            cause = Cause(unknown="it is not looked for with several processes, which stop here")
            repair = None
        else:
            cause = self._find_cause(trouble, newest_until(trouble.step, checkpoints))
            history, plan = read_history(self._run.directory), self._preparation.plan
            change, rates = history.session.rate, history.learning_rates
            repair = self._numbers.repair(trouble, cause, plan, checkpoints, change, rates)
        if repair:
            return repair
        reason, hint = self._numbers.end(trouble, cause, self._preparation.plan, checkpoints)
        return replace(ended, time=clock.now(), reason=reason, hint=hint)

    def _find_cause(self, trouble: LossTrouble, first: int) -> Cause:
        """Assemble the run again, and take its steps from a checkpoint to the trouble."""
        self._preparation.close()
        self._release()
        self._reporter.enter_phase(Phase.BUILDING, f"looking for the cause: {trouble.text}")
        assemble, directory = self._preparation.assemble_again, self._run.directory
        return find_cause(trouble, assemble, directory, first, lambda: self._mailbox.is_stop_posted)

    def _release(self) -> None:
        """Release the model, its data and its graphs."""
        if self._epochs:
            self._epochs.wait_for_compilation()
        self._epochs = self._saver = None
        release_models()

    def _changed_plan(self, repair: RecoveryAction) -> Plan:
        """The plan with the changes of commands and of a repair."""
        return self._preparation.plan.replace(**{**self._reporter.changes, **repair.changes})

    def _apply(self, repair: RecoveryAction) -> None:
        """Return to the step of a repair, with its changes of the plan, and release what failed."""
        self._release()
        failed = self._reporter.step
        self._preparation.change(self._changed_plan(repair), streams_data=repair.streams_data)
        self._run.write_plan(self._preparation.plan)
        self._run.settle_log()
        self._reporter.rewind(repair.step)
        self._reporter.epochs = read_epochs(self._run.directory, repair.step)
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
            seconds=time.monotonic() - self._reporter.began,
            steps_per_second=epochs.steps_per_second if epochs else 0.0,
            metrics=epochs.metrics if epochs else {},
            reason=reason,
            hint=hint,
            flops_per_second=achieved,
            mfu=mfu,
            model_step=self._saver.model_step if self._saver else None,
        )

    def _explain_unsaved(self) -> str:
        """Say from which step a run can be continued if its last checkpoint may not have been written."""
        directory = self._run.directory
        last = latest_checkpoint(directory)
        if not last:
            return "there is no checkpoint to continue from"
        return f"continue it from step {last:,}: accel-tui continue {reference(directory)}"
