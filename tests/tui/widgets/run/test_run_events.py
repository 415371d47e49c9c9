"""The list of what happened in a run."""

from contextlib import closing

from accel_engine.advice import Category, Confidence, Evidence, Finding
from accel_engine.events import Outcome
from accel_engine.run import RunReader
from accel_tui.run_state.fold_events import apply_update
from accel_tui.run_state.state import RunState
from accel_tui.widgets.run.run_events import happened
from tui.fake_engine import FakeEngine
from tui.fake_script import FakeScript


def state_of(engine: FakeEngine) -> RunState:
    with closing(RunReader(engine.directory)) as reader:
        return apply_update(RunState(info=reader.info()), reader.poll())


def test_what_comes_again_and_again_is_told_once_between_other_events() -> None:
    engine = FakeEngine().begin().build()
    for _ in range(3):
        engine.train(100)
        engine.end_epoch(loss=0.5, accuracy=0.8)
    engine.warn("the loss is infinite")
    engine.train(100)
    engine.end_epoch(loss=0.4, accuracy=0.9)
    engine.end(Outcome.FINISHED)
    evidence = Evidence("it", steps=(120, 300))
    finding = Finding("x", Category.QUALITY, "Overfitting", (evidence,), Confidence.LIKELY, "")
    told = [(each.sign, each.words) for each in happened(state_of(engine), (finding,))]
    assert told[0] == ("✓", "finished after 400 steps")
    assert [words for _, words in told].count("checkpoint 300") == 1
    assert not any("checkpoint 200" in words for _, words in told)
    assert ("!", "the loss is infinite") in told
    assert ("★", "best accuracy 0.8800") in told
    assert ("⚑", "Overfitting, from step 120") in told
    assert told[-1] == ("▶", "started")


def test_epochs_of_a_script_are_those_of_their_part_as_in_the_line_above() -> None:
    script = FakeScript().begin().fit("base", epochs=3).begin_part("tuned", epochs=4)
    assert any(each.words.startswith("epoch 3  loss") for each in happened(state_of(script), ())), "of the part before"
    script.train(100)
    script.end_epoch()
    assert any(each.words.startswith("epoch 1  loss") for each in happened(state_of(script), ()))
