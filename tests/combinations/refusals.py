"""The combinations that the program refuses deliberately."""

import fnmatch
import re
from dataclasses import dataclass


@dataclass(frozen=True)
class Refusal:
    """A combination that is refused.

    Attributes:
        rows: Pattern of the rows' ids, as of a shell.
        commands: Pattern of the commands.
        says: What the program says, as a regular expression.
        where: Where the documents say it.
        loads: Whether an engine has to load the model or the data to know; nothing is trained or written then, either.
    """

    rows: str
    commands: str
    says: str
    where: str
    loads: bool = False

    def fits(self, row: str, command: str) -> bool:
        """Whether a cell is refused for this reason."""
        return any(fnmatch.fnmatchcase(row, each) for each in self.rows.split()) and any(
            fnmatch.fnmatchcase(command, each) for each in self.commands.split()
        )

    def explains(self, reason: str) -> bool:
        """Whether this is what the program said."""
        return re.search(self.says, reason) is not None


REFUSALS: tuple[Refusal, ...] = ()


def refusal_of(row: str, command: str) -> Refusal | None:
    """The refusal of a cell; ``None`` for one that passes."""
    return next((each for each in REFUSALS if each.fits(row, command)), None)
