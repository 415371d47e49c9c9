"""Tells the metrics of training from those of validation by the names that other tools give them."""

import re

TRAINING_WORDS = frozenset({"train", "training"})
VALIDATION_WORDS = frozenset({"val", "valid", "validation", "eval", "evaluation"})

_PREFIX = re.compile(r"(?P<word>[a-z]+)[/_.](?P<name>.+)", re.IGNORECASE)
_SUFFIX = re.compile(r"(?P<name>.+)/(?P<word>[a-z]+)", re.IGNORECASE)


def split_name(name: str) -> tuple[bool, str]:
    """Split a metric's name: ``val_loss`` and ``Loss/val`` are the ``loss`` of validation, ``train/loss`` of training.

    Returns:
        Whether it is measured by validation, and its name without the word that says so.
    """
    for pattern in (_PREFIX, _SUFFIX):
        if found := pattern.fullmatch(name):
            word = found["word"].lower()
            if word in VALIDATION_WORDS:
                return True, found["name"]
            if word in TRAINING_WORDS:
                return False, found["name"]
    return False, name
