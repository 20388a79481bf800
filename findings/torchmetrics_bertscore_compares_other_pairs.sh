#!/usr/bin/env bash
# torchmetrics 1.9.0 (BERTScore, bert_score and infolm), with transformers 5.23.0 and torch 2.13.0
#
# One would guess: bert_score(preds, target) compares preds[k] with target[k] and gives that as value k.
# What happens: both lists are sorted by length to be encoded, each by itself, and the order is undone the
# wrong way: the sorted rows are taken at the sorting indices once more, where their inverse is needed.
# Value k belongs to preds[s[s[k]]] and target[t[t[k]]], with s and t the two sorting orders. Where s = t,
# the pairs are right, but in another order; where a prediction is longer or shorter than its reference, so
# that s differs from t, other texts are compared. A list with itself gets 1.0 everywhere, so the usual
# check finds nothing.
# Below, two systems of eight texts, their mean F1 one pair at a time and in one call: the one that adds
# some words to every second reference falls from 0.88 to 0.67, and then stands behind the one that replaces
# every second word (0.83 both times, as its lengths, and so its pairs, are right). The class BERTScore
# does the same, and infolm, too.
# Who is hurt: whoever reports BERTScore of summaries, translations or paraphrases by torchmetrics, for
# whose systems the figure depends on whether their lengths run in order. Issue 2728 there has seen since
# 2024 that values change with the texts beside them; its proposed cure, a stable sort, does not undo s.
# What to do instead: one pair a call (update, compute, reset), or do not sort (below: the helper that
# sorts replaced by one that leaves the order), which gives the same values as single pairs.
set -euo pipefail
tmp=$(mktemp -d)
trap 'rm -rf "$tmp"' EXIT
python3 -m venv "$tmp/venv"
"$tmp/venv/bin/pip" install -q torch==2.13.0 torchmetrics==1.9.0 transformers==5.23.0 tokenizers==0.23.3
cd "$tmp"
HF_HUB_OFFLINE=1 HF_HOME="$tmp/hf" OMP_NUM_THREADS=1 "$tmp/venv/bin/python" - <<'PY' 2>"$tmp/err" || { tail -3 "$tmp/err"; exit 1; }
import sys

import numpy as np
import torch
from torchmetrics.functional.text import bert_score, helper_embedding_metric, infolm
from torchmetrics.text import BERTScore
from transformers import BertConfig, BertForMaskedLM, BertTokenizerFast

WORDS = [f"word{i}" for i in range(40)]
open("vocab.txt", "w").write("\n".join(["[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]", *WORDS]))
tokenizer = BertTokenizerFast("vocab.txt")
tokenizer.save_pretrained("model")
torch.manual_seed(0)
BertForMaskedLM(BertConfig(
    vocab_size=45, hidden_size=32, num_hidden_layers=1, num_attention_heads=2, intermediate_size=32,
    max_position_embeddings=64, initializer_range=0.3,
)).save_pretrained("model")  # fmt: skip
numbers = np.random.default_rng(0)
SETTINGS = {"model_name_or_path": "model", "max_length": 32, "num_threads": 0}


def some(count):
    return list(numbers.choice(WORDS, count))


target = [some(count) for count in (9, 3, 14, 6, 11, 4, 12, 7)]
adds = [words + some(2 + 3 * i) if i % 2 else words for i, words in enumerate(target)]
replaces = [[some(1)[0] if i % 2 else word for i, word in enumerate(words)] for words in target]
target, adds, replaces = ([" ".join(words) for words in texts] for texts in (target, adds, replaces))


def together(preds):
    """F1 of all pairs in one call."""
    return torch.as_tensor(bert_score(preds, target, **SETTINGS)["f1"])


def single(preds, target):
    """F1 of each pair in a call of its own."""
    return torch.cat([bert_score([p], [t], **SETTINGS)["f1"].reshape(1) for p, t in zip(preds, target)])


def twice(texts):
    """The texts, taken two times at the indices that sort them by length."""
    order = torch.tensor([len(tokenizer(text)["input_ids"]) for text in texts]).argsort()
    return [texts[i] for i in order[order]]


def same(a, b):
    return torch.allclose(a, b, atol=1e-4)


true = {"adds": single(adds, target), "replaces": single(replaces, target)}
said = {"adds": together(adds), "replaces": together(replaces)}
for name in true:
    print(f"{name:8}: mean F1 {true[name].mean():.2f} by single pairs, {said[name].mean():.2f} in one call")
print("  adds, by single pairs:", [round(v, 2) for v in true["adds"].tolist()])
print("  adds, in one call    :", [round(v, 2) for v in said["adds"].tolist()])
by_class = BERTScore(**SETTINGS)
by_class.update(adds, target)
other_pairs = single(twice(adds), twice(target))
print("in one call, the class:", same(by_class.compute()["f1"], said["adds"]),
      "; explained by the indices taken twice:", same(other_pairs, said["adds"]))  # fmt: skip
print("the references with themselves:", together(target).min().item())


def info(preds, target):
    """InfoLM of each text."""
    return infolm(preds, target, "model", idf=False, max_length=32, num_threads=0, verbose=False,
                  return_sentence_level_score=True)[1]  # fmt: skip


info_single = torch.cat([info([p], [t]).reshape(1) for p, t in zip(adds, target)])
info_said = info(adds, target)
print(f"infolm: mean {info_single.mean():.2f} by single pairs, {info_said.mean():.2f} in one call")
helper_embedding_metric._sort_data_according_length = lambda ids, mask: (ids, mask, torch.arange(len(ids)))
unsorted = {"adds": together(adds), "replaces": together(replaces)}
print("in one call, without sorting:", {name: round(v.mean().item(), 2) for name, v in unsorted.items()})

if not (true["adds"].mean() > true["replaces"].mean() + 0.03 and said["adds"].mean() < said["replaces"].mean()):
    sys.exit("not as described: the systems stand in the right order")
if not same(other_pairs, said["adds"]) or same(true["adds"], said["adds"]):
    sys.exit("not as described: the right pairs are compared")
if not same(said["replaces"].sort().values, true["replaces"].sort().values):
    sys.exit("not as described: equal lengths are not compared rightly")
if together(target).min() < 0.999 or not all(same(unsorted[name], true[name]) for name in true):
    sys.exit("not as described: without sorting it is not right")
if same(info_said, info_single) or not same(info(adds, target), info_single):
    sys.exit("not as described: infolm is right, or is not without sorting")
PY
