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
from course_lib.objectives.coverage import coverage, simulated_coverage
from course_lib.objectives.pretraining import counted_together, split_batch
from course_lib.objectives.sequences import Batch, PackedSequences
from course_lib.teaching.averages import glue_average
from course_lib.teaching.claims import claims, difference, printed, settled
from course_lib.teaching.experiments import Stories
from course_lib.teaching.numbers import cpu_hours, percent, signed
from course_lib.teaching.results import stored
from course_lib.teaching.style import BLUE, GREEN, GREY, ORANGE
from course_lib.text.packing import INPUT_FORMATS, input_sequences
from course_lib.train.metrics import evaluation_mask

from .claims import average, errors_removed, gained_over
from .experiments import LIVE, RECIPES, SCHEMES, SEEDS, outcome, prepare_masking

FEW, MORE = RECIPES  # the two amounts of text
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


def _more_by_pieces() -> str:
    theirs, ours = table_rows("token")
    return f"{(ours - theirs) * models()[BERT].config.hidden_size:,}"


def _millions(*names: str) -> str:
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


def _ever(masks: int, digits: int = 1) -> Callable[[], str]:
    """Positions selected at least once under so many masks."""
    said = "{:." + str(digits) + "%}"
    return lambda: said.format(coverage(paper()["rate"], masks)[-1]).replace(".0%", "%")


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


def _range_over_ten(of: str) -> str:
    """Points that dynamic masking gains over ten copies: the least and the most of the seeds."""
    gains = gained_over("ten copies", of)
    assert min(gains) > 0  # the page: at every seed
    return f"{100 * min(gains):.1f} to {100 * max(gains):.1f}"


# ---------------------------------------------------------------- formats, and large batches


@cache
def filled() -> dict[str, PackedSequences]:
    """The stories of the notebook in the four formats."""
    documents = world().documents(world().stories(PACKED, seed=0))
    return {
        name: input_sequences(name, documents, world().special, POSITIONS)
        for name in INPUT_FORMATS
    }  # fmt: skip


def _padding(name: str) -> Callable[[], str]:
    return lambda: f"{filled()[name].padding_share:.0%}"


def _selected_in_parts() -> str:
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


def _first_stage(which: Callable[[Sequence[float]], float]) -> str:
    """Of RoBERTa's gain over BERT-large, the fraction that the first stage brings."""
    first, *_, last = (difference("roberta", "stages", key, "bert_large") for key in STAGES)
    return f"{which([first[task] / last[task] for task in last]):.0%}"


def _times(run: str) -> Callable[[], str]:
    flops = printed("roberta")["compute"]
    return lambda: f"{flops[run] / flops['bert_large']:.1f}"


def _times_with_short_steps() -> str:
    """RoBERTa's FLOPs over BERT-large's, of whose steps most were of short sequences."""
    flops, large = printed("roberta")["compute"], published("bert", "large")
    short = paper()["short_share"]
    long, brief = (encoder_flops(large, paper()[f"{kind}_length"]) for kind in ("long", "short"))
    spent = (short * brief + (1 - short) * long) / long
    return f"{flops['roberta_500k'] / flops['bert_large'] / spent:.0f}"


def _more_read(unit: str) -> str:
    """What RoBERTa read in 100,000 steps on BERT's text over what BERT read."""
    short = paper()["short_share"]
    mean_length = short * paper()["short_length"] + (1 - short) * paper()["long_length"]
    lengths = paper()["long_length"] / mean_length if unit == "tokens" else 1
    batch = printed("roberta")["settings"]["large"]["batch"]
    return f"{100_000 * batch / (paper()['steps'] * paper()['batch']) * lengths:.1f}"


def _warmup(size: str) -> str:
    s = printed("roberta")["settings"][size]
    return f"{power(s['learning_rate'])} after {s['warmup']:,}"


def _text_times() -> str:
    """Words of BERT's text over tokens of our larger set, to the nearest ten thousand."""
    theirs = paper()["words_books"] + paper()["words_wikipedia"]
    ours = int(prepare_masking(RECIPES[MORE], world()).train.attention_mask.sum())
    return f"{round(theirs / ours, -4):,.0f}"


def _dev_gain(which: Callable[..., str]) -> str:
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


def _race_gain() -> str:
    race = printed("roberta")["race"]
    return f"{race['roberta'] - race['bert_large']:.1f}"


def _told_by_nsp(task: str) -> str:
    """The accuracy of a model trained on NSP on a pair task (ALBERT, Table 5)."""
    found = printed("albert")["sentence_loss"]["intrinsic"]["NSP"]
    return f"{found[('words', 'NSP', 'SOP').index(task)]:.1f}%"


def _dev_8_of_distilbert() -> str:
    return f"{glue_average(printed('glue')['distilbert_dev']['scores'], 'dev-8'):.1f}"


NUMBERS: dict[str, Callable[[], Any]] = {
    "hours": lambda: cpu_hours("04_masking_schemes"),
    "claims_in_all": lambda: len(claims("04")),
    # what is in the model
    "bert_millions": lambda: _millions(BERT),
    "roberta_millions": lambda: _millions(ROBERTA),
    "base_more": lambda: _millions(ROBERTA, BERT),
    "bert_pieces": lambda: table_rows("token")[0],
    "roberta_pieces": lambda: table_rows("token")[1],
    "position_rows": lambda: table_rows("position")[1],
    "more_parameters": _more_by_pieces,
    "longest_text": lambda: models()[ROBERTA].config.longest_text,
    "width": lambda: models()[BERT].config.hidden_size,
    # masks over epochs
    "rate": lambda: f"{paper()['rate']:.0%}",
    "escapes": lambda: f"{1 - paper()['rate']:g}",
    "epochs": lambda: int(LIVE.epochs),
    "epochs_by_schedule": epochs_by_schedule,
    "ever_static": _ever(1),
    "ever_two_masks": _ever(2, digits=2),
    "ever_ten_copies": _ever(10),
    "ever_by_schedule": lambda: _ever(epochs_by_schedule(), digits=0)(),
    "ever_dynamic": _ever(int(LIVE.epochs)),
    "counted_static": lambda: f"{counted()['static'][-1]:.1%}",
    # measured
    "few": lambda: FEW,
    "more": lambda: MORE,
    "stories": lambda: LIVE.stories,
    "steps": lambda: LIVE.steps,
    "seeds": lambda: len(SEEDS[FEW]),
    "seeds_more": lambda: len(SEEDS[MORE]),
    "accuracy_static": lambda: percent(ends("heldout_accuracy")["static"]),
    "accuracy_dynamic": lambda: percent(ends("heldout_accuracy")["dynamic"]),
    "loss_own_mask": lambda: f"{mean(ends('train_loss')['static']):.3f}",
    "loss_other_masks": lambda: f"{mean(ends('retold_loss')['static']):.1f}",
    "text_times": _text_times,
    "by_frequency": lambda: f"{by_frequency():.1f}",
    "dynamic_over_static": lambda: signed(gain("static", FEW)),
    "dynamic_over_static_more": lambda: signed(gain("static", MORE)),
    "dynamic_over_ten": lambda: signed(gain("ten copies", FEW)),
    "dynamic_over_ten_more": lambda: signed(gain("ten copies", MORE)),
    "errors_static": lambda: f"{errors_removed('static', FEW):.0%}",
    "errors_static_more": lambda: f"{errors_removed('static', MORE):.0%}",
    "errors_ten": lambda: f"{errors_removed('ten copies', FEW):.0%}",
    "errors_ten_more": lambda: f"{errors_removed('ten copies', MORE):.0%}",
    "over_ten_range": lambda: _range_over_ten(FEW),
    "over_ten_range_more": lambda: _range_over_ten(MORE),
    # formats, large batches, bytes
    "sequence_length": lambda: POSITIONS,
    "packed": lambda: PACKED,
    "padding_pair": _padding("segment-pair"),
    "padding_single": _padding("sentence-pair"),
    "padding_full": _padding("full-sentences"),
    "padding_doc": _padding("doc-sentences"),
    "selected_in_parts": _selected_in_parts,
    "accumulated": lambda: settled("04", "accumulation").detail,
    "loss_together": lambda: f"{added()[1]:.1f}",
    "loss_of_means": lambda: f"{added()[2]:.1f}",
    "odd_counts": odd_counts,
    "our_pieces": lambda: bpe().vocab_size,
    # the papers' tables
    "paper_gains": lambda: ", ".join(
        map(signed, difference("roberta", "masking", "dynamic", "static").values())
    ),
    "nsp_order": lambda: _told_by_nsp("SOP"),
    "nsp_topic": lambda: _told_by_nsp("NSP"),
    "best_batch": lambda: min(printed("roberta")["batch"]["rows"], key=lambda row: row[3])[0],
    "largest_batch": lambda: max(row[0] for row in printed("roberta")["batch"]["rows"]),
    "beta2_bert": lambda: str(paper()["beta2"]),
    "beta2_roberta": lambda: str(ROBERTA_BETA2),
    "remembers_bert": lambda: round(1 / (1 - paper()["beta2"])),
    "remembers_roberta": lambda: round(1 / (1 - ROBERTA_BETA2)),
    "separators_selected": lambda: f"{2 / 64:.1%}",  # by RoBERTa's program, at 64 tokens
    "warmup_base": lambda: _warmup("base"),
    "warmup_large": lambda: _warmup("large"),
    "added_millions": lambda: printed("roberta")["vocabulary"]["base"] // 10**6,
    "gigabytes": lambda: printed("roberta")["data"]["books_and_wikipedia"],
    "gpus": lambda: printed("roberta")["hardware"]["roberta_v100"],
    "first_stage_least": lambda: _first_stage(min),
    "first_stage_most": lambda: _first_stage(max),
    "times_short": _times("roberta_100k"),
    "times_whole": _times("roberta_500k"),
    "times_whole_short": _times_with_short_steps,
    "sequences_more": lambda: _more_read("sequences"),
    "tokens_more": lambda: _more_read("tokens"),
    "bert_dev": lambda: f"{average('bert_large_dev'):.2f}",
    "roberta_dev": lambda: f"{average('roberta_large_dev'):.2f}",
    "bert_leaderboard": lambda: str(printed("glue")["bert_large_leaderboard"]["printed"]),
    "dev_gain_most": lambda: f"{_dev_gain(max)} the most",
    "dev_gain_least": lambda: f"{_dev_gain(min)} the least",
    "race_gain": _race_gain,
    "told_bert": lambda: str(printed("glue")["bert_base_test"]["scores"]["MNLI"][0]),
    "told_roberta": lambda: str(printed("glue")["roberta_test"]["printed"]),
    "two_79": _dev_8_of_distilbert,
}

TYPED = {
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
