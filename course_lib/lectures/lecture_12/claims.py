"""How the claims of lecture 12 are settled; claims.toml tells them."""

from __future__ import annotations

from statistics import fmean
from typing import Any

import torch
from torch import nn

from course_lib.encoder import count_parameters
from course_lib.family.bert import bert
from course_lib.family.mobilebert import ib_bert, mobilebert
from course_lib.kernels.early_exit import entropy_at_most, normalised_entropy
from course_lib.objectives.exits import self_distillation_loss
from course_lib.teaching.claims import Settled, combined, compared, printed, result, verdict
from course_lib.train.flops import forward_flops
from course_lib.train.knowledge_transfer import stages

FAST, MOBILE, SERVING, TIMES = "12_fastbert", "12_mobilebert", "12_serving", "12_serving_times"


# ================================================================ FastBERT


def rule() -> Settled:
    """Entropies of two answers with one largest probability; texts out at speeds 0.7 and 0.9."""
    answers = torch.tensor([[0.6, 0.4, 1e-9], [0.6, 0.2, 0.2]]).log()
    doubt = [round(x, 2) for x in normalised_entropy(answers).tolist()]
    out = [int(entropy_at_most(speed)(answers).sum()) for speed in (0.7, 0.9)]
    detail = f"uncertainty {doubt[0]} and {doubt[1]}; out at speed 0.7: {out[0]}, at 0.9: {out[1]}"
    return Settled((*doubt, *out), detail)


def joint_settled() -> Settled:
    """Joint training less FastBERT's: the last exit and the first, of pairs the first."""
    runs = result(FAST)["runs"]
    last = compared(FAST, "accuracy", ["joint"], "FastBERT", "the last exit")
    sections, pairs = (
        [
            joint["by_layer"][0] - own["by_layer"][0]
            for joint, own in zip(runs[f"{task}joint"], runs[f"{task}FastBERT"], strict=True)
        ]
        for task in ("", "pairs: ")
    )
    detail = f"{last.detail}; the first exit {verdict(sections)}, on pairs {verdict(pairs)}"
    return Settled((last.value[0], fmean(sections), fmean(pairs)), detail)


def direction_settled() -> Settled:
    """Both divergences of one pair of answers: they differ, so it matters which is meant."""

    class Said:
        exit_logits = (torch.tensor([[2.0, 0.0, 0.0]]), torch.tensor([[0.0, 1.0, 0.0]]))

    value = tuple(
        float(self_distillation_loss(direction)(Said, {})["total"])
        for direction in ("reverse", "forward")
    )
    return Settled(
        value, "KL(student ‖ teacher) {:.3f}, KL(teacher ‖ student) {:.3f}".format(*value)
    )


def random() -> Settled:
    """FastBERT less as many texts leaving each layer at random: the largest gain over the speeds,
    for both tasks."""
    gains = []
    for name in ("FastBERT", "pairs: FastBERT"):
        runs = result(FAST)["runs"][name]
        speeds = range(len(runs[0]["by_entropy"]))
        gains.append(max(
            fmean(r["by_entropy"][k]["accuracy"] - r["by_entropy"][k]["at_random"] for r in runs)
            for k in speeds
        ))  # fmt: skip
    points = [100 * gain for gain in gains]
    return Settled(tuple(gains), "sections {:+.1f} points, pairs {:+.1f}".format(*points))


# ================================================================ MobileBERT


def convolutions() -> Settled:
    with torch.device("meta"):
        class_names = [type(m).__name__ for m in mobilebert().modules()]
    count = sum(name.startswith("Conv") for name in class_names)
    norms = class_names.count("NoNorm")
    return Settled((count, norms > 0), f"{count} convolutions, {norms} NoNorms")


def bottlenecks() -> Settled:
    with torch.device("meta"):
        student, teacher = mobilebert().config, ib_bert().config
    value = tuple(c.bottleneck_size / c.hidden_size for c in (student, teacher))  # type: ignore[attr-defined]
    return Settled(value, "inside over between: MobileBERT {:g}, its teacher {:g}".format(*value))


def strategies() -> Settled:
    """How many stages each strategy has, of a model of four layers."""

    def nothing(**_: object) -> object:
        return lambda outputs, targets: {}

    value = tuple(
        len(stages(name, 4, nothing, nothing(), steps=100, transfer_steps=40))  # type: ignore[arg-type]
        for name in ("auxiliary", "joint", "progressive")
    )
    return Settled(
        value, "stages: auxiliary {}, joint {}, progressive {} (4 layers)".format(*value)
    )


def parameters() -> Settled:
    with torch.device("meta"):
        value = count_parameters(mobilebert(pooler=False))
    return Settled(value, f"{value:,} without pooler and heads")


def faster() -> Settled:
    abstract = printed("mobilebert")["abstract"]
    value = (abstract["times_smaller"], abstract["times_faster"])
    return Settled(value, "{}× smaller, {}× faster than BERT-base".format(*value))


def balance() -> Settled:
    """Weights of a block's feed-forward parts over those of attention and the ways into it, with
    one feed-forward part and with four."""
    ratios = []
    for count in (1, 4):
        with torch.device("meta"):
            stack: Any = mobilebert(num_feed_forwards=count, num_layers=1).stack
        dense = {
            n: m.weight.numel()
            for n, m in stack.blocks[0].named_modules()
            if isinstance(m, nn.Linear)
        }
        forward = sum(count for name, count in dense.items() if "feed_forward" in name)
        ways = ("attention.", "enter.", "shared.")
        ratios.append(forward / sum(n for name, n in dense.items() if name.startswith(ways)))
    detail = "feed-forward over attention with its ways in: one {:.2f}, four {:.2f}".format(*ratios)
    return Settled(tuple(ratios), detail)


def transfer() -> Settled:
    """Progressive transfer less the teacher's answers alone: masked words, unstated facts."""
    return combined([
        compared(MOBILE, measure, ["progressive"], "no transfer", called)
        for measure, called in (
            ("masked_accuracy", "masked words"),
            ("job_accuracy", "unstated facts"),
        )
    ])  # fmt: skip


def slip() -> Settled:
    """Progressive with the program's slip less without."""
    return compared(
        MOBILE, "masked_accuracy", ["progressive, the slip"], "progressive", "masked words"
    )


def best() -> Settled:
    """Joint less progressive: masked words."""
    comparison = compared(MOBILE, "masked_accuracy", ["joint"], "progressive", "masked words")
    return Settled(comparison.value[0], comparison.detail)


def start() -> Settled:
    """The teacher's embeddings alone less random ones, both without a teacher."""
    return compared(
        MOBILE, "masked_accuracy", ["labels, the teacher's embeddings"], "labels", "masked words"
    )


# ================================================================ serving


def int8() -> Settled:
    """int8 less float32, accuracy; and the file's size."""
    comparison = compared(SERVING, "accuracy", ["int8"], "float32", "accuracy")
    ways = result(TIMES)["ways"]
    size = ways["int8"]["stored"] / ways["float32"]["stored"]
    return Settled(
        (comparison.value[0], size), f"{comparison.detail}; the file {size:.0%} as large"
    )


def flops_and_time() -> Settled:
    """The thin model against half the layers: FLOPs, and time of one text."""
    runs, ways = result(SERVING)["runs"], result(TIMES)["ways"]
    names = ("MobileBERT's shape", "half the layers")
    flops = [fmean(run["flops"] for run in runs[name]) for name in names]
    times = [ways[name]["median"] for name in names]
    value = (flops[0] / flops[1], times[0] / times[1])
    return Settled(value, "FLOPs {:.2f}, time {:.2f} of half the layers'".format(*value))
