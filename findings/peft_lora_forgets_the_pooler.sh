#!/usr/bin/env bash
# peft 0.21.2, with transformers 5.23.0, torch 2.13.0
#
# One would guess: LoraConfig(task_type=SEQ_CLS) saves all that is new in a classifier beside LoRA's
# own matrices, so that the adapter on the same checkpoint gives the same answers when read again.
# What happens: it saves what is called classifier or score. DeBERTa's dense layer before it is called
# pooler, and no released DeBERTa-v2 or v3 has one in its checkpoint (nor has a BERT that was
# pre-trained without NSP): it is drawn at random, never trained, not saved, and drawn anew when the
# adapter is read. DistilBERT's and RoBERTa's such layers end in "classifier", and are saved.
# Who is hurt: whoever fine-tunes with LoRA and serves the adapter elsewhere: evaluation right after
# training is good, the same adapter answers otherwise later. No word but the usual "newly initialized"
# at both loads, and a fixed seed can hide it. modules_to_save=["pooler"] keeps it.
set -euo pipefail
tmp=$(mktemp -d)
trap 'rm -rf "$tmp"' EXIT
python3 -m venv "$tmp/venv"
"$tmp/venv/bin/pip" install -q torch==2.13.0 transformers==5.23.0 peft==0.21.2
cd "$tmp"
HF_HUB_OFFLINE=1 "$tmp/venv/bin/python" - <<'PY' 2>"$tmp/err" || { tail -3 "$tmp/err"; exit 1; }
import sys

import torch
import transformers
from peft import LoraConfig, PeftModel, TaskType, get_peft_model

sizes = {"vocab_size": 60, "hidden_size": 32, "num_hidden_layers": 2, "num_attention_heads": 2,
         "intermediate_size": 64, "pad_token_id": 0}  # fmt: skip
ids = torch.randint(5, 60, (64, 12), generator=torch.Generator().manual_seed(0))


def logits(model):
    with torch.no_grad():
        return model.eval()(input_ids=ids).logits


def read_again(name, target, **more):
    """The largest change of a logit, and how many of 64 answers change, after save and load."""
    torch.manual_seed(0)
    config = getattr(transformers, f"{name}Config")(**sizes)
    getattr(transformers, f"{name}ForMaskedLM")(config).save_pretrained("base")
    kind = getattr(transformers, f"{name}ForSequenceClassification")
    lora = LoraConfig(task_type=TaskType.SEQ_CLS, target_modules=target, **more)
    model = get_peft_model(kind.from_pretrained("base"), lora)
    for weight in model.parameters():
        if weight.requires_grad:  # stands for training
            torch.nn.init.normal_(weight, std=0.3)
    model.save_pretrained("adapter")
    before = logits(model)
    after = logits(PeftModel.from_pretrained(kind.from_pretrained("base"), "adapter"))
    changed = (before.argmax(-1) != after.argmax(-1)).sum().item()
    return (before - after).abs().max().item(), changed


attention = ["query_proj", "value_proj"]
cases = {
    "DeBERTa-v2": read_again("DebertaV2", attention),
    "DeBERTa-v2, modules_to_save=['pooler']": read_again(
        "DebertaV2", attention, modules_to_save=["pooler"]
    ),
    "RoBERTa": read_again("Roberta", ["query", "value"]),
}
for name, (apart, changed) in cases.items():
    print(f"{name}: logits change by up to {apart:.2f}, {changed} of 64 answers are others")
bare, *others = cases.values()
if bare[0] < 0.1 or not bare[1] or any(case[0] > 1e-5 for case in others):
    print("not as described")
    sys.exit(1)
PY
