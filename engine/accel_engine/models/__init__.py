"""The catalogue of models: names, summaries and what each takes, without TensorFlow.

The builders that these entries name are in the modules beside this one; only the engine process
imports them.
"""

from dataclasses import dataclass
from pathlib import Path

from accel_engine.errors import PlanError
from accel_engine.models.applications import APPLICATIONS
from accel_engine.models.model_entry import ModelEntry, Shape
from accel_engine.registry import suggestion

__all__ = ["CATALOGUE", "ModelEntry", "Shape", "UserModel", "find"]

CATALOGUE: dict[str, ModelEntry] = {
    entry.name: entry
    for entry in (
        ModelEntry(
            "mlp",
            "One hidden layer of 128 units: the smallest network that learns digits",
            "accel_engine.models.mlp:build",
        ),
        ModelEntry(
            "cnn",
            "A small convolutional network with batch normalisation: accurate on small images",
            "accel_engine.models.cnn:build",
            minimum_size=8,
            earlier=("accel_engine.models.cnn:build_with_average_pooling",),
        ),
        ModelEntry(
            "fashion-cnn",
            "One convolution of 64 filters, as published for Fashion-MNIST with this recipe",
            "accel_engine.models.fashion_cnn:build",
            minimum_size=4,
        ),
        ModelEntry(
            "resnet20",
            "The residual network of 20 layers for CIFAR: 0.27 million weights, much computation",
            "accel_engine.models.resnet20:build",
            minimum_size=8,
        ),
        *APPLICATIONS,
    )
}
"""Every model that can be asked for by name."""


@dataclass(frozen=True, slots=True)
class UserModel:
    """A model of the user's own.

    Attributes:
        name: Short, for titles.
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
    """Find what a plan's ``model`` refers to.

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
        raise PlanError("model", spec, f"name the function that returns the model, as in {spec}:build")
    raise PlanError("model", spec, f"no such model; {suggestion(spec, CATALOGUE)}")
