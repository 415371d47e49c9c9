"""Chooses the model of ``--model auto`` by the data's task and form; without TensorFlow.

``benchmarks/quality.py`` measures each default beside its alternatives.
"""

from accel_engine.errors import FieldValue, PlanError
from accel_engine.models import CATALOGUE, AutoModel, ModelEntry, UserModel
from accel_engine.models.data_description import IMAGES, NUMBERS, SEQUENCES, SOUNDS, TEXTS, TOKENS, DataDescription
from accel_engine.words import numbers

BY_TASK = {"sequence": "gpt", "segmentation": "unet", "reconstruction": "autoencoder"}
"""The defaults of tasks that have one model."""

BY_FORM = {IMAGES: "cnn", SOUNDS: "sound-cnn", SEQUENCES: "tcn", TEXTS: "bag-of-words", NUMBERS: "tabular"}
"""The defaults of all other tasks, by the form of an example."""

SMALLEST_IMAGE = 8
"""Height and width below which an image is numbers like others."""


PRETRAINED = "MobileNetV2"
"""The default for images with ImageNet weights: the smallest of its time with good results on few examples."""


def default_model(data: DataDescription, *, pretrained: bool = False) -> ModelEntry:
    """The model that ``auto`` takes for some data.

    Args:
        data: The data.
        pretrained: Whether it begins with ImageNet weights.

    Raises:
        PlanError: There is no default model for such data; the message says what to do.
    """
    task, own = data.learned_task, "use a model of your own, FILE.py:FUNCTION"
    if task == "custom":
        raise PlanError("model", "auto", f"a custom task has no default model: {own}")
    if data.shape is None:
        raise PlanError("model", "auto", f"the data has several inputs: {own}")
    if data.has_several_targets:
        raise PlanError("model", "auto", f"the data has several targets: {own}, with an output for each")
    if task == "auto":
        raise PlanError("model", "auto", "the data does not tell the task: set ", FieldValue("task"), f", or {own}")
    if task not in BY_TASK and data.form not in BY_FORM:
        examples = "tokens" if data.form == TOKENS else f"examples of {numbers.shape(data.shape)}"
        reason = f"there is no default model for the {task} of {examples}"
        raise PlanError("model", "auto", f"{reason}: {own}")
    is_tuned = pretrained and data.form == IMAGES and task == "classification"
    entry = CATALOGUE[PRETRAINED if is_tuned else BY_TASK.get(task) or _by_form(data)]
    if mismatch := entry.mismatch(data):
        raise PlanError("model", "auto", mismatch)
    return entry


def default_for(name: str) -> tuple[str, ...]:
    """The data for which ``auto`` takes a model: ``segmentation`` or ``images``, for example; empty if for none."""
    return tuple(data for data, taken in (BY_TASK | BY_FORM).items() if taken == name)


def resolve_model(
    model: ModelEntry | AutoModel | UserModel, data: DataDescription | None, *, pretrained: bool = False
) -> ModelEntry | AutoModel | UserModel:
    """The model that a plan's ``auto`` stands for; other models, and ``auto`` while the data is unknown, unchanged.

    Args:
        model: The plan's model.
        data: What is known of the data.
        pretrained: Whether it begins with ImageNet weights.

    Raises:
        PlanError: There is no default model for the data.
    """
    if not isinstance(model, AutoModel) or data is None:
        return model
    return default_model(data, pretrained=pretrained)


def _by_form(data: DataDescription) -> str:
    """The default of a task with one vector of outputs for each example."""
    if data.form == IMAGES and min(side or SMALLEST_IMAGE for side in (data.shape or ())[:2]) < SMALLEST_IMAGE:
        return BY_FORM[NUMBERS]
    return BY_FORM[data.form]
