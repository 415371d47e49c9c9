"""The gradient norm of a step that several processes take is that of one process."""

import subprocess
from contextlib import closing
from pathlib import Path

import numpy as np

from accel_engine import run
from accel_engine.launch import start
from accel_engine.plan import Plan

ALONE = Plan(
    model="mlp",
    batch_size=64,
    steps_per_epoch=20,
    epochs=1,
    optimizer="sgd",
    learning_rate=0.1,
    validation="off",
    gradient_norm="on",
)


def norms(directory: Path) -> np.ndarray:
    with closing(run.RunReader(directory)) as reader:
        return np.concatenate([chunk.series["gradient_norm"] for chunk in reader.poll().chunks])


def test_several_processes_tell_the_norm_that_one_does(engines: list["subprocess.Popen[str]"], home: Path) -> None:
    alone, *together = (
        run.create(ALONE.replace(strategy=strategy, local_workers=workers))
        for strategy, workers in (("default", 0), ("multi-worker", 2), ("parameter-server", 1))
    )
    for directory in (alone, *together):
        engines.append(start(directory))
        assert engines[-1].wait(120) == 0

    assert len(norms(alone)) == 20
    for directory in together:
        np.testing.assert_allclose(norms(directory), norms(alone), rtol=1e-4)
