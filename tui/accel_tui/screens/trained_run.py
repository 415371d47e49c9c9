"""Opens screens that need the trained models of runs."""

from collections.abc import Callable, Sequence
from pathlib import Path

from textual.screen import Screen

from accel_engine.errors import AccelError
from accel_engine.requests.protocol.model_reference import check_checkpoint


def open_trained(screen: Screen[None], directories: Sequence[Path], show: Callable[[], object]) -> None:
    """Open a screen on some runs, or notify of why one has no trained model.

    If the user has left the screen meanwhile, such as by a second press of the same key, nothing is opened.

    Args:
        screen: The screen that is left.
        directories: The runs' directories.
        show: Opens the other screen.
    """

    def check() -> None:
        try:
            for directory in directories:
                check_checkpoint(directory)
        except AccelError as error:
            screen.app.notify(str(error), title="No trained model", severity="warning", markup=False)
        else:
            screen.app.call_later(open_once)

    def open_once() -> None:
        if screen.app.screen is screen:
            show()

    screen.run_worker(check, thread=True, exclusive=True, exit_on_error=False, group="trained")
