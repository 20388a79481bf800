"""Exercise 01.4: ELMo's scalar mix. B texts, T words, L layers of LSTMs, P numbers a direction."""

from __future__ import annotations

import torch
from torch import Tensor

from course_lib.teaching.exercises.form import Case, Draw, Edit, Exercise, Stage, each, written
from course_lib.teaching.exercises.outputs import Numbers


def mix(word: Tensor, forward: Tensor, backward: Tensor, weights: Tensor, gamma: Tensor) -> Tensor:
    """γ Σ_j s_j h_j with s = softmax(weights), layer 0 doubled: (B, T, 2P) (equation 1)."""
    above = torch.cat([forward, backward], dim=-1)  # (L, B, T, 2P)
    below = torch.cat([word, word], dim=-1)[None]  # (1, B, T, 2P)
    layers = torch.cat([below, above])  # (L + 1, B, T, 2P)
    s = weights.softmax(0)
    return gamma * (s.view(-1, 1, 1, 1) * layers).sum(0)


# ---------------------------------------------------------------- cases


def case(draw: Draw, L: int, B: int, T: int, P: int, even: bool = False, one: bool = False) -> Case:
    """even: all weights are 0; one: γ is 1."""
    word = draw.normal(B, T, P)
    forward, backward = draw.normal(L, B, T, P), draw.normal(L, B, T, P)
    weights = torch.zeros(L + 1, dtype=torch.float64) if even else 1.5 * draw.normal(L + 1)
    gamma = torch.tensor(1.0 if one else draw.integer(13, 29) / 10, dtype=torch.float64)
    return word, forward, backward, weights, gamma


ABOVE, BELOW = "torch.cat([forward, backward], dim=-1)", "torch.cat([word, word], dim=-1)[None]"
S, LAYERS = "weights.softmax(0)", "torch.cat([below, above])"
SUM = "(s.view(-1, 1, 1, 1) * layers).sum(0)"

MIXING = Exercise(
    **written("01.4"),
    solution=mix,
    returns=Numbers("mixture", shape="B T 2P"),
    see="course_lib.family.elmo.ScalarMix is this, with its parameters; Elmo doubles layer 0",
    when_raised=(
        (r"size of tensor|size mismatch|must match|broadcast|Sizes of tensors|multiplied",
         "Two shapes do not fit. Bring all layers to (B, T, 2P) first, stacked to (L + 1, B, T, "
         "2P); weights of shape (L + 1, 1, 1, 1) then multiply layer by layer."),
        (r"must be.*Tensors|expected Tensor as element|tuple of Tensors",
         "torch.cat and torch.stack take a list of tensors: torch.cat([a, b], dim=-1)."),
        ("leaf variable", "Make a new tensor instead of changing one that is trained."),
    ),
    stages=(
        Stage("equal weights, γ = 1",
              each(case, (1, 1, 1, 1, True, True), (2, 2, 3, 2, True, True))),
        Stage("other weights", each(case, (2, 1, 1, 2, False, True), (2, 2, 3, 3, False, True))),
        Stage("another γ", each(case, (2, 1, 2, 2), (2, 3, 4, 3))),
        Stage("another number of layers", each(case, (1, 2, 2, 3), (4, 2, 3, 2))),
    ),
    gradient=("word", "forward", "backward", "weights", "gamma"),
    mistakes=(
        Edit(S, "weights", "The weights are used as they are. They are raw numbers: softmax makes "
             "them positive and adds them up to one."),
        Edit(S, "weights.sigmoid()", "Each weight went through a sigmoid by itself, so that they "
             "do not add up to one. The layers compete: softmax."),
        Edit(S, "weights / weights.sum()", "The weights are divided by their sum. Softmax takes "
             "exp of them first: raw weights may be negative, and their sum zero."),
        Edit(S, "weights.exp()", "exp of the weights is not divided by its sum: softmax does "
             "both."),
        Edit(S, "(weights * gamma).softmax(0)", "gamma multiplies the raw weights, inside the "
             "softmax. It multiplies the mixture.", more=(("gamma * (s", "(s"),)),
        Edit(S, "weights.softmax(0).flip(0)", "The weights are taken from the top layer down. "
             "weights[0] belongs to layer 0, the word's own vector."),
        Edit(S, "torch.full_like(weights, 1 / len(weights))", "`weights` have no effect: this is "
             "the plain mean of the layers."),
        Edit(S, "torch.ones_like(weights)", "The layers are added up, each with weight one."),
        Edit(S, "len(weights) * weights.softmax(0)", "The weights add up to the number of layers. "
             "They add up to one; gamma is there to scale."),
        Edit("gamma * (s", "gamma + (s", "`gamma` is added; multiply by it."),
        Edit("gamma * (s", "gamma.exp() * (s", "exp of `gamma` multiplies; use `gamma` itself."),
        Edit("gamma * (s", "gamma.sigmoid() * (s", "The sigmoid of `gamma` multiplies; use `gamma` "
             "itself, which may be larger than one."),
        Edit(SUM, "(s.view(-1, 1, 1, 1) * layers).mean(0)", "The weighted layers are averaged, so "
             "divided by L + 1 once more. The weights add up to one: sum."),
        Edit(SUM, "layers[-1]", "This is the top layer alone, as one would take it from many "
             "models. ELMo gives all of them."),
        Edit(SUM, "layers[s.argmax()]", "Only the layer with the greatest weight is taken; all "
             "must be mixed."),
        Edit(ABOVE, "torch.cat([backward, forward], dim=-1)", "The backward direction comes "
             "first; put the forward one first."),
        Edit(ABOVE, "torch.cat([(forward + backward) / 2] * 2, dim=-1)", "The two directions are "
             "averaged. Put them side by side."),
        Edit(ABOVE, "torch.stack([forward, backward], dim=-1).flatten(-2)", "The two directions "
             "alternate, number by number. Side by side means all of one, then all of the other: "
             "torch.cat along the last axis.", more=((BELOW,
             "torch.stack([word, word], dim=-1).flatten(-2)[None]"),)),
        Edit(ABOVE, "torch.cat([forward, backward.flip(2)], dim=-1)", "The backward layers are "
             "reversed. They are in the order of the text already."),
        Edit(BELOW, "torch.cat([word, torch.zeros_like(word)], dim=-1)[None]", "The second half of "
             "layer 0 is filled with zeros. Repeat the word's vector there."),
        Edit(BELOW, "word.repeat_interleave(2, dim=-1)[None]", "In layer 0 each number comes "
             "twice in a row. Repeat the whole vector instead: torch.cat([word, word], "
             "dim=-1)."),
        Edit(BELOW, "torch.cat([word, word], dim=-1)[None] / 2", "Layer 0 is halved. It is "
             "repeated as it is."),
        Edit(BELOW, "torch.cat([word, word], dim=-1)[None] * 2", "Layer 0 is doubled in value as "
             "well. It is repeated as it is."),
        Edit(S, "weights[1:].softmax(0)", "Layer 0 is missing: the softmax runs over layers 1 to L "
             "only. A task may take as much of the word's own vector as it likes.",
             more=((LAYERS, "above"),)),
        Edit(LAYERS, "torch.cat([0 * below, above])", "Layer 0 is missing from the sum."),
        Edit(LAYERS, "torch.cat([above, below])", "Layer 0 comes last. It belongs first, with "
             "weights[0]."),
        Edit(SUM, "(s.view(-1, 1, 1, 1) * layers.detach()).sum(0)", "No gradient reaches the "
             "layers. Whether ELMo is frozen is decided outside, not here."),
    ),
)  # fmt: skip
