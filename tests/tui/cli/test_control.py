import threading

import pytest

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


def test_no_answer_in_time_is_told(run_command, new_run, monkeypatch):
    monkeypatch.setattr(control, "PATIENCE", 0.05)
    engine = new_run()
    engine.begin()
    result = run_command("pause last")
    engine.writer.close()
    assert result.status == 1
    assert "has not answered" in result.err


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
    assert "is finished: no engine is running" in result.err


def test_resuming_an_ended_run_points_to_continue(run_command, new_run):
    engine = new_run()
    engine.train()
    result = run_command("resume last")
    assert result.status == 1
    assert f"accel-tui continue {engine.directory.name}" in result.err


@pytest.mark.parametrize(
    ("words", "said"),
    [
        ("set last", "give --learning-rate"),
        ("set last 0.0001", "use accel-tui set last --learning-rate 0.0001"),
        ("set last --learning-rate 0", "must be a number above 0"),
        ("set last --learning-rate fast", "'fast'"),
        ("pause", "argument 'RUN'"),
    ],
)
def test_a_wrong_question_is_told(run_command, new_run, words, said):
    new_run().train()
    result = run_command(words)
    assert result.status == 2
    assert said in result.err
