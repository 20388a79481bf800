"""`13_costs`: what each member takes to be used, measured side by side: time, memory, size.

Weights are random: neither time nor memory depends on what they are. So FastBERT is not here; how
early it leaves depends on its texts."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import torch

from course_lib.bench.measuring import contenders_of, forward_only, machine, measure, peak_bytes
from course_lib.encoder import Encoder
from course_lib.heads import BertForClassification
from course_lib.train.finetuning import classifier_on

from .pretraining_runs import CONTROLS, MEMBERS, RECIPES, encoder_of, parameters_of, untrained

TOKENS, BATCH, ROUNDS = 32, 16, 9  # tokens of a text, texts of a batch, rounds


def classifier(name: str) -> BertForClassification:
    """A member as large as in the benchmark, with a head of two classes."""
    encoder = encoder_of(untrained(RECIPES[name]))
    return classifier_on(encoder, ("no", "yes"), plain_head=True).eval()


def texts(encoder: Encoder, count: int) -> torch.Tensor:
    """(count, TOKENS) ids, none of them special."""
    generator = torch.Generator().manual_seed(0)
    return torch.randint(10, encoder.config.vocab_size, (count, TOKENS), generator=generator)


def reading(name: str, count: int) -> Callable[[], Callable[[], object]]:
    """Makes a step: so many texts read by a member."""

    def make() -> Callable[[], object]:
        model = classifier(name)
        ids = texts(model.encoder, count)
        return forward_only(lambda: model(ids))

    return make


def learning_bytes(name: str) -> int:
    """The most that the tensors of a fine-tuning step of BATCH texts hold, weights aside."""
    model = classifier(name).train()
    ids, labels = texts(model.encoder, BATCH), torch.arange(BATCH) % 2

    def step() -> None:
        torch.nn.functional.cross_entropy(model(ids).logits, labels).backward()

    return peak_bytes(step)


def build() -> dict[str, Any]:
    """What data/results/13_costs.json holds."""
    names = (*MEMBERS, *CONTROLS)
    members: dict[str, Any] = {name: {} for name in names}
    for what, count in (("one", 1), ("batch", BATCH)):
        contenders = contenders_of({name: reading(name, count) for name in names}, count)
        for row in measure(contenders, rounds=ROUNDS, seconds=0.2):
            low, high = row.middle_half
            members[row.name][what] = {
                "texts_per_second": row.median, "middle_half": [low, high],
            }  # fmt: skip
    for name in names:
        members[name]["learning_bytes"] = learning_bytes(name)
        members[name]["weight_bytes"] = 4 * parameters_of(untrained(RECIPES[name]))
    return {"tokens": TOKENS, "batch": BATCH, "machine": machine(), "members": members}


RESULTS = {"13_costs": build}
