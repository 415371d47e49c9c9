"""Every row of the table goes with every command, or the program refuses it, as ``refusals.py`` says.

The whole table is a campaign. An ordinary run takes a share of it.
"""

from collections.abc import Callable

import pytest

from shares import ORDINARY, share_of

from .commands import COMMANDS, OF_PLANS, Cell, RefusedError, missing_commands
from .conftest import Trainings, take_copy, trained
from .refusals import DOCUMENT, REFUSALS, refusal_of
from .rows import BY_ID, ROWS, Row

BASE_ROW = Row("base", "images")

CELLS = [
    (row.id, command) for row in ROWS for command in COMMANDS if command in OF_PLANS or not refusal_of(row.id, "train")
]
"""All cells; for commands that take a run, only of rows that can be trained."""

QUICK = [(row, command) for row, command in CELLS if not BY_ID[row].is_slow]

SHARE = 4
"""Cells of an ordinary run: about 10 s of processor time."""


def check(
    name: str,
    command: str,
    make_cell: Callable[[Row], Cell],
    trainings: Trainings,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """Fail unless a cell passes, or is refused as the list says."""
    again = f'pytest -n0 -m campaign "tests/combinations/test_combinations.py::test_cell[{name}-{command}]"'
    print(f"again: {again}")  # noqa: T201 (pytest shows it for a cell that fails)
    cell, listed = make_cell(BY_ID[name]), refusal_of(name, command)
    refused = None
    try:
        if command not in OF_PLANS or command == "train":
            cell.directory = take_copy(trained(cell, trainings, monkeypatch))
        if command == "compare":
            cell.other = take_copy(trained(make_cell(BASE_ROW), trainings, monkeypatch))
        if command != "train":
            COMMANDS[command](cell)
    except RefusedError as error:
        refused = error
    if refused is None:
        assert listed is None, f"a listed refusal does not happen any more: {listed}"
        return
    assert listed is not None, f"refused: {refused.reason} (engines: {refused.engines})"
    assert listed.explains(refused.reason), f"{refused.reason} is not {listed.says}"
    assert listed.loads or not refused.engines, f"refused after {refused.engines}: {refused.reason}"


def test_every_command_of_the_program_has_a_column() -> None:
    assert not missing_commands()


def test_every_refusal_is_documented_and_of_the_table() -> None:
    lines = [line for line in DOCUMENT.read_text().splitlines() if line.startswith("| ")][1:]
    assert all(any(line.startswith(f"| {each.title}") for line in lines) for each in REFUSALS)
    assert all(any(line.startswith(f"| {each.title}") for each in REFUSALS) for line in lines)
    for each in REFUSALS:
        assert any(each.fits(row, command) for row, command in CELLS), each


def pytest_generate_tests(metafunc: pytest.Metafunc) -> None:
    """Make thousands of tests only where they are wanted: other tests would collect them for seconds."""
    if metafunc.function is test_cell:
        ordinary = metafunc.config.option.markexpr == ORDINARY
        wanted, marks = (share_of(QUICK, len(QUICK) // SHARE), ()) if ordinary else (CELLS, pytest.mark.campaign)
        metafunc.parametrize(
            ("row", "command"), [pytest.param(*cell, id="-".join(cell), marks=marks) for cell in wanted]
        )


def test_cell(
    make_cell: Callable[[Row], Cell],
    trainings: Trainings,
    monkeypatch: pytest.MonkeyPatch,
    row: str,
    command: str,
) -> None:
    check(row, command, make_cell, trainings, monkeypatch)
