import io
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path

import numpy as np
import pytest
from PIL import Image as Picture
from tensorboard.backend.event_processing.event_accumulator import EventAccumulator

from accel_engine.devices.device_types import Reading, Sample
from accel_engine.events import LearningRateChanged, Validated
from accel_engine.plan import Plan
from accel_engine.run import RunReader, RunWriter, create
from accel_engine.run.media import Histogram, LoggedImage, LoggedText, histogram_of
from accel_engine.tensorboard.run_log import DIRECTORY, LiveLog, RunLog
from recorded_run import started
from tensorboard_loader import scalars, timed


def begin(writer: RunWriter, first_step: int = 0) -> None:
    writer.begin(started(first_step, run=writer.directory.name))


def train(writer: RunWriter, first: int, last: int, level: float = 0.0) -> None:
    """Steps of ten a second, whose loss is their number and more, in chunks of up to ten."""
    for step in range(first, last, 10):
        steps = np.arange(step, min(step + 10, last))
        series = {"loss": steps + level, "accuracy": steps / 1000, "learning_rate": np.full(len(steps), 0.5)}
        writer.write_chunk(step, 1000 + step / 10, 1000 + (steps[-1] + 1) / 10, series)


def validate(writer: RunWriter, step: int, loss: float) -> None:
    metrics = {"loss": loss, "top_5": 0.5}
    writer.write_event(Validated(time=1000 + step / 10, epoch=1, step=step, metrics=metrics, seconds=0.1))


@pytest.fixture
def writer() -> Iterator[RunWriter]:
    with closing(RunWriter(create(Plan()))) as writer:
        begin(writer)
        yield writer


@pytest.fixture
def log(writer: RunWriter, tmp_path: Path) -> Iterator[RunLog]:
    with closing(RunReader(writer.directory)) as source, closing(RunLog(source, tmp_path / "events")) as log:
        yield log


def steps(tmp_path: Path) -> list[tuple[int, float]]:
    return scalars(tmp_path / "events" / "train")["loss"]


def test_every_step_and_every_validation_is_there(writer: RunWriter, log: RunLog, tmp_path: Path) -> None:
    train(writer, 0, 45)
    validate(writer, 45, 0.25)
    log.extend()
    found = timed(tmp_path / "events" / "train")
    assert [point[1:] for point in found["loss"]] == [(step, float(step)) for step in range(45)]
    assert [point[0] for point in found["loss"]] == pytest.approx([1000 + (step + 1) / 10 for step in range(45)])
    assert [point[1:] for point in found["learning_rate"]] == [(step, 0.5) for step in range(45)]
    assert found["steps_per_second"][0][1] == 0
    assert [rate for *_, rate in found["steps_per_second"]] == pytest.approx(
        [10] * len(found["steps_per_second"]), rel=1e-3
    )
    assert scalars(tmp_path / "events" / "validation") == {"loss": [(45, 0.25)], "top_5": [(45, 0.5)]}
    assert not (tmp_path / "events" / "devices").exists()


def test_a_series_of_the_users_that_is_called_as_the_pace_has_a_tag_of_its_own(
    writer: RunWriter, log: RunLog, tmp_path: Path
) -> None:
    writer.write_chunk(0, 1000.0, 1001.0, {"loss": [1.0, 2.0], "steps_per_second": [0.25, 0.125]})
    log.extend()
    found = scalars(tmp_path / "events" / "train")
    assert found["steps_per_second"] == [(0, 2.0)]
    assert found["step/steps_per_second"] == [(0, 0.25), (1, 0.125)]


def test_the_learning_rate_of_each_step_is_there_once(writer: RunWriter, log: RunLog, tmp_path: Path) -> None:
    writer.write_event(LearningRateChanged(time=1000.0, step=0, learning_rate=0.5, schedule="ExponentialDecay"))
    log.extend()
    writer.write_chunk(0, 1000.0, 1001.0, {"loss": [1.0, 2.0], "learning_rate": [0.5, 0.25]})
    log.extend()
    writer.write_event(LearningRateChanged(time=1001.0, step=2, learning_rate=0.125))
    writer.write_chunk(2, 1001.0, 1002.0, {"loss": [1.0], "learning_rate": [0.125]})
    log.extend()
    assert scalars(tmp_path / "events" / "train")["learning_rate"] == [(0, 0.5), (1, 0.25), (2, 0.125)]


def test_what_comes_later_is_added(writer: RunWriter, log: RunLog, tmp_path: Path) -> None:
    log.extend()
    assert not (tmp_path / "events").exists()
    train(writer, 0, 20)
    log.extend()
    log.extend()
    train(writer, 20, 35)
    validate(writer, 35, 0.5)
    log.extend()
    assert steps(tmp_path) == [(step, float(step)) for step in range(35)]
    assert len(scalars(tmp_path / "events" / "validation")["loss"]) == 1


def test_steps_that_were_forgotten_are_taken_back(writer: RunWriter, log: RunLog, tmp_path: Path) -> None:
    train(writer, 0, 30)
    log.extend()
    writer.rewind(15)
    train(writer, 15, 40, level=0.5)
    log.extend()
    assert steps(tmp_path) == [(step, step + 0.5 * (step >= 15)) for step in range(40)]


def test_validations_of_steps_that_were_forgotten_are_left_out(writer: RunWriter, tmp_path: Path) -> None:
    train(writer, 0, 30)
    for step in (10, 20, 30):
        validate(writer, step, 1.0)
    begin(writer, first_step=20)
    train(writer, 20, 30)
    validate(writer, 30, 2.0)
    for _ in range(2):  # the second takes the place of the first
        with closing(RunReader(writer.directory)) as source, closing(RunLog(source, tmp_path / "events")) as log:
            log.extend()
    assert scalars(tmp_path / "events" / "validation")["loss"] == [(10, 1.0), (20, 1.0), (30, 2.0)]
    assert steps(tmp_path) == [(step, float(step)) for step in range(30)]


def test_what_devices_read_is_at_the_steps_taken_by_then(writer: RunWriter, log: RunLog, tmp_path: Path) -> None:
    def sample(at: float, percent: float) -> None:
        readings = {
            "utilization": Reading(percent, "%"),
            "power": Reading.missing("not supported", "W"),
            "core_0": Reading(100.0, "%"),
        }
        writer.write_samples([Sample(at, "cpu:0", readings)])

    sample(999.0, 10.0)
    train(writer, 0, 20)
    sample(1001.0, 20.0)
    sample(1001.5, 30.0)
    log.extend()
    train(writer, 20, 30)
    sample(1002.5, 40.0)
    sample(1009.0, 50.0)
    log.extend()
    found = scalars(tmp_path / "events" / "devices")
    assert found == {"cpu:0/utilization": [(0, 10.0), (10, 20.0), (10, 30.0), (20, 40.0), (30, 50.0)]}


def test_a_live_log_is_complete_when_it_stops(writer: RunWriter) -> None:
    problems: list[str] = []
    live = LiveLog(writer.directory, problems.append)
    live.start()
    train(writer, 0, 25)
    live.stop()
    assert scalars(writer.directory / DIRECTORY / "train")["loss"] == [(step, float(step)) for step in range(25)]
    assert problems == []


def test_a_live_log_that_cannot_write_says_so(writer: RunWriter) -> None:
    problems: list[str] = []
    (writer.directory / DIRECTORY).write_text("a file in its place")
    live = LiveLog(writer.directory, problems.append)
    live.start()
    train(writer, 0, 5)
    live.stop()
    (problem,) = problems
    assert problem.startswith("cannot write TensorBoard events any more: ")


def test_images_texts_and_histograms_are_there(writer: RunWriter, log: RunLog, tmp_path: Path) -> None:
    pixels = np.arange(60, dtype=np.uint8).reshape(4, 5, 3)
    train(writer, 0, 20)
    writer.write_media(10, 1001.0, "samples", LoggedImage(pixels))
    writer.write_media(10, 1001.0, "words", LoggedText("é\n\udcff", note="cut"))
    log.extend()
    writer.write_media(20, 1002.0, "samples", LoggedImage(pixels[:, :, :1]))
    writer.write_media(20, 1002.0, "weights", Histogram(np.array([0.0, 1.0, 3.0]), np.array([2.0, 5.0])))
    writer.write_media(20, 1002.0, "nothing", histogram_of([np.nan]))
    writer.write_media(20, 1002.0, "loss", LoggedText("of a name that a series has"))
    writer.write_media(20, 1002.0, "words", LoggedImage(pixels))
    log.extend()

    found = EventAccumulator(str(tmp_path / "events" / "train"), {"images": 0, "tensors": 0, "histograms": 0}).Reload()

    images = found.Images("samples")
    assert [(image.wall_time, image.step, image.width, image.height) for image in images] == [
        (1001.0, 10, 5, 4),
        (1002.0, 20, 5, 4),
    ]
    for image, expected in zip(images, (pixels, pixels[:, :, 0]), strict=True):
        np.testing.assert_array_equal(np.asarray(Picture.open(io.BytesIO(image.encoded_image_string))), expected)
    (text,) = found.Tensors("words")
    assert (text.step, list(text.tensor_proto.string_val)) == (10, ["é\n?".encode()])
    metadata = found.SummaryMetadata("words")
    assert (metadata.plugin_data.plugin_name, metadata.summary_description) == ("text", "cut")
    (weights,) = found.Histograms("weights")
    value = weights.histogram_value
    assert (value.min, value.max, value.num, value.bucket_limit, value.bucket) == (0, 3, 7, [1, 3], [2, 5])
    nothing = found.Histograms("nothing")[0].histogram_value
    assert (nothing.num, np.isnan(nothing.sum), nothing.bucket) == (1, True, [])
    assert found.Tensors("loss/text")[0].step == 20
    assert found.Images("words/image")[0].step == 20
    assert len(steps(tmp_path)) == 20
