"""How the claims of lecture 16 are settled; claims.toml tells them."""

from __future__ import annotations

from functools import partial
from statistics import fmean
from typing import Any

import torch

from course_lib.encoder import count_parameters
from course_lib.family.eurobert import eurobert
from course_lib.family.modernbert import ModernBertConfig, modernbert, modernbert_encoder
from course_lib.family.ultrabert import ultrabert
from course_lib.kernels.rotary import rotary
from course_lib.kernels.sliding_window import window_mask
from course_lib.teaching.claims import Settled, combined, compared, result
from course_lib.teaching.claims import verdict as in_every_seed
from course_lib.train.flops import forward_flops

from .ladder import LAST
from .numbers import biases_of_bert, size
from .views.real_text import FILE as REAL
from .views.results import ALONE, LADDER, extended
from .views.results import NORMS_FILE as NORMS


def distance() -> Settled:
    """How far the product of a query and a key moves when both stand 100 positions further on, and
    when one of them alone does."""
    generator = torch.Generator().manual_seed(0)
    query, key = (torch.randn(1, 1, 64, generator=generator) for _ in range(2))

    def product(query_at: int, key_at: int) -> float:
        at = (torch.tensor([query_at]), torch.tensor([key_at]))
        q, k = rotary(query, key, 10_000.0, 256, *at)
        return float((q * k).sum())

    both, one = (abs(product(5 + n, 109) - product(5, 9)) for n in (100, 0))
    detail = f"both 100 positions on: changes by {both:.0e}; the key alone: by {one:.1f}"
    return Settled((both, one), detail)


def longer() -> Settled:
    """Accuracy lost 448 positions further back: by learned positions and by RoPE; and by RoPE in
    texts eight times as long."""
    runs = result(LADDER)["runs"]

    def lost(name: str, what: str, at: str) -> list[float]:
        return [run[what][at] - run["accuracy"] for run in runs[name]]

    losses = (
        lost("pre-norm", "further_back", "448"),
        lost("RoPE", "further_back", "448"),
        lost("RoPE", "longer", "512"),
    )
    detail = (
        f"448 positions further back: learned {in_every_seed(losses[0])}, RoPE at most "
        f"{100 * max(map(abs, losses[1])):.1f} points; texts of 512 tokens: RoPE "
        f"{in_every_seed(losses[2])}"
    )
    return Settled(tuple(fmean(x) for x in losses), detail)


def norms() -> Settled:
    """Pre-norm less post-norm, twelve layers without warm-up, at the higher rate and the lower."""
    return combined([
        compared(NORMS, "accuracy", [f"pre-norm, {rate}"], f"post-norm, {rate}", "masked words")
        for rate in ("0.002", "0.0005")
    ])  # fmt: skip


def _step(name: str, before: str) -> Settled:
    """A rung less the one before it."""
    comparison = compared(LADDER, "accuracy", [name], before, "masked words")
    return Settled(comparison.value[0], comparison.detail)


def geglu() -> Settled:
    """On the ladder, and as BERT's only change."""
    step = _step("GeGLU", "RoPE")
    pairs = zip(result(ALONE)["runs"]["BERT + GeGLU"], result(LADDER)["runs"]["BERT"], strict=True)
    alone = [gated["accuracy"] - plain["accuracy"] for gated, plain in pairs]
    detail = f"{step.detail}; as BERT's only change {in_every_seed(alone)}"
    return Settled((step.value, fmean(alone)), detail)


def local_settled() -> Settled:
    """Local layers: on stories as in training, and in texts of 512 tokens."""
    step, runs = _step("local layers", "GeGLU"), result(LADDER)["runs"]
    pairs = zip(runs["local layers"], runs["GeGLU"], strict=True)
    long = [local["longer"]["512"] - whole["longer"]["512"] for local, whole in pairs]
    detail = f"{step.detail}; texts of 512 tokens: {in_every_seed(long)}"
    return Settled((step.value, fmean(long)), detail)


def on_both(name: str, before: str) -> Settled:
    """A rung less another: on stories, and on documentation."""
    step, runs = _step(name, before), result(REAL)["runs"]
    pairs = zip(runs[name], runs[before], strict=True)
    there = [one["accuracy"] - other["accuracy"] for one, other in pairs]
    detail = f"{step.detail}; documentation: {in_every_seed(there)}"
    return Settled((step.value, fmean(there)), detail)


def local_flops() -> Settled:
    """FLOPs of ModernBERT-base with its local layers over those with all layers global."""
    fractions = [
        forward_flops(modernbert, n) / forward_flops(partial(modernbert, global_every=1), n)
        for n in (512, 8_192)
    ]
    return Settled(
        tuple(fractions), "{:.0%} of the FLOPs at 512 tokens, {:.0%} at 8,192".format(*fractions)
    )


def parameters() -> Settled:
    counts = tuple(size(of) for of in ("base", "large"))
    return Settled(counts, "{:,} and {:,}, without the masked-word head".format(*counts))


def biases() -> Settled:
    count, whole = biases_of_bert()
    return Settled(count / whole, f"{count:,} of {whole:,}: {count / whole:.2%}")


def padding() -> Settled:
    """FLOPs of a batch without its padding over those with it, half of which is padding."""
    from torch.utils.flop_counter import FlopCounterMode

    settings: dict[str, Any] = {"hidden_size": 64, "num_heads": 2, "intermediate_size": 96}
    config = ModernBertConfig(vocab_size=50, num_layers=3, pad_token_id=0, window=8, **settings)
    encoder = modernbert_encoder(config).eval()
    mask = (torch.arange(64) < torch.tensor([[64], [32], [20], [12]])).long()
    flops = []
    for remove in (True, False):
        with torch.no_grad(), FlopCounterMode(display=False) as counter:
            encoder(mask * 7, mask, remove_padding=remove)
        flops.append(counter.get_total_flops())
    share = flops[0] / flops[1]
    return Settled(share, f"{float(mask.float().mean()):.0%} real tokens: {share:.0%} of the FLOPs")


def grouped() -> Settled:
    """EuroBERT-210m's blocks with one head of keys over those with twelve: weights, and FLOPs of a
    text of 128 and of 8,192 tokens."""
    few, many = (partial(eurobert, "210m", num_key_value_heads=n) for n in (1, 12))
    with torch.device("meta"):
        weights = count_parameters(few().stack) / count_parameters(many().stack)
    flops = [forward_flops(few, n) / forward_flops(many, n) for n in (128, 8_192)]
    parts = (weights, *flops)
    detail = "{:.0%} of the weights; {:.0%} of the FLOPs at 128 tokens, {:.0%} at 8,192"
    return Settled(parts, detail.format(*parts))


def radius() -> Settled:
    """How many keys a token in the middle sees in a local layer, both with 128 in transformers."""
    from course_lib.checkpoints import to_transformers

    sizes = {"num_layers": 2, "hidden_size": 8, "num_heads": 1, "intermediate_size": 8}
    keys = []
    for model, setting in (
        (modernbert("base", vocab_size=9, pad_token_id=0, **sizes), "local_attention"),
        (ultrabert(vocab_size=9, **sizes), "sliding_window"),
    ):
        assert getattr(to_transformers(model).config, setting) == 128
        keys.append(int(window_mask(torch.empty(1, 999, 1), model.config.window)[0, 499].sum()))  # type: ignore[attr-defined]
    return Settled(tuple(keys), "{} and {} keys, itself among them".format(*keys))


def extended_reading() -> Settled:
    """What a hundred steps of 512 tokens, and of 64, bring at 512; the former at 2,048."""
    long, short = "100 steps of 512, base kept", "100 steps of 64 tokens"
    gains = [
        [
            after - before
            for after, before in zip(extended(way, n), extended("as it is", n), strict=True)
        ]
        for way, n in ((long, 512), (short, 512), (long, 2_048))
    ]
    detail = (
        f"at 512 tokens {in_every_seed(gains[0])}; by steps of 64 {in_every_seed(gains[1])}; "
        f"at 2,048 {in_every_seed(gains[2])}"
    )
    return Settled(tuple(fmean(x) for x in gains), detail)
