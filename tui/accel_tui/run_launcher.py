"""Starts runs, with an engine that has imported TensorFlow ahead of time."""

import threading
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path

from textual.app import App

from accel_engine.devices.device_types import Device
from accel_engine.errors import AccelError, EngineMissingError
from accel_engine.plan import Plan
from accel_engine.process.warm_engine import EngineState, WarmEngine
from accel_engine.text import printable

MakeEngine = Callable[[Callable[[], None]], WarmEngine]
"""Makes a warm engine; called in a thread, with a callback for state changes."""


@dataclass(frozen=True, slots=True)
class LaunchState:
    """State of the warm engine, and of starting a run.

    Attributes:
        engine_status: Status of the warm engine, as shown to the user.
        ready_engine: The warm engine once it can describe models.
        is_starting: Whether a run is being started.
        problem: Why the last run could not be started.
    """

    engine_status: str = ""
    ready_engine: WarmEngine | None = None
    is_starting: bool = False
    problem: str = ""


class RunLauncher:
    """Keeps a warm engine, and starts runs with it in threads.

    Args:
        app: Runs the threads; their results are handled in its message loop.
        make_engine: Makes a warm engine.
        on_change: Called with each new state.
        on_start: Called with the directory of a run that an engine has taken.
    """

    def __init__(
        self,
        app: App[None],
        make_engine: MakeEngine,
        on_change: Callable[[LaunchState], None],
        on_start: Callable[[Path], None],
    ) -> None:
        self._app = app
        self._make_engine = make_engine
        self._on_change = on_change
        self._on_start = on_start
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

    def start_run_unless_busy(
        self, plan: Plan, devices: Sequence[Device] | None, on_busy: Callable[[Sequence[str]], None]
    ) -> None:
        """Start a run as :meth:`start_run` does, unless other runs train on its devices.

        Args:
            plan: The plan.
            devices: The devices of the machine; ``None`` if they are not known, which are then not looked at.
            on_busy: Called with the ids of those runs, instead.
        """

        def look() -> None:
            from accel_engine.run_queue.machine import busy_runs  # here, in a thread: its imports are slow

            self._app.call_later(start, busy_runs(plan, devices or ()) if devices else [])

        def start(busy: Sequence[str]) -> None:
            self._set(replace(self._state, is_starting=False))
            if busy:
                on_busy(busy)
            else:
                self.start_run(plan, devices)

        if not self._state.is_starting:
            self._set(replace(self._state, is_starting=True, problem=""))
            self._app.run_worker(look, thread=True, exit_on_error=False, group="start")

    def queue_run(self, plan: Plan, devices: Sequence[Device] | None) -> None:
        """Create a run that waits in the queue."""

        def add() -> None:
            from accel_tui.plan.queued_plan import queue_plan  # here, in a thread: its imports are slow

            try:
                said = queue_plan(plan, devices)
            except AccelError as error:
                self._app.call_later(done, "", str(error))
            else:
                self._app.call_later(done, said)

        def done(said: str, problem: str = "") -> None:
            self._set(replace(self._state, is_starting=False, problem=printable(problem)))
            if said:
                self._app.notify(said, title="Queued", markup=False)

        if not self._state.is_starting:
            self._set(replace(self._state, is_starting=True, problem=""))
            self._app.run_worker(add, thread=True, exit_on_error=False, group="start")

    def start_run(self, plan: Plan, devices: Sequence[Device] | None) -> None:
        """Create a run, and hand it to an engine."""

        def start(engine: WarmEngine | None) -> Path:
            from accel_engine.process import start_run  # here, in a thread: its imports are slow

            directory = start_run.prepare_run(plan, devices)
            start_run.hand_over(directory, engine)
            return directory

        self._begin(start)

    def continue_run(self, directory: Path, epochs: int | None = None) -> None:
        """Continue an ended run from its last checkpoint.

        Args:
            directory: The run's directory.
            epochs: Number of epochs in total; that of the run's plan if omitted.
        """
        changes = {} if epochs is None else {"epochs": epochs}

        def resume(engine: WarmEngine | None) -> Path:
            from accel_engine.process import start_run  # see start_run

            continued = start_run.prepare_continuation(directory, changes)
            start_run.hand_over(continued, engine)
            return continued

        self._begin(resume)

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
        self._on_change(state)

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

    def _begin(self, start: Callable[[WarmEngine | None], Path]) -> None:
        if not self._state.is_starting:
            self._set(replace(self._state, is_starting=True, problem="", ready_engine=None))
            engine, self._engine = self._engine, None
            work = partial(self._hand_over, start, engine)
            self._app.run_worker(work, thread=True, exit_on_error=False, group="start")

    def _hand_over(self, start: Callable[[WarmEngine | None], Path], engine: WarmEngine | None) -> None:
        try:
            self._app.call_later(self._started, start(engine))
        except AccelError as error:
            self._app.call_later(self._failed, str(error), engine)
        except Exception as error:  # e.g. no process could be started; the next attempt may succeed
            self._app.call_later(self._failed, f"{type(error).__name__}: {error}", engine)
            raise

    def _started(self, directory: Path) -> None:
        self._set(replace(self._state, is_starting=False))
        self._on_start(directory)

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
