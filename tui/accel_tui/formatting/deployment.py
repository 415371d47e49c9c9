"""Services, as text: how one compares with a trained model, and the deployments of this machine."""

import shlex
from collections.abc import Iterator
from dataclasses import asdict
from typing import Any

from accel_engine.deploy_folder.client_examples import EXAMPLE, MEDIA_TYPES, write_client_examples
from accel_engine.deploy_folder.deploy_to_folder import WrittenFolder
from accel_engine.deployment.deploy import Deployed
from accel_engine.deployment.deployments import Deployment
from accel_engine.deployment.sizing import Sizing
from accel_engine.deployment.status import DeploymentStatus
from accel_engine.requests.check_service import ServiceCheck, ServiceLoad
from accel_engine.words import numbers
from accel_tui.formatting.model_export import model_row
from accel_tui.formatting.table_columns import ResultTable


def check_lines(found: ServiceCheck) -> Iterator[str]:
    """Lines on the comparison with the trained model, and the speed of the service."""
    version = f", version {found.version}" if found.version else ""
    by = ", ".join(filter(None, (found.server, found.platform)))
    yield f"{found.model}{version}, over {found.protocol}{f' ({by})' if by else ''}"
    examples = f"{found.examples:,} " if found.examples else ""
    yield f"compared with {found.name} at step {found.step:,} on {examples}{found.split} examples"
    yield verdict(found)
    for each in found.loads:
        stable = "" if each.is_stable else ", not stable yet"
        yield (
            f"{numbers.counted(each.connections, 'connection')}: {numbers.compact(float(each.rate))} requests/s, "
            f"p50 {numbers.latency(each.p50)}, p99 {numbers.latency(each.p99)}{stable}"
        )


def verdict(found: ServiceCheck) -> str:
    """Whether the service answers as the trained model."""
    if found.served.problem:
        return f"not equal: {found.served.problem}"
    value = found.served.mean if found.by_mean else found.served.largest
    name = "mean" if found.by_mean else "largest"
    return f"equal: the {name} difference is {value or 0:.2g}, and {found.tolerance:g} is the tolerance"


def check_header(found: ServiceCheck) -> tuple[str, ...]:
    """The titles of the columns of :func:`check_rows`."""
    return ("MODEL", *(name.upper() for name in found.original.metrics), "DIFFERENCE", "LATENCY")


def check_rows(found: ServiceCheck) -> list[tuple[str, ...]]:
    """The trained model and the service, side by side."""
    metrics = tuple(found.original.metrics)
    rows = (
        model_row(each, metrics, is_original=each is found.original, models=(found.original, found.served))
        for each in (found.original, found.served)
    )
    return [(*row[: 2 + len(metrics)], row[-2]) for row in rows]


def check_values(found: ServiceCheck) -> dict[str, Any]:
    """A check for ``--json``."""
    return {
        "run": found.name,
        "step": found.step,
        "split": found.split,
        "examples": found.examples,
        "protocol": found.protocol,
        "model": found.model,
        "version": found.version or None,
        "platform": found.platform or None,
        "server": found.server or None,
        "url": found.served.path,
        "equal": not found.served.problem,
        "problem": found.served.problem or None,
        "tolerance": found.tolerance,
        "largest_difference": found.served.largest,
        "mean_difference": found.served.mean,
        "metrics": found.served.metrics,
        "trained_metrics": found.original.metrics,
        "latency": found.served.latency,
        "loads": [
            {
                "connections": each.connections,
                "rate": each.rate,
                "p50": each.p50,
                "p99": each.p99,
                "stable": each.is_stable,
            }
            for each in found.loads
        ],
    }


HEADER = ("NAME", "RUN", "VERSION", "HEALTH", "REQUESTS/S", "P50", "P99", "ERRORS", "MEMORY", "SINCE", "URL")
"""The titles of the columns of :func:`status_row`."""


def status_row(status: DeploymentStatus, now: float) -> tuple[str, ...]:
    """The state of a deployment, one text per column; latencies and errors are since its server was started.

    Args:
        status: The deployment.
        now: Seconds since the Unix epoch.
    """
    deployment, figures, total = status.deployment, status.figures, status.total
    return (
        deployment.name,
        deployment.version.run,
        str(deployment.current),
        status.health,
        numbers.compact(float(figures.rate)) if figures else "",
        _latency(total.p50 if total else None),
        _latency(total.p99 if total else None),
        f"{total.failed:,}" if total else "",
        numbers.size(total.memory) if total and total.memory else "",
        numbers.ago(now - status.since) if status.since else "",
        deployment.url,
    )


def _latency(seconds: float | None) -> str:
    return "" if seconds is None else numbers.latency(seconds)


def status_values(status: DeploymentStatus) -> dict[str, Any]:
    """A deployment for ``--json``."""
    deployment, figures, total = status.deployment, status.figures, status.total
    return {
        "name": deployment.name,
        "health": status.health,
        "problem": status.problem or None,
        "url": deployment.url,
        "grpc_port": deployment.grpc_port,
        "version": deployment.current,
        "previous": deployment.previous or None,
        "run": deployment.version.run,
        "step": deployment.version.step,
        "format": deployment.version.format,
        "since": status.since,
        "rate": figures.rate if figures else None,
        "p50": total.p50 if total else None,
        "p99": total.p99 if total else None,
        "batch": total.batch if total else None,
        "queue": total.queue if total else None,
        "requests": total.requests if total else None,
        "errors": total.failed if total else None,
        "memory": total.memory if total else None,
        "directory": str(deployment.directory),
    }


def deployed_lines(found: Deployed) -> Iterator[str]:
    """Lines on a deployment: its comparison with the trained model, its speed, and how to ask it."""
    deployment, version, service = found.deployment, found.deployment.version, found.service
    yield f"{deployment.name}, version {version.number}: {version.run} at step {version.step:,} as {version.format}"
    yield equality(found)
    if service.metrics:
        values = ", ".join(f"{key} {numbers.metric(value)}" for key, value in service.metrics.items())
        yield f"metrics on the {service.split} examples: {values}"
    load = found.load
    yield (
        f"one connection: p50 {numbers.latency(load.p50)}, p99 {numbers.latency(load.p99)}, "
        f"{numbers.compact(float(load.rate))} requests/s"
    )
    if found.sizings:
        yield from _sizing_lines(found.sizing)
    yield ""
    urls = _service_urls(deployment)
    width = max(map(len, urls)) + 2
    yield from (f"{what:{width}}{url}" for what, url in urls.items())
    yield ""
    yield example_command(deployment)


def equality(found: Deployed) -> str:
    """How far the server's answers are from the trained model's."""
    service = found.service
    value = found.comparison.mean if service.model.by_mean else found.comparison.largest
    word = "mean" if service.model.by_mean else "largest"
    return (
        f"equal to the trained model on {service.examples} {service.split} examples: the {word} difference is "
        f"{value:.2g}, and {service.model.tolerance:g} is the tolerance"
    )


def _sizing_lines(sizing: Sizing | None) -> Iterator[str]:
    """Lines on the measured choice, and how many machines the target rate takes; none without a target."""
    if sizing is None or not sizing.rate or sizing.target_latency is None:
        return
    yield (
        f"{_served(sizing)}: {numbers.compact(float(sizing.rate))} requests/s within "
        f"{numbers.latency(sizing.target_latency)} at p99, over {sizing.connections} connections"
    )
    parts = [f"{sizing.cores:.2g} processors busy"] if sizing.cores is not None else []
    parts += [f"{numbers.size(sizing.memory_bytes)} of memory"] if sizing.memory_bytes else []
    parts += [f"ready after {numbers.span(sizing.load_seconds)}"] if sizing.load_seconds else []
    yield f"there, {', '.join(parts)}; the clients ran on this machine, too"
    if sizing.replicas and sizing.target_rate:
        machines = "1 machine" if sizing.replicas == 1 else f"{sizing.replicas:,} machines"
        yield f"{sizing.target_rate:g} requests/s take {machines} like this one, without headroom"


SIZING_HEADER = (
    "FORMAT",
    "THREADS",
    "MAX BATCH",
    "REQUESTS/S",
    "P50",
    "P99",
    "MEAN BATCH",
    "CORES",
    "MEMORY",
    "READY",
    "",
)


def sizing_rows(found: Deployed) -> list[tuple[str, ...]]:
    """The measurements of each format and number of threads, one text per column of :data:`SIZING_HEADER`."""
    best = max((each.rate or 0.0 for each in found.sizings), default=0.0)
    return [
        (
            each.format,
            str(each.threads or ""),
            str(each.largest_batch or ""),
            numbers.compact(float(each.rate)) if each.rate else "slower" if best else "none",
            _latency(each.p50),
            _latency(each.p99),
            f"{each.batch:.1f}" if each.batch is not None else "",
            f"{each.cores:.2g}" if each.cores is not None else "",
            numbers.size(each.memory_bytes) if each.memory_bytes else "",
            numbers.span(each.load_seconds) if each.load_seconds else "",
            "chosen" if each.rate and each.rate == best else "",
        )
        for each in found.sizings
    ]


def _served(sizing: Sizing) -> str:
    threads = f" with {numbers.counted(sizing.threads, 'thread')}" if sizing.threads else ""
    return f"{sizing.format}{threads}"


def _service_urls(deployment: Deployment) -> dict[str, str]:
    """Where a server is asked, by what for."""
    name, url = deployment.name, deployment.url
    grpc = {"gRPC": f"{deployment.host}:{deployment.grpc_port}"} if deployment.grpc_port else {}
    return {
        "page": f"{url}/",
        "files": f"{url}/predict",
        "v2": f"{url}/v2/models/{name}/infer",
        "v1": f"{url}/v1/models/{name}:predict",
        **grpc,
        "metrics": f"{url}/metrics",
    }


def deployed_tables(found: Deployed, command: str) -> Iterator[ResultTable]:
    """Tables of a deployment: its speed, and how to ask it, with a command for that."""
    version, service, load = found.deployment.version, found.service, found.load
    metrics = service.metrics
    yield ResultTable(
        ("VERSION", "RUN", "STEP", "FORMAT", *(name.upper() for name in metrics), "P50", "P99", "REQUESTS/S"),
        [
            (
                str(version.number),
                version.run,
                f"{version.step:,}",
                version.format,
                *map(numbers.metric, metrics.values()),
                numbers.latency(load.p50),
                numbers.latency(load.p99),
                numbers.compact(float(load.rate)),
            )
        ],
        note="latencies and rate of one connection",
    )
    yield ResultTable(("FOR", "URL"), list(_service_urls(found.deployment).items()), note=command)


LOAD_HEADER = ("CONNECTIONS", "REQUESTS/S", "P50", "P99", "STABLE")


def load_row(load: ServiceLoad) -> tuple[str, ...]:
    """How fast a service answers, one text per column of :data:`LOAD_HEADER`."""
    return (
        str(load.connections),
        numbers.compact(float(load.rate)),
        numbers.latency(load.p50),
        numbers.latency(load.p99),
        "yes" if load.is_stable else "no",
    )


def example_command(deployment: Deployment) -> str:
    """A command that asks the server for one held-out example, which is written into the folder of the version.

    The example is a file where one is natural, such as an image or a table, else JSON.
    """
    folder = deployment.folder(deployment.current)
    examples = folder / "example"
    try:
        examples.mkdir(exist_ok=True)
        name = write_client_examples(folder, examples)
    except OSError:
        return f"curl{_access(deployment)} {deployment.url}/v2/models/{deployment.name}"
    path = examples / (name or EXAMPLE)
    kind = MEDIA_TYPES.get(path.suffix, "application/json")
    url = f"{deployment.url}/predict" if name else f"{deployment.url}/v2/models/{deployment.name}/infer"
    return f"curl{_access(deployment)} -H 'Content-Type: {kind}' --data-binary @{shlex.quote(str(path))} {url}"


def _access(deployment: Deployment) -> str:
    """The options of curl for a token, and for the certificate of the server."""
    token = ' -H "Authorization: Bearer $TOKEN"' if deployment.token_file else ""
    return token + (f" --cacert {shlex.quote(deployment.tls_certificate)}" if deployment.tls_certificate else "")


def deployed_values(found: Deployed) -> dict[str, Any]:
    """A deployment for ``--json``."""
    deployment, version, service, compared = found.deployment, found.deployment.version, found.service, found.comparison
    return {
        "name": deployment.name,
        "url": deployment.url,
        "grpc_port": deployment.grpc_port,
        "version": version.number,
        "run": version.run,
        "step": version.step,
        "format": version.format,
        "equal": not compared.problem,
        "largest_difference": compared.largest,
        "mean_difference": compared.mean,
        "tolerance": service.model.tolerance,
        "metrics": service.metrics,
        "p50": found.load.p50,
        "p99": found.load.p99,
        "rate": found.load.rate,
        "sizing": _sizing_values(found.sizing),
        "measured": [asdict(each) for each in found.sizings],
        "directory": str(deployment.directory),
    }


def folder_lines(found: WrittenFolder) -> Iterator[str]:
    """A folder that was written, and what was measured of its server."""
    service, measured = found.facts.service, found.facts.measured
    yield f"{found.path}: {service.name} for {found.target}, {service.model.format}, {numbers.size(service.model.size)}"
    if measured is not None:
        memory = f", {numbers.size(measured.memory_bytes)} of memory" if measured.memory_bytes else ""
        yield (
            f"its server answers as the trained model: the largest difference on {service.examples} examples is "
            f"{measured.largest:.2g}, and {service.model.tolerance:g} is the tolerance"
        )
        yield (
            f"{numbers.counted(measured.connections, 'connection')}, {numbers.counted(measured.threads, 'thread')}: "
            f"{numbers.compact(float(measured.rate))} requests/s, p50 {numbers.latency(measured.p50)}, "
            f"p99 {numbers.latency(measured.p99)}; ready after {measured.load_seconds:.1f} s{memory}"
        )
    yield from _sizing_lines(found.facts.sizing)
    yield f"{found.path / 'README.md'} says how to start it"


def folder_values(found: WrittenFolder) -> dict[str, Any]:
    """A folder that was written, for ``--json``."""
    service = found.facts.service
    return {
        "path": str(found.path),
        "for": found.target,
        "name": service.name,
        "run": service.run,
        "step": service.step,
        "format": service.model.format,
        "metrics": service.metrics,
        "measured": found.facts.measured and asdict(found.facts.measured),
        "sizing": _sizing_values(found.facts.sizing),
    }


def _sizing_values(sizing: Sizing | None) -> dict[str, Any] | None:
    return None if sizing is None else {**asdict(sizing), "replicas": sizing.replicas}
