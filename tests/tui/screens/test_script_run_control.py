"""What the Run screen shows of a script under ``accel-tui run``, and how the script is controlled from there."""

import pytest

from accel_engine.events import Outcome, Phase
from accel_engine.run.directory.run_paths import LOG
from accel_tui.screens.asking import QuestionScreen
from accel_tui.widgets.key_bar import KeyBar
from tui.fake_script import COMMAND, FakeScript
from tui.screens.run_app import SMALL, WIDE, opened, screen_of, told
from tui.stand_ins import more, shows, text_of, until

pytestmark = pytest.mark.usefixtures("hurried")

SIZES = [SMALL, *more(WIDE, (200, 50))]


@pytest.fixture
def script() -> FakeScript:
    return FakeScript().begin()


@pytest.mark.parametrize("size", SIZES)
async def test_the_part_is_named_with_its_own_progress(script: FakeScript, size: tuple[int, int]) -> None:
    script.fit("base", epochs=1).begin_part("tuned", epochs=4, steps_per_epoch=50).train(100)
    async with opened(script.directory, size) as pilot:
        await shows(pilot, "part 2 · tuned", "epoch 3/4", "step 200/300", "50% of part 2", "■ part")


async def test_the_details_list_the_parts(script: FakeScript) -> None:
    script.fit("base", epochs=1).begin_part("tuned", epochs=4)
    async with opened(script.directory, WIDE) as pilot:
        await shows(pilot, "base, 1 epoch, 100 steps", "val loss 0.9000", "tuned, 4 epochs", COMMAND[:20])
        script.train(50)
        script.end_part(Outcome.STOPPED)
        await shows(pilot, "tuned, 50 steps", "stopped, val loss 0.9000")


async def test_a_script_with_many_parts_lists_the_latest(script: FakeScript) -> None:
    for number in range(9):
        script.fit(f"fold{number}", epochs=1, steps_per_epoch=10)
    async with opened(script.directory, WIDE) as pilot:
        await shows(pilot, "3 earlier", "fold3, 1 epoch, 10 steps", "fold8, 1 epoch, 10 steps")
        assert "fold2" not in text_of(pilot)


async def test_outside_of_a_fit_nothing_is_estimated_and_only_interrupting_is_offered(script: FakeScript) -> None:
    script.fit("base")
    async with opened(script.directory) as pilot:
        await shows(pilot, "▶ running the script", "no fit is running", "epochs 2", "step 200")
        assert not any(words in text_of(pilot) for words in ("%", " left", "epoch 2/2", "ETA"))
        screen = screen_of(pilot)
        assert [screen.check_action(action, ()) for action in ("pause", "learning_rate", "stop")] == [None, None, True]
        await pilot.press("p", "s")
        await shows(pilot, "Interrupt the script?", "SIGTERM")
        assert "Stop this fit" not in text_of(pilot)
        await pilot.press("n")
        await until(pilot, lambda: script.answer_commands() == ["stop_now"], "the interrupt alone: p does nothing here")


async def test_a_fit_can_be_stopped_or_the_script_interrupted(script: FakeScript) -> None:
    script.fit("base").begin_part("tuned").train(10)
    async with opened(script.directory) as pilot:
        await shows(pilot, "● training", "p Pause")
        await pilot.press("s")
        await shows(pilot, "Stop training?", "Interrupt the script", "Cancel")
        await pilot.press("s")
        await until(pilot, lambda: len(script.writer.commands()) == 1, "the command")
        (command,) = script.writer.commands()
        assert (command.name, command.argument) == ("stop", 2.0)  # the part that the question was about
        script.reply(command, "stopped after step 210", obeyed=True)
        script.end_part(Outcome.STOPPED, command.origin)
        await shows(pilot, "▶ running the script")
        await until(pilot, lambda: "stopped after step 210" in told(pilot), "the answer")


async def test_lines_of_output_cannot_be_paused(script: FakeScript) -> None:
    script.begin_part("output", parsed=True).train(10)
    async with opened(script.directory) as pilot:
        await shows(pilot, "part 1 · output", "step 10")
        screen = screen_of(pilot)
        assert [screen.check_action(action, ()) for action in ("pause", "learning_rate", "stop")] == [None, None, True]
        keys = {key.action: key.is_enabled for key in screen.query_one(KeyBar).keys}
        assert (keys["pause"], keys["learning_rate"], keys["stop"]) == (False, False, True)
        await pilot.press("p", "e")
        assert pilot.app.screen is screen
        await pilot.press("s")
        await shows(pilot, "Interrupt the script?")


async def test_leaving_offers_both_ways_to_stop(script: FakeScript) -> None:
    script.begin_part("base").train(10)
    async with opened(script.directory) as pilot:
        await shows(pilot, "● training")
        await pilot.press("q")
        await shows(pilot, "The run is training.", "keeps running", "Detach", "Stop this fit", "Interrupt the script")
        await pilot.press("escape")
        script.end_part()
        await shows(pilot, "no fit is running")
        await pilot.press("q")
        await shows(pilot, "The run is running the script.")
        assert isinstance(pilot.app.screen, QuestionScreen)
        assert "Stop this fit" not in text_of(pilot)


async def test_a_pause_belongs_to_its_fit(script: FakeScript) -> None:
    script.begin_part("base").train(10)
    async with opened(script.directory) as pilot:
        await shows(pilot, "● training", "p Pause")
        await pilot.press("p")
        await until(pilot, lambda: script.answer_commands() == ["pause"], "the pause")
        await shows(pilot, "‖ paused", "part 1 · base", "p Resume")
        script.end_part()
        await shows(pilot, "▶ running the script", "p Pause")


async def test_a_script_that_fails_shows_why_its_command_and_its_output(script: FakeScript) -> None:
    (script.directory / LOG).write_text("Traceback (most recent call last):\nValueError: no such file\n")
    script.end(Outcome.FAILED, "the script exited with status 1: ValueError: no such file")
    async with opened(script.directory, WIDE) as pilot:  # without steps, the log is open
        await shows(pilot, "✗ failed", "exited with status 1", COMMAND, "Traceback (most recent")
        assert "None" not in text_of(pilot)


async def test_a_script_without_its_supervisor_is_lost(script: FakeScript) -> None:
    script.begin_part("base").train(10)
    script.close()
    async with opened(script.directory) as pilot:
        await shows(pilot, "the script's supervisor was killed at step 10", "Run it again:", COMMAND)


@pytest.mark.parametrize("size", SIZES)
async def test_before_the_first_part_no_model_is_named(script: FakeScript, size: tuple[int, int]) -> None:
    script.enter(Phase.SCRIPT)
    async with opened(script.directory, size) as pilot:
        await shows(pilot, "running the script", "train.py")
        first = text_of(pilot).splitlines()[0]
        assert first.count("train.py") == 1
        assert " on " not in first
