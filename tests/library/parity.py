"""What the parity tests share: drawn models and batches, and measured distances.

Configurations are drawn. Only real rows (positions that are not padding) are compared; dropout is
off. Outputs: max|difference| <= tol * max(1, max|reference|). Gradients of a mean loss: every entry
within tol of the model's largest gradient entry. tol is 1e-5 in float32, 1e-10 in float64.
"""

from __future__ import annotations

import random
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from functools import partial
from pathlib import Path
from typing import Any, NamedTuple
from unittest.mock import patch

import pytest
import torch
import torch.nn.functional as F
from torch import Tensor, nn

from course_lib.checkpoints import (
    FAMILIES,
    Pretrained,
    from_transformers,
    load,
    load_pretrained,
    save,
    their_inputs,
    their_name,
    to_transformers,
)
from course_lib.checkpoints.convert import canonical
from course_lib.config import BertConfig
from course_lib.encoder import Encoder
from course_lib.files import sha256_of

TOLERANCE = {torch.float32: 1e-5, torch.float64: 1e-10}
both_precisions = pytest.mark.parametrize("dtype", list(TOLERANCE), ids=["float32", "float64"])

Configure = Callable[[dict[str, Any], random.Random], Any]


def as_bert(settings: dict[str, Any], draw: random.Random) -> BertConfig:
    """The drawn sizes as a BERT, with one of the two forms of GELU."""
    return BertConfig(**settings, hidden_act=draw.choice(["gelu", "gelu_new"]))


# ---------------------------------------------------------------- drawing


class Case(NamedTuple):
    """A drawn configuration, its weights' standard deviation, and a batch for it."""

    config: Any
    sd: float
    inputs: dict[str, Tensor]
    labels: Tensor  # (B, T), -100 where nothing is asked
    pair: Tensor  # (B,)

    @property
    def mask(self) -> Tensor:
        """(B, T), all ones where no padding is said."""
        return self.inputs.get("attention_mask", torch.ones_like(self.labels))

    @property
    def real(self) -> Tensor:
        return self.mask.bool()

    @property
    def to_predict(self) -> Tensor:
        """Flat positions of the words to predict, as `predict_at` takes them."""
        return (self.labels.flatten() != -100).nonzero()[:, 0]


def draw_case(seed: int, configure: Configure = as_bert, narrow: bool = False) -> Case:
    """Sizes and a batch from `seed`; configure(sizes, source of chance) adds a family's own."""
    draw = random.Random(seed)
    heads = draw.choice([1, 2, 3, 5, 7])
    hidden = heads * (1 if narrow else draw.choice([8, 9, 11]))
    settings = {
        "vocab_size": draw.randint(20, 150),
        "hidden_size": hidden,
        "num_layers": draw.randint(1, 4),
        "num_heads": heads,
        "intermediate_size": draw.randint(5, 4 * hidden),
        "max_positions": draw.randint(33, 50),
        "type_vocab_size": draw.choice([2, 3]),
        "hidden_dropout": 0.0,
        "attention_dropout": 0.0,
    }
    config = configure(settings, random.Random(1000 + seed))
    batch = 1 if seed % 4 == 0 else draw.randint(2, 5)
    tokens = draw.choice([1, 7, 13, 24, 33])
    make = torch.Generator().manual_seed(seed)

    def numbers(high: int, *shape: int) -> Tensor:
        return torch.randint(high, shape, generator=make)

    lengths = 1 + numbers(tokens, batch)
    if seed % 3 == 0:
        lengths[:] = tokens  # a batch without padding
    mask = (torch.arange(tokens) < lengths[:, None]).long()
    inputs = {
        "input_ids": numbers(config.vocab_size, batch, tokens),
        "attention_mask": mask,
    }
    if config.type_vocab_size:
        inputs["token_type_ids"] = numbers(config.type_vocab_size, batch, tokens)
    to_predict = (torch.rand((batch, tokens), generator=make) < 0.3) & mask.bool()
    to_predict[0, 0] = True
    labels = torch.where(to_predict, numbers(config.vocab_size, batch, tokens), -100)
    return Case(config, draw.uniform(0.02, 0.3), inputs, labels, numbers(2, batch))


def drawn_weights(model: Any, sd: float) -> Any:
    """The same model with every weight drawn anew, biases and LayerNorms too."""
    torch.manual_seed(1)
    with torch.no_grad():
        for name, parameter in model.named_parameters():
            centre = 1.0 if "norm" in name.lower() and name.endswith("weight") else 0.0
            parameter.normal_(centre, sd)
    return model


def pair_of_models(make: Callable[[Any], Any], case: Case, dtype: torch.dtype) -> tuple[Any, Any]:
    """Ours with drawn weights, and transformers' with the same."""
    ours = drawn_weights(make(case.config), case.sd).to(dtype).eval()
    return ours, to_transformers(ours, attention="eager")


# ---------------------------------------------------------------- running

# By transformers' names; ours answer to all that name the same thing.
ONE_A_ROW = ("pooler_output", "seq_relationship_logits", "sop_logits")
ONE_A_TOKEN = (
    "last_hidden_state", "prediction_logits", "logits", "start_logits", "end_logits",
)  # fmt: skip


def answer(model: Any, case: Case, **more: Any) -> Any:
    """What a model of ours or of transformers says to the batch, in its own words."""
    if not hasattr(model.config, "model_type"):
        return model(**case.inputs, **more)
    with in_float64(model):
        return model(**their_inputs(model, case.inputs), **more)


@contextmanager
def in_float64(model: Any) -> Iterator[None]:
    """transformers' XLM makes its scores float32 before the softmax, its ViT within it, ModernBERT
    there and in what it turns, EuroBERT and UltraBERT there and in their norms: a model in float64
    stays in it here, so that all else can be held to 1e-10."""
    kinds = ("xlm", "modernbert", "vit", "eurobert", "ultrabert")
    if model.config.model_type not in kinds or model.dtype != torch.float64:
        yield
        return
    softmax, to = F.softmax, torch.Tensor.to

    def stay(x: Tensor, *args: Any, **named: Any) -> Tensor:
        down = x.dtype == torch.float64 and args == (torch.float32,)
        return x if down else to(x, *args, **named)

    with (
        patch.object(torch.Tensor, "to", stay),
        patch.object(torch.Tensor, "float", lambda x: x),
        patch.object(F, "softmax", lambda x, dim, dtype=None: softmax(x, dim)),
    ):
        yield


def run(model: Any, case: Case, **more: bool) -> Any:
    return answer(model, case, output_hidden_states=True, output_attentions=True, **more)


def first_of(outputs: Any, *names: str) -> Any:
    """The first output of these names that there is."""
    given = (getattr(outputs, name, None) for name in names)
    return next((output for output in given if output is not None), None)


def words_of(outputs: Any) -> Any:
    return first_of(outputs, "prediction_logits", "logits")


def pair_of(outputs: Any) -> Any:
    return first_of(outputs, "seq_relationship_logits", "sop_logits")


def loss_of(outputs: Any, case: Case) -> Tensor:
    """A mean loss that reaches every weight.

    With heads: mean over the asked positions plus, where there is a pair head, mean over the pairs.
    Of an encoder alone: mean squared distance of its states, and of the pooler's, from a target.
    """
    words, pair, pooled = words_of(outputs), pair_of(outputs), first_of(outputs, "pooler_output")
    if words is None:
        states = _squares(outputs.last_hidden_state[case.real])
        return states if pooled is None else states + _squares(pooled)
    loss = F.cross_entropy(words.flatten(0, 1), case.labels.flatten())
    return loss if pair is None else loss + F.cross_entropy(pair, case.pair)


def _squares(x: Tensor) -> Tensor:
    noise = torch.randn(x.shape, generator=torch.Generator().manual_seed(3), dtype=torch.float64)
    return (x - noise.to(x.dtype)).square().mean()


def replaced_in(case: Case) -> Tensor:
    """(B, T) bool: of the asked positions those with an even word; in the others the generator
    drew the word that stood there.

    Some tenths of the tokens, as in ELECTRA. With as many replaced as original tokens of almost one
    score, the mean's gradient is a small rest of large terms, and transformers' own in float32 is
    3e-5 from its own in float64."""
    return (case.labels != -100) & (case.labels % 2 == 0)


def replaced_loss(outputs: Any, case: Case) -> Tensor:
    """Of a discriminator: mean over the real tokens."""
    scores = outputs.logits[case.real]
    return F.binary_cross_entropy_with_logits(scores, replaced_in(case)[case.real].to(scores.dtype))


def scores_of(reference: Any, case: Case) -> tuple[Tensor, ...]:
    """transformers' scores before the softmax, from its own query and key projections."""
    projected: dict[str, list[Tensor]] = {"q": [], "k": []}

    def keep(which: str, _module: Any, _inputs: Any, output: Tensor) -> None:
        batch, tokens, _ = output.shape
        heads = output.view(batch, tokens, case.config.num_heads, -1).transpose(1, 2)
        projected[which].append(heads)

    hooks = [
        getattr(part, name).register_forward_hook(partial(keep, name[0]))
        for part in reference.modules()
        for name in ("query", "key", "q_lin", "k_lin", "q_proj", "k_proj")  # some say it shorter
        if hasattr(part, name)
    ]
    answer(reference, case)
    for hook in hooks:
        hook.remove()
    assert len(projected["q"]) == len(projected["k"]) == case.config.num_layers
    scale = case.config.head_size**-0.5
    pairs = zip(projected["q"], projected["k"], strict=True)
    return tuple(query @ key.transpose(-1, -2) * scale for query, key in pairs)


# ---------------------------------------------------------------- measuring


def distance(ours: Tensor, reference: Tensor) -> float:
    """max|difference| / max(1, max|reference|)."""
    assert ours.shape == reference.shape
    assert torch.isfinite(reference).all() and torch.isfinite(ours).all()
    return ((ours - reference).abs().max() / reference.abs().max().clamp(min=1)).item()


def last_distances(ours: Any, theirs: Any, case: Case) -> dict[str, float]:
    """Of what stands at the end: states, pooler, logits, whichever transformers gives."""
    found = {}
    for name in (*ONE_A_ROW, *ONE_A_TOKEN):
        reference = getattr(theirs, name, None)
        if reference is not None:
            a_token = name in ONE_A_TOKEN and reference.shape[:2] == case.real.shape
            at = case.real if a_token else ...
            found[name] = distance(getattr(ours, name)[at], reference[at])
    assert found
    return found


def output_distances(
    ours: Any, theirs: Any, case: Case, scores: tuple[Tensor, ...] = ()
) -> dict[str, float]:
    """The distance of every output that transformers gives, on real rows."""
    assert len(theirs.attentions) == case.config.num_layers  # sdpa would have returned none
    assert len(theirs.hidden_states) == case.config.num_layers + 1
    real = case.real

    def rows(weights: Tensor) -> Tensor:
        return weights.transpose(1, 2)[real]  # (B, A, T, T) -> (real queries, A, T)

    found = last_distances(ours, theirs, case)
    for i, (a, b) in enumerate(zip(ours.hidden_states, theirs.hidden_states, strict=True)):
        found[f"hidden_states {i}"] = distance(a[real], b[real])
    for i, (a, b) in enumerate(zip(ours.attentions, theirs.attentions, strict=True)):
        found[f"attentions {i}"] = distance(rows(a), rows(b))
    for i, (a, b) in enumerate(zip(ours.attention_scores or (), scores, strict=True)):
        key = real[:, None, None, :].expand_as(a)  # hidden keys hold "minus infinity" in both
        found[f"attention_scores {i}"] = distance(rows(a * key), rows(b * key))
    return found


@torch.no_grad()
def all_distances(ours: Any, theirs: Any, case: Case, scores: bool = True) -> dict[str, float]:
    """Every output, the scores before the softmax, the pooler under a head, and the fast path."""
    mine, reference = run(ours, case, output_attention_scores=scores), run(theirs, case)
    found = output_distances(mine, reference, case, scores_of(theirs, case) if scores else ())
    fast = last_distances(ours(**case.inputs), reference, case)  # the path that keeps no weights
    found |= {f"{name} without weights": value for name, value in fast.items()}
    if not isinstance(ours, Encoder):
        base = answer(theirs.base_model, case)
        family = FAMILIES[theirs.config.model_type]
        in_head = type(ours) in family.of_head  # where the pooler is a part of their head
        has = first_of(base, "pooler_output") is not None
        assert not has if in_head else (ours.encoder.pooler is not None) == has
        inside = last_distances(ours.encoder(**case.inputs), base, case)
        found |= {f"{name} of the encoder": value for name, value in inside.items()}
    return found


def largest(found: dict[str, float]) -> float:
    """The largest distance, printed with its name."""
    worst = max(found, key=found.__getitem__)
    print(f"largest distance {found[worst]:.1e} ({worst})")
    return found[worst]


def both_backward(
    ours: Any, theirs: Any, case: Case, loss: Callable[[Any, Case], Tensor] = loss_of
) -> float:
    """Gradients of the same mean loss in both: the largest distance between them."""
    for model in (ours, theirs):
        backward(model, loss(answer(model, case), case), case)
    return gradient_distance(ours, theirs)


def backward(model: Any, loss: Tensor, case: Case) -> None:
    """Every weight has a gradient afterwards, but for a DeBERTa's without terms: nothing reaches
    its table of distances."""
    model.zero_grad(set_to_none=True)
    loss.backward()
    if getattr(case.config, "terms", None) == ():
        for p in model.parameters():
            p.grad = torch.zeros_like(p) if p.grad is None else p.grad


def gradient_distance(ours: Any, theirs: Any) -> float:
    """max|difference| over every entry of every gradient, in parts of the largest entry."""
    family = FAMILIES[theirs.config.model_type].under_head(type(ours))
    reference = canonical({n: p.grad for n, p in theirs.named_parameters()}, family)
    found = {their_name(n, family): p.grad for n, p in ours.named_parameters()}
    return gradients_apart(found, reference)


def gradients_apart(found: dict[str, Any], reference: dict[str, Any]) -> float:
    assert found.keys() == reference.keys()
    assert all(torch.isfinite(grad).all() for grad in (*found.values(), *reference.values()))
    most = max(grad.abs().max().item() for grad in reference.values())
    assert most > 0
    return max((found[n] - grad).abs().max().item() for n, grad in reference.items()) / most


# ---------------------------------------------------------------- only where something is asked


def chosen_against_full(ours: Any, case: Case) -> dict[str, float]:
    """`predict_at` against the same model's whole output: scores and gradients."""
    found = {}
    gradients: list[dict[str, Tensor | None]] = []
    full = ours(**case.inputs)
    wanted = words_of(full).flatten(0, 1)[case.to_predict]
    for at_selected in (False, True):
        outputs = ours(**case.inputs, predict_at=case.to_predict if at_selected else None)
        words, pair = words_of(outputs), pair_of(outputs)
        words = words if at_selected else words.flatten(0, 1)[case.to_predict]
        loss = F.cross_entropy(words, case.labels.flatten()[case.to_predict])
        if pair is not None:
            loss = loss + F.cross_entropy(pair, case.pair)
            found["pair"] = distance(pair, pair_of(full))
        backward(ours, loss, case)
        found["words"] = distance(words, wanted)
        gradients.append({name: p.grad for name, p in ours.named_parameters()})
    return {**found, "gradients": gradients_apart(gradients[1], gradients[0])}


@torch.no_grad()
def positions_against_full(encoder: Any, case: Case) -> dict[str, float]:
    """`output_positions` against the whole output: states there, the pooler, earlier layers."""
    batch, tokens = case.inputs["input_ids"].shape
    at = torch.randint(tokens, (batch, 5), generator=torch.Generator().manual_seed(2))
    at[:, 0] = 0  # [CLS] first
    full = encoder(**case.inputs, output_hidden_states=True)
    part = encoder(**case.inputs, output_positions=at, output_hidden_states=True)
    wanted = full.last_hidden_state[torch.arange(batch)[:, None], at]
    found = {"states": distance(part.last_hidden_state, wanted)}
    for i, (a, b) in enumerate(zip(part.hidden_states[:-1], full.hidden_states[:-1], strict=True)):
        found[f"hidden_states {i}"] = distance(a, b)
    if full.pooler_output is not None:
        found["pooler"] = distance(part.pooler_output, full.pooler_output)
    return found


# ---------------------------------------------------------------- there and back


def same(first: nn.Module, second: nn.Module) -> bool:
    """The same names, types and bits."""
    one, other = first.state_dict(), second.state_dict()
    return list(one) == list(other) and all(
        value.dtype == other[name].dtype and torch.equal(value, other[name])
        for name, value in one.items()
    )


def assert_there_and_back(ours: Any) -> Any:
    """To transformers and back: the same class, mode, types, names and bits, in other memory."""
    theirs = to_transformers(ours)
    assert theirs.config._attn_implementation == ("sdpa" if theirs._supports_sdpa else "eager")
    back = from_transformers(theirs)
    assert type(back) is type(ours) and back.training == ours.training
    assert same(ours, back) and same(theirs, to_transformers(back))
    places = [{p.data_ptr() for p in model.parameters()} for model in (ours, theirs, back)]
    assert len(set.union(*places)) == sum(map(len, places))  # a change in one reaches no other
    return back


def on_meta(make: Callable[[], nn.Module]) -> int:
    """How many numbers a model trains, without allocating one of them."""
    with torch.device("meta"):
        model = make()
        if hasattr(model, "tie_weights"):  # transformers 5.0 leaves models without memory untied
            model.tie_weights()
        parameters = list(model.parameters())
    assert all(p.is_meta for p in parameters)
    return sum(p.numel() for p in parameters)


IDS = {"input_ids": torch.tensor([[2, 7, 8, 3]])}


def assert_saved_and_loaded(model: Any, file: Path, inputs: dict[str, Tensor] = IDS) -> None:
    """A file of ours: the same class, configuration, names, bits and answers; the same bytes when
    saved again; and no other file beside it."""
    digest = save(model, file)
    assert digest == sha256_of(file) and list(file.parent.iterdir()) == [file]
    again = load(file, sha256=digest)
    assert type(again) is type(model) and same(model, again) and not again.training
    assert type(again.config) is type(model.config) and again.config == model.config
    assert_says_the_same(model, again, inputs)
    assert_loaded(load_pretrained(file, sha256=digest), model)
    assert save(again, file) == digest
    file.unlink()


def assert_loaded(found: Pretrained, model: Any) -> None:
    assert found.source == "path" and found.tokenizer is None and not found.encoder.training
    if isinstance(model, Encoder):
        assert found.model is None and same(found.encoder, model)
    else:
        assert type(found.model) is type(model) and same(found.model, model)
        assert found.model.encoder is found.encoder


def assert_says_the_same(first: Any, second: Any, inputs: dict[str, Tensor] = IDS) -> None:
    """Not by bits: torch promises none between weights that lie at different addresses."""
    with torch.no_grad():
        one, other = first.eval()(**inputs), second.eval()(**inputs)
    name = next(iter(vars(one)))  # last_hidden_state, or the words' scores
    torch.testing.assert_close(getattr(one, name), getattr(other, name))
