#!/usr/bin/env bash
# Package: transformers 5.23.0 (with torch 2.13.0): RobertaForSequenceClassification and
# ModernBertForSequenceClassification on texts that are padded on the left (padding_side="left").
# One would guess: where the positions do not depend on the padding (RoBERTa counts the tokens after
# it, ModernBERT turns queries and keys by distances), the side of the padding changes nothing.
# What happens: the vectors of all tokens are the same to rounding, and the answer is another one: the
# heads read the vector at position 0, which is a padding's. The answer then depends on how long the
# other texts of the batch are. No warning.
# Who is hurt: whoever reads encoders and decoders by one tokenizer setting, or batches them by hand.
set -euo pipefail
tmp=$(mktemp -d)
trap 'rm -rf "$tmp"' EXIT
python3 -m venv "$tmp/venv"
"$tmp/venv/bin/pip" install -q torch==2.13.0 transformers==5.23.0
cd "$tmp"
"$tmp/venv/bin/python" - <<'PYTHON' 2>/dev/null
import sys

import torch
from transformers import (
    ModernBertConfig,
    ModernBertForSequenceClassification,
    RobertaConfig,
    RobertaForSequenceClassification,
)

CLS, PAD, SEP = 0, 1, 2
shape = {"vocab_size": 50, "hidden_size": 32, "num_hidden_layers": 2, "num_attention_heads": 2,
         "intermediate_size": 64, "pad_token_id": PAD, "bos_token_id": CLS, "eos_token_id": SEP,
         "attn_implementation": "eager"}  # fmt: skip
kinds = {
    RobertaForSequenceClassification: RobertaConfig(**shape, max_position_embeddings=40),
    ModernBertForSequenceClassification: ModernBertConfig(
        **shape, cls_token_id=CLS, sep_token_id=SEP
    ),
}
text, padding = [CLS, 7, 8, 9, SEP], [PAD] * 4
holds = True
for kind, config in kinds.items():
    torch.manual_seed(0)
    model = kind(config).eval()
    for weight in model.parameters():
        if weight.dim() > 1:
            torch.nn.init.normal_(weight, std=0.3)
    answers, states = {}, {}
    for side, row in (("none", text), ("right", text + padding), ("left", padding + text)):
        ids = torch.tensor([row])
        mask = (ids != PAD).long()
        with torch.no_grad():
            answers[side] = model(ids, attention_mask=mask).logits[0]
            encoder = getattr(model, model.base_model_prefix)
            states[side] = encoder(ids, attention_mask=mask).last_hidden_state[mask.bool()]
    for side in ("right", "left"):
        token = (states[side] - states["none"]).abs().max().item()
        answer = (answers[side] - answers["none"]).abs().max().item()
        print(f"{kind.__name__}, padding {side}: tokens differ by {token:.0e}, logits by {answer:.0e}")
        holds &= token < 1e-4 and (answer > 0.1 if side == "left" else answer < 1e-4)
if not holds:
    sys.exit("the answer no longer depends on the side of the padding, or the tokens do: no finding")
PYTHON
