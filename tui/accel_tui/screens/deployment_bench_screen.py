"""Bench of a deployment: how fast its server answers, by the number of connections."""

from collections.abc import Sequence
from dataclasses import dataclass

from textual.app import ComposeResult

from accel_engine.deployment.deployments import Deployment, read_deployment
from accel_engine.errors import UsageError
from accel_engine.plan.options import OptionSpec, option
from accel_engine.requests.bench_service import BenchServiceRequest, ServiceLoads
from accel_engine.requests.check_service import MeasuringService, ServiceLoad
from accel_engine.service_client.transport import read_client_token
from accel_engine.words import numbers
from accel_tui.formatting.deployment import LOAD_HEADER, load_row
from accel_tui.formatting.table_columns import ResultTable
from accel_tui.screens.job import Job
from accel_tui.screens.job_screen import JobScreen
from accel_tui.widgets.jobs.option_form import OptionForm
from accel_tui.widgets.text_table import ResultTables

MOST_CONNECTIONS = 256
"""Connections at once at most: each is a thread."""


def _read_connections(text: str) -> tuple[int, ...]:
    words = [word.strip() for word in text.split(",")]
    if not all(word.isdecimal() and 1 <= int(word) <= MOST_CONNECTIONS for word in words):
        raise UsageError(
            f"{text!r} are not numbers of connections: give some from 1 to {MOST_CONNECTIONS}, such as 1,8"
        )
    return tuple(dict.fromkeys(map(int, words)))


@dataclass(frozen=True, slots=True, kw_only=True)
class ServerBenchOptions:
    """How a server is measured."""

    connections: tuple[int, ...] = option(
        (1, 4, 16, 64), OptionSpec("Connections at once, one number after the other.", tuple, read=_read_connections)
    )
    seconds: float = option(
        3.0, OptionSpec("Time limit of each; ends earlier when it is stable.", float, minimum=0.1, maximum=3600)
    )


class DeploymentBenchScreen(JobScreen):
    """Measures a deployment's server with its held-out examples, one in each request.

    Args:
        deployment: The deployment.
    """

    NOUN = "the measurement"
    BINDING_GROUP_TITLE = "Bench"

    def __init__(self, deployment: Deployment) -> None:
        super().__init__(f"Bench {deployment.name}")
        self._deployment = deployment
        self._loads: list[ServiceLoad] = []

    def make_form(self) -> OptionForm:
        """Connections and time."""
        return OptionForm(ServerBenchOptions, ("connections", "seconds"))

    def compose_result(self) -> ComposeResult:
        yield ResultTables(id="result")

    def prepare(self, options: ServerBenchOptions) -> BenchServiceRequest:
        """The request to an engine process: it has other threads than this program."""
        deployment = read_deployment(self._deployment.name)
        return BenchServiceRequest(
            f"{deployment.url}/v2/models/{deployment.name}",
            deployment.folder(deployment.current),
            options.connections,
            options.seconds,
            read_client_token(deployment.token_file),
            deployment.tls_certificate,
        )

    def run(self, job: Job, prepared: BenchServiceRequest) -> ServiceLoads:
        """Measure the server."""
        return job.ask(prepared)

    def begin(self, prepared: BenchServiceRequest) -> None:
        """Forget what was measured before."""
        self._loads = []
        self.draw()

    def take(self, part: MeasuringService | ServiceLoad) -> None:
        """Take note of what was measured."""
        if isinstance(part, ServiceLoad):
            self._loads.append(part)
        else:
            self.progress.show(f"measuring {numbers.counted(part.connections, 'connection')}")

    def draw(self) -> None:
        """Show what was measured."""
        rows = [load_row(each) for each in self._loads]
        self.query_one(ResultTables).show([ResultTable(LOAD_HEADER, rows)])

    async def finish(self, found: ServiceLoads | None) -> Sequence[str]:
        """Tell the highest rate."""
        if not self._loads:
            return ()
        best = max(self._loads, key=lambda each: each.rate)
        return (
            f"{numbers.compact(float(best.rate))} requests/s over {numbers.counted(best.connections, 'connection')}, "
            f"p99 {numbers.latency(best.p99)}; the clients ran on this machine, too",
        )
