"""A run with text in every field that would take over the terminal of whoever looks at it."""

import json
import re
import time
import types
from collections.abc import Iterator
from contextlib import closing
from dataclasses import fields, is_dataclass, replace
from enum import Enum
from pathlib import Path
from typing import Any, Union, get_args, get_origin, get_type_hints

import numpy as np

from accel_engine.devices.device_types import CountedItem, Reading, Sample
from accel_engine.events import KINDS, Event, Outcome, Phase, RunEnded, RunStarted
from accel_engine.json_values import JsonValue, Number
from accel_engine.plan import SPECS
from accel_engine.run.diagnostics import InputSpec, Layer, LayerTable, ValidationReport
from accel_engine.run.media import LoggedImage, LoggedText
from accel_engine.run.store.database import RunDatabase
from accel_engine.text import is_printable
from tui.example_reports import REPORTS
from tui.fake_engine import FakeEngine

HOSTILE = "H\x1b]0;X\x07\x1b[2J\x1b]52;c;UFdO\x07\x9b2J\u202e[@click=app.bell]m[/]\u2028\x08\r\x1b[31m\U000e0041"
"""A title, the screen cleared, the clipboard, text from right to left, markup that acts, a separate line, tags."""

_KEYS = {
    "metrics": ("loss", "accuracy", HOSTILE),
    "baseline": ("accuracy", HOSTILE),
    "plan": ("model", "data", "strategy", HOSTILE),
    "spent": ("steps", "input", HOSTILE),
    "changes": ("micro_batches", HOSTILE),
    "before": ("micro_batches", HOSTILE),
    "versions": ("tensorflow", HOSTILE),
}
"""What mappings in events have."""


def value_of(kind: Any, name: str = "") -> Any:
    """A value of a type, with hostile text wherever it has room for text."""
    origin, inner = get_origin(kind), get_args(kind)
    if origin in (types.UnionType, Union):
        return value_of(inner[0], name)
    if origin is tuple:
        return (value_of(inner[0], name),) * 2
    if origin is dict:
        return {key: value_of(inner[1]) for key in _KEYS[name]}
    if kind in (str, Any, JsonValue):
        return HOSTILE
    if is_dataclass(kind):
        return kind(**{field.name: HOSTILE for field in fields(kind)})
    if issubclass(kind, Enum):
        return next(iter(kind))
    if name == "time":
        return time.time()
    return {int: 1, float: 0.5, Number: 0.5, bool: True}[kind]


def events() -> Iterator[Event]:
    """One event of each kind that there is."""
    for kind in KINDS.values():
        yield event_of(kind)


def event_of(kind: type[Event], **values: Any) -> Event:
    """An event with hostile text in every field that can have text, but for some values."""
    hints = get_type_hints(kind)
    return kind(**{name: value_of(hints[name], name) for name in kind.__dataclass_fields__} | values)


def make_run(*, ended: bool = True, plan: bool = True) -> FakeEngine:
    """Write a run.

    Args:
        ended: Whether its engine has failed; else it is this process and may say more.
        plan: Whether texts of the plan are hostile too, so that nobody could train it.
    """
    engine = FakeEngine().begin().build().train(150)
    engine.writer.write_event(event_of(RunStarted, first_step=0))
    for event in events():
        if not isinstance(event, RunStarted | RunEnded):
            engine.writer.write_event(event)
    engine.build().train(50)
    engine.enter(Phase.TRAINING, HOSTILE)
    for kind in (HOSTILE, "cpu:0"):
        _sample(engine, kind)
    _look_inside(engine)
    (engine.directory / "log.txt").write_bytes((HOSTILE.encode() + b"\nERROR " + HOSTILE.encode() + b"\xff\n") * 3)
    _label(engine.directory, plan=plan)
    if ended:
        engine.writer.write_event(event_of(RunEnded, outcome=Outcome.FAILED))
        engine.close()
    return engine


def _sample(engine: FakeEngine, device: str) -> None:
    parts = (CountedItem(HOSTILE, HOSTILE, 1, 2),)
    names = ("processes", "instances", "throttling")
    readings = {
        **{name: Reading.missing(HOSTILE, HOSTILE) for name in ("utilization", "memory_used", "power", HOSTILE)},
        **{name: Reading.counted(parts) for name in names},
        "temperature": Reading(3.0, HOSTILE),
    }
    engine.writer.write_samples([Sample(engine.now, device, readings)])


def _look_inside(engine: FakeEngine) -> None:
    names = (HOSTILE, f"b{HOSTILE}")
    outputs = [replace(_with_text(report), reason=HOSTILE) for report in REPORTS.values()]
    engine.writer.write_diagnostics(ValidationReport(tuple(outputs)), 150)
    engine.writer.write_diagnostics(
        LayerTable((Layer(HOSTILE, HOSTILE, 0, (10,), 1500, 1500, 1e6),), 1e6, reason=HOSTILE), 0
    )
    for item in (LoggedText(HOSTILE, HOSTILE), LoggedImage(np.zeros((2, 2, 1), np.uint8), HOSTILE)):
        engine.writer.write_media(150, engine.now, HOSTILE, item)
    engine.writer.write_diagnostics(InputSpec((8, 8, 1), names, 1.0, 0.0, 1.0, False), 0)


def _with_text(value: Any) -> Any:
    """A value with hostile text in place of all text."""
    if isinstance(value, str):
        return HOSTILE
    if isinstance(value, tuple):
        return tuple(map(_with_text, value))
    if is_dataclass(value) and not isinstance(value, type):
        return replace(value, **{field.name: _with_text(getattr(value, field.name)) for field in fields(value)})
    return value


def _label(directory: Path, *, plan: bool) -> None:
    """Write what people and other programs have said of the run, past all checks."""
    with closing(RunDatabase(directory)) as connection:
        values = json.loads(connection.value("SELECT value FROM meta WHERE key = 'plan'"))
        values["name"] = HOSTILE
        if plan:
            texts = [name for name, spec in SPECS.items() if spec.type is str and not spec.choices]
            values |= dict.fromkeys(texts, HOSTILE) | {"devices": [HOSTILE], "strategy": "default"}
        meta = {"plan": json.dumps(values), "name": HOSTILE, "note": HOSTILE, "tags": json.dumps([HOSTILE])}
        connection.execute_many("INSERT OR REPLACE INTO main.meta VALUES (?, ?)", meta.items())
        connection.execute(f'ALTER TABLE main.chunk ADD COLUMN "{HOSTILE}" BLOB')
        connection.execute(f'UPDATE main.chunk SET "{HOSTILE}" = loss')
        connection.execute("UPDATE main.command SET who = ?, name = ?, answer = ?", (HOSTILE,) * 3)


def obeyed(text: str, own: str = r"\n") -> list[str]:
    """What a terminal would obey, or not show, in what was sent to it.

    Args:
        text: What was sent.
        own: A regular expression of the control sequences that are the program's own.
    """
    rest = re.sub(own, "", text)
    return [rest[max(0, place - 20) : place + 20] for place, each in enumerate(rest) if not is_printable(each)]
