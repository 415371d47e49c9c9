"""What shells complete."""

import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from accel_engine import data, models, strategies
from accel_engine.plan import Plan
from accel_engine.run import create
from accel_tui.cli.root import COMMANDS

SCRIPT = (
    "import sys\nfrom accel_tui.cli import main\ntry:\n main([])\nfinally:\n sys.stderr.write(' '.join(sys.modules))"
)


def asked(words: str, typed: str = "") -> tuple[list[str], set[str]]:
    """What is completed after some words, as bash would be told, and what was imported for it."""
    whole = ["accel-tui", *words.split(), typed]
    environment = {
        "COMP_WORDS": " ".join(whole),
        "COMP_CWORD": str(len(whole) - 1),
        "_ACCEL_TUI_COMPLETE": "bash_complete",
    }
    done = subprocess.run(
        [sys.executable, "-c", SCRIPT], env=os.environ | environment, capture_output=True, text=True, check=True
    )
    return [line.partition(",")[2] for line in done.stdout.splitlines()], set(done.stderr.split())


def test_commands_are_completed_without_loading_any() -> None:
    found, imported = asked("", "")
    assert found == list(COMMANDS)
    assert asked("", "tr")[0] == ["train"]
    assert not {"numpy", "textual", "rich", "psutil", "tensorflow", "accel_engine.plan"} & imported


@pytest.mark.share(3)
@pytest.mark.parametrize(
    ("words", "typed", "some"),
    [
        ("train --model", "", list(models.CATALOGUE)),
        ("train --data", "", list(data.CATALOGUE)),
        ("train --strategy", "m", [name for name in strategies.CATALOGUE if name.startswith("m")]),
        ("train", "--batch", ["--batch-size"]),
        ("estimate", "--batch", ["--batch-size"]),
        ("estimate", "la", ["last"]),
        ("train --restore-best", "", ["on", "off"]),
        ("train --restore-best", "--shuf", ["--shuffle"]),
        ("train --freeze", "", ["all-but-head"]),
        ("watch", "--j", ["--json"]),
        ("completion", "", ["bash", "zsh", "fish"]),
        ("nonsense", "", []),
    ],
)
def test_options_and_what_they_take_are_completed(words: str, typed: str, some: list[str]) -> None:
    found, imported = asked(words, typed)
    assert set(some) <= set(found)
    assert not {"textual", "tensorflow", "keras"} & imported


def test_runs_are_completed_by_their_ids() -> None:
    run = create(Plan()).name
    for words in ("watch", "stop", "train --resume"):
        found, imported = asked(words)
        assert {run, "last"} <= set(found)
        assert not {"textual", "tensorflow"} & imported


def test_runs_are_completed_by_their_names_where_no_id_fits() -> None:
    plain, odd = create(Plan(name="plain-name")), create(Plan(name="odd name"))
    assert asked("watch", "plain")[0] == ["plain-name"]
    assert asked("watch", "odd")[0] == [odd.name]
    assert asked("stop", plain.name[:4])[0] == [plain.name]


def test_checks_are_completed_by_name_and_subject() -> None:
    found, _ = asked("doctor", "t")
    assert {"tensorflow", "tpu", "terminal"} <= set(found)
    assert all(name.startswith("t") for name in found)


def in_shell(command: list[str], asks: str, folder: Path) -> str:
    """What a shell says that has read its script, ``{script}`` in what it is asked."""
    written = subprocess.run(
        [sys.executable, "-m", "accel_tui", "completion", command[0]], capture_output=True, text=True, check=True
    ).stdout
    script = folder / "script"
    script.write_text(written)
    path = f"{Path(sys.executable).parent}:{os.environ['PATH']}"
    return subprocess.run(
        [*command, asks.replace("{script}", str(script))],
        capture_output=True,
        text=True,
        check=True,
        env=os.environ | {"PATH": path},
    ).stdout


@pytest.mark.skipif(not shutil.which("bash"), reason="there is no bash")
def test_bash_completes_what_is_typed(tmp_path: Path) -> None:
    asks = (
        "source {script}; COMP_WORDS=(accel-tui train --model res); COMP_CWORD=3; "
        '$(complete -p accel-tui | grep -o -- "-F [^ ]*" | cut -c 4-) accel-tui; echo "${COMPREPLY[@]}"'
    )
    found = in_shell(["bash", "-c"], asks, tmp_path).split()
    assert found == [name for name in models.CATALOGUE if name.startswith("res")]


@pytest.mark.skipif(not shutil.which("fish"), reason="there is no fish")
def test_fish_tells_all_that_is_said_of_a_command(tmp_path: Path) -> None:
    asks = "source {script}; complete --do-complete 'accel-tui com'"
    found = in_shell(["fish", "--no-config", "-c"], asks, tmp_path).splitlines()
    assert f"compare\t{COMMANDS['compare'][1]}" in found


@pytest.mark.parametrize("shell", ["bash", "zsh", "fish"])
def test_a_script_says_how_it_is_installed_and_is_one(run_command, shell: str, tmp_path: Path) -> None:
    told = run_command(f"completion {shell}")
    assert told.status == 0
    assert told.lines[-1].startswith(f"# Install for {shell}: accel-tui completion {shell} > ")
    assert shell != "zsh" or told.lines[0] == "#compdef accel-tui", "only then is it found"
    assert "_ACCEL_TUI_COMPLETE" in told.out
    if program := shutil.which(shell):
        script = tmp_path / "script"
        script.write_text(told.out)
        subprocess.run([program, "-n", str(script)], check=True)


def test_another_shell_is_refused_with_those_there_are(run_command) -> None:
    told = run_command("completion tcsh")
    assert told.status == 2
    assert "bash" in told.err
    assert "tcsh" in told.err
