import json
from pathlib import Path

import pytest

from accel_engine.errors import RunError
from accel_engine.launch.prediction import ClassProbability, Prediction, Predictions

GOOD = Prediction("a.png", (ClassProbability("cat", 0.75), ClassProbability("dog", 0.25)), ("resized from 9x9 to 8x8",))
BAD = Prediction("b.png", problem="cannot decode the image b.png: no image")


@pytest.fixture
def said(monkeypatch, tmp_path, new_run):
    """Images, a run, and what a stand-in for its model says of them; what it was asked is kept."""
    new_run().close()
    for name in ("a.png", "b.png"):
        (tmp_path / name).write_text("")
    monkeypatch.chdir(tmp_path)
    asked = []

    def answer(*predictions):
        def ask(directory, images, most):
            asked.append((directory, [str(path) for path in images], most))
            return Predictions(22, predictions)

        monkeypatch.setattr("accel_tui.cli.predict.predict_images", ask)
        return asked

    return answer


def test_the_likeliest_labels_are_a_table_with_what_was_done_to_the_image(run_command, said):
    asked = said(GOOD)
    result = run_command("predict last a.png")
    assert (result.status, result.err) == (0, "")
    assert [line.split() for line in result.lines[:3]] == [
        ["IMAGE", "PROBABILITY", "LABEL"],
        ["a.png", "75.0%", "cat"],
        ["25.0%", "dog"],
    ]
    assert result.lines[-1] == "a.png: resized from 9x9 to 8x8"
    assert asked[0][1:] == (["a.png"], 3)


def test_what_was_done_to_images_stands_in_lines_below_the_table(run_command, said):
    said(GOOD, GOOD)
    assert run_command("predict last a.png b.png").lines[-3:] == ["", *["a.png: resized from 9x9 to 8x8"] * 2]


def test_json_has_a_line_for_each_image_and_a_bad_one_makes_the_status_1(run_command, said):
    asked = said(GOOD, BAD)
    result = run_command("predict last a.png b.png --top 2 --json")
    assert result.status == 1
    first, second = map(json.loads, result.lines)
    assert (first["image"], first["step"], first["problem"]) == ("a.png", 22, "")
    assert first["top"] == [{"label": "cat", "probability": 0.75}, {"label": "dog", "probability": 0.25}]
    assert (first["example"], first["label"], first["probability"]) == ("a.png", "cat", 0.75)
    assert first["probabilities"] == {"cat": 0.75, "dog": 0.25}
    assert (second["image"], second["top"], second["problem"]) == ("b.png", [], BAD.problem)
    assert result.err == f"accel-tui: {BAD.problem}\n"
    assert asked[0][2] == 2


def test_a_folder_is_all_images_in_it(run_command, said):
    asked = said(GOOD, GOOD)
    Path("folder.gif").mkdir()
    Path("notes.txt").touch()
    assert run_command("predict last .").status == 0
    assert asked[0][1] == ["a.png", "b.png"]


def test_what_is_asked_wrongly_has_the_status_2_and_no_model_is_asked(run_command, said):
    asked = said()
    for image in ("a.png", "b.png"):
        Path(image).rename(f"{image}.txt")
    for words, told in (
        ("predict last c.png", "no such file: c.png"),
        ("predict last a.png.txt --top 0", "--top"),
        ("predict last", "image"),
        ("predict last .", "the folder . contains no images (.png, .jpg, .jpeg, .bmp, .gif)"),
        ("predict nobody a.png.txt", "nobody"),
    ):
        result = run_command(words)
        assert result.status == 2, words
        assert told in result.err.lower()
    assert asked == []


def test_a_run_that_cannot_be_asked_has_the_status_1(run_command, said, monkeypatch):
    said()

    def refuse(*_):
        raise RunError("run abcd has no checkpoint yet")

    monkeypatch.setattr("accel_tui.cli.predict.predict_images", refuse)
    result = run_command("predict last a.png")
    assert (result.status, result.out) == (1, "")
    assert result.err == "accel-tui: run abcd has no checkpoint yet\n"
