"""The numbers that sentences of lecture 04 say: counted, computed, or read from results."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import lru_cache
from statistics import mean
from typing import Any

import torch

from course_lib import (
    ByteBPE,
    MicroWorld,
    bert,
    claims_table,
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
from course_lib.teaching.claims import claims, printed
from course_lib.teaching.results import read_result
from course_lib.teaching.style import BLUE, GREEN, GREY, ORANGE
from course_lib.text.packing import INPUT_FORMATS, input_sequences
from course_lib.train.metrics import evaluation_mask

from .experiments import LIVE, RECIPES, SCHEMES, SEEDS, MaskingMaterial, outcome, prepare_masking

FEW, MORE = RECIPES  # the two amounts of text

ROBERTA_BETA2 = 0.98  # RoBERTa, section 3.1 and Table 9

ROW, PACKED = 64, 2_000  # positions and stories, where rows are filled


def signed(points: float) -> str:
    return f"{points:+.1f}".replace("-", "−")


@lru_cache(maxsize=1)
def world() -> MicroWorld:
    return MicroWorld.load()


@lru_cache(maxsize=1)
def _material() -> MaskingMaterial:
    return prepare_masking(LIVE, world())


@lru_cache(maxsize=1)
def result() -> dict[str, Any]:
    try:
        return read_result("04_masking_schemes")
    except FileNotFoundError as missing:
        raise RuntimeError(
            "data/results/04_masking_schemes.json is not there, and this slide shows what it "
            "holds. `python -m course_lib.teaching.results 04` makes it (an hour on two cores)."
        ) from missing


def _settled(claim: str) -> str:
    return claims_table("04", only=[claim]).rows[0].measured


@lru_cache(maxsize=1)
def _models() -> dict[str, Any]:
    """Both encoders on the meta device: shapes without memory."""
    with torch.device("meta"):
        return {"BERT-base": bert("base"), "RoBERTa-base": roberta("base")}


def table_rows(name: str) -> list[int]:
    """Rows of one table of embeddings, of BERT and of RoBERTa."""
    return [getattr(model.embeddings, name).num_embeddings for model in _models().values()]


def _more_by_pieces() -> int:
    theirs, ours = table_rows("token")
    return (ours - theirs) * _models()["BERT-base"].config.hidden_size


@lru_cache(maxsize=1)
def _counted() -> dict[str, list[float]]:
    material = _material()
    return {
        way: simulated_coverage(
            material.train, world().special, int(LIVE.epochs), copies=copies, rate=_rate()
        )
        for way, copies in SCHEMES.items()
    }


def _rate() -> float:
    return float(printed("bert")["pretraining"]["rate"])


def _epochs_by_schedule() -> int:
    """How often BERT read its text by its own two lengths: settled by a claim of lecture 02."""
    claim = next(claim for claim in claims("02") if claim.id == "slip 4 epochs")
    assert claim.settle is not None
    return round(claim.settle().value)


def _ends(measure: str, of: str = FEW) -> dict[str, list[float]]:
    return outcome(result(), measure, of)


@lru_cache(maxsize=1)
def _by_frequency() -> float:
    """The held-out loss of one who knows how often each word occurs (+1), only."""
    material, special = _material(), world().special
    ids = material.train.input_ids
    counts = torch.bincount(ids.flatten(), minlength=special.vocab_size).double() + 1
    counts[list(special.never_masked)] = 0
    original_ids = evaluation_mask(material.heldout, special).original_ids
    return -float((counts / counts.sum())[original_ids].log().mean())


def _gain(over: str, of: str) -> float:
    """Points of held-out accuracy that dynamic masking gains over a scheme, mean over seeds."""
    ends = _ends("heldout_accuracy", of)
    return 100 * (mean(ends["dynamic"]) - mean(ends[over]))


def _range_over_ten(of: str) -> str:
    """Points that dynamic masking gains over ten copies: the least and the most of the seeds."""
    ends = _ends("heldout_accuracy", of)
    gains = [100 * (a - b) for a, b in zip(ends["dynamic"], ends["ten copies"], strict=True)]
    assert min(gains) > 0  # the page: at every seed
    return f"{min(gains):.1f} to {max(gains):.1f}"


def _selected_in_parts() -> str:
    """Selected positions in the four parts of the page's large batch, from least to most."""
    batches = pretraining_batches(_material().train, world().special, batch_size=64)
    counts = [int((p.targets["labels"] >= 0).sum()) for p in split_batch(batches(0), 4)]
    return f"{min(counts)} to {max(counts)}"


def _millions(model: str) -> str:
    return f"{count_parameters(_models()[model]) / 1e6:.1f}"


def _base_more() -> int:
    theirs, ours = (count_parameters(model) for model in _models().values())
    return ours - theirs


def _difference(name: str, row: str, against: str) -> list[float]:
    rows = printed("roberta")[name]
    return [round(a - b, 1) for a, b in zip(rows[row], rows[against], strict=True)]


def _told_by_nsp(task: str) -> str:
    """The accuracy of a model trained on NSP on a pair task (ALBERT, Table 5)."""
    found = printed("albert")["sentence_loss"]["intrinsic"]["NSP"]
    return f"{found[('words', 'NSP', 'SOP').index(task)]:.1f}%"


STAGES = {  # rows of Table 4, one after the other: how each is drawn
    "roberta_16GB_100k": (BLUE, ""),
    "roberta_160GB_100k": (ORANGE, "/"),
    "roberta_160GB_300k": (GREEN, "x"),
    "roberta_160GB_500k": (GREY, "."),
}


def _first_share(which: Callable[[Sequence[float]], float]) -> str:
    stages = list(STAGES)
    first, whole = (_difference("stages", key, "bert_large") for key in (stages[0], stages[-1]))
    return f"{which([a / b for a, b in zip(first, whole, strict=True)]):.0%}"


def _times(run: str) -> str:
    compute = printed("roberta")["compute"]
    return f"{compute[run] / compute['bert_large']:.1f}"


def _times_with_short_steps() -> str:
    """RoBERTa's FLOPs over BERT-large's, of whose steps most were of short sequences."""
    steps, compute = printed("bert")["pretraining"], printed("roberta")["compute"]
    large, short = published("bert", "large"), steps["short_share"]
    long, brief = (encoder_flops(large, steps[f"{kind}_length"]) for kind in ("long", "short"))
    spent = (short * brief + (1 - short) * long) / long
    return f"{compute['roberta_500k'] / compute['bert_large'] / spent:.0f}"


def _more_read(unit: str) -> str:
    """What RoBERTa read in 100,000 steps on BERT's text over what BERT read."""
    bert = printed("bert")["pretraining"]
    short = bert["short_share"]
    mean_length = short * bert["short_length"] + (1 - short) * bert["long_length"]
    lengths = (bert["long_length"] / mean_length) if unit == "tokens" else 1
    sequences = (
        100_000 * printed("roberta")["settings"]["large"]["batch"] / (bert["steps"] * bert["batch"])
    )
    return f"{sequences * lengths:.1f}"


def power(rate: float) -> str:
    return f"{rate:.0e}".replace("e-0", "e-")


@lru_cache(maxsize=1)
def _filled() -> dict[str, PackedSequences]:
    """The stories of the notebook in the four formats."""
    documents = world().documents(world().stories(PACKED, seed=0))
    return {name: input_sequences(name, documents, world().special, ROW) for name in INPUT_FORMATS}


def _padding(name: str) -> str:
    return f"{_filled()[name].padding_share:.0%}"


PARTS = ((3, 2.0), (1, 6.0))  # words asked of a part, and their mean loss: the notebook's sum


@lru_cache(maxsize=1)
def added() -> tuple[list[float], float, float]:
    """The parts' shares by the library, their sum, and the mean of their means."""
    outputs, parts = [], []
    for asked, loss in PARTS:
        right = torch.tensor(-loss).exp()  # the same for every word of the part
        logits = torch.stack([right, 1 - right]).log().expand(asked, 2)
        outputs.append(MaskedLMOutput(logits))
        parts.append(Batch({}, {"labels": torch.zeros(asked, dtype=torch.long)}))
    shares = [
        float(masked_lm_loss(output, part.targets)["total"])
        for output, part in zip(outputs, counted_together(parts), strict=True)
    ]
    return shares, sum(shares), mean(loss for _, loss in PARTS)


def _warmup(size: str) -> str:
    s = printed("roberta")["settings"][size]
    return f"{power(s['learning_rate'])} after {s['warmup']:,}"


ODD = "Ça marche: naïve café at 25 °C"


@lru_cache(maxsize=1)
def bpe() -> ByteBPE:
    """Learned from the documentation, as in the notebook (counting pairs, no gradient)."""
    return train_byte_bpe(documentation_slice(paragraphs=400).paragraphs, 2_000)


def odd_counts() -> str:
    ids = bpe().encode(ODD)
    unknown = ids.count(bpe().special.unk)
    assert bpe().decode(ids) == ODD
    return f"{len(ODD)} characters, {len(ODD.encode())} bytes, {len(ids)} pieces, {unknown} unknown"


def _average(row: str) -> float:
    rows = printed("glue")[row]
    return glue_average(rows["scores"], rows["recipe"])


def _as_told(what: str) -> str:
    glue = printed("glue")
    return {
        "roberta": f"{glue['roberta_test']['printed']}",
        "bert": f"{glue['bert_base_test']['scores']['MNLI'][0]}",
        "two": f"{glue_average(glue['distilbert_dev']['scores'], 'dev-8'):.1f}",
    }[what]


def _share(way: str, epochs: int | None = None) -> str:
    share = coverage(_rate(), epochs or int(LIVE.epochs), SCHEMES[way])[-1]
    return f"{share:.1%}".replace(".0%", "%")


NUMBERS: dict[str, Callable[[], Any]] = {
    "accumulated": lambda: _settled("accumulation"),
    "added_millions": lambda: printed("roberta")["vocabulary"]["base"] // 10**6,
    "asked_right": lambda: f"{added()[1]:.1f}",
    "asked_wrong": lambda: f"{added()[2]:.1f}",
    "base_more": lambda: f"{_base_more() / 1e6:.1f}",
    "bert_dev": lambda: f"{_average('bert_large_dev'):.2f}",
    "bert_pieces": lambda: table_rows("token")[0],
    "bert_millions": lambda: _millions("BERT-base"),
    "best_batch": lambda: min(printed("roberta")["batch"]["rows"], key=lambda row: row[3])[0],
    "beta2_bert": lambda: str(printed("bert")["pretraining"]["beta2"]),
    "beta2_roberta": lambda: str(ROBERTA_BETA2),
    "by_frequency": lambda: f"{_by_frequency():.1f}",
    "by_schedule": lambda: f"{coverage(_rate(), _epochs_by_schedule())[-1]:.0%}",
    "claims_in_all": lambda: len(claims("04")),
    "counted_static": lambda: f"{_counted()['static'][-1]:.1%}",
    "dynamic_found": lambda: f"{mean(_ends('heldout_accuracy')['dynamic']):.0%}",
    "epochs": lambda: int(LIVE.epochs),
    "epochs_by_schedule": _epochs_by_schedule,
    "escapes": lambda: f"{1 - _rate():g}",
    "few": lambda: FEW,
    "first_least": lambda: _first_share(min),
    "first_most": lambda: _first_share(max),
    "fresh_draws": lambda: _share("dynamic"),
    "fresh_over_one": lambda: signed(_gain("static", FEW)),
    "fresh_over_one_more": lambda: signed(_gain("static", MORE)),
    "fresh_over_ten": lambda: signed(_gain("ten copies", FEW)),
    "fresh_over_ten_more": lambda: signed(_gain("ten copies", MORE)),
    "gigabytes": lambda: printed("roberta")["data"]["books_and_wikipedia"],
    "gpus": lambda: printed("roberta")["hardware"]["roberta_v100"],
    "largest_batch": lambda: max(row[0] for row in printed("roberta")["batch"]["rows"]),
    "longest_text": lambda: _models()["RoBERTa-base"].config.longest_text,
    "more": lambda: MORE,
    "more_parameters": lambda: f"{_more_by_pieces():,}",
    "nsp_order": lambda: _told_by_nsp("SOP"),
    "nsp_topic": lambda: _told_by_nsp("NSP"),
    "odd_counts": odd_counts,
    "one_draw": lambda: _share("static"),
    "our_pieces": lambda: bpe().vocab_size,
    "over_ten_range": lambda: _range_over_ten(FEW),
    "over_ten_range_more": lambda: _range_over_ten(MORE),
    "packed": lambda: PACKED,
    "padding_doc": lambda: _padding("doc-sentences"),
    "padding_full": lambda: _padding("full-sentences"),
    "padding_pair": lambda: _padding("segment-pair"),
    "padding_single": lambda: _padding("sentence-pair"),
    "paper_gains": lambda: ", ".join(map(signed, _difference("masking", "dynamic", "static"))),
    "position_rows": lambda: table_rows("position")[1],
    "rate": lambda: f"{_rate():.0%}",
    "remembers_bert": lambda: round(1 / (1 - printed("bert")["pretraining"]["beta2"])),
    "remembers_roberta": lambda: round(1 / (1 - ROBERTA_BETA2)),
    "roberta_dev": lambda: f"{_average('roberta_large_dev'):.2f}",
    "roberta_millions": lambda: _millions("RoBERTa-base"),
    "roberta_pieces": lambda: table_rows("token")[1],
    "row": lambda: ROW,
    "selected_in_parts": _selected_in_parts,
    "seeds": lambda: len(SEEDS[FEW]),
    "seeds_more": lambda: len(SEEDS[MORE]),
    "sequences_more": lambda: _more_read("sequences"),
    "static_found": lambda: f"{mean(_ends('heldout_accuracy')['static']):.0%}",
    "static_retold": lambda: f"{mean(_ends('retold_loss')['static']):.1f}",
    "static_train": lambda: f"{mean(_ends('train_loss')['static']):.3f}",
    "steps": lambda: LIVE.steps,
    "stories": lambda: LIVE.stories,
    "ten_copies": lambda: _share("ten copies"),
    "times_short": lambda: _times("roberta_100k"),
    "times_whole": lambda: _times("roberta_500k"),
    "times_whole_short": _times_with_short_steps,
    "tokens_more": lambda: _more_read("tokens"),
    "told_bert": lambda: _as_told("bert"),
    "told_roberta": lambda: _as_told("roberta"),
    "two_79": lambda: _as_told("two"),
    "two_passes": lambda: f"{coverage(_rate(), 2)[-1]:.2%}",
    "warmup_base": lambda: _warmup("base"),
    "warmup_large": lambda: _warmup("large"),
    "width": lambda: _models()["BERT-base"].config.hidden_size,
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
    "84.6": "a printed score, RoBERTa's Table 3 and BERT's Table 1",
    "88.5": "the leaderboard's printed average, RoBERTa's Table 5",
    "90.5%": "ALBERT's Table 5",
    "52.0%": "ALBERT's Table 5",
}  # printed by a paper, or worked out by hand before the eyes of the reader
