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
from course_lib.teaching.claims import (
    Settled,
    all_near,
    cited,
    compared,
    computed,
    is_,
    measured,
    near,
    printed,
)
from course_lib.text.world import MicroWorld, story_sequences

from .ablation_steps import ABLATION_STEPS
from .experiments import ENDS, micro_electra

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


def _read_by_each() -> Settled:
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
    said = (
        f"the generator read {counts[0]} [MASK], the discriminator {counts[1]}: “{masked}” and "
        f"“{corrupt}” for “{x}”"
    )
    return Settled((counts[0] > 0, counts[1]), said)


def _right_draws() -> Settled:
    """How often the sampled word is the true one; how often such a token is labelled 0; how many of
    all tokens are labelled 1."""
    _, _, batch = _stories()
    filled = _read()[1].corrupted_ids
    at, original_ids = batch.inputs["predict_at"], batch.targets["labels"]
    labels = replaced_labels(filled, at, original_ids)
    right = filled.flatten()[at] == original_ids
    zero = float((labels.flatten()[at][right] == 0).float().mean())
    ones = float(labels.sum() / batch.inputs["attention_mask"].sum())
    said = (
        f"our ELECTRA's generator samples the true word at {right.float().mean():.0%} of the "
        f"masked positions; {zero:.0%} of these are labelled 0, {ones:.1%} of all tokens 1"
    )
    return Settled((float(right.float().mean()), zero), said)


def _two_conventions() -> Settled:
    """The loss with 1 = replaced less that with 1 = original and the logit's sign turned; and less
    that with the sign forgotten."""
    draw = torch.Generator().manual_seed(0)
    logits, replaced = torch.randn(100, generator=draw) - 2, torch.arange(100) < 15
    bce = F.binary_cross_entropy_with_logits
    code = bce(logits, replaced.float())
    paper, forgotten = (bce(x, (~replaced).float()) for x in (-logits, logits))
    found = float((code - paper).abs()), float((code - forgotten).abs())
    said = f"the two losses differ by {found[0]:.0e}; with the sign forgotten by {found[1]:.2f}"
    return Settled(found, said)


def _left_as_they_are() -> Settled:
    """Of the selected positions under the released mix: fractions that become [MASK], that stay."""
    special = SpecialIds(pad=0, unk=1, cls=2, sep=3, mask=4, vocab_size=30_522)
    draw = torch.Generator().manual_seed(0)
    ids = torch.randint(5, special.vocab_size, (300, 100), generator=draw)
    sequences = PackedSequences(ids, torch.ones_like(ids), torch.zeros_like(ids))
    done = mask_sequences(sequences, special, mix=RELEASED_MIX).done
    found = tuple(float((done == what).float().mean()) for what in (MASKED, KEPT))
    said = f"of {len(done):,} selected positions {found[0]:.1%} become [MASK], {found[1]:.1%} stay"
    return Settled(found, said)


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
        found = electra_loss()(out, {"labels": ids.flatten()[at]})
    return float(found["mlm"]), float(found["rtd"])


def _loss_at_the_start() -> Settled:
    """The discriminator's part of the loss at the start: λ before its loss, before the other."""
    weight = printed("electra")["loss"]["disc_weight"]
    mlm, rtd = math.log(ElectraConfig().vocab_size), math.log(2)
    paper = weight * rtd / (weight * rtd + mlm)
    lecture = rtd / (rtd + weight * mlm)
    found = _first_losses()
    said = (
        f"ln 30,522 = {mlm:.1f} and ln 2 = {rtd:.2f} (random initialisation: {found[0]:.1f}, "
        f"{found[1]:.2f}): the discriminator has {paper:.0%} of the loss, or {lecture:.2%}"
    )
    return Settled((paper, lecture), said)


# ================================================================ what it costs


def _same_size() -> Settled:
    """FLOPs of a text in ELECTRA-base against BERT-base: the kept network, and both."""
    config = published("electra", "base", ElectraConfig)
    bert = encoder_flops(published("bert", "base"), TOKENS)
    kept = encoder_flops(config, TOKENS)
    both = kept + encoder_flops(generator_config(config, GENERATOR_SIZE["base"]), TOKENS)
    said = (
        f"{kept / 1e9:.2f} GFLOPs for {TOKENS} tokens, BERT-base {bert / 1e9:.2f}; while "
        f"training, the generator adds {both / kept - 1:.0%}"
    )
    return Settled((kept / bert, both / kept), said)


def _rows(table: str) -> dict[str, dict[str, float]]:
    return {k: v for k, v in printed("electra")[table].items() if isinstance(v, dict)}


def _quarter_of_whose() -> Settled:
    """FLOPs of ELECTRA-400K: times BERT-large's, and as a fraction of RoBERTa-500K's."""
    rows = _rows("large")
    ours = rows["electra_400k"]
    large, roberta = rows["bert_large"], rows["roberta_500k"]
    found = ours["flops"] / large["flops"], ours["flops"] / roberta["flops"]
    said = (
        f"{found[0]:.1f} times BERT-large's FLOPs ({ours['glue']} against {large['glue']}), "
        f"1/{1 / found[1]:.1f} of RoBERTa's ({roberta['glue']}), 1/{rows['xlnet']['times']} of "
        f"XLNet's ({rows['xlnet']['glue']})"
    )
    return Settled(found, said)


def _against(ours: dict[str, float], theirs: dict[str, float]) -> tuple[float, float]:
    """GLUE points over another row, and FLOPs as a multiple of its."""
    return round(ours["glue"] - theirs["glue"], 1), ours["flops"] / theirs["flops"]


def _base_against_large() -> Settled:
    ours, theirs = _rows("small")["electra_base"], _rows("large")["bert_large"]
    found = _against(ours, theirs)
    said = f"{ours['glue']} against {theirs['glue']}, with {found[1]:.2f} times the FLOPs"
    return Settled(found, said)


def _small_against_small() -> Settled:
    rows = _rows("small")
    ours, bert, gpt = (rows[name] for name in ("electra_small", "bert_small", "gpt"))
    found = _against(ours, bert)
    said = (
        f"{ours['glue']} against {bert['glue']}, {found[1]:g} times the FLOPs; GPT "
        f"{gpt['glue']} with {gpt['flops'] / ours['flops']:.0f} times as many"
    )
    return Settled(found, said)


def _large_longer() -> Settled:
    rows = _rows("large")
    names = ("own_bert", "electra_400k", "roberta_500k", "electra_1750k")
    said = ", ".join(
        f"{name.replace('_', ' ')} {rows[name]['glue']} ({rows[name]['times']}×)" for name in names
    )
    gained = round(rows["electra_400k"]["glue"] - rows["own_bert"]["glue"], 1)
    return Settled(gained, said)


def _cost_of_base() -> Settled:
    rows = _rows("small")
    ours, theirs = rows["electra_base"]["flops"], rows["bert_base"]["flops"]
    return Settled(ours / theirs, f"{ours:.1e} / {theirs:.1e} = {ours / theirs:g}")


def _scores_of_base() -> Settled:
    dev, test = _rows("small")["electra_base"]["glue"], printed("electra")["released"]["base"]
    bert = _rows("small")["bert_base"]["glue"]
    said = f"{dev} on eight development sets, {test} on the test sets"
    return Settled((dev, test), f"{said}; beside it BERT-base has {bert}")


# ================================================================ why it works


def _steps_in_the_paper() -> dict[str, float]:
    table = printed("electra")["stones"]
    return {name: table[name] for name in ABLATION_STEPS}


def _step_by_step() -> Settled:
    """Points over BERT of each ablation step of Table 5."""
    points = _steps_in_the_paper()
    gained = {name: round(score - points["BERT"], 1) for name, score in points.items()}
    said = ", ".join(f"{name} {points[name]} ({gained[name]:+.1f})" for name in points)
    return Settled(tuple(gained.values()), said)


def _all_tokens() -> Settled:
    """The fraction of ELECTRA's gain over BERT that predicting a word at every token brings."""
    points = _steps_in_the_paper()
    gain = points["ELECTRA"] - points["BERT"]
    brought = (points["All-tokens MLM"] - points["BERT"]) / gain
    lost = (points["ELECTRA"] - points["ELECTRA 15%"]) / gain
    said = (
        f"all-tokens MLM has {brought:.0%} of the {gain:.1f} points; with 15% in the loss, ELECTRA "
        f"loses {lost:.0%} of them"
    )
    return Settled(brought, said)


def _tying() -> Settled:
    table = {k: v for k, v in printed("electra")["tying"].items() if isinstance(v, float)}
    said = ", ".join(f"{tied} {score}" for tied, score in table.items())
    return Settled(tuple(table.values()), f"GLUE by what is shared: {said}")


def _not_adversarial() -> Settled:
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
    said = (
        f"masked-token accuracy: {table['adversarial']}% adversarial, {table['mlm']}% by MLM; the "
        f"discriminator's loss reaches {reached} of our generator's {len(weights)} weight tensors"
    )
    return Settled((table["adversarial"] - table["mlm"], reached), said)


def _name_of_the_checkpoint() -> Settled:
    """Whether we know the printed name, and the one that the repository has."""
    known = {source.repository for source in KNOWN.values()} | set(KNOWN)
    base = "google/electra-base-"
    found = tuple(base + ending in known for ending in ("discriminative", "discriminator"))
    names = sorted(name for name in known if name.startswith(base))
    return Settled(found, f"known are {', '.join(names)}")


# ================================================================ what our own runs reached


MEASURES = {
    "kinds": "slot-category probe", "jobs": "unstated-fact probe", "auc": "ROC-AUC",
}  # fmt: skip
FULL = "generator 1/4"  # of the variants: embeddings all tied, λ on the discriminator


def _steps_here(measure: str, setting: str = "equal steps") -> Settled:
    points = ABLATION_STEPS if setting == "equal steps" else ENDS
    runs = [f"{setting}: {name}" for name in points]
    return compared("07_stepping_stones", measure, runs[1:], runs[0], MEASURES[measure])


def _variants(runs: Sequence[str], measure: str = "kinds") -> Settled:
    return compared("07_variants", measure, runs, FULL, MEASURES[measure])


LECTURE_000, LECTURE_001 = "source lecture 000", "source lecture 001"

CLAIMS = (
    cited(
        id="E52",
        they_say="replace token detection",
        who="source lectures 000 and 001",
        it_is="replaced token detection, RTD: what is detected is which tokens *were* replaced",
        settled_by="cited: ELECTRA (Clark et al. 2020), section 2",
    ),
    measured(
        id="E32",
        they_say="words are replaced instead of masked",
        who=LECTURE_000,
        it_is="both: the generator reads [MASK]; only the discriminator never sees one",
        settled_by="what each network of our trained ELECTRA reads, here",
        settle=_read_by_each,
        accepts=is_((True, 0)),
        rejected=(False, 0),
    ),
    measured(
        id="E61",
        they_say="labels [0, 0, 1, 0, 0, 0], 1 = replaced",
        who=LECTURE_001,
        it_is=(
            "the code's convention; the paper's D is P(original). And where the generator samples "
            "the true word, nothing was replaced: label 0"
        ),
        settled_by="labels of the words that our trained ELECTRA samples, here",
        settle=_right_draws,
        accepts=lambda value: 0 < value[0] < 1 and value[1] == 1.0,
        rejected=(0.9, 0.0),  # every masked position called replaced
    ),
    computed(
        id="slip 7 sign",
        they_say="D is the probability that a token is original; the code's labels say replaced",
        who="ELECTRA, section 2, against the released code",
        it_is="the same loss, with the sign of the logit turned; one must not mix the two",
        settled_by="both losses on fixed random logits",
        settle=_two_conventions,
        accepts=lambda found: found[0] < 1e-6 and found[1] > 0.1,
        rejected=(0.5, 0.0),
    ),
    measured(
        id="slip 7 mask",
        they_say="every selected position becomes [MASK]",
        who="ELECTRA, section 2",
        it_is="in the released code 85% of them; 15% stay as they are, and no random words",
        settled_by="the released mix on 300 sequences, counted here",
        settle=_left_as_they_are,
        accepts=all_near((0.85, 0.15), 0.02),
        rejected=(1.0, 0.0),
    ),
    computed(
        id="E29",
        they_say="L = L_disc + λ · L_MLM with λ = 50",
        who=LECTURE_000,
        it_is=(
            "L_MLM + λ · L_disc: a yes or no is a small loss beside one word of 30,522, and λ "
            "lifts it"
        ),
        settled_by="both losses before any learning: ln V and ln 2, and at random initialisation",
        settle=_loss_at_the_start,
        accepts=all_near((0.770, 0.0013), 0.001),
        rejected=(0.0013, 0.770),
    ),
    computed(
        id="ablation steps",
        they_say="from BERT to ELECTRA in steps: 82.2, 82.4, 82.4, 84.3, 85.0",
        who="ELECTRA, Table 5",
        it_is="no [MASK] in what is read: 0.2 points; every token in the loss: most of the rest",
        settled_by="differences in ELECTRA's Table 5",
        settle=_step_by_step,
        accepts=is_((0.0, 0.2, 0.2, 2.1, 2.8)),
        rejected=(0.0, 2.1, 2.1, 0.2, 2.8),  # were [MASK] the trouble
    ),
    computed(
        id="all tokens",
        they_say="the gain comes from learning from all tokens, not from 15%",
        who="ELECTRA, Table 5; source lectures 000 and 001",
        it_is="so for the most part: predicting words everywhere brings three quarters of it",
        settled_by="differences in ELECTRA's Table 5",
        settle=_all_tokens,
        accepts=near(0.75, 0.005),
        rejected=0.15,
    ),
    cited(
        id="generator size",
        they_say="a generator of a quarter to half the discriminator's width is best",
        who="ELECTRA, section 3.2",
        it_is="so, of those the authors tried: as large as the discriminator is not better",
        settled_by="cited: ELECTRA, section 3.2",
    ),
    computed(
        id="tying",
        they_say="generator and discriminator share their embeddings",
        who="ELECTRA, section 3.2; source lecture 000",
        it_is="83.6 without, 84.3 with token embeddings, 84.4 with all weights: the former do it",
        settled_by="the scores in ELECTRA's section 3.2",
        settle=_tying,
        accepts=is_((83.6, 84.3, 84.4)),
        rejected=(84.4, 84.3, 83.6),
    ),
    computed(
        id="not adversarial",
        they_say="trained against the discriminator, as in a GAN, the generator was worse",
        who="ELECTRA, section 3.2",
        it_is="masked-token accuracy 58% against 65%; ELECTRA's learns from its own loss alone",
        settled_by="the accuracies in ELECTRA's section 3.2; gradients of our model, here",
        settle=_not_adversarial,
        accepts=is_((-7, 0)),
        rejected=(7, 20),
    ),
    computed(
        id="E31",
        they_say="faster training and inference",
        who=LECTURE_000,
        it_is=(
            "inference costs the same as BERT's of that size, and a training step *more*; what is "
            "gained, is gained for the same FLOPs"
        ),
        settled_by="FLOPs of the blocks by formula",
        settle=_same_size,
        accepts=lambda value: value[0] == 1.0 and 1.05 < value[1] < 1.3,
        rejected=(0.25, 0.25),
    ),
    computed(
        id="E30",
        they_say="ELECTRA-large reaches BERT-large with 25% of its training compute",
        who=LECTURE_000,
        it_is=(
            "it reaches *RoBERTa* and XLNet with less than a quarter of theirs; BERT-large it "
            "outdoes by 5 points, with 3.7 times its FLOPs"
        ),
        settled_by="FLOPs in ELECTRA's Table 2",
        settle=_quarter_of_whose,
        accepts=all_near((3.74, 0.222), 0.01),
        rejected=(0.25, 0.25),
    ),
    computed(
        id="base against large",
        they_say="ELECTRA-base is competitive with BERT-large",
        who=LECTURE_001,
        it_is="better by 1.1 points, with a third of the FLOPs",
        settled_by="ELECTRA's Tables 1 and 2",
        settle=_base_against_large,
        accepts=all_near((1.1, 0.337), 0.001),
        rejected=(-1.8, 0.337),  # BERT-base against BERT-large
    ),
    computed(
        id="small against small",
        they_say="ELECTRA-small is better than BERT-small",
        who="ELECTRA, Table 1; source lecture 001",
        it_is="by 4.8 points with the same FLOPs; it is also ahead of GPT",
        settled_by="ELECTRA's Table 1",
        settle=_small_against_small,
        accepts=is_((4.8, 1.0)),
        rejected=(-1.0, 1.0),  # after 6.25% of the steps
    ),
    computed(
        id="large, same FLOPs",
        they_say="with the same compute ELECTRA is better",
        who="ELECTRA, Table 2; source lecture 001",
        it_is="so: 1.8 points over the authors' own BERT; trained longer, ahead of RoBERTa",
        settled_by="ELECTRA's Table 2",
        settle=_large_longer,
        accepts=is_(1.8),
        rejected=5.0,  # over the published BERT-large, which had fewer FLOPs
    ),
    computed(
        id="E45 ELECTRA",
        they_say="ELECTRA-base: GLUE 81.6",
        who=LECTURE_000,
        it_is=(
            "85.1 on development sets, 82.7 on test sets. One row of a table that mixes recipes; "
            "only this row is read here"
        ),
        settled_by="ELECTRA's Table 1; the README of the released code",
        settle=_scores_of_base,
        accepts=is_((85.1, 82.7)),
        rejected=(81.6, 81.6),
    ),
    computed(
        id="E46 ELECTRA",
        they_say="ELECTRA-base: a quarter of BERT-base's training cost",
        who=LECTURE_000,
        it_is="the same cost; it is better for it. Only this row of the column is read here",
        settled_by="FLOPs in ELECTRA's Table 1",
        settle=_cost_of_base,
        accepts=is_(1.0),
        rejected=0.25,
    ),
    computed(
        id="E63",
        they_say="google/electra-base-discriminative",
        who=LECTURE_001,
        it_is="google/electra-base-discriminator",
        settled_by="the names that load_pretrained knows, which are the repository's",
        settle=_name_of_the_checkpoint,
        accepts=is_((False, True)),
        rejected=(True, False),
    ),
    measured(
        id="ablation here",
        they_say="over BERT, in points: 0.2, 0.2, 2.1 with all tokens, 2.8 ELECTRA",
        who="ELECTRA, Table 5",
        it_is=(
            "not here: after 800 steps BERT is ahead of every other ablation step, and the two "
            "that predict replaced or not are last"
        ),
        settled_by=(
            "the slot-category probe, data/results/07_stepping_stones.json: a regression check"
        ),
        settle=lambda: _steps_here("kinds"),
        accepts=lambda value: max(value) < 0 and max(value[1], value[3]) < min(value[0], value[2]),
        rejected=(0.2, 0.2, 2.1, 2.8),  # points of another score
    ),
    measured(
        id="ablation here, texts",
        they_say="over BERT, in points: 0.2, 0.2, 2.1 with all tokens, 2.8 ELECTRA",
        who="ELECTRA, Table 5",
        it_is=("not told here: all are within a few points, and all below random initialisation"),
        settled_by=(
            "the unstated-fact probe, data/results/07_stepping_stones.json: a regression check"
        ),
        settle=lambda: _steps_here("jobs"),
        accepts=lambda value: max(map(abs, value)) < 0.05,
        rejected=(0.2, 0.2, 2.1, 2.8),
    ),
    measured(
        id="ablation here, FLOPs",
        they_say="at equal FLOPs: the same points",
        who="ELECTRA, Table 5",
        it_is=("not here: BERT, with 1,310 steps, is further ahead than at equal steps"),
        settled_by=(
            "as many steps as cost what ELECTRA's do, "
            "data/results/07_stepping_stones.json: a regression check"
        ),
        settle=lambda: _steps_here("kinds", "equal arithmetic"),
        accepts=lambda value: value[0] < -0.3,
        rejected=(2.8,),
    ),
    measured(
        id="generator size here",
        they_say="a generator of a quarter to half the discriminator's width is best",
        who="ELECTRA, section 3.2",
        it_is=(
            "a half has a higher masked-token accuracy; the discriminator gains less than the "
            "seeds differ"
        ),
        settled_by="a half against a quarter, data/results/07_variants.json: a regression check",
        settle=lambda: _variants(("generator 1/2",)),
        accepts=lambda value: abs(value[0]) < 0.1,
        rejected=(2.0,),  # widths, not differences
    ),
    measured(
        id="tying here",
        they_say="nothing shared 83.6, the token embeddings shared 84.3, all weights 84.4",
        who="ELECTRA, section 3.2",
        it_is=(
            "so here too: without shared embeddings each seed is worse than the same seed with them"
        ),
        settled_by="three seeds each, data/results/07_variants.json: a regression check",
        settle=lambda: _variants(("untied",)),
        accepts=lambda value: -0.2 < value[0] < -0.03,
        rejected=(83.6,),  # a score, not a difference
    ),
    measured(
        id="λ here",
        they_say="L = L_disc + λ · L_MLM with λ = 50",
        who=LECTURE_000,
        it_is=(
            "λ belongs to the discriminator: on the generator, the ROC-AUC is far lower, though "
            "above chance level"
        ),
        settled_by=(
            "the same ELECTRA with λ on either loss, "
            "data/results/07_variants.json: a regression check"
        ),
        settle=lambda: _variants(("λ on the generator",), "auc"),
        accepts=lambda value: -0.25 < value[0] < -0.1,
        rejected=(-50.0,),  # λ, not a difference
    ),
)
