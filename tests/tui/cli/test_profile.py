"""``accel-tui profile``: what it prints, and what it refuses before an engine starts."""

import json
import threading
from pathlib import Path

import pytest

from accel_engine.errors import RunError
from accel_engine.events import Outcome
from accel_engine.op_profile import profile_run
from accel_engine.op_profile.options import ProfileOptions
from accel_engine.process import engine_process
from accel_engine.requests.profile_plan import ProfileRequest
from accel_engine.run import diagnostics
from accel_engine.run.directory.lock import WriterLock
from accel_tui.cli import profile
from example_profile import PROFILE, profiled
from tui.fake_script import FakeScript


@pytest.fixture
def asked(monkeypatch: pytest.MonkeyPatch) -> list[ProfileRequest]:
    """What an engine process is asked; it answers with a profile."""
    requests: list[ProfileRequest] = []

    def ask(request: ProfileRequest, on_part: object) -> object:
        requests.append(request)
        return PROFILE

    monkeypatch.setattr(profile, "ask", ask)
    monkeypatch.setattr(profile_run, "require_installation", lambda: None)
    return requests


def test_a_live_run_is_profiled_by_a_command(run_command, new_run, monkeypatch):
    engine = new_run()
    engine.begin()
    answers = []

    def work() -> None:
        command = engine.next_command()
        answers.append((command.name, command.argument))
        engine.writer.write_diagnostics(PROFILE, 100)
        engine.writer.answer(command, obeyed=True, answer="profiled 100 steps in 2.0 s")

    thread = threading.Thread(target=work)
    thread.start()
    result = run_command("profile last --seconds 2")
    thread.join()

    assert answers == [("profile", 2.0)]
    assert result.status == 0, result.err
    lines = [line.rstrip() for line in result.lines]
    assert lines[0] == "100 steps of 20.0 ms, 2.00 s on the GPU, 2 streams: 25% idle"
    row = next(line for line in lines if line.startswith("62%"))
    # 1 s of 1.6; 4 GFLOP in 10 ms of 1 TFLOP/s; the copy is of 100 MB in 10 ms
    assert row.split()[:8] == ["62%", "10.0", "ms", "1", "400G", "10.0G", "40%", "compute"]
    fusion = next(line for line in lines if "fusion.3" in line)
    assert fusion.split()[:8] == ["31%", "5.00", "ms", "2", "800G", "89%", "memory", "conv"]
    assert "7 cheaper operations not shown. --json has more." in lines
    assert "1,000  9.00 µs  5%" in lines
    assert (
        "Peak: 1.00 TFLOP/s (a datasheet, float32); of memory 900 GB/s (the memory's clock and bus width)."
        in " ".join(lines)
    )
    assert lines[-1] == f"Open the trace in XProf: xprof --logdir {engine.directory}/profiles"
    engine.writer.close()


def test_an_engine_that_refuses_is_an_error(run_command, new_run):
    engine = new_run()
    engine.begin()

    def work() -> None:
        engine.writer.answer(engine.next_command(), obeyed=False, answer="the run is being profiled already")

    thread = threading.Thread(target=work)
    thread.start()
    result = run_command("profile last")
    thread.join()
    engine.writer.close()
    assert (result.status, result.out) == (1, "")
    assert result.err.splitlines()[-1].endswith("was not profiled: the run is being profiled already")


def test_a_cancelled_profile_says_so(new_run):
    engine = new_run()
    engine.begin()
    with pytest.raises(RunError, match="the profile was cancelled"):
        profile_run.profile_run(engine.directory, ProfileOptions(2.0), lambda _: PROFILE, should_stop=lambda: True)


def test_an_ended_run_is_profiled_by_steps_of_its_plan(run_command, new_run, asked):
    engine = new_run()
    engine.begin()
    engine.end()
    result = run_command("profile last --json")

    (request,) = asked
    assert (request.directory, request.seconds) == (engine.directory, 3.0)
    assert request.plan.data == engine.plan.data
    assert diagnostics.read(engine.directory).operations == PROFILE
    found = json.loads(result.out)
    assert (found["run"], found["idle"]) == (engine.directory.name, 0.25)
    assert found["operations"][0]["kernel"] == "void conv_kernel()"


def test_a_plan_is_profiled_without_a_run(run_command, asked):
    result = run_command("profile --model mlp --data digits --seconds 0.5")
    assert result.status == 0, result.err
    (request,) = asked
    assert (request.plan.model, request.directory, request.seconds) == ("mlp", None, 0.5)
    assert "XProf" not in result.out


def test_a_profile_that_a_host_has_made_of_a_run_there_is_shown(new_run, asked, monkeypatch):
    engine = new_run()
    engine.begin()
    engine.end()
    monkeypatch.setattr(profile_run, "host_of_run", lambda _: "gpu1")
    found = profile_run.profile_run(engine.directory, ProfileOptions(2.0), lambda _: PROFILE)
    assert found.notes[-1] == "This profile was not stored: the run is only written on gpu1."
    assert diagnostics.read(engine.directory).operations is None


def test_a_second_profile_of_an_ended_run_is_refused(run_command, new_run, asked):
    engine = new_run()
    engine.begin()
    engine.end()
    with WriterLock(engine.directory, profile_run.LOCK):
        result = run_command("profile last")
    assert (result.status, asked) == (1, [])
    assert result.err.endswith("is being profiled already\n")


def test_an_ended_run_without_its_data_is_refused_with_the_reason(run_command, new_run, asked, tmp_path: Path):
    data = tmp_path / "table.csv"
    data.write_text("a,label\n" + "".join(f"{row},{row % 2}\n" for row in range(40)))
    engine = new_run(model="mlp", data=str(data))
    engine.begin()
    engine.end(Outcome.STOPPED)
    data.unlink()
    result = run_command("profile last")
    assert (result.status, result.out, asked) == (2, "", [])
    assert "is stopped, and its steps cannot be taken again" in result.err
    assert "table.csv" in result.err


def test_an_ended_script_is_refused(run_command, home, asked):
    script = FakeScript().begin()
    script.end()
    result = run_command("profile last --seconds 1")
    assert (result.status, asked) == (2, [])
    assert "is finished, and has no plan to repeat its steps: profile a live run" in result.err


@pytest.mark.parametrize(
    ("words", "problem"),
    [
        ("profile --seconds 0", "must be a number from 0.1 to 30"),
        ("profile --seconds 31", "must be a number from 0.1 to 30"),
        ("profile nothing", "no run"),
        ("profile --strategy multi-worker --local-workers 2", "a run of several processes is not profiled"),
        ("profile --model unknown", "unknown"),
    ],
)
def test_wrong_usage_starts_no_engine(run_command, asked, words, problem):
    result = run_command(words)
    assert (result.status, result.out, asked) == (2, "", []), result.err
    assert problem in result.err


def test_what_is_unknown_is_left_out(run_command, new_run, asked, monkeypatch):
    profiles = profiled(
        steps=None, peak_flops=None, peak_source="", peak_bytes=None, bytes_source="", trace="", gaps=()
    )
    monkeypatch.setattr(profile, "ask", lambda *_: profiles)
    lines = run_command("profile --model mlp --data digits").lines
    assert lines[0] == "2.00 s on the GPU, 2 streams: 25% idle"
    assert "Peak: unknown (nothing is known of the device)." in lines
    assert not any("GAPS" in line or "XProf" in line for line in lines)


def test_no_engine_is_needed_to_refuse(run_command, monkeypatch):
    monkeypatch.setattr(engine_process, "spawn", lambda *_, **__: pytest.fail("an engine was started"))
    assert run_command("profile --data nowhere.csv").status == 2
