"""BERT and its family, from scratch: the companion package of the notebook course.

Names are loaded when first used, so that importing the package stays quick.
"""

from __future__ import annotations

import os
import re
from difflib import get_close_matches
from importlib import import_module
from importlib.util import find_spec
from pathlib import Path
from typing import Any

# torch keeps what it prepares for a matrix product of each new size, 1,024 of them, and batches of
# text have a new size almost every step: a small model's training grew by a quarter of a gigabyte.
os.environ.setdefault("LRU_CACHE_CAPACITY", "64")

# Between two pieces of work torch's threads wait by spinning, and take from whoever else computes
# the cores he needs. A training step of lecture 02 on two threads took 34 ms on two quiet cores,
# but 231 ms beside a second training and 188 ms beside other busy work; spinning 10,000 times
# before sleeping made that 32, 107 and 91 ms. (Never to spin: 55, 42 and 94 ms.) GNU's libgomp
# reads this when it is loaded, so it has no effect where torch is imported already.
if not {"OMP_WAIT_POLICY", "GOMP_SPINCOUNT"} & os.environ.keys():
    os.environ["GOMP_SPINCOUNT"] = "10000"

__version__ = "0.1.0"  # the one place: the wheel, CITATION.cff and CHANGELOG.md follow it

_HOME = {
    "published": "config",
    "BertConfig": "config",
    "Encoder": "encoder",
    "count_parameters": "encoder",
    "BertForPreTraining": "heads",
    "bert": "family.bert",
    "bert_for_pretraining": "family.bert",
    "roberta": "family.roberta",
    "roberta_for_masked_lm": "family.roberta",
    "xlm_roberta": "family.xlm_roberta",
    "xlm_roberta_for_masked_lm": "family.xlm_roberta",
    "xlm": "family.xlm",
    "xlm_for_language_model": "family.xlm",
    "albert": "family.albert",
    "albert_for_pretraining": "family.albert",
    "distilbert": "family.distilbert",
    "distilbert_for_masked_lm": "family.distilbert",
    "tinybert": "family.tinybert",
    "tinybert_for_masked_lm": "family.tinybert",
    "mobilebert": "family.mobilebert",
    "mobilebert_for_masked_lm": "family.mobilebert",
    "mobilebert_for_pretraining": "family.mobilebert",
    "ib_bert": "family.mobilebert",
    "ib_bert_for_masked_lm": "family.mobilebert",
    "modernbert": "family.modernbert",
    "modernbert_for_masked_lm": "family.modernbert",
    "eurobert": "family.eurobert",
    "eurobert_for_masked_lm": "family.eurobert",
    "nomicbert": "family.nomicbert",
    "nomicbert_for_masked_lm": "family.nomicbert",
    "ultrabert": "family.ultrabert",
    "ultrabert_for_masked_lm": "family.ultrabert",
    "electra": "family.electra",
    "electra_discriminator": "family.electra",
    "deberta": "family.deberta",
    "deberta_v3": "family.deberta",
    "deberta_masked_lm": "family.deberta",
    "FastBert": "family.fastbert",
    "vit": "family.vit",
    "vit_for_classification": "family.vit",
    "vit_for_masked_patches": "family.vit",
    "ernie": "family.ernie",
    "ernie_for_pretraining": "family.ernie",
    "mask_sequences": "objectives.masked_lm",
    "mask_whole_words": "objectives.masked_lm",
    "masked_lm_loss": "objectives.masked_lm",
    "make_pairs": "objectives.next_sentence",
    "next_sentence_loss": "objectives.next_sentence",
    "make_ordered_pairs": "objectives.sentence_order",
    "sentence_order_loss": "objectives.sentence_order",
    "distilbert_loss": "objectives.distillation",
    "tinybert_loss": "objectives.distillation",
    "self_distillation_loss": "objectives.exits",
    "electra_loss": "objectives.replaced_tokens",
    "pretraining_loss": "objectives.pretraining",
    "pretraining_batches": "objectives.pretraining",
    "translation_sequences": "objectives.translation_lm",
    "masked_patch_batches": "objectives.masked_patches",
    "masked_patch_loss": "objectives.masked_patches",
    "info_nce_loss": "objectives.contrastive",
    "matryoshka_loss": "objectives.contrastive",
    "digits": "images",
    "scenes": "images",
    "MicroWorld": "text.world",
    "read_csv": "text.readers",
    "read_jsonl": "text.readers",
    "read_conll": "text.readers",
    "read_squad": "text.readers",
    "Question": "text.english",
    "TaggedSentence": "text.english",
    "plain_sequences": "text.features",
    "text_sequences": "text.features",
    "tagged_sequences": "text.features",
    "question_sequences": "text.features",
    "WordPiece": "text.wordpiece",
    "train_wordpiece": "text.wordpiece",
    "ByteBPE": "text.byte_bpe",
    "train_byte_bpe": "text.byte_bpe",
    "documentation_slice": "text.documentation",
    "from_transformers": "checkpoints",
    "to_transformers": "checkpoints",
    "load_pretrained": "checkpoints",
    "save_folder": "checkpoints",
    "export_onnx": "checkpoints",
    "fit": "train.loop",
    "finetune": "train.finetuning",
    "head_on": "train.finetuning",
    "class_accuracy": "train.finetuning",
    "predicted_classes": "train.finetuning",
    "predicted_tags": "train.finetuning",
    "best_answers": "train.finetuning",
    "task_score": "train.finetuning",
    "predict": "train.predicting",
    "entities": "train.predicting",
    "answer": "train.predicting",
    "SentenceEncoder": "train.sentence_encoder",
    "BM25": "train.searching",
    "VectorIndex": "train.searching",
    "ranking_scores": "train.ranking_metrics",
    "accuracy": "train.task_metrics",
    "bio_spans": "train.span_metrics",
    "span_scores": "train.span_metrics",
    "show": "teaching.source",
    "compare": "teaching.compare",
    "check": "teaching.exercises",
    "hint": "teaching.exercises",
    "reveal": "teaching.exercises",
    "quiz": "teaching.exercises",
    "claims_table": "teaching.claims",
    "progress": "teaching.course_map",
    "forget_progress": "teaching.solved",
}

__all__ = ["__version__", *_HOME]


def __getattr__(name: str) -> Any:
    if name not in _HOME:
        raise AttributeError(f"module 'course_lib' has no attribute {name!r}{_advice(name)}")
    value = getattr(import_module(f".{_HOME[name]}", __name__), name)
    globals()[name] = value  # found directly from now on
    return value


def _advice(name: str) -> str:
    """Where else a name lives, or which one may be meant; nothing for rooms, which `from course_lib
    import text` asks for first, and for what Python asks of any module."""
    if name.startswith("_") or find_spec(f"{__name__}.{name}"):
        return ""
    if homes := _homes(name):
        return f"; it is in {' and in '.join(homes)}"
    near = get_close_matches(name, __all__, n=3)
    suggestion = f"; did you mean {' or '.join(near)}?" if near else "."
    return f"{suggestion} dir(course_lib) lists what it offers."


def _homes(name: str) -> list[str]:
    """The modules whose text defines this name at its left margin; none is imported."""
    define = re.compile(rf"^(?:def|class) {re.escape(name)}\b|^{re.escape(name)}\s*[:=]", re.M)
    folder = Path(__file__).parent
    paths = (path for path in folder.rglob("*.py") if path.name != "__init__.py")
    homes = (p for p in sorted(paths) if define.search(p.read_text(encoding="utf-8")))
    return [".".join((__name__, *p.relative_to(folder).with_suffix("").parts)) for p in homes]


def __dir__() -> list[str]:
    return sorted(__all__)
