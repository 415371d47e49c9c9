"""Asking the model of a run what an image file shows, and what its validation images are, with the program."""

import json
import struct
import subprocess
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from accel_engine import data
from end_to_end.terminal import Terminal


def bmp(shades: np.ndarray[Any, Any]) -> bytes:
    """An uncompressed bitmap: three bytes a pixel, rows from the bottom, whose length here divides by four."""
    rows = np.repeat(shades[::-1, :, np.newaxis], 3, axis=2).tobytes()
    height, width = shades.shape
    header = struct.pack("<IiiHHIIiiII", 40, width, height, 1, 24, 0, len(rows), 0, 0, 0, 0)
    return b"BM" + struct.pack("<IHHI", 54 + len(rows), 0, 0, 54) + header + rows


def test_the_trained_model_is_where_the_last_line_says_and_is_asked(program: Path, tmp_path: Path) -> None:
    def run(*words: str) -> "subprocess.CompletedProcess[str]":
        return subprocess.run([program, *words], capture_output=True, text=True, timeout=240, check=False)

    trained = run("train", "--model", "mlp", "--data", "digits", "--epochs", "20", "--validation", "off")
    assert trained.returncode == 0, trained.stderr
    model = Path((trained.stdout + trained.stderr).rpartition("trained model: ")[2].strip())
    assert model.name == "model.keras"
    assert model.is_file()
    train = data.load("digits", data.DataOptions()).train
    for row in range(4):
        large = train.inputs[row][:, :, 0].repeat(4, axis=0).repeat(4, axis=1)
        (tmp_path / f"{row}.bmp").write_bytes(bmp(large))
    (tmp_path / "bad.bmp").write_text("no image")
    files = [str(tmp_path / f"{row}.bmp") for row in range(4)]

    told = run("predict", "last", *files, str(tmp_path / "bad.bmp"), "--top", "1", "--json")
    assert told.returncode == 1
    assert "not a valid PNG, JPEG, GIF, BMP, WebP, TIFF or PNM file" in told.stderr
    lines = [json.loads(line) for line in told.stdout.splitlines()]
    right = [line["top"][0]["label"] == str(label) for line, label in zip(lines[:4], train.targets[:4], strict=True)]
    assert sum(right) >= 3  # by chance, one in 270
    assert lines[0]["notes"] == ["converted to grayscale", "resized from 32x32 to 8x8"]
    assert lines[4]["top"] == []

    with Terminal([program, "watch", "last"], columns=100, rows=30) as terminal:
        terminal.wait_for("Finished")
        terminal.send("w")
        terminal.wait_for("No validation results were recorded")
        terminal.send("V")
        terminal.wait_for("in the background")
        terminal.wait_for("accuracy 0.", timeout=240)
        terminal.send("4")
        terminal.wait_for("highest loss first")
        terminal.send("q")
        assert terminal.wait_closed() == 0


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
