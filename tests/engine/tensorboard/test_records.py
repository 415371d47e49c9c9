from pathlib import Path

import numpy as np
import pytest

from accel_engine.protobuf import Message
from accel_engine.tensorboard import records
from accel_engine.tensorboard.event_file import EventFile, remove_event_files
from tensorboard_loader import scalars, timed


def unmasked(sums: np.ndarray) -> list[int]:
    turned = (int(masked) - 0xA282EAD8 & 0xFFFFFFFF for masked in sums)
    return [(value >> 17 | value << 15) & 0xFFFFFFFF for value in turned]


def test_the_checksum_is_crc_32c() -> None:
    """Against the vectors of RFC 3720, B.4, and the usual check value."""
    rows = np.array([[0] * 32, [0xFF] * 32, list(range(32)), list(range(31, -1, -1))], np.uint8)
    assert unmasked(records.checksums_of_rows(rows)) == [0x8A9136AA, 0x62A8AB43, 0x46DD794E, 0x113FDB5C]
    assert unmasked(records.checksums_of_rows(np.frombuffer(b"123456789", np.uint8)[None])) == [0xE3069283]


STEPS = [0, 1, 127, 128, 16_383, 16_384, 2**21 - 1, 2**21, 2**28, 2**35, 2**52]
"""Of every length that they can have."""


@pytest.mark.parametrize("tag", ["loss", "gpu:0/memory_used", "x" * 200, "Genauigkeit über alles"])
def test_tensorboard_reads_every_value_exactly(tmp_path: Path, tag: str) -> None:
    values = np.random.default_rng(0).standard_normal(len(STEPS)).astype(np.float32)
    times = 1.7e9 + np.arange(len(STEPS)) / 7
    file = EventFile(tmp_path)
    file.add(tag, times, np.array(STEPS), values)
    file.close()
    assert timed(tmp_path) == {tag: list(zip(times.tolist(), STEPS, values.tolist(), strict=True))}


def test_values_that_are_no_numbers_are_kept(tmp_path: Path) -> None:
    file = EventFile(tmp_path)
    file.add("loss", np.zeros(3), np.arange(3), np.array([np.nan, np.inf, -np.inf], np.float32))
    file.close()
    assert np.isnan(scalars(tmp_path)["loss"][0][1])
    assert scalars(tmp_path)["loss"][1:] == [(1, np.inf), (2, -np.inf)]


def test_many_are_written_in_their_order(tmp_path: Path) -> None:
    steps = np.arange(40_000)
    file = EventFile(tmp_path)
    file.add("loss", steps / 1000, steps, steps.astype(np.float32))
    file.add("accuracy", np.zeros(0), np.zeros(0, np.int64), np.zeros(0, np.float32))
    file.close()
    assert scalars(tmp_path) == {"loss": [(step, float(step)) for step in range(40_000)]}


def test_tensorboard_forgets_the_steps_from_a_restart_on(tmp_path: Path) -> None:
    file = EventFile(tmp_path)
    file.add("loss", np.zeros(10), np.arange(10), np.zeros(10, np.float32))
    file.restart(6)
    file.add("loss", np.zeros(2), np.arange(6, 8), np.ones(2, np.float32))
    file.close()
    assert scalars(tmp_path)["loss"] == [*((step, 0.0) for step in range(6)), (6, 1.0), (7, 1.0)]


def test_what_is_written_is_seen_before_the_end(tmp_path: Path) -> None:
    file = EventFile(tmp_path / "train")
    file.add("loss", np.zeros(1), np.zeros(1, np.int64), np.ones(1, np.float32))
    file.flush()
    assert scalars(tmp_path / "train") == {"loss": [(0, 1.0)]}
    file.close()


def test_only_event_files_are_removed(tmp_path: Path) -> None:
    EventFile(tmp_path).close()
    (tmp_path / "notes.txt").touch()
    remove_event_files(tmp_path)
    assert [path.name for path in tmp_path.iterdir()] == ["notes.txt"]


def test_a_record_is_a_message_of_protobuf() -> None:
    length = int.from_bytes(records.restart_record(2.5, 300)[:8], "little")
    message = Message(records.restart_record(2.5, 300)[12 : 12 + length])
    assert (message.double(1), message.integer(2), message.message(7).integer(1)) == (2.5, 300, 1)
