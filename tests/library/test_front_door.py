"""The front door: what it offers, loaded when used, and what it says of other names."""

from __future__ import annotations

import subprocess
import sys

import pytest
import torch

import course_lib
from course_lib import bert, deberta, deberta_masked_lm, load_pretrained, published
from course_lib.checkpoints import MissingCheckpoint
from course_lib.family.deberta import DebertaForMaskedLM
from course_lib.heads import BertForMaskedLM
from course_lib.train.pretrain_recipe import ModelPart

TINY = {"num_layers": 1, "hidden_size": 16, "num_heads": 2, "vocab_size": 30}


@pytest.mark.parametrize(
    ("name", "advice"),
    [
        ("best_spans", "; it is in course_lib.objectives.spans$"),
        ("finetun", "; did you mean finetune"),
        ("load_pretrain", "; did you mean load_pretrained"),
        ("zzz", r"'zzz'\. dir\(course_lib\) lists"),
        ("__wrapped__", "'__wrapped__'$"),
    ],
)
def test_another_name(name, advice):
    with pytest.raises(AttributeError, match=advice):
        getattr(course_lib, name)
    assert not hasattr(course_lib, name)


def test_what_pages_and_readme_use_is_there():
    names = "predict entities answer save_folder export_onnx mask_whole_words text_sequences"
    names += " tagged_sequences question_sequences read_csv read_jsonl read_conll read_squad"
    assert set(names.split()) <= set(dir(course_lib))


def test_importing_it_loads_nothing():
    code = "import sys, course_lib; from course_lib import text; print('torch' in sys.modules)"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "False"


@pytest.mark.parametrize(
    ("name", "meant"),
    [
        ("course_bert", "course-bert"),
        ("Course-BERT", "course-bert"),
        ("coursemodernbert", "course-modernbert"),
        ("bert-base-uncase", "bert-base-uncased"),
    ],
)
def test_a_checkpoint_by_nearly_its_name(name, meant, monkeypatch):
    monkeypatch.setenv("HF_HUB_OFFLINE", "1")
    with pytest.raises(MissingCheckpoint, match=f"was not found. Did you mean '{meant}'"):
        load_pretrained(name)


@pytest.mark.parametrize(
    ("decoder", "kind"), [(True, DebertaForMaskedLM), (False, BertForMaskedLM)]
)
def test_deberta_by_size_or_on_an_encoder(decoder, kind):
    torch.manual_seed(0)
    by_size = deberta_masked_lm("base", decoder, **TINY)
    assert type(by_size) is kind and by_size.config == deberta("base", **TINY).config
    encoder = deberta(**TINY)
    assert deberta_masked_lm(encoder, decoder).encoder is encoder
    with pytest.raises(TypeError, match="vocab_size was given beside an encoder"):
        deberta_masked_lm(encoder, decoder, vocab_size=9)


@pytest.mark.parametrize(
    ("family", "size"),
    [("BERT", "Base"), ("DeBERTa-v3", "base"), ("ViT", "b/16"), ("RoBERTa", "LARGE")],
)
def test_families_in_any_case(family, size):
    changes = {"num_layers": 1}
    lower = published(family.lower(), size.upper() if family == "ViT" else size.lower(), **changes)
    assert published(family, size, **changes) == lower
    assert ModelPart(family=family).family == family.lower()


def test_sizes_in_any_case():
    with torch.device("meta"):
        assert bert("Tiny").config == bert("tiny").config
    with pytest.raises(
        ValueError, match="size 'enormous' was given for bert; expected one of tiny"
    ):
        bert("enormous")
