#!/usr/bin/env bash
# transformers 5.23.0, XLMModel, with torch 2.13.0
#
# Guess: token_type_ids of zeros are what a model assumes without them, as in BERT, and as the
# documentation says ("0 corresponds to a sentence A token"); so they change nothing.
# What happens: XLMModel looks token_type_ids up in its table of *words*: with zeros, the vector of
# the word with id 0 (<s>) is added to every token. All states change.
# Who is hurt: whoever gives XLM what a generic tokenizer returns (PreTrainedTokenizerFast gives
# token_type_ids unless told not to), or zeros of their own. The languages are another argument, langs.
set -euo pipefail
tmp=$(mktemp -d)
trap 'rm -rf "$tmp"' EXIT
python3 -m venv "$tmp/venv"
"$tmp/venv/bin/pip" install -q torch==2.13.0 numpy transformers==5.23.0
"$tmp/venv/bin/python" - <<'PY' 2>"$tmp/err" || { tail -3 "$tmp/err"; exit 1; }
import sys
import torch
from transformers import BertConfig, BertModel, XLMConfig, XLMModel

torch.manual_seed(0)
bert = BertModel(BertConfig(vocab_size=50, hidden_size=32, num_hidden_layers=1,
                            num_attention_heads=2, intermediate_size=64)).eval()
xlm = XLMModel(XLMConfig(vocab_size=50, emb_dim=32, n_layers=1, n_heads=2, n_langs=1)).eval()
ids = torch.tensor([[0, 20, 21, 22, 1]])
zeros = torch.zeros_like(ids)
apart = {}
with torch.no_grad():
    for name, model in (("BERT", bert), ("XLM", xlm)):
        with_zeros = model(ids, token_type_ids=zeros).last_hidden_state
        apart[name] = (model(ids).last_hidden_state - with_zeros).abs().max().item()
        print(f"{name}: token_type_ids of zeros change the states by up to {apart[name]:.2f}")
    table = xlm.embeddings.weight
    by_hand = xlm(inputs_embeds=table[ids] + table[0]).last_hidden_state
    same = torch.allclose(by_hand, xlm(ids, token_type_ids=zeros).last_hidden_state, atol=1e-5)
    print("XLM: the same as the word vector of id 0 added to each token:", same)
if not (apart["BERT"] == 0 and apart["XLM"] > 0.1 and same):
    print("not as described")
    sys.exit(1)
PY
