#!/usr/bin/env bash
# peft 0.21.2 (add_weighted_adapter) with transformers 5.23.0 and torch 2.13.0
#
# One would guess: add_weighted_adapter(["default"], [1.0], "copy") makes a copy of an adapter, and with 0.7
# instead of 1.0 one whose change of the encoder is 0.7 as large: the way back towards the pre-trained model
# that WiSE-FT proposes. The trained classifier belongs to the adapter (it is saved and loaded with it) and
# comes along; for two adapters with a classifier each, peft refuses and says why.
# What happens: only LoRA's matrices are taken over. The new adapter's classifier is a fresh copy of the
# *base* model's, which for a pre-trained encoder is drawn at random at each load. With weight 1.0, an
# accuracy of 1.00 becomes one between 0.00 and 0.43 (chance: 0.25). In the process that trained the adapter
# it is nearly right, since the encoder was trained around that very draw: a trial there shows nothing, an
# adapter read from its folder does. For several adapters the classifiers are checked; for one, nothing is
# said. The documentation of add_weighted_adapter does not name the heads.
# Who is hurt: whoever reads an adapter and looks for its best weight on a validation set: every weight but
# the adapter itself is at chance, and the result reads as "scaling hurts". The same holds for heads of
# token classification and whatever else modules_to_save names.
# What to do instead: copy the head, as below, or scale with peft.helpers.rescale_adapter_scale, which
# leaves it.
set -euo pipefail
tmp=$(mktemp -d)
trap 'rm -rf "$tmp"' EXIT
python3 -m venv "$tmp/venv"
"$tmp/venv/bin/pip" install -q torch==2.13.0 transformers==5.23.0 peft==0.21.2
cd "$tmp"
HF_HUB_OFFLINE=1 OMP_NUM_THREADS=1 "$tmp/venv/bin/python" - <<'PY' 2>"$tmp/err" || { tail -3 "$tmp/err"; exit 1; }
import sys

import torch
from peft import LoraConfig, PeftModel, TaskType, get_peft_model
from peft.helpers import rescale_adapter_scale
from transformers import BertConfig, BertForSequenceClassification, BertModel

torch.manual_seed(0)
config = BertConfig(
    vocab_size=40, hidden_size=32, num_hidden_layers=2, num_attention_heads=2,
    intermediate_size=64, num_labels=4, hidden_dropout_prob=0.0, initializer_range=0.2,
)  # fmt: skip
BertModel(config, add_pooling_layer=True).save_pretrained("encoder")  # stands for a pre-trained one
lora = LoraConfig(task_type=TaskType.SEQ_CLS, target_modules="all-linear", r=8)


def base():
    return BertForSequenceClassification.from_pretrained("encoder", num_labels=4)


model = get_peft_model(base(), lora)
ids = torch.randint(4, 40, (1200, 8))
labels = ids[:, 1] % 4  # the class stands in the second token
train, test = slice(0, 1000), slice(1000, None)

optimizer = torch.optim.AdamW((p for p in model.parameters() if p.requires_grad), lr=5e-3)
for step in range(300):
    batch = torch.randint(0, 1000, (64,))
    model.train()(input_ids=ids[batch], labels=labels[batch]).loss.backward()
    optimizer.step()
    optimizer.zero_grad()


def accuracy(model):
    with torch.no_grad():
        answers = model.eval()(input_ids=ids[test]).logits.argmax(-1)
    return (answers == labels[test]).float().mean().item()


def weighted(model, name, weight, keep_head=False):
    model.add_weighted_adapter(["default"], [weight], name, combination_type="linear")
    if keep_head:
        heads = model.base_model.model.classifier.modules_to_save
        heads[name].load_state_dict(heads["default"].state_dict())
    model.set_adapter(name)
    result = accuracy(model)
    model.set_adapter("default")
    return result


at_once = accuracy(model), weighted(model, "copy", 1.0)
print("in the process that trained it: the adapter {:.2f}, a weighted one of weight 1 {:.2f}".format(*at_once))
model.save_pretrained("adapter", selected_adapters=["default"])
bare, kept, scaled = {}, {}, {}
for seed in range(4):
    torch.manual_seed(seed)  # the head that from_pretrained draws
    model = PeftModel.from_pretrained(base(), "adapter")
    read = accuracy(model)
    for weight in (1.0, 0.8):
        bare[seed, weight] = weighted(model, f"bare{weight:.0%}", weight)
        kept[seed, weight] = weighted(model, f"kept{weight:.0%}", weight, keep_head=True)
        with rescale_adapter_scale(model, multiplier=weight):
            scaled[seed, weight] = accuracy(model)
        print(f"read again: {read:.2f}; add_weighted_adapter(['default'], [{weight}]) "
              f"{bare[seed, weight]:.2f}, with the head copied {kept[seed, weight]:.2f}, "
              f"rescale_adapter_scale {scaled[seed, weight]:.2f}")  # fmt: skip
try:
    model.add_adapter("other", lora)
    model.add_weighted_adapter(["default", "other"], [0.5, 0.5], "both", combination_type="linear")
    refused = False
except ValueError as error:
    refused = True
    print("two adapters with a head:", error)
mean = sum(bare.values()) / len(bare)
print(f"mean over the draws, with the weighted adapter's own head: {mean:.2f}; chance 0.25")
close = all(abs(kept[case] - scaled[case]) < 0.01 for case in kept)
if not refused or not close or read < 0.95 or mean > 0.5 or min(kept.values()) < 0.95:
    print("not as described")
    sys.exit(1)
PY
