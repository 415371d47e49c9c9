"""TFRecord files of any bytes: each is read, or refused with the reason."""

import gzip
import io
import struct
from contextlib import suppress
from pathlib import Path

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from accel_engine.crc32c import checksum
from accel_engine.data.prepared.features import parse_description, parse_example, suggest_description
from accel_engine.data.prepared.records import first_records, is_packed, open_records
from accel_engine.errors import AccelError
from fuzzing.texts import edited

EXAMPLE = bytes.fromhex("0a1b0a0c0a0178120712050a030000000a0b0a01791206 1a040a020105".replace(" ", ""))
"""Something like a ``tf.train.Example``."""


def records(*messages: bytes) -> bytes:
    file = io.BytesIO()
    for message in messages:
        head = struct.pack("<Q", len(message))
        file.write(head + checksum(head) + message + checksum(message))
    return file.getvalue()


WHOLE = records(EXAMPLE, b"", bytes(300), EXAMPLE)


def read(path: Path) -> None:
    with suppress(AccelError):
        is_packed(path)
        for record in first_records(path, 3):
            parse_example(record)
            suggest_description(record)
        found = open_records([path])
        contents = found.get(np.arange(len(found)))
        assert contents == found.get(np.arange(len(found)))
        assert all(found.name(row) for row in range(len(found)))


@given(edited(WHOLE))
def test_bytes(tmp_path: Path, content: bytes) -> None:
    (tmp_path / "mine.tfrecord").write_bytes(content)
    read(tmp_path / "mine.tfrecord")


@given(edited(gzip.compress(WHOLE, mtime=0)))
def test_packed_bytes(tmp_path: Path, content: bytes) -> None:
    (tmp_path / "mine.tfrecord").write_bytes(content)
    read(tmp_path / "mine.tfrecord")


@given(st.binary(max_size=200))
def test_messages(tmp_path: Path, message: bytes) -> None:
    (tmp_path / "mine.tfrecord").write_bytes(records(message))
    read(tmp_path / "mine.tfrecord")


@given(
    edited(b'{"features": {"x": {"dtype": "int64", "shape": [2], "pad": 0}}, "target": ["x"], "class_names": ["a"]}')
)
def test_descriptions(content: bytes) -> None:
    with suppress(AccelError):
        parse_description(content.decode(errors="replace"), "features.json")
