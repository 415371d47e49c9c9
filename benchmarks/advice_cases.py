"""The cases of ``advice.py``: healthy runs, and the same with a fault each."""

import advice_data as data
import advice_models as models
import advice_scripts as scripts
import advice_slow_cases as slow
from advice_case import Case
from advice_runs import Scripted, Trained


def _fit(*arguments: object, **options: object) -> Scripted:
    return Scripted(script=scripts.fit(*arguments, **options))  # type: ignore[arg-type]


def _falling(step: int, rng: object) -> float:
    return float(0.2 + 2 / (1 + step / 30) + 0.05 * rng.normal())  # type: ignore[attr-defined]


HEALTHY: tuple[Case, ...] = (
    *slow.HEALTHY,
    Case("digits", Trained(data=data.digits, plan={"epochs": 10})),
    Case("digits-2-epochs", Trained(data=data.digits, plan={"epochs": 2})),
    Case("digits-catalogue", Trained(model="mlp", plan={"epochs": 8})),
    Case("digits-cnn", Trained(model="own:convolutional", plan={"epochs": 8, "batch_size": 32})),
    Case("digits-augmented", Trained(model="own:convolutional", plan={"epochs": 6, "augmentation": ("crop",)})),
    Case("digits-cosine", Trained(plan={"epochs": 12, "schedule": "cosine", "warmup": 0.1})),
    Case("digits-sgd", Trained(plan={"epochs": 10, "optimizer": "sgd", "learning_rate": 0.1, "momentum": 0.9})),
    Case("digits-small-batch", Trained(plan={"epochs": 4, "batch_size": 8})),
    Case("digits-large-batch", Trained(plan={"epochs": 20, "batch_size": 256, "learning_rate": 0.005})),
    Case("digits-early-stopping", Trained(plan={"epochs": 60, "patience": 3, "restore_best": "on"})),
    Case("digits-layers", Trained(plan={"epochs": 6, "gradient_norm": "layers"})),
    Case("digits-resnet", Trained(model="resnet20", plan={"epochs": 2, "steps_per_epoch": 12})),
    Case("noise-0", Trained(data=data.digits, changes=(data.noisy_labels(0.0),), plan={"epochs": 15})),
    Case("digits-long", Trained(data=data.digits, plan={"epochs": 40})),
    Case("logits", Trained(data=data.digits, model="own:logits", plan={"epochs": 6})),
    Case("table", Trained(data=data.table, model="tabular", plan={"epochs": 20})),
    Case("table-gap", Trained(data=lambda: data.table(800), model="own:dense", plan={"epochs": 25})),
    Case("numbers", Trained(data=data.numbers, model="own:number", plan={"epochs": 20})),
    Case("numbers-catalogue", Trained(data=data.numbers, model="tabular", plan={"epochs": 15})),
    Case("spirals", Trained(data=data.spirals, model="own:large", plan={"epochs": 15, "batch_size": 32})),
    Case("labels", Trained(data=data.labels_of_many, model="own:many_labels", plan={"epochs": 15})),
    Case("rare-but-clear", Trained(data=lambda: data.rare(overlap=4.0), plan={"epochs": 20})),
    Case("segmentation", Trained(data=data.circles, model="own:pixels", plan={"epochs": 8, "batch_size": 16})),
    Case("autoencoder", Trained(model="autoencoder", plan={"epochs": 6, "task": "reconstruction"})),
    Case("tokens", Trained(data=data.words, model="own:tokens", plan={"epochs": 12})),
    Case("series", Trained(data=data.series, model="own:recurrent", plan={"epochs": 6})),
    Case("synthetic-stop", Trained(data=data.table, plan={"epochs": 50, "time_limit": "2s"})),
    Case("fit-digits", _fit(data.digits, models.dense, epochs=6)),
    Case("fit-numbers", _fit(data.numbers, models.number, epochs=8)),
    Case("fit-2-epochs", _fit(data.table, models.dense, epochs=2, batch=16)),
    Case("loop", Scripted(script=scripts.loop(_falling))),
    Case("loop-logistic", Scripted(script=scripts.linear(0.5))),
    Case("gan", Scripted(script=scripts.two_networks)),
)

FAULTS: tuple[Case, ...] = (
    *slow.FAULTS,
    Case(
        "shuffled-labels",
        Trained(data=data.digits, changes=(data.shuffled_labels,), plan={"epochs": 10}),
        ("labels-unrelated",),
    ),
    Case(
        "shuffled-labels-table",
        Trained(data=data.table, changes=(data.shuffled_labels,), plan={"epochs": 20}),
        ("labels-unrelated",),
    ),
    Case(
        "noise-10",
        Trained(data=data.digits, changes=(data.noisy_labels(0.1),), plan={"epochs": 15}),
        ("label-noise",),
        ("overfitting",),
    ),
    Case(
        "noise-50",
        Trained(data=data.digits, changes=(data.noisy_labels(0.5),), plan={"epochs": 15}),
        ("label-noise",),
        ("overfitting",),
    ),
    Case("rate-low", Trained(data=data.digits, plan={"epochs": 6, "learning_rate": 1e-5}), ("learning-rate-low",)),
    Case(
        "rate-low-sgd",
        Trained(data=data.digits, plan={"epochs": 6, "optimizer": "sgd", "learning_rate": 1e-4}),
        ("learning-rate-low",),
    ),
    Case(
        "rate-low-numbers",
        Trained(data=data.numbers, model="own:number", plan={"epochs": 6, "learning_rate": 1e-5}),
        ("learning-rate-low",),
    ),
    Case("rate-high", Trained(data=data.digits, plan={"epochs": 6, "learning_rate": 0.3}), ("learning-rate-high",)),
    Case(
        "rate-high-sgd",
        Trained(data=data.digits, plan={"epochs": 6, "optimizer": "sgd", "learning_rate": 10.0}),
        ("learning-rate-high", "diverging", "not-a-number"),
    ),
    Case(
        "rate-high-numbers",
        Trained(
            data=data.numbers,
            model="own:number",
            plan={"epochs": 6, "optimizer": "sgd", "learning_rate": 2.0, "on_nan": "continue"},
        ),
        ("learning-rate-high", "diverging", "not-a-number"),
    ),
    Case(
        "rate-high-cnn",
        Trained(model="own:convolutional", plan={"epochs": 6, "learning_rate": 0.3}),
        ("learning-rate-high",),
    ),
    Case(
        "not-scaled",
        Trained(data=data.digits, changes=(data.scaled(2550.0),), plan={"epochs": 5}),
        ("inputs-not-scaled",),
    ),
    Case(
        "not-scaled-sgd",
        Trained(
            data=data.digits,
            changes=(data.scaled(255.0),),
            plan={"epochs": 5, "optimizer": "sgd", "learning_rate": 0.01},
        ),
        ("inputs-not-scaled",),
        ("learning-rate-high",),
    ),
    Case(
        "uneven-features", Trained(data=data.table, changes=(data.uneven,), plan={"epochs": 10}), ("inputs-not-scaled",)
    ),
    Case(
        "large-targets",
        Trained(data=data.numbers, changes=(data.large_targets,), model="own:number", plan={"epochs": 8}),
        ("targets-not-scaled",),
    ),
    Case(
        "wrong-loss",
        Trained(data=data.digits, model="own:logits_as_probabilities", plan={"epochs": 6}),
        ("wrong-output",),
    ),
    Case("one-softmax", Trained(data=data.spirals, model="own:one_softmax", plan={"epochs": 6}), ("wrong-output",)),
    Case(
        "bounded-output", Trained(data=data.numbers, model="own:bounded_number", plan={"epochs": 8}), ("wrong-output",)
    ),
    Case("dead-relu", Trained(data=data.digits, model="own:dead", plan={"epochs": 6}), ("constant-output",)),
    Case(
        "constant-inputs",
        Trained(data=data.digits, changes=(data.constant_inputs,), plan={"epochs": 5}),
        ("inputs-alike",),
    ),
    Case(
        "vanishing",
        Trained(data=data.digits, model="own:deep_sigmoid", plan={"epochs": 5, "gradient_norm": "layers"}),
        ("vanishing-gradients",),
    ),
    Case(
        "tiny-batch",
        Trained(data=data.digits, model="own:normalized", plan={"epochs": 6, "batch_size": 2}),
        ("batch-norm-small-batch",),
    ),
    Case("huge-batch", Trained(data=data.digits, plan={"epochs": 5, "batch_size": 1437}), ("batch-too-large",)),
    Case("leak", Trained(data=data.digits, changes=(data.leaked(0.5),), plan={"epochs": 8}), ("leak",)),
    Case("leak-small", Trained(data=data.table, changes=(data.leaked(0.1),), plan={"epochs": 8}), ("leak",)),
    Case(
        "shift",
        Trained(data=data.digits, changes=(data.scaled(0.4, 0.6, only="val"),), plan={"epochs": 8}),
        ("validation-shift",),
    ),
    Case(
        "other-classes",
        Trained(data=data.digits, changes=(data.other_classes,), plan={"epochs": 6}),
        ("validation-shift",),
        ("overfitting",),
    ),
    Case("imbalance", Trained(data=data.rare, plan={"epochs": 10}), ("imbalance",)),
    Case(
        "few",
        Trained(data=data.digits, changes=(data.few(60),), model="own:large", plan={"epochs": 40}),
        ("too-few-examples", "overfitting"),
        ("overfitting", "too-few-examples"),
    ),
    Case(
        "overfitting",
        Trained(data=lambda: data.table(400), model="own:large", plan={"epochs": 40}),
        ("overfitting",),
        ("too-few-examples",),
    ),
    Case("duplicates", Trained(data=data.digits, changes=(data.repeated(3),), plan={"epochs": 6}), ("duplicates",)),
    Case("underfitting", Trained(data=data.digits, model="own:tiny", plan={"epochs": 40}), ("underfitting",)),
    Case(
        "forgotten-shuffle",
        Trained(data=data.digits, changes=(data.sorted_by_class,), plan={"epochs": 8, "shuffle": "off"}),
        ("not-shuffled",),
    ),
    Case(
        "fit-forgotten-shuffle",
        _fit(data.digits, models.dense, epochs=6, shuffle=False, changes=(data.sorted_by_class,)),
        ("not-shuffled",),
    ),
    Case("fit-rate-low", _fit(data.digits, models.dense, epochs=5, rate=1e-5), ("learning-rate-low",)),
    Case("fit-rate-high", _fit(data.digits, models.dense, epochs=5, rate=0.3), ("learning-rate-high",)),
    Case(
        "fit-shuffled-labels",
        _fit(data.digits, models.dense, epochs=10, changes=(data.shuffled_labels,)),
        ("labels-unrelated", "loss-flat", "overfitting"),
        ("overfitting",),
    ),
    Case("fit-wrong-loss", _fit(data.digits, models.logits_as_probabilities, epochs=4), ("wrong-output",)),
)
