"""Tells from the names of prepared splits which is for what."""

from collections.abc import Mapping
from typing import NamedTuple, TypeVar

from accel_engine.data.data_options import DataOptions
from accel_engine.errors import DataError

_Split = TypeVar("_Split")

_TRAIN = ("train", "training")
_VALIDATION = ("validation", "valid", "val", "dev")
_TEST = ("test", "testing")


class NamedSplits(NamedTuple):
    """Names of splits, ``None`` where there is none, and notes for the user."""

    train: str
    validation: str | None
    test: str | None
    notes: tuple[str, ...]

    @property
    def by_use(self) -> dict[str, str]:
        """The name of each split that there is, by ``train``, ``validation`` and ``test``."""
        names = {"train": self.train, "validation": self.validation, "test": self.test}
        return {use: name for use, name in names.items() if name is not None}


def choose_splits(splits: Mapping[str, _Split], options: DataOptions) -> NamedSplits:
    """Choose the splits: a test split is used for validation if there is no other and the plan asks for none.

    Args:
        splits: The splits by name; if there is only one, it is for training.
        options: The plan's split.

    Raises:
        DataError: There is no training split.
    """
    train, validation, test = (
        next((name for name in splits if name.lower() in names), None) for names in (_TRAIN, _VALIDATION, _TEST)
    )
    if train is None and len(splits) == 1:
        (train,) = splits
        validation = test = None
    if train is None:
        raise DataError(f"there is no training split: the data has {', '.join(splits) or 'none'}")
    notes: list[str] = []
    if validation is None and test is not None and options.split == "auto" and not options.validation_data:
        validation, test = test, None
        notes.append(f"validating on the split {validation}, as there is no validation split")
    unused = [name for name in splits if name not in (train, validation, test)]
    if unused:
        notes.append(f"unused splits: {', '.join(unused)}")
    return NamedSplits(train, validation, test, tuple(notes))
