"""Image similarity with a siamese network and a contrastive loss."""

import json
import random

import keras
import numpy as np
from keras import ops

epochs = 4
batch_size = 16
margin = 1

keras.utils.set_random_seed(123)


def load_shapes(count):
    rng = np.random.default_rng(4)
    rows, columns = np.mgrid[0:10, 0:10]
    labels = rng.integers(0, 3, count)
    images = np.zeros((count, 10, 10), "float32")
    for image, label in zip(images, labels, strict=True):
        a, b = rng.integers(3, 7, 2)
        r = rng.integers(2, 4)
        distance = [np.maximum(abs(rows - a), abs(columns - b)), np.hypot(rows - a, columns - b), abs(columns - b) * 3]
        image[:] = distance[label] <= r
    return images + rng.normal(0, 0.05, images.shape).astype("float32"), labels


def make_pairs(x, y):
    digit_indices = [np.where(y == i)[0] for i in range(max(y) + 1)]
    pairs, labels = [], []
    for idx1 in range(len(x)):
        label1 = y[idx1]
        pairs += [[x[idx1], x[random.choice(digit_indices[label1])]]]
        labels += [0]
        label2 = random.choice([i for i in range(max(y) + 1) if i != label1])
        pairs += [[x[idx1], x[random.choice(digit_indices[label2])]]]
        labels += [1]
    return np.array(pairs), np.array(labels).astype("float32")


x, y = load_shapes(500)
pairs_train, labels_train = make_pairs(x[:300], y[:300])
pairs_val, labels_val = make_pairs(x[300:400], y[300:400])
pairs_test, labels_test = make_pairs(x[400:], y[400:])


def euclidean_distance(vects):
    a, b = vects
    sum_square = ops.sum(ops.square(a - b), axis=1, keepdims=True)
    return ops.sqrt(ops.maximum(sum_square, keras.backend.epsilon()))


embedding_input = keras.layers.Input((10, 10, 1))
h = keras.layers.BatchNormalization()(embedding_input)
h = keras.layers.Conv2D(4, (5, 5), activation="tanh")(h)
h = keras.layers.AveragePooling2D(pool_size=(2, 2))(h)
h = keras.layers.Flatten()(h)
h = keras.layers.Dense(10, activation="tanh")(h)
embedding_network = keras.Model(embedding_input, h)

input_1 = keras.layers.Input((10, 10, 1))
input_2 = keras.layers.Input((10, 10, 1))
merge_layer = keras.layers.Lambda(euclidean_distance, output_shape=(1,))(
    [embedding_network(input_1), embedding_network(input_2)]
)
output_layer = keras.layers.Dense(1, activation="sigmoid")(keras.layers.BatchNormalization()(merge_layer))
siamese = keras.Model(inputs=[input_1, input_2], outputs=output_layer)


def loss(margin=1):
    def contrastive_loss(y_true, y_pred):
        square_pred = ops.square(y_pred)
        margin_square = ops.square(ops.maximum(margin - y_pred, 0))
        return ops.mean((1 - y_true) * square_pred + y_true * margin_square)

    return contrastive_loss


siamese.compile(loss=loss(margin=margin), optimizer="RMSprop", metrics=["accuracy"])
history = siamese.fit(
    [pairs_train[:, 0], pairs_train[:, 1]],
    labels_train,
    validation_data=([pairs_val[:, 0], pairs_val[:, 1]], labels_val),
    batch_size=batch_size,
    epochs=epochs,
)
results = siamese.evaluate([pairs_test[:, 0], pairs_test[:, 1]], labels_test, verbose=0)
print("test loss, test acc:", results)
with open("history.json", "w") as file:
    json.dump(history.history, file)
