"""Notices that the data of a run has changed since its training began.

What is learned from training examples, such as the means of columns, the words of texts and class weights, is learned
again when a run continues. It is the same as long as the data is.
"""

from pathlib import Path

from accel_engine.data.dataset import Dataset
from accel_engine.data.fingerprint import NAMES, TRAINING, changed_parts
from accel_engine.data.structure import has_texts
from accel_engine.errors import DataError, RunError
from accel_engine.plan import Plan
from accel_engine.run.diagnostics import Diagnostics, read


def changed_data_notes(dataset: Dataset, trained: Diagnostics | None) -> list[str]:
    """Warnings for the user of a run that continues from a checkpoint with other examples.

    Args:
        dataset: The data, as it is now.
        trained: The run's diagnostics; ``None`` for a run that begins.

    Raises:
        DataError: It has other classes, columns or tokens, which the weights do not fit.
    """
    changed = changed_parts(dataset, trained.data.parts) if trained and trained.data else []
    if names := [name for name in changed if name in NAMES]:
        found = f"the data has changed since the run was trained, {_other(names)}"
        raise DataError(f"{found}, which the weights do not fit: restore it, or start a new run")
    if TRAINING in changed:
        return [
            "the training examples have changed since the run was started, and with them what is learned from them, "
            "such as means, words and class weights"
        ]
    return ["the validation examples have changed since the run was started: do not compare losses"] if changed else []


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


def check_unchanged(dataset: Dataset, trained: Diagnostics) -> None:
    """Raise if a run's model would be restored for other data than it was trained on.

    Raises:
        RunError: The training examples have changed, or what they mean.
    """
    changed = changed_parts(dataset, trained.data.parts) if trained.data else []
    if found := [name for name in changed if name in (*NAMES, TRAINING)]:
        raise RunError(
            f"the data has changed since the run was trained, {_other(found)}: restore it to validate the run"
        )


def _other(parts: list[str]) -> str:
    return f"with other {' and '.join(parts)}"
