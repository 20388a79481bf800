"""Where files are: what the course ships (`data/`), what it computes once (the cache), what the hub
has; and how to write safely."""

from __future__ import annotations

import argparse
import hashlib
import json
import os
import platform
import re
import secrets
import time
import warnings
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import contextmanager, suppress
from difflib import get_close_matches
from functools import cache
from pathlib import Path
from typing import Any
from urllib.parse import quote

MANIFEST = "MANIFEST.sha256"
PATIENCE = 3.0  # seconds to wait for a sign of life from the network
PACKAGE = Path(__file__).resolve().parent


class DamagedDataError(ValueError):
    """A shipped file is not the one the manifest was written for."""


def data_root() -> Path:
    """The folder of shipped data: `data/` of a checkout, else `course_lib/_data` of an installed
    wheel."""
    for root in (PACKAGE.parent / "data", PACKAGE / "_data"):
        if (root / MANIFEST).is_file():
            return root
    raise FileNotFoundError(
        f"Looked for the course's data in {PACKAGE.parent / 'data'} and {PACKAGE / '_data'}; "
        f"expected one of them to hold {MANIFEST}. Reinstall the package, or clone the course "
        "again."
    )


def data_path(*parts: str) -> Path:
    """The path of a shipped file, checked once against the manifest.

    Raises FileNotFoundError when there is no such file, DamagedDataError when its bytes have
    changed."""
    name = "/".join(parts)
    path = data_root() / name
    if not path.exists():
        raise FileNotFoundError(
            f"Asked for data/{name}; there is no such file under {data_root()}. "
            "Check the name, or update the course: `git pull`, or reinstall the package."
        )
    if path.is_file():
        _check(name, path, path.stat().st_mtime_ns, path.stat().st_size)
    return path


@cache
def _check(name: str, path: Path, _changed: int, _size: int) -> None:
    """Compare a file with the manifest; the time and size are here only to key the memory of
    checks."""
    expected = read_manifest(data_root()).get(name)
    if expected is None:
        raise DamagedDataError(
            f"data/{name} is not listed in data/{MANIFEST}; expected every shipped file to be. "
            "If you added it, run `python -m course_lib.files --write-manifest`."
        )
    result = sha256_of(path)
    if result != expected:
        raise DamagedDataError(
            f"data/{name} has SHA-256 {result[:12]}…; the manifest expects {expected[:12]}…. "
            "It was cut short or edited. Restore it with `git checkout data` (or reinstall); "
            "if the edit is yours, run `python -m course_lib.files --write-manifest`."
        )


def read_manifest(root: Path) -> dict[str, str]:
    """{file name relative to `root`: SHA-256}, from the manifest (the format of `sha256sum`)."""
    entries = {}
    for line in (root / MANIFEST).read_text(encoding="utf-8").splitlines():
        digest, _, name = line.partition("  ")
        if len(digest) != 64 or not name:
            raise DamagedDataError(
                f"data/{MANIFEST} has the line {line[:40]!r}; expected a SHA-256, two spaces and a "
                "file name in each. Restore it with `git checkout data`, or write it anew with "
                "`python -m course_lib.files --write-manifest`."
            )
        entries[name] = digest
    return entries


def write_manifest(root: Path) -> dict[str, str]:
    """Hash every file under `root` and write the manifest; returns what was written."""
    files = sorted(
        (f for f in root.rglob("*") if f.is_file() and f.name != MANIFEST and ".tmp" not in f.name),
        key=lambda f: f.relative_to(root).as_posix(),
    )
    entries = {
        f.relative_to(root).as_posix(): sha256_of(f)
        for f in files
        if f.suffix not in {".pyc"} and "__pycache__" not in f.parts
    }
    text = "".join(f"{digest}  {name}\n" for name, digest in entries.items())
    write_atomic(root / MANIFEST, text)
    return entries


class Stored(dict[str, Any]):
    """An object of a results file: a KeyError for what it lacks names the file."""

    source = ""

    def __missing__(self, key: object) -> Any:
        there = ", ".join(map(str, [*self][:9])) or "nothing"
        raise KeyError(f"{self.source} lacks {key!r} where it has {there}. Restore or remake it.")


def read_result(name: str) -> dict[str, Any]:
    """A results file of the course, by its name without ending; checked against the manifest.

    Raises DamagedDataError, with the file's name, for one that is no JSON object, and for numbers
    that JSON does not have."""
    path, source = data_path("results", f"{name}.json"), f"data/results/{name}.json"

    def stored(pairs: list[tuple[str, Any]]) -> Stored:
        result = Stored(_once(pairs))
        result.source = source
        return result

    def refuse(constant: str) -> None:
        raise ValueError(f"it holds {constant}, which is no number of JSON")

    try:
        return json_object(path.read_bytes(), source, object_pairs_hook=stored,
                           parse_constant=refuse)  # fmt: skip
    except ValueError as error:
        raise DamagedDataError(
            f"{source} could not be read: {error.__cause__ or error}; expected one JSON object. "
            "Restore it with `git checkout data`, or make it again."
        ) from error


def json_object(text: str | bytes, source: Path | str, **how: Any) -> dict[str, Any]:
    """The JSON object in a text, which may begin with a byte order mark; how: of json.loads. Raises
    ValueError, with the source's name, for another text, and for a key with two values."""
    try:
        content = json.loads(text, **{"object_pairs_hook": _once, **how})
    except (ValueError, RecursionError) as error:
        raise ValueError(f"{source} is no JSON: expected an object, whole ({error}).") from error
    if not isinstance(content, dict):
        raise ValueError(f"{source} holds a {type(content).__name__}: expected a JSON object.")
    return content


def _once(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    content = dict(pairs)
    for key, value in pairs if len(content) < len(pairs) else ():
        if content[key] != value:
            raise ValueError(f"{key!r} stands there twice, with two values")
    return content


def cache_dir(*parts: str) -> Path:
    """A folder for what can be computed again; made if absent. `COURSE_LIB_CACHE` moves it."""
    home = os.environ.get("COURSE_LIB_CACHE") or Path.home() / ".cache" / "course_lib"
    folder = Path(home, *parts)
    folder.mkdir(parents=True, exist_ok=True)
    return folder


def write_atomic(path: str | Path, content: bytes | str) -> Path:
    """Write a file so that a reader sees the old one or the whole new one, never a part.

    The bytes go to a temporary name beside the target, reach the disk, and are then renamed. On
    Windows that is refused while another program, such as a virus scanner, has the file open: it is
    asked a few times more. Raises OSError, with the file's name, where it cannot be written.
    """
    return write_together({path: content})


def write_together(contents: Mapping[Any, bytes | str]) -> Path:
    """Write files that belong together as `write_atomic` does: where one has no room, all stay as
    they were. Returns the last, without which the others must mean nothing: it is gone while the
    new ones take their places, and stays gone if one of them cannot."""
    contents = {place_for(path): content for path, content in contents.items()}
    mark = f"tmp{os.getpid()}-{secrets.token_hex(4)}"
    partial = {path: path.with_name(f"{path.name}.{mark}") for path in contents}
    try:
        for path, content in contents.items():
            with naming(path), open(partial[path], "xb") as file:
                file.write(content.encode("utf-8") if isinstance(content, str) else content)
                file.flush()
                os.fsync(file.fileno())
        last = path
        if len(contents) > 1:
            with naming(last):
                _insist(last.unlink, True)
        for path in contents:
            with naming(path):
                _insist(os.replace, partial[path], path)
    finally:
        for unfinished in partial.values():
            unfinished.unlink(missing_ok=True)
    return last


@contextmanager
def naming(path: Path) -> Iterator[None]:
    """An OSError has this file's name: a full disk's has none, another's that of a partial file."""
    try:
        yield
    except OSError as error:
        if error.errno is None:
            raise
        raise OSError(error.errno, error.strerror, str(path)) from error


def place_for(path: str | Path) -> Path:
    """The path of a file to be written, its folder made. Raises NotADirectoryError where a file
    stands in place of a folder, IsADirectoryError where a folder does in place of the file."""
    path = as_path(path)
    if file := next((part for part in path.parents if part.is_file()), None):
        raise NotADirectoryError(f"{file} is a file; expected a folder, for {path.name}.")
    if path.is_dir():
        raise IsADirectoryError(f"{path} is a folder; expected the name of a file to write.")
    path.parent.mkdir(parents=True, exist_ok=True)
    return path


@contextmanager
def lock_file(path: str | Path) -> Iterator[Callable[[], None]]:
    """While this is open, no other process or thread that asks may write `path`. What kills the
    process frees it. Beside the file lie NAME.lock, which stays, and NAME.holder, who writes.

    Gives a function that raises FileNotFoundError where that folder was deleted or moved
    meanwhile. Raises ValueError, with the other's process and time, where `path` is being
    written."""
    from filelock import FileLock, Timeout

    path = Path(path).absolute()
    lock, holder = FileLock(f"{path}.lock", is_singleton=True), Path(f"{path}.holder")
    within = lock.is_locked  # by this thread, which may ask again
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        lock.acquire(blocking=False)
    except Timeout:
        since = holder.read_text(encoding="utf-8") if holder.is_file() else "another process"
        raise ValueError(
            f"{path} is being written by {since}; expected one run at a time. Wait until it has "
            "ended, or write somewhere else."
        ) from None
    except (OSError, NotImplementedError) as error:  # some network drives
        warnings.warn(
            f"{path} cannot be locked ({error}): take care that no second run writes there.",
            stacklevel=3,
        )
    me = f"process {os.getpid()} on {platform.node()}, since {time.strftime('%Y-%m-%d %H:%M:%S')}"
    me = holder.read_text(encoding="utf-8") if within else me

    def check() -> None:
        if not holder.is_file() or holder.read_text(encoding="utf-8") != me:
            raise FileNotFoundError(
                f"{path.parent} was deleted or moved while {path.name} was being written; expected "
                "it to stay until the end. Nothing more is written there."
            )

    try:
        if not within:
            write_atomic(holder, me)
        yield check
    finally:
        with suppress(FileNotFoundError):
            check()
            if not within:
                holder.unlink()
        lock.release()


def _insist(action: Callable[..., Any], *arguments: Any) -> None:
    for pause in (0.05, 0.2, 0.8):
        try:
            return action(*arguments)  # type: ignore[no-any-return]
        except PermissionError:
            if os.name != "nt":
                raise
            time.sleep(pause)
    action(*arguments)


@contextmanager
def one_error(
    path: Path, kind: type[ValueError], absent: type[FileNotFoundError] = FileNotFoundError
) -> Iterator[None]:
    """Whatever goes wrong while `path` is read is raised as `kind`, with the name of a file in it.

    An error of `kind` that names one, and `absent`, are raised as they are."""
    try:
        yield
    except absent:
        raise
    except Exception as error:  # also what libraries raise of which nobody thought
        folder, text = str(path.parent), str(error)
        named = path.name in text or (folder != "." and folder in text)
        if isinstance(error, kind) and named:
            raise
        plain = isinstance(error, kind | OSError | DamagedDataError) or type(error) is ValueError
        what = text if plain else f"cannot be read ({type(error).__name__}: {text:.200})"
        raise kind(what if named and plain else f"{path}: {what}") from error


def no_file(path: Path) -> str | None:
    """What stands at `path` instead of a file, in words; None for a file, and for nothing."""
    if path.is_file() or not os.path.lexists(path):
        return None
    kind = "a folder" if path.is_dir() else "a link to nothing" if path.is_symlink() else "no file"
    return f"{path} is {kind}; expected a file."


def as_path(value: object, call: str = "") -> Path:
    """A path, of a text or of one. Raises TypeError for anything else, with the call as it is meant
    where that is known."""
    if not isinstance(value, str | os.PathLike) or not str(value).strip():
        what = f"an empty path ({value!r})" if value == "" else f"a {type(value).__name__}"
        raise TypeError(f"{what} was given; expected the path of a file or folder there.{call}")
    return Path(value)


def read_text(path: str | Path, expected: str = "text") -> str:
    """The text of a file in UTF-8, with or without its mark at the beginning. Raises ValueError for
    a folder, a packed file and one in another encoding, and FileNotFoundError, with what lies
    there, for nothing."""
    path = as_path(path)
    if obstacle := no_file(path):
        raise ValueError(obstacle)
    if not path.is_file():
        raise FileNotFoundError(f"no file at {path}: expected {expected}.{nearby(path)}")
    raw = path.read_bytes()
    if raw[:4] == b"PK\x03\x04" or raw[:2] == b"\x1f\x8b":
        packed = "packed (zip, xlsx or gzip): unpack it, or save a workbook as CSV"
        raise ValueError(f"{path} is {packed}; expected {expected}.")
    try:
        return raw.decode("utf-8-sig")
    except UnicodeDecodeError as error:
        line = raw[: error.start].count(b"\n") + 1
        raise ValueError(
            f"{path}, line {line}: this is no text in UTF-8 (byte {error.start}); expected "
            f"{expected}. Save the file in that encoding."
        ) from error


def nearby(path: Path) -> str:
    """Of a path that leads to nothing, in words: what is spelt like it, and what lies there."""
    folder = path.parent
    if not folder.is_dir():
        return f" There is no folder {folder}.{nearby(folder) if folder != path else ''}"
    names = listing(folder)
    more = " and others" * (len(names) > 6)
    return (f"{did_you_mean(path.name, names)} {folder.resolve()} holds "
            f"{', '.join(names[:6]) or 'nothing'}{more}.")  # fmt: skip


def listing(folder: Path) -> list[str]:
    """The names in a folder, sorted, without hidden ones; none where it may not be read."""
    try:
        return sorted(name for name in os.listdir(folder) if not name.startswith("."))
    except OSError:
        return []


def did_you_mean(name: object, choices: Iterable[str], cutoff: float = 0.6) -> str:
    """A question, where one of the choices is spelt much like a name; else nothing."""
    by_small = {str(choice).casefold(): choice for choice in choices}
    near = [by_small[one] for one in get_close_matches(str(name).casefold(), by_small, 1, cutoff)]
    return f" Did you mean {near[0]!r}?" if near and near[0] != name else ""


def sha256_of(path: str | Path) -> str:
    """The SHA-256 of a file, as 64 hex digits."""
    with open(path, "rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()


# ---------------------------------------------------------------- files of the hub


class HubError(LookupError):
    """A file of the hub that cannot be had now: its text says why, `advice` what to do."""

    def __init__(self, reason: str, advice: str = "try again later") -> None:
        super().__init__(reason)
        self.advice = advice


def hub_file(
    repository: str,
    name: str,
    *,
    revision: str = "main",
    repo_type: str = "model",
    newest: bool = False,
) -> Path | None:
    """A file out of the cache of the hub's client, else from the network; None where the
    repository does not have it.

    revision: a branch, a tag or a commit; repo_type: "model" or "dataset"; newest: ask the network
    even where the cache has one. A private repository is read with the token that the client
    finds. Raises HubError where the file cannot be had; then nothing of it lies in the cache."""
    try:
        from huggingface_hub import constants, hf_hub_download, try_to_load_from_cache
        from huggingface_hub import get_hf_file_metadata as ask
        from huggingface_hub.errors import EntryNotFoundError
    except ImportError:
        raise HubError("huggingface_hub is not installed", "install it") from None
    cached = try_to_load_from_cache(repository, name, revision=revision, repo_type=repo_type)
    if cached is not None and not newest:  # a path, or a mark that there is no such file
        return Path(cached) if isinstance(cached, str) else None
    wish = os.environ.get("HF_HUB_OFFLINE") or os.environ.get("TRANSFORMERS_OFFLINE") or ""
    if constants.HF_HUB_OFFLINE or wish.upper() in ("1", "ON", "YES", "TRUE"):
        raise HubError("switched off by HF_HUB_OFFLINE", "run once with a network")
    page = f"{constants.ENDPOINT}/{'datasets/' * (repo_type == 'dataset')}{repository}"
    try:
        # First a question of our own: hf_hub_download tries for half a minute.
        with suppress(EntryNotFoundError):
            ask(f"{page}/resolve/{quote(revision, safe='')}/{name}", timeout=PATIENCE)
        return Path(hf_hub_download(repository, name, revision=revision, repo_type=repo_type))
    except Exception as error:  # of whichever library the client speaks HTTP with
        neither = type(error).__name__ == "LocalEntryNotFoundError"  # here nor there: why not there
        _raise_unless_absent(error.__cause__ or error if neither else error, name)
        return None


_ANSWERS = (  # a part of what the client raised and of the status; what it means; what to do
    ("GatedRepo", "it is open only to those who accepted the conditions",
     "accept them on its page and set HF_TOKEN"),
    ("401", "no such public repository, or a token that is not accepted",
     "check the name, and the token in HF_TOKEN"),
    ("403", "access is forbidden, by the hub or by a proxy", "check the token in HF_TOKEN"),
    ("404", "no such repository or revision", "check the name"),
    ("429", "too many requests", "wait some minutes and try again"),
    ("408", "the request took too long", "try again later"),
    (" 5", "it is busy or out of order", "try again later"),
    (" 4", "it does not take this request", "try again later"),
    ("Timeout", "no answer for {} in time", "try again later"),
    ("Connect", "no answer", "run once with a network"),
    ("Protocol|Read|Write|Close", "the connection broke off at {}", "try again later"),
)  # fmt: skip


def _raise_unless_absent(error: BaseException, name: str) -> None:
    """Return where the hub says that a repository has no such file; else raise HubError: why."""
    status = getattr(getattr(error, "response", None), "status_code", "")
    what = f"{type(error).__name__} {status}"
    if status == 404 and not re.match("Repository|Revision", what):
        return
    for part, meaning, advice in _ANSWERS:
        if re.search(part, what) and "CERTIFICATE" not in str(error):
            prefix = f"the hub answered {status} for {{}}: " if status else ""
            raise HubError((prefix + meaning).format(name), advice) from error
    first = str(error).partition("\n")[0]
    raise HubError(f"{name} could not be fetched, {what.strip()}: {first}") from error


def main() -> None:
    parser = argparse.ArgumentParser(description="The manifest of the course's data.")
    parser.add_argument("--write-manifest", action="store_true", help="hash data/ anew")
    if parser.parse_args().write_manifest:
        root = PACKAGE.parent / "data"
        print(f"{len(write_manifest(root))} files listed in {root / MANIFEST}")
    else:
        for name in read_manifest(data_root()):
            data_path(name)
        print("every file of data/ is as the manifest says")


if __name__ == "__main__":
    main()
