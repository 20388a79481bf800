"""Exercise 01.3: the loss of a bidirectional language model. B texts, T words, V words to
predict."""

from __future__ import annotations

from collections.abc import Sequence

import torch
import torch.nn.functional as F
from torch import Tensor

from course_lib.teaching.exercises.form import Case, Draw, Edit, Exercise, Stage, each, written
from course_lib.teaching.exercises.outputs import Number


def bilm_loss(forward_logits: Tensor, backward_logits: Tensor, ids: Tensor, real: Tensor) -> Tensor:
    """½(forward + backward), each the mean of −ln P(neighbour), in nats (section 3.1)."""
    both = real[:, 1:]  # (B, T − 1): here and one place before are words
    forward = F.cross_entropy(forward_logits[:, :-1][both], ids[:, 1:][both])
    backward = F.cross_entropy(backward_logits[:, 1:][both], ids[:, :-1][both])
    return (forward + backward) / 2


# ---------------------------------------------------------------- cases


def case(draw: Draw, lengths: Sequence[int], V: int = 5, size: float = 1.5) -> Case:
    """lengths: words of each text; size: how far apart the logits are."""
    B, T = len(lengths), max(lengths)
    real = torch.arange(T) < torch.tensor(lengths)[:, None]
    # Padding may have any number, that of a word, too.
    ids = torch.where(real, draw.ids(0, V - 1, B, T), draw.integer(0, V - 1))
    forward, backward = ((size * draw.normal(B, T, V)).requires_grad_() for _ in range(2))
    return forward, backward, ids, real


FORWARD = "F.cross_entropy(forward_logits[:, :-1][both], ids[:, 1:][both])"
BACKWARD = "F.cross_entropy(backward_logits[:, 1:][both], ids[:, :-1][both])"
RETURNED = "(forward + backward) / 2"
ALL_FORWARD = "F.cross_entropy(forward_logits[:, :-1].flatten(0, 1), ids[:, 1:].flatten())"
ALL_BACKWARD = "F.cross_entropy(backward_logits[:, 1:].flatten(0, 1), ids[:, :-1].flatten())"
SAME = "F.cross_entropy({}_logits[real], ids[real])"
TEXTS = (
    "torch.stack([F.cross_entropy({0}_logits[b, {1}][both[b]], ids[b, {2}][both[b]]) "
    "for b in range(len(ids))]).mean()"
)
READ = "has read the word at its own position: predicting that is no task."


def with_reduction(call: str, how: str) -> str:
    return call[:-1] + f', reduction="sum") {how}'


BILM = Exercise(
    **written("01.3"),
    solution=bilm_loss,
    returns=Number("loss", "nats"),
    library=(
        "course_lib.objectives.bilm:bilm_labels",
        "course_lib.objectives.bilm:bilm_loss",
    ),
    infinite="Your loss is not a finite number: a logarithm of 0, or a mean over nothing.",
    when_raised=(
        (r"Expected input batch_size|Expected target size|size mismatch|shape of the mask|"
         r"indexed tensor|must match",
         "Logits and targets do not line up. Pair them first, forward_logits[:, :-1] with "
         "ids[:, 1:], then take both at the same True positions, real[:, 1:]: (N, V) and (N,)."),
        (r"expected scalar type Long|Float.*Long|class probabilities",
         "Targets are numbers of words: ids as they are, not floating-point numbers."),
    ),
    stages=(
        Stage("one text of two words", each(case, ((2,),), ((2,),))),
        Stage("one longer text", each(case, ((4,),), ((7,), 9))),
        Stage("texts of the same length", each(case, ((4, 4, 4),), ((6, 6), 8))),
        Stage("texts of different lengths", each(case, ((3, 6),), ((7, 2, 5), 8))),
        Stage("very sure models", each(case, ((5, 3), 6, 900.0))),
    ),
    gradient=("forward_logits", "backward_logits"),
    mistakes=(
        Edit(FORWARD, SAME.format("forward"), "The forward model is asked for the word at its own "
             f"position. It {READ} Position t goes with word t + 1."),
        Edit(BACKWARD, SAME.format("backward"), "The backward model is asked for the word at its "
             f"own position. It {READ} Position t goes with word t − 1."),
        Edit(FORWARD, SAME.format("forward"), f"Nothing is shifted: each model {READ} The forward "
             "one predicts the next word, the backward one the word before.",
             more=((BACKWARD, SAME.format("backward")),)),
        Edit(BACKWARD, "F.cross_entropy(backward_logits[:, :-1][both], ids[:, 1:][both])",
             "The backward model predicts the *next* word, like the forward one. But it has read "
             "the text from its end and knows the next word; it must predict the one before."),
        Edit(FORWARD, "F.cross_entropy(forward_logits[:, 1:][both], ids[:, :-1][both])",
             "The forward model is asked for the word *before*, which it has read already. It "
             "predicts the next one."),
        Edit(FORWARD, "F.cross_entropy(forward_logits[:, 1:][both], ids[:, :-1][both])",
             "The directions are exchanged: each model is asked for what it has read. The forward "
             "one predicts the next word, the backward one the word before.",
             more=((BACKWARD,
                    "F.cross_entropy(backward_logits[:, :-1][both], ids[:, 1:][both])"),)),
        Edit(BACKWARD, BACKWARD.replace("backward_logits", "backward_logits.flip(1)"),
             "The backward logits are reversed. They are in the order of the text already: "
             "position t is about the word before word t."),
        Edit(FORWARD, "F.cross_entropy(forward_logits.flatten(0, 1), ids.roll(-1, 1).flatten())",
             "roll wraps around: the last word predicts the first one, and the first the "
             "last. Where there is no neighbour, nothing is predicted.",
             more=((BACKWARD, "F.cross_entropy(backward_logits.flatten(0, 1), "
                              "ids.roll(1, 1).flatten())"),)),
        Edit(RETURNED, "forward + backward", "The two losses are added; expected half of their "
             "sum."),
        Edit(RETURNED, "forward", "Only the forward model is in your loss. Add the backward one "
             "and take half of the sum."),
        Edit(RETURNED, "backward", "Only the backward model is in your loss. Add the forward one "
             "and take half of the sum."),
        Edit(RETURNED, "forward / 2", "The backward model is missing from your loss."),
        Edit(RETURNED, "backward / 2", "The forward model is missing from your loss."),
        Edit(RETURNED, "torch.maximum(forward, backward)", "This is the larger of the two losses; "
             "expected half of their sum."),
        Edit(FORWARD, ALL_FORWARD, "Padding is in your means. A pair counts where both of its "
             "positions are words.", more=((BACKWARD, ALL_BACKWARD),)),
        Edit(FORWARD, "F.cross_entropy(forward_logits[:, :-1][real[:, :-1]], "
             "ids[:, 1:][real[:, :-1]])", "The last word of a shorter text predicts padding. It "
             "has no next word: look whether the *target* is a word, real[:, 1:]."),
        Edit(BACKWARD, "F.cross_entropy(backward_logits[:, 1:][real[:, :-1]], "
             "ids[:, :-1][real[:, :-1]])", "In the backward loss, padding predicts the last word "
             "of a shorter text. The position that predicts must be a word too, real[:, 1:]."),
        Edit(FORWARD, "F.cross_entropy(forward_logits[:, :-1][real[:, :-1]], "
             "ids[:, 1:][real[:, :-1]])", "At the end of a shorter text a word and its padding "
             "make a pair, in both directions: there real[:, :-1] is True and real[:, 1:] is not. "
             "Take real[:, 1:].",
             more=((BACKWARD, "F.cross_entropy(backward_logits[:, 1:][real[:, :-1]], "
                              "ids[:, :-1][real[:, :-1]])"),)),
        Edit(FORWARD, TEXTS.format("forward", ":-1", "1:"), "Each text was averaged by itself, "
             "then the texts: a word of a short text weighs more. Average over all predicted words "
             "of the batch at once.", more=((BACKWARD, TEXTS.format("backward", "1:", ":-1")),)),
        Edit(FORWARD, with_reduction(FORWARD, ""), "These are sums over the predicted words; "
             "expected means.", more=((BACKWARD, with_reduction(BACKWARD, "")),)),
        Edit(FORWARD, with_reduction(FORWARD, "/ real.sum()"), "The sums are divided by the number "
             "of words. A text of n words has n − 1 that a direction predicts.",
             more=((BACKWARD, with_reduction(BACKWARD, "/ real.sum()")),)),
        Edit(FORWARD, with_reduction(FORWARD, "/ both.numel()"), "Padding is left out of the sums, "
             "but not out of what they are divided by: the number of predicted words.",
             more=((BACKWARD, with_reduction(BACKWARD, "/ both.numel()")),)),
        Edit(FORWARD, FORWARD.replace("[both], i", "[both].softmax(-1), i"), "A softmax comes "
             "before F.cross_entropy, which has its own. Give it the logits as they are.",
             more=((BACKWARD, BACKWARD.replace("[both], i", "[both].softmax(-1), i")),)),
        Edit(FORWARD, "F.nll_loss(forward_logits[:, :-1][both].softmax(-1).log(), "
             "ids[:, 1:][both])", "A softmax was taken, then its logarithm: a very small "
             "probability has been rounded to 0 in between. F.cross_entropy takes the logits and "
             "does both at once; log_softmax does too.",
             more=((BACKWARD, "F.nll_loss(backward_logits[:, 1:][both].softmax(-1).log(), "
                              "ids[:, :-1][both])"),)),
        Edit(RETURNED, "F.cross_entropy((forward_logits[:, :-1] + backward_logits[:, 1:])[both], "
             "ids[:, 1:][both])", "The logits of both directions are added before the loss. The "
             "two never meet: each has a loss of its own."),
    ),
)  # fmt: skip
