"""The writer of a run in a script's process tells its own changes of files from the script's."""

import os
import weakref
from collections.abc import Iterator
from contextlib import closing, suppress
from unittest.mock import Mock

import psutil
import pytest

from accel_engine.errors import RunError
from accel_engine.events import Warned
from accel_engine.plan import Plan
from accel_engine.recording import own_run
from accel_engine.recording.destination import OwnRun
from accel_engine.recording.own_run import OwnRunWriter, OwnSampler
from accel_engine.run import RunReader, create
from accel_engine.run.directory.run_paths import LOG
from garbage import freed
from recorded_run import started


@pytest.fixture(autouse=True)
def open_drivers(monkeypatch: pytest.MonkeyPatch) -> None:
    """Later tests may close the drivers of their samplers."""
    monkeypatch.setattr(OwnSampler, "closes", OwnSampler.closes)


@pytest.fixture
def closed_writer() -> Iterator[OwnRunWriter]:
    """A writer whose lock the script has closed."""
    with closing(OwnRunWriter(create(Plan()))) as writer:
        writer.begin(started())
        assert writer._writer_lock
        os.close(writer._writer_lock._descriptor)
        yield writer


def test_files_that_it_opens_again_are_its_own() -> None:
    with closing(OwnRunWriter(create(Plan()))) as writer:
        writer.begin(started())
        writer._reopen()
        writer.heartbeat()
        writer.write_event(Warned(time=1.0, message="still recorded"))

        os.close(writer._writer_lock._descriptor)
        with pytest.raises(RunError, match="the script has closed the files"):
            writer.heartbeat()


def test_a_script_may_read_its_own_run() -> None:
    directory = create(Plan())
    with closing(OwnRunWriter(directory)) as writer:
        with closing(RunReader(directory)) as reader:
            reader.poll()
            writer.begin(started())
        writer.write_event(Warned(time=1.0, message="still recorded"))


def test_warnings_are_in_the_log_too() -> None:
    with closing(OwnRunWriter(create(Plan()))) as writer:
        writer.begin(started())
        writer.write_event(Warned(time=1.0, message="first"))
        writer.write_event(Warned(time=1.0, message="second"))

        assert (writer.directory / LOG).read_text() == "accel-tui: first\naccel-tui: second\n"


def test_once_the_script_has_closed_the_files_nothing_is_written_or_closed(closed_writer: OwnRunWriter) -> None:
    for _ in range(2):
        with pytest.raises(RunError, match="the script has closed the files"):
            closed_writer.heartbeat()

    assert closed_writer not in own_run._writers
    assert not OwnSampler.closes


def test_a_database_whose_descriptors_are_others_is_never_closed() -> None:
    with freed():
        writer = OwnRunWriter(create(Plan()))
        writer.begin(started())
        assert writer._writer_lock
        os.close(writer._writer_lock._descriptor)
        with suppress(RunError):
            writer.heartbeat()
        database = weakref.ref(writer._database)
        writer.close()
        del writer

    assert database()


@pytest.mark.parametrize("own", [True, False], ids=["open", "closed"])
def test_the_descriptors_of_drivers_are_closed_only_while_they_are_their_own(
    monkeypatch: pytest.MonkeyPatch, own: bool
) -> None:
    monkeypatch.setattr(OwnSampler, "closes", own)
    stopped = Mock()
    monkeypatch.setattr(own_run.Sampler, "start", Mock())
    monkeypatch.setattr(own_run.Sampler, "stop", stopped)
    sampler = OwnSampler(lambda _: None, probes=())
    sampler.start()
    assert sampler in own_run._samplers
    sampler.stop()
    assert sampler not in own_run._samplers
    sampler.stop(close=False)

    assert [call.kwargs for call in stopped.call_args_list] == [{"close": own}, {"close": False}]


def test_what_the_script_opens_waits_for_the_end_of_a_write_and_a_reading(
    monkeypatch: pytest.MonkeyPatch, closed_writer: OwnRunWriter
) -> None:
    class Reading:
        left = 3

        @property
        def is_reading(self) -> bool:
            self.left -= 1
            return self.left > 0

    reading, lock = Reading(), Mock()
    monkeypatch.setattr(own_run, "_samplers", {reading})
    monkeypatch.setattr(own_run, "WAIT_SECONDS", 60.0)
    with monkeypatch.context() as patch:
        patch.setattr(closed_writer, "_lock", lock)
        with open(os.devnull, "rb"):
            pass

    lock.acquire.assert_called_with(timeout=60.0)
    lock.release.assert_called()
    assert reading.left <= 0


def test_what_the_script_opens_does_not_wait_while_the_files_are_open(monkeypatch: pytest.MonkeyPatch) -> None:
    with closing(OwnRunWriter(create(Plan()))) as writer:
        writer.begin(started())
        with monkeypatch.context() as patch:
            patch.setattr(writer, "_lock", lock := Mock())
            writer.wait_if_closed()

        lock.acquire.assert_not_called()


def test_an_opening_does_not_wait_for_ever_for_a_write_that_hangs(
    monkeypatch: pytest.MonkeyPatch, closed_writer: OwnRunWriter
) -> None:
    monkeypatch.setattr(own_run, "WAIT_SECONDS", 0.001)
    monkeypatch.setattr(own_run, "_samplers", {Mock(is_reading=True)})
    with closed_writer._lock:
        closed_writer.wait_if_closed()

        assert closed_writer._lock.locked()


def test_a_run_that_cannot_begin_leaves_no_file_open(monkeypatch: pytest.MonkeyPatch) -> None:
    directory = create(Plan())
    monkeypatch.setattr(OwnRunWriter, "begin", Mock(side_effect=RunError("another process writes it")))

    with pytest.raises(RunError) as caught:  # which keeps the writer alive
        OwnRun(lambda: directory).open(started())

    assert not [file for file in psutil.Process().open_files() if file.path.startswith(str(directory))]
    assert caught.match("another process writes it")
