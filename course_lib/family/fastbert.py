"""FastBERT: BERT with a small classifier behind every block, at which a text may leave (Liu et al.
2020, section 3).

The backbone and its last classifier, the teacher, are trained on labels; then, with all of that
frozen, the classifiers before it, the students, learn the teacher's answers (objectives/exits.py,
train/exits.py). Afterwards a text leaves at the first exit that is sure enough: `FastBert.answer`,
computed by kernels/early_exit.py. B batch, T tokens, H hidden, S size of an exit, C classes, L
layers."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import torch
from torch import Tensor, nn

from course_lib.config import BertConfig, encoder_flops
from course_lib.encoder import Encoder, SelfAttention, Stack, check_mask, to_autocast_dtype
from course_lib.family.albert import SharedStack
from course_lib.heads import label_names, segments_for
from course_lib.kernels.early_exit import (
    Confident,
    Exit,
    Exited,
    Layer,
    early_exit,
    entropy_at_most,
)


@dataclass
class ExitsOutput:
    """What all exits say."""

    exit_logits: tuple[Tensor, ...]  # L of (B, C), the first layer's first

    @property
    def logits(self) -> Tensor:
        """(B, C), the teacher's: those of the last exit."""
        return self.exit_logits[-1]


class ExitHead(nn.Module):
    """The authors' classifier: dense to S, tanh, self-attention, of whose output the first token is
    kept, dense, tanh, dense to C. (The paper's figure 2 shows only that it uses attention.)

    size: S, 128 for BERT-base; num_heads: of its attention, which drops weights out as the
    encoder's does. It keeps torch's own random initialisation, as in the program: with BERT's, five
    products in a row would leave next to nothing of the signal."""

    def __init__(
        self, config: BertConfig, classes: int, size: int = 128, num_heads: int = 2
    ) -> None:
        super().__init__()
        inner = BertConfig(
            hidden_size=size, num_heads=num_heads, attention_dropout=config.attention_dropout
        )
        self.narrow = nn.Linear(config.hidden_size, size)
        self.attention = SelfAttention(inner)
        self.dense = nn.Linear(size, size)
        self.classifier = nn.Linear(size, classes)

    def forward(self, hidden: Tensor, mask: Tensor | None = None) -> Tensor:
        """hidden (B, T, H), mask (B, T), 1 real and 0 padding -> logits (B, C)."""
        x = torch.tanh(self.narrow(hidden))  # (B, T, S)
        cls = torch.zeros(len(x), 1, dtype=torch.long, device=x.device)  # only its output is read
        first = self.attention(x, mask, output_positions=cls)[0].squeeze(1)  # (B, S)
        return self.classifier(torch.tanh(self.dense(first)))

    def flops(self, tokens: int) -> int:
        """FLOPs of the matrix products for one text; a multiply-add counts as two."""
        H, S, C = self.narrow.in_features, self.narrow.out_features, self.classifier.out_features
        every = H * S + 2 * S * S + 2 * S  # narrow; key, value; their products with the query
        once = 3 * S * S + S * C  # query, output, dense; classifier
        return 2 * (tokens * every + once)


class FastBert(nn.Module):
    """An encoder with an exit after every block; the last exit is the teacher, the others are its
    students.

    classes: their names, or how many there are; exit_size and exit_heads: of the exits. Any encoder
    whose layers are blocks that follow one another (BERT, RoBERTa, ALBERT, DistilBERT, ELECTRA …);
    its pooler is not read. Raises ValueError for another one, for an encoder without a layer, and
    for fewer than two classes."""

    def __init__(
        self,
        encoder: Encoder,
        classes: int | Sequence[str],
        exit_size: int = 128,
        exit_heads: int = 2,
    ) -> None:
        super().__init__()
        self.names = label_names(classes)
        _check(encoder, self.names)
        self.encoder = encoder
        self.config = encoder.config
        self.exits = nn.ModuleList(
            ExitHead(encoder.config, len(self.names), exit_size, exit_heads)
            for _ in range(encoder.config.num_layers)
        )

    @property
    def students(self) -> nn.ModuleList:
        """All exits but the last."""
        return self.exits[:-1]  # type: ignore[return-value]

    @property
    def teacher(self) -> nn.Module:
        """The last exit, the only one that every text can reach."""
        return self.exits[-1]

    def forward(
        self,
        input_ids: Tensor,
        attention_mask: Tensor | None = None,
        token_type_ids: Tensor | None = None,
    ) -> ExitsOutput:
        """As the encoder's call; all exits answer."""
        segments = segments_for(self.config, token_type_ids)
        out = self.encoder(input_ids, attention_mask, segments, output_hidden_states=True)
        states = out.hidden_states[1:]  # behind each block
        # Not one tensor: exits that a loss does not read then get no gradient, not zeros.
        answers = (leave(x, attention_mask) for leave, x in zip(self.exits, states, strict=True))
        return ExitsOutput(tuple(answers))

    @torch.no_grad()
    def answer(
        self,
        input_ids: Tensor,
        attention_mask: Tensor | None = None,
        token_type_ids: Tensor | None = None,
        *,
        speed: float = 0.5,
        rule: Confident | None = None,
    ) -> Exited:
        """Each text's logits (B, C) at the first exit whose normalised entropy is at most `speed`,
        and the layers it used (B,). Texts that have left are computed no further.

        rule: another one than the entropy rule, such as `probability_above`. Call it in evaluation
        mode. Raises ValueError for a speed outside 0 to 1, and as the encoder's call."""
        check_mask(input_ids, attention_mask)
        confident = entropy_at_most(speed) if rule is None else rule
        segments = segments_for(self.config, token_type_ids)
        x = to_autocast_dtype(self.encoder.embeddings(input_ids, segments))
        exits: list[Exit] = list(self.exits)
        return early_exit(x, _layers(self.encoder.stack), exits, confident, attention_mask)

    def flops(self, tokens: int) -> list[int]:
        """FLOPs of one text by the exit it leaves at, exits on the way included: L numbers."""
        block = encoder_flops(self.config, tokens) // self.config.num_layers
        leave = self.teacher.flops(tokens)  # type: ignore[operator]
        return [layer * (block + leave) for layer in range(1, self.config.num_layers + 1)]


def _layers(stack: nn.Module) -> list[Layer]:
    """The layers of a stack, one by one, as `early_exit` calls them."""
    assert isinstance(stack, Stack)

    def states_of(layer: Callable[..., Any]) -> Layer:
        return lambda x, mask: layer(x, mask)[0]

    return list(map(states_of, stack.layers()))


def _check(encoder: Encoder, names: Sequence[str]) -> None:
    if len(names) < 2:
        raise ValueError(
            f"classes {list(names)} were given; expected two or more: with one, no exit is ever "
            "unsure."
        )
    if type(encoder.stack) not in (Stack, SharedStack) or not encoder.config.num_layers:
        raise ValueError(
            f"an encoder of {encoder.config.num_layers} layers in a "
            f"{type(encoder.stack).__name__} was given; expected at least one, in a Stack, whose "
            "blocks follow one another with nothing between, before or behind them. Give BERT or a "
            "member with BERT's stack."
        )
