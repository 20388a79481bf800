"""The numbers that sentences of lecture 02 say: counted, computed, or read from results."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from functools import cache
from math import log
from statistics import mean
from typing import Any

import torch
import torch.nn.functional as F
from torch import Tensor

from course_lib.checkpoints import load_pretrained
from course_lib.config import published
from course_lib.encoder import count_parameters
from course_lib.family.bert import bert_for_pretraining
from course_lib.heads import PreTrainingOutput
from course_lib.kernels.attention import attention_reference
from course_lib.kernels.masking import KEPT, MASKED, RANDOM, count_to_predict
from course_lib.objectives.masked_lm import mask_sequences
from course_lib.objectives.pretraining import pretraining_loss
from course_lib.teaching.claims import difference, printed
from course_lib.teaching.coverage import coverage
from course_lib.teaching.results import stored
from course_lib.text import english
from course_lib.text.wordpiece import longest_match

from .claims import epochs, tokens_in_all
from .depth import measured
from .experiments import outcome
from .recipes import LIVE, LONG, Material, prepare

BASE = published("bert", "base")
COURSE = published("bert", "mini")  # the size of the course's own checkpoint
PAPER = printed("bert")["pretraining"]

# ---------------------------------------------------------------- how large BERT is


@cache
def counts(size: str) -> dict[str, int]:
    """Parameters by group, on the meta device: shapes without memory."""
    with torch.device("meta"):
        model = bert_for_pretraining(size)
    encoder: Any = model.encoder
    block = encoder.stack.blocks[0]
    parts = {
        "embeddings": encoder.embeddings,
        "blocks": encoder.stack,
        "encoder": encoder,
        "with both heads": model,
        "embedding matrix": encoder.embeddings.token,
        "block": block,
        "attention": block.attention,
        "feed-forward": block.feed_forward,
    }
    parameters = {name: count_parameters(part) for name, part in parts.items()}
    # The head's last matrix is tied, so what it adds is counted without it.
    added = parameters["with both heads"] - parameters["encoder"] - count_parameters(model.pair)
    return parameters | {"MLM head": added}


def count(size: str, part: str) -> str:
    return f"{counts(size)[part]:,}"


def millions(size: str, part: str, digits: int = 1) -> str:
    return f"{counts(size)[part] / 1e6:.{digits}f}"


# ---------------------------------------------------------------- words into pieces

TOY_VOCAB = ("b", "be", "bee", "##k", "##e", "##ke", "##keep", "##keeper", "##er", "##s", "##p")


class _Watched(frozenset[str]):
    """A vocabulary that remembers what was looked up."""

    def __contains__(self, piece: object) -> bool:
        self.__dict__.setdefault("looked_up", []).append(piece)
        return super().__contains__(piece)


def lookups(word: str) -> list[list[str]]:
    """For each piece of the word, what longest_match looks up until it finds it."""
    vocab = _Watched(TOY_VOCAB)
    longest_match(word, vocab)
    rounds: list[list[str]] = [[]]
    for piece in vocab.__dict__["looked_up"]:
        rounds[-1].append(piece)
        if piece in TOY_VOCAB:
            rounds.append([])
    return [tried for tried in rounds if tried]


# ---------------------------------------------------------------- attention by hand

TOKENS = {
    "queries": ((1.0, 0.0), (0.0, 1.0), (1.0, 1.0)),
    "keys": ((1.0, 0.0), (0.0, 1.0), (2.0, 0.0)),
    "values": ((10.0, 0.0), (0.0, 10.0), (5.0, 5.0)),
}


@cache
def attention() -> dict[str, Tensor]:
    """Scores, weights and outputs of the three tokens, by the library's own function."""
    q, k, v = (torch.tensor(rows)[None, None] for rows in TOKENS.values())
    outputs, weights, scores = attention_reference(q, k, v)
    return {"scores": scores[0, 0], "weights": weights[0, 0], "outputs": outputs[0, 0]}


# ---------------------------------------------------------------- masking, and pairs


@cache
def material() -> Material:
    return prepare(LIVE)


@cache
def masked_of_thousand() -> dict[str, float]:
    """Of 1,000 real pieces of the training sequences, how many are masked, replaced, kept."""
    train, special = material().train, material().special
    done = torch.cat([mask_sequences(train, special, seed=0, epoch=e).done for e in range(3)])
    real = 3 * int(train.attention_mask.sum())
    names = {"[MASK]": MASKED, "another word": RANDOM, "left alone": KEPT}
    return {name: 1000 * int((done == kind).sum()) / real for name, kind in names.items()}


def ever_selected(draws: int) -> str:
    """Positions selected at least once in so many independent draws, in percent."""
    return f"{coverage(PAPER['rate'], draws)[-1]:.1%}"


def not_next() -> float:
    """How many of the held-out pairs are NotNext, as a fraction."""
    labels = material().heldout_pairs.next_sentence_label
    assert labels is not None
    return labels.float().mean().item()


# ---------------------------------------------------------------- the loss

# What an imagined model gives to the right answers: of the deck's example, of a review question.
WORDS = {"noon": 0.5, "hull": 0.25, "warm": 0.5}
PAIRS = {"IsNext": 0.8, "NotNext": 0.4}
REVIEW_WORDS = {"leaves": 1 / 2, "island": 1 / 4, "heat": 1 / 8}
REVIEW_PAIRS = {"IsNext": 0.9, "NotNext": 0.8}


def loss_of(words: Mapping[str, float], pairs: Mapping[str, float]) -> dict[str, float]:
    """The library's loss of a batch, from the probabilities of the right words and labels."""
    mlm, nsp = (torch.tensor([[p, 1 - p] for p in d.values()]).log() for d in (words, pairs))
    right = (torch.zeros(len(logits), dtype=torch.long) for logits in (mlm, nsp))
    targets = dict(zip(("labels", "next_sentence_label"), right, strict=True))
    losses = pretraining_loss(PreTrainingOutput(mlm, nsp), targets)
    return {name: float(loss) for name, loss in losses.items()}


@cache
def review(part: str) -> str:
    """Of the review question, one of its two sequences, or the batch of both."""
    (a, b, c), (one, two) = ([-log(p) for p in d.values()] for d in (REVIEW_WORDS, REVIEW_PAIRS))
    first, second = (a + b) / 2 + one, c + two
    batch = loss_of(REVIEW_WORDS, REVIEW_PAIRS) | {"mean": (first + second) / 2}
    sums = {
        "first": f"({a:.3f} + {b:.3f})/2 + {one:.3f} = {first:.3f}",
        "second": f"{c:.3f} + {two:.3f} = {second:.3f}",
        **{name: f"{loss:.3f}" for name, loss in batch.items()},
    }
    return sums[part]


def step(label: int) -> list[float]:
    """How gradient descent moves the logits (IsNext, NotNext) of an undecided model."""
    logits = torch.zeros(1, 2, requires_grad=True)
    (gradient,) = torch.autograd.grad(F.cross_entropy(logits, torch.tensor([label])), logits)
    return (-gradient[0]).tolist()


# ---------------------------------------------------------------- measured, and printed


def result() -> dict[str, Any]:
    return stored("02_pretraining")


def level_of(name: str) -> str:
    return f"{result()['levels'][name]:.1%}"


def documentation(length: int, name: str) -> str:
    """NSP on pairs of the documentation, of this length: the accuracy of "bag" or "majority"."""
    return f"{stored('02_controls')['documentation'][str(length)][name]:.1%}"


def lost(change: str, task: str, than: str = "full") -> str:
    return f"{difference('bert', 'ablation_tasks', than, change)[task]:.1f}"


def gap(run: str) -> str:
    return f"{mean(outcome(result(), run)['gap_closed']):.0%}"


def size_table(row: int, column: str) -> float:
    table = printed("bert")["ablation_size"]
    return float(table["rows"][row][table["columns"].index(column)])


# ---------------------------------------------------------------- what a block is made of

GROWN = (
    1.5  # how much larger training has made the query matrices of the course's checkpoint, about
)


@cache
def query_matrix() -> dict[str, float]:
    """Standard deviation of the first query matrix of the course's checkpoint: drawn, trained."""
    encoder: Any = load_pretrained("course-bert").encoder
    trained = encoder.stack.blocks[0].attention.query.weight.std().item()
    return {"drawn": encoder.config.initializer_range, "trained": trained}


def alike(kind: str) -> str:
    return f"{measured()[kind][1]:.2f}"


LEFT_TO_RIGHT = "left_to_right_no_nsp"
NUMBERS: dict[str, Callable[[], Any]] = {
    "first_weights": lambda: ", ".join(f"{w:.3f}" for w in attention()["weights"][0]),
    "times_the_reading": lambda: (
        f"{LONG.steps * LONG.batch_size / (LIVE.steps * LIVE.batch_size):.0f}"
    ),
    "tokens_a_step": lambda: f"{PAPER['batch'] * PAPER['long_length']:,}",
    # about the lecture itself
}
# Digits that a text means otherwise than the number they equal.
TYPED = {
    "0.693": "the natural logarithm of 2",
    "90%": "the steps at length 128 in the paper's recipe",
    "120": "80% of 150, as arithmetic; what was counted comes out the same",
    "150": "15% of 1,000, as arithmetic",
    "512": "the length of the long sequences in the paper's recipe",
    "256": "the sequences of a batch in the paper's recipe",
}
