"""Recorders in real scripts, which exit, fork, are killed and close what they did not open."""

import json
import os
import signal
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest

from accel_engine.events import EpochEnded, Outcome, RunEnded, Warned
from accel_engine.run import Status, runs_directory

from .conftest import Read

IMPORTS = "import os, signal, sys, time\nfrom accel_engine import Recorder\n"


def run_script(
    source: str, *, status: int | None = 0, folder: Path | None = None
) -> "subprocess.CompletedProcess[str]":
    done = subprocess.run(
        [sys.executable, "-c", IMPORTS + source], capture_output=True, text=True, check=False, cwd=folder, timeout=120
    )
    if status is not None:
        assert done.returncode == status, done.stderr
    return done


def the_run() -> Read:
    (directory,) = runs_directory().iterdir()
    return Read(directory)


def end_of(read: Read) -> tuple[Outcome, str]:
    (ended,) = read.all(RunEnded)
    return ended.outcome, ended.reason


def test_neither_keras_nor_tensorflow_is_needed() -> None:
    """Nor imported where they are installed."""
    done = run_script(
        """
class Missing:
    def find_spec(self, name, path=None, target=None):
        if name.partition(".")[0] in ("keras", "tensorflow"):
            raise ModuleNotFoundError(f"No module named {name!r}", name=name)

sys.meta_path.insert(0, Missing())
with Recorder("bare", config={"lr": 0.1}) as run:
    for step in range(10):
        run.log(step, loss=1.0, val_loss=2.0)
    run.log_text(0, text="hello")
    run.show()
print(sorted({name.partition(".")[0] for name in sys.modules} & {"keras", "tensorflow"}))
"""
    )

    assert done.stdout.endswith("[]\n")
    assert not done.stderr
    assert len(the_run().series("loss")) == 10
    assert end_of(the_run()) == (Outcome.FINISHED, "")


def test_a_script_that_closes_nothing_has_finished_with_its_end() -> None:
    run_script("run = Recorder()\nfor step in range(9):\n    run.log(step, loss=1.0, epoch=0)")

    assert end_of(the_run()) == (Outcome.FINISHED, "")
    assert len(the_run().series("loss")) == 9
    assert len(the_run().all(EpochEnded)) == 1


@pytest.mark.parametrize(
    ("ending", "status", "end"),
    [
        ("raise ValueError('oh no')", 1, (Outcome.FAILED, "ValueError: oh no")),
        (
            "os.kill(os.getpid(), signal.SIGINT); time.sleep(60)",
            None,
            (Outcome.STOPPED, "interrupted from the keyboard"),
        ),
    ],
)
def test_an_exception_that_ends_the_script_ends_the_run(
    ending: str, status: int | None, end: tuple[Outcome, str]
) -> None:
    done = run_script(f"run = Recorder()\nrun.log(0, loss=1.0)\n{ending}", status=status)

    assert "Traceback" in done.stderr
    assert end_of(the_run()) == end
    assert len(the_run().series("loss")) == 1


def test_an_exit_within_the_block_has_its_status() -> None:
    run_script("with Recorder() as run:\n    run.log(0, loss=1.0)\n    sys.exit(3)", status=3)

    assert end_of(the_run()) == (Outcome.FAILED, "the script exited with status 3")


def test_a_killed_script_has_all_steps_but_the_last() -> None:
    """The recorder thread takes the steps four times per second."""
    done = run_script(
        """
run = Recorder()
began = time.time()
step = 0
while time.time() < began + 3.0:
    run.log(step, at=time.time() - began)
    step += 1
    time.sleep(0.01)
os.kill(os.getpid(), signal.SIGKILL)
""",
        status=-signal.SIGKILL,
    )

    assert not done.stderr
    read = the_run()
    assert read.info.status is Status.LOST
    assert read.series("at")[-1] > 1.0  # it is 2.7 to 3 on an idle machine
    assert np.isfinite(read.series("at")).all()


def test_a_forked_child_records_nothing_and_waits_for_nothing() -> None:
    done = run_script(
        """
run = Recorder("parent")
run.log(0, loss=1.0)
child = os.fork()
if not child:
    for step in range(1, 1000):
        run.log(step, loss=9.0)
    run.log_text(5, text="child")
    assert run.command() is None
    run.close()
    sys.exit(7)
assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 7
run.log(1, loss=2.0)
""",
    )

    assert not done.stderr
    assert the_run().series("loss").tolist() == [1.0, 2.0]
    assert end_of(the_run()) == (Outcome.FINISHED, "")


def test_pools_of_processes_work_beside_it() -> None:
    done = run_script(
        """
import multiprocessing
with Recorder() as run:
    run.log(0, loss=1.0)
    with multiprocessing.get_context("fork").Pool(2) as pool:
        print(pool.map(abs, [-1, -2]))
    run.log(1, loss=1.0)
"""
    )

    assert done.stdout == "[1, 2]\n"
    assert len(the_run().series("loss")) == 2


CLOSING = """
files = []
def reopen():
    os.closerange(3, 4096)
    for number in range(12):
        files.append(open(f"mine{number}", "wb", buffering=0))
        files[-1].write(b"precious")
def finish():
    for file in files:
        file.write(b" data")
"""


@pytest.mark.parametrize("close", ["run.close()", "del run", ""])
def test_files_that_the_script_opens_after_it_closed_all_descriptors_stay_intact(tmp_path: Path, close: str) -> None:
    done = run_script(
        CLOSING
        + f"""
import gc
run = Recorder("closes")
for step in range(20):
    run.log(step, loss=1.0)
session = run._session
while session._thread.steps < 20:
    time.sleep(0.01)
reopen()
run.log(20, loss=1.0)
while session.writing:
    run.log(21, loss=1.0)
    time.sleep(0.01)
{close}
del session
gc.collect()
finish()
""",
        folder=tmp_path,
    )

    assert [(tmp_path / f"mine{number}").read_bytes() for number in range(12)] == [b"precious data"] * 12
    assert done.stderr.count("the script has closed the files of the run") == (close == "run.close()")
    read = the_run()
    assert read.info.status is Status.LOST
    assert len(read.series("loss")) == 20
    assert "the script has closed the files of the run" in (read.info.directory / "log.txt").read_text()


def test_a_fit_goes_on_when_the_script_closes_all_descriptors(tmp_path: Path) -> None:
    done = run_script(
        CLOSING
        + """
import keras, numpy as np
from accel_engine import RunRecorder

class Close(keras.callbacks.Callback):
    def on_epoch_begin(self, epoch, logs=None):
        if epoch == 1:
            reopen()

recorder = RunRecorder()
model = keras.Sequential([keras.Input((4,)), keras.layers.Dense(3)])
model.compile("sgd", "mse")
x = np.zeros((64, 4))
model.fit(x, x[:, :3], batch_size=8, epochs=3, verbose=0, callbacks=[recorder, Close()])
finish()
print("trained")
""",
        folder=tmp_path,
    )

    assert done.stdout == "trained\n"
    assert "the script has closed the files of the run" in done.stderr
    assert [(tmp_path / f"mine{number}").read_bytes() for number in range(12)] == [b"precious data"] * 12


def test_signal_handlers_of_the_script_are_its_own_and_may_log() -> None:
    done = run_script(
        """
run = Recorder()
handled = []
def handle(number, frame):
    handled.append(number)
    run.log(len(handled), loss=float(len(handled)))
signal.signal(signal.SIGALRM, handle)
signal.setitimer(signal.ITIMER_REAL, 0.001, 0.001)
while len(handled) < 300:
    run.log(len(handled), other=1.0)
signal.setitimer(signal.ITIMER_REAL, 0.0)
run.close()
print(len(handled), signal.getsignal(signal.SIGINT) is signal.default_int_handler)
"""
    )

    assert done.stdout.endswith(" True\n")
    assert end_of(the_run()) == (Outcome.FINISHED, "")
    assert len(the_run().series("loss")) >= 300


def test_a_full_disk_leaves_the_results_as_they_are(tmp_path: Path) -> None:
    """On a real file system, if this user may make one."""
    small = tmp_path / "small"
    small.mkdir()
    if (
        os.geteuid()
        or subprocess.run(["mount", "-t", "tmpfs", "-o", "size=512k", "none", small], check=False).returncode
    ):
        pytest.skip("this user may not mount a file system")
    try:
        done = subprocess.run(
            [sys.executable, "-c", IMPORTS + FILLING],
            capture_output=True,
            text=True,
            check=False,
            timeout=120,
            env=os.environ | {"ACCEL_TUI_HOME": str(small)},
        )
    finally:
        subprocess.run(["umount", small], check=True)

    assert done.returncode == 0, done.stderr
    assert json.loads(done.stdout) == sum(range(3000))
    assert "not recorded, the script continues: " in done.stderr
    assert "Traceback" not in done.stderr


FILLING = """
total = 0
with Recorder() as run:
    for step in range(3000):
        run.log(step, {f"series_{number}": float(step) for number in range(50)})
        total += step
        time.sleep(0.001)
print(total)
"""


def test_a_thread_that_dies_is_told_in_the_log(wait_until: Callable[..., None]) -> None:
    run_script(
        """
from accel_engine.recording.loop_steps import LoopSteps
def fail(*_):
    raise MemoryError("no more")
LoopSteps.items = fail
with Recorder() as run:
    run.log(0, loss=1.0)
print("done")
"""
    )

    read = the_run()
    assert end_of(read) == (Outcome.FAILED, "recording failed, training continued: MemoryError: no more")
    assert read.all(Warned)
    assert "MemoryError: no more" in (read.info.directory / "log.txt").read_text()
