"""The tables of an evaluation on its screen."""

from accel_engine.requests.evaluate import (
    ClassScores,
    Difference,
    EvaluatedModel,
    Evaluation,
    Measurement,
    MetricDifference,
)
from accel_tui.formatting.evaluation import drawn_evaluation_tables
from accel_tui.formatting.table_columns import ResultTable

BASELINE = {"accuracy": 0.1}


def model(name: str, accuracy: Measurement, classes: tuple[ClassScores, ...] = ()) -> EvaluatedModel:
    return EvaluatedModel(name, 40, {"accuracy": accuracy}, classes, (), BASELINE, "most frequent class: 3")


def drawn(table: ResultTable, width: int) -> list[str]:
    return [cell(width) for cell in table.drawn[0].cells]


def test_a_single_model_is_on_the_whole_scale_with_its_baseline() -> None:
    found = Evaluation("test", 100, (model("a", Measurement(0.5, 0.3, 0.8)),), ())
    (table,) = drawn_evaluation_tables(found, 0.95)
    assert table.title == "accuracy"
    assert table.rows[1] == ("baseline, most frequent class: 3", "0.1000", "")
    assert drawn(table, 11) == ["   ├─●──┤  ", " ●         "]


def test_several_models_are_on_a_scale_of_their_intervals() -> None:
    two = (model("a", Measurement(0.90, 0.88, 0.92)), model("b", Measurement(0.96, 0.95, 0.98)))
    table, *_ = drawn_evaluation_tables(Evaluation("test", 100, two, ()), 0.95)
    assert [row[2] for row in table.rows[:2]] == ["0.8800 to 0.9200", "0.9500 to 0.9800"]
    assert table.drawn[0].title == "0.8700 to 0.9900"
    assert drawn(table, 13)[:2] == [" ├─●─┤       ", "        ├●─┤ "]


def test_a_difference_is_around_none() -> None:
    metrics = {"accuracy": MetricDifference(Measurement(-0.05, -0.1, 0.0), 0.04, is_better=False)}
    two = (model("a", Measurement(0.9, 0.8, 1.0)), model("b", Measurement(0.85, 0.8, 0.9)))
    *_, table = drawn_evaluation_tables(Evaluation("test", 100, two, (Difference("b", "a", metrics),)), 0.95)
    assert table.title == "b minus a"
    assert table.rows == [("accuracy", "-0.0500", "-0.1000 to 0.0000", "0.04", "worse")]
    assert drawn(table, 9) == ["├─●─┤    "]


def test_classes_have_intervals_of_their_f1_from_the_lowest() -> None:
    scores = Measurement(0.9, 0.8, 1.0)
    classes = (
        ClassScores("cat", 30, scores, scores, scores),
        ClassScores("dog", 0, *[Measurement(None, None, None)] * 3),
    )
    *_, table = drawn_evaluation_tables(Evaluation("test", 30, (model("a", scores, classes),), ()), 0.95)
    assert table.drawn[0].title == "F1, 0.8 to 1"
    assert table.shown_title("F1") == "F1"
    assert drawn(table, 5) == ["├─●─┤", "     "]
