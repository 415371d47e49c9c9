"""Reports survive storage, and rows of newer programs are read."""

import json
import math
from contextlib import closing
from dataclasses import fields, is_dataclass
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from accel_engine.errors import RunError
from accel_engine.run import RunWriter, diagnostics
from accel_engine.run.diagnostics import (
    ClassificationReport,
    CustomReport,
    Example,
    ForecastReport,
    InputSpec,
    Layer,
    LayerTable,
    MultiLabelReport,
    ReconstructionReport,
    RegressionReport,
    SamplePrediction,
    Scores,
    SegmentationReport,
    SequenceReport,
    ValidationReport,
    packing,
)
from accel_engine.run.diagnostics.packing import check_shapes
from accel_engine.run.diagnostics.views import Curve, Image, Labels, Mask, Parts, Row, Spectrogram, Text, Tokens
from accel_engine.run.store.database import RunDatabase
from recorded_run import execute

PIXELS = np.arange(2 * 3 * 3, dtype=np.uint8).reshape(2, 3, 3)
ERRORS = np.array([0.5, np.nan])

REPORT = ValidationReport(
    (
        ClassificationReport(
            output="kind",
            examples=3,
            names=("cat", "dög\x1b"),
            counts=np.array([[1, 0], [2, 0]]),
            confidence=Scores(np.ones((1, 200), np.int64), np.ones((1, 200), np.int64)),
            worst=(
                SamplePrediction(
                    row=2,
                    loss=math.nan,
                    input=Parts(("photo", "age"), (Image(PIXELS), Row(("age",), ("12",), 1))),
                    label=1,
                    predicted=0,
                    confidence=0.75,
                    true_class_probability=math.nan,
                ),
            ),
        ),
        MultiLabelReport(
            counts=np.ones((1, 2, 2), np.int64),
            scores=Scores(np.zeros((1, 200), np.int64), np.zeros((1, 200), np.int64)),
            worst=(Example(row=0, loss=1.0, target=Labels((1, 2)), output=Labels((2,), (0.25,))),),
        ),
        RegressionReport(
            names=("price", "size"),
            units=3,
            mae=ERRORS,
            rmse=ERRORS,
            r2=ERRORS,
            mean_mae=math.nan,
            mean_rmse=1.5,
            points=np.zeros((2, 0, 2), np.float32),
            residuals=np.zeros((2, 60), np.int64),
            residual_edges=np.zeros((2, 61), np.float32),
            worst=(Example(row=1, loss=2.0, input=Text("it was", 100)),),
        ),
        SegmentationReport(
            counts=np.eye(3, dtype=np.int64), worst=(Example(row=0, loss=0.0, target=Mask(PIXELS[:, :, 0])),)
        ),
        ReconstructionReport(
            mae=0.5,
            rmse=0.5,
            errors=np.arange(60),
            error_edges=np.arange(61, dtype=np.float32),
            same_target=True,
            random=(Example(row=0, loss=0.0, input=Spectrogram(PIXELS[:, :, 0], 1.5, 8000.0)),),
        ),
        SequenceReport(
            tokens=4,
            accuracy=0.25,
            perplexity=math.inf,
            generated="To be",
            worst=(Example(row=0, loss=0.0, output=Tokens(("a", "b"), 7, np.array([0.5, np.nan], np.float32))),),
        ),
        ForecastReport(
            names=("T",),
            mae=ERRORS[np.newaxis],
            mean_mae=1.0,
            mean_rmse=2.0,
            worst=(Example(row=0, loss=0.0, input=Curve(np.zeros((1, 4), np.float32), ("T",), 4, 1)),),
        ),
        CustomReport(reason="it is a GAN", shapes=(("out", "float32 64"),)),
    )
)


def assert_equal(first: Any, second: Any) -> None:
    """Compare all fields, arrays included; NaN equals NaN, and infinity too, which is stored as NaN."""
    assert type(first) is type(second)
    if is_dataclass(first):
        for each in fields(first):
            assert_equal(getattr(first, each.name), getattr(second, each.name))
    elif isinstance(first, tuple):
        assert len(first) == len(second)
        for one, other in zip(first, second, strict=True):
            assert_equal(one, other)
    elif isinstance(first, np.ndarray):
        assert first.dtype == second.dtype
        np.testing.assert_array_equal(first, second)
    else:
        assert first == second or (math.isnan(second) and not math.isfinite(first))


def test_reports_survive_storage(directory: Path, writer: RunWriter) -> None:
    layers = LayerTable((Layer("dense", "Dense", 0, (None, 3), 6, 6, 1.0),), reason="why not")
    spec = InputSpec((8, 8, 1), ("a", "b"), 1 / 255, 0.0, 1.0, integers=False)
    for step, item in enumerate((spec, layers, REPORT)):
        writer.write_diagnostics(item, step)

    found = diagnostics.read(directory)

    assert (found.input_spec, found.layers) == (spec, layers)
    assert_equal(REPORT, found.validation)
    assert found.steps == {"input_spec": 0, "layers": 1, "validation": 2}


def test_heads_are_json_without_nan() -> None:
    head, _ = diagnostics.serialize(REPORT)
    json.loads(head, parse_constant=pytest.fail)


def test_a_confusion_matrix_of_1000_classes_is_small() -> None:
    counts = np.zeros((1000, 1000), np.int64)
    counts[np.arange(1000), np.random.default_rng(0).permutation(1000)] = 50
    _, body = diagnostics.serialize(ValidationReport((ClassificationReport(counts=counts),)))
    assert len(body) < 100_000


def test_reports_and_fields_of_newer_programs_are_left_out(directory: Path, writer: RunWriter) -> None:
    head, body = diagnostics.serialize(REPORT)
    values = json.loads(head)
    values["outputs"][-1] |= {"mood": {"type": "Mood", "value": 1}}
    values["outputs"].append({"type": "HologramReport", "examples": 1})
    values["outputs"][0]["worst"][0]["input"] = {"type": "Hologram"}
    with closing(RunDatabase(directory)) as database:
        database.set_diagnostics("validation", 0.0, 1, json.dumps(values), body)
        database.set_diagnostics("unknown", 0.0, 1, "{}", b"")

    found = diagnostics.read(directory).validation

    assert found is not None
    assert [type(each) for each in found.outputs] == [type(each) for each in REPORT.outputs]
    assert found.outputs[0].worst[0].input is None


def test_a_row_that_no_engine_writes_is_an_error(directory: Path, writer: RunWriter) -> None:
    writer.write_diagnostics(REPORT, 7)
    execute(directory, "UPDATE main.diagnostics SET step = -1")
    with pytest.raises(RunError, match="row 'validation' of the table diagnostics: Expected `int` >= 0 in step"):
        diagnostics.read(directory)


@pytest.mark.parametrize("body", [b"", b"damaged" * 400])
def test_a_damaged_report_is_an_error(directory: Path, writer: RunWriter, body: bytes) -> None:
    head, _ = diagnostics.serialize(REPORT)
    with closing(RunDatabase(directory)) as database:
        database.set_diagnostics("validation", 0.0, 1, head, body)
    with pytest.raises(RunError, match="row 'validation' of the table diagnostics"):
        diagnostics.read(directory)


def test_arrays_as_large_as_they_may_be_are_read(monkeypatch: pytest.MonkeyPatch) -> None:
    packed = diagnostics.serialize(ValidationReport((ClassificationReport(counts=np.eye(2, dtype=np.int64)),)))
    head = json.loads(packed[0])
    monkeypatch.setattr(packing, "MAX_BYTES", 32)
    assert packing.unpack(head, packed[1]).outputs
    monkeypatch.setattr(packing, "MAX_BYTES", 31)
    with pytest.raises(ValueError, match="too large"):
        packing.unpack(head, packed[1])


def image(*shape: int) -> Image:
    return Image(np.zeros(shape, np.uint8))


def report(view: Any) -> ClassificationReport:
    return ClassificationReport(worst=(Example(row=0, loss=0.0, input=view),))


@pytest.mark.parametrize(
    ("view", "problem"),
    [
        (image(2, 3), r"pixels has the shape \[2, 3\]"),
        (image(2, 3, 2), "an image has no 2 channels"),
        (Row(("a", "b"), ("1",), 2), r"values has the shape \[1\]"),
        (Parts(("one",), (image(2),)), r"pixels has the shape \[2\]"),
    ],
)
def test_what_an_example_shows_is_checked(view: Any, problem: str) -> None:
    with pytest.raises(ValueError, match=problem):
        check_shapes((report(view),))


def test_whole_ones_pass() -> None:
    check_shapes((report(image(2, 3, 1)), report(Parts(("one",), (Row(("a",), ("1",), 1),)))))
