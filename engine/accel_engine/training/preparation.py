"""Prepares the training of a run: its devices, its model and data, and the checkpoint that it continues from."""

import math
import threading
import time
from collections.abc import Callable
from contextlib import ExitStack
from dataclasses import replace
from functools import partial

import keras
import tensorflow as tf

from accel_engine.data_profile import ProfiledData, profile_data
from accel_engine.devices.device_types import Inventory
from accel_engine.doctor.tf_probe import refuse_xla_flags
from accel_engine.events import Phase, Warned
from accel_engine.keras_support.optimizers import set_rate
from accel_engine.plan import Plan
from accel_engine.plan.resolved_plan import ResolvedPlan
from accel_engine.private_names.keras_names import all_layers
from accel_engine.run import diagnostics
from accel_engine.run.history.history import read_session
from accel_engine.training.assembly_report import measured_metrics, report_assembly
from accel_engine.training.autotuning.run_threads import RunThreads
from accel_engine.training.checkpoints.checkpoint import Checkpoints
from accel_engine.training.checkpoints.run_saver import RunSaver
from accel_engine.training.commands.command_mailbox import CommandMailbox
from accel_engine.training.core import device_visibility
from accel_engine.training.core.assembly import Assembly, assemble, build_strategy
from accel_engine.training.core.batches import Batches, training_batches
from accel_engine.training.core.deadline import Deadline
from accel_engine.training.core.metric_states import MAX_EPOCH_STATE
from accel_engine.training.distributed import strategy_builders
from accel_engine.training.distributed.strategy_builders import explain_connection, reduction_over_workers
from accel_engine.training.distributed.worker_sync import WorkerSync, link_worker_runs, was_lost_early
from accel_engine.training.epochs import Epochs
from accel_engine.training.evaluation.validation import validation_of
from accel_engine.training.memory_meters import AllocatedMemory, release_models
from accel_engine.training.progress.due_actions import DueActions
from accel_engine.training.recovery.out_of_memory import OutOfMemory
from accel_engine.training.reporting.error_explanation import print_traceback
from accel_engine.training.reporting.run_reporter import RunReporter


class Preparation:
    """Prepares the training of one run in one process, again after each repair.

    TensorFlow's devices are configured once, and the strategy is built once.

    Args:
        resolved: The plan.
        reporter: The run's step and phase.
        mailbox: Receives commands.
        inventory: The machine's devices.
        deadline: Limits the time of connecting to a TPU.
        memory: Takes note of what is trained.
        trains_since: When an engine before this one began to train, by ``time.monotonic()``; ``None`` for none.

    Attributes:
        resolved: The plan, with the model that ``auto`` stands for, and the changes of repairs.
        allocated_memory: Reads the allocated memory of the run's devices, once they are known.
    """

    def __init__(
        self,
        resolved: ResolvedPlan,
        reporter: RunReporter,
        mailbox: CommandMailbox,
        inventory: Inventory,
        deadline: Deadline,
        memory: OutOfMemory,
        trains_since: float | None = None,
    ) -> None:
        self.resolved = resolved
        self.allocated_memory: AllocatedMemory | None = None
        self._reporter, self._run = reporter, reporter.run
        self._mailbox = mailbox
        self._inventory = inventory
        self._deadline = deadline
        self._memory = memory
        self._opened = ExitStack()
        self._device_names: tuple[str, ...] = ()
        self._strategy: tf.distribute.Strategy | None = None
        self._sync: WorkerSync | None = None
        self._threads: RunThreads | None = None
        self._trains_since = trains_since

    @property
    def plan(self) -> Plan:
        """The run's plan, from :attr:`resolved`."""
        return self.resolved.plan

    def prepare(self) -> tuple[Epochs, RunSaver]:
        """Assemble the run, and restore the checkpoint that it continues from.

        Raises:
            AccelError: The plan cannot be trained, or no checkpoint can be restored.
        """
        assembly, memory = self._assemble()
        self._memory.note(assembly)
        batches, checkpoints = self._restore(assembly)
        validation, problem = validation_of(assembly, memory)
        report = report_assembly(assembly, self._inventory, self._reporter, can_validate=not problem)
        if problem:
            self._reporter.emit(Warned, message=f"training without validation: {problem}")
        if assembly.chief and diagnostics.read(self._run.directory).profile is None:
            self._opened.callback(start_profiling(assembly, self._reporter))
        self.allocated_memory = AllocatedMemory(report.devices)
        due_actions = DueActions(
            self.plan,
            report.built.monitor,
            measured_metrics(assembly),
            (*report.built.series, *measured_metrics(assembly, MAX_EPOCH_STATE)),
            self._reporter,
            self._agree,
            validates=validation is not None,
            since=self._trains_since,
        )
        self._trains_since = self._trains_since or time.monotonic()
        saver = RunSaver(assembly, self._reporter, checkpoints, due_actions)
        epochs = Epochs(
            assembly,
            batches,
            validation or problem or _why_unvalidated(self.plan),
            saver,
            due_actions,
            self._reporter,
            self._mailbox,
            self._sync,
            report.hardware,
            self._threads,
            checkpoints.epoch_states,
        )
        return epochs, saver

    def assemble_again(self) -> Assembly:
        """Assemble the run once more, without what was assembled before."""
        self.allocated_memory = None
        release_models()
        memory = device_visibility.device_memory(self._device_names, self.resolved, self._inventory)
        return assemble(self.resolved, self._device_names, memory, strategy=self._strategy)

    def change(self, plan: Plan, *, streams_data: bool) -> None:
        """Prepare another plan from now on.

        Args:
            plan: The plan.
            streams_data: Whether training examples are no longer cached on the devices.
        """
        self.allocated_memory = None
        streams_data = streams_data or self.resolved.streams_data
        self.resolved = replace(self.resolved, plan=plan, streams_data=streams_data)

    def close(self) -> None:
        """Stop reading ahead, and wait for the thread that profiles the data."""
        self._opened.close()

    def wait_for_workers(self) -> None:
        """Wait for the other workers, so that none takes an earlier end for a lost connection."""
        if self._sync:
            self._sync.all_gather(0.0)

    def _assemble(self) -> tuple[Assembly, int | None]:
        """Assemble the run on its devices; returns their memory, too: bytes of each, or ``None`` for host memory."""
        if self._strategy is None:  # TensorFlow's devices are configured once in a process
            self._device_names = self._configure_devices()
            self._strategy = build_strategy(self._device_names, self.resolved)
            self._sync_start_step(self._strategy, self._device_names)
        names, strategy = self._device_names, self._strategy
        memory = device_visibility.device_memory(names, self.resolved, self._inventory)
        trained = diagnostics.read(self._run.directory) if self._reporter.step else None
        assembly = assemble(self.resolved, names, memory, trained, self._report_progress, strategy)
        if assembly.plan.model != self.plan.model:
            self.resolved = assembly.resolved
            self._run.write_plan(self.plan)
            self._reporter.emit(Warned, message=f"model auto: {self.plan.model}", severity="information")
        return assembly, memory

    def _restore(self, assembly: Assembly) -> tuple[Batches, Checkpoints]:
        """Restore the checkpoint that the run continues from, if there is one, with the layers that trained then."""
        batches = training_batches(assembly)
        self._opened.callback(batches.close)
        checkpoints = Checkpoints(assembly, self._run.directory, batches)
        if self._reporter.step:
            self._restore_newest(checkpoints)
            self._repeat_rate(assembly)
        step = self._reporter.step
        self._run.wait_for_disk(partial(checkpoints.delete_after, step))
        epochs, done = batches.restore(step)
        self._reporter.epochs = epochs
        if assembly.freezing.is_due(epochs + (done > 0)):  # in an epoch that began before the checkpoint
            assembly.freezing.end()
        return batches, checkpoints

    def _repeat_rate(self, assembly: Assembly) -> None:
        """Set the learning rate that a command has set after the checkpoint was saved; the chief's on all workers."""
        change = read_session(self._run.directory).rate
        rate = change.learning_rate if change and change.step >= self._reporter.step else math.nan
        if self._sync:  # workers that a restarted chief has started know nothing of the session before
            rate = float(self._sync.all_gather(rate)[0, 0])
        if not math.isnan(rate) and assembly.optimizer is not None:
            set_rate(assembly.optimizer, rate)

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
            self._reporter.rewind(step)
        if checkpoints.unverified:
            problem = f"the checksums of the checkpoint of step {step:,} were damaged: its files could not be verified"
            self._reporter.emit(Warned, message=problem)
        if damaged:
            lost = f"continuing from step {step:,}; steps {step + 1:,} to {newest:,} are trained again"
            self._reporter.emit(Warned, message=f"{'; '.join(damaged)}: {lost}")

    def _configure_devices(self) -> tuple[str, ...]:
        """Configure the plan's devices, with a time limit for connecting to a TPU."""
        endpoint = self.resolved.tpu
        if endpoint is None:
            self._reporter.enter_phase(Phase.BUILDING)
            refuse_xla_flags(with_xla=self.resolved.plan.xla == "on")
            self._inventory = device_visibility.with_tensorflow_gpus(self._inventory)
            self.resolved = device_visibility.place_on_visible(self.resolved, self._inventory)
            if note := device_visibility.missing_readings(self._inventory):
                self._reporter.emit(Warned, message=note)
            self._threads = RunThreads(self.resolved, self._inventory, self._reporter)
            self._threads.report()
            return device_visibility.configure(self.resolved, self._inventory, self._threads.choice.setting)
        self._reporter.enter_phase(Phase.BUILDING, f"connecting to the TPU: {endpoint.target}")
        limit = strategy_builders.TPU_CONNECT_TIMEOUT_SECONDS
        with self._deadline.within(limit, partial(explain_connection, endpoint, f"no answer within {limit:g} s")):
            return strategy_builders.connect_tpu(endpoint)

    def _sync_start_step(self, strategy: tf.distribute.Strategy, names: tuple[str, ...]) -> None:
        """Continue from the newest checkpoint that all workers have, if there are several; anew if one was lost early.

        Raises:
            RunError: A worker has no checkpoint any more, but others do.
        """
        cluster = self.resolved.cluster
        if cluster is None or cluster.coordinated:  # a coordinator decides alone
            return
        self._sync = WorkerSync(strategy, cluster)
        newest = self._reporter.step
        step = self._sync.start_step(newest, lost_early=not newest and was_lost_early(self._run.directory))
        if step < newest:
            self._reporter.rewind(step)
            why = "has no newer checkpoint" if step else "was lost before its first checkpoint: training begins anew"
            self._reporter.emit(Warned, message=f"another worker {why}; steps {step + 1:,} to {newest:,} are repeated")
        reduction = reduction_over_workers(names, self.resolved)
        self._run.write_event(link_worker_runs(self._sync, cluster, self._run.directory, reduction))

    def _agree(self, flag: bool) -> bool:
        """The chief's decision, for all workers to follow."""
        return bool(self._sync.broadcast(flag)) if self._sync else flag

    def _report_progress(self, done: int, total: int) -> None:
        """Show how much of the data is read, as a detail of the phase."""
        shown = f"reading {done:,} of {total:,}" if total else f"reading {done:,}"
        self._reporter.enter_phase(Phase.BUILDING, shown)


def _why_unvalidated(plan: Plan) -> str:
    """Why a run does not validate whose model could be validated."""
    if plan.validation == "off":
        return "the run has --validation off: stop it, and continue it with --validation epoch"
    return "there is no validation data"


def start_profiling(assembly: Assembly, reporter: RunReporter) -> Callable[[], None]:
    """Write the profile of an assembly's data when it is known; returns a function that waits for it."""
    data, step = profiled_data(assembly), reporter.step

    def write() -> None:
        try:
            if (found := profile_data(data)) is not None:
                reporter.run.write_diagnostics(found, step)
        except Exception as error:  # noqa: BLE001 (a user's file may raise anything; training does not need this)
            print_traceback(error)

    thread = threading.Thread(target=write, name="data profile", daemon=True)
    thread.start()
    return thread.join


def profiled_data(assembly: Assembly) -> ProfiledData:
    """The data of an assembly, as its profile takes them."""
    dataset = assembly.dataset
    embeds = any(isinstance(layer, keras.layers.Embedding) for layer in all_layers(assembly.model))
    return ProfiledData(
        dataset.train,
        dataset.validation,
        assembly.scale,
        dataset.classes if assembly.task.name in ("classification", "custom") else 0,
        dataset.feature_names,
        dataset.kind in ("tokens", "text") or embeds,
    )
