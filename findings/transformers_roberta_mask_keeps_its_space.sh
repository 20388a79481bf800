#!/usr/bin/env bash
# transformers 5.23.0 with tokenizers 0.23.3; transformers 4.57.6 for comparison
#
# One would guess: a RoBERTa tokenizer read from vocab.json and merges.txt (what ByteLevelBPETokenizer
# .save_model writes, and fairseq conversions have) cuts "the <mask> cat" as the published one does:
# <mask> takes the space before it.
# What happens: in transformers 4 it did. In 5 the space stays as a token of its own, Ġ, before
# <mask>; only a tokenizer.json or a special_tokens_map.json with "lstrip": true brings it back.
# Who is hurt: whoever pre-trains or fills masks with an own vocabulary: after Ġ the model is asked
# for a word without its space, and fill-mask answers with word ends and punctuation. A model trained
# under 4 gets inputs that it never saw.
set -euo pipefail

tmp=$(mktemp -d)
trap 'rm -rf "$tmp"' EXIT
cat > "$tmp/mask.py" <<'PY'
import sys

from tokenizers import ByteLevelBPETokenizer
from transformers import RobertaTokenizerFast

learned = ByteLevelBPETokenizer()
special = ["<s>", "<pad>", "</s>", "<unk>", "<mask>"]
learned.train_from_iterator(["the old mill and the cat"] * 3, 290, 2, False, special)
learned.save_model(sys.argv[1])
tokenizer = RobertaTokenizerFast.from_pretrained(sys.argv[1])
ids = tokenizer("the <mask> cat", add_special_tokens=False)["input_ids"]
print(" ".join(tokenizer.convert_ids_to_tokens(ids)))
PY
export HF_HUB_OFFLINE=1
for version in 4.57.6 5.23.0; do
    python3 -m venv "$tmp/$version"
    "$tmp/$version/bin/pip" install -q "transformers==$version"
    mkdir "$tmp/folder$version"
    seen=$("$tmp/$version/bin/python" "$tmp/mask.py" "$tmp/folder$version" 2> "$tmp/log") \
        || { cat "$tmp/log"; exit 1; }
    echo "transformers $version: $seen"
done
if [[ "$seen" != "the Ġ <mask> Ġcat" ]]; then
    echo "transformers no longer behaves as described here"
    exit 1
fi
