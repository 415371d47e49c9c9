"""Commands to the process that runs a study: rows of its table ``command``, which that process answers."""

from dataclasses import dataclass
from typing import Any

COMMANDS = {
    "stop": "Stop the search: live trials are stopped with a checkpoint, and can be continued",
    "stop_trial": "Stop a trial with a checkpoint; what it reached counts",
    "prune": "Prune a trial now",
    "prolong": "Continue an ended trial from its checkpoint for more epochs",
    "clone": "Train a trial's plan again with another seed",
    "pin": "Never prune a trial",
    "unpin": "Prune a trial as any other again",
    "set_range": "Change the range or the choices of a parameter for the trials to come",
    "set_trials": "Change the number of trials",
}
"""Commands by name, with what is done."""


@dataclass(frozen=True, slots=True)
class StudyCommand:
    """A command to the process that runs a study.

    Attributes:
        id: Its row.
        time: When it was sent, in seconds since the Unix epoch.
        who: Who sent it, as ``user@host``.
        name: One of :data:`COMMANDS`.
        trial: Number of the trial, of commands about one.
        argument: Epochs of ``prolong``; the number of ``set_trials``; for ``set_range`` the text of the option
            ``--over``, such as ``learning_rate=1e-4..1e-2:log``; ``None`` of others.
    """

    id: int
    time: float
    who: str
    name: str
    trial: int | None = None
    argument: Any = None
