"""The runner of the benchmarks for GPUs, with small parts in place of its own."""

import json
import subprocess
import sys
import tomllib
from contextlib import suppress
from pathlib import Path
from typing import Any

import psutil
import pytest

HERE = Path(__file__).parent.parent / "benchmarks" / "gpu"

RUN = """
import sys
sys.path.insert(0, {here!r})
import run
from parts import Part

def part(name, code, **more):
    return Part(name, f"what is {{name}}?", (sys.executable, "-c", code), **more)

run._gpus = lambda: ((), "")
run.tomllib.loads = lambda _: {{"P1": {{"ratio": [1.2, 1.5]}}, "P2": {{"text": "faster | by far"}}}}
sys.exit(run.main((
    part("P1", "print('noise'); print('{{\\"ratio\\": 1.3, \\"text\\": \\"1.3 times\\"}}')", gpus=0),
    part("P2", "import sys; print('no kernel'); sys.exit(3)", gpus=0),
    part("P3", {engine!r} + "print('begins', flush=True); time.sleep(600)", gpus=0, limit=1),
    part("P4", "print('{{\\"missing\\": \\"Loop.blocks\\"}}')", gpus=0),
    part("P5", "raise SystemExit('not on a CPU')"),
    part("P6", "raise SystemExit('not without JAX')", gpus=0, needs_jax=True),
    part("P7", "print('| work | ours | jax |'); print('|---|---|---|'); print('| mlp | 5 | 9 |')", gpus=0),
    Part("P8", "a program that is not there", ("accel-no-such-program",), gpus=0),
)))
"""


ENGINE = """
import json, subprocess, sys, time
engine = subprocess.Popen([sys.executable, '-c', 'import time; time.sleep(600)'], start_new_session=True)
print(json.dumps({'engine': engine.pid}), flush=True)
"""


SCRIPT = RUN.format(here=str(HERE), engine=ENGINE)


def run(results: Path, *words: str) -> "subprocess.CompletedProcess[str]":
    command = [
        sys.executable,
        "-c",
        SCRIPT,
        "--on",
        "cpu",
        "--results",
        str(results),
        *words,
    ]
    return subprocess.run(command, capture_output=True, text=True, timeout=120, check=False)


def rows(results: Path) -> dict[str, list[str]]:
    (table,) = results.glob("*/results.md")
    lines = [line.strip("| ").split("|") for line in table.read_text().splitlines() if line.startswith("| P")]
    return {name.strip(): [cell.strip() for cell in cells] for name, *cells in lines}


def result(results: Path, name: str) -> dict[str, Any]:
    (path,) = results.glob(f"*/{name}.json")
    found: dict[str, Any] = json.loads(path.read_text())
    return found


def test_parts_run_once_and_their_results_become_a_table(tmp_path: Path) -> None:
    first = run(tmp_path, "--part", "P1", "--part", "P5")
    assert first.returncode == 0, first.stderr
    assert "P5: needs a GPU" in first.stdout
    before = result(tmp_path, "P1")
    assert (before["status"], before["values"][0]["ratio"]) == ("done", 1.3)
    assert {"Python", "keras"} <= before["machine"]["versions"].keys()
    assert rows(tmp_path)["P2"][2] == "not run yet"

    second = run(tmp_path)  # goes on where the first one ended
    assert second.returncode == 1
    assert "P1: done\n" in second.stdout
    assert result(tmp_path, "P1") == before
    table = rows(tmp_path)
    assert table["P1"][:4] == ["what is P1?", "1.2 to 1.5 times", "1.3 times", ""]  # a CPU says nothing of a GPU
    assert before["date"] in table["P1"][4]
    assert table["P2"][1:3] == ["faster / by far", "**failed**, see P2.txt: no kernel"]
    assert table["P3"][2].startswith("**timed out**, see P3.txt")
    with suppress(psutil.NoSuchProcess):
        assert psutil.Process(result(tmp_path, "P3")["values"][0]["engine"]).status() == psutil.STATUS_ZOMBIE
    assert table["P4"][2] == "**not in this version**, see P4.txt: there is no Loop.blocks"
    assert table["P5"][2] == "needs a GPU"
    assert table["P6"][2] == "needs --jax"
    assert table["P7"][2] == "ours 5, jax 9"
    assert table["P8"][2].startswith("**failed**")
    (output,) = tmp_path.glob("*/P2.txt")
    assert output.read_text() == "no kernel\n"

    again = run(tmp_path, "--part", "P2", "--again")
    assert "P2: failed after" in again.stdout


def test_what_the_end_of_the_time_interrupts_runs_again(tmp_path: Path) -> None:
    limits = "run.LEAST_SECONDS, run.MOST_SECONDS = 0, 0"
    code = SCRIPT.replace("sys.exit(run.main", f"{limits}\nsys.exit(run.main").replace("limit=1", "limit=600")
    words = ["--on", "cpu", "--results", str(tmp_path), "--minutes", "0.02", "--part", "P3"]
    found = subprocess.run(
        [sys.executable, "-c", code, *words], capture_output=True, text=True, timeout=60, check=False
    )
    assert (found.returncode, "P3: no time left, run the command again" in found.stdout) == (0, True), found.stderr
    assert rows(tmp_path)["P3"][2] == "not run yet"


@pytest.mark.parametrize(
    ("words", "problem"),
    [
        (("--on", "gpu"), "this machine has no NVIDIA GPU: --on cpu runs what works without one"),
        (("--minutes", "3"), "--minutes: at least 10, the limit of a part"),
        (("--jax", "/no/python"), "--jax: there is no /no/python"),
        (("--part", "P99"), "invalid choice: 'P99'"),
    ],
)
def test_wrong_use_is_told(tmp_path: Path, words: tuple[str, ...], problem: str) -> None:
    found = run(tmp_path, *words)
    assert (found.returncode, problem in found.stderr) == (2, True), found.stderr


def test_the_plan_has_a_prediction_for_what_it_compares_and_a_script_for_each_part() -> None:
    code = (
        f"import sys, tomllib; sys.path.insert(0, {str(HERE)!r}); from pathlib import Path; import parts, json\n"
        "print(json.dumps([[each.name, each.words, each.limit] for each in parts.PARTS]))"
    )
    listed = json.loads(subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True).stdout)
    names = [name for name, _, _ in listed]
    assert len(set(names)) == len(names)
    assert all(limit <= 600 for _, _, limit in listed)
    assert all((HERE / words[0]).is_file() for _, words, _ in listed if words[0].endswith(".py"))
    predicted = tomllib.loads((HERE / "predictions.toml").read_text())
    assert predicted.keys() <= set(names)
    shown = subprocess.run([sys.executable, HERE / "run.py", "--list"], capture_output=True, text=True, check=True)
    assert [line.split()[0] for line in shown.stdout.splitlines()] == names
