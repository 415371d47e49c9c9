"""Puts faults into healthy runs and asks for advice: precision, recall and false alarms.

    python benchmarks/advice.py [--only NAME ...] [--json] [--show] [--cures]

Each run is trained for a few seconds, in this process, or recorded as a script does it. With ``--cures``, each cure of
a fault that changes the plan is tried on its run.
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

from accel_engine.advice import Finding
from advice_cases import FAULTS, HEALTHY, Case
from advice_gains import HEADER, Trial, gains, try_cures
from advice_runs import Trained, advised


@dataclass(frozen=True)
class Outcome:
    """What was said of a case.

    Attributes:
        case: The case.
        said: Ids of findings, the most important first.
        seconds: Time of making the run.
        trials: The cures of a right finding that were tried.
    """

    case: Case
    said: tuple[str, ...]
    seconds: float
    trials: tuple[Trial, ...] = ()

    @property
    def is_found(self) -> bool:
        """Whether one of the expected findings was made."""
        return not self.case.expected or any(each in self.case.expected for each in self.said)

    @property
    def alarms(self) -> tuple[str, ...]:
        """Findings that are wrong, or not known to be right."""
        return tuple(each for each in self.said if each not in (*self.case.expected, *self.case.allowed))


def measure(case: Case, *, show: bool, cures: bool) -> Outcome:
    """Make the run of a case, advise on it, and try the cures of what was found rightly."""
    trials: list[Trial] = []
    with tempfile.TemporaryDirectory() as directory:
        began = time.perf_counter()
        run = case.run.make(Path(directory))
        seconds = time.perf_counter() - began
        findings = advised(run).findings
        if cures and isinstance(case.run, Trained):
            right = [finding for finding in findings if finding.id in case.expected]
            trials = [trial for finding in right for trial in try_cures(case.name, run, finding)]
            print(*(trial.row for trial in trials), sep="\n", file=sys.stderr, flush=True)
    if show:
        show_findings(case, findings)
    return Outcome(case, tuple(finding.id for finding in findings), seconds, tuple(trials))


def show_findings(case: Case, findings: tuple[Finding, ...]) -> None:
    """Print what was found, with all evidence and cures."""
    print(f"\n{case.name}: {', '.join(case.expected) or 'healthy'}")
    for finding in findings:
        print(f"  {finding.id} [{finding.confidence}, {finding.weight:.2f}] {finding.title}; {finding.cost}")
        for each in finding.evidence:
            print(f"    {each.text} {each.steps or ''}")
        for cure in finding.cures:
            print(f"    -> {cure.text} {dict(cure.changes) or ''}")


def report(outcomes: list[Outcome]) -> str:
    """The tables."""
    rows = ["| run | right | advice | s |", "|---|---|---|---|"]
    for each in outcomes:
        mark = "" if each.is_found and not (each.alarms and not each.case.expected) else " **wrong**"
        right = ", ".join(each.case.expected) or "none"
        rows.append(f"| `{each.case.name}` | {right} | {', '.join(each.said) or 'none'}{mark} | {each.seconds:.1f} |")
    trials = [trial for each in outcomes for trial in each.trials]
    if trials:
        rows += ["", *HEADER, *(trial.row for trial in trials), "", gains(trials)]
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
    parser.add_argument("--cures", action="store_true", help="try the cures of the faults")
    parser.add_argument("--show", action="store_true", help="all findings with their evidence")
    wanted = parser.parse_args()
    cases = [case for case in (*HEALTHY, *FAULTS) if not wanted.only or case.name in wanted.only]
    if not cases:
        parser.error(f"no such run; there are {', '.join(case.name for case in (*HEALTHY, *FAULTS))}")
    outcomes = []
    with tempfile.TemporaryDirectory() as home:
        os.environ["ACCEL_TUI_HOME"] = os.environ.get("ADVICE_RUNS") or home
        for case in cases:
            outcomes.append(measure(case, show=wanted.show, cures=wanted.cures))
            if wanted.json:
                each = outcomes[-1]
                print(json.dumps({"run": case.name, "expected": case.expected, "said": each.said}), flush=True)
            else:
                print(f"{len(outcomes)}/{len(cases)} {case.name}", file=sys.stderr)
    print(summary(outcomes) if wanted.json else report(outcomes))


if __name__ == "__main__":
    main()
