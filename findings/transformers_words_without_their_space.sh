#!/usr/bin/env bash
# transformers 5.23.0 with tokenizers 0.23.3; transformers 4.57.6 for comparison
#
# One would guess: RobertaTokenizer given a list of words (is_split_into_words=True, as for NER)
# refuses unless it was made with add_prefix_space=True: so it was in transformers 4, because words
# without their space are other tokens than those of pre-training.
# What happens: in 5 the check is gone. ["the", "old", "cat"] gives the, old, cat, as if it were
# "theoldcat"; the text gives the, Ġold, Ġcat. And the generic class (PreTrainedTokenizerFast, now
# called TokenizersBackend) takes add_prefix_space=True without a word and does nothing with it where
# a tokenizer.json is read; in 4 it heeded it.
# Who is hurt: whoever fine-tunes a model with byte-level BPE to tag words: every word but the first is
# cut otherwise than in pre-training, often into more pieces, and the score is merely lower.
set -euo pipefail

tmp=$(mktemp -d)
trap 'rm -rf "$tmp"' EXIT
cat > "$tmp/words.py" <<'PY'
import sys

from tokenizers import ByteLevelBPETokenizer
from transformers import PreTrainedTokenizerFast, RobertaTokenizerFast

folder = sys.argv[1]
learned = ByteLevelBPETokenizer()
special = ["<s>", "<pad>", "</s>", "<unk>", "<mask>"]
learned.train_from_iterator(["the old mill and the cat"] * 3, 300, 2, False, special)
learned.save_model(folder)
learned.save(f"{folder}/tokenizer.json")


def tokens(tokenizer, text, **more):
    try:
        return " ".join(tokenizer(text, add_special_tokens=False, **more).tokens())
    except AssertionError as error:
        return f"refused: {str(error)[:45]}..."


words = "the old cat".split()
plain = RobertaTokenizerFast.from_pretrained(folder)
print("the text:", tokens(plain, "the old cat"))
print("the words:", tokens(plain, words, is_split_into_words=True))
spaced = RobertaTokenizerFast.from_pretrained(folder, add_prefix_space=True)
print("the words, add_prefix_space=True:", tokens(spaced, words, is_split_into_words=True))
generic = PreTrainedTokenizerFast.from_pretrained(folder, add_prefix_space=True)
print("so, generic class:", tokens(generic, words, is_split_into_words=True))
PY
export HF_HUB_OFFLINE=1
for version in 4.57.6 5.23.0; do
    python3 -m venv "$tmp/$version"
    "$tmp/$version/bin/pip" install -q "transformers==$version"
    mkdir "$tmp/folder$version"
    "$tmp/$version/bin/python" "$tmp/words.py" "$tmp/folder$version" > "$tmp/seen" 2> "$tmp/log" \
        || { cat "$tmp/log"; exit 1; }
    sed "s/^/transformers $version, /" "$tmp/seen"
    grep -q "^the words: refused" "$tmp/seen" && refused+=" $version" || true
done
if [[ "${refused:-}" != " 4.57.6" ]] || ! grep -qx "the words: the old cat" "$tmp/seen" \
    || ! grep -qx "the words, add_prefix_space=True: Ġthe Ġold Ġcat" "$tmp/seen" \
    || ! grep -qx "so, generic class: the old cat" "$tmp/seen"; then
    echo "transformers no longer behaves as described here"
    exit 1
fi
