"""Text classification from raw strings, with a TextVectorization layer in the input pipeline."""

import json
import random

import keras
import tensorflow as tf
from keras import layers

MAX_FEATURES = 500
EMBEDDING_DIM = 16
SEQUENCE_LENGTH = 12

GOOD = ["great", "superb", "wonderful", "moving", "a delight", "funny and warm"]
BAD = ["boring", "awful", "a waste of time", "badly acted", "clumsy", "far too long"]
PARTS = ["the acting", "this movie", "the plot", "every scene", "the ending", "the music"]


def make_reviews(count, seed):
    rng = random.Random(seed)
    texts, labels = [], []
    for _ in range(count):
        label = rng.randrange(2)
        words = [f"{rng.choice(PARTS)} is {rng.choice(GOOD if label else BAD)}" for _ in range(rng.randint(1, 3))]
        texts.append(", ".join(words) + ("!" if rng.random() < 0.5 else "<br />."))
        labels.append(label)
    return tf.data.Dataset.from_tensor_slices((texts, labels)).batch(32)


def custom_standardization(input_data):
    lowercase = tf.strings.lower(input_data)
    stripped_html = tf.strings.regex_replace(lowercase, "<br />", " ")
    return tf.strings.regex_replace(stripped_html, r"[^a-z ]", "")


keras.utils.set_random_seed(42)
raw_train_ds = make_reviews(800, seed=1)
raw_val_ds = make_reviews(200, seed=2)

vectorize_layer = layers.TextVectorization(
    standardize=custom_standardization,
    max_tokens=MAX_FEATURES,
    output_mode="int",
    output_sequence_length=SEQUENCE_LENGTH,
)
vectorize_layer.adapt(raw_train_ds.map(lambda x, y: x))
print("vocabulary:", len(vectorize_layer.get_vocabulary()), vectorize_layer.get_vocabulary()[:8])


def vectorize_text(text, label):
    return vectorize_layer(tf.expand_dims(text, -1)), label


train_ds = raw_train_ds.map(vectorize_text).cache().prefetch(2)
val_ds = raw_val_ds.map(vectorize_text).cache().prefetch(2)

inputs = keras.Input(shape=(None,), dtype="int64")
x = layers.Embedding(MAX_FEATURES, EMBEDDING_DIM)(inputs)
x = layers.Dropout(0.3)(x)
x = layers.Conv1D(32, 3, padding="valid", activation="relu")(x)
x = layers.GlobalMaxPooling1D()(x)
x = layers.Dense(16, activation="relu")(x)
predictions = layers.Dense(1, activation="sigmoid", name="predictions")(x)
model = keras.Model(inputs, predictions)
model.compile(loss="binary_crossentropy", optimizer="adam", metrics=["accuracy"])

history = model.fit(train_ds, validation_data=val_ds, epochs=4)

export = keras.Sequential([keras.Input(shape=(1,), dtype="string"), vectorize_layer, model])
samples = ["this movie is a delight", "the plot is awful"]
for text, score in zip(samples, export.predict(tf.constant(samples), verbose=0)[:, 0], strict=True):
    print(f"{text!r}: {score:.3f}")

with open("history.json", "w") as file:
    json.dump(history.history, file)
