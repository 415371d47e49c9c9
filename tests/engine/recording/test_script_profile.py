"""Profiles of scripts: nothing of the script changes, whatever TensorFlow's profiler does."""

import sys
from collections.abc import Sequence
from pathlib import Path
from types import ModuleType, SimpleNamespace
from typing import Any, TypeAlias

import pytest

from accel_engine.events import Phase, Warned
from accel_engine.op_profile.options import SEVERAL_PROCESSES
from accel_engine.private_names import profiler_names
from accel_engine.recording.script_profile import ScriptProfiler
from accel_engine.run.engine.commands import Command

from .memory_run import Run

Entered: TypeAlias = Sequence[tuple[Phase, int]]


class Link(Run):
    """A link that takes profiles."""

    def __init__(self, directory: Path) -> None:
        super().__init__()
        self.directory = directory
        self.profiles: list[tuple[str, list[str]]] = []
        self.traced: list[tuple[int, list[Phase]]] = []

    def profiled(
        self, command: Command, folder: str, seconds: float, steps: int, entered: Entered, notes: list[str]
    ) -> None:
        assert command.name == "profile"
        assert seconds >= 0
        self.traced.append((steps, [phase for phase, _ in entered]))
        self.profiles.append((folder, notes))

    @property
    def refusals(self) -> list[str]:
        assert not any(obeyed for _, obeyed, _ in self.answers)
        return [answer for *_, answer in self.answers]


class Profiler:
    """TensorFlow's profiler: a module with a trace at a time."""

    def __init__(self) -> None:
        self.directory = ""
        self.problem = ""
        self.number = 0

    def start(self, directory: str) -> None:
        if self.directory:
            raise RuntimeError("Another profiler is running")
        self.directory = directory

    def stop(self) -> None:
        directory, self.directory = self.directory, ""
        if self.problem:
            raise RuntimeError(self.problem)
        self.number += 1
        folder = Path(directory) / f"plugins/profile/{self.number}"
        folder.mkdir(parents=True)
        (folder / "host.xplane.pb").touch()


@pytest.fixture
def profiler(monkeypatch: pytest.MonkeyPatch) -> Profiler:
    found = Profiler()
    private: Any = ModuleType("profiler_v2")
    private.start = found.start
    tensorflow: Any = ModuleType("tensorflow")
    tensorflow.profiler = SimpleNamespace(experimental=SimpleNamespace(start=found.start, stop=found.stop))
    monkeypatch.setitem(sys.modules, "tensorflow", tensorflow)
    monkeypatch.setitem(sys.modules, profiler_names.MODULE, private)
    return found


@pytest.fixture
def link(tmp_path: Path) -> Link:
    return Link(tmp_path)


def profile(number: int = 1, seconds: float = 20.0) -> Command:
    return Command(number, 0.0, "ann@box", "profile", seconds)


def made(link: Link) -> ScriptProfiler:
    return ScriptProfiler(link, lambda: 7)  # type: ignore[arg-type]


def starts() -> list[Any]:
    """What scripts would call."""
    modules: Any = sys.modules
    return [modules["tensorflow"].profiler.experimental.start, modules[profiler_names.MODULE].start]


def test_a_trace_is_sent_when_its_time_is_over(link: Link, profiler: Profiler) -> None:
    own = starts()
    script = made(link)
    pause = Command(2, 0.0, "ann@box", "pause")
    assert script.take([profile(1, 0.1), pause]) == [pause]
    assert script.take([profile(1, 0.1)]) == []  # the same, which has no answer yet
    assert profiler.directory == str(link.directory / "profiles")
    script._until = 0.0
    script.update()
    script.update()
    assert link.profiles == [("profiles/plugins/profile/1", [])]
    assert (profiler.directory, link.answers) == ("", [])
    assert starts() == own


def test_the_steps_and_the_phases_of_the_trace_are_sent(
    link: Link, profiler: Profiler, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A validation that began before the trace is known, those before it are not."""
    taken = [20]
    script = ScriptProfiler(link, lambda: taken[0])  # type: ignore[arg-type]
    for phase in (Phase.VALIDATING, Phase.TRAINING, Phase.VALIDATING):
        script.enter(phase)
    script.take([profile()])
    script.enter(Phase.TRAINING)
    taken[0] = 50
    stop = script._stop

    def slowly() -> None:
        script.enter(Phase.VALIDATING)
        stop()

    monkeypatch.setattr(script, "_stop", slowly)
    script.end()
    script.take([profile(2)])
    script.end()
    assert link.traced == [(30, [Phase.VALIDATING, Phase.TRAINING]), (0, [Phase.VALIDATING])]


def test_a_second_one_is_refused(link: Link, profiler: Profiler) -> None:
    script = made(link)
    script.take([profile(1), profile(2)])
    assert link.refusals == ["the run is being profiled already"]
    script.end("The training ended")
    assert link.profiles == [("profiles/plugins/profile/1", ["The training ended: the trace is shorter."])]


def test_without_tensorflow_nothing_is_imported(link: Link, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delitem(sys.modules, "tensorflow", raising=False)
    script = made(link)
    script.take([profile()])
    script.update()
    script.end()
    assert link.refusals == ["the script has not imported TensorFlow, whose operations a profile shows"]
    assert "tensorflow" not in sys.modules


@pytest.mark.parametrize("starts_by", [0, 1])
def test_the_script_own_trace_ends_this_one(link: Link, profiler: Profiler, starts_by: int) -> None:
    own, script = starts(), made(link)
    script.take([profile()])
    starts()[starts_by]("logs")
    assert profiler.directory == "logs"
    assert starts() == own
    script.update()
    assert profiler.directory == "logs"  # which goes on
    assert link.profiles == [
        ("profiles/plugins/profile/1", ["The script has started a trace itself: the trace is shorter."])
    ]


def test_while_the_script_traces_itself_it_is_not_profiled(link: Link, profiler: Profiler) -> None:
    profiler.start("logs")
    own = starts()
    made(link).take([profile()])
    reason = "TensorFlow's profiler does not start: RuntimeError: Another profiler is running"
    assert link.refusals == [reason]
    assert [event.message for event in link.events if isinstance(event, Warned)] == [f"not profiled: {reason}"]
    assert profiler.directory == "logs"
    assert starts() == own


def test_a_trace_that_cannot_be_written_is_a_warning(link: Link, profiler: Profiler) -> None:
    script = made(link)
    script.take([profile()])
    profiler.problem = "No space left on device"
    script.end()
    assert link.refusals == ["RuntimeError: No space left on device"]
    assert [event.message for event in link.events if isinstance(event, Warned)] == [
        "not profiled: RuntimeError: No space left on device"
    ]
    script.take([profile(2)])  # the next one is possible
    profiler.problem = ""
    script.end()
    assert len(link.profiles) == 1


def test_a_script_of_several_processes_is_refused(
    link: Link, profiler: Profiler, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("SLURM_STEP_NUM_TASKS", "1")
    monkeypatch.setenv("TF_CONFIG", '{"cluster": {}}')
    made(link).take([profile()])
    assert link.refusals == [SEVERAL_PROCESSES]
    assert not profiler.directory


def test_other_lengths_are_refused(link: Link, profiler: Profiler) -> None:
    made(link).take([profile(1, 0.0), profile(2, 31.0)])
    assert link.refusals == ["a profile takes from 0.1 to 30 seconds"] * 2
    assert not profiler.directory


def test_without_the_private_name_only_the_public_one_gives_way(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, profiler_names.MODULE, ModuleType("without start"))
    assert profiler_names.profiler_module() is None
    monkeypatch.delitem(sys.modules, profiler_names.MODULE)
    assert profiler_names.profiler_module() is None
