"""Tests what travels to a host: plans, files, requests to engine processes, and what comes back."""

import json
from collections.abc import Callable
from contextlib import closing
from dataclasses import dataclass
from pathlib import Path
from typing import ClassVar

import numpy as np
import numpy.typing as npt
import pytest

from accel_engine.errors import PlanError, RunError, UsageError
from accel_engine.events import RunStarted
from accel_engine.hosts import carried_files, host_requests
from accel_engine.hosts.carried_files import THERE, carry
from accel_engine.hosts.encoded_message import from_text, to_text
from accel_engine.hosts.engine_requests import HostCall
from accel_engine.hosts.host_list import Host
from accel_engine.hosts.host_requests import FilePartRequest, FolderOfFilesRequest, StartRequest
from accel_engine.hosts.link import link_to
from accel_engine.hosts.mirrored_runs import list_runs_of
from accel_engine.hosts.runs_there import answer_start, command_there, continue_there, fetch_run, start
from accel_engine.plan import Plan
from accel_engine.process.start_run import prepare_continuation
from accel_engine.requests.evaluate import EvaluationRequest
from accel_engine.requests.export_model import ExportRequest, ExportTarget
from accel_engine.requests.predict import PredictionRequest
from accel_engine.requests.protocol.model_reference import ModelReference, host_of_request
from accel_engine.run import RunReader, RunWriter, create, find_run
from accel_engine.run.damage.repair import repair_run
from accel_engine.run.directory.run_paths import LOG, runs_directory
from accel_engine.run.runs.creation import create_worker
from accel_engine.run.runs.worker_runs import worker_runs_of
from accel_engine.run.writing.owned_run import OwnedRun
from accel_engine.run_queue import queue, queue_database
from accel_engine.run_queue.queue_entries import QueueRequest
from recorded_run import started


@dataclass(frozen=True, slots=True, eq=False)
class Values:
    """A message with an array, as answers have."""

    values: npt.NDArray[np.float32]
    kind: ClassVar[str] = ""


def test_python_files_travel_with_what_they_import(host: Host, tmp_path: Path) -> None:
    """Test that only what has changed travels, and that an earlier version stays."""
    code = tmp_path / "code"
    (code / "package").mkdir(parents=True)
    (code / "nets.py").write_text("import helper, os\nfrom package import part\n")
    (code / "helper.py").write_text("WIDTH = 1\n")
    (code / "package" / "__init__.py").write_text("")
    (code / "package" / "part.py").write_text("")
    (code / "other.py").write_text("not python (")
    link = link_to("gpu1")
    first = Path(carry(link, "model", code / "nets.py"))
    names = sorted(path.relative_to(first.parent).as_posix() for path in first.parent.rglob("*.py"))
    assert names == ["helper.py", "nets.py", "package/__init__.py", "package/part.py"]
    assert carry(link, "model", code / "nets.py") == str(first)
    (code / "helper.py").write_text("WIDTH = 2\n")
    second = Path(carry(link, "model", code / "nets.py"))
    assert (first.parent / "helper.py").read_text() == "WIDTH = 1\n"
    assert (second.parent / "helper.py").read_text() == "WIDTH = 2\n"
    assert (second.parent / "nets.py").samefile(first.parent / "nets.py")


def test_large_data_is_named_by_its_path_there(host: Host, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Test the refusal, with the size and what to do."""
    data = tmp_path / "big.csv"
    data.write_bytes(bytes(3 << 20))
    monkeypatch.setattr(carried_files, "MAX_BYTES", 1 << 20)
    with pytest.raises(UsageError, match=r"has 3.0 MiB in 1 file, and at most 1.0 MiB .* there:/PATH"):
        start("gpu1", {"data": str(data)})
    with pytest.raises(UsageError, match=r"gpu1: data = '/nowhere/x.csv': no such file"):
        start("gpu1", {"data": f"{THERE}/nowhere/x.csv"})


def test_names_that_the_program_knows_mean_no_file_here(
    host: Host, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    named = {"data": "MNIST", "validation_data": "synthetic:8", "model": "auto", "initial_weights": "imagenet"}
    for name, value in named.items():
        Path(value).mkdir()
        assert carried_files.carried_value(link_to("gpu1"), name, value) == value
    Path("mine").mkdir()
    assert carried_files.carried_value(link_to("gpu1"), "data", "mine").endswith("/mine")


def test_a_run_to_start_from_is_the_one_that_is_meant_here(far_writer: RunWriter) -> None:
    """Test a run of the host, which its name there finds, one of this machine, and a run there for training here."""
    there, link = far_writer.directory.name, link_to("gpu1")
    for reference in (f"gpu1:{there}", "gpu1:last", there[:4]):
        assert carried_files.carried_value(link, "initial_weights", reference) == there
    create(Plan(name="here"))
    with pytest.raises(UsageError, match=r"run .*-here is on this machine, not on gpu1: name one that is, as gpu1:RUN"):
        carried_files.carried_value(link, "initial_weights", "last")
    with pytest.raises(PlanError, match=rf"{there} are on gpu1: bring them here with accel-tui fetch gpu1:{there}"):
        create(Plan(initial_weights=f"gpu1:{there}"))


def test_no_file_is_written_or_read_outside(far_writer: RunWriter) -> None:
    """Test paths that lead out of a folder."""
    link = link_to("gpu1")
    for path in ("../x", "/etc/x", "a/../../x", ""):
        file = host_requests.CarriedFile(path, 0, "0" * 64)
        with pytest.raises(RunError, match="is not a path within a folder"):
            link.ask(FolderOfFilesRequest((file,)))
        with pytest.raises(RunError, match="was not asked for"):
            link.ask(FilePartRequest(path, 0, far_writer.directory.name))


def test_a_run_waits_in_the_queue_of_a_host_as_it_was_asked(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(queue_database, "start_waiter", lambda: None)
    asked = QueueRequest(priority=7, after=(create(Plan(model="mlp")).name,))
    request = StartRequest({"model": "mlp", "data": "digits"}, queued=True, asked=asked)
    started = answer_start(from_text(*to_text(request), StartRequest), lambda _: None)
    (entry,) = queue.entries()
    assert (entry.run, entry.request) == (started.run, asked)


def test_a_run_that_is_fetched_is_one_of_this_machine(
    far_writer: RunWriter, finish: Callable[[RunWriter], None]
) -> None:
    """Test that all of its files come, and that one that trains is refused."""
    list_runs_of("gpu1")
    mirror = find_run("gpu1:last")
    with pytest.raises(RunError, match=r"is running: bring it when it has ended"):
        fetch_run(mirror)
    (far_writer.directory / "checkpoints").mkdir()
    (far_writer.directory / "checkpoints" / "step-3.index").write_bytes(b"index")
    (far_writer.directory / "model.keras").write_bytes(b"model" * 100_000)
    finish(far_writer)
    here = fetch_run(mirror)
    assert here == runs_directory() / far_writer.directory.name
    assert (here / "model.keras").read_bytes() == (far_writer.directory / "model.keras").read_bytes()
    with closing(RunReader(here)) as reader:
        assert reader.info().id == here.name
        assert not reader.info().status.live
    for reference in (here.name[:4], here.name):
        assert find_run(reference) == here
        assert find_run(f"gpu1:{reference}") == mirror
    with pytest.raises(RunError, match="is here already"):
        fetch_run(mirror)


def test_runs_of_other_workers_are_fetched_whole(far_writer: RunWriter, finish: Callable[[RunWriter], None]) -> None:
    """Test the records that are not yet in a database file, as of an engine that was killed."""
    worker = create_worker(far_writer.directory, "1", Plan(strategy="multi-worker"))
    (worker / LOG).write_text("a worker\n")
    with closing(RunWriter(worker)) as writer:
        writer.begin(started(worker="worker 1"))
        list_runs_of("gpu1")
        finish(far_writer)
        here = fetch_run(find_run("gpu1:last"))
    with closing(RunReader(worker_runs_of(here)["worker 1"])) as reader:
        assert [event.worker for event in reader.poll().events if isinstance(event, RunStarted)] == ["worker 1"]
    assert (here / "workers" / "1" / LOG).read_text() == "a worker\n"
    assert repair_run(here) is None


def test_nothing_here_writes_a_run_of_a_host(far_writer: RunWriter, finish: Callable[[RunWriter], None]) -> None:
    """Test that a mirror is refused by what trains and changes runs, and that continuing it is asked of the host."""
    list_runs_of("gpu1")
    mirror = find_run("gpu1:last")
    finish(far_writer)
    with pytest.raises(RunError, match="is on gpu1: it is only written there"):
        OwnedRun(mirror)
    for continue_run in (prepare_continuation, continue_there):
        with pytest.raises(RunError, match=r"gpu1: run .* has no checkpoint to continue from"):
            continue_run(mirror)


def test_requests_go_where_their_runs_are(far_writer: RunWriter, tmp_path: Path) -> None:
    """Test one host, and models of several machines."""
    list_runs_of("gpu1")
    there, here = ModelReference(find_run("gpu1:last")), ModelReference(tmp_path / "runs" / "x")
    (tmp_path / "runs" / "x").mkdir(parents=True)
    (tmp_path / "runs" / "x" / "run.db").touch()
    assert host_of_request(EvaluationRequest((there, there))) == "gpu1"
    assert host_of_request(EvaluationRequest((here,))) == ""
    with pytest.raises(RunError, match="bring them here with accel-tui fetch"):
        host_of_request(EvaluationRequest((there, here)))


def test_paths_of_a_request_are_those_of_the_host(far_writer: RunWriter) -> None:
    """Test the run's directory, and a request of another version."""
    list_runs_of("gpu1")
    mirror = find_run("gpu1:last")
    line = HostCall("gpu1", EvaluationRequest((ModelReference(mirror),)))._line()
    assert f"{host_requests.RUNS}/{mirror.name}" in line
    assert str(mirror) not in line
    with pytest.raises(RunError, match="this version does not understand"):
        link_to("gpu1").ask(host_requests.AskRequest("k", "evaluate", "{}\n"))


def test_files_that_have_travelled_are_called_as_they_are_here(
    far_writer: RunWriter, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    list_runs_of("gpu1")
    monkeypatch.chdir(tmp_path)
    Path('a "b".png').touch()
    call = HostCall("gpu1", PredictionRequest(find_run("gpu1:last"), (Path('a "b".png'),)))
    (there,) = json.loads(call._line())["fields"]["files"]
    assert carried_files.carried_name(there)
    assert json.loads(call._here(json.dumps([f"{there}: no image"]))) == ['a "b".png: no image']
    assert call._named(f"{there} cannot be read") == 'a "b".png cannot be read'


def test_arrays_cross_a_link() -> None:
    """Test that what is decoded has the values, and that too many are refused."""
    values = np.arange(5, dtype=np.float32)
    line, arrays = to_text(Values(values))
    np.testing.assert_array_equal(from_text(line, arrays, Values).values, values)


@pytest.mark.parametrize("path", ["0//etc/x", "0/../x", "1/x", "x", "0/", "../0/x", "-1/x"])
def test_a_host_chooses_no_place_for_its_files(host: Host, tmp_path: Path, path: str) -> None:
    """Test what a host may call the files that an export has written."""
    target = ExportTarget("keras", "keras", "none", str(tmp_path / "out" / "m.keras"), 0.0)
    request = ExportRequest(ModelReference(tmp_path), (target,), "auto", folder=tmp_path)
    call = HostCall("gpu1", request)
    assert call._target(path) is None
    assert call._target("0/m.keras") == tmp_path / "out" / "m.keras"


def test_a_command_runs_there_and_is_interrupted_from_here(host: Host, far_writer: RunWriter) -> None:
    printed: list[tuple[str, bool]] = []

    def show(line: str, is_error: bool) -> None:
        printed.append((line, is_error))

    assert command_there("gpu1", ["race", "--seconds", "x"], {"model": "mlp"}, show, lambda: 0) == 2
    assert all(is_error for _, is_error in printed)
    assert "--seconds" in "".join(line for line, _ in printed)
    printed.clear()
    command_there("gpu1", ["watch", "last", "--plain"], None, show, lambda: int(bool(printed)))
    assert any(not is_error for _, is_error in printed)
