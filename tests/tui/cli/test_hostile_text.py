"""Whatever a run, a file, a driver or the words of the user have in them, no command has the terminal obey it."""

import io
import json
import shlex
from collections.abc import Callable
from contextlib import closing
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from accel_engine.devices.device_types import CountedItem, Device, Inventory, Reading, Sample, UnavailableKind
from accel_engine.doctor import Check, failed, passed, warned
from accel_engine.events import Outcome, Warned
from accel_engine.run import RunReader
from accel_engine.run.store.database import RunDatabase
from accel_engine.text import printable
from accel_tui.cli import main, terminal_checks
from accel_tui.cli.progress import Bar
from accel_tui.cli.root import COMMANDS
from tui.cli.conftest import Engine, Engines, Outcomes
from tui.fake_engine import FakeEngine
from tui.hostile import HOSTILE, make_run, obeyed

Run = Callable[[str], Outcomes]

INVENTORY = Inventory((Device("cpu:0", "cpu", HOSTILE, 1 << 30, 2),), (UnavailableKind("gpu", HOSTILE),))

READINGS = {
    "utilization": Reading.missing(HOSTILE, "%"),
    "power": Reading(1.0, HOSTILE),
    "processes": Reading.counted((CountedItem(HOSTILE, HOSTILE, 1),)),
    "throttling": Reading.counted((CountedItem(HOSTILE),)),
}


class Sampler:
    """Finds a machine whose drivers answer with hostile text."""

    inventory = INVENTORY

    def __init__(self, on_samples: Callable[[tuple[Sample, ...]], None], interval: float = 1.0) -> None:
        self._on_samples = on_samples

    def start(self) -> None:
        for _ in range(2):
            self._on_samples((Sample(0.0, "cpu:0", READINGS),))

    def stop(self) -> None: ...


@pytest.fixture(autouse=True)
def machine(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    """Everything around the commands answers with hostile text; they start in a folder of hostile names."""
    monkeypatch.setattr("accel_tui.cli.devices.Sampler", Sampler)
    monkeypatch.setattr("accel_tui.cli.catalogue.hardware.detect", lambda: INVENTORY)
    monkeypatch.setattr("accel_tui.cli.watch.has_terminal", lambda: False)
    checks = (
        Check("python", lambda: passed(HOSTILE)),
        Check("nvidia", lambda: warned(HOSTILE, HOSTILE, HOSTILE)),
        Check("tpu", lambda: failed(HOSTILE, HOSTILE, HOSTILE)),
    )
    monkeypatch.setattr("accel_tui.cli.doctor.checks_of", lambda *, deep: checks)
    monkeypatch.setattr(terminal_checks, "checks", lambda: ())
    folder = tmp_path / HOSTILE.replace("/", "")
    folder.mkdir()
    monkeypatch.chdir(folder)
    np.savez("names.npz", **{HOSTILE.replace("/", ""): np.zeros(3)})
    Path("plan.toml").write_text(f"{json.dumps(HOSTILE)} = 3\n")
    Path("table.csv").write_text(f'loss,"{HOSTILE}"\n1,{HOSTILE}\n', newline="")
    Path("model.py").write_text(f"raise ValueError({HOSTILE!r})\n")
    Path("settings.toml").write_text(f"{json.dumps(HOSTILE)} = 3\n")


@pytest.fixture
def run() -> FakeEngine:
    return make_run()


WORDS: dict[str, tuple[tuple[str, ...], ...]] = {
    "train": (
        ("--data", "names.npz"),
        ("--data", HOSTILE),
        ("--model", HOSTILE),
        ("--batch-size", HOSTILE),
        ("--strategy", HOSTILE),
        ("--tpu", HOSTILE, "--strategy", "tpu"),
        ("--devices", HOSTILE),
        ("--resume", HOSTILE),
        ("--resume", "RUN"),
        ("plan.toml",),
        (HOSTILE,),
        (f"--{HOSTILE}",),
    ),
    "estimate": ((HOSTILE,), ("RUN",), ("--data", HOSTILE), ("--model", HOSTILE)),
    "find": (
        ("learning-rate", "--batch-size", HOSTILE),
        ("learning-rate", "--run", f"no {HOSTILE}"),
        ("batch-size", HOSTILE),
        (HOSTILE,),
    ),
    "search": (
        ("--over", HOSTILE),
        ("--over", "learning_rate=1e-3..1e-1", "--name", HOSTILE),
        ("--over", "learning_rate=1e-3..1e-1", "--monitor", HOSTILE),
        ("--resume", HOSTILE),
        ("--join", HOSTILE),
    ),
    "searches": ((), (HOSTILE,)),
    "queue": ((), ("cancel", HOSTILE), ("hold", HOSTILE), ("move", HOSTILE, "1"), (HOSTILE,)),
    "continue": ((HOSTILE,), ("RUN",), ("RUN", "--epochs", HOSTILE)),
    "cluster": (
        ("--workers", f"{HOSTILE}:1"),
        ("--workers", "a:1,b:2", "--name", HOSTILE),
        ("--workers", "a:1,b:2", "--here", HOSTILE),
    ),
    "run": ((HOSTILE,), ("--parse", f"({HOSTILE}", "names.npz"), ("--devices", HOSTILE, "names.npz")),
    "watch": (("RUN",), ("RUN", "--plain"), ("RUN", "--json"), (HOSTILE,)),
    "bench": (("RUN", "--data", HOSTILE), ("RUN", "--devices", HOSTILE), (HOSTILE,)),
    "evaluate": (("RUN",), ("RUN", "--data", HOSTILE), ("RUN", "--json")),
    "predict": (("RUN", "names.npz"), ("RUN", HOSTILE)),
    "runs": ((), ("--json",), ("--filter", HOSTILE), ("--sort", HOSTILE)),
    "export": (
        ("RUN", "--to", "csv"),
        ("RUN", "--to", "csv", "--table", "events", "-o", HOSTILE.replace("/", "")),
        ("RUN", "--to", "csv"),
        ("RUN", "--to", "json", "-o", "-"),
        ("RUN", "--to", "tensorboard"),
    ),
    "report": (("RUN",), ("RUN", "-o", HOSTILE.replace("/", "")), (HOSTILE,)),
    "deploy": (("check", HOSTILE, "RUN"), ("check", "127.0.0.1:9", HOSTILE), (HOSTILE,)),
    "advise": (("RUN", "OTHER"), ("RUN", "--json"), (f"no {HOSTILE}",)),
    "compare": (("RUN", "OTHER"), ("RUN", "OTHER", "--json"), ("RUN",)),
    "import": (("table.csv", "--name", HOSTILE[:30]), ("table.csv",), (HOSTILE,), ("table.csv", "--tag", HOSTILE)),
    "rename": (("RUN", HOSTILE[:30]), ("RUN", HOSTILE * 2)),
    "note": (("RUN", HOSTILE), ("RUN", HOSTILE * 40)),
    "tag": (("RUN", HOSTILE), ("RUN", "fine")),
    "repair": (("RUN",), (f"no {HOSTILE}",)),
    "rm": (("RUN",), (f"no {HOSTILE}",), ("OTHER", "--yes")),
    **dict.fromkeys(("stop", "pause", "resume", "checkpoint"), (("RUN",), (f"no {HOSTILE}",))),
    "set": (("RUN", "--learning-rate", "1"), ("RUN", "--learning-rate", HOSTILE)),
    "hosts": ((), ("add", HOSTILE), ("add", "a", "--ssh", HOSTILE), ("rm", HOSTILE), ("check", HOSTILE), (HOSTILE,)),
    "fetch": (("RUN",), (HOSTILE,), (f"a:{HOSTILE}",)),
    "devices": ((), ("--json",)),
    "doctor": ((), ("--json",), (HOSTILE,)),
    "serve": (("--host", HOSTILE), ("--port", HOSTILE)),
    "settings": ((), ("path",), ("check",), (HOSTILE,)),
    "demo": (("--seconds", HOSTILE),),
    "profile": (("--seconds", HOSTILE), (HOSTILE,), ("--model", HOSTILE)),
    "race": (("--ways", HOSTILE), (HOSTILE,), ("--model", HOSTILE)),
    "completion": (("bash",), ("zsh",), (HOSTILE,)),
    "models": ((), (HOSTILE,)),
    "data": ((),),
    "strategies": ((), ("--json",), ("--virtual-cpus", HOSTILE)),
}
"""What each command is given: where ``RUN`` and ``OTHER`` stand, runs whose every text is hostile."""


def test_all_commands_are_tried() -> None:
    assert WORDS.keys() == COMMANDS.keys()


def clean(result: Outcomes) -> str:
    assert not obeyed(result.out)
    assert not obeyed(result.err)
    return result.out + result.err


SLOW = ("profile",)
"""Starts engine processes, which tell it what they tell ``estimate``."""


@pytest.mark.share(2)
@pytest.mark.parametrize(
    "command", [pytest.param(each, marks=pytest.mark.campaign) if each in SLOW else each for each in WORDS]
)
def test_no_command_writes_what_a_terminal_obeys(
    command: str, run: FakeEngine, run_command: Run, monkeypatch: pytest.MonkeyPatch
) -> None:
    if command == "settings":
        monkeypatch.setenv("ACCEL_TUI_SETTINGS", "settings.toml")
    other = make_run(plan=False)
    written = ""
    for words in WORDS[command]:
        here = {"RUN": str(run.directory), "OTHER": str(other.directory)}
        written += clean(run_command(shlex.join([command, *(here.get(word, word) for word in words)])))
    quotes = command not in ("data", "completion", "models", "serve")  # which quote little
    assert not quotes or "x1b" in written or "u001b" in written


def test_neither_does_the_program_itself(run_command: Run) -> None:
    assert r"\x1b" in clean(run_command(shlex.quote(HOSTILE)))
    assert r"\x1b" in clean(run_command(shlex.quote(f"--{HOSTILE}")))


def test_an_unexpected_error_is_told_without(run_command: Run, monkeypatch: pytest.MonkeyPatch) -> None:
    def fail() -> None:
        raise ValueError(HOSTILE)

    monkeypatch.setattr("accel_tui.cli.runs.list_runs", fail)
    assert r"\x1b" in clean(run_command("runs"))
    monkeypatch.setenv("ACCEL_TUI_DEBUG", "1")
    written = clean(run_command("runs"))
    assert "Traceback" in written
    assert r"\x1b" in written


def act(engine: Engine) -> None:
    engine.begin()
    engine.say(Warned, message=HOSTILE)
    engine.epoch(1)
    engine.end(Outcome.FAILED, reason=f"ValueError: {HOSTILE}", hint=HOSTILE)


@pytest.mark.parametrize("view", ["", "--plain", "--json", "--detach"])
def test_training_tells_what_the_user_s_model_raised_without(
    engines: Engines, run_command: Run, monkeypatch: pytest.MonkeyPatch, view: str
) -> None:
    engines.act = act
    result = run_command(f"train --name {shlex.quote(HOSTILE)} {view}")
    engines.wait(120)
    written = clean(result)
    assert "1b]52;c" in written or view == "--detach"


def test_a_name_stays_as_it_was_typed_and_a_run_is_found_by_what_is_shown_of_it(
    engines: Engines, run_command: Run
) -> None:
    run_command(f"train --name {shlex.quote(HOSTILE)}")
    (line,) = run_command("runs --json").lines
    assert json.loads(line)["name"] == HOSTILE
    engines.wait(120)
    assert run_command(shlex.join(["rename", printable(HOSTILE), "fine"])).status == 0
    (line,) = run_command("runs --json").lines
    assert json.loads(line)["name"] == "fine"


def test_data_for_other_programs_is_as_it_was_said(run: FakeEngine, run_command: Run) -> None:
    run_command(f"export {run.directory} --to csv --table events -o events.csv")
    assert HOSTILE in json.loads(f'"{_field(Path("events.csv").read_text())}"')


def _field(text: str) -> str:
    """The reason of the run's end, as it stands in a table of events."""
    return text.rpartition('""reason"": ""')[2].partition('""')[0]


class Screen(io.StringIO):
    """A terminal."""

    encoding = "utf-8"  # type: ignore[assignment]

    def isatty(self) -> bool:
        return True


def test_the_bar_shows_nothing_that_a_terminal_obeys_but_its_own() -> None:
    engine, stream = make_run(ended=False), Screen()
    with closing(RunReader(engine.directory)) as reader:
        bar = Bar(stream, lambda: (120, 24))
        bar.show(reader.poll())
        engine.say(Warned, message=HOSTILE)
        bar.show(reader.poll())
    engine.close()
    assert r"\x1b" in stream.getvalue()
    assert not obeyed(stream.getvalue(), r"\r|\x1b\[2K|\x1b\[1A|\x1b\[\d*m|\n")


def test_a_terminal_is_shown_a_table_for_programs_cleaned(
    run: FakeEngine, capfd: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("sys.stdout.isatty", lambda: True, raising=False)
    capfd.readouterr()
    assert main(["export", str(run.directory), "--to", "csv", "--table", "samples", "-o", "-"]) == 0
    written = capfd.readouterr().out
    assert r"\x1b" in written
    assert not obeyed(written)


def completed(typed: str) -> list[Any]:
    from accel_tui.cli.completion_sources import attach
    from accel_tui.cli.watch import watch

    (parameter,) = (each for each in watch.params if each.name == "run")
    attach(parameter)
    return parameter.shell_complete(None, typed)  # type: ignore[arg-type]


def test_nothing_is_completed_that_a_terminal_obeys(run: FakeEngine) -> None:
    (run.directory.parent / "0\x1b[2J").mkdir()  # no id of a run starts with a digit
    for typed in ("", "0", "H"):
        for item in completed(typed):
            assert not obeyed(f"{item.value}{item.help}")
    assert [item.value for item in completed("H")] == [run.directory.name]
    assert completed("0") == []


def test_a_file_of_a_run_that_has_a_strange_name_of_its_own_is_named_in_ascii(run_command: Run, home: Path) -> None:
    directory = home / "runs" / "odd\udcff\x1b[2J"
    make_run().directory.rename(directory)
    with closing(RunDatabase(directory)) as connection:
        connection.execute("DELETE FROM main.event")
    assert r"\udcff" in clean(run_command("runs"))
