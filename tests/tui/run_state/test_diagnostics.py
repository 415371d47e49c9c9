from dataclasses import replace

from accel_engine.run.diagnostics import Diagnostics, SequenceReport, ValidationReport
from accel_engine.run.diagnostics.views import Tokens
from accel_engine.run.directory.disk_problem import DiskProblem
from accel_engine.run.media import LoggedText
from accel_tui.run_state.diagnostics import DiagnosticsReading, printable_diagnostics, read_diagnostics
from tui.example_reports import binary, language_model
from tui.fake_engine import FakeEngine


def test_text_is_made_printable_and_generated_text_keeps_its_lines() -> None:
    report = language_model()
    example = replace(report.worst[0], input=Tokens(("a", "\n", "\x1b[2J"), 3))
    stored = replace(report, prompt="\x1b]0;X\x07\n", generated="one\ntwo\u202e", names=("\x08",), worst=(example,))
    cleaned = printable_diagnostics(Diagnostics(validation=ValidationReport((stored,))))
    assert cleaned.validation
    (found,) = cleaned.validation.outputs
    assert isinstance(found, SequenceReport)
    assert found.prompt == "\\x1b]0;X\\x07\n"
    assert found.generated == "one\ntwo\\u202e"
    assert found.names == ("\\x08",)
    tokens = found.worst[0].input
    assert isinstance(tokens, Tokens)
    assert tokens.tokens == ("a", "↵", "\\x1b[2J")


def test_diagnostics_are_read_again_only_if_they_have_changed() -> None:
    engine = FakeEngine().begin().build().train(10)
    empty = read_diagnostics(engine.directory, DiagnosticsReading())
    assert empty.diagnostics == Diagnostics()
    assert empty.live
    engine.writer.write_diagnostics(ValidationReport((binary(),)), 10)
    first = read_diagnostics(engine.directory, empty)
    assert first.diagnostics
    assert first.diagnostics.steps == {"validation": 10}
    assert read_diagnostics(engine.directory, first).diagnostics is first.diagnostics
    engine.close()


def test_media_are_the_same_object_until_they_change() -> None:
    engine = FakeEngine().begin().build().train(10)
    assert read_diagnostics(engine.directory, DiagnosticsReading()).media is None
    engine.writer.write_media(10, 1.0, "a", LoggedText("b"))
    first = read_diagnostics(engine.directory, DiagnosticsReading())
    assert first.media
    assert [(series.name, series.count) for series in first.media.series] == [("a", 1)]
    assert read_diagnostics(engine.directory, first).media is first.media
    engine.writer.write_media(10, 1.0, "a", LoggedText("c"))
    assert read_diagnostics(engine.directory, first).media != first.media
    engine.close()


def test_a_run_that_is_gone_keeps_what_was_read(tmp_path: object) -> None:
    before = DiagnosticsReading(live=True, stamp=(1.0,), diagnostics=Diagnostics())
    found = read_diagnostics(FakeEngine().directory.parent / "gone", before)
    assert found.diagnostics is before.diagnostics
    assert not found.live
    assert found.problem


def test_a_wait_for_the_disk_is_said_until_it_ends() -> None:
    engine = FakeEngine().begin().build().train(10)
    engine.writer.show_problem(DiskProblem.FULL)
    waiting = read_diagnostics(engine.directory, DiagnosticsReading())
    assert (waiting.live, waiting.problem) == (True, "disk full: waiting for space")
    engine.writer.show_problem(None)
    assert read_diagnostics(engine.directory, waiting).problem == ""
    engine.close()
