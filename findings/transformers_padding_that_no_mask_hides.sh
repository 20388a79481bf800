#!/usr/bin/env bash
# transformers 5.23.0: ConvBertForSequenceClassification, YosoForSequenceClassification,
# RoFormerForMultipleChoice; with torch 2.13.0
#
# One would guess: a text gets one answer, alone or padded on the right in a batch, if attention_mask
# says where its padding is. So it is in BERT, ELECTRA, RoFormer's classifier and most others.
# What happens: in these three the padding is read.
#   - ConvBERT's convolutions over keys take what stands within their width, and padding does.
#   - YOSO takes the whole part of 1 + mask / 10000, made for masks of 0 and -10000. It gets 1 and 0, so
#     every key is seen. (Its convolution does heed the mask.) transformers 4 did the same.
#   - RoFormer's multiple choice reads the state at the *last* place, which is a padding's. Its classifier
#     and ELECTRA's multiple choice read the first.
# No warning, and none of their pages says so. (MobileBERT, which puts three neighbours' embeddings
# together, is known for it: issues 7070 and 9860. FNet's page says that it has no mask.)
# Who is hurt: whoever evaluates in batches and serves one text at a time: the answers differ, and they
# change with the other texts of the batch.
# What to do instead: always pad to one length, the same as in training, or put texts of one length in a
# batch.
set -euo pipefail
tmp=$(mktemp -d)
trap 'rm -rf "$tmp"' EXIT
python3 -m venv "$tmp/venv"
"$tmp/venv/bin/pip" install -q torch==2.13.0 transformers==5.23.0
cd "$tmp"
HF_HUB_OFFLINE=1 OMP_NUM_THREADS=1 "$tmp/venv/bin/python" - <<'PY' 2>"$tmp/err" || { tail -3 "$tmp/err"; exit 1; }
import sys

import torch
import transformers

SIZES = {"vocab_size": 60, "embedding_size": 32, "hidden_size": 32, "num_hidden_layers": 3,
         "num_attention_heads": 4, "intermediate_size": 64, "max_position_embeddings": 64,
         "initializer_range": 0.2, "pad_token_id": 0, "num_labels": 2}  # fmt: skip
draws = torch.Generator().manual_seed(0)
ids = torch.randint(5, 60, (64, 32), generator=draws)
lengths = torch.randint(8, 25, (64,), generator=draws)
mask = (torch.arange(32) < lengths[:, None]).long()
ids = ids * mask


@torch.no_grad()
def moved(member, head):
    """How far a text's score moves from alone to the batch at most, in standard deviations of scores."""
    torch.manual_seed(0)
    config = getattr(transformers, f"{member}Config")(**SIZES)
    model = getattr(transformers, f"{member}For{head}")(config).eval()

    def scores(ids, mask):
        if head == "MultipleChoice":
            return model(input_ids=ids[None], attention_mask=mask[None]).logits[0]
        return model(input_ids=ids, attention_mask=mask).logits.diff(dim=1)[:, 0]

    texts = zip(ids, mask, lengths, strict=True)
    alone = torch.cat([scores(row[None, :n], seen[None, :n]) for row, seen, n in texts])
    return ((alone - scores(ids, mask)).abs().max() / alone.std()).item()


classifier, choice = "SequenceClassification", "MultipleChoice"
reads = [("ConvBert", classifier), ("Yoso", classifier), ("RoFormer", choice)]
heeds = [(member, classifier) for member in ("Bert", "Electra", "RoFormer")] + [("Electra", choice)]
seen = {case: moved(*case) for case in heeds + reads}
for (member, head), far in seen.items():
    print(f"{member}For{head}: padding moves a score by up to {far:.1e} standard deviations")
if max(seen[case] for case in heeds) > 1e-4 or min(seen[case] for case in reads) < 0.05:
    print("not as described")
    sys.exit(1)
PY
