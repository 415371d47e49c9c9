"""Takes over what other machines have done for a search that shares its storage."""

from dataclasses import replace

from optuna.trial import TrialState as OptunaState

from accel_engine import clock
from accel_engine.search.definition import StudyDefinition
from accel_engine.search.proposals import Proposals
from accel_engine.search.stored_trial import RemoteTrial
from accel_engine.search.study_database import StudyDatabase
from accel_engine.search.trial import Report, Trial, TrialState
from accel_engine.search.trial_store import TrialStore

_STATES = {
    OptunaState.WAITING: TrialState.WAITING,
    OptunaState.RUNNING: TrialState.RUNNING,
    OptunaState.COMPLETE: TrialState.FINISHED,
    OptunaState.PRUNED: TrialState.PRUNED,
}


def take_over(book: TrialStore, database: StudyDatabase, proposals: Proposals) -> None:
    """Take over trials, and changes of ranges and of the number of trials."""
    for remote in proposals.others():
        if remote.state in _STATES and remote.values:
            known = book.get(remote.number)
            found = _trial(remote, proposals.definition)
            if known is None or known.state.live or (known.state, known.machine) != (found.state, found.machine):
                book.put(found)
                for number, value in remote.reports.items():
                    book.add_report(Report(remote.number, number, number, remote.started, value))
    theirs, ours = proposals.shared_definition(), proposals.definition
    if (theirs.parameters, theirs.trials) != (ours.parameters, ours.trials):
        changed = replace(ours, parameters=theirs.parameters, trials=theirs.trials)
        database.set_definition(changed)
        proposals.set_definition(changed, share=False)


def _trial(remote: RemoteTrial, definition: StudyDefinition) -> Trial:
    names = [each.name for each in definition.objectives]
    state = _STATES[remote.state]
    if remote.is_lost:
        state = TrialState.LOST
    elif remote.has_failed:
        state = TrialState.OUT_OF_MEMORY if remote.reason == "out of memory" else TrialState.FAILED
    return Trial(
        number=remote.number,
        run="",
        state=state,
        values=remote.values,
        objectives=dict(zip(names, remote.results, strict=False)),
        reason="its machine no longer responds" if remote.is_lost else remote.reason,
        started=remote.started,
        ended=clock.now() if remote.is_lost else remote.ended,
        machine=remote.machine,
        proposal=remote.proposal,
    )
