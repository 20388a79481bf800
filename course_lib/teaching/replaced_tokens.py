"""How well ELECTRA's discriminator tells replaced tokens from original ones, and how well counting
does."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

import torch
from torch import Tensor

from course_lib.family.electra import Electra
from course_lib.objectives.replaced_tokens import replaced_labels
from course_lib.objectives.sequences import Batch, SpecialIds
from course_lib.text.counts import EDGE, NeighbourCounts


@torch.no_grad()
def corrupted_texts(
    model: Electra, batches: Sequence[Batch]
) -> Iterator[tuple[Tensor, Tensor, Tensor]]:
    """Of every text of these batches the ids that the discriminator reads, 1 where one was replaced
    (else 0), and its logits: each (tokens,), without padding."""
    for batch in batches:
        out = model(**batch.inputs)
        replaced = replaced_labels(out.corrupted_ids, out.predict_at, batch.targets["labels"])
        columns = (out.attention_mask.bool(), out.corrupted_ids, replaced, out.logits)
        for real, ids, labels, logits in zip(*columns, strict=True):
            yield ids[real], labels[real], logits[real]


def discriminator_logits(model: Electra, batches: Sequence[Batch]) -> tuple[Tensor, Tensor]:
    """The discriminator's logit and the label of every real token of these batches: (tokens,)."""
    _, labels, logits = zip(*corrupted_texts(model, batches), strict=True)
    return torch.cat(logits), torch.cat(labels)


def area_under_curve(logits: Tensor, labels: Tensor) -> float:
    """How often a replaced token has a higher logit than an original one: 0.5 is chance level, 1
    is always."""
    from sklearn.metrics import roc_auc_score

    return float(roc_auc_score(labels.numpy(), logits.float().numpy()))


def counted_areas(
    model: Electra,
    learn: Sequence[Batch],
    test: Sequence[Batch],
    counts: NeighbourCounts,
    special: SpecialIds,
) -> tuple[float, float]:
    """The ROC-AUC on `test` without a discriminator, against this model's generator. By the word
    alone: how often it was a replacement in `learn`. By its neighbours, which may be replacements:
    how improbable `counts` finds it between them. [CLS] and [SEP] are never suspected."""
    ids, replaced, _ = map(torch.cat, zip(*corrupted_texts(model, learn), strict=True))
    seen, often = (of.bincount(minlength=special.vocab_size) for of in (ids, ids[replaced == 1]))
    often = (often + replaced.float().mean()) / (seen + 1)  # a word never met: as all are together
    alone, between, labels = list[float](), list[float](), list[int]()
    for text, was_replaced, _ in corrupted_texts(model, test):
        is_word = ~torch.isin(text, torch.tensor(special.never_masked))
        alone += often[text].tolist()
        labels += was_replaced.tolist()
        words = [EDGE, *text[is_word].tolist(), EDGE]
        suspicion = torch.full(text.shape, -1.0)
        suspicion[is_word] = torch.tensor([
            -float(scores[word] / scores.sum())
            for left, word, right in zip(words, words[1:], words[2:], strict=False)
            for scores in [counts.scores(left, right)]
        ])  # fmt: skip
        between += suspicion.tolist()
    by_word, by_neighbours = (
        area_under_curve(torch.tensor(of), torch.tensor(labels)) for of in (alone, between)
    )
    return by_word, by_neighbours


def replaced_token_scores(model: Electra, batches: Sequence[Batch], seed: int) -> dict[str, float]:
    """The ROC-AUC on these batches, and the fraction of tokens that the generator replaced; seed:
    of what it samples."""
    torch.manual_seed(seed)
    logits, labels = discriminator_logits(model, batches)
    auc, replaced = area_under_curve(logits, labels), labels.float().mean().item()
    return {"auc": auc, "replaced": replaced}
