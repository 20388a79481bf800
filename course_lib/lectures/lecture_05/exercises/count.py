"""Exercise 05.3: count an ALBERT, whatever its layers share."""

from __future__ import annotations

from itertools import product

from course_lib.config import published
from course_lib.family.albert import AlbertConfig
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


def albert_parameters(V: int, P: int, E: int, H: int, F: int, L: int, sharing: str) -> int:
    """Parameters of ALBERT's encoder with its pooler, from the sizes alone (section 3.1)."""
    embeddings = V * E + P * E + 2 * E + (E + E)  # words, positions, segments, LayerNorm: E wide
    projection = E * H + H
    attention = 4 * (H * H + H)
    feed_forward = (H * F + F) + (F * H + H)
    norm = 2 * H  # one after each half of a block, shared with it
    attending = 1 if sharing in ("all", "attention") else L
    feeding = 1 if sharing in ("all", "feed_forward") else L
    blocks = attending * (attention + norm) + feeding * (feed_forward + norm)
    pooler = H * H + H
    return embeddings + projection + blocks + pooler


def case(draw: Draw, layers: int, sharing: str) -> Case:
    V, P, E, F = (draw.integer(*range_) for range_ in ((60, 200), (20, 50), (3, 9), (101, 199)))
    return V, P, E, E + draw.integer(4, 17), F, layers, sharing


def published_sizes(draw: Draw) -> list[Case]:
    configs = [published("albert", s, AlbertConfig) for s in ("base", "large", "xlarge", "xxlarge")]
    return [
        (c.vocab_size, c.max_positions, c.embedding_size, c.hidden_size, c.intermediate_size,
         c.num_layers, c.sharing)
        for c in configs
    ]  # fmt: skip


BLOCKS = "attending * (attention + norm) + feeding * (feed_forward + norm)"
ATTENDING = '1 if sharing in ("all", "attention") else L'
FEEDING = '1 if sharing in ("all", "feed_forward") else L'
ALL_NARROW = "ALBERT gives all three width E, and the projection comes after their sum."

COUNT = Exercise(
    **written("05.3"),
    solution=albert_parameters,
    returns=Number("number of parameters", kind="int"),
    see="course_lib.encoder.count_parameters counts a model that has been built",
    stages=(
        Stage("one layer", each(case, *[(1, "none")] * 3)),
        Stage("several layers, nothing shared",
              each(case, (2, "none"), (3, "none"), (5, "none"))),
        Stage("everything shared", each(case, (2, "all"), (3, "all"), (5, "all"))),
        Stage("one half shared", each(case, *product((2, 5), ("attention", "feed_forward")))),
        Stage("ALBERT-base, -large, -xlarge and -xxlarge", published_sizes),
    ),
    mistakes=(
        Edit("V * E + P * E + 2 * E + (E + E)", "(V + P + 4) * H",
             "You counted BERT's embeddings: tables and LayerNorm of width H, and no projection.",
             more=(("projection = E * H + H", "projection = 0"),)),
        Edit("V * E", "V * H",
             "You counted the word embeddings with V·H numbers; factorised, they have V·E."),
        Edit("P * E", "P * H", f"You counted position embeddings of width H. {ALL_NARROW}"),
        Edit("+ 2 * E", "+ 2 * H", f"You counted segment embeddings of width H. {ALL_NARROW}"),
        Edit("(E + E)", "(H + H)", "You counted the LayerNorm of the embeddings with width H; it "
             "comes before the projection and has width E."),
        Edit("P * E + 2 * E", "P * H + 2 * H",
             f"You counted the position and segment embeddings with width H. {ALL_NARROW}"),
        omitted("P * E", "the position embeddings, P·E"),
        omitted("+ 2 * E", "the segment embeddings, 2·E", instead=""),
        omitted("(E + E)", "the LayerNorm of the embeddings, a gain and a bias, 2E"),
        omitted("E * H + H", "the projection from E to H, E·H weights and H biases"),
        Edit("+ 2 * E", "+ E", "You counted one segment; there are two, 2·E."),
        Edit("(E + E)", "E", "You counted one parameter per unit for the LayerNorm of the "
             "embeddings; it has two, a gain and a bias."),
        Edit("E * H + H", "E * H", "You left out the projection's bias, H numbers."),
        Edit("pooler = H * H + H", "pooler = H * H", "You left out the pooler's bias, H numbers."),
        Edit("E * H + H", "E * H", "You left out the biases of the projection and of the pooler, H "
             "numbers each.", more=(("pooler = H * H + H", "pooler = H * H"),)),
        Edit("E * H + H", "E * H + H + H * E + E", "You counted a projection back from H to E; "
             "there is one linear layer from E to H, and none back."),
        Edit("projection + blocks", "L * projection + blocks",
             "You counted the projection once per layer; it exists once, after the embeddings."),
        Edit(ATTENDING, "L", "You counted the shared weights L times. What layers share exists "
             "once.", more=((FEEDING, "L"),)),
        Edit(ATTENDING, "1", "You counted one block where `sharing` gives each layer weights of "
             "its own.", more=((FEEDING, "1"),)),
        Edit(f"attending = {ATTENDING}", f"attending = {FEEDING}",
             'You share the wrong half: "attention" shares the half that attends, "feed_forward" '
             "the other.", more=((f"feeding = {FEEDING}", f"feeding = {ATTENDING}"),)),
        Edit(ATTENDING, '1 if sharing != "none" else L', "You share everything as soon as anything "
             'is shared: with "attention" or "feed_forward" the other half exists L times.',
             more=((FEEDING, '1 if sharing != "none" else L'),)),
        Edit(ATTENDING, '1 if sharing == "all" else L', 'With "attention" or "feed_forward" you '
             "share nothing: that half exists once.",
             more=((FEEDING, '1 if sharing == "all" else L'),)),
        *(Edit(rule, '1 if sharing == "all" else L', f'With "{half}" this half exists once; your '
               "count gives each layer its own.")
          for half, rule in (("attention", ATTENDING), ("feed_forward", FEEDING))),
        *(Edit(rule, '1 if sharing != "none" else L', f'With "{shared}" the other half exists L '
               "times; your count shares it, too.")
          for shared, rule in (("attention", FEEDING), ("feed_forward", ATTENDING))),
        Edit(BLOCKS, "attending * attention + feeding * feed_forward + 2 * L * norm",
             "You gave each layer LayerNorms of its own. A LayerNorm belongs to the half before it "
             "and is shared with it."),
        Edit(BLOCKS, 'attending * attention + feeding * feed_forward + 2 * norm * (L if sharing == '
             '"none" else 1)', "You counted both LayerNorms once as soon as anything is shared. A "
             "LayerNorm belongs to the half before it; if that half is not shared, there are L of "
             "them."),
        Edit("norm = 2 * H", "norm = 0", "You left out the LayerNorms of the blocks, 2H after each "
             "half."),
        Edit("norm = 2 * H", "norm = 0", "You left out every LayerNorm, 2E after the embeddings "
             "and 2H after each half of a block.", more=(("(E + E)", "0"),)),
        Edit("feeding * (feed_forward + norm)", "feeding * feed_forward",
             "You counted one LayerNorm per block; there are two, with 2H parameters after each "
             "half."),
        Edit("norm = 2 * H", "norm = H", "You counted one parameter per unit for each LayerNorm; "
             "it has two, a gain and a bias.", more=(("(E + E)", "E"),)),
        Edit("4 * (H * H + H)", "4 * H * H", "You left out the biases of the linear layers. Each "
             "has as many as it has outputs.",
             more=(("(H * F + F) + (F * H + H)", "2 * H * F"), ("E * H + H", "E * H"),
                   ("pooler = H * H + H", "pooler = H * H"))),
        Edit("4 * (H * H + H)", "4 * H * H", "You left out the biases of the blocks' linear "
             "layers. Each has as many as it has outputs.",
             more=(("(H * F + F) + (F * H + H)", "2 * H * F"),)),
        Edit("4 * (H * H + H)", "4 * H * H",
             "You left out the biases of query, key, value and output, 4H."),
        Edit("(H * F + F) + (F * H + H)", "2 * H * F",
             "You left out the biases of the feed-forward layers, F + H."),
        *(Edit("(H * F + F) + (F * H + H)", f"2 * H * F + 2 * {size}", f"Both feed-forward layers "
               f"were given {size} biases. Each has as many as it has outputs: F, then H.")
          for size in "FH"),
        Edit("4 * (H * H + H)", "3 * (H * H + H)",
             "You left out attention's output projection, another layer from H to H."),
        Edit("(F * H + H)", "H",
             "You gave the feed-forward half one matrix; it has two, H to F and back."),
        Edit("+ pooler", "+ L * pooler",
             "You counted the pooler once per layer; it exists once, after the last."),
        omitted("+ pooler", "the pooler, one more linear layer, H to H, on [CLS]", instead=""),
        Edit("(H * F + F) + (F * H + H)", "8 * H * H + 5 * H", "4H stands where F should."),
        Edit("embeddings = V", "E = 128; embeddings = V", "128 stands where E should."),
        Edit("return embeddings", "return H * E + E + 2 * E + V + embeddings",
             "You counted the MLM head; the exercise leaves the heads out."),
        Edit("return embeddings", "return 2 * H + 2 + embeddings",
             "You counted the SOP head, 2H + 2; the exercise leaves the heads out."),
    ),
)  # fmt: skip
