"""How good a pre-trained model is: masked-token accuracy, pair accuracy."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import pairwise

import torch
from torch import Tensor

from course_lib.family.deberta import DebertaForMaskedLM
from course_lib.family.elmo import ElmoForBiLM
from course_lib.heads import BertForMaskedLM, BertForPreTraining
from course_lib.kernels.masked_loss import IGNORED, mean_cross_entropy
from course_lib.objectives.bilm import bilm_batch
from course_lib.objectives.masked_lm import Masked, mask_sequences, masked_lm_loss
from course_lib.objectives.next_sentence import next_sentence_loss
from course_lib.objectives.sequences import PackedSequences, SpecialIds
from course_lib.text.characters import WordVocabulary

from .precision import choose_precision, computing_in

HIDDEN = (1.0, 0.0, 0.0)  # when measuring, every selected token is masked


@dataclass(frozen=True)
class Scores:
    """Measured on held-out sequences; K masked tokens, N pairs."""

    masked_right: Tensor  # (K,) bool: did the masked token get the highest logit?
    pair_right: Tensor  # (N,) bool: was the pair classified rightly? Empty without pairs
    mlm_loss: float  # nats a masked token
    nsp_loss: float  # nats a pair, of whichever pair task there is; nan where none

    @property
    def masked_accuracy(self) -> float:
        """Masked-token accuracy."""
        return self.masked_right.float().mean().item()

    @property
    def pair_accuracy(self) -> float:
        """Fraction of pairs classified rightly."""
        return self.pair_right.float().mean().item()


def evaluation_mask(
    sequences: PackedSequences,
    special: SpecialIds,
    *,
    rate: float = 0.15,
    seed: int = 1,
    mix: tuple[float, float, float] = HIDDEN,
) -> Masked:
    """The positions every comparison is made on: 15% selected as in training, all of them
    [MASK]."""
    return mask_sequences(sequences, special, rate=rate, mix=mix, seed=seed)


@torch.no_grad()
def evaluate(
    model: BertForPreTraining | BertForMaskedLM | DebertaForMaskedLM,
    sequences: PackedSequences,
    special: SpecialIds,
    *,
    seed: int = 1,
    precision: str = "auto",
    batch_size: int = 256,
    mix: tuple[float, float, float] = HIDDEN,
) -> Scores:
    """Measure a model on held-out sequences, on pairs too if they are labelled; the mask is fixed
    by `seed`. mix: BERT_MIX leaves some of the selected tokens as they are, or puts others there,
    as in training; accuracy is then higher. The model is left as it was found. Raises ValueError
    where no token is selected: sequences without words, or none."""
    has_pairs = sequences.next_sentence_label is not None and isinstance(model, BertForPreTraining)
    sequences = sequences.padding_last()
    masked = evaluation_mask(sequences, special, seed=seed, mix=mix)
    if not len(masked.original_ids):
        raise ValueError(f"{len(sequences)} sequences without a word were given; expected words.")
    was_training, device = model.training, next(model.parameters()).device
    model.eval()
    result, pair_right, mlm, nsp = [], [], 0.0, 0.0
    for start in range(0, len(sequences), batch_size):
        part = sequences[start : start + batch_size]
        here = _between(masked, start, len(part))
        inputs = part.inputs | {"input_ids": here.input_ids, "predict_at": here.predict_at}
        original_ids = here.original_ids.to(device)
        with computing_in(choose_precision(precision, device.type), device.type):
            out = model(**{name: x.to(device) for name, x in inputs.items()})
        loss = masked_lm_loss(out, {"labels": original_ids})
        mlm += loss["mlm"].item() * len(original_ids)
        result.append((out.prediction_logits.argmax(-1) == original_ids).cpu())
        if has_pairs:
            assert part.next_sentence_label is not None
            label = part.next_sentence_label.to(device)
            nsp += next_sentence_loss(out, {"next_sentence_label": label})["nsp"].item() * len(part)
            pair_right.append((out.seq_relationship_logits.argmax(-1) == label).cpu())
    model.train(was_training)
    return Scores(
        torch.cat(result),
        torch.cat(pair_right) if has_pairs else torch.empty(0, dtype=torch.bool),
        mlm / len(masked.original_ids),
        nsp / len(sequences) if has_pairs else float("nan"),
    )


@torch.no_grad()
def evaluate_bilm(
    model: ElmoForBiLM,
    sequences: PackedSequences,
    vocabulary: WordVocabulary,
    *,
    precision: str = "auto",
    batch_size: int = 64,
) -> tuple[float, float]:
    """An ELMo's language models on held-out sequences: nats a predicted word, and the fraction of
    words that got the highest logit; next and previous words together, <UNK> counted among them.
    The model is left as it was found."""
    was_training, device = model.training, next(model.parameters()).device
    model.eval()
    nats, right, count = 0.0, 0, 0
    for start in range(0, len(sequences), batch_size):
        part = sequences[start : start + batch_size]
        batch = bilm_batch(part, vocabulary.spelling, vocabulary.predicted)
        with computing_in(choose_precision(precision, device.type), device.type):
            out = model(**{name: value.to(device) for name, value in batch.inputs.items()})
        for way in ("forward", "backward"):
            labels = batch.targets[f"{way}_labels"].to(device)
            logits, here = getattr(out, f"{way}_logits").float(), labels != IGNORED
            nats += mean_cross_entropy(logits, labels, count=labels.new_ones(())).item()  # a sum
            right += int((logits.argmax(-1) == labels)[here].sum())
            count += int(here.sum())
    model.train(was_training)
    return nats / count, right / count


def _between(masked: Masked, start: int, count: int) -> Masked:
    """The part of a mask that belongs to `count` sequences from `start` on."""
    tokens = masked.input_ids.shape[1]
    inside = (rows := masked.predict_at // tokens).ge(start) & rows.lt(start + count)
    return Masked(
        masked.input_ids[start : start + count],
        masked.predict_at[inside] - start * tokens,
        masked.original_ids[inside],
        masked.done[inside],
    )


def layer_distances(
    hidden_states: Sequence[Tensor], attention_mask: Tensor
) -> tuple[list[float], list[float]]:
    """How far each layer moves a vector: mean over real tokens of the Euclidean distance between
    its input and its output, and of the angle between them in degrees (Lan et al. 2019, Figure 1).

    hidden_states: L + 1 of (B, T, H). Returns two lists of L numbers."""
    real = attention_mask.bool()
    pairs = [(a[real].double(), b[real].double()) for a, b in pairwise(hidden_states)]
    distance = [(b - a).norm(dim=-1).mean().item() for a, b in pairs]
    cosine = [torch.cosine_similarity(a, b, dim=-1).clamp(-1, 1) for a, b in pairs]
    return distance, [c.acos().rad2deg().mean().item() for c in cosine]
