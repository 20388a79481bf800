"""ELMo's weights: our own file, and the layout in which the authors released theirs.

The released files are HDF5, which this course does not read by itself: `from_released` takes any
mapping of names to arrays, such as an .npz file opened by numpy, or `h5py.File(path)` where h5py
is installed."""

from __future__ import annotations

from collections.abc import Mapping
from contextlib import suppress
from dataclasses import asdict
from pathlib import Path
from typing import Any

import numpy as np
import torch
from torch import Tensor, nn

from course_lib.family.elmo import (
    CHARACTERS,
    CharacterEncoder,
    Direction,
    Elmo,
    ElmoConfig,
    ElmoForBiLM,
    Highway,
    ProjectedLSTM,
)
from course_lib.files import as_path, one_error
from course_lib.text.characters import WordVocabulary

from .convert import check_sizes
from .reading import CheckpointError, MissingCheckpoint
from .saved import read_own, write_own

KIND = "ElmoForBiLM"


def save_elmo(model: ElmoForBiLM, vocabulary: WordVocabulary, path: str | Path) -> str:
    """Write weights, configuration and the predicted words to one safetensors file; returns its
    SHA-256. The same model gives the same bytes. TypeError for what is no path."""
    path = as_path(path, " The model comes first: save_elmo(model, vocabulary, path).")
    about = {"model": KIND, "config": asdict(model.config)}
    return write_own(model, path, {**about, "words": vocabulary.vocab[4 : vocabulary.predicted]})


def load_elmo(path: str | Path, sha256: str | None = None) -> tuple[ElmoForBiLM, WordVocabulary]:
    """The model that `save_elmo` wrote, in evaluation mode, and the words that it predicts.

    Raises MissingCheckpoint, or CheckpointError for a wrong hash, a file cut short or damaged, a
    pickle, or another model's file."""
    path = as_path(path)
    with one_error(path, CheckpointError, MissingCheckpoint):
        about, state = read_own(path, sha256, [KIND])
        if about is None:
            raise CheckpointError(
                f"{path} holds no ELMo of this version of the course; expected a file that "
                "save_elmo or the pre-training command wrote."
            )
        config = ElmoConfig(**about["config"])
        check_sizes(config, state, str(path))
        with torch.device("meta"):
            model = ElmoForBiLM(config)
        model.load_state_dict(state, assign=True)
        return model.eval(), WordVocabulary(about["words"])


# ---------------------------------------------------------------- as released


def from_released(weights: Mapping[str, Any], options: Mapping[str, Any]) -> Elmo:
    """The encoder with weights in the released layout, in evaluation mode.

    weights: name -> array, as the authors' program writes them: matrices as (from, to), the LSTM's
    gates in the order input, new values, forget, output, its bias without the 1 that the forget
    gate adds, no row for character 0. options: the content of the options file that lies beside
    them. Raises CheckpointError for weights that lack a name or have another shape."""
    config = released_config(options)
    model = Elmo(config).eval()
    with torch.no_grad():
        _read_characters(model.words, weights)
        for number, lm in enumerate((model.forward_lm, model.backward_lm)):
            _read_direction(lm, weights, f"RNN_{number}/RNN/MultiRNNCell")
    return model


def released_config(options: Mapping[str, Any]) -> ElmoConfig:
    """The settings in a released options file. Raises CheckpointError where one is missing, and for
    options that this model does not have."""
    try:
        cnn, lstm = options["char_cnn"], options["lstm"]
        for part, name, expected in (
            (cnn, "activation", "relu"),
            (cnn, "n_characters", CHARACTERS),
            (lstm, "use_skip_connections", True),
        ):
            if part[name] != expected:
                raise CheckpointError(
                    f"option {name} is {part[name]!r}; expected {expected!r}, as in the released "
                    "models."
                )
        clip = lstm["cell_clip"]
        if clip != lstm["proj_clip"]:
            raise CheckpointError(
                f"cell_clip {clip} and proj_clip {lstm['proj_clip']}; expected the same."
            )
        return ElmoConfig(
            character_size=cnn["embedding"]["dim"], max_characters=cnn["max_characters_per_token"],
            filters=cnn["filters"], num_highways=cnn["n_highway"],
            projection_size=lstm["projection_dim"], cell_size=lstm["dim"],
            num_layers=lstm["n_layers"], clip=clip,
        )  # fmt: skip
    except (KeyError, TypeError) as error:
        raise CheckpointError(
            f"the options lack {error}; expected char_cnn and lstm as in a released options file."
        ) from error


def _read_characters(words: CharacterEncoder, weights: Mapping[str, Any]) -> None:
    table = words.characters.weight
    table[0] = 0  # character 0, which fills up rows, is not in the file
    _put(table[1:], weights, "char_embed")
    for number, convolution in enumerate(words.convolutions):
        assert isinstance(convolution, nn.Conv1d) and convolution.bias is not None
        # (1, width, E, n) -> (n, E, width)
        _put(convolution.weight, weights, f"CNN/W_cnn_{number}", lambda x: x[0].permute(2, 1, 0))
        _put(convolution.bias, weights, f"CNN/b_cnn_{number}")
    for number, highway in enumerate(words.highways):
        assert isinstance(highway, Highway)
        for part, name in ((highway.gate, "carry"), (highway.transform, "transform")):
            _put(part.weight, weights, f"CNN_high_{number}/W_{name}", _transposed)
            _put(part.bias, weights, f"CNN_high_{number}/b_{name}")
    _put(words.projection.weight, weights, "CNN_proj/W_proj", _transposed)
    _put(words.projection.bias, weights, "CNN_proj/b_proj")


def _read_direction(lm: Direction, weights: Mapping[str, Any], where: str) -> None:
    for number, layer in enumerate(lm.layers):
        assert isinstance(layer, ProjectedLSTM)
        cell = f"{where}/Cell{number}/LSTMCell"
        width = layer.weight_input.shape[1]
        both = torch.cat([layer.weight_input, layer.weight_hidden], dim=1)
        _put(both, weights, f"{cell}/W_0", lambda x: _our_gates(x.T))  # (input + P, 4S)
        layer.weight_input.copy_(both[:, :width])
        layer.weight_hidden.copy_(both[:, width:])
        _put(layer.bias, weights, f"{cell}/B", _our_gates)
        cells = len(layer.bias) // 4
        layer.bias[cells : 2 * cells] += 1  # their program adds it while it computes
        _put(layer.projection, weights, f"{cell}/W_P_0", _transposed)


def _our_gates(x: Tensor) -> Tensor:
    """Rows of the gates i, g, f, o in torch's order, i, f, g, o."""
    i, g, f, o = x.chunk(4)
    return torch.cat([i, f, g, o])


def _transposed(x: Tensor) -> Tensor:
    return x.T


def _put(ours: Tensor, weights: Mapping[str, Any], name: str, turn: Any = lambda x: x) -> None:
    """Write the array of this name over our weights."""
    try:
        theirs = torch.from_numpy(np.array(weights[name]))
    except KeyError as error:
        raise CheckpointError(
            f"the weights lack {name}; expected the layout of the released ELMo."
        ) from error
    result = tuple(theirs.shape)
    with suppress(RuntimeError, IndexError):  # of other dimensions: its shape is told below
        theirs = turn(theirs)
    if theirs.shape != ours.shape:
        raise CheckpointError(
            f"{name} has shape {result}, which does not fit weights of shape {tuple(ours.shape)}: "
            "do options and weights belong together?"
        )
    ours.copy_(theirs)
