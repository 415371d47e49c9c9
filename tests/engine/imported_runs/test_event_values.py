"""Scalars of event files, also of damaged ones."""

import io
import math
import random
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import tensorflow as tf
from PIL import Image as Picture
from tensorboard.compat.proto.event_pb2 import Event
from tensorboard.compat.proto.summary_pb2 import Summary

from accel_engine.events import RunEnded
from accel_engine.image_files import encode_png
from accel_engine.imported_runs import find, import_run
from accel_engine.imported_runs.event_values import EventValues
from accel_engine.protobuf import bytes_field
from accel_engine.run import runs_directory
from accel_engine.run.media import Histogram, LoggedImage, LoggedItem, LoggedText
from accel_engine.run.writing import writer as run_writer
from engine.imported_runs import reading
from engine.imported_runs.event_files import framed, item, new, old, old_histogram, old_image, restart, tensor, write


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


PIXELS = np.arange(60, dtype=np.uint8).reshape(4, 5, 3)
PNG = encode_png(PIXELS)


def imported(path: Path) -> tuple[list[LoggedItem], list[str]]:
    """The items and the notes of an imported run."""
    (source,) = find(path)
    name, run = import_run(source)
    return reading.items(runs_directory() / name), run.notes


def of_events(path: Path, events: Sequence[Event]) -> tuple[list[LoggedItem], list[str]]:
    write(path, events)
    return imported(path)


def in_format(form: str, **options: Any) -> bytes:
    stream = io.BytesIO()
    Picture.fromarray(PIXELS).save(stream, form, **options)
    return stream.getvalue()


def test_what_tf_summary_wrote(tmp_path: Path) -> None:
    pictures = np.random.default_rng(0).integers(0, 256, (3, 4, 5, 3), np.uint8)
    values = np.random.default_rng(0).normal(size=1000)
    with tf.summary.create_file_writer(str(tmp_path)).as_default():
        tf.summary.image("one", pictures[:1], step=2)
        tf.summary.image("three", pictures, step=2)
        tf.summary.image("clear", np.zeros((1, 4, 5, 4), np.uint8), step=2)
        tf.summary.text("word", "é", step=3, description="what it is")
        tf.summary.text("table", [["a", "b"], ["c", "d"]], step=3)
        tf.summary.histogram("values", values, step=4)
        tf.summary.histogram("zeros", np.zeros(7), step=4)
        tf.summary.histogram("empty", np.zeros(0), step=4)
    items, notes = imported(tmp_path)
    found = {each.name: each.item for each in items}
    assert notes == []
    assert [each.step for each in items] == [2, 2, 2, 3, 3, 4, 4, 4]
    one, three, clear = (found[name] for name in ("one", "three", "clear"))
    assert isinstance(one, LoggedImage)
    assert isinstance(three, LoggedImage)
    assert isinstance(clear, LoggedImage)
    np.testing.assert_array_equal(one.pixels, pictures[0])
    np.testing.assert_array_equal(three.pixels[5:, :5], pictures[2])
    assert (one.note, three.note) == ("", "3 pictures, 2 per row")
    assert (clear.note, clear.pixels.min()) == ("drawn on white", 255)
    assert found["word"] == LoggedText("é", "what it is")
    assert found["table"] == LoggedText("a | b\nc | d", "4 texts")
    for name, count in (("values", 1000), ("zeros", 7), ("empty", 0)):
        histogram = found[name]
        assert isinstance(histogram, Histogram)
        assert histogram.counts.sum() == count
    histogram = found["values"]
    assert isinstance(histogram, Histogram)
    assert histogram.edges[[0, -1]] == pytest.approx([values.min(), values.max()])
    np.testing.assert_array_equal(histogram.counts, np.histogram(values, 30)[0])


def test_what_summary_writers_of_other_tools_wrote(tmp_path: Path) -> None:
    largest = np.finfo(np.float64).max
    items, notes = of_events(
        tmp_path,
        [
            old_image("image", 1, in_format("PNG", optimize=True)),
            old_image("film", 1, in_format("GIF")),
            tensor("text/text_summary", 2, ["some *text*"], "text"),
            old_histogram("first bin is empty", 3, [1.0, 2.0, 3.0], [0, 5, 7], min=1.0, max=2.5, sum=24.0),
            old_histogram("open limits", 3, [-largest, 0.0, largest], [0, 5, 7], min=-1.0, max=3.0, sum=14.0),
            old_histogram("one value", 3, [-1e-12, 1e-12], [0, 4], min=0.0, max=0.0),
        ],
    )
    image, film, text, *histograms = (each.item for each in items)
    assert isinstance(image, LoggedImage)
    np.testing.assert_array_equal(image.pixels, PIXELS)
    assert isinstance(film, LoggedImage)
    assert film.pixels.shape == PIXELS.shape
    assert text == LoggedText("some *text*")
    assert [
        (each.edges.tolist(), each.counts.tolist(), each.not_finite)
        for each in histograms
        if isinstance(each, Histogram)
    ] == [([1.0, 2.0, 2.5], [5, 7], 0), ([-1.0, 0.0, 3.0], [5, 7], 0), ([-0.5, 0.5], [4], 0)]
    assert [each.time for each in items] == [1001.0, 1001.0, 1002.0, 1003.0, 1003.0, 1003.0]
    assert notes == []


def test_more_pictures_than_are_shown(tmp_path: Path) -> None:
    ((image,), _) = of_events(tmp_path, [tensor("many", 0, [b"5", b"4", *[PNG] * 70], "images")])
    assert isinstance(image.item, LoggedImage)
    assert image.item.note == "first of 70: 64 pictures, 8 per row"


def test_what_is_left_out_is_counted_with_its_reason(tmp_path: Path) -> None:
    small = encode_png(PIXELS[:2])
    items, notes = of_events(
        tmp_path,
        [
            *(old_image(tag, step, b"an image") for tag in "ab" for step in range(2)),
            old_image("damaged", 0, PNG[:-20] + bytes(20)),
            tensor("none", 0, [b"5", b"4"], "images"),
            tensor("mixed", 0, [b"5", b"4", PNG, small], "images"),
            tensor("floats", 0, [1.0], "images", np.float32),
            tensor("numbers", 0, [1.0], "text", np.float32),
            tensor("flat", 0, [1.0, 2.0], "histograms", np.float32),
            tensor("gap", 0, [[0.0, 1.0, 5.0], [2.0, 3.0, 5.0]], "histograms", np.float64),
            old_histogram("unequal", 0, [1.0, 2.0], [1], min=0.0, max=1.0),
            old_histogram("negative", 0, [1.0, 2.0], [-1, 2], min=0.0, max=2.0),
            tensor("word", 0, "kept", "text"),
        ],
    )
    assert [each.item for each in items] == [LoggedText("kept")]
    assert notes == [
        "left out: 5 images in a, b, damaged: damaged image",
        "left out: 2 images in none, floats: no image",
        "left out: 1 image in mixed: several sizes in one step",
        "left out: 1 text in numbers: no text",
        "left out: 2 histograms in flat, unequal: wrong lengths",
        "left out: 1 histogram in gap: gaps between bins",
        "left out: 1 histogram in negative: wrong bins",
    ]


def test_limits_of_a_run_are_notes(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(run_writer, "MAX_MEDIA_BYTES", 2000)
    noise = random.Random(0).randbytes(3000).hex()
    items, notes = of_events(
        tmp_path,
        [tensor(name, step, text, "text") for step in range(2) for name, text in (("big", noise), ("small", "x"))]
        + [tensor("long" * 100, 0, "x", "text"), tensor("", 0, "x", "text")],
    )
    assert [(each.name, each.step) for each in items] == [("small", 0), ("small", 1)]
    (note,) = notes
    assert note.startswith("left out: 4 of the images, texts and histograms in big, longlong")
    assert "cannot log 'big' at step 0: the run's images, texts and histograms would take more than" in note


def test_a_run_of_images_alone(tmp_path: Path) -> None:
    write(tmp_path, [old_image("image", step, PNG) for step in (3, 8)])
    (source,) = find(tmp_path)
    directory = runs_directory() / import_run(source)[0]
    (ended,) = reading.events(directory, RunEnded)
    assert isinstance(ended, RunEnded)
    assert (ended.time, ended.steps, ended.seconds) == (1008.0, 8, 8.0)
    assert [each.step for each in reading.items(directory)] == [3, 8]


def test_media_of_steps_that_go_back_replace_what_was_there(tmp_path: Path) -> None:
    before = [tensor("word", step, "old", "text") for step in range(4)]
    items, notes = of_events(tmp_path, [*before, restart(2, 1004.0), tensor("word", 2, "new", "text")])
    assert [(each.step, each.item) for each in items] == [
        (0, LoggedText("old")),
        (1, LoggedText("old")),
        (2, LoggedText("new")),
    ]
    assert notes == ["left out: 2 values in word (text): the run went back to the same step or an earlier one"]


def test_high_steps_are_numbered_together_with_those_of_scalars(tmp_path: Path) -> None:
    items, _ = of_events(tmp_path, [old("loss", 10**9, 1.0, 1001.0), tensor("word", 10**9 + 5, "x", "text")])
    assert [each.step for each in items] == [1]


def test_several_files_and_values_of_one_record(tmp_path: Path) -> None:
    event = tensor("a", 1, "first", "text")
    event.summary.value.extend(tensor("b", 1, "second", "text").summary.value)
    event.summary.value.extend(old_image("a", 1, PNG).summary.value)
    write(tmp_path, [event], time=1000)
    write(tmp_path, [tensor("a", 2, "third", "text")], time=2000)
    items, _ = imported(tmp_path)
    assert sorted(
        (each.step, each.name, type(each.item)) for each in items if not isinstance(each.item, LoggedText)
    ) == [(1, "a", LoggedImage)]
    assert {(each.step, each.name): each.item for each in items if isinstance(each.item, LoggedText)} == {
        (1, "a"): LoggedText("first"),
        (1, "b"): LoggedText("second"),
        (2, "a"): LoggedText("third"),
    }


def test_a_long_text_that_is_damaged_is_left_out(tmp_path: Path) -> None:
    file = write(tmp_path, [tensor("long", 0, "x" * 5000, "text"), tensor("word", 0, "kept", "text")])
    file.write_bytes(file.read_bytes().replace(b"xxxxxx", b"xxxyxx", 1))
    items, notes = imported(tmp_path)
    assert [each.name for each in items] == ["word"]
    assert notes == ["left out: 1 text in long: damaged record"]


def test_records_beyond_memory_are_skipped(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("accel_engine.imported_runs.event_records._LARGEST", 4000)
    file = write(tmp_path, [tensor("long", 0, "x" * 5000, "text"), tensor("word", 0, "kept", "text")])
    items, notes = imported(tmp_path)
    assert [each.name for each in items] == ["word"]
    assert notes == [f"{file.name}: 1 records of more than 3.9 KiB are left out"]


def test_any_damage_is_a_note_or_an_item(tmp_path: Path) -> None:
    chance = random.Random(0)
    events = [
        tensor("images", 0, [b"5", b"4", PNG, PNG], "images"),
        tensor("table", 0, [["a", "b"]], "text"),
        tensor("bins", 0, [[0.0, 1.0, 5.0], [1.0, 3.0, 5.0]], "histograms", np.float64),
        old_image("image", 0, PNG),
        old_histogram("histogram", 0, [1.0, 2.0], [1, 2], min=0.0, max=2.0),
    ]
    for number in range(25):
        damaged = []
        for event in events:
            (value,) = event.summary.value
            data = bytearray(value.SerializeToString())
            for _ in range(chance.randrange(1, 4)):
                data[chance.randrange(len(data))] = chance.randrange(256)
            damaged.append(bytes_field(5, bytes_field(1, bytes(data))))
        directory = tmp_path / str(number)
        write(directory, [old("loss", 0, 1.0, 1001.0)])
        (file,) = directory.iterdir()
        file.write_bytes(file.read_bytes() + b"".join(framed(each) for each in damaged))
        imported(directory)
