"""A name that the system cannot look up is wrong usage, and no mistake of the program."""

import pytest


@pytest.mark.parametrize("name", ["0" * 300, "~nobody-of-this-name/x"], ids=["too long", "of no user"])
@pytest.mark.parametrize(
    "command",
    [
        *("data NAME", "data NAME.npz", "data NAME.py:load", "train --data NAME", "train --validation-data NAME.npz"),
        *("train --model NAME.keras", "train --model NAME.py:build", "train --initial-weights NAME.keras"),
        *("train --from NAME", "watch NAME", "repair NAME", "export NAME", "predict NAME x.png", "import NAME"),
    ],
)
def test_it_is_said(run_command, command: str, name: str) -> None:
    result = run_command(command.replace("NAME", name))
    assert result.status == 2, result.err
    assert "bug in accel-tui" not in result.err


def test_a_home_that_cannot_be_looked_up_is_named(run_command, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("ACCEL_TUI_HOME", "0" * 300)
    assert run_command("runs").status == 0
    result = run_command("train --data digits --model mlp")
    assert result.status == 1
    assert "File name too long; set ACCEL_TUI_HOME to a writable directory" in result.err
