"""What is claimed about speed: limits that can be counted, and the goals this course set itself.

A goal was written down before anything was measured. Whether it was met stands in the stored run
of the bench, data/results/14_speed.json; missed ones are shown as missed."""

from __future__ import annotations

import re
from collections.abc import Callable
from statistics import median
from typing import Any

import torch

from course_lib.bench.masked_loss import masked_only_limit
from course_lib.bench.summary import in_todays_words
from course_lib.bench.traffic import total, traffic
from course_lib.config import encoder_flops, published
from course_lib.encoder import Encoder
from course_lib.family.deberta import DebertaConfig
from course_lib.kernels.disentangled import disentangled_attention
from course_lib.kernels.masking import count_to_predict
from course_lib.kernels.positions import position_rows
from course_lib.teaching.claims import NotHere, Settled, result

TOKENS, RATE = 128, 0.15
NUMBER = r"(\d+(?:\.\d+)?)"

# ================================================================ what can be counted


def masked_only() -> Settled:
    """The limit for three sizes, and how many times fewer rows of logits are held."""
    sizes = ("base", "mini", "tiny")
    limits = tuple(masked_only_limit(published("bert", size)) for size in sizes)
    fewer = TOKENS / count_to_predict(TOKENS, RATE)
    limits_in_words = ", ".join(
        f"{size} {limit:.2f}×" for size, limit in zip(sizes, limits, strict=True)
    )
    vocabulary = f"a vocabulary of {published('bert', 'base').vocab_size:,}"
    return Settled(
        (*limits, fewer),
        f"with {vocabulary}, {TOKENS} tokens and 15% selected: {limits_in_words}; "
        f"{fewer:.2f}× fewer rows of logits",
    )


def _flops(work: Callable[[], Any]) -> int:
    with torch.no_grad():
        return total(traffic(work)).flops


def padding_settled() -> Settled:
    """FLOPs of a BERT on a padded batch over those on its real tokens: blocks without
    attention's two products, and all of it; half of the batch is padding."""
    torch.manual_seed(0)
    model = Encoder(published("bert", "tiny", vocab_size=100, kernels="plain")).eval()
    lengths = torch.tensor([8, 16, 24, 32, 40, 48, 56, 64]) * 2
    T = int(lengths.max())
    mask = (torch.arange(T) < lengths[:, None]).long()
    padding = 1 - float(mask.float().mean())
    ids = torch.full(mask.shape, 7) * mask
    padded = _flops(lambda: model(ids, mask))
    packed = _flops(lambda: model(ids, mask, remove_padding=True))
    c = model.config
    pairs = 4 * c.num_layers * c.hidden_size  # FLOPs of attention's products for a pair
    linear = (padded - pairs * mask.numel() * T) / (packed - pairs * int((lengths**2).sum()))
    detail = (
        f"{padding:.0%} padding, 1/(1 − p) = {1 / (1 - padding):.2f}: FLOPs {linear:.2f}× fewer "
        f"in the linear part, {padded / packed:.2f}× with attention"
    )
    return Settled((linear * (1 - padding), padded / packed * (1 - padding)), detail)


def position_products() -> Settled:
    """What the two position terms add to BERT's own FLOPs, in the reference and in a path that
    multiplies reachable rows only: fractions, counted while they run."""
    config = published("deberta", "base", DebertaConfig)
    A, D, L = config.num_heads, config.head_size, config.num_layers
    x, table = torch.zeros(1, A, TOKENS, D), torch.zeros(A, 2 * config.span, D)
    rows = position_rows(TOKENS, config.span)
    usual = encoder_flops(config, TOKENS)

    def added(path: str) -> float:
        def attend() -> Any:
            return disentangled_attention(x, x, x, table, table, rows, path=path)

        content = 4 * TOKENS * TOKENS * A * D
        return L * (_flops(attend) - content) / usual

    fractions = added("reference"), added("gathered")
    detail = (
        f"at {TOKENS} tokens {fractions[0]:.0%} with all {2 * config.span:,} rows, "
        f"{fractions[1]:.1%} with the {len(rows.unique())} that occur"
    )
    return Settled(fractions, detail)


# ================================================================ goals, and the stored run


def _stored(run: str) -> dict[str, Any]:
    """A stored run of the bench; NotHere where it has not been made."""
    return in_todays_words(result(run))


def _remarks(begins: str) -> dict[str, str]:
    """The remarks of the tables whose titles begin so; NotHere where there are none."""
    remarks = {t: r for t, r in _stored("14_speed")["remarks"].items() if t.startswith(begins)}
    if not remarks:
        raise NotHere(f"the stored run has no table “{begins}…”")
    return remarks


def _numbers(remark: str, pattern: str) -> list[tuple[float, ...]]:
    """Every match's numbers; N in the pattern stands for one."""
    matches = re.findall(pattern.replace("N", NUMBER), remark)
    return [tuple(float(x) for x in (one if isinstance(one, tuple) else (one,))) for one in matches]


def _met(reached: float, goal: float, unit: str = "×") -> str:
    return f"{reached:.2f}{unit} (goal {goal:g}: {'met' if reached >= goal else 'missed'})"


def _rates(title: str, run: str = "14_speed") -> dict[str, float]:
    """Median rates of a table's rows, in its order."""
    tables = _stored(run)["tables"]
    if title not in tables:
        raise NotHere(f"the stored run has no table “{title}”")
    return {row["name"]: median(row["rates"]) for row in tables[title]}


STEP_GOALS = {"mini": (8.0, 2.0), "tiny": (12.0, 4.0)}  # against it as shipped, and at its best


def step() -> Settled:
    """For each size: ours over transformers as shipped, over its best, and of matrix products."""
    ratios, details = [], []
    for title, remark in _remarks("Pre-training step").items():
        size = title.split(", ")[1]
        (shipped,), (best,) = (
            _numbers(remark, rf"ours / {who}(?: \(.*\))? N×")[0] for who in ("shipped", "its best")
        )
        ((percent,),) = _numbers(remark, "N% of the matrix products")
        goals = STEP_GOALS.get(size, (1.0, 1.0))
        ratios += [shipped, best]
        details.append(
            f"{size}: {_met(shipped, goals[0])} as shipped, {_met(best, goals[1])} at its best, "
            f"{percent:.0f}% of the matrix products"
        )
    return Settled(tuple(ratios), "; ".join(details))


MASKING_GOALS = {"Masking single tokens": 10.0, "Masking whole words": 20.0}


def masking() -> Settled:
    """Ours over transformers' collators, at 512 tokens; whole words: [MASK] only on both sides."""
    ratios, details = [], []
    for kind, goal in MASKING_GOALS.items():
        rates = _rates(f"{kind}, 64×512 tokens")
        ours = "… word numbers ready" if "words" in kind else "ours: mask_sequences(...).labels"
        ratios.append(rates[ours] / next(iter(rates.values())))
        details.append(f"{kind.removeprefix('Masking ')} {_met(ratios[-1], goal)}")
    return Settled(tuple(ratios), "; ".join(details))


def deberta() -> Settled:
    """Ours over transformers' DeBERTa, wherever a goal was set."""
    ratios, details = [], []
    for title, remark in _remarks("Disentangled attention, ").items():
        for reached, goal in _numbers(remark, r"transformers' DeBERTa N× \(goal N×\)"):
            _, what, _, size, precision = title.split(", ")
            ratios.append(reached)
            details.append(
                f"{what} {size.removesuffix(' tokens')} {precision} {_met(reached, goal)}"
            )
    return Settled(tuple(ratios), "; ".join(details))


PADDING_GOAL = 0.9


def padding_removed() -> Settled:
    """Of 1/(1 − p), what the linear part reached, at every fraction of padding."""
    ratios, details = [], []
    for title, remark in _remarks("Padding removed").items():
        gains = _numbers(remark, r"linear part N× \(goal N×, limit N×\)")
        reached = [gain / limit for gain, _, limit in gains]
        ratios += reached
        size = ", ".join(title.split(", ")[3:])
        details.append(f"{size}: {_met(min(reached), PADDING_GOAL, '')} at worst")
    return Settled(tuple(ratios), "of 1/(1 − p), " + "; ".join(details))


DISTILLATION_GOALS = 1.2, 5.0


def distillation() -> Settled:
    """Time and memory of torch's functions over the chunked loss's, at each size."""
    ratios, details = [], []
    for title, remark in _remarks("Distillation loss").items():
        ((time, memory),) = _numbers(remark, "time N× less, memory N× less")
        ratios += [time, memory]
        size = re.search(r"([\d,]+ positions).*, (\w+)$", title)
        assert size is not None
        details.append(
            f"{size[1]}, {size[2]}: time {_met(time, DISTILLATION_GOALS[0])}, memory "
            f"{_met(memory, DISTILLATION_GOALS[1])}"
        )
    return Settled(tuple(ratios), "; ".join(details))


EXIT_GOAL = 0.85


def exit_settled() -> Settled:
    """Of the ratio of FLOPs, what the clock shows."""
    ratios, details = [], []
    for title, remark in _remarks("Early exit").items():
        ((reached,),) = _numbers(remark, "N of what they promise")
        ratios.append(reached)
        _, layers, *_, precision = title.split(", ")
        details.append(f"{layers} {precision} {_met(reached, EXIT_GOAL, '')}")
    return Settled(tuple(ratios), "; ".join(details))


GPU_GOALS = {"forward": 5.0, "forward and backward": 2.0}


def on_gpu(
    tokens: str, training: bool, peer: str = "transformers", ours: str = "ours, in"
) -> float:
    """Times as fast as a peer's attention on a GPU, one text of so many tokens; rows by how they
    begin."""
    what = "forward and backward" if training else "forward"
    title = f"Disentangled attention on a GPU, {what}, 1×{tokens}, A=12, D=64, bfloat16"
    rates = _rates(title, "14_gpu")
    one, other = (next(r for row, r in rates.items() if row.startswith(x)) for x in (ours, peer))
    return one / other


def gpu() -> Settled:
    """The Triton kernel over transformers' eager attention at 8,192 tokens."""
    ratios = {what: on_gpu("8,192", what != "forward") for what in GPU_GOALS}
    detail = "; ".join(f"{what} {_met(ratios[what], goal)}" for what, goal in GPU_GOALS.items())
    return Settled(tuple(ratios.values()), detail)


def fused_backward() -> Settled:
    """Plain over fused, bfloat16 and 128 tokens: forward alone, and with the backward pass."""
    ratios = []
    for what in ("forward", "forward and backward"):
        rates = _rates(f"Attention alone, {what}, 32×128 tokens, bfloat16")
        ratios.append(rates["ours, plain"] / rates["ours, fused"])
    detail = f"plain / fused: {ratios[0]:.2f}× forward, {ratios[1]:.2f}× with the backward pass"
    return Settled(tuple(ratios), detail)


def all_above(least: float) -> Callable[[Any], bool]:
    """Every number is above `least`, and there is one at least."""
    return lambda value: len(value) > 0 and min(value) > least
