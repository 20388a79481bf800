"""Exercise 10.5: what a vocabulary weighs. V tokens, H wide, L layers, F the feed-forward part."""

from __future__ import annotations

from course_lib.config import BertConfig, published
from course_lib.family.xlm import XlmConfig
from course_lib.family.xlm_roberta import XlmRobertaConfig
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

MODELS = {
    "mBERT, cased": published("bert", "multilingual-cased", BertConfig),
    "mBERT, uncased": published("bert", "multilingual-uncased", BertConfig),
    "XLM of 15 languages": published("xlm", "xnli15", XlmConfig),
    "XLM-R base": published("xlm-roberta", "base", XlmRobertaConfig),
}


def weights(
    vocab: int, hidden: int, layers: int, feed_forward: int, positions: int, types: int
) -> tuple[int, float, float]:
    """All parameters, the fraction in the token embeddings, and that table in blocks."""
    table = vocab * hidden
    embeddings = table + positions * hidden + types * hidden + 2 * hidden
    attention = 4 * (hidden * hidden + hidden)
    block = attention + 2 * hidden * feed_forward + feed_forward + hidden + 4 * hidden
    total = embeddings + layers * block
    return total, table / total, table / block


# ---------------------------------------------------------------- cases


def case(draw: Draw, types: int = 2) -> Case:
    """Sizes that no two terms share, so that each is seen when it is missing."""
    hidden = draw.python.choice([5, 7, 11])
    return (
        draw.integer(60, 200), hidden, draw.integer(2, 5), draw.integer(13, 40),
        draw.integer(17, 50), types,
    )  # fmt: skip


def sizes_of(config: BertConfig) -> Case:
    return (
        config.vocab_size, config.hidden_size, config.num_layers, config.intermediate_size,
        config.max_positions, config.type_vocab_size,
    )  # fmt: skip


def published_sizes(draw: Draw) -> list[Case]:
    return [sizes_of(config) for config in MODELS.values()]


def closing_answer() -> str:
    """Said when the published sizes are passed: how much of each is table."""
    rows = []
    for name, config in MODELS.items():
        total, fraction, blocks = weights(*sizes_of(config))
        rows.append(
            f"{name}: {total / 1e6:.1f}M, {fraction:.1%} in the table, which weighs as much as "
            f"{blocks:.1f} blocks"
        )
    return "; ".join(rows) + "."


TABLE, TOTAL = "vocab * hidden", "embeddings + layers * block"
BLOCK = "attention + 2 * hidden * feed_forward + feed_forward + hidden + 4 * hidden"

SIZES = Exercise(
    **written("10.5"),
    solution=weights,
    returns=(Number("count of all parameters", kind="int"),
             Number("fraction in the table"), Number("table in blocks", "blocks")),
    see="course_lib.config.published has the sizes; exercise 02.1 counts BERT with its pooler",
    stages=(
        Stage("a small model", each(case, (), ())),
        Stage("one token type, none, and fifteen", each(case, (1,), (0,), (15,))),
        Stage("mBERT, XLM and XLM-R", published_sizes, remark=closing_answer),
    ),
    mistakes=(
        Edit(" + feed_forward + hidden", "", "You left out all six biases of a block.",
             more=(("4 * (hidden * hidden + hidden)", "4 * hidden * hidden"),)),
        Edit(" + feed_forward + hidden", " + 2 * hidden", "All six biases of a block have "
             "length `hidden` in your count. The first bias of the feed-forward part has length "
             "`feed_forward`."),
        omitted(" + positions * hidden", "the positions' embeddings", ""),
        omitted(" + types * hidden", "the token types' embeddings (of segments, or of languages)",
                ""),
        omitted("types * hidden + 2 * hidden", "the LayerNorm over the embeddings",
                "types * hidden"),
        omitted(" + 4 * hidden", "the two LayerNorms of a block", ""),
        omitted(" + feed_forward + hidden", "the biases of the feed-forward part", ""),
        Edit("4 * (hidden * hidden + hidden)", "4 * hidden * hidden", "You left out the biases of "
             "the attention."),
        Edit("4 * (hidden * hidden + hidden)", "3 * (hidden * hidden + hidden)", "You left out the "
             "attention's output matrix. There are four: query, key, value and output."),
        Edit("4 * (hidden * hidden + hidden)", "3 * hidden * hidden + 4 * hidden", "Three matrices "
             "of attention are counted, with four biases. The fourth is the output's."),
        Edit(" + 4 * hidden", " + 2 * hidden", "Half of a block's LayerNorms is missing. There "
             "are two, and each has two vectors: 4 · hidden."),
        Edit("types * hidden + 2 * hidden", "types * hidden + hidden", "The LayerNorm over the "
             "embeddings has two vectors; one is counted."),
        Edit("2 * hidden * feed_forward", "hidden * feed_forward", "The feed-forward part has two "
             "matrices, up and down; one is counted."),
        Edit(TOTAL, "embeddings + block", "One block is counted; there are `layers`."),
        Edit(TOTAL, "embeddings + layers * block + hidden * hidden + hidden", "You count a "
             "pooler. Leave it out."),
        Edit(TOTAL, "embeddings + layers * block + hidden * hidden + 3 * hidden + vocab", "You "
             "count the masked-LM head. Leave it out; its large matrix is the token table "
             "again, which counts only once in any case."),
        Edit(TOTAL, "embeddings + layers * block + table", "You count the token table twice. "
             "The head uses the same table (it is tied), and you should leave the head out."),
        Edit("table / total", "embeddings / total", "This is the fraction of *all* embeddings, "
             "including positions, types and LayerNorm. Expected is that of the tokens' table."),
        Edit("table / total", "table / (layers * block)", "You divide the table by the blocks. "
             "For a fraction of all parameters, divide by all of them."),
        Edit("table / total", "vocab / total", "You divide the *number* of tokens by that of "
             "the parameters. Each token has `hidden` parameters."),
        Edit("table / total", "layers * block / total", "This is the fraction in the blocks, the "
             "other part."),
        Edit("table / block", "table // block", "You rounded to whole blocks. "
             "Leave the fraction."),
        Edit("table / block", "table / (layers * block)", "You divide the table by all blocks "
             "together. Expected is how many blocks have as many parameters, so divide by one "
             "block."),
        Edit("table / block", "embeddings / block", "You compare all embeddings with a block. "
             "Compare the tokens' table alone."),
    ),
)  # fmt: skip
