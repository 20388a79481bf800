"""What the members' own programs do where ours do otherwise: each switch against a plain version of
the program's rule, and no switch changes what is trained without it."""

from __future__ import annotations

import math
from collections import Counter
from dataclasses import replace
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest
import torch
import torch.nn.functional as F
from objective_parts import draw_sequences, special_ids
from test_ernie_tsinghua import drawn, drawn_batch, plain_model
from torch import nn

from course_lib.family.vit import AUTHORS, VitConfig, vit_encoder
from course_lib.objectives.distillation import PUBLISHED_WEIGHTS, TEMPERATURE, tinybert_loss
from course_lib.objectives.entity_alignment import DEA_MIX, spoil_alignments
from course_lib.objectives.knowledge_transfer import transfer_loss
from course_lib.objectives.pretraining import pretraining_batches
from course_lib.objectives.released_masking import RULES, mask_as_released, rare_token_weights
from course_lib.objectives.sequences import Batch, PackedSequences
from course_lib.text.english import Question
from course_lib.text.features import question_sequences
from course_lib.text.wordpiece import WordPiece
from course_lib.train import finetuning
from course_lib.train.layer_rates import gradual_unfreezing
from course_lib.train.loop import fit
from course_lib.train.pretrain_recipe import ObjectivePart, PretrainRecipe, TrainingPart
from course_lib.train.schedule import warmup_then_linear

SPECIAL = special_ids(1_000)

# ---------------------------------------------------------------- BERT's learning rate


def plain_rate(step: int, steps: int, climb: int) -> float:
    """BERT's optimization.py: a line from 1 at step 0 to 0 at the end; during the climb another."""
    falling = 1 - step / steps
    return step / climb if step < climb else falling


@pytest.mark.parametrize(
    ("steps", "warmup"), [(100, 0.1), (30, 0.29), (7, 0.0), (20, 1.0), (1, 0.5)]
)
def test_the_released_schedule_drops_after_its_climb(steps: int, warmup: float):
    ours = [warmup_then_linear(s, steps, warmup, as_released=True) for s in range(steps)]
    climb = int(steps * warmup)
    assert ours == pytest.approx([plain_rate(s, steps, climb) for s in range(steps)], abs=1e-12)
    if 0 < climb < steps:
        assert ours[0] == 0 and max(ours[climb:]) == ours[climb] == pytest.approx(1 - climb / steps)


def rates_of(**settings: Any) -> list[float]:
    """What Adam moves a weight by that always meets the same gradient: the rate of each step."""
    model = nn.Linear(1, 1, bias=False)
    model.weight.data.zero_()
    seen: list[float] = []
    fit(
        model, lambda out, targets: {"total": out.sum()},
        lambda step: Batch({"input": torch.ones(1, 1)}, {}),
        steps=10, warmup=0.2, learning_rate=0.5, weight_decay=0.0, precision="float32",
        callbacks=[lambda report: seen.append(-model.weight.item())], **settings,
    )  # fmt: skip
    return np.diff([0.0, *seen]).tolist()


def test_warm_up_stable_decay_by_hand():
    shares = [warmup_then_linear(s, 10, 0.2, decay=0.4) for s in range(10)]
    assert shares == pytest.approx([0.5, 1, 1, 1, 1, 1, 1, 0.75, 0.5, 0.25])
    assert warmup_then_linear(9, 10, 0.5, decay=0.9) == pytest.approx(0.2)  # no room to be stable


@pytest.mark.parametrize(("released", "decay"), [(False, 1.0), (True, 1.0), (False, 0.3)])
def test_the_loop_follows_each_schedule(
    released: bool, decay: float, monkeypatch: pytest.MonkeyPatch
):
    monkeypatch.setattr("course_lib.train.loop._positions", lambda batch: 1)
    rates = [0.5 * warmup_then_linear(s, 10, 0.2, released, decay) for s in range(10)]
    assert rates_of(released_schedule=released, decay=decay) == pytest.approx(rates, abs=1e-5)


def test_older_recipes_say_nothing_of_newer_settings():
    recipe = PretrainRecipe("one")
    found = recipe.as_dict()
    assert not {"released_schedule", "optimizer", "decay"} & found["training"].keys()
    assert "masking" not in found["objective"]
    newer = replace(
        recipe,
        training=TrainingPart(released_schedule=True),
        objective=ObjectivePart(masking="xlm"),
    ).as_dict()
    assert newer["training"]["released_schedule"] and newer["objective"]["masking"] == "xlm"


# ---------------------------------------------------------------- masks


def full_sequences(count: int, tokens: int = 64) -> PackedSequences:
    """[CLS] words [SEP] without padding, ids as frequent as words are: id i with 1/i."""
    make = torch.Generator().manual_seed(0)
    shares = 1 / torch.arange(1.0, SPECIAL.vocab_size - 4)
    ids = 5 + torch.multinomial(shares, count * tokens, replacement=True, generator=make)
    ids = ids.view(count, tokens)
    ids[:, 0], ids[:, -1] = SPECIAL.cls, SPECIAL.sep
    return PackedSequences(ids, torch.ones_like(ids), torch.zeros_like(ids))


def masked_by(rule: str, sequences: PackedSequences, **settings: Any) -> Any:
    counts = sequences.input_ids.flatten().bincount(minlength=SPECIAL.vocab_size)
    return mask_as_released(sequences, SPECIAL, rule, token_counts=counts, **settings)


@pytest.mark.parametrize("rule", RULES)
def test_a_released_mask_is_a_function_of_seed_epoch_and_example(rule: str):
    sequences = draw_sequences(SPECIAL, 64, 64)
    counts = torch.ones(SPECIAL.vocab_size)
    settings: Any = {"token_counts": counts, "seed": 1, "epoch": 2}
    base = mask_as_released(sequences, SPECIAL, rule, **settings)
    real = sequences.attention_mask.bool()
    assert not base.selected[~real].any() and base.selected.any()
    some = torch.tensor([40, 3, 17])
    columns = sequences.input_ids, sequences.attention_mask, sequences.token_type_ids
    wider = PackedSequences(*(torch.cat([x[some], x[some] * 0], dim=1) for x in columns))
    alone = mask_as_released(wider, SPECIAL, rule, **settings, examples=some)
    assert torch.equal(alone.input_ids[:, :64], base.input_ids[some])
    for other in ({"seed": 2}, {"epoch": 3}, {"first_example": 1}):
        changed = mask_as_released(sequences, SPECIAL, rule, **(settings | other))
        assert not torch.equal(changed.selected, base.selected)


def test_roberta_masks_its_separators_and_rounds_at_random():
    """Of 64 tokens 9.6 on average, 9 or 10; every position alike; no special token as the random
    one. (fairseq: floor(0.15 n + uniform) positions of n, drawn without replacement.)"""
    rows = 6_000
    masked = masked_by("roberta", full_sequences(rows))
    number = masked.selected.sum(1)
    assert set(number.tolist()) == {9, 10}
    assert abs(number.double().mean() - 9.6) < 5 * math.sqrt(0.6 * 0.4 / rows)
    share = masked.selected.double().mean(0)
    assert (share - 0.15).abs().max() < 5 * math.sqrt(0.15 * 0.85 / rows)
    at_ends = masked.selected[:, [0, -1]].sum() / masked.selected.sum()
    assert at_ends.item() == pytest.approx(2 / 64, abs=0.002)  # 3.1% of the selected
    random_ids = masked.input_ids[masked.action == 2]
    drawn_ids = set(random_ids.tolist())
    assert not drawn_ids & {SPECIAL.pad, SPECIAL.unk, SPECIAL.cls, SPECIAL.sep}
    assert SPECIAL.mask in drawn_ids  # fairseq adds <mask> last: it may be the random one
    assert 0.09 < len(random_ids) / len(masked.predict_at) < 0.11


def test_electra_draws_positions_again():
    """9 draws among the 62 words of 64 tokens, since 0.155 · 64 is 9.92: 62 (1 − (61/62)⁹) distinct
    ones, 8.4."""
    sequences = full_sequences(6_000)
    masked = masked_by("electra", sequences, mix=(0.85, 0.0, 0.15))
    number = masked.selected.sum(1).double()
    expected = 62 * (1 - (61 / 62) ** 9)
    assert number.max() <= 9 and number.mean().item() == pytest.approx(expected, abs=0.05)
    assert not masked.selected[:, [0, -1]].any() and (masked.action != 2).all()
    plain = np.random.default_rng(0).integers(0, 62, (6_000, 9))
    histogram = Counter(len(set(row)) for row in plain.tolist())
    for distinct, often in histogram.items():
        ours = int((number == distinct).sum())
        assert abs(ours - often) < 5 * math.sqrt(2 * max(often, 25))


def test_distilbert_prefers_rare_tokens():
    """Selected at random, one after the other, each with a weight of count^-0.7 (numpy's draw)."""
    sequences = full_sequences(500, 24)
    ids = sequences.input_ids
    counts = ids.flatten().bincount(minlength=SPECIAL.vocab_size)
    weights = np.maximum(counts.numpy(), 1) ** -0.7
    weights[[SPECIAL.pad, SPECIAL.unk, SPECIAL.cls, SPECIAL.sep, SPECIAL.mask]] = 0
    ours = rare_token_weights(counts, SPECIAL)
    assert torch.allclose(ours, torch.from_numpy(weights), rtol=1e-12)
    make, plain, found = np.random.default_rng(0), [], []
    for epoch in range(6):
        masked = mask_as_released(
            ids_as(ids), SPECIAL, "distilbert", token_counts=counts, epoch=epoch
        )
        assert (masked.selected.sum(1) == 4).all()
        found.append(counts[masked.original_ids].double())
    for row in ids.numpy():
        p = weights[row] / weights[row].sum()
        chosen = make.choice(24, (4), replace=False, p=p)
        plain.append(counts.numpy()[row[chosen]])
    ours_mean, plain_mean = torch.cat(found).log().mean(), np.log(np.concatenate(plain)).mean()
    alike = counts[masked_by("bert", sequences).original_ids].double().log().mean()
    assert ours_mean.item() == pytest.approx(plain_mean, abs=0.15) and ours_mean < alike - 1
    no_smoothing = masked_by("distilbert", sequences, smoothing=0.0)
    assert counts[no_smoothing.original_ids].double().log().mean() > alike - 0.2


def ids_as(ids: torch.Tensor) -> PackedSequences:
    return PackedSequences(ids, torch.ones_like(ids), torch.zeros_like(ids))


@pytest.mark.parametrize(
    ("settings", "says"),
    [
        ({"rule": "electre"}, r"masking='electre' was given; expected one of bert, roberta"),
        ({"rule": "roberta", "word_of": True}, "with whole words or spans; expected single tokens"),
    ],
)
def test_a_rule_that_does_not_fit_is_refused(settings: dict[str, Any], says: str):
    sequences = full_sequences(8)
    if settings.get("word_of"):
        settings = {**settings, "word_of": sequences.input_ids}
    with pytest.raises(ValueError, match=says):
        pretraining_batches(sequences, SPECIAL, batch_size=4, **settings)
    with pytest.raises(ValueError, match="expected single tokens"):
        ObjectivePart(masking="electra", units="words")
    with pytest.raises(ValueError, match=r"token_counts of shape None were given; expected \(1000"):
        mask_as_released(sequences, SPECIAL, "distilbert")
    with pytest.raises(ValueError, match="rate=2 was given"):
        mask_as_released(sequences, SPECIAL, "roberta", rate=2)


@pytest.mark.parametrize("rule", RULES)
def test_batches_follow_the_rule(rule: str):
    sequences = full_sequences(40)
    batches = pretraining_batches(sequences, SPECIAL, batch_size=20, rule=rule, seed=3)
    inputs, targets = batches(1)
    assert torch.equal(inputs["input_ids"], batches(1).inputs["input_ids"])
    at_ends = inputs["predict_at"] % 64
    assert bool((at_ends == 0).any()) == (rule == "roberta")
    assert len(targets["labels"]) == len(inputs["predict_at"])
    if rule == "bert":
        plain = pretraining_batches(sequences, SPECIAL, batch_size=20, seed=3)(1)
        assert torch.equal(plain.inputs["input_ids"], inputs["input_ids"])


# ---------------------------------------------------------------- distillation

B, T, H, A = 2, 5, 6, 2


def both_networks() -> Any:
    """Two texts, of five and of three tokens; student and teacher of two layers."""
    make = torch.Generator().manual_seed(0)

    def network() -> Any:
        return SimpleNamespace(
            hidden_states=tuple(torch.randn(B, T, H, generator=make) for _ in range(3)),
            attention_scores=tuple(torch.randn(B, A, T, T, generator=make) for _ in range(2)),
            logits=torch.randn(B, 3, generator=make),
        )

    student = network()
    real = torch.arange(T) < torch.tensor([5, 3])[:, None]
    return SimpleNamespace(
        student=student, teacher=network(), real=real, widened=student.hidden_states
    )


def test_tinyberts_program_takes_means_over_padding():
    """task_distill.py: scores at masked keys become 0 in both, and every mean runs over all cells;
    the cross-entropy's over texts and classes."""
    out = both_networks()
    found = tinybert_loss((1, 2), prediction=1.0, as_released=True)(out, {})
    hidden = attention = 0.0
    for m in (1, 2):
        gap = out.student.hidden_states[m] - out.teacher.hidden_states[m]
        hidden += float((gap**2).sum()) / (B * T * H)
        scores = [n.attention_scores[m - 1].clone() for n in (out.student, out.teacher)]
        for x in scores:
            x[1, :, :, 3:] = 0.0
        attention += float(((scores[0] - scores[1]) ** 2).sum()) / (B * A * T * T)
    p, log_q = out.teacher.logits.softmax(-1), out.student.logits.log_softmax(-1)
    first = (out.student.hidden_states[0] - out.teacher.hidden_states[0]).square().mean()
    plain = {
        "hidden": hidden, "attention": attention, "embedding": float(first),
        "prediction": float((-p * log_q).mean()),
    }  # fmt: skip
    assert {name: found[name].item() for name in plain} == pytest.approx(plain, rel=1e-5)
    ours = tinybert_loss((1, 2), prediction=1.0)(out, {})
    assert ours["prediction"].item() == pytest.approx(3 * plain["prediction"], rel=1e-5)
    out.student.hidden_states[1][1, 3:] += 5  # padding moves the program's loss alone
    assert tinybert_loss((1, 2))(out, {})["hidden"] == ours["hidden"]
    assert tinybert_loss((1, 2), as_released=True)(out, {})["hidden"] > found["hidden"]


def test_mobileberts_program_takes_means_over_padding():
    out = both_networks()
    found = transfer_loss(over_padding=True)(out, {})
    everyone = SimpleNamespace(**{**vars(out), "real": torch.ones_like(out.real)})
    plain = transfer_loss()(everyone, {})
    assert {k: v.item() for k, v in found.items()} == {k: v.item() for k, v in plain.items()}
    ours = transfer_loss()(out, {})
    assert all(not math.isclose(ours[name], found[name], rel_tol=1e-3) for name in ours)


def test_the_temperature_is_the_programs_default():
    assert TEMPERATURE == 2.0 and PUBLISHED_WEIGHTS == {"soft": 5.0, "mlm": 2.0, "cosine": 1.0}


# ---------------------------------------------------------------- ERNIE of Tsinghua


def test_the_program_spoils_tokens_not_mentions():
    """Each token by itself; the other entity from those of the batch, the true one among them."""
    ids = torch.full((2_000, 12), -1)
    ids[:, 2:5], ids[:, 7:9] = 3, 8
    make = torch.Generator().manual_seed(0)
    spoilt = spoil_alignments(ids, 50, make, as_released=True)
    assert (spoilt[ids < 0] == -1).all() and set(spoilt.flatten().tolist()) == {-1, 3, 8}
    there, tokens = ids >= 0, 10_000
    other = int((spoilt[there] != ids[there])[spoilt[there] >= 0].sum())
    for hits, p in ((other, DEA_MIX[0] / 2), (int((spoilt[there] < 0).sum()), DEA_MIX[1])):
        assert abs(hits - tokens * p) < 5 * math.sqrt(tokens * p * (1 - p))
    assert (spoilt[:, 2:5] != spoilt[:, 2:3]).any()  # not a mention as a whole
    none = torch.full((2, 3), -1)
    assert torch.equal(spoil_alignments(none, 50, make, as_released=True), none)


@torch.no_grad()
def test_the_program_gives_cls_an_entity_of_zeros():
    """As if the graph had one entity more, all zeros, on position 0 of every text; so a text
    without entities is no longer read as by BERT."""
    changed, batch = drawn(1, cls_entity=True), drawn_batch(1)
    plain = drawn(1)
    zeros = torch.zeros(1, plain.config.entity_size, dtype=torch.float64)
    plain.encoder.entities = torch.cat([plain.encoder.entities, zeros])
    linked = {**batch, "entity_ids": batch["entity_ids"].clone()}
    linked["entity_ids"][:, 0] = len(plain.encoder.entities) - 1
    ours = changed.encoder(**batch)
    for b in range(4):
        n = int(batch["attention_mask"][b].sum())
        x, e = plain_model(plain, linked, b)
        assert (ours.last_hidden_state[b, :n] - x).abs().max() < 1e-9
        assert (ours.entity_state[b, :n] - e).abs().max() < 1e-9
    bare = {**batch, "entity_ids": None}
    assert not torch.allclose(
        changed.encoder(**bare).last_hidden_state, drawn(1).encoder(**bare).last_hidden_state
    )


# ---------------------------------------------------------------- FinBERT


def plain_finbert(layers: int, every: int, steps: int) -> dict[str, list[bool]]:
    """finbert.py: a counter goes up every `every` steps, from 1 at the first; which parts learn."""
    learns = {name: False for name in ("embeddings", "pooler", *map(str, range(layers)))}
    seen: dict[str, list[bool]] = {name: [] for name in learns}
    counter = 0
    for step in range(steps):
        counter += step % every == 0
        if 1 < counter < layers:
            for k in range(counter - 1):
                learns[str(layers - 1 - k)] = True
        if counter > layers + 1:
            learns["embeddings"] = True
        for name, value in learns.items():
            seen[name].append(value)
    return seen


@pytest.mark.parametrize(("layers", "every"), [(12, 5), (4, 3), (2, 1)])
def test_finbert_never_unfreezes_its_lowest_layers(layers: int, every: int):
    steps = every * (layers + 3)
    factor, full = (gradual_unfreezing(layers, every, x) for x in (True, False))
    names = {"embeddings": "encoder.embeddings.token.weight", "pooler": "encoder.pooler.dense.bias"}
    for name, learns in plain_finbert(layers, every, steps).items():
        parameter = names.get(name, f"encoder.stack.blocks.{name}.output_norm.weight")
        assert [factor(parameter, s) == 1 for s in range(steps)] == learns, name
        assert full(parameter, steps - 1) == 1
    assert factor("classifier.weight", 0) == 1


# ---------------------------------------------------------------- run_squad.py

WORDS = ["[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]", *"abcdefghij"]


def plain_most_context(tokens: int, room: int, stride: int) -> list[int]:
    """The window of each token: the greatest min(left, right) + 0.01 · length, of equals the
    first."""
    windows, first = [], 0
    while True:
        length = min(room, tokens - first)
        windows.append((first, length))
        if first + length == tokens:
            break
        first += min(length, stride)
    best = []
    for t in range(tokens):
        scores = [
            min(t - begin, begin + length - 1 - t) + 0.01 * length if begin <= t < begin + length
            else -1.0
            for begin, length in windows
        ]  # fmt: skip
        best.append(scores.index(max(scores)))
    return best


@pytest.mark.parametrize("tokens", [3, 8, 9, 12, 23, 24])
@pytest.mark.parametrize("stride", [1, 3, 8])
def test_an_answer_starts_where_its_token_has_most_context(
    tokens: int, stride: int, monkeypatch: pytest.MonkeyPatch
):
    make = torch.Generator().manual_seed(tokens)
    letters = torch.randint(10, (tokens,), generator=make).tolist()
    passage = " ".join("abcdefghij"[n] for n in letters)
    task = question_sequences([Question("q", "a b", passage)], WordPiece(WORDS), 13, stride)
    plain = plain_most_context(tokens, 8, stride)
    assert len(task) == max(plain) + 1 or stride == 1
    seen = torch.zeros(tokens, dtype=torch.int64)
    for window, row in enumerate(task.most_context):
        numbers = [window * stride + int(at) - 4 for at in row.nonzero()[:, 0]]
        assert numbers == [t for t in range(tokens) if plain[t] == window]
        seen[numbers] += 1
    assert (seen == 1).all() and not (task.most_context & ~task.allowed).any()
    part = torch.tensor([len(task) - 1])
    assert torch.equal(task[part].most_context, task.most_context[part])

    logits = [torch.randn(len(task), 13, generator=make) for _ in range(2)]
    monkeypatch.setattr(finetuning, "outputs_on", lambda *_: logits)
    text, margin = finetuning.best_answers(None, task, 30, as_released=True)["q"]  # type: ignore
    scores = {
        (float(start[i] + end[j]), task.span(w, i, j).text)
        for w, (start, end) in enumerate(zip(*logits, strict=True))
        for i in range(4, 13) for j in range(i, 13)
        if task.most_context[w, i] and task.allowed[w, j]
    }  # fmt: skip
    best, words = max(scores)
    null = min(float(start[0] + end[0]) for start, end in zip(*logits, strict=True))
    assert text == words and margin == pytest.approx(best - null, abs=1e-5)
    assert finetuning.best_answers(None, task)["q"][1] >= margin - 1e-6  # type: ignore[arg-type]


# ---------------------------------------------------------------- ViT


def test_vit_begins_as_in_the_authors_program():
    shape: Any = {"hidden_size": 96, "num_layers": 1, "num_heads": 3, "intermediate_size": 384,
                  "image_size": 32, "patch_size": 4}  # fmt: skip
    torch.manual_seed(0)
    weights = dict(vit_encoder(VitConfig(**shape, **AUTHORS), pooler=False).named_parameters())
    block = "stack.blocks.0."
    for name, (ins, outs) in {"attention.query": (96, 96), "attention.output": (96, 96),
                              "feed_forward.expand": (96, 384)}.items():  # fmt: skip
        weight, bias = weights[f"{block}{name}.weight"], weights[f"{block}{name}.bias"]
        bound = math.sqrt(6 / (ins + outs))  # uniform from −bound to bound
        assert 0.99 * bound < weight.abs().max() <= bound
        assert weight.std().item() == pytest.approx(bound / math.sqrt(3), rel=0.05)
        spread = 1e-6 if "feed" in name else 0.0
        assert bias.std().item() == pytest.approx(spread, rel=0.2)
    patches = weights["embeddings.project.weight"]
    assert patches.std().item() == pytest.approx(math.sqrt(1 / 48), rel=0.05)
    assert patches.abs().max() <= 2 / 0.8796 * math.sqrt(1 / 48)
    assert weights["embeddings.position"].abs().max() > 2.5 * 0.02  # not cut at two
    assert not weights["embeddings.cls"].any()
    usual = dict(vit_encoder(VitConfig(**shape), pooler=False).named_parameters())
    assert usual[f"{block}attention.query.weight"].abs().max() <= 0.04
    assert F.l1_loss(usual[f"{block}feed_forward.expand.bias"], torch.zeros(384)) == 0
