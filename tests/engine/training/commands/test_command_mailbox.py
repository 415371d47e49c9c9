"""The queue of commands between the engine's two threads."""

import errno
import signal
from pathlib import Path

import pytest

from accel_engine.run.directory.disk_problem import DiskProblem, disk_problem
from accel_engine.run.engine.commands import Command
from accel_engine.training.commands.command_mailbox import CommandMailbox, StopRequested, command_from_signal
from accel_engine.versioned_database import current_user


def command(number: int, name: str = "pause") -> Command:
    return Command(number, 0.0, "ann@box", name)


def full_disk() -> DiskProblem:
    problem = disk_problem(OSError(errno.ENOSPC, "No space left on device"), Path())
    assert problem is not None
    return problem


def test_commands_are_taken_in_their_order() -> None:
    mailbox = CommandMailbox()
    assert mailbox.take() is None
    for number in (1, 2, 3):
        mailbox.post(command(number))

    assert mailbox.wait() == command(1)
    assert mailbox.take() == command(2)
    assert mailbox.wait() == command(3)
    assert mailbox.take() is None


def test_a_command_is_pending_until_it_is_taken() -> None:
    mailbox = CommandMailbox()
    assert not mailbox.has_pending
    mailbox.post(command(1))
    assert mailbox.has_pending
    mailbox.wait_for_next(60.0)
    assert mailbox.has_pending
    mailbox.post(command(2))
    mailbox.wait_for_next(60.0)

    assert [mailbox.take(), mailbox.take()] == [command(1), command(2)]
    assert not mailbox.has_pending


def test_only_stops_end_a_search() -> None:
    mailbox = CommandMailbox()
    for number, name in enumerate(("pause", "resume", "checkpoint", "learning_rate", "validate")):
        mailbox.post(command(number, name))
    assert not mailbox.is_stop_posted

    mailbox.post(command(9, "stop"))
    assert mailbox.is_stop_posted
    assert mailbox.take() == command(0)


def test_a_command_that_is_read_again_is_added_once() -> None:
    mailbox = CommandMailbox()
    signalled = command_from_signal(signal.SIGTERM, 1.0, again=False)  # has no row, and no number of one
    mailbox.post(signalled)

    assert mailbox.post_new([command(1), command(2)]) == [command(1), command(2)]
    assert mailbox.post_new([command(1), command(2)]) == []
    assert mailbox.post_new([command(2), command(3)]) == [command(3)]
    assert [mailbox.take() for _ in range(5)] == [signalled, command(1), command(2), command(3), None]


@pytest.mark.parametrize(("again", "name"), [(False, "stop"), (True, "stop_now")])
def test_the_second_signal_stops_immediately(again: bool, name: str) -> None:
    who = f"SIGINT to {current_user()}"
    assert command_from_signal(signal.SIGINT, 2.0, again=again) == Command(0, 2.0, who, name)


def test_a_stop_has_its_sender_and_what_could_not_be_saved() -> None:
    stops = [StopRequested(command(1, name)) for name in ("stop", "stop_now")]
    assert [stop.now for stop in stops] == [False, True]
    assert [str(stop) for stop in stops] == [
        "stop requested by ann@box",
        "stop without checkpoint requested by ann@box",
    ]
    lost = StopRequested(command(1, "stop"), full_disk())
    assert lost.now  # nobody waits for the disk any more
    assert str(lost) == f"stop requested by ann@box; {full_disk()}: not all was saved"
