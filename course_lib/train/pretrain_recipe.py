"""A recipe file of the pre-training command: what is trained, on what, how, and how it is watched.

A recipe is TOML with up to five tables, all checked before anything runs. data/recipes/ holds the
course's own; `PretrainRecipe` below is the whole list of what may stand in one."""

from __future__ import annotations

import tomllib
from collections.abc import Mapping
from dataclasses import MISSING, asdict, dataclass, field, fields, is_dataclass, replace
from pathlib import Path
from types import NoneType
from typing import Any, get_type_hints

from course_lib.config import check_choice, check_number, check_size
from course_lib.files import did_you_mean, read_text
from course_lib.objectives.masked_lm import BERT_MIX, check_mix, check_rate
from course_lib.objectives.released_masking import check_rule
from course_lib.text.vocabulary import MOST_PIECES

from .new_vocabulary import check_rows
from .schedule import check_training

UNITS = ("tokens", "words", "runs", "spans")
NONE = ("none", "off")  # how a file writes that there is no such bound: TOML has no word for it


class Part:
    """A table of a recipe: whoever makes one, its values have the types that it declares."""

    def __post_init__(self) -> None:
        for name, hint in get_type_hints(type(self)).items():
            object.__setattr__(self, name, _value(hint, getattr(self, name), name))


@dataclass(frozen=True)
class ModelPart(Part):
    """Which member of the family, of which size, and what differs from that size."""

    family: str = "bert"  # a name of pretrain.ENCODERS
    size: str = "mini"  # of config.PUBLISHED; a start has its own
    settings: Mapping[str, Any] = field(default_factory=dict)  # of the family's configuration
    generator: float = 0.25  # of an ELECTRA: the generator's size, as a fraction
    start: str = ""  # a checkpoint of load_pretrained to go on with; "": random initialisation
    rows: str = "mean"  # of a start: what pieces begin with that it lacks (new_vocabulary.py)

    def __post_init__(self) -> None:
        super().__post_init__()
        object.__setattr__(self, "family", self.family.casefold())  # "DeBERTa", as it is printed
        check_number("generator", self.generator)
        check_rows(self.rows)


@dataclass(frozen=True)
class ObjectivePart(Part):
    """What the model learns to predict."""

    name: str = "mlm"  # of pretrain.OBJECTIVES: mlm, mlm+nsp, mlm+sop, mlm+sbo, rtd, bilm
    rate: float = 0.15  # fraction of positions selected
    mix: tuple[float, float, float] = BERT_MIX  # [MASK], random, kept
    units: str = "tokens"  # hidden together: tokens, words, runs of 1 to 3 words, SpanBERT's spans
    mask_copies: int = 0  # 0: dynamic masking; n: n masks in turn, 1 static
    masking: str = "bert"  # whose rule: bert's, or another of released_masking.RULES

    def __post_init__(self) -> None:
        super().__post_init__()
        check_rate(self.rate)
        if not self.rate:
            raise ValueError("rate=0.0 was given; expected more: no token would be learnt from.")
        check_mix(self.mix)
        check_size("mask_copies", self.mask_copies, 0)
        check_rule(self.masking, self.units == "tokens")
        check_choice("units", self.units, UNITS)


@dataclass(frozen=True)
class TextPart(Part):
    """What is read. source: "documentation" (what is installed here), "world" (the micro-world's
    stories), "medicine", "law", "finance" (domains.py), or a file or folder of plain text,
    paragraphs apart by an empty line."""

    source: str = "documentation"
    stories: int = 20_000  # of the micro-world
    # How many pieces to learn (8,192), a vocab.txt, or the name of a checkpoint that has one, which
    # a run with a start takes if nothing is said; the world has its own. Of ELMo: words to predict.
    vocabulary: int | str = None  # type: ignore[assignment]
    added: int = 0  # whole words of the text behind those pieces
    length: int = 128  # tokens in a sequence, special ones included
    heldout: int = 500  # sequences to be measured on, at most
    # Of a vocabulary that is learned here: whether capitals become small letters (default: true),
    # and whether letters lose accents and other marks (default: if capitals go; of a reader's own
    # text, only where such letters are rare, as in English).
    lowercase: bool | None = None
    strip_accents: bool | None = None
    usual = False  # whether `vocabulary` was left out; no setting

    def __post_init__(self) -> None:
        object.__setattr__(self, "usual", self.vocabulary is None)
        if self.usual:
            object.__setattr__(self, "vocabulary", 8_192)
        super().__post_init__()
        for name, least, most in (
            ("stories", 1, 10_000_000), ("length", 8, 65_536), ("heldout", 1, 1_000_000),
            ("added", 0, MOST_PIECES),
        ):  # fmt: skip
            check_size(name, getattr(self, name), least, most)
        if not isinstance(self.vocabulary, str):
            check_size("vocabulary", self.vocabulary, 1, MOST_PIECES)
        for name in ("source", "vocabulary"):
            if isinstance(value := getattr(self, name), str) and not value.strip():
                raise ValueError(f"{name}={value!r} was given; expected a name; or leave it out.")


@dataclass(frozen=True)
class TrainingPart(Part):
    """How the weights move: `train.loop.fit`'s arguments under the same names."""

    steps: int = 1_000
    batch_size: int = 64  # sequences a step, over all processes
    short_steps: int = 0  # so many first steps read sequences cut into short pieces
    short_length: int = 32  # of this length; as many tokens a step as later
    accumulate: int = 1  # batches a step: the step then reads accumulate × batch_size sequences
    learning_rate: float = 1e-3
    warmup: float = 0.1
    decay: float = 1.0  # the last share of the steps, in which the learning rate falls
    weight_decay: float = 0.01
    clip: float | None = 1.0  # 0 or "none": no clipping
    betas: tuple[float, float] = (0.9, 0.999)
    precision: str = "auto"
    seed: int = 0
    optimizer: str = "adamw"  # or "muon" (optimizers.py)
    released_schedule: bool = False  # the learning rate as in BERT's program (schedule.py)

    def __post_init__(self) -> None:
        super().__post_init__()
        check_training(vars(self))
        object.__setattr__(self, "clip", self.clip or 0.0)  # as fit writes none
        check_size("batch_size", self.batch_size, 1, 1_000_000)
        check_size("short_length", self.short_length)
        if not 0 <= self.short_steps <= self.steps:
            raise ValueError(
                f"short_steps={self.short_steps} was given for {self.steps} steps; expected 0 to "
                f"{self.steps}."
            )


@dataclass(frozen=True)
class ReportsPart(Part):
    """How often, in steps, the run writes down its loss, is measured, and is saved; 0: never. What
    it has become is measured and saved at the end in any case."""

    log_every: int = 50
    evaluate_every: int = 1_000
    save_every: int = 500

    def __post_init__(self) -> None:
        super().__post_init__()
        for name, steps in vars(self).items():
            check_size(name, steps, 0)


@dataclass(frozen=True)
class PretrainRecipe(Part):
    """A recipe file, read. `name` is what the result is called."""

    name: str
    about: str = ""
    model: ModelPart = field(default_factory=ModelPart)
    objective: ObjectivePart = field(default_factory=ObjectivePart)
    text: TextPart = field(default_factory=TextPart)
    training: TrainingPart = field(default_factory=TrainingPart)
    reports: ReportsPart = field(default_factory=ReportsPart)

    def __post_init__(self) -> None:
        super().__post_init__()
        start, text = self.model.start, self.text
        if start and text.usual and text.source != "world":
            object.__setattr__(self, "text", replace(text, vocabulary=start))
        short, length = self.training.short_length, self.text.length
        if not self.training.short_steps:
            return
        check_size("short_length", short, 8)
        if length % short:
            raise ValueError(
                f"short_length={short} was given for sequences of {length}; expected a length that "
                "divides it."
            )
        check_choice("objective (with short_steps)", self.objective.name, ("mlm", "rtd"))
        check_choice("units (with short_steps)", self.objective.units, ("tokens",))

    def as_dict(self) -> dict[str, Any]:
        """All settings as plain values, those left to their defaults too. Of the settings that came
        later only those in use: a recipe without them is still what older results say."""
        result = asdict(self)
        text, training = self.text, self.training
        later = (
            ("model", "start", self.model.start), ("model", "rows", self.model.start),
            ("model", "size", not self.model.start),
            ("objective", "masking", self.objective.masking != "bert"),
            ("text", "added", text.added), ("text", "lowercase", text.lowercase is not None),
            ("text", "strip_accents", text.strip_accents is not None),
            ("training", "decay", training.decay != 1),
            ("training", "optimizer", training.optimizer != "adamw"),
            ("training", "released_schedule", training.released_schedule),
        )  # fmt: skip
        for part, name, used in later:
            if not used:
                del result[part][name]
        return result


def with_start(recipe: PretrainRecipe, start: str) -> PretrainRecipe:
    """The recipe with a checkpoint in place of its model and vocabulary: its text and training are
    what they were, its learning rate climbs and falls anew."""
    model, text = ModelPart(recipe.model.family, start=start), recipe.text
    if text.source != "world":
        text = replace(text, vocabulary=start, added=0)
    return replace(recipe, model=model, text=text)


def read_recipe(path: str | Path) -> PretrainRecipe:
    """The recipe in a TOML file.

    Raises FileNotFoundError where there is none, and ValueError for what is no TOML, for a setting
    that does not exist, and for a value of another kind than the setting's."""
    text = read_text(path, "a recipe, such as a copy of one in data/recipes/")
    try:
        result = tomllib.loads(text)
    except tomllib.TOMLDecodeError as error:
        raise ValueError(f"{path} is not valid TOML: {error}. Compare data/recipes/.") from error
    model = result.get("model", {})
    if isinstance(model, dict) and model.get("start") and "size" in model:
        raise ValueError(
            f"{path} has size={model['size']!r} beside start={model['start']!r}; expected only "
            "start: the checkpoint has its own size. Leave size out."
        )
    return _build(PretrainRecipe, result, str(path))


def _build(kind: type, settings: Mapping[str, Any], where: str) -> Any:
    hints, parts = get_type_hints(kind), {f.name: f for f in fields(kind)}
    if unknown := sorted(set(settings) - set(parts)):
        raise ValueError(
            f"{where} has {', '.join(unknown)}; expected only {', '.join(parts)}. Is it spelt "
            f"right, and in the right table?{did_you_mean(unknown[0], parts)}"
        )
    if missing := [n for n, f in parts.items() if _required(f) and n not in settings]:
        raise ValueError(f"{where} lacks {', '.join(missing)}; expected a value there. Add it.")
    values = {
        name: _value(hints[name], value, f"{where}, {name}") for name, value in settings.items()
    }
    try:
        return kind(**values)
    except ValueError as error:
        raise ValueError(f"{where}: {error}") from error


def _required(part: Any) -> bool:
    return part.default is MISSING and part.default_factory is MISSING


def _value(hint: Any, value: Any, where: str) -> Any:
    """What a setting of this type becomes: a table a Part, a list a tuple, a whole number a float
    where one is wanted. Raises ValueError for another type."""
    if is_dataclass(hint):
        if isinstance(value, hint):  # type: ignore[arg-type]
            return value
        if not isinstance(value, Mapping):
            raise ValueError(f"{where} is {value!r}; expected a table.")
        return _build(hint, value, where)  # type: ignore[arg-type]
    types = getattr(hint, "__args__", ()) if "|" in str(hint) else (hint,)
    if value in NONE and NoneType in types and bool not in types:
        return None
    for kind in types:
        plain = getattr(kind, "__origin__", kind)
        row = isinstance(value, (list, tuple))
        if plain is tuple and row and len(value) == len(kind.__args__):
            return tuple(_value(k, x, where) for k, x in zip(kind.__args__, value, strict=True))
        if plain is float and isinstance(value, int) and not isinstance(value, bool):
            return float(value)
        if plain not in (tuple, bool) and isinstance(value, bool):
            continue
        if isinstance(plain, type) and plain is not tuple and isinstance(value, plain):
            return value
    words = {NoneType: "" if bool in types else '"none"', bool: "bool (true or false)"}
    kinds = (words.get(kind, getattr(kind, "__name__", str(kind))) for kind in types)
    names = " or ".join(filter(None, kinds))
    raise ValueError(f"{where} is {value!r}; expected a value of type {names}.")
