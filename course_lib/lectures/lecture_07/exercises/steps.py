"""Exercise 07.5: what one training step computes, the generator included."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from course_lib.config import BertConfig, encoder_flops, published
from course_lib.family.electra import GENERATOR_SIZE, ElectraConfig
from course_lib.kernels.masking import count_to_predict
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


def training_step(
    blocks: Callable[[int], int], T: int, H: int, V: int, k: int, g: int
) -> tuple[int, int]:
    """(BERT's, ELECTRA's) FLOPs in one training step on one text; a multiply-add is two."""
    bert = blocks(H) + 2 * k * (H * H + H * V)  # its vocabulary head, at the masked positions
    generator = 2 * T * H * g + blocks(g) + 2 * k * (g * H + H * V)
    discriminator = blocks(H) + 2 * T * (H * H + H)  # its head, at every token
    return 3 * bert, 3 * (generator + discriminator)  # backward costs twice forward


# ---------------------------------------------------------------- cases


@dataclass(frozen=True)
class Blocks:
    """encoder_flops of L blocks for T tokens, as a function of the width."""

    T: int
    L: int

    def __call__(self, width: int) -> int:
        config = BertConfig(
            hidden_size=width, num_heads=1, intermediate_size=4 * width, num_layers=self.L
        )
        return encoder_flops(config, self.T)


def case(draw: Draw, same_width: bool = False) -> Case:
    """same_width: the generator is as wide as the discriminator."""
    T, g = draw.integer(20, 60), draw.integer(3, 9)
    H = g if same_width else g * draw.integer(2, 5)
    k = draw.integer(2, T // 3)
    return Blocks(T, draw.integer(2, 6)), T, H, draw.integer(100, 900), k, g


def published_step(size: str, T: int, rate: float) -> Case:
    """The sizes of a published ELECTRA, on texts of T tokens of which `rate` are masked."""
    c = published("electra", size, ElectraConfig)
    width = round(c.hidden_size * GENERATOR_SIZE[size])
    blocks = Blocks(T, c.num_layers)
    return blocks, T, c.hidden_size, c.vocab_size, count_to_predict(T, rate), width


BERT_HEAD, PROJECTION = "2 * k * (H * H + H * V)", "2 * T * H * g"
HEAD, BLOCKS, RTD = "2 * k * (g * H + H * V)", "blocks(g)", "2 * T * (H * H + H)"
GENERATOR = f"{PROJECTION} + {BLOCKS} + {HEAD}"


def passes(many: int, say: str) -> Edit:
    return Edit("return 3 * bert, 3 *", f"return {many} * bert, {many} *", say)


STEPS = Exercise(
    **written("07.5"),
    solution=training_step,
    returns=(Number("BERT's FLOPs", tol=1e-9), Number("ELECTRA's FLOPs", tol=1e-9)),
    see="course_lib.train.flops.step_flops counts the FLOPs of a model's step while it runs",
    stages=(
        Stage("BERT's step", each(case, (), (), ()), only=("BERT's FLOPs",)),
        Stage("a generator as wide as the discriminator", each(case, (True,), (True,))),
        Stage("a smaller generator", each(case, (), (), ())),
        Stage("ELECTRA-base and -large, 512 tokens",
              lambda _: [published_step("base", 512, 0.15), published_step("large", 512, 0.25)]),
    ),
    mistakes=(
        passes(1, "You counted only the forward pass. A training step also has a backward pass, at "
               "twice the cost."),
        passes(2, "You counted the backward pass like the forward pass. It costs twice as much: "
               "gradients for the weights and for the inputs."),
        passes(4, "You counted the backward pass as three forward passes. It costs two: three in "
               "all."),
        omitted(PROJECTION, "the layer that leads the shared embeddings from H to g, at every "
                "token"),
        Edit(PROJECTION, "2 * k * H * g", "You counted the layer from H to g at the k masked "
             "positions. The generator reads every token, so all T go through it."),
        omitted(HEAD, "the generator's vocabulary head; its loss is that of BERT"),
        omitted(RTD, "the discriminator's head: H to H, then H to 1, at every token"),
        omitted(BERT_HEAD, "BERT's vocabulary head"),
        Edit(BERT_HEAD, "2 * T * (H * H + H * V)", "You counted the vocabulary heads at all T "
             "positions. Words are predicted at only k of them.",
             more=((HEAD, "2 * T * (g * H + H * V)"),)),
        Edit(HEAD, "2 * T * (g * H + H * V)", "You counted the generator's vocabulary head at all "
             "T positions. Words are predicted at only k of them."),
        Edit(RTD, "2 * k * (H * H + H)", "You counted the discriminator's head at the k masked "
             "positions; it classifies all T tokens."),
        Edit(RTD, BERT_HEAD, "You gave the discriminator a vocabulary head. It gives one logit per "
             "token: H to H, H to 1."),
        Edit(RTD, "2 * T * H", "The first layer of the discriminator's head is missing: H to H, "
             "then H to 1."),
        Edit(RTD, "2 * T * H * H", "The last layer of the discriminator's head is missing: H to H, "
             "then H to 1."),
        Edit(GENERATOR, "0", "You left out the generator. It is discarded after training, but in "
             "every step it reads the text and learns."),
        Edit("3 * (generator + discriminator)", "generator + 3 * discriminator",
             "You counted only the generator's forward pass. No gradient reaches it from the "
             "discriminator, but it has its own loss, and a backward pass for that."),
        omitted(BLOCKS, "the generator's blocks, blocks(g)"),
        Edit(BLOCKS, "blocks(H) * g / H", "You counted the generator's blocks as g/H of the "
             "discriminator's. Their matrices shrink in both directions, so most of the cost falls "
             "with the square: use blocks(g)."),
        Edit(BLOCKS, "blocks(H) * (g / H) ** 2", "You counted the generator's blocks as (g/H)² of "
             "the discriminator's. That is nearly correct, but attention's products fall only with "
             "g/H: use blocks(g)."),
        Edit(BLOCKS, "blocks(H)", "You counted the generator's blocks with width H; they have "
                             "width g."),
        Edit(HEAD, "2 * k * (g * g + g * V)", "You counted the generator's head with an embedding "
             "matrix of width g: g to g and g to V. It uses the shared one, of width H: g to H, "
             "and H to V."),
        Edit(HEAD, BERT_HEAD, "You counted the first layer of the generator's head as H to H; it "
             "is g to H."),
        Edit(BERT_HEAD, "2 * k * H * V", "The first layer of the vocabulary heads (to width H) is "
             "missing.", more=((HEAD, "2 * k * H * V"),)),
        Edit(BERT_HEAD, "k * (H * H + H * V)", "In the heads you counted a multiply-add as one "
             "FLOP; it counts as two, as in blocks.",
             more=((HEAD, "k * (g * H + H * V)"), (RTD, "T * (H * H + H)"))),
    ),
)  # fmt: skip
