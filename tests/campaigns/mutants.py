"""Puts small faults into modules, one at a time, and looks whether the tests that mirror them notice.

``make mutants`` tries a sample of every area. Its totals by module are in ``totals/mutants.csv``, the faults that lived
in ``survivors.csv``, each with the reason why no test needs to notice it; one without a reason is work to do.
"""

import argparse
import csv
import json
import random
import sys
import time
from collections import defaultdict
from collections.abc import Iterable
from datetime import date
from pathlib import Path

import pytest

from campaigns.forked_tests import EVERY, Copy, LineRecorder
from campaigns.mutation_areas import AREAS, Area
from campaigns.mutations import Mutant, mutant, places

ROOT = Path(__file__).parents[2]
SURVIVORS = Path(__file__).parent / "survivors.csv"
MAX_SECONDS = 120.0
"""Of the tests that may notice a fault, as many are run as take this long."""

_SLOWER, _START = 5, 30.0  # how much longer than usual tests may take with a fault, and seconds to start
_FIELDS = ("module", "before", "after", "why")


class Tests:
    """The tests of an area, by the lines that they execute.

    Args:
        copy: The repository's copy.
        area: Modules and tests.

    Raises:
        SystemExit: Tests cannot be run.
    """

    def __init__(self, copy: Copy, area: Area) -> None:
        self._copy = copy
        self._lines: dict[str, dict[int, set[str]]] = defaultdict(lambda: defaultdict(set))
        self._seconds: dict[str, float] = {}
        self._in_graphs = area.in_graphs
        modules = area.module_paths(copy.root)
        for path in area.test_paths(copy.root):
            self._record(path, modules)

    def _record(self, path: str, modules: list[str]) -> None:
        output = self._copy.root / "recorded.json"
        status = self._copy.run([path], 3600, plugin=LineRecorder(self._copy.root, modules, output))
        if status not in (pytest.ExitCode.OK, pytest.ExitCode.TESTS_FAILED):
            sys.exit(f"{path} cannot be run: status {status}")
        lines, seconds, failed = json.loads(output.read_text())
        for test in failed:
            _say(f"left out, as it fails without a fault: {test}")
        self._seconds |= seconds
        for module, found in lines.items():
            for line, tests in found.items():
                self._lines[module][int(line)] |= set(tests) - set(failed)

    def of(self, fault: Mutant) -> list[str]:
        """The tests that may notice a fault: those that execute its statement, the fast ones before others.

        Tests of the module's own file come first; the last ones are tests of that file which do not execute it in this
        process, but perhaps in another.
        """
        found = self._lines[fault.module]
        tests = {test for line in range(fault.lines[0], fault.lines[1] + 1) for test in found.get(line, ())}
        mirror = f"/test_{Path(fault.module).stem}.py::"
        if EVERY in tests or (self._in_graphs and not tests):
            tests = {test for of_line in found.values() for test in of_line}
        ordered = sorted(tests - {EVERY}, key=lambda test: (mirror not in test, self._seconds[test]))
        ordered += [test for test in self._seconds if mirror in test and test not in tests]
        chosen, left = [], MAX_SECONDS
        for test in ordered:
            left -= self._seconds[test]
            if left > 0 or not chosen:
                chosen.append(test)
        return chosen

    def notice(self, fault: Mutant) -> bool:
        """Whether a test fails because of a fault, or takes far too long."""
        chosen = self.of(fault)
        if not chosen:
            return False
        usual = [self._seconds[test] for test in chosen]
        longest, seconds = (_START + _SLOWER * part for part in (max(usual), sum(usual)))
        with self._copy.changed(fault.module, fault.code):
            return self._copy.run(chosen, seconds, options=["-x", f"--timeout={longest}"]) != 0


def try_module(tests: Tests, source: str, module: str, seed: int, sample: int) -> tuple[int, list[Mutant]]:
    """Try the faults of a module; returns how many were tried, and those that no test noticed."""
    found = places(source)
    chosen = random.Random(f"{seed} {module}").sample(found, sample) if 0 < sample < len(found) else found
    faults = [fault for place in chosen if (fault := mutant(module, source, place))]
    lived = []
    for fault in faults:
        if not tests.notice(fault):
            lived.append(fault)
            _say(f"  {fault.lines[0]}: {fault.before}\n    -> {fault.after}")
    return len(faults), lived


def read_survivors() -> list[dict[str, str]]:
    """The faults that lived, each with the reason why that is right, or an empty one."""
    if not SURVIVORS.is_file():
        return []
    with SURVIVORS.open(newline="", encoding="utf-8") as file:
        return list(csv.DictReader(file))


def keep_survivors(module: str, lived: Iterable[Mutant], *, all_tried: bool) -> int:
    """Add the faults of a module that lived; returns how many of them have no reason.

    Where all were tried, those that are noticed now are dropped.
    """
    rows = read_survivors()
    reasons = {(row["module"], row["before"], row["after"]): row["why"] for row in rows}
    others = [row for row in rows if row["module"] != module or not all_tried]
    known = {(row["module"], row["before"], row["after"]) for row in others}
    keys = dict.fromkeys((fault.module, fault.before, fault.after) for fault in lived)
    added = [dict(zip(_FIELDS, (*key, reasons.get(key, "")), strict=True)) for key in keys if key not in known]
    with SURVIVORS.open("w", newline="", encoding="utf-8") as file:
        writer = csv.DictWriter(file, _FIELDS, lineterminator="\n")
        writer.writeheader()
        writer.writerows(sorted([*others, *added], key=lambda row: tuple(row.values())))
    return sum(not reasons.get(key) for key in keys)


def main() -> int:
    """Try the faults of some areas; returns the exit status."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("areas", nargs="*", help=f"of {', '.join(AREAS)}; all by default")
    parser.add_argument("--seed", type=int, default=1, help="of the sample")
    parser.add_argument("--sample", type=int, default=10, help="faults of each module; 0 for all")
    parser.add_argument("--again", action="store_true", help="also the modules that this seed has tried")
    parser.add_argument("--module", default="", help="only modules whose path contains this")
    options = parser.parse_args()
    unexplained = 0
    for name in options.areas or AREAS:
        unexplained += _try_area(AREAS[name], options)
    _say(f"{unexplained} faults lived for no known reason")
    return bool(unexplained)


def _try_area(area: Area, options: argparse.Namespace) -> int:
    copy = Copy(ROOT, area.imports)
    try:
        from campaigns import totals  # imports accel_engine, which must be the copy's

        done = {row.case for row in totals.read("mutants") if row.seed == options.seed and not options.again}
        tests, unexplained = Tests(copy, area), 0
        for module in area.module_paths(copy.root):
            if options.module not in module or module in done:
                continue
            began = time.monotonic()
            tried, lived = try_module(tests, copy.read(module), module, options.seed, options.sample)
            if tried:
                unexplained += keep_survivors(module, lived, all_tried=not options.sample)
                today = date.today().isoformat()
                totals.add("mutants", totals.Total(module, options.seed, tried, len(lived), today))
                seconds = time.monotonic() - began
                _say(f"{module}: {tried - len(lived)} of {tried} noticed, {seconds:.0f} s")
        return unexplained
    finally:
        copy.delete()


def _say(text: str) -> None:
    print(text, flush=True)


if __name__ == "__main__":
    sys.exit(main())
