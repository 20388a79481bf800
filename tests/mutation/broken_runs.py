"""Doors of the pre-training command: recipes, the folder of a run, a reader's own text, results."""

from __future__ import annotations

import io
import json
import tomllib
from contextlib import redirect_stdout
from pathlib import Path
from typing import Any

from breaking import (
    Door,
    Draw,
    add_foreign,
    break_file,
    break_header,
    break_json,
    break_tensor,
    break_text,
    break_value,
)

from course_lib.text.folder import read_folder
from course_lib.train.pretrain import LOG, RECIPE_FILE, RUN, pretrain
from course_lib.train.pretrain_recipe import (
    ModelPart,
    ObjectivePart,
    PretrainRecipe,
    ReportsPart,
    TextPart,
    TrainingPart,
    read_recipe,
)

SMALL = PretrainRecipe(
    "small", "",
    ModelPart("bert", "tiny", {"hidden_size": 8, "num_layers": 1, "intermediate_size": 8}),
    ObjectivePart(), TextPart("world", 30, length=16, heldout=4),
    TrainingPart(steps=2, batch_size=4), ReportsPart(1, 2, 1),
)  # fmt: skip

# ---------------------------------------------------------------- recipes


def write_recipe(folder: Path) -> Path:
    said = {name: value for name, value in SMALL.as_dict().items() if not isinstance(value, dict)}
    lines = [f"{name} = {in_toml(value)}" for name, value in said.items()]
    for name, part in SMALL.as_dict().items():
        if isinstance(part, dict):
            lines += [f"[{name}]", *(f"{key} = {in_toml(value)}" for key, value in part.items())]
    (folder / "recipe.toml").write_text("".join(f"{line}\n" for line in lines), encoding="utf-8")
    return folder / "recipe.toml"


def in_toml(value: Any) -> str:
    """JSON's words are TOML's but for tables within a line, and for nothing, which it has not."""
    if isinstance(value, dict):
        return "{" + ", ".join(f"{key} = {in_toml(x)}" for key, x in value.items()) + "}"
    if isinstance(value, (list, tuple)):
        return "[" + ", ".join(map(in_toml, value)) + "]"
    text = json.dumps("none" if value is None else value)
    return {"NaN": "nan", "Infinity": "inf", "-Infinity": "-inf"}.get(text, text)


def mutate_recipe(path: Path, draw: Draw) -> tuple[Path, str]:
    how = draw.choice(["value", "value", "value", "value", "text", "file"])
    if how == "file":
        return path, break_file(path, draw)
    if how == "text":
        data, what = break_text(path.read_bytes(), draw)
        path.write_bytes(data)
        return path, what
    content = tomllib.loads(path.read_text(encoding="utf-8"))
    text, what = break_value(content, draw, doubled=False)
    broken = json.loads(text)
    lines = [f"{n} = {in_toml(v)}" for n, v in broken.items() if not isinstance(v, dict)]
    for name, part in broken.items():
        if isinstance(part, dict):
            lines += [f"[{name}]", *(f"{key} = {in_toml(value)}" for key, value in part.items())]
    path.write_text("".join(f"{line}\n" for line in lines), encoding="utf-8")
    return path, what


def as_written(one: PretrainRecipe, other: PretrainRecipe, path: Path) -> bool:
    """Whether a recipe is what its file says, defaults for what it does not say."""
    try:
        said = tomllib.loads(path.read_text(encoding="utf-8-sig"))
    except ValueError:
        return False
    whole = other.as_dict()
    for name, value in said.items():
        parts = value.items() if isinstance(value, dict) else [(None, value)]
        for key, asked in parts:
            read = whole[name] if key is None else whole[name][key]
            if isinstance(read, float) and isinstance(asked, int):
                asked = float(asked)
            same = [*read] == [*asked] if isinstance(read, tuple) else read == asked
            if not same and not (asked in ("none", "off", 0) and not read):
                return False
    return True


# ---------------------------------------------------------------- the folder of a run


def write_run(folder: Path) -> Path:
    with redirect_stdout(io.StringIO()):
        pretrain(SMALL, folder / "run")
    return folder / "run"


def mutate_run(folder: Path, draw: Draw) -> tuple[Path, str]:
    name = draw.choice(
        [RUN, RUN, LOG, LOG, RECIPE_FILE, RECIPE_FILE, "results.json", "model/config.json"]
    )
    path = folder / name
    how = draw.choice(["content", "content", "content", "text", "file", "beside"])
    if how == "beside":
        return folder, add_foreign(folder, draw)
    if how == "file":
        return folder, f"{name}: {break_file(path, draw)}"
    if how == "text" and name != RUN:
        data, what = break_text(path.read_bytes(), draw)
    elif name == RUN:
        if draw.random() < 0.3:
            return folder, break_tensor(path, draw)
        data, what = path.read_bytes(), ""
        if draw.random() < 0.5:
            data, what = break_header(data, draw)
        else:
            place = draw.randrange(8, len(data))
            data = data[:place] + bytes([data[place] ^ 1 << draw.randrange(8)]) + data[place + 1 :]
            what = f"a bit of byte {place}"
    elif name == LOG:
        lines = path.read_bytes().splitlines(keepends=True)
        place = draw.randrange(len(lines))
        how = draw.choice(["gone", "twice", "half", "other", "last gone"])
        if how == "other":
            lines[place] = lines[place].replace(b"0", b"1")
        else:
            put = {"gone": [], "twice": [lines[place]] * 2, "half": [lines[place][:9]]}.get(how, [])
            lines[place : None if how == "last gone" else place + 1] = put
        data, what = b"".join(lines), f"line {place} {how}"
    else:
        return folder, break_json(path, draw)
    path.write_bytes(data)
    return folder, f"{name}: {what}"


def go_on(folder: Path) -> tuple[dict[str, Any], str]:
    """The results of a run that is gone on with, without speeds, and what was said meanwhile."""
    said = io.StringIO()
    with redirect_stdout(said):
        results = pretrain(SMALL, folder)
    for line in results["curve"]:
        line.pop("tokens_per_second", None)
    words = [line for line in said.getvalue().splitlines() if "had been" in line or "begun" in line]
    return results, " ".join(words)


# ---------------------------------------------------------------- a reader's own text

PARAGRAPHS = "The cat sat.\n\nThe dog, however, did not.\n\nBoth slept.\n"


def write_text(folder: Path) -> Path:
    (folder / "text" / "more").mkdir(parents=True)
    (folder / "text" / "a.txt").write_text(PARAGRAPHS, encoding="utf-8")
    (folder / "text" / "more" / "b.txt").write_text(PARAGRAPHS.upper(), encoding="utf-8")
    return folder / "text"


def mutate_text(folder: Path, draw: Draw) -> tuple[Path, str]:
    name = draw.choice(["a.txt", "more/b.txt"])
    how = draw.choice(["text", "text", "file", "beside"])
    if how == "beside":
        return folder, add_foreign(folder, draw)
    if how == "file":
        return folder, f"{name}: {break_file(folder / name, draw)}"
    data, what = break_text((folder / name).read_bytes(), draw)
    (folder / name).write_bytes(data)
    return folder, f"{name}: {what}"


def same_text(one: Any, other: Any, folder: Path) -> bool:
    """The paragraphs of the files as they are: any text is a valid one."""
    files = sorted(file for file in folder.rglob("*.txt") if file.is_file())
    texts = [file.read_bytes().decode("utf-8-sig", "replace") for file in files]
    there = " ".join(" ".join(texts).split())
    read = " ".join(p for document in other[0] for p in document)
    return one[0] == other[0] or (bool(read) and there == read)


RUNS = [
    Door("read_recipe", write_recipe, mutate_recipe, read_recipe, (ValueError, FileNotFoundError),
         as_written),
    Door("pretrain, a run gone on with", write_run, mutate_run, go_on, (ValueError, OSError),
         lambda one, other, path: one[0] == other[0], lambda result: result[1],
         named=lambda text, path: any(n in text for n in (str(path), RUN, LOG, RECIPE_FILE))),
    Door("read_folder", write_text, mutate_text, read_folder, (ValueError, OSError),
         same_text, lambda result: " ".join(result[1]),
         named=lambda text, path: any(n in text for n in (path.name, "a.txt", "b.txt"))),
]  # fmt: skip
