"""A study such as a search writes, without training: a seeded script makes its trials."""

import math
from dataclasses import replace
from pathlib import Path

import numpy as np

from accel_engine.search.definition import Confirmation, Objective, Parameter, StudyDefinition
from accel_engine.search.study_database import StudyDatabase, create_study
from accel_engine.search.study_paths import study_directory
from accel_engine.search.trial import Report, Trial, TrialState

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

BEGINNING = 1_800_000_000.0
EPOCH_SECONDS = 2.0


def write_study(
    trials: int = 36,
    epochs: int = 30,
    *,
    definition: StudyDefinition = DEFINITION,
    beginning: float = BEGINNING,
    runs: tuple[str, ...] = (),
    seed: int = 0,
) -> Path:
    """Write a study whose last two trials train: some are pruned, one failed, one ran out of memory.

    Args:
        trials: Number of trials so far.
        epochs: Epochs of a whole trial.
        definition: The search.
        beginning: When it was created, in seconds since the Unix epoch.
        runs: Ids of the runs of the latest trials.
        seed: Of everything random.
    """
    directory = study_directory(definition.name)
    create_study(directory, definition)
    random = np.random.default_rng(seed)
    with StudyDatabase(directory) as database:
        database._database.execute("PRAGMA synchronous = OFF")
        now, best = beginning, -math.inf
        for number in range(trials):
            values = _sample(random, number)
            run = runs[number - trials] if number >= trials - len(runs) else ""
            trial = Trial(number, run, TrialState.RUNNING, values, started=now)
            curve = _curve(values, epochs, random)
            trained, state, reason = _fate(number, trials, curve, best, epochs)
            for epoch in range(trained):
                now += EPOCH_SECONDS
                database.add_report(Report(number, epoch + 1, (epoch + 1) * 50, now, float(curve[epoch])))
            if state is TrialState.RUNNING:
                database.put_trial(trial)
                continue
            reached = float(curve[:trained].max()) if trained else math.nan
            if state is TrialState.FINISHED:
                best = max(best, reached)
            objectives = {"validation_accuracy": reached, "time": trained * EPOCH_SECONDS} if trained else {}
            database.put_trial(
                replace(trial, state=state, objectives=objectives, reason=reason, ended=now, pinned=number == 4)
            )
    return directory


def confirm(directory: Path, trial: int) -> None:
    """Note that the best plan was trained again with three seeds."""
    values = (0.9712, 0.9778, 0.9689)
    mean, spread = float(np.mean(values)), float(np.std(values, ddof=1))
    with StudyDatabase(directory) as database:
        database.set_confirmation(Confirmation(trial, ("a", "b", "c"), values, mean, spread))


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


def _fate(number: int, trials: int, curve: np.ndarray, best: float, epochs: int) -> tuple[int, TrialState, str]:
    """Epochs trained, the state and its reason."""
    if number >= trials - 2:
        return max(3, epochs // (2 + trials - number)), TrialState.RUNNING, ""
    if number % 40 == 7:
        return 0, TrialState.FAILED, "the loss became NaN at step 12"
    if number % 40 == 19:
        return 0, TrialState.OUT_OF_MEMORY, "the device has 16 GiB; batch 256 needs more"
    for rung in (3, 9):
        if rung < epochs and curve[rung - 1] < best - 0.55 / rung:
            return rung, TrialState.PRUNED, f"worse than half of the trials at epoch {rung}"
    return epochs, TrialState.FINISHED, ""
