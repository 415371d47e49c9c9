import threading

import pytest

from accel_engine.events import Outcome
from accel_engine.run.directory.disk_problem import DiskProblem
from accel_engine.run.directory.run_paths import CHECKPOINTS
from accel_tui.cli import control


def while_it_runs(engine, answer, *, obeyed=True):
    """Answer one command from a thread; the list gets it."""
    asked = []
    thread = threading.Thread(target=lambda: asked.append(engine.answer(answer, obeyed=obeyed)))
    thread.start()
    return asked, thread


@pytest.mark.parametrize(
    ("words", "name", "argument"),
    [
        ("stop last", "stop", None),
        ("stop last --now", "stop_now", None),
        ("pause last", "pause", None),
        ("resume last", "resume", None),
        ("checkpoint last", "checkpoint", None),
        ("set last --learning-rate 1e-4", "learning_rate", 1e-4),
        ("set last --validation-every 50steps", "validation_every", 50.0),
        ("set last --checkpoint-every 2epochs", "checkpoint_every", 8.0),
    ],
)
def test_a_command_is_asked_and_its_answer_printed(run_command, new_run, words, name, argument):
    engine = new_run()
    engine.begin()
    asked, thread = while_it_runs(engine, "done at step 0")
    result = run_command(words)
    thread.join()
    engine.writer.close()
    assert (result.status, result.err) == (0, "")
    assert result.out == f"{engine.directory.name}: done at step 0\n"
    assert (asked[0].name, asked[0].argument) == (name, argument)


def test_a_command_that_is_not_obeyed_fails_with_the_reason(run_command, new_run):
    engine = new_run()
    engine.begin()
    _, thread = while_it_runs(engine, "it is not paused", obeyed=False)
    result = run_command("resume last")
    thread.join()
    engine.writer.close()
    assert (result.status, result.out) == (1, "")
    assert "it is not paused" in result.err


def test_no_wait_returns_at_once(run_command, new_run):
    engine = new_run()
    engine.begin()
    result = run_command("pause last --no-wait")
    assert result.status == 0
    assert engine.next_command().name == "pause"
    engine.writer.close()


@pytest.mark.parametrize(
    ("words", "told", "left"),
    [
        ("pause last", "; pause is withdrawn: send it again later", []),
        ("checkpoint last", ", and answers after that", ["checkpoint"]),
        ("stop last", ", and answers after that", ["stop"]),
    ],
)
def test_no_answer_in_time_is_told(run_command, new_run, monkeypatch, words, told, left):
    monkeypatch.setattr(control, "PATIENCE", 0.05)
    engine = new_run()
    engine.begin()
    result = run_command(words)
    commands = [command.name for command in engine.writer.commands()]
    engine.writer.close()
    assert result.status == 1
    assert f"has not answered in 0 seconds: its engine may be building or tracing the model{told}" in result.err
    assert commands == left


def test_a_run_that_ends_without_an_answer_is_told(run_command, new_run):
    engine = new_run()
    engine.begin()

    def end():
        engine.next_command()
        engine.end()

    thread = threading.Thread(target=end)
    thread.start()
    result = run_command("pause last")
    thread.join()
    assert result.status == 1
    assert "it is finished" in result.err


@pytest.mark.parametrize("words", ["stop last", "pause last", "checkpoint last", "set last --learning-rate 1"])
def test_an_ended_run_has_nobody_to_ask(run_command, new_run, words):
    new_run().train()
    result = run_command(words)
    assert result.status == 1
    assert "is finished: only a live run takes commands" in result.err


def test_resuming_an_ended_run_points_to_continue(run_command, new_run):
    engine = new_run()
    engine.train()
    result = run_command("resume last")
    assert result.status == 1
    assert "no checkpoint to continue from" in result.err
    (engine.directory / CHECKPOINTS).mkdir()
    (engine.directory / CHECKPOINTS / "step-22.index").touch()
    assert (
        f"accel-tui continue {engine.directory.name} --epochs +{engine.plan.epochs} to"
        in run_command("resume last").err
    )


@pytest.mark.parametrize(
    ("words", "said"),
    [
        ("set last", "give --learning-rate"),
        ("set last 0.0001", "use accel-tui set last --learning-rate 0.0001"),
        ("set last learning_rate 0.1", "use accel-tui set last --learning-rate 0.1"),
        ("set last validation-every 2", "use accel-tui set last --validation-every 2"),
        ("set last --learning-rate 0", "must be a number above 0"),
        ("set last --learning-rate fast", "'fast'"),
        ("set last --validation-every often", "must be a number of epochs, steps or minutes"),
        ("set last --checkpoint-every 5minutes", "takes --checkpoint-every in steps or epochs"),
        ("set last --checkpoint-every auto", "must be a number of epochs, steps or minutes"),
        ("pause", "argument 'RUN'"),
    ],
)
def test_a_wrong_question_is_told(run_command, new_run, words, said):
    new_run().train()
    result = run_command(words)
    assert result.status == 2
    assert said in result.err


@pytest.mark.parametrize(
    ("outcome", "status", "words"),
    [
        (Outcome.STOPPED, 0, "stopped, by a signal, as the disk took no command"),
        (None, 1, "stopped, but could not write that: it is lost after its last step"),
    ],
)
def test_a_stop_by_a_signal_is_followed_to_the_end(run_command, new_run, monkeypatch, outcome, status, words):
    engine = new_run()
    engine.begin()

    def send(directory, name, argument):
        assert (directory, name) == (engine.directory, "stop")
        if outcome:
            engine.end(outcome)
        else:
            engine.writer.close()
        return 0

    monkeypatch.setattr(control, "send_command", send)
    result = run_command("stop last")
    assert result.status == status
    assert words in result.out + result.err


def test_a_run_that_waits_for_the_disk_takes_only_stop(run_command, new_run, monkeypatch):
    monkeypatch.setattr(control, "PATIENCE", 0.0)
    engine = new_run()
    engine.begin()
    engine.writer.show_problem(DiskProblem.FULL)
    pause, stop = run_command("pause last"), run_command("stop last")
    commands = [command.name for command in engine.writer.commands()]
    engine.writer.close()
    assert (pause.status, stop.status, commands) == (1, 1, ["stop"])
    assert "disk full: waiting for space: pause has to wait; only stop works until then; it was not sent" in pause.err
    assert "seconds: disk full: waiting for space, and answers after that" in stop.err
