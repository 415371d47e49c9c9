import csv
import json
from pathlib import Path

import pytest
from pyarrow import parquet

from tensorboard_loader import scalars

pytestmark = pytest.mark.usefixtures("here")


@pytest.fixture
def run(new_run) -> str:
    engine = new_run()
    engine.train()
    return engine.directory.name


def test_csv_is_named_after_the_run_and_has_every_step(run_command, run):
    result = run_command("export last --to csv")
    assert (result.status, result.out, result.err) == (0, f"{run}.csv\n", "")
    with open(f"{run}.csv") as file:
        rows = list(csv.DictReader(file))
    assert [(row["step"], row["epoch"], row["loss"]) for row in rows] == [
        (str(step), str(step // 4 + 1), "0.25") for step in range(8)
    ]


def test_a_table_to_standard_output_leaves_no_file(run_command, run, here):
    result = run_command("export last --to csv --table validation -o -")
    assert [line.split(",")[0] for line in result.lines] == ["step", "4", "8"]
    assert len(json.loads(run_command("export last --to json -o -").out)["steps"]["loss"]) == 8
    assert list(here.iterdir()) == []


@pytest.mark.parametrize("form", ["csv", "json", "parquet", "tensorboard"])
def test_what_is_there_is_overwritten_only_with_force(run_command, run, form, here):
    assert run_command(f"export last --to {form} -o out").status == 0
    refused = run_command(f"export last --to {form} -o out")
    assert refused.status == 2
    assert "out already exists" in refused.err
    assert "--force" in refused.err
    assert run_command(f"export last --to {form} -o out --force").status == 0
    assert [path.name for path in here.iterdir()] == ["out"]


def test_a_directory_is_no_file_and_a_file_no_directory(run_command, run, here):
    (here / "directory").mkdir()
    (here / "file").touch()
    assert "directory is a directory" in run_command("export last --to csv -o directory --force").err
    assert "file is a file" in run_command("export last --to tensorboard -o file --force").err


def test_parquet(run_command, run):
    assert run_command("export last --to parquet --table events").out == f"{run}-events.parquet\n"
    assert parquet.read_table(f"{run}-events.parquet")["event"][0].as_py() == "run_started"


def test_tensorboard(run_command, run):
    assert run_command("export last --to tensorboard").out == f"{run}-tensorboard\n"
    assert scalars(Path(f"{run}-tensorboard/train"))["loss"] == [(step, 0.25) for step in range(8)]
    assert scalars(Path(f"{run}-tensorboard/validation"))["loss"] == [(4, 0.5), (8, 0.5)]


@pytest.mark.parametrize(
    ("words", "said"),
    [
        ("last --to json --table events", "--table is for csv and parquet"),
        ("last --to parquet -o -", "cannot be written to standard output"),
        ("last --to csv -o missing/out.csv", "cannot write missing/out.csv: No such file"),
        ("last --to tensorboard -o /dev/null/out", "cannot write /dev/null/out"),
        ("nothing --to csv", "no run 'nothing'"),
        ("last --to onnx --to tflite", "'--to': takes one format: export to each, or to all"),
        ("last", "--to"),
    ],
)
def test_mistakes_are_told(run_command, run, words, said):
    result = run_command(f"export {words}")
    assert result.status in (1, 2)
    assert said in result.err
    assert "Traceback" not in result.err


def test_without_a_form_it_is_said_in_a_line_which_there_are(run_command, run):
    result = run_command("export last")
    assert result.status == 2
    assert result.err.splitlines()[0] == (
        "accel-tui: missing option '--to'. Choose from: csv, json, parquet, tensorboard, keras, savedmodel, onnx, "
        "tflite, all"
    )
