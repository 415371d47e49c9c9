"""Divides the tokens of a text into examples of a language model: blocks, and the same one token later.

Blocks follow each other and do not overlap. So an epoch predicts every token once, and no token of one split is in
another.
"""

from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

from accel_engine.data.data_options import DataOptions
from accel_engine.data.dataset import LazyRows, Split
from accel_engine.data.splits import choose_split, split_counts
from accel_engine.errors import FieldValue, PlanError
from accel_engine.user_paths import is_file, user_path


class TokenBlocks(LazyRows):
    """Blocks of tokens, int32 ``[examples, window]``, made when they are read.

    Args:
        tokens: Tokens of a type that takes less memory, ``[tokens]``.
        window: Tokens of a block.
        shift: Number of tokens before the first block.
    """

    dtype = np.dtype(np.int32)

    def __init__(self, tokens: npt.NDArray[np.unsignedinteger[Any]], window: int, shift: int) -> None:
        self.shape = (block_count(len(tokens), window), window)
        self._blocks = tokens[shift : shift + self.shape[0] * window].reshape(self.shape)

    def take(self, rows: npt.NDArray[np.integer[Any]]) -> npt.NDArray[np.int32]:
        """Copy some blocks, ``[len(rows), window]``."""
        blocks: npt.NDArray[np.int32] = self._blocks[rows].astype(np.int32)
        return blocks


def tokens_per_example(options: DataOptions) -> int:
    """Tokens of an example."""
    return options.window or 64


def block_count(tokens: int, window: int) -> int:
    """Number of examples of a part of a text: each needs one token more than its window."""
    return max(0, tokens - 1) // window


def block_split(tokens: npt.NDArray[np.unsignedinteger[Any]], options: DataOptions) -> Split:
    """The examples of a part of a text."""
    window = tokens_per_example(options)
    return Split(TokenBlocks(tokens, window, 0), TokenBlocks(tokens, window, 1))


def divide_tokens(tokens: int, options: DataOptions) -> tuple[int, int, int]:
    """Number of tokens in the training, validation and test part of a text, which follow each other.

    Raises:
        PlanError: The split does not fit a text, or a part is too short for an example.
    """
    window = tokens_per_example(options)
    choose_split(options, ordered=True)
    if options.split_column:
        raise PlanError("split", options.split, "needs a table with this column; use ordered or none")
    validation, test = (count and max(count, window + 1) for count in split_counts(tokens, options))
    train = tokens - validation - test
    if train <= window:
        parts = 1 + bool(validation) + bool(test)
        reason = f"an example needs {window + 1} tokens, in each of {parts} parts, but the text has {tokens:,}"
        raise PlanError("window", window, f"{reason}; use a smaller one, or ", FieldValue("split", "none"))
    return train, validation, test


def validation_path(options: DataOptions) -> Path | None:
    """The text file with the validation examples, if the plan has one.

    Raises:
        PlanError: There is no such file.
    """
    if not options.validation_data:
        return None
    path = user_path(options.validation_data)
    if not is_file(path):
        raise PlanError("validation_data", options.validation_data, "no such text file")
    return path


def check_validation(tokens: int, options: DataOptions) -> None:
    """Check that the text file with the validation examples has tokens for one.

    Raises:
        PlanError: It has not.
    """
    if tokens <= tokens_per_example(options):
        reason = f"an example needs {tokens_per_example(options) + 1} tokens, but the file has {tokens:,}"
        raise PlanError("validation_data", options.validation_data, reason)
