"""``accel-tui run``: a script behaves as with ``python``, and outlives whoever started it."""

import json
import os
import shlex
import shutil
import signal
import subprocess
import sys
import textwrap
from collections.abc import Callable
from contextlib import closing
from pathlib import Path
from typing import Any

import numpy as np
import psutil
import pytest

from accel_engine.events import Outcome, PartEnded, PartStarted
from accel_engine.run import RunInfo, RunReader, Status, list_runs, send_command
from accel_engine.run.engine.commands import read_answer
from end_to_end.terminal import Terminal

WORLD = """
import json, os, sys
print(json.dumps({
    "argv": sys.argv, "path": sys.path, "name": __name__, "file": __file__, "spec": str(__spec__ and __spec__.name),
    "main": sys.modules["__main__"].__dict__ is globals(), "flags": str(sys.flags), "directory": os.getcwd(),
    "variables": {name: value for name, value in os.environ.items() if name not in ("_", "SHLVL")},
    "terminal": [os.isatty(descriptor) for descriptor in (0, 1, 2)], "input": sys.stdin.read(),
    "handlers": [str(__import__("signal").getsignal(number)) for number in range(1, 32)],
    "start": [sys.mine, str(sys.modules["sitecustomize"])],
}))
"""
"""Prints all that a script can see of how it was started."""


class Scripts:
    """Runs scripts with ``python`` and with ``accel-tui run``."""

    def __init__(self, program: Path, directory: Path) -> None:
        self._program = program
        self.directory = directory

    def write(self, name: str, text: str) -> str:
        (self.directory / name).parent.mkdir(exist_ok=True)
        (self.directory / name).write_text(textwrap.dedent(text))
        return name

    def command(self, *arguments: str) -> list[str]:
        return [str(self._program), "run", *arguments]

    def plainly(self, *arguments: str, **options: Any) -> "subprocess.CompletedProcess[str]":
        return self._run([sys.executable, *arguments], options)

    def recorded(self, *arguments: str, **options: Any) -> "subprocess.CompletedProcess[str]":
        return self._run(self.command(*arguments), options)

    def start(self, *arguments: str, **options: Any) -> "subprocess.Popen[str]":
        streams = {"stdin": subprocess.DEVNULL, "stdout": subprocess.PIPE, "stderr": subprocess.PIPE, **options}
        return subprocess.Popen(self.command(*arguments), cwd=self.directory, text=True, **streams)

    def _run(self, command: list[str], options: dict[str, Any]) -> "subprocess.CompletedProcess[str]":
        options = {"input": "", **options}
        return subprocess.run(command, cwd=self.directory, capture_output=True, text=True, check=False, **options)


@pytest.fixture
def scripts(program: Path, tmp_path: Path) -> Scripts:
    (tmp_path / "scripts").mkdir()
    return Scripts(program, tmp_path / "scripts")


@pytest.fixture
def own_start(scripts: Scripts, monkeypatch: pytest.MonkeyPatch) -> None:
    """What the user has Python do at each start."""
    scripts.write("site/sitecustomize.py", "import sys; sys.mine = 'mine'")
    monkeypatch.setenv("PYTHONPATH", str(scripts.directory / "site"))


def last() -> RunInfo:
    info = list_runs()[0].info
    assert info
    return info


def log() -> str:
    return (last().directory / "log.txt").read_text()


def reason() -> str:
    return list_runs()[0].reason


def ended(wait_until: Callable[..., None], status: Status) -> None:
    wait_until(lambda: not last().status.live, "the end of the run")
    assert last().status is status, log()


@pytest.mark.parametrize(
    "arguments",
    [pytest.param((), marks=pytest.mark.campaign), ("--lr", "1e-3", "--name", "x", "--", "-m", "two words")],
)
@pytest.mark.usefixtures("own_start")
def test_a_script_sees_what_it_sees_with_python(scripts: Scripts, arguments: tuple[str, ...]) -> None:
    name = scripts.write("train.py", WORLD)

    plain = scripts.plainly(name, *arguments, input="some input\n")
    recorded = scripts.recorded(name, "--", *arguments, input="some input\n")

    assert json.loads(recorded.stdout) == json.loads(plain.stdout)
    assert recorded.stderr == ""
    assert log() == recorded.stdout
    assert last().status is Status.FINISHED


@pytest.mark.usefixtures("own_start")
def test_a_module_sees_what_it_sees_with_python(scripts: Scripts) -> None:
    scripts.write("package/__init__.py", "")
    scripts.write("package/train.py", WORLD)

    plain = scripts.plainly("-m", "package.train", "-m", "--", "x")
    recorded = scripts.recorded("-m", "package.train", "--", "-m", "--", "x")

    assert json.loads(recorded.stdout) == json.loads(plain.stdout)


@pytest.mark.parametrize(
    ("text", "status", "why"),
    [
        ("print('done')", Status.FINISHED, ""),
        pytest.param(
            "raise SystemExit(3)", Status.FAILED, "the script exited with status 3", marks=pytest.mark.campaign
        ),
        ("raise ValueError('oh no')", Status.FAILED, "the script exited with status 1: ValueError: oh no"),
        pytest.param(
            "import os; os._exit(4)", Status.FAILED, "the script exited with status 4", marks=pytest.mark.campaign
        ),
        ("import os; os.kill(os.getpid(), 9)", Status.FAILED, "the script was killed by SIGKILL"),
        pytest.param(
            "import os; os.abort()", Status.FAILED, "the script was killed by SIGABRT", marks=pytest.mark.campaign
        ),
        ("raise KeyboardInterrupt", Status.STOPPED, "interrupted from the keyboard"),
        (
            "import os; os.execvp('sh', ['sh', '-c', 'echo sh; exit 5'])",
            Status.FAILED,
            "the script exited with status 5",
        ),
    ],
)
def test_a_script_ends_as_with_python(scripts: Scripts, text: str, status: Status, why: str) -> None:
    name = scripts.write("train.py", text)

    plain, recorded = scripts.plainly(name), scripts.recorded(name)

    assert (recorded.returncode, recorded.stdout, recorded.stderr) == (plain.returncode, plain.stdout, plain.stderr)
    assert (last().status, reason()) == (status, why)


@pytest.mark.parametrize(
    "arguments",
    [
        ("-m", "resnet", "--epochs", "3"),
        *(pytest.param(each, marks=pytest.mark.campaign) for each in (("--parse",), ("--detach", "--name"))),
    ],
)
def test_the_options_of_a_script_are_not_ours(scripts: Scripts, arguments: tuple[str, ...]) -> None:
    name = scripts.write("train.py", "import sys; print(sys.argv)")

    recorded = scripts.recorded("--name", "first try", name, *arguments)

    assert recorded.stdout == scripts.plainly(name, *arguments).stdout
    assert last().name == "first try"


@pytest.mark.parametrize(
    "closed", [*(pytest.param(each, marks=pytest.mark.campaign) for each in (">&-", "2>&-", "<&-")), ">&- 2>&- <&-"]
)
def test_closed_streams_files_of_the_user_and_a_long_directory_for_temporary_files_are_no_hindrance(
    scripts: Scripts, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, closed: str
) -> None:
    for module in ("random", "queue", "socket", "types", "numpy", "platform", "sqlite3"):
        scripts.write(f"{module}.py", "raise SystemExit('a file of the user')")
    name = scripts.write("folder/train.py", "open('ran', 'w'); print('trained')")
    place = tmp_path / ("x" * 120)
    place.mkdir()
    monkeypatch.setenv("TMPDIR", str(place))
    subprocess.run(["sh", "-c", f'exec "$@" {closed}', "sh", *scripts.command(name)], cwd=scripts.directory, check=True)

    assert (scripts.directory / "ran").exists()
    assert (last().status, log()) == (Status.FINISHED, "trained\n")


def test_a_script_whose_reader_is_gone_ends_as_with_python(scripts: Scripts) -> None:
    name = scripts.write("train.py", "while True: print('x' * 100)")
    with scripts.start(name) as process:
        assert process.stdout
        assert process.stderr
        process.stdout.readline()
        process.stdout.close()
        assert "BrokenPipeError" in process.stderr.read()
        assert process.wait() == 1
    assert reason().startswith("the script exited with status 1: BrokenPipeError")


def test_ctrl_c_right_after_the_start_reaches_the_script(scripts: Scripts, wait_until: Callable[..., None]) -> None:
    name = scripts.write("train.py", "import time; time.sleep(1000)")
    with scripts.start(name) as process:
        wait_until(lambda: psutil.Process(process.pid).children(), "the supervisor")
        process.send_signal(signal.SIGINT)
        assert process.wait() == -signal.SIGINT
    assert last().status is Status.STOPPED


@pytest.mark.parametrize("redirected", [pytest.param("</dev/null", marks=pytest.mark.campaign), "| cat"])
def test_ctrl_z_suspends_a_script_and_whatever_its_output_goes_to(scripts: Scripts, redirected: str) -> None:
    name = scripts.write(
        "train.py", "import time\nfor i in range(100_000): print('tick', i, flush=True); time.sleep(0.05)"
    )
    command = f"{shlex.join(scripts.command(name))} {redirected}"
    with Terminal(["bash", "--norc", "-i"], directory=scripts.directory, environment={"PS1": "ready> "}) as terminal:
        terminal.wait_for("ready>")
        terminal.send(command, "enter")
        terminal.wait_for("tick 3")
        terminal.send("ctrl+z")
        terminal.wait_for("Stopped")
        terminal.send("echo $((40 + 2))", "enter")
        terminal.wait_for("42")
        terminal.send("fg", "enter")
        terminal.wait_for(lambda text: "tick" in text.rpartition("fg")[2])
        terminal.send("ctrl+c")
        terminal.wait_for(lambda text: text.rstrip().endswith("ready>"))


def test_a_signal_reaches_the_handler_of_the_script(scripts: Scripts) -> None:
    name = scripts.write(
        "train.py",
        """
        import signal, sys, time
        signal.signal(signal.SIGTERM, lambda *_: sys.exit("my own end"))
        signal.signal(signal.SIGUSR1, lambda *_: print("saved", flush=True))
        print("ready", flush=True)
        while True: time.sleep(0.01)
        """,
    )
    with scripts.start(name) as process:
        assert process.stdout
        assert process.stderr
        assert process.stdout.readline() == "ready\n"
        process.send_signal(signal.SIGUSR1)
        assert process.stdout.readline() == "saved\n"
        process.send_signal(signal.SIGTERM)
        assert (process.wait(), process.stderr.read()) == (1, "my own end\n")
    assert reason() == "the script exited with status 1; it last printed: my own end"


def test_a_terminal_is_one_for_the_script(scripts: Scripts) -> None:
    name = scripts.write(
        "train.py",
        """
        import getpass, os, sys, time
        print([os.isatty(each) for each in (0, 1, 2)], *os.get_terminal_size(), os.tcgetpgrp(0) == os.getpgrp())
        print("hello", input("name? "))
        print(len(getpass.getpass("secret? ")), "characters")
        try:
            print("waiting", flush=True)
            while True: time.sleep(0.01)
        except KeyboardInterrupt:
            print("caught")
        print("size", *os.get_terminal_size())
        while True: time.sleep(0.01)
        """,
    )
    with Terminal(scripts.command(name), columns=90, rows=25, directory=scripts.directory) as terminal:
        before = terminal.modes_before
        terminal.wait_for("name?")
        terminal.send("ann", "enter")
        terminal.wait_for("secret?")
        terminal.send("12345", "enter")
        terminal.wait_for("waiting")
        terminal.resize(100, 40)
        terminal.send("ctrl+c")
        terminal.wait_for("size")
        terminal.send("ctrl+c")
        assert terminal.wait_closed() == -signal.SIGINT
        assert terminal.modes == before
        shown = terminal.text
    for text in (
        "[True, True, True] 90 25 True",
        "hello ann",
        "5 characters",
        "^Ccaught",
        "size 100 40",
        "KeyboardInter",
    ):
        assert text in shown
    assert "12345" not in shown
    assert (last().status, reason()) == (Status.STOPPED, "interrupted from the keyboard")
    assert "name? ann\nhello ann\n" in log()


@pytest.mark.parametrize("how", ["hang_up", pytest.param("kill", marks=pytest.mark.campaign)])
def test_a_script_outlives_its_terminal(scripts: Scripts, wait_until: Callable[..., None], how: str) -> None:
    name = scripts.write(
        "train.py",
        """
        import os, time
        print("begun", flush=True)
        while not os.path.exists("goes-on"): time.sleep(0.01)
        print("x" * 100_000, flush=True)
        print("done")
        """,
    )
    with Terminal(scripts.command(name), directory=scripts.directory) as terminal:
        terminal.wait_for("begun")
        wait_until(lambda: last().status is Status.RUNNING, "the run")
        getattr(terminal, how)()
        assert terminal.process.wait() < 0
        assert last().status is Status.RUNNING
        (scripts.directory / "goes-on").touch()
        ended(wait_until, Status.FINISHED)
    assert log().splitlines()[-2:] == ["x" * 100_000, "done"]


def test_a_detached_script_is_logged_as_it_prints(scripts: Scripts, wait_until: Callable[..., None]) -> None:
    name = scripts.write(
        "train.py",
        """
        import os, sys, time
        print("first", os.isatty(1), repr(sys.stdin.read()))
        while not os.path.exists("goes-on"): time.sleep(0.01)
        print("second")
        """,
    )
    done = scripts.recorded("--detach", name)

    assert (done.returncode, done.stdout) == (0, f"{last().id}\n")
    wait_until(lambda: log() == "first False ''\n", "the first line")
    (scripts.directory / "goes-on").touch()
    ended(wait_until, Status.FINISHED)
    assert log() == "first False ''\nsecond\n"


def test_stopping_a_script_interrupts_it_then_terminates_it_then_kills_it(
    scripts: Scripts, wait_until: Callable[..., None]
) -> None:
    name = scripts.write(
        "train.py",
        """
        import signal, time
        signal.signal(signal.SIGINT, lambda *_: print("not yet", flush=True))
        signal.signal(signal.SIGTERM, lambda *_: print("no", flush=True))
        print("ready", flush=True)
        while True: time.sleep(0.01)
        """,
    )
    scripts.recorded("--detach", name)
    wait_until(lambda: "ready" in log(), "the script")
    said = "ready\n"
    for command, sent, words in (
        ("stop", "SIGINT", "not yet\n"),
        ("stop", "SIGINT", "not yet\n"),
        ("stop_now", "SIGINT", "not yet\n"),
        ("stop_now", "SIGTERM", "no\n"),
        ("stop_now", "SIGKILL", ""),
    ):
        number = send_command(last().directory, command)
        wait_until(lambda number=number: read_answer(last().directory, number), "the answer")
        answer = read_answer(last().directory, number)
        assert answer
        assert answer[0]
        assert sent in answer[1]
        said += words
        wait_until(lambda said=said: log() == said, "the signal")
    ended(wait_until, Status.STOPPED)
    assert reason().startswith("interrupt requested by ")


def test_a_pause_needs_a_fit(scripts: Scripts, wait_until: Callable[..., None]) -> None:
    name = scripts.write("train.py", "input()")
    with scripts.start(name, stdin=subprocess.PIPE) as process:
        wait_until(lambda: list_runs() and last().status is Status.RUNNING, "the run")
        number = send_command(last().directory, "pause")
        wait_until(lambda: read_answer(last().directory, number), "the answer")
        process.communicate("\n")
    answer = read_answer(last().directory, number)
    assert answer
    assert answer == (False, "no fit is running: only a fit can be paused")


def test_what_the_script_leaves_behind_prints_on_into_the_log(
    scripts: Scripts, wait_until: Callable[..., None]
) -> None:
    name = scripts.write(
        "train.py",
        """
        import os, subprocess, sys
        wait = "import os, time\\nwhile not os.path.exists('goes-on'): time.sleep(0.01)\\nprint('late')"
        subprocess.Popen([sys.executable, "-c", wait])
        print("done")
        """,
    )
    with scripts.start(name) as process:
        assert process.wait() == 0
        assert last().status is Status.FINISHED
        (scripts.directory / "goes-on").touch()
        assert process.stdout
        assert process.stdout.read() == "done\nlate\n"
    assert log() == "done\nlate\n"


def test_patterns_record_the_values_that_a_script_prints(scripts: Scripts) -> None:
    name = scripts.write("train.py", "for i in range(5): print(f'step {i * 2}: loss={1 / (i + 1):.4f} acc {i / 5}')")

    patterns = (r"step (?P<step>\d+)", r"loss=(?P<loss>[\d.]+)", r"acc (?P<accuracy>[\d.]+)")
    done = scripts.recorded(*(word for pattern in patterns for word in ("--parse", pattern)), name)

    assert done.returncode == 0
    with closing(RunReader(last().directory)) as reader:
        batches = list(reader.steps(0, 100))
    loss = np.concatenate([batch.series["loss"] for batch in batches])
    assert np.isfinite(loss).nonzero()[0].tolist() == [0, 2, 4, 6, 8]
    assert loss[::2].tolist() == pytest.approx([1.0, 0.5, 0.3333, 0.25, 0.2])


def test_recorders_in_processes_that_the_script_starts_are_parts_of_its_run(scripts: Scripts) -> None:
    scripts.write(
        "child.py",
        """
        import os, signal, sys
        from accel_engine import Recorder

        def train(name):
            with Recorder(name) as run:
                run.log(0, loss=1.0)

        def die(name):
            run = Recorder(name)
            run.log(0, loss=2.0)
            while run._session._thread.steps == run._link.step: pass
            os.kill(os.getpid(), signal.SIGKILL)

        if __name__ == "__main__":
            train(sys.argv[1])
        """,
    )
    name = scripts.write(
        "train.py",
        """
        import multiprocessing, os, subprocess, sys, time, child
        from contextlib import closing
        from accel_engine import Recorder
        from accel_engine.events import PartEnded
        from accel_engine.run import RunReader, list_runs

        def start(method, function, name):
            process = multiprocessing.get_context(method).Process(target=function, args=(name,))
            process.start()
            process.join()

        if __name__ == "__main__":
            subprocess.run([sys.executable, "child.py", "program"], check=True)
            start("spawn", child.train, "spawned")
            start("forkserver", child.train, "of a server")
            start("spawn", child.die, "killed")
            with closing(RunReader(list_runs()[0].directory)) as reader:
                while len([*reader.events(0, PartEnded)]) < 4:  # until it is known that a process was killed
                    time.sleep(0.01)
            with Recorder("parent") as run:
                start("fork", child.train, "beside it")
                run.log(0, loss=1.0)
            start("fork", child.train, "forked")
        """,
    )

    recorded = scripts.recorded(name)

    assert (recorded.returncode, recorded.stderr) == (0, "")
    with closing(RunReader(last().directory)) as reader:
        ends = [(event.name, event.outcome) for _, event in reader.events(0, PartEnded)]
        assert sum(chunk.count for chunk in reader.poll().chunks) == 6
    finished = [(each, Outcome.FINISHED) for each in ("program", "spawned", "of a server", "parent", "forked")]
    assert ends == [*finished[:3], ("killed", Outcome.FAILED), *finished[3:]]
    assert "part 5 (parent) is being recorded: parts are one after another" in log()


def test_a_script_whose_run_is_deleted_goes_on_and_the_user_is_told_once(
    scripts: Scripts, wait_until: Callable[..., None]
) -> None:
    name = scripts.write(
        "train.py",
        """
        import os, time
        from accel_engine import Recorder
        with Recorder() as run:
            step = 0
            while not os.path.exists("goes-on"):
                run.log(step, loss=1.0)
                step += 1
                time.sleep(0.01)
        print("done")
        """,
    )
    with scripts.start(name) as process:
        wait_until(lambda: list_runs() and list_runs()[0].steps > 3, "steps")
        shutil.rmtree(last().directory)
        assert process.stderr
        assert process.stderr.readline().rstrip().endswith("nothing more is recorded; the script continues")
        (scripts.directory / "goes-on").touch()
        output, errors = process.communicate()
    assert (process.returncode, output, errors) == (0, "done\n", "")
    assert list_runs() == []


def test_a_killed_supervisor_is_told(scripts: Scripts, wait_until: Callable[..., None]) -> None:
    name = scripts.write("train.py", "import time; print('ready', flush=True); time.sleep(1000)")
    with scripts.start(name) as process:
        assert process.stdout
        assert process.stderr
        assert process.stdout.readline() == "ready\n"
        supervisor = last().pid
        assert supervisor
        (script,) = psutil.Process(supervisor).children()
        os.kill(supervisor, signal.SIGKILL)
        assert process.wait() == 1
        assert "the supervisor of the script is gone" in process.stderr.read()
        script.kill()
    assert last().status is Status.LOST


def test_a_script_that_trains_at_once_loses_no_step(scripts: Scripts) -> None:
    name = scripts.write(
        "train.py",
        """
        from accel_engine import Recorder
        for part in range(2):
            with Recorder(f"part {part}") as run:
                for step in range(5): run.log(step, loss=1 / (step + 1))
        """,
    )
    assert scripts.recorded(name).returncode == 0

    with closing(RunReader(last().directory)) as reader:
        batches = list(reader.steps(0, 100))
        parts = [event for event in reader.poll().events if isinstance(event, PartStarted)]
    assert np.concatenate([batch.series["loss"] for batch in batches]) == pytest.approx(
        [1, 1 / 2, 1 / 3, 1 / 4, 1 / 5] * 2
    )
    assert [(part.name, part.step) for part in parts] == [("part 0", 0), ("part 1", 5)]
