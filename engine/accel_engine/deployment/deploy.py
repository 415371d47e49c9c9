"""Deploys trained models: writes the folder of a version, starts or changes the server, and checks its answers."""

import shutil
import socket
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass, replace
from pathlib import Path

import psutil

from accel_engine import clock
from accel_engine.deployment.deploy_options import AUTO, TARGETS, DeployOptions
from accel_engine.deployment.deployments import (
    BESIDE,
    LOG,
    RECORD,
    DeployedVersion,
    DeployError,
    Deployment,
    changing,
    default_name,
    end_process,
    find_deployment,
    read_deployment,
    remove_other_folders,
    serve_version,
    server_process,
    write_deployment,
)
from accel_engine.deployment.server_control import (
    Cancelled,
    check_ports,
    choose_port,
    reload_server,
    require_server,
    served_version,
    server_words,
    start_server,
    stop_server,
    transport_of,
    wait_until_ready,
)
from accel_engine.deployment.sizing import (
    ServerSizing,
    Sizing,
    batch_sizes_to,
    choose,
    other_batches,
    read_sizing,
    write_sizing,
)
from accel_engine.deployment.write_version import (
    Ask,
    DeployStep,
    Tell,
    automatic_formats,
    changes_for_clients,
    write_version,
)
from accel_engine.devices.host_probe import processors
from accel_engine.errors import AccelError, ModelError, UsageError
from accel_engine.formats import format_named
from accel_engine.memory import resident_bytes
from accel_engine.model_server.access import check_tls, read_token
from accel_engine.model_server.service import (
    OutputComparison,
    Service,
    compare_outputs,
    load_examples,
    read_service,
    write_service,
)
from accel_engine.process.detached import start_detached
from accel_engine.requests.check_service import ServiceLoad
from accel_engine.requests.export_model import Export
from accel_engine.requests.protocol.model_reference import ModelReference, check_steps
from accel_engine.service_client.rest_v2 import RestV2
from accel_engine.service_client.service_load import measured_load
from accel_engine.user_paths import absolute_path, user_path
from accel_engine.words import numbers

LOAD_SECONDS = 1.0
"""The time limit of the latency that is measured once a server is ready."""


@dataclass(frozen=True, slots=True)
class Deployed:
    """A deployment that has just been started or changed, with the checks of its server."""

    deployment: Deployment
    service: Service
    comparison: OutputComparison
    """How its answers compare with the trained model's."""
    load: ServiceLoad
    """How fast it answers one connection."""
    notes: tuple[str, ...] = ()
    export: Export | None = None
    """``None`` if an earlier version is served again."""
    sizings: tuple[Sizing, ...] = ()
    """The measurements of all formats and numbers of threads, if there is a target."""

    @property
    def sizing(self) -> Sizing | None:
        """The measurements of the version that is served; ``None`` if there are none."""
        return read_sizing(self.deployment.folder(self.deployment.current))


class Deployer:
    """Deploys models.

    Args:
        ask: Asks engines.
        tell: Takes what is going on.
        is_cancelled: Whether to end, and leave all as it was.
    """

    def __init__(self, ask: Ask, tell: Tell, is_cancelled: Cancelled = lambda: False) -> None:
        self._ask, self._tell, self._is_cancelled = ask, tell, is_cancelled
        self._sizings: list[Sizing] = []

    def deploy(self, run: Path, options: DeployOptions) -> Deployed:
        """Deploy the trained model of a run under a name that no running deployment has.

        Raises:
            UsageError: The name or the port is taken.
            AccelError: The model cannot be exported or served.
        """
        check_deploy(run, options)
        name = options.name or default_name(run)
        with changing(name) as directory:
            before = read_deployment(name) if (directory / RECORD).exists() else None
            if before and server_process(directory):
                raise name_taken(name)
            port = choose_port(options.host, options.port, besides=options.grpc_port, before=before)
            if options.grpc_port:
                choose_port(options.host, options.grpc_port, "--grpc-port")
            empty = Deployment(
                name=name,
                host=options.host,
                port=port,
                grpc_port=options.grpc_port,
                threads=options.threads,
                max_queue=options.max_queue,
                token_file=_absolute(options.token_file),
                tls_certificate=_absolute(options.tls_certificate),
                tls_key=_absolute(options.tls_key),
                versions=before.versions if before else (),
                current=before.current if before else 0,
            )
            with self._version(empty, run, options) as (deployment, export):
                if options.port is None:  # another program may have taken it while the model was exported
                    port = choose_port(options.host, None, besides=options.grpc_port, before=before)
                    deployment = replace(deployment, port=port)
                write_deployment(deployment)
                try:
                    found = self._started(deployment)
                except BaseException:
                    self._restore(before, directory)
                    raise
            remove_other_folders(deployment)
            return replace(_deployed(deployment, found, export), sizings=tuple(self._sizings))

    def update(self, name: str, run: Path, options: DeployOptions) -> Deployed:
        """Let another model take over the name and the port of a deployment, once it has been checked beside.

        Args:
            name: The deployment.
            run: The run of the model.
            options: Its format, checkpoint and device count; without a device, that of the deployment is taken, and
                without both the format of its current version. The sizes of batches are always that version's.

        Raises:
            UsageError: There is no such deployment, or its server runs on another device.
            ServiceError: Its server does not answer, or has an older token.
            AccelError: The model cannot be exported or served; the one before is served on.
        """
        check_deploy(run, options)
        with changing(find_deployment(name).name) as directory:
            before, runs = read_deployment(name), server_process(directory) is not None
            if runs and options.device not in ("", before.device):
                raise UsageError(
                    f"{name} computes on {before.device}, and a running server keeps its device: leave out "
                    f"--device {options.device}, or stop it first: accel-tui deploy stop {name}"
                )
            if runs:
                served_version(transport_of(before), name)  # raises where the server could not be told either
            if options.format == AUTO and not options.device:
                options = replace(options, format=before.version.format)
            options = replace(options, device=options.device or before.device)
            served = _service_of(before)
            with self._version(before, run, options) as (deployment, export):
                folder = deployment.folder(deployment.current)
                if served:
                    _write_batches(folder, served.batch_sizes)
                if runs:
                    self._tell(DeployStep(f"starting version {deployment.current} beside"))
                    with self._beside(deployment, folder) as (beside, process, seconds):
                        self._checked(beside, folder)
                        known = Sizing(format=deployment.version.format, threads=deployment.threads)
                        write_sizing(
                            folder, replace(known, load_seconds=seconds, memory_bytes=resident_bytes(process.pid))
                        )
                found = self._taken_over(before, deployment, runs=runs)
            remove_other_folders(deployment)
            return _deployed(deployment, found, export, served)

    def back(self, name: str) -> Deployed:
        """Serve the version before the current one again.

        Raises:
            UsageError: There is no such deployment, or no version before the current one.
            DeployError: The server does not serve the version.
        """
        with changing(find_deployment(name).name) as directory:
            before = read_deployment(name)
            if not before.previous:
                raise UsageError(f"the deployment {name} has no version before {before.current}")
            deployment = replace(before, current=before.previous, previous=before.current)
            runs = server_process(directory) is not None
            served = _service_of(before)
            return _deployed(deployment, self._taken_over(before, deployment, runs=runs), before=served)

    def restart(self, name: str) -> Deployed:
        """Start the server of a deployment again, with the same version; a server that runs is ended first.

        Raises:
            UsageError: There is no such deployment, or its port is taken.
            DeployError: The server does not end or start, or its answers are not the trained model's.
        """
        require_server()
        with changing(find_deployment(name).name):
            deployment = read_deployment(name)
            stop_server(deployment, self._is_cancelled)
            check_ports(deployment)
            serve_version(deployment, deployment.current)
            return _deployed(deployment, self._started(deployment))

    @contextmanager
    def _version(self, before: Deployment, run: Path, options: DeployOptions) -> Iterator[tuple[Deployment, Export]]:
        """The deployment with a new version, whose folder is removed if the block raises."""
        number = before.next_number
        folder = before.folder(number)
        try:
            folder.mkdir(mode=0o700)
            deployment = before
            if options.target_latency is None:
                export, target = write_version(
                    run, options, options.format, folder, before.name, number, self._ask, self._tell
                )
            else:
                export, found = self.write_best(before, run, options, folder, number)
                target, deployment = found.format, replace(before, threads=found.threads)
            version = DeployedVersion(number, run.name, export.step, target, clock.now())
            device = export.device
            yield replace(deployment.with_version(version), device=device.id, environment=device.environment), export
        except BaseException:
            shutil.rmtree(folder, ignore_errors=True)
            raise

    def write_best(
        self, before: Deployment, run: Path, options: DeployOptions, folder: Path, number: int
    ) -> tuple[Export, Sizing]:
        """Write into the folder the format whose server reaches the highest rate within the target latency.

        Args:
            before: The deployment, which nobody else changes meanwhile.
            run: The directory of the run.
            options: Its format, threads and targets count.
            folder: An empty folder, or none, on the file system of the deployment.
            number: The version.

        Raises:
            DeployError: No format is within the latency, or a server does not start.
            ServiceError: A server refuses what it is asked.
        """
        latency = options.target_latency or 0.0
        names = automatic_formats(options.computes_on) if options.format == AUTO else (options.format,)
        threads = (options.threads,) if options.threads else tuple(dict.fromkeys((1, processors())))
        tried, problems, exports = before.directory / "tried", dict[str, str](), dict[str, Export]()
        shutil.rmtree(tried, ignore_errors=True)
        self._sizings = []
        try:
            for each in names:
                place = tried / each
                place.mkdir(mode=0o700, parents=True)
                try:
                    exports[each], _ = write_version(
                        run, options, each, place, before.name, number, self._ask, self._tell
                    )
                except ModelError as error:
                    problems[each] = str(error)
                    continue
                served = replace(before, environment=exports[each].device.environment)
                for count in threads:
                    self._measure(replace(served, threads=count), each, place, options, latency)
            best = choose(self._sizings, latency, problems)
            place = tried / best.format
            served = replace(before, threads=best.threads, environment=exports[best.format].device.environment)
            for largest in other_batches(best):
                _write_batches(place, batch_sizes_to(largest))
                try:
                    self._measure(served, best.format, place, options, latency)
                except AccelError as error:  # such as memory that does not hold the batch
                    self._check_cancelled()
                    self._tell(DeployStep(f"batches of {largest} cannot be measured: {error}"))
            best = choose(self._sizings, latency, problems)
            if best.largest_batch is not None:
                _write_batches(place, batch_sizes_to(best.largest_batch))
            write_sizing(place, best)
            (tried / best.format).replace(folder)
        finally:
            shutil.rmtree(tried, ignore_errors=True)
        return exports[best.format], best

    def _measure(
        self, deployment: Deployment, target: str, folder: Path, options: DeployOptions, latency: float
    ) -> None:
        """Measure a format with a number of threads and the batches of its folder."""
        largest = read_service(folder).largest_batch
        known = Sizing(format=target, threads=deployment.threads, largest_batch=largest)
        known = replace(known, target_rate=options.target_rate)
        words = f"{target} with {numbers.counted(deployment.threads or 0, 'thread')}, batches to {largest}"
        self._tell(DeployStep(f"measuring {words}"))
        with self._beside(deployment, folder) as (beside, process, seconds):
            inputs, _ = load_examples(folder)
            server = ServerSizing(transport_of(beside), deployment.name, process, inputs, deployment.max_queue)
            best = max((each.rate or 0.0 for each in self._sizings), default=0.0)
            found = server.measured(replace(known, load_seconds=seconds), latency, best)
        self._sizings.append(found)

    def _check_cancelled(self) -> None:
        """Raise if the user has cancelled the work.

        Raises:
            DeployError: The work is cancelled.
        """
        if self._is_cancelled():
            raise DeployError("ended before all was measured and checked")

    def _started(self, deployment: Deployment) -> tuple[Service, OutputComparison, ServiceLoad]:
        """Start the server of a deployment, whose link is set, and check it; it is ended if it is not right."""
        serve_version(deployment, deployment.current)
        self._tell(DeployStep("starting the server"))
        seconds = start_server(deployment, self._is_cancelled)
        try:
            folder, process = deployment.folder(deployment.current), server_process(deployment.directory)
            if read_sizing(folder) is None and process is not None:
                known = Sizing(format=deployment.version.format, threads=deployment.threads, load_seconds=seconds)
                write_sizing(folder, replace(known, memory_bytes=resident_bytes(process.pid)))
            return self._checked(deployment, folder)
        except BaseException:
            stop_server(deployment)
            raise

    def _checked(self, deployment: Deployment, folder: Path) -> tuple[Service, OutputComparison, ServiceLoad]:
        """Check the answers of a server to the examples of the folder that it serves, and how fast they come.

        Raises:
            DeployError: The answers are not the trained model's, or the user has cancelled the work meanwhile.
        """
        self._tell(DeployStep("checking its answers"))
        service = read_service(folder)
        inputs, expected = load_examples(folder)
        runtime = RestV2(transport_of(deployment), deployment.name, binary=True)
        found = compare_outputs(service, expected, runtime.run(inputs))
        if found.problem:
            raise DeployError(f"the server does not answer as the trained model: {found.problem}")
        load = measured_load(runtime, inputs, 1, LOAD_SECONDS)
        self._check_cancelled()
        return service, found, load

    @contextmanager
    def _beside(self, deployment: Deployment, folder: Path) -> Iterator[tuple[Deployment, psutil.Process, float]]:
        """A server of a folder on another port, its process, and the seconds until it was ready; the block ends it."""
        directory = deployment.directory
        beside = replace(deployment, host="127.0.0.1", port=_free_port(), grpc_port=None)
        state, log = directory / BESIDE, directory / LOG
        state.unlink(missing_ok=True)
        begins, began = log.stat().st_size if log.exists() else 0, time.monotonic()
        words = server_words(beside, folder, state)
        process = start_detached("a server", *words, log=log, environment=deployment.environment)
        try:
            wait_until_ready(process, beside, state, log, begins, self._is_cancelled)
            yield beside, psutil.Process(process.pid), time.monotonic() - began
        finally:
            end_process(process)
            state.unlink(missing_ok=True)

    def _taken_over(
        self, before: Deployment, deployment: Deployment, *, runs: bool
    ) -> tuple[Service, OutputComparison, ServiceLoad]:
        """Let another version be served, check it, and record it; the one before is served again if that fails.

        Args:
            before: The deployment with the current version.
            deployment: The same with the other version.
            runs: Whether a server is to take it over; otherwise one is started.

        Raises:
            DeployError: The server does not serve the version, or its answers are not the trained model's.
        """
        try:
            if runs:
                self._tell(DeployStep(f"version {deployment.current} takes over"))
                serve_version(deployment, deployment.current)
                reload_server(deployment, deployment.current)
                found = self._checked(deployment, deployment.folder(deployment.current))
            else:
                check_ports(before)
                found = self._started(deployment)
            write_deployment(deployment)
        except BaseException:
            serve_version(before, before.current)
            if runs:
                with suppress(AccelError):  # it has ended, or never took over
                    reload_server(before, before.current)
            else:
                stop_server(deployment)
            raise
        return found

    def _restore(self, before: Deployment | None, directory: Path) -> None:
        """Let the record be as it was."""
        if before is None:
            (directory / RECORD).unlink(missing_ok=True)
        else:
            write_deployment(before)
            serve_version(before, before.current)


def _write_batches(folder: Path, sizes: tuple[int, ...]) -> None:
    """Let the server of a folder make batches of these sizes."""
    write_service(folder, replace(read_service(folder), batch_sizes=sizes))


def check_deploy(run: Path, options: DeployOptions) -> None:
    """Raise what can be told before an engine starts.

    Raises:
        DeployError: The server's libraries are missing.
        UsageError: The token or the files of TLS cannot be used, or the run has no checkpoint of the chosen step.
        ModelError: Libraries of the format are missing.
        RunError: The run has no checkpoint.
    """
    require_server()
    if options.token_file:
        read_token(user_path(options.token_file))
    if options.tls_certificate:
        check_tls(user_path(options.tls_certificate), user_path(options.tls_key))
    check_steps((run,), options.checkpoint)
    ModelReference.of(run).check()
    if options.format != AUTO:
        file_format, precision = TARGETS[options.format]
        if missing := format_named(file_format).precision(precision).missing:
            raise ModelError(missing)


def name_taken(name: str) -> UsageError:
    """The error of a name whose deployment runs."""
    return UsageError(
        f"the deployment {name} is running: accel-tui deploy update {name} RUN lets another model take over, "
        "and --name deploys it under another name"
    )


def _deployed(
    deployment: Deployment,
    found: tuple[Service, OutputComparison, ServiceLoad],
    export: Export | None = None,
    before: Service | None = None,
) -> Deployed:
    notes = export.notes if export else ()
    if before and (changes := changes_for_clients(before, found[0])):
        notes += (
            f"clients of version {before.version} need a change: version {deployment.current} has "
            f"{'; '.join(changes)}. Back: accel-tui deploy update {deployment.name} --back",
        )
    return Deployed(deployment, *found, notes=notes, export=export)


def _service_of(deployment: Deployment) -> Service | None:
    """The description of the version that is served; ``None`` if its folder is damaged, which an update may cure."""
    with suppress(UsageError):
        return read_service(deployment.folder(deployment.current))
    return None


def _free_port() -> int:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return probe.getsockname()[1]


def _absolute(path: str) -> str:
    return str(absolute_path(user_path(path))) if path else ""
