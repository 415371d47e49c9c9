"""Predicting rows from a pipe, with the program; ``test_train_command.py`` predicts images."""

import json
import subprocess
from pathlib import Path

import pytest


@pytest.mark.campaign  # trained/prediction predicts such rows, and cli/test_predict_examples.py reads them
def test_rows_are_piped_into_the_model_of_a_table_that_is_gone(program: Path, tmp_path: Path) -> None:
    source = tmp_path / "wine.csv"
    rows = [f"{row % 9},{row % 2},{('red', 'white')[row % 2]}" for row in range(80)]
    source.write_text("\n".join(["acid,sugar,kind", *rows]))
    options = ("--data", str(source), "--epochs", "10", "--learning-rate", "0.05", "--validation", "off")
    trained = subprocess.run([program, "train", *options], capture_output=True, text=True, timeout=240, check=False)
    assert trained.returncode == 0, trained.stderr
    source.unlink()
    told = subprocess.run(
        [program, "predict", "last", "-", "--json"],
        input="sugar,note,acid\n1,x,4\n0,y,4\n",
        capture_output=True,
        text=True,
        timeout=240,
        check=False,
    )
    assert (told.returncode, told.stderr) == (0, "")
    lines = [json.loads(line) for line in told.stdout.splitlines()]
    assert [(line["example"], line["label"]) for line in lines] == [("1", "white"), ("2", "red")]
