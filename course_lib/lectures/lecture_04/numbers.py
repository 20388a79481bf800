"""The numbers that sentences of lecture 04 say: counted, computed, or read from results."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import cache
from statistics import mean
from typing import Any

import torch

from course_lib import (
    ByteBPE,
    MicroWorld,
    bert,
    count_parameters,
    documentation_slice,
    masked_lm_loss,
    pretraining_batches,
    train_byte_bpe,
)
from course_lib.config import encoder_flops, published
from course_lib.family.roberta import roberta
from course_lib.heads import MaskedLMOutput
from course_lib.objectives.pretraining import counted_together, split_batch
from course_lib.objectives.sequences import Batch, PackedSequences
from course_lib.teaching.claims import claims, difference, printed, settled
from course_lib.teaching.coverage import coverage, simulated_coverage
from course_lib.teaching.experiments import Stories
from course_lib.teaching.numbers import cpu_hours, in_letters, percent, signed
from course_lib.teaching.results import stored
from course_lib.teaching.style import BLUE, GREEN, GREY, ORANGE
from course_lib.text.counts import NeighbourCounts, Unigram
from course_lib.text.packing import INPUT_FORMATS, input_sequences
from course_lib.train.metrics import evaluation_mask

from .claims import LONGER, average, gained_longer, gained_over, text_or_steps
from .experiments import (
    BATCH_STEPS,
    LIVE,
    RECIPES,
    SCHEMES,
    SEEDS,
    TEXT_OR_STEPS,
    TEXT_SEEDS,
    MaskingRecipe,
    outcome,
    prepare_masking,
)
from .formats import FORMAT_RATES

FEW, MORE = RECIPES  # the two amounts of text
WHOLE = "masked_accuracy"  # on stories that are whole, not cut into pairs
ROBERTA_BETA2 = 0.98  # RoBERTa, section 3.1 and Table 9
POSITIONS, PACKED = 64, 2_000  # positions and stories, where sequences are filled
BERT, ROBERTA = "BERT-base", "RoBERTa-base"


def paper() -> dict[str, Any]:
    """BERT's printed pre-training."""
    return printed("bert")["pretraining"]


def power(rate: float, digits: int = 0) -> str:
    return f"{rate:.{digits}e}".replace("e-0", "e-").replace("e+", "e")


# ---------------------------------------------------------------- what is in the model


@cache
def models() -> dict[str, Any]:
    """Both encoders on the meta device: shapes without memory."""
    with torch.device("meta"):
        return {BERT: bert("base"), ROBERTA: roberta("base")}


def table_rows(name: str) -> list[int]:
    """Rows of one table of embeddings, of BERT and of RoBERTa."""
    return [getattr(model.embeddings, name).num_embeddings for model in models().values()]


def more_parameters() -> str:
    theirs, ours = table_rows("token")
    return f"{(ours - theirs) * models()[BERT].config.hidden_size:,}"


def millions(*names: str) -> str:
    """Of one model; of two, how many more the first has."""
    one, other = (count_parameters(models()[name]) for name in (*names, *names)[:2])
    return f"{(one - other or one) / 1e6:.1f}"


# ---------------------------------------------------------------- masks over epochs


@cache
def world() -> MicroWorld:
    return MicroWorld.load()


@cache
def _material() -> Stories:
    return prepare_masking(LIVE, world())


@cache
def counted() -> dict[str, list[float]]:
    """For each scheme, the fraction of positions selected at least once, epoch by epoch, counted on
    the stories themselves."""
    return {
        scheme: simulated_coverage(
            _material().train, world().special, int(LIVE.epochs), copies=copies,
            rate=paper()["rate"],
        )
        for scheme, copies in SCHEMES.items()
    }  # fmt: skip


def epochs_by_schedule() -> int:
    """How often BERT read its text by its own two lengths: settled by a claim of lecture 02."""
    return round(settled("02", "slip 4 epochs").value)


def ever(masks: int, digits: int = 1) -> str:
    """Positions selected at least once under so many masks."""
    layout = "{:." + str(digits) + "%}"
    return layout.format(coverage(paper()["rate"], masks)[-1]).replace(".0%", "%")


# ---------------------------------------------------------------- measured


@cache
def result() -> dict[str, Any]:
    return stored("04_masking_schemes")


def ends(measure: str, of: str = FEW) -> dict[str, list[float]]:
    """What the seeds of each scheme reached."""
    return outcome(result(), measure, of)


@cache
def by_frequency() -> float:
    """The held-out loss of one who knows how often each word occurs (+1), only."""
    material, special = _material(), world().special
    ids = material.train.input_ids
    counts = torch.bincount(ids.flatten(), minlength=special.vocab_size).double() + 1
    counts[list(special.never_masked)] = 0
    original_ids = evaluation_mask(material.heldout, special).original_ids
    return -float((counts / counts.sum())[original_ids].log().mean())


def gain(over: str, of: str) -> float:
    """Points of held-out accuracy that dynamic masking gains over a scheme, mean over seeds."""
    return 100 * mean(gained_over(over, of))


@cache
def by_counting(stories: int) -> dict[str, float]:
    """Held-out masked-token accuracy of two rules that count in so many stories."""
    material = prepare_masking(MaskingRecipe(stories=stories), world())
    documents = world().documents(material.stories)
    selected = evaluation_mask(material.heldout, world().special).selected
    rules = {"the most frequent word": Unigram, "two neighbours, counted": NeighbourCounts}
    return {
        name: float(rule(documents).accuracy(material.heldout, selected))
        for name, rule in rules.items()
    }


def text_seeds() -> str:
    return f"{in_letters(len(TEXT_SEEDS))} seeds"


def text_and_steps() -> dict[int, dict[int, list[float]]]:
    """By stories and by steps: held-out accuracy with dynamic masking, for the same seeds."""
    first = slice(len(TEXT_SEEDS))
    cells = {
        (recipe.stories, recipe.steps): ends("heldout_accuracy", of)["dynamic"][first]
        for of, recipe in RECIPES.items()
    } | {
        (recipe.stories, recipe.steps): text_or_steps()[name]
        for name, recipe in TEXT_OR_STEPS.items()
        if recipe.scheme == "dynamic"
    }  # fmt: skip
    return {n: {steps: cells[n, steps] for steps in (1_000, 4_000)} for n in (400, 1_600)}


def _least_and_most(gains: list[float]) -> str:
    return f"{100 * min(gains):.1f} to {100 * max(gains):.1f}"


def steps_gain() -> str:
    """Points that four times the steps bring, with few stories and with many."""
    return _least_and_most(
        [mean(row[4_000]) - mean(row[1_000]) for row in text_and_steps().values()]
    )


def text_gain() -> str:
    """Points that four times the text brings, after few steps and after many."""
    few, many = text_and_steps().values()
    return _least_and_most([mean(many[steps]) - mean(few[steps]) for steps in few])


def over_ten_copies() -> dict[str, list[float]]:
    """What dynamic masking gains on ten copies, seed by seed."""
    few, more = (f"{of}, {recipe.steps:,} steps" for of, recipe in RECIPES.items())
    rows = {
        few: gained_over("ten copies", FEW),
        LONGER: gained_longer(),
        more: gained_over("ten copies", MORE),
    }
    assert min(map(min, rows.values())) > 0  # the page: at every seed
    return rows


def masks_or_text() -> dict[str, list[float]]:
    """As many masked texts twice: few stories with ten masks each, ten times as many with one."""
    few = ends("heldout_accuracy")["ten copies"][: len(TEXT_SEEDS)]
    return {
        "400 stories, ten masks": few,
        "4,000 stories, one mask": text_or_steps()["static, 4,000 stories, 1,000 steps"],
    }


def of_new_text() -> str:
    ten, one = map(mean, masks_or_text().values())
    assert one > ten
    return f"{100 * (one - ten):.1f}"


# ---------------------------------------------------------------- formats, and large batches


@cache
def filled() -> dict[str, PackedSequences]:
    """The stories of the notebook in the four formats."""
    documents = world().documents(world().stories(PACKED, seed=0))
    return {
        name: input_sequences(name, documents, world().special, POSITIONS)
        for name in INPUT_FORMATS
    }  # fmt: skip


def padding(name: str) -> str:
    return f"{filled()[name].padding_share:.0%}"


def by_format() -> dict[str, dict[str, list[float]]]:
    """Format, with NSP or without -> what its seeds reached, at the better of its rates."""
    record, best = stored("04_formats"), dict[str, dict[str, list[float]]]()
    for name, runs in record["runs"].items():
        label, rate = name.rsplit(", ", 1)
        scores = {key: [run[key] for run in runs] for key in (WHOLE, "pairs_accuracy")}
        scores["rate"] = [float(rate)]
        if label not in best or mean(scores[WHOLE]) > mean(best[label][WHOLE]):
            best[label] = scores
    return best


def in_format(label: str) -> str:
    return percent(by_format()[label][WHOLE])


def without_nsp() -> str:
    """Points that segment pairs gain at the better rate if the NSP loss goes."""
    runs = stored("04_formats")["runs"]
    gains = {
        rate: [
            100 * (without[WHOLE] - with_it[WHOLE])
            for with_it, without in zip(
                runs[f"segment-pair, {rate:g}"], runs[f"segment-pair, no NSP, {rate:g}"],
                strict=True,
            )
        ]
        for rate in FORMAT_RATES
    }  # fmt: skip
    assert min(map(min, gains.values())) > 0  # the page: with each seed, at both rates
    return f"{mean(gains[by_format()['segment-pair']['rate'][0]]):.1f}"


def by_batch() -> dict[tuple[int, int], dict[float, list[float]]]:
    """Batch size and steps -> learning rate -> held-out masked-token accuracy, by seed."""
    sizes: dict[tuple[int, int], dict[float, list[float]]] = {}
    for name, recipe in (record := stored("04_batches"))["recipes"].items():
        accuracies = [run["masked_accuracy"] for run in record["runs"][name]]
        size = recipe["batch_size"], recipe["steps"]
        sizes.setdefault(size, {})[recipe["learning_rate"]] = accuracies
    return sizes


def best_of_batch(size: int) -> str:
    """Its accuracy at its best rate."""
    return percent(max(by_batch()[size, BATCH_STEPS[size]].values(), key=mean))


def batch_seeds() -> str:
    return in_letters(len(next(iter(stored("04_batches")["runs"].values()))))


def selected_in_parts() -> str:
    """Selected positions in the four parts of the page's large batch, from least to most."""
    batches = pretraining_batches(_material().train, world().special, batch_size=64)
    counts = [int((p.targets["labels"] >= 0).sum()) for p in split_batch(batches(0), 4)]
    return f"{min(counts)} to {max(counts)}"


PARTS = (
    (3, 2.0),
    (1, 6.0),
)  # selected positions of a part, and their mean loss: the notebook's sum


@cache
def added() -> tuple[list[float], float, float]:
    """What each part adds by the library, their sum, and the mean of their means."""
    outputs, parts = [], []
    for selected, loss in PARTS:
        right = torch.tensor(-loss).exp()  # the same for every position of the part
        logits = torch.stack([right, 1 - right]).log().expand(selected, 2)
        outputs.append(MaskedLMOutput(logits))
        parts.append(Batch({}, {"labels": torch.zeros(selected, dtype=torch.long)}))
    losses = [
        float(masked_lm_loss(output, part.targets)["total"])
        for output, part in zip(outputs, counted_together(parts), strict=True)
    ]
    return losses, sum(losses), mean(loss for _, loss in PARTS)


# ---------------------------------------------------------------- bytes

ODD = "Ça marche: naïve café at 25 °C"


@cache
def bpe() -> ByteBPE:
    """Learned from the documentation, as in the notebook (counting pairs, no gradient)."""
    return train_byte_bpe(documentation_slice(paragraphs=400).paragraphs, 2_000)


def odd_counts() -> str:
    ids = bpe().encode(ODD)
    unknown = ids.count(bpe().special.unk)
    assert bpe().decode(ids) == ODD
    return f"{len(ODD)} characters, {len(ODD.encode())} bytes, {len(ids)} pieces, {unknown} unknown"


# ---------------------------------------------------------------- the paper's tables

STAGES = {  # rows of Table 4, one after the other: how each is drawn
    "roberta_16GB_100k": (BLUE, ""),
    "roberta_160GB_100k": (ORANGE, "/"),
    "roberta_160GB_300k": (GREEN, "x"),
    "roberta_160GB_500k": (GREY, "."),
}


def first_stage(which: Callable[[Sequence[float]], float]) -> str:
    """Of RoBERTa's gain over BERT-large, the fraction that the first stage brings."""
    first, *_, last = (difference("roberta", "stages", key, "bert_large") for key in STAGES)
    return f"{which([first[task] / last[task] for task in last]):.0%}"


def times(run: str) -> str:
    flops = printed("roberta")["compute"]
    return f"{flops[run] / flops['bert_large']:.1f}"


def times_whole_short() -> str:
    """RoBERTa's FLOPs over BERT-large's, of whose steps most were of short sequences."""
    flops, large = printed("roberta")["compute"], published("bert", "large")
    short = paper()["short_share"]
    long, brief = (encoder_flops(large, paper()[f"{kind}_length"]) for kind in ("long", "short"))
    spent = (short * brief + (1 - short) * long) / long
    return f"{flops['roberta_500k'] / flops['bert_large'] / spent:.0f}"


def more_read(unit: str) -> str:
    """What RoBERTa read in 100,000 steps on BERT's text over what BERT read."""
    short = paper()["short_share"]
    mean_length = short * paper()["short_length"] + (1 - short) * paper()["long_length"]
    lengths = paper()["long_length"] / mean_length if unit == "tokens" else 1
    batch = printed("roberta")["settings"]["large"]["batch"]
    return f"{100_000 * batch / (paper()['steps'] * paper()['batch']) * lengths:.1f}"


def warmup(size: str) -> str:
    s = printed("roberta")["settings"][size]
    return f"{power(s['learning_rate'])} after {s['warmup']:,}"


def text_times() -> str:
    """Words of BERT's text over tokens of our larger set, to the nearest ten thousand."""
    theirs = paper()["words_books"] + paper()["words_wikipedia"]
    ours = int(prepare_masking(RECIPES[MORE], world()).train.attention_mask.sum())
    return f"{round(theirs / ours, -4):,.0f}"


def dev_gain(which: Callable[..., str]) -> str:
    """RoBERTa-large over BERT-large on one of eight development sets: the most or the least."""
    rows = [printed("glue")[f"{name}_large_dev"]["scores"] for name in ("bert", "roberta")]
    before, after = (
        {task: score if isinstance(score, float) else score[0] for task, score in row.items()}
        for row in rows
    )
    gains = {task: after[task] - before[task] for task in before}
    assert min(gains.values()) > 0  # the page: every task rises
    task = which(gains, key=gains.get)
    return f"{task} by {gains[task]:.1f} points"


NUMBERS: dict[str, Callable[[], Any]] = {
    "padding_single": lambda: padding("sentence-pair"),
    "paper_gains": lambda: ", ".join(
        map(signed, difference("roberta", "masking", "dynamic", "static").values())
    ),
    "best_batch": lambda: min(printed("roberta")["batch"]["rows"], key=lambda row: row[3])[0],
    "largest_batch": lambda: max(row[0] for row in printed("roberta")["batch"]["rows"]),
    "bert_dev": lambda: f"{average('bert_large_dev'):.2f}",
    "roberta_dev": lambda: f"{average('roberta_large_dev'):.2f}",
}

TYPED = {
    "400": "paragraphs of documentation",
    "15%": "the rate of BERT's paper: in questions, and in arithmetic by hand",
    "0.85": "one minus the rate, in arithmetic by hand",
    "27.75%": "arithmetic by hand: 1 - 0.7225",
    "30,522": "BERT's printed vocabulary, an option of the quiz",
    "50,265": "RoBERTa's printed vocabulary, 256 + 50,000 + 9",
    "512": "the printed length of the longest sequence",
    "514": "512 + 2, arithmetic in the quiz",
    "768": "the printed width",
    "1,000": "1 / (1 - 0.999), arithmetic",
    "0.999": "Adam's setting in BERT's paper",
    "0.98": "Adam's setting in RoBERTa's paper",
    "2,000": "a batch of RoBERTa's Table 3",
    "8,000": "a batch of RoBERTa's Tables 3 and 9",
    "24,000": "warm-up, RoBERTa's Table 9",
    "30,000": "warm-up, RoBERTa's Table 9",
    "128": "the printed length of BERT's short sequences, and the micro RoBERTa's width",
    "1,024": "RoBERTa, section 5, and the printed width of the large models",
    "80.5": "the leaderboard's printed average of BERT-large",
    "84.6": "a printed score, RoBERTa's Table 3 and BERT's Table 1",
    "88.5": "the leaderboard's printed average, RoBERTa's Table 5",
    "90.5%": "ALBERT's Table 5",
    "52.0%": "ALBERT's Table 5",
}  # printed by a paper, or worked out by hand before the eyes of the reader
