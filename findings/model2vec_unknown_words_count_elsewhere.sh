#!/usr/bin/env bash
# model2vec 0.10.0 and sentence-transformers 6.2.0 (StaticEmbedding), one folder for both
#
# One would guess: sentence-transformers, which reads model2vec's folders (SentenceTransformer(folder)
# and StaticEmbedding.from_model2vec), gives model2vec's vectors. For known words it does, with token
# weights and mappings, too.
# What happens: model2vec leaves unknown tokens out of the mean. sentence-transformers counts them, with
# the vector in the row of [UNK], which nobody trained. In a folder that save_pretrained of model2vec
# wrote, a text with one unknown word of five has a cosine of about 0.9 to itself. Texts of unknown
# words only are the zero vector in one, and all the same vector, of cosine 1, in the other.
# Who is hurt: whoever distils with words of a domain (use_subword=False) or keeps a small vocabulary,
# indexes with one of the two programs and searches with the other; and whoever searches with
# sentence-transformers alone: unknown words attract each other. Nothing is said.
# (Issue 51 of model2vec's Rust port tells of the same there, for Unigram models.)
# What to do instead: set the row of [UNK] to zero before saving; then only the divisor differs, and
# the cosine is 1.
set -euo pipefail
tmp=$(mktemp -d)
trap 'rm -rf "$tmp"' EXIT
python3 -m venv "$tmp/venv"
"$tmp/venv/bin/pip" install -q torch==2.13.0 transformers==5.23.0 sentence-transformers==6.2.0 model2vec==0.10.0
cd "$tmp"
HF_HUB_OFFLINE=1 HF_HOME="$tmp/hf" OMP_NUM_THREADS=1 "$tmp/venv/bin/python" - <<'PY' 2>"$tmp/err" || { tail -3 "$tmp/err"; exit 1; }
import random
import sys

import numpy as np
from model2vec import StaticModel
from sentence_transformers import SentenceTransformer
from tokenizers import Tokenizer, models, pre_tokenizers

rng = np.random.default_rng(0)
random.seed(0)
KNOWN = [f"known{number}" for number in range(300)]
STRANGE = [f"strange{number}" for number in range(300)]
vocabulary = {word: number for number, word in enumerate(["[PAD]", "[UNK]", *KNOWN])}
vectors = rng.normal(size=(len(vocabulary), 64)).astype("float32")


def text(strange):
    """Five words, of which so many are unknown."""
    words = random.sample(KNOWN, 5 - strange) + random.sample(STRANGE, strange)
    return " ".join(random.sample(words, 5))


def encoders(vectors):
    tokenizer = Tokenizer(models.WordLevel(vocabulary, unk_token="[UNK]"))
    tokenizer.pre_tokenizer = pre_tokenizers.Whitespace()
    StaticModel(vectors, tokenizer).save_pretrained("folder")
    return StaticModel.from_pretrained("folder"), SentenceTransformer("folder", device="cpu")


def cosines(some, others):
    norms = np.linalg.norm(some, axis=1) * np.linalg.norm(others, axis=1)
    return (some * others).sum(1) / norms


def compare(vectors):
    """The mean cosine of a text's two vectors, by its number of unknown words (0 to 4)."""
    first, second = encoders(vectors)
    texts = [[text(strange) for _ in range(200)] for strange in range(5)]
    return [cosines(first.encode(part), second.encode(part)).mean().item() for part in texts]


found = compare(vectors)
first, second = encoders(vectors)
pair = [text(5), text(5)]
zero = np.abs(first.encode(pair)).max().item()
same = cosines(*(second.encode(pair)[[row]] for row in (0, 1))).item()
vectors[vocabulary["[UNK]"]] = 0
repaired = compare(vectors)
print("cosine of the two programs' vectors with 0 to 4 unknown words of 5:", np.round(found, 3))
print("the same with a row of zeros for [UNK]:                            ", np.round(repaired, 3))
print(f"two texts without a known word: largest number {zero} in model2vec;", end=" ")
print(f"cosine {same:.3f} in sentence-transformers")
falls = all(later < earlier - 0.05 for earlier, later in zip(found, found[1:]))
if min([found[0], *repaired]) < 0.9999 or not falls or zero != 0 or same < 0.9999:
    print("not as described")
    sys.exit(1)
PY
