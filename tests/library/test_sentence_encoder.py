"""One vector a text: by hand, in any order and mode, and in and out of the folders that
sentence-transformers reads."""

from __future__ import annotations

import json
import warnings

import pytest
import torch
from torch import nn

from course_lib import load_pretrained
from course_lib.checkpoints import CheckpointError, MissingCheckpoint
from course_lib.train.sentence_encoder import OLD_NAMES, SentenceEncoder

TEXTS = [
    "Return the mean of the rows.",
    "Ça va?",
    "x",
    "A file that is opened must be closed, too.",
]


@pytest.fixture(scope="module")
def course():
    return load_pretrained("course-bert")


def encoder_of(course, **settings):
    return SentenceEncoder(course.encoder, course.tokenizer, **settings).eval()


@pytest.mark.parametrize("pooling", ["mean", "cls"])
@pytest.mark.parametrize("normalize", [True, False])
def test_each_text_alone_gives_the_same(course, pooling, normalize):
    """Whatever the batch and its padding, in the texts' own order."""
    model = encoder_of(course, pooling=pooling, normalize=normalize)
    expected = []
    for text in TEXTS:
        special = course.tokenizer.special
        ids = torch.tensor([[special.cls, *course.tokenizer.encode(text), special.sep]])
        states = course.encoder(ids).last_hidden_state[0]
        vector = states[0] if pooling == "cls" else states.mean(dim=0)
        expected.append(vector / vector.norm() if normalize else vector)
    for batch_size in (1, 3, 32):
        vectors = model.encode(TEXTS, batch_size)
        assert vectors.dtype == torch.float32 and not vectors.requires_grad
        bound = 1e-5 * max(1, vectors.abs().max().item())
        assert (vectors - torch.stack(expected)).abs().max() <= bound


def test_every_part_stays_in_its_mode(course):
    model = encoder_of(course).train()
    model.encoder.embeddings.eval()
    before = [part.training for part in model.modules()]
    first, second = model.encode(TEXTS), model.encode(TEXTS)
    assert torch.equal(first, second)  # no dropout
    assert [part.training for part in model.modules()] == before
    model.eval()


def test_vectors_train_a_probe(course):
    """No inference tensors, which a graph would refuse."""
    vectors = encoder_of(course).encode(TEXTS)
    nn.Linear(vectors.shape[1], 2)(vectors).sum().backward()


def test_longer_texts_are_cut_with_a_warning(course):
    model = encoder_of(course, length=5)
    with pytest.warns(UserWarning, match="3 of 4 did not fit into 5 positions"):
        cut = model.encode(TEXTS)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        short = model.encode(TEXTS[2:3])
    assert (cut[2:3] - short).abs().max() < 1e-5


@pytest.mark.parametrize("name", ["course-bert", "course-modernbert"])
@pytest.mark.parametrize(("pooling", "normalize"), [("mean", True), ("cls", False)])
def test_sentence_transformers_reads_the_folder(tmp_path, name, pooling, normalize):
    library = pytest.importorskip("sentence_transformers")
    source = load_pretrained(name)
    model = SentenceEncoder(source.encoder, source.tokenizer, pooling, normalize, 8).eval()
    model.save_folder(tmp_path)
    other = library.SentenceTransformer(str(tmp_path), device="cpu").double()
    again = SentenceEncoder.load(tmp_path).double()  # batches of other shapes round otherwise
    model.double()
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # the last text is cut, by both
        ours, loaded = model.encode(TEXTS), again.encode(TEXTS)
    assert torch.equal(ours, loaded)
    assert other.max_seq_length == again.length == 8
    # Other programs read this one: fastembed 0.9.1, or the tokenizer loaded by itself.
    settings = json.loads((tmp_path / "tokenizer_config.json").read_text(encoding="utf-8"))
    assert settings["model_max_length"] == 8 and "model_input_names" in settings
    theirs = torch.as_tensor(other.encode(TEXTS, batch_size=2))
    assert (theirs - ours).abs().max() <= 1e-6 * max(1, ours.abs().max().item())
    assert other.similarity_fn_name == "cosine"
    # And what they save again, with the names of their version.
    other.save(str(tmp_path / "theirs"))
    back = SentenceEncoder.load(tmp_path / "theirs")
    assert (back.pooling, back.normalize, back.length) == (pooling, normalize, 8)


@pytest.mark.parametrize(
    ("settings", "pooling"),
    [
        ({"pooling_mode": "cls", "pooling_mode_mean_tokens": True}, "cls"),  # the newer word
        ({"pooling_mode": ["mean"], "pooling_mode_cls_token": True}, "mean"),
        ({"pooling_mode_cls_token": True, "pooling_mode_mean_tokens": False}, "cls"),
        ({}, "mean"),
    ],
)
def test_sentence_transformers_pools_the_same(course, tmp_path, settings, pooling):
    library = pytest.importorskip("sentence_transformers")
    encoder_of(course).save_folder(tmp_path)
    path = tmp_path / "1_Pooling/config.json"
    path.write_text(json.dumps({"embedding_dimension": 256, **settings}), encoding="utf-8")
    model = SentenceEncoder.load(tmp_path)
    assert model.pooling == pooling
    theirs = torch.as_tensor(library.SentenceTransformer(str(tmp_path), device="cpu").encode(TEXTS))
    assert (theirs - model.encode(TEXTS)).abs().max() <= 1e-6


def test_prompts_and_similarity_are_kept(course, tmp_path):
    """They change no vector by themselves: sentence-transformers uses them where they are named."""
    library = pytest.importorskip("sentence_transformers")
    encoder_of(course).save_folder(tmp_path / "a")
    path = tmp_path / "a" / "config_sentence_transformers.json"
    prompts = {"query": "q: ", "document": "d: "}
    path.write_text(json.dumps({"similarity_fn_name": "dot", "prompts": prompts}), encoding="utf-8")
    SentenceEncoder.load(tmp_path / "a").save_folder(tmp_path / "b")
    first, again = (
        library.SentenceTransformer(str(tmp_path / name), device="cpu") for name in "ab"
    )
    assert (again.similarity_fn_name, again.prompts) == ("dot", prompts)
    queries = [model.encode_query(TEXTS) for model in (first, again)]
    assert abs(queries[0] - queries[1]).max() <= 1e-6


def test_minilm_as_its_package_ships_it():
    library = pytest.importorskip("sentence_transformers")
    try:
        model = SentenceEncoder.load("minilm")
    except MissingCheckpoint:
        pytest.skip("the weights of MiniLM are not installed")
    folder = load_pretrained("minilm").path.parent
    assert (model.pooling, model.normalize, model.length) == ("mean", True, 256)
    theirs = torch.as_tensor(library.SentenceTransformer(str(folder), device="cpu").encode(TEXTS))
    assert (theirs - model.encode(TEXTS)).abs().max() <= 1e-6


@pytest.mark.parametrize(
    ("file", "change", "says"),
    [
        ("modules.json", "[]", "lists nothing; expected"),
        ("modules.json", '[{"type": 1}]', "modules.json.*cannot be read"),
        ("modules.json", '[{"type": "x.Transformer", "path": ""}]', "lists Transformer; expected"),
        ("1_Pooling/config.json", {"pooling_mode": "max"}, r"pools by \['max'\]"),
        ("1_Pooling/config.json", dict.fromkeys(OLD_NAMES.values(), True),
         "one of them"),
        ("1_Pooling/config.json", {"pooling_mode": ["cls", "mean"]}, "one of them"),
        ("1_Pooling/config.json", {"pooling_mode": "mean", "include_prompt": False},
         "include_prompt=false"),
        ("sentence_bert_config.json", {"do_lower_case": True}, "do_lower_case"),
        ("sentence_bert_config.json", {"config_args": {"num_hidden_layers": 2}}, "config_args"),
        ("sentence_bert_config.json", {"config_kwargs": {"num_hidden_layers": 2}}, "config_kwargs"),
        ("sentence_bert_config.json", {"modality_config": {"text": {
            "method": "forward", "method_output_name": ["hidden_states", 1]}}}, "hidden_states"),
        ("config_sentence_transformers.json", {"truncate_dim": 32}, "truncate_dim"),
        ("config_sentence_transformers.json", {"default_prompt_name": "query"}, "prompt"),
        ("sentence_bert_config.json", {"max_seq_length": "long"}, "sentence_bert_config.json"),
        ("modules.json", None, "has no modules.json"),
        ("vocabulary", None, "a tokenizer is needed"),
    ],
)  # fmt: skip
def test_what_is_not_read_is_refused(course, tmp_path, file, change, says):
    encoder_of(course).save_folder(tmp_path)
    if file == "vocabulary":
        for name in ("vocab.txt", "tokenizer.json", "tokenizer_config.json"):
            (tmp_path / name).unlink()
    elif change is None:
        (tmp_path / file).unlink()
    else:
        text = change if isinstance(change, str) else json.dumps(change)
        (tmp_path / file).write_text(text, encoding="utf-8")
    with pytest.raises(CheckpointError, match=says):
        SentenceEncoder.load(tmp_path)


def test_what_does_not_fit(course):
    with pytest.raises(ValueError, match="pooling='max'"):
        encoder_of(course, pooling="max")
    with pytest.raises(ValueError, match="length=100000"):
        encoder_of(course, length=100_000)
    with pytest.raises(TypeError, match=r"its tokenizer is \.tokenizer"):
        SentenceEncoder(course.encoder, course)
    model = encoder_of(course)
    with pytest.raises(ValueError, match="text 1, '', has no token"):
        model.encode(["a text", ""])
    with pytest.raises(ValueError, match="No texts were given"):
        model.encode([])
    with pytest.raises(TypeError, match="put it into a list"):
        model.encode("one text")
