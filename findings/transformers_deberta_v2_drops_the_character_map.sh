#!/usr/bin/env bash
# transformers 5.23.0 with tokenizers 0.23.3, sentencepiece 0.2.3, protobuf 7.36.2
#
# One would guess: DebertaV2Tokenizer gives the ids of the SentencePiece model that it reads (the
# released DeBERTa-v2 and v3 come as spm.model), or of a tokenizer.json that is right.
# What happens: the model's character map (nmt_nfkc) is left out. The ligature fi, the fraction 1/2 in
# one character, full-width letters become [UNK]; SentencePiece cuts them as plain letters and
# digits. The tokenizer.json that save_pretrained writes has lost the map for good, and a right one
# (DebertaV2Converter makes it) is read without it, too. XLM-R's and ALBERT's classes keep theirs.
# Who is hurt: whoever fine-tunes or serves DeBERTa-v3 on text out of PDFs or in East Asian
# typography: words turn into [UNK] that training never had there.
set -euo pipefail

tmp=$(mktemp -d)
trap 'rm -rf "$tmp"' EXIT
python3 -m venv "$tmp/venv"
"$tmp/venv/bin/pip" install -q tokenizers==0.23.3 transformers==5.23.0 sentencepiece==0.2.3 \
    protobuf==7.36.2
export HF_HUB_OFFLINE=1
cat > "$tmp/map.py" <<'PY'
import json
import sys
from pathlib import Path

import sentencepiece
from tokenizers import Tokenizer
from transformers import AutoTokenizer
from transformers.convert_slow_tokenizer import DebertaV2Converter

folder = Path(sys.argv[1])
lines = ["1/2 fine figure of office work: A B C", "one half of the flow, 12 files affine"] * 50
(folder / "text").write_text("\n".join(lines))
names = {"pad": "[PAD]", "bos": "[CLS]", "eos": "[SEP]", "unk": "[UNK]"}
sentencepiece.SentencePieceTrainer.train(
    input=str(folder / "text"), model_prefix=str(folder / "spm"), vocab_size=60,
    hard_vocab_limit=False, normalization_rule_name="nmt_nfkc", minloglevel=2,
    **{f"{name}_id": id for id, name in enumerate(names)},
    **{f"{name}_piece": piece for name, piece in names.items()},
)  # fmt: skip
(folder / "config.json").write_text(json.dumps({"model_type": "deberta-v2"}))
text = "\ufb01ne \u00bd o\ufb03ce \uff21\uff22"
theirs = sentencepiece.SentencePieceProcessor(model_file=str(folder / "spm.model")).encode(text)


def unknown(ids):
    return sum(id == 3 for id in ids)


auto = AutoTokenizer.from_pretrained(folder)
from_model = auto(text, add_special_tokens=False)["input_ids"]
right = DebertaV2Converter(auto).converted()
right.add_special_tokens(["[MASK]"])
auto.save_pretrained(folder / "saved")
right.save(str(folder / "saved" / "tokenizer.json"))
file = str(folder / "saved" / "tokenizer.json")
library = Tokenizer.from_file(file).encode(text, add_special_tokens=False).ids
again = AutoTokenizer.from_pretrained(folder / "saved")(text, add_special_tokens=False)["input_ids"]
for name, ids in {
    "SentencePiece": theirs, "AutoTokenizer, spm.model": from_model,
    "DebertaV2Converter's tokenizer.json": library, "AutoTokenizer, that file": again,
}.items():
    print(f"{name}: {len(ids)} ids, {unknown(ids)} of them [UNK]: {ids}")
if library != theirs or unknown(from_model) <= unknown(theirs) or again != from_model:
    raise SystemExit("transformers no longer behaves as described here")
PY
mkdir "$tmp/folder"
"$tmp/venv/bin/python" "$tmp/map.py" "$tmp/folder" 2> "$tmp/log" || { cat "$tmp/log"; exit 1; }
