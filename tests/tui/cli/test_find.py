"""``accel-tui find``: what it asks for, and what it prints of what is found."""

import json
import os
import signal
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from accel_engine.errors import FieldValue, RunError
from accel_engine.finders.learning_rate_finder import FoundRate, RampOptions, RampProgress
from accel_engine.finders.throughput import FoundSize, SizeOptions, SizeProgress
from accel_engine.measure.trial_process import TrialCancelledError
from accel_engine.plan import SPECS, Plan
from accel_engine.run.engine.status import Status
from accel_tui.cli import finder_output
from accel_tui.formatting.finders import size_progress
from tui.finder_results import found_rate, found_size, nothing_found


class FakeFinders:
    """Stands in for both finders.

    Attributes:
        rate: What is found of a learning rate.
        size: What is found of a batch size.
        plans: The plans and runs that were asked about.
        options: The options.
        interrupts: Whether Ctrl-C comes meanwhile.
        error: Why nothing can be measured.
    """

    def __init__(self) -> None:
        self.rate: FoundRate = found_rate()
        self.size: FoundSize = found_size()
        self.plans: list[Any] = []
        self.options: list[Any] = []
        self.interrupts = False
        self.error: RunError | None = None

    def find_rate(
        self,
        source: Any,
        on_progress: Callable[[RampProgress], object],
        *,
        options: RampOptions,
        should_stop: Callable[[], bool],
    ) -> FoundRate:
        self._ask(source, options, should_stop)
        for number in range(1, len(self.rate.ramps) + 1):
            on_progress(RampProgress("", self.rate.ramps[:number], number, 3, 0.5))
        return self.rate

    def find_size(
        self,
        plan: Plan,
        on_progress: Callable[[SizeProgress], object],
        *,
        options: SizeOptions,
        should_stop: Callable[[], bool],
        noise_scale: float | None,
    ) -> FoundSize:
        del noise_scale
        if self.interrupts:
            on_progress(SizeProgress("measuring", self.size.measured[:2]))
        self._ask(plan, options, should_stop)
        for number, size in enumerate(self.size.measured):
            for detail in ("starting", "1 of 2 s"):
                text = f"measuring {size.batch_size}: {detail}"
                on_progress(SizeProgress(text, self.size.measured[:number], size.batch_size))
            on_progress(SizeProgress("measured", self.size.measured[: number + 1]))
        return self.size

    def _ask(self, source: Any, options: Any, should_stop: Callable[[], bool]) -> None:
        self.plans.append(source)
        self.options.append(options)
        if self.error is not None:
            raise self.error
        if self.interrupts:
            os.kill(os.getpid(), signal.SIGINT)
            while not should_stop():
                pass
            raise TrialCancelledError


@pytest.fixture
def finders(monkeypatch: pytest.MonkeyPatch) -> FakeFinders:
    made = FakeFinders()
    monkeypatch.setattr(finder_output, "find_learning_rate", made.find_rate)
    monkeypatch.setattr(finder_output, "find_rate_of_run", made.find_rate)
    monkeypatch.setattr(finder_output, "find_batch_size", made.find_size)
    return made


@pytest.mark.parametrize("what", ["learning-rate", "batch-size"])
def test_every_field_of_the_plan_has_a_flag(run_command, what):
    told = "".join(run_command(f"find {what} --help").out.split())
    assert all(str(FieldValue(name)) in told for name in SPECS)


def test_the_learning_rate_is_printed_with_its_curve_its_spread_and_the_command(run_command, finders):
    result = run_command("find learning-rate --optimizer sgd --momentum 0.9 --seeds 2 --lowest 1e-5")
    assert result.status == 0
    assert finders.plans[0].momentum == 0.9
    assert finders.options == [RampOptions(lowest=1e-5, seeds=2)]
    assert result.lines[0].startswith("loss")
    assert all(name in result.lines[0] for name in ("┊ steepest", "│ valley", "‖ minimum / 10", "┃ minimum / 3"))
    command = (
        f"accel-tui train --model cnn --optimizer sgd --learning-rate {finders.rate.learning_rate:g} --momentum 0.9"
    )
    assert result.lines[-1] == command


def test_the_last_line_of_json_has_the_result(run_command, finders):
    result = run_command("find learning-rate --json")
    lines = [json.loads(line) for line in result.lines]
    assert {line["event"] for line in lines[:-1]} == {"ramp_steps"}
    assert sum(len(line["rates"]) for line in lines[:-1]) == sum(len(ramp.rates) for ramp in finders.rate.ramps)
    assert lines[-1]["event"] == "learning_rate_found"
    assert (lines[-1]["learning_rate"], lines[-1]["problem"]) == (finders.rate.learning_rate, None)
    assert [each["rule"] for each in lines[-1]["suggestions"]] == ["steepest", "valley", "minimum / 10", "minimum / 3"]


def test_without_a_suggestion_the_reason_is_the_last_line_and_the_status_is_1(run_command, finders):
    finders.rate = nothing_found()
    result = run_command("find learning-rate")
    assert result.status == 1
    assert "the loss is flat" in result.err
    last = json.loads(run_command("find learning-rate --json").lines[-1])
    assert last["learning_rate"] is None
    assert "flat" in last["problem"]


def test_the_batch_size_is_printed_with_what_it_means(run_command, finders):
    result = run_command("find batch-size --largest 4096")
    assert result.status == 0
    assert finders.options[0].largest == 4096
    text = " ".join(result.out.split())
    assert "knee" in text
    assert "larger ones are slower" in text
    assert "square root rule" in text
    assert "--batch-size 128" in result.lines[-1]
    assert [line for line in result.err.splitlines() if "starting" in line] == [
        f"accel-tui: measuring {size}: starting" for size in (16, 32, 64, 128, 256)
    ]


def test_the_last_line_of_json_has_the_batch_size(run_command, finders):
    lines = [json.loads(line) for line in run_command("find batch-size --json").lines]
    assert [line["event"] for line in lines] == ["batch_size_started", "batch_size_measured"] * 5 + ["batch_size_found"]
    assert (lines[-1]["batch_size"], lines[-1]["fastest"], lines[-1]["largest"]) == (128, 256, 256)
    assert lines[-1]["problem"] is None


@pytest.mark.parametrize(
    ("left", "text"), [(27.4, "measuring 8, about 0:27 left"), (0.4, "measuring 8"), (None, "measuring 8")]
)
def test_the_time_left_is_shown_unless_it_is_over_or_unknown(left, text):
    assert size_progress(SizeProgress("measuring 8", seconds_left=left)) == text


def test_ctrl_c_ends_it_with_status_130(run_command, finders):
    finders.interrupts = True
    result = run_command("find learning-rate")
    assert (result.status, result.err) == (130, "")
    last = json.loads(run_command("find learning-rate --json").lines[-1])
    assert (last["learning_rate"], last["problem"]) == (None, "interrupted")


def test_ctrl_c_shows_the_batch_sizes_that_were_measured(run_command, finders):
    finders.interrupts = True
    result = run_command("find batch-size")
    assert (result.status, result.err.strip()) == (130, "accel-tui: interrupted: no batch size was chosen")
    assert [line.split()[0] for line in result.lines[-3:]] == ["BATCH", "16", "32"]
    last = json.loads(run_command("find batch-size --json").lines[-1])
    assert (last["batch_size"], last["problem"]) == (None, "interrupted")
    assert [each["batch_size"] for each in last["measured"]] == [16, 32]


@pytest.mark.parametrize("what", ["learning-rate", "batch-size"])
def test_the_last_line_of_json_has_the_error(run_command, finders, what):
    finders.error = RunError("the loss is a list")
    result = run_command(f"find {what} --json")
    assert result.status == 1
    assert json.loads(result.lines[-1])["problem"] == "the loss is a list"


@pytest.mark.parametrize(
    ("status", "schedule", "command"),
    [
        (Status.RUNNING, False, "set"),
        (Status.RUNNING, True, "continue"),
        (Status.STOPPED, False, "continue"),
        (Status.FINISHED, False, "continue"),
    ],
)
def test_a_live_run_gets_the_rate_of_its_optimizer(run_command, finders, monkeypatch, status, schedule, command):
    finders.rate = replace(found_rate(), factor=2.0, has_schedule=schedule)
    monkeypatch.setattr("accel_tui.cli.find.find_run", lambda _: Path("of-2"))
    info = SimpleNamespace(id="of-2", status=status, plan_values={"epochs": 3})
    monkeypatch.setattr(finder_output, "read_run", lambda _: info)
    words = run_command("find learning-rate --run of-2").lines[-1].split()
    assert finders.rate.optimizer_rate == pytest.approx(2 * finders.rate.learning_rate, rel=0.01)
    more = ["--epochs", "+3"] if status is Status.FINISHED else []
    stop = ["accel-tui", "stop", "of-2", "&&"] if schedule else []
    assert words[:-1] == [*stop, "accel-tui", command, "of-2", *more, "--learning-rate"]
    assert float(words[-1]) == (finders.rate.optimizer_rate if command == "set" else finders.rate.learning_rate)


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        ("learning-rate --lowest 1 --highest 0.1", "must be above 0 and below the highest"),
        ("learning-rate --ramp-steps 5", "must be an integer of at least 20"),
        ("learning-rate --epochs 1 --steps-per-epoch 3", "epochs = 1: too few: the plan takes 3 steps in all"),
        ("learning-rate plan.toml --run last", "leave PLAN.toml"),
        ("learning-rate --run last --epochs 3", "leave PLAN.toml and its options out"),
        ("batch-size --smallest 64 --largest 8", "must not be above the largest"),
        ("batch-size --strategy multi-worker", "needs TF_CONFIG, a Slurm job started with srun, or --local-workers 2"),
        ("batch-size --batch-size 0", "batch-size"),
        ("bs", "no such command"),
        ("", "accel-tui: give what to find: batch-size or learning-rate\n"),
    ],
)
def test_wrong_usage_ends_before_an_engine_starts(run_command, finders, arguments, words, home: Path):
    result = run_command(f"find {arguments}")
    assert result.status == 2
    assert words in result.err
    assert not finders.plans
