"""A study such as a search writes, without training: a seeded script makes its trials."""

import math
from collections.abc import Sequence
from dataclasses import astuple, replace
from pathlib import Path

import numpy as np
from optuna.trial import TrialState as OptunaState
from optuna.trial import create_trial

from accel_engine.json_values import to_plain
from accel_engine.search.definition import Confirmation, Objective, Parameter, StudyDefinition
from accel_engine.search.storage import create_study
from accel_engine.search.study_database import StudyDatabase
from accel_engine.search.study_paths import study_directory
from accel_engine.search.study_reader import REPORT, TRIAL
from accel_engine.search.study_writer import StudyWriter
from accel_engine.search.trial import Trial, TrialReport, TrialState

PARAMETERS = (
    Parameter("learning_rate", low=1e-4, high=1e-1, log=True),
    Parameter("batch_size", choices=(32, 64, 128, 256)),
    Parameter("optimizer", choices=("adam", "sgd", "adamw")),
    Parameter("weight_decay", low=1e-6, high=1e-2, log=True),
)

DEFINITION = StudyDefinition(
    name="digits-cnn",
    plan={"model": "cnn", "data": "digits", "epochs": 30},
    parameters=PARAMETERS,
    objectives=(Objective("validation_accuracy", maximize=True),),
    trials=40,
    confirm=3,
)

END = 1_800_000_000.0
EPOCH_SECONDS = 8.0
STARTUP_SECONDS = 6.0
RUNGS = (3, 9)
"""Epochs after which a trial may be pruned."""


def write_study(
    trials: int = 36,
    epochs: int = 30,
    *,
    definition: StudyDefinition = DEFINITION,
    end: float = END,
    runs: tuple[str, ...] = (),
    seed: int = 0,
) -> Path:
    """Write a study whose last two trials train: some are pruned, one failed, one ran out of memory.

    Args:
        trials: Number of trials so far.
        epochs: Epochs of a whole trial.
        definition: The search.
        end: Time of the last report, in seconds since the Unix epoch.
        runs: Ids of the runs of the latest trials.
        seed: Of everything random.
    """
    directory = study_directory(definition.name)
    create_study(directory, definition)
    made = _make(trials, epochs, runs, np.random.default_rng(seed))
    last = max(report.time for _, reports in made for report in reports)
    with StudyWriter(directory) as study:
        study.database.update(created=end - last, spent=last)
        for trial, reports in made:
            ended = None if trial.ended is None else end - last + trial.ended
            add_trial(
                study,
                replace(trial, started=end - last + trial.started, ended=ended),
                [replace(report, time=end - last + report.time) for report in reports],
            )
    return directory


def add_trial(study: StudyWriter, trial: Trial, reports: Sequence[TrialReport] = ()) -> None:
    """Add a trial to a study, in one piece: Optuna waits for the disk after each."""
    own = replace(trial, member=study.member)
    attributes = {f"{REPORT}{number}": [*astuple(each)[1:]] for number, each in enumerate(reports, 1)}
    state = OptunaState.RUNNING if trial.state.live else OptunaState.PRUNED
    study._add(create_trial(state=state, user_attrs={TRIAL: to_plain(own), **attributes}))
    study.refresh()


def _make(
    trials: int, epochs: int, runs: tuple[str, ...], random: np.random.Generator
) -> list[tuple[Trial, list[TrialReport]]]:
    """The trials with their reports, in seconds since the beginning; two train at a time."""
    made: list[tuple[Trial, list[TrialReport]]] = []
    free = [0.0, 0.0]  # when each of two devices is free
    reached: dict[int, list[float]] = {rung: [] for rung in RUNGS}
    for number in range(trials):
        values = _sample(random, number)
        curve = _curve(values, epochs, random)
        trained, state, reason = _fate(number, trials, curve, epochs, reached)
        start = min(free)
        times = [start + STARTUP_SECONDS + EPOCH_SECONDS * (epoch + 1) for epoch in range(trained)]
        end = free[free.index(start)] = times[-1] if times else start + STARTUP_SECONDS
        reports = [
            TrialReport(number, epoch + 1, (epoch + 1) * 50, time, float(curve[epoch]))
            for epoch, time in enumerate(times)
        ]
        run = runs[number - trials] if number >= trials - len(runs) else ""
        best = float(curve[:trained].max()) if trained else math.nan
        is_live = state is TrialState.RUNNING
        objectives = {"validation_accuracy": best, "time": end - start} if trained and not is_live else {}
        made.append(
            (
                Trial(
                    number,
                    run,
                    state,
                    values,
                    objectives,
                    reason,
                    start,
                    None if is_live else end,
                ),
                reports,
            )
        )
    return made


def confirm(directory: Path, trial: int) -> None:
    """Note that the best plan was trained again with three seeds."""
    values = (0.9712, 0.9778, 0.9689)
    mean, spread = float(np.mean(values)), float(np.std(values, ddof=1))
    with StudyDatabase(directory) as database:
        database.update(confirmation=Confirmation(trial, ("a", "b", "c"), values, mean, spread))


def _sample(random: np.random.Generator, number: int) -> dict[str, object]:
    focus = min(number / 30, 0.8)  # later trials are near good values, as a sampler's are
    rate = 10 ** ((1 - focus) * random.uniform(-4, -1) + focus * random.normal(-2.6, 0.25))
    return {
        "learning_rate": float(min(max(rate, 1e-4), 1e-1)),
        "batch_size": int(random.choice((32, 64, 128, 256), p=(0.3, 0.4, 0.2, 0.1))),
        "optimizer": str(random.choice(("adam", "sgd", "adamw"), p=(0.5, 0.2, 0.3))),
        "weight_decay": float(10 ** random.uniform(-6, -2)),
    }


def _curve(values: dict[str, object], epochs: int, random: np.random.Generator) -> np.ndarray:
    rate = math.log10(float(values["learning_rate"]))  # type: ignore[arg-type]
    ceiling = 0.985 - 0.05 * (rate + 2.6) ** 2 - 0.02 * (values["optimizer"] == "sgd")
    ceiling -= 0.0001 * float(values["batch_size"])  # type: ignore[arg-type]
    speed = 2.0 + 2 * abs(rate + 2.6)
    at = np.arange(1, epochs + 1)
    curve = ceiling - (ceiling - 0.1) * np.exp(-at / speed) + random.normal(0, 0.006, epochs)
    return np.clip(curve, 0.08, 0.999)


def _fate(
    number: int, trials: int, curve: np.ndarray, epochs: int, reached: dict[int, list[float]]
) -> tuple[int, TrialState, str]:
    """Epochs trained, the state and its reason."""
    if number >= trials - 2:
        return max(3, epochs // (2 + trials - number)), TrialState.RUNNING, ""
    if number % 40 == 7:
        return 0, TrialState.FAILED, "the loss became NaN at step 12"
    if number % 40 == 19:
        return 0, TrialState.OUT_OF_MEMORY, "the device has 16 GiB, and batch 256 needs more"
    for rung in RUNGS:
        others = reached[rung]
        value = float(curve[min(rung, epochs) - 1])
        others.append(value)
        if rung < epochs and len(others) > 4 and value < float(np.quantile(others, 0.4)):
            return rung, TrialState.PRUNED, f"below the median of the other trials at epoch {rung}"
    return epochs, TrialState.FINISHED, ""
