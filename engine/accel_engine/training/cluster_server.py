"""Serving a coordinator: what a worker or a parameter server does in place of training."""

import time
from concurrent.futures import Future

import tensorflow as tf
from tensorflow.python.eager import context

from accel_engine import clock, data
from accel_engine.cluster_spec import ClusterSpec
from accel_engine.data.dataset import Dataset
from accel_engine.devices.reading import Inventory
from accel_engine.errors import DataError
from accel_engine.events import DevicesFound, Outcome, Phase, RunEnded, Warned
from accel_engine.plan import Plan
from accel_engine.run.writer import RunWriter
from accel_engine.training import device_visibility
from accel_engine.training.allocated_memory import Allocator
from accel_engine.training.command_mailbox import CommandMailbox
from accel_engine.training.run_reporter import RunReporter
from accel_engine.training.worker_data import WorkerDataSource


class ClusterServer:
    """Does what a coordinator asks, through TensorFlow's own server, until it is told to stop.

    Args:
        plan: What the coordinator trains.
        cluster: All processes, and which of them this is.
        run: Where everything is written.
        mailbox: Where commands arrive.
        inventory: The machine's devices.
        began: When the engine took the run up, by ``time.monotonic()``.
    """

    allocator: Allocator | None = None
    """What tells how much memory the devices have in use, once they are known."""

    cut_off = False
    """Never: whether the coordinator is there is for those to see who watch it."""

    def __init__(
        self,
        plan: Plan,
        cluster: ClusterSpec,
        run: RunWriter,
        mailbox: CommandMailbox,
        inventory: Inventory,
        began: float,
    ) -> None:
        self._plan = plan
        self._cluster = cluster
        self._mailbox = mailbox
        self._inventory = inventory
        self._progress = RunReporter(run, 0)
        self._began = began
        self._examples: Future[Dataset] = Future()

    def train(self) -> RunEnded:
        """Serve, and return the event that ends the run: it has no work of its own that could be left undone.

        Raises:
            PlanError: The plan's devices are not there.
            tf.errors.OpError: The server cannot be started.
        """
        self._progress.enter(Phase.BUILDING)
        names = device_visibility.configure(self._plan, self._inventory)
        self._offer = WorkerDataSource(self._examples, self._cluster.name)
        spec = {"chief": [self._cluster.coordinator], "worker": self._cluster.workers, "ps": self._cluster.servers}
        self._server = tf.distribute.Server(
            tf.train.ClusterSpec({role: list(addresses) for role, addresses in spec.items()}),
            job_name=self._cluster.role,
            task_index=self._cluster.index,
            protocol="grpc",
            config=context.context().config,  # a server knows nothing of the devices that were just laid out
        )
        if self._cluster.role == "worker":
            devices = device_visibility.found(names, self._inventory)
            self.allocator = Allocator(devices)
            self._progress.say(DevicesFound, devices=devices, strategy="ParameterServerStrategy")
            self._read()
        while (command := self._mailbox.wait()).name not in ("stop", "stop_now"):
            self._progress.answer(
                command, obeyed=False, answer="only the coordinator is asked: its run has the training"
            )
        self._progress.answer(command, obeyed=True, answer="stopped")
        return self.ended(Outcome.FINISHED, command.origin)

    def _read(self) -> None:
        """Read the plan's data for the steps that are handed to this worker; where that fails, they say why."""
        try:
            dataset = data.load(self._plan.data, image_size=self._plan.image_size, seed=self._plan.seed)
            self._examples.set_result(dataset)
        except DataError as error:
            self._examples.set_exception(error)
            self._progress.say(Warned, message=str(error))

    def ended(self, outcome: Outcome, reason: str = "", hint: str = "") -> RunEnded:
        """The event that ends the run."""
        return RunEnded(
            time=clock.now(),
            outcome=outcome,
            steps=0,
            epochs=0,
            seconds=time.monotonic() - self._began,
            steps_per_second=0.0,
            metrics={},
            reason=reason,
            hint=hint,
        )
