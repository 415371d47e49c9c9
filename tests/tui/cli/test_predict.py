"""``accel-tui predict`` of images, with a stand-in for the model."""

import json
from pathlib import Path

import numpy as np
import pytest

from accel_engine.errors import RunError
from accel_engine.inference.output_prediction import OutputPrediction
from accel_engine.requests.predict import ExamplePredictions

NOTE = "a.png: resized from 9x9 to 8x8"
BAD = "cannot decode the image b.png: no image"


def classified(*images, problems=()):
    """What the model of two classes says of images."""
    values = np.array([[0.75, 0.25]] * (len(images) - len(problems)), np.float32)
    output = OutputPrediction("", "classification", ("cat", "dog"), (), values)
    names = tuple((image, image) for image in images)
    return ExamplePredictions("abcd-run", 22, "images", names, dict(problems), (output,), None, (NOTE,))


@pytest.fixture
def said(monkeypatch, tmp_path, new_run):
    """Images, a run, and what a stand-in for its model says of them; what it was asked is kept."""
    new_run().close()
    for name in ("a.png", "b.png"):
        (tmp_path / name).write_text("")
    monkeypatch.chdir(tmp_path)
    asked = []

    def answer(predictions=None):
        def ask(request):
            asked.append([str(path) for path in request.files])
            return predictions

        monkeypatch.setattr("accel_tui.cli.predict.ask", ask)
        return asked

    return answer


def test_the_likeliest_labels_are_a_table_and_what_was_done_to_the_image_a_note(run_command, said):
    asked = said(classified("a.png"))
    result = run_command("predict last a.png")
    assert (result.status, result.err) == (0, f"accel-tui: {NOTE}\n")
    assert [line.split() for line in result.lines] == [
        ["IMAGE", "LABEL", "PROBABILITY", "OTHERS"],
        ["a.png", "cat", "75.0%", "dog", "25.0%"],
    ]
    assert asked == [["a.png"]]


def test_json_has_a_line_for_each_image_and_a_bad_one_makes_the_status_1(run_command, said):
    said(classified("a.png", "b.png", problems={1: BAD}.items()))
    result = run_command("predict last a.png b.png --top 2 --json")
    assert result.status == 1
    first, second = map(json.loads, result.lines)
    assert (first["image"], first["step"], first["problem"]) == ("a.png", 22, "")
    assert first["top"] == [{"label": "cat", "probability": 0.75}, {"label": "dog", "probability": 0.25}]
    assert (first["example"], first["label"], first["probability"]) == ("a.png", "cat", 0.75)
    assert first["probabilities"] == {"cat": 0.75, "dog": 0.25}
    assert first["notes"] == ["resized from 9x9 to 8x8"]
    assert (second["image"], second["top"], second["problem"]) == ("b.png", [], BAD)
    assert result.err == f"accel-tui: {BAD}\n"


def test_a_folder_is_all_images_in_it(run_command, said):
    asked = said(classified("a.png", "b.png"))
    Path("folder.gif").mkdir()
    Path("notes.txt").touch()
    assert run_command("predict last .").status == 0
    assert asked == [["a.png", "b.png"]]


def test_what_is_asked_wrongly_has_the_status_2_and_no_model_is_asked(run_command, said):
    asked = said()
    for image in ("a.png", "b.png"):
        Path(image).rename(f"{image}.txt")
    for words, told in (
        ("predict last c.png", "no such file: c.png"),
        ("predict last a.png.txt --top 0", "--top"),
        ("predict last", "image"),
        ("predict last .", "the folder . contains no images (.png, .jpg, .jpeg, .jfif, "),
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

    monkeypatch.setattr("accel_tui.cli.predict.ask", refuse)
    result = run_command("predict last a.png")
    assert (result.status, result.out) == (1, "")
    assert result.err == "accel-tui: run abcd has no checkpoint yet\n"
