"""Records one training loop of a script: holds what it logs until the recorder thread takes it."""

from collections import deque
from collections.abc import Callable, Iterator, Mapping
from typing import Any, TypeAlias

from accel_engine import clock, events
from accel_engine.errors import format_error
from accel_engine.recording import script
from accel_engine.recording.loop_steps import LoggedRow, LoopSteps
from accel_engine.recording.recorder_thread import PendingAnswer, PendingMedia, QueueItem, RecorderThread
from accel_engine.recording.run_link import RunLink
from accel_engine.recording.value_snapshots import PLAIN, snapshot_value
from accel_engine.run.engine.commands import Command, answered
from accel_engine.run.media import MediaItem
from accel_engine.training.commands.command_mailbox import CommandMailbox

MAX_ROWS = 100_000
"""Maximum number of calls of ``log`` that wait for the recorder thread, about 40 MB; more are dropped."""

MAX_MEDIA = 64
"""Maximum number of images, texts and histograms that wait for it."""

LoggedMedia: TypeAlias = tuple[Any, float, str, Callable[[], MediaItem]]
"""A step, when it was logged, a name, and a function that makes the item."""


class LoopSession:
    """Records one loop, until it ends.

    Nothing here holds a lock: Ctrl-C and signal handlers may interrupt the script anywhere, and call any method.

    Args:
        link: Where to send.
        steps: Steps that the loop will take; 0 if unknown.

    Attributes:
        should_stop: Whether a command has asked to stop.
    """

    def __init__(self, link: RunLink, steps: int) -> None:
        self.should_stop = False
        self._stopped = ""
        self._logged: deque[LoggedRow] = deque()
        self._media: deque[LoggedMedia] = deque()
        self._dropped = self._reported_drops = 0
        self._mailbox = CommandMailbox()
        self._commands: deque[Command] = deque()
        self._takes_commands = False
        self._paused_at: float | None = None
        self._outcome: tuple[events.Outcome, str] | None = None
        self._exception_before = script.last_exception()
        self._steps = LoopSteps(link.step, link.epochs)
        self._began = clock.now()
        self._thread = RecorderThread(link, self._mailbox, self._end_if_left, self._collect)
        self._built = _built(link.step + steps) if steps else None

    def begin(self) -> None:
        """Start the run.

        Raises:
            RuntimeError: There are too many threads.
        """
        self._thread.begin()
        if self._built:
            self._thread.put(self._built)
        self._thread.put(events.PhaseChanged(time=clock.now(), phase=events.Phase.TRAINING))

    @property
    def writing(self) -> bool:
        """Whether the loop is recorded: false after its end, after a failed write, and in a forked child."""
        return self._thread.writing

    def check(self) -> None:
        """Raise the error that has ended the recording.

        Raises:
            Exception: The recording has failed; raised once.
        """
        self._thread.check()

    def log(self, step: Any, values: Mapping[str, Any]) -> None:
        """Record values of a step; takes microseconds.

        Args:
            step: A whole number.
            values: Values by name; the mapping stays unchanged.
        """
        if not PLAIN.issuperset(map(type, values.values())):
            values = {name: snapshot_value(value) for name, value in values.items()}
        if type(step) is not int:
            step = snapshot_value(step)
        if len(self._logged) < MAX_ROWS:
            self._logged.append((step, clock.now(), values))
        else:
            self._dropped += 1

    def log_media(self, step: Any, name: str, make: Callable[[], MediaItem]) -> None:
        """Record an image, a text or a histogram.

        Args:
            step: A whole number.
            name: Its name.
            make: Makes it, in the recorder thread.
        """
        if len(self._media) < MAX_MEDIA:
            self._media.append((snapshot_value(step), clock.now(), str(name), make))
        else:
            self._dropped += 1

    def warn(self, message: str) -> None:
        """Record a warning."""
        self._thread.put(events.Warned(time=clock.now(), message=message))

    def command(self) -> Command | None:
        """Take the next command for the script; ``None`` if there is none."""
        self._takes_commands = True
        try:
            command = self._commands.popleft()
        except IndexError:
            return None
        self._thread.put(self._answer(command, "passed to the script, which decides what to do"))
        if command.name in ("pause", "resume"):
            self._paused_at = clock.now() if command.name == "pause" else None
            phase = events.Phase.PAUSED if command.name == "pause" else events.Phase.TRAINING
            self._thread.put(events.PhaseChanged(time=clock.now(), phase=phase))
        return command

    def leave(self) -> None:
        """End the run without waiting, as nobody can log any more."""
        self._outcome = self._outcome or (events.Outcome.FINISHED, "")
        self._thread.put(None)

    def end(self, error: BaseException | None) -> bool:
        """End the run; return whether everything is written.

        Args:
            error: The exception that ended the loop; ``None`` if it ended by itself.

        Raises:
            Exception: The end could not be written.
        """
        self._outcome = script.outcome_of(error) if error else (events.Outcome.FINISHED, "")
        done = self._thread.finish(None)
        self.check()
        return done

    def _collect(self) -> Iterator[QueueItem]:
        """Yield the items that the script has logged, and answers; called by the recorder thread."""
        while command := self._mailbox.take():
            yield from self._handle(command)
        logged = [self._logged.popleft() for _ in range(len(self._logged))]
        if logged and self._paused_at is not None and logged[-1][1] > self._paused_at:
            self._paused_at = None
            yield events.PhaseChanged(time=clock.now(), phase=events.Phase.TRAINING)
        yield from self._steps.items(logged)
        for _ in range(len(self._media)):
            step, time, name, make = self._media.popleft()
            number = self._steps.step_of(step)
            try:
                if number is not None:
                    yield PendingMedia(number, time, name, make())
            except Exception as error:  # noqa: BLE001 (of the value's own library)
                problem = str(error) if isinstance(error, ValueError) else format_error(error)
                self._steps.warn_once(f"media {name}", f"{name} is not recorded: {problem}")
        if self._dropped and not self._reported_drops:
            self._report_drops()
        yield from self._steps.take_warnings()

    def _report_drops(self) -> None:
        self._reported_drops = self._dropped
        self._steps.warn_once(
            f"dropped {self._dropped}",
            f"{self._dropped:,} calls so far are not recorded: they came faster than they could be written",
        )

    def _handle(self, command: Command) -> Iterator[QueueItem]:
        if command.name in ("stop", "stop_now"):
            self._stopped, self.should_stop = command.origin, True
            yield self._answer(command, "asked the script to stop: it decides when")
        elif self._takes_commands:
            self._commands.append(command)
        elif command.id:  # else the recorder thread has ended a pause
            name = command.name.replace("_", " ")
            yield self._answer(command, f"the script takes no commands but stop: no {name}", obeyed=False)

    def _answer(self, command: Command, answer: str, *, obeyed: bool = True) -> PendingAnswer:
        return PendingAnswer(command, answered(command, clock.now(), self._thread.steps, answer, obeyed=obeyed))

    def _end_if_left(self, certain: bool) -> events.RunEnded | None:
        """The run's end, once the loop or the script has ended; called by the recorder thread."""
        if not certain:
            return None
        outcome, reason = self._outcome or script.outcome_at_exit(self._exception_before)
        if outcome is events.Outcome.FINISHED and self._stopped:
            outcome, reason = events.Outcome.STOPPED, self._stopped
        if outcome is events.Outcome.FINISHED:  # else the last epoch is incomplete
            for event in self._steps.end_epoch():
                self._thread.put(event)
        if self._dropped > self._reported_drops:
            self._report_drops()
        for warned in self._steps.take_warnings():
            self._thread.put(warned)
        return events.RunEnded(
            time=clock.now(),
            outcome=outcome,
            steps=self._thread.steps,
            epochs=self._steps.epochs,
            seconds=clock.now() - self._began,
            steps_per_second=self._steps.steps_per_second,
            metrics=self._steps.metrics,
            reason=reason,
        )


def _built(steps: int) -> events.ModelBuilt:
    """The event that tells how many steps the run will have; nothing is known of the model."""
    return events.ModelBuilt(
        time=clock.now(),
        parameters=None,
        trainable=None,
        layers=None,
        input_shape=None,
        classes=None,
        examples=None,
        validation_examples=None,
        epochs=0,
        steps_per_epoch=steps,
        global_batch=None,
        per_replica_batch=None,
        dropped_examples=0,
        replicas=1,
        optimizer="",
        loss="",
        series=(),
        precision="",
        xla=None,
        feed="own",
    )
