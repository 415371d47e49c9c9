"""The commands that can follow a training, each with a check that its result makes sense."""

import json
import math
import re
from collections.abc import Callable, Mapping, Sequence
from contextlib import closing
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

from accel_engine.errors import AccelError
from accel_engine.events import Event, ModelBuilt, Outcome, RunEnded, Validated
from accel_engine.formats import target_name
from accel_engine.model_export.export_options import FORMATS
from accel_engine.plan import Plan
from accel_engine.process.engine_call import ask
from accel_engine.requests.diagnose import DiagnosisRequest
from accel_engine.requests.evaluate import EvaluationOptions
from accel_engine.run import RunReader, diagnostics
from accel_tui.cli import main
from accel_tui.cli.root import COMMANDS as PROGRAM

from .materials import Material
from .one_process import EngineInThread
from .rows import Row


class RefusedError(Exception):
    """The program refused what was asked.

    Attributes:
        reason: What it said.
        engines: The engines that it had started before, by their request.
    """

    def __init__(self, reason: str, engines: Sequence[str]) -> None:
        super().__init__(reason)
        self.reason = reason
        self.engines = tuple(engines)


@dataclass
class Cell:
    """A row and what a command needs of it.

    Attributes:
        row: The row.
        material: Its data.
        plan: Its plan.
        plan_file: A file with the plan.
        folder: An empty folder.
        directory: The directory of the trained run, which is the cell's own; ``None`` before the training.
        other: The directory of another run, to compare with.
        capture: Reads what was written to standard output and error since the last call.
    """

    row: Row
    material: Material
    plan: Plan
    plan_file: Path
    folder: Path
    capture: pytest.CaptureFixture[str]
    directory: Path | None = None
    other: Path | None = None

    @property
    def run(self) -> str:
        """The id of the trained run."""
        assert self.directory is not None
        return self.directory.name

    @property
    def events(self) -> tuple[Event, ...]:
        """All that the run has recorded."""
        assert self.directory is not None
        with closing(RunReader(self.directory)) as reader:
            return reader.poll().events

    def all(self, kind: type[Event]) -> list[Any]:
        """The run's events of a kind."""
        return [event for event in self.events if isinstance(event, kind)]

    def ask(self, *words: object, may_find_nothing: bool = False) -> list[Any]:
        """Run a command of the program; returns the values of its lines of JSON.

        Args:
            words: Its command line.
            may_find_nothing: Whether a result with a ``problem`` is none.

        Raises:
            RefusedError: It was refused.
        """
        EngineInThread.asked.clear()
        EngineInThread.unexpected.clear()
        self.capture.readouterr()
        status = main([str(word) for word in words])
        written = self.capture.readouterr()
        check_no_accident(written.err)
        values = [json.loads(line) for line in written.out.splitlines() if line.startswith(("{", "["))]
        if status and not (may_find_nothing and values and "notes" in values[-1]):
            said = [line for line in written.err.splitlines() if line.startswith("accel-tui: ")]
            tail = said[-1].removeprefix("accel-tui: ") if said else f"status {status}: {written.out[-500:]}"
            raise RefusedError(tail, EngineInThread.asked)
        return values


def check_no_accident(errors: str) -> None:
    """Fail if something was raised that is no error for users."""
    assert not EngineInThread.unexpected, "\n".join(EngineInThread.unexpected)
    assert "This is a bug" not in errors, errors[-3000:]
    assert "Traceback" not in errors, errors[-6000:]


Command = Callable[[Cell], None]

OF_PLANS: dict[str, Command] = {}
"""What takes the plan of a row, by name; the training is the first of them."""

OF_RUNS: dict[str, Command] = {}
"""What takes the trained run of a row, by name."""


def _of_plans(command: Command) -> Command:
    OF_PLANS[command.__name__.strip("_").replace("_", "-")] = command
    return command


def _of_runs(command: Command) -> Command:
    OF_RUNS[command.__name__.strip("_").replace("_", "-")] = command
    return command


def _finite(values: Mapping[str, float | None]) -> None:
    assert values
    wrong = {name: value for name, value in values.items() if value is None or not math.isfinite(value)}
    assert not wrong, wrong


@_of_plans
def train(cell: Cell) -> None:
    """All epochs, and metrics that are numbers."""
    before = set(runs())
    cell.ask("train", cell.plan_file, "--json")
    (cell.directory,) = set(runs()) - before
    ended = cell.all(RunEnded)[-1]
    assert ended.outcome is Outcome.FINISHED, ended.reason
    assert ended.epochs == cell.plan.epochs
    _finite(ended.metrics)


def runs() -> list[Path]:
    """The directories of all runs."""
    from accel_engine.run import runs_directory

    found = runs_directory()
    return [path for path in found.iterdir() if not path.name.startswith(".")] if found.is_dir() else []


@_of_plans
def race(cell: Cell) -> None:
    """The plan itself is measured."""
    raced = cell.ask("race", cell.plan_file, "--vary", "xla", "--seconds", 0.1, "--json")[-1]
    (plan,) = (each for each in raced["configurations"] if each["configuration"] == "this plan")
    assert plan["examples_per_second"] > 0, plan
    assert not [each for each in raced["configurations"] if each["state"] == "failed"], raced


@_of_plans
def find_rate(cell: Cell) -> None:
    """A ramp is taken, whether or not it shows a rate."""
    found = cell.ask(
        *("find", "learning-rate", cell.plan_file, "--seeds", 1, "--ramp-steps", 20, "--compare-steps", 4),
        *("--lowest", 1e-4, "--highest", 0.1, "--json"),
        may_find_nothing=True,
    )
    assert found[-1]["event"] == "learning_rate_found"
    assert sum(len(each["losses"]) for each in found if each["event"] == "ramp_steps") > 5


@_of_plans
def find_batch_size(cell: Cell) -> None:
    """The answer is a size that was measured; a smaller one than the largest where that is as fast."""
    size = 2 * cell.plan.batch_size
    found = cell.ask(
        *("find", "batch-size", cell.plan_file, "--smallest", size, "--largest", size, "--seconds", 0.1, "--json")
    )[-1]
    measured = {each["batch_size"]: each["throughput"] for each in found["measured"]}
    assert size in measured, found
    assert found["examples_per_second"] == measured[found["batch_size"]] > 0, found


@_of_plans
def search(cell: Cell) -> None:
    """A trial of it ends with a result."""
    over = "learning_rate_factor=0.5,0.25" if cell.row.name == "learning_rate" else "learning_rate=1e-3,1e-2"
    found = cell.ask(
        *("search", cell.plan_file, "--over", over, "--trials", 1, "--confirm", 0, "--name", "found", "--json")
    )[-1]
    assert found["outcome"] == "finished", found
    assert found["best"], found


@_of_plans
def queue(cell: Cell) -> None:
    """It waits with its plan, and can be taken out."""
    before = set(runs())
    cell.ask("train", cell.plan_file, "--queue")
    (added,) = set(runs()) - before
    (entry,) = cell.ask("queue", "--json")
    assert (entry["run"], entry["status"]) == (added.name, "queued")
    cell.ask("queue", "cancel", added.name)
    assert not cell.ask("queue", "--json")


@_of_plans
def estimate(cell: Cell) -> None:
    """Its steps and parameters; the run's are compared by ``estimate-of-run``."""
    (found,) = cell.ask("estimate", cell.plan_file, "--json")
    assert found["parameters"] > 0


@_of_runs
def estimate_of_run(cell: Cell) -> None:
    """The run has these parameters and steps; weights that train later count as trainable."""
    (found,) = cell.ask("estimate", cell.run, "--json")
    built = cell.all(ModelBuilt)[0]
    assert found["parameters"] == built.parameters
    assert (found["trainable"] > built.trainable) is (cell.plan.unfreeze_epoch is not None)
    assert found["trainable"] >= built.trainable
    is_known = found["steps_per_epoch"] is not None
    assert not is_known or found["steps_per_epoch"] == built.steps_per_epoch
    assert is_known or ".py:" in cell.plan.data  # only a function that runs tells


@_of_runs
def profile(cell: Cell) -> None:
    """Operations of its steps, of which the run keeps the profile and the trace."""
    (found,) = cell.ask("profile", cell.run, "--seconds", 0.1, "--json")
    assert found["steps"] > 0
    assert 0 < found["busy"] <= found["seconds"]
    assert found["operations"], found
    assert cell.directory is not None
    assert list((cell.directory / found["trace"]).glob("*.xplane.pb"))
    kept = diagnostics.read(cell.directory).operations
    assert kept is not None
    assert kept.steps == found["steps"]


@_of_runs
def continue_(cell: Cell) -> None:
    """It trains an epoch more, from where it was."""
    first = cell.all(RunEnded)[-1]
    cell.ask("continue", cell.run, "--epochs", "+1", "--json")
    _, last = (event for event in cell.events if isinstance(event, RunEnded))
    assert last.outcome is Outcome.FINISHED, last.reason
    assert (last.epochs, last.steps > first.steps) == (first.epochs + 1, True)
    _finite(last.metrics)


@_of_runs
def evaluate(cell: Cell) -> None:
    """The metrics equal the validation's at the same step."""
    (found,) = cell.ask("evaluate", cell.run, "--split", "validation", "--resamples", 100, "--json")
    _finite(found["metrics"])
    at_step = [event for event in cell.all(Validated) if event.step == found["step"]]
    if at_step:
        wanted = {name: value for name, value in at_step[-1].metrics.items() if name in found["metrics"]}
        assert wanted
        tolerance = 1e-3 if cell.all(ModelBuilt)[-1].precision == "float32" else 2e-2
        assert {name: found["metrics"][name] for name in wanted} == pytest.approx(wanted, rel=tolerance, abs=1e-5)


@_of_runs
def diagnose(cell: Cell) -> None:
    """There is a report on every output."""
    assert cell.directory is not None
    EngineInThread.asked.clear()
    EngineInThread.unexpected.clear()
    try:
        found = ask(DiagnosisRequest(cell.directory, EvaluationOptions(split="validation")))
    except AccelError as error:
        check_no_accident("")
        raise RefusedError(str(error), EngineInThread.asked) from error
    assert found.report.outputs or found.report.text or found.notes, found


@_of_runs
def predict(cell: Cell) -> None:
    """Every example gets a prediction."""
    words = cell.material.predict
    found = cell.ask("predict", cell.run, *words, "--json")
    assert found
    texts = json.dumps(found)
    assert "NaN" not in texts, texts
    assert "Infinity" not in texts, texts


@_of_runs
def bench(cell: Cell) -> None:
    """It is measured, without a problem."""
    *found, _ = cell.ask(
        *("bench", cell.run, "--devices", "cpu", "--xla", "off", "--batch-sizes", 1, "--seconds", 0.1),
        *("--no-save", "--json"),
    )
    assert found
    for each in found:
        assert not each["problem"], each
        assert each["throughput"] > 0, each


@_of_runs
def advise(cell: Cell) -> None:
    """All rules can be applied."""
    (found,) = cell.ask("advise", cell.run, "--json")
    assert not found["failed_rules"], found["failed_rules"]


@_of_runs
def compare(cell: Cell) -> None:
    """Both runs are in the comparison."""
    assert cell.other is not None
    (found,) = cell.ask("compare", cell.run, cell.other.name, "--json")
    assert set(found["runs"]) == {cell.run, cell.other.name}


@_of_runs
def report(cell: Cell) -> None:
    """The page has the run's curves, and runs no code."""
    page = cell.folder / "report.html"
    cell.ask("report", cell.run, "--output", page)
    text = page.read_text(encoding="utf-8")
    assert cell.run in text
    assert "<svg" in text
    assert "<script" not in text


@_of_runs
def find_rate_of_run(cell: Cell) -> None:
    """A ramp begins at its last checkpoint."""
    found = cell.ask(
        *("find", "learning-rate", "--run", cell.run, "--seeds", 1, "--ramp-steps", 20),
        *("--lowest", 1e-4, "--highest", 0.1, "--json"),
        may_find_nothing=True,
    )
    assert found[-1]["step"] == cell.all(RunEnded)[-1].steps


JUDGED = re.compile(r"nothing was written: \S+: .*(, not |differ)")
"""What is said of a model that was written, proved and not kept, as it is too far from the trained one."""


def _export(file_format: str, quantize: str) -> Command:
    def export(cell: Cell) -> None:
        """What is written was proved."""
        words = ("--quantize", quantize) if quantize != "none" else ()
        output = cell.folder / {"savedmodel": "served"}.get(file_format, f"model.{file_format}")
        try:
            original, written = cell.ask("export", cell.run, "--to", file_format, *words, "--output", output, "--json")
        except RefusedError as error:
            if quantize == "none" or not JUDGED.search(error.reason):
                raise
            return  # what it makes worse depends on the data
        assert not written["problem"], written
        assert Path(written["path"]).exists()
        lost = {"loss"} if cell.row.name == "compiled-added_loss" else set()  # a layer of the trained model adds it
        assert written["metrics"].keys() == original["metrics"].keys() - lost
        _finite({"difference": written["mean_difference"], **written["metrics"]})

    return export


for _format, _quantize in FORMATS:
    OF_RUNS[f"export-{target_name(_format, _quantize)}"] = _export(_format, _quantize)


@_of_runs
def deploy(cell: Cell) -> None:
    """It is served in some format, and a check finds it equal, with the metrics of the trained model."""
    pytest.importorskip("uvicorn")
    (served,) = cell.ask("deploy", cell.run, "--name", "served", "--json")
    try:
        assert served["equal"], served
        (checked,) = cell.ask("deploy", "check", served["url"], cell.run, "--seconds", 0, "--json")
        assert checked["equal"], checked
        assert checked["model"] == "served"
        lost = {"loss"} if cell.row.name == "compiled-added_loss" else set()  # a layer of the trained model adds it
        assert checked["metrics"].keys() == checked["trained_metrics"].keys() - lost
        _finite({"difference": checked["mean_difference"], **checked["metrics"]})
    finally:
        cell.ask("deploy", "stop", "served", "--remove")


COMMANDS: Mapping[str, Command] = {**OF_PLANS, **OF_RUNS}
"""All columns of the table."""

NOT_OF_TRAININGS = frozenset(
    (
        *("run", "cluster", "watch", "runs", "searches", "import", "rename", "note", "tag", "repair", "rm"),
        *("stop", "pause", "resume", "checkpoint", "set"),
        *(
            "hosts",
            "fetch",
            "devices",
            "doctor",
            "serve",
            "settings",
            "demo",
            "completion",
            "models",
            "data",
            "strategies",
        ),
    )
)
"""Commands that no setting of a plan concerns: they show, name and control runs, or are about the machine."""


def missing_commands() -> set[str]:
    """Commands of the program without a column."""
    begin = re.compile("|".join(re.escape(name) for name in PROGRAM))
    covered = {match.group() for name in COMMANDS if (match := begin.match(name))}
    return set(PROGRAM) - covered - NOT_OF_TRAININGS
