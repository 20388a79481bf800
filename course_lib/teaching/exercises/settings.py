"""What an answer may switch for everybody: torch's settings, numpy's and Python's own. They are put
back after each call, as the generators are."""

from __future__ import annotations

import decimal
import gc
import locale
import os
import signal
import sys
import warnings
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from functools import partial
from typing import Any, NamedTuple

import torch
from torch import overrides
from torch.utils import _device as default_device

AS_FOUND = object()  # of a setting that a check leaves as the reader has it


class Setting(NamedTuple):
    """How it is read and written; plain: its value while an exercise is checked."""

    read: Callable[[], Any]
    write: Callable[[Any], Any]
    plain: Any = AS_FOUND


def _modes() -> tuple[Any, ...]:
    """Default device and function modes: torch keeps both in one stack."""
    device = getattr(torch._GLOBAL_DEVICE_CONTEXT, "device_context", None)
    stack = tuple(overrides._get_current_function_mode_stack())
    return stack, device, default_device.CURRENT_DEVICE


def _set_modes(modes: tuple[Any, ...]) -> None:
    for _ in overrides._get_current_function_mode_stack():
        overrides._pop_mode()
    for mode in modes[0]:
        overrides._push_mode(mode)
    torch._GLOBAL_DEVICE_CONTEXT.device_context, default_device.CURRENT_DEVICE = modes[1:]


def _autocast_nesting() -> int:
    torch.autocast_increment_nesting()
    return torch.autocast_decrement_nesting()


def _leave_autocasts(outermost: int) -> None:
    """What is entered and never left would keep weights as they were cast once."""
    while torch.autocast_decrement_nesting() > outermost:
        pass
    torch.clear_autocast_cache()


def _autocast(device: str) -> tuple[Setting, ...]:
    on, dtype = torch.set_autocast_enabled, torch.set_autocast_dtype
    return (
        Setting(partial(torch.is_autocast_enabled, device), partial(on, device), False),
        Setting(partial(torch.get_autocast_dtype, device), partial(dtype, device)),
    )


def _deterministic() -> tuple[bool, bool]:
    warn_only = torch.is_deterministic_algorithms_warn_only_enabled()
    return torch.are_deterministic_algorithms_enabled(), warn_only


def _set_filters(filters: list[Any]) -> None:
    warnings.resetwarnings()  # also makes Python forget which filter met which line
    warnings.filters.extend(filters)  # type: ignore[attr-defined]


def _set_environment(variables: dict[str, str]) -> None:
    os.environ.clear()
    os.environ.update(variables)


SETTINGS: tuple[Setting, ...] = (
    Setting(_modes, _set_modes, ((), None, None)),
    Setting(torch.get_default_dtype, torch.set_default_dtype, torch.float32),
    *_autocast("cpu"),
    *_autocast("cuda"),
    Setting(torch.is_autocast_cache_enabled, torch.set_autocast_cache_enabled, True),
    Setting(_autocast_nesting, _leave_autocasts),
    Setting(torch.get_num_threads, torch.set_num_threads),
    Setting(_deterministic, lambda x: torch.use_deterministic_algorithms(x[0], warn_only=x[1])),
    Setting(torch.get_float32_matmul_precision, torch.set_float32_matmul_precision),
    Setting(
        lambda: (torch.is_anomaly_enabled(), torch.is_anomaly_check_nan_enabled()),
        lambda x: torch.set_anomaly_enabled(*x),
    ),
    Setting(torch.is_warn_always_enabled, torch.set_warn_always),
    Setting(
        lambda: dict(vars(torch._tensor_str.PRINT_OPTS)),
        lambda x: torch.set_printoptions(**x),
    ),
    Setting(lambda: list(warnings.filters), _set_filters),  # type: ignore[attr-defined]
    Setting(sys.getprofile, sys.setprofile),
    Setting(sys.gettrace, sys.settrace),
    Setting(sys.getswitchinterval, sys.setswitchinterval),
    Setting(sys.get_int_max_str_digits, sys.set_int_max_str_digits),
    Setting(gc.isenabled, lambda on: gc.enable() if on else gc.disable()),
    Setting(lambda: locale.setlocale(locale.LC_ALL), partial(locale.setlocale, locale.LC_ALL)),
    Setting(partial(signal.getsignal, signal.SIGINT), partial(signal.signal, signal.SIGINT)),
    Setting(os.getcwd, os.chdir),
)
ENVIRONMENT = Setting(lambda: dict(os.environ), _set_environment)  # slower than all the others
if "numpy" in sys.modules:  # torch has loaded it where there is one
    numpy: Any = sys.modules["numpy"]
    SETTINGS += (
        Setting(numpy.geterr, lambda x: numpy.seterr(**x)),
        Setting(numpy.get_printoptions, lambda x: numpy.set_printoptions(**x)),
    )
ATTRIBUTES = (
    (sys, "stdout"), (sys, "stderr"), (sys, "stdin"), (sys, "displayhook"), (sys, "excepthook"),
    (warnings, "showwarning"), (warnings, "formatwarning"),
)  # fmt: skip


class _KeptOpen:
    """A stream that an answer may close, and the reader has it afterwards all the same."""

    def __init__(self, stream: Any) -> None:
        self._stream = stream

    def close(self) -> None:
        with suppress(Exception):
            self._stream.flush()

    def __getattr__(self, name: str) -> Any:
        return getattr(self._stream, name)


@contextmanager
def own_settings(*more: Setting, plain: bool = False) -> Iterator[None]:
    """Leave every setting as it was found.

    more: settings beside SETTINGS. plain: begin with gradients on, no inference mode, and what else
    has a plain value, as torch starts; else with what is there, as a stage's own function mode."""
    recursion, settings = sys.getrecursionlimit(), (*SETTINGS, *more)
    before = [_now(setting) for setting in settings]
    attributes = [getattr(owner, name) for owner, name in ATTRIBUTES]
    gradients, inference = torch.is_grad_enabled(), torch.is_inference_mode_enabled()
    with decimal.localcontext(), torch.inference_mode(inference and not plain):
        for setting, value in zip(settings, before, strict=True):
            if plain and setting.plain is not AS_FOUND and value != setting.plain:
                setting.write(setting.plain)
        if torch.is_grad_enabled() != (gradients or plain):  # a function mode sees this call
            torch.set_grad_enabled(gradients or plain)
        if sys.stdout is not None:
            sys.stdout = _KeptOpen(sys.stdout)  # type: ignore[assignment]
        if sys.stderr is not None:
            sys.stderr = _KeptOpen(sys.stderr)  # type: ignore[assignment]
        try:
            yield
        finally:
            sys.setrecursionlimit(recursion)  # first: what follows calls functions
            for (owner, name), value in zip(ATTRIBUTES, attributes, strict=True):
                setattr(owner, name, value)
            for setting, value in zip(settings, before, strict=True):
                _put_back(setting, value)


def _now(setting: Setting) -> Any:
    try:
        return setting.read()
    except Exception:  # a working folder that is gone; two ways of setting a precision, mixed
        return AS_FOUND


def _put_back(setting: Setting, value: Any) -> None:
    with suppress(Exception):  # one that cannot be put back is no reason to leave the others
        if value is not AS_FOUND and _now(setting) != value:
            setting.write(value)
