"""UltraBERT (dmis-lab 2026): EuroBERT's block again, with ModernBERT's local layers in another
order and another measure, and two dense layers before the decoder. Read in transformers' own
program, `models/ultrabert`, and on the models' cards: 768 or 1,024 wide, 32,768 tokens."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, ClassVar

from torch import Tensor, nn

from course_lib.encoder import Encoder, activate

from .eurobert import DecoderHead, EuroBertConfig, EuroBertForMaskedLM, eurobert_encoder


@dataclass(frozen=True)
class UltraBertConfig(EuroBertConfig):
    """The shape of an UltraBERT. Width, longest text, epsilon, window and bases are as published;
    the cards give no depth and no inner width, which are EuroBERT-210m's here.

    global_every: of n layers the *last* sees the whole text (ModernBERT: the first). window: an
    even number, of which transformers' `sliding_window` is half: 256 here is 128 there, 128 tokens
    on *either* side. prediction_size: between the two dense layers before the decoder. Raises
    ValueError for an odd window."""

    vocab_size: int = 32_000
    max_positions: int = 32_768
    pad_token_id: int = 0
    layer_norm_eps: float = 1e-6
    global_base: float = 2_560_000.0
    local_base: float = 10_000.0
    global_every: int = 3
    window: int = 256
    classifier_pooling: str = "cls"
    prediction_size: int = 768

    pooler: ClassVar[str] = "first"
    choices: ClassVar[dict[str, tuple[str, ...]]] = {
        **EuroBertConfig.choices,
        "classifier_pooling": ("cls", "mean"),
    }
    sizes: ClassVar[dict[str, int]] = {**EuroBertConfig.sizes, "window": 2, "prediction_size": 1}

    def __post_init__(self) -> None:
        super().__post_init__()
        if self.window % 2:
            raise ValueError(
                f"window={self.window} was given; expected an even number: UltraBERT's window is "
                "as many tokens on either side, and transformers keeps half of it."
            )

    def is_global(self, layer: int) -> bool:
        """Whether a layer, counted from 0, sees the whole text."""
        return (layer + 1) % self.global_every == 0


class UltraBertHead(DecoderHead):
    """Twice dense and GELU, in its approximate form, then the decoder."""

    def __init__(self, config: Any) -> None:
        super().__init__(config)
        H, P = config.hidden_size, config.prediction_size
        self.first = nn.Linear(H, P, bias=False)
        self.second = nn.Linear(P, H, bias=False)

    def forward(self, hidden: Tensor) -> Tensor:
        """(…, H) -> logits (…, V)."""
        inner = activate(self.first(hidden), "tanh")  # (…, P)
        return super().forward(activate(self.second(inner), "tanh"))


class UltraBertForMaskedLM(EuroBertForMaskedLM):
    """The encoder, the two layers and the decoder."""

    head: ClassVar[type[nn.Module]] = UltraBertHead


def ultrabert(**settings: Any) -> Encoder:
    """An UltraBERT encoder, randomly initialised, of these settings."""
    return eurobert_encoder(UltraBertConfig(**settings))


def ultrabert_for_masked_lm(**settings: Any) -> UltraBertForMaskedLM:
    """The encoder and its head."""
    return UltraBertForMaskedLM(ultrabert(**settings))
