#!/usr/bin/env bash
# tokenizers 0.23.3 (and transformers 5.23.0, whose add_tokens asks it)
#
# One would guess: add_tokens gives a new token an id that no other token has.
# What happens: the new id is the *number* of tokens, not the highest id plus one. Where ids do not
# begin at 0, or one is missing, the new token gets the id of a token that is there: both are
# encoded to the same id, and decode gives only the new one. The return value says "1 added".
# transformers makes such vocabularies of a vocab.txt with a line twice, which it reads without a
# word (the later line's number counts, the earlier one's is nobody's).
# Who is hurt: whoever adds [E1] or a domain's words to such a tokenizer: the new token trains the
# row of an old one, and resize_token_embeddings(len(tokenizer)) makes the table no larger.
set -euo pipefail

tmp=$(mktemp -d)
trap 'rm -rf "$tmp"' EXIT
python3 -m venv "$tmp/venv"
"$tmp/venv/bin/pip" install -q tokenizers==0.23.3 transformers==5.23.0
export HF_HUB_OFFLINE=1
cat > "$tmp/add.py" <<'PY'
import sys
from pathlib import Path

from tokenizers import Tokenizer, models, pre_tokenizers
from transformers import BertTokenizer

words = ["[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]", "the", "cat", "sat"]
tokenizer = Tokenizer(models.WordPiece({w: id for id, w in enumerate(words, 1)}, unk_token="[UNK]"))
tokenizer.pre_tokenizer = pre_tokenizers.BertPreTokenizer()
added = tokenizer.add_tokens(["[E1]"])
shared = tokenizer.encode("sat [E1]").ids
print(f"ids from 1 on: {added} added; 'sat [E1]' has the ids {shared}: {tokenizer.decode(shared)!r}")

folder = Path(sys.argv[1])
(folder / "vocab.txt").write_text("\n".join([*words[:6], "the", *words[6:]]) + "\n")
bert = BertTokenizer.from_pretrained(folder)
before = len(bert)
added = bert.add_tokens(["[E1]"])
twice = bert("sat [E1]", add_special_tokens=False)["input_ids"]
print(f"vocab.txt with a line twice: {before} tokens, {added} added, now {len(bert)}; "
      f"'sat [E1]' has the ids {twice}: {bert.decode(twice)!r}")
if shared[0] != shared[1] or twice[0] != twice[1]:
    raise SystemExit("add_tokens no longer behaves as described here: the new id is a free one")
PY
mkdir "$tmp/folder"
"$tmp/venv/bin/python" "$tmp/add.py" "$tmp/folder" 2> "$tmp/log" || { cat "$tmp/log"; exit 1; }
