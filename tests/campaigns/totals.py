"""Keeps what the campaigns have tried, by seed, so that their totals grow over days.

A campaign has a file ``totals/CAMPAIGN.csv`` beside this module; a row is what one seed tried in one case. A seed that
is tried again replaces its row: repeating it adds nothing to the total.
"""

import csv
from dataclasses import asdict, dataclass, fields
from pathlib import Path

from accel_engine.files import replacing

DIRECTORY = Path(__file__).parent / "totals"


@dataclass(frozen=True, slots=True, order=True)
class Total:
    """What one seed tried in one case.

    Attributes:
        case: What was tried.
        seed: Of the random choices.
        tries: How often.
        failures: How many of them did not end as they should.
        date: When it was last tried, ``YYYY-MM-DD``.
    """

    case: str
    seed: int
    tries: int
    failures: int
    date: str


def read(campaign: str) -> list[Total]:
    """Read a campaign's totals, by case and seed; empty before its first."""
    path = _path(campaign)
    if not path.is_file():
        return []
    with path.open(newline="") as file:
        return [
            Total(row["case"], int(row["seed"]), int(row["tries"]), int(row["failures"]), row["date"])
            for row in csv.DictReader(file)
        ]


def add(campaign: str, total: Total) -> None:
    """Add what a seed tried in place of what it tried before."""
    others = [other for other in read(campaign) if (other.case, other.seed) != (total.case, total.seed)]
    DIRECTORY.mkdir(exist_ok=True)
    with replacing(_path(campaign)) as path, path.open("w", newline="") as file:
        writer = csv.DictWriter(file, [field.name for field in fields(Total)], lineterminator="\n")
        writer.writeheader()
        writer.writerows(asdict(row) for row in sorted([*others, total]))


def summary(campaign: str) -> str:
    """The tries and failures of all seeds, in a line a case."""
    rows = read(campaign)
    return "\n".join(
        f"{case}: {sum(row.tries for row in of_case):,} tries, {sum(row.failures for row in of_case):,} failures "
        f"({len(of_case)} seeds)"
        for case in sorted({row.case for row in rows})
        if (of_case := [row for row in rows if row.case == case])
    )


def _path(campaign: str) -> Path:
    return DIRECTORY / f"{campaign}.csv"
