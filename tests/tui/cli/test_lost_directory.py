"""What commands say of a run whose directory is deleted, moved or replaced while they follow it."""

import io
import shutil
from contextlib import closing

import pytest

from accel_engine.errors import RunError
from accel_engine.run import RunReader
from accel_engine.run.engine.commands import Command
from accel_tui.cli.follow_run import Interrupts, follow_run
from accel_tui.cli.progress import Log
from tui.fake_engine import close_all


@pytest.fixture
def followed(new_run):
    """A live run and the reader of a command that follows it."""
    engine = new_run()
    engine.begin()
    engine.epoch(1)
    with closing(RunReader(engine.directory)) as reader:
        yield engine, reader


def test_a_deleted_run_ends_and_says_why(followed, capsys):
    engine, reader = followed
    shutil.rmtree(engine.directory)
    with pytest.raises(RunError, match="was deleted or moved"):
        engine.writer.heartbeat()

    assert follow_run(reader, Log(io.StringIO())) == 1

    said = capsys.readouterr().err
    assert f"its directory {engine.directory} was deleted or moved" in said
    assert "Log:" not in said


def test_a_deleted_run_whose_engine_is_gone_is_not_named_in_advice(followed, capsys, monkeypatch):
    engine, reader = followed
    shutil.rmtree(engine.directory)
    close_all()
    monkeypatch.setattr("accel_engine.run.engine.status.ProcessIdentity.alive", False)

    assert follow_run(reader, Log(io.StringIO())) == 1

    said = capsys.readouterr().err
    assert f"its directory was deleted, moved or replaced: {engine.directory}" in said
    assert engine.directory.name not in said.partition("Run it again: ")[2]
    assert "accel-tui continue" not in said
    assert "Log:" not in said


def test_an_interrupt_does_not_reach_the_run_that_replaced_another(followed, new_run, monkeypatch):
    engine, reader = followed
    other = new_run(model="cnn")
    shutil.rmtree(engine.directory)
    shutil.copytree(other.directory, engine.directory)
    with Interrupts() as interrupts:
        interrupts._signals = 1
        (message,) = interrupts.escalate(reader.info())

    assert "its engine stops by itself" in message
    with closing(RunReader(engine.directory)) as replacement:
        assert not replacement._database.unanswered(Command)
