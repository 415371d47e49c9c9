"""What the app's threads tell it."""

from dataclasses import dataclass
from pathlib import Path

from textual.css.stylesheet import Stylesheet
from textual.message import Message

from accel_engine.devices.reading import Inventory, Sample
from accel_engine.launch import WarmEngine
from accel_tui.settings.user_settings import SettingsError


@dataclass
class DevicesDetected(Message):
    """The machine was looked over."""

    inventory: Inventory


@dataclass
class DevicesSampled(Message):
    """Devices were read."""

    samples: tuple[Sample, ...]


@dataclass
class EngineChanged(Message):
    """The warm engine came further, or could not be started."""

    problem: str = ""


@dataclass
class RunHandedOver(Message):
    """An engine has a run to train."""

    directory: Path


@dataclass
class StartFailed(Message):
    """A run could not be started; the warm engine, if it is still one, is given back."""

    problem: str
    engine: WarmEngine | None


@dataclass
class RestImported(Message):
    """What the first screen does not need is there now, and the rules of how it looks."""

    rules: Stylesheet


@dataclass
class SettingsRefused(Message):
    """Keys that the user has set are none, or are set twice."""

    error: SettingsError
