"""What is claimed about ELECTRA: what it reads, where λ stands, what it costs and reaches."""

from __future__ import annotations

import math
from collections.abc import Sequence
from functools import lru_cache
from typing import Any

import torch
import torch.nn.functional as F
from torch import Tensor

from course_lib.checkpoints import KNOWN
from course_lib.config import encoder_flops, published
from course_lib.family.electra import (
    GENERATOR_SIZE,
    ElectraConfig,
    ElectraOutput,
    electra_from,
    generator_config,
)
from course_lib.kernels.masking import KEPT, MASKED
from course_lib.objectives.masked_lm import mask_sequences
from course_lib.objectives.pretraining import pretraining_batch
from course_lib.objectives.replaced_tokens import (
    PAPER_MIX,
    RELEASED_MIX,
    electra_loss,
    replaced_labels,
)
from course_lib.objectives.sequences import Batch, PackedSequences, SpecialIds
from course_lib.teaching.claims import Settled, compared, printed
from course_lib.text.world import MicroWorld, story_sequences

from .ablation_steps import ABLATION_STEPS
from .experiments import counted_swaps, micro_electra, prepare
from .numbers import best_rate, generator_runs, past_runs

TOKENS = 128  # of the text whose FLOPs are counted

# ================================================================ what each network reads


@lru_cache(maxsize=1)
def _stories() -> tuple[MicroWorld, PackedSequences, Batch]:
    """Sixty held-out stories, and the same with 15% of their words masked."""
    world = MicroWorld.load()
    sequences = story_sequences(world, world.stories(60, seed=0, split="heldout"), length=64)
    return world, sequences, pretraining_batch(sequences, world.special, mix=PAPER_MIX)


@lru_cache(maxsize=1)
def _read() -> tuple[list[Tensor], ElectraOutput]:
    """What generator and discriminator of the course's ELECTRA read of them, and their outputs."""
    _, _, batch = _stories()
    model, seen = micro_electra(), []
    for network in (model.generator, model.discriminator):
        network.encoder.register_forward_pre_hook(lambda _, inputs: seen.append(inputs[0]))
    torch.manual_seed(0)
    with torch.no_grad():
        out = model(**batch.inputs)
    return seen, out


def read_by_each() -> Settled:
    """How many [MASK] stand in what the generator and in what the discriminator reads."""
    world, sequences, _ = _stories()
    seen, _ = _read()
    counts = tuple(int((ids == world.special.mask).sum()) for ids in seen)
    length = seen[0].shape[1]
    row, at = (seen[1] != sequences.input_ids[:, :length]).nonzero()[0].tolist()
    x, masked, corrupt = (
        world.tokenizer.decode(ids[row, max(at - 5, 0) : at + 5].tolist())
        for ids in (sequences.input_ids, *seen)
    )
    detail = (
        f"the generator read {counts[0]} [MASK], the discriminator {counts[1]}: “{masked}” and "
        f"“{corrupt}” for “{x}”"
    )
    return Settled((counts[0] > 0, counts[1]), detail)


def right_draws() -> Settled:
    """How often the sampled word is the true one; how often such a token is labelled 0; how many of
    all tokens are labelled 1."""
    _, _, batch = _stories()
    filled = _read()[1].corrupted_ids
    at, original_ids = batch.inputs["predict_at"], batch.targets["labels"]
    labels = replaced_labels(filled, at, original_ids)
    right = filled.flatten()[at] == original_ids
    zero = float((labels.flatten()[at][right] == 0).float().mean())
    ones = float(labels.sum() / batch.inputs["attention_mask"].sum())
    detail = (
        f"our ELECTRA's generator samples the true word at {right.float().mean():.0%} of the "
        f"masked positions; {zero:.0%} of these are labelled 0, {ones:.1%} of all tokens 1"
    )
    return Settled((float(right.float().mean()), zero), detail)


def two_conventions() -> Settled:
    """The loss with 1 = replaced less that with 1 = original and the logit's sign turned; and less
    that with the sign forgotten."""
    draw = torch.Generator().manual_seed(0)
    logits, replaced = torch.randn(100, generator=draw) - 2, torch.arange(100) < 15
    bce = F.binary_cross_entropy_with_logits
    code = bce(logits, replaced.float())
    paper, forgotten = (bce(x, (~replaced).float()) for x in (-logits, logits))
    differences = float((code - paper).abs()), float((code - forgotten).abs())
    same, turned = differences
    detail = f"the two losses differ by {same:.0e}; with the sign forgotten by {turned:.2f}"
    return Settled(differences, detail)


def left_as_they_are() -> Settled:
    """Of the selected positions under the released mix: fractions that become [MASK], that stay."""
    special = SpecialIds(pad=0, unk=1, cls=2, sep=3, mask=4, vocab_size=30_522)
    draw = torch.Generator().manual_seed(0)
    ids = torch.randint(5, special.vocab_size, (300, 100), generator=draw)
    sequences = PackedSequences(ids, torch.ones_like(ids), torch.zeros_like(ids))
    done = mask_sequences(sequences, special, mix=RELEASED_MIX).done
    fractions = tuple(float((done == what).float().mean()) for what in (MASKED, KEPT))
    masked, kept = fractions
    detail = f"of {len(done):,} selected positions {masked:.1%} become [MASK], {kept:.1%} stay"
    return Settled(fractions, detail)


# ================================================================ the loss


def _narrow(width: int, **more: Any) -> ElectraConfig:
    """One layer and one head of this width."""
    return ElectraConfig(
        num_layers=1, num_heads=1, hidden_size=width, intermediate_size=4 * width,
        embedding_size=width, **more,
    )  # fmt: skip


@lru_cache(maxsize=1)
def _first_losses() -> tuple[float, float]:
    """Both losses, in nats, of a narrow ELECTRA with BERT's vocabulary before it has learnt."""
    torch.manual_seed(0)
    model = electra_from(_narrow(64)).eval()
    ids = torch.randint(1_000, model.config.vocab_size, (4, 32))
    at = torch.arange(0, ids.numel(), 7)
    masked = ids.flatten().clone()
    masked[at] = 103
    with torch.no_grad():
        out = model(masked.view_as(ids), predict_at=at)
        losses = electra_loss()(out, {"labels": ids.flatten()[at]})
    return float(losses["mlm"]), float(losses["rtd"])


def loss_at_the_start() -> Settled:
    """The discriminator's part of the loss at the start: λ before its loss, before the other."""
    weight = printed("electra")["loss"]["disc_weight"]
    mlm, rtd = math.log(ElectraConfig().vocab_size), math.log(2)
    paper = weight * rtd / (weight * rtd + mlm)
    lecture = rtd / (rtd + weight * mlm)
    initial = _first_losses()
    detail = (
        f"ln 30,522 = {mlm:.1f} and ln 2 = {rtd:.2f} (random initialisation: {initial[0]:.1f}, "
        f"{initial[1]:.2f}): the discriminator has {paper:.0%} of the loss, or {lecture:.2%}"
    )
    return Settled((paper, lecture), detail)


# ================================================================ what it costs


def same_size() -> Settled:
    """FLOPs of a text in ELECTRA-base against BERT-base: the kept network, and both."""
    config = published("electra", "base", ElectraConfig)
    bert = encoder_flops(published("bert", "base"), TOKENS)
    kept = encoder_flops(config, TOKENS)
    both = kept + encoder_flops(generator_config(config, GENERATOR_SIZE["base"]), TOKENS)
    detail = (
        f"{kept / 1e9:.2f} GFLOPs for {TOKENS} tokens, BERT-base {bert / 1e9:.2f}; while "
        f"training, the generator adds {both / kept - 1:.0%}"
    )
    return Settled((kept / bert, both / kept), detail)


def _rows(table: str) -> dict[str, dict[str, float]]:
    return {k: v for k, v in printed("electra")[table].items() if isinstance(v, dict)}


def quarter_of_whose() -> Settled:
    """FLOPs of ELECTRA-400K: times BERT-large's, and as a fraction of RoBERTa-500K's."""
    rows = _rows("large")
    ours = rows["electra_400k"]
    large, roberta = rows["bert_large"], rows["roberta_500k"]
    ratios = ours["flops"] / large["flops"], ours["flops"] / roberta["flops"]
    detail = (
        f"{ratios[0]:.1f} times BERT-large's FLOPs ({ours['glue']} against {large['glue']}), "
        f"1/{1 / ratios[1]:.1f} of RoBERTa's ({roberta['glue']}), 1/{rows['xlnet']['times']} of "
        f"XLNet's ({rows['xlnet']['glue']})"
    )
    return Settled(ratios, detail)


def _against(ours: dict[str, float], theirs: dict[str, float]) -> tuple[float, float]:
    """GLUE points over another row, and FLOPs as a multiple of its."""
    return round(ours["glue"] - theirs["glue"], 1), ours["flops"] / theirs["flops"]


def small_against_small() -> Settled:
    rows = _rows("small")
    ours, bert, gpt = (rows[name] for name in ("electra_small", "bert_small", "gpt"))
    difference = _against(ours, bert)
    detail = (
        f"{ours['glue']} against {bert['glue']}, {difference[1]:g} times the FLOPs; GPT "
        f"{gpt['glue']} with {gpt['flops'] / ours['flops']:.0f} times as many"
    )
    return Settled(difference, detail)


def large_longer() -> Settled:
    rows = _rows("large")
    names = ("own_bert", "electra_400k", "roberta_500k", "electra_1750k")
    scores = ", ".join(
        f"{name.replace('_', ' ')} {rows[name]['glue']} ({rows[name]['times']}×)" for name in names
    )
    gained = round(rows["electra_400k"]["glue"] - rows["own_bert"]["glue"], 1)
    return Settled(gained, scores)


def cost_of_base() -> Settled:
    rows = _rows("small")
    ours, theirs = rows["electra_base"]["flops"], rows["bert_base"]["flops"]
    return Settled(ours / theirs, f"{ours:.1e} / {theirs:.1e} = {ours / theirs:g}")


def scores_of_base() -> Settled:
    dev, test = _rows("small")["electra_base"]["glue"], printed("electra")["released"]["base"]
    bert = _rows("small")["bert_base"]["glue"]
    scores = f"{dev} on eight development sets, {test} on the test sets"
    return Settled((dev, test), f"{scores}; beside it BERT-base has {bert}")


# ================================================================ why it works


def _steps_in_the_paper() -> dict[str, float]:
    table = printed("electra")["stones"]
    return {name: table[name] for name in ABLATION_STEPS}


def step_by_step() -> Settled:
    """Points over BERT of each ablation step of Table 5."""
    points = _steps_in_the_paper()
    gained = {name: round(score - points["BERT"], 1) for name, score in points.items()}
    detail = ", ".join(f"{name} {points[name]} ({gained[name]:+.1f})" for name in points)
    return Settled(tuple(gained.values()), detail)


def all_tokens() -> Settled:
    """The fraction of ELECTRA's gain over BERT that predicting a word at every token brings."""
    points = _steps_in_the_paper()
    gain = points["ELECTRA"] - points["BERT"]
    brought = (points["All-tokens MLM"] - points["BERT"]) / gain
    lost = (points["ELECTRA"] - points["ELECTRA 15%"]) / gain
    detail = (
        f"all-tokens MLM has {brought:.0%} of the {gain:.1f} points; with 15% in the loss, ELECTRA "
        f"loses {lost:.0%} of them"
    )
    return Settled(brought, detail)


def tying() -> Settled:
    table = {k: v for k, v in printed("electra")["tying"].items() if isinstance(v, float)}
    scores = ", ".join(f"{tied} {score}" for tied, score in table.items())
    return Settled(tuple(table.values()), f"GLUE by what is shared: {scores}")


def not_adversarial() -> Settled:
    """Points of masked-token accuracy that the adversarial generator falls behind; and how many of
    our generator's weights the discriminator's loss reaches."""
    table = printed("electra")["adversarial"]
    model = electra_from(_narrow(16, vocab_size=50), size=1, tied="none")
    ids, at = torch.arange(5, 25)[None], torch.tensor([3, 8])
    loss = electra_loss()(model(ids, predict_at=at), {"labels": ids.flatten()[at]})["rtd"]
    weights = list(model.generator.parameters())
    reached = sum(
        gradient is not None for gradient in torch.autograd.grad(loss, weights, allow_unused=True)
    )
    detail = (
        f"masked-token accuracy: {table['adversarial']}% adversarial, {table['mlm']}% by MLM; the "
        f"discriminator's loss reaches {reached} of our generator's {len(weights)} weight tensors"
    )
    return Settled((table["adversarial"] - table["mlm"], reached), detail)


def name_of_the_checkpoint() -> Settled:
    """Whether we know the printed name, and the one that the repository has."""
    known = {source.repository for source in KNOWN.values()} | set(KNOWN)
    base = "google/electra-base-"
    exists = tuple(base + ending in known for ending in ("discriminative", "discriminator"))
    names = sorted(name for name in known if name.startswith(base))
    return Settled(exists, f"known are {', '.join(names)}")


# ================================================================ what our own runs reached


MEASURES = {
    "kinds": "slot-category probe", "jobs": "unstated-fact probe", "auc": "ROC-AUC",
    "repeated": "swapped-word probe, repeated words", "tuned_mean": "fine-tuned, mean pooling",
}  # fmt: skip
FULL = "generator 1/4"  # of the variants: embeddings all tied, λ on the discriminator


def steps_here(measure: str, rate: float | None = None) -> Settled:
    """At one learning rate, or each step at its own best one."""
    runs = [f"{name}, {rate or best_rate(name):g}" for name in ABLATION_STEPS]
    return compared("07_stepping_stones", measure, runs[1:], runs[0], MEASURES[measure])


def rates_matter() -> Settled:
    """ELECTRA less BERT, on the slot-category probe: at one rate, and at each one's best."""
    one, own = (steps_here("kinds", rate) for rate in (0.001, None))
    return Settled(
        (one.value[-1], own.value[-1]), f"at 0.001, {one.detail}; own rates, {own.detail}"
    )


def past(measure: str) -> Settled:
    return compared("07_past_plateau", measure, ["ELECTRA"], "BERT", MEASURES[measure])


@lru_cache(maxsize=1)
def fits() -> Settled:
    """Swapped repeated words: ELECTRA with a generator of half the width (its worst seed), BERT and
    random initialisation (their best ones); counting, of repeated words and of facts."""
    runs = past_runs("repeated")
    value = (
        min(generator_runs("repeated")["generator 1/2"]), max(runs["BERT"]),
        max(runs["random initialisation"]),
        *(counted_swaps(prepare().swapped[kind]) for kind in ("repeated", "fact")),
    )  # fmt: skip
    detail = (
        "worst of five seeds {:.0%}; best of BERT {:.0%}, of random initialisation {:.0%}; "
        "counting {:.0%}, facts {:.0%}"
    )
    return Settled(value, detail.format(*value))


def variants(runs: Sequence[str], measure: str = "kinds") -> Settled:
    return compared("07_variants", measure, runs, FULL, MEASURES[measure])
