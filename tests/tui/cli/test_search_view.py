"""What a search looks like in the terminal."""

import re
from dataclasses import replace
from typing import Any

import pytest

from accel_engine.search.definition import Confirmation, Objective
from accel_engine.search.results import best_trial
from accel_engine.search.search_events import events_between, search_ended
from accel_engine.search.trial import Trial, TrialState
from accel_tui.cli.search_view import SearchBar, SearchNow, event_line, live_text, summary
from accel_tui.study_state.study_texts import objective_text
from engine.search.searching import ACCURACY, define

VALUES = {"learning_rate": 0.0123456789, "batch_size": 64}

WAITS = Trial(3, "ab12-cnn-digits", TrialState.WAITING, VALUES, started=10.0)
RUNS = Trial(3, "ab12-cnn-digits", TrialState.RUNNING, VALUES, started=10.0)
DONE = Trial(
    3, "ab12-cnn-digits", TrialState.FINISHED, VALUES, {"validation_accuracy": 0.98765}, started=10.0, ended=20.0
)
PRUNED = Trial(4, "cd34", TrialState.PRUNED, VALUES, {"validation_accuracy": 0.5}, "not promising", 10.0, 15.0)


def lines(before: Trial | None, after: Trial) -> list[str]:
    return [event_line(event) for event in events_between(before, after)]


def test_each_event_is_a_line() -> None:
    assert lines(None, WAITS) == ["trial 3 started  learning_rate=0.01235 batch_size=64"]
    assert lines(WAITS, RUNS) == []
    assert lines(RUNS, DONE) == ["trial 3 finished  val accuracy 0.9877  learning_rate=0.01235 batch_size=64"]
    assert lines(PRUNED, RUNS) == ["trial 3 continued from its checkpoint"]
    (continued,) = events_between(PRUNED, replace(RUNS, continued=99.0))
    assert continued["time"] == 99.0
    (pruned,) = lines(RUNS, PRUNED)
    assert pruned.startswith("trial 4 pruned  val accuracy 0.5000  learning_rate=")
    assert pruned.endswith("batch_size=64  not promising")


def test_a_long_reason_is_shortened_behind_the_values() -> None:
    reason = f"the loss became NaN at step 12: {'layer, ' * 30}\nkept as batch.npz"
    (line,) = lines(RUNS, replace(DONE, state=TrialState.FAILED, objectives={}, reason=reason))
    assert line.startswith("trial 3 failed  learning_rate=0.01235 batch_size=64  the loss became NaN at step 12: layer")
    assert line.endswith("…")
    assert len(line) < 140


def test_a_trial_starts_once_it_has_a_run_or_a_machine() -> None:
    without = replace(WAITS, run="")
    assert lines(None, without) == []
    assert lines(without, WAITS)[0].startswith("trial 3 started")
    assert [event["run"] for event in events_between(without, DONE)] == ["ab12-cnn-digits"] * 2
    assert lines(None, replace(without, machine="vm"))[0].startswith("trial 3 started  on vm")
    failed = replace(without, state=TrialState.FAILED, reason="wrong values")
    assert lines(without, failed)[0].startswith("trial 3 failed")


def test_objectives_have_their_units() -> None:
    measured = {"validation_accuracy": 0.9, "time": 75.0, "memory": 3 * 2.0**30, "latency": 0.002}
    (line,) = lines(RUNS, replace(DONE, objectives=measured))
    assert "val accuracy 0.9000  time 1:15  memory 3.0 GiB  latency 2.00 ms" in line
    assert [objective_text("time", seconds) for seconds in (0.304, 0.314, 9.99, 10.2)] == [
        "0.30 s", "0.31 s", "9.99 s", "0:10",
    ]  # fmt: skip


def test_the_live_line_fits_and_says_what_is_left(capsys: pytest.CaptureFixture[str]) -> None:
    now = SearchNow(define(trials=10), [DONE, PRUNED], spent=60.0)
    assert live_text(now) == "2 of 10 trials  best val accuracy 0.9877 (trial 3)  4:00 left"
    short = SearchNow(define(trials=10, within=100.0), [DONE, PRUNED], spent=60.0)
    assert "0:40 left" in live_text(short)
    confirmation = Confirmation(3, ("a", "b"), (0.9,))
    confirming = SearchNow(define(trials=2, confirm=3), [DONE, PRUNED], 60.0, confirmation=confirmation)
    assert live_text(confirming).startswith("confirming with seed 2 of 3")
    bar = SearchBar(lambda: (60, 24))
    bar.show((), now)
    shown = capsys.readouterr().out
    assert len(re.sub(r"\x1b\[[\d;]*m", "", shown)) <= 60
    bar.clear()
    assert capsys.readouterr().out.endswith("\x1b[1A\x1b[2K")


def test_the_end_shows_both_figures_and_the_command() -> None:
    definition = define(trials=2)
    confirmation = Confirmation(3, ("a", "b"), (0.97, 0.98), 0.975, 0.0071)
    ended = search_ended(definition, [DONE, PRUNED], "finished", "all 2 trials are done", confirmation)
    text = "\n".join(summary(ended, definition, [DONE, PRUNED]))
    assert "the search s has finished: all 2 trials are done" in text
    assert "best trial: 3 (run ab12), val accuracy 0.9877; trained again with 2 other seeds: 0.9750 ± 0.0071" in text
    assert text.index("ab12") < text.index("cd34")
    assert "  LEARNING RATE  BATCH SIZE" in text
    assert "Train it: accel-tui train --epochs 4 --monitor validation_accuracy --learning-rate 0.0123456789" in text


def summary_of(trials: list[Trial], **changes: Any) -> list[str]:
    definition = define(**changes)
    ended = search_ended(definition, trials, "finished", "all trials are done")
    return "\n".join(summary(ended, definition, trials)).splitlines()


def test_several_objectives_have_columns_and_the_front_is_first() -> None:
    figures = [(0.9, 30.0), (0.8, 40.0), (0.7, 10.0), *((0.75, 50.0 + each) for each in range(9))]
    trials = [
        replace(DONE, number=number, objectives={"validation_accuracy": accuracy, "time": seconds})
        for number, (accuracy, seconds) in enumerate(figures)
    ]
    text = summary_of(trials, objectives=(ACCURACY, Objective("time", maximize=False)))
    assert text[2].split()[:7] == ["TRIAL", "RUN", "STATE", "FRONT", "VAL", "ACCURACY", "TIME"]
    assert [line.split()[0] for line in text[3:8]] == ["0", "2", "1", "3", "4"]
    assert ["yes" in line for line in text[3:8]] == [True, True, False, False, False]
    assert text[13].startswith("FRONT: no other trial is better")
    assert text[14] == "2 more trials with results; accel-tui runs --filter name:s --sort best lists all"
    assert text[16] == "best trial: 0 (run ab12), val accuracy 0.9000"
    assert not any("FRONT" in line for line in summary_of(trials))


def test_of_trials_with_an_equal_monitor_the_best_is_the_first_that_no_other_beats() -> None:
    figures = [(0.9, 30.0), (0.9, 10.0), (0.9, 10.0), (0.8, 5.0)]
    trials = [
        replace(DONE, number=number, objectives={"validation_accuracy": accuracy, "time": seconds})
        for number, (accuracy, seconds) in enumerate(figures)
    ]
    both = define(objectives=(ACCURACY, Objective("time", maximize=False)))
    assert best_trial(both, trials) is trials[1]
    assert best_trial(define(), trials) is trials[0]
    without = [replace(trial, objectives={"validation_accuracy": 0.9}) for trial in trials]
    assert best_trial(both, without) is without[0]
    assert best_trial(both, []) is None


def test_trials_without_a_result_are_named_below_the_table() -> None:
    failed = Trial(0, "ab", TrialState.FAILED, {"learning_rate": 0.1, "batch_size": 128}, reason="NaN", ended=1.0)
    remote = Trial(7, "", TrialState.PRUNED, VALUES, machine="vm", ended=2.0)
    text = summary_of([failed, replace(failed, number=1), DONE, remote])
    assert "without a result here: trials 0, 1 failed; trial 7 pruned on vm" in text
    assert "batch_size=128 failed each time: trials 0, 1" in text
    assert not any("each time" in line for line in summary_of([failed, DONE]))
    many = [replace(failed, number=number) for number in range(9)]
    assert summary_of(many)[1:] == ["without a result here: 9 trials failed"]
