"""Writes ``MODEL_CARD.md``: what a model is, what it was trained on, how good it is, and its limits."""

from collections.abc import Iterator

from accel_engine.deploy_folder.facts import Facts, figure, markdown_table, versions_line
from accel_engine.deploy_folder.rendering import Block, markdown_text, rendered
from accel_engine.requests.evaluate import EvaluatedModel, Measurement
from accel_engine.words import numbers

NOT_GIVEN = "not given: say here who may use it, or give --licence"
"""What stands for a licence that the user did not give."""

FEW_EXAMPLES = 30
"""Examples of a class below which its figures say little."""

_MOST_CLASSES = 50
"""Classes in the table, those with the lowest F1."""

_BY_KIND = {
    "table": "Categories that the training examples had not count as one, and numbers outside of their range are "
    "extrapolated.",
    "text": "Words that were not in the training examples are one and the same to the model.",
    "series": "It knows only the rows of its window, and assumes that what follows is like what it was trained on.",
    "audio": "Sounds of another length or sample rate are cut, padded or resampled before.",
    "language": "It continues a text by what is likely, which need not be true.",
    "images": "Pictures of another size are scaled to the model's, and pictures of other things get an answer as well.",
}
"""What limits a model, by the kind of its data."""


def model_card(facts: Facts) -> str:
    """The text of the card."""
    service, evaluation = facts.service, facts.evaluation
    found = evaluation.models[0] if evaluation else None
    note = f"Note of who trained it: {markdown_text(facts.note)}\n\n" if facts.note else ""
    return rendered(
        "MODEL_CARD.md",
        {
            "name": service.name,
            "task": service.task,
            "run": service.run,
            "step": f"{service.step:,}",
            "date": facts.trained or "a day that is not known",
            "model": facts.model,
            "model_format": _format_line(facts),
            "versions": versions_line(service.versions),
            "licence": facts.licence or NOT_GIVEN,
            "use": Block(f"{note}Not stated by who trained it: say here what it is for, and what it is not for."),
            "data_lines": Block("\n".join(f"- {each}" for each in _data(facts))),
            "metrics_about": Block(_metrics_about(facts)),
            "metrics": Block(_metrics(facts, found)),
            "classes_about": Block(_classes_about(found)),
            "classes": Block(_classes(found)),
            "limits": Block("\n".join(f"- {each}" for each in _limits(facts, found))),
            "signature": Block(_signature(facts)),
            "plan": Block(
                markdown_table(["Field", "Value"], [[f"`{name}`", markdown_text(v)] for name, v in facts.plan_lines])
            ),
        },
    )


def _format_line(facts: Facts) -> str:
    model = facts.service.model
    precision = "" if model.quantize == "none" else f" with {model.quantize} weights"
    return f"{model.format}{precision}, {numbers.size(model.size)}"


def _data(facts: Facts) -> Iterator[str]:
    service = facts.service
    yield f"Data: {markdown_text(service.data)}"
    if facts.training_examples is not None:
        held = f", {facts.validation_examples:,} of validation" if facts.validation_examples is not None else ""
        yield f"Examples: {facts.training_examples:,} of training{held}"
    if service.data_hash:
        yield f"Hash of the data: {markdown_text(service.data_hash)}, of a part of it where it is large"
    if names := service.class_names:
        yield f"Classes: {len(names):,}: {markdown_text(numbers.listed(names, 50))}"
    yield "Where it is from, who is in it, and what they agreed to: not known to accel-tui. Say it here."


def _interval(measured: Measurement) -> str:
    if measured.low is None or measured.high is None:
        return "-"
    return f"{figure(measured.low)} to {figure(measured.high)}"


def _metrics_about(facts: Facts) -> str:
    if facts.evaluation is None:
        return (
            f"On the {markdown_text(facts.service.split)} examples, of the served file, without intervals: the "
            "evaluation of the run failed."
        )
    return (
        f"The trained model on {facts.evaluation.examples:,} {markdown_text(facts.evaluation.split)} examples, with "
        "95% confidence intervals, and what is served on the same ones."
    )


def _metrics(facts: Facts, found: EvaluatedModel | None) -> str:
    served = facts.service.metrics
    if found is None:
        return markdown_table(
            ["Metric", "Served"], [[markdown_text(name), figure(value)] for name, value in served.items()]
        )
    rows = [
        [markdown_text(name), figure(each.value), _interval(each), figure(served.get(name))]
        + ([figure(found.baseline.get(name))] if found.baseline else [])
        for name, each in found.metrics.items()
    ]
    more = [markdown_text(found.baseline_name or "baseline")] if found.baseline else []
    return markdown_table(["Metric", "Trained model", "95% interval", "Served", *more], rows)


def _classes_about(found: EvaluatedModel | None) -> str:
    if found is None or not found.classes:
        return ""
    more = f" The {_MOST_CLASSES} with the lowest F1." if len(found.classes) > _MOST_CLASSES else ""
    return f"By class, with 95% intervals.{more}"


def _classes(found: EvaluatedModel | None) -> str:
    if found is None or not found.classes:
        return ""
    worst = sorted(found.classes, key=lambda each: -1.0 if each.f1.value is None else each.f1.value)[:_MOST_CLASSES]
    rows = [
        [
            markdown_text(each.name),
            f"{each.examples:,}",
            *(f"{figure(m.value, 3)} ({_interval(m)})" for m in (each.precision, each.recall, each.f1)),
        ]
        for each in worst
    ]
    return markdown_table(["Class", "Examples", "Precision", "Recall", "F1"], rows)


def _limits(facts: Facts, found: EvaluatedModel | None) -> Iterator[str]:
    service = facts.service
    yield (
        f"The figures are of held-out examples of {markdown_text(service.data)}. On other data they may be worse; "
        "measure them there."
    )
    if service.kind in _BY_KIND:
        yield _BY_KIND[service.kind]
    if service.class_names:
        yield "It always answers with one of its classes, also for inputs that are none of them."
    if found and (few := [each.name for each in found.classes if each.examples < FEW_EXAMPLES]):
        names = markdown_text(numbers.listed(few))
        yield f"Fewer than {FEW_EXAMPLES} examples, so that their figures say little: {names}."
    if found:
        yield from (markdown_text(note) for note in found.notes)
    if service.model.quantize != "none":
        precision = markdown_text(service.model.quantize)
        yield f"Weights are stored as {precision}: answers differ a little from the trained model's."
    yield "Whether it treats groups of people alike was not measured."


def _signature(facts: Facts) -> str:
    service = facts.service
    rows = [["input", markdown_text(each.name), markdown_text(str(each.spec))] for each in service.inputs]
    rows += [["output", markdown_text(each.name), markdown_text(str(each.spec))] for each in service.outputs]
    return markdown_table(["", "Name", "Type"], rows)
