"""Starts runs, with an engine that has imported TensorFlow ahead of time."""

import asyncio
import os
import threading
from collections.abc import Awaitable, Callable, Coroutine, Sequence
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path
from typing import Any

from textual.app import App
from textual.message import Message
from textual.screen import Screen

from accel_engine.devices.device_types import Device
from accel_engine.errors import AccelError, EngineMissingError
from accel_engine.plan import Plan
from accel_engine.process.warm_engine import EngineState, WarmEngine
from accel_engine.text import printable

MakeEngine = Callable[[Callable[[], None]], WarmEngine]
"""Makes a warm engine; called in a thread, with a callback for state changes."""


@dataclass(frozen=True, slots=True)
class LaunchState:
    """State of the warm engine, and of starting a run."""

    engine_status: str = ""
    """Status of the warm engine, as shown to the user."""
    ready_engine: WarmEngine | None = None
    """The warm engine once it can describe models."""
    is_starting: bool = False
    """Whether a run is being started."""
    problem: str = ""
    """Why the last run could not be started."""


class RunLauncher:
    """Keeps a warm engine, and starts runs with it in threads.

    Args:
        app: Runs the threads, and gets the messages.
        make_engine: Makes a warm engine.
    """

    @dataclass
    class Changed(Message):
        """There is a new state."""

        state: LaunchState

    @dataclass
    class Started(Message):
        """An engine has taken a run."""

        directory: Path
        asked_on: Screen[Any]
        """The screen on which the user started it."""

    def __init__(self, app: App[None], make_engine: MakeEngine) -> None:
        self._app = app
        self._make_engine = make_engine
        self._state = LaunchState()
        self._engine: WarmEngine | None = None
        self._is_closing = threading.Event()  # an engine that is made later is closed by its own thread

    def close(self) -> None:
        """Close the warm engine."""
        self._is_closing.set()
        if self._engine:
            self._engine.close()

    def warm_engine(self) -> None:
        """Start an engine that imports TensorFlow, unless there is one."""
        if self._engine is None:
            self._app.run_worker(self._warm_up, thread=True, exclusive=True, exit_on_error=False, group="engine")

    async def busy_runs(self, plan: Plan, devices: Sequence[Device] | None) -> Sequence[str] | None:
        """The ids of runs that train on the devices of a plan.

        Args:
            plan: The plan.
            devices: The devices of the machine; ``None`` if they are not known, which are then not looked at.

        Returns:
            The ids; ``None`` while a run is being started.
        """
        if not self._begin():
            return None
        try:
            return await asyncio.to_thread(_busy_runs, plan, devices) if devices else ()
        finally:
            self._set(replace(self._state, is_starting=False))

    async def queue_run(self, plan: Plan, devices: Sequence[Device] | None) -> None:
        """Create a run that waits in the queue."""
        if not self._begin():
            return
        problem = ""
        try:
            said = await asyncio.to_thread(_queue_plan, plan, devices)
            self._app.notify(said, title="Queued", markup=False)
        except AccelError as error:
            problem = str(error)
        self._set(replace(self._state, is_starting=False, problem=printable(problem)))

    def start_run(self, plan: Plan, devices: Sequence[Device] | None, asked_on: Screen[Any] | None = None) -> None:
        """Create a run, and hand it to an engine.

        Args:
            plan: The plan.
            devices: The devices of the machine; ``None`` if they are not known.
            asked_on: The screen on which the user started it; the one that is shown if omitted.
        """
        if self._begin():
            prepared = asyncio.to_thread(_prepare_run, plan, devices)
            self._work(self._hand_over(prepared, asked_on or self._app.screen))

    async def start_elsewhere(self, prepare: Callable[[], Path | str], asked_on: Screen[Any]) -> None:
        """Start a run on another machine.

        Args:
            prepare: Starts it, in a thread; returns its directory, or what its place calls a run that is not here.
            asked_on: The screen on which the user started it.
        """
        if not self._begin():
            return
        problem = ""
        try:
            started = await asyncio.to_thread(prepare)
        except AccelError as error:
            problem = str(error)
        else:
            if isinstance(started, Path):
                self._app.post_message(self.Started(started, asked_on))
            else:
                self._app.notify(started, title="Taken", markup=False)
        self._set(replace(self._state, is_starting=False, problem=printable(problem)))

    def continue_run(self, directory: Path, epochs: int | None = None) -> None:
        """Continue an ended run from its last checkpoint.

        Args:
            directory: The run's directory.
            epochs: Number of epochs in total; as in the run's plan if omitted.
        """
        if self._begin():
            prepared = asyncio.to_thread(_prepare_continuation, directory, epochs)
            self._work(self._hand_over(prepared, self._app.screen))

    def restart_with_less_memory(self, directory: Path) -> None:
        """Start the engine of a lost run again if memory was the reason, and its plan can take less."""
        from accel_engine.keep_alive.memory_restart import restart_with_less_memory  # seldom needed

        work = partial(restart_with_less_memory, directory)
        self._app.run_worker(work, thread=True, exit_on_error=False, group="restart")

    def clear_problem(self) -> None:
        """Forget why the last run could not be started."""
        self._set(replace(self._state, problem=""))

    def _set(self, state: LaunchState) -> None:
        self._state = state
        self._app.post_message(self.Changed(state))

    def _warm_up(self) -> None:
        try:
            self._engine = self._make_engine(self._post_update)
        except EngineMissingError as error:
            self._app.call_later(self._update, str(error))
            return
        self._post_update()
        if self._is_closing.is_set():
            self._engine.close()

    def _post_update(self) -> None:
        self._app.call_later(self._update)

    def _update(self, problem: str = "") -> None:
        engine = self._engine
        self._set(
            replace(
                self._state,
                engine_status=printable(engine_status(engine) if engine else problem),
                ready_engine=engine if engine and engine.state is EngineState.READY else None,
            )
        )

    def _begin(self) -> bool:
        """Say that a run is being started; returns whether none was already."""
        if self._state.is_starting:
            return False
        self._set(replace(self._state, is_starting=True, problem=""))
        return True

    def _work(self, work: Coroutine[Any, Any, None]) -> None:
        self._app.run_worker(work, exit_on_error=False, group="start")

    async def _hand_over(self, prepared: Awaitable[Path], asked_on: Screen[Any]) -> None:
        engine, self._engine = self._engine, None
        self._set(replace(self._state, ready_engine=None))
        try:
            directory = await prepared
            if not await asyncio.to_thread(_hand_over, directory, engine):
                self._engine = engine
        except AccelError as error:
            self._failed(str(error), engine)
        except Exception as error:  # e.g. no process could be started; the next attempt may succeed
            self._failed(f"{type(error).__name__}: {error}", engine)
            raise
        else:
            self._set(replace(self._state, is_starting=False))
            self._app.post_message(self.Started(directory, asked_on))

    def _failed(self, problem: str, engine: WarmEngine | None) -> None:
        if engine and (self._engine or engine.state is EngineState.HANDED_OVER):
            engine.close()  # there is a newer warm engine, or this one has already had a run
        elif engine:
            self._engine = engine
        self._set(replace(self._state, is_starting=False, problem=printable(problem)))
        self._update()


def engine_status(engine: WarmEngine) -> str:
    """The state of a warm engine, as the top bar shows it."""
    match engine.state:
        case EngineState.IMPORTING:
            return "engine: importing TensorFlow…"
        case EngineState.READY:
            return f"engine: ready (TensorFlow {engine.versions.get('tensorflow', '?')})"
        case EngineState.HANDED_OVER:
            return "engine: training"
        case EngineState.FAILED:
            return engine.problem


# In threads: their imports are slow.


def _busy_runs(plan: Plan, devices: Sequence[Device]) -> Sequence[str]:
    from accel_engine.run_queue.free_devices import busy_runs

    return busy_runs(plan, devices)


def _queue_plan(plan: Plan, devices: Sequence[Device] | None) -> str:
    """Create a run that waits in the queue, and say which; a machine of ``None`` is detected."""
    from accel_engine.devices import detect
    from accel_engine.process.start_run import prepare_run
    from accel_engine.run.writing.waiting_run import handing_over
    from accel_engine.run_queue import queue
    from accel_engine.run_queue.needs import find_need

    machine = detect().devices if devices is None else devices
    find_need(plan, None, machine, os.environ)
    directory = prepare_run(plan, machine, queued=True)
    with handing_over(directory, "it could not be queued", is_new=True):
        queue.enqueue(directory)
    position = next((entry.position for entry in queue.entries() if entry.run == directory.name), 0)
    return f"{directory.name}, position {position}" if position else directory.name


def _prepare_run(plan: Plan, devices: Sequence[Device] | None) -> Path:
    from accel_engine.process import start_run

    return start_run.prepare_run(plan, devices)


def _prepare_continuation(directory: Path, epochs: int | None) -> Path:
    from accel_engine.process import start_run

    return start_run.prepare_continuation(directory, {} if epochs is None else {"epochs": epochs})


def _hand_over(directory: Path, engine: WarmEngine | None) -> bool:
    """Hand a run to an engine; returns whether it needed one here: on a host, one has it already."""
    from accel_engine.process import start_run
    from accel_engine.run.directory.run_paths import host_of_run

    if host_of_run(directory):
        return False
    start_run.start_on_engine(directory, engine)
    return True
