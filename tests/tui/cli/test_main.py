import errno
import os
import re
import shlex
import subprocess
import sys
from pathlib import Path
from pkgutil import resolve_name

import click
import pytest

from accel_engine import __version__
from accel_engine.errors import AccelError, UsageError
from accel_tui.cli import main
from accel_tui.cli.root import COMMANDS, SECTIONS, root


def test_help_lists_every_command(run_command):
    told = run_command("--help")
    assert told.status == 0
    for name, (_, summary) in COMMANDS.items():
        assert f"  {name} " in told.out
        assert summary in told.out
    assert sorted(name for names in SECTIONS.values() for name in names) == sorted(COMMANDS)
    places = [told.out.index(f"\n{section}:\n") for section in SECTIONS]
    assert places == sorted(places)


def test_a_command_below_a_command_has_statuses_in_its_help(run_command):
    told = run_command("settings check --help")
    assert told.status == 0
    assert told.out.count("Exit status:") == 1
    assert "accel-tui --help" in told.lines[-1]


@pytest.mark.parametrize("name", COMMANDS)
def test_every_command_has_help_with_an_example_that_fits(run_command, name):
    told = run_command(f"{name} --help")
    assert told.status == 0
    assert "Example" in told.out
    assert "  accel-tui " in told.out.rpartition("Example")[2]
    assert all(len(line) <= 80 for line in told.lines)


@pytest.mark.parametrize("name", COMMANDS)
def test_every_help_is_a_manual_whose_examples_can_be_typed(name):
    command = root.get_command(click.Context(root), name)
    assert isinstance(command, click.Command)
    assert command.help, "says what it is for"
    assert command.epilog
    assert "Exit status:" in command.epilog
    assert all(option.help for option in command.params if isinstance(option, click.Option))
    said = re.sub(r"\\\n\s*", "", command.epilog)  # lines that go on
    said = re.sub(r"\$\([^)]*\)", "RUN", said)  # what other commands print
    examples = [line for line in said.splitlines() if line.startswith("  ") and "accel-tui " in line]
    assert examples
    for line in examples:
        # What is after two blanks is said of it; what is before the name, and after a pipe, is other programs'.
        words = shlex.split(line.strip().partition("  ")[0], comments=True)
        words = words[words.index("accel-tui") + 1 :]
        end = next((place for place, word in enumerate(words) if word in ("|", ">", "&&", ";")), len(words))
        with root.make_context("accel-tui", words[:end]) as context:
            rest = [*context._protected_args, *context.args]
            _, asked, arguments = root.resolve_command(context, rest)
            assert asked is not None
            asked.make_context(asked.name, arguments, parent=context).close()


@pytest.mark.parametrize("name", COMMANDS)
def test_every_entry_names_a_command_of_that_name(name):
    command = resolve_name(COMMANDS[name][0])
    assert isinstance(command, click.Command)
    assert command.name == name


def test_version_and_what_a_bug_report_needs_beside_it(run_command):
    told = run_command("--version")
    assert told.status == 0
    assert told.lines[0] == f"accel-tui {__version__}"
    facts = {line.split()[0] for line in told.lines[1:]}
    assert facts == {"python", "system", "tensorflow", "keras", "textual", "terminal"}


def test_an_unknown_command_is_told_with_the_nearest(run_command):
    result = run_command("trian")
    assert result.status == 2
    assert result.err == "accel-tui: no such command 'trian'; did you mean train?\nTry 'accel-tui --help'.\n"


def test_an_unknown_option_points_to_the_help_of_its_command(run_command):
    result = run_command("train --epoch 3")
    assert result.status == 2
    assert "--epoch" in result.err
    assert "Try 'accel-tui train --help'." in result.err
    assert not result.out


def test_without_a_terminal_the_dashboard_points_to_train(run_command):
    result = run_command("")
    assert result.status == 2
    assert "accel-tui train" in result.err
    assert not result.out


@pytest.mark.parametrize(
    ("error", "status", "said"),
    [
        (UsageError("asked wrongly"), 2, "accel-tui: asked wrongly\n"),
        (AccelError("it broke"), 1, "accel-tui: it broke\n"),
        (click.Abort(), 130, ""),
        (KeyboardInterrupt(), 130, "\n"),
        (OSError(errno.ENOSPC, "No space left on device"), 1, "unexpected OSError"),
        (ValueError("a mistake of ours"), 1, "accel-tui: unexpected ValueError: a mistake of ours\n"),
    ],
)
def test_an_error_is_a_line_and_a_status(monkeypatch, run_command, error, status, said):
    def fail() -> None:
        raise error

    monkeypatch.delenv("ACCEL_TUI_DEBUG", raising=False)
    monkeypatch.setattr("accel_tui.cli.runs.list_runs", fail)
    result = run_command("runs")
    assert result.status == status
    assert said in result.err
    assert "Traceback" not in result.err


def test_a_mistake_of_ours_shows_its_traceback_when_asked(monkeypatch, run_command):
    monkeypatch.setenv("ACCEL_TUI_DEBUG", "1")
    monkeypatch.setattr("accel_tui.cli.runs.list_runs", lambda: 1 / 0)
    result = run_command("runs")
    assert result.status == 1
    assert "Traceback" in result.err


def test_help_imports_no_command():
    script = "import sys; from accel_tui.cli import main; main(['--help']); print(*sys.modules)"
    done = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, check=True)
    imported = done.stdout.split()
    assert not {"numpy", "textual", "rich", "psutil", "tensorflow", "accel_engine.plan"} & set(imported)


def test_a_reader_that_goes_away_ends_a_listing_quietly():
    read, write = os.pipe()
    os.close(read)
    command = [sys.executable, "-m", "accel_tui", "models"]
    done = subprocess.run(command, stdout=write, stderr=subprocess.PIPE, text=True, check=False)
    os.close(write)
    assert (done.returncode, done.stderr) == (0, "")


def test_the_words_of_this_process_are_read_when_none_are_given(monkeypatch, capfd):
    monkeypatch.setattr(sys, "argv", [str(Path("accel-tui")), "--version"])
    assert main() == 0
    assert __version__ in capfd.readouterr().out
    assert root.name == "root"
