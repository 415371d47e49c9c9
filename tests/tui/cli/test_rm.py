from accel_engine.run import list_runs
from accel_tui.cli import rm


def test_runs_are_deleted_and_what_goes_is_said(run_command, new_run):
    kept, gone, other = new_run(), new_run(), new_run()
    for engine in (kept, gone, other):
        engine.train()
    (gone.directory / "model.keras").write_bytes(b"x" * 3_000_000)
    result = run_command(f"rm {gone.directory.name} {other.directory.name} {gone.directory.name} --yes")
    assert result.status == 0
    assert result.lines[0].startswith(f"{gone.directory.name}  2.9 MiB, 1 trained model")
    assert len(result.lines) == 2
    assert [run.directory for run in list_runs()] == [kept.directory]


def test_a_live_run_keeps_all_that_are_named_with_it(run_command, new_run):
    live, ended = new_run(), new_run()
    live.begin()
    ended.train()
    result = run_command(f"rm {ended.directory.name} {live.directory.name} --yes")
    assert result.status == 1
    assert "is running: stop it before deleting it" in result.err
    assert len(list_runs()) == 2


def test_nothing_is_deleted_without_an_answer(run_command, new_run, monkeypatch):
    engine = new_run()
    engine.train()
    result = run_command("rm last")
    assert (result.status, len(list_runs())) == (2, 1)
    assert "with --yes" in result.err

    asked = []

    def refuse(question: str) -> bool:
        asked.append(question)
        return False

    monkeypatch.setattr(rm.sys.stdin, "isatty", lambda: True, raising=False)
    monkeypatch.setattr(rm.click, "confirm", refuse)
    assert (run_command("rm last").status, len(list_runs())) == (1, 1)
    assert asked[0].startswith("Delete this run, ")
    monkeypatch.setattr(rm.click, "confirm", lambda question: True)
    assert (run_command("rm last").status, len(list_runs())) == (0, 0)


def test_what_cannot_be_deleted_is_said(run_command, new_run, monkeypatch):
    engine = new_run()
    engine.train()

    def refuse(path: object) -> None:
        raise PermissionError(13, "Permission denied")

    monkeypatch.setattr("accel_engine.run.runs.removal.shutil.rmtree", refuse)
    result = run_command("rm last --yes")
    assert result.status == 1
    assert "cannot delete all of the run" in result.err
