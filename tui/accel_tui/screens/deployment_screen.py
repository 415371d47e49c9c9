"""Deployment screen: one deployment, what it does now, and the log of its servers."""

import asyncio
from typing import ClassVar

from textual import work
from textual.app import ComposeResult
from textual.binding import Binding, BindingType

from accel_engine.deployment.deployments import Deployment
from accel_engine.deployment.status import StatusReader
from accel_tui.app_protocol import Screens, open_screen
from accel_tui.screens.asking import BackScreen
from accel_tui.screens.deployments_screen import INTERVAL, DeploymentDetail, DeploymentsTable, columns_of
from accel_tui.widgets.deployment_view import DeploymentCharts
from accel_tui.widgets.key_bar import KeyBar, TopBar
from accel_tui.widgets.log.log_view import LogView
from accel_tui.widgets.visibility import is_covered


class _OneDeployment(DeploymentsTable, can_focus=False):
    opens = False


class DeploymentScreen(BackScreen):
    """Follows one deployment.

    Args:
        deployment: The deployment.
    """

    DEFAULT_CSS = """
    DeploymentScreen {
        DeploymentsTable { height: 2; }
        DeploymentDetail { border-bottom: solid $border; }
        DeploymentCharts { height: 10; display: none; }
        &.-tall DeploymentCharts { display: block; }
        &.-ultra DeploymentCharts { grid-size: 4 1; & > Chart.-second { display: block; } }
    }
    """
    AUTO_FOCUS = "LogLines"
    BINDING_GROUP_TITLE = "Deployment"
    BINDINGS: ClassVar[list[BindingType]] = [
        Binding("U", "update", "Update", id="deployments.update", tooltip="Let another model take over"),
    ]

    def __init__(self, deployment: Deployment) -> None:
        super().__init__()
        self._deployment = deployment
        self._reader = StatusReader()
        self._reading = asyncio.Lock()

    def compose(self) -> ComposeResult:
        yield TopBar(f"Deployment {self._deployment.name}")
        yield _OneDeployment("reading…")
        yield DeploymentDetail()
        yield DeploymentCharts()
        yield LogView(self._deployment.directory)
        yield KeyBar()

    def on_mount(self) -> None:
        """Read the server, now and periodically."""
        self._refresh()
        self.set_interval(INTERVAL, self._refresh)

    def action_update(self) -> None:
        """Let another model take over."""
        open_screen(self, Screens.UPDATE_DEPLOYMENT, self._deployment)

    @work(exit_on_error=False, group="deployment")
    async def _refresh(self) -> None:
        if is_covered(self) or self._reading.locked():
            return
        async with self._reading:
            found = [each for each in await asyncio.to_thread(self._reader.read) if self._is_it(each.deployment)]
        table = self.query_one(DeploymentsTable)
        table.empty = "It was deleted."
        table.show_rows(found, columns_of(found))
        for each in (self.query_one(DeploymentDetail), self.query_one(DeploymentCharts)):
            each.show_row(found[0] if found else None)

    def _is_it(self, deployment: Deployment) -> bool:
        return deployment.name == self._deployment.name
