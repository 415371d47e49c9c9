"""Times a prediction of one picture in a process of its own and in a kept one, each several times in turns.

    python benchmarks/request_times.py RUN PICTURE [ROUNDS]

RUN is the directory of a run with a checkpoint.
"""

import sys
import time
from pathlib import Path
from statistics import median

from accel_engine.process.engine_call import KeptEngine, ask, keeping
from accel_engine.requests.evaluate import EvaluationRequest
from accel_engine.requests.predict import PredictionRequest
from accel_engine.requests.protocol.model_reference import ModelReference


def seconds_of(request: object) -> float:
    began = time.perf_counter()
    ask(request)
    return time.perf_counter() - began


def main(run: Path, picture: Path, rounds: int) -> None:
    requests = {
        "predict one picture": PredictionRequest(run, (picture,)),
        "evaluate": EvaluationRequest((ModelReference(run),)),
    }
    for name, request in requests.items():
        found: dict[str, list[float]] = {}
        for _ in range(rounds):
            found.setdefault("own process", []).append(seconds_of(request))
            with keeping(KeptEngine()):
                for place in ("kept process, first, not ahead", "kept process, second", "kept process, third"):
                    found.setdefault(place, []).append(seconds_of(request))
            with keeping(kept := KeptEngine()):
                kept.warm()
                time.sleep(15)
                found.setdefault("kept process, first, TensorFlow imported ahead", []).append(seconds_of(request))
        for place, times in found.items():
            print(f"{name}: {place}: {median(times):.2f} s ({', '.join(f'{each:.2f}' for each in times)})")


if __name__ == "__main__":
    main(Path(sys.argv[1]), Path(sys.argv[2]), int((*sys.argv, 3)[3]))
