"""Our models and transformers' with one set of weights: there and back, bit for bit."""

from __future__ import annotations

import re
import warnings
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import asdict, fields
from typing import Any

import torch
from torch import Tensor, nn
from torch.overrides import TorchFunctionMode

from course_lib.config import check_number, check_size, is_number, is_whole
from course_lib.encoder import POOLERS, Encoder, pooler_name
from course_lib.family.deberta import DebertaForMaskedLM, EnhancedMaskDecoder
from course_lib.family.electra import DisentangledEmbedding
from course_lib.heads import (
    BertForClassification,
    BertForQuestionAnswering,
    BertForTokenClassification,
)

from .families import (
    EXPECTED,
    MODELS,
    Family,
    ForTask,
    Labelled,
    Model,
    family_named,
    family_of,
    has_pooler,
    newest_name,
    their_name,
)
from .reading import CheckpointError, State


def from_transformers(hf_model: Any) -> Model:
    """Our model with a copy of the weights of a transformers model; same type, device and mode.

    hf_model: one of the classes that `FAMILIES` lists, such as BertModel (with or without pooler),
    DistilBertForMaskedLM, ElectraForPreTraining (a BertForReplacedTokens here) or
    BertForSequenceClassification (a BertForClassification here, with the names of its labels).
    Raises CheckpointError for another class or for settings ours do not have."""
    class_name = type(hf_model).__name__
    if not hasattr(getattr(hf_model, "config", None), "model_type"):
        where = f"{type(hf_model).__module__}.{class_name}"
        raise CheckpointError(f"a {where} was given; expected a loaded transformers model.")
    family = family_named(hf_model.config.model_type, f"the {class_name}")
    types = {theirs: ours for ours, theirs in family.classes.items()}
    if class_name not in types:
        raise CheckpointError(
            f"a {class_name} was given; expected {' or '.join(types)}. "
            f"Its encoder alone is in .{family.prefix.rstrip('.')}."
        )
    settings, kind = hf_model.config.to_dict(), types[class_name]
    family = family.under_head(kind)
    config = our_config(settings, family, f"the {class_name}")
    head = our_head(kind, settings, family)
    state = {name: value.detach().clone() for name, value in hf_model.state_dict().items()}
    model = filled(kind, config, head, family, canonical(state, family), f"the {class_name}")
    return model.train(hf_model.training)


def to_transformers(model: nn.Module, attention: str = "sdpa") -> Any:
    """The transformers model with a copy of the weights of ours; same type, device and mode.

    model: an Encoder or one of the models with heads that `FAMILIES` lists for its family; of an
    Electra one of its two networks, which takes a copy of the shared tables along. attention:
    "sdpa", or "eager", which can return attention weights (DeBERTa has this alone). Raises
    CheckpointError for what transformers does not have, such as DeBERTa's enhanced mask decoder."""
    import transformers

    ours, family = known(model)
    if type(ours) not in family.classes:
        raise CheckpointError(
            f"a {type(ours).__name__} around a {family.model_type} encoder was given; transformers "
            f"has no such model, only {', '.join(family.classes.values())}."
            + (_NO_DECODER if isinstance(ours, DebertaForMaskedLM) else "")
        )
    family = family.under_head(type(ours))
    _check_pooler(ours, family)
    kind = getattr(transformers, name := family.classes[type(ours)], None)
    if kind is None:
        raise CheckpointError(
            f"transformers {transformers.__version__} has no {name}; a newer one does: "
            "pip install -U transformers."
        )
    if not kind._supports_sdpa:
        attention = "eager"
    options = {**_their_config(encoder_of(ours).config, family), **_their_head(ours, family)}
    choice = isinstance(ours, Encoder) and family.has_pooler
    extra = {"add_pooling_layer": encoder_of(ours).pooler is not None} if choice else {}
    hf_model = kind(kind.config_class(**options, attn_implementation=attention), **extra)
    parameter = next(ours.parameters())
    hf_model.to(device=parameter.device)
    for theirs in hf_model.parameters():  # buffers stay float32: angles bear no bfloat16
        theirs.data = theirs.data.to(parameter.dtype)
    state = joined({their_name(n, family): p for n, p in ours.state_dict().items()}, family.joined)
    names = {n: newest_name(n.removeprefix(family.prefix), family) for n in hf_model.state_dict()}
    names = {name: family.tied.get(bare, bare) for name, bare in names.items()}
    _same_names(set(names.values()), set(state), kind.__name__)
    hf_model.load_state_dict({name: state[first] for name, first in names.items()})
    return hf_model.train(ours.training)


_NO_DECODER = " These have no enhanced mask decoder, so predictions would differ: give .encoder."


def known(model: nn.Module) -> tuple[Model, Family]:
    if not isinstance(model, MODELS):
        parts = model._modules if isinstance(model, nn.Module) else getattr(model, "__dict__", {})
        inside = [f".{name}" for name, part in parts.items() if isinstance(part, MODELS)]
        advice = f" Give {' or '.join(inside)} alone." if inside else ""
        if type(model).__module__.startswith("transformers."):
            advice = " This one is transformers': from_transformers(model) makes it ours."
        raise CheckpointError(f"a {type(model).__name__} was given; expected {EXPECTED}.{advice}")
    if any(isinstance(part, DisentangledEmbedding) for part in model.modules()):
        raise CheckpointError(
            f"a {type(model).__name__} was given whose token table is another network's plus a "
            "difference; expected its own table: family.electra.merged(model) adds the two."
        )
    return model, family_of(encoder_of(model).config)


def encoder_of(model: Model) -> Encoder:
    return model if isinstance(model, Encoder) else model.encoder


def _check_pooler(model: Model, family: Family) -> None:
    """Raise CheckpointError where another pooler is read than transformers' class has."""
    encoder = encoder_of(model)
    if encoder.pooler is None or not isinstance(model, Encoder | BertForClassification):
        return
    own, theirs = pooler_name(encoder.pooler), encoder.config.pooler
    if family.has_pooler and own != theirs:
        raise CheckpointError(
            f"a {type(model).__name__} around a {family.model_type} encoder with the pooler "
            f"{own!r} was given; transformers' {family.classes[type(model)]} computes {theirs!r}. "
            "encoder.pooler_for(config) makes that, to be trained before saving."
        )


def _same_names(theirs: set[str], ours: set[str], kind: str) -> None:
    """Raise CheckpointError where one of the two models has a weight that the other lacks."""
    if theirs != ours:
        advice = "If this class only lacks the pooler, set encoder.pooler = None first."
        raise CheckpointError(
            f"ours and transformers' {kind} are not the same model. Only ours has: "
            f"{', '.join(sorted(ours - theirs)[:3]) or 'nothing'}; only theirs: "
            f"{', '.join(sorted(theirs - ours)[:3]) or 'nothing'}. {advice}"
        )


def _their_config(config: Any, family: Family) -> dict[str, Any]:
    _check_fixed(asdict(config), family, f"the {type(config).__name__}")
    named = [(ours, name) for ours, name in family.settings.items() if name not in family.derived]
    theirs = {name: getattr(config, ours) for ours, name in named}
    # transformers 5 no longer writes this, but ctranslate2 and older versions ask for it.
    kind = {n: v for n, v in family.fixed.items() if n == "position_embedding_type"}
    return {**theirs, **kind, **family.more(config)}


def _their_head(model: Model, family: Family) -> dict[str, Any]:
    """Settings of theirs that belong to heads, as the labels' names, and others not read here."""
    theirs = dict(encoder_of(model).unread)
    if isinstance(model, Labelled):
        theirs["id2label"] = dict(enumerate(model.names))
        theirs["label2id"] = {name: number for number, name in enumerate(model.names)}
        theirs |= getattr(model, "kept", {})
    if name := family.dropouts.get(type(model)):
        theirs[name] = model.dropout.p if isinstance(model, ForTask) else theirs.get(name, 0.0)
    return theirs


MOST_LABELS = 1_000_000
KEPT = ("problem_type", "sentence_transformers")  # what the logits mean: read, and written back
UNREAD = r"(?!pad)\w+_(token_id|index)|lang2id|id2lang|lang_id"  # written back, no more
PROBLEMS = ("single_label_classification", "multi_label_classification", "regression")


def our_head(kind: type[Model], theirs: Mapping[str, Any], family: Family) -> dict[str, Any]:
    """The same out of theirs, as `hollow` takes it. Two labels without names go unsaid there.
    Raises ValueError for labels and a dropout that are none."""
    theirs = {**family.absent, **theirs}
    dropouts = {n: theirs[n] for n in family.dropouts.values() if theirs.get(n) is not None}
    for name, value in dropouts.items():
        check_number(name, value, below=1)
    unread = {n: value for n, value in theirs.items() if re.fullmatch(UNREAD, n)} | dropouts
    head = {"unread": unread, "dropout": dropouts.get(family.dropouts.get(kind, ""))}
    if not issubclass(kind, Labelled):
        return head
    for name, value in family.fixed_in.get(kind, {}).items():
        if theirs.get(name, value) != value:
            raise ValueError(
                f"{name}={theirs[name]!r} was given; only {value!r} means the same in a "
                f"{kind.__name__} here and in transformers' {family.classes[kind]}."
            )
    named, number = theirs.get("id2label") or {}, theirs.get("num_labels", 2)
    check_size("num_labels", number, most=MOST_LABELS)
    names = {str(label): name for label, name in named.items()}
    numbered = [names.get(str(label)) for label in range(len(names))]
    if not all(isinstance(name, str | int | float) for name in numbered):
        raise ValueError(f"id2label={named!r:.60} was given; expected names for 0, 1, 2 and so on.")
    kept = {name: theirs[name] for name in KEPT if theirs.get(name) is not None}
    if (problem := kept.get("problem_type")) not in (None, *PROBLEMS):
        raise ValueError(f"problem_type={problem!r} was given; expected {' or '.join(PROBLEMS)}.")
    return {**head, "names": [*map(str, numbered)] or number, "kept": kept}


def our_config(theirs: Mapping[str, Any], family: Family, where: str) -> Any:
    """Our configuration from transformers'; refuses settings that ours do not have."""
    theirs = {**family.absent, **theirs}
    _check_fixed(theirs, family, where)
    try:
        _check_kinds(theirs, family)
        theirs = family.read(theirs)
        settings = {o: theirs[n] for o, n in family.settings.items() if theirs.get(n) is not None}
        return family.config_class(**settings)
    except ValueError as error:
        raise CheckpointError(f"{where}: {error}") from error
    except Exception as error:  # a text where a number belongs, and the like
        raise CheckpointError(f"{where}: its settings cannot be read ({error!r}).") from error


def _check_kinds(theirs: Mapping[str, Any], family: Family) -> None:
    """Raise ValueError where a number or a truth value is something else."""
    types = {field.name: str(field.type) for field in fields(family.config_class)}
    types = {name: types[ours] for ours, name in family.settings.items()}
    types |= {name: type(value).__name__ for name, value in family.absent.items()}
    checks = {"int": is_whole, "float": is_number, "bool": lambda value: isinstance(value, bool)}
    named = {"int": "a whole number", "float": "a number", "bool": "true or false"}
    for name, kind in types.items():
        value, check = theirs.get(name), checks.get(kind)
        # Of a picture, height and width may be given: families._read_vit reads them.
        square = name.endswith("_size") and isinstance(value, list | tuple)
        if check and value is not None and not square and not check(value):
            raise ValueError(f"{name}={value!r} was given; expected {named[kind]}.")


def _check_fixed(settings: Mapping[str, Any], family: Family, where: str) -> None:
    for name, value in family.fixed.items():
        its = settings.get(name, value)
        if its != value or isinstance(its, bool) != isinstance(value, bool):
            raise CheckpointError(
                f"{where} has {name}={settings[name]!r}; only {value!r} means the same here and "
                f"in transformers' {family.model_type}."
            )


# ---------------------------------------------------------------- filling a model

_OLD_NAMES = ((".gamma", ".weight"), (".beta", ".bias"))  # LayerNorm, in files made before 2019


def canonical(state: Mapping[str, Tensor], family: Family) -> State:
    """Their weights without prefix, old names, second names of tied weights and position counts."""
    clean: State = {}
    joined = {**family.joined, **family.joined_in_files}
    for name, value in state.items():
        name = name.removeprefix(family.prefix).removeprefix(family.stored_prefix)
        for old, new in _OLD_NAMES:
            name = name.removesuffix(old) + new if name.endswith(old) else name
        if not name.endswith("position_ids"):
            for part, piece in parted(newest_name(name, family), value, joined).items():
                if not _equal(piece, clean.setdefault(part, piece)):
                    raise CheckpointError(
                        f"{part} appears twice, in two spellings and with two values; expected one."
                    )
    for second, first in family.tied.items():
        copy = clean.pop(second, None)
        if copy is not None and not _equal(copy, clean.setdefault(first, copy)):
            raise CheckpointError(f"{second} differs from {first}: here both are one matrix.")
    return clean


def _equal(one: Tensor, other: Tensor) -> bool:
    return one is other or (one.dtype == other.dtype and torch.equal(one, other))


Parts = Mapping[str, tuple[str, ...]]  # how the name of a matrix ends -> what it is made of


def parted(name: str, value: Tensor, parts_of: Parts) -> State:
    """A matrix of theirs that holds several of ours, one below the other, as several: of
    attn.Wqkv.weight come attn.Wqkv.query.weight and so on. Others as they are."""
    module, _, leaf = name.rpartition(".")
    parts = next((parts for end, parts in parts_of.items() if module.endswith(end)), ())
    if not parts or not value.dim():
        return {name: value}
    pieces = zip(parts, value.chunk(len(parts)), strict=True)
    return {f"{module}.{part}.{leaf}": piece.clone() for part, piece in pieces}


def joined(state: Mapping[str, Tensor], parts_of: Parts) -> State:
    """The way back: what is parted becomes one matrix, in the order in which it comes."""
    whole: dict[str, list[Tensor]] = {}
    for name, value in state.items():
        module, _, leaf = name.rpartition(".")
        owner = module.rpartition(".")[0]
        held = owner.endswith(tuple(parts_of))
        whole.setdefault(f"{owner}.{leaf}" if held else name, []).append(value)
    return {name: torch.cat(pieces) if pieces[1:] else pieces[0] for name, pieces in whole.items()}


def filled(
    kind: type[Model],
    config: Any,
    head: Mapping[str, Any],
    family: Family,
    state: State,
    where: str,
) -> Model:
    """Our model with `state` (canonical names of transformers) as its weights; head: see our_head.

    family: as it is under this head. Built without memory first, so that nothing is allocated
    before the shapes are known to fit.
    Weights of heads that `kind` does not have are left aside, with a warning, as they may be half
    a head, and so are the family's leftovers, without."""
    check_sizes(config, state, where)
    weights = family.has_pooler and their_name("pooler.dense.weight", family) in state
    model = hollow(kind, config, family, has_pooler(kind, config, weights), **head)
    theirs = {their_name(name, family): name for name in model.state_dict()}
    expected = {theirs[t]: value for t, value in state.items() if t in theirs}
    shapes = {name: tuple(value.shape) for name, value in model.state_dict().items()}
    aside = tuple(start for head, start in family.heads.items() if not hasattr(model, head))
    surplus = [t for t in state if t not in theirs and not t.startswith(family.leftovers)]
    halves = [t for t in surplus if t.startswith(aside)]
    others = [t for t in surplus if t not in halves]
    compare_weights(shapes, expected, others, lambda name: their_name(name, family), where)
    if halves:
        warnings.warn(
            f"{where} holds a part of a head, which a {kind.__name__} does not have; it was "
            f"ignored: {', '.join(halves[:3])}{' and more' if halves[3:] else ''}.",
            stacklevel=4,
        )
    model.load_state_dict(expected, assign=True)
    return model


def check_sizes(config: Any, state: State, where: str) -> None:
    """Raise CheckpointError for a model that is larger than its file could hold, before it is made:
    even without memory, thousands of blocks take their time."""
    shared = getattr(config, "sharing", None) == "all"
    repeated = ("num_groups" if shared else "num_layers", "num_feed_forwards", "num_highways")
    parts = dict.fromkeys(repeated, len(state))
    numbers = sum(value.numel() for value in state.values())
    widths = ["hidden_size", "embedding_size", *["intermediate_size"] * (config.num_layers > 0)]
    widths += ["vocab_size"] * (not hasattr(config, "image_size"))
    for name, most in {**dict.fromkeys(widths, numbers), **parts}.items():
        if getattr(config, name, 0) > most:
            raise CheckpointError(
                f"{where} holds {len(state):,} tensors of {numbers:,} numbers in all; the "
                f"configuration asks for {name}={getattr(config, name):,}. Take weights and "
                "configuration from one model."
            )


def hollow(
    kind: type[Model],
    config: Any,
    family: Family,
    pooler: bool | str,
    visits: int = 2,
    names: int | Sequence[str] = (),
    dropout: float | None = None,
    plain: bool = False,
    kept: Mapping[str, Any] | None = None,
    unread: Mapping[str, Any] | None = None,
) -> Model:
    """A model of this kind that has shapes but no memory yet.

    pooler: whether it has one, or its name in POOLERS; visits: of a DeBERTa's decoder; names,
    dropout, kept: of a head with classes; plain: whether a tagger or answer finder has BERT's head
    in place of the member's own; unread: see Encoder."""
    with torch.device("meta"), _NothingDrawn():
        encoder = family.encoder(config, bool(pooler))
        encoder.unread = dict(unread or {})
        if isinstance(pooler, str):
            encoder.pooler = POOLERS[pooler](config)
        if kind is DebertaForMaskedLM:
            return DebertaForMaskedLM(encoder, EnhancedMaskDecoder(config, visits))
        transforms = kind in (BertForTokenClassification, BertForQuestionAnswering)
        own = {"plain": plain} if transforms else {}
        if issubclass(kind, Encoder):
            return encoder
        classes = [names] if issubclass(kind, Labelled) else []
        model = kind(encoder, *classes, **own)  # type: ignore
        if dropout is not None and isinstance(model, ForTask):
            model.dropout.p = dropout
        if kept is not None:
            model.kept = dict(kept)
        return model


class _NothingDrawn(TorchFunctionMode):
    """Leaves out an Embedding's first numbers: torch draws them, where there is no memory, by means
    of its compiler, which takes seconds to import."""

    def __torch_function__(self, call: Any, types: Any, args: Any = (), named: Any = None) -> Any:
        return named["tensor"] if call is nn.init.normal_ else call(*args, **(named or {}))


def compare_weights(
    shapes: Mapping[str, tuple[int, ...]],
    weights: Mapping[str, Tensor],
    surplus: Iterable[str],
    shown_name: Callable[[str], str],
    where: str,
) -> None:
    """Raise CheckpointError that lists the first few weights that do not fit."""
    wrong = [f"{name} is not expected" for name in surplus]
    wrong += [f"{shown_name(name)} is missing" for name in shapes if name not in weights]
    wrong += [
        f"{shown_name(name)} is {tuple(weights[name].shape)}, the configuration asks for {shape}"
        for name, shape in shapes.items()
        if name in weights and tuple(weights[name].shape) != shape
    ]
    if wrong:
        more = f"; and {len(wrong) - 4} more" if len(wrong) > 4 else ""
        raise CheckpointError(
            f"{where} holds another architecture than its configuration says: "
            f"{'; '.join(wrong[:4])}{more}. Take weights and configuration from one model."
        )
