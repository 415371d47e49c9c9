import struct

import numpy as np
import pytest
import tensorflow as tf

from accel_engine.crc32c import checksum, checksums_of, checksums_of_rows


def test_checksums_of_any_length_are_those_that_tensorflow_writes(tmp_path) -> None:
    generator = np.random.default_rng(0)
    messages = [generator.bytes(length) for length in (0, 1, 3, 4, 5, 63, 64, 65, 127, 128, 1000, 5000, 70_000)]
    path = tmp_path / "messages.tfrecord"
    with tf.io.TFRecordWriter(str(path)) as file:
        for message in messages:
            file.write(message)
    content, stored, at = path.read_bytes(), [], 0
    for message in messages:
        at += 12 + len(message)
        stored.append(struct.unpack_from("<I", content, at)[0])
        at += 4
    assert checksums_of(messages).tolist() == stored
    assert checksums_of(messages[::-1]).tolist() == stored[::-1]
    assert [struct.unpack("<I", checksum(message))[0] for message in messages] == stored


@pytest.mark.parametrize("length", [1, 8, 40])
def test_rows_of_one_length_have_the_same_checksums(length: int) -> None:
    rows = np.random.default_rng(1).integers(0, 256, (20, length)).astype(np.uint8)
    assert checksums_of_rows(rows).tolist() == checksums_of([row.tobytes() for row in rows]).tolist()


def test_no_messages() -> None:
    assert not len(checksums_of([]))
