import pytest

from accel_engine.plan import SPECS
from accel_tui.widgets.plan.field_finder import find_fields

ALL = frozenset(SPECS)


def names(text: str) -> list[str]:
    return [field.name for field in find_fields(text, ALL)]


@pytest.mark.parametrize(
    ("text", "first"),
    [
        ("clip", ["clip_norm", "global_clip_norm", "clip_value"]),
        ("clipnorm", ["global_clip_norm", "clip_norm"]),
        ("global_clipnorm", ["global_clip_norm"]),
        ("EarlyStopping", ["patience", "min_delta", "restore_best"]),
        ("early stop", ["patience", "min_delta", "restore_best", "time_limit"]),
        ("lr", ["learning_rate", "rate_scaling", "schedule"]),
        ("scheduler", ["schedule"]),
        ("cosine decay", ["schedule"]),
        ("weight decay", ["weight_decay"]),
        ("amp", ["precision"]),
        ("batch size", ["batch_size"]),
        ("BATCH-SIZE", ["batch_size"]),
        ("SwapEMAWeights", ["ema_momentum"]),
        ("ReduceLROnPlateau", ["learning_rate", "schedule"]),
        ("sample_weight", ["class_weight"]),
        (
            "callbacks",
            [
                "patience",
                "restore_best",
                "checkpoint_every",
                "tensorboard",
                "schedule",
                "ema_momentum",
                "on_nan",
                "keep_alive",
            ],
        ),
        ("zzz", []),
    ],
)
def test_fields_are_found_by_their_names_and_those_of_keras(text: str, first: list[str]) -> None:
    found = names(text)
    assert set(found[: len(first)]) == set(first)
    assert bool(found) is bool(first)


def test_all_fields_are_listed_before_anything_is_typed() -> None:
    assert sorted(names("")) == sorted(SPECS)
    assert names("")[:2] == ["data", "target"]


def test_what_does_not_fit_comes_last_and_says_why() -> None:
    found = find_fields("momentum", ALL - {"momentum", "nesterov"})
    assert [field.name for field in found if field.is_relevant] == ["ema_momentum"]
    assert not found[-1].is_relevant
    assert {field.name: field.note for field in found}["momentum"] == "needs the optimizer sgd or rmsprop"
