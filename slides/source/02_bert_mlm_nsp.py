"""What deck 02 shows: computed here, or read from data/results and data/papers; never trained."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping, Sequence
from html import escape
from math import log
from statistics import mean
from typing import Any

import torch
from drawing import (
    MONO,
    apart,
    bars,
    body_of,
    code,
    embeddings_and_blocks,
    for_a_hall,
    grouped_bars,
    large,
    spread,
    table,
)

from course_lib import MicroWorld, make_pairs, mask_sequences, plain_bert, published
from course_lib.encoder import Embeddings
from course_lib.kernels.attention import attention_reference
from course_lib.lectures.lecture_02 import numbers
from course_lib.lectures.lecture_02.depth import KINDS, measured
from course_lib.lectures.lecture_02.experiments import RUNS, outcome
from course_lib.lectures.lecture_02.views import bert_drawing, block_drawing
from course_lib.objectives.sequences import PackedSequences
from course_lib.teaching import accuracy_chart, tokens_row
from course_lib.teaching.claims import difference, printed
from course_lib.teaching.numbers import signed
from course_lib.teaching.style import BLUE, GREEN, GREY, ORANGE, PURPLE, VERMILION
from course_lib.teaching.tokens import KEPT, MASKED, REPLACED, box, tokens_legend

PALE = {"blue": "#e3f0f8", "orange": "#fdf1d6", "green": "#e0f3ed", "grey": "#f2f2f2"}
WORLD = MicroWorld.load()
TOKENIZER, SPECIAL = WORLD.tokenizer, WORLD.special


def _sequences(stories: int) -> PackedSequences:
    """Pairs of the stories that the notebook shows, at 32 positions."""
    told = WORLD.documents(WORLD.stories(stories, seed=4))
    return make_pairs(told, SPECIAL, length=32, seed=1)


SHOWN = _sequences(2)[:1]
SEGMENTS = SHOWN.token_type_ids[0].tolist()


def _pieces(ids: torch.Tensor) -> list[str]:
    return [TOKENIZER.token(i) for i in ids[0].tolist()]


PIECES = _pieces(SHOWN.input_ids)
SEP = PIECES.index("[SEP]")


def _flex(inner: Iterable[str], style: str) -> str:
    return f'<div style="display:flex;{style}">{"".join(inner)}</div>'


# ---------------------------------------------------------------- 2: what BERT is


def whole_model() -> str:
    return _wide(bert_drawing().html)


def _wide(view: str) -> str:
    """A drawing of the page, as wide as its place."""
    return view.replace("max-width:100%;", "width:100%;")


# ---------------------------------------------------------------- 3: words into pieces


def pieces_by_longest_match() -> str:
    """Each look at the vocabulary, until a piece is found."""
    struck = f"color:{GREY};{MONO};font-size:21px"
    lines = []
    for number, (*failed, found) in enumerate(numbers.lookups("beekeepers"), start=1):
        name = f'<span style="flex:0 0 100px;white-space:nowrap">piece {number}</span>'
        tried = (f'<s style="{struck}">{escape(piece)}</s>' for piece in failed)
        drawn = f'<span style="zoom:1.6;line-height:1.3;display:flex">{box(found)}</span>'
        lines.append(_flex((name, *tried, drawn), "align-items:center;gap:22px;margin:0 0 18px"))
    return "".join(lines)


def toy_vocabulary() -> str:
    return " ".join(f"<code>{escape(piece)}</code>" for piece in numbers.TOY_VOCAB)


# ---------------------------------------------------------------- 4, 5: the input


def row_of_tokens() -> str:
    return large(tokens_row(PIECES, labels=["AB"[s] for s in SEGMENTS]).inner, 1.42)


def row_of_numbers() -> str:
    """The three lists of numbers at the positions where something happens."""
    last = len(PIECES) - 1
    at = [0, 1, 2, None, SEP - 1, SEP, SEP + 1, None, last - 1, last]

    def line(name: str, cells: Sequence[Any]) -> list[str]:
        return [name, *("…" if i is None else str(cells[i]) for i in at)]

    codes = [f"<code>{escape(piece)}</code>" for piece in PIECES]
    rows = [
        line(f"<code>{name}</code>", getattr(SHOWN, name)[0].tolist())
        for name in ("input_ids", "token_type_ids", "attention_mask")
    ]
    return table(line("", codes), rows)


def three_embeddings() -> str:
    """Some tokens of the sequence, and the three vectors that are added for each."""
    at = [0, 1, 2, SEP - 1, SEP, SEP + 1, SEP + 2]
    gap = 3  # before which tokens are left out
    layers = (
        ("token", [PIECES[i] for i in at], PALE["orange"], ORANGE, "solid"),
        ("+ segment", ["AB"[SEGMENTS[i]] for i in at], PALE["green"], GREEN, "dashed"),
        ("+ position", [str(i) for i in at], PALE["blue"], BLUE, "dotted"),
    )
    cells = []
    for name, texts, fill, ink, edge in layers:
        look = f"background:{fill};border:2px {edge} {ink};border-radius:6px;padding:5px 0"
        look += f";text-align:center;{MONO};font-size:20px"
        cells.append(f'<span style="text-align:right">{name}</span>')
        boxes = [f'<span style="{look}">{escape(text)}</span>' for text in texts]
        cells += [*boxes[:gap], '<span style="text-align:center">…</span>', *boxes[gap:]]
    columns = f"150px repeat({gap},1fr) 24px repeat({len(at) - gap},1fr)"
    grid = f"display:grid;grid-template-columns:{columns};gap:9px 12px"
    return f'<div style="{grid};align-items:center;margin:0 0 14px">{"".join(cells)}</div>'


def code_three_embeddings() -> str:
    return code(re.sub(r"  # type: ignore.*", "", body_of(Embeddings.parts, start="stages =")))


# ---------------------------------------------------------------- 6: attention by hand


def attention_numbers() -> str:
    """Queries, keys, values, and what follows from them, side by side."""
    given = [_matrix(name, rows, "{:g}") for name, rows in numbers.TOKENS.items()]
    follow = [_matrix(name, rows.tolist(), "{:.3f}") for name, rows in numbers.attention().items()]
    sign = f'<div style="font-size:34px;color:{GREY};padding-top:64px">→</div>'
    style = "gap:24px;align-items:flex-start;margin:0 0 10px"
    return _flex((*given, sign, *follow), style)


def _matrix(name: str, rows: Sequence[Sequence[float]], form: str) -> str:
    """A small matrix under its name; attention weights are shaded."""

    def cell(value: float) -> str:
        shade = 0.45 * value if name == "weights" else 0
        ground = f"background:rgba(0,114,178,{shade:.2f})"
        return f'<td style="{ground};padding:5px 9px;text-align:right">{form.format(value)}</td>'

    body = "".join(f"<tr>{''.join(map(cell, row))}</tr>" for row in rows)
    drawn = f'<table style="margin:6px 0;font-size:23px">{body}</table>'
    return f"<div><strong>{name}</strong>{drawn}</div>"


def code_attention() -> str:
    return code(body_of(attention_reference))


# ---------------------------------------------------------------- 7, 8: the block, and counting


def one_block() -> str:
    return _wide(block_drawing().html)


def code_block() -> str:
    return code(
        f"{body_of(plain_bert.Block.forward)}\n# self.feed_forward\n"
        f"{body_of(plain_bert.FeedForward.forward)}"
    )


def taken_out() -> str:
    """Twelve blocks with and without residual and LayerNorm, at two sizes of the matrices."""
    rows = [
        (kind, *(cell for times in (1.0, numbers.GROWN) for cell in _stack(measured(times)[kind])))
        for kind in KINDS
    ]
    cells = '<th style="text-align:right">'.join(("", *("size", "alike", "gradient") * 2))
    above = "".join(
        f'<th colspan="3" style="text-align:right">matrices {said}</th>'
        for said in ("as drawn", f"{numbers.GROWN} times as large")
    )
    drawn = table(("",) * 7, rows, size=23)
    return drawn.replace(
        drawn[drawn.index("<thead>") : drawn.index("</thead>")],
        f"<thead><tr><th></th>{above}</tr><tr><th></th>{cells}</tr>",
    )


def _stack(found: tuple[float, float, float]) -> tuple[str, str, str]:
    size, alike, gradient = found
    if 0.01 <= gradient < 1000:
        return f"{size:.2f}", f"{alike:.2f}", f"{gradient:.1f}"
    digit, power = f"{gradient:.0e}".split("e")
    look = "vertical-align:super;font-size:70%;line-height:0"
    raised = f'<span style="{look}">{signed(int(power), 0).lstrip("+")}</span>'
    return f"{size:.2f}", f"{alike:.2f}", f"{digit} · 10{raised}"


SIZES = ("tiny", "base", "large")


def counted_parameters() -> str:
    paper = printed("bert")["sizes"]
    groups = ("embeddings", "blocks", "encoder", "with both heads")
    rows = [
        (
            f"<strong>{size}</strong>",
            *(f"{numbers.counts(size)[group]:,}" for group in groups),
            f"{paper[size] // 10**6}M" if size in paper else "–",
        )
        for size in SIZES
    ]
    return table(("", *groups, "the paper says"), rows)


def parts_of_parameters() -> str:
    """For each size, how much of it is embeddings and how much is blocks."""
    lines = []
    for size in SIZES:
        found = numbers.counts(size)
        parts = [found[group] / found["with both heads"] for group in ("embeddings", "blocks")]
        lines.append(embeddings_and_blocks(size, [(part, f"{part:.0%}") for part in parts]))
    return "".join(lines)


# ---------------------------------------------------------------- 9: masking


def masked_row() -> str:
    """The shown sequence under the first mask that does all three things."""
    masks = (mask_sequences(SHOWN, SPECIAL, seed=seed) for seed in range(1000))
    masked = next(m for m in masks if set(m.done.tolist()) == {MASKED, REPLACED, KEPT})
    return large(tokens_row(_pieces(masked.input_ids), masked.action[0].tolist()).inner, 1.38)


def legend() -> str:
    whole = re.sub(  # a box and its word stay on one line
        r"(<span class=\"token.*?</span><span>.*?</span>)&emsp;",
        r'<span style="white-space:nowrap">\1</span>&emsp; ',
        tokens_legend(),
    )
    return f'<div style="zoom:1.5">{whole}</div>'


def masked_bars() -> Any:
    found, paper = numbers.masked_of_thousand(), numbers.PAPER
    expected = {n: 1000 * paper["rate"] * of for n, of in zip(found, paper["mix"], strict=True)}
    return bars(found, (), 550, 430, expected=expected, y_title="of 1,000 pieces")


# ---------------------------------------------------------------- 11: does B follow A?


def two_pairs() -> str:
    """A true and a false pair of the micro-world; words that stand in both passages are marked."""
    sequences = _sequences(8)
    assert sequences.next_sentence_label is not None
    labels = sequences.next_sentence_label.tolist()
    pairs = "".join(_one_pair(sequences, labels.index(label), label) for label in (0, 1))
    said = (
        "Underlined: in both passages. A fair coin picks the label, but a lone sentence is always "
        "NotNext. Then B is from <em>another</em> document."
    )
    return f'{pairs}<p style="font-size:22px">{said}</p>'


def _one_pair(sequences: PackedSequences, number: int, label: int) -> str:
    both = (sequences.input_ids[number].tolist(), sequences.token_type_ids[number].tolist())
    passages: tuple[list[int], list[int]] = ([], [])
    for i, side in zip(*both, strict=True):
        if i not in SPECIAL.never_masked:
            passages[side].append(i)
    shared = set(passages[0]) & set(passages[1]) - {TOKENIZER.id(".")}
    said = f"<strong>{('IsNext', 'NotNext')[label]}</strong>, label {label}"
    lines = [
        said,
        *(f"{'AB'[side]}: {_marked(passage, shared)}" for side, passage in enumerate(passages)),
    ]
    edge = f"border-left:5px {('solid', 'dashed')[label]} {(BLUE, VERMILION)[label]}"
    style = f"{edge};padding:2px 0 2px 18px;margin:0 0 20px;font-size:22px"
    texts = "".join(f"<p style='margin:0 0 5px'>{line}</p>" for line in lines)
    return f'<div style="{style}">{texts}</div>'


def _marked(ids: Sequence[int], shared: set[int]) -> str:
    words = ((i, escape(TOKENIZER.token(i))) for i in ids)
    text = " ".join(f"<u><strong>{w}</strong></u>" if i in shared else w for i, w in words)
    return text.replace(" .", ".")


def pairs_bars() -> Any:
    found = numbers.result()
    values = {
        "majority<br>class": max(numbers.not_next(), 1 - numbers.not_next()),
        "bag of<br>shared words": found["levels"]["bag_of_words_pairs"],
        "our model": mean(outcome(found, "live")["pair_accuracy"]),
    }
    colours = (GREY, PURPLE, BLUE)
    figure = bars(values, colours, 540, 390, percent=True, y_title="accuracy")
    return figure.update_traces(text=[f"{value:.1%}" for value in values.values()])


# ---------------------------------------------------------------- 12, 13: the loss, and a slip


def worked_example() -> str:
    found = numbers.loss_of(numbers.WORDS, numbers.PAIRS)
    total = f"L = {found['mlm']:.3f} + {found['nsp']:.3f} = <strong>{found['total']:.3f}</strong>"
    said = (
        f'<div style="padding-top:10px"><p style="white-space:nowrap;font-size:26px">{total}</p>'
        '<p style="font-size:22px">nats; the P are an imagined model\'s.<br>N: selected positions, '
        "three;<br>B: the pairs, two;<br>y: the pair's <em>own</em> label.</p></div>"
    )
    tables = (_prices(numbers.WORDS, found["mlm"]), _prices(numbers.PAIRS, found["nsp"]))
    return _flex((*tables, said), "gap:36px;align-items:flex-start")


def _prices(given: Mapping[str, float], mean_price: float) -> str:
    rows = [(name, f"{p:g}", f"{-log(p):.3f}") for name, p in given.items()]
    last = (f"<strong>mean of {len(given)}</strong>", "", f"<strong>{mean_price:.3f}</strong>")
    return table(("target", "P of it", "−log P"), [*rows, last], size=22)


def two_sequences() -> str:
    """The example's two sequences as boxes; under a box its target."""
    shown = []
    for sequence, targets in (
        (
            "[CLS] the ferry leaves at [MASK] [SEP] its [MASK] is painted green [SEP]",
            "IsNext noon hull",
        ),
        ("[CLS] the ferry leaves at noon [SEP] beans need a [MASK] summer [SEP]", "NotNext warm"),
    ):
        tokens, target = sequence.split(), iter(targets.split())
        labels = [next(target) if token in ("[CLS]", "[MASK]") else "" for token in tokens]
        shown.append(large(tokens_row(tokens, labels=labels).inner, 1.5))
    return "".join(shown)


def slip_table() -> str:
    rows = [
        (f"−log P({name})", *(f"{signed(move)} {'↑' if move > 0 else '↓'}"
                              for move in numbers.step(label)))
        for name, label in (("NotNext", 1), ("IsNext", 0))
    ]  # fmt: skip
    return table(("loss taken", "IsNext", "NotNext"), rows)


def slip_bars() -> Any:
    right, wrong = (float(torch.tensor(numbers.step(label)).softmax(-1)[1]) for label in (1, 0))
    values = {"before": 0.5, "true label": right, "always<br>IsNext": wrong}
    colours = (GREY, BLUE, VERMILION)
    return bars(values, colours, 550, 400, percent=True, y_title="P(NotNext)")


# ---------------------------------------------------------------- 14: measured


def _curve(name: str) -> tuple[list[float], list[float]]:
    """Steps and accuracies of seed 0."""
    points = numbers.result()["runs"][name][0]["curve"]
    return [p["step"] for p in points], [p["masked_accuracy"] for p in points]


def four_lines() -> Any:
    found = numbers.result()["levels"]
    levels = {name: found[name] for name in ("unigram", "count_model", "oracle")}
    figure = accuracy_chart(*_curve("live"), **levels, log_x=True, long_run=_curve("long"))
    figure.update_xaxes(title_text="training step (logarithmic)")
    return apart(for_a_hall(figure, 1120, 350, right=215))


def by_seed() -> str:
    """Mean and standard deviation over seeds of the two recipes."""
    rows = []
    for name, (recipe, seeds) in RUNS.items():
        reached = outcome(numbers.result(), name)
        spreads = (spread(reached[measure]) for measure in ("gap_closed", "pair_accuracy"))
        rows.append((name, f"{recipe.steps:,}", str(len(seeds)), *spreads))
    return table(("", "steps", "seeds", "gap closed", "NSP accuracy"), rows, size=22)


# ---------------------------------------------------------------- 15, 16: the real one


def cost() -> str:
    paper, config = numbers.PAPER, published("bert", "base")
    texts = (paper["words_wikipedia"], paper["words_books"])
    short = f"{paper['short_share']:.0%} at length {paper['short_length']}"
    betas = f"β {paper['beta1']} and {paper['beta2']}"
    rows = (
        ("text", "Wikipedia {:,}M words, BooksCorpus {:,}M".format(*(n // 10**6 for n in texts))),
        ("batch", f"{paper['batch']} sequences of up to {paper['long_length']} tokens"),
        ("steps", f"{paper['steps']:,}; {short}"),
        ("optimiser", f"Adam, {betas}, decay {paper['weight_decay']}"),
        ("learning rate", f"{paper['learning_rate']:.0e}, 10,000 steps up, then down to 0"
         .replace("e-0", "e-")),
        ("dropout", f"{config.hidden_dropout}, attention weights too"),
        ("machines", "base: 4 Cloud TPUs; large: 16; four days each"),
    )  # fmt: skip
    return table(("", "paper, sections 3.1 and A.2"), rows, numbers=False, size=21)


CHANGES = (
    ("no_nsp", "without NSP", GREY, ""),
    ("left_to_right_no_nsp", "left to right, without NSP", BLUE, "/"),
    ("left_to_right_no_nsp_bilstm", "the same, BiLSTM on top", ORANGE, "x"),
)


def ablations() -> Any:
    """Points lost against the full BERT-base, by task and by what was taken away."""
    groups = {
        name: (difference("bert", "ablation_tasks", change, "full"), colour, shape)
        for change, name, colour, shape in CHANGES
    }
    legend = {"x": 0, "y": 0, "xanchor": "left", "yanchor": "bottom"}
    return grouped_bars(groups, [-13, 0.4], legend, height=380)
