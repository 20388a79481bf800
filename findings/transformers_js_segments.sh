#!/usr/bin/env bash
# @huggingface/transformers (transformers.js) 4.3.1, AutoTokenizer, beside transformers 5.23.0
#
# Guess: a tokenizer whose tokenizer_config.json lists token_type_ids among its model_input_names, and
# whose tokenizer.json numbers a pair's segments, gives token_type_ids for a pair, as AutoTokenizer in
# Python does with the same files.
# What happens: transformers.js decides by the class's name alone. With tokenizer_class
# PreTrainedTokenizerFast (what transformers' generic class writes) a pair has no token_type_ids; the
# model then gets zeros for both sentences, and pair classification answers otherwise than in Python,
# without a word. With BertTokenizer over the same tokenizer.json they are there.
# Who is hurt: whoever serves a pair classifier or a reader of questions in a browser.
set -euo pipefail
tmp=$(mktemp -d)
trap 'rm -rf "$tmp"' EXIT
python3 -m venv "$tmp/venv"
"$tmp/venv/bin/pip" install -q transformers==5.23.0 tokenizers==0.23.3
cd "$tmp"
"$tmp/venv/bin/python" - <<'PY' 2>"$tmp/err" || { tail -3 "$tmp/err"; exit 1; }
import json, shutil
from tokenizers import Tokenizer, models, pre_tokenizers, processors
from transformers import AutoTokenizer, PreTrainedTokenizerFast

words = ["[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]", "one", "two"]
fast = Tokenizer(models.WordPiece({w: i for i, w in enumerate(words)}, unk_token="[UNK]"))
fast.pre_tokenizer = pre_tokenizers.Whitespace()
fast.post_processor = processors.BertProcessing(("[SEP]", 3), ("[CLS]", 2))
PreTrainedTokenizerFast(
    tokenizer_object=fast, pad_token="[PAD]", unk_token="[UNK]", cls_token="[CLS]",
    sep_token="[SEP]", mask_token="[MASK]",
    model_input_names=["input_ids", "token_type_ids", "attention_mask"],
).save_pretrained("PreTrainedTokenizerFast")  # fmt: skip
shutil.copytree("PreTrainedTokenizerFast", "BertTokenizer")
for name in ("PreTrainedTokenizerFast", "BertTokenizer"):
    about = json.load(open(f"{name}/tokenizer_config.json"))
    about["tokenizer_class"] = name
    json.dump(about, open(f"{name}/tokenizer_config.json", "w"))
    json.dump({"model_type": "bert"}, open(f"{name}/config.json", "w"))
    print("Python,", name, AutoTokenizer.from_pretrained(name)("one", "two")["token_type_ids"])
PY
echo '{"type": "module"}' > package.json
ONNXRUNTIME_NODE_INSTALL=skip npm install --silent @huggingface/transformers@4.3.1
cat > look.js <<'JS'
import { AutoTokenizer, env } from '@huggingface/transformers';

env.allowRemoteModels = false;
env.localModelPath = process.cwd();
const found = {};
for (const name of ['PreTrainedTokenizerFast', 'BertTokenizer']) {
    const tokenizer = await AutoTokenizer.from_pretrained(name);
    const pair = tokenizer('one', { text_pair: 'two' });
    found[name] = pair.token_type_ids ? pair.token_type_ids.tolist()[0].map(Number) : null;
    console.log('JavaScript,', name, found[name]);
}
if (found.PreTrainedTokenizerFast !== null || found.BertTokenizer?.join() !== '0,0,0,1,1') {
    console.log('not as described');
    process.exit(1);
}
JS
node look.js
