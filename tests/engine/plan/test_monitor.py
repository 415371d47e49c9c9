"""What a plan can monitor, and what would be right."""

from typing import Any

import pytest

from accel_engine.errors import join_words
from accel_engine.plan import SPECS, Plan
from accel_engine.plan.monitor import wrong_monitor


@pytest.mark.parametrize(
    ("fields", "task", "words"),
    [
        ({"monitor": "loss"}, "classification", ""),
        ({"monitor": "gradient_norm"}, "classification", ""),
        ({"monitor": "anything"}, "auto", ""),
        ({"monitor": "validation_auc", "metrics": ("auc",)}, "classification", ""),
        ({"monitor": "auc", "metrics": ("auc",)}, "classification", ""),
        ({"monitor": "r2_score"}, "regression", ""),
        (
            {"monitor": "f1_score", "metrics": ("r2_score", "auc")},
            "classification",
            "f1_score is not measured; measured are loss, accuracy, auc: add --metrics auc,f1_score",
        ),
        (
            {"monitor": "val_accuracy"},
            "regression",
            "accuracy is not measured; measured are loss, mean_absolute_error, root_mean_squared_error, r2_score: "
            "use --monitor validation_loss",
        ),
    ],
)
def test_a_monitor_must_be_measured(fields: dict[str, Any], task: str, words: str) -> None:
    assert join_words(wrong_monitor(Plan(**fields), task, SPECS), str) == words
