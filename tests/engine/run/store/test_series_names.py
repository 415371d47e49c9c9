"""What a model calls its metrics, and what a run does."""

import numpy as np
import pytest

from accel_engine.plan.monitor import is_at_most_one, is_better_lower
from accel_engine.run.store.series_names import (
    MAX_ELEMENTS,
    SeriesNames,
    elements,
    infer_monitor,
    series_name,
)


@pytest.mark.parametrize(
    ("name", "series"),
    [
        ("loss", "loss"),
        ("top5-acc", "top5_acc"),
        ("Acc@1", "acc_1"),
        ("1", "metric_1"),
        ("count", "metric_count"),
        ("step", "metric_step"),
        ("time", "metric_time"),
        ("steps_per_second", "metric_steps_per_second"),
        ("größe", "gr__e"),
        ("", "metric_"),
    ],
)
def test_a_name_is_one_that_a_column_can_have(name: str, series: str) -> None:
    assert series_name(name) == series
    assert series_name(series) == series


def test_an_array_of_one_value_is_that_value() -> None:
    names = SeriesNames()
    assert names.scalars({"f1": np.array([0.5]), "auc": np.array([[0.25]]), "loss": np.float32(1.0)}) == {
        "f1": 0.5,
        "auc": 0.25,
        "loss": 1.0,
    }
    assert names.take_notes() == []


def test_an_array_of_several_values_has_a_series_for_each() -> None:
    found = SeriesNames().scalars({"F1-score": np.array([0.1, 0.2]), "matrix": np.arange(4.0).reshape(2, 2)})
    assert list(found) == ["f1_score_0", "f1_score_1", "matrix_0_0", "matrix_0_1", "matrix_1_0", "matrix_1_1"]
    assert list(found.values()) == [0.1, 0.2, 0.0, 1.0, 2.0, 3.0]


def test_it_is_said_once_what_is_left_out() -> None:
    names = SeriesNames()
    for _ in range(2):
        assert len(names.scalars({"f1": np.zeros(1000), "none": np.zeros(0)})) == MAX_ELEMENTS
    assert names.take_notes() == [
        f"the metric f1 has 1,000 values: the first {MAX_ELEMENTS} are recorded",
        "the metric none is not recorded: it has no value",
    ]
    assert names.take_notes() == []


def test_metrics_whose_names_would_be_one_are_all_kept() -> None:
    names = SeriesNames("loss")
    results = {name: np.float64(place) for place, name in enumerate(("acc@1", "Acc-1", "acc_1", "Loss", "loss"))}
    assert names.scalars(results) == {"acc_1_2": 0.0, "acc_1_3": 1.0, "acc_1": 2.0, "loss_2": 3.0, "loss": 4.0}
    assert names.take_notes()[0] == "the metric acc@1 is recorded as acc_1_2: the name acc_1 is taken"


def test_a_metric_has_one_name_whatever_else_there_is_later() -> None:
    names = SeriesNames()
    names.scalars({"Acc": np.float64(1.0), "acc@": np.float64(2.0)})
    assert names.scalars({"acc_": np.float64(3.0), "acc@": np.float64(4.0)}) == {"acc__2": 3.0, "acc_": 4.0}


def test_an_element_and_a_metric_that_is_called_so_are_both_kept() -> None:
    found = SeriesNames().scalars({"f1": np.array([0.1, 0.2]), "f1_0": np.float64(0.3)})
    assert sorted(found.values()) == [0.1, 0.2, 0.3]


def test_metrics_of_a_mapping_have_its_name_before_theirs() -> None:
    assert SeriesNames().scalars({"head": {"acc": np.float64(0.5)}}) == {"head_acc": 0.5}


def test_the_values_of_one_metric_are_found_by_their_numbers() -> None:
    names = ["loss", "f1_0", "f1_1", "f1_2", "top_5", "acc_2", "m_0_0", "m_0_1"]
    assert elements(names) == {"f1": ("f1_0", "f1_1", "f1_2"), "m_0": ("m_0_0", "m_0_1")}


def test_a_list_of_values_is_a_series_for_each() -> None:
    names = SeriesNames("loss")
    assert names.scalars({"loss": 1.0, "parts": [2.0, (3.0,)]}) == {"loss": 1.0, "parts_0": 2.0, "parts_1_0": 3.0}


def test_a_reserved_name_is_given_to_no_metric() -> None:
    names = SeriesNames()
    names.reserve("learning_rate")

    assert names.scalars({"learning_rate": 0.1}) == {"learning_rate_2": 0.1}
    assert names.take_notes() == [
        "the metric learning_rate is recorded as learning_rate_2: the name learning_rate is taken"
    ]


@pytest.mark.parametrize(
    ("name", "lower"),
    [
        ("loss", True),
        ("validation_loss", True),
        ("depth_loss", True),
        ("g_loss", True),
        ("mae", True),
        ("root_mean_squared_error", True),
        ("binary_crossentropy", True),
        ("perplexity", True),
        ("cosine_similarity_loss", True),
        ("false_positives", True),
        ("true_negatives", False),
        ("accuracy", False),
        ("validation_top_k_categorical_accuracy", False),
        ("auc_1", False),
        ("mean_io_u", False),
        ("f1_score_3", False),
        ("r2_score", False),
        ("cosine_similarity", False),
        ("gradient_norm", None),
        ("learning_rate", None),
        ("temperature", None),
    ],
)
def test_the_name_of_a_metric_tells_which_way_is_better(name: str, lower: bool | None) -> None:
    assert is_better_lower(name) is lower


@pytest.mark.parametrize(
    ("series", "task", "monitor"),
    [
        (("loss", "accuracy"), "", "accuracy"),
        (("loss", "gradient_norm", "sparse_categorical_accuracy"), "classification", "sparse_categorical_accuracy"),
        (("loss", "accuracy"), "sequence", "loss"),
        (("loss", "mae"), "regression", "loss"),
        (("loss", "a_loss", "b_loss", "a_accuracy", "b_accuracy"), "", "loss"),
        (("d_loss", "g_loss"), "custom", "d_loss"),
        ((), "", "loss"),
    ],
)
def test_without_a_monitor_the_accuracy_of_a_classification_counts_else_the_loss(
    series: tuple[str, ...], task: str, monitor: str
) -> None:
    assert infer_monitor(series, task) == monitor


@pytest.mark.parametrize(
    ("name", "is_limited"),
    [
        ("accuracy", True),
        ("sparse_top_k_categorical_accuracy", True),
        ("auc_1", True),
        ("mean_io_u", True),
        ("r2_score", True),
        ("loss", False),
        ("cosine_similarity_loss", False),
        ("psnr", False),
        ("throughput", False),
        ("true_positives", False),
    ],
)
def test_metrics_that_are_one_at_best(name: str, is_limited: bool) -> None:
    assert is_at_most_one(name) is is_limited
