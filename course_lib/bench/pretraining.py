"""The pre-training step: a ladder from transformers as shipped to ours, one change a row."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import lru_cache, partial
from typing import Any

import torch
import torch.nn.functional as F
from torch import Tensor

from course_lib.config import BertConfig, published
from course_lib.family.bert import bert_for_pretraining
from course_lib.heads import BertForPreTraining
from course_lib.objectives.masked_lm import mask_sequences, masked_lm_loss
from course_lib.objectives.sequences import Batch, PackedSequences
from course_lib.train.flops import step_flops
from course_lib.train.loop import train_step
from course_lib.train.optimizers import make_optimizer
from course_lib.train.precision import choose_precision, computing_in

from .inputs import SPECIAL, peer_collator, random_sequences
from .measuring import Contender, Measured, Step, Table, against_the_limit, contenders_of

ROWS, TOKENS = 32, 128


def tables(sizes: Sequence[str], compiled: bool) -> list[Table]:
    """One a size of BERT; without `compiled`, torch.compile (which needs C++) is left out."""
    return [
        Table(
            f"Pre-training step, {size}, {ROWS}×{TOKENS} tokens, V={SPECIAL.vocab_size}",
            pretraining_ladder(size, compiled),
            partial(remark, size),
        )
        for size in sizes
    ]


def remark(size: str, results: Sequence[Measured], on: dict[str, Any]) -> str:
    """Ours against the peer as shipped, against its best, and against the machine."""
    peers = [r for r in results if not r.name.startswith("ours")]
    ours, best = results[-1], max(peers, key=lambda r: r.median)
    rate = ours.median * training_flops_per_token(size) / 1e9
    return (
        f"ours / shipped {ours.median / peers[0].median:.2f}×   "
        f"ours / its best ({best.name}) {ours.median / best.median:.2f}×   "
        f"{against_the_limit(rate, choose_precision(), on)}"
    )


@lru_cache
def training_flops_per_token(size: str) -> float:
    """FLOPs of our step for each token it reads, counted while it runs: the last block and the head
    are computed at the selected positions only."""
    return step_flops(our_model(size), masked_lm_loss, our_batch(0)) / (ROWS * TOKENS)


def our_model(
    size: str, kernels: str = "auto", vocab_size: int = SPECIAL.vocab_size
) -> BertForPreTraining:
    """The course's model, randomly initialised, without dropout."""
    torch.manual_seed(0)
    return bert_for_pretraining(
        size, vocab_size=vocab_size, hidden_dropout=0.0, attention_dropout=0.0, kernels=kernels
    ).train()


def our_batch(visit: int, count: int = ROWS) -> Batch:
    """Random sequences, masked anew at every visit."""
    sequences = _text(count * 8)
    part = sequences[visit % 8 * count : visit % 8 * count + count]
    masked = mask_sequences(part, SPECIAL, epoch=visit)
    inputs = {
        "input_ids": masked.input_ids,
        "attention_mask": part.attention_mask,
        "token_type_ids": part.token_type_ids,
        "predict_at": masked.predict_at,
    }
    return Batch(inputs, {"labels": masked.original_ids})


@lru_cache
def _text(count: int) -> PackedSequences:
    return random_sequences(count, TOKENS)


def our_step(
    size: str,
    precision: str,
    kernels: str = "auto",
    vocab_size: int = SPECIAL.vocab_size,
    count: int = ROWS,
    compiled: bool = False,
) -> Step:
    """The course's step on `count` sequences: masking, selected positions only, fused optimiser."""
    model = our_model(size, kernels, vocab_size)
    if compiled:  # all blocks as one graph; how many positions are selected differs by batch
        model.encoder.stack.compile()
    optimizer = make_optimizer(model, 1e-4, 0.01)
    visit = 0

    def step() -> None:
        nonlocal visit
        train_step(model, masked_lm_loss, optimizer, our_batch(visit, count), 1.0, precision)
        visit += 1

    return step


def peer_model(
    size: str, dropout: float, attention: str, vocab_size: int = SPECIAL.vocab_size
) -> Any:
    """transformers' BertForMaskedLM of the same shape, with random initialisation."""
    from transformers import BertConfig, BertForMaskedLM

    c: BertConfig = published("bert", size)
    config = BertConfig(
        vocab_size=vocab_size,
        hidden_size=c.hidden_size,
        num_hidden_layers=c.num_layers,
        num_attention_heads=c.num_heads,
        intermediate_size=c.intermediate_size,
        hidden_dropout_prob=dropout,
        attention_probs_dropout_prob=dropout,
        attn_implementation=attention,
    )
    torch.manual_seed(0)
    return BertForMaskedLM(config).train()


def update(model: torch.nn.Module, optimizer: torch.optim.Optimizer, loss: Tensor) -> None:
    """Backward, clipping and the optimiser, for a peer's step."""
    loss.backward()  # type: ignore[no-untyped-call]
    torch.nn.utils.clip_grad_norm_(model.parameters(), 1.0)
    optimizer.step()
    optimizer.zero_grad()


def peer_step(
    size: str,
    *,
    precision: str = "float32",
    tuned: bool = False,
    attention: str = "sdpa",
    compiled: bool = False,
    selected: bool = False,
) -> Step:
    """transformers' step: as shipped, or tuned (no dropout, fused AdamW, our masking).

    selected: its head on the selected positions only, as its ModernBERT's `sparse_prediction`."""
    model = peer_model(size, 0.0 if tuned else 0.1, attention)
    optimizer = torch.optim.AdamW(model.parameters(), lr=1e-4, fused=tuned or None)
    collate, sequences, visit = peer_collator(), random_sequences(ROWS * 8, TOKENS), 0
    loss_of = partial(selected_loss, model) if selected else lambda **inputs: model(**inputs).loss
    loss_of = torch.compile(loss_of) if compiled else loss_of

    def inputs() -> dict[str, Tensor]:
        part = sequences[visit % 8 * ROWS : visit % 8 * ROWS + ROWS]
        if not tuned:
            return dict(collate([{"input_ids": row} for row in part.input_ids]))
        masked = mask_sequences(part, SPECIAL, epoch=visit)
        if selected:
            at, labels = masked.predict_at, masked.original_ids
            return {"input_ids": masked.input_ids, "predict_at": at, "labels": labels}
        return {"input_ids": masked.input_ids, "labels": masked.labels}

    def step() -> None:
        nonlocal visit
        with computing_in(precision):
            loss = loss_of(**inputs())
        update(model, optimizer, loss)
        loss.item()
        visit += 1

    return step


def selected_loss(model: Any, input_ids: Tensor, predict_at: Tensor, labels: Tensor) -> Tensor:
    """The loss of transformers' BertForMaskedLM, logits at the positions predict_at (N,) only."""
    hidden = model.bert(input_ids).last_hidden_state.flatten(0, 1)[predict_at]
    return F.cross_entropy(model.cls(hidden).float(), labels)


def pretraining_ladder(size: str, compiled: bool = True) -> list[Contender]:
    """From the peer as shipped to ours, one change a row."""
    fast = choose_precision()
    tuned = partial(peer_step, size, precision=fast, tuned=True)
    rungs: dict[str, Callable[[], Step]] = {
        "transformers as shipped": partial(peer_step, size),
        f"… under {fast} autocast": partial(peer_step, size, precision=fast),
        "… tuned: no dropout, fused AdamW, quick masking": tuned,
        "… tuned, eager attention": partial(tuned, attention="eager"),
        "… tuned, eager attention, selected positions only": partial(
            tuned, attention="eager", selected=True
        ),
    }
    if compiled:
        eager = partial(tuned, attention="eager", compiled=True)
        rungs |= {
            "… tuned and compiled": partial(tuned, compiled=True),
            "… tuned, eager attention, compiled": eager,
            "… tuned, eager, selected positions only, compiled": partial(eager, selected=True),
            f"ours in {fast}, compiled": partial(our_step, size, fast, compiled=True),
        }
    rungs |= {
        "ours in float32": partial(our_step, size, "float32"),
        f"ours in {fast}, fused attention": partial(our_step, size, fast, "fused"),
        f"ours in {fast}, by the rules (the course's step)": partial(our_step, size, fast),
    }
    return contenders_of(rungs, ROWS * TOKENS)
