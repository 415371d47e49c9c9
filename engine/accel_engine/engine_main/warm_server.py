"""Answers a dashboard's requests to describe plans, until it hands over a run."""

import os
import queue
import sys
import threading
import traceback
from pathlib import Path

from accel_engine.engine_main.request_server import answer
from accel_engine.engine_main.tensorflow_import import TensorFlowImport
from accel_engine.errors import AccelError
from accel_engine.models import UserModel, find
from accel_engine.process.engine_process import find_installation, package_versions
from accel_engine.requests.describe_model import Description, ModelRequest
from accel_engine.requests.protocol.channel import Channel, ProtocolError
from accel_engine.requests.protocol.request import EngineReady, Problem, RunHandedOver


class WarmServer:
    """Serves a dashboard until it hands over a run.

    Plans are described in a separate thread, so that a run starts at once even while the user's function, which may be
    slow or hang, is running. After the first description, the process trains a small model, to make the first steps of
    the run faster; a run that is handed over meanwhile waits for it, some tenths of a second at most.

    Args:
        tensorflow: Imported ahead, unless that would claim an accelerator.
        channel: Connects it with the dashboard.

    Attributes:
        needs_restart: Whether this process can no longer train, because the user's code has run in it or TensorFlow's
            devices are initialized.
    """

    def __init__(self, tensorflow: TensorFlowImport, channel: Channel) -> None:
        self._tensorflow = tensorflow
        self._channel = channel
        self._claims = find_installation().distribution == "tensorflow-tpu"
        self._requests: queue.SimpleQueue[tuple[ModelRequest, int]] = queue.SimpleQueue()
        self._lock = threading.Lock()
        self._serving = True
        self._warmed_up = False
        self.needs_restart = False

    def serve(self) -> Path | None:
        """Answer requests; returns the run's directory, or ``None`` when the dashboard has exited."""
        for target in (self._announce, self._describe_all):
            threading.Thread(target=target, name=target.__name__.strip("_"), daemon=True).start()
        while True:
            try:
                received = self._channel.receive(ModelRequest, RunHandedOver)
            except ProtocolError as error:
                print(error, file=sys.stderr, flush=True)  # noqa: T201 (the dashboard shows the last line)
                return None
            if received is None:
                return None
            message, number = received
            if isinstance(message, RunHandedOver):
                with self._lock:
                    self._serving = False
                return message.directory
            if isinstance(message, Problem):
                self._reply(message, number)
            else:
                self._requests.put((message, number))

    def _announce(self) -> None:
        if not self._claims:
            try:
                self._tensorflow.wait()
            except AccelError as error:
                with self._lock:
                    if not self._serving:
                        return  # the run will report it
                    print(error, file=sys.stderr, flush=True)  # noqa: T201 (the dashboard shows the last line)
                    os._exit(1)
        self._reply(EngineReady(package_versions()))

    def _describe_all(self) -> None:
        while True:
            request, number = self._requests.get()
            with self._lock:
                if not self._serving:
                    return
                before, self.needs_restart = self.needs_restart, True  # until it is known
            reply = self._describe(request)
            self.needs_restart = before or self._must_restart(request.plan.model)
            self._reply(reply, number)
            self._warm_up()

    def _warm_up(self) -> None:
        """Train a small model once; not in a process that must restart for a run, or has one."""
        if self._claims or self._warmed_up or not self._tensorflow.imported:
            return
        from accel_engine.training.measure_model import warm_up

        with self._lock:
            if self._serving and not self.needs_restart:
                self._warmed_up = True
                try:
                    warm_up()
                except Exception:  # noqa: BLE001 (it only saves time; the next description or run reports any problem)
                    traceback.print_exc()

    def _describe(self, request: ModelRequest) -> Description | Problem:
        if self._claims:
            return Problem("not available before training starts: describing the model would claim the TPU")
        return answer(request, lambda _: None, self._tensorflow)

    def _must_restart(self, model: str) -> bool:
        if self._claims or not self._tensorflow.imported:
            return False  # no model has been built
        from accel_engine.private_names.tensorflow_names import devices_are_configurable

        try:
            own = isinstance(find(model), UserModel)
        except AccelError:
            own = False  # there is no such model, so no user code has run
        return own or not devices_are_configurable()

    def _reply(self, reply: EngineReady | Description | Problem, number: int = 0) -> None:
        with self._lock:
            if self._serving:
                self._channel.send(reply, number)
