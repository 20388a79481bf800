"""What deck 01 shows: computed here, or read from data/results; never trained."""

from __future__ import annotations

from statistics import mean
from typing import Any

import torch
from drawing import body_of, code, for_a_hall, large, spread, svg, table
from torch.nn.functional import cosine_similarity

from course_lib.encoder import Block
from course_lib.family.gpt import PreNormBlock
from course_lib.family.seq2seq import CrossBlock
from course_lib.kernels.attention import attention_reference, causal_mask
from course_lib.lectures.lecture_01.by_hand import (
    COUNTS,
    NEAR,
    OTHER_WORDS,
    WORDS,
    attention_by_hand,
    ppmi_by_hand,
    vectors_of,
)
from course_lib.lectures.lecture_01.three_kinds import KINDS as KINDS_NAMED
from course_lib.lectures.lecture_01.three_kinds import LEFT, SHOWN, STEPWISE
from course_lib.lectures.lecture_01.views.hand_attention import hand_attention_picture
from course_lib.lectures.lecture_01.views.tree import STEP, TOP, WIDE, members, tree_parts
from course_lib.lectures.lecture_01.views.who_sees_whom import THREE_SIZE as MASKS_SIZE
from course_lib.lectures.lecture_01.views.who_sees_whom import three_parts
from course_lib.teaching import ablation_chart
from course_lib.teaching.results import read_result
from course_lib.text.static_vectors import skip_gram_loss

# ---------------------------------------------------------------- 2, 3: one vector a word


def counted() -> str:
    """The page's counts, and the positive PMI made of them."""
    found = ppmi_by_hand()
    rows = [
        (f"<strong>{word}</strong>", *(str(n) for n in row), "",
         *(f"{value:.2f}" for value in found[word]))
        for word, row in COUNTS.items()
    ]  # fmt: skip
    return table(("", *NEAR, "→ PPMI", *NEAR), rows, size=25)


def bank_between() -> str:
    """The cosines of the three words by hand."""
    vectors = {word: torch.tensor(row) for word, row in ppmi_by_hand().items()}
    pairs = (("bank", "shore"), ("bank", "loan"), ("shore", "loan"))
    rows = [
        (f"{a}, {b}", f"{cosine_similarity(vectors[a], vectors[b], dim=0):.2f}") for a, b in pairs
    ]
    return table(("", "cosine"), rows, size=25)


def code_skip_gram() -> str:
    return code(body_of(skip_gram_loss))


def two_topics() -> str:
    """To which topics the ten nearest things of a word with two topics belong."""
    tables = read_result("01_static")["runs"]["world"]["tables"]
    rows = [
        (f"<strong>{word}</strong>",
         *(", ".join(f"{n} {topic}" for topic, n in table["topics"][word].items())
           for table in tables.values()))
        for word in tables["skip-gram"]["topics"]
    ]  # fmt: skip
    return table(("", "PPMI and SVD", "skip-gram"), rows, numbers=False, size=22)


# ---------------------------------------------------------------- ELMo


# ---------------------------------------------------------------- senses

SENSES = {
    "skip-gram": ("skip-gram", "word"), "bag of words": ("bag of words", "bag"),
    "ELMo, random": ("ELMo, random initialisation", "2"),
    "ELMo, layer 1": ("ELMo", "1"), "ELMo, layer 2": ("ELMo", "2"), "BERT, layer 1": ("BERT", "1"),
    "BERT, layer 4": ("BERT", "4"),
}  # fmt: skip


def senses() -> Any:
    """The page's chart: accuracy of the probe, a dot a word."""
    found = read_result("01_senses")["runs"]["documentation"]["vectors"]
    rows = {}
    for said, (name, layer) in SENSES.items():
        (of,) = [of for of in found[name] if of["layer"] == layer]
        rows[said] = [mean(word["probe"]) for word in of["words"].values()]
    figure = ablation_chart({"": rows}, percent=True, title="", x_title="accuracy")
    return for_a_hall(figure, 1120, 500)


# ---------------------------------------------------------------- attention


def hand_attention() -> str:
    return large(hand_attention_picture(" ".join(WORDS), 3).html, 1.48)


def two_banks() -> str:
    """The vector of bank before and after attention, in both sentences."""
    rows = []
    for said in (WORDS, OTHER_WORDS):
        x = vectors_of(said)
        pairs = zip(x[2].tolist()[:2], attention_by_hand(x)[2][2].tolist()[:2], strict=True)
        rows.append((" ".join(said), *(f"{a:g} → {b:.2f}" for a, b in pairs)))
    return table(("“bank” in", "water", "money"), rows, size=24)


def code_attention() -> str:
    return code(body_of(attention_reference))


# ---------------------------------------------------------------- three kinds


def masks() -> str:
    drawn = svg(*MASKS_SIZE, *three_parts(2), says="who sees whom in the three kinds")
    return large(drawn, 1.07)


KINDS = (
    ("encoder", "both sides", "fill in masked words", "reading", "BERT, RoBERTa"),
    ("decoder", "what stands before", "predict the next word", "writing", "GPT-2, GPT-3"),
    ("encoder-decoder", "the whole source, its own text so far", "write the target text",
     "rewriting", "Transformer, BART, T5"),
)  # fmt: skip


def kinds_table() -> str:
    rows = [(f"<strong>{name}</strong>", *rest) for name, *rest in KINDS]
    head = ("", "sees", "trained to", "good for", "examples")
    return table(head, rows, numbers=False, size=22)


def code_blocks() -> str:
    """The two halves of a block as BERT has them and as GPT-2, and the triangle."""
    parts = (
        ("# BERT: LayerNorm after the sum", body_of(Block.apply_feed_forward)),
        ("# GPT-2: before", body_of(PreNormBlock.apply_feed_forward)),
        ("# and who sees whom", body_of(causal_mask, start="back")),
        ("# encoder-decoder: a third part", body_of(CrossBlock.read)),
    )
    return code("\n\n".join(f"{head}\n{lines}" for head, lines in parts))


MEASURED = {"fill gaps": "words", "continue": "possible", "translate": "whole"}


def kinds_measured() -> str:
    """What each kind reached on each task, mean and standard deviation over the seeds."""
    runs = read_result("01_three_kinds")["runs"]
    rows = [
        (f"<strong>{kind}</strong>",
         *(spread([run[measure] for run in runs[f"{kind}: {task}"]]) if f"{kind}: {task}" in runs
           else "" for task, measure in MEASURED.items()))
        for kind in (KINDS_NAMED[0], STEPWISE, SHOWN, *KINDS_NAMED[1:], LEFT)
    ]  # fmt: skip
    head = ("", "gaps: words recovered", "continue: possible", "translate: whole sentences")
    return table(head, rows, size=21)


# ---------------------------------------------------------------- the family tree


def tree() -> str:
    rows = 1 + max(member.row for member in members().values())
    high = TOP + STEP[1] * rows + 34
    drawn = svg(
        WIDE + 24,  # the legend's last line is wider in the hall's type
        high,
        *tree_parts("BERT", "sesame", links=False),
        says="the family tree, BERT's line thick",
    )
    return large(drawn, 0.93)
