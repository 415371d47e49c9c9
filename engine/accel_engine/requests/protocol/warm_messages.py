"""What a warm engine and its dashboard tell each other, besides requests to describe models."""

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path


@dataclass(frozen=True, slots=True)
class EngineReady:
    """A warm engine has imported TensorFlow, unless that would claim an accelerator.

    Attributes:
        versions: Versions of packages, by name.
    """

    versions: Mapping[str, str]


@dataclass(frozen=True, slots=True)
class RunHandedOver:
    """An engine gets a run to train; it sends nothing more.

    Attributes:
        directory: The run's directory.
    """

    directory: Path
