"""Exercise 15.6: parameters and FLOPs of a ViT by its settings."""

from __future__ import annotations

from course_lib.config import published
from course_lib.family.vit import VitConfig
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


def sizes(config: VitConfig) -> tuple[int, int]:
    """Parameters, and FLOPs for one picture, without pooler and head."""
    H, F, L = config.hidden_size, config.intermediate_size, config.num_layers
    pixels = config.num_channels * config.patch_size**2
    N = (config.image_size // config.patch_size) ** 2
    T = N + 1  # the class token

    weights = 4 * H * H + 2 * H * F  # of one block
    biases = 5 * H + F  # query, key, value, output; the two dense layers
    norms = 2 * (H + H)
    embedding = pixels * H + H  # one matrix and its bias
    tokens = H + T * H  # the class token's vector, and positions
    last_norm = H + H
    parameters = embedding + tokens + L * (weights + biases + norms) + last_norm

    projected = N * pixels * H  # multiply-adds
    block = T * weights + 2 * T * T * H
    return parameters, 2 * (projected + L * block)


# ---------------------------------------------------------------- cases


def case(draw: Draw, layers: int) -> Case:
    """No two sizes are equal, F is not 4H, and C is not 1."""
    heads, patch = draw.integer(2, 5), draw.integer(2, 5)
    config = VitConfig(
        hidden_size=heads * draw.integer(3, 6), num_heads=heads, num_layers=layers,
        intermediate_size=draw.integer(31, 59), patch_size=patch,
        image_size=patch * draw.integer(3, 6), num_channels=draw.integer(3, 5),
    )  # fmt: skip
    return (config,)


def by_hand(draw: Draw) -> list[Case]:
    small = VitConfig(hidden_size=4, num_heads=1, num_layers=1, intermediate_size=6, image_size=4,
                      patch_size=2, num_channels=1)  # fmt: skip
    return [(small,), *each(case, (1,), (1,))(draw)]


def published_sizes(draw: Draw) -> list[Case]:
    known = [(published("vit", size, VitConfig),) for size in ("B/16", "L/16", "H/14")]
    return [*known, (published("vit", "B/16", VitConfig, image_size=384),)]


PARAMETERS, FLOPS = "number of parameters", "number of FLOPs"
NO_LAST, EMBEDDING, TOKENS = " + last_norm", "pixels * H + H", "H + T * H"
WEIGHTS, BIASES, NORMS = "4 * H * H + 2 * H * F", "5 * H + F", "2 * (H + H)"
BLOCK, RETURN = "T * weights + 2 * T * T * H", "return parameters, 2 * (projected + L * block)"

COUNT = Exercise(
    **written("15.6"),
    solution=sizes,
    returns=(Number(PARAMETERS, kind="int"), Number(FLOPS, kind="int")),
    see="course_lib.encoder.count_parameters counts a model that has been built; "
    "course_lib.config.encoder_flops the blocks alone, without the projection of the patches",
    when_raised=(
        (r"no attribute|not subscriptable", "Settings are attributes: config.hidden_size, "
         "intermediate_size, num_layers, num_channels, image_size, patch_size."),
    ),
    stages=(
        Stage("parameters without blocks", each(case, *[(0,)] * 3), only=(PARAMETERS,)),
        Stage("parameters of one block", by_hand, only=(PARAMETERS,)),
        Stage("parameters of several blocks", each(case, (2,), (3,), (5,)), only=(PARAMETERS,)),
        Stage("FLOPs without blocks", each(case, *[(0,)] * 4)),
        Stage("FLOPs of one block", by_hand),
        Stage("FLOPs of several blocks", each(case, (2,), (4,), (6,))),
        Stage("ViT-B/16, L/16, H/14, and B/16 at 384 pixels", published_sizes),
    ),
    mistakes=(
        omitted("= H + T * H", "the class token's own vector, H numbers", "= T * H"),
        Edit(TOKENS, "H + N * H", "You count positions for N patches. The class token has one, "
             "too: N + 1."),
        Edit(TOKENS, "N * H", "You left out the class token: its vector and its position, H "
             "numbers each."),
        Edit(TOKENS, "H", "You left out the position embeddings, learned as BERT's are, H numbers "
             "for each of N + 1 tokens."),
        Edit(TOKENS, "0", "You left out the class token's vector and the position embeddings."),
        Edit(EMBEDDING, "pixels * H", "You left out the bias of the patches' projection, H."),
        Edit(EMBEDDING, "config.patch_size**2 * H + H", "You count the patches' projection for one "
             "channel. A patch has C·P·P numbers."),
        Edit(EMBEDDING, "N * (pixels * H + H)", "You count the projection once for each patch. "
             "All patches are multiplied by the same matrix."),
        Edit(EMBEDDING, "config.num_channels * config.patch_size * H + H", "You count C·P numbers "
             "in a patch. It is P high *and* P wide: C·P·P."),
        omitted(NO_LAST, "the LayerNorm after the last block, 2H: a pre-LN encoder ends with one",
                ""),
        Edit(NO_LAST, " + 2 * last_norm", "You count one LayerNorm too many: ViT has none after "
             "the embeddings, where BERT has one. Its last one comes after the last block."),
        Edit(NO_LAST, " + last_norm + H * H + H", "You count the pooler, a dense layer H to H. "
             "Leave it out here (with it B/16 has 86,389,248)."),
        Edit(NO_LAST, " + last_norm + 1000 * H + 1000", "You count the head of a thousand classes. "
             "Leave it out here (with it B/16 has 86,567,656)."),
        Edit(TOKENS, "H + T * H + 2 * H", "You count segment embeddings, 2H. ViT has none."),
        Edit(TOKENS, "2 * H + T * H", "You count H numbers too many. There is one "
             "class token, in front, and nothing like BERT's [SEP] at the end."),
        Edit(NORMS, "H + H", "You count one LayerNorm in each block. It has two, one before each "
             "half."),
        omitted(NORMS, "the two LayerNorms of each block, 4H in a block"),
        Edit(NORMS, "2 * H", "You count H numbers in each LayerNorm. It has a gain and a bias, "
             "2H.", more=(("last_norm = H + H", "last_norm = H"),)),
        Edit(NORMS, "H + H", "You count H numbers in each of the blocks' LayerNorms. Each has a "
             "gain and a bias, 2H, and there are two."),
        omitted(BIASES, "the biases of the dense layers in the blocks, 5H + F in each"),
        Edit(BIASES, "2 * H + F", "You left out the biases of query, key and value, 3H in a "
             "block."),
        Edit(BIASES, "4 * H", "You left out the biases of the feed-forward part, F + H in a "
             "block."),
        Edit("L * (weights", "(weights", "You count the block once. There are L of them, each "
             "with its own weights."),
        Edit(WEIGHTS, "3 * H * H + 2 * H * F", "You left out the weight of attention's output "
             "projection, the fourth layer H to H of a block."),
        Edit(WEIGHTS, "4 * H * H + H * F", "You count one matrix in the feed-forward part. It has "
             "two, H to F and back."),
        Edit("config.intermediate_size", "4 * config.hidden_size", "You take F to be 4H. It is the "
             "configuration's own intermediate_size."),
        Edit(WEIGHTS, "12 * H * H", "You use 4H instead of the configuration's own "
             "intermediate_size."),
        Edit("(config.image_size // config.patch_size) ** 2", "config.image_size // "
             "config.patch_size", "You count image_size / patch_size patches. That is one row; "
             "there are as many rows."),
        Edit(RETURN, "return parameters, projected + L * block", "You count a multiply-add as one; "
             "it is two FLOPs, a product and a sum. (Many tables count it as one.)"),
        Edit(RETURN, "return parameters, 2 * L * block", "Your FLOPs lack the projection of "
             "the patches. Words are looked up in a table; patches are multiplied by a matrix."),
        Edit(RETURN, "return parameters, 3 * 2 * (projected + L * block)", "Your FLOPs include the "
             "backward pass (three times the forward one in all). Leave it out."),
        Edit(RETURN, "return parameters, 2 * (projected + block)", "Your FLOPs are those of one "
             "block. There are L."),
        Edit(RETURN, "return parameters, 2 * L * (projected + block)", "You count the projection "
             "of the patches in every block. It happens once, before the first."),
        Edit("N * pixels * H", "T * pixels * H", "You count the projection for N + 1 tokens. The "
             "class token is not a patch: it is a learned vector and is not projected."),
        Edit("N * pixels * H", "pixels * H", "You count the projection's FLOPs for one patch. "
             "There are N."),
        Edit("N * pixels * H", "N * config.patch_size**2 * H", "You count the projection's FLOPs "
             "for one channel. A patch has C·P·P numbers."),
        Edit(BLOCK, "N * weights + 2 * N * N * H", "You count the blocks' FLOPs for N tokens. "
             "The class token passes through every block, too: N + 1."),
        Edit(BLOCK, "T * weights", "Your FLOPs lack the two products inside attention, "
             "queries with keys and attention weights with values. They grow with T²."),
        Edit(BLOCK, "T * weights + T * T * H", "Attention has two products of T² · H: queries with "
             "keys, and attention weights with values. One is missing."),
        Edit(BLOCK, "weights + 2 * T * T * H", "You count the dense layers' FLOPs for one "
             "token. Each of the T tokens passes through them."),
        Edit(BLOCK, "T * weights + 2 * T * H", "The two products inside attention grow with T², "
             "since each token is compared with each. You have T only once."),
        Edit(BLOCK, "T * weights + 2 * T * T * H * config.num_heads", "You count attention's "
             "products for each head with all H numbers. A head has H / A of them: together the "
             "heads need T² · H."),
        Edit(BLOCK, "T * (weights + biases) + 2 * T * T * H", "You count the biases in the FLOPs "
             "as well. Count matrix products only."),
    ),
)  # fmt: skip
