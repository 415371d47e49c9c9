import os
from pathlib import Path

import pytest

from accel_engine.measure import plan_trials
from accel_engine.measure.plan_trials import PlanTrials
from accel_engine.plan import Plan
from accel_engine.requests.try_plan import TrialStart


def test_a_process_that_cannot_be_started_does_not_hinder_the_next_ones(tmp_path, monkeypatch) -> None:
    class Process:
        count = 0

        def __init__(self, *_: object) -> None:
            Process.count += 1
            if Process.count == 1:
                raise OSError(11, "Resource temporarily unavailable")

        def close(self, seconds: float) -> None:
            pass

    monkeypatch.setenv("ACCEL_TUI_HOME", str(tmp_path))
    monkeypatch.setattr(plan_trials, "TrialProcess", Process)
    with PlanTrials(()) as trials:
        with pytest.raises(OSError, match="temporarily"):
            trials.add(TrialStart(Plan()))
        trials.add(TrialStart(Plan()))
        trials.add(TrialStart(Plan()))
        assert len(trials.trials) == 2


def test_directories_of_trials_that_were_killed_long_ago_are_removed(home: Path) -> None:
    runs = home / "runs"
    for name in (".trial-old", ".trial-live", "old-run"):
        (runs / name / "0").mkdir(parents=True)
    for name in (".trial-old", "old-run"):
        os.utime(runs / name, (0, 0))
    with PlanTrials(()):
        assert not (runs / ".trial-old").exists()
    assert {each.name for each in runs.iterdir()} == {".trial-live", "old-run"}
