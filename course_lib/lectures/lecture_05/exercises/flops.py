"""Exercise 05.6: what the layers compute, whatever they share."""

from __future__ import annotations

from itertools import product

from course_lib.config import published
from course_lib.teaching.exercises.form import (
    Case,
    Draw,
    Edit,
    Exercise,
    Stage,
    each,
    omitted,
    written,
)
from course_lib.teaching.exercises.outputs import Number


def stack_flops(T: int, H: int, F: int, L: int, sharing: str) -> int:
    """FLOPs of L layers for one text of T tokens; a multiply-add counts as two."""
    multiply_add = 2  # a product and a sum
    projections = 4 * T * H * H  # query, key, value, output
    products = 2 * T * T * H  # query with key, attention weights with value: all heads together
    feed_forward = 2 * T * H * F
    layer = multiply_add * (projections + products + feed_forward)
    return L * layer  # every layer runs, shared or not


def case(draw: Draw, layers: int, sharing: str) -> Case:
    return draw.integer(3, 40), draw.integer(5, 50), draw.integer(51, 99), layers, sharing


def published_sizes(draw: Draw) -> list[Case]:
    configs = (
        (published(family, "base"), s) for family, s in (("bert", "none"), ("albert", "all"))
    )
    return [(128, c.hidden_size, c.intermediate_size, c.num_layers, s) for c, s in configs]


RETURN = "return L * layer"
ONCE = "The weights are stored once, but every layer multiplies with them again: sharing saves no "

FLOPS = Exercise(
    **written("05.6"),
    solution=stack_flops,
    returns=Number("number of FLOPs", kind="int"),
    see="course_lib.config.encoder_flops takes a configuration; how layers share does not enter",
    stages=(
        Stage("one layer", each(case, *[(1, "none")] * 3)),
        Stage("several layers, nothing shared",
              each(case, (2, "none"), (3, "none"), (5, "none"))),
        Stage("shared layers", each(case, *product((2, 5), ("all", "attention", "feed_forward")))),
        Stage("BERT-base and ALBERT-base, 128 tokens", published_sizes),
    ),
    mistakes=(
        Edit("multiply_add = 2", "multiply_add = 1",
             "You counted a multiply-add as one; it counts as two FLOPs, a product and a sum."),
        Edit("multiply_add * (", "3 * multiply_add * (",
             "You counted the backward pass as well (three times the forward pass); leave it out."),
        Edit(RETURN, "return layer", "You counted one layer; there are L."),
        Edit(RETURN, 'return layer if sharing == "all" else L * layer',
             f'With "all" you counted one layer. {ONCE}FLOPs.'),
        Edit(RETURN, 'first = 1 if sharing in ("all", "attention") else L\n    second = 1 if '
             'sharing in ("all", "feed_forward") else L\n    return multiply_add * (first * '
             "(projections + products) + second * feed_forward)",
             f"You counted layers that share weights once. {ONCE}FLOPs."),
        Edit(RETURN, 'first = 1 if sharing in ("all", "attention") else L\n    second = 1 if '
             'sharing in ("all", "feed_forward") else L\n    return multiply_add * (first * '
             "projections + L * products + second * feed_forward)",
             f"You counted linear layers that share weights once. {ONCE}FLOPs."),
        Edit(RETURN, 'return L * layer if sharing == "none" else layer',
             f"You counted one layer as soon as anything is shared. {ONCE}FLOPs."),
        omitted("products + feed_forward", "the two products inside attention, each query with "
                "each key and the attention weights with the values. They grow with T²",
                instead="feed_forward"),
        Edit("2 * T * T * H", "T * T * H", "Attention has two products of T² · H multiply-adds: "
             "queries with keys, and attention weights with values. You left one out."),
        Edit("2 * T * T * H", "2 * T * H", "The two products inside attention grow with T², "
             "because each token is compared with each. Your count has T only once."),
        Edit("2 * T * T * H", "2 * T * T", "Each of the T² attention scores is a product of two "
             "vectors: H multiply-adds, not one. The same holds for the product with the values."),
        Edit("4 * T * H * H", "T * H * H",
             "You counted one layer H to H; attention has four: query, key, value and output."),
        Edit("4 * T * H * H", "3 * T * H * H",
             "You left out attention's output projection, the fourth layer H to H."),
        omitted("(projections + ", "query, key, value and output projection, four layers H to H",
                instead="("),
        Edit("2 * T * H * F", "T * H * F",
             "The feed-forward half has two layers, H to F and F to H; you left one out."),
        omitted("2 * T * H * F", "the feed-forward half"),
        Edit("2 * T * H * F", "8 * T * H * H", "4H stands where F should."),
        Edit(RETURN, "return L * (layer + T * (5 * H + F))",
             "You counted the biases as well; count the matrix products only."),
        Edit(RETURN, "return L * (layer - T * (6 * H + T + F))",
             "You counted a sum of k products with k − 1 additions. Here each product counts with "
             "one addition: a multiply-add is two FLOPs."),
        Edit("4 * T * H * H", "4 * H * H", "You counted the linear layers for one token; each of "
             "the T tokens passes through them.", more=(("2 * T * H * F", "2 * H * F"),)),
    ),
)  # fmt: skip
