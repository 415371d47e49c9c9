"""A killed engine's run continues with the next batch of its stream."""

import subprocess
from collections.abc import Callable
from pathlib import Path

import numpy as np

from accel_engine import run
from accel_engine.events import CheckpointSaved, Outcome, RunStarted
from accel_engine.launch.engine_process import start
from accel_engine.plan import Plan
from accel_engine.run.commands import read_answer

from .record import last, read

FILE = Path(__file__).parents[1] / "training" / "source_models.py"


def test_a_killed_run_continues_in_mid_epoch(
    engines: list["subprocess.Popen[str]"], wait_until: Callable[..., None]
) -> None:
    plan = Plan(
        model=f"{FILE}:model",
        data=f"{FILE}:endless_tf_data",
        batch_size=32,
        steps_per_epoch=4000,
        epochs=1,
        validation="off",
        xla="off",
    )
    killed, whole = run.create(plan), run.create(plan)
    engines.append(start(killed))
    wait_until(lambda: read(killed)[1].size > 20, "training", timeout=120)
    number = run.request(killed, "checkpoint")
    wait_until(lambda: read_answer(killed, number), "a checkpoint")
    engines[0].kill()
    engines[0].wait()
    saved = [event for event in read(killed)[0] if isinstance(event, CheckpointSaved)][-1]
    assert 0 < saved.step < 4000

    run.reopen(killed, plan)
    engines += [start(killed), start(whole)]
    for engine in engines[1:]:
        assert engine.wait(240) == 0

    assert [event.first_step for event in read(killed)[0] if isinstance(event, RunStarted)] == [0, saved.step]
    assert last(killed).outcome is Outcome.FINISHED
    np.testing.assert_allclose(read(killed)[1], read(whole)[1], atol=1e-5)
