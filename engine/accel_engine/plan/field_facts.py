"""What is known of a plan field besides its values: the words about it, and what it does."""

from dataclasses import KW_ONLY, dataclass
from typing import Literal, TypeAlias

Group: TypeAlias = Literal[
    "Model and data",
    "Task, inputs",
    "Columns",
    "Time series",
    "Splits",
    "Epochs, batches",
    "Loss, metrics",
    "Optimizer",
    "LR schedule",
    "Augmentation",
    "Fine-tuning",
    "Validation",
    "Early stopping",
    "Checkpoints",
    "Devices",
]
"""Titles of groups; at most 15 characters, to stand before the values in the form."""

Effect: TypeAlias = Literal["data", "learning", "loss", "speed", "memory", "steps", "intervals", "report"]
"""What a field changes of all steps, or between them:

- ``data``: the examples of training or validation
- ``learning``: how a step changes the weights
- ``loss``: which function the loss is, so that its values cannot be compared
- ``speed``: how fast the steps are
- ``memory``: how much memory they need
- ``steps``: how many steps there are, and how many examples a replica gets at once
- ``intervals``: how often something happens between steps
- ``report``: what is measured, recorded and compared
"""

ChangedBy: TypeAlias = Literal["nothing", "continuation", "command"]
"""What may change a field of a run that has begun; ``command``: a command to its engine, or a continuation."""


@dataclass(frozen=True, slots=True)
class FieldWords:
    """The words about a field, for the form, the command line and files.

    Attributes:
        group: Its group in the form and in the help.
        why: The reason of its default, in a few words.
        label: Its label, if that is not its name.
        placeholder: The value that an empty field stands for, where the specification's ``none`` does not say it.
        metavar: The word for its value in the help of commands, if it is not the last one of its name; the word for
            one item of a list.
        synonyms: Words of Keras and others, by which it is found.
        suggestions: Usual values of a free text, with descriptions.
        catalogue: The module whose ``CATALOGUE`` has further values by name.
        takes_files: Whether a path is completed.
        first: Its column and row among the fields that the form shows first; the others are folded by group.
        leads_group: Whether its value says enough after the title of its group.
    """

    group: Group
    why: str
    label: str = ""
    placeholder: str = ""
    metavar: str = ""
    synonyms: tuple[str, ...] = ()
    suggestions: tuple[tuple[str, str], ...] = ()
    catalogue: str = ""
    takes_files: bool = False
    first: tuple[int, int] | None = None
    leads_group: bool = False


@dataclass(frozen=True, slots=True)
class FieldUse:
    """What a field does, and who may change it.

    Attributes:
        affects: What it changes, first what it is set for; empty if it changes no step.
        changed_by: What may change it in a run that has begun; nothing, if a checkpoint depends on it: it decides what
            variables mean (model, optimizer), or which examples were trained on (data, batch size, seed).
        fixed: Why a search cannot vary it; empty if it can.
        only_training: Whether only training needs it: a trained run is opened as if it had the default.
        argument: The argument of Keras' optimizers that it sets.
        replaced_by: What replaces it in a model with a custom ``train_step``: that, or the model's several optimizers.
        fits_tasks: Whether its value fits some tasks only, and is left out for other ones.
    """

    affects: tuple[Effect, ...]
    _: KW_ONLY
    changed_by: ChangedBy
    fixed: str
    only_training: bool
    argument: str = ""
    replaced_by: Literal["", "train_step", "optimizers"] = ""
    fits_tasks: bool = False
