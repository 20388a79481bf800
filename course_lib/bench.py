"""Every speed figure of the course, ours beside the peer's, in one run: `python -m
course_lib.bench`.

Contenders take turns within a round, so that a slow moment of the machine hits all of them; the
table shows the median over rounds with the middle half, and beside it the machine's own
matrix-product rate. The peer is the transformers library. Where ours is not the peer's mathematics
(dropout off, head on chosen positions only), the ladder names the change, one a row. Times are
reported, never asserted."""

from __future__ import annotations

import argparse
import json
import platform
import statistics
import time
from collections.abc import Callable, Sequence
from dataclasses import asdict, dataclass, field
from datetime import date
from importlib.metadata import version
from pathlib import Path
from typing import Any

import torch
from torch import Tensor

from .config import published
from .family.bert import bert_for_pretraining
from .files import write_atomic
from .kernels import attention as attention_kernel
from .objectives.masked_lm import mask_rows, masked_lm_loss
from .objectives.rows import Batch, Rows, SpecialIds
from .train.loop import adamw, train_step
from .train.precision import computing_in, native_bfloat16

Step = Callable[[], None]
SPECIAL = SpecialIds(pad=0, unk=1, cls=2, sep=3, mask=4, vocab_size=8_192)
ROWS, TOKENS = 32, 128


@dataclass(frozen=True)
class Contender:
    """One row of a table: `make` builds it and returns one step of work on `tokens` tokens."""

    name: str
    make: Callable[[], Step]
    tokens: int


@dataclass
class Measured:
    """Tokens per second over the rounds."""

    name: str
    rates: list[float] = field(default_factory=list)

    @property
    def median(self) -> float:
        return statistics.median(self.rates)

    @property
    def middle_half(self) -> tuple[float, float]:
        low, _, high = statistics.quantiles(self.rates, n=4)
        return low, high


def measure(
    contenders: Sequence[Contender], rounds: int = 9, seconds: float = 1.0
) -> list[Measured]:
    """Build all, warm each up, then let them take turns of about `seconds` each, `rounds` times."""
    steps, results = [], []
    for contender in contenders:
        print(f"  building {contender.name} …", flush=True)
        step = contender.make()
        for _ in range(3):
            step()
        began = time.perf_counter()
        step()
        repeats = max(1, round(seconds / (time.perf_counter() - began)))
        steps.append((step, repeats, contender.tokens))
        results.append(Measured(contender.name))
    for _ in range(rounds):
        for (step, repeats, tokens), result in zip(steps, results, strict=True):
            began = time.perf_counter()
            for _ in range(repeats):
                step()
            result.rates.append(tokens * repeats / (time.perf_counter() - began))
    return results


# ---- the machine ---------------------------------------------------------------------------------


def matrix_product_rate(precision: str, size: int = 2_048) -> float:
    """GFLOP/s of a square matrix product, the best of several: the ceiling of everything below."""
    dtype = {"float32": torch.float32, "bfloat16": torch.bfloat16}[precision]
    a, b = torch.randn(size, size).to(dtype), torch.randn(size, size).to(dtype)
    best = float("inf")
    for _ in range(10):
        began = time.perf_counter()
        _ = a @ b
        best = min(best, time.perf_counter() - began)
    return 2 * size**3 / best / 1e9


def machine() -> dict[str, Any]:
    """What the figures were measured on."""
    return {
        "processor": platform.processor() or platform.machine(),
        "threads": torch.get_num_threads(),
        "native_bfloat16": native_bfloat16(),
        "torch": torch.__version__,
        "transformers": version("transformers"),
        "python": platform.python_version(),
        "date": date.today().isoformat(),
        "gflops_float32": round(matrix_product_rate("float32")),
        "gflops_bfloat16": round(matrix_product_rate("bfloat16")),
    }


def training_flops_per_token(size: str) -> float:
    """Multiply-adds × 2 × 3 (forward, and twice that backward) of our step: blocks, attention, head
    at 15%."""
    c = published("bert", size)
    blocks = c.num_layers * (4 * c.hidden_size**2 + 2 * c.hidden_size * c.intermediate_size)
    attention = c.num_layers * 2 * TOKENS * c.hidden_size
    head = 0.15 * (c.hidden_size**2 + c.hidden_size * SPECIAL.vocab_size)
    return 6 * (blocks + attention + head)


# ---- pre-training step ---------------------------------------------------------------------------


def random_rows(count: int = ROWS * 8) -> Rows:
    """Full rows of random words: what is in them does not change the time."""
    generator = torch.Generator().manual_seed(0)
    ids = torch.randint(5, SPECIAL.vocab_size, (count, TOKENS), generator=generator)
    ids[:, 0], ids[:, -1] = SPECIAL.cls, SPECIAL.sep
    return Rows(ids, torch.ones_like(ids), torch.zeros_like(ids))


def our_step(size: str, precision: str, plain_attention: bool) -> Step:
    """The course's step: masking, chosen positions only, fused optimiser."""
    torch.manual_seed(0)
    model = bert_for_pretraining(
        size, vocab_size=SPECIAL.vocab_size, hidden_dropout=0.0, attention_dropout=0.0
    ).train()
    optimizer = adamw(model, 1e-4, 0.01)
    rows, visit = random_rows(), 0

    def step() -> None:
        nonlocal visit
        attention_kernel.PLAIN_UP_TO = 256 if plain_attention else 0
        part = rows[visit % 8 * ROWS : visit % 8 * ROWS + ROWS]
        masked = mask_rows(part, SPECIAL, epoch=visit)
        inputs = {
            "input_ids": masked.input_ids,
            "attention_mask": part.attention_mask,
            "token_type_ids": part.token_type_ids,
            "predict_at": masked.predict_at,
        }
        batch = Batch(inputs, {"labels": masked.asked})
        train_step(model, masked_lm_loss, optimizer, batch, 1.0, precision)
        attention_kernel.PLAIN_UP_TO = 256
        visit += 1

    return step


def peer_model(size: str, dropout: float, attention: str) -> Any:
    """transformers' BertForMaskedLM of the same shape, with fresh weights."""
    from transformers import BertConfig, BertForMaskedLM

    c = published("bert", size)
    config = BertConfig(
        vocab_size=SPECIAL.vocab_size,
        hidden_size=c.hidden_size,
        num_hidden_layers=c.num_layers,
        num_attention_heads=c.num_heads,
        intermediate_size=c.intermediate_size,
        hidden_dropout_prob=dropout,
        attention_probs_dropout_prob=dropout,
        attn_implementation=attention,
    )
    torch.manual_seed(0)
    return BertForMaskedLM(config).train()


def peer_collator() -> Any:
    """transformers' masking collator over a tokenizer with our vocabulary."""
    from tokenizers import Tokenizer, models
    from transformers import DataCollatorForLanguageModeling, PreTrainedTokenizerFast

    specials = ["[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]"]
    words = specials + [f"w{i}" for i in range(5, SPECIAL.vocab_size)]
    core = Tokenizer(models.WordLevel({w: i for i, w in enumerate(words)}, unk_token="[UNK]"))
    names = dict(zip(("pad", "unk", "cls", "sep", "mask"), specials, strict=True))
    settings = {f"{name}_token": token for name, token in names.items()}
    tokenizer = PreTrainedTokenizerFast(tokenizer_object=core, **settings)
    return DataCollatorForLanguageModeling(tokenizer)


def peer_step(
    size: str,
    *,
    precision: str = "float32",
    tuned: bool = False,
    attention: str = "sdpa",
    compiled: bool = False,
) -> Step:
    """transformers' step: as shipped, or tuned (no dropout, fused AdamW, our masking)."""
    model = peer_model(size, 0.0 if tuned else 0.1, attention)
    optimizer = torch.optim.AdamW(model.parameters(), lr=1e-4, fused=tuned or None)
    collate, rows, visit = peer_collator(), random_rows(), 0
    forward = torch.compile(model) if compiled else model

    def inputs() -> dict[str, Tensor]:
        part = rows[visit % 8 * ROWS : visit % 8 * ROWS + ROWS]
        if not tuned:
            return dict(collate([{"input_ids": row} for row in part.input_ids]))
        masked = mask_rows(part, SPECIAL, epoch=visit)
        return {"input_ids": masked.input_ids, "labels": masked.labels}

    def step() -> None:
        nonlocal visit
        with computing_in(precision):
            loss = forward(**inputs()).loss
        loss.backward()
        torch.nn.utils.clip_grad_norm_(model.parameters(), 1.0)
        optimizer.step()
        optimizer.zero_grad()
        loss.item()
        visit += 1

    return step


def pretraining_ladder(size: str, compiled: bool = True) -> list[Contender]:
    """From the peer as shipped to ours, one change a row."""
    fast = "bfloat16" if native_bfloat16() else "float32"
    rungs: list[tuple[str, Callable[[], Step]]] = [
        ("transformers as shipped", lambda: peer_step(size)),
        (f"… under {fast} autocast", lambda: peer_step(size, precision=fast)),
        (
            "… tuned: no dropout, fused AdamW, quick masking",
            lambda: peer_step(size, precision=fast, tuned=True),
        ),
        (
            "… tuned, eager attention",
            lambda: peer_step(size, precision=fast, tuned=True, attention="eager"),
        ),
    ]
    if compiled:
        rungs += [
            (
                "… tuned and compiled",
                lambda: peer_step(size, precision=fast, tuned=True, compiled=True),
            ),
            (
                "… tuned, eager attention, compiled",
                lambda: peer_step(
                    size, precision=fast, tuned=True, attention="eager", compiled=True
                ),
            ),
        ]
    rungs += [
        ("ours in float32", lambda: our_step(size, "float32", True)),
        (f"ours in {fast}, fused attention", lambda: our_step(size, fast, False)),
        (
            f"ours in {fast}, plain attention (the course's step)",
            lambda: our_step(size, fast, True),
        ),
    ]
    return [Contender(name, make, ROWS * TOKENS) for name, make in rungs]


# ---- masking -------------------------------------------------------------------------------------


def masking_contenders() -> list[Contender]:
    """One batch masked: transformers' collator, its masking alone, ours with all labels written
    out."""
    rows = random_rows()
    examples = [{"input_ids": row} for row in rows.input_ids]

    def shipped() -> Step:
        collate = peer_collator()
        return lambda: collate(examples)

    def masking_only() -> Step:
        collate = peer_collator()
        return lambda: collate.torch_mask_tokens(rows.input_ids.clone())

    def ours() -> Step:
        visit = 0

        def step() -> None:
            nonlocal visit
            visit += 1
            _ = mask_rows(rows, SPECIAL, epoch=visit).labels

        return step

    tokens = rows.input_ids.numel()
    return [
        Contender("transformers' masking collator", shipped, tokens),
        Contender("… its masking function alone", masking_only, tokens),
        Contender("ours: mask_rows(...).labels", ours, tokens),
    ]


# ---- tables --------------------------------------------------------------------------------------


def as_table(results: Sequence[Measured], first: str) -> str:
    """Rows with median, middle half, and the ratio to the row named `first`."""
    base = next(r.median for r in results if r.name == first)
    lines = [f"{'':56}{'tokens/s':>12}{'middle half':>22}{'ratio':>9}"]
    for r in results:
        low, high = r.middle_half
        lines.append(
            f"{r.name:56}{r.median:12,.0f}{low:11,.0f}–{high:<10,.0f}{r.median / base:8.2f}×"
        )
    return "\n".join(lines)


def run(sizes: Sequence[str], compiled: bool, rounds: int) -> dict[str, Any]:
    """Measure everything and print it; returns what is saved as JSON."""
    found: dict[str, Any] = {"machine": machine(), "tables": {}}
    print("matrix products:", {k: v for k, v in found["machine"].items() if k.startswith("gflops")})
    for size in sizes:
        print(f"\nPre-training step, {size}, {ROWS}×{TOKENS} tokens, V={SPECIAL.vocab_size}")
        contenders = pretraining_ladder(size, compiled)
        results = measure(contenders, rounds)
        found["tables"][f"pretraining step, {size}"] = [asdict(r) for r in results]
        print(as_table(results, contenders[0].name))
        _print_ratios(results, size, found["machine"])
    print("\nMasking, 256×128 tokens")
    results = measure(masking_contenders(), rounds)
    found["tables"]["masking"] = [asdict(r) for r in results]
    print(as_table(results, results[0].name))
    return found


def _print_ratios(results: Sequence[Measured], size: str, on: dict[str, Any]) -> None:
    peers = [r for r in results if not r.name.startswith("ours")]
    ours, best = results[-1], max(peers, key=lambda r: r.median)
    rate = ours.median * training_flops_per_token(size) / 1e9
    ceiling = on["gflops_bfloat16" if on["native_bfloat16"] else "gflops_float32"]
    print(
        f"ours / shipped {ours.median / peers[0].median:.2f}×   "
        f"ours / its best ({best.name}) {ours.median / best.median:.2f}×   "
        f"{rate:.0f} GFLOP/s, {rate / ceiling:.0%} of the matrix-product rate"
    )


def main() -> None:
    parser = argparse.ArgumentParser(
        description="Speed of the course's kernels beside their peers."
    )
    parser.add_argument("--sizes", nargs="+", default=["mini", "tiny"], help="BERT sizes to time")
    parser.add_argument(
        "--rounds", type=int, default=9, help="turns each contender gets (2 or more)"
    )
    parser.add_argument(
        "--no-compile", action="store_true", help="leave out torch.compile (needs C++)"
    )
    parser.add_argument("--json", type=Path, help="also save the figures to this file")
    asked = parser.parse_args()
    if asked.rounds < 2:
        parser.error(f"--rounds {asked.rounds} was given; expected 2 or more, to show a spread")
    found = run(asked.sizes, not asked.no_compile, asked.rounds)
    if asked.json:
        write_atomic(asked.json, json.dumps(found, indent=1) + "\n")
        print(f"\nsaved to {asked.json}")


if __name__ == "__main__":
    main()
