"""Puts faults into healthy runs and asks for advice: precision, recall and false alarms.

    python benchmarks/advice.py [--only NAME ...] [--json] [--show]

Each run is trained for a few seconds, in this process, or recorded as a script does it.
"""

import argparse
import json
import os
import sys
import tempfile
import time
from dataclasses import dataclass
from pathlib import Path

os.environ.setdefault("TF_CPP_MIN_LOG_LEVEL", "2")

from advice_cases import FAULTS, HEALTHY, Case
from advice_runs import advised


@dataclass(frozen=True)
class Outcome:
    """What was said of a case.

    Attributes:
        case: The case.
        said: Ids of findings, the most important first.
        seconds: Time of making the run.
    """

    case: Case
    said: tuple[str, ...]
    seconds: float

    @property
    def is_found(self) -> bool:
        """Whether one of the expected findings was made."""
        return not self.case.expected or any(each in self.case.expected for each in self.said)

    @property
    def alarms(self) -> tuple[str, ...]:
        """Findings that are wrong, or not known to be right."""
        return tuple(each for each in self.said if each not in (*self.case.expected, *self.case.allowed))


def measure(case: Case, *, show: bool) -> Outcome:
    """Make the run of a case, and advise on it."""
    began = time.perf_counter()
    with tempfile.TemporaryDirectory() as directory:
        run = case.run.make(Path(directory))
    seconds = time.perf_counter() - began
    advice = advised(run)
    if show:
        print(f"\n{case.name}: {', '.join(case.expected) or 'healthy'}")
        for finding in advice.findings:
            print(f"  {finding.id} [{finding.confidence}, {finding.weight:.2f}] {finding.title}; {finding.cost}")
            for each in finding.evidence:
                print(f"    {each.text} {each.steps or ''}")
            for cure in finding.cures:
                print(f"    -> {cure.text} {dict(cure.changes) or ''}")
    return Outcome(case, tuple(finding.id for finding in advice.findings), seconds)


def report(outcomes: list[Outcome]) -> str:
    """The tables."""
    rows = ["| run | right | advice | s |", "|---|---|---|---|"]
    for each in outcomes:
        mark = "" if each.is_found and not (each.alarms and not each.case.expected) else " **wrong**"
        right = ", ".join(each.case.expected) or "none"
        rows.append(f"| `{each.case.name}` | {right} | {', '.join(each.said) or 'none'}{mark} | {each.seconds:.1f} |")
    return "\n".join([*rows, "", summary(outcomes)])


def summary(outcomes: list[Outcome]) -> str:
    """Precision, recall and false alarms."""
    faults = [each for each in outcomes if each.case.expected]
    healthy = [each for each in outcomes if not each.case.expected]
    found = sum(each.is_found for each in faults)
    alarms = sum(bool(each.alarms) for each in healthy)
    said = sum(len(each.said) for each in outcomes)
    wrong = sum(len(each.alarms) for each in outcomes)
    lines = []
    if faults:
        lines.append(f"recall {found / len(faults):.2f} ({found} of {len(faults)} faults)")
    if healthy:
        lines.append(f"false alarms {alarms} in {len(healthy)} healthy runs")
    if said:
        lines.append(f"precision {1 - wrong / said:.2f} ({said - wrong} of {said} findings)")
    return "; ".join(lines)


def main() -> None:
    """Print a table, or a line of JSON a run."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--only", nargs="+", metavar="NAME", help="runs of these names")
    parser.add_argument("--json", action="store_true", help="a line of JSON a run")
    parser.add_argument("--show", action="store_true", help="all findings with their evidence")
    wanted = parser.parse_args()
    cases = [case for case in (*HEALTHY, *FAULTS) if not wanted.only or case.name in wanted.only]
    if not cases:
        parser.error(f"no such run; there are {', '.join(case.name for case in (*HEALTHY, *FAULTS))}")
    outcomes = []
    with tempfile.TemporaryDirectory() as home:
        os.environ["ACCEL_TUI_HOME"] = os.environ.get("ADVICE_RUNS") or home
        for case in cases:
            outcomes.append(measure(case, show=wanted.show))
            if wanted.json:
                each = outcomes[-1]
                print(json.dumps({"run": case.name, "expected": case.expected, "said": each.said}), flush=True)
            else:
                print(f"{len(outcomes)}/{len(cases)} {case.name}", file=sys.stderr)
    print(summary(outcomes) if wanted.json else report(outcomes))


if __name__ == "__main__":
    main()
