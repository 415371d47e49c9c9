"""A field for the checkpoint with the weights of runs."""

from collections.abc import Sequence
from pathlib import Path

from textual import work

from accel_engine.run.directory.run_paths import checkpoint_steps
from accel_tui.plan.checkpoint_choice import checked_checkpoint, checkpoint_choices
from accel_tui.widgets.plan.picker import Picker


class CheckpointPicker(Picker):
    """Offers ``auto``, ``best``, ``last``, and the steps of the checkpoints that all runs have.

    Args:
        directories: The runs' directories.
    """

    def __init__(self, directories: Sequence[Path]) -> None:
        super().__init__("auto", has_choices=True, id="checkpoint")
        self._directories = tuple(directories)
        self._steps: tuple[int, ...] = ()

    @property
    def checkpoint(self) -> str:
        """The checkpoint that is chosen.

        Raises:
            UsageError: There is no such checkpoint.
        """
        return checked_checkpoint(self.value, self._steps)

    def on_mount(self) -> None:
        """Read which checkpoints there are."""
        self._read_steps()

    @work(thread=True, exit_on_error=False, group="steps")
    def _read_steps(self) -> None:
        steps = [set(checkpoint_steps(directory)) for directory in self._directories]
        self.call_later(self._set_steps, tuple(sorted(set.intersection(*steps))))

    def _set_steps(self, steps: tuple[int, ...]) -> None:
        self._steps = steps
        self.choices = checkpoint_choices(steps)
