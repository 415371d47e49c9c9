"""An input pipeline with tf.data: records on disk, parallel maps, shuffling, repetition and prefetching."""

import json
import os

import tensorflow as tf

AUTOTUNE = tf.data.AUTOTUNE
tf.keras.utils.set_random_seed(26)


def serialize(features, label):
    feature = {
        "features": tf.train.Feature(float_list=tf.train.FloatList(value=features)),
        "label": tf.train.Feature(int64_list=tf.train.Int64List(value=[label])),
    }
    return tf.train.Example(features=tf.train.Features(feature=feature)).SerializeToString()


def parse(record):
    parsed = tf.io.parse_single_example(
        record, {"features": tf.io.FixedLenFeature([8], tf.float32), "label": tf.io.FixedLenFeature([], tf.int64)}
    )
    return parsed["features"], parsed["label"]


os.makedirs("records", exist_ok=True)
x = tf.random.stateless_normal((600, 8), seed=(7, 8)).numpy()
for shard in range(3):
    with tf.io.TFRecordWriter(f"records/part-{shard}.tfrecord") as writer:
        for row in x[shard::3]:
            writer.write(serialize(row, int(row[0] > row[1]) + int(row[2] > 1)))

files = sorted(tf.io.gfile.glob("records/*.tfrecord"))
dataset = tf.data.TFRecordDataset(files).map(parse, num_parallel_calls=AUTOTUNE).cache()
training = dataset.skip(100).shuffle(500, seed=3).repeat().batch(50).prefetch(AUTOTUNE)
validation = dataset.take(100).batch(50)
print(training.element_spec)

model = tf.keras.Sequential([tf.keras.Input((8,)), tf.keras.layers.Dense(32, "relu"), tf.keras.layers.Dense(3)])
model.compile(
    optimizer=tf.keras.optimizers.Adam(tf.keras.optimizers.schedules.CosineDecay(0.02, 40)),
    loss=tf.keras.losses.SparseCategoricalCrossentropy(from_logits=True),
    metrics=["accuracy"],
)
history = model.fit(training, steps_per_epoch=10, epochs=4, validation_data=validation, verbose=2)
with open("history.json", "w") as file:
    json.dump(history.history, file)
