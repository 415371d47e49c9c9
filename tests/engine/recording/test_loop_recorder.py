"""What a recorder writes of a script's own loop."""

import argparse
import math
import sqlite3
import threading
import warnings
from collections.abc import Callable
from contextlib import closing
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from accel_engine import Recorder
from accel_engine.events import CommandAnswered, EpochEnded, ModelBuilt, Outcome, RunEnded, Validated, Warned
from accel_engine.recording import loop_session
from accel_engine.recording.loop_recorder import flat_config
from accel_engine.recording.run_link import RunLink
from accel_engine.run import RunReader, RunWriter, Status, send_command
from accel_engine.run.engine.commands import read_answer
from accel_engine.run.media import Histogram, LoggedImage, LoggedText, MediaItem
from accel_engine.run.runs.listing import summarize
from accel_engine.scripts import patient_writer
from full_disk import database_error
from recorded_run import execute

from .conftest import Read


def ended(run: Recorder) -> RunEnded:
    (event,) = Read(run.directory).all(RunEnded)
    return event


def warned(run: Recorder) -> list[str]:
    return [event.message for event in Read(run.directory).all(Warned)]


def media_of(run: Recorder) -> dict[str, MediaItem]:
    assert run.directory
    with closing(RunReader(run.directory)) as reader:
        found = {series.name: reader.media(series, series.last_step) for series in reader.media_list()}
    return {name: item[1] for name, item in found.items() if item}


def test_values_of_each_step_are_recorded() -> None:
    with Recorder("mine", config={"lr": 0.5}) as run:
        for step in range(5):
            run.log(step, {"train/accuracy": np.float32(step / 10)}, loss=1.0 / (step + 1))

    read = Read(run.directory)
    np.testing.assert_allclose(read.series("loss"), [1, 1 / 2, 1 / 3, 1 / 4, 1 / 5], rtol=1e-6)
    np.testing.assert_allclose(read.series("train_accuracy"), [0, 0.1, 0.2, 0.3, 0.4], rtol=1e-6)
    assert (read.info.name, read.info.status) == ("mine", Status.FINISHED)
    assert read.info.plan_values["config"] == {"lr": 0.5}
    assert (ended(run).outcome, ended(run).steps) == (Outcome.FINISHED, 5)
    assert not warned(run)
    assert run.directory
    assert not execute(run.directory, "SELECT body FROM event WHERE kind = ?", ModelBuilt.kind())


def test_values_of_one_step_are_merged_also_once_it_is_written(wait_until: Callable[..., None]) -> None:
    with Recorder() as run:
        run.log(0, loss=3.0)
        run.log(1, loss=2.0)
        run.log(1, accuracy=0.5)
        wait_until(lambda: Read(run.directory).update.chunks, "the first steps")
        run.log(1, top=0.75)
        run.log(2, loss=1.0)

    read = Read(run.directory)
    assert read.series("loss").tolist() == [3.0, 2.0, 1.0]
    np.testing.assert_equal(read.series("accuracy"), [math.nan, 0.5, math.nan])
    np.testing.assert_equal(read.series("top"), [math.nan, 0.75, math.nan])
    assert [chunk.first_step for chunk in read.update.chunks] == sorted(
        {chunk.first_step for chunk in read.update.chunks}
    )


def test_steps_may_be_left_out_and_may_be_any_whole_number() -> None:
    with Recorder() as run:
        run.log(np.int64(2), loss=1.0)
        run.log(np.array(4), loss=2.0)
        run.log(12.0, loss=3.0)
        run.log(np.float32(14), loss=4.0)
        run.log(step=1000, loss=5.0)

    read = Read(run.directory)
    assert read.update.chunks[-1].first_step == 1000
    losses = read.series("loss")
    assert losses[np.isfinite(losses)].tolist() == [1.0, 2.0, 3.0, 4.0, 5.0]
    assert not warned(run)


def test_a_step_that_goes_back_or_is_no_number_is_left_out_with_a_warning_per_reason() -> None:
    with Recorder() as run:
        run.log(5, loss=1.0)
        for step in (4, 3, "six", "seven", 6.5, 7.5, np.float32(6.5), math.inf, -1, -2, -1.0, None, 1 << 70, 10**5000):
            run.log(step, loss=9.0)
        run.log(6, loss=2.0)

    read = Read(run.directory)
    assert read.series("loss")[5:].tolist() == [1.0, 2.0]
    assert warned(run) == [
        "step 4 is left out, as it comes after step 5: steps must rise",
        *(
            f"a step is left out, as a step is a whole number from 0: {problem}"
            for problem in (
                "str is not a number",
                "6.5 is not whole",
                "6.5 is not whole",
                "-1 is negative",
                "-1.0 is negative",
                "NoneType is not a number",
                f"{1 << 70:,} is too large",
                "ValueError: Exceeds the limit (4300 digits) for integer string conversion; "
                "use sys.set_int_max_str_digits() to increase the limit",
            )
        ),
    ]


def test_steps_that_are_too_far_away_are_left_out_with_a_warning_and_nothing_else_is() -> None:
    with Recorder() as run:
        run.log(0, loss=1)
        run.log(1_795_453_637, loss=2)
        run.log(10**12, loss=3)
        run.log(1, loss=4)

    assert Read(run.directory).series("loss").tolist() == [1.0, 4.0]
    assert warned(run) == [
        "step 1,795,453,637 is left out, as it comes 10,000,000 steps after the last or more: "
        "count updates, not examples or tokens",
        "a step is left out, as a step is a whole number from 0: 1,000,000,000,000 is too large",
    ]


def test_metrics_of_validation_are_validations() -> None:
    with Recorder() as run:
        run.log(0, loss=1.0)
        run.log(9, {"loss": 0.5, "val/Acc@1": 0.75, "val_loss": 0.25, "validation_f1": [0.1, 0.2]})

    (event,) = Read(run.directory).all(Validated)
    assert (event.step, event.metrics) == (10, {"acc_1": 0.75, "loss": 0.25, "f1_0": 0.1, "f1_1": 0.2})
    assert ended(run).metrics == {f"validation_{name}": value for name, value in event.metrics.items()}
    assert Read(run.directory).names == {"loss"}


@pytest.mark.parametrize("first", [0, 1])
def test_an_epoch_ends_when_the_next_begins(first: int) -> None:
    with Recorder() as run:
        for step in range(6):
            run.log(step, epoch=first + step // 2, loss=float(step))

    events = Read(run.directory).all(EpochEnded)
    assert [(event.epoch, event.step, event.metrics) for event in events] == [
        (1, 2, {"loss": 0.5}),
        (2, 4, {"loss": 2.5}),
        (3, 6, {"loss": 4.5}),
    ]
    assert (ended(run).epochs, ended(run).metrics) == (3, {"loss": 4.5})


def test_a_loop_without_epochs_is_listed_with_its_last_values_and_the_best_of_all_steps() -> None:
    with Recorder() as run:
        for step in range(400):
            # Falls to 0.25 at step 300, and ends at 1; the accuracy is logged only now and then.
            loss = 4.0 - step / 80 if step <= 300 else 0.25 + (step - 300) * 0.75 / 99
            run.log(step, loss=loss, **({"accuracy": 0.9975 if step == 250 else 0.5} if step % 50 == 0 else {}))

    assert run.directory
    listed = summarize(run.directory)
    assert not listed.of_epoch
    assert listed.metrics == {"loss": 1.0, "accuracy": 0.5}
    assert (listed.monitor, listed.best) == ("accuracy", pytest.approx(0.9975, rel=1e-6))


def test_the_last_epoch_of_a_stopped_loop_is_incomplete() -> None:
    run = Recorder()
    run.log(0, epoch=0, loss=1.0)
    with pytest.raises(KeyboardInterrupt), run:
        raise KeyboardInterrupt

    assert not Read(run.directory).all(EpochEnded)
    assert (ended(run).outcome, ended(run).reason) == (Outcome.STOPPED, "interrupted from the keyboard")


def test_an_exception_makes_it_a_failed_run() -> None:
    run = Recorder()
    run.log(0, loss=1.0)
    with pytest.raises(ValueError, match="oh no"), run:
        raise ValueError("oh no")

    assert (ended(run).outcome, ended(run).reason) == (Outcome.FAILED, "ValueError: oh no")
    assert Read(run.directory).series("loss").tolist() == [1.0]


def test_lr_is_the_learning_rate_and_vectors_have_a_series_per_element() -> None:
    with Recorder() as run:
        run.log(0, lr=0.5, f1=np.arange(3), many=np.ones(40), nested={"a": 1, "b": [2, 3]})

    read = Read(run.directory)
    assert read.series("learning_rate").tolist() == [0.5]
    many = {f"many_{number}" for number in range(32)}
    assert read.names == {"f1_0", "f1_1", "f1_2", "nested_a", "nested_b_0", "nested_b_1"} | many
    assert warned(run) == ["the metric many has 40 values: the first 32 are recorded"]


def test_what_is_no_number_is_named_once_and_left_out() -> None:
    class Odd:
        def __float__(self) -> float:
            raise LookupError("nothing here")

    with Recorder() as run:
        for step in range(3):
            run.log(step, loss=1.0, text="good", nothing=None, odd=Odd(), several=[1, "x"], z=1j)

    assert Read(run.directory).names == {"loss"}
    assert warned(run) == [
        "text is not recorded: str is not a number",
        "nothing is not recorded: NoneType is not a number",
        "odd is not recorded: LookupError: nothing here",
        "several is not recorded: str is not a number",
        "z is not recorded: complex128 is not a type of numbers",
    ]
    log = (run.directory / "log.txt").read_text() if run.directory else ""
    assert "accel-tui: text is not recorded: str is not a number\n" in log


def test_what_changes_afterwards_is_recorded_as_it_was() -> None:
    class Variable:
        value = 1.0

        def assign(self, value: float) -> None:
            self.value = value

        def __array__(self, dtype: Any = None, copy: Any = None) -> np.ndarray:
            return np.array(self.value)

    class Meter:
        mean = 3.0

        def __float__(self) -> float:
            return self.mean

    array, variable, meter, values = np.array([2.0]), Variable(), Meter(), {"mapped": 4.0}
    with Recorder() as run:
        run.log(0, values, array=array, variable=variable, meter=meter)
        array[:], meter.mean, values["mapped"] = 9.0, 9.0, 9.0
        variable.assign(9.0)

    read = Read(run.directory)
    found = {name: read.series(name).tolist() for name in read.names}
    assert found == {"array": [2.0], "variable": [1.0], "meter": [3.0], "mapped": [4.0]}


class Tensor:
    """A stand-in for PyTorch's."""

    def __init__(self, value: float) -> None:
        self.value, self._version = value, 0
        self.requires_grad = self.is_leaf = False

    def add_(self, value: float) -> None:
        self.value, self._version = self.value + value, self._version + 1

    def detach(self) -> "Tensor":
        return self

    def clone(self) -> "Tensor":
        return Tensor(self.value)

    def cpu(self) -> "Tensor":
        return self

    def __array__(self, dtype: Any = None, copy: Any = None) -> np.ndarray:
        return np.array(self.value)


def test_a_tensor_that_was_changed_in_place_has_no_value(wait_until: Callable[..., None]) -> None:
    with Recorder() as run:
        same, changed = Tensor(1.0), Tensor(2.0)
        run.log(0, loss=same, total=changed)
        changed.add_(1.0)
        run.log(1, loss=same)

    read = Read(run.directory)
    assert read.names == {"loss"}
    (message,) = warned(run)
    assert message == (
        "total is not recorded: the tensor was changed in place after it was logged: "
        "log total.detach().clone() or total.item() instead"
    )


def test_parameters_images_and_histograms_that_an_optimizer_changes_are_recorded_as_they_were() -> None:
    parameter = Tensor(2.0)
    parameter.requires_grad = parameter.is_leaf = True
    weights, pixels = Tensor([1.0, 3.0]), Tensor([[0.0, 1.0]])  # type: ignore[arg-type]
    with Recorder() as run:
        run.log(0, scale=parameter)
        run.log_histogram(0, weights=weights)
        run.log_image(0, pixels=pixels)
        for tensor in (parameter, weights, pixels):
            tensor.value, tensor._version = 9.0, 1

    assert Read(run.directory).series("scale").tolist() == [2.0]
    assert not warned(run)
    items = media_of(run)
    assert isinstance(items["weights"], Histogram)
    assert (items["weights"].edges[0], items["weights"].edges[-1]) == (1.0, 3.0)
    assert isinstance(items["pixels"], LoggedImage)
    assert items["pixels"].pixels.ravel().tolist() == [0, 255]


def test_images_texts_and_histograms_are_recorded_at_their_steps() -> None:
    pixels = np.zeros((2, 3), np.uint8)
    with Recorder() as run:
        run.log(7, loss=1.0)
        run.log_image(7, sample=pixels, wrong=np.zeros(3))
        pixels[:] = 255
        run.log_text(8, answer="hello")
        run.log_histogram(np.int32(9), weights=np.arange(10.0))

    assert run.directory
    with closing(RunReader(run.directory)) as reader:
        found = {series.name: reader.media(series, series.last_step) for series in reader.media_list()}
    assert {name: item[0] for name, item in found.items() if item} == {"sample": 7, "answer": 8, "weights": 9}
    image, text, histogram = (found[name][1] for name in ("sample", "answer", "weights"))  # type: ignore[index]
    assert isinstance(image, LoggedImage)
    assert not image.pixels.any()
    assert isinstance(text, LoggedText)
    assert text.text == "hello"
    assert isinstance(histogram, Histogram)
    assert histogram.counts.sum() == 10
    (message,) = warned(run)
    assert message.startswith("wrong is not recorded: an image has the shape")


def test_the_total_of_steps_is_told() -> None:
    with Recorder(steps=30) as run:
        run.log(0, loss=1.0)

    (built,) = Read(run.directory).all(ModelBuilt)
    assert (built.epochs, built.steps_per_epoch, built.parameters) == (0, 30, None)


def test_a_total_of_no_steps_is_none() -> None:
    with Recorder(steps=0) as run:
        pass

    assert warned(run) == ["steps is left out: it is a whole number from 1, not 0"]


def test_settings_of_any_kind_are_stored() -> None:
    loop: dict[str, Any] = {}
    loop["self"] = loop
    config = {"lr": np.float32(0.5), "model": {"depth": 3, "act": None}, "sizes": [1, 2], 5: math.nan, "loop": loop}
    with Recorder(config=config) as run:
        pass

    stored = Read(run.directory).info.plan_values["config"]
    assert stored | {"lr": 0.5, "model.depth": 3, "model.act": None, "sizes": "[1, 2]", "5": "nan"} == stored
    assert [value for name, value in stored.items() if name.startswith("loop.self")] == [str(loop)]


def test_an_object_with_attributes_is_a_configuration() -> None:
    with Recorder(config=argparse.Namespace(lr=0.5, path=Path("a"))) as run:
        pass

    assert Read(run.directory).info.plan_values["config"] == {"lr": 0.5, "path": "a"}


def test_settings_have_a_largest_depth_number_and_length() -> None:
    nested: dict[str, Any] = {"leaf": 1}
    for depth in range(10):
        nested = {str(depth): nested}
    settings = flat_config({"deep": nested, "text": "x" * 501, **{f"n{number}": number for number in range(1000)}})

    assert len(settings) == 1000
    assert settings["deep.9.8.7.6.5.4.3.2"] == "{'1': {'0': {'leaf': 1}}}"
    assert settings["text"] == "x" * 500
    assert settings["n997"] == 997
    assert flat_config(None) == {}


def test_arguments_that_cannot_be_used_are_told_in_the_run() -> None:
    with Recorder(config=5, steps="many") as run:  # type: ignore[arg-type]
        run.log(0, loss=1.0)
        run.log(20_000_000, loss=1.0)

    assert sorted(warned(run)) == [
        "config is not recorded: int is not a mapping",
        "step 20,000,000 is left out, as it comes 10,000,000 steps after the last or more: "
        "count updates, not examples or tokens",
        "steps is left out: it is a whole number from 1, not 'many'",
    ]
    assert Read(run.directory).series("loss").tolist() == [1.0]


def test_the_run_ends_when_nothing_refers_to_its_recorder(wait_until: Callable[..., None]) -> None:
    run = Recorder()
    run.log(0, loss=1.0)
    directory = run.directory
    del run

    wait_until(lambda: Read(directory).info.status is Status.FINISHED, "the end")
    assert Read(directory).series("loss").tolist() == [1.0]


# Commands


def test_stop_asks_the_script_to_stop(wait_until: Callable[..., None]) -> None:
    with Recorder() as run:
        run.log(0, loss=1.0)
        assert run.directory
        assert not run.should_stop
        number = send_command(run.directory, "stop")
        wait_until(lambda: run.should_stop, "the stop")
        wait_until(lambda: read_answer(run.directory, number), "the answer")  # type: ignore[arg-type]
        assert read_answer(run.directory, number) == (True, "asked the script to stop: it decides when")

    assert ended(run).outcome is Outcome.STOPPED
    assert ended(run).reason.startswith("stop requested by ")


def test_other_commands_are_for_scripts_that_take_them(wait_until: Callable[..., None]) -> None:
    with Recorder() as run:
        assert run.directory
        directory = run.directory
        refused = send_command(directory, "pause")
        wait_until(lambda: read_answer(directory, refused), "the answer")
        assert read_answer(directory, refused) == (False, "the script takes no commands but stop: no pause")
        assert run.command() is None
        send_command(directory, "learning_rate", 0.25)
        send_command(directory, "pause")
        left = send_command(directory, "checkpoint")
        taken: list[Any] = []

        def takes_two() -> bool:
            taken.extend(filter(None, [run.command()]))
            return len(taken) == 2

        wait_until(takes_two, "the commands")
        assert [(each.name, each.argument) for each in taken] == [("learning_rate", 0.25), ("pause", None)]
        wait_until(lambda: Read(directory).info.status is Status.PAUSED, "the pause")
        run.log(0, loss=1.0)
        wait_until(lambda: Read(directory).info.status is Status.RUNNING, "the next step")

    answers = [(event.command, event.obeyed) for event in Read(directory).all(CommandAnswered)]
    assert answers == [("pause", False), ("learning_rate", True), ("pause", True), ("checkpoint", False)]
    assert read_answer(directory, left) == (False, "the run has ended")


# Nothing reaches the script


def test_wrong_usage_is_told_in_the_run_only(recwarn: pytest.WarningsRecorder) -> None:
    with Recorder() as run:
        run.log()  # type: ignore[call-arg]
        run.log(0, 5)  # type: ignore[arg-type]
        run.log(0, loss=1.0)
        run.log_image(0, 1, 2)  # type: ignore[misc]
        run.log_text()  # type: ignore[call-arg]

    assert not recwarn.list
    assert len(warned(run)) == 4
    assert Read(run.directory).series("loss").tolist() == [1.0]


def test_a_recorder_without_a_run_warns_once_and_does_nothing(home: Path) -> None:
    home.write_text("a file where the runs should be")

    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        with Recorder() as run:
            run.log(0, loss=1.0)
            run.log_text(0, text="x")
            assert not run.should_stop
            assert run.command() is None
            run.show()

    (warning,) = caught
    assert "not recorded, the script continues: cannot create the run directory" in str(warning.message)


def test_a_recorder_that_cannot_be_made_records_nothing(recwarn: pytest.WarningsRecorder) -> None:
    run = Recorder(nmae="x")  # type: ignore[call-arg]
    run.log(0, loss=1.0)
    run.close()

    assert len(recwarn.list) == 1
    assert run.directory is None


def test_a_full_disk_leaves_the_loop_as_it_is_and_loses_nothing(
    monkeypatch: pytest.MonkeyPatch, wait_until: Callable[..., None], recwarn: pytest.WarningsRecorder
) -> None:
    def full(*_: Any) -> None:
        raise database_error(sqlite3.SQLITE_FULL)

    monkeypatch.setattr(patient_writer, "RETRY_SECONDS", 0.01)
    with Recorder() as run:
        assert run.directory
        log = run.directory / "log.txt"
        with monkeypatch.context() as patch:
            patch.setattr(RunWriter, "write_chunk", full)
            run.log(0, loss=1.0)
            wait_until(lambda: "disk I/O error: waiting" in log.read_text(), "the failure")
            run.log(1, loss=1.0)

    assert not recwarn.list
    assert ended(run).outcome is Outcome.FINISHED
    assert len(Read(run.directory).series("loss")) == 2
    assert "the run can be written again" in log.read_text()


def test_more_than_can_be_written_is_counted(monkeypatch: pytest.MonkeyPatch, wait_until: Callable[..., None]) -> None:
    monkeypatch.setattr(loop_session, "MAX_ROWS", 10)
    goes_on = threading.Event()
    write = RunLink.commands
    monkeypatch.setattr(RunLink, "commands", lambda self: (goes_on.wait(), write(self))[1])
    with Recorder() as run:
        for step in range(25):
            run.log(step, loss=1.0)
        goes_on.set()
        wait_until(lambda: warned(run), "the warning")
        monkeypatch.setattr(loop_session, "MAX_ROWS", 0)
        monkeypatch.setattr(loop_session, "MAX_MEDIA", 0)
        run.log(25, loss=1.0)
        run.log_text(25, text="a")

    assert [message for message in warned(run) if "not recorded" in message] == [
        f"{dropped} calls so far are not recorded: they came faster than they could be written" for dropped in (15, 17)
    ]
    assert len(Read(run.directory).series("loss")) == 10


def test_threads_may_log_at_once() -> None:
    with Recorder() as run:
        run.log(0, loss=1.0)
        threads = [
            threading.Thread(target=lambda name: [run.log(1, {f"{name}_{i}": i}) for i in range(50)], args=(name,))
            for name in ("a", "b")
        ]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()

    assert len(Read(run.directory).names) == 101


def test_after_its_end_it_records_nothing_and_says_so_once() -> None:
    run = Recorder()
    run.log(0, loss=1.0)
    run.close()
    run.close()
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        run.log(1, loss=1.0)
        run.log(2, loss=1.0)

    assert [str(each.message) for each in caught] == ["not recorded, the script continues: the recorder is closed"]
    assert len(Read(run.directory).series("loss")) == 1


def test_show_prints_how_to_watch(capsys: pytest.CaptureFixture[str], home: Path) -> None:
    with Recorder("shown") as run:
        run.show()

    assert run.directory
    printed = capsys.readouterr().out
    assert f"env ACCEL_TUI_HOME={home} accel-tui watch {run.directory.name}\n" in printed
    assert str(run.directory) in printed
    assert "ssh -t " in printed
