"""Deploy screen: serves the trained model of a run on this machine, checked with held-out examples."""

from collections.abc import Sequence
from pathlib import Path
from typing import Any, ClassVar

from textual.app import ComposeResult
from textual.binding import Binding, BindingType

from accel_engine.deployment.deploy import Deployed, Deployer, check_deploy
from accel_engine.deployment.deploy_options import DeployOptions
from accel_engine.deployment.server_control import choose_port
from accel_engine.deployment.write_version import DeployStep
from accel_engine.requests.export_model import WritingFormat
from accel_engine.requests.protocol.model_reference import check_steps
from accel_engine.requests.protocol.request import ExamplesDone
from accel_engine.run.directory.run_paths import run_name
from accel_tui.formatting.deployment import deployed_tables, equality, example_command
from accel_tui.host import Screens, open_screen
from accel_tui.screens.job import Job
from accel_tui.screens.job_screen import JobScreen
from accel_tui.widgets.jobs.option_form import OptionForm
from accel_tui.widgets.text_table import ResultTables


class DeployScreen(JobScreen):
    """Deploys the trained model of a run: exports it, starts a server, and checks the server's answers.

    Args:
        directory: The run's directory.
    """

    NOUN = "the deployment"
    KEPT = "Nothing is deployed then."
    BINDING_GROUP_TITLE = "Deploy"
    BINDINGS: ClassVar[list[BindingType]] = [
        Binding("D", "deployments", "Deployments", id="deploy.deployments", tooltip="List what is deployed"),
        Binding("Y", "copy", "Copy", id="deploy.copy", tooltip="Copy a command that asks the server"),
    ]

    def __init__(self, directory: Path) -> None:
        super().__init__(f"Deploy {run_name(directory)}")
        self._directory = directory
        self._found: Deployed | None = None
        self._command = ""

    def make_form(self) -> OptionForm:
        """Name, format, ports and threads."""
        return OptionForm(
            DeployOptions,
            ("name", "format", "checkpoint", "port", "grpc_port", "threads", "device"),
            directories=(self._directory,),
        )

    def compose_result(self) -> ComposeResult:
        yield ResultTables(id="result")

    def check_action(self, action: str, parameters: tuple[object, ...]) -> bool | None:
        """Copy once there is a server."""
        if action == "copy":
            return self._found is not None and not self.has_class("-form")
        return super().check_action(action, parameters)

    def action_deployments(self) -> None:
        """List the deployments."""
        open_screen(self, Screens.DEPLOYMENTS)

    def action_copy(self) -> None:
        """Copy a command that asks the server."""
        if self._found:
            self.app.copy_to_clipboard(self._command)
            self.notify("Command copied", timeout=2)

    def prepare(self, options: DeployOptions) -> DeployOptions:
        """Check what can be told before an engine starts."""
        check_steps((self._directory,), options.checkpoint)
        check_deploy(self._directory, options)
        choose_port(options.host, options.port)
        return options

    def run(self, job: Job, prepared: DeployOptions) -> Deployed:
        """Deploy the model."""
        found = Deployer(job.ask, job.send, lambda: job.is_cancelled).deploy(self._directory, prepared)
        self._command = example_command(found.deployment)
        return found

    def take(self, part: Any) -> None:
        """Tell what happens."""
        match part:
            case DeployStep():
                self.progress.show(part.words)
            case ExamplesDone():
                self.progress.show_examples(part, "comparing with the trained model: ")
            case WritingFormat():
                self.progress.show(f"writing {part.name}")

    async def finish(self, found: Deployed | None) -> Sequence[str]:
        """Show what was deployed, and how it is asked."""
        self._found = found
        self.refresh_bindings()
        if found is None:
            return ("nothing deployed",)
        self.query_one(ResultTables).show(list(deployed_tables(found, self._command)))
        return f"{found.deployment.name} is served on {found.deployment.url}", equality(found), *found.notes
