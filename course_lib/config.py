"""What BERT needs to be built: one frozen dataclass, and the published sizes by name."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, fields
from math import inf
from numbers import Integral, Real
from typing import Any, ClassVar, TypeVar, overload

from .files import did_you_mean
from .kernels.choosing import ATTENTION_PATHS, check_path

# Of sizes: the most is many times that of any published model, so more is a slip.
BOUNDS: dict[str, tuple[int, int]] = {
    "vocab_size": (1, 10_000_000), "hidden_size": (1, 100_000), "num_heads": (1, 10_000),
    "intermediate_size": (1, 1_000_000), "max_positions": (1, 10_000_000), "num_layers": (0, 1_000),
    "type_vocab_size": (0, 100_000),
}  # fmt: skip


@dataclass(frozen=True)
class BertConfig:
    """The shape of a BERT (Devlin et al. 2018, section 3; defaults are BERT-base, uncased).

    Raises ValueError when the parts do not fit together.
    """

    vocab_size: int = 30_522  # V
    hidden_size: int = 768  # H
    num_layers: int = 12  # L
    num_heads: int = 12  # A; each head has H/A units
    intermediate_size: int = 3_072  # F, four times H in every published BERT
    max_positions: int = 512  # P, rows of the position table: the longest text
    type_vocab_size: int = 2  # segments A and B
    pad_token_id: int = 0
    hidden_act: str = "gelu"  # or "gelu_new": the same curve, approximated by a tanh
    hidden_dropout: float = 0.1
    attention_dropout: float = 0.1
    layer_norm_eps: float = 1e-12
    initializer_range: float = 0.02  # standard deviation of the random initialisation
    kernels: str = "auto"  # how attention is computed, see kernels/choosing.py; same numbers

    paths: ClassVar[tuple[str, ...]] = ATTENTION_PATHS  # what `kernels` may ask for by name
    activations: ClassVar[tuple[str, ...]] = ("gelu", "gelu_new")
    sizes: ClassVar[dict[str, int]] = {}  # a family's own whole numbers -> the least of each
    choices: ClassVar[dict[str, tuple[str, ...]]] = {}  # its own words -> those that there are
    widened_decoder: ClassVar[bool] = False  # see heads.MaskedLMHead
    pooler: ClassVar[str] = "tanh"  # of encoder.POOLERS, what a classifier of texts reads
    dropout_before_pooler: ClassVar[bool] = False  # whether it drops out before the pooler, too

    def __post_init__(self) -> None:
        for name, (least, most) in BOUNDS.items():
            check_size(name, getattr(self, name), least, most)
        for name, least in self.sizes.items():
            check_size(name, getattr(self, name), least)
        for name, words in self.choices.items():
            check_choice(name, getattr(self, name), words)
        pad = self.pad_token_id
        if not is_whole(pad) or not 0 <= pad < self.vocab_size:
            raise ValueError(
                f"pad_token_id={pad!r} was given; expected an id of the vocabulary, "
                f"0 to {self.vocab_size - 1}."
            )
        if self.longest_text < 1:
            raise ValueError(
                f"max_positions={self.max_positions} was given; expected at least "
                f"{self.max_positions - self.longest_text + 1}: this family reserves the first "
                f"{self.max_positions - self.longest_text} for padding."
            )
        if self.hidden_act not in self.activations:
            known = " or ".join(map(repr, self.activations))
            raise ValueError(f"hidden_act={self.hidden_act!r} was given; expected {known}.")
        if self.hidden_size % self.num_heads:
            raise ValueError(
                f"hidden_size={self.hidden_size} cannot be shared out to "
                f"num_heads={self.num_heads}; expected hidden_size to be a multiple of num_heads. "
                "Change one of the two."
            )
        for part in fields(self):
            value = getattr(self, part.name)
            if part.name.endswith("dropout"):
                check_number(part.name, value, below=1, advice="Use 0.0 to switch dropout off.")
            elif part.type == "float":
                below = {"layer_norm_eps": 1.0, "initializer_range": 10.0}.get(part.name, inf)
                check_number(part.name, value, below=below)
                object.__setattr__(self, part.name, float(value))  # transformers refuses a 0
            elif part.type == "int" and not is_whole(value):
                raise ValueError(f"{part.name}={value!r} was given; expected a whole number.")
            elif part.type == "bool" and not isinstance(value, bool):
                raise ValueError(f"{part.name}={value!r} was given; expected true or false.")
        check_path(self.kernels, self.paths)

    @property
    def head_size(self) -> int:
        """D, the width of one attention head."""
        return self.hidden_size // self.num_heads

    @property
    def biases(self) -> bool:
        """Whether dense layers and LayerNorms have biases, those of the masked-word head too."""
        return True

    @property
    def longest_text(self) -> int:
        """How many tokens a text may have, special tokens included."""
        return self.max_positions

    @property
    def pools_mean(self) -> bool:
        """Whether a pooler reads the mean of a text's states instead of its first one, [CLS]."""
        return False

    @property
    def pools_late(self) -> bool:
        """Whether a pooler reads every state, and the mean is taken of what it makes of them."""
        return False

    @property
    def gelu_form(self) -> str:
        """How `activate` is to compute: "none" for GELU itself, "tanh" approximated; others by
        name."""
        return {"gelu": "none", "gelu_new": "tanh"}.get(self.hidden_act, self.hidden_act)


def check_size(name: str, value: object, smallest: int = 1, most: float = inf) -> None:
    """Raise ValueError unless the setting `name` is a whole number from `smallest` to `most`."""
    if not is_whole(value) or not smallest <= value <= most:  # type: ignore[operator]
        upwards = "" if most == inf else f" and at most {most:,}"
        raise ValueError(
            f"{name}={value!r} was given; expected a whole number of at least {smallest}{upwards}."
        )


def check_choice(name: str, value: object, choices: Iterable[str]) -> None:
    """Raise ValueError unless the setting `name` is one of `choices`."""
    if value not in (known := list(choices)):
        raise ValueError(
            f"{name}={value!r} was given; expected one of {', '.join(known)}."
            + did_you_mean(value, known)
        )


def spelt_as(name: Any, choices: Iterable[str]) -> Any:
    """The choice that differs from a name in capitals alone, or the name as it is: a family is
    "DeBERTa" on a page and "deberta" in code."""
    same = {choice.casefold(): choice for choice in choices}
    return same.get(name.casefold(), name) if isinstance(name, str) else name


def is_whole(value: object) -> bool:
    """Whether a setting is a whole number, and no truth value."""
    return isinstance(value, Integral) and not isinstance(value, bool)


def is_number(value: object) -> bool:
    """Whether a setting is a number, whole or not, and no truth value."""
    return isinstance(value, Real) and not isinstance(value, bool)


def check_number(
    name: str, value: object, least: float = 0.0, below: float = inf, advice: str = ""
) -> None:
    """Raise ValueError unless the setting `name` is a number from `least` up to, not including,
    `below`; never infinite, and no truth value."""
    if not is_number(value) or not least <= value < below:  # type: ignore[operator]
        bound = "" if below == inf else f" to, not including, {below:g}"
        raise ValueError(
            f"{name}={value!r} was given; expected a {'finite ' if below == inf else ''}number "
            f"from {least:g} up{bound}.{advice and ' '}{advice}"
        )


Config = TypeVar("Config", bound=BertConfig)


def _size(layers: int, hidden: int, heads: int, **more: int) -> dict[str, int]:
    shape = {"num_layers": layers, "hidden_size": hidden, "num_heads": heads}
    return {**shape, "intermediate_size": 4 * hidden, **more}


# family -> size -> what differs from the defaults above.
# bert: Devlin et al. 2018, section 3, and the released configurations; the four small ones: Turc et
# al. 2019. roberta: Liu et al. 2019, Table 9; 512 usable positions and two that padding reserves.
# albert: Lan et al. 2019, Table 1; a head has 64 units in all four. distilbert: Sanh et al. 2019,
# section 2. tinybert: Jiao et al. 2020, section 4.2. electra: the discriminators of Clark et al.
# 2020, Table 6, and of the released configurations. deberta: He et al. 2020, Table 8, the first
# generation; deberta-v3: He et al. 2021 and the released configurations. gpt2: Radford et al. 2019,
# Table 2, and the released configurations. bart: Lewis et al. 2019, section 2.1; layers of the
# encoder, and as many of the decoder. ernie: Sun et al. 2019, the released configuration of 1.0.
# xlm: Lample and Conneau 2019 and the released configurations; token types are languages, which
# those of 1, 17 and 100 are not told. xlm-roberta: Conneau et al. 2019, section 3. mobilebert, and
# ib-bert, its teacher: Sun et al. 2020, section 3, and the configurations of the authors' program.
# modernbert: Warner et al. 2024, section 2, and the released configurations. eurobert: the released
# configurations. nomicbert: transformers' defaults, those of nomic-embed-text-v1.5.
# vit: Dosovitskiy et al. 2020, Table 1; the number is a patch's height and width in pixels.
BASE_AND_LARGE = {"base": _size(12, 768, 12), "large": _size(24, 1024, 16)}
PUBLISHED: dict[str, dict[str, dict[str, Any]]] = {
    "bert": {
        "tiny": _size(2, 128, 2),
        "mini": _size(4, 256, 4),
        "small": _size(4, 512, 8),
        "medium": _size(8, 512, 8),
        **BASE_AND_LARGE,
        "base-cased": _size(12, 768, 12, vocab_size=28_996),
        "large-cased": _size(24, 1024, 16, vocab_size=28_996),
        "base-chinese": _size(12, 768, 12, vocab_size=21_128),
        "multilingual-cased": _size(12, 768, 12, vocab_size=119_547),
        "multilingual-uncased": _size(12, 768, 12, vocab_size=105_879),
    },
    "roberta": BASE_AND_LARGE,
    "xlm": {
        "xnli15": _size(12, 1024, 8, vocab_size=95_000, type_vocab_size=15),
        "en": _size(12, 2048, 16, vocab_size=30_145, type_vocab_size=0),
        "17": _size(16, 1280, 16, vocab_size=200_000, type_vocab_size=0),
        "100": _size(16, 1280, 16, vocab_size=200_000, type_vocab_size=0),
    },
    "xlm-roberta": BASE_AND_LARGE,
    "albert": {
        **BASE_AND_LARGE,
        "xlarge": _size(24, 2048, 32),
        "xxlarge": _size(12, 4096, 64),
    },
    "distilbert": {"base": _size(6, 768, 12)},
    "tinybert": {
        "4": _size(4, 312, 12, intermediate_size=1_200),
        "6": _size(6, 768, 12),
    },
    "electra": {
        "small": _size(12, 256, 4, embedding_size=128),
        "base": _size(12, 768, 12, embedding_size=768),
        "large": _size(24, 1024, 16, embedding_size=1024),
    },
    "deberta": BASE_AND_LARGE,
    "ernie": {"base": _size(12, 768, 12)},
    "mobilebert": {
        "base": _size(24, 512, 4, intermediate_size=512),
        "tiny": {
            **_size(24, 512, 4, intermediate_size=512, num_feed_forwards=2),
            "attention_input": "bottleneck",
        },
    },
    "ib-bert": {
        "large": {
            **_size(24, 512, 4, intermediate_size=4_096, bottleneck_size=1_024),
            **{"num_feed_forwards": 1, "attention_input": "wide", "normalization": "layer_norm"},
            **{"hidden_act": "gelu", "hidden_dropout": 0.1, "classifier_activation": True},
        },
    },
    "modernbert": {
        "base": _size(22, 768, 12, intermediate_size=1_152),
        "large": _size(28, 1024, 16, intermediate_size=2_624),
    },
    "nomicbert": {"base": {}},
    "eurobert": {
        "210m": _size(12, 768, 12, vocab_size=128_256),
        "2.1b": _size(32, 2_304, 18, intermediate_size=6_144, num_key_value_heads=6),
    },
    "deberta-v3": {
        "small": _size(6, 768, 12),
        "base": _size(12, 768, 12),
        "large": _size(24, 1024, 16),
    },
    "gpt2": {
        "small": _size(12, 768, 12),
        "medium": _size(24, 1024, 16),
        "large": _size(36, 1280, 20),
        "xl": _size(48, 1600, 25),
    },
    "bart": {
        "base": _size(6, 768, 12),
        "large": _size(12, 1024, 16),
    },
    "vit": {
        "B/16": _size(12, 768, 12),
        "L/16": _size(24, 1024, 16),
        "H/14": _size(32, 1280, 16, patch_size=14),
    },
}


@overload
def published(family: str, size: str, **changes: Any) -> BertConfig: ...
@overload
def published(family: str, size: str, kind: type[Config], **changes: Any) -> Config: ...
def published(
    family: str, size: str, kind: type[BertConfig] = BertConfig, **changes: Any
) -> BertConfig:
    """The configuration of a published model, with `changes` on top.

    kind: the family's configuration, whose defaults hold for what the table does not say.

    Raises ValueError for a family, size or setting that does not exist, and names those that do.
    """
    family = spelt_as(family, PUBLISHED)
    check_choice("family", family, PUBLISHED)
    size = spelt_as(size, PUBLISHED[family])
    if size not in PUBLISHED[family]:
        known = f"{', '.join(PUBLISHED[family])}.{did_you_mean(size, PUBLISHED[family])}"
        raise ValueError(f"size {size!r} was given for {family}; expected one of {known}")
    settings = {field.name for field in fields(kind)}
    if unknown := set(changes) - settings:
        raise ValueError(
            f"{', '.join(sorted(unknown))} was given; expected settings of {kind.__name__}: "
            f"{', '.join(sorted(settings))}."
        )
    return kind(**{**PUBLISHED[family][size], **changes})


def encoder_flops(config: BertConfig, tokens: int) -> int:
    """FLOPs of the blocks for one text of `tokens` tokens; a multiply-add counts as two.

    Matrix products only: the four projections and the two dense layers of each block, and the
    two products of attention. Embeddings, norms and heads are left out (below 1% at base size).
    For blocks of BERT's build; train.flops.forward_flops counts any."""
    H, F, L = config.hidden_size, config.intermediate_size, config.num_layers
    dense = 2 * tokens * (4 * H * H + 2 * H * F)
    attention = 2 * 2 * tokens * tokens * H
    return L * (dense + attention)
