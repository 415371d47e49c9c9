"""``accel-tui predict`` of rows, texts, windows and masks, with a stand-in for the model."""

import csv
import errno
import io
import json
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from accel_engine.data.data_options import ColumnFormat
from accel_engine.data.pixel_scaling import ValueRange
from accel_engine.image_files import read_pixels
from accel_engine.inference.output_prediction import OutputPrediction
from accel_engine.requests.predict import ExamplePredictions
from accel_engine.requests.protocol.request import ComputeDevice, unheard
from accel_engine.requests.write_text import WrittenPart, WrittenText
from accel_engine.run.diagnostics import DataFormat
from accel_engine.run.diagnostics.data_items import TableFormat
from accel_tui.predictions.files import image_names

SPEC = {"shape": [2], "dtype": "float32"}
NUMBERS = TableFormat(
    (ColumnFormat("area", "number"), ColumnFormat("city", "category")), (), (), (), (), (), (), {}, {}, {}
)
TABLE = DataFormat("classification", "classification", "table", SPEC, None, ValueRange(), table=NUMBERS)

CLASSES = OutputPrediction("", "classification", ("cat", "dog"), (), np.array([[0.75, 0.25], [0.1, 0.9]], np.float32))


def told(*outputs: OutputPrediction, kind: str = "table", problems: dict[int, str] | None = None, **changes):
    count = len(outputs[0].values) + len(problems or {})
    names = changes.pop("names", tuple(("rows.csv", str(row + 1)) for row in range(count)))
    return ExamplePredictions("abcd-run", 22, kind, names, problems or {}, outputs, **changes)


@pytest.fixture
def asked(monkeypatch, tmp_path, new_run):
    """Makes a run with data of a form, whose model predicts what a test says; what it was asked is kept."""
    monkeypatch.chdir(tmp_path)
    Path("rows.csv").write_text("area,city,more\n1,Bonn,x\n2,Ulm,y\n")
    requests = []

    def answer(form, predictions):
        run = new_run()
        run.writer.write_diagnostics(form, 0)
        run.close()

        def ask(request):
            tables = [path.read_text() for path in request.files if path.suffix == ".csv"]
            requests.append((tables, request.texts, request.checkpoint))
            return predictions

        monkeypatch.setattr("accel_tui.cli.predict.ask", ask)
        return requests

    return answer


def test_rows_have_a_line_each_with_their_class(run_command, asked):
    requests = asked(TABLE, told(CLASSES))
    result = run_command("predict last rows.csv")
    assert (result.status, result.err) == (0, "")
    assert [line.split() for line in result.lines] == [
        ["ROW", "LABEL", "PROBABILITY", "OTHERS"],
        ["1", "cat", "75.0%", "dog", "25.0%"],
        ["2", "dog", "90.0%", "cat", "10.0%"],
    ]
    assert requests[0][1:] == ((), "auto")


def test_the_gpu_that_computed_is_told_and_one_that_is_not_there_is_refused(run_command, asked):
    gpu = ComputeDevice("gpu:1", "NVIDIA H200")
    requests = asked(TABLE, replace(told(CLASSES), device=gpu))
    assert run_command("predict last rows.csv").err == "accel-tui: computed on gpu:1 (NVIDIA H200)\n"
    assert json.loads(run_command("predict last rows.csv --json").lines[0])["device"] == "gpu:1"
    requests.clear()
    for words in ("predict last rows.csv --device gpu:7", "predict last --device tpu:0 rows.csv"):
        result = run_command(words)
        reasons = ("no device gpu:7: this machine has cpu", "'tpu:0' must be auto, cpu or such as gpu:0")
        assert (result.status, any(reason in result.err for reason in reasons)) == (2, True), result.err
    assert requests == []


def test_rows_of_standard_input_are_read_as_a_table(run_command, asked, monkeypatch):
    requests = asked(TABLE, told(CLASSES))
    monkeypatch.setattr("sys.stdin", io.TextIOWrapper(io.BytesIO(b"area,city\n3,Ulm\n")))
    assert run_command("predict last -").status == 0
    assert requests[0][0] == ["area,city\n3,Ulm\n"]
    monkeypatch.setattr("sys.stdin", io.TextIOWrapper(io.BytesIO(b" ")))
    assert run_command("predict last -").err == "accel-tui: standard input is empty\n"


def test_json_has_an_object_for_each_row_and_a_bad_one_makes_the_status_1(run_command, asked):
    asked(TABLE, told(CLASSES, problems={1: "row 2 is bad"}))
    result = run_command("predict last rows.csv --json --top 1")
    assert (result.status, result.err) == (1, "accel-tui: row 2 is bad\n")
    first, second, third = map(json.loads, result.lines)
    assert first == {
        "run": "abcd-run",
        "step": 22,
        "device": "cpu",
        "file": "rows.csv",
        "example": "1",
        "problem": "",
        "label": "cat",
        "probability": 0.75,
        "probabilities": {"cat": 0.75, "dog": 0.25},
    }
    assert (second["device"], second["example"], second["problem"]) == ("cpu", "2", "row 2 is bad")
    assert (third["example"], third["label"]) == ("3", "dog")


def test_predictions_are_written_to_files(run_command, asked):
    asked(TABLE, told(CLASSES))
    assert run_command("predict last rows.csv -o out.csv").lines == ["out.csv"]
    with open("out.csv", newline="") as file:
        rows = list(csv.DictReader(file))
    assert list(rows[0]) == ["file", "example", "label", "probability cat", "probability dog"]
    assert (rows[1]["label"], float(rows[0]["probability dog"])) == ("dog", 0.25)
    assert run_command("predict last rows.csv -o out.jsonl").status == 0
    assert [json.loads(line)["label"] for line in Path("out.jsonl").read_text().splitlines()] == ["cat", "dog"]
    assert run_command("predict last rows.csv -o out.npz").status == 0
    with np.load("out.npz") as arrays:
        assert arrays["class_names"].tolist() == ["cat", "dog"]
        np.testing.assert_array_equal(arrays["probabilities"], CLASSES.values)
    again = run_command("predict last rows.csv -o out.csv")
    assert (again.status, again.err) == (2, "accel-tui: out.csv already exists: add --force to overwrite it\n")
    assert run_command("predict last rows.csv -o out.csv --force").status == 0


def test_numbers_have_the_names_of_their_columns(run_command, asked):
    prices = OutputPrediction("", "regression", (), ("price", "tax"), np.array([[100.5, 7.0], [200.25, 9.0]]))
    asked(TABLE, told(prices))
    lines = [line.split() for line in run_command("predict last rows.csv").lines]
    assert lines == [["ROW", "price", "tax"], ["1", "100.5", "7.0000"], ["2", "200.2", "9.0000"]]
    values = json.loads(run_command("predict last rows.csv --json").lines[1])["values"]
    assert values == {"price": 200.25, "tax": 9.0}


def test_a_forecast_has_a_row_for_each_step(run_command, asked):
    forecast = OutputPrediction("", "regression", (), ("level",), np.array([[1.0, 2.0], [3.0, 4.0]]))
    form = DataFormat("regression", "regression", "series", SPEC, None, ValueRange())
    names = (("rows.csv", "North"), ("rows.csv", "South"))
    asked(form, told(forecast, kind="series", names=names))
    lines = [line.split() for line in run_command("predict last rows.csv").lines]
    assert lines[1:3] == [["North", "1", "1.0000"], ["2", "2.0000"]]
    assert run_command("predict last rows.csv -o out.csv").status == 0
    assert Path("out.csv").read_text().splitlines()[4] == "rows.csv,South,2,4.0"
    assert json.loads(run_command("predict last rows.csv --json").lines[0])["forecast"] == [{"level": 1}, {"level": 2}]


def test_labels_tokens_and_several_outputs_are_shown(run_command, asked):
    labels = OutputPrediction("tags", "multi-label", ("new", "old"), (), np.array([[0.75, 0.5], [0.2, 0.1]]))
    tokens = OutputPrediction(
        "words", "sequence", ("noun", "verb"), (), np.array([[0, 1], [1, 1]]), np.full((2, 2), 0.5, np.float32)
    )
    asked(TABLE, told(labels, tokens))
    result = run_command("predict last rows.csv")
    assert [" ".join(line.split()) for line in result.lines] == [
        "tags",
        "ROW LABELS",
        "1 new 75.0%, old 50.0%",
        "2 none",
        "",
        "words",
        "ROW LABELS",
        "1 noun verb",
        "2 verb verb",
    ]
    first = json.loads(run_command("predict last rows.csv --json").lines[0])["outputs"]
    assert (first["tags"]["labels"], first["words"]["labels"]) == (["new", "old"], ["noun", "verb"])
    assert run_command("predict last rows.csv -o out.csv").status == 0
    assert Path("out.csv").read_text().splitlines()[0] == (
        "file,example,tags labels,tags probability new,tags probability old,words labels"
    )


def test_masks_and_images_are_written_as_png(run_command, asked, monkeypatch):
    mask = OutputPrediction(
        "", "segmentation", ("sky", "road", "car"), (), np.array([[[0, 1], [2, 2]]]), np.ones((1, 2, 2), np.float32)
    )
    form = DataFormat("segmentation", "segmentation", "images", SPEC, None, ValueRange())
    Path("a.png").touch()
    asked(form, told(mask, kind="images", names=(("a.png", "a.png"),)))
    assert run_command("predict last a.png").lines[1].split(maxsplit=1)[1] == "car 50.0%, sky 25.0%, road 25.0%"
    assert run_command("predict last a.png -o masks").status == 0
    pixels = read_pixels(Path("masks/a.png"))[0]
    assert pixels[0, 0].tolist() == [0, 0, 0]
    assert (pixels[1, 0] == pixels[1, 1]).all()
    assert (pixels[1, 0] != pixels[0, 1]).any()
    image = OutputPrediction("", "reconstruction", (), (), np.array([[[[0.0], [0.5]], [[1.0], [9.0]]]]))
    found = told(image, kind="images", names=(("a.png", "a.png"),), limits=(0.0, 1.0))
    monkeypatch.setattr("accel_tui.cli.predict.ask", lambda *_: found)
    assert run_command("predict last a.png -o masks --force").status == 0
    assert read_pixels(Path("masks/a.png"))[0].ravel().tolist() == [0, 128, 255, 255]
    assert [path.name for path in Path().iterdir() if path.name.startswith(".")] == []


def test_what_is_wrong_is_said_before_the_model_is_asked(run_command, asked):
    requests = asked(TABLE, told(CLASSES))
    Path("photo.png").touch()
    Path("bad.csv").write_text("area,more\n1,x\n")
    for words, status, message in (
        ("predict last", 2, "nothing to predict"),
        ("predict last rows.csv photo.png", 2, "photo.png has no examples for run"),
        ("predict last bad.csv", 2, "bad.csv has no column city, which run"),
        ("predict last rows.csv -o out.xml", 2, "out.xml must end with .csv, .jsonl, .npz"),
        ("predict last rows.csv -o no/out.csv", 2, "no such directory: no"),
        ("predict last --text hello", 2, "does not take texts: its data is table"),
        ("predict last rows.csv --prompt hello", 2, "--prompt takes no other input"),
        ("predict missing.keras rows.csv", 2, "no such file: missing.keras"),
        ("predict last rows.csv --checkpoint first", 2, "neither auto, best, last nor a step"),
    ):
        result = run_command(words)
        assert (result.status, message in result.err) == (status, True), (words, result.err)
    assert requests == []
    assert run_command("predict last rows.csv -o pictures").status == 2  # there are none


def test_a_text_is_shown_as_it_is_written_without_control_characters(run_command, asked, monkeypatch):
    asked(TABLE, told(CLASSES))
    given = []

    def write(request, on_part=unheard):
        given.append(request.options)
        for text in (" up", "\x1b[2J", "on"):
            on_part(WrittenPart(text))
        return WrittenText("abcd-run", 7, " up\x1b[2Jon", 3, ("a note",))

    monkeypatch.setattr("accel_tui.cli.predict.ask", write)
    result = run_command("predict last --prompt Once --tokens 3 --temperature 0.5 --seed 4 --checkpoint best")
    assert (result.status, result.out, result.err) == (0, "Once up\\x1b[2Jon\n", "accel-tui: a note\n")
    options = given[0]
    assert (options.prompt, options.tokens, options.temperature, options.seed) == ("Once", 3, 0.5, 4)
    assert options.checkpoint == "best"
    line = json.loads(run_command("predict last --prompt Once --json").lines[0])
    assert line == {
        "run": "abcd-run",
        "step": 7,
        "prompt": "Once",
        "text": " up\x1b[2Jon",
        "tokens": 3,
        "device": "cpu",
    }


@pytest.mark.parametrize("name", ["../../outside", "/outside", "a\\..\\b", "x" * 300, "é" * 300, ".."])
def test_an_image_has_a_name_in_its_folder_whatever_its_example_is_called(tmp_path, name):
    first, second = image_names([("lines.txt", name), ("", name)])
    assert first.startswith("lines-")
    for each in (first, second):
        assert Path(each).name == each
        (tmp_path / each).touch()


def test_images_of_equal_names_are_all_written(run_command, asked):
    names = ("x/a.png", "y/a.png", "z/a-2.png", "z/A.png")
    assert image_names([(name, name) for name in names]) == ["a.png", "a-2.png", "a-2-2.png", "A-3.png"]
    form = DataFormat("reconstruction", "reconstruction", "images", SPEC, None, ValueRange())
    shades = np.array([0.0, 0.2, 0.4, 0.6]).reshape(4, 1, 1, 1)
    found = OutputPrediction("", "reconstruction", (), (), shades)
    asked(form, told(found, kind="images", names=tuple((name, name) for name in names), limits=(0.0, 1.0)))
    Path("a.png").touch()
    Path(".out.partial").mkdir()
    assert run_command("predict last a.png -o out").status == 0
    written = {path.name: read_pixels(path)[0].item() for path in Path("out").iterdir()}
    assert written == {"a.png": 0, "a-2.png": 51, "a-2-2.png": 102, "A-3.png": 153}
    assert Path(".out.partial").is_dir()


def test_standard_input_that_is_closed_or_cannot_be_saved_is_an_error(run_command, asked, monkeypatch):
    requests = asked(TABLE, told(CLASSES))
    monkeypatch.setattr("sys.stdin", None)
    result = run_command("predict last -")
    assert (result.status, result.err) == (
        2,
        "accel-tui: standard input is closed: pipe the examples into the command\n",
    )

    def fill(*_):
        raise OSError(errno.ENOSPC, "No space left on device")

    monkeypatch.setattr("sys.stdin", io.TextIOWrapper(io.BytesIO(b"area,city\n3,Ulm\n")))
    monkeypatch.setattr("shutil.copyfileobj", fill)
    result = run_command("predict last -")
    assert (result.status, result.err) == (
        1,
        "accel-tui: cannot save standard input in a temporary file: No space left on device\n",
    )
    assert requests == []


def test_json_of_images_has_the_same_fields_with_every_checkpoint(run_command, asked):
    chances = np.array([[0.1, 0.9]], np.float32)
    images = OutputPrediction("", "classification", ("cat", "dog"), (), chances)
    form = DataFormat("classification", "classification", "images", SPEC, None, ValueRange(), ("cat", "dog"))
    for name in ("a.png", "b.png"):
        Path(name).touch()
    names = (("a.png", "a.png"), ("b.png", "b.png"))
    found = told(images, kind="images", names=names, problems={1: "bad b.png"}, notes=("a.png: resized", "a note"))
    requests = asked(form, found)
    for words in ("", "--checkpoint last", "-o out.jsonl"):
        result = run_command(f"predict last a.png b.png --json --top 1 {words}")
        assert (result.status, result.err) == (1, "accel-tui: a note\naccel-tui: bad b.png\n")
        first, second = map(json.loads, result.lines)
        assert first == {
            "run": "abcd-run",
            "step": 22,
            "device": "cpu",
            "example": "a.png",
            "problem": "",
            "label": "dog",
            "probability": pytest.approx(0.9),
            "probabilities": {"dog": pytest.approx(0.9), "cat": pytest.approx(0.1)},
            "image": "a.png",
            "top": [{"label": "dog", "probability": pytest.approx(0.9)}],
            "notes": ["resized"],
        }
        assert (second["problem"], second["image"], second["top"], second["notes"]) == ("bad b.png", "b.png", [], [])
    assert [checkpoint for *_, checkpoint in requests] == ["auto", "last", "auto"]


def test_json_has_null_for_what_is_not_finite(run_command, asked):
    chances = np.array([[np.nan, np.nan], [0.1, 0.9]], np.float32)
    for task, key in (("classification", "label"), ("multi-label", "labels")):
        asked(TABLE, told(OutputPrediction("", task, ("cat", "dog"), (), chances)))
        result = run_command("predict last rows.csv --json")
        assert "NaN" not in result.out
        first = json.loads(result.lines[0])
        assert first["probabilities"] == {"cat": None, "dog": None}
        assert not first[key]


def test_a_forecast_whose_numbers_its_columns_do_not_divide_has_one_column(run_command, asked):
    forecast = OutputPrediction("", "regression", (), ("low", "mid", "high"), np.array([[1.0, 2.0], [3.0, 4.0]]))
    form = DataFormat("regression", "regression", "series", SPEC, None, ValueRange())
    asked(form, told(forecast, kind="series", names=(("rows.csv", "North"), ("rows.csv", "South"))))
    assert run_command("predict last rows.csv").lines[0].split() == ["SERIES", "STEP", "value"]
    assert json.loads(run_command("predict last rows.csv --json").lines[0])["forecast"] == [{"value": 1}, {"value": 2}]
    assert run_command("predict last rows.csv -o out.csv").status == 0
    assert Path("out.csv").read_text().splitlines()[4] == "rows.csv,South,2,4.0"
