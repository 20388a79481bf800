#!/usr/bin/env bash
# transformers 5.23.0, ModernBertModel and UltrabertModel, with torch 2.13.0
#
# One would guess: a mask of (batch, 1, T, T) says in addition which tokens may see each other, such as
# the blocks of several packed texts; that two of three layers see only a window is the model's own
# architecture and stays. Positions are relative, so a packed text has the states that it has alone.
# What happens: a mask of four dimensions is taken as it is for all layers. The local layers become
# global: every state of a text longer than the window changes. With the same texts in a padded batch
# and a mask of (batch, T) the windows are there. EuroBERT, which has no windows, is right in both ways.
# Nothing is said. (A comment of September 2026 in the project's issue 38040 is all that names it.)
# Who is hurt: whoever packs texts for such an encoder without flash-attention, or gives it a prefix or
# tree mask. Texts shorter than the window are right, so a short test shows nothing.
# What to do instead: give ModernBERT a dict with a mask for each kind of layer, as below. UltraBERT does
# not take one: pad there.
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

SIZES = {"vocab_size": 60, "hidden_size": 32, "num_hidden_layers": 6, "num_attention_heads": 4,
         "intermediate_size": 48, "max_position_embeddings": 256, "initializer_range": 0.3,
         "pad_token_id": 0, "bos_token_id": 1, "eos_token_id": 2}  # fmt: skip
WINDOW = 8  # a token sees 8 tokens to each side in a local layer
OF = {"ModernBert": {"local_attention": 2 * WINDOW, "cls_token_id": 1, "sep_token_id": 2},
      "Ultrabert": {"sliding_window": WINDOW}, "EuroBert": {"num_key_value_heads": 4}}  # fmt: skip


def encoder(member):
    torch.manual_seed(0)
    config = getattr(transformers, f"{member}Config")(**SIZES, **OF[member])
    return getattr(transformers, f"{member}Model")(config).eval()


def blocks(lengths):
    """(1, 1, T, T) bool: each token sees the tokens of its own text."""
    text = torch.repeat_interleave(torch.arange(len(lengths)), torch.tensor(lengths))
    return (text[:, None] == text[None, :])[None, None]


def windows(size):
    place = torch.arange(size)
    return (place[:, None] - place[None, :]).abs() <= WINDOW


def apart(states, texts, alone):
    """The largest change of a state of packed texts, relative to the largest state."""
    packed = states[0].split([len(text) for text in texts])
    return max(((a - b).abs().max() / b.abs().max()).item() for a, b in zip(packed, alone, strict=True))


@torch.no_grad()
def measure(member, lengths):
    """What packing by a 4D mask, padding by a 2D mask and, where taken, two masks change in states."""
    model = encoder(member)
    draws = torch.Generator().manual_seed(0)
    texts = [torch.randint(5, 60, (length,), generator=draws) for length in lengths]
    alone = [model(input_ids=text[None]).last_hidden_state[0] for text in texts]
    mask = blocks(lengths)
    ids = torch.cat(texts)[None]
    found = {"4D": apart(model(input_ids=ids, attention_mask=mask).last_hidden_state, texts, alone)}
    ids_2d = torch.nn.utils.rnn.pad_sequence(texts, batch_first=True)
    padded = model(input_ids=ids_2d, attention_mask=(ids_2d != 0).long()).last_hidden_state
    real = torch.cat([row[: len(text)] for row, text in zip(padded, texts, strict=True)])[None]
    found["2D"] = apart(real, texts, alone)
    if member == "ModernBert":
        both = {"full_attention": mask, "sliding_attention": mask & windows(sum(lengths))}
        found["a dict"] = apart(
            model(input_ids=ids, attention_mask=both).last_hidden_state, texts, alone
        )
    return found


wrong = False
for lengths in ([7, 9], [40, 24]):
    for member in OF:
        found = measure(member, lengths)
        said = ", ".join(f"{name} {value:.1e}" for name, value in found.items())
        print(f"texts of {lengths} tokens, window {WINDOW}, {member}: states change by {said}")
        opened = member != "EuroBert" and max(lengths) > WINDOW + 1
        wrong |= (found.pop("4D") > 0.1) != opened or max(found.values()) > 1e-4
if wrong:
    print("not as described")
    sys.exit(1)
PY
