"""What is claimed about DeBERTa: three scores, a table of distances, its decoder, SiFT, results."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from functools import lru_cache, partial
from statistics import mean
from typing import Any, NamedTuple

import torch
import torch.nn.functional as F
from torch import Tensor

from course_lib.config import encoder_flops, published
from course_lib.encoder import Encoder
from course_lib.family.deberta import (
    DebertaConfig,
    DebertaForMaskedLM,
    EnhancedMaskDecoder,
    deberta,
    deberta_masked_lm,
    deberta_v3,
)
from course_lib.family.roberta import RobertaConfig, roberta
from course_lib.kernels.disentangled import (
    disentangled_attention_reference,
    score_parts,
)
from course_lib.kernels.positions import position_rows, row_table, score_scale
from course_lib.objectives.sift import sift_loss, symmetric_kl
from course_lib.teaching.averages import glue_average
from course_lib.teaching.claims import Settled, compared, parameters, printed, result
from course_lib.teaching.results import in_words, outcome
from course_lib.teaching.verdicts import in_points

from .embedding_sharing import BEGINNING, ONE, TRAINED, TWO, V3, pulls_before_and_after
from .experiments import CONTROL, FULL, LENGTH, NARROW, OTHER_RATES, at_rate
from .reach_and_cost import EXCHANGED, SPAN, WORD, far_changes, more_flops, position_flops
from .views import score_statistics

HEAD = 64  # width of a head at the published sizes
NEAR = f"distances to {NARROW}, "  # runs of the queue begin with that
FAR = f"distances to {LENGTH}, no decoder"
OTHER_WAYS = ("place side by side", "no decoder")  # beside the decoder's

# ================================================================ three scores


def scaled_settled() -> Settled:
    """Variance of the summed score after sqrt(d) and after sqrt(3d); entropy of its softmax, in
    nats, after either; the terms the code counts, of one, two and three; the fraction of
    content-to-content's variance that a position term has at random initialisation, second
    generation and first."""
    statistics, table = score_statistics(HEAD), torch.zeros(1, 2, HEAD)
    spread = tuple(statistics.variance(scale) for scale in statistics.scales)
    entropy = tuple(statistics.entropy(scale) for scale in statistics.scales)
    tables_of = ((None, None), (table, None), (table, table))
    counted = tuple(round(score_scale(HEAD, *tables) ** 2 / HEAD) for tables in tables_of)
    start = _variance_at_the_start(deberta_v3), _variance_at_the_start(deberta)
    tokens = statistics.scores.shape[-1]
    detail = (
        f"entries of variance 1: variance {spread[0]:.2f} after sqrt(d), {spread[1]:.2f} after "
        f"sqrt(3d); softmax of {entropy[0]:.2f} and {entropy[1]:.2f} nats ({tokens} equal "
        f"probabilities have {math.log(tokens):.2f}). With one, two and three terms our code "
        f"divides by the root of {counted[0]}d, {counted[1]}d, {counted[2]}d. At random "
        f"initialisation a position term has {start[0]:.0%} of the variance of content-to-content "
        f"(second generation), {start[1]:.2%} (first)"
    )
    return Settled((*spread, *entropy, *counted, *start), detail)


@torch.no_grad()
def _variance_at_the_start(make: Callable[..., Encoder]) -> float:
    """Variance of a position term in the first block of an untrained small model, mean of both,
    as a fraction of that of content-to-content."""
    torch.manual_seed(0)
    shape = {"vocab_size": 500, "num_layers": 1, "hidden_size": 4 * HEAD, "num_heads": 4}
    model: Any = make("base", intermediate_size=HEAD, **shape).eval()
    attention = model.stack.blocks[0].attention
    x = model.embeddings(torch.randint(500, (4, 64)))
    query, key, _ = attention.projections(x, None)
    content, *position_terms = score_parts(query, key, *attention.project_positions(x))
    return float(sum(one.var() for one in position_terms if one is not None) / 2 / content.var())


def one_softmax() -> Settled:
    """How far our weights are from one softmax of the summed scores, and from the mean of three."""
    draw = torch.Generator().manual_seed(0)
    query, key = (torch.randn(1, 4, 16, HEAD, generator=draw) for _ in range(2))
    tables = [torch.randn(4, 32, HEAD, generator=draw) for _ in range(2)]
    inputs = query, key, tables[0], tables[1], position_rows(16, 16)
    _, weights, _ = disentangled_attention_reference(query, key, key, *inputs[2:])
    parts = torch.stack([part for part in score_parts(*inputs) if part is not None])
    scaled = parts / math.sqrt(3 * HEAD)
    one, three = scaled.sum(0).softmax(-1), scaled.softmax(-1).mean(0)
    differences = tuple(float((weights - other).abs().max()) for other in (one, three))
    detail = f"the weights differ from one softmax of the sum by {differences[0]:.0e}"
    return Settled(differences, f"{detail}, from three softmaxes by up to {differences[1]:.2f}")


# ================================================================ distances


def rows_of_six() -> Settled:
    """For six tokens and k = 2: rows used, rows from −k to k, pairs where δ(i, j) ≠ δ(j, i)."""
    tokens, span = 6, 2
    delta = row_table(position_rows(tokens, span))
    cut = torch.arange(-tokens + 1, tokens).clamp(-span, span)
    counts = tuple(delta.unique().tolist()), len(cut.unique()), int((delta != delta.T).sum())
    detail = f"rows {', '.join(map(str, counts[0]))}; cut at −k and k there would be {counts[1]}"
    return Settled(counts, f"{detail}; δ(i, j) ≠ δ(j, i) for {counts[2]} of {delta.numel()} pairs")


def _where_a_row_acts(kind: str, term: str, tokens: int = 5, span: int = 4) -> tuple[int, ...]:
    """The distances i − j at which row k + 1 of the table changes a weight, in transformers."""
    import transformers

    shape: dict[str, Any] = dict(
        vocab_size=10, hidden_size=8, num_hidden_layers=1, num_attention_heads=1,
        intermediate_size=8, type_vocab_size=0, relative_attention=True,
        position_biased_input=False, pos_att_type=[term], attn_implementation="eager",
    )  # fmt: skip
    shape |= (
        {"max_relative_positions": span}
        if kind == "Deberta"
        else {"max_relative_positions": 32, "position_buckets": span, "share_att_key": False}
    )
    config = getattr(transformers, f"{kind}Config")(**shape)
    torch.manual_seed(0)
    model = getattr(transformers, f"{kind}Model")(config).eval()
    with torch.no_grad():
        table = model.encoder.rel_embeddings.weight.zero_()
        table[span + 1] = 50 * torch.randn(8)  # the row of distance 1
        alike = torch.full((1, tokens), 3)
        weights = model(alike, output_attentions=True).attentions[0][0, 0]
    changed = (weights - weights.median(dim=1, keepdim=True).values).abs() > 1e-6
    return _distances(changed)


def _distances(pairs: Tensor) -> tuple[int, ...]:
    """Those i − j that some chosen pair has, in order; pairs (T, T) bool."""
    return tuple(sorted({i - j for i, j in pairs.nonzero().tolist()}))


def _unlike(tokens: int = 20, span: int = 8) -> tuple[int, ...]:
    """The distances i − j at which the third term with δ(j, i) is not that with δ(i, j) and the
    table's rows in opposite order."""
    draw = torch.Generator().manual_seed(0)
    key = torch.randn(1, 1, tokens, HEAD, generator=draw)
    table = torch.randn(1, 2 * span, HEAD, generator=draw)
    rows = position_rows(tokens, span)
    queries = table[0, row_table(rows).T]  # (T, T, D): of the pair (i, j), the row δ(j, i)
    paper = (queries * key[0, 0]).sum(-1)  # (T, T)
    turned = torch.cat([table[:, -1:], table[:, 1:].flip(1)], dim=1)  # row k + m <-> row k − m
    code = score_parts(key, key, None, turned, rows).position_to_content
    assert code is not None
    return _distances((paper - code[0, 0]).abs() > 1e-3)


def which_delta() -> Settled:
    """Distances at which one row acts in c2p and in p2c, in both generations; and those at which
    the paper's form cannot be had by turning a table that p2c has to itself, for k = 8 and 20
    tokens. (Both look up one table: there is none to turn.)"""
    first, second = (
        tuple(_where_a_row_acts(kind, term) for term in ("c2p", "p2c"))
        for kind in ("Deberta", "DebertaV2")
    )
    unlike = _unlike()
    one = [", ".join(map(str, distances)) for distances in (*first, *second)]
    detail = (
        f"in transformers row k + 1 acts where i − j is {one[0]} in c2p, {one[1]} in p2c (second "
        f"generation: {one[2]}, {one[3]}). Had p2c a table to itself, its rows in opposite order "
        f"would give the paper's form, for k = 8, but where i − j is {unlike[0]} or more"
    )
    return Settled((first, second, unlike), detail)


# ================================================================ the decoder, SiFT


def _tiny() -> DebertaForMaskedLM:
    """A DeBERTa of two narrow layers with its decoder, randomly initialised."""
    torch.manual_seed(0)
    shape: dict[str, Any] = {
        "vocab_size": 50, "num_layers": 2, "hidden_size": 32, "num_heads": 2,
        "intermediate_size": 64, "max_positions": 16, "span": 16, "initializer_range": 0.2,
    }  # fmt: skip
    made = deberta_masked_lm(deberta("base", **shape)).eval()
    assert isinstance(made, DebertaForMaskedLM)
    return made


def what_the_decoder_has() -> Settled:
    """Its weights; how often it visits the last block; whether key and value, and the query, are
    made from the last block's input; and the fraction of a queue that is named with the decoder,
    with position and hidden state concatenated, and with neither."""
    model = _tiny()
    decoder: EnhancedMaskDecoder = model.decoder
    last: Any = model.encoder.stack.blocks[-1]  # type: ignore[union-attr, index]
    seen: list[tuple[Tensor, Tensor | None]] = []
    attend = last.attend

    def watched(
        x: Tensor, mask: Any, keep: bool, positions: Any, query_states: Tensor | None = None
    ) -> Any:
        seen.append((x, query_states))
        return attend(x, mask, keep, positions, query_states)

    last.attend = watched
    with torch.no_grad():
        before = model(torch.arange(5, 15)[None]).hidden_states[-2]
    visits = [(x, query) for x, query in seen if query is not None]
    reads = all(torch.equal(x, before) for x, _ in visits)
    queries = any(torch.equal(query, before) for _, query in visits)
    weights = {name: tuple(one.shape) for name, one in decoder.named_parameters()}
    shapes = ", ".join(f"{name} {shape}" for name, shape in weights.items())
    detail = (
        f"of its own the decoder has {shapes}; it visits the last block {len(visits)} times more, "
        f"key and value made from the same input: {'yes' if reads else 'no'}; the query: "
        f"{'yes' if queries else 'no'}"
    )
    reached = outcome(result("08_queue"), "accuracy")
    accuracies = tuple(mean(reached[NEAR + way]) for way in ("decoder", *OTHER_WAYS))
    detail += ". Of a queue {:.0%} is named with it, {:.0%} by concatenation, {:.0%} with neither"
    return Settled(
        (len(weights), len(visits), reads, queries, *accuracies), detail.format(*accuracies)
    )


class Clipping(NamedTuple):
    """A model's gradient clipped, and the same model's embeddings perturbed by SiFT."""

    before: float  # the gradient's norm
    after: float
    changed: float  # the largest difference of an output, by clipping
    apart: float  # of the printed formula from torch's clipping, as a fraction of `after`
    perturbed: float  # how far SiFT's perturbation moves the outputs: symmetric KL, nats a token
    longer: float  # times that with embeddings ten times as long


@lru_cache(maxsize=1)
def clipped_and_perturbed() -> Clipping:
    model, ids = _tiny(), torch.arange(5, 15)[None]
    embeddings: Any = model.encoder.embeddings
    weights = list(model.parameters())

    def answer() -> Tensor:
        return model(ids).logits

    def moved() -> float:
        torch.manual_seed(0)
        return float(sift_loss(answer, embeddings.norm)[1].detach())

    with torch.no_grad():  # as it is read again after the clipping, to the bit
        before = answer()
    loss = F.cross_entropy(answer().flatten(0, 1), ids.flatten())
    slopes = torch.autograd.grad(loss, weights, materialize_grads=True)
    for weight, slope in zip(weights, slopes, strict=True):
        weight.grad = slope.clone()
    most = 0.1
    size = float(torch.nn.utils.clip_grad_norm_(weights, most))
    formula = [slope / max(1.0, size / most) for slope in slopes]  # g / max(1, ‖g‖/γ)
    apart = max(
        float((weight.grad - slope).abs().max())
        for weight, slope in zip(weights, formula, strict=True)
        if weight.grad is not None
    )
    with torch.no_grad():
        changed = float((answer() - before).abs().max())
    perturbed = moved()
    # The head shares the embedding matrix, so only what is looked up there is made longer.
    handle = embeddings.token.register_forward_hook(lambda *seen: 10 * seen[2])
    longer = moved()
    handle.remove()
    return Clipping(size, most, changed, apart / most, perturbed, longer / perturbed)


def clipping_is_not_sift() -> Settled:
    effects = clipped_and_perturbed()
    detail = (
        f"the printed formula gives what torch's clipping gives (to {effects.apart:.0e}); it "
        f"changes the outputs by {effects.changed:g}. SiFT's perturbation moves them by a "
        f"symmetric KL of {effects.perturbed:.1e} nats a token; with embeddings ten times as long, "
        f"{effects.longer:.2f} times as far"
    )
    return Settled(effects[2:], detail)


def term_settled() -> Settled:
    """The largest difference between the gradients of a KL divergence and of a cross-entropy, clean
    side held fixed; how much larger the second is, in nats a row; and the largest difference
    between the gradient of our symmetric form and that of the two cross-entropies' sum."""
    generator = torch.Generator().manual_seed(0)
    p, q = (torch.randn(8, 3, generator=generator, dtype=torch.float64) for _ in range(2))
    p.requires_grad_()
    q.requires_grad_()
    clean = p.detach().softmax(-1)
    kl = F.kl_div(q.log_softmax(-1), clean, reduction="batchmean")
    one_way = F.cross_entropy(q, clean)
    both = one_way + F.cross_entropy(p, q.detach().softmax(-1))

    def apart(a: Tensor, b: Tensor, of: Sequence[Tensor]) -> float:
        slopes = (torch.autograd.grad(x, of, retain_graph=True) for x in (a, b))
        return max(float((x - y).abs().max()) for x, y in zip(*slopes, strict=True))

    differences = (
        apart(kl, one_way, [q]), float((one_way - kl).detach()),
        apart(symmetric_kl(p, q).mean(), both, [p, q]),
    )  # fmt: skip
    detail = (
        f"gradients differ by {differences[0]:.0e}, values by {differences[1]:.2f} nats; our "
        f"symmetric form and two cross-entropies, gradients differ by {differences[2]:.0e}"
    )
    return Settled(differences, detail)


def tug_of_war() -> Settled:
    """Cosines between the two tasks' gradients on the shared table, of every two different batches:
    mean and largest at random initialisation, mean in the trained model; how many times as long
    the discriminator's gradient is there."""
    first, trained = (pulls_before_and_after()[when] for when in (BEGINNING, TRAINED))
    across, later = (one.cosines["MLM with RTD"] for one in (first, trained))
    values = (mean(across), max(across), mean(later), trained.longer)
    detail = (
        f"cosine {values[0]:+.2f} at random initialisation (at most {values[1]:+.2f}), "
        f"{values[2]:+.2f} after training, where RTD's gradient is {values[3]:.1f} times as long"
    )
    return Settled(values, detail.replace("-", "−"))


def sharing_worth() -> Settled:
    """Of two tables and of v3's way, less one table: the generator's masked-token accuracy, the
    slot-category probe of the kept network, and its swapped-word probe."""
    parts = [
        compared("08_embedding_sharing", measure, (TWO, V3), ONE, called)
        for measure, called in (
            ("masked_accuracy", "generator's masked-token accuracy"),
            ("slots", "slot-category probe"),
            ("swapped_repeated", "swapped-word probe"),
        )
    ]
    value = tuple(points for part in parts for points in part.value)
    return Settled(value, ". ".join(part.detail for part in parts))


# ================================================================ size and cost


def sizes() -> Settled:
    counts = tuple(parameters(deberta, size) for size in ("base", "large"))
    detail = f"{counts[0]:,}; DeBERTa-large {counts[1]:,}"
    return Settled(counts, detail)


def extra() -> Settled:
    """DeBERTa-base less a RoBERTa-base without positions and segments; and 2Ld² + 2kd."""
    config = published("deberta", "base", DebertaConfig)
    L, d, k = config.num_layers, config.hidden_size, config.span
    formula = 2 * L * d * d + 2 * k * d
    usual = published("roberta", "base", RobertaConfig)
    tables = (usual.max_positions + usual.type_vocab_size) * d
    counted = parameters(deberta, "base") - (
        parameters(partial(roberta, pooler=False), "base") - tables
    )
    detail = f"{formula:,} by the formula ({2 * L * d * d:,} + {2 * k * d:,}), {counted:,} counted"
    return Settled((counted, formula), detail)


def shared_settled() -> Settled:
    """Millions of parameters saved where positions pass through the content's projections."""
    own, shared = (
        parameters(partial(deberta_v3, shared_projections=one), "base") for one in (False, True)
    )
    rows = printed("deberta")["second_generation"]
    less = rows["base"]["parameters"] - rows["shared_projections"]["parameters"]
    detail = f"{own - shared:,} fewer at base size; the table's rows differ by {less} million"
    return Settled((own - shared) / 1e6, detail)


def longer_settled(tokens: int = 512) -> Settled:
    """FLOPs that the position terms add to those of the blocks, as a fraction: of their products
    alone, and with the projection of the table at batch 1 and 32; and, measured, a training step of
    DeBERTa, and of one without its decoder, a step of BERT being 1."""
    config = published("deberta", "base", DebertaConfig)
    products = position_flops(config, tokens, 1)[0] / encoder_flops(config, tokens)
    added = tuple(more_flops(config, tokens, batch) for batch in (1, 32))
    seconds = result("08_positions")["step_seconds"]
    times = tuple(seconds[name] / seconds["BERT"] for name in ("DeBERTa", "without decoder"))
    detail = (
        f"at {tokens} tokens the products add {products:.0%} to the blocks' FLOPs, with the "
        f"projection of the table {added[0]:.0%} at batch 1, {added[1]:.0%} at batch 32; a "
        f"training step here, BERT's being 1: {times[0]:.2f}, without decoder {times[1]:.2f}"
    )
    return Settled((products, *added, *times), detail)


def far_texts() -> Settled:
    """The paper's number for large; and how far the first token's vector moves when a word beyond
    the table changes, and when two of them change places, in one block; and that in two."""
    config = published("deberta", "large", DebertaConfig)
    paper = config.num_layers * 2 * (config.span - 1)
    one, two = far_changes(1), far_changes(2)
    detail = (
        f"{config.num_layers} · 2 · {config.span - 1} = {paper:,}. With k = {SPAN}, in one block, "
        f"another word {WORD} away moves the first token's vector by {one[0]:.2f}; the words "
        f"{EXCHANGED[0]} and {EXCHANGED[1]} away, exchanged, by {one[1]:.0e}, in two blocks by "
        f"{two[1]:.4f}"
    )
    return Settled((paper, *one, two[1]), detail)


# ================================================================ what the paper reached


def paper_changes(row: str) -> tuple[float, ...]:
    """Points of MNLI (matched), SQuAD 2.0 (F1) and RACE against DeBERTa, by Table 4."""
    (mnli, _, squad, race), whole = (
        printed("deberta")["ablation"][name] for name in (row, "deberta")
    )
    pairs = (mnli[0], whole[0][0]), (squad[0], whole[2][0]), (race, whole[3])
    return tuple(round(a - b, 1) for a, b in pairs)


def without(*rows: str) -> Settled:
    gained = {row: paper_changes(row) for row in rows}
    detail = "; ".join(
        f"{row.replace('_', ' ')}: MNLI {a:+.1f}, SQuAD 2.0 {b:+.1f}, RACE {c:+.1f}"
        for row, (a, b, c) in gained.items()
    )
    detail = detail.replace("-", "−").replace("roberta", "RoBERTa")
    return Settled(tuple(gained.values()), detail)


def order_settled() -> Settled:
    """The order of DeBERTa's Table 1, and ALBERT-xxlarge's mean of the same eight."""
    table = {k: v for k, v in printed("deberta")["order"].items() if isinstance(v, float)}
    order = tuple(sorted(table, key=lambda name: -table[name]))
    albert = round(glue_average(printed("glue")["albert_dev"]["scores"], "dev-8"), 2)
    ranking = " > ".join(f"{name} {table[name]}" for name in order)
    return Settled((order, albert), f"{ranking}; ALBERT-xxlarge, not in that table, {albert}")


def superglue() -> Settled:
    table = printed("deberta")["superglue"]
    ahead = tuple(round(table[one] - table["human"], 1) for one in ("single", "ensemble"))
    detail = (
        f"one model {table['single']}, an ensemble {table['ensemble']}, people {table['human']}"
    )
    return Settled(ahead, detail)


def replaced_tokens() -> Settled:
    paper = printed("deberta")
    usual, replaced = paper["base"]["mnli"], paper["replaced_tokens"]["base"]
    gains = tuple(round(b - a, 1) for a, b in zip(usual, replaced, strict=True))
    detail = f"MNLI {replaced[0]}/{replaced[1]} against {usual[0]}/{usual[1]}"
    return Settled(gains, f"{detail}: {gains[0]:+.1f}, {gains[1]:+.1f}")


# ---------------------------------------------------------------- where the paper slips


def gain_on_squad() -> Settled:
    """Points of F1 over RoBERTa: by the abstract's number, and by that of Table 2."""
    ours, theirs = printed("deberta")["large"]["squad_2"][0], printed("deberta")["roberta_cells"]
    numbers = theirs["squad_2_in_the_abstract"], theirs["squad_2"]
    gains = tuple(round(ours - score, 1) for score in numbers)
    detail = (
        f"{ours} − {numbers[0]} = {gains[0]} by the abstract, {ours} − {numbers[1]} = {gains[1]}"
    )
    return Settled(gains, f"{detail} by Table 2")


def cell_of_roberta() -> Settled:
    """RoBERTa's QNLI in its own paper; its mean of eight with that, and with the other number."""
    row, other = printed("glue")["roberta_large_dev"]["scores"], printed("deberta")["roberta_cells"]
    means = [glue_average({**row, "QNLI": one}, "dev-8") for one in (row["QNLI"], other["qnli"])]
    value = row["QNLI"], *(round(one, 1) for one in means)
    xlnet = printed("glue")["xlnet_large_dev"]["scores"]["QNLI"]
    detail = (
        f"{row['QNLI']} in RoBERTa's Table 5, where {xlnet} is XLNet's; its eight scores average "
        f"{value[1]} with {row['QNLI']}, {value[2]} with {other['qnli']}"
    )
    return Settled(value, detail)


# ================================================================ what our own runs reached


WORDS = "masked-token accuracy"


def at_rates(name: str) -> dict[float, list[float]]:
    """Masked-token accuracy of a recipe by learning rate, a value a seed."""
    tried = {FULL.learning_rate: outcome(result("08_positions"), "masked_accuracy")[name]}
    other = outcome(result("08_rates"), "masked_accuracy")
    for rate, (names, _) in OTHER_RATES.items():
        if name in names:
            tried[rate] = other[at_rate(name, rate)]
    return dict(sorted(tried.items()))


def at_best(name: str) -> list[float]:
    """The first three seeds of a recipe at the rate that is best for them."""
    return max((values[:3] for values in at_rates(name).values() if len(values) >= 3), key=mean)


def positions(runs: Sequence[str], against: str) -> Settled:
    return compared("08_positions", "masked_accuracy", runs, against, WORDS)


def at_their_best(runs: Sequence[str], against: str) -> Settled:
    """The same, each at its best learning rate, three seeds: a mean difference a run."""
    value = tuple(mean(at_best(run)) - mean(at_best(against)) for run in runs)
    gains = "; ".join(f"{run} {in_points(at_best(run), at_best(against))}" for run in runs)
    return Settled(
        value, f"{WORDS} at the best rate: {against} {in_words(at_best(against))}; {gains}"
    )


def all_from(name: str) -> int:
    """The step from which on even the slowest seed names the whole queue."""
    curves = [run["curve"] for run in result("08_queue")["runs"][name]]
    return max(next(step for step, right in curve if right > 0.99) for curve in curves)


def queue() -> Settled:
    """The fraction of the queue named by distances alone, far and near; the steps after which every
    seed names all: by far distances, by near ones, by BERT's absolute positions."""
    reached, near = outcome(result("08_queue"), "accuracy"), f"{NEAR}no decoder"
    named = tuple(mean(reached[name]) for name in (FAR, near))
    steps = tuple(all_from(name) for name in (FAR, near, "BERT"))
    detail = "workers named, {}: {:.0%}; {}: {:.0%}. All seeds name all from step {}, {} and {} on"
    return Settled(
        (*named, *steps), detail.format(FAR, named[0], near, named[1], *steps) + " (BERT)"
    )


def with_paper(paper: Settled, *here: Settled) -> Settled:
    """What the paper's rows say, then what our runs do: the values of both, one after the other."""
    measured = "; ".join(one.detail for one in here)
    value = (paper.value, *(number for one in here for number in one.value))
    return Settled(value, f"in the paper, {paper.detail}. Here, {measured}")


def equal() -> Settled:
    """The paper's gain; ours at equal steps and one rate; at best rates with the decoder and
    without; ours at equal time."""
    one_rate = positions(("DeBERTa",), "BERT")
    steps = at_their_best(("DeBERTa", "without decoder"), "BERT")
    time = at_their_best(("DeBERTa",), "BERT, equal time")
    return with_paper(without("roberta"), one_rate, steps, time)


def decoder_settled() -> Settled:
    """The paper's loss; ours without the decoder, without its positions; and of a block more, as
    deep as DeBERTa is for its predictions, without the decoder and as BERT; all at their best
    rates, less DeBERTa."""
    runs = ("without decoder", "decoder without places", CONTROL, "BERT, three blocks")
    return with_paper(without("without_decoder"), at_their_best(runs, "DeBERTa"))
