"""What can be wrong with a checkpoint that others made, value by value; tests/mutation.py draws."""

from __future__ import annotations

import json
import warnings
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
import safetensors.torch
import torch
from breaking import INF, packed, split
from broken_checkpoints import (
    BYTES,
    PIECES,
    TINY,
    classifier,
    same_model,
    write_elmo,
    write_member,
)

from course_lib import files
from course_lib.checkpoints import (
    CheckpointError,
    MissingCheckpoint,
    convert,
    load,
    load_pretrained,
    pretrained,
    save,
)
from course_lib.checkpoints.elmo import load_elmo
from course_lib.config import BertConfig
from course_lib.encoder import Encoder
from course_lib.text.byte_bpe import ByteBPE

Change = Callable[[Path], Any]


@pytest.fixture
def bert(tmp_path: Path) -> Path:
    """A BERT's folder, in a folder of its own."""
    (tmp_path / "bert").mkdir()
    return write_member("bert", False, tmp_path / "bert")


@pytest.fixture
def lines(tmp_path: Path) -> Path:
    """The same with vocab.txt alone."""
    (tmp_path / "lines").mkdir()
    return write_member("bert", True, tmp_path / "lines")


def settings(folder: Path, **changes: Any) -> None:
    file = folder / "config.json"
    file.write_text(json.dumps(json.loads(file.read_text(encoding="utf-8")) | changes))


def weights(folder: Path, change: Callable[[dict[str, torch.Tensor]], Any]) -> None:
    file = folder / "model.safetensors"
    state = safetensors.torch.load_file(file)
    change(state)
    safetensors.torch.save_file(state, file)


def quiet(folder: Path) -> Any:
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        return load_pretrained(folder)


# ---------------------------------------------------------------- what is read


@pytest.mark.parametrize(
    ("member", "file"),
    [
        *(("bert", name) for name in ("config.json", "tokenizer.json", "tokenizer_config.json")),
        ("lines", "vocab.txt"),
        ("lines", "tokenizer_config.json"),
        ("roberta", "vocab.json"),
        ("roberta", "merges.txt"),
    ],
)
def test_a_byte_order_mark_is_read(tmp_path: Path, member: str, file: str):
    name = "roberta" if member == "roberta" else "bert"
    folder = write_member(name, member != "bert", tmp_path)
    (folder / file).write_bytes(b"\xef\xbb\xbf" + (folder / file).read_bytes())
    expected = BYTES if name == "roberta" else PIECES
    assert quiet(folder).tokenizer.encode("the cat") == expected.encode("the cat")


@pytest.mark.parametrize("name", [".DS_Store", "._spm.model", "._vocab.txt", "Thumbs.db", "notes/"])
def test_what_lies_beside_is_no_fault(bert: Path, name: str):
    if name.endswith("/"):
        (bert / name).mkdir()
    else:
        (bert / name).write_bytes(b"\0\1\2")
    assert quiet(bert).tokenizer is not None


def test_what_lies_beside_a_checkpoint_of_the_course(tmp_path: Path, monkeypatch: Any):
    """Foreign files are left alone; those that would be read must be the course's own."""
    folder = tmp_path / "checkpoints" / "course-bert"
    folder.mkdir(parents=True)
    write_member("bert", False, folder)
    for module in (files, pretrained):
        monkeypatch.setattr(module, "data_root", lambda: tmp_path)
    files.write_manifest(tmp_path)
    (folder / ".DS_Store").write_bytes(b"\0")
    (folder / "notes").mkdir()
    assert quiet("course-bert").source == "course"  # type: ignore[arg-type]
    (folder / "added_tokens.json").write_text("{}")
    with pytest.raises(CheckpointError, match=r"added_tokens\.json is not listed"):
        load_pretrained("course-bert")
    (folder / "added_tokens.json").unlink()
    (folder / "config.json").unlink()
    with pytest.raises(CheckpointError, match=r"config\.json; there is no such file"):
        load_pretrained("course-bert")


FLOATS = [torch.float16, torch.bfloat16, torch.float64]
NAME = "encoder.layer.1.output.dense.weight"


@pytest.mark.parametrize("dtype", FLOATS, ids=str)
def test_number_formats_beside_float32_become_it(bert: Path, dtype: torch.dtype):
    before = load_pretrained(bert)
    weights(bert, lambda state: state.update({NAME: state[NAME].to(dtype)}))
    found = load_pretrained(bert)
    assert {value.dtype for value in found.model.state_dict().values()} == {torch.float32}
    assert same_model(found.model, before.model)


def test_float64_alone_stays(bert: Path):
    weights(bert, lambda state: state.update({n: v.double() for n, v in state.items()}))
    assert {v.dtype for v in load_pretrained(bert).model.state_dict().values()} == {torch.float64}


# ---------------------------------------------------------------- what is refused

REFUSED: list[tuple[Change, str]] = [
    *(
        (
            lambda f, dtype=dtype: weights(f, lambda s: s.update({NAME: s[NAME].to(dtype)})),
            rf"model\.safetensors holds {NAME} as {str(dtype)[6:]}",
        )
        for dtype in (torch.int32, torch.int8, torch.bool, torch.complex64, torch.float8_e4m3fn)
    ),
    *(
        (
            lambda f, value=value: weights(f, lambda s: s[NAME][1, 2].fill_(value)),
            rf"model\.safetensors holds nan or infinity in {NAME}",
        )
        for value in (float("nan"), float("inf"), float("-inf"))
    ),
    *(
        (
            lambda f, again=again: weights(f, lambda s: s.update({again[0]: s[again[1]] + 1})),
            r"model\.safetensors: .* appears twice, in two spellings",
        )
        for again in (
            (f"bert.{NAME}", NAME),
            ("embeddings.LayerNorm.gamma", "embeddings.LayerNorm.weight"),
            ("bert.embeddings.LayerNorm.beta", "embeddings.LayerNorm.bias"),
        )
    ),
    *(
        (lambda f, s=s: settings(f, **s), rf"config\.json.*{next(iter(s))}")
        for s in (
            {"num_hidden_layers": True},
            {"num_hidden_layers": "2"},
            {"num_hidden_layers": 2.0},
            {"hidden_size": "10"},
            {"pad_token_id": False},
            {"vocab_size": 40.0},
            {"layer_norm_eps": -1},
            {"layer_norm_eps": float("nan")},
            {"layer_norm_eps": float("inf")},
            {"layer_norm_eps": 1e3},
            {"layer_norm_eps": True},
            {"initializer_range": float("nan")},
            {"initializer_range": -0.1},
            {"initializer_range": 1e9},
            {"is_decoder": 0},
            {"architectures": "BertForPreTraining"},
            {"architectures": [1]},
        )
    ),
    (lambda f: settings(f, hidden_dropout_prob=1.5), r"config\.json: hidden_dropout=1\.5"),
    (lambda f: (f / "config.json").write_text("[" * 10**5), r"config\.json is no JSON|no settings"),
    (lambda f: (f / "config.json").write_text('{"a": 1, "a": 2}'), r"config\.json .*twice"),
    (lambda f: (f / "config.json").write_bytes(b'{"a": "\xff"}'), r"config\.json is no JSON"),
]


@pytest.mark.parametrize(("change", "says"), REFUSED, ids=[says for _, says in REFUSED])
def test_what_is_refused(bert: Path, change: Change, says: str):
    change(bert)
    with pytest.raises(CheckpointError, match=says):
        load_pretrained(bert)


@pytest.mark.parametrize(
    ("member", "changes"),
    [
        ("bert", {"num_hidden_layers": 16_000}),
        ("bert", {"num_hidden_layers": 9_000}),
        ("bert", {"hidden_size": 10**6, "num_attention_heads": 5}),
        ("bert", {"vocab_size": 10**9}),
        ("bert", {"intermediate_size": 10**12}),
        ("albert", {"num_hidden_layers": 8_000, "num_hidden_groups": 8_000}),
        ("albert", {"num_hidden_layers": 10**9}),
        ("albert", {"embedding_size": 10**9}),
        ("distilbert", {"n_layers": 10**6}),
        ("modernbert", {"num_hidden_layers": 10**9, "layer_types": ["full_attention"]}),
        ("vit", {"num_hidden_layers": 5_000}),
        ("bert classes", {"id2label": None, "num_labels": 10**9}),
    ],
)
def test_too_large_for_its_file(tmp_path: Path, member: str, changes: Any, monkeypatch: Any):
    """Said before a model is made: thousands of blocks take their time even without memory."""
    folder = write_member(member, False, tmp_path)
    settings(folder, **changes)
    monkeypatch.setattr(convert, "hollow", lambda *_, **__: pytest.fail("a model was made"))
    with pytest.raises(CheckpointError, match=str(tmp_path)):
        load_pretrained(folder)


def test_one_block_for_many_layers(tmp_path: Path):
    """An ALBERT's file has fewer tensors than the model has layers."""
    folder = write_member("albert", False, tmp_path)
    settings(folder, num_hidden_layers=60)
    assert load_pretrained(folder).encoder.config.num_layers == 60


def other_than_file(path: Path, how: str) -> None:
    path.unlink()
    if how == "folder":
        path.mkdir()
    else:
        path.symlink_to(path.with_name("nothing"))


@pytest.mark.parametrize("how", ["folder", "link"])
@pytest.mark.parametrize(
    "file", ["config.json", "model.safetensors", "vocab.txt", "tokenizer_config.json"]
)
def test_what_is_no_file(lines: Path, file: str, how: str):
    """Neither counts as absent."""
    try:
        other_than_file(lines / file, how)
    except OSError:  # Windows asks for a right to make links
        pytest.skip("no links here")
    if file in ("config.json", "model.safetensors"):
        kind = "a folder" if how == "folder" else "a link to nothing"
        with pytest.raises(CheckpointError, match=f"{file} is {kind}; expected a file"):
            load_pretrained(lines)
    else:
        with pytest.warns(UserWarning, match=file):
            found = load_pretrained(lines)
        assert found.tokenizer is None and file in found.tokenizer_error


@pytest.mark.parametrize("name", ["", " ", None, 5, b"bert", ["bert"]])
def test_what_names_no_checkpoint(name: Any):
    with pytest.raises(CheckpointError, match="expected the name or path"):
        load_pretrained(name)


def test_what_nobody_thought_of_names_the_file(bert: Path, monkeypatch: Any):
    for error in (PermissionError(13, "no"), MemoryError("no"), KeyError("no"), StopIteration()):

        def fails(*_: Any, error: Exception = error) -> None:
            raise error

        monkeypatch.setattr(pretrained, "read_weights", fails)
        with pytest.raises(CheckpointError, match=r"model\.safetensors"):
            load_pretrained(bert)


# ---------------------------------------------------------------- vocabulary and model


@pytest.mark.parametrize(
    ("change", "says", "read"),
    [
        (lambda vocab: vocab[:-1], "has 37 tokens, the model 38 rows", True),
        (lambda vocab: vocab[:6], "has 6 tokens, the model 38 rows", True),
        (lambda vocab: [*vocab[:9], *vocab[10:]], "has 37 tokens, the model 38 rows", True),
        (lambda vocab: [*vocab, "more"], "39 tokens was given with a model of 38 rows", False),
        (lambda vocab: ["", *vocab], "39 tokens was given with a model of 38 rows", False),
        (lambda vocab: [*vocab[:9], "", *vocab[10:]], "line 10 of .* is blank", True),
        (lambda vocab: [vocab[1], vocab[0], *vocab[2:]], r"\[PAD\] has the id 1", False),
    ],
)
def test_the_vocabulary_is_the_models(lines: Path, change: Any, says: str, read: bool):
    assert len(PIECES) == 38
    text = "".join(f"{token}\n" for token in change(PIECES.vocab))
    (lines / "vocab.txt").write_text(text, encoding="utf-8")
    with pytest.warns(UserWarning, match=says):
        found = load_pretrained(lines)
    assert (found.tokenizer is not None) == read == (found.tokenizer_error is None)


def test_an_unsaid_padding_is_no_contradiction(lines: Path):
    """But a RoBERTa counts positions by it."""
    settings(lines, pad_token_id=None)
    swapped = [PIECES.vocab[1], PIECES.vocab[0], *PIECES.vocab[2:]]
    (lines / "vocab.txt").write_text("".join(f"{token}\n" for token in swapped))
    assert quiet(lines).tokenizer.special.pad == 1


def test_padded_tables_of_released_debertas_are_no_news(monkeypatch: Any, lines: Path):
    monkeypatch.setattr(pretrained, "PADDED", {(37, 38)})
    (lines / "vocab.txt").write_text("".join(f"{token}\n" for token in PIECES.vocab[:-1]))
    assert len(quiet(lines).tokenizer) == 37


def test_half_a_head_is_told(bert: Path):
    weights(bert, lambda state: state.pop("cls.predictions.bias"))
    with pytest.warns(UserWarning, match=r"model\.safetensors holds a part of a head.*cls\.pred"):
        assert load_pretrained(bert).model is None


def test_lost_merges_are_told(tmp_path: Path):
    BYTES.save(tmp_path)
    text = (tmp_path / "merges.txt").read_text(encoding="utf-8").splitlines()
    (tmp_path / "merges.txt").write_text("\n".join(text[:-1]), encoding="utf-8")
    with pytest.warns(UserWarning, match=r"1 tokens, such as .* no merge of .*merges\.txt"):
        ByteBPE.from_file(tmp_path)
    names = [*BYTES.vocab, "madeupword0000", "<|endoftext|>"]  # as RoBERTa's files have them
    ByteBPE(names, BYTES.merges).save(tmp_path)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        assert len(ByteBPE.from_file(tmp_path)) == len(names)


# ---------------------------------------------------------------- what we write


def test_what_is_written_could_be_read(tmp_path: Path):
    model = Encoder(BertConfig(**TINY, vocab_size=12))
    model.embeddings.token.weight.data[1, 1] = float("nan")  # type: ignore
    with pytest.raises(CheckpointError, match="holds nan or infinity"):
        save(model, tmp_path / "m.safetensors")
    assert not list(tmp_path.iterdir())


def test_settings_of_our_own_files_are_hashed(tmp_path: Path):
    """And those of before this hash are read."""
    file = tmp_path / "m.safetensors"
    model = classifier(**TINY, vocab_size=12).eval()
    save(model, file)
    header, numbers = split(file.read_bytes())
    about = json.loads(header["__metadata__"]["course_lib"])

    def write(**changes: Any) -> None:
        header["__metadata__"]["course_lib"] = json.dumps({**about, **changes})
        text = json.dumps(header).encode()
        file.write_bytes(len(text).to_bytes(8, "little") + text + numbers)

    write(config={**about["config"], "layer_norm_eps": 1e-3})
    with pytest.raises(CheckpointError, match="settings no longer have the hash"):
        load(file)
    write(about_sha256=None)
    assert same_model(load(file), model)
    large = {"config": {**about["config"], "num_layers": 9_000}}
    for change in (
        large,
        {"dropout": -1},
        {"names": "ab"},
        {"names": [1, 2]},
        {"family": ["bert"]},
    ):
        write(about_sha256=None, **change)
        with pytest.raises(CheckpointError, match=file.name):
            load(file)


@pytest.mark.parametrize("change", [{"num_layers": 10**9}, {"num_highways": 10**9}, {"clip": INF}])
def test_settings_of_an_elmo(tmp_path: Path, change: dict[str, Any]):
    file = write_elmo(tmp_path)
    header, numbers = split(file.read_bytes())
    about = json.loads(header["__metadata__"]["course_lib"])
    del about["about_sha256"]
    about["config"] |= change
    header["__metadata__"]["course_lib"] = json.dumps(about)
    file.write_bytes(packed(json.dumps(header), numbers))
    with pytest.raises(CheckpointError, match=rf"elmo\.safetensors.*{next(iter(change))}"):
        load_elmo(file)


def test_a_missing_file_is_missing(tmp_path: Path):
    with pytest.raises(MissingCheckpoint, match=r"no file at .*m\.safetensors"):
        load(tmp_path / "m.safetensors")
