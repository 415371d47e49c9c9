"""Scalars of event files, also of damaged ones."""

import math
import random
from pathlib import Path

import numpy as np
import pytest
from tensorboard.compat.proto.summary_pb2 import Summary

from accel_engine.imported_runs.event_values import EventValues
from engine.imported_runs.event_files import item, new, old, restart, write


def points(values: EventValues) -> dict[str, list[tuple[int, float]]]:
    return {
        tag: list(zip(each.steps.tolist(), each.values.tolist(), strict=True)) for tag, each in values.points.items()
    }


def test_scalars_of_all_tools(tmp_path: Path) -> None:
    events = [old("a", 0, 0.5, 1001.0), new("b", 0, 0.25, 1002.0)]
    found = EventValues(
        [write(tmp_path, [*events, old("a", 1, 0.75, 1004.5), new("d", 1, 2.5, 1005.0, dtype=np.float64)])]
    )
    assert points(found) == {"a": [(0, 0.5), (1, 0.75)], "b": [(0, 0.25)], "d": [(1, 2.5)]}
    assert found.points["a"].times.tolist() == [1001.0, 1004.5]
    assert (found.began, found.notes) == (1000.0, [])


def test_what_a_run_does_not_store_is_counted(tmp_path: Path) -> None:
    events = [new("graph", step, [1.0], 1001.0, "graphs") for step in range(2)]
    sound = item("sound", 0, audio=Summary.Audio(sample_rate=8000.0))
    found = EventValues([write(tmp_path, [*events, old("a", 0, 1.0, 1001.0), sound])])
    assert list(found.points) == ["a"]
    assert found.notes == ["only scalars, images, texts and histograms are imported; left out: 2 graphs, 1 audio"]


def test_files_of_one_run_are_read_in_the_order_of_their_times(tmp_path: Path) -> None:
    later = write(tmp_path, [old("a", 2, 3.0, 2002.0)], time=2000)
    earlier = write(tmp_path, [old("a", 1, 2.0, 1002.0)], time=1000)
    assert points(EventValues([later, earlier])) == {"a": [(1, 2.0), (2, 3.0)]}


def test_steps_that_go_back_replace_what_was_there(tmp_path: Path) -> None:
    before = write(tmp_path, [old("a", step, 1.0, 1001.0 + step) for step in range(6)], time=1000)
    after = write(tmp_path, [old("a", step, 2.0, 2001.0 + step) for step in (3, 4)], time=2000)
    found = EventValues([before, after])
    assert points(found) == {"a": [(0, 1.0), (1, 1.0), (2, 1.0), (3, 2.0), (4, 2.0)]}
    assert found.notes == ["left out: 3 values in a: the run went back to the same step or an earlier one"]


def test_a_restarted_session_discards_the_steps_after_its_own(tmp_path: Path) -> None:
    events = [*(old(tag, step, 1.0, 1001.0) for tag in "ab" for step in range(4)), restart(2, 1002.0)]
    found = EventValues([write(tmp_path, [*events, old("a", 2, 9.0, 1003.0)])])
    assert points(found) == {"a": [(0, 1.0), (1, 1.0), (2, 9.0)], "b": [(0, 1.0), (1, 1.0)]}
    assert found.notes == ["left out: 4 values in a, b: the run went back to the same step or an earlier one"]


def test_negative_steps_are_left_out(tmp_path: Path) -> None:
    found = EventValues([write(tmp_path, [old("a", -1, 1.0, 1001.0), old("a", 0, 2.0, 1002.0)])])
    assert points(found) == {"a": [(0, 2.0)]}
    assert found.notes == ["left out: 1 value in a: negative steps"]


def test_values_beyond_float32_are_infinite(tmp_path: Path) -> None:
    values = [new("a", step, value, 1001.0, dtype=np.float64) for step, value in enumerate((1e308, -1e39, math.inf, 2))]
    found = EventValues([write(tmp_path, values)])
    assert points(found) == {"a": [(0, math.inf), (1, -math.inf), (2, math.inf), (3, 2.0)]}
    assert found.notes == ["read as infinite: 2 values in a: beyond the range of float32"]


@pytest.mark.parametrize("cut", [1, 4, 12, 20])
def test_the_last_record_may_be_incomplete(tmp_path: Path, cut: int) -> None:
    file = write(tmp_path, [old("a", step, 1.0, 1001.0) for step in range(3)])
    file.write_bytes(file.read_bytes()[:-cut])
    found = EventValues([file])
    assert points(found) == {"a": [(0, 1.0), (1, 1.0)]}
    (note,) = found.notes
    assert "its last record is incomplete" in note


def test_a_damaged_record_is_left_out(tmp_path: Path) -> None:
    file = write(tmp_path, [old("a", step, 1.0, 1001.0) for step in range(3)])
    data = bytearray(file.read_bytes())
    data[-6] ^= 1  # in the value of the last record
    file.write_bytes(data)
    found = EventValues([file])
    assert points(found) == {"a": [(0, 1.0), (1, 1.0)]}
    assert found.notes == [f"{file.name}: 1 damaged records are left out"]


def test_nothing_is_read_after_a_damaged_length(tmp_path: Path) -> None:
    file = write(tmp_path, [old("a", 0, 1.0, 1001.0)])
    end = file.stat().st_size
    file.write_bytes(file.read_bytes() * 2)
    data = bytearray(file.read_bytes())
    data[end] ^= 1
    file.write_bytes(data)
    found = EventValues([file])
    assert points(found) == {"a": [(0, 1.0)]}
    assert found.notes == [f"{file.name}: the record at byte {end:,} is damaged: what follows it is left out"]


def test_any_damage_leaves_what_can_be_read(tmp_path: Path) -> None:
    file = write(tmp_path, [old("a", step, 1.0, 1001.0) for step in range(20)])
    intact, chance = file.read_bytes(), random.Random(0)
    for _ in range(200):
        data = bytearray(intact[: chance.randrange(len(intact) + 1)])
        for _ in range(chance.randrange(4)):
            if data:
                data[chance.randrange(len(data))] = chance.randrange(256)
        file.write_bytes(data)
        for each in EventValues([file]).points.values():
            assert set(each.values.tolist()) == {1.0}
