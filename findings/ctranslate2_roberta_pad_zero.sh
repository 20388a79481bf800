#!/usr/bin/env bash
# ctranslate2 4.8.5, TransformersConverter, with transformers 5.23.0 and torch 2.13.0
#
# Guess: a RoBERTa is converted rightly whatever its pad_token_id is: positions begin at
# pad_token_id + 1, and the converter reads the padding's row from the model.
# What happens: it leaves out the first rows of the position table only where pad_token_id is above 0.
# With 0 (as with any vocabulary whose padding comes first, such as BERT's) the table is not shifted:
# every token gets its neighbour's position, and all states are wrong, without a word.
# Who is hurt: whoever trained a RoBERTa or XLM-R on an own vocabulary and serves it with ctranslate2.
set -euo pipefail
tmp=$(mktemp -d)
trap 'rm -rf "$tmp"' EXIT
python3 -m venv "$tmp/venv"
"$tmp/venv/bin/pip" install -q torch==2.13.0 numpy transformers==5.23.0 ctranslate2==4.8.5
cd "$tmp"
"$tmp/venv/bin/python" - <<'PY' 2>"$tmp/err" || { tail -3 "$tmp/err"; exit 1; }
import json, sys
import ctranslate2, numpy as np, torch
from tokenizers import Tokenizer, models
from transformers import PreTrainedTokenizerFast, RobertaConfig, RobertaModel

words = {w: i for i, w in enumerate(["<a>", "<b>", "<s>", "</s>", "<unk>", *map(str, range(25))])}
apart = {}
for pad in (1, 0):
    torch.manual_seed(0)
    model = RobertaModel(RobertaConfig(
        vocab_size=30, hidden_size=16, num_hidden_layers=1, num_attention_heads=2,
        intermediate_size=32, max_position_embeddings=20, pad_token_id=pad, initializer_range=0.5,
    )).eval()  # fmt: skip
    folder = f"pad{pad}"
    model.save_pretrained(folder)
    settings = json.load(open(f"{folder}/config.json"))  # the converter asks for this, and
    settings["position_embedding_type"] = "absolute"  # transformers 5 no longer writes it
    json.dump(settings, open(f"{folder}/config.json", "w"))
    PreTrainedTokenizerFast(
        tokenizer_object=Tokenizer(models.WordLevel(words, unk_token="<unk>")), unk_token="<unk>",
        bos_token="<s>", eos_token="</s>", pad_token=f"<{'ab'[pad]}>",
    ).save_pretrained(folder)  # fmt: skip
    ctranslate2.converters.TransformersConverter(folder).convert(f"{folder}.ct2")
    ids = [[2, 10, 11, 12, 13, 3]]
    states = np.array(ctranslate2.Encoder(f"{folder}.ct2").forward_batch(ids).last_hidden_state)
    with torch.no_grad():
        right = model(torch.tensor(ids)).last_hidden_state.numpy()
    apart[pad] = float(np.abs(states - right).max())
    print(f"pad_token_id={pad}: largest difference from transformers {apart[pad]:.1e}")
if not (apart[1] < 1e-4 and apart[0] > 0.1):
    print("not as described")
    sys.exit(1)
PY
