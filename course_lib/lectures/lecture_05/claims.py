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
    all_near,
    computed,
    in_points,
    is_,
    measured,
    near,
    parameters,
    printed,
    processor_time_ratios,
    result,
)
from course_lib.teaching.results import in_words, outcome
from course_lib.train.memory import activation_bytes

SPECIAL = SpecialIds(pad=0, unk=1, cls=2, sep=3, mask=4, vocab_size=30_000)
SIZES = ("base", "large", "xlarge", "xxlarge")
TOKENS = 128  # of the text whose FLOPs are counted
COLUMNS = ("SQuAD 1.1", "SQuAD 2.0", "MNLI", "SST-2", "RACE", "Avg")  # of most tables

# ================================================================ how large ALBERT is


def _xxlarge() -> Settled:
    count, table = parameters(albert, "xxlarge"), printed("albert")["sizes"]
    off = (table["xxlarge"] - count) / 1e6
    return Settled(count, f"{count:,} with the pooler: the printed number is {off:.0f}M too many")


def _all_sizes() -> Settled:
    counts = tuple(round(parameters(albert, size) / 1e6, 1) for size in SIZES)
    said = ", ".join(f"{size} {count}M" for size, count in zip(SIZES, counts, strict=True))
    return Settled(counts, said)


def _printed_sizes() -> Settled:
    """How many of the paper's three numbers for one model lie within a million of its count."""
    table, count = printed("albert")["sizes"], parameters(albert, "xxlarge")
    three = [table[name] for name in table if name.startswith("xxlarge")]
    right = sum(abs(number - count) < 1e6 for number in three)
    said = ", ".join(f"{number / 1e6:.0f}M" for number in three)
    return Settled(right, f"{said} are printed, {count / 1e6:.1f}M counted")


def _times_smaller() -> Settled:
    """How many times the parameters of ALBERT-base BERT-base has: all of them."""
    whole = parameters(bert, "base") / parameters(albert, "base")
    with torch.device("meta"):
        blocks = count_parameters(bert().stack) / count_parameters(albert().stack)
    return Settled(whole, f"whole model {whole:.2f} times smaller, its blocks {blocks:g} times")


def _saved() -> Settled:
    against = {"base": "base", "large": "large", "xxlarge": "large"}
    saved = tuple(1 - parameters(albert, ours) / parameters(bert, b) for ours, b in against.items())
    said = ", ".join(f"{size} {fewer:.1%}" for size, fewer in zip(against, saved, strict=True))
    return Settled(saved, f"fewer than the BERT of its size (xxlarge: than large): {said}")


def _table_then_projection() -> Settled:
    """Column vectors multiplied in the printed order, and the row form, at H=768, E=128, V=30."""
    first, second, word = torch.zeros(30, 128), torch.zeros(128, 768), 7
    try:
        _ = second @ first[word]
        error = ""
    except RuntimeError as refused:
        error = str(refused).splitlines()[0]
    shape = tuple((first[word] @ second).shape)
    said = f"E₂ · E₁[x]: {error or 'no error'}; E₁[x] · E₂ has shape {shape}"
    return Settled((bool(error), shape), said)


def _factorised() -> Settled:
    """Fraction of the token embedding matrix that E=128 saves at the width of base."""
    config = published("albert", "base", AlbertConfig)
    whole = config.vocab_size * config.hidden_size
    two = config.embedding_size * (config.vocab_size + config.hidden_size)
    return Settled(1 - two / whole, f"{whole:,} against {two:,}: {1 - two / whole:.1%} fewer")


# ================================================================ what sharing does not save


@lru_cache(maxsize=4)
def _counted_flops(size: str, of: Callable[[str], Encoder]) -> int:
    """FLOPs of the blocks for one text of 128 tokens, counted while they run."""
    with torch.device("meta"), torch.no_grad():
        model = of(size).eval()
        x = torch.zeros(1, TOKENS, model.config.hidden_size)
        with FlopCounterMode(display=False) as counter:
            _ = model.stack(x, torch.ones(1, TOKENS, dtype=torch.long))
    return int(counter.get_total_flops())


def _same_flops() -> Settled:
    ours, theirs = _counted_flops("base", albert), _counted_flops("base", bert)
    said = f"{ours / 1e9:.2f} GFLOPs for {TOKENS} tokens, BERT-base {theirs / 1e9:.2f} G"
    return Settled(theirs / ours, said)


def _against_bert(size: str, bert_size: str) -> tuple[float, float]:
    """An ALBERT as a fraction of a BERT: in weights, and in FLOPs by formula."""
    configs = published("albert", size, AlbertConfig), published("bert", bert_size)
    ours, theirs = (encoder_flops(config, TOKENS) for config in configs)
    return parameters(albert, size) / parameters(bert, bert_size), ours / theirs


def _weights_and_flops() -> Settled:
    weights, flops = _against_bert("base", "base")
    return Settled(flops, f"of BERT-base: {weights:.1%} of the weights, {flops:.0%} of the FLOPs")


def _xxlarge_against_large() -> Settled:
    weights, flops = _against_bert("xxlarge", "large")
    counted = encoder_flops(published("albert", "xxlarge", AlbertConfig), TOKENS) / 1e9
    speed = printed("albert")["overall"]["throughput"]["xxlarge"]
    said = (
        f"of BERT-large: {weights:.0%} of the weights, {flops:.1f} times the FLOPs "
        f"({counted:.0f} G for {TOKENS} tokens); printed speed {speed}"
    )
    return Settled((flops, speed), said)


def _twelve(sharing: str, hidden: int = 128) -> Encoder:
    """Twelve layers small enough to run: one block twelve times, or twelve blocks."""
    config = AlbertConfig(
        vocab_size=100, max_positions=64, num_layers=12, hidden_size=hidden, num_heads=2,
        intermediate_size=4 * hidden, embedding_size=32, sharing=sharing,
    )  # fmt: skip
    return albert_encoder(config)


@lru_cache(maxsize=1)
def _timed() -> list[float]:
    shared, own = (_twelve(sharing).eval() for sharing in ("all", "none"))
    return processor_time_ratios(shared, own, torch.ones(4, 64, dtype=torch.long))


def _one_block_twelve_times() -> Settled:
    ratios = _timed()
    said = (
        f"twelve blocks take {median(ratios):.2f} times as long as one block twelve times "
        f"(median of {len(ratios)} rounds, from {min(ratios):.2f} to {max(ratios):.2f})"
    )
    return Settled(median(ratios), said)


def _activations(sharing: str, hidden: int = 128) -> int:
    torch.manual_seed(0)
    return activation_bytes(_twelve(sharing, hidden), torch.ones(2, 64, dtype=torch.long))


def _same_activations() -> Settled:
    shared, own = (_activations(sharing) for sharing in ("all", "none"))
    weights = [count_parameters(_twelve(sharing)) for sharing in ("all", "none")]
    said = (
        f"one block twelve times stores {shared / 2**20:.1f} MiB for the backward pass, twelve "
        f"blocks {own / 2**20:.1f} MiB; weights {weights[0]:,} and {weights[1]:,}"
    )
    return Settled(shared / own, said)


def _twice_as_wide() -> Settled:
    narrow, wide = (_activations("all", hidden) for hidden in (128, 256))
    weights = [count_parameters(_twelve("none")), count_parameters(_twelve("all", 256))]
    said = (
        f"shared and twice as wide: fewer weights than unshared ({weights[1]:,} against "
        f"{weights[0]:,}), but {wide / narrow:.2f} times the activations"
    )
    return Settled(wide / narrow, said)


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


def _gained(
    table: Sequence[str], row: str, against: str, columns: Sequence[str] = ("Avg",), said: str = ""
) -> Settled:
    """Points of one printed row over another, in all columns; the value: in these."""
    rows = _rows(*table)
    ours, theirs = _cells(rows[row]), _cells(rows[against])
    gains = {column: round(ours[column] - theirs[column], 2) for column in COLUMNS}
    found = tuple(gains[column] for column in columns)
    return Settled(found if len(found) > 1 else found[0], said + in_points(gains))


def _best(*names: str) -> Settled:
    """Of a sweep, the setting with the best average."""
    averages = {name: row[-1] for name, row in _rows(*names).items()}
    said = ", ".join(f"{name}: {average}" for name, average in averages.items())
    return Settled(max(averages, key=lambda name: averages[name]), f"average at {said}")


def _best_widths() -> Settled:
    shared, own = (_best("embedding_size", part) for part in ("all_shared", "not_shared"))
    said = f"shared, {shared.detail}; not shared, {own.detail}"
    return Settled((shared.value, own.value), said)


def _cost_of_sharing() -> Settled:
    """What each way to share loses on average, at E=128 and E=768: attention, feed-forward, all."""
    lost = {}
    for width in ("128", "768"):
        rows = _rows("sharing", width)
        for part in ("attention", "feed_forward", "all"):
            lost[width, part] = round(rows["none"][-1] - rows[part][-1], 2)
    said = ", ".join(f"E={width} {part} {points:+.1f}" for (width, part), points in lost.items())
    said = f"average lost: {said.replace('feed_forward', 'feed-forward')}"
    return Settled(tuple(lost.values()), said)


# ================================================================ the paper's own slips


def _which_depth() -> Settled:
    """The layers of the row in Table 13 that Table 2 prints for xxlarge."""
    row, rows = _rows("overall")["xxlarge"], _rows("xxlarge_depth")
    same = [layers for layers in rows if rows[layers] == row]
    said = f"Table 2's row is Table 13's with {', '.join(same)} layers; with 12 it reads "
    return Settled(same, said + ", ".join(str(v) for v in _cells(rows["12"]).values()))


def _two_mnli() -> Settled:
    """MNLI of ALBERT-base in the tables that print it."""
    found = {
        "Table 2": _rows("overall")["base"],
        "Table 3": _rows("embedding_size", "all_shared")["128"],
        "Table 4": _rows("sharing", "128")["all"],
        "Table 5": _rows("sentence_loss", "downstream")["SOP"],
        "Table 7": _rows("extra_data")["without"],
    }
    scores = {table: _cells(row)["MNLI"] for table, row in found.items()}
    said = ", ".join(f"{table} {score}" for table, score in scores.items())
    others = len({str(row[:2] + row[3:]) for row in found.values()}) == 1
    said += "; all other cells are alike" if others else "; other cells differ too"
    return Settled(len(set(scores.values())), said)


def _copied_cell() -> Settled:
    table = printed("albert")["squad_2_test"]
    cell, own = table["bert_large"], table["bert_large_in_its_own_paper"]
    names = {"xlnet": "XLNet", "roberta": "RoBERTa"}
    same = ", ".join(name for row, name in names.items() if table[row] == cell)
    said = f"printed {cell[0]}/{cell[1]}, which is also the cell of {same}; in BERT's own paper "
    return Settled(tuple(own), said + "/".join(map(str, own)))


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


def _three_kinds() -> Settled:
    """Fractions of pairs in order, swapped, and with a random B; and whether all of these are 1."""
    sequences = _ordered_pairs()
    kinds = [_kind(ids) for ids in sequences.input_ids]
    parts = [kinds.count(kind) / len(kinds) for kind in ("in order", "swapped", "from elsewhere")]
    label = sequences.next_sentence_label
    assert label is not None
    labels = {int(y) for y, kind in zip(label, kinds, strict=True) if kind == "from elsewhere"}
    said = (
        f"of {len(kinds):,} pairs {parts[0]:.1%} in order, {parts[1]:.1%} swapped, "
        f"{parts[2]:.1%} with a b from elsewhere, labelled {' or '.join(map(str, labels))}"
    )
    return Settled((*parts, labels == {SWAPPED}), said)


def _sentences_a_segment() -> Settled:
    segments = [segment for ids in _ordered_pairs().input_ids for segment in _segments(ids)]
    count = mean(len(set(segment)) for segment in segments)
    single = mean(len(set(segment)) == 1 for segment in segments)
    said = (
        f"{count:.1f} sentences a segment on average; {single:.0%} of the segments are a single one"
    )
    return Settled(count, said)


def _runs() -> Settled:
    """The exact probabilities of runs of 1, 2 and 3 words, beside a count of 20,000 drawn here."""
    longest = printed("albert")["masking"]["longest"]
    total = sum(Fraction(1, n) for n in range(1, longest + 1))
    chances = tuple(Fraction(1, n) / total for n in range(1, longest + 1))
    drawn = run_lengths(0, 0, np.zeros(20_000, dtype=np.int64), np.arange(20_000), longest)
    counts = ", ".join(f"{(drawn == n).mean():.1%}" for n in range(1, longest + 1))
    said = f"{', '.join(map(str, chances))}; drawn here: {counts}"
    return Settled(chances, said)


# ================================================================ what this page measured


def _answers(trained_on: str, measure: str) -> Settled:
    reached = outcome(result("05_sentence_tasks"), measure)
    said = ", ".join(f"trained on {task} {in_words(values)}" for task, values in reached.items())
    said = f"on held-out pairs of {measure}: {said.replace('trained on none', 'on MLM alone')}"
    return Settled(mean(reached[trained_on]), said)


def _own_question() -> Settled:
    """Accuracy of the SOP-trained on SOP less that of the NSP-trained on NSP."""
    found = result("05_sentence_tasks")
    sop, nsp = (outcome(found, task)[task] for task in ("SOP", "NSP"))
    return Settled(mean(sop) - mean(nsp), f"SOP {in_words(sop)}, NSP {in_words(nsp)}")


def _bags(kind: str) -> Settled:
    guesses = result("05_sentence_tasks")["guesses"]
    found = tuple(guesses[task][kind] for task in ("NSP", "SOP"))
    return Settled(found, f"NSP {found[0]:.1%}, SOP {found[1]:.1%} of held-out pairs")


LECTURE_000, LECTURE_001 = "source lecture 000", "source lecture 001"
LECTURE_004 = "source lecture 004"

CLAIMS = (
    computed(
        id="factorised",
        they_say="23M numbers become 3.94M, 83% fewer",
        who="source lectures 000 and 001",
        it_is="so: V × H becomes V × E + E × H",
        settled_by="the published sizes",
        settle=_factorised,
        accepts=near(0.829, 0.0005),
        rejected=1 - 128 / 768,  # the second matrix forgotten
    ),
    measured(
        id="E07",
        they_say="h = E₂E₁[x], with E₁ of V × E and E₂ of E × H",
        who=LECTURE_000,
        it_is="these shapes do not fit: E₁[x] is a row of E numbers, so it stands first, E₁[x]·E₂",
        settled_by="both orders in torch, here",
        settle=_table_then_projection,
        accepts=is_((True, (768,))),
        rejected=(False, (768,)),
    ),
    computed(
        id="best E",
        they_say="an embedding of 128 is the best where all is shared",
        who="ALBERT (Lan et al. 2019), section 4.4",
        it_is=(
            "so by Table 3, by 0.3 points over 768, from one run each; where nothing is shared "
            "768 is best"
        ),
        settled_by="ALBERT's Table 3",
        settle=_best_widths,
        accepts=is_(("128", "768")),
        rejected=("768", "768"),
    ),
    computed(
        id="E10",
        they_say="sharing makes the parameters L times fewer",
        who=LECTURE_000,
        it_is="true of the blocks, 12 times; the whole model, with embeddings, 9.4 times",
        settled_by="counting both models, built from the published sizes",
        settle=_times_smaller,
        accepts=near(9.37, 0.05),
        rejected=12.0,
    ),
    computed(
        id="E56",
        they_say="ALBERT-base is (the number is lost) smaller than BERT-base",
        who=LECTURE_001,
        it_is="9.4 times",
        settled_by="counting both models, built from the published sizes",
        settle=_times_smaller,
        accepts=near(9.37, 0.05),
        rejected=110 / 12,  # of the rounded counts
    ),
    computed(
        id="E49",
        they_say="ALBERT: 80% fewer parameters",
        who=LECTURE_000,
        it_is="89% fewer as base, 95% as large; xxlarge has 34% fewer than BERT-large",
        settled_by="counting the models, built from the published sizes",
        settle=_saved,
        accepts=all_near((0.893, 0.947, 0.336), 0.001),
        rejected=(0.8, 0.8, 0.8),
    ),
    computed(
        id="E107",
        they_say="11M, 18M and 223M parameters",
        who=LECTURE_004,
        it_is="11.7M, 17.7M and 222.6M with the pooler; xlarge, 58.7M, is left out",
        settled_by="counting the models, built from the published sizes",
        settle=_all_sizes,
        accepts=is_((11.7, 17.7, 58.7, 222.6)),
        rejected=(11.0, 18.0, 223.0),
    ),
    computed(
        id="E09",
        they_say="ALBERT-xxlarge has 235M parameters",
        who="source lectures 000 and 001, after ALBERT's Table 1",
        it_is="222.6M by the configuration",
        settled_by="counting a model of the published sizes",
        settle=_xxlarge,
        accepts=is_(222_595_584),
        rejected=235_000_000,
    ),
    computed(
        id="slip 2 size",
        they_say="xxlarge has 235M parameters, or 233M, or 225M",
        who="ALBERT, Table 1, section 3.2, Table 12",
        it_is="none of the three: 222.6M with the pooler, 205.8M without",
        settled_by="counting a model of the published sizes",
        settle=_printed_sizes,
        accepts=is_(0),
        rejected=1,
    ),
    measured(
        id="E47",
        they_say="ALBERT is 1.7 times faster at inference, because it shares parameters",
        who=LECTURE_000,
        it_is=(
            "no: the same FLOPs. 1.7 is *training* throughput, of ALBERT-large against "
            "BERT-large, on many machines that have fewer gradients to exchange"
        ),
        settled_by="counting the FLOPs of both models while they run, here",
        settle=_same_flops,
        accepts=near(1.0, 1e-9),
        rejected=1.7,
    ),
    measured(
        id="one block twelve times",
        they_say="one block used twelve times is faster than twelve blocks",
        who="follows from source lecture 000, 1.7 times faster at inference",
        it_is="no: it takes about the same time",
        settled_by="twelve layers of width 128, processor time, here",
        settle=_one_block_twelve_times,
        accepts=lambda ratio: 0.7 < ratio < 1.4,
        rejected=1.7,
    ),
    computed(
        id="E106",
        they_say="ALBERT is smaller and faster; it needs less memory and less computation",
        who=LECTURE_004,
        it_is=(
            "smaller, yes; the computation is the same. Of the memory only that of weights, "
            "gradients and the optimiser shrinks"
        ),
        settled_by="counting weights, and FLOPs by formula",
        settle=_weights_and_flops,
        accepts=is_(1.0),
        rejected=0.107,  # the fraction of the weights
    ),
    measured(
        id="activations",
        they_say="with a shared block fewer activations are stored for the backward pass",
        who="follows from source lecture 004, less memory",
        it_is="no: every layer stores its own activations, whoever owns the weights",
        settled_by="bytes of activations stored by a forward pass, here",
        settle=_same_activations,
        accepts=is_(1.0),
        rejected=1 / 12,
    ),
    measured(
        id="E57",
        they_say="larger hidden sizes fit into the same memory",
        who=LECTURE_001,
        it_is="the weights do; the activations of a training step grow with the hidden size",
        settled_by="bytes of activations stored at two widths, here",
        settle=_twice_as_wide,
        accepts=lambda ratio: 1.5 < ratio < 2.2,
        rejected=1.0,
    ),
    computed(
        id="E08",
        they_say="xxlarge beats BERT-large with similar parameters and much faster training",
        who=LECTURE_000,
        it_is=(
            "two thirds of the parameters, 7.9 times the FLOPs, and three times *slower* "
            "through the data; it is better, also at equal time"
        ),
        settled_by="FLOPs by formula; ALBERT's Table 2",
        settle=_xxlarge_against_large,
        accepts=lambda value: abs(value[0] - 7.88) < 0.05 and value[1] == 0.3,
        rejected=(7.88, 1.7),
    ),
    computed(
        id="xxlarge scores",
        they_say="xxlarge gains 1.9, 3.1, 1.4, 2.2 and 8.4 points over BERT-large",
        who="ALBERT, section 4.3",
        it_is="so, at equal steps: SQuAD 1.1 and 2.0 (F1), MNLI, SST-2, RACE",
        settled_by="differences in ALBERT's Table 2",
        settle=lambda: _gained(["overall"], "xxlarge", "bert_large", COLUMNS[:5]),
        accepts=is_((1.9, 3.1, 1.4, 2.2, 8.4)),
        rejected=(4.8, 8.1, 6.4, 4.9, 18.3),  # over ALBERT-base
    ),
    computed(
        id="equal time",
        they_say="trained for the same hours, xxlarge is 1.5 points better than BERT-large",
        who="ALBERT, section 4.7",
        it_is="so: 88.7 against 87.2, most of it from RACE; MNLI is equal",
        settled_by="differences in ALBERT's Table 6",
        settle=lambda: _gained(
            ["equal_time"], "xxlarge", "bert_large", said="125,000 steps against 400,000: "
        ),
        accepts=is_(1.5),
        rejected=3.5,  # at equal steps
    ),
    computed(
        id="sharing",
        they_say="what sharing loses, it loses by the feed-forward layers",
        who="ALBERT, section 4.5",
        it_is=(
            "so: attention alone costs −0.1 and 0.7 points, the feed-forward layers alone 1.4 and "
            "2.8, both 1.5 and 2.5"
        ),
        settled_by="differences in ALBERT's Table 4",
        settle=_cost_of_sharing,
        accepts=is_((-0.1, 1.4, 1.5, 0.7, 2.8, 2.5)),
        rejected=(1.4, -0.1, 1.5, 2.8, 0.7, 2.5),
    ),
    computed(
        id="depth",
        they_say="a shared block gets better by being used more often, up to a point",
        who="ALBERT, section A.1",
        it_is="so: the average rises up to 24 layers and falls at 48, with the same parameters",
        settled_by="ALBERT's Table 11",
        settle=lambda: _best("depth", "layers"),
        accepts=is_("24"),
        rejected="48",
    ),
    computed(
        id="width",
        they_say="wider is better, up to a point",
        who="ALBERT, section A.1",
        it_is="so, with three layers: best at 4,096, worse at 6,144",
        settled_by="ALBERT's Table 12",
        settle=lambda: _best("width", "hidden"),
        accepts=is_("4096"),
        rejected="6144",
    ),
    computed(
        id="extra data",
        they_say="more text gives a significant boost",
        who="ALBERT, section 4.8",
        it_is=(
            "0.7 points on average, but both SQuADs lose: they are made from Wikipedia, and the "
            "new text is not (the authors' guess)"
        ),
        settled_by="differences in ALBERT's Table 7",
        settle=lambda: _gained(["extra_data"], "with", "without", ("SQuAD 2.0", "Avg")),
        accepts=lambda gained: gained[0] < 0 < gained[1],
        rejected=(0.8, 0.7),
    ),
    computed(
        id="dropout",
        they_say="removing dropout helps",
        who="ALBERT, section 4.8",
        it_is="so, by 0.3 points on average, for xxlarge after a million steps",
        settled_by="differences in ALBERT's Table 8",
        settle=lambda: _gained(["dropout"], "without", "with", said="without dropout: "),
        accepts=is_(0.3),
        rejected=-0.3,
    ),
    computed(
        id="slip 2 depth",
        they_say="ALBERT-xxlarge has 12 layers and scores 94.1, 88.1, 88.0, 95.2, 82.3",
        who="ALBERT, Tables 1 and 2",
        it_is="these are the scores that Table 13 gives for 24 layers; the averages are equal",
        settled_by="comparing the printed rows",
        settle=_which_depth,
        accepts=is_(["24"]),
        rejected=["12"],
    ),
    computed(
        id="slip 2 MNLI",
        they_say="ALBERT-base scores 81.6 on MNLI, or 82.0",
        who="ALBERT, Tables 2, 3 and 7 against 4 and 5",
        it_is="one model, two numbers; which of them was measured cannot be told",
        settled_by="comparing the printed rows",
        settle=_two_mnli,
        accepts=is_(2),
        rejected=1,
    ),
    computed(
        id="slip 2 SQuAD",
        they_say="BERT-large has 89.1 F1 and 86.3 exact match on the test set of SQuAD 2.0",
        who="ALBERT, Table 10",
        it_is="83.1 and 80.0; the printed cell is XLNet's, from the line below",
        settled_by="comparing the printed cells; BERT's Table 3",
        settle=_copied_cell,
        accepts=is_((83.1, 80.0)),
        rejected=(89.1, 86.3),
    ),
    computed(
        id="runs of words",
        they_say="n-grams of up to three words are masked, n words with probability ∝ 1/n",
        who="ALBERT, section 4.1",
        it_is="that makes 6/11, 3/11 and 2/11",
        settled_by="an exact sum; and the lengths our masking draws",
        settle=_runs,
        accepts=is_((Fraction(6, 11), Fraction(3, 11), Fraction(2, 11))),
        rejected=(Fraction(1, 3), Fraction(1, 3), Fraction(1, 3)),
    ),
    measured(
        id="E11",
        they_say="P(order) = σ(W h of [CLS]); the others are swapped pairs of sentences",
        who=LECTURE_000,
        it_is=(
            "a softmax of two logits from the *pooled* vector; segments, not sentences; and the "
            "released generator has a third kind, a random b, wherever one sentence is left over"
        ),
        settled_by="pairs made by our version of the released rule, counted here",
        settle=_three_kinds,
        accepts=lambda value: 0.02 < value[2] < 0.2 and value[3] and max(value[:2]) < 0.5,
        rejected=(0.5, 0.5, 0.0, True),
    ),
    measured(
        id="E109",
        they_say="SOP is about two consecutive sentences",
        who=LECTURE_004,
        it_is="about two consecutive segments, each as many sentences as fit",
        settled_by="counting in pairs of length 128, here",
        settle=_sentences_a_segment,
        accepts=lambda count: count > 1.5,
        rejected=1.0,
    ),
    computed(
        id="SOP downstream",
        they_say="SOP improves the average by one point over NSP",
        who="ALBERT, section 4.6",
        it_is="by 0.9, most of it from SQuAD 2.0 and RACE; SST-2, one sentence, loses",
        settled_by="differences in ALBERT's Table 5",
        settle=lambda: _gained(
            ["sentence_loss", "downstream"], "SOP", "NSP", said="SOP against NSP: "
        ),
        accepts=near(0.9, 0.001),
        rejected=1.1,  # over no sentence loss
    ),
    measured(
        id="NSP by words",
        they_say="NSP can be solved from the topic, SOP cannot",
        who="ALBERT, section 3.1",
        it_is="so here: a bag-of-words baseline solves NSP, and is at chance level on SOP",
        settled_by=("words shared, data/results/05_sentence_tasks.json: a regression check"),
        settle=lambda: _bags("shared"),
        accepts=lambda value: value[0] > 0.9 and 0.4 < value[1] < 0.6,
        rejected=(0.95, 0.95),
    ),
    measured(
        id="SOP by words",
        they_say="SOP needs an understanding of coherence",
        who="ALBERT, section 3.1",
        it_is=(
            "not in the micro-world: its stories open and close with recognisable sentences, "
            "so which words stand in which segment gives the order away"
        ),
        settled_by=(
            "the same with the segments kept apart, "
            "data/results/05_sentence_tasks.json: a regression check"
        ),
        settle=lambda: _bags("ordered"),
        accepts=lambda value: value[1] > 0.95,
        rejected=(0.5, 0.5),
    ),
    measured(
        id="NSP on SOP",
        they_say="a model trained on NSP is at chance level on SOP: 52.0%",
        who="ALBERT, Table 5",
        it_is=(
            "not here: it is right on most pairs, probably because our stories run in fixed steps "
            "and NSP's random b is often out of step. The 52% belong to the paper's text, not the "
            "task"
        ),
        settled_by="five seeds, data/results/05_sentence_tasks.json: a regression check",
        settle=lambda: _answers("NSP", "SOP"),
        accepts=lambda accuracy: 0.7 < accuracy <= 1,
        rejected=0.52,
    ),
    measured(
        id="SOP on NSP",
        they_say="a model trained on SOP does well on NSP: 78.9%",
        who="ALBERT, Table 5",
        it_is=(
            "less well here, about 60%: both segments of SOP are of one story, so it never learns "
            "whether topics agree"
        ),
        settled_by="five seeds, data/results/05_sentence_tasks.json: a regression check",
        settle=lambda: _answers("SOP", "NSP"),
        accepts=lambda accuracy: 0.5 < accuracy < 0.7,
        rejected=0.789,
    ),
    measured(
        id="harder question",
        they_say="SOP is the harder task: 86.5% against 90.5% for NSP",
        who="ALBERT, Table 5",
        it_is="the other way round here, for the reason above: the world decides what is hard",
        settled_by="each task's own model, data/results/05_sentence_tasks.json: a regression check",
        settle=_own_question,
        accepts=lambda difference: difference > 0.05,
        rejected=-0.04,
    ),
)
