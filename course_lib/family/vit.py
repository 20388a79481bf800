"""ViT: BERT's encoder on pictures (Dosovitskiy et al. 2020, section 3.1).

A picture is cut into patches, and one matrix makes a vector of each patch: what the token table is
to words. In front stands a learned class token, [CLS] by another name. Positions are learned, there
are no segments, and LayerNorm stands before each half of a block and once at the end (pre-LN).
Attention, feed-forward part and Stack are BERT's: they do not know what they read.

B pictures, C channels, P a patch's height and width, N patches, T = N + 1 tokens, H hidden."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from math import isqrt
from typing import Any, ClassVar

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from course_lib.config import BertConfig, check_size, published
from course_lib.encoder import Encoder, EncoderOutput, Pooler, Stack, initialise, to_autocast_dtype
from course_lib.family.gpt import PreNormBlock
from course_lib.heads import ClassifierOutput, label_names
from course_lib.images import check_patches, cut_patches, join_patches

RESIZING = {"bicubic": False, "bilinear": True}  # whether corners stay where they are

# What the authors' program has and transformers has not, as settings: vit("B/16", **AUTHORS).
AUTHORS: dict[str, Any] = {
    "hidden_act": "gelu_new", "layer_norm_eps": 1e-6, "resize": "bilinear", "zero_start": True,
    "xavier": True,
}  # fmt: skip


@dataclass(frozen=True)
class VitConfig(BertConfig):
    """The shape of a ViT; defaults are ViT-B/16 for pictures of 224×224, as transformers has it.

    positions: "1d", a learned vector a patch; "2d", half a vector for its row and half for its
    column; "none" (all three are in their ablation). resize: how positions are interpolated for
    pictures of another size. zero_start: class token and classifier begin at zero, as in the
    authors' program; xavier: all else too begins as there (`begin_as_authors`). max_positions
    follows from the picture: a class token and its patches.

    Raises ValueError for other values, and for sizes that do not fit together."""

    vocab_size: int = 1  # no words
    max_positions: int = 197
    type_vocab_size: int = 0
    hidden_dropout: float = 0.0
    attention_dropout: float = 0.0
    image_size: int = 224  # height and width in pixels
    patch_size: int = 16  # P
    num_channels: int = 3  # C; 1 for grey pictures
    positions: str = "1d"
    resize: str = "bicubic"
    zero_start: bool = False
    xavier: bool = False

    choices: ClassVar[dict[str, tuple[str, ...]]] = {
        "positions": ("1d", "2d", "none"), "resize": tuple(RESIZING),
    }  # fmt: skip

    def __post_init__(self) -> None:
        for name in ("image_size", "patch_size", "num_channels"):
            check_size(name, getattr(self, name))
        if self.image_size % self.patch_size:
            raise ValueError(
                f"image_size={self.image_size} and patch_size={self.patch_size} were given; "
                "expected the picture to be a multiple of the patch. Change one of the two."
            )
        object.__setattr__(self, "max_positions", 1 + self.patches_across**2)
        super().__post_init__()
        if self.positions == "2d" and self.hidden_size % 2:
            raise ValueError(
                f"hidden_size={self.hidden_size} was given with positions='2d'; expected an even "
                "number: half of a position is its row's, half its column's."
            )

    @property
    def patches_across(self) -> int:
        """Patches in a row, and in a column."""
        return self.image_size // self.patch_size


def project_by_convolution(images: Tensor, weight: Tensor, bias: Tensor) -> Tensor:
    """(B, C, height, width), weight (H, C, P, P), bias (H,) -> (B, N, H): a convolution whose steps
    are as long as its kernel is wide, so that each patch is read once."""
    return F.conv2d(images, weight, bias, stride=weight.shape[-1]).flatten(2).transpose(1, 2)


def project_by_product(images: Tensor, weight: Tensor, bias: Tensor) -> Tensor:
    """The same as in equation 1: each patch is a row, multiplied with one matrix."""
    patches = cut_patches(images, weight.shape[-1])  # (B, N, C·P·P)
    return F.linear(patches, weight.flatten(1), bias)


def resize_positions(table: Tensor, grid: tuple[int, int], how: str = "bicubic") -> Tensor:
    """Positions (1 + n·n, H) of n×n patches, interpolated to (1 + rows·columns, H), `grid` = (rows,
    columns); the class token's stays (section 3.2: fine-tuning at higher resolution).

    how: "bicubic" as in transformers, or "bilinear" with the corners kept, as in the authors'
    program."""
    side = isqrt(len(table) - 1)
    if grid == (side, side):
        return table
    picture = _interpolated(table[1:].T.unflatten(1, (side, side)), grid, how)
    return torch.cat([table[:1], picture.flatten(1).T])


def _interpolated(picture: Tensor, grid: tuple[int, int], how: str) -> Tensor:
    """(H, n, m) -> (H, rows, columns)."""
    return F.interpolate(picture[None], size=grid, mode=how, align_corners=RESIZING[how])[0]


class PatchEmbeddings(nn.Module):
    """Patches through one matrix, a class token in front, positions added (equation 1)."""

    def __init__(self, config: VitConfig) -> None:
        super().__init__()
        H, side, sd = config.hidden_size, config.patches_across, config.initializer_range
        self.config = config
        self.project = nn.Conv2d(config.num_channels, H, config.patch_size, config.patch_size)
        self.cls = nn.Parameter(torch.zeros(1, 1, H))
        if config.positions == "1d":
            self.position = nn.Parameter(torch.zeros(1, config.max_positions, H))
        if config.positions == "2d":
            self.row = nn.Parameter(torch.zeros(side, H // 2))
            self.column = nn.Parameter(torch.zeros(side, H // 2))
        self.dropout = nn.Dropout(config.hidden_dropout)
        for name, weight in self.named_parameters():
            if weight.dim() == 1 or (name == "cls" and config.zero_start):
                nn.init.zeros_(weight)
            elif not weight.is_meta:
                nn.init.trunc_normal_(weight, std=sd, a=-2 * sd, b=2 * sd)

    def position_table(self) -> Tensor | None:
        """(T, H): a vector for the class token, and one a patch."""
        if self.config.positions == "1d":
            return self.position[0]
        if self.config.positions == "none":
            return None
        across = (-1, self.config.patches_across, -1)
        parts = self.row[:, None].expand(across), self.column[None].expand(len(self.row), -1, -1)
        return F.pad(torch.cat(parts, dim=-1).flatten(0, 1), (0, 0, 1, 0))  # none for the class

    def forward(
        self,
        pixel_values: Tensor,
        bool_masked_pos: Tensor | None = None,
        mask_token: Tensor | None = None,
        interpolate_pos_encoding: bool = False,
    ) -> Tensor:
        """As VitEncoder's call -> (B, T, H)."""
        check_pictures(pixel_values, self.config, interpolate_pos_encoding)
        weight, bias = self.project.weight, self.project.bias
        x = project_by_convolution(pixel_values.to(weight.dtype), weight, bias)  # type: ignore
        if bool_masked_pos is not None:
            _check_hidden(bool_masked_pos, mask_token, x)
            x = torch.where(bool_masked_pos[..., None], mask_token, x)  # type: ignore[arg-type]
        x = torch.cat([self.cls.expand(x.shape[0], -1, -1), x], dim=1)  # (B, N, H) -> (B, T, H)
        table = self.position_table()
        if table is not None:
            height, width = (pixels // self.config.patch_size for pixels in pixel_values.shape[2:])
            x = x + resize_positions(table, (height, width), self.config.resize)
        return self.dropout(x)


def check_pictures(pixel_values: Tensor, config: VitConfig, any_size: bool) -> None:
    """Raise ValueError for pictures that this model cannot read."""
    check_patches(pixel_values, config.patch_size)
    channels, height, width = pixel_values.shape[1:]
    if channels != config.num_channels:
        raise ValueError(
            f"pictures of {channels} channels were given; this model reads {config.num_channels}. "
            "Repeat a grey picture with .expand(-1, 3, -1, -1), average a coloured one with "
            f".mean(1, keepdim=True), or build the model with num_channels={channels}."
        )
    if not any_size and (height, width) != (config.image_size, config.image_size):
        raise ValueError(
            f"pictures of {height}×{width} pixels were given; this model has positions for "
            f"{config.image_size}×{config.image_size}. Resize the pictures, or let the positions "
            "be interpolated: interpolate_pos_encoding=True, or resized(encoder, size) for good."
        )


def _check_hidden(hidden: Tensor, mask_token: Tensor | None, patches: Tensor) -> None:
    if mask_token is None or hidden.dtype != torch.bool or hidden.shape != patches.shape[:2]:
        raise ValueError(
            f"bool_masked_pos of shape {tuple(hidden.shape)} and type {hidden.dtype} was given "
            f"{'without a' if mask_token is None else 'with a'} mask_token; expected with one, and "
            f"bool of shape {tuple(patches.shape[:2])}: True at patches to hide. "
            "VitForMaskedPatches has the token."
        )


class VitEncoder(Encoder):
    """BERT's encoder that reads pictures, with blocks of pre-LN and a LayerNorm at the end. Parts
    as Encoder's: a Stack may be one that reads text, too."""

    config: VitConfig

    def __init__(
        self,
        config: VitConfig,
        embeddings: nn.Module | None = None,
        stack: nn.Module | None = None,
        pooler: nn.Module | None = None,
    ) -> None:
        embeddings = embeddings or PatchEmbeddings(config)
        super().__init__(config, embeddings, stack or Stack(config, block=PreNormBlock), pooler)
        self.norm = nn.LayerNorm(config.hidden_size, eps=config.layer_norm_eps)
        if config.xavier:
            begin_as_authors(self)

    def forward(  # type: ignore[override]
        self,
        pixel_values: Tensor,
        bool_masked_pos: Tensor | None = None,
        mask_token: Tensor | None = None,
        *,
        interpolate_pos_encoding: bool = False,
        output_hidden_states: bool = False,
        output_attentions: bool = False,
        output_attention_scores: bool = False,
    ) -> EncoderOutput:
        """pixel_values (B, C, height, width) floats. bool_masked_pos (B, N): where True, mask_token
        (1, 1, H) stands for the patch. interpolate_pos_encoding: pictures may have any size that is
        a multiple of the patch.

        Of hidden_states the last is the one before the last LayerNorm, as in transformers. Raises
        ValueError for pictures of another size or number of channels."""
        x = self.embeddings(pixel_values, bool_masked_pos, mask_token, interpolate_pos_encoding)
        keep = output_attentions or output_attention_scores
        states, weights, scores = self.stack(to_autocast_dtype(x), None, keep)
        last = self.norm(states[-1])
        return EncoderOutput(
            last_hidden_state=last,
            pooler_output=None if self.pooler is None else self.pooler(last),
            hidden_states=tuple(states) if output_hidden_states else None,
            attentions=tuple(weights) if output_attentions else None,
            attention_scores=tuple(scores) if output_attention_scores else None,
        )


def begin_as_authors(encoder: VitEncoder) -> None:
    """The random initialisation of the authors' program (models_vit.py): Xavier's for the blocks'
    matrices, biases of the feed-forward part with standard deviation 1e-6, those of attention zero;
    positions normal and not cut; patches by their number of inputs (LeCun's)."""
    for name, part in encoder.stack.named_modules():
        if isinstance(part, nn.Linear):
            nn.init.xavier_uniform_(part.weight)
            nn.init.normal_(part.bias, std=1e-6 if "feed_forward" in name else 0.0)
    for name, weight in encoder.embeddings.named_parameters():
        if name in ("position", "row", "column"):
            nn.init.normal_(weight, std=encoder.config.initializer_range)
        if name == "project.weight" and not weight.is_meta:
            # Cut at two of them, a normal distribution keeps 0.8796 of its standard deviation.
            sd = weight[0].numel() ** -0.5 / 0.87962566
            nn.init.trunc_normal_(weight, std=sd, a=-2 * sd, b=2 * sd)


class VitForClassification(nn.Module):
    """An encoder, and on the class token's vector one logit a class; no pooler is read.

    classes: their names, or how many there are. (In pre-training the authors have a dense layer
    and a tanh between the two, which they take off before fine-tuning.)"""

    def __init__(self, encoder: VitEncoder, classes: int | Sequence[str]) -> None:
        super().__init__()
        self.encoder = encoder
        self.config = encoder.config
        self.names = label_names(classes)
        self.dropout = nn.Dropout(0.0)  # the authors drop nothing here, nor does transformers
        self.classifier = nn.Linear(self.config.hidden_size, len(self.names))
        initialise(self.classifier, self.config.initializer_range)
        if self.config.zero_start:
            nn.init.zeros_(self.classifier.weight)

    def forward(self, pixel_values: Tensor, **output_flags: bool) -> ClassifierOutput:
        """As the encoder's call; (B, C, height, width) -> logits (B, classes)."""
        out = self.encoder(pixel_values, **output_flags)
        logits = self.classifier(self.dropout(out.last_hidden_state[:, 0]))
        return ClassifierOutput(logits, *out.optional)


@dataclass
class MaskedPatchOutput:
    """The picture that the model says, under transformers' name, and what was asked for."""

    reconstruction: Tensor  # (B, C, height, width)
    hidden_states: tuple[Tensor, ...] | None = None
    attentions: tuple[Tensor, ...] | None = None
    attention_scores: tuple[Tensor, ...] | None = None


class VitForMaskedPatches(nn.Module):
    """An encoder that tells hidden patches from the others, BERT's idea again: a learned vector for
    a hidden patch, and one dense layer from a patch's vector to its pixels. After it `encoder` is
    what is kept."""

    def __init__(self, encoder: VitEncoder) -> None:
        super().__init__()
        self.encoder = encoder
        self.config = encoder.config
        pixels = self.config.num_channels * self.config.patch_size**2
        self.mask_token = nn.Parameter(torch.zeros(1, 1, self.config.hidden_size))
        self.head = nn.Linear(self.config.hidden_size, pixels)
        initialise(self.head, self.config.initializer_range)

    def forward(
        self, pixel_values: Tensor, bool_masked_pos: Tensor | None = None, **output_flags: bool
    ) -> MaskedPatchOutput:
        """As the encoder's call; bool_masked_pos (B, N): True at patches that are hidden."""
        out = self.encoder(pixel_values, bool_masked_pos, self.mask_token, **output_flags)
        patches = self.head(out.last_hidden_state[:, 1:])  # (B, N, C·P·P)
        size = self.config.patch_size
        picture = join_patches(patches, size, pixel_values.shape[2] // size)
        return MaskedPatchOutput(picture, *out.optional)


def vit_encoder(config: VitConfig, pooler: bool = True) -> VitEncoder:
    """A ViT of this shape, randomly initialised."""
    return VitEncoder(config, pooler=Pooler(config) if pooler else None)


def vit(size: str = "B/16", *, pooler: bool = True, **changes: Any) -> VitEncoder:
    """A ViT encoder, randomly initialised; `changes` override settings of the published size:
    "B/16", "L/16" or "H/14"."""
    return vit_encoder(published("vit", size, VitConfig, **changes), pooler)


def vit_for_classification(
    size: str = "B/16", classes: int | Sequence[str] = 1_000, **changes: Any
) -> VitForClassification:
    """The encoder, without pooler, and a classifier; a thousand classes as in ImageNet."""
    return VitForClassification(vit(size, pooler=False, **changes), classes)


def vit_for_masked_patches(size: str = "B/16", **changes: Any) -> VitForMaskedPatches:
    """The encoder, without pooler, and what tells hidden patches."""
    return VitForMaskedPatches(vit(size, pooler=False, **changes))


@torch.no_grad()
def resized(encoder: VitEncoder, image_size: int) -> VitEncoder:
    """A copy for pictures of another size: positions interpolated for good, all other weights the
    same. So the authors begin to fine-tune on larger pictures."""
    config = replace(encoder.config, image_size=image_size)
    result = vit_encoder(config, encoder.pooler is not None)
    state, side = encoder.state_dict(), config.patches_across
    if config.positions == "1d":
        table = state["embeddings.position"][0]
        state["embeddings.position"] = resize_positions(table, (side, side), config.resize)[None]
    for name in {"embeddings.row", "embeddings.column"} & set(state):
        line = state[name].T[..., None]  # (H/2, n, 1), a picture one column wide
        state[name] = _interpolated(line, (side, 1), config.resize)[..., 0].T
    result.to(state["norm.weight"]).load_state_dict(state)
    return result.train(encoder.training)
