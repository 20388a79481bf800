"""What is claimed about ALBERT: sizes, speed, sharing, and sentence-order prediction."""

from __future__ import annotations

import random
from collections.abc import Callable, Sequence
from fractions import Fraction
from functools import lru_cache
from statistics import mean, median
from typing import Any

import numpy as np
import torch
from torch import Tensor
from torch.utils.flop_counter import FlopCounterMode

from course_lib.config import encoder_flops, published
from course_lib.encoder import Encoder, count_parameters
from course_lib.family.albert import AlbertConfig, albert, albert_encoder
from course_lib.family.bert import bert
from course_lib.kernels.unit_masking import run_lengths
from course_lib.objectives.sentence_order import SWAPPED, make_ordered_pairs
from course_lib.objectives.sequences import PackedSequences, SpecialIds
from course_lib.teaching.claims import (
    Settled,
    in_points,
    parameters,
    printed,
    processor_time_ratios,
    result,
)
from course_lib.teaching.memory import activation_bytes
from course_lib.teaching.results import in_words, outcome

from .experiments import AS_RELEASED, IN_STEP

SPECIAL = SpecialIds(pad=0, unk=1, cls=2, sep=3, mask=4, vocab_size=30_000)
SIZES = ("base", "large", "xlarge", "xxlarge")
TOKENS = 128  # of the text whose FLOPs are counted
COLUMNS = ("SQuAD 1.1", "SQuAD 2.0", "MNLI", "SST-2", "RACE", "Avg")  # of most tables

# ================================================================ how large ALBERT is


def xxlarge() -> Settled:
    count, table = parameters(albert, "xxlarge"), printed("albert")["sizes"]
    off = (table["xxlarge"] - count) / 1e6
    return Settled(count, f"{count:,} with the pooler: the printed number is {off:.0f}M too many")


def all_sizes() -> Settled:
    counts = tuple(round(parameters(albert, size) / 1e6, 1) for size in SIZES)
    detail = ", ".join(f"{size} {count}M" for size, count in zip(SIZES, counts, strict=True))
    return Settled(counts, detail)


def printed_sizes() -> Settled:
    """How many of the paper's three numbers for one model lie within a million of its count."""
    table, count = printed("albert")["sizes"], parameters(albert, "xxlarge")
    three = [table[name] for name in table if name.startswith("xxlarge")]
    right = sum(abs(size - count) < 1e6 for size in three)
    detail = ", ".join(f"{size / 1e6:.0f}M" for size in three)
    return Settled(right, f"{detail} are printed, {count / 1e6:.1f}M counted")


def times_smaller() -> Settled:
    """How many times the parameters of ALBERT-base BERT-base has: all of them."""
    whole = parameters(bert, "base") / parameters(albert, "base")
    with torch.device("meta"):
        blocks = count_parameters(bert().stack) / count_parameters(albert().stack)
    return Settled(whole, f"whole model {whole:.2f} times smaller, its blocks {blocks:g} times")


def saved_settled() -> Settled:
    against = {"base": "base", "large": "large", "xxlarge": "large"}
    saved = tuple(1 - parameters(albert, ours) / parameters(bert, b) for ours, b in against.items())
    detail = ", ".join(f"{size} {fewer:.1%}" for size, fewer in zip(against, saved, strict=True))
    return Settled(saved, f"fewer than the BERT of its size (xxlarge: than large): {detail}")


def table_then_projection() -> Settled:
    """Column vectors multiplied in the printed order, and the row form, at H=768, E=128, V=30."""
    first, second, word = torch.zeros(30, 128), torch.zeros(128, 768), 7
    try:
        _ = second @ first[word]
        error = ""
    except RuntimeError as refused:
        error = str(refused).splitlines()[0]
    shape = tuple((first[word] @ second).shape)
    detail = f"E₂ · E₁[x]: {error or 'no error'}; E₁[x] · E₂ has shape {shape}"
    return Settled((bool(error), shape), detail)


def factorised() -> Settled:
    """Fraction of the token embedding matrix that E=128 saves at the width of base."""
    config = published("albert", "base", AlbertConfig)
    whole = config.vocab_size * config.hidden_size
    two = config.embedding_size * (config.vocab_size + config.hidden_size)
    return Settled(1 - two / whole, f"{whole:,} against {two:,}: {1 - two / whole:.1%} fewer")


# ================================================================ what sharing does not save


@lru_cache(maxsize=4)
def counted_flops(size: str, of: Callable[[str], Encoder]) -> int:
    """FLOPs of the blocks for one text of 128 tokens, counted while they run."""
    with torch.device("meta"), torch.no_grad():
        model = of(size).eval()
        x = torch.zeros(1, TOKENS, model.config.hidden_size)
        with FlopCounterMode(display=False) as counter:
            _ = model.stack(x, torch.ones(1, TOKENS, dtype=torch.long))
    return int(counter.get_total_flops())


def _against_bert(size: str, bert_size: str) -> tuple[float, float]:
    """An ALBERT as a fraction of a BERT: in weights, and in FLOPs by formula."""
    configs = published("albert", size, AlbertConfig), published("bert", bert_size)
    ours, theirs = (encoder_flops(config, TOKENS) for config in configs)
    return parameters(albert, size) / parameters(bert, bert_size), ours / theirs


def weights_and_flops() -> Settled:
    weights, flops = _against_bert("base", "base")
    return Settled(flops, f"of BERT-base: {weights:.1%} of the weights, {flops:.0%} of the FLOPs")


def xxlarge_against_large() -> Settled:
    weights, flops = _against_bert("xxlarge", "large")
    counted = encoder_flops(published("albert", "xxlarge", AlbertConfig), TOKENS) / 1e9
    speed = printed("albert")["overall"]["throughput"]["xxlarge"]
    detail = (
        f"of BERT-large: {weights:.0%} of the weights, {flops:.1f} times the FLOPs "
        f"({counted:.0f} G for {TOKENS} tokens); printed speed {speed}"
    )
    return Settled((flops, speed), detail)


def _twelve(sharing: str, hidden: int = 128) -> Encoder:
    """Twelve layers small enough to run: one block twelve times, or twelve blocks."""
    config = AlbertConfig(
        vocab_size=100, max_positions=64, num_layers=12, hidden_size=hidden, num_heads=2,
        intermediate_size=4 * hidden, embedding_size=32, sharing=sharing,
    )  # fmt: skip
    return albert_encoder(config)


@lru_cache(maxsize=1)
def timed() -> list[float]:
    shared, own = (_twelve(sharing).eval() for sharing in ("all", "none"))
    return processor_time_ratios(shared, own, torch.ones(4, 64, dtype=torch.long))


def _activations(sharing: str, hidden: int = 128) -> int:
    torch.manual_seed(0)
    return activation_bytes(_twelve(sharing, hidden), torch.ones(2, 64, dtype=torch.long))


def same_activations() -> Settled:
    shared, own = (_activations(sharing) for sharing in ("all", "none"))
    weights = [count_parameters(_twelve(sharing)) for sharing in ("all", "none")]
    detail = (
        f"one block twelve times stores {shared / 2**20:.1f} MiB for the backward pass, twelve "
        f"blocks {own / 2**20:.1f} MiB; weights {weights[0]:,} and {weights[1]:,}"
    )
    return Settled(shared / own, detail)


def twice_as_wide() -> Settled:
    narrower, wider = (_activations("all", hidden) for hidden in (128, 256))
    weights = [count_parameters(_twelve("none")), count_parameters(_twelve("all", 256))]
    detail = (
        f"shared and twice as wide: fewer weights than unshared ({weights[1]:,} against "
        f"{weights[0]:,}), but {wider / narrower:.2f} times the activations"
    )
    return Settled(wider / narrower, detail)


# ================================================================ what the paper's tables say


def _rows(*names: str) -> dict[str, Any]:
    """A table of data/papers/albert.toml, by its name and that of the part."""
    table: dict[str, Any] = printed("albert")
    for name in names:
        table = table[name]
    return {name: row for name, row in table.items() if isinstance(row, list) and len(row) == 6}


def _cells(row: Sequence[Any]) -> dict[str, float]:
    """A printed row by column; of SQuAD the F1."""
    first = [cell[0] if isinstance(cell, list) else cell for cell in row]
    return dict(zip(COLUMNS, first, strict=True))


def gained_settled(
    table: Sequence[str], row: str, against: str, columns: Sequence[str] = ("Avg",), note: str = ""
) -> Settled:
    """Points of one printed row over another, in all columns; the value: in these."""
    rows = _rows(*table)
    ours, theirs = _cells(rows[row]), _cells(rows[against])
    gains = {column: round(ours[column] - theirs[column], 2) for column in COLUMNS}
    chosen = tuple(gains[column] for column in columns)
    return Settled(chosen if len(chosen) > 1 else chosen[0], note + in_points(gains))


def best(*names: str) -> Settled:
    """Of a sweep, the setting with the best average."""
    averages = {name: row[-1] for name, row in _rows(*names).items()}
    detail = ", ".join(f"{name}: {average}" for name, average in averages.items())
    return Settled(max(averages, key=lambda name: averages[name]), f"average at {detail}")


def cost_of_sharing() -> Settled:
    """What each way to share loses on average, at E=128 and E=768: attention, feed-forward, all."""
    lost = {}
    for width in ("128", "768"):
        rows = _rows("sharing", width)
        for part in ("attention", "feed_forward", "all"):
            lost[width, part] = round(rows["none"][-1] - rows[part][-1], 2)
    detail = ", ".join(f"E={width} {part} {points:+.1f}" for (width, part), points in lost.items())
    detail = f"average lost: {detail.replace('feed_forward', 'feed-forward')}"
    return Settled(tuple(lost.values()), detail)


# ================================================================ the paper's own slips


def two_mnli() -> Settled:
    """MNLI of ALBERT-base in the tables that print it."""
    rows = {
        "Table 2": _rows("overall")["base"],
        "Table 3": _rows("embedding_size", "all_shared")["128"],
        "Table 4": _rows("sharing", "128")["all"],
        "Table 5": _rows("sentence_loss", "downstream")["SOP"],
        "Table 7": _rows("extra_data")["without"],
    }
    scores = {table: _cells(row)["MNLI"] for table, row in rows.items()}
    detail = ", ".join(f"{table} {score}" for table, score in scores.items())
    others = len({str(row[:2] + row[3:]) for row in rows.values()}) == 1
    detail += "; all other cells are alike" if others else "; other cells differ too"
    return Settled(len(set(scores.values())), detail)


def copied_cell() -> Settled:
    table = printed("albert")["squad_2_test"]
    cell, own = table["bert_large"], table["bert_large_in_its_own_paper"]
    names = {"xlnet": "XLNet", "roberta": "RoBERTa"}
    same = ", ".join(name for row, name in names.items() if table[row] == cell)
    detail = f"printed {cell[0]}/{cell[1]}, which is also the cell of {same}; in BERT's own paper "
    return Settled(tuple(own), detail + "/".join(map(str, own)))


# ================================================================ two segments


@lru_cache(maxsize=1)
def _ordered_pairs() -> PackedSequences:
    """Pairs as released, of 2,000 documents in which each sentence repeats a word of its own."""
    draw = random.Random(0)
    documents = [
        [[100 + 12 * d + i] * draw.randint(5, 40) for i in range(draw.randint(2, 12))]
        for d in range(2_000)
    ]
    return make_ordered_pairs(documents, SPECIAL, length=128, as_released=True)


def _segments(ids: Tensor) -> tuple[list[int], list[int]]:
    """The sentences' words in segment A and in B."""
    first, last = (ids == SPECIAL.sep).nonzero().flatten().tolist()
    return ids[1:first].tolist(), ids[first + 1 : last].tolist()


def _kind(ids: Tensor) -> str:
    a, b = _segments(ids)
    if (a[0] - 100) // 12 != (b[0] - 100) // 12:
        return "from elsewhere"
    return "in order" if a[-1] <= b[0] else "swapped"


def three_kinds() -> Settled:
    """Fractions of pairs in order, swapped, and with a random B; and whether all of these are 1."""
    sequences = _ordered_pairs()
    kinds = [_kind(ids) for ids in sequences.input_ids]
    parts = [kinds.count(kind) / len(kinds) for kind in ("in order", "swapped", "from elsewhere")]
    label = sequences.next_sentence_label
    assert label is not None
    labels = {int(y) for y, kind in zip(label, kinds, strict=True) if kind == "from elsewhere"}
    detail = (
        f"of {len(kinds):,} pairs {parts[0]:.1%} in order, {parts[1]:.1%} swapped, "
        f"{parts[2]:.1%} with a B from elsewhere, labelled {' or '.join(map(str, labels))}"
    )
    return Settled((*parts, labels == {SWAPPED}), detail)


def sentences_a_segment() -> Settled:
    segments = [segment for ids in _ordered_pairs().input_ids for segment in _segments(ids)]
    count = mean(len(set(segment)) for segment in segments)
    single = mean(len(set(segment)) == 1 for segment in segments)
    detail = (
        f"{count:.1f} sentences a segment on average; {single:.0%} of the segments are a single one"
    )
    return Settled(count, detail)


def runs() -> Settled:
    """The exact probabilities of runs of 1, 2 and 3 words, beside a count of 20,000 drawn here."""
    longest = printed("albert")["masking"]["longest"]
    total = sum(Fraction(1, n) for n in range(1, longest + 1))
    chances = tuple(Fraction(1, n) / total for n in range(1, longest + 1))
    lengths = run_lengths(0, 0, np.zeros(20_000, dtype=np.int64), np.arange(20_000), longest)
    counts = ", ".join(f"{(lengths == n).mean():.1%}" for n in range(1, longest + 1))
    detail = f"{', '.join(map(str, chances))}; drawn here: {counts}"
    return Settled(chances, detail)


# ================================================================ what this page measured


def answers(trained_on: str, measure: str) -> Settled:
    """After the long runs; what five seeds had at their early stop is said beside it."""
    late = outcome(result("05_past_plateau"), measure)[trained_on]
    early = outcome(result("05_sentence_tasks"), measure)[trained_on]
    detail = f"on held-out pairs of {measure}, trained on {trained_on}: {in_words(late)}"
    return Settled(mean(late), f"{detail}; after a quarter of the steps {in_words(early)}")


def in_step_on_order() -> Settled:
    """Of the model whose wrong B is in step, on SOP's pairs."""
    results = result("05_in_step")
    sop, own = (outcome(results, measure)[IN_STEP] for measure in ("SOP", IN_STEP))
    return Settled(mean(sop), f"SOP {in_words(sop)}; its own pairs {in_words(own)}")


def own_question() -> Settled:
    """Accuracy of the SOP-trained on SOP less that of the NSP-trained on NSP."""
    results = result("05_past_plateau")
    sop, nsp = (outcome(results, task)[task] for task in ("SOP", "NSP"))
    return Settled(mean(sop) - mean(nsp), f"SOP {in_words(sop)}, NSP {in_words(nsp)}")


def bags(kind: str) -> Settled:
    guesses = result("05_sentence_tasks")["guesses"]
    nsp, sop = (guesses[task][kind] for task in ("NSP", "SOP"))
    return Settled((nsp, sop), f"NSP {nsp:.1%}, SOP {sop:.1%} of held-out pairs")


def sop_by_words() -> Settled:
    """SOP by the words of one segment in the micro-world; by any bag in the documentation, the
    best less the majority class's lead over a coin."""
    one = result("05_sentence_tasks")["words alone"]["trained on SOP, sees A"]["SOP"]
    real = [tasks["SOP"] for tasks in result("05_lengths")["words"].values()]
    best = max(0.5 + max(at["shared"], at["ordered"]) - at["commoner label"] for at in real)
    listed = ", ".join(f"{max(at['shared'], at['ordered']):.1%}" for at in real)
    detail = (
        f"micro-world, words of A alone: {one:.1%}; documentation, best bag at 64 and 128 tokens: "
    )
    return Settled((one, best), detail + listed)
