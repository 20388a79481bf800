# ---
# jupyter:
#   jupytext:
#     cell_metadata_filter: tags,slideshow,-all
#     text_representation:
#       extension: .py
#       format_name: percent
# ---

# %% [markdown]
# # Modern encoders: from BERT to ModernBERT and on to 2026, change by change
#
# **Lecture 16** · {{duration}} · {{colab}}
#
# After this page you can
#
# - say what of BERT has stayed since 2018, what went, and why;
# - rotate a query and a key by their positions (RoPE), and say what their score then depends on;
# - count what a gate (GeGLU), a local layer and padding cost;
# - read a ladder that adds one change after another, at equal FLOPs, and say what three seeds show;
# - say what the encoders of 2025 and 2026 changed again: RMSNorm, SwiGLU, grouped heads, the window;
# - pre-train a ModernBERT on your own texts, and load it in transformers.
#
# You need the encoder of lecture 02 and masking from lecture 04. Nothing is downloaded.
#
# {{parts}}

# %%
import tempfile
from contextlib import chdir
from pathlib import Path

import torch

from course_lib import (
    MicroWorld, check, claims_table, compare, count_parameters, eurobert, eurobert_for_masked_lm, hint, modernbert,
    modernbert_for_masked_lm, quiz, reveal, show, to_transformers, ultrabert_for_masked_lm,
)  # fmt: skip
from course_lib.lectures.lecture_16 import gradients, ladder, step_times
from course_lib.lectures.lecture_16.views import (
    checkpoint_curves, checkpoints_table, cost_chart, extension_table, ladder_2026_table,
    ladder_chart, ladder_curves, ladder_table, longer_chart, norms_chart, packing_drawing, real_text_curves, real_text_table, rotation_view,
    speed_table, tasks_chart, then_and_now_drawing, window_view,
)  # fmt: skip
from course_lib.teaching import curves_chart
from course_lib.teaching.numbers import number

# %% [markdown]
# ## Predict first
#
# BERT appeared in 2018. In December 2024 came **ModernBERT** (Warner et al. 2024, arXiv 2412.13663): again an encoder, again trained on masked words, but with nearly every part replaced. Which parts mattered?
#
# Three guesses before you go on.
#
# 1. With rotary positions, a query is at position 5 and a key at 9. Both move 100 positions to the right. Does their score change?
# 2. A model was trained on texts of {{number:LENGTH}} tokens. Now a story has padding before it, so that it begins at position 448. What masked-token accuracy is left with learned positions, and what with rotary ones?
# 3. No segments and no biases, pre-norm, rotary positions, a gate, local layers, 30% masked: which change gains most, at equal FLOPs? (The table below explains them.)

# %%
my_guesses = {"the score": ..., "learned, rotary": ..., "brings most": ...}

# %% [markdown]
# ### What stayed, what went
#
# | | BERT, 2018 | ModernBERT, 2024 | EuroBERT 2025, UltraBERT 2026 | why | from |
# |---|---|---|---|---|---|
# | *stayed* | bidirectional encoder, masked words | the same | the same | | |
# | positions | learned table of 512 | queries and keys rotated (RoPE) | the same | only distance counts; longer texts | Su et al. 2021 |
# | norms | after each half of a block (*post-norm*) | before it (*pre-norm*), and one at the end | before it, RMSNorm | deep models train stably; RMSNorm skips the mean | Xiong et al. 2020; Zhang and Sennrich 2019 |
# | feed-forward | GELU | GeGLU: a gate | SwiGLU: the same gate with SiLU | better at equal size | Shazeer 2020 |
# | attention | every layer sees all | the *first* of three does (*global*); the others (*local*) see 64 tokens on either side | EuroBERT: every layer. UltraBERT: the *last* of three; the others see 128 on either side | long texts are cheaper | Beltagy et al. 2020 |
# | heads of keys and values | as many as of queries | the same | may be fewer: EuroBERT-2.1B has {{number:published('eurobert', '2.1b', EuroBertConfig).num_heads}} and {{number:published('eurobert', '2.1b', EuroBertConfig).num_key_value_heads}} | made for decoders, see below | Ainslie et al. 2023 |
# | base of the angles (below) | – | 10,000 local, 160,000 global | EuroBERT 250,000; UltraBERT 10,000 local, 2,560,000 global | longer texts | |
# | padding | computed | removed by the authors' code, computed by transformers' class | depends on the code | wasted work | Portes et al. 2023 |
# | biases | everywhere | only in the decoder | none | simpler | Dayma et al. 2021 |
# | norm on the embeddings | yes | yes | no | | |
# | decoder (the head's last matrix) | tied to the token embeddings | tied to the token embeddings | a matrix of its own | | |
# | segments, next sentence | yes | no | no | it does not help (lecture 04) | Liu et al. 2019 |
# | masked | 15% | 30% | EuroBERT 50%, 10% at the end | more to learn in each step | Wettig et al. 2022 |
# | layers, at width 768 | {{number:published('bert', 'base').num_layers}} | {{number:modern_layers}} | EuroBERT-210m {{number:published('eurobert', '210m', EuroBertConfig).num_layers}} | | Warner et al. 2024 |
# | text | 3.3 billion words | 2 trillion tokens, code too | EuroBERT: 5 trillion, 15 languages | | |
# | longest text | 512 | 8,192 | EuroBERT 8,192; UltraBERT 32,768 | | |
#
# (A dash: not used, or not published where we could read it. "From" names where the idea was worked out; ModernBERT's paper collects them in its section 2.) Nearly all changes are older than ModernBERT. That is the point: it puts six years of small findings into one model.

# %%
then_and_now_drawing()

# %% [markdown]
# *Read from the bottom. Green: norms. BERT normalises each sum, so no state leaves a block unchanged. In ModernBERT a straight line leads from the embeddings to the top, and blocks only add to it.*
#
# ## By hand
#
# ### Rotated by position
#
# Two features are a point in a plane. At position p the point is rotated by p times an angle. Take 90° per position, the query (1, 0) and the key (1, 0):
#
# | position | 0 | 1 | 2 | 3 |
# |---|---|---|---|---|
# | rotated | (1, 0) | (0, 1) | (−1, 0) | (0, −1) |
#
# Query at 1, key at 2: (0, 1) · (−1, 0) = **0**. Query at 2, key at 3: (−1, 0) · (0, −1) = **0**. At distance 1 the product is 0 everywhere. At distance 2 it is (1, 0) · (−1, 0) = **−1**, for positions 0 and 2 as for 1 and 3.
#
# A head of 64 features is 32 such points, each with its own angle per position, from 1 radian down to nearly nothing: pair i has *base*^(−2i/64). So a larger base slows down all but the first. Fast points distinguish neighbours, slow ones distinguish far from near. Nothing is added to the states, and nothing is learned.
#
# ### A gate
#
# In BERT's feed-forward part a dense layer and GELU make F inner numbers. In **GeGLU** a second dense layer makes F more, the **gate**, and the two are multiplied number by number.
#
# Suppose the first layer gives (2, −1) and the second, the gate, (0.5, 3). GELU turns the first into (1.95, −0.16); times the gate this is **(0.98, −0.48)**.
#
# There are three matrices instead of two. BERT's two, with F = 4H, have 8·H² weights. Three have as many if 3·H·F = 8·H², so F = **8/3 · H**.
#
# | H = 768 | F | matrices | weights of one layer's feed-forward part |
# |---|---|---|---|
# | BERT-base | 3,072 | 2 | 4,718,592 |
# | GeGLU, equal weights | 2,048 | 3 | 4,718,592 |
# | ModernBERT-base | 1,152 | 3 | 2,654,208, but {{number:modern_layers}} layers |
#
# ### A window
#
# With eight tokens and a window of 4, each token sees two on either side and itself. That is 8 · 5 = 40, minus 6 beyond the ends: **34** of 64 scores. With 8,192 tokens and ModernBERT's window of 128, a token sees 129 of 8,192, or 1.6%.
#
# ### A list instead of a rectangle

# %%
packing_drawing()

# %% [markdown]
# *Four texts: above, padded, 24 positions are computed; below, as a list, 15. The **cumulative lengths** at the bottom say where each text begins and ends, so that attention keeps the texts apart. Dense layers and norms treat each token by itself. RoPE could count through the whole list, since only distances within a text matter; in practice each text begins at 0.*
#
# ## Try it
#
# You will build seven pieces, three of them before the page shows them. The check names the mistake in a wrong answer; `hint("16.1")` helps one step at a time, and `reveal("16.1")` shows a solution. No later cell needs your answers.
#
# {{exercise:16.1}}


# %%
def my_rotary(query, key, base):
    return ...


check("16.1", my_rotary)

# %% [markdown]
# {{exercise:16.2}}


# %%
def my_geglu(x, expand, contract, plain_width):
    return ...


check("16.2", my_geglu)

# %% [markdown]
# {{exercise:16.3}}


# %%
def my_window(mask, window):
    return ...


check("16.3", my_window)

# %% [markdown]
# ## The code
#
# Every change is a setting of one class, which is BERT when all of them are off. A **ladder** adds one change after another. Each of its models, a *rung*, keeps the changes before it. In code it is a dictionary:

# %%
from course_lib.family.modernbert import AS_BERT

print("off:", AS_BERT)
for rung, changes in ladder.CHANGES.items():
    print(f"{rung:24}", changes)

# %% [markdown]
# (341 is 8/3 · 128. The last rung is empty: it changes the masking, not the model. The first change removes two things at once. ModernBERT's initialisation, `depth_scaled_init`, stays off on the ladder.)
#
# For the rotation, each pair of features is a complex number. Multiplying it by e^(i·angle) rotates it by the angle.

# %%
from course_lib.kernels.rotary import rotary_reference

show(rotary_reference)

# %% [markdown]
# Next come the gate, the block, and the choice of local layers:

# %%
from course_lib.family.modernbert import GatedFeedForward, ModernAttention, modern_block

show(GatedFeedForward.forward, modern_block, ModernAttention.__init__)

# %% [markdown]
# The window is a mask. The models use a faster version: for texts longer than twice the window it computes only blocks along the diagonal. For shorter texts a mask over all scores is faster.

# %%
from course_lib.kernels.sliding_window import sliding_window_attention_reference, window_mask

show(window_mask, sliding_window_attention_reference)

# %% [markdown]
# ### The encoders of 2025 and 2026
#
# **EuroBERT** takes the block of a decoder, Llama, and lets it attend in both directions. **UltraBERT** combines EuroBERT's block with ModernBERT's local layers. Each difference is a few lines:
#
# - **RMSNorm** divides a vector by the root of its mean square. Unlike LayerNorm it does not subtract the mean, and it has no bias.
# - **SwiGLU** keeps the gate but replaces GELU by SiLU, x · sigmoid(x). (Llama's code calls the *activated* half the gate.)
# - With **grouped heads** (*grouped-query attention*, GQA) several query heads share one head of keys and values.

# %%
from course_lib.family.eurobert import GroupedAttention, RMSNorm, SwiGLU
from course_lib.family.ultrabert import UltraBertConfig, UltraBertHead

show(RMSNorm.forward, SwiGLU.forward, GroupedAttention.repeat_heads, UltraBertConfig.is_global, UltraBertHead.forward)

# %% [markdown]
# By hand: RMSNorm divides (3, 4) by √((9 + 16) / 2) = 3.54 and gives (0.85, 1.13). LayerNorm gives (−1, 1) for (3, 4) and also for (103, 104); RMSNorm does not.
#
# Grouped heads were made for **decoders**, which store the keys and values of everything they have written: a quarter of the heads needs a quarter of the memory. An encoder stores nothing. Grouping shrinks two of its projections; all attention scores are still computed:

# %% tags=["nbval-check-output"]
from functools import partial

from course_lib.train.flops import forward_flops

for groups in (12, 4, 1):
    build = partial(eurobert, "210m", num_key_value_heads=groups)
    with torch.device("meta"):
        blocks = count_parameters(build().stack)
    flops = [forward_flops(build, tokens) / 1e9 for tokens in (128, 8_192)]
    print(f"key heads: {groups:2}, query heads: 12, blocks {blocks:11,} · one text of 128 tokens {flops[0]:5.1f}, of 8,192 {flops[1]:7,.0f} billion FLOPs")

# %% [markdown]
# ### What a window of 128 means
#
# In two models the same number means different windows: ModernBERT's `local_attention` is the whole width, UltraBERT's `sliding_window` a radius. Our library has one setting, `window`, the width, for both:

# %% tags=["nbval-check-output"]
tiny = {"num_layers": 6, "hidden_size": 16, "num_heads": 2, "intermediate_size": 8, "vocab_size": 50, "pad_token_id": 0}
for name, encoder in (("ModernBERT", modernbert("base", **tiny)), ("UltraBERT", ultrabert_for_masked_lm(**tiny).encoder)):
    config = to_transformers(encoder).config
    number_there = getattr(config, "sliding_window" if name == "UltraBERT" else "local_attention")
    layers = ["all" if block.attention.window is None else block.attention.window // 2 for block in encoder.stack.blocks]
    print(f"{name:10} transformers' number: {number_there} · on either side, layer by layer: {layers}")

# %% [markdown]
# ## Is it right?
#
# We compare a small model with transformers' `ModernBertForMaskedLM`, with the same random weights, on texts six times as long as the window: outputs and gradients.

# %%
small = {"vocab_size": 500, "num_layers": 4, "hidden_size": 64, "num_heads": 2, "intermediate_size": 96, "pad_token_id": 0}
torch.manual_seed(0)
compare(modernbert_for_masked_lm("base", window=16, **small), length=96)

# %% [markdown]
# Here are the two newer ones, with two key heads for four query heads:

# %%
torch.manual_seed(0)
newer = small | {"num_heads": 4, "num_key_value_heads": 2}
compare(eurobert_for_masked_lm("210m", **newer), length=96)

# %%
compare(ultrabert_for_masked_lm(window=16, prediction_size=48, **newer), length=96)

# %% tags=["nbval-check-output"]
with torch.device("meta"):  # knows shapes only
    for size in ("base", "large"):
        print(f"ModernBERT-{size:6}{count_parameters(modernbert(size)):13,}")
    for size in ("210m", "2.1b"):
        print(f"EuroBERT-{size:8}{count_parameters(eurobert(size)):13,}")

# %% [markdown]
# ModernBERT's paper says 149 and 395 million; EuroBERT's sizes, without the decoder, are in the models' names.
#
# Without padding the states must be the same at every real token:

# %% tags=["nbval-check-output"]
torch.manual_seed(0)
encoder = modernbert("base", window=16, **small).eval()
mask = (torch.arange(64) < torch.tensor([[64], [40], [20], [12]])).long()
ids = torch.randint(5, 500, (4, 64)) * mask
with torch.no_grad():
    padded, listed = (encoder(ids, mask, remove_padding=remove).last_hidden_state for remove in (False, True))
same = torch.allclose(padded[mask.bool()], listed[mask.bool()], atol=1e-5)
print(f"real tokens {mask.float().mean():.0%} · same states: {same}")

# %% [markdown]
# Now the first guess: we move a whole text by 100 positions. With rotary positions the last states stay the same, up to rounding.

# %% tags=["nbval-check-output"]
moved_mask = torch.nn.functional.pad(mask, (100, 0))  # padding in front, hidden by the mask
moved_ids = torch.nn.functional.pad(ids, (100, 0))
with torch.no_grad():
    moved = encoder(moved_ids, moved_mask).last_hidden_state[:, 100:]
same = torch.allclose(padded[mask.bool()], moved[mask.bool()], atol=1e-4)
print("same states 100 positions further on:", same)

# %% [markdown]
# ## See it
#
# ### Distance is all that counts

# %%
rotation_view()

# %% [markdown]
# *Move both sliders by the same amount: both arrows rotate, but the angle between them and the product stay the same. Move one: the product changes. The last slider is the angle per position; a head has many, from fast to slow.*
#
# ### Who sees whom

# %%
window_view()

# %% [markdown]
# *One grid per layer, queries down, keys across. Blue: a global layer. Orange: a local one. With a narrower window there are fewer scores, and information takes more layers to spread. The next global layer brings it to every token.*
#
# ### Norms before, norms after
#
# At random initialisation (standard deviation 0.125), how large is the loss's gradient for each layer's last matrix? We use one seed, one batch and twelve layers.

# %%
norms = {way: [list(enumerate(gradients.gradient_norms(way), start=1))] for way in gradients.WAYS}
curves_chart(norms, title="Gradients before the first step", x_title="layer", y_title="norm of the gradient")

# %%
for layers in (3, 12, 24):
    last = {way: gradients.gradient_norms(way, layers)[-1] for way in gradients.WAYS}
    print(f"{layers:3} layers, the last one's gradient:", *(f"{way} {norm:.2f}" for way, norm in last.items()))

# %% [markdown]
# In the chart, post-norm's gradients are about equal in all twelve layers; pre-norm's shrink from the first to the last. (Elsewhere the picture differs: in the models of Xiong et al. 2020 it is post-norm's gradients that grow towards the output.) In the printed lines, the last layer's gradient hardly depends on the depth L with post-norm. With pre-norm it falls, roughly as 1/√L (Xiong et al. derive both, for the last layer). That is their reason for **warm-up**, a learning rate that grows over the first steps: with gradients that large, first steps at the full rate go too far. One batch of an untrained model cannot show that; "Deep: who learns at all?" below tests it.
#
# ### Twice as much masked

# %%
world = MicroWorld.load()
for rung in ("local layers", ladder.LAST):
    batch = ladder.batches_of(ladder.RUNGS[rung], 0)(0)
    tokens = [world.tokenizer.token(i) for i in batch.inputs["input_ids"][0, :20].tolist()]
    print(f"{ladder.RUNGS[rung].rate:.0%}: {len(batch.targets['labels'])} to predict in a batch")
    print("    " + " ".join(tokens))

# %% [markdown]
# Each step has twice as many predictions, but fewer clues for each of them. The ladder will show which effect is larger.
#
# ### Logits where they are needed
#
# The head's decoder is the largest matrix of a small model, but only masked positions need its logits. BERT's own code gathered these positions before the head. In transformers' ModernBERT this is `sparse_prediction`, in all our models `predict_at`.

# %%
from course_lib.objectives.masked_lm import masked_lm_loss
from course_lib.train.flops import step_flops

model = ladder.model_of(ladder.RUNGS["local layers"], 0)
batch = ladder.batches_of(ladder.RUNGS["local layers"], 0)(0)
every = torch.arange(batch.inputs["input_ids"].numel())
for name, at in (("masked", batch.inputs["predict_at"]), ("all", every)):
    labels = batch.inputs["input_ids"].flatten()[at]
    predicted_there = batch._replace(inputs=batch.inputs | {"predict_at": at}, targets={"labels": labels})
    flops = step_flops(model, masked_lm_loss, predicted_there)
    print(f"logits at {name:6} positions: {len(at):5} of them, {flops / 1e9:5.1f} billion FLOPs per step")

# %% [markdown]
# ### Where it breaks
#
# We try an empty window, a head size whose features cannot be paired, and a text longer than the limit:

# %% tags=["nbval-check-output"]
for attempt in (
    lambda: modernbert("base", window=0, **small),
    lambda: modernbert("base", **small | {"hidden_size": 66}),
    lambda: modernbert("base", max_positions=32, **small)(ids),
):
    try:
        attempt()
    except ValueError as error:
        print("·", error)

# %% [markdown]
# The last error is a choice, not a necessity: no table of positions ends there. The limit states how far the model was meant to read.
#
# ### A trap in transformers
#
# A mask hides padding by *adding* the most negative number of the format to the scores. In transformers 5.23.0, ModernBERT and UltraBERT then take the softmax in float32, whatever the format is. float64's most negative number does not exist in float32: it becomes minus infinity. A query that sees only hidden keys has a row of these, and its result is nan. That query is padding, so its output is not used. But in the next layer its key is nan, and so is every query's score with it. Adding the mask does not change that, and the softmax spreads it over the whole row. Four conditions must hold at once: `attn_implementation="eager"` (needed to get attention weights), float64, local layers, and padding longer than half a window:

# %% tags=["nbval-check-output"]
torch.manual_seed(0)
double = modernbert("base", window=8, **small, initializer_range=0.3).double().eval()
short_and_long = (torch.arange(40) < torch.tensor([[40], [12]])).long()
texts = torch.randint(5, 500, (2, 40))
models = {"ours": double, "transformers, sdpa": to_transformers(double), "transformers, eager": to_transformers(double, attention="eager")}
for name, each in models.items():
    with torch.no_grad():
        states = each(input_ids=texts, attention_mask=short_and_long).last_hidden_state
    broken = int(states[short_and_long.bool()].isnan().any(dim=1).sum())
    print(f"{name:20} real tokens with nan: {broken} of {int(short_and_long.sum())}")

# %% [markdown]
# In float32 nothing breaks. So a batch's short texts become nan exactly when somebody is careful and computes in double precision. Ours takes the softmax in the format of the scores. Converted by OpenVINO 2026.4.1, transformers' ModernBERT breaks in float32, too: every text that is more than 64 tokens shorter than the longest of its batch becomes nan (`findings/openvino_short_texts_are_nan.sh`). Loaded with `attn_implementation="eager"` before the conversion, it does not.
#
# Padding has a second trap. Where hidden scores get the most negative finite number, as in ours, a row that sees no key at all gets the mean of all values in the forward pass. In the backward pass, torch's fused attention on a CPU gives every value T times the correct gradient (`findings/torch_sdpa_hidden_row_gradient.sh`). Losses that read padding (such as the softmax over possible starts of an answer) then get wrong gradients. In our local layers a padding token sees itself, and the gradient is correct.
#
# If you load such models with transformers, watch for three more traps. `EuroBertConfig()` has the base 10,000, but the released files say 250,000. EuroBERT and UltraBERT compute their norms in float32 whatever the model's format, so `model.double()` is not fully double. And an UltraBERT's file calls its weights `ultrabert.…` and `cls`, while the loaded model calls them `model.…` and `head.decoder`.
#
# ## Measure it
#
# ### The ladder
#
# The models have four layers of width 128 and learn from {{number:STORIES}} stories of the micro-world. Each rung keeps the changes before it. All get the FLOPs that BERT needs for {{number:runs_of('BERT')[0]['steps']}} steps, and the same learning rate. We test on {{number:HELDOUT}} new stories with 15% of the words masked, with {{number:len(runs_of('BERT'))}} seeds.

# %%
ladder_chart()

# %% [markdown]
# *Masked-token accuracy on held-out stories after training. Read from the top. A dot is a seed, a bar their mean. Predicting the most frequent token everywhere gives about 10%.*

# %%
ladder_table()

# %% [markdown]
# *Accuracy: masked-token accuracy, mean of the seeds. FLOPs per step: BERT = 1. Milliseconds per training step ({{number:where_measured(stored(TIMES)['machine'])}}). "Beside the one before": the difference in points, with the course's rule: a difference is settled, and called better or worse, if it has the same sign in every seed and is larger than the larger of the two rows' standard deviations. (A gain in every seed can still be unsettled, if one row scatters more.) Half-way: after half of the steps. Equal time: after as many seconds as the fastest rung needs. Slower rungs then stop before the end of their schedule, a disadvantage. The last two rows have one change alone and are compared with BERT.*
#
# - The whole ladder: accuracy rises from BERT's {{number:right('BERT')}} to **{{number:right('30% masked')}}** at the top, {{number:gained(LAST, 'BERT')}}.
# - Without segments and biases: {{number:gained('no segments, no biases', 'BERT')}}. One rung cannot tell which of the two is responsible. Pre-norm: {{number:gained('pre-norm', 'no segments, no biases')}}, at four layers.
# - **RoPE**: {{number:gained('RoPE', 'pre-norm')}} at the end; as BERT's only change {{number:alone_rope}}. But *half-way* it is {{number:in_points(half_way('RoPE'), half_way('pre-norm'))}}: {{number:percent(half_way('RoPE'))}} against {{number:percent(half_way('pre-norm'))}}. See the curves below.
# - **A change's worth depends on the model.** In every seed RoPE adds more to BERT, as its only change, than to the pre-norm rung. Alone it brings BERT to {{number:right('BERT + RoPE')}}, most of the way to the top. In two seeds of three that exceeds the rung "RoPE", which has two more changes. So "what is RoPE worth?" has no single answer.
# - GeGLU: {{number:gained('GeGLU', 'RoPE')}}; as BERT's only change {{number:alone_geglu}}.
# - Local layers: {{number:gained('local layers', 'GeGLU')}}. A story has some fifty tokens and the window is 32, so this says little about long texts. (At this length our code computes local layers whole, so they save no FLOPs.)
# - 30% masked: {{number:gained('30% masked', 'local layers')}}, in only {{number:runs_of(LAST)[0]['steps']}} steps, since each costs more.

# %%
ladder_curves()

# %% [markdown]
# *Masked-token accuracy over the training, whose length is 1, for four of the rungs; bands: all seeds. In the first steps models predict only the most frequent words; all lines leave that plateau well before their end.*
#
# In two of three seeds RoPE on the ladder mainly makes models learn *sooner*, probably because they need not first learn from a table which positions are neighbours. In the third seed, and as BERT's only change, it is also ahead at the end. If you look half-way through the training, RoPE seems to explain most of the gain; at the end the lines are closer. We did not measure longer training. A comparison after a fixed budget mixes two things: how well a model learns, and how soon.
#
# If a change is not settled, or contradicts the papers, think of size first: four layers, texts of some fifty tokens, one learning rate for all, and seeds that differ by several points. Pre-norm is made for depth, local layers for length. "Deep" and "Further back, and longer" below test them there.
#
# ### Text that people wrote
#
# Rules generate the stories. So we repeat the whole ladder on {{number:stored(REAL)['read']['words'] / 1000000.0:.1f}} million words of documentation, with four layers of width 256 and as many FLOPs as BERT needs for {{number:real_text.Recipe().steps:,}} steps. Texts have 32 tokens, so that the plateau ends soon. The {{number:len(real_runs(LAST))}} seeds were trained on a GPU ({{number:stored(REAL)['device']}}, bfloat16).

# %%
real_text_table()

# %% [markdown]
# *Accuracy: masked-token accuracy on held-out text, mean of the seeds. Beside the one before: points, with the rule's verdict; last column: the same change on the stories.*

# %%
real_text_curves()

# %% [markdown]
# *Four of the rungs over the training; bands: all seeds. Always predicting the most frequent token gives 6%, and one line never rises above it. It is our first attempt: with 36 steps of warm-up BERT stays on the plateau. So all others warm up for a quarter of their steps.*
#
# The ladder leads from {{number:read_well('BERT')}} to **{{number:read_well('30% masked')}}**: **{{number:gained_there(LAST, 'BERT')}}**. Change by change: no segments and no biases {{number:gained_there('no segments, no biases', 'BERT')}}, pre-norm {{number:gained_there('pre-norm', 'no segments, no biases')}}, RoPE {{number:gained_there('RoPE', 'pre-norm')}}, GeGLU {{number:gained_there('GeGLU', 'RoPE')}}, local layers {{number:gained_there('local layers', 'GeGLU')}}, 30% masked {{number:gained_there('30% masked', 'local layers')}}.
#
# Two things stand out. Pre-norm costs points on the stories but gains some here, so a change's worth depends on the setting. We cannot say on which part of it: the two ladders differ in text, width, length, batch size and warm-up. And the rungs GeGLU and local layers are settled in neither text (alone, GeGLU is settled on the stories); local layers are not meant for texts of 32 tokens. All other changes are settled here, where the seeds of a row are within a point of each other; on the stories they differ by several.
#
# (Page 13 has another figure for BERT on this text, because there it also learns next-sentence prediction on pairs of segments and takes one and a half times as many steps.)
#
# ### Three rungs further: 2026
#
# Back to the stories: the ladder continues from its top with the changes of EuroBERT and UltraBERT. These are RMSNorm, then SwiGLU, then one head of keys and values for this size's two query heads. FLOPs, learning rate and seeds stay the same.

# %%
ladder_2026_table()

# %% [markdown]
# *First row: the ladder's top. FLOPs per step, BERT = 1; steps for equal FLOPs; masked-token accuracy, mean and each seed. Times are missing because the machine was busy.*
#
# RMSNorm gives {{number:gained('RMSNorm', LAST)}}, SwiGLU {{number:gained('SwiGLU', 'RMSNorm')}}, grouped heads {{number:gained('grouped heads', 'SwiGLU')}}. All three together: {{number:right('grouped heads')}} against the ladder top's {{number:right(LAST)}}, {{number:gained('grouped heads', LAST)}}. Look at the single seeds first: within a row they differ by four to nine points. These changes were not made for accuracy in four layers of width 128. RMSNorm skips the mean; SiLU is a simpler curve than GELU; shared keys save a decoder's memory. Encoders probably adopt them because fast training code exists for Llama's block.
#
# ### A checkpoint of each kind
#
# The course ships two models trained on documentation. You know `course-bert`. `course-modernbert` has the changes of the ladder's top, and ModernBERT's initialisation, in the same shape: about as many weights, the same text and vocabulary, equal FLOPs of training. Predicting 30% of the words costs more per step than predicting 15%, so it has fewer steps. (Positions: tokens read, including repeats.)

# %%
checkpoints_table()

# %%
checkpoint_curves()

# %% [markdown]
# *Masked-token accuracy on held-out text over the training, with 15% of the tokens replaced by [MASK] for all; one run each. The FLOPs are parts of course-bert's whole training, Muon's own products left out.*
#
# The two checkpoints reach {{number:own_right('course-bert')}} and **{{number:own_right('course-modernbert')}}**. On this text, at this size and at equal FLOPs (not equal time), the modern encoder is ahead from the first tenth of the training to its end. It was trained with 30% masked and is measured with BERT's 15%. There is one run of each, both at the same learning rate, but the ladder's rungs on the same text agree.
#
# **The same, sooner.** The short curve has {{number:faster.STEPS:,}} steps instead of {{number:stored('16_checkpoint')['recipe']['training']['steps']:,}}, so its learning rate falls sooner. And it uses **Muon** (Jordan et al. 2024) instead of AdamW for the matrices in the blocks: before each step the running mean of the gradients is replaced by, roughly, the nearest orthogonal matrix. So the step moves all directions alike, not only the few in which the gradient is large. This run ends at **{{number:sooner(faster.MUON)}}**, about as much as course-bert, in {{number:time_of(faster.MUON):.0%}} of course-bert's processor time (counted by the time of a step, with Muon's own products). It is one run, and the same short schedule with AdamW was not run: how much of the gain is Muon's, we cannot say. The recipe is `data/recipes/fast.toml`; try both (`optimizer`), and pre-train an encoder of your own.
#
# Both models fill blanks in sentences that were written before either was trained:

# %%
from course_lib.checkpoints import load_pretrained
from course_lib.teaching.predictions import predict_masked
from course_lib.text import english

encoders = {"BERT": load_pretrained("course-bert"), "ModernBERT": load_pretrained("course-modernbert")}
right = dict.fromkeys(encoders, 0)
print("".join(f"{name:14}" for name in (*encoders, "the writer")))
for blank in english.blanks():
    first = {name: predict_masked(one.model, one.tokenizer, blank.text, top=1)[0] for name, one in encoders.items()}
    for name, (word, _) in first.items():
        right[name] += word == blank.word
    print("".join(f"{f'{word} {p:.0%}':14}" for word, p in first.values()) + f"{blank.word:11}{blank.text}")
print("\nthe writer's word comes first:", right, "of", len(english.blanks()))

# %% [markdown]
# (`##` marks a piece inside a word.) So few sentences prove nothing. On four of them exactly one model is right, each time the same one; with a fair coin that would happen in one try of eight (page 13's test). Both miss several blanks. Only the one about sugar lies clearly outside documentation; in some of the others they repeat a word of the sentence.
#
# Models are made to be fine-tuned. We use four tasks of lecture 03 with up to 2,000 labelled texts each. Both checkpoints get BERT's head and the best of three learning rates on validation texts:

# %%
tasks_chart()

# %% [markdown]
# *Each dot is a seed. “No encoder” is the zero line: a bag of words, and for code words a regression that sees each word and two words to either side, both trained on the same labels. Left: text like that which both have read. Right: packages that neither has read. (In the task *packages*, the model says from which of eight packages a paragraph is; there the packages are known, but the paragraphs are new.)*
#
# course-modernbert's mean over the four tasks is {{number:own_tuned('course-modernbert')}}, course-bert's {{number:own_tuned('course-bert')}}: {{number:after_tuning('mean')}} (in points, with the rule's verdict); without an encoder it is {{number:own_tuned('no encoder')}}. Task by task: code words {{number:after_tuning('code words')}}, sections {{number:after_tuning('sections')}}, packages {{number:after_tuning('packages')}}, kinds of parameters {{number:after_tuning('kinds of parameters')}}. In text that neither has read: {{number:after_tuning('mean', 'outside')}}. The seeds are those of fine-tuning. Each model was pre-trained only once, and another run could differ.
#
# ### Deep: who learns at all?

# %%
norms_chart()

# %% [markdown]
# *Masked-token accuracy; a dot is a seed. Twelve layers of width 64, 250 steps, two learning rates. Without warm-up the first step has the full rate; with it, the rate grows over the first fifth of the steps. Weights are initialised with standard deviation 1/√64 = 0.125; with the ladder's 0.05 the two norms hardly differ at first. We did not run pre-norm with warm-up, nor twelve layers with 0.05 or with BERT's 0.02, with which BERT's own 12 and 24 layers learned.*
#
# - At the higher rate, post-norm reaches {{number:normed('post-norm, 0.002')}}, with warm-up {{number:normed('post-norm, 0.002, warm-up')}}; pre-norm without it **{{number:normed('pre-norm, 0.002')}}**.
# - At the lower: {{number:normed('post-norm, 0.0005')}}, with warm-up **{{number:normed('post-norm, 0.0005, warm-up')}}**; pre-norm {{number:normed('pre-norm, 0.0005')}}.
#
# The lowest figure means one token predicted everywhere. Post-norm rises above it only with the low rate *and* warm-up, and then in two seeds of three. Pre-norm needs neither and benefits from the higher rate. (250 steps show only which models start to learn, not which is best. On the stories' ladder, with four layers and warm-up, pre-norm costs two points.)
#
# ### Further back, and longer
#
# The ladder's models were trained on 64 tokens. First we put padding *before* the same held-out stories, so that only the position numbers change.

# %%
longer_chart("further_back")

# %% [markdown]
# *Masked-token accuracy by the number of padding tokens in front. Learned positions: the rung "pre-norm", whose position embeddings above 64 were never trained. RoPE: the rung with only global layers ("GeGLU"), and the next one, with local layers.*
#
# With RoPE nothing changes, up to rounding: {{number:back_rope}} at both ends. With learned positions accuracy falls to {{number:back_learned}}, less than the 10% of predicting one token everywhere: untrained position embeddings seem to mislead the model. That settles the second guess. (The gate is not the reason: BERT with GeGLU alone does as badly as BERT.)
#
# Now we test texts that *are* longer: several stories one after another.

# %%
longer_chart()

# %% [markdown]
# *Masked-token accuracy by length; training used 64. At 256 tokens: learned {{number:accuracy_at('pre-norm', 'longer', 256)}}, RoPE {{number:accuracy_at('GeGLU', 'longer', 256)}}, with local layers {{number:accuracy_at('local layers', 'longer', 256)}}. At 512: {{number:accuracy_at('pre-norm', 'longer', 512)}}, {{number:accuracy_at('GeGLU', 'longer', 512)}}, {{number:accuracy_at('local layers', 'longer', 512)}}.*
#
# RoPE alone does not solve this. Likely reasons are that distances above 64 are new to the model, and that a softmax over 512 keys spreads its weights more thinly than ever in training. The surprise is the **local layers**, which are better in every seed. However long the text is, they never see more than their window; probably that is why: only the global layers meet something new.
#
# Still, these models lose much. A model for long texts should be trained on some. ModernBERT was: first on 1,024 tokens, then on 8,192, with a larger base for the angles of its global layers (160,000 instead of 10,000), so that they rotate more slowly.
#
# ### Longer in a hundred steps
#
# Let us do that. The rung "RMSNorm" has read 64 tokens at a time. We train it for a hundred more steps with equally many tokens each: texts of 64 (the control for more training), texts of 512, and texts of 512 with the global layers' base at 160,000. The best of five learning rates is chosen on other stories, for seed 0.

# %%
extension_table()

# %% [markdown]
# *Masked-token accuracy, mean of three seeds, by the length of the text. Predicting the most frequent token everywhere would give {{number:normed('post-norm, 0.002')}}; as the stories are independent, the accuracy at 64 tokens is about the best to expect at 512. Last column: points at 512, with the rule's verdict.*
#
# - **It works.** In points, a hundred steps of 512 tokens give {{number:longer_by('100 steps of 512, base kept', 'as it is', 512)}} at 512 tokens, with the larger base {{number:longer_by('100 steps of 512, larger base', 'as it is', 512)}}. As many steps of 64 tokens give {{number:longer_by('100 steps of 64 tokens', 'as it is', 512)}}. So the length matters, not the additional steps. (With texts of 64 the smallest of the five rates is best, at the grid's edge. But no rate rescues this control: with seed 0 all five give about 50%, against 74% or more for texts of 512 with the old base.)
# - **The gain extends beyond 512.** At 2,048 tokens, four times the length of any training text, {{number:at_length('as it is', 2048)}} become {{number:at_length('100 steps of 512, base kept', 2048)}}. The likely reason is that these stories do not refer to each other, so the model only had to learn to ignore the others. These texts cannot show more. To test whether a model *uses* what is 500 tokens away, you need texts in which it matters.
# - **Short texts may suffer.** At 64 tokens the hundred long steps give {{number:longer_by('100 steps of 512, base kept', 'as it is', 64)}}, with the larger base {{number:longer_by('100 steps of 512, larger base', 'as it is', 64)}}. Every seed loses, but less than the seeds differ, and the cause may be the learning rate, which is eight times that of the control; if you need both lengths, mix them.
# - **The larger base** alone helps in some seeds and harms in others: {{number:longer_by('larger base alone', 'as it is', 512)}} at 512 tokens, where one seed loses six points. After the hundred steps, compared with the old base: {{number:longer_by('100 steps of 512, larger base', '100 steps of 512, base kept', 512)}} at 512 tokens, {{number:longer_by('100 steps of 512, larger base', '100 steps of 512, base kept', 2048)}} at 2,048. Probably the weights must first learn the new angles. ModernBERT spent 300 billion tokens on its larger base; our hundred steps read about 200,000.
#
# ### What a text costs, by its length

# %%
cost_chart("flops")

# %%
cost_chart()

# %% [markdown]
# *One text, by its length. All models have six layers of width 256 and about equally many weights. Above: FLOPs; below: time on one thread. In FLOPs, BERT and the ModernBERT with only global layers coincide.*
#
# For short texts of 128 tokens ModernBERT takes {{number:timed('ModernBERT', 'BERT', 128)}} times as long as BERT. At 2,048 tokens BERT takes {{number:timed('BERT', 'ModernBERT', 2048)}} times as long as ModernBERT, a ModernBERT with only global layers {{number:timed('ModernBERT, all layers global', 'ModernBERT', 2048)}} times, and DeBERTa (an encoder that adds two more products to every score) {{number:timed('DeBERTa', 'ModernBERT', 2048)}} times.
#
# Here is the comparison with transformers' own class, with the same weights and texts of up to 8,192 tokens:

# %%
speed_table()

# %% [markdown]
# *Tokens per second, forward pass only; "ours" and transformers' two are ModernBERT. Eager: plain products; sdpa: PyTorch's fused attention; ours / theirs: against the faster of the two. Six layers of width 256, window 128, bfloat16 ({{number:speed_measured_on}}; `python -m course_lib.bench --tables modern`). A batch has 2,048 tokens, or one text. A dash: needs more than 2 GB.*
#
# With the settings "eager" and "sdpa", transformers computes all scores and masks those outside the window. (With flash-attention on a GPU it computes only the window; we did not measure that.) Beyond 256 tokens ours computes only blocks near the diagonal; up to there it computes all scores, too. For 128 tokens ours has {{number:times_ahead(128):.2f}} times the speed of transformers' faster version, so it is slower; for 8,192 tokens it has {{number:times_ahead(8192):.1f}} times.
#
# The next cell measures on your machine. (In only two rounds, other running programs may reverse the result.)

# %%
encoders = {name: build().eval() for name, build in step_times.ENCODERS.items()}
for tokens in (128, 512, 1_024):
    seconds_of = step_times.best({name: step_times.reading(e, tokens) for name, e in encoders.items()}, rounds=2)
    print(f"{tokens:5} tokens:", "   ".join(f"{name} {1e3 * seconds:.0f} ms" for name, seconds in seconds_of.items()))

# %%
answers = {
    "the score": "no: only the distance counts",
    "learned, rotary": f"{number('16', 'back_learned')}, {number('16', 'back_rope')}",
    "brings most": ("\n" + " " * 35).join((
        "on the stories, half-way: RoPE. At the end no step stands out:",
        "RoPE and 30% masked gain most on average, but neither is settled;",
        "no segments, no biases gains nearly as much and is settled.",
        f"Alone: RoPE {number('16', 'alone_rope')}, GeGLU {number('16', 'alone_geglu')}",
    )),
}  # fmt: skip
print(f"{'':18}{'your guess':>14}   answer")
for name, value in answers.items():
    print(f"{name:18}{str(my_guesses[name]).replace('Ellipsis', '–'):>14}   {value}")

# %% [markdown]
# ## Pre-train your own
#
# You need only a folder of plain text (.txt, paragraphs separated by an empty line) and a recipe:
#
#     python -m course_lib.train.pretrain RECIPE --out FOLDER
#
# Here is a small example in this very process. The texts are 400 stories; replace them by your own.
# They may be in any language: accents, vowel signs and tone marks are kept if they distinguish words. The
# run first reports whether they do, and which files of the folder it left out.

# %%
work = Path(tempfile.mkdtemp())
(work / "texts").mkdir()
for n, story in enumerate(world.stories(400)):
    (work / "texts" / f"{n:03}.txt").write_text("\n\n".join(story.sentences), encoding="utf-8")

# %%
recipe = """
name = "own"

[model]
family = "modernbert"
size = "base"
settings = { num_layers = 3, hidden_size = 64, num_heads = 2, intermediate_size = 96, window = 16 }

[objective]
rate = 0.3

[text]
source = "texts"
vocabulary = 600
length = 64

[training]
steps = 60
batch_size = 16
learning_rate = 5e-3
"""
_ = (work / "own.toml").write_text(recipe, encoding="utf-8")

# %%
from course_lib.train import pretrain

with chdir(work):
    pretrain.main(["own.toml", "--out", "run"])

# %% [markdown]
# The result is a folder that transformers reads:

# %%
from transformers import AutoModelForMaskedLM, AutoTokenizer

own = AutoModelForMaskedLM.from_pretrained(work / "run" / "model").eval()
tokenizer = AutoTokenizer.from_pretrained(work / "run" / "model")
print(type(own).__name__, "·", own.config.layer_types)
inputs = tokenizer("the storm flooded the [MASK] .", return_tensors="pt")
with torch.no_grad():
    logits = own(**inputs).logits
best = logits[inputs["input_ids"] == tokenizer.mask_token_id][0].topk(5).indices
print("its best five after 60 steps:", tokenizer.convert_ids_to_tokens(best.tolist()))

# %% [markdown]
# Sixty steps are enough for full stops and the most frequent words. To get further you need:
#
# - *A laptop and an evening.* The course's `course-bert` (four layers of width 256, {{number:stored('03_checkpoint')['text']['words'] / 1000000.0:.1f}} million words) read {{number:rate():,.0f}} tokens per second on two cores and was finished in an hour and a half. `data/recipes/course_modernbert.toml` is a recipe for such a ModernBERT. Give it your folder as its `source`, and `vocabulary = 8192`, so that its pieces are learned from your text. A few million words of one domain are a good start; an interrupted run continues where it stopped.
# - *A GPU, or several.* The same command under `torchrun` trains in many processes (README, "Pre-train your own").
# - *The real thing.* Per token, ModernBERT-base needs {{number:base_flops(TRAINED_AT):.0f}} times the FLOPs of that checkpoint. Its two trillion tokens would take these two cores some {{number:TOKENS * base_flops(TRAINED_AT) / rate() / 31560000.0:.0f}} years. It is better to start from released weights (`load_pretrained`) and continue on your texts, as in lecture 11.
#
# ## Since then
#
# - **NeoBERT** (Le Breton et al. 2025) has 28 layers at BERT-base's width, RoPE, SwiGLU, RMSNorm as pre-norm, 20% masked, and texts of up to 4,096 tokens. transformers has no class for it.
# - **EuroBERT** (Boizard et al. 2025), on this page: 15 languages, 5 trillion tokens, up to 8,192 of them at once.
# - **Ettin** (Weller et al. 2025): pairs of an encoder and a decoder, from 17 million to a billion weights, with the same recipe and text. Each is better at its own job: encoders at classification and retrieval, decoders at generation. Training one further with the other's objective does not close the gap. Its encoders use ModernBERT's class.
# - **mmBERT** (Marone et al. 2025): ModernBERT's class for over 1,800 languages. Most of them join only in the last, short phase of the training, while the learning rate falls. So their few texts are not repeated often enough to be memorised.
# - **LFM2.5-Encoder** (Liquid AI): according to UltraBERT's model card it led the retrieval benchmark BEIR before UltraBERT; Ettin led GLUE, and RoBERTa led named-entity recognition.
# - **UltraBERT** (dmis-lab 2026), on this page: 150 and 380 million weights, English, 32,768 tokens; according to its card the first to lead in classification *and* retrieval at its size. Its embedder's 67.24 on MTEB (English, version 2) is the card's figure; we did not measure it.
# - **Decoders as embedders.** A decoder can be adapted to attend in both directions and to embed texts (LLM2Vec, BehnamGhader et al. 2024). It is many times as large as an encoder, and each text costs accordingly.
#
# ### Today's recipe, in words
#
# A modern run also uses these; we measured only the last, in miniature:
#
# - **Warm-up, stable, decay.** The rate rises, stays constant for most of the training, and falls at the very end (ModernBERT: 3 billion tokens of warm-up, then 1.7 trillion at one rate). So a run can be extended or branched: the decay is a short separate phase, with the best text or with another 1,700 languages. BERT's linear decay must know its end from the start.
# - **StableAdamW** is AdamW with smaller steps for a matrix whose gradient is suddenly far larger than it was lately. It replaces clipping the whole gradient.
# - **Packing.** Texts of all lengths are placed in rows without gaps, and a block mask keeps them apart. Restarting the positions is not enough: without the mask, tokens still see the other texts. (In transformers 5.23.0 a block mask of four dimensions replaces the windows of ModernBERT and UltraBERT: their local layers then see the whole text. ModernBERT also takes a dict with one mask for each kind of layer.)
# - **Two lengths.** Most of the training uses short texts, then longer ones with a larger base, like the hundred steps above in miniature.
#
# ## What they claim, what you measured
#
# Each row was checked by code that ran just now, by stored results or, where neither is possible, by a source.

# %%
claims_table("16")

# %% [markdown]
# ## More exercises
#
# {{exercise:16.4}}


# %%
def my_unpadded(x, mask, layer):
    return ...


check("16.4", my_unpadded)

# %% [markdown]
# {{exercise:16.5}}


# %%
def my_cost(tokens, hidden, layers, every, window):
    return ...


check("16.5", my_cost)

# %% [markdown]
# {{exercise:16.6}}


# %%
def my_parameters(vocab, hidden, layers, inner):
    return ...


check("16.6", my_parameters)

# %% [markdown]
# {{exercise:16.7}}


# %%
def my_grouped(query, key, value, mask):
    return ...


check("16.7", my_grouped)

# %% [markdown]
# To go further, change the top of the ladder and train it with one seed (two minutes or so; compare with seed 0 of the chart):
#
# ```python
# mine = ladder.changed(ladder.RUNGS[ladder.LAST], {"window": 8})
# print(ladder.rung_run("mine", mine, 0)["accuracy"])
# ```

# %% [markdown]
# ## Quiz

# %%
quiz("16")

# %% [markdown]
# ## Questions for review
#
# {{review:16}}

# %% [markdown]
# ## Read on
#
# - Warner et al. (2024), *Smarter, Better, Faster, Longer: A Modern Bidirectional Encoder*, arXiv 2412.13663: section 2.
# - Su et al. (2021), *RoFormer: Enhanced Transformer with Rotary Position Embedding*, arXiv 2104.09864: section 3.
# - Xiong et al. (2020), *On Layer Normalization in the Transformer Architecture*, arXiv 2002.04745.
# - Shazeer (2020), *GLU Variants Improve Transformer*, arXiv 2002.05202: three pages.
# - Wettig et al. (2022), *Should You Mask 15% in Masked Language Modeling?*, arXiv 2202.08005.
# - Portes et al. (2023), *MosaicBERT*, arXiv 2312.17482; Beltagy et al. (2020), *Longformer*, arXiv 2004.05150.
# - Zhang and Sennrich (2019), *Root Mean Square Layer Normalization*, arXiv 1910.07467; Ainslie et al. (2023), *GQA*, arXiv 2305.13245.
# - Antoun et al. (2025), *ModernBERT or DeBERTaV3?*, arXiv 2504.08716: both trained on the same data.
# - NeoBERT, arXiv 2502.19587; EuroBERT, arXiv 2503.05500; Ettin, arXiv 2507.11412; mmBERT, arXiv 2509.06888; LLM2Vec, arXiv 2404.05961.
