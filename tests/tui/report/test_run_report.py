"""The report on a run is one page that needs nothing else, whatever the run is and whatever its texts are."""

from html.parser import HTMLParser
from pathlib import Path

import pytest

from accel_engine.errors import RunError
from accel_engine.events import Outcome
from accel_engine.plan import Plan
from accel_engine.run import create
from accel_engine.run.diagnostics import OutputReport, ValidationReport
from accel_tui.report.diagnostics import MOST_CLASSES
from accel_tui.report.run_report import report_of, write_report
from tui import example_reports
from tui.fake_engine import FakeEngine, dead_pid
from tui.fake_script import FakeScript
from tui.test_bench_run import candidate, save

EVIL = "<script>alert('x')</script>\"&\x1b[31m"


class Page(HTMLParser):
    """The elements and the text of a page."""

    def __init__(self, html: str) -> None:
        super().__init__()
        self.open: list[str] = []
        self.names: list[str] = []
        self.addresses: list[str] = []
        self.words = ""
        self.feed(html)
        self.close()
        assert not self.open

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.names.append(tag)
        self.addresses += [value or "" for name, value in attrs if name in ("src", "href", "action")]
        if tag not in ("meta", "img", "polyline", "polygon"):
            self.open.append(tag)

    def handle_endtag(self, tag: str) -> None:
        if tag not in ("polyline", "polygon"):
            assert self.open.pop() == tag

    def handle_data(self, data: str) -> None:
        if self.open and self.open[-1] != "style":
            self.words += f"{data}\n"


def page_of(directory: Path, *expected: str) -> Page:
    """The page on a run, which has these words."""
    page = Page(report_of(directory))
    assert not {"script", "link", "iframe", "object"} & {*page.names}
    assert all(address.startswith("data:image/png;base64,") for address in page.addresses)
    assert not [words for words in expected if words not in page.words]
    return page


def trained(report: OutputReport | None = None, outcome: Outcome = Outcome.FINISHED, reason: str = "") -> FakeEngine:
    engine = FakeEngine(Plan(epochs=2, learning_rate=0.01, name="first")).begin().build().train(200)
    engine.end_epoch()
    if report is not None:
        engine.writer.write_diagnostics(ValidationReport((report,)), engine.step)
    engine.end(outcome, reason)
    return engine


def test_a_trained_run(home: Path) -> None:
    engine = trained(example_reports.rows_of_classes())
    page = page_of(
        engine.directory,
        "first",
        "finished",
        "Finished after 200 steps",
        "accel-tui train --model cnn --name first --epochs 2 --learning-rate 0.01",
        "learning rate\n0.01",
        "Confusion matrix of examples",
        "61,706",
        "Nothing was found.",
    )
    assert page.names.count("svg") == 4  # loss, accuracy, steps per second, learning rate
    assert "fields at their defaults" in page.words
    assert "batch size\n64" in page.words


def test_the_colours_follow_what_the_reader_prefers(home: Path) -> None:
    html = report_of(trained().directory)
    assert html.count("@media (prefers-color-scheme: dark)") == 2  # of the page and of the figures
    assert "default-src 'none'" in html


TASKS: dict[str, tuple[OutputReport, bool]] = {
    "texts": (example_reports.binary(), False),
    "images": (example_reports.classification(), True),
    "sounds": (example_reports.sounds(), True),
    "labels": (example_reports.multi_label(), True),
    "numbers": (example_reports.regression(2), False),
    "masks": (example_reports.segmentation(), True),
    "reconstructions": (example_reports.reconstruction(), True),
    "language": (example_reports.language_model(), False),
    "tokens": (example_reports.token_classification(), False),
    "forecasts": (example_reports.forecast(), False),
}
"""A report of each task, and whether its examples are pictures."""


@pytest.mark.parametrize("task", TASKS)
def test_the_diagnostics_of_each_task(home: Path, task: str) -> None:
    report, has_pictures = TASKS[task]
    page = page_of(trained(report).directory, "Diagnostics", "validation examples, after step 200")
    assert ("img" in page.names) == has_pictures


def test_of_many_classes_the_confused_pairs_are_listed(home: Path) -> None:
    report = example_reports.classification(MOST_CLASSES + 1)
    page = page_of(trained(report).directory, "Most confused", "true as predicted")
    assert "Confusion matrix" not in page.words


def test_an_output_that_cannot_be_interpreted_says_why(home: Path) -> None:
    page_of(trained(example_reports.custom()).directory, "the model has its own train_step")


def test_texts_of_a_run_are_no_markup(home: Path) -> None:
    directory = create(Plan(name=EVIL))
    engine = FakeEngine(Plan(name=EVIL), directory=directory).begin().build().train(20)
    engine.end(Outcome.FAILED, EVIL, EVIL)
    page = page_of(directory, "<script>alert('x')</script>", "failed")
    assert "\x1b" not in page.words


def test_a_live_run_tells_how_far_it_is(home: Path) -> None:
    engine = FakeEngine().begin().build().train(150)
    page_of(engine.directory, "running", "step 150 of 400, epoch 2 of 4", "Latest values: loss")


def test_runs_without_steps_and_lost_ones_have_a_report(home: Path) -> None:
    assert "svg" not in page_of(create(Plan()), "accel-tui train").names
    page_of(FakeEngine(pid=dead_pid()).begin().build().train(50).directory, "lost", "Lost: ")


def test_the_run_of_a_script_has_its_command(home: Path) -> None:
    script = FakeScript().begin().begin_part("cnn")
    script.train(100)
    page = page_of(script.directory, "accel-tui run train.py -- --lr 3")
    assert "accel-tui run accel-tui run" not in page.words


def test_a_bench_is_charted_by_batch_size(home: Path) -> None:
    directory = save(candidate(4, 0.25, 1000.0), candidate(16, 2.0, 4000.0), candidate(64, 12.0, 5000.0))
    page = page_of(directory, "batch", "64", "Measured 3 batch sizes")
    assert page.names.count("svg") >= 2


def test_it_is_written_whole_or_not_at_all(home: Path, tmp_path: Path) -> None:
    directory = trained().directory
    write_report(directory, tmp_path / "a.html")
    assert (tmp_path / "a.html").read_text().endswith("</html>\n")
    with pytest.raises(RunError, match="cannot write"):
        write_report(directory, tmp_path / "none" / "a.html")
    with pytest.raises(RunError):
        report_of(tmp_path)
