"""Text classification with a Transformer block: brackets that close, or do not."""

import json

import keras
import numpy as np
from keras import layers, ops


class TransformerBlock(layers.Layer):
    def __init__(self, embed_dim, num_heads, ff_dim, rate=0.1):
        super().__init__()
        self.att = layers.MultiHeadAttention(num_heads=num_heads, key_dim=embed_dim)
        self.ffn = keras.Sequential([layers.Dense(ff_dim, activation="relu"), layers.Dense(embed_dim)])
        self.layernorm1 = layers.LayerNormalization(epsilon=1e-6)
        self.layernorm2 = layers.LayerNormalization(epsilon=1e-6)
        self.dropout1 = layers.Dropout(rate)
        self.dropout2 = layers.Dropout(rate)

    def call(self, inputs, training=False):
        attn_output = self.dropout1(self.att(inputs, inputs), training=training)
        out1 = self.layernorm1(inputs + attn_output)
        ffn_output = self.dropout2(self.ffn(out1), training=training)
        return self.layernorm2(out1 + ffn_output)


class TokenAndPositionEmbedding(layers.Layer):
    def __init__(self, maxlen, vocab_size, embed_dim):
        super().__init__()
        self.token_emb = layers.Embedding(input_dim=vocab_size, output_dim=embed_dim)
        self.pos_emb = layers.Embedding(input_dim=maxlen, output_dim=embed_dim)

    def call(self, x):
        return self.token_emb(x) + self.pos_emb(ops.arange(0, ops.shape(x)[-1]))


class WarmUp(keras.optimizers.schedules.LearningRateSchedule):
    def __init__(self, peak, warmup_steps):
        self.peak = peak
        self.warmup_steps = warmup_steps

    def __call__(self, step):
        step = ops.cast(step, "float32") + 1
        return self.peak * ops.minimum(step / self.warmup_steps, ops.sqrt(self.warmup_steps / step))


def brackets(count, maxlen):
    rng = np.random.default_rng(8)
    signs = rng.choice([-1, 1], size=(count, maxlen))
    balanced = rng.random(count) < 0.5
    depth = np.zeros(count, int)
    for t in range(maxlen):
        left = maxlen - t
        signs[:, t] = np.where(balanced & (depth <= 0), 1, signs[:, t])
        signs[:, t] = np.where(balanced & (depth >= left), -1, signs[:, t])
        depth += signs[:, t]
    labels = ((np.cumsum(signs, axis=1).min(axis=1) >= 0) & (depth == 0)).astype("int32")
    return (signs + 1) // 2 + 1, labels


keras.utils.set_random_seed(5)
maxlen, vocab_size, embed_dim = 12, 3, 16
x, y = brackets(1000, maxlen)
x_train, y_train, x_val, y_val = x[:800], y[:800], x[800:], y[800:]
print(len(x_train), "Training sequences")
print(len(x_val), "Validation sequences")

inputs = layers.Input(shape=(maxlen,))
h = TokenAndPositionEmbedding(maxlen, vocab_size, embed_dim)(inputs)
h = TransformerBlock(embed_dim, 2, 32)(h)
h = layers.GlobalAveragePooling1D()(h)
h = layers.Dropout(0.1)(h)
outputs = layers.Dense(2, activation="softmax")(h)
model = keras.Model(inputs=inputs, outputs=outputs)
model.compile(keras.optimizers.Adam(WarmUp(5e-3, 20)), "sparse_categorical_crossentropy", metrics=["accuracy"])
history = model.fit(x_train, y_train, batch_size=32, epochs=3, validation_data=(x_val, y_val))
with open("history.json", "w") as file:
    json.dump(history.history, file)
