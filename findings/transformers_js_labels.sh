#!/usr/bin/env bash
# @huggingface/transformers (transformers.js) 4.3.1, pipeline('text-classification'), with a model that
# transformers 5.23.0 saved and torch 2.13.0 exported to ONNX
#
# Guess: a classifier of two classes that save_pretrained writes is served by transformers.js' pipeline
# with the labels that Python's pipeline gives, LABEL_0 and LABEL_1.
# What happens: save_pretrained leaves id2label out where it is the default, two classes without names;
# transformers.js knows no default and ends in a TypeError ("Cannot read properties of undefined").
# With three classes, or two with names, the same works.
# Who is hurt: whoever fine-tunes a binary classifier without naming the classes, and serves it in a
# browser.
set -euo pipefail
tmp=$(mktemp -d)
trap 'rm -rf "$tmp"' EXIT
python3 -m venv "$tmp/venv"
"$tmp/venv/bin/pip" install -q torch==2.13.0 numpy transformers==5.23.0 onnx==1.23.2 onnxscript==0.7.2
cd "$tmp"
"$tmp/venv/bin/python" - <<'PY' 2>"$tmp/err" || { tail -3 "$tmp/err"; exit 1; }
import json, os
import torch
from transformers import BertConfig, BertForSequenceClassification, BertTokenizer, pipeline

words = ["[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]", "one", "two"]
for classes in (2, 3):
    folder = f"classes{classes}"
    model = BertForSequenceClassification(BertConfig(
        vocab_size=7, hidden_size=8, num_hidden_layers=1, num_attention_heads=2,
        intermediate_size=8, max_position_embeddings=16, num_labels=classes,
        attn_implementation="eager",
    )).eval()  # fmt: skip
    model.save_pretrained(folder)
    BertTokenizer(vocab={word: id for id, word in enumerate(words)}).save_pretrained(folder)
    print(folder, "id2label in config.json:", "id2label" in json.load(open(f"{folder}/config.json")),
          "· Python says", pipeline("text-classification", folder)("one two")[0]["label"])
    names = ["input_ids", "attention_mask", "token_type_ids"]
    ids = torch.tensor([[2, 5, 6, 3]])
    os.makedirs(f"{folder}/onnx")
    torch.onnx.export(
        model, (ids, torch.ones_like(ids), torch.zeros_like(ids)), f"{folder}/onnx/model.onnx",
        input_names=names, output_names=["logits"], dynamo=True, verbose=False,
    )  # fmt: skip
PY
echo '{"type": "module"}' > package.json
ONNXRUNTIME_NODE_INSTALL=skip npm install --silent @huggingface/transformers@4.3.1
cat > look.js <<'JS'
import { env, pipeline } from '@huggingface/transformers';

env.allowRemoteModels = false;
env.localModelPath = process.cwd();
const found = {};
for (const name of ['classes2', 'classes3']) {
    try {
        const classify = await pipeline('text-classification', name, { dtype: 'fp32' });
        found[name] = (await classify('one two'))[0].label;
    } catch (error) {
        found[name] = String(error);
    }
    console.log(name, 'JavaScript says', found[name]);
}
if (!/undefined|null/.test(found.classes2) || !found.classes3.startsWith('LABEL_')) {
    console.log('not as described');
    process.exit(1);
}
JS
node look.js
