"""The models that other programs are to read: the course's two checkpoints, and a small one of each
member of the family."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import numpy as np
import torch
from torch import Tensor, nn

from course_lib.checkpoints import COURSE, export_onnx, load_pretrained, save_folder
from course_lib.checkpoints.convert import encoder_of
from course_lib.encoder import Encoder
from course_lib.family.albert import albert
from course_lib.family.bert import bert
from course_lib.family.deberta import deberta, deberta_v3
from course_lib.family.distilbert import distilbert
from course_lib.family.electra import electra_discriminator
from course_lib.family.ernie import ernie
from course_lib.family.mobilebert import mobilebert
from course_lib.family.roberta import roberta
from course_lib.family.vit import vit_for_classification
from course_lib.family.xlm import xlm_for_language_model
from course_lib.family.xlm_roberta import xlm_roberta
from course_lib.heads import BertForClassification, BertForMaskedLM
from course_lib.text import english
from course_lib.text.byte_bpe import train_byte_bpe

TEXTS = ("Returns the mean of each row.", "If the file does not exist, an error is raised.")
BLANK = "If the file does not {}, an error is raised."
ROWS, TOKENS = 3, 24
SMALL: dict[str, Any] = {
    "hidden_size": 64, "num_layers": 2, "num_heads": 4, "intermediate_size": 128,
    "max_positions": 66, "initializer_range": 0.1,
}  # fmt: skip


def _masked(make: Callable[..., Encoder], **more: Any) -> Callable[..., BertForMaskedLM]:
    def model(**changes: Any) -> BertForMaskedLM:
        encoder = make("base", **{**SMALL, **more, **changes})
        encoder.pooler = None  # as transformers' masked-LM classes have none
        return BertForMaskedLM(encoder)

    return model


MEMBERS: dict[str, Callable[..., nn.Module]] = {
    "BERT": lambda **changes: BertForClassification(
        bert("base", **{**SMALL, **changes}), ("no", "yes")
    ),
    "RoBERTa": _masked(roberta),
    "XLM-R": _masked(xlm_roberta),
    "XLM": lambda **changes: xlm_for_language_model(
        "xnli15", **{**SMALL, "intermediate_size": 256, **changes}
    ),
    "ALBERT": _masked(albert, embedding_size=32),
    "DistilBERT": _masked(distilbert),
    "MobileBERT": _masked(mobilebert, embedding_size=32, bottleneck_size=32),
    "ELECTRA": lambda **changes: electra_discriminator(
        "small", **{**SMALL, "embedding_size": 32, **changes}
    ),
    "ERNIE": _masked(ernie),
    "DeBERTa": _masked(deberta, span=16),
    "DeBERTa-v3": _masked(deberta_v3, span=8, furthest=16),
}
NAMES = (*COURSE, *MEMBERS, "ViT")


def samples(names: tuple[str, ...] = NAMES) -> Iterator[tuple[str, Any, Any]]:
    """Each with its name and its tokenizer (BERT with a classifier, ELECTRA's discriminator, the
    others with their masked-LM head): RoBERTa's is byte-level BPE, the others' course-bert's.
    Weights are drawn from seed 0; a ViT has no tokenizer."""
    for name in names:
        if name in COURSE:
            shipped = load_pretrained(name)
            yield name, shipped.model, shipped.tokenizer
            continue
        torch.manual_seed(0)
        if name == "ViT":
            shape = {"image_size": 16, "patch_size": 4, **SMALL}
            del shape["max_positions"]
            yield name, vit_for_classification("B/16", ("cat", "dog"), **shape).eval(), None
            continue
        words: Any = load_pretrained("course-bert").tokenizer
        if name == "RoBERTa":
            words = train_byte_bpe((item.text for item in english.reviews()), 600)
        sizes = {"vocab_size": words.vocab_size, "pad_token_id": words.special.pad}
        yield name, MEMBERS[name](**sizes).eval(), words


def write_samples(work: Path, names: tuple[str, ...] = NAMES) -> None:
    """A folder for each: as `save_folder` writes it, onnx/model.onnx as transformers.js looks for
    it, and what our model gives: expected.npz (arrays) and expected.json (one text's answers)."""
    for name, model, tokenizer in samples(names):
        folder = work / name
        save_folder(model, folder, tokenizer)
        export_onnx(model, folder / "onnx" / "model.onnx")
        arrays: dict[str, Any] = expected_arrays(model, tokenizer)
        np.savez(folder / "expected.npz", **arrays)
        if tokenizer is not None:
            answers = json.dumps(expected_answers(model, tokenizer))
            (folder / "expected.json").write_text(answers, encoding="utf-8")


@torch.no_grad()
def expected_arrays(model: Any, tokenizer: Any) -> dict[str, np.ndarray]:
    """Drawn inputs, padding and two segments among them, and ours on them: every output, the
    states, and the mean of the states over each text's real tokens, alone."""
    draw = torch.Generator().manual_seed(1)
    if tokenizer is None:
        size = model.config.image_size
        inputs = {"pixel_values": torch.randn(ROWS, 3, size, size, generator=draw)}
    else:
        ids = torch.randint(10, tokenizer.vocab_size - 1, (ROWS, TOKENS), generator=draw)
        mask = (torch.arange(TOKENS) < torch.tensor([TOKENS, 17, 9])[:, None]).long()
        ids = ids.where(mask.bool(), torch.tensor(tokenizer.special.pad))
        inputs = {"input_ids": ids, "attention_mask": mask}
        if model.config.type_vocab_size > 1:
            inputs["token_type_ids"] = (torch.arange(TOKENS) >= 5).long() * mask
    outputs = {n: x for n, x in vars(model(**inputs)).items() if isinstance(x, Tensor)}
    outputs["last_hidden_state"] = encoder_of(model)(**inputs).last_hidden_state
    if tokenizer is not None:
        outputs["means"] = torch.stack([mean_state(model, tokenizer, text) for text in TEXTS])
    return {name: x.numpy() for name, x in {**inputs, **outputs}.items()}


def around(tokenizer: Any, ids: list[int]) -> Tensor:
    """(1, T): ids between the special tokens of a text."""
    return torch.tensor([[tokenizer.special.cls, *ids, tokenizer.special.sep]])


def mean_state(model: Any, tokenizer: Any, text: str) -> Tensor:
    """(H,): the mean over all of a text's tokens, special ones included."""
    return encoder_of(model)(around(tokenizer, tokenizer.encode(text))).last_hidden_state[0].mean(0)


@torch.no_grad()
def expected_answers(model: Any, tokenizer: Any) -> dict[str, Any]:
    """TEXTS, the ids of them; BLANK, its ids, and of its masked token the five best words."""
    special = tokenizer.special
    mask, blank = (
        tokenizer.token(special.mask),
        list(map(tokenizer.encode, map(str.strip, BLANK.split("{}")))),
    )
    ids = around(tokenizer, [*blank[0], special.mask, *blank[1]])
    answers: dict[str, Any] = {
        "texts": TEXTS,
        "ids": [around(tokenizer, tokenizer.encode(text))[0].tolist() for text in TEXTS],
        "blank": BLANK.format(mask),
        "blank_ids": ids[0].tolist(),
        "special": [tokenizer.token(getattr(special, n)) for n in ("cls", "sep", "mask")],
        "static": {
            tokenizer.token(id): encoder_of(model)(around(tokenizer, [id]))
            .last_hidden_state[0]
            .mean(0)
            .tolist()
            for text in TEXTS
            for id in tokenizer.encode(text)
        },
    }
    logits, at = model(ids).logits[0], int((ids[0] == special.mask).nonzero())
    if logits.dim() == 1:  # a logit a token
        return answers | {"blank_logits": logits.tolist(), "first": 0}
    best = logits[at].softmax(-1).topk(5)
    return answers | {
        "best": best.indices.tolist(),
        "probabilities": best.values.tolist(),
        "blank_logits": logits[at].tolist(),
        "first": at * logits.shape[1],  # where they stand among those of all tokens
    }
