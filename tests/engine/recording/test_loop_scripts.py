"""Recorders in real scripts, which exit, fork, are killed and close what they did not open."""

import json
import os
import signal
import subprocess
import sys
from collections.abc import Callable, Iterator
from contextlib import suppress
from pathlib import Path
from typing import Any

import pytest

from accel_engine.events import EpochEnded, Outcome, RunEnded, Warned
from accel_engine.run import runs_directory
from accel_engine.scripts.recorder_server import LEFT

from .conftest import Read

IMPORTS = "import os, signal, sys, time\nfrom accel_engine import Recorder\n"


def run_script(
    source: str, *, status: int | None = 0, folder: Path | None = None, **options: Any
) -> "subprocess.CompletedProcess[str]":
    command = [sys.executable, "-c", IMPORTS + source]
    done = subprocess.run(command, capture_output=True, text=True, check=False, cwd=folder, timeout=120, **options)
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


def test_a_killed_script_has_all_steps_that_were_recorded(wait_until: Callable[..., None]) -> None:
    done = run_script(
        """
from contextlib import closing
from accel_engine.run import RunReader
run = Recorder()
step = recorded = 0
while recorded < 100:
    run.log(step, at=float(step))
    step += 1
    time.sleep(0.01)
    if step % 100 == 0:
        with closing(RunReader(run.directory)) as reader:
            recorded = (new := reader.new_steps()) and new.stop or 0
print(recorded, flush=True)
os.kill(os.getpid(), signal.SIGKILL)
""",
        status=-signal.SIGKILL,
    )

    assert not done.stderr
    wait_until(lambda: not the_run().info.status.live, "the end of the run")
    read = the_run()
    assert end_of(read) == (Outcome.FAILED, LEFT)
    at = read.series("at")
    assert at.size >= int(done.stdout) >= 100
    assert at.tolist() == list(range(at.size))


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


def test_a_script_that_closes_all_descriptors_is_recorded_and_its_files_stay_intact(tmp_path: Path) -> None:
    done = run_script(
        CLOSING
        + """
with Recorder("closes") as run:
    for step in range(40):
        run.log(step, loss=1.0)
        if step == 20:
            while run._session._thread.steps < 20:
                time.sleep(0.01)
            reopen()
            time.sleep(0.5)
finish()
""",
        folder=tmp_path,
    )

    assert [(tmp_path / f"mine{number}").read_bytes() for number in range(12)] == [b"precious data"] * 12
    assert not done.stderr
    assert end_of(the_run()) == (Outcome.FINISHED, "")
    assert len(the_run().series("loss")) == 40


def test_a_fit_whose_script_closes_all_descriptors_is_recorded(tmp_path: Path) -> None:
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
    assert [(tmp_path / f"mine{number}").read_bytes() for number in range(12)] == [b"precious data"] * 12
    assert end_of(the_run()) == (Outcome.FINISHED, "")
    assert len(the_run().series("loss")) == 24


@pytest.mark.parametrize(
    "ending",
    ["os._exit(0)", "os.abort()", "os.execvp('true', ['true'])", "if os.fork(): os._exit(0)\ntime.sleep(5)"],
    ids=["exit", "abort", "another program", "daemon"],
)
def test_a_script_that_leaves_without_its_recorder_has_failed(wait_until: Callable[..., None], ending: str) -> None:
    sent = "while not run._session._thread.steps: time.sleep(0.01)"
    run_script(f"run = Recorder()\nrun.log(0, loss=1.0)\n{sent}\n{ending}", status=None)

    wait_until(lambda: not the_run().info.status.live, "the end of the run")
    assert end_of(the_run()) == (Outcome.FAILED, LEFT)
    assert len(the_run().series("loss")) == 1


def test_the_supervisor_is_no_child_and_gets_no_signal_of_the_script() -> None:
    done = run_script(
        """
signal.signal(signal.SIGINT, signal.SIG_IGN)
with Recorder() as run:
    try:
        os.wait()
    except ChildProcessError:
        print("none")
    os.killpg(0, signal.SIGINT)
    run.log(0, loss=1.0)
""",
        start_new_session=True,
    )

    assert done.stdout == "none\n"
    assert end_of(the_run()) == (Outcome.FINISHED, "")


KILL = """
import psutil
def supervisor():
    for process in psutil.process_iter(["cmdline"]):
        if (process.info["cmdline"] or [])[-2:] == ["accel_engine.scripts.recorder_supervisor", str(os.getpid())]:
            return process
"""


@pytest.mark.parametrize("how", ["kill", "suspend"])
@pytest.mark.parametrize("calls", ["run.log(step, loss=1.0)", "pass"], ids=["logs on", "only exits"])
def test_a_script_whose_supervisor_is_killed_or_hangs_says_so_once_and_goes_on(how: str, calls: str) -> None:
    done = run_script(
        KILL
        + f"""
from accel_engine.recording import run_link
run_link.SEND_SECONDS = run_link.REPLY_SECONDS = 1.0
run = Recorder()
run.log_text(0, text="begins")
supervisor().{how}()
try:
    for step in range(400):
        {calls}
        run.log_image(step, image=__import__("numpy").random.rand(64, 64))
        time.sleep(0.01)
finally:
    if {how == "suspend"}:
        supervisor().resume()
print("done")
"""
    )

    assert done.stdout == "done\n"
    assert done.stderr.count("RuntimeWarning") == 1
    assert "the supervisor of the run cannot be reached: " in done.stderr


def test_a_supervisor_that_cannot_start_is_told_with_its_reason(tmp_path: Path) -> None:
    (tmp_path / "numpy.py").write_text("raise ImportError('a numpy of the user')")
    done = run_script(
        f"""
os.environ["PYTHONPATH"] = {str(tmp_path)!r}
with Recorder() as run:
    for step in range(5):
        run.log(step, loss=1.0)
    print(run.directory)
"""
    )

    assert done.stdout == "None\n"
    assert "the supervisor of the run cannot start: ImportError: a numpy of the user" in done.stderr
    assert not runs_directory().exists()


def test_each_recorder_of_a_process_has_a_run_and_all_have_one_supervisor() -> None:
    done = run_script(
        KILL
        + """
processes = set()
with Recorder("outer") as outer:
    for name in ("first", "second"):
        with Recorder(name) as inner:
            inner.log(0, loss=1.0)
            processes.add(supervisor().pid)
        outer.log(0, **{name: 1.0})
if not os.fork():
    with Recorder("child") as child:
        child.log(0, loss=1.0)
    sys.exit()
os.wait()
print(len(processes))
"""
    )

    assert done.stdout == "1\n", done.stderr
    runs = [Read(directory) for directory in runs_directory().iterdir()]
    assert sorted(run.info.name for run in runs) == ["child", "first", "outer", "second"]
    assert {end_of(run) for run in runs} == {(Outcome.FINISHED, "")}


def test_a_supervisor_that_has_ended_since_the_last_recorder_is_started_again() -> None:
    done = run_script(
        KILL
        + """
for name in ("first", "second"):
    with Recorder(name) as run:
        run.log(0, loss=1.0)
    process = supervisor()
    process.kill()
    while process.is_running() and process.status() != psutil.STATUS_ZOMBIE:
        time.sleep(0.01)
"""
    )

    assert not done.stderr
    runs = [Read(directory) for directory in runs_directory().iterdir()]
    assert sorted(run.info.name for run in runs) == ["first", "second"]
    assert {end_of(run) for run in runs} == {(Outcome.FINISHED, "")}


def test_an_exit_in_a_thread_ends_that_thread_only() -> None:
    run_script(
        """
import threading
with Recorder() as run:
    def train():
        run.log(0, loss=1.0)
        sys.exit(3)
    thread = threading.Thread(target=train)
    thread.start()
    thread.join()
    run.log(1, loss=2.0)
"""
    )

    assert the_run().series("loss").tolist() == [1.0, 2.0]
    assert end_of(the_run()) == (Outcome.FINISHED, "")


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


@pytest.fixture
def small_disk(tmp_path: Path) -> Iterator[Path]:
    """A real file system of 512 KiB, if this user may make one."""
    small = tmp_path / "small"
    small.mkdir()
    mount = ["mount", "-t", "tmpfs", "-o", "size=512k", "none", small]
    if os.geteuid() or subprocess.run(mount, check=False).returncode:
        pytest.skip("this user may not mount a file system")
    yield small
    subprocess.run(["umount", "--lazy", small], check=True)


def test_a_full_disk_leaves_the_results_as_they_are_and_loses_nothing_if_there_is_room_again(
    small_disk: Path, monkeypatch: pytest.MonkeyPatch, wait_until: Callable[..., None]
) -> None:
    monkeypatch.setenv("ACCEL_TUI_HOME", str(small_disk))
    done = run_script(FILLING)

    assert json.loads(done.stdout) == sum(range(3000))
    assert "the end of the run is not written yet; the disk may be busy" in done.stderr
    assert "Traceback" not in done.stderr
    assert the_run().info.status.live
    subprocess.run(["mount", "-o", "remount,size=64m", small_disk], check=True)
    wait_until(lambda: not the_run().info.status.live, "the end of the run")
    assert end_of(the_run()) == (Outcome.FINISHED, "")
    assert the_run().series("series_49").tolist() == [float(step) for step in range(3000)]


def test_a_disk_that_is_full_from_the_beginning_is_told_once(small_disk: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("ACCEL_TUI_HOME", str(small_disk))
    with suppress(OSError), (small_disk / "other").open("wb") as file:
        file.write(bytes(1 << 20))
    done = run_script("with Recorder() as run:\n    run.log(0, loss=1.0)\nprint(run.directory)")

    assert done.stdout == "None\n"
    assert done.stderr.count("cannot be written: database or disk is full") == 1


def test_a_home_that_is_read_only_is_told_once(small_disk: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("ACCEL_TUI_HOME", str(small_disk))
    subprocess.run(["mount", "-o", "remount,ro", small_disk], check=True)
    done = run_script("with Recorder() as run:\n    run.log(0, loss=1.0)\nprint(run.directory)")

    assert done.stdout == "None\n"
    assert done.stderr.count("not recorded, the script continues: cannot create the run directory") == 1


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
