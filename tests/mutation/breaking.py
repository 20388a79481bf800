"""What a mutation campaign is made of: doors, what can be broken at them, and how the ends are
sorted. `__main__.py` says what for.

    right    accepted, and the result is that of the unbroken input: what was broken did not matter
    clear    the door's own class of error, or a warning, that names the file or the value
    bare     any other exception, a message without a name, or more than `LONGEST` seconds
    silent   accepted without a word, and the result differs"""

from __future__ import annotations

import json
import os
import random
import shutil
import struct
import tempfile
import time
import warnings
from collections import Counter
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any

import safetensors.torch
import torch

LONGEST = 5.0  # seconds that a mutant may take
Draw = random.Random


@dataclass(frozen=True)
class Door:
    """make: writes a valid input into an empty folder; returns what `open` takes, a path below that
    folder or any value. mutate: breaks the input, returns the new one and what was done. equal: is
    the second result that of the unbroken input? The third argument is the mutant's input.
    excuse: what a result says of itself where something was wrong, "" for nothing."""

    name: str
    make: Callable[[Path], Any]
    mutate: Callable[[Any, Draw], tuple[Any, str]]
    open: Callable[[Any], Any]
    error: tuple[type[Exception], ...]
    equal: Callable[[Any, Any, Any], bool]
    excuse: Callable[[Any], str] = lambda result: ""
    named: Callable[[str, Any], bool] = lambda text, path: (
        path.name in text or str(path.parent if path.suffix else path) in text
    )


@dataclass(frozen=True)
class Outcome:
    door: str
    number: int  # draws the mutant again
    kind: str  # right, clear, bare, silent
    what: str  # what was broken
    result: str


def outcome(door: Door, input: Any, what: str, number: int, right: Any) -> Outcome:
    """Open the door with a mutant and sort what happens."""
    made = partial(Outcome, door.name, number)
    start = time.process_time()
    with warnings.catch_warnings(record=True) as warned:
        warnings.simplefilter("always")
        try:
            result = door.open(input)
        except door.error as error:
            text = str(error)
            return made("clear" if door.named(text, input) else "bare", what, repr(error)[:300])
        except BaseException as error:
            return made("bare", what, f"{type(error).__name__}: {error}"[:300])
    if (took := time.process_time() - start) > LONGEST:
        return made("bare", what, f"took {took:.0f} s")
    said = " ".join([*(str(warning.message) for warning in warned), door.excuse(result)])
    if door.equal(right, result, input):
        return made("right", what, said[:300])
    return made("clear" if door.named(said, input) else "silent", what, said[:300])


def campaign(doors: list[Door], mutants: int, seed: int, only: int = -1) -> Iterator[Outcome]:
    """`mutants` broken inputs, in turn at each door."""
    with tempfile.TemporaryDirectory() as place:
        valid, right = {}, {}
        for number, door in enumerate(doors):
            folder = Path(place, f"valid-{number}")
            folder.mkdir()
            valid[door] = door.make(folder)
            with warnings.catch_warnings():
                warnings.simplefilter("error")  # a valid input is accepted without a word
                right[door] = door.open(valid[door])
        for number in range(mutants) if only < 0 else [only]:
            door = doors[number % len(doors)]
            folder = Path(place, "mutant")
            input = valid[door]
            if isinstance(input, Path):
                template = Path(place, f"valid-{number % len(doors)}")
                shutil.copytree(template, folder)
                input = folder / input.relative_to(template)
            input, what = door.mutate(input, Draw(f"{seed} {number}"))
            yield outcome(door, input, what, number, right[door])
            shutil.rmtree(folder, ignore_errors=True)


def table(outcomes: list[Outcome]) -> str:
    """Door, tried, right, clear, bare, silent, as Markdown."""
    kinds = ("right", "clear", "bare", "silent")
    lines = [f"| door | tried | {' | '.join(kinds)} |", "|---|---|---|---|---|---|"]
    names = list(dict.fromkeys(one.door for one in outcomes))
    for name in [*names, "all"]:
        counts = Counter(one.kind for one in outcomes if name in (one.door, "all"))
        cells = (f"{number:,}" for number in (sum(counts.values()), *(counts[k] for k in kinds)))
        lines.append(f"| {name} | {' | '.join(cells)} |")
    return "\n".join(lines)


# ---------------------------------------------------------------- what can be broken in JSON

NAN, INF = float("nan"), float("inf")
BAD: dict[type, list[Any]] = {  # for a value of this type
    bool: ["true", "no", "", 2, -1, 0.5, NAN, [], [True], {}, None],
    int: [True, "12", "", 12.5, -1, -(10**9), 10**9, 10**30, 1e30, NAN, INF, [], [2], {}, None],
    float: [True, "0.1", "", -1, -0.1, 1e30, 10**30, NAN, INF, -INF, [], [0.1], {}, None],
    str: ["other", "", 5, True, 0.5, [], ["x"], {}, {"a": 1}, None],
    list: ["x", "", 5, True, {}, {"a": 1}, [5], [None], [[]], None],
    dict: ["x", 5, True, [], [1], {"a": 1}, {"0": None}, {"x": {}}, None],
    type(None): ["x", 5, True, [], {}],
}


def places(content: Any, path: tuple = ()) -> Iterator[tuple]:
    """The way to every value inside; of long lists and tables the first few."""
    items = content.items() if isinstance(content, dict) else enumerate(content)
    for key, value in [*items][:12]:
        yield (*path, key)
        if isinstance(value, dict | list):
            yield from places(value, (*path, key))


def break_value(content: Any, draw: Draw, doubled: bool = True) -> tuple[Any, str]:
    """The JSON text with one value gone, exchanged for a wrong one, or there twice."""
    path = draw.choice([*places(content)])
    owner = content
    for key in path[:-1]:
        owner = owner[key]
    how = draw.choice(["gone", *["wrong"] * 4, *["twice"] * doubled])
    if how == "gone":
        del owner[path[-1]]
    else:
        value = draw.choice(BAD[type(owner[path[-1]])])
        if how == "twice" and isinstance(owner, dict) and value != owner[path[-1]]:
            key, kept = json.dumps(path[-1]), json.dumps(owner[path[-1]])
            owner[path[-1]] = "\0"
            pair = f"{kept}, {key}: {json.dumps(value)}"
            return json.dumps(content).replace('"\\u0000"', pair), f"{path} twice: {value!r}"
        owner[path[-1]] = value
        how = repr(value)
    return json.dumps(content), f"{path} {how}"


def break_text(data: bytes, draw: Draw) -> tuple[bytes, str]:
    """A file of text as editors, disks and networks break it."""
    place = draw.randrange(len(data))
    broken = {
        "cut short": data[:place],
        "empty": b"",
        "byte order mark": b"\xef\xbb\xbf" + data,
        "two byte order marks": b"\xef\xbb\xbf" * 2 + data,
        "UTF-16": data.decode().encode("utf-16"),
        "Windows' lines": data.replace(b"\n", b"\r\n"),
        "no UTF-8": data[:place] + b"\xff\xfe" + data[place:],
        "deep": b"[" * 100_000,
        "deep objects": b'{"a":' * 100_000,
        "zeros": bytes(len(data)),
        "a web page": b"<!DOCTYPE html><html><body>404</body></html>",
        "a pointer": b"version https://git-lfs.github.com/spec/v1\noid sha256:0\nsize 9\n",
        "a list": b"[1, 2]",
        "a number": b"7",
        "null": b"null",
    }
    how = draw.choice([*broken])
    return broken[how], how


def break_file(path: Path, draw: Draw) -> str:
    """Something else where a file was."""
    kinds = ["gone", "a folder", "a link to nothing", "a link to itself", "empty"]
    how = draw.choice([*kinds, "a pipe"] if hasattr(os, "mkfifo") else kinds)
    path.unlink()
    if how == "a folder":
        path.mkdir()
    elif how.startswith("a link"):
        path.symlink_to(path if "itself" in how else path.with_name("nothing there"))
    elif how == "a pipe":
        os.mkfifo(path)
    elif how == "empty":
        path.touch()
    return how


def add_foreign(folder: Path, draw: Draw) -> str:
    """What file managers, editors and people leave behind."""
    names = [".DS_Store", "._vocab.txt", "._spm.model", "Thumbs.db", ".git", "notes", "README.md"]
    name = draw.choice(names)
    if name in (".git", "notes"):
        (folder / name).mkdir()
    else:
        (folder / name).write_bytes(draw.randbytes(40))
    return f"{name} beside"


# ---------------------------------------------------------------- what can be broken in weights


def split(data: bytes) -> tuple[dict[str, Any], bytes]:
    """Header and numbers of a safetensors file."""
    length = struct.unpack("<Q", data[:8])[0]
    return json.loads(data[8 : 8 + length]), data[8 + length :]


def packed(header: str | bytes, numbers: bytes) -> bytes:
    header = header if isinstance(header, bytes) else header.encode()
    return struct.pack("<Q", len(header)) + header + numbers


def break_header(data: bytes, draw: Draw) -> tuple[bytes, str]:
    header, numbers = split(data)
    how = draw.choice(["value", "value", "type", "text", "length", "numbers"])
    if how == "value":
        text, what = break_value(header, draw)
        return packed(text, numbers), f"header: {what}"
    if how == "type":
        name = draw.choice([name for name in header if name != "__metadata__"])
        header[name]["dtype"] = draw.choice(
            ["I32", "U32", "BOOL", "F8_E4M3", "F16", "I64", "C64", "F64", "x"]
        )
        return packed(json.dumps(header), numbers), f"{name} is called {header[name]['dtype']}"
    if how == "text":
        text, what = break_text(json.dumps(header).encode(), draw)
        return packed(text, numbers), f"header: {what}"
    if how == "length":
        length = draw.choice([0, 1, 2**31, 2**63, 2**64 - 1, len(data), draw.randrange(400)])
        return struct.pack("<Q", length) + data[8:], f"header of {length} bytes"
    end = draw.randrange(len(data))
    more = draw.choice([True, False])
    return (data + b"\0" * 9 if more else data[:end]), "longer" if more else f"cut at {end}"


TYPES = (
    *(torch.float64, torch.float16, torch.bfloat16, torch.complex64, torch.int32, torch.int8),
    *(torch.uint8, torch.bool, torch.float8_e4m3fn, torch.float8_e5m2),
)


def break_tensor(path: Path, draw: Draw) -> str:
    """One tensor, or all, gone, renamed, retyped, reshaped, no number, or there twice."""
    state = safetensors.torch.load_file(path)
    name = draw.choice(sorted(name for name, value in state.items() if value.dim()))
    value = state[name]
    how = draw.choice(
        ["gone", "renamed", "retyped", "all retyped", "reshaped", "no number", "twice", "more"]
    )
    what = f"{name} {how}"
    if how in ("gone", "renamed"):
        del state[name]
    if how == "renamed":
        state[draw.choice([f"{name}x", name.upper(), f"x.{name}", "", "é" + name])] = value
    elif how == "retyped":
        state[name] = value.to(draw.choice(TYPES))
        what += f" {state[name].dtype}"
    elif how == "all retyped":
        kind = draw.choice(TYPES)
        state = {name: value.to(kind) for name, value in state.items()}
        what += f" {kind}"
    elif how == "reshaped":
        shapes = [
            value.reshape(-1),
            value[None],
            value[:-1],
            value[:0],
            value.sum(),
            value[..., None],
        ]
        state[name] = draw.choice([shape for shape in shapes if shape.shape != value.shape])
        what += f" {tuple(state[name].shape)}"
    elif how == "no number":
        state[name] = value.clone()
        state[name].reshape(-1)[draw.randrange(value.numel())] = draw.choice([NAN, INF, -INF])
    elif how == "twice":
        prefix = draw.choice(["bert.", "roberta.", "albert.", "deberta.", "model.", "vit."])
        old = name.replace("LayerNorm.weight", "LayerNorm.gamma")
        state[old if old != name else prefix + name] = value + draw.choice([0, 1])
    elif how == "more":
        state[draw.choice(["adapter.weight", "classifier.weight", "x", "0"])] = torch.ones(2, 3)
    data = {name: value.contiguous().clone() for name, value in state.items()}
    safetensors.torch.save_file(data, path, metadata={"format": "pt"})
    return what


def break_json(path: Path, draw: Draw) -> str:
    text, what = break_value(json.loads(path.read_text(encoding="utf-8")), draw)
    path.write_text(text, encoding="utf-8")
    return f"{path.name}: {what}"
