"""Deploy screens: a run's trained model is served here, written to a folder, or takes over a deployment."""

import asyncio
import dataclasses
from collections.abc import Sequence
from dataclasses import replace
from itertools import islice
from pathlib import Path
from typing import Any, ClassVar

from textual import work
from textual.app import ComposeResult
from textual.binding import Binding, BindingType

from accel_engine.deploy_folder import deploy_to_folder
from accel_engine.deploy_folder.deploy_to_folder import WrittenFolder
from accel_engine.deploy_folder.folder_options import WITH_SERVER, FolderOptions
from accel_engine.deployment.deploy import Deployed, Deployer, check_deploy
from accel_engine.deployment.deploy_options import OF_SERVERS, DeployOptions
from accel_engine.deployment.deployments import Deployment
from accel_engine.deployment.server_control import choose_port
from accel_engine.deployment.write_version import DeployStep
from accel_engine.errors import AccelError
from accel_engine.plan.options import OptionSpec, joined_options, option, part_of, specs_of
from accel_engine.requests.export_model import WritingFormat
from accel_engine.requests.protocol.model_reference import check_steps
from accel_engine.requests.protocol.request import ExamplesDone
from accel_engine.run import find_run, list_runs
from accel_engine.run.directory.run_paths import checkpoint_steps, run_name
from accel_engine.user_paths import user_path
from accel_engine.words import numbers
from accel_tui.app_protocol import Screens, open_screen
from accel_tui.formatting.deployment import deployed_tables, equality, example_command, folder_lines
from accel_tui.screens.asking import CANCEL, Answer, QuestionScreen, copy_text
from accel_tui.screens.job import Job
from accel_tui.screens.job_screen import JobScreen
from accel_tui.widgets.jobs.option_form import OptionForm
from accel_tui.widgets.text_table import ResultTables

HERE = "here"
"""Instead of what a folder is for: a server on this machine."""

_PORTS, _OF_FOLDERS = ("port", "grpc_port"), ("to", "image", "licence")
_FOLDERS = specs_of(FolderOptions)["target"].notes
_FOR = replace(
    specs_of(FolderOptions)["target"],
    choices=(HERE, *_FOLDERS),
    notes={HERE: "a server on this machine", **_FOLDERS},
    label="for",
    doc="A server here, or a folder with all that another machine needs.",
)

REPLACE = Answer("replace", "Replace", "r", is_destructive=True)

RECENT = 30
"""Runs that are offered to take over."""


def _check(options: Any) -> None:
    """Raise what contradicts, while the form is filled in."""
    part_of(DeployOptions, options)
    if options.target != HERE:
        part_of(FolderOptions, options)


DeployForm: Any = dataclasses.make_dataclass(
    "DeployForm",
    joined_options(
        (DeployOptions, [name for name in specs_of(DeployOptions) if name in _PORTS or name not in OF_SERVERS]),
        (FolderOptions, (*_OF_FOLDERS, "target")),
    ),
    namespace={"__post_init__": _check},
    frozen=True,
    kw_only=True,
)
"""What can be chosen when a run is deployed."""


def _trained_runs() -> dict[str, str]:
    """The newest runs that have ended with a trained model, and how good they are."""
    ended = (each for each in list_runs() if each.info and each.info.plan and not each.info.status.live)
    found = islice((each for each in ended if checkpoint_steps(each.directory)), RECENT)
    return {each.id: f"{each.monitor} {numbers.metric(each.best)}" if each.best is not None else "" for each in found}


class _DeployingScreen(JobScreen):
    """Base of deployments and updates: progress, the server that was started, and a command to ask it."""

    KEPT = "Nothing is deployed then."
    BINDINGS: ClassVar[list[BindingType]] = [
        Binding("D", "deployments", "Deployments", id="deploy.deployments", tooltip="List what is deployed"),
        Binding("Y", "copy", "Copy", id="deploy.copy", tooltip="Copy a command that asks the server"),
    ]

    def __init__(self, heading: str) -> None:
        super().__init__(heading)
        self._found: Deployed | WrittenFolder | None = None
        self._command = ""

    def compose_result(self) -> ComposeResult:
        yield ResultTables(id="result")

    def check_action(self, action: str, parameters: tuple[object, ...]) -> bool | None:
        """Copy once there is a server."""
        if action == "copy":
            return isinstance(self._found, Deployed) and not self.has_class("-form")
        return super().check_action(action, parameters)

    def action_deployments(self) -> None:
        """List the deployments."""
        open_screen(self, Screens.DEPLOYMENTS)

    def action_copy(self) -> None:
        """Copy a command that asks the server."""
        if self._command:
            copy_text(self, self._command)

    def take(self, part: Any) -> None:
        """Tell what happens."""
        match part:
            case DeployStep():
                self.progress.show(part.words)
            case ExamplesDone():
                self.progress.show_examples(part, "comparing with the trained model: ")
            case WritingFormat():
                self.progress.show(f"writing {part.name}")

    async def finish(self, found: Deployed | WrittenFolder | None) -> Sequence[str]:
        """Show what was deployed, and how it is asked."""
        self._found = found
        self.refresh_bindings()
        if found is None:
            return ("nothing deployed",)
        if isinstance(found, WrittenFolder):
            return *folder_lines(found), *found.notes
        self.query_one(ResultTables).show(list(deployed_tables(found, self._command)))
        return f"{found.deployment.name} is served on {found.deployment.url}", equality(found), *found.notes


class DeployScreen(_DeployingScreen):
    """Deploys the trained model of a run: exports it, and starts and checks a server, or writes a folder.

    Args:
        directory: The run's directory.
    """

    NOUN = "the deployment"
    BINDING_GROUP_TITLE = "Deploy"

    def __init__(self, directory: Path) -> None:
        super().__init__(f"Deploy {run_name(directory)}")
        self._directory = directory

    def make_form(self) -> OptionForm:
        """Where to, name and format; and what servers or folders have."""
        known = specs_of(DeployForm)
        specs = {name: replace(known[name], goes_with=("target", (HERE,))) for name in _PORTS}
        specs |= {name: replace(known[name], goes_with=("target", tuple(_FOLDERS))) for name in _OF_FOLDERS}
        specs["image"] = replace(known["image"], goes_with=("target", WITH_SERVER))
        specs["to"] = replace(specs["to"], label="folder", is_required=True, hint="such as ./service")
        order = ("target", "to", "name", "format", "checkpoint", *_PORTS, "threads", "target_latency")
        return OptionForm(
            DeployForm,
            (*order, "target_rate", "device", "image", "licence"),
            texts={"target": HERE, "device": "cpu"},
            specs={**specs, "target": _FOR},
            directories=(self._directory,),
        )

    def prepare(self, options: Any) -> tuple[DeployOptions, FolderOptions | None]:
        """Check what can be told before an engine starts."""
        server = part_of(DeployOptions, options)
        check_steps((self._directory,), server.checkpoint)
        if options.target == HERE:
            check_deploy(self._directory, server)
            choose_port(server.host, server.port)
            return server, None
        folder = replace(part_of(FolderOptions, options), replace=True)  # which is asked before
        deploy_to_folder.check_folder_deploy(self._directory, server, folder)
        return server, folder

    def question(self, prepared: tuple[DeployOptions, FolderOptions | None]) -> QuestionScreen | None:
        """Whether a folder is replaced."""
        folder = prepared[1]
        if folder is None or not (path := user_path(folder.to)).is_dir() or not any(path.iterdir()):
            return None
        detail = "accel-tui wrote it before. Its files are exchanged, and those that you added stay."
        return QuestionScreen(f"Replace {path.name}?", detail, (CANCEL, REPLACE))

    def run(self, job: Job, prepared: tuple[DeployOptions, FolderOptions | None]) -> Deployed | WrittenFolder:
        """Deploy the model."""
        options, folder = prepared

        def tell(step: DeployStep) -> None:
            if job.is_cancelled:
                raise AccelError("ended before the folder was written")
            job.send(step)

        self._command = ""
        if folder is not None:
            return deploy_to_folder.deploy_to_folder(self._directory, options, folder, job.ask, tell)
        found = Deployer(job.ask, job.send, lambda: job.is_cancelled).deploy(self._directory, options)
        self._command = example_command(found.deployment)
        return found


UpdateForm: Any = dataclasses.make_dataclass(
    "UpdateForm",
    [
        (
            "run",
            str,
            option("", OptionSpec("The run whose model takes over.", str, is_required=True, hint="such as last")),
        ),
        *joined_options((DeployOptions, ("format", "checkpoint", "device"))),
    ],
    frozen=True,
    kw_only=True,
)
"""What can be chosen when another model takes over."""


class UpdateScreen(_DeployingScreen):
    """Lets the model of another run take over a deployment, once it was checked beside.

    Args:
        deployment: The deployment.
    """

    NOUN = "the update"
    KEPT = "The version that is served stays."
    BINDING_GROUP_TITLE = "Update"

    def __init__(self, deployment: Deployment) -> None:
        super().__init__(f"Update {deployment.name}")
        self._deployment = deployment

    def make_form(self) -> None:
        """Follows once the runs are known."""

    def on_mount(self) -> None:
        """Read which runs have a trained model."""
        self._read_runs()

    @work(exit_on_error=False, group="runs")
    async def _read_runs(self) -> None:
        """Show the form, with the newest runs that have ended."""
        runs = await asyncio.to_thread(_trained_runs)
        specs = specs_of(UpdateForm)
        chosen = {"run": next(iter(runs), "")}
        named = {"run": replace(specs["run"], notes=runs)}
        await self.set_form(OptionForm(UpdateForm, tuple(specs), texts=chosen, specs=named))

    def prepare(self, options: Any) -> tuple[Path, DeployOptions]:
        """Check what can be told before an engine starts."""
        run, wanted = find_run(options.run), part_of(DeployOptions, options)
        check_steps((run,), wanted.checkpoint)
        check_deploy(run, wanted)
        return run, wanted

    def run(self, job: Job, prepared: tuple[Path, DeployOptions]) -> Deployed:
        """Let the model take over."""
        deployer = Deployer(job.ask, job.send, lambda: job.is_cancelled)
        found = deployer.update(self._deployment.name, *prepared)
        self._command = example_command(found.deployment)
        return found
