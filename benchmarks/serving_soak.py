"""Servers of every task under many requests: ``python benchmarks/serving_soak.py REQUESTS [FOLDER ...]``.

Each folder (``service.json``, a model, held-out examples) is served, and gets REQUESTS of one to four held-out examples
over eight connections, over each protocol in turns. Every answer is compared with the trained model's, within the
tolerance of the format. The memory of both processes is read twenty times: neither may grow by 8 MiB after the first.
Without folders, a small model is trained for every task of the catalogue, and exported in the formats that serve it.
The clients take a part of the same processors: the rates are no measure of the server.
"""

import argparse
import json
import os
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import numpy as np
import psutil

sys.path.insert(0, str(Path(__file__).parents[1] / "tests"))

from accel_engine.inference.measurement.connections import in_threads
from accel_engine.model_server.service import Service, compare_outputs, load_examples, read_service
from accel_engine.service_client.find_service import find_service, parse_url
from combinations.served import MODEL_PATHS, SERVED

PROTOCOLS = ("v1", "v2", "v2-binary", "grpc", "grpc-v1")
CONNECTIONS, PARTS, LARGEST, GROWTH = 8, 20, 4, 8 << 20


def make_folders(place: Path, kinds: list[str], formats: list[str]) -> Iterator[Path]:
    """Train a model of each kind, and write it in each format that serves it."""
    from accel_engine.model_export.export_options import target_at
    from accel_engine.model_export.service_folder import write_service_folder
    from accel_engine.plan import Plan
    from accel_engine.process.start_run import prepare_run, start_on_engine
    from accel_engine.requests.protocol.model_reference import ModelReference
    from accel_engine.requests.write_service import ServiceRequest
    from combinations.materials import MATERIALS, of_task

    os.environ["ACCEL_TUI_HOME"] = str(place / "home")
    for kind in kinds:
        data = place / kind
        data.mkdir()
        material = MATERIALS[kind](data) if kind in MATERIALS else of_task(kind, data)
        run = prepare_run(Plan(**{"batch_size": 8, "epochs": 1, **material.fields}))
        if start_on_engine(run, None).wait():
            raise SystemExit(f"the training of {kind} failed: {run}")
        for form in filter(formats.__contains__, SERVED[kind].split()):
            folder, work = place / f"{kind}-{form}", place / f"{kind}-{form}-work"
            folder.mkdir()
            work.mkdir()
            request = ServiceRequest(
                *(ModelReference.of(run), (target_at(folder / MODEL_PATHS[form], form, "none"),), "auto"),
                folder=work,
                service_folder=folder,
                held_out=32,
            )
            (written,) = write_service_folder(request).exported
            if written.problem:
                raise SystemExit(f"{kind} as {form}: {written.problem}")
            yield folder


@contextmanager
def serving(folder: Path) -> Iterator[tuple[psutil.Process, int, int]]:
    """A server of a folder: its process, and its ports of HTTP and gRPC."""
    with tempfile.TemporaryDirectory() as place:
        state = Path(place, "state.json")
        command = [sys.executable, "-m", "accel_engine.model_server", str(folder), "--port", "0", "--grpc-port", "0"]
        process = subprocess.Popen(
            [*command, "--max-queue", "4096", "--state-file", str(state)], stderr=subprocess.DEVNULL
        )
        try:
            while not state.exists():
                assert process.poll() is None, "the server has ended"
                time.sleep(0.05)
            told = json.loads(state.read_text())
            yield psutil.Process(process.pid), told["port"], told["grpc_port"]
        finally:
            process.terminate()
            process.wait(60)


def url_of(protocol: str, service: Service, ports: tuple[int, int]) -> str:
    if protocol.startswith("grpc"):
        return f"grpc://127.0.0.1:{ports[1]}/{service.name}"
    return f"http://127.0.0.1:{ports[0]}/{protocol[:2]}/models/{service.name}"


def wait_until_ready(url: str) -> None:
    from accel_engine.service_client.transport import ServiceError, Transport

    while True:
        try:
            Transport(url).get("/readyz")
        except ServiceError:
            time.sleep(0.1)
        else:
            return


class Asked:
    """Asks a server over one protocol, and compares each answer.

    Attributes:
        requests: How many it has sent.
        wrong: How many answers were wrong.
        worst: The largest difference, in parts of the output's scale.
        seconds: How long they took.
    """

    def __init__(self, folder: Path, url: str, protocol: str) -> None:
        self._service = read_service(folder)
        self._inputs, self._expected = load_examples(folder)
        self._runtime = find_service(parse_url(url), (), protocol)
        self._lock = threading.Lock()
        self.requests, self.wrong, self.worst, self.seconds = 0, 0, 0.0, 0.0

    def ask(self, part: int, count: int) -> None:
        """Send a number of requests over each connection; ``part`` is the seed."""
        began, examples = time.perf_counter(), len(next(iter(self._inputs.values())))

        def work(place: int) -> None:
            draws = np.random.default_rng((place, part))
            rows, found = [], []
            for _ in range(count):
                rows.append(draws.integers(0, examples, 1 + int(draws.integers(LARGEST))))
                found.append(self._runtime.run({name: array[rows[-1]] for name, array in self._inputs.items()}))
            with self._lock:
                self.requests += count
                self._compare(rows, found)

        in_threads(work, CONNECTIONS)
        self.seconds += time.perf_counter() - began

    def _compare(self, rows: list[np.ndarray], found: list[dict[str, np.ndarray]]) -> None:
        """Compare answers with the trained model's; one by one if they are not all right."""
        chosen = np.concatenate(rows)
        together = {name: np.concatenate([each[name] for each in found]) for name in found[0]}
        same = compare_outputs(self._service, {name: array[chosen] for name, array in self._expected.items()}, together)
        self.worst = max(self.worst, same.largest)
        if same.problem and len(found) > 1:
            for each, answer in zip(rows, found, strict=True):
                self._compare([each], [answer])
        else:
            self.wrong += bool(same.problem)


def soak(folder: Path, requests: int, protocols: list[str]) -> bool:
    """Ask a server over all protocols in turns; prints a line for each, and tells whether all is right."""
    service = read_service(folder)
    with serving(folder) as (process, port, grpc_port):
        wait_until_ready(f"http://127.0.0.1:{port}")
        asked = {each: Asked(folder, url_of(each, service, (port, grpc_port)), each) for each in protocols}
        count = -(-requests // (len(protocols) * CONNECTIONS * PARTS))
        sizes: list[list[int]] = []
        for part in range(PARTS):
            for each in asked.values():
                each.ask(part, count)
            sizes.append([one.memory_info().rss for one in (process, *process.children())])
            sent, wrong = (
                sum(values) for values in zip(*((one.requests, one.wrong) for one in asked.values()), strict=True)
            )
            memory = " and ".join(f"{size / 2**20:.1f}" for size in sizes[-1])
            print(f"{folder.name}: {sent:,} requests, {wrong} wrong, {memory} MiB", file=sys.stderr, flush=True)
    for protocol, each in asked.items():
        rate = each.requests / each.seconds
        print(f"| {folder.name} | {protocol} | {each.requests:,} | {each.wrong} | {each.worst:.1g} | {rate:,.0f} |")
    grown = [last - first for first, last in zip(sizes[0], sizes[-1], strict=True)]
    is_flat = max(grown) < GROWTH
    memory = " and ".join(
        f"{last / 2**20:.0f} ({more / 2**20:+.1f})" for last, more in zip(sizes[-1], grown, strict=True)
    )
    print(f"| {folder.name} | MiB of both processes (growth): {memory} | | | | |", flush=True)
    return is_flat and not any(each.wrong for each in asked.values())


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("requests", type=int, help="of each folder")
    parser.add_argument("folders", type=Path, nargs="*")
    parser.add_argument("--protocols", default=",".join(PROTOCOLS))
    parser.add_argument("--kinds", default=",".join(SERVED))
    parser.add_argument("--formats", default=",".join(MODEL_PATHS))
    arguments = parser.parse_args()
    with tempfile.TemporaryDirectory() as place:
        folders = arguments.folders or make_folders(
            Path(place), arguments.kinds.split(","), arguments.formats.split(",")
        )
        print("| model | protocol | requests | wrong | largest difference | requests/s |\n|---|---|---|---|---|---|")
        right = [soak(folder, arguments.requests, arguments.protocols.split(",")) for folder in folders]
    if not all(right):
        raise SystemExit("answers are wrong, or memory grows")


if __name__ == "__main__":
    os.environ.setdefault("TF_CPP_MIN_LOG_LEVEL", "2")
    os.environ.setdefault("CUDA_VISIBLE_DEVICES", "")
    main()
