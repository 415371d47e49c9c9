"""Tells from an exception how a recording ended."""

from accel_engine.errors import format_error
from accel_engine.events import Outcome


def outcome_of(error: BaseException | None) -> tuple[Outcome, str]:
    """The outcome and reason of a run whose ``fit`` or loop raised; ``None`` if the exception of ``fit`` is unknown."""
    match error:
        case None:
            return Outcome.FAILED, "fit was ended by an exception or an exit of the script"
        case KeyboardInterrupt():
            return Outcome.STOPPED, "interrupted from the keyboard"
        case SystemExit(code=None | 0):
            return Outcome.STOPPED, "the script exited"
        case SystemExit(code=int(status)):
            return Outcome.FAILED, f"the script exited with status {status}"
    return Outcome.FAILED, format_error(error)
