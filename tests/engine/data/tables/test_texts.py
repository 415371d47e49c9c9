"""A table whose only input is a text gives texts to models of texts, as a folder of text files does."""

import numpy as np
import pytest

from accel_engine.data import DataOptions, find, load, survey
from accel_engine.data.structure import ArraySpec
from accel_engine.plan import Plan

REVIEWS = [f"the movie number {row} was {('good', 'bad')[row % 2]} to see" for row in range(40)]


@pytest.fixture
def file(tmp_path):
    path = tmp_path / "reviews.csv"
    path.write_text(
        "id,review,mood\n" + "".join(f"{7 * row},{text},{'+-'[row % 2]}\n" for row, text in enumerate(REVIEWS))
    )
    return str(path)


def test_texts_and_labels_are_those_of_a_folder(file, tmp_path):
    for row, text in enumerate(REVIEWS):
        (tmp_path / "folder" / "+-"[row % 2]).mkdir(parents=True, exist_ok=True)
        (tmp_path / "folder" / "+-"[row % 2] / f"{row}.txt").write_text(text)
    options = DataOptions(target=("mood",), takes_texts=True, split="none")
    dataset, folder = load(file, options), load(str(tmp_path / "folder"), options)
    assert (dataset.kind, dataset.task, dataset.class_names) == (folder.kind, folder.task, folder.class_names)
    assert dataset.spec == folder.spec
    assert dataset.preprocess is None

    def examples(found):
        every = found.train.take(np.arange(len(found.train)))
        return sorted(zip(every.inputs.tolist(), every.targets.tolist(), strict=True))

    assert examples(dataset) == examples(folder)
    assert dataset.feature_names == ("review",)


def test_a_survey_knows_the_texts(file):
    options = DataOptions(target=("mood",), takes_texts=True)
    entry, dataset = survey(find(file), options), load(file, options)
    assert (entry.kind, entry.spec, entry.shape) == ("text", dataset.spec, ())
    assert (entry.examples, entry.validation_examples) == (len(dataset.train), len(dataset.validation))
    assert entry.spec.inputs == ArraySpec((), "string")


@pytest.mark.parametrize(
    ("model", "kind"),
    [("auto", "text"), ("Bag-of-Words", "text"), ("text-cnn", "text"), ("mlp", "table"), ("linear", "table")],
)
def test_models_of_numbers_get_the_words_as_numbers(file, model, kind):
    plan = Plan(model=model, data=file, target=("mood",))
    assert survey(find(file), plan.data_options).kind == kind
    assert load(file, plan.data_options).kind == kind


def test_a_text_beside_other_columns_is_words_as_numbers(file):
    assert load(file, DataOptions(target=("mood",), features=("id", "review"), takes_texts=True)).kind == "table"


def test_validation_texts_are_of_the_same_column(file, tmp_path):
    other = tmp_path / "other.tsv"
    other.write_text("mood\treview\n+\t12\n-\tsome other text\n")
    options = DataOptions(target=("mood",), takes_texts=True, validation_data=str(other))
    validation = load(file, options).validation
    assert validation.inputs.tolist() == ["12", "some other text"]
    assert validation.targets.tolist() == [0, 1]
