"""Which path a kernel takes, and which device trains a model: rules that are read from top to
bottom, the first that fits decides.

Every path gives the same numbers; they differ in time and memory. A model asks for one by name
through one setting, `kernels`, or leaves the choice to these rules: "auto"."""

from __future__ import annotations

import os
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cache
from importlib.util import find_spec

import torch
from torch import Tensor


@dataclass(frozen=True)
class Rule:
    """Take `path` where all of this holds; what is None does not matter.

    head_sizes: of the query, D. tokens_up_to: the longest text, in keys. training: whether a
    gradient is needed. dropout: whether weights are dropped. package: which must be installed. why:
    the measurement behind the rule, a table of `python -m course_lib.bench`."""

    path: str
    device: str | None = None  # "cpu" or "cuda"
    dtypes: tuple[torch.dtype, ...] | None = None
    head_sizes: tuple[int, ...] | None = None
    tokens_up_to: int | None = None
    training: bool | None = None
    dropout: bool | None = None
    package: str | None = None
    why: str = ""

    def fits(self, tensor: Tensor, tokens: int, dropout: bool = False) -> bool:
        """Whether the rule holds for this query and this many keys."""
        return (
            self.device in (None, tensor.device.type)
            and (self.dtypes is None or tensor.dtype in self.dtypes)
            and (self.head_sizes is None or tensor.shape[-1] in self.head_sizes)
            and (self.tokens_up_to is None or tokens <= self.tokens_up_to)
            and self.dropout in (None, dropout)
            and (self.package is None or installed(self.package))
            and self.training in (None, torch.is_grad_enabled() and tensor.requires_grad)
        )


@cache
def installed(package: str) -> bool:
    """Whether a package can be imported. Triton comes with torch for Linux, and with no other."""
    return find_spec(package) is not None


TRITON_HEAD_SIZES = (16, 32, 64, 128)
ATTENTION: tuple[Rule, ...] = (
    Rule(
        "plain",
        device="cpu",
        dropout=True,
        why="bench attention, with dropout: on a CPU the fused kernel has none, and torch puts a "
        "slower way in its place",
    ),
    Rule(
        "plain",
        device="cpu",
        dtypes=(torch.bfloat16,),
        tokens_up_to=512,
        training=True,
        why="bench attention, forward and backward: in bfloat16 the fused kernel takes about four "
        "times as long up to 128 tokens, one and a half times at 512",
    ),
    Rule("fused", why="bench attention, forward: nothing of the size of the scores is kept"),
)
DISENTANGLED: tuple[Rule, ...] = (
    Rule(
        "skewed",
        device="cpu",
        why="bench disentangled: a view by strides moves nothing, a gather reads every score by "
        "its number",
    ),
    Rule(
        "triton",
        device="cuda",
        dtypes=(torch.float32, torch.bfloat16, torch.float16),
        head_sizes=TRITON_HEAD_SIZES,
        dropout=False,
        package="triton",
        why="bench disentangled_gpu: no scores in memory. With dropout it has not run on a GPU yet",
    ),
    Rule("gathered", why="needs nothing but torch: any device, format and head size, dropout too"),
)
# The paths one can ask for by name; "reference" is never chosen by a rule.
ATTENTION_PATHS = ("reference", "plain", "fused")
DISENTANGLED_PATHS = ("reference", "gathered", "skewed", "triton")


def choose(
    rules: Sequence[Rule], tensor: Tensor, tokens: int, dropout: float | bool = False
) -> str:
    """The path of the first rule that fits; tensor: the query. The last rule fits always."""
    return next(rule.path for rule in rules if rule.fits(tensor, tokens, bool(dropout)))


def check_path(path: str, known: Sequence[str]) -> None:
    """Raise ValueError unless `path` is "auto" or one of the `known`."""
    if path not in ("auto", *known):
        raise ValueError(
            f"kernels={path!r} was given; expected 'auto' or the name of a path: "
            f"{', '.join(known)}."
        )


# ---------------------------------------------------------------- the device of a training run


@dataclass(frozen=True)
class DeviceRule:
    """Train on `device` where it is there and the model has that many weights. why: what the size
    rests on."""

    device: str
    weights_from: int
    why: str


TRAINING: tuple[DeviceRule, ...] = (
    DeviceRule(
        "cuda",
        8_000_000,
        why="a step of so large a model takes two cores seconds; those of the pages are smaller, "
        "and a CPU repeats them to the last bit (4×256, 128×32 tokens: 14 ms on an H100)",
    ),
    DeviceRule("mps", 8_000_000, why="as cuda; never run on such a machine"),
    DeviceRule("cpu", 0, why="always there"),
)
DEVICES = ("auto", *(rule.device for rule in TRAINING))


def choose_device(requested: str = "auto", weights: int | None = None) -> str:
    """ "auto" becomes the device of the first rule of TRAINING that fits a model of so many weights
    (None: as large as can be), or the one that the environment variable COURSE_LIB_DEVICE names.
    Raises ValueError for a device that is unknown or absent."""
    requested = os.environ.get("COURSE_LIB_DEVICE", "auto") if requested == "auto" else requested
    if requested not in DEVICES:
        raise ValueError(f"device {requested!r} was given; expected one of {', '.join(DEVICES)}.")
    if requested != "auto":
        if not there(requested):
            raise ValueError(
                f"device {requested!r} was given; torch sees no GPU of that kind. Use cpu, or "
                "install a build of torch that fits the GPU and its driver."
            )
        return requested
    large = float("inf") if weights is None else weights
    return next(
        rule.device for rule in TRAINING if large >= rule.weights_from and there(rule.device)
    )


def there(device: str) -> bool:
    """Whether torch can compute on "cuda", "mps" or "cpu" here."""
    if device == "cuda":
        return torch.cuda.is_available()
    return device == "cpu" or torch.backends.mps.is_available()
