"""Reads the state of this machine's deployments: health, requests a second, latencies, errors and memory."""

import time
from collections import deque
from collections.abc import Sequence
from dataclasses import dataclass

from accel_engine.deployment.deployments import Deployment, all_deployments, end_leftovers, read_state, server_process
from accel_engine.deployment.server_control import transport_of
from accel_engine.deployment.server_metrics import ScrapedMetrics, ServerFigures, figures_between, read_metrics
from accel_engine.errors import AccelError

ANSWER_SECONDS = 2.0
"""How long a server may take to tell its metrics."""

WINDOW = 10.0
"""Seconds that rates and latencies are of."""

COURSE = 300
"""Readings of a server that are kept."""

READY, NOT_READY, SILENT, STOPPED = "ready", "not ready", "no answer", "stopped"
"""The health of a deployment."""


@dataclass(frozen=True, slots=True)
class DeploymentStatus:
    """The present state of a deployment."""

    deployment: Deployment
    health: str
    """One of :data:`READY`, :data:`NOT_READY`, :data:`SILENT` and :data:`STOPPED`."""
    since: float | None = None
    """When its server was started, in seconds since the Unix epoch; ``None`` if none runs."""
    figures: ServerFigures | None = None
    """Its figures of the last seconds; ``None`` if it does not give them."""
    total: ServerFigures | None = None
    """The same since it was started."""
    problem: str = ""
    """Why it does not answer."""
    course: Sequence[tuple[float, ServerFigures | None]] = ()
    """The latest readings since it runs, the oldest first: a monotonic time in seconds, and the figures then, which are
    ``None`` where it did not answer."""

    @property
    def runs(self) -> bool:
        """Whether a server runs."""
        return self.health != STOPPED


class StatusReader:
    """Reads what deployments do, again and again."""

    def __init__(self) -> None:
        self._readings: dict[str, deque[tuple[float, ScrapedMetrics]]] = {}
        self._courses: dict[str, deque[tuple[float, ServerFigures | None]]] = {}
        self.problems: tuple[str, ...] = ()
        """Why some deployments cannot be read."""

    def read(self) -> Sequence[DeploymentStatus]:
        """All deployments by name; a server that does not answer takes :data:`ANSWER_SECONDS`."""
        end_leftovers()
        found, problems = all_deployments()
        self.problems = tuple(problems)
        return [self.read_one(each) for each in found]

    def read_one(self, deployment: Deployment) -> DeploymentStatus:
        """Read the present state of a deployment."""
        if server_process(deployment.directory) is None:
            self._readings.pop(deployment.name, None)
            self._courses.pop(deployment.name, None)
            return DeploymentStatus(deployment, STOPPED)
        state = read_state(deployment.directory)
        since = state.started if state else None
        course = self._courses.setdefault(deployment.name, deque(maxlen=COURSE))
        try:
            metrics = read_metrics(transport_of(deployment, ANSWER_SECONDS))
        except AccelError as error:
            course.append((time.monotonic(), None))
            return DeploymentStatus(deployment, SILENT, since, problem=str(error), course=tuple(course))
        now = time.monotonic()
        readings = self._readings.setdefault(deployment.name, deque())
        while len(readings) > 1 and readings[1][0] <= now - WINDOW:
            readings.popleft()
        figures = figures_between(readings[0][1], metrics, now - readings[0][0]) if readings else None
        readings.append((now, metrics))
        if figures:
            course.append((now, figures))
        age = max(time.time() - since, 1e-3) if since else 0.0
        total = figures_between(ScrapedMetrics(), metrics, age)
        health = READY if total.is_ready else NOT_READY
        return DeploymentStatus(deployment, health, since, figures, total, course=tuple(course))
