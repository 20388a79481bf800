"""What a frozen encoder's vectors hold: a linear classifier on top, nothing else is trained."""

from __future__ import annotations

from collections.abc import Callable

import torch
from torch import Tensor

from course_lib.encoder import Encoder
from course_lib.heads import segments_for
from course_lib.objectives.sequences import PackedSequences
from course_lib.text.tasks import LabelledSequences, LabelledWords


@torch.no_grad()
def all_states(encoder: Encoder, sequences: PackedSequences, batch_size: int = 256) -> Tensor:
    """The vectors of every layer side by side, embeddings first: (N, T, (L + 1)·H)."""
    result = []
    for start in range(0, len(sequences), batch_size):
        inputs = sequences[start : start + batch_size].inputs
        inputs["token_type_ids"] = segments_for(encoder.config, inputs["token_type_ids"])  # type: ignore
        out = encoder(**inputs, output_hidden_states=True)
        assert out.hidden_states is not None
        result.append(torch.cat(out.hidden_states, dim=-1))
    return torch.cat(result)


def text_probe(encoder: Encoder, train: LabelledSequences, test: LabelledSequences) -> float:
    """Fraction of test texts classified rightly from the mean vector of their tokens."""
    means = []
    for task in (train, test):
        states, real = all_states(encoder, task.sequences), task.sequences.attention_mask[..., None]
        means.append((states * real).sum(dim=1) / real.sum(dim=1))
    return linear_probe(means[0], train.labels, means[1], test.labels)


@torch.no_grad()
def states_at(
    encoder: Encoder, sequences: PackedSequences, at: Tensor, batch_size: int = 256
) -> Tensor:
    """The vectors of every layer side by side at the positions `at` (M,), n·T + t, ascending:
    (M, (L + 1)·H)."""
    result, tokens = [], batch_size * sequences.input_ids.shape[1]
    for number, start in enumerate(range(0, len(sequences), batch_size)):
        states = all_states(encoder, sequences[start : start + batch_size], batch_size)
        result.append(states.flatten(0, 1)[at[at // tokens == number] % tokens])
    return torch.cat(result)


def word_probe(encoder: Encoder, words: LabelledWords, most: int = 3_000) -> float:
    """Fraction of words whose class is told from their vector: the slot-category probe, the
    swapped-word probe. most: how many words train the probe, and how many test it."""
    learn, test = words.learn.nonzero()[:most, 0], (~words.learn).nonzero()[:most, 0]
    states = states_at(encoder, words.sequences, words.at)  # (words, features)
    return linear_probe(states[learn], words.labels[learn], states[test], words.labels[test])


def linear_probe(
    train: Tensor, train_labels: Tensor, test: Tensor, test_labels: Tensor, strength: float = 0.01
) -> float:
    """Accuracy of a logistic regression on standardised features, (N, features) and (N,).

    strength: scikit-learn's C; small values keep the weights small."""
    probabilities = linear_classifier(train, train_labels, strength)(test)
    predicted = train_labels.unique()[probabilities.argmax(-1)]
    return (predicted == test_labels).double().mean().item()


def linear_classifier(
    train: Tensor, labels: Tensor, strength: float = 0.01
) -> Callable[[Tensor], Tensor]:
    """The probe itself: features (N, F) -> probabilities (N, classes), of the labels in ascending
    order."""
    from sklearn.linear_model import LogisticRegression

    mean, sd = train.mean(dim=0), train.std(dim=0) + 1e-6
    probe = LogisticRegression(max_iter=200, C=strength)
    probe.fit(((train - mean) / sd).numpy(), labels.numpy())

    def classify(features: Tensor) -> Tensor:
        return torch.from_numpy(probe.predict_proba(((features - mean) / sd).numpy()))

    return classify
