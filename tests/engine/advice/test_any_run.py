"""No rule raises, whatever a run has recorded."""

from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from accel_engine.advice import find_troubles, read_recorded
from accel_engine.errors import RunError
from accel_engine.run.diagnostics import DataProfile, InputProfile, Shift
from damaged_runs import copied, overwrite, record, set_field, set_value

from .recorded_example import classified, learned

NUMBERS = st.floats(allow_nan=True, allow_infinity=True, width=32)

CURVES = st.lists(NUMBERS, max_size=60).map(lambda values: np.resize(values or [1.0], 3 * len(values)))

FINITE = st.none() | st.floats(-1e30, 1e30)

COUNTS = st.lists(st.integers(0, 1000), max_size=4).map(tuple)

PROFILES = st.none() | st.builds(
    DataProfile,
    st.integers(0, 2000),
    features=st.integers(0, 100),
    inputs=st.none() | st.builds(InputProfile, FINITE, FINITE, FINITE, FINITE, st.floats(0, 1)),
    validation_inputs=st.none() | st.builds(InputProfile, FINITE, FINITE, FINITE, FINITE, st.floats(0, 1)),
    constant_features=st.none() | st.integers(0, 100),
    feature_scales=FINITE,
    shift=st.none() | st.builds(Shift, st.text(max_size=3), NUMBERS, NUMBERS, st.integers(0, 100)),
    classes=COUNTS,
    validation_classes=COUNTS,
    neighbours=FINITE,
    neighbours_chance=FINITE,
    neighbours_examples=st.integers(0, 1000),
    target_mean=FINITE,
    target_deviation=FINITE,
    targets_not_finite=FINITE,
    compared=st.integers(0, 100),
    compared_validation=st.integers(0, 100),
    duplicates=st.integers(0, 100),
    leaked=st.integers(0, 100),
    class_runs=FINITE,
)

REPORTS = st.none() | st.builds(
    lambda counts, bins: classified(counts, dict(enumerate(bins)), dict(enumerate(reversed(bins)))),
    st.integers(1, 4).flatmap(
        lambda n: st.lists(st.lists(st.integers(0, 50), min_size=n, max_size=n), min_size=n, max_size=n)
    ),
    st.lists(st.integers(0, 50), max_size=20),
)

BUILT = st.fixed_dictionaries(
    {},
    optional={
        "task": st.sampled_from(["", "classification", "regression", "custom"]),
        "loss": st.sampled_from(["", "mse", "binary_crossentropy", "sparse_categorical_crossentropy"]),
        "outputs": st.sampled_from(["", "float32 1", "float32 4", "float32 8x8x1"]),
        "activation": st.sampled_from(["", "softmax", "linear", "relu", "sigmoid"]),
        "from_logits": st.sampled_from([None, True, False]),
        "classes": st.none() | st.integers(0, 10),
        "examples": st.none() | st.integers(0, 10_000),
        "steps_per_epoch": st.none() | st.integers(0, 10),
        "global_batch": st.none() | st.integers(0, 100),
        "per_replica_batch": st.none() | st.integers(0, 100),
        "optimizer": st.sampled_from(["", "SGD", "Adam", "Own"]),
        "monitor": st.sampled_from(["", "validation_accuracy", "validation_loss", "x"]),
    },
)


@settings(max_examples=40, deadline=None)
@given(
    loss=CURVES,
    accuracy=CURVES,
    rate=CURVES,
    validation=st.lists(NUMBERS, max_size=12),
    kind=st.sampled_from(["training", "script"]),
    every=st.integers(1, 40),
    profile=PROFILES,
    report=REPORTS,
    built=BUILT,
)
def test_no_rule_raises(
    loss: Any, accuracy: Any, rate: Any, validation: Any, kind: str, every: int, profile: Any, report: Any, built: Any
) -> None:
    run = learned(
        loss,
        accuracy=accuracy,
        learning_rate=rate,
        validation={"loss": validation, "accuracy": validation[::-1]},
        kind=kind,
        every=every,
        profile=profile,
        report=report,
        built=built,
        layers=["Dense", "BatchNormalization"],
    )

    for finding in find_troubles(run):
        assert finding.title


@pytest.fixture(scope="module")
def whole(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return copied(record(), tmp_path_factory.mktemp("runs") / "whole")


@pytest.mark.parametrize(
    ("table", "column", "value"),
    [
        ("event", "body", "{}"),
        ("event", "body", "[]"),
        ("event", "time", "=-1"),
        ("chunk", "loss", None),
        ("chunk", "loss", b""),
        ("diagnostics", "head", "{}"),
        ("diagnostics", "body", b"x"),
        ("meta", "value", "null"),
        ("sample", "readings", "{}"),
    ],
)
def test_a_damaged_run_is_advised_on(whole: Path, tmp_path: Path, table: str, column: str, value: Any) -> None:
    run = copied(whole, tmp_path / "run")
    set_value(run, table, column, value)

    _advise(run)


@pytest.mark.parametrize("value", [..., None, -1, 1e300, "x", [], {}])
def test_damaged_fields_of_the_profile_are_left_out(whole: Path, tmp_path: Path, value: Any) -> None:
    run = copied(whole, tmp_path / "run")
    for row in range(5):
        for name in ("examples", "classes", "layers", "flops"):
            set_field(run, "diagnostics", "head", row, name, value)

    _advise(run)


def test_an_overwritten_file_is_an_error_with_words(whole: Path, tmp_path: Path) -> None:
    for share in (0.0, 0.3, 0.6, 0.9):
        run = copied(whole, tmp_path / f"run{share}")
        overwrite(run, share, b"\xff" * 4096)
        _advise(run)


def _advise(run: Path) -> None:
    try:
        recorded = read_recorded(run)
    except RunError:
        return
    find_troubles(recorded)
