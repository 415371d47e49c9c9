"""Compares the order of the configurations in a short race with their order in long measurements.

Of each plan, the configurations are raced for a few seconds each, as ``accel-tui race`` does. Then each is compiled in
a new process, and they take long turns. A pair of configurations counts if the long measurement tells them apart: their
medians differ by at least 10 percent. It is in order if the race has the same one faster.

Run on CPUs: ``python benchmarks/race.py --seconds 3 --long 20``.
"""

import argparse
import os
import statistics
import tempfile
import time
from dataclasses import dataclass
from itertools import combinations
from pathlib import Path

import numpy as np

from accel_engine.devices import detect
from accel_engine.measure.plan_trials import PlanTrials
from accel_engine.measure.trial_statistics import in_turn
from accel_engine.plan import Plan
from accel_engine.plan.resolved_plan import resolve_to_train
from accel_engine.race.configuration import ConfigurationKind, ConfigurationResult
from accel_engine.race.race import Race, RaceOptions
from accel_engine.requests.try_plan import TrialStart

DIFFERENCE = 1.1
"""The ratio of rates from which a pair counts."""

TURN_SECONDS = 2.0
"""How long a turn of the long measurement takes."""

KINDS = (
    ConfigurationKind.XLA,
    ConfigurationKind.PRECISION,
    ConfigurationKind.MICRO_BATCHES,
    ConfigurationKind.THREADS,
    ConfigurationKind.BATCH_SIZE,
)


@dataclass(frozen=True, slots=True)
class Pair:
    """Two configurations of a plan.

    Attributes:
        plan: The plan's title.
        first: The configuration that is faster in the long measurement.
        second: The other one.
        long_ratio: By how much, in the long measurement.
        race_ratio: The same in the race.
    """

    plan: str
    first: str
    second: str
    long_ratio: float
    race_ratio: float

    @property
    def in_order(self) -> bool:
        """Whether the race has the same one faster."""
        return self.race_ratio > 1


def plans(folder: Path) -> tuple[Plan, ...]:
    """The plans: layers, convolutions, a recurrent network, and a table."""
    random = np.random.default_rng(0)
    rows = random.normal(size=(4000, 20))
    target = (rows[:, :5].sum(axis=1) > 0).astype(int)
    lines = [",".join([*(f"x{index}" for index in range(20)), "y"])]
    lines += [
        ",".join([*(f"{value:.5f}" for value in row), str(label)]) for row, label in zip(rows, target, strict=True)
    ]
    table = folder / "table.csv"
    table.write_text("\n".join(lines))
    return (
        Plan(model="mlp", data="digits"),
        Plan(model="cnn", data="digits"),
        Plan(model="lstm", data="synthetic:32x8:4:4000"),
        Plan(model="tabular", data=str(table), target=("y",)),
    )


def raced(plan: Plan, seconds: float, kinds: tuple[ConfigurationKind, ...]) -> tuple[ConfigurationResult, ...]:
    """The results of a race."""
    devices = detect().devices
    return Race(resolve_to_train(plan, devices), devices, RaceOptions(seconds, kinds, combines=False)).run()


def measured_long(results: list[ConfigurationResult], seconds: float) -> dict[str, float]:
    """The median of the rates of each configuration, in long turns one after the other, by title."""
    with PlanTrials([]) as trials:
        for result in results:
            trials.add(TrialStart(result.configuration.plan)).wait_ready()  # one after the other: each has the machine
        rates: dict[str, list[float]] = {result.title: [] for result in results}
        for trial in trials.usable:
            trial.process.take_for(1.0)
        for number in range(max(3, round(seconds / TURN_SECONDS))):
            for result, trial in in_turn(list(zip(results, trials.trials, strict=True)), number):
                rates[result.title].append(trial.process.take_for(TURN_SECONDS).examples_per_second)
    return {title: statistics.median(values) for title, values in rates.items() if values}


def pairs_of(plan: Plan, results: list[ConfigurationResult], long: dict[str, float]) -> list[Pair]:
    """The pairs that the long measurement tells apart."""
    found, race = [], {result.title: result.examples_per_second or 0.0 for result in results}
    for one, other in combinations(long, 2):
        first, second = (one, other) if long[one] >= long[other] else (other, one)
        if (ratio := long[first] / long[second]) >= DIFFERENCE:
            found.append(Pair(plan.title, first, second, ratio, race[first] / race[second]))
    return found


def main() -> None:
    """Race and measure all plans, and print the tables."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--seconds", type=float, default=3.0, help="of each configuration in the race (default: 3)")
    parser.add_argument(
        "--long", type=float, default=20.0, help="of each configuration in the long measurement (default: 20)"
    )
    parser.add_argument("--models", default="mlp,cnn,lstm,tabular", help="models of the plans (default: all four)")
    parser.add_argument("--vary", default=",".join(KINDS), help=f"what changes (default: {','.join(KINDS)})")
    chosen = parser.parse_args()
    pairs, kinds = list[Pair](), tuple(map(ConfigurationKind, chosen.vary.split(",")))
    with tempfile.TemporaryDirectory() as folder:
        os.environ["ACCEL_TUI_HOME"] = folder
        for plan in (each for each in plans(Path(folder)) if each.model in chosen.models.split(",")):
            began = time.monotonic()
            results = [result for result in raced(plan, chosen.seconds, kinds) if result.is_measured]
            took = time.monotonic() - began
            long = measured_long(results, chosen.long)
            print(f"\n{plan.title}: a race of {took:.0f} s, load {os.getloadavg()[0]:.1f}")
            for result in results:
                rate = result.examples_per_second or 0.0
                state = f"{result.state}, {len(result.rates)} turns"
                print(f"  {result.title:24} race {rate:10,.0f}  long {long.get(result.title, 0):10,.0f}  {state}")
            pairs += (new := pairs_of(plan, results, long))
            for pair in new:
                if not pair.in_order:
                    ratios = f"{pair.long_ratio:.2f}, race {pair.race_ratio:.2f}"
                    print(f"  not in order: {pair.first}, {pair.second}: {ratios}")
            print(f"  {sum(pair.in_order for pair in new)} of {len(new)} pairs in order", flush=True)
    print(f"\n{sum(pair.in_order for pair in pairs)} of {len(pairs)} pairs that differ by 10% are in order")


if __name__ == "__main__":
    main()
