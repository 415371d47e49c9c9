"""The catalogue of models, and the lookup of a plan's model; without TensorFlow.

The builders are in the other modules of this package, which only the engine process imports.
"""

from dataclasses import dataclass
from pathlib import Path

from accel_engine.errors import PlanError
from accel_engine.models.applications import APPLICATIONS
from accel_engine.models.model_entry import ModelEntry, Shape
from accel_engine.text import suggestion

__all__ = ["CATALOGUE", "ModelEntry", "Shape", "UserModel", "find"]

CATALOGUE: dict[str, ModelEntry] = {
    entry.name: entry
    for entry in (
        ModelEntry(
            "mlp",
            "One hidden layer of 128 units: a minimal network for digits",
            "accel_engine.models.mlp:build",
            tasks=("classification", "multi-label", "regression"),
        ),
        ModelEntry(
            "cnn",
            "A small convolutional network with batch normalization, for small images",
            "accel_engine.models.cnn:build",
            minimum_size=8,
            earlier=("accel_engine.models.cnn:build_with_average_pooling",),
        ),
        ModelEntry(
            "fashion-cnn",
            "One convolution of 64 filters, with published results on Fashion-MNIST",
            "accel_engine.models.fashion_cnn:build",
            minimum_size=4,
        ),
        ModelEntry(
            "resnet20",
            "The 20-layer residual network for CIFAR; 0.27 million weights",
            "accel_engine.models.resnet20:build",
            minimum_size=8,
        ),
        *APPLICATIONS,
    )
}
"""Every model of the catalogue, by name."""


@dataclass(frozen=True, slots=True)
class UserModel:
    """A custom model.

    Attributes:
        name: Short display name.
        kind: ``file`` (a function in a Python file), ``module`` (a function in a package) or
            ``saved`` (a ``.keras`` file).
        target: The file's path or the module's name.
        function: The function that returns the model; empty for a saved one.
    """

    name: str
    kind: str
    target: str
    function: str = ""


def find(spec: str) -> ModelEntry | UserModel:
    """Find the model of a plan.

    Args:
        spec: A catalogue name (in any case), ``FILE.py:FUNCTION``, ``PACKAGE.MODULE:FUNCTION`` or
            ``FILE.keras``.

    Raises:
        PlanError: There is no such model or file.
    """
    by_name = {name.lower(): entry for name, entry in CATALOGUE.items()}
    if entry := by_name.get(spec.lower()):
        return entry
    if spec.endswith(".keras"):
        if not Path(spec).expanduser().is_file():
            raise PlanError("model", spec, "no such file")
        return UserModel(Path(spec).stem, "saved", spec)
    target, colon, function = spec.rpartition(":")
    if colon and function.isidentifier():
        if target.endswith(".py"):
            if not Path(target).expanduser().is_file():
                raise PlanError("model", spec, f"no such file: {target}")
            return UserModel(f"{Path(target).stem}:{function}", "file", target, function)
        if all(part.isidentifier() for part in target.split(".")):
            return UserModel(spec, "module", target, function)
    if spec.endswith(".py"):
        raise PlanError("model", spec, f"add the function that returns the model, e.g. {spec}:build")
    raise PlanError("model", spec, f"no such model; {suggestion(spec, CATALOGUE)}")
