"""A run that a script of the user's trains is shown like any other, and is not offered what only an engine can do."""

import os
import socket
import time
from collections.abc import Iterator
from contextlib import closing
from dataclasses import replace
from pathlib import Path

import pytest

from accel_engine.errors import RunError
from accel_engine.events import ModelBuilt, RunStarted
from accel_engine.process.start_run import prepare_continuation
from accel_engine.run import RunReader, RunWriter, Update
from accel_engine.run.runs.creation import create_recorded
from accel_engine.run.runs.listing import summarize
from accel_tui.cli import main
from accel_tui.cli.event_text import format_event
from accel_tui.run_state.fold_events import apply_update
from accel_tui.run_state.state import RunState
from accel_tui.screens.run_screen import RunScreen
from accel_tui.widgets.run.phase_line import phase_progress
from accel_tui.widgets.run.run_details import RunDetails
from accel_tui.widgets.run.run_outcome import RunOutcome
from accel_tui.widgets.runs_table import SelectedRun
from accel_tui.widgets.styled_text import plain_spans
from tui.stand_ins import followed

VALUES = {"name": "", "model": "tiny", "data": "train.py", "strategy": "default", "epochs": 3}

BUILT = ModelBuilt(
    time=0.0,
    parameters=15,
    trainable=15,
    layers=1,
    input_shape=None,
    classes=None,
    examples=None,
    validation_examples=None,
    epochs=3,
    steps_per_epoch=None,
    global_batch=None,
    per_replica_batch=None,
    dropped_examples=0,
    replicas=1,
    optimizer="SGD",
    loss="mse",
    series=("loss",),
    precision="float32",
    xla=False,
    feed="own",
)


@pytest.fixture
def writer() -> Iterator[RunWriter]:
    """The writer of a live run of which only what any model tells is known."""
    directory = create_recorded(VALUES, "python train.py --fast")
    started = RunStarted(
        time=time.time(),
        run=directory.name,
        name="",
        plan=VALUES,
        first_step=0,
        pid=os.getpid(),
        host=socket.gethostname(),
        versions={},
    )
    with closing(RunWriter(directory)) as writer:
        writer.begin(started)
        writer.write_event(BUILT)
        writer.write_chunk(0, 1.0, 2.0, {"loss": [0.5, 0.25]})
        yield writer


@pytest.fixture
def directory(writer: RunWriter) -> Path:
    """The directory of the run."""
    return writer.directory


@pytest.fixture
def state(directory: Path) -> RunState:
    """The same as it was followed."""
    return followed(directory)


def test_what_is_known_is_shown_and_nothing_is_made_up(state: RunState) -> None:
    facts = RunDetails().build(state).plain
    assert "python train.py --fast" in facts
    assert "None" not in facts
    assert "classes" not in facts
    assert "None" not in format_event(BUILT, state)
    shown = [plain_spans(pair) for pair in phase_progress(state)]
    assert "epoch 1/3" in shown
    assert "step 2" in shown
    assert (state.total_steps, state.remaining) == (None, None)
    known = apply_update(state, Update(events=(replace(BUILT, steps_per_epoch=2),)))
    assert (known.total_steps, known.current_epoch) == (6, 2)


def test_it_can_be_paused_and_stopped_but_neither_saved_nor_resumed(directory: Path, state: RunState) -> None:
    screen = RunScreen(directory)
    screen.set_reactive(RunScreen.state, state)

    assert all(screen.check_action(action, ()) for action in ("pause", "stop", "learning_rate", "detach"))
    assert not any(screen.check_action(action, ()) for action in ("checkpoint", "continue", "log", "search_log"))
    with pytest.raises(RunError, match=r"only the script can continue it: run python train.py --fast"):
        prepare_continuation(directory)


async def test_one_that_is_lost_is_told_to_be_started_again_and_offers_no_resume(
    directory: Path, writer: RunWriter, capfd: pytest.CaptureFixture[str]
) -> None:
    writer.close()
    with closing(RunReader(directory)) as reader:
        state = apply_update(RunState(info=reader.info()), reader.poll())
        watched = main(["watch", directory.name, "--plain"])
    screen = RunScreen(directory)
    screen.set_reactive(RunScreen.state, state)
    assert not screen.check_action("continue", ())
    detail, outcome = SelectedRun(), RunOutcome()
    detail.show_run(summarize(directory))
    told = (str(detail.content), outcome.build(state).plain, capfd.readouterr().err)
    for words in told:
        assert "script" in words
        assert "python train.py --fast" in words
        assert "exited unexpectedly" in words
        assert "checkpoint" not in words
        assert "--resume" not in words
    assert watched == 1
