import json
import shlex

import pytest

from accel_engine.strategies.cluster_spec import ClusterSpec
from accel_tui.cli import cluster as command


def test_every_machine_gets_its_command(run_command):
    result = run_command("cluster --workers gpu1:12345,gpu2:12345 --model mlp --epochs 3")
    assert result.status == 0
    lines = [line for line in result.lines if line]
    assert lines[0] == "# worker 0, the chief, on gpu1"
    assert lines[2] == "# worker 1, on gpu2"
    for index, line in enumerate((lines[1], lines[3])):
        config, *words = shlex.split(line)
        name, _, value = config.partition("=")
        assert ClusterSpec.find({name: value}) == ClusterSpec(("gpu1:12345", "gpu2:12345"), index=index)
        assert words == ["accel-tui", "train", "--strategy", "multi-worker", "--model", "mlp", "--epochs", "3"]


def test_who_keeps_weights_and_who_hands_steps_out_get_theirs_too(run_command):
    result = run_command("cluster --workers b:1,c:1 --servers a:2 --coordinator a:1 --model mlp")
    assert result.status == 0
    lines = [line for line in result.lines if line]
    assert lines[::2] == ["# coordinator, on a", "# worker 0, on b", "# worker 1, on c", "# parameter server 0, on a"]
    found = [ClusterSpec.find({"TF_CONFIG": shlex.split(line)[0].removeprefix("TF_CONFIG=")}) for line in lines[1::2]]
    assert tuple(found) == ClusterSpec(("b:1", "c:1"), ("a:2",), coordinator="a:1").processes
    assert all("--strategy parameter-server --model mlp" in line for line in lines[1::2])


@pytest.mark.parametrize(("here", "role", "index"), [("coordinator", "chief", 0), ("0", "worker", 0), ("ps1", "ps", 1)])
def test_a_machine_of_a_coordinator_runs_its_part(
    run_command, monkeypatch: pytest.MonkeyPatch, here: str, role: str, index: int
):
    monkeypatch.setenv("TF_CONFIG", "")
    monkeypatch.setattr(command.train, "main", lambda *_, **__: 0)
    assert run_command(f"cluster --workers b:1 --servers c:1,c:2 --coordinator a:1 --here {here}").status == 0
    assert json.loads(command.os.environ["TF_CONFIG"])["task"] == {"type": role, "index": index}


def test_one_machine_runs_its_part(run_command, monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setenv("TF_CONFIG", "")
    called = []
    monkeypatch.setattr(command.train, "main", lambda words, **_: called.append(words) or 0)
    assert run_command("cluster --workers a:1,b:2 --here 1 --model mlp").status == 0
    assert called == [["--strategy", "multi-worker", "--model", "mlp"]]
    assert json.loads(command.os.environ["TF_CONFIG"])["task"] == {"type": "worker", "index": 1}


@pytest.mark.parametrize(
    ("words", "told"),
    [
        ("--workers a:1", "at least two"),
        ("--workers a,b", "'a' must be HOST:PORT"),
        ("--workers a..1:1,b:1", "'a..1:1' must be HOST:PORT"),
        ("--workers a:1,a:1", "duplicate address"),
        ("--workers a:1,b:1 --here 2", "one of 0, 1"),
        ("--workers a:1 --servers b:1", "require each other"),
        ("--workers a:1,b:1 --coordinator c:1", "require each other"),
        ("--workers a:1 --servers b:1 --coordinator c:1,c:2", "require each other"),
        ("--workers a:1 --servers b:1 --coordinator a:1", "duplicate address"),
        ("--workers a:1,b:1 --strategy parameter-server", "which use multi-worker"),
        ("--workers a:1,b:1 --modle cnn", "--modle"),
        ("--workers a:1,b:1 --epochs many", "integer"),
        ("--workers a:1,b:1 --local-workers 2", "excludes --workers"),
        ("", "--workers"),
    ],
)
def test_what_cannot_be_a_cluster_is_told(run_command, words: str, told: str):
    result = run_command(f"cluster {words}")
    assert result.status == 2
    assert told in result.err
