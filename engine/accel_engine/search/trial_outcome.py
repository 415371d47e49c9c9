"""What became of a trial whose run has ended."""

from accel_engine.run.engine.status import Status
from accel_engine.search.trial import PendingAction, Trial, TrialState
from accel_engine.search.trial_runs import Observation


def state_after(trial: Trial, observation: Observation) -> TrialState:
    """The state of a trial whose run has ended."""
    if observation.out_of_memory:
        return TrialState.OUT_OF_MEMORY
    if observation.status is Status.FINISHED:
        return TrialState.FINISHED
    if trial.pending is PendingAction.PRUNE:
        return TrialState.PRUNED
    return TrialState.STOPPED if observation.status is Status.STOPPED or trial.pending else TrialState.FAILED


def reason_after(trial: Trial, observation: Observation, state: TrialState) -> str:
    """Why a trial has ended before its last epoch, or failed; empty if it has done neither."""
    if state is TrialState.FINISHED:
        return ""
    return trial.reason if trial.pending and state in (TrialState.PRUNED, TrialState.STOPPED) else observation.reason


def proposal_of(trial: Trial) -> int:
    """The number of a trial in Optuna's storage."""
    return trial.number if trial.proposal is None else trial.proposal
