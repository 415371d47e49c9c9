"""What TensorBoard itself reads in a directory of event files."""

from pathlib import Path

from tensorboard.backend.event_processing.event_accumulator import EventAccumulator

Points = list[tuple[int, float]]


def scalars(directory: Path) -> dict[str, Points]:
    """Steps and values of every tag, in the order in which they are shown."""
    return {tag: [(step, value) for _, step, value in points] for tag, points in timed(directory).items()}


def timed(directory: Path) -> dict[str, list[tuple[float, int, float]]]:
    """The same with their times."""
    events = EventAccumulator(str(directory), size_guidance={"scalars": 0}).Reload()
    return {tag: [(at.wall_time, at.step, at.value) for at in events.Scalars(tag)] for tag in events.Tags()["scalars"]}
