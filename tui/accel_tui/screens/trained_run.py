"""Opens screens that need the trained model of a run."""

from collections.abc import Callable
from pathlib import Path

from textual.screen import Screen

from accel_engine.errors import AccelError
from accel_engine.launch.model_query import check_checkpoint


def open_trained(screen: Screen[None], directory: Path, show: Callable[[Path], object]) -> None:
    """Open a screen on a run, or notify of why it has no trained model.

    Args:
        screen: The screen that is left.
        directory: The run's directory.
        show: Opens the other screen.
    """

    def check() -> None:
        try:
            check_checkpoint(directory)
        except AccelError as error:
            screen.app.notify(str(error), title="No trained model", severity="warning", markup=False)
        else:
            screen.app.call_later(show, directory)

    screen.run_worker(check, thread=True, exit_on_error=False, group="trained")
