#!/usr/bin/env bash
# transformers 5.23.0 with tokenizers 0.23.3
#
# One would guess: split_special_tokens=True makes a special token that is written in a text plain
# text, as its documentation says ("if False, <s> is one token, if True ['<', 's', '>']").
# What happens: so it is for BERT's WordPiece. For Unigram models (XLM-R, ALBERT, mT5, DeBERTa-v2)
# nothing changes but a space before it: </s> and <mask> stand in the model's own list of pieces with
# the best score there is, and are found there. SentencePiece itself never makes them from a text.
# Who is hurt: whoever encodes texts that speak of such tokens (web pages, code, documentation) and
# asks for them to be plain: the model reads ends of texts and masks within the text.
set -euo pipefail

tmp=$(mktemp -d)
trap 'rm -rf "$tmp"' EXIT
python3 -m venv "$tmp/venv"
"$tmp/venv/bin/pip" install -q tokenizers==0.23.3 transformers==5.23.0
export HF_HUB_OFFLINE=1
cat > "$tmp/split.py" <<'PY'
from transformers import BertTokenizer, XLMRobertaTokenizer

letters = [(sign, -4.0) for sign in "<>/abcdkms"]
special = [(name, 0.0) for name in ("<s>", "<pad>", "</s>", "<unk>")]
pieces = [*special, ("▁the", -2.0), ("▁", -3.0), *letters, ("<mask>", 0.0)]
xlmr = XLMRobertaTokenizer(vocab=pieces, split_special_tokens=True)
words = ["[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]", "the", "[", "]", "sep"]
bert = BertTokenizer(vocab={w: id for id, w in enumerate(words)}, split_special_tokens=True)

plain = bert.convert_ids_to_tokens(bert("the [SEP]", add_special_tokens=False)["input_ids"])
found = xlmr.convert_ids_to_tokens(xlmr("the </s> <mask>", add_special_tokens=False)["input_ids"])
print("BERT:  'the [SEP]'       ", plain)
print("XLM-R: 'the </s> <mask>' ", found)
if plain != ["the", "[", "sep", "]"] or not {"</s>", "<mask>"} <= set(found):
    raise SystemExit("transformers no longer behaves as described here")
PY
"$tmp/venv/bin/python" "$tmp/split.py" 2> "$tmp/log" || { cat "$tmp/log"; exit 1; }
