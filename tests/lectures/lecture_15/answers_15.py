"""Answers to the exercises of lecture 15 as other hands write them, for test_exercises.py."""

from __future__ import annotations

from functools import partial
from typing import Any

import numpy as np
import torch
import torch.nn.functional as F

# ---------------------------------------------------------------- 15.1


def unfolded(pictures, P):
    """torch's own way to cut: (B, C·P·P, N)."""
    return F.unfold(pictures, P, stride=P).transpose(1, 2)


def patch_by_patch(pictures, P):
    height, width = pictures.shape[2:]
    return torch.stack([
        pictures[:, :, y : y + P, x : x + P].flatten(1)
        for y in range(0, height, P) for x in range(0, width, P)
    ], dim=1)  # fmt: skip


def in_numpy(pictures, P, order=(0, 2, 4, 1, 3, 5)):
    B, C, height, width = pictures.shape
    split = pictures.numpy().reshape(B, C, height // P, P, width // P, P)
    return split.transpose(order).reshape(B, -1, C * P * P)


# ---------------------------------------------------------------- 15.2


def linear(pictures, weight, bias, order=None):
    patches = unfolded(pictures, weight.shape[-1])
    return F.linear(patches, (weight if order is None else weight.permute(order)).flatten(1), bias)


def summed_up(pictures, weight, bias):
    """All products at once, without a matrix."""
    P = weight.shape[-1]
    squares = pictures.unfold(2, P, P).unfold(3, P, P)
    return torch.einsum("bcijyx,hcyx->bijh", squares, weight).flatten(1, 2) + bias


def patch_for_patch(pictures, weight, bias):
    patches = unfolded(pictures, weight.shape[-1])
    outputs = [(patches[:, :, None] * kernel.flatten()).sum((2, 3)) for kernel in weight]
    return torch.stack(outputs, dim=-1) + bias


def convolved(pictures, weight, bias):
    return F.conv2d(pictures, weight, bias, stride=weight.shape[-1]).flatten(2).transpose(1, 2)


# ---------------------------------------------------------------- 15.3


def interpolated(table, rows, columns, mode="bilinear", align_corners=True):
    n = round((len(table) - 1) ** 0.5)
    picture = table[1:].reshape(n, n, -1).permute(2, 0, 1)[None]
    new = F.interpolate(picture, (rows, columns), mode=mode, align_corners=align_corners)
    return torch.cat([table[:1], new[0].permute(1, 2, 0).reshape(rows * columns, -1)])


def two_weights_a_place(n, new):
    """The matrix that interpolates a line: (new, n)."""
    matrix = torch.zeros(new, n, dtype=torch.float64)
    for i in range(new):
        place = i * (n - 1) / (new - 1)
        low = min(int(place), n - 2)
        matrix[i, low], matrix[i, low + 1] = 1 - (place - low), place - low
    return matrix


def by_two_matrices(table, rows, columns):
    n = round((len(table) - 1) ** 0.5)
    down, right = two_weights_a_place(n, rows), two_weights_a_place(n, columns)
    new = torch.einsum("yi,xj,ijh->yxh", down, right, table[1:].reshape(n, n, -1))
    return torch.cat([table[:1], new.flatten(0, 1)])


def with_numpy(table, rows, columns):
    """Line by line, then column by column."""
    n = round((len(table) - 1) ** 0.5)
    grid = table[1:].numpy().reshape(n, n, -1)
    for axis, new in ((0, rows), (1, columns)):
        steps = partial(np.interp, np.linspace(0, n - 1, new), np.arange(n))
        grid = np.apply_along_axis(steps, axis, grid)
    return np.concatenate([table[:1].numpy(), grid.reshape(rows * columns, -1)])


# ---------------------------------------------------------------- 15.4


def halved(attentions):
    """The rows add up to 1, so the sum of both to 2."""
    steps = (attentions.mean(2) + torch.eye(attentions.shape[-1])) / 2
    return chained(steps)


def chained(steps):
    joint = torch.eye(steps.shape[-1], dtype=steps.dtype).expand(steps.shape[1:])
    for step in reversed(steps):
        joint = joint @ step
    return joint


def from_the_first_on(attentions):
    joint = torch.eye(attentions.shape[-1], dtype=attentions.dtype)
    for layer in attentions:
        heads = layer.mean(1)
        joint = (heads @ joint + joint) / 2
    return joint


def normalised_at_the_end(attentions):
    joint = chained(attentions.mean(2) + torch.eye(attentions.shape[-1]))
    return joint / joint.sum(-1, keepdim=True)


def steps_of(attentions, heads=lambda x: x.mean(2), eye=1.0):
    steps = heads(attentions) + eye * torch.eye(attentions.shape[-1])
    return steps / steps.sum(-1, keepdim=True)


# ---------------------------------------------------------------- 15.5


def by_kronecker(reconstruction, pictures, hidden, P):
    B, C, height, width = pictures.shape
    grid = hidden.view(B, height // P, width // P).double()
    mask = torch.kron(grid, torch.ones(1, P, P, dtype=torch.float64)).bool()
    mask = mask[:, None].repeat(1, C, 1, 1)
    if not mask.any():
        return mask, 0.0
    return mask, F.mse_loss(reconstruction[mask], pictures[mask])


def by_patches(reconstruction, pictures, hidden, P):
    """The loss of patches, cut; the mask joined again."""
    predicted, true = (unfolded(x, P)[hidden] for x in (reconstruction, pictures))
    ones = hidden[:, None].expand(-1, pictures.shape[1] * P * P, -1).double()
    mask = F.fold(ones, pictures.shape[2:], P, stride=P).bool()
    return mask, ((predicted - true) ** 2).sum() / max(1, predicted.numel())


def pixel_by_pixel(reconstruction, pictures, hidden, P):
    mask = torch.zeros_like(pictures, dtype=torch.bool)
    columns = pictures.shape[3] // P
    for b, n in hidden.nonzero().tolist():
        y, x = P * (n // columns), P * (n % columns)
        mask[b, :, y : y + P, x : x + P] = True
    errors = (reconstruction - pictures)[mask].tolist()
    return mask, sum(e * e for e in errors) / (len(errors) or 1)


def nothing_hidden_is_nan(reconstruction, pictures, hidden, P):
    mask = by_kronecker(reconstruction, pictures, hidden, P)[0]
    return mask, F.mse_loss(reconstruction[mask], pictures[mask])


def loss_of(how):
    """The right mask, and another loss of (errors, mask)."""

    def answer(reconstruction, pictures, hidden, P):
        mask = by_kronecker(reconstruction, pictures, hidden, P)[0]
        return mask, how(reconstruction - pictures, mask)

    return answer


def mask_of(how):
    """Another mask of (hidden, pictures, P), and the loss of it."""

    def answer(reconstruction, pictures, hidden, P):
        mask = how(hidden, pictures, P)
        return mask, F.mse_loss(reconstruction[mask], pictures[mask])

    return answer


# ---------------------------------------------------------------- 15.6


def settings(config):
    H, inner = config.hidden_size, config.intermediate_size
    patches = (config.image_size // config.patch_size) ** 2
    return H, inner, config.num_layers, config.num_channels * config.patch_size**2, patches


def sizes(config):
    H, inner, layers, pixels, patches = settings(config)
    block = 4 * (H * H + H) + (H * inner + inner) + (inner * H + H) + 4 * H
    parameters = (pixels + 1) * H + H + (patches + 1) * H + layers * block + 2 * H
    return parameters, flops(config)


def flops(config):
    H, inner, layers, pixels, patches = settings(config)
    T = patches + 1
    products = [(patches, pixels, H)]
    for _ in range(layers):
        products += 4 * [(T, H, H)] + [(T, H, inner), (T, inner, H), (T, H, T), (T, T, H)]
    return sum(2 * a * b * c for a, b, c in products)


def built_and_counted(config):
    """Built by the library, on the meta device; FLOPs counted while it runs."""
    from torch.utils.flop_counter import FlopCounterMode

    from course_lib.family.vit import vit_encoder

    with torch.device("meta"):
        encoder = vit_encoder(config, pooler=False).eval()
        picture = torch.empty(1, config.num_channels, config.image_size, config.image_size)
    kernels = torch.nn.attention.sdpa_kernel(torch.nn.attention.SDPBackend.MATH)
    with torch.no_grad(), kernels, FlopCounterMode(display=False) as counter:
        encoder(picture)
    return sum(p.numel() for p in encoder.parameters()), counter.get_total_flops()


def changed(parameters=lambda c: 0, more=lambda c: 0):
    """The right counts and something more."""
    return lambda c: (sizes(c)[0] + parameters(c), sizes(c)[1] + more(c))


RIGHT: dict[str, list[Any]] = {
    "15.1": [unfolded, patch_by_patch, in_numpy],
    "15.2": [linear, summed_up, patch_for_patch],
    "15.3": [interpolated, by_two_matrices, with_numpy],
    "15.5": [by_kronecker, by_patches, pixel_by_pixel],
    "15.4": [halved, from_the_first_on, normalised_at_the_end, lambda x: chained(steps_of(x))],
    "15.6": [sizes, built_and_counted],
}
WRONG: dict[str, list[tuple[Any, str]]] = {
    "15.1": [
        (lambda x, P: F.unfold(x, P, stride=P), "as F.unfold returns them"),
        (lambda x, P: unfolded(x, P).flip(1), "you have"),
    ],
    "15.2": [
        (convolved, "Show that a matrix will do"),
        (lambda x, w, b: linear(x, w, None), "`bias` has no effect"),
        (lambda x, w, b: unfolded(x, w.shape[-1]) @ w.flatten(1) + b, "so transpose it"),
    ],
    "15.3": [
        (lambda t, r, c: interpolated(t, r, c, align_corners=False), "so the corner patches move"),
        (lambda t, r, c: F.interpolate(t[1:], (r, c), mode="bilinear"), "four axes"),
        (lambda t, r, c: t[1:].reshape(1, -1, int(len(t) ** 0.5), 1 + int(len(t) ** 0.5)),
         "The class token is not in the grid"),
    ],
    "15.5": [
        (nothing_hidden_is_nan, "Your loss is not a finite number"),
        (loss_of(lambda e, m: e.square().mean()), "This is the error of all pixels"),
        (mask_of(lambda h, x, P: ~by_kronecker(x, x, h, P)[0]), "that can be *seen*"),
        (mask_of(lambda h, x, P: h), "has the pixels' shape"),
    ],
    "15.4": [
        (lambda x: chained(steps_of(x).flip(0)), "Your product has the wrong order"),
        (lambda x: steps_of(x)[-1], "the last layer alone"),
        (lambda x: torch.eye(x.shape[-1]) @ x[0], "must have one type"),
    ],
    "15.6": [
        (changed(lambda c: -c.hidden_size), "the class token's own vector"),
        (lambda c: c["hidden_size"], "Settings are attributes"),
    ],
}  # fmt: skip
