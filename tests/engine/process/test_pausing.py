"""A live run is paused for a while and resumed in any case; an engine is a thread that answers."""

import threading
import time
from collections.abc import Iterator
from contextlib import closing, contextmanager
from pathlib import Path

import pytest

from accel_engine.plan import Plan
from accel_engine.process.run_change import BESIDE, PauseNote, paused
from accel_engine.run import Command, RunWriter, create


@contextmanager
def engine(*, obeys: bool = True, answers: bool = True) -> Iterator[tuple[Path, list[Command]]]:
    """A live run; yields its directory and the commands it gets."""
    directory, taken, ended = create(Plan(model="mlp")), [], threading.Event()
    with closing(RunWriter(directory)) as writer:
        writer.begin()

        def answer() -> None:
            while not ended.is_set():
                for command in writer.commands():
                    if answers:
                        taken.append(command)
                        writer.answer(command, obeyed=obeys, answer="done")
                time.sleep(0.01)

        thread = threading.Thread(target=answer)
        thread.start()
        try:
            yield directory, taken
        finally:
            ended.set()
            thread.join()


def test_it_is_paused_for_a_limited_time_and_resumed(wait_until) -> None:
    with engine() as (directory, taken):
        with paused(directory, 90.0) as note:
            assert [(each.name, each.argument) for each in taken] == [("pause", 90.0)]
            assert note.now == "the run is paused meanwhile"
        wait_until(lambda: [each.name for each in taken] == ["pause", "resume"])
        assert taken[1].argument == taken[0].id


def test_it_is_resumed_after_an_error(wait_until) -> None:
    with engine() as (directory, taken):
        with pytest.raises(ZeroDivisionError), paused(directory, 90.0):
            raise ZeroDivisionError
        wait_until(lambda: [each.name for each in taken] == ["pause", "resume"])


def test_an_engine_that_refuses_trains_beside_it() -> None:
    with engine(obeys=False) as (directory, taken):
        with paused(directory, 90.0) as note:
            assert note == BESIDE
        assert [each.name for each in taken] == ["pause"]


def test_the_request_to_a_silent_engine_is_withdrawn() -> None:
    with engine(answers=False) as (directory, _):
        with paused(directory, 90.0, should_stop=lambda: True) as note:
            assert note == BESIDE
        with closing(RunWriter(directory)) as other:
            assert other.commands() == []


def test_an_ended_run_is_left_alone() -> None:
    directory = create(Plan(model="mlp"))
    with closing(RunWriter(directory)) as writer:
        writer.begin()
    with paused(directory, 90.0) as note:
        assert note == PauseNote()
