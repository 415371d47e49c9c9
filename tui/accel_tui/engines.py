"""The part of the app that starts runs: keeps a warm engine and hands runs over to it."""

from collections.abc import Callable
from pathlib import Path

from textual import on, work
from textual.reactive import reactive
from textual.types import CSSPathType

from accel_engine.devices import Sampler
from accel_engine.errors import AccelError, EngineMissingError
from accel_engine.launch.warm_engine import EngineState, WarmEngine
from accel_engine.plan import Plan
from accel_engine.text import printable
from accel_tui import messages
from accel_tui.formatting.engine_status import engine_status
from accel_tui.sampling import MakeSampler, SamplingApp


class EngineApp(SamplingApp):
    """Keeps an engine that has imported TensorFlow ahead of time, and starts runs with it.

    Args:
        css_path: CSS files, as Textual takes them.
        make_engine: Makes a warm engine; called in a thread, with a callback for state changes.
        make_sampler: Makes a device sampler; called in a thread, with a callback for samples.
    """

    engine_status: reactive[str] = reactive("", repaint=False)
    """Status of the warm engine, as shown to the user."""

    ready_engine: reactive[WarmEngine | None] = reactive(None, repaint=False)
    """The warm engine once it can describe models."""

    is_starting: reactive[bool] = reactive(False, repaint=False)
    """Whether a run is being started."""

    start_problem: reactive[str] = reactive("", repaint=False)
    """Why the last run could not be started."""

    def __init__(
        self,
        css_path: CSSPathType | None = None,
        *,
        make_engine: Callable[[Callable[[], None]], WarmEngine] = WarmEngine,
        make_sampler: MakeSampler = Sampler,
    ) -> None:
        super().__init__(css_path, make_sampler=make_sampler)
        self._make_engine = make_engine
        self._engine: WarmEngine | None = None

    def on_unmount(self) -> None:
        """Close the warm engine."""
        self._is_closing.set()
        if self._engine:
            self._engine.close()

    def show_run(self, directory: Path) -> None:
        """Open a run; implemented by the app."""
        raise NotImplementedError

    def warm_engine(self) -> None:
        """Start an engine that imports TensorFlow, unless there is one."""
        if self._engine is None:
            self._warm_up()

    @work(thread=True, exclusive=True, exit_on_error=False, group="engine")
    def _warm_up(self) -> None:
        try:
            self._engine = self._make_engine(self._engine_changed)
        except EngineMissingError as error:
            self.post_message(messages.EngineChanged(str(error)))
            return
        self.post_message(messages.EngineChanged())
        if self._is_closing.is_set():
            self._engine.close()

    def _engine_changed(self) -> None:
        self.post_message(messages.EngineChanged())

    @on(messages.EngineChanged)
    def _show_engine(self, event: messages.EngineChanged) -> None:
        self.engine_status = printable(engine_status(self._engine) if self._engine else event.problem)
        self.ready_engine = self._engine if self._engine and self._engine.state is EngineState.READY else None

    def start_run(self, plan: Plan) -> None:
        """Create a run, hand it to an engine, and open it."""
        devices = self.inventory.devices if self.inventory else None

        def start(engine: WarmEngine | None) -> Path:
            from accel_engine.launch import start_run  # here, in a thread: its imports are slow

            return start_run.hand_over(start_run.new_run(plan, devices), engine)

        self._begin(start)

    def continue_run(self, directory: Path) -> None:
        """Continue an ended run from its last checkpoint, and open it."""

        def resume(engine: WarmEngine | None) -> Path:
            from accel_engine.launch import start_run  # see start_run

            return start_run.hand_over(start_run.continued_run(directory), engine)

        self._begin(resume)

    def _begin(self, start: Callable[[WarmEngine | None], Path]) -> None:
        if not self.is_starting:
            self.is_starting, self.start_problem = True, ""
            engine, self._engine = self._engine, None
            self.ready_engine = None
            self._hand_over(start, engine)

    @work(thread=True, exit_on_error=False, group="start")
    def _hand_over(self, start: Callable[[WarmEngine | None], Path], engine: WarmEngine | None) -> None:
        try:
            self.post_message(messages.RunHandedOver(start(engine)))
        except AccelError as error:
            self.post_message(messages.StartFailed(str(error), engine))
        except Exception as error:  # e.g. no process could be started; the next attempt may succeed
            self.post_message(messages.StartFailed(f"{type(error).__name__}: {error}", engine))
            raise

    @on(messages.RunHandedOver)
    def _open(self, event: messages.RunHandedOver) -> None:
        self.is_starting = False
        self.show_run(event.directory)

    @on(messages.StartFailed)
    def _show_failure(self, event: messages.StartFailed) -> None:
        self.is_starting, self.start_problem = False, printable(event.problem)
        if event.engine and (self._engine or event.engine.state is EngineState.HANDED_OVER):
            event.engine.close()  # there is a newer warm engine, or this one has already had a run
        elif event.engine:
            self._engine = event.engine
        self.post_message(messages.EngineChanged())
