"""The command that races, on processes of stand-ins whose rates are known."""

import io
import json
import os
import signal

import pytest

from accel_engine.devices.device_types import Inventory
from accel_engine.errors import FieldValue
from accel_engine.measure.trial_memory import MemoryBudget
from accel_engine.measure.trial_statistics import PlanComparison, PlanVerdict
from accel_engine.plan import SPECS, Plan
from accel_engine.race.configuration import Best, Configuration, ConfigurationResult, ConfigurationState
from accel_engine.race.race import Race
from accel_engine.words import numbers
from accel_tui.cli import chosen_plan, race
from accel_tui.cli.race import LiveBars
from accel_tui.formatting import race as race_text
from engine.race.stand_ins import CPU, Behaviour, StandInTrials, no_meters


@pytest.fixture(autouse=True)
def trials(home, monkeypatch):
    trials = StandInTrials(
        {
            "": Behaviour(1000.0),
            "xla=on": Behaviour(2000.0, memory=3e8),
            "threads=1": Behaviour(1500.0),
            "xla=on,threads=1": Behaviour(3000.0),
            "remat=on": Behaviour(problem="out of memory", out_of_memory=True),
        }
    )

    def make(*arguments):
        return Race(
            *arguments, make_trials=trials, make_meters=no_meters, budget=MemoryBudget(available=lambda: 1 << 50)
        )

    monkeypatch.setattr(race, "Race", make)
    monkeypatch.setattr(race, "require_installation", lambda: None)
    monkeypatch.setattr(chosen_plan, "detect", lambda: Inventory(CPU))
    return trials


def test_every_field_of_the_plan_has_a_flag(run_command) -> None:
    text = run_command("race --help").out
    told = "".join(text.split())
    assert all(str(FieldValue(name)) in told for name in SPECS)
    assert "--seconds" in told
    assert "devices,xla,precision,micro-batches" in told


def test_no_option_shadows_a_field_of_the_plan() -> None:
    names = [each.name for each in race.race.params]
    assert len({*names}) == len(names)


def test_the_table_the_verdict_and_the_command(run_command, trials) -> None:
    result = run_command("race --vary xla,threads,remat --seconds 2")
    assert result.status == 0
    rows = [line.split("  ")[0] for line in result.lines if line[:1].strip()][1:]
    assert rows[:2] == ["combined: XLA, 1 thre…", "XLA"]
    assert "The fastest is combined: XLA, 1 thread, 3 times as fast as this plan: --xla on --threads 1" in " ".join(
        result.lines
    )
    assert result.lines[-1] == "Train it: accel-tui train --xla on --threads 1"
    assert "rematerialization: failed: out of memory" in result.out
    assert "Speed is against this plan in the same rounds" in result.out
    assert "accel-tui: XLA: 2.00k examples/s (±0%)" in result.err
    assert max(map(len, result.lines[:-2])) <= 80
    assert not any(process.is_open for process in trials.processes)


def test_a_plan_that_cannot_train_fails_once(run_command, trials) -> None:
    trials.behaviours = {"": Behaviour(problem="shapes do not fit")}
    result = run_command("race --vary xla,threads")
    assert result.status == 1
    assert (result.out + result.err).count("shapes do not fit") == 2  # while it runs, and at the end
    assert "Not measured, because this plan cannot train: XLA, 1 thread" in result.out
    assert "XLA" not in result.err


def test_as_json_the_last_line_has_the_best(run_command) -> None:
    lines = [json.loads(line) for line in run_command("race --vary xla,batch-size,remat --seconds 2 --json").lines]
    *events, ended = lines
    assert {
        "configuration_compiling",
        "configuration_ready",
        "configuration_measured",
        "configuration_finished",
        "configuration_failed",
    } <= {each["event"] for each in events}
    assert ended["event"] == "race_ended"
    assert ended["best"] == {
        "configuration": "XLA",
        "plan": {"xla": "on"},
        "options": "--xla on",
        "examples_per_second": pytest.approx(2000.0),
        "speed": pytest.approx(2.0),
        "command": "accel-tui train --xla on",
    }
    assert ended["marks"] == {"fastest": "XLA", "least_memory": "this plan"}
    larger = next(each for each in ended["configurations"] if each["configuration"] == "batch size 128")
    assert (larger["changes_training"], larger["losses"]) == (True, "other batches")
    assert larger["plan"] == {"batch_size": 128}


def test_a_plan_file_and_options_over_it(run_command, trials, tmp_path) -> None:
    path = tmp_path / "plan.toml"
    path.write_text('model = "mlp"\nbatch_size = 8\n')
    result = run_command(f"race {path} --batch-size 16 --vary threads --seconds 1")
    assert result.status == 0
    assert {(each.plan.model, each.plan.batch_size) for each in trials.processes} == {("mlp", 16)}


def test_ctrl_c_shows_the_results_so_far(run_command, trials) -> None:
    def interrupt(plan: Plan) -> None:
        if plan.threads == 1:
            os.kill(os.getpid(), signal.SIGINT)

    trials.on_turn = interrupt
    result = run_command("race --vary xla,threads --seconds 2 --json")
    ended = json.loads(result.lines[-1])
    assert (result.status, ended["stopped"], ended["best"]["configuration"]) == (130, True, "XLA")
    assert not any(process.is_open for process in trials.processes)


def test_a_run_that_trains_meanwhile_is_named(run_command, new_run) -> None:
    run = new_run(name="other").begin()
    result = run_command("race --vary xla --seconds 1")
    assert f"run {run.directory.name} is training on cpu:0: the machine is not idle" in result.err
    assert result.status == 0
    run.end()


def test_nothing_measured_is_a_failure(run_command, trials) -> None:
    trials.behaviours.clear()
    trials.behaviours[""] = Behaviour(problem="the engine exited: no")
    result = run_command("race --vary xla --seconds 1")
    assert result.status == 1
    assert "this plan: failed: the engine exited: no" in result.out
    assert json.loads(run_command("race --vary xla --seconds 1 --json").lines[-1])["best"] is None


@pytest.mark.parametrize(
    ("words", "why"),
    [
        ("--vary xal", "'xal': did you mean xla?"),
        ("--vary ''", "nothing may change"),
        ("--seconds 0", "'0' must be a number from 0.1"),
        ("--seconds nan", "'nan' must be a number from 0.1"),
        ("--batch-size none", "--batch-size"),
        ("no-such.toml", "no-such.toml"),
        ("--strategy multi-worker", "needs TF_CONFIG, a Slurm job started with srun, or --local-workers 2"),
    ],
)
def test_wrong_usage_ends_before_any_process(run_command, trials, words, why) -> None:
    result = run_command(f"race {words}")
    assert result.status == 2
    assert why in " ".join(result.err.split())
    assert not trials.processes


def _faster(title: str, ratio: float, between: tuple[float, float], workers: int = 0) -> ConfigurationResult:
    strategy = {"strategy": "multi-worker", "local_workers": workers} if workers else {}
    changes = {"xla": "on"} if title == "XLA" else {"threads": 1}
    return ConfigurationResult(
        Configuration(title, Plan(**strategy, **({} if workers else changes)), changes),
        ConfigurationState.FINISHED,
        rates=(ratio,) * 8,
        examples_per_second=ratio,
        between=between,
        against_reference=PlanComparison(ratio, *between, PlanVerdict.BETTER, 8),
        memory=1e8,
        memory_of="host",
    )


def test_the_verdict_names_those_whose_intervals_overlap_with_the_fastest_one() -> None:
    fastest, close, slower = (
        _faster("XLA", 17.07, (9.0, 25.0)),
        _faster("1 thread", 12.0, (11.0, 13.0)),
        _faster("1 thread", 2.0, (1.9, 2.1)),
    )
    assert race_text.race_verdict([fastest, slower]) == "The fastest is XLA, 17 times as fast as this plan: --xla on"
    assert race_text.race_verdict([close, fastest]) == (
        "XLA and 1 thread are about as fast; the first is 17 times as fast as this plan: --xla on"
    )
    assert [numbers.times(ratio) for ratio in (1.254, 2.64, 123.0)] == ["1.25 times", "2.6 times", "123 times"]


def test_the_memory_of_several_processes_is_that_of_all() -> None:
    alone, together = _faster("XLA", 2.0, (1.9, 2.1)), _faster("XLA", 2.0, (1.9, 2.1), workers=2)
    assert next(race_text.notes_on([alone])) == "Memory is the most by which the process grew on this machine."
    assert "all processes of a configuration grew together" in next(race_text.notes_on([together]))


def test_two_marks_are_whole_at_80_columns() -> None:
    plan = Plan()
    usual = {"rates": (10.0,) * 8, "examples_per_second": 10.0, "between": (9.0, 11.0), "memory_of": "host"}
    one = ConfigurationResult(Configuration("this plan", plan), ConfigurationState.FINISHED, memory=1e8, **usual)
    title = "combined: XLA, mixed_bfloat16, 1 thread"
    other = ConfigurationResult(Configuration(title, plan), ConfigurationState.FINISHED, memory=2e8, **usual)
    lines = ["".join(text for text, _ in line) for line in race_text.bars([one, other], 79)]
    assert lines[0].rstrip().endswith("fastest, least memory")
    assert all(len(line) == 79 for line in lines)
    assert [line.count("━") for line in lines] == [7, 7]
    narrow = ["".join(text for text, _ in line) for line in race_text.bars([one, other], 74)]
    assert narrow[0].rstrip().endswith("MiB  fastest"), "the first, if not both have room"
    assert race_text.marks_text(list(Best)) == "best in all three"
    assert race_text.marks_text([Best.LEAST_MEMORY, Best.LEAST_ENERGY]) == "least memory, energy"


def test_bars_are_drawn_over_those_before(monkeypatch) -> None:
    """On a terminal that is too low for all configurations, the first ones are drawn."""
    monkeypatch.setenv("NO_COLOR", "1")
    monkeypatch.setenv("LC_ALL", "C.UTF-8")
    plan = Plan()
    one = ConfigurationResult(
        Configuration("this plan", plan),
        ConfigurationState.MEASURING,
        rates=(10.0,),
        examples_per_second=10.0,
        between=(9, 12),
    )
    other = ConfigurationResult(
        Configuration("XLA", plan.replace(xla="on"), {"xla": "on"}), ConfigurationState.COMPILING
    )
    stream = io.TextIOWrapper(io.BytesIO(), encoding="utf-8", newline="")
    bars = LiveBars(stream, lambda: (80, 2), clock=lambda: 0.0)
    bars.show(one)
    bars.show(other)
    stream.seek(0)
    first, second = stream.read().split("\r\x1b[2K")
    assert first.startswith("this plan  ━")
    assert "10.0" in first
    assert "\n" not in second
