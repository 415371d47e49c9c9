"""Measuring the model of a file with the program, in a separate engine process."""

import json
import subprocess
from pathlib import Path

import keras


def test_a_file_is_measured_by_batch_size_and_a_bad_one_is_an_error(program: Path, tmp_path: Path) -> None:
    keras.Sequential([keras.Input((3,)), keras.layers.Dense(2)]).save(tmp_path / "m.keras")
    command = [program, "bench", tmp_path / "m.keras", "--devices", "cpu", "--seconds", "0.2", "--batch-sizes", "1,4"]

    def run(*words: str) -> "subprocess.CompletedProcess[str]":
        return subprocess.run([*command, *words], capture_output=True, text=True, timeout=240, check=False)

    done = run("--json", "--target-rate", "1")
    assert done.returncode == 0, done.stderr
    *candidates, last = map(json.loads, done.stdout.splitlines())
    assert [(each["batch_size"], each["xla"]) for each in candidates] == [(1, False), (4, False), (1, True), (4, True)]
    for each in candidates:
        assert 0 < each["p50"] <= each["p90"] <= each["p99"] <= each["p999"]
        assert each["throughput"] > 0
        assert each["load_seconds"] > 0
    assert last["machines"] == 1
    assert last["best"] in candidates

    wrong = run("--data", str(tmp_path / "none.csv"))
    assert wrong.returncode != 0
    assert "none.csv" in wrong.stderr
    assert not wrong.stdout
