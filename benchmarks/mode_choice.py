"""How often a trial of execution modes chooses the faster one, by turns whose rates are drawn at random.

    .venv/bin/python benchmarks/mode_choice.py [--trials 300]

The plan's mode takes 1,000 steps a second, the other one a multiple of that. The rate of each turn is disturbed: by
noise alone, or by other programs, which slow a quarter of the turns down to 30 to 80 percent. Nothing is measured, so
that the result is the same on every machine.
"""

import argparse
import random
from dataclasses import dataclass

from accel_engine.training.autotuning.mode_choice import TURN_SECONDS, ModeTrial
from accel_engine.training.core.loop import ChunkResult

RATE = 1000.0
"""Steps a second in the plan's mode."""

RATIOS = (0.5, 0.8, 0.95, 1.0, 1.05, 1.25, 2.0)
"""How fast the other mode is, as multiples of that."""

MATTERS = 1.05
"""A ratio of the faster mode's rate and the chosen one's from which a choice is wrong."""


@dataclass(frozen=True, slots=True)
class Disturbance:
    """What changes the rates of turns.

    Attributes:
        name: In words.
        noise: Standard deviation of the logarithm of a rate.
        slowed: Share of the turns that another program slows down.
    """

    name: str
    noise: float
    slowed: float = 0.0

    def rate(self, draws: random.Random, rate: float) -> float:
        """A rate, disturbed."""
        factor = draws.uniform(0.3, 0.8) if draws.random() < self.slowed else 1.0
        return rate * draws.lognormvariate(0, self.noise) * factor


DISTURBANCES = (
    Disturbance("noise of 3%", 0.03),
    Disturbance("noise of 15%", 0.15),
    Disturbance("other programs", 0.05, 0.25),
)


def tried(disturbance: Disturbance, ratio: float, draws: random.Random) -> tuple[ModeTrial, int]:
    """A trial that has ended, and the number of its turns."""
    trial, turns = ModeTrial(), 0
    while not trial.has_ended:
        on_alternative = trial.on_alternative
        rate = disturbance.rate(draws, RATE * (ratio if on_alternative else 1.0))
        turns += 1
        while trial.on_alternative == on_alternative and not trial.has_ended:
            trial.add(ChunkResult(max(1, round(rate * TURN_SECONDS)), 0.0, TURN_SECONDS, {}, 1))
    return trial, turns


def main() -> None:
    """Try all disturbances and ratios, and print a table."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--trials", type=int, default=300, help="of each disturbance and ratio (default: 300)")
    count, draws = parser.parse_args().trials, random.Random(1)
    print("share of trials that choose the other mode / are settled / are settled and wrong; turns of each mode")
    for disturbance in DISTURBANCES:
        for ratio in RATIOS:
            trials = [tried(disturbance, ratio, draws) for _ in range(count)]
            found = [trial.speeds for trial, _ in trials]
            chosen = [ratio if speeds.alternative_is_faster else 1.0 for speeds in found]
            settled = [rate for rate, speeds in zip(chosen, found, strict=True) if speeds.settled]
            wrong = [rate for rate in settled if max(ratio, 1.0) / rate > MATTERS]
            picked = [speeds for speeds in found if speeds.alternative_is_faster]
            turns = sum(turns for _, turns in trials) / 2 / count
            texts = " / ".join(f"{len(each) / count:.0%}" for each in (picked, settled, wrong))
            print(f"{disturbance.name:15} {ratio:5} {texts:20} {turns:5.1f}", flush=True)


if __name__ == "__main__":
    main()
