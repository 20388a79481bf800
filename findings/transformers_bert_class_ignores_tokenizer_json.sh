#!/usr/bin/env bash
# transformers 5.23.0 with tokenizers 0.23.3
#
# One would guess: AutoTokenizer reads a tokenizer.json, transformers' own format, as the tokenizers
# library wrote it.
# What happens: for a folder whose config.json says "bert", only the vocabulary, the added tokens and
# the post-processor come from it. Normalizer, pre-tokenizer and the limit of letters are BERT's
# defaults, unless tokenizer_config.json repeats them (three of the five below cannot be repeated
# there): a cased vocabulary is lower-cased, and its words become [UNK].
# Who is hurt: whoever trains a tokenizer with the library, saves tokenizer.json beside the model and
# loads the folder: German keeps no Umlaut, a cased model reads lower case.
set -euo pipefail

tmp=$(mktemp -d)
trap 'rm -rf "$tmp"' EXIT
python3 -m venv "$tmp/venv"
"$tmp/venv/bin/pip" install -q tokenizers==0.23.3 transformers==5.23.0
export HF_HUB_OFFLINE=1
cat > "$tmp/read.py" <<'PY'
import json
import sys
from pathlib import Path

from tokenizers import Tokenizer, models, normalizers, pre_tokenizers
from transformers import AutoTokenizer

folder = Path(sys.argv[1])
words = ["[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]", "Über", "über", "uber", "uber-alles", "a", "##a"]


def both(text, limit=100, splitter=None, **settings):
    """The tokens of the library and of AutoTokenizer for one and the same tokenizer.json."""
    model = models.WordPiece({w: i for i, w in enumerate(words)}, unk_token="[UNK]",
                             max_input_chars_per_word=limit)
    tokenizer = Tokenizer(model)
    tokenizer.normalizer = normalizers.BertNormalizer(**settings)
    tokenizer.pre_tokenizer = splitter or pre_tokenizers.BertPreTokenizer()
    tokenizer.add_special_tokens(words[:5])
    tokenizer.save(str(folder / "tokenizer.json"))
    (folder / "config.json").write_text(json.dumps({"model_type": "bert"}))
    read = AutoTokenizer.from_pretrained(folder)
    ids = read(text, add_special_tokens=False)["input_ids"]
    return tokenizer.encode(text).tokens, read.convert_ids_to_tokens(ids)


cases = {
    "lowercase false": both("Über", lowercase=False),
    "strip_accents false": both("Über", strip_accents=False),
    "clean_text false": both("a\x00a", clean_text=False),
    "max_input_chars_per_word 3": both("aaaa", limit=3),
    "pre_tokenizer WhitespaceSplit": both("uber-alles", splitter=pre_tokenizers.WhitespaceSplit()),
}
for name, (library, auto) in cases.items():
    print(f"{name}: library {library}, AutoTokenizer {auto}")
if any(library == auto for library, auto in cases.values()):
    raise SystemExit("transformers no longer behaves as described here")
PY
mkdir "$tmp/folder"
"$tmp/venv/bin/python" "$tmp/read.py" "$tmp/folder" 2> "$tmp/log" || { cat "$tmp/log"; exit 1; }
