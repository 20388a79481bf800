"""What is claimed about RoBERTa and about training BERT better, and how each claim is settled."""

from __future__ import annotations

from functools import lru_cache
from statistics import mean

import torch
import torch.nn.functional as F
from torch import Tensor

from course_lib.config import BertConfig, published
from course_lib.family.bert import bert
from course_lib.family.roberta import RobertaConfig, roberta
from course_lib.objectives.masked_lm import mask_sequences
from course_lib.objectives.sequences import PackedSequences, SpecialIds
from course_lib.teaching.averages import glue_average
from course_lib.teaching.claims import (
    Settled,
    difference,
    in_points,
    parameters,
    printed,
    result,
)
from course_lib.teaching.coverage import coverage
from course_lib.teaching.results import outcome as runs_outcome

from .experiments import SCHEMES, outcome

SPECIAL = SpecialIds(pad=0, unk=1, cls=2, sep=3, mask=4, vocab_size=30_522)
EPOCHS = 40  # as often as BERT read its text, by RoBERTa's account

# ================================================================ how many masks BERT had


@lru_cache(maxsize=len(SCHEMES))
def _masks(scheme: str) -> Tensor:
    """300 sequences of 100 ids masked in 40 epochs: (40, 300, 100), True where selected."""
    generator = torch.Generator().manual_seed(0)
    ids = torch.randint(5, SPECIAL.vocab_size, (300, 100), generator=generator)
    sequences = PackedSequences(ids, torch.ones_like(ids), torch.zeros_like(ids))
    copies = SCHEMES[scheme] or EPOCHS
    selected = [mask_sequences(sequences, SPECIAL, epoch=epoch).selected for epoch in range(copies)]
    return torch.stack([selected[epoch % copies] for epoch in range(EPOCHS)])


def _ever_selected(scheme: str, epochs: int = EPOCHS) -> float:
    return float(_masks(scheme)[:epochs].any(dim=0).float().mean())


def coverage_settled() -> Settled:
    shares = {scheme: _ever_selected(scheme) for scheme in SCHEMES}
    after = ", ".join(f"{share:.1%} {scheme}" for scheme, share in shares.items())
    detail = f"selected at least once in {EPOCHS} epochs: {after}; after 13 epochs dynamic "
    return Settled(shares["ten copies"], f"{detail}{_ever_selected('dynamic', 13):.0%}")


def _different_masks(scheme: str, epochs: int) -> int:
    """How many different masks a sequence meets in its first epochs: the least over all."""
    seen = _masks(scheme)[:epochs].transpose(0, 1)  # (300, epochs, 100)
    return min(len(masks.unique(dim=0)) for masks in seen)


def masks_met(epochs: int, *schemes: str) -> Settled:
    """How many different masks a sequence meets in its first epochs, under these schemes."""
    counts = tuple(_different_masks(scheme, epochs) for scheme in schemes)
    listed = ", ".join(f"{n} {scheme}" for n, scheme in zip(counts, schemes, strict=True))
    return Settled(counts, f"different masks that a sequence meets in {epochs} epochs: {listed}")


def arithmetic() -> Settled:
    """1 − (1 − rate)^masks, in percent."""
    rate = printed("bert")["pretraining"]["rate"]
    shares = tuple(round(100 * coverage(rate, masks)[-1], 2) for masks in (1, 10, 40))
    return Settled(shares, "1 − 0.85 to the power 1, 10, 40: " + ", ".join(f"{s}%" for s in shares))


# ================================================================ what dynamic masking is worth


def gained_over(scheme: str, of: str) -> list[float]:
    """For each seed, held-out accuracy with dynamic masks less that with another scheme."""
    reached = outcome(result("04_masking_schemes"), "heldout_accuracy", of)
    return [a - b for a, b in zip(reached["dynamic"], reached[scheme], strict=True)]


LONGER = "400 stories, 4,000 steps"


def text_or_steps() -> dict[str, list[float]]:
    """Held-out accuracy of the runs that tell text from steps, by recipe."""
    return runs_outcome(result("04_text_or_steps"), "masked_accuracy")


def gained_longer() -> list[float]:
    """As `gained_over` ten copies, where the few stories are read four times as often."""
    ten, dynamic = (text_or_steps()[f"{scheme}, {LONGER}"] for scheme in ("ten copies", "dynamic"))
    return [a - b for a, b in zip(dynamic, ten, strict=True)]


def with_more_steps_or_text() -> Settled:
    """By how much the gain over ten copies grows with four times the steps on the same stories,
    and with four times the stories, read as often."""
    few, text = (mean(gained_over("ten copies", f"{n} stories")) for n in ("400", "1,600"))
    steps = mean(gained_longer())
    detail = (
        f"dynamic over ten copies: {100 * few:+.1f} points with 400 stories and 1,000 steps, "
        f"{100 * steps:+.1f} with four times the steps, {100 * text:+.1f} with four times the text "
        "as well"
    )
    return Settled((steps - few, text - few), detail)


def one_mask_here() -> Settled:
    """Of the static scheme: loss under its own masks, and on the same stories under other masks."""
    results = result("04_masking_schemes")
    losses = [
        mean(outcome(results, measure, "400 stories")["static"])
        for measure in ("train_loss", "retold_loss")
    ]
    reached = outcome(results, "heldout_accuracy", "400 stories")
    detail = (
        f"static masking: loss {losses[0]:.3f} at its own positions, {losses[1]:.1f} at others in "
        f"the same stories; held-out accuracy {mean(reached['static']):.0%}, with ten copies "
        f"{mean(reached['ten copies']):.0%}"
    )
    return Settled(tuple(losses), detail)


# ================================================================ what the pairs do


def length_against_nsp() -> Settled:
    """Columns of Table 2 in which short inputs cost more than NSP does."""
    short = difference("roberta", "input_formats", "segment-pair", "sentence-pair")
    nsp = difference("roberta", "input_formats", "full-sentences", "segment-pair")
    more = sum(short[column] > nsp[column] for column in short)
    order = printed("albert")["sentence_loss"]["intrinsic"]["NSP"][2]
    detail = (
        f"single sentences cost {in_points(short)}; leaving out NSP gains {in_points(nsp)}. A "
        f"model trained on NSP reaches {order}% on the order of two segments (ALBERT, Table 5)"
    )
    return Settled(more, detail)


# ================================================================ which scores can be compared


def bert_large_averages() -> Settled:
    rows = printed("glue")
    names = ("bert_large_leaderboard", "bert_large_test", "bert_large_dev")
    averages = {name: average(name) for name in names}
    detail = "; ".join(f"{averages[name]:.2f} {rows[name]['recipe']}" for name in names)
    base = rows["bert_base_test"]["scores"]["MNLI"][0]
    detail += f". {base} is BERT-base on MNLI alone"
    return Settled(tuple(averages.values()), detail)


def average(row: str) -> float:
    """The mean of a printed GLUE row, by the row's own recipe."""
    entry = printed("glue")[row]
    return round(glue_average(entry["scores"], entry["recipe"]), 2)


def dev_averages() -> Settled:
    rows = printed("glue")
    averages = {
        rows[name]["model"]: average(name)
        for name in ("bert_large_dev", "xlnet_large_dev", "roberta_large_dev", "roberta_base_dev")
    }
    detail = ", ".join(f"{model} {value:.2f}" for model, value in averages.items())
    return Settled(averages["RoBERTa-large"], f"eight development sets: {detail}")


def two_79_6() -> Settled:
    rows = printed("glue")
    test = average("bert_base_test")
    dev = round(glue_average(rows["distilbert_dev"]["scores"], "dev-8"), 2)
    own = average("distilbert_dev")
    detail = f"BERT-base, test: {test}; DistilBERT, eight development sets: {dev}, nine: {own:.1f}"
    return Settled((test, dev), detail)


def squad(version: str) -> Settled:
    """Points by which RoBERTa exceeds BERT-large on the same set, one model each."""
    table = printed("roberta")["squad"]
    gained = {
        split: round(
            table[f"roberta_{version}_{split}"] - table[f"bert_large_{version}_{split}"], 2
        )
        for split in ("dev", "test")
        if f"roberta_{version}_{split}" in table
    }
    detail = ", ".join(f"{split} against {split} {points:+.1f}" for split, points in gained.items())
    return Settled(tuple(gained.values()), detail)


def dev_against_dev() -> Settled:
    """SQuAD 2.0, MNLI-m and SST-2, all on development sets; SST-2 as in Table 5."""
    rows, dev = printed("glue"), squad("2").value[0]
    ours, theirs = (rows[name]["scores"] for name in ("roberta_large_dev", "bert_large_dev"))
    gained = {
        "SQuAD 2.0": dev,
        "MNLI": round(ours["MNLI"][0] - theirs["MNLI"], 2),
        "SST-2": round(ours["SST-2"] - theirs["SST-2"], 2),
    }
    race = printed("roberta")["race"]
    detail = (
        f"{in_points(gained)}; RACE, test against test, {race['roberta'] - race['bert_large']:+.1f}"
    )
    return Settled(tuple(gained.values()), detail)


def early_share() -> Settled:
    """Of RoBERTa's gain over BERT-large, the fraction already there on BERT's own text."""
    first = difference("roberta", "stages", "roberta_16GB_100k", "bert_large")
    whole = difference("roberta", "stages", "roberta_160GB_500k", "bert_large")
    shares = {name: first[name] / whole[name] for name in whole}
    detail = ", ".join(f"{name} {share:.0%}" for name, share in shares.items())
    detail = f"fraction of the whole gain that 16 GB and 100,000 steps bring: {detail}"
    return Settled(min(shares.values()), detail)


# ================================================================ what it cost


def settings() -> Settled:
    table = printed("roberta")["settings"]
    peaks = tuple((table[s]["learning_rate"], table[s]["warmup"]) for s in ("base", "large"))
    detail = ", ".join(
        f"{size} {rate:g} after {warmup:,} steps"
        for size, (rate, warmup) in zip(("base", "large"), peaks, strict=True)
    )
    return Settled(peaks, detail)


def gigabytes() -> Settled:
    table = {k: v for k, v in printed("roberta")["data"].items() if isinstance(v, int)}
    total, old = sum(table.values()), table["books_and_wikipedia"]
    return Settled(
        total, f"{' + '.join(map(str, table.values()))} = {total} GB, {total / old:.0f} ×"
    )


def best_batch() -> Settled:
    """The batch with the lowest perplexity and the best MNLI; epochs are about equal."""
    rows = printed("roberta")["batch"]["rows"]
    epochs = [batch * steps / 1e6 for batch, steps, *_ in rows]
    detail = "; ".join(f"{row[0]:,}: perplexity {row[3]}, MNLI-m {row[4]}" for row in rows)
    best = {min(rows, key=lambda row: row[3])[0], max(rows, key=lambda row: row[4])[0]}
    detail += f" (each {min(epochs):.0f} to {max(epochs):.0f} million sequences)"
    return Settled(best, detail)


def accumulation() -> Settled:
    """Largest difference between the gradient of 32 positions at once and of four times 8.

    Once every part divides by the count of the whole batch, once each by its own.
    """
    torch.manual_seed(0)
    weight = torch.randn(20, 16, dtype=torch.float64, requires_grad=True)
    hidden = torch.randn(32, 16, dtype=torch.float64)
    labels = torch.randint(20, (32,))
    labels[torch.rand(32) < torch.linspace(0, 0.9, 32)] = -100  # later rows select less

    def gradient(rows: slice, count: int) -> Tensor:
        loss = F.cross_entropy(hidden[rows] @ weight.T, labels[rows], reduction="sum") / count
        return torch.autograd.grad(loss, weight)[0]

    counts = [int((part != -100).sum()) for part in labels.split(8)]
    parts = [slice(8 * i, 8 * i + 8) for i in range(4)]
    whole = gradient(slice(None), sum(counts))
    right = sum(gradient(part, sum(counts)) for part in parts)
    wrong = sum(gradient(part, 4 * count) for part, count in zip(parts, counts, strict=True))
    errors = [float((other - whole).abs().max() / whole.abs().max()) for other in (right, wrong)]
    detail = (
        f"four parts of 8 against 32 positions at once: gradients differ by {errors[0]:.0e} when "
        f"all parts are divided by the whole's count, by {errors[1]:.0%} when each by its own count"
    )
    return Settled(errors[0], detail)


# ================================================================ what is in the model


def where_they_differ() -> Settled:
    """RoBERTa-base less BERT-base: vocabulary rows, position rows, type rows, anything else."""
    ours: RobertaConfig = published("roberta", "base", RobertaConfig)
    theirs: BertConfig = published("bert", "base")
    H = ours.hidden_size
    parts = tuple(
        (getattr(ours, rows) - getattr(theirs, rows)) * H
        for rows in ("vocab_size", "max_positions", "type_vocab_size")
    )
    whole = parameters(roberta, "base") - parameters(bert, "base")
    rest = whole - sum(parts)
    listed = f"vocabulary {parts[0]:+,}, positions {parts[1]:+,}, types {parts[2]:+,}"
    return Settled((*parts, rest), f"{whole:,} more: {listed}, blocks and all else {rest:+,}")


def larger_vocabulary() -> Settled:
    added = tuple(
        (ours.vocab_size - published("bert", size).vocab_size) * ours.hidden_size
        for size in ("base", "large")
        for ours in (published("roberta", size, RobertaConfig),)
    )
    return Settled(added, f"{added[0]:,} in base, {added[1]:,} in large")


ODD_TEXTS = ("naïve café", "Привет, мир", "深度学习", "🤗🚀", "x̂ ≈ ∑ᵢ wᵢ", "\ttab\u200bless")


def unknown_pieces() -> Settled:
    """[UNK] in byte-level pieces of texts that share hardly a letter with the training text."""
    from course_lib.text.byte_bpe import train_byte_bpe

    tokenizer = train_byte_bpe(["plain english words and nothing else"] * 3, vocab_size=280)
    pieces = [tokenizer.encode(text) for text in ODD_TEXTS]
    unknown = sum(ids.count(tokenizer.special.unk) for ids in pieces)
    back = sum(tokenizer.decode(ids) == text for ids, text in zip(pieces, ODD_TEXTS, strict=True))
    detail = (
        f"{unknown} unknown among the {sum(map(len, pieces))} pieces of {len(ODD_TEXTS)} texts in "
        f"other scripts; {back} of {len(ODD_TEXTS)} come back letter by letter"
    )
    return Settled((unknown, back), detail)


# ================================================================ what went wrong in a file

LOGO = "\uf8ff"  # MacRoman's 0xf0, with which every emoji here begins; most machines show nothing
# As the headings of the source lecture have them.
BROKEN = (f"{LOGO}üöÄ", "‚ö°", f"{LOGO}üß©", f"{LOGO}üèÜ", f"{LOGO}üéì")


def mended_settled() -> Settled:
    """The bytes behind the wrong letters, read as what they are."""
    mended = tuple(text.encode("mac_roman").decode("utf-8") for text in BROKEN)
    first = " ".join(f"{byte:02x}" for byte in mended[0].encode())
    letters = " ".join(BROKEN).replace(LOGO, "")
    bytes_of = (
        f"The first is {first}; f0 in MacRoman is Apple's logo, which most machines leave out"
    )
    return Settled(mended, f"{letters} are {' '.join(mended)}. {bytes_of}")
