"""``accel-tui report`` writes a file, and none over another."""

import pytest


@pytest.fixture
def _run(new_run):
    new_run().close()


@pytest.mark.usefixtures("_run")
def test_the_report_is_a_file_of_the_working_directory(run_command, here):
    result = run_command("report last")
    (path,) = here.iterdir()
    assert (result.status, result.lines) == (0, [path.name])
    assert path.read_text().startswith("<!DOCTYPE html>")
    again = run_command("report last")
    assert again.status == 2
    assert "already exists: choose another path with --output, or overwrite it with --force" in again.err
    assert run_command("report last --force").status == 0
    assert run_command("report last -o other.html").lines == ["other.html"]


@pytest.mark.usefixtures("_run")
@pytest.mark.parametrize(
    ("words", "problem"),
    [
        ("report", "missing argument 'RUN'"),
        ("report nothing", "no run 'nothing'"),
        ("report last -o a.pdf", "a.pdf does not end with .html"),
        ("report last -o folder", "folder is a directory"),
    ],
)
def test_wrong_usage(run_command, here, words, problem):
    (here / "folder").mkdir()
    result = run_command(words)
    assert result.status == 2
    assert problem in result.err
