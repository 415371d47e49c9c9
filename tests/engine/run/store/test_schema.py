"""Which values the rows of a run may have."""

from typing import Any

import pytest

from accel_engine.run.engine.commands import Command
from accel_engine.run.store.downsampled_steps import decode_summary
from accel_engine.run.store.schema import (
    MAX_STEP,
    DiagnosticsRow,
    EventRow,
    MediaRow,
    MetaRow,
    SampleRow,
    SummaryRow,
    decode_chunk,
)
from accel_engine.versioned_database import MAX_TIME, AnswerRow, DatabaseRow, convert_row

MAX_NAME = 1 << 10
MAX_TEXT = 1 << 24

WHOLE: dict[str, dict[str, Any]] = {
    "meta": {"key": "plan", "value": 1},
    "event": {"id": 1, "time": 1.5, "kind": "warned", "body": "{}"},
    "chunk": {"id": 1, "first_step": 7, "count": 2, "started": 1.5, "ended": 2, "loss": bytes(8), "accuracy": None},
    "sample": {"id": 1, "time": 1.5, "device": "cpu:0", "readings": "{}"},
    "command": {"id": 1, "time": 1.5, "who": "ann", "name": "stop", "argument": None, "reason": "", "purpose": ""},
    "summary": {"level": 0, "first_step": 4096, "series": "loss", "buckets": bytes(1280)},
    "diagnostics": {"name": "layers", "time": 1.5, "step": 3, "head": "{}", "body": b""},
    "media": {"id": 1, "kind": "text", "name": "a", "step": 3, "time": 1.5, "head": "{}", "body": b""},
}
ANSWERED = {"answered": 2.5, "obeyed": 1, "answer": "stopping"}
TIMES = ({"time": 0}, {"time": MAX_TIME})
NO_TIMES = ({"time": -0.5}, {"time": MAX_TIME + 1}, {"time": "now"}, {"time": b"now"})


NAMES = (
    ("event", "kind"),
    ("sample", "device"),
    ("summary", "series"),
    ("diagnostics", "name"),
    ("media", "kind"),
    ("media", "name"),
)


KINDS: dict[str, type[DatabaseRow]] = {
    "meta": MetaRow,
    "event": EventRow,
    "sample": SampleRow,
    "command": Command,
    "diagnostics": DiagnosticsRow,
    "media": MediaRow,
}


def check(table: str, changes: dict[str, Any]) -> None:
    """Decode a row of a table."""
    row = WHOLE[table] | changes
    if table == "chunk":
        decode_chunk((*row.values(),), has_all_series=True)
    elif table == "summary":
        decode_summary(convert_row((*(row[name] for name in SummaryRow.__struct_fields__),), SummaryRow))
    else:
        convert_row((*(row[name] for name in KINDS[table].__struct_fields__),), KINDS[table])
    if "answered" in row:
        convert_row((*(row[name] for name in AnswerRow.__struct_fields__),), AnswerRow)


@pytest.mark.parametrize(
    ("table", "changes"),
    [
        *((table, {}) for table in WHOLE),
        *((table, time) for table in ("event", "sample", "command", "diagnostics") for time in TIMES),
        ("event", {"body": MAX_TEXT * "x"}),
        *((table, {column: MAX_NAME * "x"}) for table, column in NAMES),
        ("chunk", {"first_step": MAX_STEP - 2}),
        ("chunk", {"first_step": 0, "count": 1, "loss": bytes(4), "accuracy": bytes(4)}),
        ("chunk", {"loss": None, "accuracy": bytes(8)}),
        ("command", {"argument": 0.5}),
        ("command", {"argument": 2}),
        ("command", ANSWERED),
        ("command", ANSWERED | {"obeyed": 0}),
        ("summary", {"level": 3, "first_step": 1 << 24}),
        ("summary", {"first_step": MAX_STEP}),
        ("diagnostics", {"step": 0}),
        ("diagnostics", {"step": MAX_STEP}),
        ("media", {"step": 0}),
        ("media", {"step": 1 << 62}),
    ],
)
def test_what_engines_write_is_decoded(table: str, changes: dict[str, Any]) -> None:
    check(table, changes)


@pytest.mark.parametrize(
    ("table", "changes"),
    [
        ("meta", {"key": b"plan"}),
        *((table, {"id": number}) for table in ("event", "chunk", "sample", "command", "media") for number in (0, -1)),
        *((table, time) for table in ("event", "sample", "command", "diagnostics") for time in NO_TIMES),
        ("event", {"kind": b"warned"}),
        ("event", {"body": (MAX_TEXT + 1) * "x"}),
        *((table, {column: (MAX_NAME + 1) * "x"}) for table, column in NAMES),
        ("event", {"body": b"{}"}),
        ("chunk", {"first_step": MAX_STEP - 1}),
        ("chunk", {"first_step": -1}),
        ("chunk", {"first_step": 1.5}),
        ("chunk", {"count": 0, "loss": b""}),
        ("chunk", {"count": 1}),
        ("chunk", {"count": 1 << 40}),
        ("chunk", {"started": -1}),
        ("chunk", {"ended": "x"}),
        ("chunk", {"loss": None}),
        ("chunk", {"accuracy": bytes(7)}),
        ("chunk", {"accuracy": "12345678"}),
        ("sample", {"device": b"cpu:0"}),
        ("sample", {"readings": b"{}"}),
        ("command", {"who": b"ann"}),
        ("command", {"name": b"stop"}),
        ("command", {"argument": "fast"}),
        *(("command", ANSWERED | changes) for changes in ({"obeyed": 2}, {"obeyed": None}, {"answer": None})),
        ("command", ANSWERED | {"answered": -1}),
        ("summary", {"level": 4, "first_step": 0}),
        ("summary", {"level": -1}),
        ("summary", {"level": 1}),
        ("summary", {"first_step": MAX_STEP + 4096}),
        ("summary", {"series": b"loss"}),
        ("summary", {"buckets": bytes(1279)}),
        ("summary", {"buckets": 1280 * "x"}),
        ("diagnostics", {"name": b"layers"}),
        ("diagnostics", {"step": MAX_STEP + 1}),
        ("diagnostics", {"step": -1}),
        ("diagnostics", {"head": b"{}"}),
        ("diagnostics", {"body": "x"}),
        ("media", {"kind": b"text"}),
        ("media", {"name": b"a"}),
        ("media", {"step": -1}),
    ],
)
def test_what_no_engine_writes_is_damage(table: str, changes: dict[str, Any]) -> None:
    with pytest.raises(ValueError, match=" "):
        check(table, changes)
