"""Exercise 02.1: count the parameters of BERT by hand.

The solution first, then the known wrong answers, then the stages.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from itertools import combinations
from numbers import Real
from typing import Any

from torch import Tensor

from course_lib.config import BertConfig, published
from course_lib.teaching.exercises.legacy import (
    Answer,
    Check,
    Draw,
    Exercise,
    Mistake,
    Suspect,
    call,
    find_suspect,
)


def parameter_count(config: BertConfig) -> int:
    """Parameters of BERT's encoder with its pooler, from the sizes alone (section 3)."""
    H, F, L = config.hidden_size, config.intermediate_size, config.num_layers
    rows = config.vocab_size + config.max_positions + config.type_vocab_size
    embeddings = rows * H + 2 * H  # three tables, one LayerNorm
    attention = 4 * (H * H + H)  # query, key, value, output; the number of heads does not matter
    feed_forward = (H * F + F) + (F * H + H)
    norms = 2 * (2 * H)
    pooler = H * H + H
    return embeddings + L * (attention + feed_forward + norms) + pooler


OWN_MATRICES = (
    "each head has its own H×H matrices. The A heads share one matrix: each has H/A of its columns"
)

# What a forgotten or surplus part does to the count, as a function of the sizes.
COUNT_SLIPS: dict[str, tuple[str, Callable[[BertConfig], int]]] = {
    "no biases": (
        "the biases of the linear layers are missing. Each has as many as it has outputs",
        lambda c: -(c.num_layers * (5 * c.hidden_size + c.intermediate_size) + c.hidden_size),
    ),
    "no attention biases": (
        "the biases of query, key, value and output are missing: 4H in a block",
        lambda c: -c.num_layers * 4 * c.hidden_size,
    ),
    "no feed-forward biases": (
        "the biases of the feed-forward layers are missing: F + H in a block",
        lambda c: -c.num_layers * (c.intermediate_size + c.hidden_size),
    ),
    "no LayerNorms": (
        "the LayerNorms are missing: one after the embeddings and two in a block, 2H each",
        lambda c: -(2 * c.hidden_size + c.num_layers * 4 * c.hidden_size),
    ),
    "no block LayerNorms": (
        "the two LayerNorms of each block are missing: 4H in a block",
        lambda c: -c.num_layers * 4 * c.hidden_size,
    ),
    "one LayerNorm a block": (
        "each block was given one LayerNorm; it has two, one after each half",
        lambda c: -c.num_layers * 2 * c.hidden_size,
    ),
    "no embedding LayerNorm": (
        "the LayerNorm after the embeddings is missing: 2H",
        lambda c: -2 * c.hidden_size,
    ),
    "half LayerNorms": (
        "each LayerNorm was counted with H numbers; it has a gain and a bias, 2H",
        lambda c: -(c.hidden_size + c.num_layers * 2 * c.hidden_size),
    ),
    "no pooler": (
        "the pooler is missing: one more linear layer, H to H, on [CLS]",
        lambda c: -(c.hidden_size**2 + c.hidden_size),
    ),
    "no segment table": (
        "the segment table is missing: one row of H for each segment",
        lambda c: -c.type_vocab_size * c.hidden_size,
    ),
    "no position table": (
        "the position table is missing: BERT learns its positions, one row of H each",
        lambda c: -c.max_positions * c.hidden_size,
    ),
    "one block": (
        "the block was counted once; there are L of them, each with its own weights",
        lambda c: -(c.num_layers - 1) * _block(c),
    ),
    "no output projection": (
        "attention's output projection is missing: after the heads are joined, one more layer H "
        "to H",
        lambda c: -c.num_layers * (c.hidden_size**2 + c.hidden_size),
    ),
    "one feed-forward matrix": (
        "the feed-forward part was given one matrix; it has two, H to F and back",
        lambda c: -c.num_layers * c.hidden_size * c.intermediate_size,
    ),
    "every head full width": (
        OWN_MATRICES,
        lambda c: 3 * c.num_layers * (c.num_heads - 1) * c.hidden_size**2,
    ),
    "every head full width, with biases": (
        f"{OWN_MATRICES}, and as much of its bias",
        lambda c: 3 * c.num_layers * (c.num_heads - 1) * (c.hidden_size**2 + c.hidden_size),
    ),
    "every head full width, output too": (
        f"{OWN_MATRICES}; the output projection is one matrix as well",
        lambda c: 4 * c.num_layers * (c.num_heads - 1) * c.hidden_size**2,
    ),
    "every head full width, output and biases": (
        f"{OWN_MATRICES}, and as much of its bias; the output projection is one matrix as well",
        lambda c: 4 * c.num_layers * (c.num_heads - 1) * (c.hidden_size**2 + c.hidden_size),
    ),
    "heads counted": (
        "the MLM and NSP heads were counted; the exercise leaves them out",
        lambda c: c.hidden_size**2 + 5 * c.hidden_size + c.vocab_size + 2,
    ),
    "MLM head counted": (
        "the MLM head was counted (dense layer, LayerNorm, a bias for each piece); the exercise "
        "leaves it out",
        lambda c: c.hidden_size**2 + 3 * c.hidden_size + c.vocab_size,
    ),
    "NSP head counted": (
        "the NSP head was counted, 2H + 2; the exercise leaves it out",
        lambda c: 2 * c.hidden_size + 2,
    ),
    "decoder counted": (
        "a matrix of V×H too many. The decoder of the MLM head is the token table once more "
        "(tied), and this exercise counts no head",
        lambda c: c.vocab_size * c.hidden_size,
    ),
    "F is 4H": (
        "4H stands where the configuration's own intermediate_size should",
        lambda c: (
            c.num_layers * (4 * c.hidden_size - c.intermediate_size) * (2 * c.hidden_size + 1)
        ),
    ),
    "two segments": (
        "2 stands where the configuration's own type_vocab_size should",
        lambda c: (2 - c.type_vocab_size) * c.hidden_size,
    ),
}


def _block(c: BertConfig) -> int:
    H, wide = c.hidden_size, c.intermediate_size
    return 4 * (H * H + H) + 2 * H * wide + wide + H + 4 * H


def _count_suspects() -> list[Suspect]:
    """Every slip alone, then every two together."""
    alone = [(key,) for key in COUNT_SLIPS]
    return [_count_suspect(keys) for keys in [*alone, *combinations(COUNT_SLIPS, 2)]]


def _count_suspect(keys: tuple[str, ...]) -> Suspect:
    said = "; and ".join(COUNT_SLIPS[key][0] for key in keys)
    slips = [COUNT_SLIPS[key][1] for key in keys]
    message = f"Compared with the right count, {said}."
    return Suspect(
        " + ".join(keys), message, lambda c: parameter_count(c) + sum(s(c) for s in slips)
    )


def _drawn_config(draw: Draw, layers: int) -> BertConfig:
    heads = draw.integer(2, 5)
    return BertConfig(
        vocab_size=draw.integer(60, 200),
        hidden_size=heads * draw.integer(3, 9),
        num_layers=layers,
        num_heads=heads,
        intermediate_size=draw.integer(101, 199),
        max_positions=draw.integer(20, 50),
        type_vocab_size=draw.integer(3, 5),
    )


def _ask_count(layers: Sequence[int]) -> Callable[[Answer, Draw], None]:
    def ask(answer: Answer, draw: Draw) -> None:
        for config in [_drawn_config(draw, n) for n in layers for _ in range(3)]:
            _expect_count(answer, config, draw)

    return ask


def _ask_published(answer: Answer, draw: Draw) -> None:
    for size in ("tiny", "base", "large"):
        _expect_count(answer, published("bert", size), draw)


def _expect_count(answer: Answer, config: BertConfig, draw: Draw) -> None:
    given, right = _number(call(answer, config)), parameter_count(config)
    if given == right:
        return
    cases = [(_drawn_config(draw, layers),) for layers in (1, 2, 3, 4)]

    def same(mine: Any, theirs: Any, _case: Any) -> bool:
        return _number(mine) == theirs

    found = find_suspect(answer, cases, _count_suspects(), same)
    sizes = (
        f"V={config.vocab_size}, H={config.hidden_size}, L={config.num_layers}, "
        f"A={config.num_heads}, F={config.intermediate_size}, P={config.max_positions}, "
        f"{config.type_vocab_size} segments"
    )
    gap = f"yours − right = {given - right:+,.0f}"
    said = f"For {sizes} you have {given:,.0f}; it is {right:,} ({gap})."
    raise Mistake(found.key if found else "", f"{found.message}\n{said}" if found else said)


def _number(x: Any) -> float:
    if isinstance(x, Tensor) and x.numel() == 1:
        x = x.item()
    if isinstance(x, bool) or not isinstance(x, Real):  # numpy's numbers are welcome
        raise Mistake(
            "wrong type",
            f"Your function returned {x!r} ({type(x).__name__}); expected one whole number.",
        )
    return float(x)


COUNT = Exercise(
    id="02.1",
    title="Count BERT by hand",
    purpose="to know where the weights are",
    difficulty=2,
    minutes=12,
    signature="parameter_count(config)",
    statement=(
        "Write a function that gives the number of parameters of BERT's encoder with its pooler, "
        "from the sizes alone. `config` has `vocab_size` (V), `hidden_size` (H), `num_layers` "
        "(L), `num_heads` (A), `intermediate_size` (F), `max_positions` (P) and "
        "`type_vocab_size`. Leave out the MLM and NSP heads. Build no model."
    ),
    hints=(
        "Three groups: the embeddings once, the block L times, the pooler once.",
        "A linear layer from m to n has m·n weights and n biases. A LayerNorm of width H has 2H "
        "numbers.",
        "A block: four linear layers H to H, one H to F, one F to H, two LayerNorms. A plays no "
        "part: heads share out the H columns.",
        "With V=10, H=4, L=1, F=8, P=6 and 2 segments: embeddings 80, block 172, pooler 20: 272.",
    ),
    solution=parameter_count,
    see="course_lib.encoder.count_parameters counts a model that has been built",
    stages=(
        Check("embeddings and pooler only (no blocks)", _ask_count([0])),
        Check("one block", _ask_count([1])),
        Check("several blocks", _ask_count([2, 5])),
        Check("BERT-tiny, -base and -large", _ask_published),
    ),
)
