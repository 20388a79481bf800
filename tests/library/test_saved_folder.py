"""What `save_folder` writes is what transformers, and who reads its files, take it for."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
import safetensors.torch
import torch
from members import MEMBERS, VIT
from parity import drawn_weights

from course_lib import checkpoints as room
from course_lib.checkpoints import CheckpointError, load_pretrained, save_folder, to_transformers
from course_lib.config import BertConfig
from course_lib.encoder import Encoder, Pooler, pooler_for
from course_lib.family.deberta import DebertaForMaskedLM, EnhancedMaskDecoder
from course_lib.family.roberta import roberta_for_masked_lm
from course_lib.family.xlm_roberta import xlm_roberta_for_masked_lm
from course_lib.heads import (
    BertForClassification,
    BertForMaskedLM,
    BertForQuestionAnswering,
    BertForTokenClassification,
)
from course_lib.text.byte_bpe import ByteBPE, train_byte_bpe
from course_lib.text.unigram import Unigram
from course_lib.text.wordpiece import WordPiece
from course_lib.train.finetuning import classifier_on
from course_lib.train.sentence_encoder import SentenceEncoder

transformers = pytest.importorskip("transformers")

WORDS = ["the", "first", "sentence", "is", "another"]
PIECES = WordPiece.from_words(WORDS)
TINY: dict[str, Any] = {
    "vocab_size": 300, "hidden_size": 8, "num_heads": 2, "num_layers": 1, "intermediate_size": 12,
    "max_positions": 20,
}  # fmt: skip
SMALL = BertConfig(**TINY)


def masked() -> BertForMaskedLM:
    return drawn_weights(BertForMaskedLM(Encoder(SMALL)), 0.2)


def written(folder: Path, name: str = "config.json") -> dict[str, Any]:
    return json.loads((folder / name).read_text(encoding="utf-8"))


def read_back(folder: Path) -> Any:
    kind = getattr(transformers, written(folder)["architectures"][0])
    model, report = kind.from_pretrained(folder, output_loading_info=True)
    assert not any(report.values()), report  # nothing missing, nothing left over
    return model


@pytest.mark.parametrize(
    "name",
    [
        "bert",
        "roberta",
        "xlm",
        "albert",
        "distilbert",
        "electra",
        "ernie",
        "mobilebert",
        "modernbert",
        "deberta",
        "deberta-v2",
    ],
)
def test_every_member_says_what_it_is(tmp_path: Path, name: str):  # fmt: skip
    """Read and trained in float32 though stored in float16, as long texts as the model takes, and
    segments where transformers' model has them under that name."""
    member = MEMBERS[name]
    drawn = member.case(3).config
    config = replace(drawn, vocab_size=40, pad_token_id=0)
    model = drawn_weights(member.make(next(iter(member.kinds)), config), 0.1)
    save_folder(model, tmp_path, PIECES, half=True)
    settings, about = written(tmp_path), written(tmp_path, "tokenizer_config.json")
    assert settings["dtype"] == "float32"
    fixed = room.FAMILIES[member.family].fixed
    assert settings.get("position_embedding_type") == fixed.get("position_embedding_type")
    assert about["model_max_length"] == config.longest_text
    segments = config.type_vocab_size > 1 and member.family != "xlm"
    assert ("token_type_ids" in about["model_input_names"]) == segments
    theirs, right = read_back(tmp_path), to_transformers(model)
    assert theirs.dtype == torch.float32
    for key, value in right.state_dict().items():
        assert torch.equal(theirs.state_dict()[key], value.half().float()), key


@pytest.mark.parametrize(
    ("made", "half", "stored", "said"),
    [
        (torch.float32, False, torch.float32, "float32"),
        (torch.float32, True, torch.float16, "float32"),
        (torch.float16, False, torch.float16, "float32"),
        (torch.bfloat16, False, torch.bfloat16, "float32"),
        (torch.bfloat16, True, torch.float16, "float32"),
        (torch.float64, False, torch.float64, "float64"),
        (torch.float64, True, torch.float16, "float32"),
    ],
)
def test_number_formats(tmp_path: Path, made: Any, half: bool, stored: Any, said: str):
    model = masked().to(made)
    save_folder(model, tmp_path, PIECES, half=half)
    kept = safetensors.torch.load_file(tmp_path / "model.safetensors")
    assert {value.dtype for value in kept.values()} == {stored}
    assert written(tmp_path)["dtype"] == said
    assert read_back(tmp_path).dtype == getattr(torch, said)
    ours = load_pretrained(tmp_path).encoder.embeddings.token.weight
    assert ours.dtype == getattr(torch, said)  # type: ignore[union-attr]
    assert torch.equal(ours, model.encoder.embeddings.token.weight.to(stored).to(ours.dtype))


@pytest.mark.parametrize(
    ("value", "half", "says"),
    [
        (70_000.0, True, "bias holds 70,000; float16 ends at 65,504"),
        (-1e6, True, "holds 1,000,000; float16 ends"),
        (float("nan"), True, "holds nan or infinity; expected finite numbers"),
        (float("nan"), False, "holds nan or infinity"),
        (float("inf"), False, "holds nan or infinity"),
    ],
)
def test_what_is_no_number_is_refused(tmp_path: Path, value: float, half: bool, says: str):
    model = masked()
    with torch.no_grad():
        model.mlm.bias[3] = value
    with pytest.raises(CheckpointError, match=says):
        save_folder(model, tmp_path / "new", PIECES, half=half)
    assert not (tmp_path / "new").exists()


def test_large_numbers_are_kept_where_they_fit(tmp_path: Path):
    model = masked()
    with torch.no_grad():
        model.mlm.bias[3], model.mlm.bias[4] = 70_000.0, 65_504.0
    save_folder(model, tmp_path, PIECES)
    assert load_pretrained(tmp_path).model.mlm.bias[3] == 70_000  # type: ignore[union-attr]
    model.mlm.bias.data[3] = 0
    save_folder(model, tmp_path, PIECES, half=True)
    assert load_pretrained(tmp_path).model.mlm.bias[4] == 65_504  # type: ignore[union-attr]


@pytest.mark.parametrize("kind", [BertForClassification, BertForTokenClassification])
@pytest.mark.parametrize("names", [2, ("größer",)])
def test_the_names_of_labels_are_always_there(tmp_path: Path, kind: Any, names: Any):
    """transformers leaves out two without names: who reads the file need not know its default."""
    model = kind(Encoder(SMALL, pooler=Pooler(SMALL)), names)
    if kind is BertForTokenClassification:
        model.encoder.pooler = None
    save_folder(model, tmp_path, PIECES)
    expected = {str(number): name for number, name in enumerate(model.names)}
    assert written(tmp_path)["id2label"] == expected
    assert written(tmp_path)["label2id"] == {name: int(n) for n, name in expected.items()}
    assert load_pretrained(tmp_path).model.names == model.names  # type: ignore[union-attr]


# ---------------------------------------------------------------- tokenizers

BYTES = train_byte_bpe(["the first sentence is another one"] * 3, 280)
PAIR = ("The first\u0000 sentence", "is another Größe of 中文")


@pytest.mark.parametrize(
    ("pieces", "kind"),
    [
        # The class for which transformers.js gives segments; transformers then takes the
        # vocabulary, case, accents and ideographs from the files, and no other option.
        (PIECES, "BertTokenizer"),
        (WordPiece.from_words(["The", *WORDS], lowercase=False), "BertTokenizer"),
        (WordPiece([*PIECES.vocab, "größe"], strip_accents=False), "BertTokenizer"),
        (WordPiece([*PIECES.vocab, "中文"], handle_chinese_chars=False), "BertTokenizer"),
        (WordPiece(PIECES.vocab, clean_text=False), "PreTrainedTokenizerFast"),
        (WordPiece(PIECES.vocab, max_chars=6), "PreTrainedTokenizerFast"),
        (
            WordPiece(PIECES.vocab, added_tokens={"[MASK]": False, "first": True}),
            "PreTrainedTokenizerFast",
        ),
        (BYTES, "PreTrainedTokenizerFast"),
    ],
)
def test_a_pair_has_the_same_ids_and_segments(tmp_path: Path, pieces: Any, kind: str):
    config = replace(SMALL, pad_token_id=pieces.special.pad)
    save_folder(drawn_weights(BertForMaskedLM(Encoder(config)), 0.2), tmp_path, pieces)
    assert written(tmp_path, "tokenizer_config.json")["tokenizer_class"] == kind
    batch = transformers.AutoTokenizer.from_pretrained(tmp_path)(*PAIR)
    (one, other), special = map(pieces.encode, PAIR), pieces.special
    between = [special.sep] * (2 if pieces is BYTES else 1)  # RoBERTa's way with pairs
    ids = [special.cls, *one, *between, *other, special.sep]
    assert batch["input_ids"] == ids
    second = 0 if pieces is BYTES else len(other) + 1  # RoBERTa's have no segments
    assert batch["token_type_ids"] == [0] * (len(ids) - second) + [1] * second


@pytest.mark.parametrize("name", ["course-bert", "course-modernbert"])
def test_what_transformers_saves_again_is_read_with_its_tokenizer(tmp_path: Path, name: str):
    """transformers 5 writes tokenizer.json and no vocab.txt."""
    ours = load_pretrained(name)
    theirs = transformers.AutoTokenizer.from_pretrained(ours.path.parent)
    theirs.add_tokens(["[NEW]"])
    theirs.save_pretrained(tmp_path)
    model = to_transformers(ours.encoder)
    model.resize_token_embeddings(len(theirs))
    model.save_pretrained(tmp_path)
    read = load_pretrained(tmp_path).tokenizer
    text = "The größte [NEW] sentence, [MASK]."
    ids = theirs(text, add_special_tokens=False)["input_ids"]
    assert isinstance(read, WordPiece) and read.encode(text) == ids
    assert read.vocab == [*ours.tokenizer.vocab, "[NEW]"]  # type: ignore[union-attr]


def test_bytes_go_with_a_roberta_there_and_back(tmp_path: Path):
    sizes = {**TINY, "vocab_size": BYTES.vocab_size}
    save_folder(roberta_for_masked_lm("base", **sizes), tmp_path, BYTES)
    assert load_pretrained(tmp_path).tokenizer.vocab == BYTES.vocab  # type: ignore[union-attr]
    theirs = transformers.AutoTokenizer.from_pretrained(tmp_path)
    assert theirs("the <mask>")["input_ids"][-2] == theirs.mask_token_id == BYTES.special.mask
    assert theirs("the <mask>")["input_ids"] == theirs("the<mask>")["input_ids"]  # as RoBERTa's
    assert "token_type_ids" not in theirs("the")


def test_sentencepieces_go_with_an_xlm_roberta_there_and_back(tmp_path: Path):
    from tokenizers import Tokenizer, models, pre_tokenizers, processors

    pieces = [
        "<s>",
        "<pad>",
        "</s>",
        "<unk>",
        "▁the",
        "▁fir",
        "st",
        "▁",
        *"abcdefghijklmnop",
        "<mask>",
    ]
    fast = Tokenizer(
        models.Unigram([(piece, -float(len(piece) < 2)) for piece in pieces], unk_id=3)
    )
    fast.pre_tokenizer = pre_tokenizers.Metaspace()
    fast.add_special_tokens(["<s>", "<pad>", "</s>", "<unk>", "<mask>"])
    fast.post_processor = processors.RobertaProcessing(("</s>", 2), ("<s>", 0))
    sizes = {**TINY, "vocab_size": len(pieces)}
    save_folder(xlm_roberta_for_masked_lm("base", **sizes), tmp_path, Unigram(fast))
    batch = transformers.AutoTokenizer.from_pretrained(tmp_path)("the first", "the")
    read = load_pretrained(tmp_path).tokenizer
    assert isinstance(read, Unigram) and read.encode("the first") == [4, 5, 6]
    assert batch["input_ids"] == [0, 4, 5, 6, 2, 2, 4, 2] and "token_type_ids" not in batch


def test_a_tokenizer_of_another_model_and_none(tmp_path: Path):
    many = WordPiece.from_words([f"w{i}" for i in range(300)])
    with pytest.raises(CheckpointError, match="305 tokens was given with a model of 300 rows"):
        save_folder(masked(), tmp_path / "new", many)
    elsewhere = BertForMaskedLM(Encoder(replace(SMALL, pad_token_id=3)))
    with pytest.raises(CheckpointError, match=r"\[PAD\] has the id 0 .* pad_token_id=3"):
        save_folder(elsewhere, tmp_path / "new", PIECES)
    assert not (tmp_path / "new").exists()
    save_folder(masked(), tmp_path / "bare", None)
    assert load_pretrained(tmp_path / "bare").tokenizer is None
    names = {path.name for path in (tmp_path / "bare").iterdir()}
    assert names == {"config.json", "model.safetensors"}
    pictures = VIT.make("classes", VIT.case(0).config)
    save_folder(pictures, tmp_path / "vit", None)
    assert read_back(tmp_path / "vit").config.id2label == dict(enumerate(pictures.names))


@pytest.mark.parametrize("mistaken", [load_pretrained, 5, None])
def test_what_is_no_model_is_named(tmp_path: Path, mistaken: Any):
    given = mistaken("course-bert") if callable(mistaken) else mistaken
    advice = r"Give \.encoder or \.model alone" if callable(mistaken) else "expected an Encoder"
    with pytest.raises(CheckpointError, match=f"a {type(given).__name__} was given.*{advice}"):
        save_folder(given, tmp_path, PIECES)


# ---------------------------------------------------------------- with an enhanced mask decoder


def with_decoder(name: str, visits: int = 2) -> DebertaForMaskedLM:
    config = replace(MEMBERS[name].case(3).config, vocab_size=PIECES.vocab_size, pad_token_id=0)
    encoder = room.FAMILIES[name].encoder(config, False)
    return drawn_weights(DebertaForMaskedLM(encoder, EnhancedMaskDecoder(config, visits)), 0.1)


@pytest.mark.parametrize("name", ["deberta", "deberta-v2"])
def test_a_deberta_with_its_decoder_is_written_as_the_released_ones(tmp_path: Path, name: str):
    """All of it is read back here; transformers reads the encoder, and says no more than that."""
    ours = with_decoder(name).eval()
    save_folder(ours, tmp_path, PIECES)
    again = load_pretrained(tmp_path)
    assert type(again.model) is DebertaForMaskedLM and again.tokenizer is not None
    for key, value in ours.state_dict().items():
        assert torch.equal(again.model.state_dict()[key], value), key
    assert written(tmp_path)["architectures"] == [room.FAMILIES[name].classes[Encoder]]
    theirs = transformers.AutoModel.from_pretrained(tmp_path)
    ids = transformers.AutoTokenizer.from_pretrained(tmp_path)("the first", return_tensors="pt")
    with torch.no_grad():
        states = [m(ids["input_ids"]).last_hidden_state for m in (theirs, ours.encoder.eval())]
    torch.testing.assert_close(*states, atol=1e-5, rtol=1e-5)


def test_other_visits_are_refused_before_anything_is_written(tmp_path: Path):
    with pytest.raises(CheckpointError, match=r"decoder of 3 visits was given.*always has 2"):
        save_folder(with_decoder("deberta", visits=3), tmp_path / "new", PIECES)
    assert not any(tmp_path.iterdir())


def test_classifiers_of_before_are_read_with_the_pooler_they_have(tmp_path: Path):
    """A file that names none was written when every member had BERT's."""
    encoder = room.FAMILIES["electra"].encoder(MEMBERS["electra"].case(3).config, False)
    for pooler in (Pooler(encoder.config), pooler_for(encoder.config)):
        encoder.pooler = pooler
        model = drawn_weights(BertForClassification(encoder, 2), 0.2)
        room.save(model, tmp_path / "m.safetensors")
        again = room.load(tmp_path / "m.safetensors")
        assert type(again.encoder.pooler) is type(pooler)  # type: ignore[union-attr]


@pytest.mark.parametrize("name", ["electra", "roberta", "modernbert"])
def test_berts_head_on_another_member(tmp_path: Path, name: str):
    """It is asked for by name, kept by our own files, and transformers' class is another."""
    encoder = room.FAMILIES[name].encoder(MEMBERS[name].case(3).config, False)
    classifier = classifier_on(encoder, 2, plain_head=True)
    assert type(classifier.encoder.pooler) is Pooler and not classifier.dropout_before_pooler
    plain, own = (BertForTokenClassification(encoder, 2, plain) for plain in (True, False))
    for model in (classifier, plain, own, BertForQuestionAnswering(encoder, plain=True)):
        room.save(model, tmp_path / "m.safetensors")
        again = room.load(tmp_path / "m.safetensors")
        assert [key for key, _ in again.named_modules()] == [
            key for key, _ in model.named_modules()
        ]
    if name == "modernbert":
        assert sum(p.numel() for p in own.parameters()) > sum(p.numel() for p in plain.parameters())
        for model in (classifier, plain):
            with pytest.raises(CheckpointError, match=r"Only .* has|pooler 'tanh' was given"):
                save_folder(model, tmp_path / "folder", None)


def test_an_onnx_file_of_before_is_told(tmp_path: Path):
    model = BertForMaskedLM(Encoder(SMALL))
    (tmp_path / "model.onnx").write_bytes(b"of another model")
    with pytest.warns(UserWarning, match=r"model\.onnx was there before and is of another model"):
        save_folder(model, tmp_path, None)
    with pytest.raises(TypeError, match=r"its tokenizer is \.tokenizer"):
        save_folder(model, tmp_path / "new", load_pretrained("course-bert"))
    assert not (tmp_path / "new").exists()


def test_the_model_comes_first_and_then_the_path(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    model = Encoder(BertConfig(vocab_size=10, hidden_size=4, num_heads=1, num_layers=1,
                               intermediate_size=4, max_positions=9))  # fmt: skip
    for call, form in (
        (lambda: save_folder("out", model, None), r"save_folder\(model, folder, tokenizer\)"),
        (lambda: save_folder(model, None, None), "a NoneType was given; .* The model comes first"),
        (lambda: save_folder(model, "", None), "an empty path .* was given"),
        (
            lambda: room.save("out.safetensors", model),
            r"Encoder was given; .* save\(model, path",
        ),
        (lambda: room.export_onnx("out.onnx", model), r"export_onnx\(model, path\)"),
        (lambda: SentenceEncoder("course-bert", model), "a str was given; expected an encoder"),  # type: ignore
        (lambda: room.load(model), "Encoder was given; expected the path"),
    ):
        with pytest.raises(TypeError, match=form):
            call()
    assert not list(tmp_path.iterdir())
    Path("notes.txt").write_text("mine")
    for call in (lambda: save_folder(model, "notes.txt", None),
                 lambda: room.export_onnx(model, "notes.txt/model.onnx")):  # fmt: skip
        with pytest.raises(
            NotADirectoryError, match=r"notes.txt is a file; expected a folder, for"
        ):
            call()
    assert [x.read_text() for x in tmp_path.iterdir()] == ["mine"]


def test_what_was_meant_by_a_folder_that_is_not_there(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "my-model" / "checkpoint-500").mkdir(parents=True)
    (tmp_path / "my-model" / "notes.txt").write_text("x")
    lies = r".*my-model holds checkpoint-500, notes.txt\."
    for name, message in (
        ("my-modle", r"'my-modle' was not found. Did you mean 'my-model'\?"),
        ("./my-modle", r"was not found. Did you mean 'my-model'\? .* holds my-model\."),
        (tmp_path / "My-Model2", r"was not found. Did you mean 'my-model'\? "),
        ("my-model/checkpoint", rf"was not found. Did you mean 'checkpoint-500'\? {lies}"),
        (tmp_path / "runs" / "best", r"There is no folder .*runs\. .* holds my-model\."),
        ("my-model", rf"my-model lacks model.safetensors and config.json: .* there\. {lies}"),
        ("course-brt", "Did you mean 'course-bert'"),
    ):
        with pytest.raises(room.MissingCheckpoint, match=message):
            load_pretrained(name)
    with pytest.raises(CheckpointError, match=r"notes.txt is not a safetensors file|has 1 bytes"):
        load_pretrained("my-model/notes.txt")
    (tmp_path / "my-model" / "config.json").write_text('{"hidden_size": 4}')
    with pytest.raises(CheckpointError, match=r"config.json is not a safetensors .* or the folder"):
        load_pretrained("my-model/config.json")
    (tmp_path / "my-model" / "model.safetensors").touch()
    with pytest.raises(
        CheckpointError, match=r"config.json lacks model_type; expected one of bert"
    ):
        load_pretrained("my-model")


def test_files_of_another_tokenizer_are_not_left_beside_a_new_one(tmp_path: Path):
    save_folder(masked(), tmp_path, PIECES)
    save_folder(masked(), tmp_path, PIECES)  # its own files are written anew
    kept = {file.name: file.read_bytes() for file in tmp_path.iterdir()}
    with pytest.warns(UserWarning, match=r"tokenizer\.json, .*vocab\.txt from before, which load"):
        save_folder(masked(), tmp_path, None)
    for name in ("added_tokens.json", "special_tokens_map.json", "spiece.model", "merges.txt",
                 "adapter_config.json"):  # fmt: skip
        (tmp_path / name).write_text("{}", encoding="utf-8")
        with pytest.raises(CheckpointError, match=f"holds {name} from before"):
            save_folder(masked(), tmp_path, PIECES)
        (tmp_path / name).unlink()
    (tmp_path / "adapter_config.json").write_text("{}", encoding="utf-8")
    with pytest.raises(CheckpointError, match="from before"):  # load_pretrained refuses these
        save_folder(masked(), tmp_path, None)
    (tmp_path / "adapter_config.json").unlink()
    assert kept.keys() == {file.name for file in tmp_path.iterdir()}
    assert kept["tokenizer.json"] == (tmp_path / "tokenizer.json").read_bytes()


def test_an_adapter_is_not_read_as_if_it_were_applied(tmp_path: Path):
    save_folder(masked(), tmp_path, PIECES)
    about = {"base_model_name_or_path": "some/base", "peft_type": "LORA"}
    (tmp_path / "adapter_config.json").write_text(json.dumps(about), encoding="utf-8")
    with pytest.raises(CheckpointError, match=r"PEFT adapter of 'some/base'.*merge_and_unload"):
        load_pretrained(tmp_path)
    (tmp_path / "model.safetensors").unlink()  # an adapter alone
    with pytest.raises(CheckpointError, match=r"PEFT adapter of 'some/base'.*merge_and_unload"):
        load_pretrained(tmp_path)


SHAPE = {"vocab_size": 40, "max_position_embeddings": 9}
DIM = {**SHAPE, "dim": 8, "n_layers": 1, "n_heads": 2, "hidden_dim": 12}
HIDDEN = {
    **SHAPE, "hidden_size": 8, "num_hidden_layers": 1, "num_attention_heads": 2,
    "intermediate_size": 12,
}  # fmt: skip
EMB = {**SHAPE, "emb_dim": 8, "n_layers": 1, "n_heads": 2, "n_langs": 2, "pad_token_id": 0}
LANGUAGES = {"lang2id": {"en": 0, "fr": 1}, "id2lang": {"0": "en", "1": "fr"}}


@pytest.mark.parametrize(
    ("kind", "shape", "kept"),
    [
        ("XLMWithLMHeadModel", EMB, {**LANGUAGES, "mask_token_id": 7, "mask_index": 7}),
        ("DistilBertForQuestionAnswering", DIM, {"qa_dropout": 0.3}),
        ("DistilBertForMaskedLM", DIM, {"qa_dropout": 0.4, "seq_classif_dropout": 0.4}),
        ("AlbertForPreTraining", HIDDEN, {"embedding_size": 5, "classifier_dropout_prob": 0.2}),
        ("AlbertModel", HIDDEN, {"classifier_dropout_prob": 0.3}),
        ("BertForMaskedLM", HIDDEN, {"classifier_dropout": 0.3}),
        ("RobertaModel", HIDDEN, {"bos_token_id": 5, "eos_token_id": 6, "pad_token_id": 3}),
        ("ElectraForPreTraining", HIDDEN, {"classifier_dropout": 0.3}),
    ],
)
def test_settings_that_nothing_here_reads_are_kept(
    tmp_path: Path, kind: str, shape: dict[str, Any], kept: dict[str, Any]
):
    made = getattr(transformers, kind)
    made(made.config_class(**shape, **kept)).save_pretrained(tmp_path / "theirs")
    found = load_pretrained(tmp_path / "theirs")
    model = found.model or found.encoder
    room.save(model, tmp_path / "m.safetensors")
    for number, ours in enumerate((model, room.load(tmp_path / "m.safetensors"))):
        save_folder(ours, tmp_path / str(number), None)
        settings = written(tmp_path / str(number))
        assert {name: settings.get(name) for name in kept} == kept


def test_the_dropout_before_an_answer(tmp_path: Path):
    """DistilBERT's qa_dropout, a tenth where its file does not say; none in what is built here."""
    theirs = transformers.DistilBertForQuestionAnswering(transformers.DistilBertConfig(**DIM))
    theirs.save_pretrained(tmp_path)
    ours = load_pretrained(tmp_path).model
    assert ours.dropout.p == theirs.dropout.p == 0.1  # type: ignore[union-attr]
    assert to_transformers(BertForQuestionAnswering(ours.encoder)).dropout.p == 0  # type: ignore


@pytest.mark.parametrize("strips", [(), ("<mask>",), ("<mask>", "<s>")])
def test_what_strips_the_space_before_it_is_kept(tmp_path: Path, strips: tuple[str, ...]):
    made = train_byte_bpe(["the cat sat on the mat"] * 3, 270)
    tokenizer = ByteBPE(made.vocab, made.merges, strips)
    config = {"hidden_size": 8, "num_layers": 1, "num_heads": 2, "intermediate_size": 12}
    save_folder(
        roberta_for_masked_lm("base", vocab_size=len(made), max_positions=9, **config),
        tmp_path,
        tokenizer,
    )
    found = load_pretrained(tmp_path).tokenizer
    theirs = transformers.AutoTokenizer.from_pretrained(tmp_path)
    text = "the <mask> cat <s>"
    expected = tokenizer.encode(text, parse_special=True)
    assert found.encode(text, parse_special=True) == expected  # type: ignore
    assert theirs(text, add_special_tokens=False)["input_ids"] == expected
