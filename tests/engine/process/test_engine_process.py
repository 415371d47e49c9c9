import os
import signal
from contextlib import closing
from dataclasses import replace
from importlib import metadata

import numpy as np
import psutil
import pytest

from accel_engine.errors import EngineMissingError, RunError
from accel_engine.plan import Plan
from accel_engine.process.engine_process import Installation, find_installation, package_versions, start_engine
from accel_engine.process.warm_engine import EngineState, WarmEngine
from accel_engine.run import RunReader, Status, create
from accel_engine.run.directory.run_paths import LOG
from accel_engine.run.runs.creation import assign_process
from accel_engine.run.writing.writer import RunWriter

QUICK = Plan(model="mlp", data="synthetic:4x4x1:3:64", epochs=1, batch_size=32, xla="off")


@pytest.fixture
def installed(monkeypatch: pytest.MonkeyPatch) -> dict[str, str]:
    """The simulated installed distributions and their versions."""
    distributions: dict[str, str] = {}

    def version(name: str) -> str:
        if name not in distributions:
            raise metadata.PackageNotFoundError(name)
        return distributions[name]

    monkeypatch.setattr("importlib.metadata.version", version)
    return distributions


def test_without_tensorflow_the_install_command_is_shown(installed: dict[str, str]) -> None:
    found = find_installation()
    assert found.distribution == ""
    assert "pip install 'accel-tui[cpu]'" in found.problem
    assert "\n" not in found.problem


@pytest.mark.parametrize("name", ["tensorflow", "tensorflow-cpu", "tensorflow-tpu"])
def test_every_tensorflow_distribution_is_found(installed: dict[str, str], name: str) -> None:
    installed[name] = "2.20.0"
    assert find_installation() == Installation(name, "2.20.0")


def test_conflicting_distributions_are_rejected(installed: dict[str, str]) -> None:
    installed |= {"tensorflow": "2.21.0", "tensorflow-tpu": "2.20.0"}
    assert "tensorflow and tensorflow-tpu overwrite each other" in find_installation().problem


def test_no_engine_is_started_without_tensorflow(installed: dict[str, str]) -> None:
    with pytest.raises(EngineMissingError, match="TensorFlow is not installed"):
        WarmEngine()
    with pytest.raises(EngineMissingError, match="TensorFlow is not installed"):
        start_engine(create(Plan()))


def test_versions_are_those_of_what_is_installed(installed: dict[str, str]) -> None:
    installed |= {"tensorflow-cpu": "2.21.0", "keras": "3.15.1"}
    found = package_versions()
    assert {"accel-tui", "python"} <= set(found)
    assert (found["tensorflow"], found["build"], found["keras"]) == ("2.21.0", "tensorflow-cpu", "3.15.1")
    assert "libtpu" not in found


def test_engine_may_start_before_its_process_id_is_recorded() -> None:
    directory = create(Plan())
    with closing(RunWriter(directory)) as writer, closing(RunReader(directory)) as reader:
        writer.begin()
        assign_process(directory, os.getpid())
        assert reader.info().status is Status.RUNNING


def test_exited_engine_is_reported_and_rejects_a_run() -> None:
    with closing(WarmEngine()) as engine:
        os.kill(engine.pid, signal.SIGKILL)
        assert not engine.wait_ready(120)
        assert engine.state is EngineState.FAILED
        assert "the engine exited" in engine.problem
        assert "the engine" in engine.describe(QUICK).problem
        with pytest.raises(RunError, match="the engine has exited"):
            engine.train(create(QUICK))


def test_closing_a_warm_engine_kills_its_process() -> None:
    engine = WarmEngine()
    engine.close()
    assert not psutil.pid_exists(engine.pid)


def test_descriptions_do_not_wait_for_an_engine_with_a_run() -> None:
    with closing(WarmEngine()) as engine:
        asked = engine._send

        def ask_and_hand_over(message: object, number: int) -> None:
            engine._send = asked  # type: ignore[method-assign]
            engine.train(create(QUICK))  # by the time that it would have answered, it has a run

        engine._send = ask_and_hand_over  # type: ignore[method-assign]
        assert engine.describe(QUICK, timeout=600.0).problem == "the engine did not answer"
        os.kill(engine.pid, signal.SIGKILL)


def test_deleted_run_cannot_be_started() -> None:
    directory = create(QUICK)
    (directory / "run.db").unlink()
    with closing(WarmEngine()) as engine, pytest.raises(RunError, match="no run in"):
        engine.train(directory)


def test_a_warm_engine_trains_the_steps_of_a_new_one_and_keeps_its_output() -> None:
    plan = replace(QUICK, virtual_cpus=2)  # devices that are configured after the warm-up
    directories = [create(plan), create(plan)]
    assert start_engine(directories[0]).wait(120) == 0
    with closing(WarmEngine()) as engine:
        assert engine.wait_ready(120)
        assert engine.describe(plan).parameters
        log = engine._connection._log
        log.write(b"printed before the run\n")
        log.flush()
        engine.describe(plan)  # answered after the warm-up
        engine.train(directories[1])
        assert engine.process.wait(120) == 0
    losses = []
    for directory in directories:
        with closing(RunReader(directory)) as reader:
            assert reader.info().status is Status.FINISHED
            losses.append(np.concatenate([chunk.series["loss"] for chunk in reader.poll().chunks]))
    assert np.array_equal(*losses)
    assert b"printed before the run" in (directories[1] / LOG).read_bytes()
