"""The document of the format, by its own examples."""

import json
import re
from contextlib import closing
from pathlib import Path
from typing import Any, get_args

import numpy as np
import pytest

from accel_engine.devices.device_types import Sample
from accel_engine.events import KINDS, RunEnded
from accel_engine.plan import Plan
from accel_engine.run import RunReader, RunWriter, Status, create
from accel_engine.run.diagnostics import ClassificationReport, ValidationReport, reports, views
from accel_engine.run.engine.commands import COMMANDS
from accel_engine.run.media import LoggedText, histogram_of, image_of, pack_media
from accel_engine.run.store.database import RunDatabase
from accel_engine.run.store.meta import read_meta
from accel_engine.run.store.schema import FIXED_CHUNK_COLUMNS

DOCUMENT = (Path(__file__).parents[3] / "docs/run-format.md").read_text()

SETUP = "import json, sqlite3, struct, time\nfrom contextlib import closing"

READ, COMMAND, ANSWER, WRITE, REPORT, MEDIA = re.findall(r"```python\n(.*?)```", DOCUMENT, re.DOTALL)


def execute(*examples: str, run: Path) -> dict[str, Any]:
    """Run examples of the document as one program, and return its variables."""
    names: dict[str, Any] = {"run": str(run)}
    exec("\n".join(examples), names)
    return names


def section(title: str) -> str:
    return DOCUMENT.partition(f"\n## {title}\n")[2].partition("\n## ")[0]


def test_the_example_reads_losses(directory: Path, writer: RunWriter) -> None:
    writer.write_chunk(0, 0.0, 1.0, {"loss": [0.5, 0.25]})
    writer.write_chunk(2, 1.0, 2.0, {"other": [1.0]})
    writer.write_chunk(4, 2.0, 3.0, {"loss": [0.125]})

    assert execute(READ, run=directory)["losses"] == {0: 0.5, 1: 0.25, 4: 0.125}


def test_the_example_sends_a_command_and_reads_its_answer(directory: Path, writer: RunWriter) -> None:
    sent = execute(SETUP, COMMAND, run=directory)["command"]
    (command,) = writer.commands()
    assert (command.id, command.name, command.argument) == (sent, "learning_rate", 0.01)
    writer.answer(command, obeyed=True, answer="as you wish")

    names = execute(SETUP, f"command = {sent}", ANSWER, run=directory)

    assert names["answered"]
    assert (names["obeyed"], names["answer"]) == (1, "as you wish")


@pytest.mark.skipif("not hasattr(__import__('fcntl'), 'F_OFD_SETLK')", reason="locks of Linux")
def test_the_example_writes_a_run() -> None:
    directory = create(Plan())

    execute(SETUP, WRITE, run=directory)

    with closing(RunReader(directory)) as reader:
        update = reader.poll()
        assert reader.info().status is Status.FINISHED
    assert update.chunks[0].series["loss"].tolist() == pytest.approx([0.9, 0.5, 0.4])
    assert isinstance(update.events[-1], RunEnded)


def test_every_table_and_column_is_described(directory: Path, writer: RunWriter) -> None:
    writer.write_samples([Sample(0.0, "cpu:0")])
    with closing(RunDatabase(directory)) as database:
        tables = [row[0] for row in database.execute("SELECT name FROM sqlite_master WHERE type = 'table'")]
        for table in set(tables) - {"sqlite_sequence"}:
            for row in database.execute(f"PRAGMA table_info({table})"):
                assert f"`{row[1]}`" in section(table), (table, row[1])
        assert all(f"`{column}`" in section("chunk") for column in FIXED_CHUNK_COLUMNS)


def test_every_key_event_field_and_command_is_described(directory: Path, writer: RunWriter) -> None:
    with closing(RunDatabase(directory)) as database:
        before = read_meta(database)
    writer.begin()
    with closing(RunDatabase(directory)) as database:
        for key in before | read_meta(database):
            assert f"`{key}`" in section("meta"), key
    events = dict(re.findall(r"^\| `(\w+)` \| (.*) \|$", section("event"), re.MULTILINE))
    assert list(events) == list(KINDS)
    for name, kind in KINDS.items():
        for field in set(kind.__dataclass_fields__) - {"time"}:
            assert f"`{field}`" in events[name], (name, field)
    commands = dict(re.findall(r"^\| `(\w+)` \| (.*) \|$", section("command"), re.MULTILINE))
    assert {name: text.removesuffix(" to `argument`") for name, text in commands.items()} == COMMANDS


def test_the_example_reads_a_report(directory: Path, writer: RunWriter) -> None:
    counts = np.array([[3, 1], [0, 5]])
    writer.write_diagnostics(ValidationReport((ClassificationReport(counts=counts),)), 0)

    names = execute(SETUP, REPORT, run=directory)

    np.testing.assert_array_equal(names["confusion"], counts)


def test_the_example_reads_an_image(directory: Path, writer: RunWriter) -> None:
    pixels = np.arange(12, dtype=np.uint8).reshape(2, 2, 3)
    writer.write_media(3, 1.0, "samples", image_of(pixels))
    writer.write_media(2, 1.0, "samples", image_of(pixels[:1]))

    names = execute(SETUP, "import zlib\nimport numpy as np", MEDIA, run=directory)

    np.testing.assert_array_equal(names["image"], pixels)


def test_every_kind_of_media_is_described() -> None:
    described = dict(re.findall(r"^\| `(\w+)` \| (.*) \|$", section("media"), re.MULTILINE))
    for item in (image_of(np.zeros((2, 2))), LoggedText("a"), histogram_of([1.0])):
        kind, head, _ = pack_media(item)
        for key in set(json.loads(head)) - {"note"}:
            assert f"`{key}`" in described[kind], (kind, key)


def test_every_report_and_view_is_described() -> None:
    described = dict(re.findall(r"^\| `(\w+)` \| (.*) \|$", section("diagnostics"), re.MULTILINE))
    common = set(reports.Report.__dataclass_fields__)
    for kind in get_args(reports.OutputReport):
        for field in set(kind.__dataclass_fields__) - common:
            assert f"`{field}`" in described[kind.__name__], (kind, field)
    for name in [*common, *(view.__name__ for view in get_args(views.View))]:
        assert f"`{name}`" in section("diagnostics"), name
