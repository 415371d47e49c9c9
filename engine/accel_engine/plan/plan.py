"""The plan of a run: model, data, devices and training settings."""

import difflib
import json
from collections.abc import Container, Mapping
from dataclasses import dataclass, fields, replace
from typing import Any, Self

from accel_engine import data, models, strategies
from accel_engine.data.data_options import PLAN_FIELDS, DataOptions
from accel_engine.errors import FieldValue, PlanError
from accel_engine.plan.field_spec import AUTO
from accel_engine.plan.fields import DEFAULTS, SPECS, USES, PlanFields, fields_called
from accel_engine.plan.plan_checks import errors_of_plan
from accel_engine.plan.task_choices import WEIGHT_FILES
from accel_engine.text import shell_command
from accel_engine.user_paths import absolute_path, user_path


@dataclass(frozen=True, slots=True, kw_only=True)
class Plan(PlanFields):
    """The settings of a run, checked on construction.

    Raises:
        PlanError: The value of a field is not allowed.
    """

    def __post_init__(self) -> None:
        for item in fields(self):
            object.__setattr__(self, item.name, SPECS[item.name].check(item.name, getattr(self, item.name)))
        models.find(self.model)
        data.find(self.data)
        strategies.find(self.strategy)
        for error in errors_of_plan(self):
            raise error

    @classmethod
    def from_mapping(cls, values: Mapping[str, Any]) -> Self:
        """Make a plan from names and values.

        Raises:
            PlanError: A name is unknown, or a value is invalid.
        """
        for name in values:
            if name not in SPECS:
                raise unknown_field(name, values[name])
        return cls(**values)

    @classmethod
    def of_trained_run(cls, values: Mapping[str, Any]) -> Self:
        """Make the plan with which a trained run is opened: what only training needs has its default, whatever it was.

        Args:
            values: The run's plan. A precision that follows from the strategy becomes the plan's own.

        Raises:
            PlanError: A name is unknown, or a value is invalid.
        """
        kept = {name: value for name, value in values.items() if name not in USES or not USES[name].only_training}
        if kept.get("precision", "auto") == "auto":
            strategy = SPECS["strategy"].check("strategy", values.get("strategy", DEFAULTS["strategy"]))
            kept["precision"] = strategies.find(strategy).precision
        return cls.from_mapping(kept)

    def to_mapping(self) -> dict[str, Any]:
        """Return all fields by name, in types of JSON."""
        values = {name: getattr(self, name) for name in SPECS}
        return {name: _plain(value) for name, value in values.items()}

    def to_json(self) -> str:
        """Format the plan as a JSON object."""
        return json.dumps(self.to_mapping())

    def changed(self) -> dict[str, Any]:
        """Return the fields that are not at their defaults."""
        return {name: value for name, value in self.to_mapping().items() if value != _plain(DEFAULTS[name])}

    def replace(self, **changes: Any) -> Self:
        """Return a copy with some fields changed."""
        return replace(self, **changes)

    def absolute(self) -> Self:
        """Return a copy with absolute paths, so that the run can be continued from any directory."""
        model, data_path = models.find(self.model), data.find(self.data).path
        changes = {}
        if isinstance(model, models.UserModel) and model.kind != "module":
            target = str(absolute_path(user_path(model.target)))
            changes["model"] = f"{target}:{model.function}" if model.function else target
        if data_path is not None:
            function = data.find(self.data).function
            changes["data"] = str(absolute_path(data_path)) + (f":{function.rpartition(':')[2]}" if function else "")
        if self.validation_data and (held_out := data.find(self.validation_data)).path is not None:
            function = f":{held_out.function.rpartition(':')[2]}" if held_out.function else ""
            changes["validation_data"] = str(absolute_path(held_out.path)) + function
        for name in ("custom_objects", "initial_weights"):
            if (path := getattr(self, name)).endswith((".py", *WEIGHT_FILES)):
                changes[name] = str(absolute_path(user_path(path)))
        return self.replace(**changes)

    def command(self, always: Container[str] = ()) -> str:
        """Format the shell command that trains this plan, without fields at their defaults.

        Args:
            always: Fields to include anyway, because a setting overrides their defaults.
        """
        words = ["accel-tui", "train"]
        changed = self.changed()
        for name, value in self.to_mapping().items():
            if name in changed or name in always:
                words += option_words(name, value)
        return shell_command(words)

    @property
    def data_options(self) -> DataOptions:
        """How the data is read and split."""
        values = {name: getattr(self, name) for name in PLAN_FIELDS}
        seed = self.seed if self.split_seed is None else self.split_seed
        return DataOptions(**values | {"seed": seed}, takes_texts=models.takes_texts(self.model))

    @property
    def policy(self) -> str:
        """The model's Keras dtype policy."""
        return strategies.find(self.strategy).precision if self.precision == "auto" else self.precision

    @property
    def title(self) -> str:
        """The run's name, or its model and data."""
        return self.name or f"{models.find(self.model).name} on {data.find(self.data).name}"


def option_words(name: str, value: Any) -> list[str]:
    """A field as an option of a command, and its value."""
    return [str(FieldValue(name)), _text(value)]


def _text(value: Any) -> str:
    return AUTO if value in (None, []) else ",".join(value) if isinstance(value, list | tuple) else str(value)


def unknown_field(name: str, value: object) -> PlanError:
    """The error of a name that is not a field."""
    near = difflib.get_close_matches(name.replace("-", "_"), SPECS, n=1)
    near = near or fields_called(name.replace("-", "_"))
    hint = f"did you mean {near[0]}?" if near else "accel-tui train --help lists all fields"
    if isinstance(value, dict):
        fields_of = ", ".join(value) or "its fields"
        hint = f"a plan has no tables: remove the header [{name}] and keep {fields_of}"
    return PlanError(name, value, f"unknown field; {hint}")


def default_text(name: str) -> str:
    """The default of a field as text; empty for none."""
    value = DEFAULTS[name]
    return ",".join(value) if isinstance(value, tuple) else "" if value is None else str(value)


def _plain(value: Any) -> Any:
    return list(value) if isinstance(value, tuple) else value
