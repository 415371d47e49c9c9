"""Which configurations of a race leave the live runs on their devices their memory."""

from collections.abc import Sequence
from dataclasses import dataclass, field

from accel_engine.devices.device_types import Device
from accel_engine.errors import RunError
from accel_engine.measure.trial_room import PlacedTrial, check_room_on, place_trial
from accel_engine.race.configurations import ConfigurationList
from accel_engine.run.runs.devices_in_use import DevicesInUse


@dataclass(frozen=True, slots=True)
class RoomBesideRuns:
    """The room for a race beside live runs.

    Attributes:
        has_runs: Whether a live run trains on a device of the race.
        refused: Why configurations are refused, by title.
    """

    has_runs: bool
    refused: dict[str, str] = field(default_factory=dict)


def find_room(found: ConfigurationList, devices: Sequence[Device]) -> RoomBesideRuns:
    """Find the configurations that fit in memory beside live runs and, at the same time, the reference.

    On a GPU of a live run none has larger batches than the reference, as it is not known what these take.

    Args:
        found: The configurations.
        devices: The machine's devices.

    Raises:
        RunError: The reference does not fit, or none of the others does.
    """
    reference = place_trial(found.reference.plan, devices)
    has_runs = bool(check_room_on((reference,)))
    checked: dict[PlacedTrial, list[DevicesInUse] | RunError] = {}
    refused: dict[str, str] = {}
    for each in found.others:
        placed = place_trial(each.plan, devices)
        if placed not in checked:
            checked[placed] = _check((reference, placed))
        runs = checked[placed]
        if isinstance(runs, RunError):
            refused[each.title] = str(runs)
        elif each.plan.batch_size > found.reference.plan.batch_size and _are_on_accelerator(runs):
            refused[each.title] = "a live run trains on the same device"
    errors = [runs for runs in checked.values() if isinstance(runs, RunError)]
    if errors and len(errors) == len(checked):
        raise errors[0]
    return RoomBesideRuns(has_runs or any(checked.values()), refused)


def _check(trials: Sequence[PlacedTrial]) -> list[DevicesInUse] | RunError:
    try:
        return check_room_on(trials)
    except RunError as error:
        return error


def _are_on_accelerator(runs: Sequence[DevicesInUse]) -> bool:
    return any(not device.startswith("cpu") for run in runs for device in run.devices)
