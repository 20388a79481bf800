"""What deck 02 shows: computed here, or read from data/results and data/papers; never trained."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import lru_cache
from html import escape
from math import log
from statistics import mean, stdev
from typing import Any

import drawing
import torch
import torch.nn.functional as F
from drawing import apart, arrow, body_of, code, for_a_hall, large, rect, svg, table, words

from course_lib import (
    MicroWorld,
    bert_for_pretraining,
    claims_table,
    count_parameters,
    make_pairs,
    mask_sequences,
    pretraining_loss,
    published,
)
from course_lib.encoder import Block, Embeddings, FeedForward
from course_lib.heads import PreTrainingOutput
from course_lib.kernels.attention import attention_reference
from course_lib.lectures.lecture_02.experiments import outcome
from course_lib.lectures.lecture_02.recipes import LIVE, LONG, Material, prepare
from course_lib.objectives.coverage import coverage
from course_lib.objectives.sequences import PackedSequences
from course_lib.teaching import accuracy_chart, bar_chart, tokens_row
from course_lib.teaching.claims import claims, printed
from course_lib.teaching.results import read_result
from course_lib.teaching.style import (
    BLUE,
    FAINT,
    GREEN,
    GREY,
    INK,
    ORANGE,
    VERMILION,
    rounded,
    template,
)
from course_lib.teaching.tokens import KEPT, MASKED, REPLACED, box
from course_lib.text.wordpiece import longest_match

MONO = "font-family:ui-monospace,Menlo,Consolas,'DejaVu Sans Mono',monospace"
PALE = {"blue": "#e3f0f8", "orange": "#fdf1d6", "green": "#e0f3ed", "grey": "#f2f2f2"}

# ---------------------------------------------------------------- what several slides share


@lru_cache(maxsize=1)
def _world() -> MicroWorld:
    return MicroWorld.load()


@lru_cache(maxsize=1)
def _material() -> Material:
    return prepare(LIVE, _world())


@lru_cache(maxsize=1)
def _result() -> dict[str, Any]:
    try:
        return read_result("02_pretraining")
    except FileNotFoundError as missing:
        raise RuntimeError(
            "data/results/02_pretraining.json is not there, and this slide shows what it holds. "
            "`python -m course_lib.teaching.results 02` makes it (hours on two cores)."
        ) from missing


@lru_cache(maxsize=1)
def _pair() -> PackedSequences:
    """The row of input that the notebook shows: two passages, 32 positions."""
    world = _world()
    return make_pairs(world.documents(world.stories(2, seed=4)), world.special, length=32, seed=1)[
        :1
    ]


def _pieces(rows: PackedSequences) -> list[str]:
    return [_world().tokenizer.token(i) for i in rows.input_ids[0].tolist()]


# ---------------------------------------------------------------- 1, 2: what BERT is


def chosen_percent() -> str:
    return f"{printed('bert')['pretraining']['rate']:.0%}"


def layers_base() -> int:
    return published("bert", "base").num_layers


def layers_large() -> int:
    return published("bert", "large").num_layers


def width_base() -> int:
    return published("bert", "base").hidden_size


def heads_base() -> int:
    return published("bert", "base").num_heads


def head_size() -> int:
    return width_base() // heads_base()


def positions() -> int:
    return published("bert", "base").max_positions


def vocabulary() -> int:
    return published("bert", "base").vocab_size


def vocabulary_printed() -> int:
    return int(printed("bert")["pretraining"]["vocabulary"])


def encoder_picture() -> str:
    """BERT from the tokens at the bottom to the two questions on top."""
    tokens = ("[CLS]", "the", "ferry", "[MASK]", "at", "noon", "[SEP]")
    xs = [60 + 84 * i for i in range(len(tokens))]
    parts = []
    for x, token in zip(xs, tokens, strict=True):
        masked = token == "[MASK]"
        fill, ink = (PALE["orange"], "#8a5f00") if masked else ("#fff", "#8a8a8a")
        parts += [
            rect(x, 462, 76, 36, token, size=17, mono=True, fill=fill, ink=ink, wide=1 + masked),
            arrow(x + 38, 460, x + 38, 436),
            arrow(x + 38, 162, x + 38, 140),
            rect(x + 8, 100, 60, 38, fill=PALE["blue"], ink=BLUE),
            *(arrow(x + 18 + 10 * k, 108, x + 18 + 10 * k, 130, tip=False) for k in range(5)),
        ]
    wide = xs[-1] + 76 - xs[0]
    for y, name in ((294, "block 1"), (240, "⋮"), (164, f"block {layers_base()}")):
        shown = name == "⋮"
        parts.append(
            words(60 + wide / 2, y + 24, name)
            if shown
            else rect(
                60, y, wide, 54, f"{name}: attention, feed-forward", fill=PALE["green"], ink=GREEN
            )
        )
    parts += [
        rect(60, 384, wide, 50, "token + segment + position, LayerNorm", fill=PALE["grey"]),
        arrow(60 + wide / 2, 382, 60 + wide / 2, 350),
        arrow(60 + wide / 2, 292, 60 + wide / 2, 274),
        arrow(60 + wide / 2, 238, 60 + wide / 2, 220),
        rect(0, 8, 196, 48, "does B follow A?", fill=PALE["orange"], ink=ORANGE),
        arrow(xs[0] + 38, 98, xs[0] + 38, 58),
        rect(xs[3] - 60, 8, 196, 48, "which word?", fill=PALE["orange"], ink=ORANGE),
        arrow(xs[3] + 38, 98, xs[3] + 38, 58),
    ]
    return svg(650, 504, *parts, says="tokens, embeddings, blocks, vectors, two heads")


# ---------------------------------------------------------------- 3: words into pieces

TOY_VOCAB = ("b", "be", "bee", "##k", "##e", "##ke", "##keep", "##keeper", "##er", "##s", "##p")


class _Watched(frozenset):
    """A vocabulary that remembers what it was asked for."""

    asked: list[str]

    def __contains__(self, piece: object) -> bool:
        self.asked.append(str(piece))
        return super().__contains__(piece)


def _tried(word: str) -> tuple[list[list[str]], list[str] | None]:
    """For each piece, what longest_match asked before it was content, and the pieces."""
    vocab = _Watched(TOY_VOCAB)
    vocab.asked = []
    pieces = longest_match(word, vocab)
    rounds: list[list[str]] = [[]]
    for piece in vocab.asked:
        rounds[-1].append(piece)
        if piece in TOY_VOCAB:
            rounds.append([])
    return [r for r in rounds if r], pieces


def pieces_by_longest_match() -> str:
    """Each look at the vocabulary, until a piece is found."""
    rounds, _ = _tried("beekeepers")
    lines = []
    for number, asked in enumerate(rounds, start=1):
        *failed, found = asked
        looks = "".join(
            f'<s style="color:{GREY};{MONO};font-size:21px">{escape(piece)}</s>' for piece in failed
        )
        lines.append(
            '<div style="display:flex;align-items:center;gap:22px;margin:0 0 18px">'
            f'<span style="flex:0 0 100px;white-space:nowrap">piece {number}</span>'
            f'{looks}<span style="zoom:1.6;line-height:1.3;display:flex">{box(found)}</span></div>'
        )
    return "".join(lines)


def toy_vocabulary() -> str:
    return " ".join(f"<code>{escape(piece)}</code>" for piece in TOY_VOCAB)


def looks_needed() -> int:
    return sum(map(len, _tried("beekeepers")[0]))


def unknown_word() -> str:
    word = "beehive"
    assert longest_match(word, set(TOY_VOCAB)) is None
    return word


# ---------------------------------------------------------------- 4, 5: the input


def row_of_tokens() -> str:
    pair = _pair()
    labels = ["AB"[s] for s in pair.token_type_ids[0].tolist()]
    return large(tokens_row(_pieces(pair), labels=labels).inner, 1.42)


def row_of_numbers() -> str:
    """The three rows of numbers at the places where something happens."""
    pair, pieces = _pair(), _pieces(_pair())
    sep = pieces.index("[SEP]")
    at = [0, 1, 2, -1, sep - 1, sep, sep + 1, -1, len(pieces) - 2, len(pieces) - 1]
    head = ["", *("…" if i < 0 else f"<code>{escape(pieces[i])}</code>" for i in at)]
    columns = ("input_ids", "token_type_ids", "attention_mask")
    rows = [
        [
            f"<code>{name}</code>",
            *("…" if i < 0 else str(getattr(pair, name)[0, i].item()) for i in at),
        ]
        for name in columns
    ]
    return table(head, rows)


def three_tables() -> str:
    """Some tokens of the row, and the three vectors that are added for each."""
    pieces, segments = _pieces(_pair()), _pair().token_type_ids[0].tolist()
    sep = pieces.index("[SEP]")
    at = [0, 1, 2, sep - 1, sep, sep + 1, sep + 2]
    layers = (
        ("token", [pieces[i] for i in at], PALE["orange"], ORANGE, "solid"),
        ("segment", ["AB"[segments[i]] for i in at], PALE["green"], GREEN, "dashed"),
        ("position", [str(i) for i in at], PALE["blue"], BLUE, "dotted"),
    )
    cells = []
    for number, (name, texts, fill, ink, edge) in enumerate(layers):
        sign = "+" if number else ""
        cells.append(f'<span style="text-align:right">{sign} {name}</span>')
        look = f"background:{fill};border:2px {edge} {ink};border-radius:6px;padding:5px 0"
        cells += [
            f'<span style="{look};text-align:center;{MONO};font-size:20px">{escape(text)}</span>'
            for text in texts
        ]
    grid = f"display:grid;grid-template-columns:150px repeat({len(at)},1fr);gap:9px 12px"
    return f'<div style="{grid};align-items:center;margin:0 0 14px">{"".join(cells)}</div>'


def code_three_tables() -> str:
    return code(body_of(Embeddings.parts, start="stages ="))


# ---------------------------------------------------------------- 6: attention by hand

Q = ((1.0, 0.0), (0.0, 1.0), (1.0, 1.0))
K = ((1.0, 0.0), (0.0, 1.0), (2.0, 0.0))
V = ((10.0, 0.0), (0.0, 10.0), (5.0, 5.0))


@lru_cache(maxsize=1)
def _attention() -> tuple[torch.Tensor, torch.Tensor, torch.Tensor]:
    """Mixed values, shares and scores of the three tokens, by the library's own function."""
    q, k, v = (torch.tensor(rows)[None, None] for rows in (Q, K, V))
    mixed, shares, scores = attention_reference(q, k, v)
    return mixed[0, 0], shares[0, 0], scores[0, 0]


def attention_numbers() -> str:
    """q, k, v, and what follows from them, side by side."""
    mixed, shares, scores = _attention()
    given = [("queries", Q, "{:g}"), ("keys", K, "{:g}"), ("values", V, "{:g}")]
    follow = [("scores", scores.tolist(), "{:.3f}"), ("shares", shares.tolist(), "{:.3f}"),
              ("mixed", mixed.tolist(), "{:.3f}")]  # fmt: skip
    blocks = [_matrix(name, rows, form, name == "shares") for name, rows, form in given + follow]
    blocks.insert(3, f'<div style="font-size:34px;color:{GREY};padding-top:64px">→</div>')
    style = "display:flex;gap:24px;align-items:flex-start;margin:0 0 10px"
    return f'<div style="{style}">{"".join(blocks)}</div>'


def _matrix(name: str, rows: Sequence[Sequence[float]], form: str, shaded: bool) -> str:
    def cell(value: float) -> str:
        ground = f"background:rgba(0,114,178,{0.45 * value:.2f});" if shaded else ""
        return f'<td style="{ground}padding:5px 9px;text-align:right">{form.format(value)}</td>'

    body = "".join(f"<tr>{''.join(map(cell, row))}</tr>" for row in rows)
    table = f'<table style="margin:6px 0;font-size:23px">{body}</table>'
    return f"<div><strong>{name}</strong>{table}</div>"


def first_for_third() -> str:
    return f"{_attention()[2][0, 2]:.3f}"


def first_row_of_shares() -> str:
    return ", ".join(f"{share:.3f}" for share in _attention()[1][0])


def code_attention() -> str:
    return code(body_of(attention_reference))


# ---------------------------------------------------------------- 7, 8: the block, and counting


def block_picture() -> str:
    """One post-LN block from left to right."""
    y, h = 62, 70
    steps = [
        (96, 168, "attention", PALE["blue"], BLUE, ""),
        (350, 130, "LayerNorm", PALE["grey"], GREY, "6 4"),
        (586, 196, "H → F → H", PALE["green"], GREEN, ""),
        (868, 130, "LayerNorm", PALE["grey"], GREY, "6 4"),
    ]
    parts = [
        rect(x, y, w, h, name, fill=fill, ink=ink, wide=2, dash=dash)
        for x, w, name, fill, ink, dash in steps
    ]
    middle = y + h / 2
    for x in (307, 825):
        parts += [
            f'<circle cx="{x}" cy="{middle}" r="17" fill="#fff" stroke="{INK}"/>',
            words(x, middle + 8, "+", 26),
        ]
    parts += [
        words(30, middle + 7, "x"),
        arrow(46, middle, 94, middle), arrow(264, middle, 288, middle),
        arrow(324, middle, 348, middle), arrow(480, middle, 584, middle),
        arrow(782, middle, 806, middle), arrow(842, middle, 866, middle),
        arrow(998, middle, 1036, middle), words(1044, middle + 7, "next block", anchor="start"),
        arrow(68, middle, 68, 24, 307, 24, 307, middle - 19),
        arrow(530, middle, 530, 24, 825, 24, 825, middle - 19),
        words(188, 16, "the input, added back", 18), words(684, 16, "added back again", 18),
        words(180, 158, "between tokens", 18),
        words(684, 158, "each token alone, GELU inside", 18),
    ]  # fmt: skip
    return svg(1152, 170, *parts, says="attention, add, LayerNorm, feed-forward, add, LayerNorm")


def code_block() -> str:
    return code(
        f"{body_of(Block.attend, start='attended')}\n# then\n{body_of(Block.feed)}\n"
        f"# self.feed_forward\n{body_of(FeedForward.forward)}"
    )


@lru_cache(maxsize=4)
def _counts(size: str) -> dict[str, int]:
    """Parameters by group, on the meta device: shapes without memory."""
    with torch.device("meta"):
        model = bert_for_pretraining(size)
    encoder = model.encoder
    counted = {"embeddings": encoder.embeddings, "blocks": encoder.stack, "encoder": encoder}
    found = {name: count_parameters(part) for name, part in counted.items()}
    return found | {"with heads": count_parameters(model)}


def counted_parameters() -> str:
    paper = printed("bert")["sizes"]
    head = ("", "embeddings", "blocks", "encoder", "with both heads", "the paper says")
    rows = [
        (
            f"<strong>{size}</strong>",
            *(f"{n:,}" for n in _counts(size).values()),
            f"{paper[size] // 10**6}M" if size in paper else "–",
        )
        for size in ("tiny", "base", "large")
    ]
    return table(head, rows)


def shares_of_parameters() -> str:
    """For each size, how much of it is tables and how much is blocks."""
    lines = []
    for size in ("tiny", "base", "large"):
        counts = _counts(size)
        tables, blocks = (counts[name] / counts["with heads"] for name in ("embeddings", "blocks"))
        hatch = f"repeating-linear-gradient(45deg,{ORANGE} 0 5px,#f7cf7a 5px 10px)"
        bars = "".join(
            f'<span style="width:{100 * share:.1f}%;background:{ground};color:{ink};'
            f'padding:3px 0 3px 8px;box-sizing:border-box;white-space:nowrap;overflow:hidden">'
            f"{share:.0%}</span>"
            for share, ground, ink in ((tables, hatch, INK), (blocks, BLUE, "#fff"))
        )
        lines.append(
            '<div style="display:flex;align-items:center;margin:0 0 7px;font-size:20px">'
            f'<span style="flex:0 0 90px">'
            f'{size}</span><span style="display:flex;flex:1;background:{FAINT}">{bars}</span></div>'
        )
    return "".join(lines)


def block_count() -> int:
    """The parameters of one block of BERT-base, by the formula on the slide."""
    config = published("bert", "base")
    H, intermediate = config.hidden_size, config.intermediate_size
    by_hand = 4 * (H * H + H) + (2 * H * intermediate + intermediate + H) + 4 * H
    assert by_hand * config.num_layers == _counts("base")["blocks"]
    return by_hand


def count_base() -> int:
    return _counts("base")["encoder"]


def count_large() -> int:
    return _counts("large")["encoder"]


# ---------------------------------------------------------------- 9, 10: hiding


@lru_cache(maxsize=1)
def _hidden() -> dict[str, float]:
    """Of 1,000 real pieces of the training rows, how many are masked, replaced, kept."""
    train, special = _material().train, _world().special
    done = torch.cat([mask_sequences(train, special, seed=0, epoch=e).done for e in range(3)])
    real = 3 * int(train.attention_mask.sum())
    names = {"[MASK]": MASKED, "another word": REPLACED, "left alone": KEPT}
    return {name: 1000 * int((done == kind).sum()) / real for name, kind in names.items()}


def masked_row() -> str:
    """The shown row under the first mask that does all three things."""
    masks = (mask_sequences(_pair(), _world().special, seed=seed) for seed in range(1000))
    row = next(m for m in masks if set(m.done.tolist()) == {MASKED, REPLACED, KEPT})
    pieces = [_world().tokenizer.token(i) for i in row.input_ids[0].tolist()]
    return large(tokens_row(pieces, row.action[0].tolist()).inner, 1.38)


def legend() -> str:
    kinds = (("[MASK]", MASKED, "hidden"), ("word", REPLACED, "another word"),
             ("word", KEPT, "left alone, but asked"))  # fmt: skip
    parts = "".join(
        '<span style="white-space:nowrap">'
        f'<span style="zoom:1.3">{box(token, kind)}</span> {said}</span>'
        for token, kind, said in kinds
    )
    style = "display:flex;flex-wrap:wrap;gap:8px 26px;font-size:20px;margin:16px 0 0"
    return f'<div style="{style}">{parts}</div>'


def hidden_bars() -> Any:
    rate, mix = (printed("bert")["pretraining"][name] for name in ("rate", "mix"))
    expected = {name: 1000 * rate * share for name, share in zip(_hidden(), mix, strict=True)}
    figure = bar_chart(_hidden(), expected=expected, y_title="of 1,000 pieces")
    return for_a_hall(figure, 550, 430)


def _mix(place: int) -> str:
    return f"{printed('bert')['pretraining']['mix'][place]:.0%}"


def share_hidden() -> str:
    return _mix(0)


def share_replaced() -> str:
    return _mix(1)


def share_left() -> str:
    return _mix(2)


def hidden_percent() -> str:
    """The share of all positions that become [MASK]."""
    paper = printed("bert")["pretraining"]
    return f"{paper['rate'] * paper['mix'][0]:.0%}"


def masked_of_thousand() -> str:
    return f"{_hidden()['[MASK]']:.0f}"


def asked_of_thousand() -> str:
    return f"{sum(_hidden().values()):.0f}"


def count_of_thirty() -> int:
    from course_lib.kernels.masking import count_to_predict

    return count_to_predict(30, printed("bert")["pretraining"]["rate"])


def _ever_hidden(copies: int) -> str:
    """The share of positions hidden at least once in so many independent draws."""
    return f"{coverage(printed('bert')['pretraining']['rate'], copies)[-1]:.1%}"


def ever_hidden_once() -> str:
    return _ever_hidden(1)


def ever_hidden_ten() -> str:
    return _ever_hidden(10)


def ever_hidden_forty() -> str:
    return _ever_hidden(int(printed("bert")["pretraining"]["epochs"]))


# ---------------------------------------------------------------- 11: does B follow A?


def two_pairs() -> str:
    """A true and a false pair of the micro-world; words that stand in both passages are marked."""
    world = _world()
    rows = make_pairs(world.documents(world.stories(8, seed=4)), world.special, length=32, seed=1)
    assert rows.next_sentence_label is not None
    labels = rows.next_sentence_label.tolist()
    pairs = "".join(_one_pair(rows, labels.index(label), label) for label in (0, 1))
    said = (
        "Underlined: in both passages. A coin decides; for NotNext, B is from <em>another</em> "
        "document."
    )
    return f'{pairs}<p style="font-size:22px">{said}</p>'


def _one_pair(rows: PackedSequences, number: int, label: int) -> str:
    special, segments = _world().special, rows.token_type_ids[number].tolist()
    ids = rows.input_ids[number].tolist()
    passages = [
        [
            i
            for i, s in zip(ids, segments, strict=True)
            if s == side and i not in special.never_masked
        ]
        for side in (0, 1)
    ]
    shared = {i for i in passages[0] if i in passages[1]} - {_world().tokenizer.id(".")}
    said = f"<strong>{('IsNext', 'NotNext')[label]}</strong>, label {label}"
    texts = (
        f"<p style='margin:0 0 4px'>{'AB'[side]}: {_marked(passages[side], shared)}</p>"
        for side in (0, 1)
    )
    style = f"border-left:5px {('solid', 'dashed')[label]} {(BLUE, VERMILION)[label]}"
    return (
        f'<div style="{style};padding:2px 0 2px 18px;margin:0 0 20px;font-size:22px">'
        f"<p style='margin:0 0 6px'>{said}</p>{''.join(texts)}</div>"
    )


def _marked(ids: Sequence[int], shared: set[int]) -> str:
    words = ((i, escape(_world().tokenizer.token(i))) for i in ids)
    text = " ".join(f"<u><strong>{w}</strong></u>" if i in shared else w for i, w in words)
    return text.replace(" .", ".")


def _majority_class() -> float:
    labels = _material().heldout_pairs.next_sentence_label
    assert labels is not None
    share = labels.float().mean().item()
    return max(share, 1 - share)


def pairs_bars() -> Any:
    runs = _result()["runs"]["live"]
    values = {
        "one answer<br>for all": _majority_class(),
        "shared<br>words": _result()["levels"]["bag_of_words_pairs"],
        "our model": mean(run["curve"][-1]["pair_accuracy"] for run in runs),
    }
    figure = bar_chart(values, percent=True, y_title="pairs right")
    figure.update_traces(marker_color=[GREY, "#CC79A7", BLUE])
    return for_a_hall(figure, 540, 390)


def bag_of_words() -> str:
    return f"{_result()['levels']['bag_of_words_pairs']:.1%}"


def not_next_share() -> str:
    labels = _material().heldout_pairs.next_sentence_label
    assert labels is not None
    return f"{labels.float().mean().item():.0%}"


# ---------------------------------------------------------------- 12, 13: the loss, and a slip

# What an imagined model gives to the right answers of the example.
WORDS = {"noon": 0.5, "hull": 0.25, "warm": 0.5}
PAIRS = {"IsNext": 0.8, "NotNext": 0.4}


@lru_cache(maxsize=1)
def _example() -> dict[str, float]:
    """The loss of the two rows, by the library: the right answer is 0 among two choices."""
    outputs = PreTrainingOutput(_as_logits(WORDS, [0, 0, 0]), _as_logits(PAIRS, [0, 1]))
    targets = {"labels": torch.tensor([0, 0, 0]), "next_sentence_label": torch.tensor([0, 1])}
    return {name: float(loss) for name, loss in pretraining_loss(outputs, targets).items()}


def _as_logits(given: Mapping[str, float], right: Sequence[int]) -> torch.Tensor:
    rows = [
        [p, 1 - p] if at == 0 else [1 - p, p] for p, at in zip(given.values(), right, strict=True)
    ]
    return torch.tensor(rows).log()


def worked_example() -> str:
    found = _example()
    tables = _prices(WORDS, found["mlm"]) + _prices(PAIRS, found["nsp"])
    total = f"L = {found['mlm']:.3f} + {found['nsp']:.3f} = <strong>{found['total']:.3f}</strong>"
    said = (
        f'<div style="padding-top:10px"><p style="white-space:nowrap;font-size:26px">{total}</p>'
        '<p style="font-size:22px">nats; the P are an imagined model\'s.<br>C: chosen positions, '
        "three;<br>B: the pairs, two;<br>y: the pair's <em>own</em> label.</p></div>"
    )
    flex = "display:flex;gap:36px;align-items:flex-start"
    return f'<div style="{flex}">{tables}{said}</div>'


def _prices(given: Mapping[str, float], mean_price: float) -> str:
    rows = [(name, f"{p:g}", f"{-log(p):.3f}") for name, p in given.items()]
    last = (f"<strong>mean of {len(given)}</strong>", "", f"<strong>{mean_price:.3f}</strong>")
    return table(("asked", "P of it", "−log P"), [*rows, last], size=22)


def two_rows() -> str:
    """The example's two rows as boxes; under a box the truth that is asked for."""
    rows = (
        (
            "[CLS] the ferry leaves at [MASK] [SEP] its [MASK] is painted green [SEP]",
            "IsNext noon hull",
        ),
        ("[CLS] the ferry leaves at noon [SEP] beans need a [MASK] summer [SEP]", "NotNext warm"),
    )
    shown = []
    for row, truth in rows:
        tokens, asked = row.split(), iter(truth.split())
        labels = [next(asked) if token in ("[CLS]", "[MASK]") else "" for token in tokens]
        shown.append(large(tokens_row(tokens, labels=labels).inner, 1.5))
    return "".join(shown)


def loss_total() -> str:
    return f"{_example()['total']:.3f}"


@lru_cache(maxsize=2)
def _step(label: int) -> list[float]:
    """How gradient descent moves the scores (IsNext, NotNext) of an undecided model."""
    scores = torch.zeros(1, 2, requires_grad=True)
    (gradient,) = torch.autograd.grad(F.cross_entropy(scores, torch.tensor([label])), scores)
    return (-gradient[0]).tolist()


def slip_table() -> str:
    rows = [
        (
            name,
            *(f"{move:+.1f} {'↑' if move > 0 else '↓'}".replace("-", "−") for move in _step(label)),
        )
        for name, label in (("−log P(NotNext)", 1), ("−log P(IsNext)", 0))
    ]
    return table(("loss taken", "IsNext", "NotNext"), rows)


def slip_bars() -> Any:
    after = [float(torch.tensor(_step(label)).softmax(-1)[1]) for label in (1, 0)]
    values = {"before": 0.5, "true label": after[0], "always<br>IsNext": after[1]}
    figure = bar_chart(values, percent=True, y_title="P(NotNext)")
    figure.update_traces(marker_color=[GREY, BLUE, VERMILION])
    return for_a_hall(figure, 550, 400)


# ---------------------------------------------------------------- 14: measured


def _curve(name: str) -> tuple[list[float], list[float]]:
    """Steps and accuracies of seed 0."""
    points = _result()["runs"][name][0]["curve"]
    return [p["step"] for p in points], [p["masked_accuracy"] for p in points]


def four_lines() -> Any:
    levels = {name: _result()["levels"][name] for name in ("unigram", "count_model", "oracle")}
    figure = accuracy_chart(*_curve("live"), **levels, log_x=True, long_run=_curve("long"))
    return apart(for_a_hall(figure, 1120, 350, right=215))


def by_seed() -> str:
    """Mean and standard deviation over seeds of the two recipes."""
    head = ("", "steps", "seeds", "distance covered", "pairs right")
    rows = []
    for name, recipe in (("live", LIVE), ("long", LONG)):
        runs = _result()["runs"][name]
        covered, pairs = _ends(name)
        rows.append((name, f"{recipe.steps:,}", str(len(runs)), _spread(covered), _spread(pairs)))
    return table(head, rows, size=22)


def _ends(name: str) -> tuple[list[float], list[float]]:
    """For each seed, the share of the distance covered, and the pairs told apart, at the end."""
    reached = outcome(_result(), name)
    return reached["gap_closed"], reached["pair_accuracy"]


def _spread(values: Sequence[float]) -> str:
    around = f" (sd {100 * stdev(values):.1f})" if len(values) > 1 else ""
    return f"{100 * mean(values):.1f}%{around}"


def covered_live() -> str:
    return f"{mean(_ends('live')[0]):.0%}"


def covered_long() -> str:
    return f"{mean(_ends('long')[0]):.0%}"


def level_unigram() -> str:
    return f"{_result()['levels']['unigram']:.1%}"


def level_count() -> str:
    return f"{_result()['levels']['count_model']:.1%}"


def level_oracle() -> str:
    return f"{_result()['levels']['oracle']:.1%}"


def positions_measured() -> int:
    return int(_result()["levels"]["positions"])


def live_steps() -> int:
    return LIVE.steps


# ---------------------------------------------------------------- 15, 16: the real one


def cost() -> str:
    paper, config = printed("bert")["pretraining"], published("bert", "base")
    words = (paper["words_wikipedia"], paper["words_books"])
    short = f"{paper['short_share']:.0%} at length {paper['short_length']}"
    betas = f"β {paper['beta1']} and {paper['beta2']}"
    rows = (
        ("text", "Wikipedia {:,}M words, BooksCorpus {:,}M".format(*(w // 10**6 for w in words))),
        ("batch", f"{paper['batch']} rows of up to {paper['long_length']} tokens"),
        ("steps", f"{paper['steps']:,}; {short}"),
        ("optimiser", f"Adam, {betas}, decay {paper['weight_decay']}"),
        ("learning rate", f"{paper['learning_rate']:.0e}, 10,000 steps up, then down to 0"
         .replace("e-0", "e-")),
        ("dropout", f"{config.hidden_dropout}, attention weights too"),
        ("machines", "base: 4 Cloud TPUs; large: 16; four days each"),
    )  # fmt: skip
    return table(("", "paper, sections 3.1 and A.2"), rows, numbers=False, size=21)


def _settled(claim: str) -> str:
    return claims_table("02", only=[claim]).rows[0][3]


def passes() -> str:
    return _settled("slip 4 epochs")


def epochs_printed() -> int:
    return int(printed("bert")["pretraining"]["epochs"])


def tokens_a_step() -> str:
    return _settled("slip 4 batch")


def tokens_printed() -> int:
    return int(printed("bert")["pretraining"]["batch_tokens"])


NAMES = {
    "no_nsp": "without NSP",
    "left_to_right_no_nsp": "left to right, without NSP",
    "left_to_right_no_nsp_bilstm": "the same, BiLSTM on top",
}


def _lost() -> dict[str, dict[str, float]]:
    table = printed("bert")["ablation_tasks"]
    return {
        name: {
            task: round(after - before, 1)
            for task, after, before in zip(
                table["columns"], table[name], table["full"], strict=True
            )
        }
        for name in NAMES
    }


def ablations() -> Any:
    """Points lost against the full BERT-base, by task and by what was taken away."""
    import plotly.graph_objects as go

    figure = go.Figure(layout={"template": template(), "barmode": "group", "bargap": 0.28})
    looks = zip((GREY, BLUE, ORANGE), ("", "/", "x"), strict=True)
    for (name, lost), (colour, shape) in zip(_lost().items(), looks, strict=True):
        figure.add_bar(
            x=list(lost), y=rounded(lost.values()), name=NAMES[name], textposition="outside",
            text=[f"{points:+.1f}".replace("-", "−") for points in lost.values()],
            textfont_size=18, cliponaxis=False, constraintext="none",
            marker={
                "color": colour,
                "pattern": {"shape": shape, "fgcolor": "white", "solidity": 0.25},
            },
        )  # fmt: skip
    figure.update_yaxes(title_text="points", range=[-13, 0.4], zeroline=True, zerolinecolor=INK)
    figure.update_xaxes(side="top", ticks="", showline=False)
    legend = {"x": 0, "y": 0, "xanchor": "left", "yanchor": "bottom", "font": {"size": 20}}
    figure.update_layout(showlegend=True, legend=legend)
    return for_a_hall(figure, 1120, 380)


def _size_gain(column: str) -> float:
    table = printed("bert")["ablation_size"]
    place = table["columns"].index(column)
    return table["rows"][-1][place] - table["rows"][0][place]


def fewest_layers() -> int:
    return int(printed("bert")["ablation_size"]["rows"][0][0])


def gain_mrpc() -> str:
    return f"{_size_gain('MRPC'):.1f}"


def frozen() -> float:
    return float(printed("bert")["features"]["concatenated_last_four"])


def fine_tuned() -> float:
    return float(printed("bert")["features"]["fine_tuned"])


def lost_qnli() -> str:
    return f"{-_lost()['no_nsp']['QNLI']:.1f}"


def lost_squad() -> str:
    return f"{-_lost()['left_to_right_no_nsp']['SQuAD']:.1f}"


# ---------------------------------------------------------------- 17, 18: to keep


def claims_rows() -> str:
    return drawing.claims_rows(
        "02", ["size base", "E70", "half random", "slip 4 epochs"], size=22, last="computed here"
    )


def claims_in_all() -> int:
    return len(claims("02"))


def exercise_minutes() -> int:
    return drawing.exercise_minutes("02")


def exercises() -> str:
    return drawing.exercise_list("02")
