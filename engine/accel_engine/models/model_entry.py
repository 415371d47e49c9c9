"""Entries of the catalogue of models."""

from dataclasses import dataclass

from accel_engine.data.structure import describe
from accel_engine.models.data_description import IMAGES, SEQUENCES, SOUNDS, TEXTS, TOKENS, DataDescription
from accel_engine.words import numbers

Shape = tuple[int, ...]
"""Shape of one example, without the batch: ``(height, width, channels)`` for images."""

NUMERIC_TASKS = ("classification", "multi-label", "regression")
"""The tasks of a model with a vector of outputs for each example."""

_TAKES = {
    TEXTS: "texts",
    TOKENS: "tokens of a vocabulary",
    SOUNDS: "sounds (samples, 1) with a sample rate",
    SEQUENCES: "sequences (time, channels)",
    "": "examples of any shape",
}
_FORMS = {SEQUENCES: (SEQUENCES, SOUNDS)}
"""The forms that models of a form take, if there are several."""

_AXES = {TOKENS: "tokens", IMAGES: "images (height, width, channels)", SEQUENCES: "sequences (time, channels)"}


@dataclass(frozen=True, slots=True)
class ModelEntry:
    """A model of the catalogue."""

    name: str
    """Its name in plans."""
    summary: str
    """One-line description."""
    builder: str
    """``module:function``, called with a :class:`~accel_engine.models.data_description.DataDescription`; returns an
    uncompiled Keras model."""
    form: str = ""
    """The form of the examples that it takes, such as :data:`~accel_engine.models.data_description.IMAGES`; empty for
    numbers of any shape."""
    minimum_size: int = 0
    """The smallest height and width of images."""
    preprocesses: bool = False
    """Whether it has its own preprocessing layers."""
    learning_rate: float = 1e-3
    """The default learning rate with Adam."""
    tasks: tuple[str, ...] = NUMERIC_TASKS
    """The tasks that it can be built for."""
    any_size: bool = False
    """Whether dimensions of an example may be of any size, ``None``."""
    imagenet: bool = False
    """Whether Keras has ImageNet weights for it."""

    @property
    def takes(self) -> str:
        """Description of the data it accepts."""
        if self.form != IMAGES:
            return _TAKES[self.form]
        return f"images of at least {self.minimum_size}x{self.minimum_size}"

    def mismatch(self, data: DataDescription) -> str:
        """Return why it does not accept some data; empty if it does."""
        task = data.learned_task
        if data.has_several_targets:
            return f"model {self.name} has one output; the data has several targets: use a model of your own"
        if task not in self.tasks:
            learned = f"the data is for {task}" if task != "auto" else "the data has no classes"
            own = "use a model of your own"
            advice = {"custom": own, "auto": f"set the task, or {own}"}.get(task, "use auto, or a model of your own")
            return f"model {self.name} is for {' or '.join(self.tasks)}; {learned}: {advice}"
        if data.shape is None:
            return f"model {self.name} takes {self.takes}; the data has several inputs: use a model of your own"
        if data.dtype == "string" and self.form != TEXTS:
            return f"model {self.name} takes numbers; the data is text: use auto, or a model of your own"
        if not self._fits(data):
            kind = _AXES.get(self.form, "")
            hint = f", not {kind}" if kind and data.form != self.form else ""
            found = describe(data.inputs) if self.form in (TEXTS, TOKENS) else numbers.shape(data.shape)
            return f"model {self.name} takes {self.takes}; the data has {found}{hint}"
        if not self.any_size and None in data.shape and not data.has_open_columns:
            found = numbers.shape(data.shape)
            return f"model {self.name} takes examples of one size; the data has {found}: pad or cut the examples"
        if self.form == TOKENS and data.is_read and not data.vocabulary:
            return f"model {self.name} needs the vocabulary: return it with the data"
        if self.form == TEXTS and data.is_read and data.texts is None:
            return f"model {self.name} learns its words from texts in memory; the data is a stream"
        return ""

    def _fits(self, data: DataDescription) -> bool:
        """Whether it takes examples of this form and size."""
        if not self.form:
            return True
        if data.shape is None or data.form not in _FORMS.get(self.form, (self.form,)):
            return False
        return self.form != IMAGES or all((side or self.minimum_size) >= self.minimum_size for side in data.shape[:2])


@dataclass(frozen=True, slots=True)
class BuildOptions:
    """How a model is built."""

    pretrained: bool = False
    """Whether a model of the catalogue is built for ImageNet weights, with preprocessing and a new head."""
    download: bool = False
    """Whether to load these weights, from the network if Keras has not downloaded them yet."""
    custom_objects: str = ""
    """Python file with the custom classes and functions of a saved model; empty for none."""
    unsafe: bool = False
    """Whether a saved model may have lambda layers, which run code from its file."""
