"""ELMo: words in context before the Transformer (Peters et al. 2018, section 3; what the paper
leaves out is as in the authors' program, bilm-tf).

A word is read letter by letter (convolutions, max-pool, highway), then two LSTM layers read the
sentence from the left and, by themselves, from the right. Nothing is BERT's here but the way it is
called. B batch, T words, C characters a word, E = 16 character embedding, F filters in all, P
projection, S LSTM cells, L layers, V words to predict. The loss is in objectives/bilm.py, words
become characters in text/characters.py."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from course_lib.config import check_number, check_size, is_number
from course_lib.encoder import EncoderOutput, check_zero_or_one

CHARACTERS = 262  # padding of rows, 256 bytes, five signs; see text/characters.py
PAD_CHARACTER = 261  # fills a word up to its full length
FILTERS = ((1, 32), (2, 32), (3, 64), (4, 128), (5, 256), (6, 512), (7, 1024))
State = tuple[Tensor, Tensor]


@dataclass(frozen=True)
class ElmoConfig:
    """The shape of an ELMo; defaults are those of the released one (93.6 million parameters without
    its softmax).

    filters: (width in characters, how many) of each convolution. clip: bound of cells and
    projections, None for no clipping. dropout: of what each LSTM layer and the softmax read.
    Raises ValueError for settings that make no sense."""

    vocab_size: int = 793_471  # words that the language model predicts
    character_size: int = 16
    max_characters: int = 50  # of a word, its two boundary signs included
    filters: tuple[tuple[int, int], ...] = FILTERS
    num_highways: int = 2
    projection_size: int = 512
    cell_size: int = 4_096
    num_layers: int = 2
    clip: float | None = 3.0
    dropout: float = 0.1

    def __post_init__(self) -> None:
        object.__setattr__(self, "filters", tuple((int(w), int(n)) for w, n in self.filters))
        for name in ("vocab_size", "character_size", "projection_size", "cell_size", "num_layers"):
            check_size(name, getattr(self, name))
        check_size("num_highways", self.num_highways, 0)
        check_size("max_characters", self.max_characters, 3)
        widths = [width for width, _ in self.filters]
        if not widths or min(min(pair) for pair in self.filters) < 1:
            raise ValueError(f"filters={self.filters!r}: expected pairs of width and number.")
        if max(widths) > self.max_characters:
            raise ValueError(
                f"a filter {max(widths)} characters wide was given for words of "
                f"max_characters={self.max_characters}; expected none wider than a word."
            )
        if self.projection_size > self.cell_size:
            raise ValueError(
                f"projection_size={self.projection_size} was given for cell_size={self.cell_size}; "
                "expected a projection no wider than the cells."
            )
        if self.clip is not None and not (is_number(self.clip) and 0 < self.clip < math.inf):
            raise ValueError(f"clip={self.clip!r} was given; expected a bound above 0, or None.")
        check_number("dropout", self.dropout, below=1)

    @property
    def hidden_size(self) -> int:
        """Width of every layer: both directions side by side, 2P."""
        return 2 * self.projection_size


class Highway(nn.Module):
    """g·relu(Wx) + (1 − g)·x with g = σ(Ux). The gate's bias begins at −2: x passes, at first."""

    def __init__(self, size: int) -> None:
        super().__init__()
        self.transform = nn.Linear(size, size)
        self.gate = nn.Linear(size, size)
        nn.init.normal_(self.transform.weight, std=size**-0.5)
        nn.init.normal_(self.gate.weight, std=size**-0.5)
        nn.init.zeros_(self.transform.bias)
        nn.init.constant_(self.gate.bias, -2.0)

    def forward(self, x: Tensor) -> Tensor:
        """(N, F) -> (N, F)"""
        gate = torch.sigmoid(self.gate(x))
        return gate * torch.relu(self.transform(x)) + (1 - gate) * x


class CharacterEncoder(nn.Module):
    """A vector for a word from its characters alone: the same in every sentence, and there for
    words that were never seen."""

    def __init__(self, config: ElmoConfig) -> None:
        super().__init__()
        E, total = config.character_size, sum(number for _, number in config.filters)
        self.widest = max(width for width, _ in config.filters)
        self.characters = nn.Embedding(CHARACTERS, E, padding_idx=0)
        self.convolutions = nn.ModuleList(nn.Conv1d(E, n, width) for width, n in config.filters)
        self.highways = nn.ModuleList(Highway(total) for _ in range(config.num_highways))
        self.projection = nn.Linear(total, config.projection_size)
        nn.init.normal_(self.projection.weight, std=total**-0.5)
        nn.init.zeros_(self.projection.bias)

    def forward(self, input_ids: Tensor) -> Tensor:
        """(B, T, C) -> (B, T, P); each distinct word is computed once."""
        words, which = distinct(input_ids.flatten(0, 1))  # (N, C), (B·T,)
        return self.of_words(words)[which].unflatten(0, input_ids.shape[:2])

    def of_words(self, words: Tensor) -> Tensor:
        """(N, C) -> (N, P)"""
        x = self.characters(shortened(words, self.widest)).transpose(1, 2)  # (N, E, C)
        # The largest value of each filter over the word, then ReLU.
        pooled = [torch.relu(convolve(x).amax(dim=-1)) for convolve in self.convolutions]
        x = torch.cat(pooled, dim=-1)  # (N, F)
        for highway in self.highways:
            x = highway(x)
        return self.projection(x)


def distinct(words: Tensor) -> tuple[Tensor, Tensor]:
    """The rows of (M, C) without repetition, (N, C), and for each row its number there, (M,)."""
    seen: dict[bytes, int] = {}
    rows = words.cpu().contiguous().numpy()
    number = [seen.setdefault(row.tobytes(), len(seen)) for row in rows]
    which = torch.tensor(number, device=words.device)
    first = which.new_full((len(seen),), len(words)).scatter_reduce(
        0, which, torch.arange(len(words), device=words.device), "amin"
    )
    return words[first], which


def shortened(words: Tensor, widest: int) -> Tensor:
    """(N, C) -> (N, C'): words without most of their padding. As many padding characters stay as
    the widest filter reads: more of them give the same values again, and the maximum no other."""
    longest = int((words != PAD_CHARACTER).sum(dim=1).max())
    return words[:, : longest + widest]


class ProjectedLSTM(nn.Module):
    """One LSTM layer in one direction whose output, a projection of S cells to P numbers, is what
    the next step reads. Gates lie in torch's order: input, forget, new values, output.

    Without clipping it is torch.nn.LSTM(P, S, proj_size=P) with one bias."""

    def __init__(self, input_size: int, cells: int, size: int, clip: float | None = None) -> None:
        super().__init__()
        self.clip = clip
        self.weight_input = nn.Parameter(torch.empty(4 * cells, input_size))
        self.weight_hidden = nn.Parameter(torch.empty(4 * cells, size))
        self.bias = nn.Parameter(torch.zeros(4 * cells))
        self.projection = nn.Parameter(torch.empty(size, cells))
        for weight in (self.weight_input, self.weight_hidden, self.projection):
            nn.init.xavier_uniform_(weight)
        with torch.no_grad():
            self.bias[cells : 2 * cells] = 1  # remember, at first

    def forward(
        self, x: Tensor, attention_mask: Tensor | None = None, state: State | None = None
    ) -> tuple[Tensor, State]:
        """x (B, T, P) -> outputs (B, T, P), and the state after the last word: (B, P) and (B, S).

        Where attention_mask (B, T) is 0, output and state are zero: what follows begins anew."""
        inputs = F.linear(x, self.weight_input, self.bias).unbind(dim=1)  # T of (B, 4S)
        real = None if attention_mask is None else attention_mask.to(x.dtype)[..., None].unbind(1)
        if state is None:
            cells, size = self.projection.shape[1], self.projection.shape[0]
            state = (x.new_zeros(len(x), size), x.new_zeros(len(x), cells))
        hidden, cell = state
        outputs = []
        for step, gates in enumerate(inputs):
            hidden, cell = self.step(gates, hidden, cell)
            if real is not None:
                hidden, cell = hidden * real[step], cell * real[step]
            outputs.append(hidden)
        return torch.stack(outputs, dim=1), (hidden, cell)

    def step(self, gates: Tensor, hidden: Tensor, cell: Tensor) -> State:
        """One word: its part of the gates (B, 4S), and the state before it; the state after."""
        i, f, g, o = torch.addmm(gates, hidden, self.weight_hidden.T).chunk(4, dim=-1)
        cell = torch.sigmoid(f) * cell + torch.sigmoid(i) * torch.tanh(g)
        cell = self._clipped(cell)
        hidden = (torch.sigmoid(o) * torch.tanh(cell)) @ self.projection.T
        return self._clipped(hidden), cell

    def _clipped(self, x: Tensor) -> Tensor:
        return x if self.clip is None else x.clamp(-self.clip, self.clip)


class Direction(nn.Module):
    """The LSTM layers that read one way. From the second on, a layer's input is added to its
    output."""

    def __init__(self, config: ElmoConfig, backward: bool) -> None:
        super().__init__()
        P, S = config.projection_size, config.cell_size
        self.layers = nn.ModuleList(
            ProjectedLSTM(P, S, P, config.clip) for _ in range(config.num_layers)
        )
        self.dropout = nn.Dropout(config.dropout)
        self.backward_in_time = backward

    def forward(self, x: Tensor, attention_mask: Tensor | None) -> list[Tensor]:
        """(B, T, P) -> L of (B, T, P), in the order of the text, whichever way it is read."""
        if self.backward_in_time:
            x, attention_mask = _turned(x), _turned(attention_mask)
        states = []
        for number, layer in enumerate(self.layers):
            inputs = self.dropout(x)
            x, _ = layer(inputs, attention_mask)
            if number:
                x = x + inputs
            states.append(x)
        return [_turned(x) for x in states] if self.backward_in_time else states


def _turned(x: Any) -> Any:
    return None if x is None else x.flip(1)


class Elmo(nn.Module):
    """The encoder: characters in, L + 1 vectors a word out, each 2P wide, forward half first.

    Layer 0 is the character encoder's vector, twice, so that all layers are equally wide. The
    state begins at zero in every row; the authors' program carries it from batch to batch, so its
    first sentences after loading differ."""

    def __init__(self, config: ElmoConfig) -> None:
        super().__init__()
        self.config = config
        self.words = CharacterEncoder(config)
        self.forward_lm = Direction(config, backward=False)
        self.backward_lm = Direction(config, backward=True)

    def forward(
        self,
        input_ids: Tensor,
        attention_mask: Tensor | None = None,
        *,
        output_hidden_states: bool = False,
    ) -> EncoderOutput:
        """input_ids (B, T, C), a row of characters a word (`spell_sentences` makes them);
        attention_mask (B, T), 1 real, 0 padding. Raises ValueError for ids of another shape."""
        check_characters(input_ids, attention_mask, self.config)
        if attention_mask is not None and bool(attention_mask.all()):
            attention_mask = None  # nothing to hide: fewer products
        x = self.words(input_ids)  # (B, T, P)
        forward, backward = (lm(x, attention_mask) for lm in (self.forward_lm, self.backward_lm))
        pairs = [(x, x), *zip(forward, backward, strict=True)]
        states = tuple(torch.cat(pair, dim=-1) for pair in pairs)  # each (B, T, 2P)
        return EncoderOutput(states[-1], hidden_states=states if output_hidden_states else None)


class ScalarMix(nn.Module):
    """ELMo_k = γ Σ_j s_j h_kj with s = softmax(weights): what a task learns about the frozen layers
    (equation 1). Begins as their mean; dropout 0.5 on what comes out, as in the authors' code."""

    def __init__(self, num_layers: int, dropout: float = 0.5) -> None:
        super().__init__()
        check_size("num_layers", num_layers)
        self.weights = nn.Parameter(torch.zeros(num_layers))
        self.gamma = nn.Parameter(torch.ones(()))
        self.dropout = nn.Dropout(dropout)

    def forward(self, hidden_states: tuple[Tensor, ...]) -> Tensor:
        """L + 1 of (B, T, H) -> (B, T, H). Raises ValueError for another number of layers."""
        if len(hidden_states) != len(self.weights):
            raise ValueError(
                f"{len(hidden_states)} layers were given; expected {len(self.weights)}, one for "
                "each weight. Call the encoder with output_hidden_states=True and pass all of them."
            )
        layers = torch.stack(hidden_states)  # (L + 1, B, T, H)
        return self.dropout(self.gamma * torch.tensordot(self.weights.softmax(0), layers, dims=1))


@dataclass
class BiLMOutput:
    """What both language models said at every position."""

    forward_logits: Tensor  # (B, T, V), about the word after each
    backward_logits: Tensor  # (B, T, V), about the word before each


class ElmoForBiLM(nn.Module):
    """Two language models with one character encoder and one softmax layer: the forward one
    predicts the next word from the words so far, the backward one the word before from those
    after."""

    def __init__(self, config: ElmoConfig) -> None:
        super().__init__()
        self.config = config
        self.encoder = Elmo(config)
        self.dropout = nn.Dropout(config.dropout)
        self.softmax = nn.Linear(config.projection_size, config.vocab_size)
        nn.init.normal_(self.softmax.weight, std=config.projection_size**-0.5)
        nn.init.zeros_(self.softmax.bias)

    def forward(self, input_ids: Tensor, attention_mask: Tensor | None = None) -> BiLMOutput:
        """input_ids (B, T, C), attention_mask (B, T)"""
        top = self.dropout(self.encoder(input_ids, attention_mask).last_hidden_state)  # (B, T, 2P)
        return BiLMOutput(*(self.softmax(half) for half in top.chunk(2, dim=-1)))


def elmo(**changes: Any) -> Elmo:
    """The encoder of the released size, randomly initialised; `changes` override settings."""
    return Elmo(ElmoConfig(**changes))


def check_characters(input_ids: Tensor, attention_mask: Tensor | None, config: ElmoConfig) -> None:
    """Raise ValueError unless these are characters of words, and a mask that goes with them."""
    if input_ids.ndim != 3 or input_ids.shape[-1] != config.max_characters:
        raise ValueError(
            f"input_ids of shape {tuple(input_ids.shape)} were given; expected (batch, words, "
            f"{config.max_characters}): ELMo reads characters. spell_sentences(sentences) makes "
            "them."
        )
    if not input_ids.numel():
        raise ValueError(
            f"input_ids of shape {tuple(input_ids.shape)} hold no word; expected at least one."
        )
    low, high = (int(x) for x in input_ids.aminmax())
    if low < 0 or high >= CHARACTERS:
        raise ValueError(
            f"character ids from {low} to {high} were given; expected 0 to {CHARACTERS - 1}. Are "
            "these numbers of words?"
        )
    if attention_mask is not None and attention_mask.shape != input_ids.shape[:2]:
        raise ValueError(
            f"attention_mask of shape {tuple(attention_mask.shape)} was given; expected "
            f"{tuple(input_ids.shape[:2])}, a number for each word."
        )
    if attention_mask is not None:
        check_zero_or_one(attention_mask)
