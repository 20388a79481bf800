"""Exercise 07.4: where λ belongs. What both losses are before anything is learned."""

from __future__ import annotations

from math import log

from course_lib.config import published
from course_lib.teaching.exercises.form import Case, Draw, Edit, Exercise, Stage, each, written
from course_lib.teaching.exercises.outputs import Number


def at_the_start(V: int, weight: float) -> tuple[float, float]:
    """L_MLM + λ · L_Disc before training, in nats, and the fraction of it that is the second term
    (section 2)."""
    mlm = log(V)  # at random initialisation the generator gives every word the probability 1/V
    disc = log(2)  # and the discriminator gives both answers the probability 1/2
    total = mlm + weight * disc
    return total, weight * disc / total


def case(draw: Draw, weight: float | None = None) -> Case:
    return draw.integer(50, 60_000), weight or draw.integer(2, 79) + 0.5


TOTAL, FRACTION = "mlm + weight * disc", "weight * disc / total"
OF_TWO = "weight * disc / (mlm + weight * disc)"

WEIGHING = Exercise(
    **written("07.4"),
    solution=at_the_start,
    returns=(Number("total loss", "nats"), Number("fraction")),
    see="course_lib.objectives.replaced_tokens.electra_loss (disc_weight is λ)",
    stages=(
        Stage("λ = 1", each(case, (1.0,), (1.0,))),
        Stage("other weights", each(case, *[()] * 6)),
        Stage("30,522 words and λ = 50, as published",
              lambda draw: [(published("bert", "base").vocab_size, 50.0)]),
    ),
    mistakes=(
        Edit(TOTAL, "weight * mlm + disc", "You multiply the generator's loss by λ (as one lecture "
             "prints it). In the paper it belongs to the discriminator's: L_MLM + λ · L_Disc. Look "
             "at the fraction: with λ on the wrong term the network that is kept hardly counts.",
             more=((FRACTION, "disc / total"),)),
        Edit("log(V)", "log(V, 2)", "The total is in bits, with logarithms to base 2. The losses "
             "of this course are in nats: ln.", more=(("log(2)", "1.0"),)),
        Edit(TOTAL, f"({TOTAL}) / 2", "You average the two terms; add them.",
             more=((FRACTION, OF_TWO),)),
        Edit(TOTAL, f"({TOTAL}) / (1 + weight)", "You divide the sum by the weights, 1 + λ. "
             "ELECTRA's loss is the sum itself; a mean would divide the generator's gradient by "
             "51.",
             more=((FRACTION, OF_TWO),)),
        Edit(TOTAL, "(1 - weight) * mlm + weight * disc", "You use the weights λ and 1 − λ, as in "
             "distillation. Here the generator's loss has the weight 1 and the discriminator's the "
             "weight λ."),
        Edit(TOTAL, "mlm + disc", "λ has no effect: the discriminator's loss counts λ times.",
             more=((FRACTION, "disc / total"),)),
        Edit(TOTAL, "weight * (mlm + disc)", "You multiply both losses by λ, so it has no effect "
             "on their balance. Multiply only the discriminator's loss."),
        Edit(TOTAL, "weight * disc", "The generator's loss is missing from your total: the "
             "generator learns too, so add ln V."),
        Edit(TOTAL, "mlm", "The discriminator's loss is missing from your total: add λ · ln 2."),
        Edit(FRACTION, "mlm / total", "This is the generator's fraction; the discriminator's is "
             "one minus it."),
        Edit(FRACTION, "weight * disc / mlm", "Your second number is one term divided by the "
             "other. The fraction is a term divided by the total."),
        Edit(FRACTION, "disc / (mlm + disc)", "The total is correct, but you take the fraction of "
             "the losses without λ. The term in the total is λ · ln 2."),
        Edit(FRACTION, "disc / total", "Your fraction is ln 2 divided by the total: λ is missing "
             "in the numerator."),
        Edit("return total, weight * disc / total", "return mlm, weight * disc",
             "You return the two terms. Return their sum, and the second one's fraction of it."),
        Edit("log(2)", "log(V)", "You take the discriminator's loss as ln V. It chooses between "
             "two answers, replaced or original: ln 2."),
        Edit("log(2)", "-(0.15 * log(0.15) + 0.85 * log(0.85))",
             "You assume that the discriminator already knows that about 15% of the tokens are "
             "replaced. A random initialisation gives logits near zero: both answers have the "
             "probability 1/2."),
        Edit("log(V)", "1 - 1 / V", "You use 1 − P (1 − 1/V and 1/2) without a logarithm: a loss "
             "is −ln P.", more=(("log(2)", "0.5"),)),
        Edit("log(V)", "log(1 / V)", "The sign is wrong: a loss is −ln P, and ln(1/V) is negative.",
             more=(("log(2)", "log(1 / 2)"),)),
    ),
)  # fmt: skip
