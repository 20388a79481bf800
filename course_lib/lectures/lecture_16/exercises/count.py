"""Exercise 16.6: ModernBERT's parameters. V tokens, H hidden, L layers, F inner width."""

from __future__ import annotations

from course_lib.config import published
from course_lib.family.modernbert import ModernBertConfig
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


def parameters(vocab: int, hidden: int, layers: int, inner: int) -> tuple[int, int]:
    """Of the encoder, and of the masked-word head that is put on it."""
    embeddings = vocab * hidden + hidden
    attention = 4 * hidden * hidden
    gated = 3 * hidden * inner
    norms = 2 * layers * hidden - hidden + hidden  # the first is left out, one is at the end
    encoder = embeddings + layers * (attention + gated) + norms
    head = hidden * hidden + hidden + vocab
    return encoder, head


# ---------------------------------------------------------------- cases


def case(draw: Draw) -> Case:
    """Sizes that no two terms share, so that each is seen when it is missing."""
    return (
        draw.integer(60, 200), draw.python.choice([5, 7, 11]), draw.integer(3, 6),
        2 * draw.integer(8, 20),
    )  # fmt: skip


def released(draw: Draw) -> list[Case]:
    configs = [published("modernbert", size, ModernBertConfig) for size in ("base", "large")]
    return [(c.vocab_size, c.hidden_size, c.num_layers, c.intermediate_size) for c in configs]


EMBEDDINGS, ATTENTION, GATED = (
    "vocab * hidden + hidden",
    "4 * hidden * hidden",
    "3 * hidden * inner",
)
NORMS, ENCODER = "2 * layers * hidden - hidden + hidden", "layers * (attention + gated) + norms"
HEAD = "hidden * hidden + hidden + vocab"

COUNT = Exercise(
    **written("16.6"),
    solution=parameters,
    returns=(Number("count of the encoder", "parameters", kind="int"),
             Number("count of the head", "parameters", kind="int")),
    see="course_lib.family.modernbert.modernbert_for_masked_lm builds what is counted here",
    stages=(
        Stage("small models, the encoder", each(case, (), (), ()), only=("count of the encoder",)),
        Stage("small models, with the head", each(case, (), (), ())),
        Stage("ModernBERT, base and large", released),
    ),
    mistakes=(
        omitted("= vocab * hidden + hidden", "the norm over the embeddings", "= vocab * hidden"),
        omitted("= vocab * hidden + hidden", "the token embeddings, the largest part", "= hidden"),
        Edit("= vocab * hidden + hidden", "= vocab * hidden + 8_192 * hidden + hidden", "You count "
             "a table of 8,192 positions. There is none: rotation has no parameters."),
        Edit("= vocab * hidden + hidden", "= vocab * hidden + 512 * hidden + hidden", "You count "
             "BERT's table of 512 positions. There is none: rotation has no parameters."),
        Edit("= vocab * hidden + hidden", "= vocab * hidden + 2 * hidden + hidden", "You count "
             "segment embeddings. ModernBERT has none."),
        Edit("= vocab * hidden + hidden", "= 2 * vocab * hidden + hidden", "You count the token "
             "embeddings twice. The decoder uses the same matrix: it is tied."),
        Edit(ATTENTION, "3 * hidden * hidden", "You left out the attention's output matrix. There "
             "are four: query, key, value and output."),
        Edit(ATTENTION, "4 * (hidden * hidden + hidden)", "You count biases in the attention. "
             "ModernBERT's dense layers have none."),
        Edit(GATED, "2 * hidden * inner", "You left out the gate. The first matrix of the "
             "feed-forward part is (2F, H), the second (H, F): 3·H·F."),
        Edit(GATED, "4 * hidden * inner", "You double both matrices. The product "
             "with the gate brings 2F back to F: the second matrix is (H, F)."),
        Edit(GATED, "3 * hidden * inner // 2", "You take `inner` for the width with the gate. It "
             "is the width *after* the gate; the first matrix has 2F outputs."),
        Edit(GATED, "3 * hidden * inner + 2 * inner + hidden", "You count biases in the "
             "feed-forward part. ModernBERT's dense layers have none."),
        Edit(NORMS, "2 * layers * hidden + hidden", "You count two norms in every block. The first "
             "block has none before its attention, because the embeddings' norm comes right "
             "before it."),
        Edit(NORMS, "2 * layers * hidden - hidden", "You left out the norm after the last block. "
             "In a pre-norm model the last sum would otherwise have no norm."),
        Edit(NORMS, "4 * layers * hidden - 2 * hidden + 2 * hidden", "Norms have a weight and no "
             "bias here, so they are one vector each, not two."),
        Edit(NORMS, "4 * layers * hidden - 2 * hidden + 2 * hidden + hidden", "Norms have a weight "
             "and no bias here, including the embeddings' norm: one vector each, not two."),
        Edit(NORMS, "layers * hidden", "A block has two norms, one before the attention and one "
             "before the feed-forward part; you count one."),
        omitted(ENCODER, "the norms of the blocks, and the last one",
                "layers * (attention + gated)"),
        Edit(ENCODER, "attention + gated + norms", "You count one block; there are `layers`."),
        Edit(ENCODER, "layers * (attention + gated) + norms + hidden * hidden + hidden", "You "
             "count a pooler. ModernBERT has none."),
        Edit(ENCODER, "layers * (attention + gated) + norms + hidden * hidden + hidden + vocab",
             "The masked-word head is in your encoder. It is the second result, by itself."),
        Edit(HEAD, "hidden * hidden + hidden + vocab + vocab * hidden", "You count the decoder's "
             "matrix again. It is the token embedding matrix itself: tied."),
        Edit(HEAD, "hidden * hidden + hidden", "You left out the decoder's biases, one for each "
             "token of the vocabulary. It is the only layer with biases."),
        Edit(HEAD, "hidden * hidden + hidden + hidden + vocab", "You count a bias in the head's "
             "norm or its dense layer. Neither has one."),
        Edit(HEAD, "hidden * hidden + 2 * hidden + hidden + vocab", "This is BERT's head, with the "
             "biases of its dense layer and its norm. Here neither has any."),
        Edit(HEAD, "hidden * hidden + vocab", "You left out the norm of the head, after its dense "
             "layer."),
        Edit(HEAD, "hidden + vocab", "You left out the head's dense layer, (H, H)."),
        Edit(HEAD, "vocab", "You left out the head's dense layer and its norm, which come before "
             "the decoder."),
        Edit(HEAD, "encoder + hidden * hidden + hidden + vocab", "This is encoder and head "
             "together. The second result is what the head adds."),
    ),
)  # fmt: skip
