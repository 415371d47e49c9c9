"""Reports of regressions, reconstructions and forecasts, compared with NumPy's figures."""

from dataclasses import replace

import keras
import numpy as np
import pytest

from accel_engine.data.dataset import Dataset, Split
from accel_engine.data.standardization import Standardization
from accel_engine.run.diagnostics import CustomReport, ForecastReport, ReconstructionReport, RegressionReport
from accel_engine.run.diagnostics.views import Curve, Image, Row
from accel_engine.training.core.task import INPUTS, Task

from .measuring import dataset, reports


@pytest.mark.parametrize("xla", [False, True])
@pytest.mark.parametrize("shape", [(), (1,), (2,), (3, 4)])
def test_regression(numbers: np.random.Generator, shape: tuple[int, ...], xla: bool) -> None:
    true = numbers.normal(5, 2, (30, *shape)).astype(np.float32)
    outputs = (true + numbers.normal(0.5, 1, true.shape)).astype(np.float32)
    if shape == ():
        outputs = outputs[:, np.newaxis]  # as a layer Dense(1) for targets [n]
    table = numbers.normal(size=(30, 3)).astype(np.float32)
    names = ("price", "size") if shape == (2,) else ()
    data = dataset(table, true, kind="table", target_names=names)

    (report,) = reports("regression", data, outputs, keras.losses.MeanSquaredError(), xla=xla)

    assert isinstance(report, RegressionReport)
    y, said = true.reshape(30, -1), outputs.reshape(30, -1)
    errors, units = said - y, y.shape[1]
    shown = min(units, 8)
    assert report.units == units
    assert report.names == (names or tuple(map(str, range(shown))))
    np.testing.assert_allclose(report.mae, np.abs(errors).mean(0)[:shown], rtol=1e-5)
    np.testing.assert_allclose(report.rmse, np.sqrt((errors**2).mean(0))[:shown], rtol=1e-5)
    r2 = 1 - (errors**2).sum(0) / ((y - y.mean(0)) ** 2).sum(0)
    np.testing.assert_allclose(report.r2, r2[:shown], rtol=1e-4)
    assert report.mean_mae == pytest.approx(np.abs(errors).mean(), rel=1e-5)
    assert report.mean_rmse == pytest.approx(np.sqrt((errors**2).mean()), rel=1e-5)
    np.testing.assert_array_equal(report.points[0], np.stack([y[:, 0], said[:, 0]], axis=1))
    assert report.residuals.sum(1).tolist() == [30] * shown
    assert np.all(np.diff(report.residual_edges, axis=1) > 0)
    losses = (errors**2).mean(1)
    assert [each.row for each in report.worst] == np.argsort(-losses).tolist()
    assert report.worst[0].loss == pytest.approx(losses.max(), rel=1e-5)
    assert isinstance(report.worst[0].input, Row)
    target = report.worst[0].target
    assert isinstance(target, Row)
    assert target.values[0] == f"{y[report.worst[0].row, 0]:.6g}"
    assert target.columns == units


def test_regression_leaves_out_what_is_not_finite() -> None:
    true = np.array([[1.0], [2.0], [3.0], [np.nan]], np.float32)
    outputs = np.array([[1.5], [np.nan], [2.0], [0.0]], np.float32)
    (report,) = reports("regression", dataset(np.zeros((4, 3), np.float32), true), outputs, "mse")
    assert isinstance(report, RegressionReport)
    assert report.not_finite == 2
    np.testing.assert_allclose(report.mae, [0.75])
    assert report.mean_mae == pytest.approx(0.75)
    assert [each.row for each in report.worst] == [1, 3, 2, 0]
    assert np.isnan(report.worst[0].loss)


def test_regression_of_one_constant_example() -> None:
    (report,) = reports(
        "regression",
        dataset(np.zeros((1, 3), np.float32), np.ones((1, 1), np.float32)),
        np.full((1, 1), 3.0, np.float32),
        "mae",
    )
    assert isinstance(report, RegressionReport)
    assert (report.mae.tolist(), report.rmse.tolist()) == ([2.0], [2.0])
    assert np.isnan(report.r2).all()


def test_regression_keeps_a_bounded_number_of_points(numbers: np.random.Generator) -> None:
    true = numbers.normal(size=(5000, 1)).astype(np.float32)
    data = dataset(np.zeros((5000, 1), np.float32), true)
    (report,) = reports("regression", data, true + 1, "mse")
    assert isinstance(report, RegressionReport)
    assert report.points.shape == (1, 2000, 2)
    assert len(report.worst) == 64
    (again,) = reports("regression", data, true + 1, "mse")
    assert isinstance(again, RegressionReport)
    np.testing.assert_array_equal(report.points, again.points)


def test_outputs_of_a_distribution_are_custom(numbers: np.random.Generator) -> None:
    def likelihood(y: object, outputs: object) -> object:
        return keras.ops.square(y[:, 0] - outputs[:, 0])

    data = dataset(np.zeros((5, 3), np.float32), np.arange(5, dtype=np.float32)[:, np.newaxis])
    (report,) = reports("regression", data, np.zeros((5, 2), np.float32), likelihood)
    assert isinstance(report, CustomReport)
    assert "float32 2 cannot be compared with targets of float32 1" in report.reason
    assert [(each.row, each.loss) for each in report.worst] == [(4, 16.0), (3, 9.0), (2, 4.0), (1, 1.0), (0, 0.0)]
    assert isinstance(report.worst[0].input, Row)


@pytest.mark.parametrize("xla", [False, True])
def test_an_autoencoder_of_images(numbers: np.random.Generator, xla: bool) -> None:
    images = numbers.integers(0, 256, (10, 100, 50, 3)).astype(np.uint8)
    scaled = images.astype(np.float32) / 255
    outputs = np.clip(scaled + numbers.normal(0, 0.1, scaled.shape), 0, 1).astype(np.float32)
    data = dataset(images, np.arange(10, dtype=np.int32), class_names=tuple("abcdefghij"), kind="images")

    (report,) = reports(
        Task("reconstruction", INPUTS), data, outputs, "mse", encoded=scaled, scaled=scaled, scale=1 / 255, xla=xla
    )

    assert isinstance(report, ReconstructionReport)
    errors = outputs - scaled
    losses = (errors**2).mean((1, 2, 3))
    assert report.same_target
    assert report.mae == pytest.approx(np.abs(errors).mean(), rel=1e-4)
    assert report.rmse == pytest.approx(np.sqrt((errors**2).mean()), rel=1e-4)
    assert report.errors.sum() == 10
    assert [each.row for each in report.worst] == np.argsort(-losses).tolist()
    assert len(report.random) == 8
    worst = report.worst[0]
    assert worst.target is None
    assert isinstance(worst.input, Image)
    assert isinstance(worst.output, Image)
    assert worst.input.pixels.shape == worst.output.pixels.shape == (64, 32, 3)
    assert np.abs(worst.output.pixels.astype(int) - worst.input.pixels).mean() < 20


def test_denoising_shows_the_target(numbers: np.random.Generator) -> None:
    clean = numbers.random((6, 16, 16, 1)).astype(np.float32)
    noisy = clean + 0.5
    (report,) = reports("reconstruction", dataset(noisy, clean, kind="images"), clean, "mae")
    assert isinstance(report, ReconstructionReport)
    assert not report.same_target
    assert report.mae == 0
    first = report.worst[0]
    assert isinstance(first.target, Image)
    assert isinstance(first.output, Image)
    np.testing.assert_array_equal(first.target.pixels, first.output.pixels)
    np.testing.assert_array_equal(first.target.pixels, np.rint(clean[first.row] * 255))


def test_an_autoencoder_of_vectors(numbers: np.random.Generator) -> None:
    vectors = numbers.normal(size=(6, 140)).astype(np.float32)
    data = dataset(vectors, vectors)
    outputs = vectors.copy()
    outputs[3] = np.nan
    (report,) = reports("reconstruction", data, outputs, "mse")
    assert isinstance(report, ReconstructionReport)
    assert (report.same_target, report.not_finite, report.mae) == (True, 1, 0.0)
    assert report.worst[0].row == 3
    view = report.worst[1].output
    assert isinstance(view, Curve)
    np.testing.assert_array_equal(view.values[0], vectors[report.worst[1].row])


def series_data(numbers: np.random.Generator, horizon: int, names: tuple[str, ...]) -> tuple[Dataset, np.ndarray]:
    columns = ("wind", "T", "p")
    windows = numbers.normal(size=(12, 20, 3)).astype(np.float32)
    shape = (horizon,) if len(names) == 1 else (len(names),) if horizon == 1 else (horizon, len(names))
    true = numbers.normal(size=(12, *shape)).astype(np.float32)
    return dataset(windows, true, kind="series", feature_names=columns, target_names=names), true


@pytest.mark.parametrize("xla", [False, True])
@pytest.mark.parametrize(("horizon", "names"), [(1, ("T",)), (5, ("T",)), (1, ("p", "T")), (4, ("T", "wind"))])
def test_a_forecast(numbers: np.random.Generator, horizon: int, names: tuple[str, ...], xla: bool) -> None:
    data, true = series_data(numbers, horizon, names)
    outputs = (true + numbers.normal(size=true.shape)).astype(np.float32)

    (report,) = reports("regression", data, outputs, "mse", xla=xla)

    assert isinstance(report, ForecastReport)
    assert report.names == names
    steps = (12, horizon, len(names))
    errors = np.abs(outputs - true).reshape(steps)
    np.testing.assert_allclose(report.mae, errors.mean(0).T, rtol=1e-5)
    assert isinstance(data.validation, Split)
    past = data.validation.inputs[:, -1][:, [data.feature_names.index(name) for name in names]]
    expected = np.abs(past[:, np.newaxis] - true.reshape(steps)).mean(0).T
    np.testing.assert_allclose(report.baseline, expected, rtol=1e-5)
    assert report.mean_mae == pytest.approx(errors.mean(), rel=1e-5)
    worst = report.worst[0]
    assert worst.row == (errors**2).mean((1, 2)).argmax()
    assert isinstance(worst.input, Curve)
    assert isinstance(worst.target, Curve)
    assert worst.input.names[: len(names)] == worst.target.names == names
    np.testing.assert_array_equal(worst.target.values, true[worst.row].reshape(horizon, -1).T)
    assert len(report.random) == 8


def test_forecasts_and_regressions_have_original_units(numbers: np.random.Generator) -> None:
    data, true = series_data(numbers, 4, ("T",))
    assert isinstance(data.validation, Split)
    inputs = data.validation.inputs
    data = replace(data, target_scaling=Standardization(np.array([10.0]), np.array([5.0])))

    (report,) = reports("regression", data, true + 1, "mse")

    assert isinstance(report, ForecastReport)
    np.testing.assert_allclose(report.mae, np.full((1, 4), 5.0), rtol=1e-5)
    worst = report.worst[0]
    assert worst.loss == pytest.approx(1.0, rel=1e-5)
    assert isinstance(worst.input, Curve)
    assert isinstance(worst.target, Curve)
    assert worst.input.names == worst.target.names == ("T",)
    np.testing.assert_allclose(worst.target.values[0], true[worst.row] * 5 + 10, rtol=1e-5)
    np.testing.assert_allclose(worst.input.values[0], inputs[worst.row, :, 1] * 5 + 10, rtol=1e-5)
    assert report.baseline is not None
    np.testing.assert_allclose(report.baseline[0], np.abs(inputs[:, -1:, 1] - true).mean(0) * 5, rtol=1e-5)

    (numbers_report,) = reports("regression", replace(data, kind="table"), true + 1, "mse")
    assert isinstance(numbers_report, RegressionReport)
    np.testing.assert_allclose(numbers_report.mae, [5.0] * 4, rtol=1e-5)
    np.testing.assert_allclose(numbers_report.points[0, :, 0], true[:, 0] * 5 + 10, rtol=1e-5)


@pytest.mark.parametrize("kind", ["table", "series"])
def test_errors_of_standardised_targets_far_from_zero_keep_their_digits(
    numbers: np.random.Generator, kind: str
) -> None:
    data, true = series_data(numbers, 4, ("T",))
    data = replace(data, kind=kind, target_scaling=Standardization(np.array([1.2e9]), np.array([5.0])))
    outputs = (true + numbers.normal(size=true.shape)).astype(np.float32)

    (report,) = reports("regression", data, outputs, "mse")

    errors = 5 * np.abs(outputs - true)
    assert isinstance(report, ForecastReport | RegressionReport)
    np.testing.assert_allclose(np.ravel(report.mae), errors.mean(0), rtol=1e-5)
    assert report.mean_mae == pytest.approx(errors.mean(), rel=1e-5)
    if isinstance(report, ForecastReport):
        assert report.baseline is not None
        assert isinstance(data.validation, Split)
        past = data.validation.inputs[:, -1:, 1]
        np.testing.assert_allclose(report.baseline[0], 5 * np.abs(past - true).mean(0), rtol=1e-5)
    else:
        r2 = 1 - ((outputs - true) ** 2).sum(0) / ((true - true.mean(0)) ** 2).sum(0)
        np.testing.assert_allclose(report.r2, r2, rtol=1e-4)


def test_more_standardised_targets_than_are_shown(numbers: np.random.Generator) -> None:
    true = numbers.normal(size=(12, 9)).astype(np.float32)
    scaling = Standardization(np.arange(9.0), np.arange(1.0, 10))
    data = dataset(np.zeros((12, 3), np.float32), true, kind="table", target_scaling=scaling)
    (report,) = reports("regression", data, true + 1, "mse")
    assert isinstance(report, RegressionReport)
    np.testing.assert_allclose(report.mae, np.arange(1.0, 9), rtol=1e-5)
    np.testing.assert_allclose(report.points[:, 0, 0], true[0, :8] * np.arange(1, 9) + np.arange(8), rtol=1e-5)
