"""W&B's offline runs."""

import json
import math
import random
import struct
import zlib
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import pytest

from accel_engine.errors import DataError
from accel_engine.imported_runs import find
from accel_engine.imported_runs.source_run import SourceRun
from accel_engine.protobuf import bytes_field, integer_field, text_field
from engine.imported_runs.reading import values
from waiting import wait_until

HEADER = b":W&B\xe1\xbe\x00"
BLOCK = 1 << 15


def log(records: Sequence[bytes]) -> bytes:
    """A file of records, in fragments where they do not fit in a block."""
    data = bytearray(HEADER)
    for record in records:
        is_first = True
        while True:
            if (left := BLOCK - len(data) % BLOCK) < 7:
                data += bytes(left)
                left = BLOCK
            part, record = record[: left - 7], record[left - 7 :]
            kind = (1 if not record else 2) if is_first else (4 if not record else 3)
            data += struct.pack("<IHB", zlib.crc32(bytes([kind]) + part), len(part), kind) + part
            is_first = False
            if not record:
                break
    return bytes(data)


def items(field: int, values: Mapping[str, Any], *, nested: bool = False) -> bytes:
    """Items with JSON values; with nested keys as newer versions write them."""
    found = b""
    for name, value in values.items():
        key = text_field(2, name) if nested else text_field(1, name)
        found += bytes_field(field, key + text_field(16, json.dumps(value)))
    return found


def history(step: int, time: float, values: Mapping[str, Any], *, nested: bool = False) -> bytes:
    return bytes_field(2, items(1, {**values, "_step": step, "_timestamp": time, "_runtime": 1.0}, nested=nested))


def the_run(values: Mapping[str, Any]) -> bytes:
    config = items(1, values)
    fields = text_field(1, "abc") + bytes_field(4, config) + text_field(8, "my run") + text_field(9, "a note")
    fields += text_field(10, "paper") + text_field(10, "two words") + text_field(13, "node1")
    return bytes_field(17, fields + bytes_field(17, integer_field(1, 1000) + integer_field(2, 500_000_000)))


EXIT = bytes_field(18, integer_field(1, 0))


def write(tmp_path: Path, records: Sequence[bytes]) -> Path:
    file = tmp_path / "wandb" / "offline-run-20261101_120000-abc" / "run-abc.wandb"
    file.parent.mkdir(parents=True, exist_ok=True)
    file.write_bytes(log(records))
    return file


def read(path: Path) -> SourceRun:
    (source,) = find(path)
    return source.read()


@pytest.mark.parametrize("nested", [False, True])
def test_a_run(tmp_path: Path, nested: bool) -> None:
    rows = [history(step, 1001.0 + step, {"train/loss": 1 / (step + 1)}, nested=nested) for step in range(3)]
    rows.append(history(2, 1004.0, {"val_loss": 0.5, "flag": True}, nested=nested))
    summary = bytes_field(3, items(1, {"train/loss": 0.3, "best": 0.25, "_runtime": 3}))
    config = bytes_field(5, items(1, {"lr": 0.2}))
    file = write(
        tmp_path, [the_run({"lr": 0.1, "model": {"layers": 2}, "_wandb": {"x": 1}}), *rows, summary, config, EXIT]
    )
    for path in (file, file.parent, file.parent.parent):
        run = read(path)
        assert values(run) == {"loss": [(0, 1.0), (1, 0.5), (2, 1 / 3)], "flag": [(2, 1.0)], "val loss": [(3, 0.5)]}
        assert run.series["loss"].times.tolist() == [1001.0, 1002.0, 1003.0]
    assert (run.name, run.note, run.tags, run.host, run.began) == (
        "my run",
        "a note",
        ("paper", "two words"),
        "node1",
        1000.5,
    )
    assert run.config == {"lr": 0.2, "model.layers": 2}
    assert run.results == {"best": 0.25}
    assert run.notes == []


def test_values_beyond_float32_are_infinite(tmp_path: Path) -> None:
    run = read(write(tmp_path, [the_run({}), history(0, 1001.0, {"loss": -1e308}), EXIT]))
    assert values(run) == {"loss": [(0, -math.inf)]}
    assert run.notes == ["read as infinite: 1 value in loss: beyond the range of float32"]


def test_what_is_no_number_is_named(tmp_path: Path) -> None:
    image = {"_type": "image-file", "size": 3}
    stats = bytes_field(7, items(3, {"cpu": 1.0}))
    run = read(
        write(tmp_path, [the_run({}), history(0, 1001.0, {"loss": 1.0, "text": "x", "image": image}), stats, EXIT])
    )
    assert list(values(run)) == ["loss"]
    assert run.notes == ["only numbers are imported; left out: text, image", "system metrics are left out: 1 samples"]


def test_records_larger_than_a_block(tmp_path: Path) -> None:
    run = read(write(tmp_path, [the_run({"text": "x" * 100_000}), history(0, 1001.0, {"loss": 1.0}), EXIT]))
    assert len(run.config["text"]) == 100_000
    assert values(run) == {"loss": [(0, 1.0)]}


def test_an_interrupted_run(tmp_path: Path) -> None:
    file = write(tmp_path, [the_run({}), history(0, 1001.0, {"loss": 1.0}), history(1, 1002.0, {"loss": 2.0})])
    assert read(file).notes == ["it has no end: its script was interrupted, or still runs"]
    file.write_bytes(file.read_bytes()[:-3])
    run = read(file)
    assert values(run) == {"loss": [(0, 1.0)]}
    assert run.notes == ["its last record is incomplete: its script was interrupted, or still runs"]


def test_a_script_that_failed(tmp_path: Path) -> None:
    failed = bytes_field(18, integer_field(1, 3))
    assert read(write(tmp_path, [the_run({}), history(0, 1001.0, {"loss": 1.0}), failed])).notes == [
        "its script failed: exit status 3"
    ]


def test_a_file_of_another_format(tmp_path: Path) -> None:
    file = tmp_path / "run-x.wandb"
    file.write_bytes(b"something else")
    with pytest.raises(DataError, match="is not a W&B run"):
        read(file)


def test_any_damage_leaves_what_can_be_read(tmp_path: Path) -> None:
    rows = [history(step, 1001.0 + step, {"loss": 1.0}) for step in range(20)]
    file, chance = write(tmp_path, [the_run({"lr": 0.1}), *rows, EXIT]), random.Random(0)
    intact = file.read_bytes()
    for _ in range(200):
        data = bytearray(intact[: chance.randrange(8, len(intact) + 1)])
        for _ in range(chance.randrange(4)):
            data[chance.randrange(7, len(data))] = chance.randrange(256)
        file.write_bytes(data)
        for each in read(file).series.values():
            assert set(each.values.tolist()) == {1.0}


def test_a_run_of_the_package(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    wandb = pytest.importorskip("wandb")
    monkeypatch.setenv("WANDB_SILENT", "true")
    run = wandb.init(mode="offline", dir=tmp_path, project="p", name="mine", config={"lr": 0.1}, tags=["paper"])
    for step in range(10):
        run.log({"loss": 1 / (step + 1)})
    run.finish()
    # Its own process writes the file, and may do so after this returns.
    wait_until(lambda: not any("no end" in note for note in read(tmp_path).notes), "the end of the run")
    found = read(tmp_path)
    assert (found.name, found.config, found.tags) == ("mine", {"lr": 0.1}, ("paper",))
    assert values(found) == {"loss": [(step, 1 / (step + 1)) for step in range(10)]}
