"""Deployments screen: the models that this machine serves, and what each does now."""

import asyncio
import math
import time
from collections.abc import Callable, Hashable, Sequence
from dataclasses import replace
from functools import partial
from typing import ClassVar

from textual import getters, on, work
from textual.app import ComposeResult
from textual.binding import Binding, BindingType
from textual.containers import Container, Horizontal
from textual.content import Content
from textual.events import ScreenResume
from textual.widgets import Static

from accel_engine.deployment.deploy import Deployer
from accel_engine.deployment.deployments import Deployment, remove_deployment
from accel_engine.deployment.server_control import stop_server
from accel_engine.deployment.status import READY, DeploymentStatus, StatusReader
from accel_engine.process.engine_call import ask
from accel_engine.run.runs.listing import thinned
from accel_engine.text import printable
from accel_engine.words import numbers
from accel_tui.app_protocol import Screens, app_of, open_screen
from accel_tui.formatting.table_columns import ALL_ROOM, Column
from accel_tui.formatting.text import sparkline
from accel_tui.screens.asking import CANCEL, DELETE, Answer, AskingScreen, QuestionScreen, awaiting, copy_text
from accel_tui.widgets.deployment_view import HEALTH_COLOURS, DeploymentCard, DeploymentCharts
from accel_tui.widgets.key_bar import KeyBar, TopBar
from accel_tui.widgets.table import RowDetails, Table
from accel_tui.widgets.visibility import is_covered

INTERVAL = 1.0
"""Seconds between two readings of all servers."""

EMPTY = (
    "Nothing is deployed yet.\n\n"
    "Press r, choose a run with a trained model, and press D.\n"
    "A server of this machine then answers requests for predictions."
)
"""Text where there are none."""

STOP = Answer("stop", "Stop", "s")


class DeploymentsTable(Table[DeploymentStatus]):
    """The deployments of this machine."""

    BINDING_GROUP_TITLE = "List of deployments"

    def key_of(self, row: DeploymentStatus) -> Hashable:
        return row.deployment.name


def _course(row: DeploymentStatus, width: int) -> str:
    """The requests a second of the latest readings."""
    rates = thinned([figures.rate if figures else math.nan for _, figures in row.course], width)
    highest = max((rate for rate in rates if not math.isnan(rate)), default=0.0)
    return sparkline(rates, width, 0.0, highest) if highest else ""


def columns_of(rows: Sequence[DeploymentStatus]) -> tuple[Column[DeploymentStatus], ...]:
    """The columns of the list; rates and latencies are of the last seconds, errors since the server was started."""

    def figure(
        title: str,
        width: int,
        text: Callable[[float], str],
        value: Callable[[DeploymentStatus], float | None],
        drop_priority: int = 0,
    ) -> Column[DeploymentStatus]:
        """Numbers in one form; empty where a server does not run."""
        form = numbers.in_one_form(text, filter(None, map(value, rows)))

        def cell(row: DeploymentStatus, _: float) -> str:
            found = value(row)
            shown = "—" if found is None else form(found) if found else "0"
            return shown if row.total else ""

        return Column(title, width, cell, right=True, drop_priority=drop_priority)

    errors = figure("errors", 6, "{:,.0f}".format, lambda row: row.total.failed if row.total else None, 1)
    return (
        Column("name", 14, lambda row, _: row.deployment.name, lambda row: (0.0, row.deployment.name), widest=24),
        Column(
            "health",
            9,
            lambda row, _: row.health,
            lambda row: (0.0, row.health),
            colour=lambda row: HEALTH_COLOURS.get(row.health, "note"),
        ),
        figure("requests/s", 10, numbers.compact, lambda row: row.figures.rate if row.figures else None),
        Column("course", 12, lambda _, __: "", draw=_course, colour=lambda _: "primary", drop_priority=6, widest=30),
        figure("p50", 8, numbers.latency, lambda row: row.figures.p50 if row.figures else None, 1),
        figure("p99", 8, numbers.latency, lambda row: row.figures.p99 if row.figures else None),
        figure("batch", 5, "{:.1f}".format, lambda row: row.figures.batch if row.figures else None, 3),
        replace(errors, colour=lambda row: "error" if row.total and row.total.failed else ""),
        figure("memory", 8, numbers.size, lambda row: (row.total.memory or None) if row.total else None, 2),
        Column(
            "since",
            8,
            lambda row, now: numbers.ago(now - row.since) if row.since else "",
            lambda row: (row.since, "") if row.since else None,
            right=True,
            descending=True,
            drop_priority=4,
        ),
        Column("url", 21, lambda row, _: row.deployment.url, drop_priority=5, widest=ALL_ROOM),
    )


class DeploymentDetail(RowDetails):
    """The version that is served, and how it is asked."""

    def show_row(self, row: DeploymentStatus | None) -> None:
        content = Content("\n").join(detail_lines(row)) if row else Content("")
        if self.content != content:
            self.update(content)


def detail_lines(row: DeploymentStatus) -> list[Content]:
    """The version that is served, its URLs, and why it does not answer."""
    deployment = row.deployment
    version = deployment.version
    about = f"version {version.number}: {version.run} at step {version.step:,}, {version.format}"
    before = f", before it version {deployment.previous}" if deployment.previous else ""
    lines = [Content.assemble((deployment.name, "bold"), f"  {about}", (before, "$text-muted"))]
    if row.problem:
        lines.append(Content.styled(printable(row.problem), "$text-error"))
    elif row.total:
        waits = f", {numbers.counted(row.total.queue, 'example')} waiting" if row.total.queue else ""
        lines.append(Content(f"{numbers.counted(row.total.requests, 'request')} since it was started{waits}"))
    else:
        lines.append(Content.styled("stopped; s starts it again", "$text-muted"))
    grpc = f"   gRPC {deployment.host}:{deployment.grpc_port}" if deployment.grpc_port else ""
    name = deployment.name
    lines.append(
        Content.styled(f"{deployment.url}/v2/models/{name}/infer   /v1/models/{name}:predict{grpc}", "$text-muted")
    )
    return lines


class DeploymentsScreen(AskingScreen):
    """Lists the deployments of this machine, and draws what the current one does."""

    CSS_PATH = "deployments_screen.tcss"
    AUTO_FOCUS = "DeploymentsTable"
    BINDING_GROUP_TITLE = "Deployments"
    BINDINGS: ClassVar[list[BindingType]] = [
        Binding("s", "stop", "Stop", id="deployments.stop", tooltip="End the server, after its requests; asks first"),
        Binding("s", "start", "Start", id="deployments.stop", tooltip="Start the server again"),
        Binding("b", "bench", "Bench", id="deployments.bench", tooltip="Measure the server by connections"),
        Binding("U", "update", "Update", id="deployments.update", tooltip="Let another model take over"),
        Binding("u", "undo", "Back", id="deployments.undo", tooltip="Serve the version before; asks first"),
        Binding("Y", "copy", "Copy URL", id="deployments.copy", tooltip="Copy the URL"),
        Binding(
            "delete,backspace",
            "delete",
            "Delete",
            id="deployments.delete",
            tooltip="Delete what is stopped; asks first",
        ),
    ]

    _table = getters.query_one(DeploymentsTable)

    def __init__(self) -> None:
        super().__init__()
        self._reader = StatusReader()
        self._reading = asyncio.Lock()

    def compose(self) -> ComposeResult:
        yield TopBar("Deployments")
        yield Static("", id="about", markup=False)
        yield DeploymentsTable("reading the deployments…").add_class("panel")
        with Horizontal():
            with Container(id="course", classes="panel"):
                yield DeploymentCharts()
            yield DeploymentCard().add_class("panel")
        yield DeploymentDetail().add_class("panel")
        yield KeyBar()

    def on_mount(self) -> None:
        """Read the servers, now and periodically."""
        self._table.border_title = "Servers"
        self.set_interval(INTERVAL, self._refresh)

    def check_action(self, action: str, parameters: tuple[object, ...]) -> bool | None:
        """Offer what can be done with the current deployment."""
        row = self._table.current if self.is_mounted else None
        match action:
            case "stop":
                return row is not None and row.runs
            case "start" | "delete":
                return row is not None and not row.runs
            case "bench":
                return row is not None and (row.health == READY or None)
            case "undo":
                return row is not None and bool(row.deployment.previous)
            case "copy" | "update":
                return row is not None
        return True

    @on(ScreenResume)
    @work(exit_on_error=False, group="deployments")
    async def _refresh(self) -> None:
        if is_covered(self) or self._reading.locked():
            return
        async with self._reading:  # a thread cannot be cancelled, and a server may not answer
            found = await asyncio.to_thread(self._reader.read)
        self._table.empty = "\n".join((EMPTY, *map(printable, self._reader.problems)))
        self.set_class(not found, "-empty")
        self.query_one("#about", Static).update(_summary(found))
        self._table.show_rows(found, columns_of(found))
        self._describe()

    @on(DeploymentsTable.Moved)
    def _describe(self) -> None:
        row = self._table.current
        self.query_one(DeploymentDetail).show_row(row)
        self.query_one(DeploymentCharts).show_row(row)
        since = numbers.ago(time.time() - row.since) if row and row.since else ""
        inventory = app_of(self).inventory
        machine = (
            max((each.memory or 0 for each in inventory.devices if each.kind == "cpu"), default=0) if inventory else 0
        )
        self.query_one(DeploymentCard).show_row(row, since, machine)
        self.query_one("#course").border_title = f"Course of {printable(row.deployment.name)}" if row else ""
        self.refresh_bindings()

    @on(DeploymentsTable.Opened)
    def _open(self, event: DeploymentsTable.Opened) -> None:
        open_screen(self, Screens.DEPLOYMENT, event.row.deployment)

    def action_copy(self) -> None:
        """Copy the URL."""
        if row := self._table.current:
            copy_text(self, row.deployment.url, "URL")

    def action_bench(self) -> None:
        """Measure the current server."""
        if row := self._table.current:
            open_screen(self, Screens.DEPLOYMENT_BENCH, row.deployment)

    def action_update(self) -> None:
        """Let another model take over."""
        if row := self._table.current:
            open_screen(self, Screens.UPDATE_DEPLOYMENT, row.deployment)

    @awaiting
    async def action_stop(self) -> None:
        """Ask, then end the server."""
        if row := self._table.current:
            detail = "It answers what it has accepted. Its folder stays, and s starts it again."
            if await self.ask(QuestionScreen(f"Stop {row.deployment.name}?", detail, (CANCEL, STOP))) == STOP.id:
                await self._change(row.deployment, "stopping", partial(stop_server, row.deployment))

    @awaiting
    async def action_start(self) -> None:
        """Start the server again."""
        if row := self._table.current:
            await self._change(row.deployment, "starting", partial(_deployer().restart, row.deployment.name))

    @awaiting
    async def action_undo(self) -> None:
        """Ask, then let the version before take over."""
        if row := self._table.current:
            deployment = row.deployment
            before = deployment.version_of(deployment.previous)
            detail = f"Version {before.number}: {before.run} at step {before.step:,}. No request is lost."
            back = Answer("back", "Take it back", "u")
            question = QuestionScreen(f"Serve {deployment.name} as before?", detail, (CANCEL, back))
            if await self.ask(question) == back.id:
                await self._change(deployment, "taking back", partial(_deployer().back, deployment.name))

    @awaiting
    async def action_delete(self) -> None:
        """Ask, then delete a stopped deployment."""
        if row := self._table.current:
            detail = "Its exported models are deleted; the runs stay."
            if await self.ask(QuestionScreen(f"Delete {row.deployment.name}?", detail, (CANCEL, DELETE))) == DELETE.id:
                await self._change(row.deployment, "deleting", partial(remove_deployment, row.deployment))

    async def _change(self, deployment: Deployment, words: str, change: Callable[[], object]) -> None:
        """Change a deployment in a thread; notify if it fails."""
        self.notify(f"{words} {deployment.name}", timeout=2, markup=False)
        await self.make_changes(change)
        self._refresh()


def _summary(rows: Sequence[DeploymentStatus]) -> str:
    """The figures of all servers together."""
    if not rows:
        return ""
    told = [row.figures for row in rows if row.figures]
    rate = f", {numbers.compact(sum(each.rate for each in told))} requests/s" if told else ""
    memory = sum(row.total.memory for row in rows if row.total)
    held = f", {numbers.size(memory)} of memory" if memory else ""
    return f"{sum(row.runs for row in rows)} of {len(rows)} running{rate}{held}"


def _deployer() -> Deployer:
    """Changes deployments."""
    return Deployer(ask, lambda _: None)
