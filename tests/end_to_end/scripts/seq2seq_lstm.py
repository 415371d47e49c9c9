"""Character-level recurrent sequence-to-sequence model: English numbers to French, with teacher forcing."""

import json

import keras
import numpy as np

keras.utils.set_random_seed(99)

batch_size = 16
epochs = 30
latent_dim = 48

ENGLISH = "zero one two three four five six seven eight nine".split()
FRENCH = "zero un deux trois quatre cinq six sept huit neuf".split()
input_texts = [f"{ENGLISH[n // 10]} {ENGLISH[n % 10]}" for n in range(100)]
target_texts = [f"\t{FRENCH[n // 10]} {FRENCH[n % 10]}\n" for n in range(100)]

input_characters = sorted(set("".join(input_texts)))
target_characters = sorted(set("".join(target_texts)))
num_encoder_tokens = len(input_characters)
num_decoder_tokens = len(target_characters)
max_encoder_seq_length = max(len(text) for text in input_texts)
max_decoder_seq_length = max(len(text) for text in target_texts)
print("Number of samples:", len(input_texts))
print("Number of unique input tokens:", num_encoder_tokens)
print("Number of unique output tokens:", num_decoder_tokens)

input_token_index = {char: i for i, char in enumerate(input_characters)}
target_token_index = {char: i for i, char in enumerate(target_characters)}
encoder_input_data = np.zeros((100, max_encoder_seq_length, num_encoder_tokens), dtype="float32")
decoder_input_data = np.zeros((100, max_decoder_seq_length, num_decoder_tokens), dtype="float32")
decoder_target_data = np.zeros((100, max_decoder_seq_length, num_decoder_tokens), dtype="float32")
for i, (input_text, target_text) in enumerate(zip(input_texts, target_texts, strict=True)):
    for t, char in enumerate(input_text):
        encoder_input_data[i, t, input_token_index[char]] = 1.0
    for t, char in enumerate(target_text):
        decoder_input_data[i, t, target_token_index[char]] = 1.0
        if t > 0:
            decoder_target_data[i, t - 1, target_token_index[char]] = 1.0

encoder_inputs = keras.Input(shape=(None, num_encoder_tokens))
encoder_outputs, state_h, state_c = keras.layers.LSTM(latent_dim, return_state=True)(encoder_inputs)
decoder_inputs = keras.Input(shape=(None, num_decoder_tokens))
decoder_lstm = keras.layers.LSTM(latent_dim, return_sequences=True, return_state=True)
decoder_outputs, _, _ = decoder_lstm(decoder_inputs, initial_state=[state_h, state_c])
decoder_dense = keras.layers.Dense(num_decoder_tokens, activation="softmax")
model = keras.Model([encoder_inputs, decoder_inputs], decoder_dense(decoder_outputs))

model.compile(optimizer=keras.optimizers.RMSprop(0.01), loss="categorical_crossentropy", metrics=["accuracy"])
history = model.fit(
    [encoder_input_data, decoder_input_data],
    decoder_target_data,
    batch_size=batch_size,
    epochs=epochs,
    validation_split=0.2,
    verbose=0,
)
model.save("s2s_model.keras")
print("accuracy", [round(value, 3) for value in history.history["accuracy"][::5]])

# Restore the model and build the encoder and the decoder for inference.
model = keras.models.load_model("s2s_model.keras")
encoder_model = keras.Model(model.input[0], model.layers[2].output[1:])
decoder_state_inputs = [keras.Input(shape=(latent_dim,)), keras.Input(shape=(latent_dim,))]
outputs, h, c = model.layers[3](model.input[1], initial_state=decoder_state_inputs)
decoder_model = keras.Model([model.input[1], *decoder_state_inputs], [model.layers[4](outputs), h, c])


def decode_sequence(input_seq):
    states = encoder_model.predict(input_seq, verbose=0)
    target = np.zeros((1, 1, num_decoder_tokens))
    target[0, 0, target_token_index["\t"]] = 1.0
    decoded = ""
    while len(decoded) < 12:
        tokens, *states = decoder_model.predict([target, *states], verbose=0)
        index = np.argmax(tokens[0, -1])
        if target_characters[index] == "\n":
            break
        decoded += target_characters[index]
        target = np.eye(num_decoder_tokens)[None, None, index]
    return decoded


print("-")
print("Input sentence:", input_texts[12])
print("Decoded sentence:", decode_sequence(encoder_input_data[12:13]))
with open("history.json", "w") as file:
    json.dump(history.history, file)
