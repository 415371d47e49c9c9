import pytest

from accel_engine.launch import plan_trials
from accel_engine.launch.plan_trials import PlanTrials
from accel_engine.launch.trial_process import TrialStart
from accel_engine.plan import Plan


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
