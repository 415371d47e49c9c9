"""Stand-ins for the programs of Slurm and Kubernetes, which say what the real ones say."""

import json
import os
import sys
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

from accel_engine.process import engine_process

SLURM = '''#!@PYTHON@ -S
"""Slurm 22.05, as far as it is asked: partitions and jobs are in a file."""
import json, re, sys
from pathlib import Path

state = Path(__file__).parent / "state.json"
known = json.loads(state.read_text())
name, arguments = Path(sys.argv[0]).name, sys.argv[1:]
known.setdefault("asked", []).append([name, *arguments])
options = dict(each.removeprefix("--").partition("=")[::2] for each in arguments if each.startswith("--"))


def fail(text):
    state.write_text(json.dumps(known))
    print(text, file=sys.stderr)
    sys.exit(1)


def value(option):
    return options.get(option) or (arguments[arguments.index("--" + option) + 1] if "--" + option in arguments else "")


if name == "sinfo":
    for row in known["nodes"]:
        text = value("format")
        for letter, field in zip("RPGacmD", ("name", "marked", "gres", "up", "cores", "memory", "count")):
            text = text.replace("%" + letter, str(row[field]))
        print(text)
elif name == "sbatch":
    if known.get("refuses"):
        fail(f"sbatch: error: Batch job submission failed: {known['refuses']}")
    known["script"] = Path(arguments[-1]).read_text()
    array = re.search(r"--array=0-(\\d+)", known["script"])
    for name in [f"7_{task}" for task in range(int(array[1]) + 1)] if array else ["7"]:
        known["jobs"][name] = {"T": "PENDING", "r": "Priority", "P": "gpu", "N": "", "i": name}
    print("7;cluster")
elif name == "squeue":
    jobs = known["jobs"]
    if job := value("jobs"):
        jobs = {name: each for name, each in jobs.items() if name.partition("_")[0] == job}
        if not jobs:
            fail("slurm_load_jobs error: Invalid job id specified")
        jobs = {name: each for name, each in jobs.items() if each["T"] in ("PENDING", "RUNNING", "COMPLETING")}
    for each in sorted(jobs.values(), key=lambda each: each.get("before", 9)):
        if value("states") and each["T"] != value("states"):
            continue
        text = value("format")
        for letter in "TrPNi":
            text = text.replace("%" + letter, each[letter])
        print(text)
elif name == "scancel":
    known["jobs"][arguments[0]]["T"] = "CANCELLED"
elif name == "scontrol":
    job = known["jobs"].get(arguments[-1])
    if job and "_" in arguments[-1] and job["T"] == "CANCELLED" and not job["N"]:  # it has not begun
        fail(f"Job {arguments[-1]} not found")
    if job is None:
        fail("slurm_load_jobs error: Invalid job id specified")
    print(f"JobId={arguments[-1]} JobState={job['T']} Reason={job['r']} ExitCode={job.get('exit', '0')}:0")
state.write_text(json.dumps(known))
'''

KUBECTL = '''#!@PYTHON@ -S
"""kubectl, as far as it is asked."""
import json, sys
from pathlib import Path

state = Path(__file__).parent / "state.json"
known = json.loads(state.read_text())
arguments = sys.argv[1:]
known.setdefault("asked", []).append(arguments)
if "apply" in arguments:
    text = sys.stdin.read()
    if "kind: JobSet" in text and known.get("jobset"):
        print("jobset.jobset.x-k8s.io/x unchanged")
    else:
        known.setdefault("applied", []).append(text)
elif "delete" in arguments:
    known.pop("jobset", None)
elif "get" in arguments:
    found = known.get(arguments[arguments.index("get") + 1])
    if found is None:
        state.write_text(json.dumps(known))
        print('Error from server (NotFound): jobsets.jobset.x-k8s.io "x" not found', file=sys.stderr)
        sys.exit(1)
    print(json.dumps(found))
state.write_text(json.dumps(known))
'''


@dataclass(frozen=True, slots=True)
class Programs:
    """The programs of a cluster, which share a file."""

    folder: Path

    @property
    def known(self) -> dict[str, Any]:
        """What they know, and what they were asked."""
        found: dict[str, Any] = json.loads((self.folder / "state.json").read_text())
        return found

    def set(self, **known: object) -> None:
        """Change what they know."""
        (self.folder / "state.json").write_text(json.dumps(self.known | known))

    def set_job(self, number: str, **fields: str) -> None:
        """Change a job of Slurm."""
        jobs = self.known["jobs"]
        self.set(jobs={**jobs, number: {**jobs.get(number, {}), **fields}})


@pytest.fixture
def install(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Callable[..., Programs]:
    """Put programs before those of the machine."""

    def put(text: str, *names: str, **known: object) -> Programs:
        folder = tmp_path / "bin"
        folder.mkdir()
        for name in names:
            (folder / name).write_text(text.replace("@PYTHON@", sys.executable))
            (folder / name).chmod(0o755)
        (folder / "state.json").write_text(json.dumps(known))
        monkeypatch.setenv("PATH", f"{folder}{os.pathsep}{os.environ['PATH']}")
        return Programs(folder)

    return put


@pytest.fixture
def slurm(install: Callable[..., Programs]) -> Programs:
    """A cluster with a partition without GPUs, its default one, and one with."""
    nodes = [
        {"name": "cpu", "marked": "cpu*", "gres": "(null)", "up": "up", "cores": "64+", "memory": "1", "count": 9},
        {
            "name": "gpu",
            "marked": "gpu",
            "gres": "gpu:a100:4(S:0-1),shard:8",
            "up": "up",
            "cores": 32,
            "memory": 256000,
            "count": 3,
        },
        {"name": "gpu", "marked": "gpu", "gres": "gpu:a100:2", "up": "up", "cores": 32, "memory": 128000, "count": 1},
        {"name": "old", "marked": "old", "gres": "gpu:1", "up": "drain", "cores": 4, "memory": 1000, "count": 1},
    ]
    return install(SLURM, "sinfo", "sbatch", "squeue", "scancel", "scontrol", nodes=nodes, jobs={})


@pytest.fixture
def kubectl(install: Callable[..., Programs]) -> Programs:
    """A Kubernetes cluster."""
    return install(KUBECTL, "kubectl")


@pytest.fixture(autouse=True)
def _installation(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(engine_process, "find_installation", lambda: engine_process.Installation("tensorflow", "2"))
