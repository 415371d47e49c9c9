"""A real engine that writes TensorBoard event files."""

import subprocess
from collections.abc import Callable
from contextlib import closing
from pathlib import Path

from accel_engine import run
from accel_engine.events import Validated
from accel_engine.plan import Plan
from accel_engine.process.engine_process import start_engine
from accel_engine.run import RunReader
from accel_engine.run.reading.reader import drop_discarded
from tensorboard_loader import scalars


def recorded(directory: Path) -> list[tuple[int, float]]:
    with closing(RunReader(directory)) as source:
        new = source.new_steps()
        pieces = list(source.steps(0, new.stop)) if new else []
    return [
        (int(step), float(loss))
        for piece in pieces
        for step, loss in zip(piece.steps, piece.series["loss"], strict=True)
    ]


def test_tensorboard_events_continue_after_a_crash(
    engines: list["subprocess.Popen[str]"], wait_until: Callable[..., None]
) -> None:
    fast = {"steps_per_epoch": 23, "last_batch": "drop", "optimizer": "sgd", "xla": "off"}
    plan = Plan.from_mapping({"model": "linear", "epochs": 2000, "tensorboard": "on", **fast})
    directory = run.create(plan)
    train = directory / "tensorboard" / "train"
    engines.append(start_engine(directory))
    wait_until(lambda: train.is_dir() and len(scalars(train).get("loss", ())) > 100, "the first events")
    engines[0].kill()
    engines[0].wait()
    (died,) = run.list_runs()
    epochs = died.steps // 23 + 3
    run.reopen(directory, plan.replace(epochs=epochs))
    engines.append(start_engine(directory))
    assert engines[1].wait(600) == 0
    steps = recorded(directory)
    assert len(steps) == epochs * 23
    assert scalars(train)["loss"] == steps
    with closing(RunReader(directory)) as source:
        validations = [
            event for event in drop_discarded(event for _, event in source.events()) if isinstance(event, Validated)
        ]
    shown = scalars(directory / "tensorboard" / "validation")["loss"]
    assert [step for step, _ in shown] == [event.step for event in validations] == list(range(23, epochs * 23 + 1, 23))
    assert "cpu:0/utilization" in scalars(directory / "tensorboard" / "devices")
