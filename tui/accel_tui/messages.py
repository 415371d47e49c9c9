"""Messages that the app's threads post to it."""

from dataclasses import dataclass
from pathlib import Path

from textual.css.stylesheet import Stylesheet
from textual.message import Message

from accel_engine.devices.device_types import Inventory, Sample
from accel_engine.launch.warm_engine import WarmEngine
from accel_tui.settings.user_settings import SettingsError


@dataclass
class DevicesDetected(Message):
    """The machine's devices were detected."""

    inventory: Inventory


@dataclass
class DevicesSampled(Message):
    """Devices were sampled."""

    samples: tuple[Sample, ...]


@dataclass
class EngineChanged(Message):
    """The warm engine's state changed, or it could not be started."""

    problem: str = ""


@dataclass
class RunHandedOver(Message):
    """An engine has taken a run."""

    directory: Path


@dataclass
class StartFailed(Message):
    """A run could not be started; the warm engine is returned if it is still usable."""

    problem: str
    engine: WarmEngine | None


@dataclass
class ImportsFinished(Message):
    """The remaining modules are imported, and their CSS is parsed."""

    rules: Stylesheet


@dataclass
class SettingsInvalid(Message):
    """Custom keys in the user settings are unknown or used twice."""

    error: SettingsError
