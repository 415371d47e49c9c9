"""Notices that the data of a run has changed since its training began.

What is learned from training examples, such as the means of columns, the words of texts and class weights, is learned
again when a run continues. It is the same as long as the data is.
"""

from pathlib import Path

from accel_engine.data import find
from accel_engine.data.dataset import Dataset
from accel_engine.data.fingerprint import NAMES, TRAINING, changed_parts
from accel_engine.data.structure import has_texts
from accel_engine.errors import DataError, RunError
from accel_engine.plan import Plan
from accel_engine.run.diagnostics import Diagnostics, read


def changed_data_notes(dataset: Dataset, plan: Plan, trained: Diagnostics | None) -> list[str]:
    """Warnings for the user of a run that continues from a checkpoint with other examples.

    Args:
        dataset: The data, as it is now.
        plan: The plan.
        trained: The run's diagnostics; ``None`` for a run that begins.

    Raises:
        DataError: The data has other classes, columns or tokens, which the weights do not fit.
    """
    changed = _changed(dataset, trained)
    if names := [name for name in changed if name in NAMES]:
        found = f"the data has changed since the run was trained, {_other(names)}"
        raise DataError(f"{found}, which the weights do not fit: restore it, or start a new run")
    learned = _preprocessing_is_learned(dataset) or bool(plan.class_weight)
    return _notes(
        changed, plan, ", and with them what is learned from them, such as means and words" if learned else ""
    )


def other_meaning_notes(dataset: Dataset, plan: Plan) -> list[str]:
    """Warnings for the user of a run that starts with the weights of a run on other data.

    Args:
        dataset: The data.
        plan: The plan, with the absolute path of its initial weights.
    """
    source = Path(plan.initial_weights)
    before = read(source).data if plan.initial_weights and source.is_dir() else None
    changed = changed_parts(dataset, before.parts) if before else []
    names = [name for name in changed if name in NAMES]
    names += ["words"] if TRAINING in changed and has_texts(dataset.spec) else []
    if not names:
        return []
    return [f"run {source.name} was trained on data {_other(names)}: its weights may have another meaning here"]


def check_restorable(dataset: Dataset, plan: Plan, trained: Diagnostics) -> list[str]:
    """Warnings for the user whose model is restored to be validated on the data as it is now.

    Args:
        dataset: The data, as it is now.
        plan: The run's plan.
        trained: The run's diagnostics.

    Raises:
        RunError: The validation examples mean something else than in training: there are other classes, columns or
            tokens, or the preprocessing was learned from other training examples.
    """
    changed = _changed(dataset, trained)
    refused = (*NAMES, TRAINING) if _preprocessing_is_learned(dataset) else NAMES
    if found := [name for name in changed if name in refused]:
        reason = f"the data has changed since the run was trained, {_other(found)}"
        raise RunError(f"{reason}: restore it to validate the run{_seed_advice(plan)}")
    return _notes(changed, plan)


def _changed(dataset: Dataset, trained: Diagnostics | None) -> list[str]:
    return changed_parts(dataset, trained.data.parts) if trained and trained.data else []


def _preprocessing_is_learned(dataset: Dataset) -> bool:
    """Whether means of columns, or the words of texts, are learned from training examples."""
    return bool(dataset.preprocess or dataset.target_scaling or has_texts(dataset.spec))


def _notes(changed: list[str], plan: Plan, consequence: str = "") -> list[str]:
    if TRAINING in changed:
        return [f"the training examples have changed since the run was started{consequence}{_seed_advice(plan)}"]
    if not changed:
        return []
    return [
        f"the validation examples have changed since the run was started: do not compare losses{_seed_advice(plan)}"
    ]


def _seed_advice(plan: Plan) -> str:
    """A hint on random numbers in a function that makes data."""
    return (
        f"; if {plan.data} makes them at random, give its random generator a seed" if find(plan.data).function else ""
    )


def _other(parts: list[str]) -> str:
    return f"with other {' and '.join(parts)}"
