"""Which charts there can be of a run, what they draw, and what the labels below them count."""

from dataclasses import replace

import numpy as np

from accel_engine.events import EpochEnded, Validated
from accel_engine.run import Chunk, Update
from accel_engine.run.store.steps import THROUGHPUT
from accel_tui.run_state.fold_events import apply_update
from accel_tui.run_state.marks import MAX_MARKS
from accel_tui.run_state.state import RunState
from accel_tui.widgets.chart_panels.run_panels import panel_series, panels_of, scale_of
from example_events import model_built


def ended(epoch: int, step: int) -> EpochEnded:
    return EpochEnded(time=0.0, epoch=epoch, step=step, metrics={}, seconds=1.0)


def at(state: RunState, x: str, *steps: float) -> list[float]:
    scale = scale_of(state, x)  # type: ignore[arg-type]
    assert scale
    return scale.at(np.array(steps)).round(6).tolist()


def test_steps_need_no_scale() -> None:
    assert scale_of(RunState(), "step") is None


def test_epochs_are_those_that_ended() -> None:
    state = apply_update(RunState(), Update(events=(ended(1, 90), ended(2, 200))))
    assert at(state, "epoch", 0, 45, 90, 145, 200) == [0, 0.5, 1, 1.5, 2]


def test_of_many_epochs_those_that_are_not_kept_are_where_they_were() -> None:
    events = tuple(ended(number, 10 * number) for number in range(1, 3 * MAX_MARKS))
    state = apply_update(RunState(), Update(events=events))
    assert at(state, "epoch", 10, 15, 70, 10_000) == [1, 1.5, 7, 1000]


def test_epochs_are_counted_as_the_run_counts_them() -> None:
    state = replace(apply_update(RunState(), Update(events=(ended(6, 100), ended(7, 200)))), step=200)
    assert at(state, "epoch", 0, 100, 150, 200) == [5, 6, 6.5, 7]


def test_time_is_that_of_the_steps() -> None:
    losses = {"loss": np.ones(10, np.float32)}
    chunks = (Chunk(0, 10, 1000.0, 1005.0, losses), Chunk(10, 10, 1065.0, 1070.0, losses))
    state = apply_update(RunState(), Update(chunks=chunks))
    assert at(state, "time", 0, 10, 20) == [0, 5, 70]


def validated(step: int, **metrics: float) -> Validated:
    return Validated(time=0.0, epoch=1, step=step, metrics=metrics, seconds=1.0)


def test_a_metric_that_only_validations_have_has_a_chart_of_its_points() -> None:
    losses = {"loss": np.ones(10, np.float32)}
    events = (validated(5, loss=0.5, f1_score=0.25), validated(10, loss=0.4, f1_score=0.5))
    state = apply_update(RunState(), Update(events=events, chunks=(Chunk(0, 10, 0.0, 1.0, losses),)))
    panels = {panel.title: panel for panel in panels_of(state, frozenset())}
    assert list(panels) == ["loss", "steps/s", "f1 score"]
    (points,) = panel_series(state, panels["f1 score"])
    assert (points.name, points.curve.end_step, points.points) == ("validation", 0, ((4, 0.25), (9, 0.5)))


def test_a_metric_that_another_program_calls_otherwise_at_steps_has_one_chart() -> None:
    series = {"loss": np.ones(10, np.float32), "top5_acc": np.ones(10, np.float32)}
    events = (validated(10, loss=0.5, **{"top5-acc": 0.25, "größe": 1.0, "gräße": 2.0}),)
    state = apply_update(RunState(), Update(events=events, chunks=(Chunk(0, 10, 0.0, 1.0, series),)))
    panels = {panel.title: panel for panel in panels_of(state, frozenset())}
    assert list(panels) == ["loss", "top5 acc", "steps/s", "gr  e", "gr  e 2"]
    assert [one.name for one in panel_series(state, panels["top5 acc"])] == ["step", "validation"]
    assert len({panel.id for panel in panels.values()}) == len(panels)
    assert all(panel.id.isascii() for panel in panels.values())


def test_the_values_of_one_metric_come_after_all_other_charts() -> None:
    series = {name: np.ones(10, np.float32) for name in ("loss", "accuracy", "f1_0", "f1_1", "learning_rate")}
    events = (validated(10, loss=0.5, auc_0=0.1, auc_1=0.2, top_5=0.9),)
    state = apply_update(RunState(), Update(events=events, chunks=(Chunk(0, 10, 0.0, 1.0, series),)))
    titles = [panel.title for panel in panels_of(state, frozenset({"utilization"}))]
    ordered = ["loss", "accuracy", "steps/s", "top 5", "utilization %", "learning rate"]
    assert titles == [*ordered, "f1 0", "f1 1", "auc 0", "auc 1"]


def titles_of(series: tuple[str, ...], **more: str) -> list[str]:
    """The charts of a run with these series, the throughput excepted."""
    state = apply_update(RunState(), Update(events=(model_built(series=series, **more),)))
    return [panel.title for panel in panels_of(state, frozenset()) if panel.name != THROUGHPUT]


def test_a_run_has_a_chart_of_every_series_losses_metrics_and_gradients_together() -> None:
    series = ("loss", "a_accuracy", "gradient_norm", "a_loss", "b_mae", "b_loss")
    assert titles_of(series) == ["loss", "a accuracy", "a loss", "b loss", "b mae", "gradient norm"]
    assert titles_of(("loss", "d_loss", "g_loss"), task="custom") == ["loss", "d loss", "g loss"]
    assert titles_of(("d_loss", "g_loss", "gradient_norm")) == ["d loss", "g loss", "gradient norm"]


def test_what_counts_has_the_chart_next_to_the_loss() -> None:
    series = ("loss", "mae", "a_loss", "auc")
    assert titles_of(series, task="regression")[:2] == ["loss", "mae"]
    assert titles_of(series, monitor="validation_auc") == ["loss", "auc", "a loss", "mae"]
    assert titles_of(series, monitor="a_loss") == ["loss", "a loss", "mae", "auc"]
    assert titles_of(("loss", "gradient_norm", "accuracy"))[:2] == ["loss", "accuracy"]


def test_a_run_that_never_has_an_accuracy_has_no_chart_of_it() -> None:
    assert titles_of(("loss",)) == ["loss"]
    assert [panel.title for panel in panels_of(RunState(), frozenset())] == ["loss", "steps/s"]
