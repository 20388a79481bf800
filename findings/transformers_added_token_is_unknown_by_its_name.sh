#!/usr/bin/env bash
# transformers 5.23.0 with tokenizers 0.23.3
#
# One would guess: convert_tokens_to_ids(tokenizer.tokenize(text)) gives the ids of tokenizer(text),
# which is how many programs of NER and relation extraction align words and tokens.
# What happens: after add_tokens(["[E1]"]) on an uncased BERT, tokenize gives "[e1]", the normalised
# text, which is no token of the vocabulary; its id is that of [UNK]. tokenizer(text) gives the right
# id. (A token added as a special one is not normalised, and is right in both ways.)
# Who is hurt: whoever marks entities with own tokens and makes the ids in two steps: every marker is
# [UNK] and the rows that were added are never trained, without a word.
set -euo pipefail

tmp=$(mktemp -d)
trap 'rm -rf "$tmp"' EXIT
python3 -m venv "$tmp/venv"
"$tmp/venv/bin/pip" install -q tokenizers==0.23.3 transformers==5.23.0
export HF_HUB_OFFLINE=1
cat > "$tmp/tokens.py" <<'PY'
from transformers import BertTokenizer

words = ["[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]", "the", "cat", "sat"]
text = "the [E1] cat"
ways = {}
for special in (False, True):
    tokenizer = BertTokenizer(vocab={word: id for id, word in enumerate(words)})
    tokenizer.add_tokens(["[E1]"], special_tokens=special)
    tokens = tokenizer.tokenize(text)
    once = tokenizer(text, add_special_tokens=False)["input_ids"]
    twice = tokenizer.convert_tokens_to_ids(tokens)
    print(f"special={special}: ids {once}; tokens {tokens}, and their ids {twice}")
    ways[special] = (once, twice)
unknown = words.index("[UNK]")
if ways[True][0] != ways[True][1] or ways[False] != ([5, 8, 6], [5, unknown, 6]):
    raise SystemExit("transformers no longer behaves as described here")
PY
"$tmp/venv/bin/python" "$tmp/tokens.py" 2> "$tmp/log" || { cat "$tmp/log"; exit 1; }
