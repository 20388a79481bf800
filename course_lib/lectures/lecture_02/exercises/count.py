"""Exercise 02.1: count the parameters of BERT by hand."""

from __future__ import annotations

from functools import partial

from course_lib.config import BertConfig, published
from course_lib.teaching.exercises.form import (
    Case,
    Draw,
    Edit,
    Exercise,
    Stage,
    each,
    omitted,
    written,
)
from course_lib.teaching.exercises.outputs import Number


def parameter_count(config: BertConfig) -> int:
    """Parameters of BERT's encoder with its pooler, from the sizes alone (section 3)."""
    V, P, S = config.vocab_size, config.max_positions, config.type_vocab_size
    H, F, L = config.hidden_size, config.intermediate_size, config.num_layers
    embeddings = V * H + P * H + S * H + 2 * H  # words, positions, segments, LayerNorm
    attention = 4 * (H * H + H)  # query, key, value, output; the number of heads does not matter
    feed_forward = (H * F + F) + (F * H + H)
    norms = 2 * (H + H)
    pooler = H * H + H
    return embeddings + L * (attention + feed_forward + norms) + pooler


def sizes(draw: Draw, layers: int) -> Case:
    heads = draw.integer(2, 5)
    config = BertConfig(
        vocab_size=draw.integer(60, 200), hidden_size=heads * draw.integer(3, 9),
        num_layers=layers, num_heads=heads, intermediate_size=draw.integer(101, 199),
        max_positions=draw.integer(20, 50), type_vocab_size=draw.integer(3, 5),
    )  # fmt: skip
    return (config,)


def published_sizes(draw: Draw) -> list[Case]:
    return [(published("bert", size),) for size in ("tiny", "base", "large")]


attention = partial(Edit, "4 * (H * H + H)")
SHARED = (
    "Each head has its own H×H matrices. The A heads share one matrix: each has H/A of its columns"
)

COUNT = Exercise(
    **written("02.1"),
    solution=parameter_count,
    returns=Number("number of parameters", kind="int"),
    see="course_lib.encoder.count_parameters counts a model that has been built",
    stages=(
        Stage("embeddings and pooler only (no blocks)", each(sizes, *[(0,)] * 3)),
        Stage("one block", each(sizes, *[(1,)] * 3)),
        Stage("several blocks", each(sizes, (2,), (3,), (5,))),
        Stage("BERT-tiny, -base and -large", published_sizes),
    ),
    mistakes=(
        omitted("V * H", "the word embeddings, V rows of H"),
        omitted("P * H", "the position embeddings: BERT learns its positions, one row of H each"),
        omitted("S * H", "the segment embeddings, one row of H for each segment"),
        omitted("+ 2 * H", "the LayerNorm after the embeddings, 2H", instead=""),
        omitted("+ pooler", "the pooler, one more linear layer, H to H, on [CLS]", instead=""),
        omitted("attention + feed", "attention", instead="feed"),
        omitted("feed_forward + norms", "the feed-forward part", instead="norms"),
        omitted("2 * (H + H)", "the two LayerNorms of each block, 4H in a block"),
        Edit("2 * (H + H)", "H + H",
             "You counted one LayerNorm in each block; it has two, one after each half."),
        Edit("2 * (H + H)", "0", "You left out every LayerNorm, one after the embeddings and two "
             "in a block, 2H each.", more=(("+ 2 * H", ""),)),
        Edit("2 * (H + H)", "2 * H", "Each LayerNorm was counted with H numbers; it has a gain and "
             "a bias, 2H.", more=(("+ 2 * H", "+ H"),)),
        attention("4 * H * H",
                  "You left out the biases of the linear layers. Each has as many as it has "
                  "outputs.",
                  more=(("(H * F + F) + (F * H + H)", "2 * H * F"), ("H * H + H\n", "H * H\n"))),
        attention("4 * H * H",
                  "You left out the biases of query, key, value and output, 4H in a block."),
        Edit("(H * F + F) + (F * H + H)", "2 * H * F",
             "You left out the biases of the feed-forward layers, F + H in a block."),
        Edit("pooler = H * H + H", "pooler = H * H", "You left out the pooler's bias, H."),
        attention("3 * (H * H + H)", "You left out attention's output projection: after the heads "
                  "are joined, one more layer H to H."),
        Edit("(F * H + H)", "H", "You counted one matrix in the feed-forward part; it has two, H "
             "to F and back."),
        Edit("L * (", "(", "The block was counted once; there are L of them, each with its own "
             "weights."),
        Edit("+ pooler", "+ L * pooler", "The pooler was counted in every block; there is one, "
             "after the last."),
        attention("(3 * config.num_heads + 1) * H * H + 4 * H", f"{SHARED}."),
        attention("(3 * config.num_heads + 1) * (H * H + H)",
                  f"{SHARED}, and as much of its bias."),
        attention("4 * config.num_heads * H * H + 4 * H",
                  f"{SHARED}; the output projection is one matrix as well."),
        attention("4 * config.num_heads * (H * H + H)", f"{SHARED}, and as much of its bias; the "
                  "output projection is one matrix as well."),
        Edit("return embeddings", "return H * H + 5 * H + V + 2 + embeddings",
             "The MLM and NSP heads were counted; the exercise leaves them out."),
        Edit("return embeddings", "return H * H + 3 * H + V + embeddings",
             "The MLM head was counted (dense layer, LayerNorm, a bias for each piece); this "
             "exercise counts no head."),
        Edit("return embeddings", "return 2 * H + 2 + embeddings",
             "The NSP head was counted, 2H + 2; the exercise leaves it out."),
        Edit("+ 2 * H", "+ V * H + 2 * H", "You count one V×H matrix too many. The decoder of the "
             "MLM head is the word embedding matrix once more (tied), and this exercise counts no "
             "head."),
        Edit("config.intermediate_size", "4 * config.hidden_size",
             "4H is used where the configuration's own intermediate_size should be."),
        Edit("config.type_vocab_size", "2",
             "2 is used where the configuration's own type_vocab_size should be."),
    ),
)  # fmt: skip
