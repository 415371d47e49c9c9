"""Writes a live offline run of Weights & Biases with 10 updates per second, for LEET.

    PYTHON-WITH-WANDB benchmarks/wandb_run.py DIRECTORY

Prints the directory of the run's files, a subdirectory of the run's. The values are the same as in ``live_run.py``.
"""

import random
import sys
import time

import wandb

UPDATES_PER_SECOND = 10
STEPS_PER_UPDATE = 100


def main() -> None:
    settings = wandb.Settings(silent=True)
    run = wandb.init(mode="offline", dir=sys.argv[1], project="steady", settings=settings)
    print(run.dir, flush=True)
    draw = random.Random(0)
    began = time.time()
    for update in range(10**9):
        time.sleep(max(0.0, began + (update + 1) / UPDATES_PER_SECOND - time.time()))
        falling = (1 + update * STEPS_PER_UPDATE / 500) ** -0.5
        loss = 2.3 * falling * draw.lognormvariate(0, 0.15)
        run.log({"loss": loss, "accuracy": 1 - 0.9 * falling + draw.gauss(0, 0.05), "throughput": draw.gauss(1000, 20)})


if __name__ == "__main__":
    main()
