"""Every row of the table goes with every command, or the program refuses it, as ``refusals.py`` says."""

from collections.abc import Callable

import pytest

from .commands import COMMANDS, OF_PLANS, Cell, RefusedError, check_no_accident, missing_commands
from .conftest import Trainings, take_copy, trained
from .refusals import refusal_of
from .rows import BY_ID, ROWS, Row

BASE_ROW = Row("base", "images")

CELLS = [
    (row.id, command) for row in ROWS for command in COMMANDS if command in OF_PLANS or not refusal_of(row.id, "train")
]


def check(
    name: str,
    command: str,
    make_cell: Callable[[Row], Cell],
    trainings: Trainings,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """Fail unless a cell passes, or is refused as the list says."""
    cell = make_cell(BY_ID[name])
    try:
        if command not in OF_PLANS or command == "train":
            cell.directory = take_copy(trained(cell, trainings, monkeypatch))
        if command == "compare":
            cell.other = take_copy(trained(make_cell(BASE_ROW), trainings, monkeypatch))
        if command != "train":
            COMMANDS[command](cell)
    except RefusedError as refused:
        listed = refusal_of(name, command)
        assert listed, f"refused: {refused.reason} (engines: {refused.engines})"
        assert listed.explains(refused.reason), refused.reason
        assert listed.loads or not refused.engines, f"refused after {refused.engines}: {refused.reason}"
    else:
        check_no_accident("")
        assert refusal_of(name, command) is None, "a refusal that is listed does not happen any more"


def test_every_command_of_the_program_has_a_column() -> None:
    assert not missing_commands()


@pytest.mark.campaign
@pytest.mark.parametrize(("row", "command"), [pytest.param(*cell, id="-".join(cell)) for cell in CELLS])
def test_cell(
    make_cell: Callable[[Row], Cell],
    trainings: Trainings,
    monkeypatch: pytest.MonkeyPatch,
    row: str,
    command: str,
) -> None:
    check(row, command, make_cell, trainings, monkeypatch)
