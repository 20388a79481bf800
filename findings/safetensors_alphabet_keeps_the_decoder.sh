#!/usr/bin/env bash
# safetensors 0.8.0 (torch.save_model), accelerate 1.15.0 (Accelerator.save_model), read by transformers
# 5.23.0, with torch 2.13.0
#
# One would guess: a masked language model that is saved with safetensors' save_model, which is there for
# tied weights, is a checkpoint like that of save_pretrained: as masked language model, as encoder or as
# classifier, it is read with the trained word embeddings.
# What happens: of two names for one matrix the first in the alphabet is kept. For BERT, ALBERT, ELECTRA
# and DistilBERT that is the embeddings' name. For RoBERTa, XLM-R, ModernBERT and DeBERTa it is the
# decoder's ("lm_head" before "roberta", "decoder" before "model", "cls" before "deberta"). Read as a
# masked language model the file is right, since the two are tied again. Read as an encoder or a
# classifier it has no word embeddings: they are drawn at random, under all the trained layers. One line in
# the list of missing weights says so, among those of the new head that are missing as they should be.
# accelerate keeps the first name in the model's own order, and that is the decoder's for XLM-R.
# Who is hurt: whoever pre-trains in a loop of their own, checks the file by reading it as what it was, and
# then fine-tunes from it or makes sentence vectors: fine-tuning starts with unknown words, and its score
# is that of a model hardly pre-trained.
# What to do instead: save_pretrained, or read the file once as masked language model and save that.
# (safetensors' issue 265, closed without a fix, saw it in a converted roberta-base.)
set -euo pipefail
tmp=$(mktemp -d)
trap 'rm -rf "$tmp"' EXIT
python3 -m venv "$tmp/venv"
"$tmp/venv/bin/pip" install -q torch==2.13.0 transformers==5.23.0 safetensors==0.8.0 accelerate==1.15.0
cd "$tmp"
HF_HUB_OFFLINE=1 OMP_NUM_THREADS=1 "$tmp/venv/bin/python" - <<'PY' 2>"$tmp/err" || { tail -3 "$tmp/err"; exit 1; }
import sys
from pathlib import Path

import torch
import transformers
from accelerate import Accelerator
from safetensors.torch import save_model

transformers.logging.set_verbosity_error()
sizes = {"vocab_size": 60, "hidden_size": 32, "num_hidden_layers": 2, "num_attention_heads": 2,
         "intermediate_size": 64, "pad_token_id": 0, "bos_token_id": 1, "eos_token_id": 2,
         "cls_token_id": 1, "sep_token_id": 2, "initializer_range": 0.2}  # fmt: skip
ids = torch.randint(5, 60, (16, 12), generator=torch.Generator().manual_seed(0))
accelerator = Accelerator(cpu=True)


def by_safetensors(model, folder):
    model.config.save_pretrained(folder)
    save_model(model, f"{folder}/model.safetensors", metadata={"format": "pt"})


def by_accelerate(model, folder):
    model.config.save_pretrained(folder)
    accelerator.save_model(model, folder)


def by_transformers(model, folder):
    model.save_pretrained(folder)


def vectors(encoder):
    with torch.no_grad():
        means = encoder.eval()(ids).last_hidden_state.mean(1)
    return means - means.mean(0)  # what tells one text from another


def read_again(name, save):
    """Are the word embeddings there as masked LM, as encoder; and the mean cosine of text vectors."""
    torch.manual_seed(0)
    config = getattr(transformers, f"{name}Config")(**sizes)
    model = getattr(transformers, f"{name}ForMaskedLM")(config)
    words = model.get_input_embeddings().weight
    folder = Path(f"{name}_{save.__name__}")
    folder.mkdir()
    save(model, folder)
    torch.manual_seed(1)  # another process draws other numbers
    as_lm = getattr(transformers, f"{name}ForMaskedLM").from_pretrained(folder)
    encoder, report = getattr(transformers, f"{name}Model").from_pretrained(
        folder, output_loading_info=True
    )
    same = [torch.equal(read.get_input_embeddings().weight, words) for read in (as_lm, encoder)]
    cosine = torch.cosine_similarity(vectors(model.base_model), vectors(encoder)).mean().item()
    print(f"{name:11} {save.__name__:16} words read as masked LM {same[0]}, as encoder {same[1]!s:5}; "
          f"text vectors' cosine to the saved model's {cosine:5.2f}; "
          f"missing: {sorted(report['missing_keys'])}")  # fmt: skip
    return (*same, cosine)


seen = {}
for name in ("Bert", "Electra", "Roberta", "XLMRoberta", "ModernBert", "DebertaV2"):
    for save in (by_safetensors, by_accelerate, by_transformers):
        seen[name, save.__name__] = read_again(name, save)
lost = {case for case, (_, words, _) in seen.items() if not words}
expected = {(name, "by_safetensors") for name in ("Roberta", "XLMRoberta", "ModernBert", "DebertaV2")}
expected |= {("XLMRoberta", "by_accelerate")}
if lost != expected or not all(as_lm for as_lm, _, _ in seen.values()) or any(
    (cosine > 0.5) == (case in lost) for case, (_, _, cosine) in seen.items()
):
    print("not as described")
    sys.exit(1)
PY
