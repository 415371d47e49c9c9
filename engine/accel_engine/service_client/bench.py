"""Measures the models of services, any program's, in the scenarios of ``bench``; without TensorFlow."""

import zipfile
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from functools import partial
from typing import Any

import numpy as np

from accel_engine.errors import ModelError, UsageError
from accel_engine.inference.bench_runtime import BenchSettings, RuntimeBench, random_examples
from accel_engine.inference.candidate import Candidate, Setup
from accel_engine.inference.measurement.connections import ArrivalConnections, ConnectionsLoop
from accel_engine.inference.measurement.rate_search import FEWEST_REQUESTS, Schedule, arrivals_at, highest_rate
from accel_engine.inference.measurement.stability import ClosedLoop, Measured, measure
from accel_engine.inference.measurement.window import SECOND
from accel_engine.inference.runtime import Arrays, check_inputs
from accel_engine.model_server.service import EXAMPLES, INPUTS
from accel_engine.plan.options import default_of
from accel_engine.requests.bench_models import BenchOptions
from accel_engine.requests.check_service import CheckOptions
from accel_engine.service_client.find_service import find_service, parse_url, served_run
from accel_engine.service_client.service_load import single_requests
from accel_engine.service_client.service_runtime import ServiceRuntime
from accel_engine.service_client.transport import ServiceError, UnreachableError, patiently, read_client_token
from accel_engine.user_paths import user_path

OF_MODELS = ("devices", "xla", "precisions", "checkpoint")
"""Options of models that are measured in a process here."""


@dataclass(frozen=True, slots=True)
class ServiceTarget:
    """A service that is to be measured."""

    url: str
    runtime: ServiceRuntime
    examples: Arrays
    """Raw examples, an array ``[examples, ...]`` for each input."""


def check_bench_options(options: BenchOptions) -> None:
    """Check that the options of a bench suit a service.

    Raises:
        UsageError: An option is for models that are measured here; the message names it.
    """
    for name in OF_MODELS:
        if getattr(options, name) != default_of(BenchOptions, name):
            flag = "precision" if name == "precisions" else name
            raise UsageError(
                f"--{flag} is for models that are measured here, and the service has its own: leave it out"
            )
    if options.scenario == "server" and options.batch_sizes is not None:
        raise UsageError("in the scenario server, a service makes its batches itself: leave out --batch-sizes")


def find_target(url: str, options: BenchOptions, service: CheckOptions) -> ServiceTarget:
    """Find a service, and the examples that it is sent: from ``--data``, or random ones by its metadata.

    Raises:
        ServiceError: The service cannot be reached, or has no such model.
        UsageError: The text is not a URL, or the examples do not fit the model.
    """
    parsed, examples = parse_url(url), _read_examples(options.data) if options.data else None
    access = {"token": read_client_token(service.token_file), "ca": service.ca}
    told = None if parsed.model else served_run(parsed, **access)
    found = find_service(parsed, (told.name,) if told else (), service.protocol, **access)
    if examples is not None:
        try:
            check_inputs(examples, found.inputs)
        except ModelError as error:
            raise UsageError(f"{options.data} is not for {found.model}: {error}") from error
        found.run({name: array[:1] for name, array in examples.items()})  # which finds how it takes missing numbers
        return ServiceTarget(url, found, examples)
    try:
        return ServiceTarget(url, found, random_examples(found.inputs, options.seed))
    except ModelError as error:
        raise UsageError(
            f"{error}: a file .npz with an array [examples, ...] for each input, or a folder that was deployed"
        ) from error


def _read_examples(data: str) -> dict[str, Any]:
    """The inputs in a file of NumPy, by their names, or in the examples of a folder that is served."""
    path = user_path(data)
    path = path / EXAMPLES if path.is_dir() else path
    try:
        with np.load(path, allow_pickle=False) as arrays:
            inputs = [name for name in arrays.files if name.startswith(INPUTS)]
            found = {name.removeprefix(INPUTS): arrays[name] for name in inputs or arrays.files}
    except OSError as error:
        raise UsageError(f"cannot read {path}: {error.strerror or error}") from error
    except (ValueError, AttributeError, zipfile.BadZipFile) as error:
        raise UsageError(f"{path} is not an .npz file of arrays") from error
    return {name: array.astype(object) if array.dtype.kind == "U" else array for name, array in found.items()}


def measure_service(target: ServiceTarget, options: BenchOptions, connections: int) -> Iterator[Candidate]:
    """Measure a service; gives each candidate when it has been measured.

    Args:
        target: The service.
        options: How.
        connections: Connections at once, in the scenarios offline and server.

    Raises:
        UnreachableError: The service no longer answers.
    """
    url, runtime = parse_url(target.url), target.runtime
    setup = Setup(
        model=runtime.model or url.address, format=runtime.name, device=f"{url.scheme}://{url.address}", xla=False
    )
    settings = BenchSettings(
        scenario=options.scenario,
        batch_sizes=(1,) if options.scenario == "server" else options.batch_sizes,
        seconds=options.seconds,
        target_latency=options.target_latency,
        seed=options.seed,
    )
    yield from _ServiceBench(setup, runtime, target.examples, settings, connections).candidates()


class _ServiceBench(RuntimeBench):
    """Sends requests that were made before, so that the client's own time is not in the latencies."""

    def __init__(
        self, setup: Setup, service: ServiceRuntime, examples: Arrays, settings: BenchSettings, connections: int
    ) -> None:
        super().__init__(setup, service, examples, settings)
        self._service, self._connections = service, connections

    def _send(self, request: Any) -> Any:
        """The answer to a request; one that a busy service refuses is sent again, which counts as its time.

        Raises:
            UnreachableError: The service does not answer.
            ModelError: The service refuses the request.
        """
        try:
            return patiently(self._service.send, request)
        except UnreachableError:
            raise
        except ServiceError as error:
            raise ModelError(str(error)) from error

    def _first(self, batch: Arrays) -> float:
        """Seconds of the first request, whose answer must be readable."""
        request, start = self._service.prepare(batch), self._timer.now()
        answer = self._send(request)
        seconds = (self._timer.now() - start) / SECOND
        self._service.parse(answer)
        return seconds

    def _closed(self, batches: Sequence[Arrays], size: int) -> tuple[Measured, float, float | None]:
        """Measure requests one after the other, in the scenario offline over several connections."""
        requests = [self._service.prepare(each) for each in batches]
        if self._settings.scenario == "offline":
            load = measure(ConnectionsLoop(self._send, requests, self._connections, size), self._settings.seconds)
            return replace(load, percentiles={}), load.throughput, None
        loop = ClosedLoop(self._send, requests, size, timer=self._timer)
        found = measure(loop, self._settings.seconds, timer=self._timer)
        return found, found.throughput, None

    def _server(self, size: int) -> tuple[Measured, float, float | None]:
        """Find the highest rate within the bound; returns its measurements and the rate."""
        settings, bound = self._settings, self._settings.target_latency
        assert bound is not None  # noqa: S101 (which the command checks)
        requests = single_requests(self._service, self._examples)

        def make_loop(schedule: Schedule) -> ArrivalConnections:
            return ArrivalConnections(self._send, requests, schedule, self._connections)

        load = measure(ConnectionsLoop(self._send, requests, self._connections), settings.seconds)
        found = highest_rate(
            partial(arrivals_at, make_loop=make_loop, bound=bound, seconds=settings.seconds, seed=settings.seed),
            load.throughput,
            bound,
            FEWEST_REQUESTS / settings.seconds,
        )
        return found.measured, found.rate, None
