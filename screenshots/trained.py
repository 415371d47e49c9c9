"""Trains the runs in the screenshots with the real engine."""

import shutil
import sys
import time
from collections.abc import Callable
from contextlib import chdir, closing
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from accel_engine import data
from accel_engine.inference.candidate import Candidate
from accel_engine.plan import Plan
from accel_engine.process import engine_process
from accel_engine.process.inference_bench import InferenceBench
from accel_engine.requests.bench_models import BenchOptions
from accel_engine.run import RunReader, Status, create, list_runs
from accel_engine.run.directory.run_paths import LOG
from accel_engine.run.store.annotations import set_tags
from accel_engine.scripts.start_script import Script, create_script_run, start_script
from accel_engine.trained.bench_runs import BenchRuns
from clusters import cluster

TIMEOUT = 600.0
"""Timeout of every wait, in seconds."""

DIGITS = Path(data.__file__).with_name("digits.npz")
"""The data of the built-in digits, to write files of it."""

MODELS = """
import time

def broken():
    raise ValueError("a model of the user's own may fail too")

def slow():
    time.sleep(3600)
"""


SCRIPT = """
import keras
import numpy as np

with np.load("digits.npz") as file:
    images, labels = file["images"][..., None] / 16.0, file["labels"]

convolutions = [keras.layers.Conv2D(filters, 3, activation="relu") for filters in (16, 32)]
model = keras.Sequential(
    [keras.Input((8, 8, 1)), *convolutions, keras.layers.Flatten(), keras.layers.Dense(10, "softmax")], name="base"
)
for layer in convolutions:
    layer.trainable = False
model.compile(keras.optimizers.Adam(2e-3), "sparse_categorical_crossentropy", metrics=["accuracy"])
print("training the last layer")
model.fit(images, labels, epochs=8, validation_split=0.2)
print("fine-tuning all layers")
for layer in convolutions:
    layer.trainable = True
tuned = keras.Model(model.inputs, model.outputs, name="fine_tuning")
tuned.compile(keras.optimizers.Adam(1e-4), "sparse_categorical_crossentropy", metrics=["accuracy"])
tuned.fit(images, labels, epochs=1000, validation_split=0.2)
"""


@dataclass(frozen=True)
class Runs:
    """The directories of the runs."""

    finished: Path
    failed: Path
    building: Path
    live: Path
    script: Path
    compared: tuple[Path, ...]
    logged: Path
    troubled: Path


def train(home: Path) -> Runs:
    """Train the runs; ``building``, ``live`` and ``script`` keep running."""
    mine = home / "my_model.py"
    mine.write_text(MODELS)
    failed = begin(Plan(model=f"{mine}:broken", name="my-own"))
    wait_for_end(failed)
    hide_paths(failed)
    compared = tuple(
        begin(Plan(model=model, learning_rate=rate, epochs=30, name=name, gradient_norm="on", xla="off"))
        for model, rate, name in (
            ("mlp", 1e-3, "flat"),
            ("cnn", 1e-3, "convolutions"),
            ("cnn", 1e-4, "convolutions-slow"),
        )
    )
    for directory in compared:
        wait_for_end(directory)
        set_tags(directory, ["digits"])
    logged = cluster()
    finished = begin(Plan(name="first-try"))
    wait_for_end(finished)
    measure(compared[1])
    troubled = begin(
        Plan(name="too-fast", learning_rate=0.3, batch_size=8, epochs=10, validation_every="10 steps", xla="off")
    )
    wait_for_end(troubled)
    building = begin(Plan(model=f"{mine}:slow", name="my-next"))
    live = begin(Plan(epochs=3000, batch_size=32, learning_rate=1e-4, name="long-one", gradient_norm="on", xla="off"))
    wait(lambda: validations(live) >= 20, "the live run")
    script = begin_script(home)
    wait(lambda: validations(script) >= 14, "the script")
    return Runs(finished, failed, building, live, script, compared, logged, troubled)


def measure(directory: Path) -> None:
    """Measure the inference of a run, with XLA and without, and save that as two runs."""
    options = BenchOptions(seconds=0.5, devices=("cpu",), precisions=("float32",))
    benches = BenchRuns(options)

    def keep(part: object) -> None:
        if isinstance(part, Candidate):
            benches.add(part)

    InferenceBench((directory,), options).measure(keep)
    benches.save()


def begin_script(home: Path) -> Path:
    """Start a script of two fits, as ``accel-tui run`` does."""
    (home / "train.py").write_text(SCRIPT)
    shutil.copy(DIGITS, home)
    with chdir(home):
        script = Script("train.py")
        directory = create_script_run(script, "", ())
        start_script(directory, script)
    return directory


def write_scans(path: Path) -> None:
    """Write some of the digits as examples to predict."""
    with np.load(DIGITS) as file:
        images = file["images"][:40, ..., None]
    np.savez(path, x=(images * (255 / 16)).astype(np.uint8))


def begin(plan: Plan) -> Path:
    """Start a run."""
    directory = create(plan)
    engine_process.start_engine(directory)
    return directory


def wait_for_end(directory: Path) -> None:
    """Wait until a run has ended."""
    wait(lambda: not status(directory).live, f"the end of {directory}")


def hide_paths(directory: Path) -> None:
    """Replace this machine's paths of the program and Python in a run's log."""
    log = directory / LOG
    text = log.read_text()
    for path, replacement in (
        (Path(__file__).parents[1], "/usr/src/accel-tui"),
        (sys.prefix, "/usr"),
        (sys.base_prefix, "/usr"),
    ):
        text = text.replace(str(path), replacement)
    log.write_text(text)


def status(directory: Path) -> Status:
    """Read a run's status."""
    with closing(RunReader(directory)) as reader:
        return reader.info().status


def validations(directory: Path) -> int:
    """Count a run's validations."""
    with closing(RunReader(directory)) as reader:
        return sum(event.kind() == "validated" for event in reader.poll().events)


def wait(condition: Callable[[], bool], what: str) -> None:
    """Wait for a condition, or exit after :data:`TIMEOUT`."""
    deadline = time.monotonic() + TIMEOUT
    while not condition():
        if time.monotonic() > deadline:
            raise SystemExit(f"timed out waiting for {what}: {[(run.id, run.status) for run in list_runs()]}")
        time.sleep(0.1)
