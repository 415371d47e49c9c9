"""Tries many examples of each test of tests/fuzzing, seed by seed, and keeps what was tried.

A seed tries the same examples each time; to repeat one test of it::

    FUZZ_EXAMPLES=1000 pytest tests/fuzzing/test_plans.py -k NAME -n 0 --hypothesis-seed=SEED
"""

import argparse
import os
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from datetime import UTC, datetime
from pathlib import Path
from xml.etree import ElementTree

from campaigns import totals
from campaigns.totals import Total

CAMPAIGN = "fuzzing"
FOLDER = Path(__file__).parents[1] / "fuzzing"


def main() -> int:
    """Try seeds until the time is over; the exit status is 1 if an example failed."""
    parser = argparse.ArgumentParser(description="Try many examples of each test of tests/fuzzing.")
    parser.add_argument("--seed", type=int, default=1, help="the first seed; those after it follow")
    parser.add_argument("--examples", type=int, default=1000, help="examples of each test and seed (default: 1000)")
    parser.add_argument("--minutes", type=float, default=10, help="begin no seed after this time (default: 10)")
    parser.add_argument("tests", nargs="*", default=[str(FOLDER)], help="files of tests (default: all)")
    arguments = parser.parse_args()
    end = time.monotonic() + 60 * arguments.minutes
    seed, failures = arguments.seed, 0
    while seed == arguments.seed or time.monotonic() < end:
        for total in _try(seed, arguments.examples, arguments.tests):
            totals.add(CAMPAIGN, total)
            failures += total.failures
        seed += 1
    print(totals.summary(CAMPAIGN))
    return int(failures > 0)


def _try(seed: int, examples: int, tests: list[str]) -> Iterator[Total]:
    """Run the tests with a seed: the tries of each."""
    with tempfile.TemporaryDirectory() as folder:
        report = Path(folder) / "report.xml"
        options = [f"--hypothesis-seed={seed}", f"--junitxml={report}"]
        command = [sys.executable, "-m", "pytest", *tests, *options]
        subprocess.run(command, env={**os.environ, "FUZZ_EXAMPLES": str(examples)}, check=False)
        for case in ElementTree.parse(report).iter("testcase"):
            tries = sum(int(each.get("value", "0")) for each in case.iter("property") if each.get("name") == "examples")
            failed = int(case.find("failure") is not None or case.find("error") is not None)
            if tries or failed:
                name = f"{case.get('classname', '').rpartition('.')[2]}::{case.get('name')}"
                yield Total(name, seed, max(tries, failed), failed, datetime.now(UTC).date().isoformat())


if __name__ == "__main__":
    sys.exit(main())
