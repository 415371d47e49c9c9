"""Nothing that fails in the recorder, or on its disk, reaches ``fit``."""

import errno
import shutil
import sqlite3
import sys
import threading
import warnings
from collections.abc import Callable
from contextlib import closing
from pathlib import Path
from typing import Any

import keras
import numpy as np
import pytest
import tensorflow as tf

from accel_engine import RunRecorder
from accel_engine.errors import RunError
from accel_engine.events import Outcome, Phase, PhaseChanged, RunEnded, Warned
from accel_engine.recording import fit_session as fitting
from accel_engine.recording import recorder_thread, run_link, supervisor_address
from accel_engine.recording.run_link import RunLink
from accel_engine.run import RunWriter, Status, send_command
from accel_engine.run.directory.run_paths import LOG
from accel_engine.run.runs.creation import create_recorded
from accel_engine.run.writing import owned_run
from accel_engine.scripts import patient_writer, recorder_runs
from full_disk import database_error

from .conftest import Read, examples, tiny
from .faults import MODULES, OF_BOTH, OF_LOOPS, fail, functions_of_fit, put, shared_out

FUNCTIONS = functions_of_fit()


@pytest.fixture(autouse=True)
def impatient(patient: None, monkeypatch: pytest.MonkeyPatch) -> None:
    """Wait for nothing long, and look at every batch."""
    monkeypatch.setattr(run_link, "_silent", threading.Event())
    monkeypatch.setattr(supervisor_address, "start_supervisor", fail)
    monkeypatch.setattr(recorder_thread, "END_SECONDS", 0.5)
    monkeypatch.setattr(fitting, "UPDATE_SECONDS", 0.0)
    monkeypatch.setattr(recorder_thread, "_UNFINISHED", set())


class Trained:
    """A model that is compiled once: to trace it takes longer than to train it."""

    def __init__(self) -> None:
        self.model = tiny()
        self._weights = self.model.get_weights()
        self._data = tf.data.Dataset.from_tensor_slices(examples()).batch(26)
        self.expected = self.fit()[0]

    def fit(self, *callbacks: Any, epochs: int = 2) -> tuple[Any, list[str]]:
        """Train from the first weights; give all that it came to, and what the recorder warned of."""
        self.model.set_weights(self._weights)
        self.model.optimizer.iterations.assign(0)
        self.model.optimizer.learning_rate = 0.1
        with warnings.catch_warnings(record=True) as caught:
            warnings.simplefilter("always")
            history = self.model.fit(
                self._data, epochs=epochs, verbose=0, shuffle=False, validation_data=self._data, callbacks=callbacks
            ).history
        words = [str(each.message) for each in caught if each.category is RuntimeWarning]
        return (history, [weight.tolist() for weight in self.model.get_weights()]), words


@pytest.fixture(scope="module")
def trained() -> Trained:
    return Trained()


def test_every_call_that_keras_makes_is_guarded() -> None:
    calls = {name: value for name, value in vars(RunRecorder).items() if name.startswith(("on_", "set_"))}

    assert "on_train_batch_end" in calls
    for name, function in calls.items():
        assert hasattr(function, "__wrapped__"), name


@pytest.mark.filterwarnings("ignore::pytest.PytestUnhandledThreadExceptionWarning")  # a thread whose target raises
@pytest.mark.parametrize("label", shared_out(FUNCTIONS))
def test_a_fault_in_any_function_leaves_training_as_it_is(
    monkeypatch: pytest.MonkeyPatch, trained: Trained, label: str
) -> None:
    put(monkeypatch, *FUNCTIONS[label], fail)

    got, warned = trained.fit(RunRecorder())

    assert got == trained.expected
    assert len(warned) <= 2, warned  # a disk that is slow, and then the end of the recording


@pytest.mark.parametrize("method", ["begin", "begin_epoch", "begin_batch", "update", "end_epoch", "end"])
def test_a_fault_ends_the_recording_with_one_warning_and_a_run_that_says_so(
    monkeypatch: pytest.MonkeyPatch,
    trained: Trained,
    wait_until: Callable[..., None],
    method: str,
) -> None:
    if method != "begin":
        monkeypatch.setattr(fitting.FitSession, method, fail)
    else:
        monkeypatch.setattr(fitting.FitSession, "_enter_phase", fail)
    mine = RunRecorder()

    got, (warned,) = trained.fit(mine)

    assert got == trained.expected
    assert warned == "recording stopped, training continues: LookupError: a fault in the recorder"
    wait_until(lambda: Read(mine.directory).all(RunEnded), "the run's end")
    (ended,) = Read(mine.directory).all(RunEnded)
    assert ended.outcome is Outcome.FAILED
    assert ended.reason == "recording failed, training continued: LookupError: a fault in the recorder"
    assert Read(mine.directory).all(Warned)[-1].message == ended.reason


def test_a_warning_that_is_an_error_ends_no_training(
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
    trained: Trained,
    home: Path,
) -> None:
    home.write_text("a file where the runs should be")
    x, y = examples()

    with warnings.catch_warnings():
        warnings.simplefilter("error")
        history = trained.model.fit(x, y, verbose=0, shuffle=False, callbacks=[RunRecorder()]).history

    assert history["loss"]
    assert "recording stopped, training continues: cannot create the run directory" in capsys.readouterr().err


def test_an_interrupt_within_the_recorder_reaches_the_user(monkeypatch: pytest.MonkeyPatch, trained: Trained) -> None:
    def interrupted(*_: Any) -> None:
        raise KeyboardInterrupt

    monkeypatch.setattr(fitting.FitSession, "end_epoch", interrupted)

    with pytest.raises(KeyboardInterrupt):
        trained.fit(RunRecorder())


def _home_is_a_file(home: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    home.write_text("")


def _runs_are_a_file(home: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    home.mkdir()
    (home / "runs").write_text("")


def _disk_is_read_only(home: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def refuse(*_: Any, **__: Any) -> None:
        raise OSError(errno.EROFS, "Read-only file system")

    monkeypatch.setattr(Path, "mkdir", refuse)


def _log_cannot_be_written(home: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    touch = Path.touch

    def refuse(path: Path, *arguments: Any, **options: Any) -> None:
        if path.name == "log.txt":
            raise OSError(errno.ENOSPC, "No space left on device")
        touch(path, *arguments, **options)

    monkeypatch.setattr(Path, "touch", refuse)


def _after_it_was_made(change: Callable[[Path], None]) -> Callable[[Path, pytest.MonkeyPatch], None]:
    def spoil(home: Path, monkeypatch: pytest.MonkeyPatch) -> None:
        def make(*arguments: Any, **options: Any) -> Path:
            directory = create_recorded(*arguments, **options)
            change(directory)
            return directory

        monkeypatch.setattr(recorder_runs, "create_recorded", make)

    return spoil


def _replace(name: str) -> Callable[[Path], None]:
    def change(directory: Path) -> None:
        (directory / name).unlink(missing_ok=True)
        (directory / name).mkdir()

    return change


def _replace_directory(directory: Path) -> None:
    shutil.rmtree(directory)
    directory.write_text("")


SPOILED = {
    "the home is a file": _home_is_a_file,
    "the runs are a file": _runs_are_a_file,
    "the disk is read-only": _disk_is_read_only,
    "log.txt cannot be written": _log_cannot_be_written,
    "the run's directory is gone": _after_it_was_made(shutil.rmtree),
    "the run's directory is a file": _after_it_was_made(_replace_directory),
    "run.db is a directory": _after_it_was_made(_replace("run.db")),
    "run.db is garbage": _after_it_was_made(
        lambda directory: (directory / "run.db").write_bytes(b"\1" * 9000) and None
    ),
    "run.db-wal is a directory": _after_it_was_made(_replace("run.db-wal")),
}


@pytest.mark.parametrize("what", SPOILED)
def test_a_file_that_cannot_be_written_leaves_training_as_it_is(
    monkeypatch: pytest.MonkeyPatch, trained: Trained, home: Path, what: str
) -> None:
    SPOILED[what](home, monkeypatch)

    got, (warned,) = trained.fit(RunRecorder())

    assert got == trained.expected
    assert warned.startswith("recording stopped, training continues: ")


@pytest.mark.parametrize("writes", [0, 1, 2, 5, 9])
def test_a_disk_that_is_full_after_some_writes_is_waited_for_and_nothing_is_lost(
    monkeypatch: pytest.MonkeyPatch, trained: Trained, wait_until: Callable[..., None], writes: int
) -> None:
    left, has_room = iter(range(writes)), threading.Event()

    def filling(method: Callable[..., None]) -> Callable[..., None]:
        def write(*arguments: Any) -> None:
            if next(left, None) is None and not has_room.is_set():
                raise database_error(sqlite3.SQLITE_FULL)
            method(*arguments)

        return write

    for name in ("begin", "write_event", "write_chunk", "write_samples", "heartbeat"):
        monkeypatch.setattr(RunWriter, name, filling(getattr(RunWriter, name)))
    monkeypatch.setattr(patient_writer, "RETRY_SECONDS", 0.01)
    mine = RunRecorder()

    got, (warned,) = trained.fit(mine)
    again, (refused,) = trained.fit(mine)

    assert got == again == trained.expected
    assert warned == "the end of the run is not written yet; the disk may be busy"
    assert "the previous recording is not written yet" in refused
    has_room.set()
    wait_until(lambda: Read(mine.directory).info.status is Status.FINISHED, "the run's end")
    assert np.isfinite(Read(mine.directory).series("loss")).sum() == 8
    assert "disk I/O error: waiting to write the run" in (mine.directory / LOG).read_text()


def _locked(directory: Path) -> sqlite3.Connection:
    connection = sqlite3.connect(directory / "run.db", isolation_level=None, check_same_thread=False)
    connection.execute("BEGIN EXCLUSIVE")
    return connection


@pytest.mark.parametrize("timeout", [0.0, 60.0])
def test_what_a_locked_database_could_not_take_meanwhile_is_written_once_it_is_free(
    monkeypatch: pytest.MonkeyPatch, trained: Trained, wait_until: Callable[..., None], timeout: float
) -> None:
    monkeypatch.setattr(owned_run, "LOCK_TIMEOUT_SECONDS", timeout)
    monkeypatch.setattr(patient_writer, "RETRY_SECONDS", 0.01)
    monkeypatch.setattr(recorder_thread, "END_SECONDS", 0.01)
    locks: list[sqlite3.Connection] = []
    _after_it_was_made(lambda directory: locks.append(_locked(directory)))(Path(), monkeypatch)
    mine = RunRecorder()

    got, (late,) = trained.fit(mine)

    assert got == trained.expected
    assert late.startswith("the end of the run is not written yet")
    locks[0].execute("ROLLBACK")
    locks[0].close()
    wait_until(lambda: Read(mine.directory).info.status is Status.FINISHED, "the run's end")
    assert np.isfinite(Read(mine.directory).series("loss")).sum() == 8


def test_a_recording_thread_that_dies_leaves_no_training_paused(
    monkeypatch: pytest.MonkeyPatch, trained: Trained, wait_until: Callable[..., None]
) -> None:
    mine, paused = RunRecorder(), threading.Event()
    commands = RunLink.commands

    def dying(link: RunLink) -> Any:
        if paused.is_set():
            raise SystemExit
        return commands(link)

    class Stop(keras.callbacks.Callback):  # type: ignore[misc]
        def on_epoch_end(self, epoch: int, logs: Any = None) -> None:
            self.model.stop_training = paused.is_set()

    def ask() -> None:
        wait_until(lambda: mine.directory and Read(mine.directory).update.chunks, "steps")
        assert mine.directory
        send_command(mine.directory, "pause")
        wait_until(lambda: Read(mine.directory).all(PhaseChanged)[-1].phase is Phase.PAUSED, "the pause")
        paused.set()

    monkeypatch.setattr(RunLink, "commands", dying)
    asking = threading.Thread(target=ask)
    asking.start()
    _, (warned,) = trained.fit(mine, Stop(), epochs=10**6)
    asking.join()

    assert warned.startswith("recording stopped, training continues: ")


def test_one_recorder_in_two_calls_of_fit_at_a_time_records_neither_and_says_so(trained: Trained) -> None:
    mine = RunRecorder()

    class Nested(keras.callbacks.Callback):  # type: ignore[misc]
        def on_epoch_end(self, epoch: int, logs: Any = None) -> None:
            if not epoch:
                tiny().fit(*examples(), verbose=0, callbacks=[mine])

    _, (warned,) = trained.fit(Nested(), mine)

    assert "already in use by another call of fit" in warned


def test_a_hung_disk_holds_up_a_fit_for_no_longer_than_its_patience(
    monkeypatch: pytest.MonkeyPatch, trained: Trained
) -> None:
    goes_on = threading.Event()

    def hang(*_: Any, **__: Any) -> Path:
        goes_on.wait()
        raise RunError("it was let go on")

    monkeypatch.setattr(run_link, "REPLY_SECONDS", 0.5)
    monkeypatch.setattr(recorder_runs, "create_recorded", hang)

    got, (warned,) = trained.fit(RunRecorder())
    again, (refused,) = trained.fit(RunRecorder())
    goes_on.set()

    assert got == again == trained.expected
    assert warned.endswith("the supervisor of the run does not answer: timed out")
    assert refused.endswith("it has not answered before")


def test_a_gap_of_steps_that_were_lost_is_read_as_missing(home: Path) -> None:
    directory = create_recorded({"name": "", "model": "m", "data": "d"}, "script")
    with closing(RunWriter(directory)) as run:
        run.write_chunk(0, 0.0, 1.0, {"loss": np.ones(3)})
        run.write_chunk(3, 1.0, 1.0, {"loss": np.full(2, np.nan)})
        run.write_chunk(5, 1.0, 2.0, {"loss": np.ones(3)})

    assert np.isnan(Read(directory).series("loss")).tolist() == [False] * 3 + [True] * 2 + [False] * 3


def test_the_modules_of_the_recorder_are_all_tried() -> None:
    assert MODULES.keys() >= OF_LOOPS | OF_BOTH | {
        "fit_session",
        "recorder_thread",
        "batch_series",
        "learning_rates",
    }
    assert sys.modules["accel_engine.recording.fit_session"] in MODULES.values()
    assert {
        "FitSession.update",
        "RecorderThread.put",
        "BatchSeries.take",
        "LearningRates.take",
        "OwnedRun.begin",
        "RunWriter.write_chunk",
    } <= FUNCTIONS.keys()
