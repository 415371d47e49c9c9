"""Damaged files of runs: every command and reader says what is damaged."""

import io
import shutil
from collections.abc import Callable, Iterator
from contextlib import closing, contextmanager, redirect_stderr, redirect_stdout, suppress
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as some

import damaged_runs
from accel_engine.errors import AccelError
from accel_engine.run import RunReader
from accel_engine.run.directory.run_paths import runs_directory
from accel_engine.text import printable_fields
from accel_tui.cli import main
from accel_tui.run_state.curve import CAPACITY
from accel_tui.run_state.device_curves import READINGS, DeviceCurvesReader
from accel_tui.run_state.diagnostics import DiagnosticsReading, read_diagnostics, read_item
from accel_tui.run_state.fold_events import apply_update
from accel_tui.run_state.run_follower import EVENTS, SAMPLES
from accel_tui.run_state.state import RunState
from accel_tui.widgets.run.run_details import RunDetails
from accel_tui.widgets.run.run_events import RunEvents
from accel_tui.widgets.run.run_outcome import RunOutcome

Damage = Callable[[Path], None]

DEEP = "[" * 100_000
BOMB = '{"a":' * 900 + "1" + "}" * 900

VALUES = some.one_of(
    some.sampled_from(
        [
            None,
            0,
            -1,
            1 << 31,
            1 << 53,
            (1 << 63) - 1,
            -(1 << 63),
            1e300,
            -1e300,
            float("inf"),
            0.5,
            "",
            "x",
            "0",
            "\x1b[2J\x00\u202e\ud7ff",
            "{}",
            "[]",
            "[{}]",
            "null",
            "NaN",
            "1e999",
            "9" * 5000,
            '{"step": 1}',
            '{"metrics": {"loss": 1e999}}',
            "{},{}",
            DEEP,
            BOMB,
            b"",
            b"\xff" * 12,
            bytes(1000),
            bytes(1280),
        ]
    ),
    some.sampled_from(
        [
            *("=@ * 1000000000", "=@ * 1000", "=@ + 1", "=@ - 1", "=@ / 3.0", "=-@", "=@ || 'x'", "=9e999"),
            *("=CAST(x'ff' AS TEXT)", "=zeroblob(100000)", "=randomblob(40)", "=printf('%1000000s', 'x')"),
        ]
    ),
    some.integers(-(1 << 63), (1 << 63) - 1),
    some.floats(allow_nan=False),
    some.text(max_size=20),
    some.binary(max_size=20),
)
"""Values of a column; expressions of SQL begin with ``=``."""

JSON_VALUES = some.recursive(
    some.one_of(
        some.just(...),
        some.none(),
        some.booleans(),
        some.integers(),
        some.floats(),
        some.sampled_from([-1, 0, 1 << 60, 10**400, 1e999, "", "x", "\ud800\x1b[2J", "finished", "paused", "min"]),
        some.text(max_size=20),
    ),
    lambda inner: some.lists(inner, max_size=3) | some.dictionaries(some.text(max_size=5), inner, max_size=3),
    max_leaves=5,
)

COLUMNS = some.sampled_from([(table, column) for table, names in damaged_runs.COLUMNS.items() for column in names])

FIELDS = some.sampled_from(
    [
        *sorted({name for names in damaged_runs.EVENT_FIELDS.values() for name in names}),
        *("loss", "utilization", "cores", "power", "model", "data", "type", "outputs", "shape", "length", "bins"),
        "a field of a newer version",
    ]
)


def _sql(place: tuple[str, str], value: Any, row: int | None) -> Damage:
    return lambda run: damaged_runs.set_value(run, *place, value, row)


def _json(place: tuple[str, str], row: int, name: str, value: Any) -> Damage:
    return lambda run: damaged_runs.set_field(run, *place, row, name, value)


def _statement(statement: str) -> Damage:
    return lambda run: damaged_runs.change(run, statement)


def _bytes(share: float, data: bytes) -> Damage:
    return lambda run: damaged_runs.overwrite(run, share, data)


def _truncation(share: float) -> Damage:
    return lambda run: damaged_runs.truncate(run, share)


ROWS = some.integers(0, 40)

DAMAGES = some.one_of(
    some.builds(_sql, COLUMNS, VALUES, some.none() | ROWS),
    some.builds(_json, some.sampled_from(damaged_runs.JSON_COLUMNS), ROWS, FIELDS, JSON_VALUES),
    some.builds(_bytes, some.floats(0, 1), some.binary(min_size=1, max_size=8) | some.just(bytes(4096))),
    some.builds(_truncation, some.floats(0, 1)),
    some.sampled_from(
        [
            *(_statement(f"DROP TABLE {table}") for table in damaged_runs.COLUMNS),
            *(
                _statement(f"ALTER TABLE {table} DROP COLUMN {column}")
                for table, columns in damaged_runs.COLUMNS.items()
                for column in columns
            ),
            _statement("DELETE FROM main.meta"),
            _statement("UPDATE main.event SET kind = 'of_a_newer_version'"),
            _statement("ALTER TABLE main.event ADD COLUMN newer"),
            _bytes(0, bytes(100)),
        ]
    ),
)


@pytest.fixture(scope="session")
def template(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A whole run, outside of any directory of runs."""
    home = tmp_path_factory.mktemp("recorded")
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("ACCEL_TUI_HOME", str(home))
        return damaged_runs.record()


@given(
    damages=some.lists(DAMAGES, min_size=1, max_size=3),
    number=some.uuids(),
    tables=some.permutations(("steps", "validation", "samples", "events")),
)
def test_what_is_damaged_is_said_and_nothing_fails_with_a_traceback(
    template: Path, damages: list[Damage], number: Any, tables: list[str]
) -> None:
    """Nor does anything hang, or take memory in proportion to a number in the file."""
    with _copies(template, str(number)) as (whole, damaged):
        for damage in damages:
            damage(damaged)
        for arguments in _commands(whole, damaged, *tables[:2]):
            _run(*arguments)
        _follow(damaged)


@contextmanager
def _copies(template: Path, number: str) -> Iterator[tuple[Path, Path]]:
    """The whole run and one to damage, as the only ones of this user."""
    with pytest.MonkeyPatch.context() as patch:
        home = template.parents[1] / number
        patch.setenv("ACCEL_TUI_HOME", str(home))
        runs = runs_directory()
        runs.mkdir(parents=True)
        try:
            yield damaged_runs.copied(template, runs / "whole"), damaged_runs.copied(template, runs / "damaged")
        finally:
            shutil.rmtree(home)


def _commands(whole: Path, damaged: Path, table: str, other_table: str) -> Iterator[tuple[str, ...]]:
    output = damaged.parent.parent
    yield ("runs",)
    yield "runs", "--json"
    yield "watch", "damaged", "--plain"
    yield "watch", "damaged", "--json"
    yield "export", "damaged", "--to", "csv", "--table", table, "-o", "-"
    yield "export", "damaged", "--to", "parquet", "--table", other_table, "-o", str(output / "table.parquet")
    yield "export", "damaged", "--to", "json", "-o", "-"
    yield "export", "damaged", "--to", "tensorboard", "-o", str(output / "tensorboard")
    yield "compare", str(whole), "damaged"
    yield "compare", "damaged", str(whole), "--json"
    yield "pause", "damaged"
    yield "note", "damaged", "another note"
    yield "continue", "damaged"
    yield "repair", "damaged"


def _run(*arguments: str) -> tuple[str, str]:
    """Run a command: it ends with a result or an error in words."""
    output, errors = io.TextIOWrapper(io.BytesIO(), "utf-8"), io.TextIOWrapper(io.BytesIO(), "utf-8")
    with redirect_stdout(output), redirect_stderr(errors), pytest.MonkeyPatch.context() as patch:
        patch.setenv("ACCEL_TUI_DEBUG", "1")
        status = main(arguments)
    texts = []
    for stream in (output, errors):
        stream.seek(0)
        texts.append(stream.read())
    assert "Traceback" not in texts[1], texts[1]
    assert status in (0, 1, 2)
    assert status == 0 or texts[1]
    return texts[0], texts[1]


def _follow(directory: Path) -> None:
    """Read a run as the dashboard does, and build the texts of its screen."""
    try:
        reader = RunReader(directory, max_samples=SAMPLES, max_buckets=CAPACITY, max_events=EVENTS, past_phases=False)
    except AccelError:
        return
    state, devices = RunState(), DeviceCurvesReader(0)
    with closing(reader), suppress(AccelError):
        state = replace(state, info=printable_fields(reader.info()))
        while update := reader.poll():
            state = apply_update(state, update)
            if not update.more:
                break
        devices.read(reader, frozenset(READINGS), state.step_end_times, update)
        width = 64
        while state.step > width * CAPACITY:
            width *= 2
        reader.step_range(0, state.step, width)
    for view in (RunDetails(), RunEvents(), RunOutcome()):
        view.build(state)
    reading = read_diagnostics(directory, DiagnosticsReading())
    for series in reading.media.series if reading.media else ():
        read_item(directory, series, None)
