"""compare(ours): the same function as the reference? Counts, outputs, gradients side by side."""

from __future__ import annotations

import copy
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from math import isfinite
from typing import Any

import torch
from torch import Tensor, nn

from .page import card, table_row

# By transformers' names; ours answer to all that name the same thing.
OUTPUTS = (
    "last_hidden_state",
    "pooler_output",
    "prediction_logits",
    "logits",
    "seq_relationship_logits",
    "sop_logits",
)
ONE_A_ROW = ("pooler_output", "seq_relationship_logits", "sop_logits")  # the others: one a token
# Of model types: those that are float32 somewhere whatever their weights are.
SHORT_SUMS = (
    "deberta", "deberta-v2", "xlm", "modernbert", "nomic_bert", "eurobert", "ultrabert",
)  # fmt: skip


@dataclass(frozen=True, repr=False)
class Comparison:
    """What was found on one batch, dropout off."""

    reference: str
    our_parameters: int
    reference_parameters: int
    output_difference: float  # max |ours − theirs| / max(1, max |theirs|), real positions
    gradient_difference: float  # the largest, over the largest entry of the whole gradient
    tolerance: float
    batch: str

    @property
    def equal(self) -> bool:
        """Counts the same, and both differences within the tolerance."""
        differences = (self.output_difference, self.gradient_difference)
        return self.our_parameters == self.reference_parameters and all(
            difference <= self.tolerance for difference in differences
        )

    def _rows(self) -> list[tuple[str, str, str]]:
        same = "the same" if self.our_parameters == self.reference_parameters else "different"
        return [
            ("parameters, ours", f"{self.our_parameters:,}", ""),
            (f"parameters, {self.reference}", f"{self.reference_parameters:,}", same),
            ("largest output difference", f"{self.output_difference:.1e}", self._said("output")),
            (
                "largest gradient difference",
                f"{self.gradient_difference:.1e}",
                self._said("gradient"),
            ),
        ]

    def _said(self, which: str) -> str:
        within = getattr(self, f"{which}_difference") <= self.tolerance
        return f"{'✓ within' if within else '✗ beyond'} {self.tolerance:.0e}"

    def __repr__(self) -> str:
        lines = [
            f"{name:<34}{value:>14}  {remark}".rstrip() for name, value, remark in self._rows()
        ]
        return "\n".join([*lines, self.batch, "equal" if self.equal else "NOT equal"])

    def _repr_html_(self) -> str:
        sides = ("left", "right", "left")
        rows = "".join(table_row("td", row, sides) for row in self._rows())
        verdict = "✓ equal" if self.equal else "✗ not equal"
        colour = "#00745a" if self.equal else "#b04e00"
        table = f'<table style="border-collapse:collapse;margin:0;background:#fff">{rows}</table>'
        sentence = (
            f'<b style="color:{colour}">{verdict}</b> <span style="color:#555">{self.batch}</span>'
        )
        return card(f"{table}<div>{sentence}</div>", "comparison", 620)


@torch.inference_mode(False)
@torch.enable_grad()
def compare(
    ours: nn.Module,
    reference: str | nn.Module = "transformers",
    *,
    sequences: int = 4,
    length: int = 16,
    seed: int = 0,
) -> Comparison:
    """Run our model and the reference on one batch, of texts with padding or of pictures; compare
    outputs and gradients.

    reference: "transformers" builds its model from our weights; or a transformers model, taken as
    it is. sequences, length: the batch, ids or pixels drawn from `seed`. Frozen weights are
    compared like all others. Raises ValueError for another word, a reference of another shape,
    weights that are no numbers and an empty batch, CheckpointError for what is no model of ours or
    none of transformers.
    """
    from course_lib.checkpoints import from_transformers, their_inputs, to_transformers
    from course_lib.checkpoints.convert import known

    built = isinstance(reference, str)
    _check(known(ours)[0], reference, sequences, length)
    theirs: Any = to_transformers(ours) if built else copy.deepcopy(reference)
    _same_shapes(ours, from_transformers(theirs))
    config: Any = ours.config
    batch = _batch(config, sequences, min(length, config.longest_text), seed)
    with _gradients_of(ours), _gradients_of(theirs):
        own, other = ours(**batch), theirs(**their_inputs(theirs, batch))
        names, mask = _names(own, other), batch.get("attention_mask")
        output = _largest(_distance(own, other, name, mask) for name in names)
        for outputs in (own, other):
            _mean_loss(outputs, names, mask, seed).backward()
        del own, other
        for p in theirs.parameters():
            # The gradient stands where the weight stood, and so gets our names.
            p.data = torch.zeros_like(p) if p.grad is None else p.grad
        # Of outputs that are no numbers the gradients are none either, and cannot be converted.
        gradient = (
            _gradient_distance(ours, from_transformers(theirs)) if isfinite(output) else output
        )
    return Comparison(
        reference="transformers" if built else type(reference).__name__,
        our_parameters=_count(ours),
        reference_parameters=_count(theirs),
        output_difference=output,
        gradient_difference=gradient,
        tolerance=_tolerance(ours, theirs),
        batch=_described(batch, config),
    )


def _check(ours: nn.Module, reference: Any, sequences: int, length: int) -> None:
    if isinstance(reference, str) and reference != "transformers":
        raise ValueError(
            f"reference={reference!r} was given; "
            'expected "transformers" or a model of transformers.'
        )
    if not all(isinstance(size, int) and size > 0 for size in (sequences, length)):
        raise ValueError(
            f"sequences={sequences!r} and length={length!r} were given; expected whole numbers, at "
            "least 1."
        )
    if diverged := [n for n, p in ours.named_parameters() if not p.isfinite().all()]:
        raise ValueError(
            f"a model was given whose weight {diverged[0]} is not finite; expected "
            "finite weights. Did its training diverge?"
        )


def _described(batch: dict[str, Tensor], config: Any) -> str:
    if "pixel_values" in batch:
        count, channels, height, width = batch["pixel_values"].shape
        return f"{count} pictures of {height}×{width} pixels in {channels} channels"
    count, length = batch["input_ids"].shape
    segments = ", two segments" if config.type_vocab_size > 1 else ""
    return f"{count} sequences of up to {length} tokens{segments}, padding"


def _tolerance(ours: nn.Module, theirs: Any) -> float:
    """What the precision of both allows. In some of transformers' models parts of the sum are
    float32 whatever the weights are: the scale of DeBERTa's scores, in its first generation
    LayerNorm, too; XLM's softmax; what ModernBERT turns by its position; EuroBERT's and UltraBERT's
    norms."""
    exact = next(ours.parameters()).dtype == torch.float64
    short = theirs.config.model_type in SHORT_SUMS
    return 1e-10 if exact and not short else 1e-5


def _same_shapes(ours: nn.Module, theirs: nn.Module) -> None:
    """Raise ValueError where the reference has not the weights of ours; `theirs` has our names."""
    own, other = ({n: p.shape for n, p in m.named_parameters()} for m in (ours, theirs))
    differ = [n for n in {**own, **other} if own.get(n) != other.get(n)]
    if differ:
        raise ValueError(
            f"The reference has other weights than ours, first {differ[0]}; expected a model of "
            "the same family and sizes. Leave the reference out to have one built from ours."
        )


def _batch(config: Any, sequences: int, length: int, seed: int) -> dict[str, Tensor]:
    """Random ids in sequences of different length, the second half of each in segment B if there is
    one; a model without segments gets none. The padding id stands for nothing else: some models
    count their positions by it. Who reads pictures gets random pixels."""
    generator = torch.Generator().manual_seed(seed)
    if hasattr(config, "image_size"):
        size = (sequences, config.num_channels, config.image_size, config.image_size)
        return {"pixel_values": torch.randn(size, generator=generator)}
    ids = torch.randint(config.vocab_size, (sequences, length), generator=generator)
    position = torch.arange(length)
    lengths = torch.tensor(
        [max(1, length - i * length // (2 * sequences)) for i in range(sequences)]
    )[:, None]
    mask = (position < lengths).long()
    other = (config.pad_token_id + 1) % config.vocab_size
    ids = torch.where(ids == config.pad_token_id, other, ids)
    ids = torch.where(mask.bool(), ids, config.pad_token_id)
    batch = {"input_ids": ids, "attention_mask": mask}
    if config.type_vocab_size:
        types = (position >= lengths // 2).long() * mask * min(1, config.type_vocab_size - 1)
        batch["token_type_ids"] = types
    return batch


@contextmanager
def _gradients_of(model: nn.Module) -> Iterator[None]:
    """Dropout off, gradients cleared and taken for every weight; mode, gradients and what is frozen
    as they were afterwards."""
    training, before = model.training, [(p, p.grad, p.requires_grad) for p in model.parameters()]
    model.eval().requires_grad_(True).zero_grad(set_to_none=True)
    try:
        yield
    finally:
        model.train(training)
        for p, grad, learns in before:
            p.grad = grad
            p.requires_grad_(learns)


def _names(ours: Any, theirs: Any) -> list[str]:
    names = [n for n in OUTPUTS if getattr(ours, n, None) is not None]
    return [n for n in names if getattr(theirs, n, None) is not None]


def _real(outputs: Any, name: str, mask: Tensor | None) -> Tensor:
    """(B, T, …) at real positions; what there is one of a sequence, (B, …), as it is, and so all
    that is said of pictures."""
    output = getattr(outputs, name)
    return output if mask is None or name in ONE_A_ROW else output[mask.bool()]


def _largest(values: Iterable[float]) -> float:
    """nan if one of them is nan, which Python's max may pass over."""
    return float(torch.tensor([0.0, *values], dtype=torch.float64).max())


def _distance(ours: Any, theirs: Any, name: str, mask: Tensor | None) -> float:
    a, b = (_real(outputs, name, mask).detach() for outputs in (ours, theirs))
    return float((a - b).abs().max() / max(1.0, float(b.abs().max())))


def _mean_loss(outputs: Any, names: list[str], mask: Tensor | None, seed: int) -> Tensor:
    """Mean squared distance from a fixed random target, over all outputs: reaches every weight."""
    total = torch.zeros(())
    for name in names:
        output = _real(outputs, name, mask)
        generator = torch.Generator().manual_seed(seed)
        target = torch.randn(output.shape, generator=generator, dtype=torch.float64)
        total = total + (output - target.to(output.dtype)).square().mean()
    return total


def _gradient_distance(ours: nn.Module, theirs: nn.Module) -> float:
    """`theirs` holds gradients where weights were. A parameter no output reaches counts as zero."""
    own = {n: torch.zeros_like(p) if p.grad is None else p.grad for n, p in ours.named_parameters()}
    other = {name: gradient.detach() for name, gradient in theirs.named_parameters()}
    worst = _largest(float((grad - other[name]).abs().max()) for name, grad in own.items())
    largest = _largest(float(other[name].abs().max()) for name in own)
    return worst / largest if largest else worst


def _count(model: nn.Module) -> int:
    return sum(p.numel() for p in model.parameters())
