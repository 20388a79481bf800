"""A whole BERT in one file, to be read from the top to the bottom (Devlin et al. 2018).

Nothing but torch, no options, no hooks: encoder, both pre-training heads, masking, sentence pairs,
one training step, and a toy run: `python -m course_lib.plain_bert`. The library's own version is
encoder.py and heads.py, which other members of the family depart from; a test holds both equal.

B batch, T tokens, H hidden, A heads, D = H / A head size, F feed-forward, V vocabulary."""

from __future__ import annotations

import math
from dataclasses import dataclass

import torch
import torch.nn.functional as F
from torch import Tensor, nn

PAD, CLS, SEP, MASK = range(4)  # ids of the special tokens
IGNORED = -100  # label of a position without a loss: cross_entropy's own default


@dataclass(frozen=True)
class PlainConfig:
    """The shape of the model; defaults are BERT-base, uncased (section 3)."""

    vocab_size: int = 30_522  # V
    hidden_size: int = 768  # H
    num_layers: int = 12
    num_heads: int = 12  # A
    intermediate_size: int = 3_072  # F, four times H
    max_positions: int = 512  # positions are learned, so no text can be longer than the table
    type_vocab_size: int = 2  # segments A and B
    dropout: float = 0.1
    layer_norm_eps: float = 1e-12
    initializer_range: float = 0.02


# ---------------------------------------------------------------- the encoder


class Embeddings(nn.Module):
    """Token + segment + position (figure 2)."""

    def __init__(self, config: PlainConfig) -> None:
        super().__init__()
        H = config.hidden_size
        self.token = nn.Embedding(config.vocab_size, H)
        self.segment = nn.Embedding(config.type_vocab_size, H)
        self.position = nn.Embedding(config.max_positions, H)
        self.norm = nn.LayerNorm(H, eps=config.layer_norm_eps)
        self.dropout = nn.Dropout(config.dropout)

    def forward(self, input_ids: Tensor, token_type_ids: Tensor) -> Tensor:
        position_ids = torch.arange(input_ids.shape[1], device=input_ids.device)  # (T,)
        # Attention alone does not see order: without positions, BERT would read a bag of words.
        x = self.token(input_ids) + self.segment(token_type_ids)  # (B, T, H)
        x = x + self.position(position_ids)  # (T, H), the same for every sequence
        return self.dropout(self.norm(x))


class SelfAttention(nn.Module):
    """Every token collects from every other, in A heads side by side (Vaswani et al. 2017)."""

    def __init__(self, config: PlainConfig) -> None:
        super().__init__()
        H = config.hidden_size
        self.num_heads = config.num_heads
        self.query, self.key, self.value = nn.Linear(H, H), nn.Linear(H, H), nn.Linear(H, H)
        self.output = nn.Linear(H, H)
        self.dropout = nn.Dropout(config.dropout)

    def forward(self, x: Tensor, attention_mask: Tensor) -> Tensor:
        B, T, H = x.shape
        per_head = (B, T, self.num_heads, -1)
        q = (
            self.query(x).view(per_head).transpose(1, 2)
        )  # (B, T, H) -> (B, T, A, D) -> (B, A, T, D)
        k = self.key(x).view(per_head).transpose(1, 2)
        v = self.value(x).view(per_head).transpose(1, 2)
        # A dot product of D numbers has a variance of D. Divided by √D it stays near 1, where the
        # softmax still has a gradient.
        scores = q @ k.transpose(-1, -2) / math.sqrt(q.shape[-1])  # (B, A, T, T)
        # Padding is hidden as a key only. A finite number, not -inf: a row without any real key
        # becomes uniform instead of not-a-number.
        is_padding = attention_mask[:, None, None, :] == 0  # (B, 1, 1, T): all heads, all queries
        scores = scores.masked_fill(is_padding, torch.finfo(scores.dtype).min)
        weights = self.dropout(scores.softmax(dim=-1))  # each row sums to one, before dropout
        attended = (weights @ v).transpose(1, 2).reshape(B, T, H)  # heads side by side again
        return self.output(attended)


class FeedForward(nn.Module):
    """Two dense layers with a GELU between them, for each token by itself."""

    def __init__(self, config: PlainConfig) -> None:
        super().__init__()
        self.up_proj = nn.Linear(config.hidden_size, config.intermediate_size)
        self.down_proj = nn.Linear(config.intermediate_size, config.hidden_size)

    def forward(self, x: Tensor) -> Tensor:
        return self.down_proj(F.gelu(self.up_proj(x)))  # (B, T, H) -> (B, T, F) -> (B, T, H)


class Block(nn.Module):
    """Attention, then feed-forward; after each: dropout, add the input, LayerNorm."""

    def __init__(self, config: PlainConfig) -> None:
        super().__init__()
        H, eps = config.hidden_size, config.layer_norm_eps
        self.attention = SelfAttention(config)
        self.attention_norm = nn.LayerNorm(H, eps=eps)
        self.feed_forward = FeedForward(config)
        self.output_norm = nn.LayerNorm(H, eps=eps)
        self.dropout = nn.Dropout(config.dropout)

    def forward(self, x: Tensor, attention_mask: Tensor) -> Tensor:
        # The sum is what lets gradients reach the first block. The norm stands behind the sum
        # (post-LN); GPT-2, ViT and ModernBERT have it before each half (pre-LN).
        x = self.attention_norm(x + self.dropout(self.attention(x, attention_mask)))
        return self.output_norm(x + self.dropout(self.feed_forward(x)))


# ---------------------------------------------------------------- the whole model


class PlainBert(nn.Module):
    """BERT with both heads of its pre-training (section 3.1)."""

    def __init__(self, config: PlainConfig) -> None:
        super().__init__()
        V, H = config.vocab_size, config.hidden_size
        self.embeddings = Embeddings(config)
        self.blocks = nn.ModuleList(Block(config) for _ in range(config.num_layers))
        self.pooler = nn.Linear(H, H)
        self.mlm_dense = nn.Linear(H, H)
        self.mlm_norm = nn.LayerNorm(H, eps=config.layer_norm_eps)
        self.mlm_bias = nn.Parameter(torch.zeros(V))
        self.nsp = nn.Linear(H, 2)
        for module in self.modules():
            if isinstance(module, (nn.Linear, nn.Embedding)):
                sd = config.initializer_range
                nn.init.trunc_normal_(module.weight, std=sd, a=-2 * sd, b=2 * sd)
            if isinstance(module, nn.Linear):
                nn.init.zeros_(module.bias)

    def encode(self, input_ids: Tensor, token_type_ids: Tensor, attention_mask: Tensor) -> Tensor:
        """Each (B, T) whole numbers; attention_mask: 1 real, 0 padding -> (B, T, H)."""
        x = self.embeddings(input_ids, token_type_ids)
        for block in self.blocks:
            x = block(x, attention_mask)
        return x

    def forward(
        self, input_ids: Tensor, token_type_ids: Tensor, attention_mask: Tensor
    ) -> tuple[Tensor, Tensor]:
        """-> logits of the tokens (B, T, V), and of IsNext and NotNext (B, 2)."""
        x = self.encode(input_ids, token_type_ids, attention_mask)
        h = self.mlm_norm(F.gelu(self.mlm_dense(x)))  # (B, T, H)
        # The token table again, as decoder: a fifth of BERT-base's weights are not needed twice.
        token_logits = F.linear(h, self.embeddings.token.weight, self.mlm_bias)  # (B, T, V)
        # [CLS] stands for the whole input only because this task trains it to.
        pooled = torch.tanh(self.pooler(x[:, 0]))  # (B, H)
        return token_logits, self.nsp(pooled)


# ---------------------------------------------------------------- what it is trained on


def mask_tokens(
    input_ids: Tensor, vocab_size: int, generator: torch.Generator, rate: float = 0.15
) -> tuple[Tensor, Tensor]:
    """(B, T) -> what the model reads, and the labels, IGNORED where nothing is predicted."""
    chance = torch.rand(input_ids.shape, generator=generator)
    special = (input_ids == PAD) | (input_ids == CLS) | (input_ids == SEP)
    selected = (chance < rate) & ~special
    labels = input_ids.where(selected, IGNORED)
    # [MASK] never occurs in fine-tuning. So of the selected 80% become [MASK], 10% another token,
    # and 10% stay: the model can trust no position, and keeps a vector of every token it reads.
    action = torch.rand(input_ids.shape, generator=generator)
    random_ids = torch.randint(MASK + 1, vocab_size, input_ids.shape, generator=generator)
    corrupted = input_ids.where(~(selected & (action < 0.8)), MASK)
    corrupted = torch.where(selected & (action >= 0.8) & (action < 0.9), random_ids, corrupted)
    return corrupted, labels


def make_pair(first: list[int], second: list[int], length: int) -> tuple[list[int], list[int]]:
    """[CLS] first [SEP] second [SEP] [PAD] …, and the segment of each token; both `length` long."""
    ids = [CLS, *first, SEP, *second, SEP]
    segments = [0] * (len(first) + 2) + [1] * (len(second) + 1)
    padding = length - len(ids)
    return ids + [PAD] * padding, segments + [0] * padding


def train_step(
    model: PlainBert,
    optimizer: torch.optim.Optimizer,
    input_ids: Tensor,
    token_type_ids: Tensor,
    is_random: Tensor,
    generator: torch.Generator,
) -> tuple[float, float]:
    """One step on both tasks -> the losses of MLM and NSP in nats. is_random (B,): 0 where the
    second passage follows the first, 1 where it comes from elsewhere."""
    corrupted, labels = mask_tokens(input_ids, len(model.mlm_bias), generator)
    attention_mask = (input_ids != PAD).long()
    token_logits, pair_logits = model(corrupted, token_type_ids, attention_mask)
    # The mean over the selected positions of the batch, and the mean over its sequences, added.
    mlm_loss = F.cross_entropy(token_logits.flatten(0, 1), labels.flatten(), ignore_index=IGNORED)
    nsp_loss = F.cross_entropy(pair_logits, is_random)
    optimizer.zero_grad()
    (mlm_loss + nsp_loss).backward()
    nn.utils.clip_grad_norm_(model.parameters(), 1.0)  # one unlucky batch must not undo the rest
    optimizer.step()
    return mlm_loss.item(), nsp_loss.item()


# ---------------------------------------------------------------- a toy run

ANIMALS = ["cat", "dog", "fox", "owl", "hen"]
PLACES = ["barn", "wood", "pond", "hill", "yard"]


def toy_batch(size: int, vocabulary: dict[str, int]) -> tuple[Tensor, Tensor, Tensor]:
    """Pairs of sentences: "the fox lives in the wood" goes on with "there the fox sleeps"."""
    pairs, is_random = [], torch.randint(2, (size,))
    for random_next in is_random.tolist():
        animal, other = (ANIMALS[i] for i in torch.randperm(len(ANIMALS))[:2])
        place = PLACES[(ANIMALS.index(animal) + 1) % len(PLACES)]  # a rule that can be learned
        first = f"the {animal} lives in the {place}"
        second = f"there the {other if random_next else animal} sleeps"
        first_ids, second_ids = ([vocabulary[w] for w in text.split()] for text in (first, second))
        pairs.append(make_pair(first_ids, second_ids, length=14))
    input_ids, token_type_ids = (torch.tensor(column) for column in zip(*pairs, strict=True))
    return input_ids, token_type_ids, is_random


def main(steps: int = 600) -> None:
    torch.manual_seed(0)
    words = ["the", "lives", "in", "there", "sleeps", *ANIMALS, *PLACES]
    vocabulary = {word: id for id, word in enumerate(words, start=MASK + 1)}
    config = PlainConfig(
        vocab_size=MASK + 1 + len(words), hidden_size=64, num_layers=2, num_heads=4,
        intermediate_size=256, max_positions=14, dropout=0.0,
    )  # fmt: skip
    model, generator = PlainBert(config), torch.Generator().manual_seed(1)
    optimizer = torch.optim.AdamW(model.parameters(), lr=1e-3, weight_decay=0.01)
    for step in range(steps + 1):
        losses = train_step(model, optimizer, *toy_batch(32, vocabulary), generator)
        if step % 100 == 0:
            print(f"step {step:4d}   MLM {losses[0]:.2f} nats   NSP {losses[1]:.2f} nats")


if __name__ == "__main__":
    main()
