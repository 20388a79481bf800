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
# - say what of BERT stayed since 2018, what went, and why;
# - turn a query and a key by their positions (RoPE), and say what their score then depends on;
# - count what a gate (GeGLU), a local layer and padding cost;
# - read a ladder of changes, one at a time for equally many FLOPs, and say what three seeds show;
# - say what the encoders of 2025 and 2026 changed again: RMSNorm, SwiGLU, grouped heads, the window;
# - pre-train a ModernBERT on texts of your own, and load it in transformers.
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
    MicroWorld, check, claims_table, compare, count_parameters, eurobert, eurobert_for_masked_lm,
    modernbert, modernbert_for_masked_lm, quiz, show, to_transformers, ultrabert_for_masked_lm,
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
# BERT is of 2018. In December 2024 came **ModernBERT** (Warner et al. 2024, arXiv 2412.13663): an encoder again, masked words again, and nearly every part replaced. Which parts mattered?
#
# Three guesses before you go on.
#
# 1. With rotary positions a query stands at position 5 and a key at 9. Both move 100 positions to the right. Does their score change?
# 2. A model was trained on texts of {{number:LENGTH}} tokens. Now a story has padding before it, so that it begins at position 448. How many of the masked words does it still find with learned positions, and how many with rotary ones?
# 3. No biases, norms before, rotary positions, a gate, local layers, 30% masked: which one brings most, for equally many FLOPs? (The table below says what they are.)

# %%
my_guesses = {"the score": ..., "learned, rotary": ..., "brings most": ...}

# %% [markdown]
# ### What stayed, what went
#
# | | BERT, 2018 | ModernBERT, 2024 | EuroBERT 2025, UltraBERT 2026 | why | from |
# |---|---|---|---|---|---|
# | *stayed* | bidirectional encoder, masked words | the same | the same | | |
# | positions | learned table of 512 | queries and keys turned (RoPE) | the same | only distance counts; longer texts | Su et al. 2021 |
# | norms | after each half of a block (*post-norm*) | before it (*pre-norm*), and one at the end | before it, RMSNorm | deep models train stably; one step fewer | Xiong et al. 2020; Zhang and Sennrich 2019 |
# | feed-forward | GELU | GeGLU: a gate | SwiGLU: the same gate with SiLU | better for as many weights | Shazeer 2020 |
# | attention | every layer sees all | the *first* of three does; the others 64 tokens on either side | EuroBERT: every layer. UltraBERT: the *last* of three; the others 128 on either side | long texts are cheaper | Beltagy et al. 2020 |
# | heads of keys and values | as many as of queries | as many | may be fewer: EuroBERT-2.1B has {{number:published('eurobert', '2.1b', EuroBertConfig).num_heads}} and {{number:published('eurobert', '2.1b', EuroBertConfig).num_key_value_heads}} | made for decoders, see below | Ainslie et al. 2023 |
# | base of the angles | – | 10,000 local, 160,000 global | EuroBERT 250,000; UltraBERT 10,000 local, 2,560,000 global | longer texts | |
# | padding | computed | removed | as the program likes | work for nothing | Portes et al. 2023 |
# | biases | everywhere | in the decoder alone | none | simpler | Dayma et al. 2021 |
# | norm on the embeddings | yes | yes | no | | |
# | decoder | the token table | the token table | a matrix of its own | | |
# | segments, next sentence | yes | no | no | it does not help (lecture 04) | Liu et al. 2019 |
# | masked | 15% | 30% | – | more to learn in each step | Wettig et al. 2022 |
# | layers of the size that is 768 wide | {{number:published('bert', 'base').num_layers}} | {{number:modern_layers}} | EuroBERT-210m {{number:published('eurobert', '210m', EuroBertConfig).num_layers}} | | Warner et al. 2024 |
# | text | 3.3 billion words | 2 trillion tokens, code too | EuroBERT: 5 trillion, 15 languages | | |
# | longest text | 512 | 8,192 | EuroBERT 8,192; UltraBERT 32,768 | | |
#
# (A dash: not used, or not said where we could read it.)
# ("From" names where the idea was worked out; ModernBERT's paper puts them together in its section 2.) Nearly all of them are older than ModernBERT. That is the point: six years of small findings in one model.

# %%
then_and_now_drawing()

# %% [markdown]
# *Read from below. Green: norms. In BERT each sum is normed, so no state leaves a block as it is. In ModernBERT a straight line leads from the embeddings to the top: blocks only add to it.*
#
# ## By hand
#
# ### Turned by position
#
# Two features are a point in a plane. At position p it is turned by p times an angle. Take 90° for one position, the query (1, 0) and the key (1, 0):
#
# | position | 0 | 1 | 2 | 3 |
# |---|---|---|---|---|
# | turned | (1, 0) | (0, 1) | (−1, 0) | (0, −1) |
#
# Query at 1, key at 2: (0, 1) · (−1, 0) = **0**. Query at 2, key at 3: (−1, 0) · (0, −1) = **0**. One apart is 0, wherever they stand. Two apart: (1, 0) · (−1, 0) = **−1**, at 0 and 2 as at 1 and 3.
#
# A head of 64 features is 32 such points, each with an angle of its own: from 1 radian a position down to nearly nothing. Quick ones tell neighbours apart, slow ones tell far from near. Nothing is added to the states, and nothing is learned.
#
# ### A gate
#
# In BERT's feed-forward part a dense layer and GELU make F inner numbers. In **GeGLU** a second dense layer makes as many again, and the two are multiplied, number by number:
#
# The first layer gives "wide", here (2, −1), the second "gate", (0.5, 3). GELU turns the first into (1.95, −0.16); times the gate: **(0.98, −0.48)**.
#
# Three matrices instead of two. For as many weights as BERT's F = 4H: 3·H·F = 8·H², so F = **8/3 · H**.
#
# | H = 768 | F | matrices | weights of one layer's feed-forward part |
# |---|---|---|---|
# | BERT-base | 3,072 | 2 | 4,718,592 |
# | GeGLU, as many weights | 2,048 | 3 | 4,718,592 |
# | ModernBERT-base | 1,152 | 3 | 2,654,208, but {{number:modern_layers}} layers |
#
# ### A window
#
# Eight tokens, window 4: each sees two on either side and itself. 8 · 5 = 40, less 6 beyond the ends: **34** of 64 scores. With 8,192 tokens and ModernBERT's window of 128 it is 129 of 8,192 a token: 1.6%.
#
# ### A list instead of a rectangle

# %%
packing_drawing()

# %% [markdown]
# *Four texts. Above, 24 positions are computed; below, 15. The **cumulative lengths**, the numbers at the bottom, say where each text begins and ends: attention needs them, so that texts do not see each other. RoPE could count on through the list, since within a text only distances matter; programs begin each text at 0 all the same. Dense layers and norms work on each token by itself.*
#
# ## Try it
#
# Seven pieces to build, three of them before the page shows them. A wrong answer gets the name of its mistake; `hint("16.1")` helps a step at a time, `reveal("16.1")` shows a solution. No later cell needs your answers.
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
# Every change is a setting of one class, and with all of them off it is BERT. A **ladder** adds one *rung* after another, and each keeps those before it. So it is a dictionary:

# %%
from course_lib.family.modernbert import AS_BERT

print("off:", AS_BERT)
for rung, changes in ladder.CHANGES.items():
    print(f"{rung:24}", changes)

# %% [markdown]
# (341 is 8/3 · 128. The last rung is empty: it changes the masking, not the model. The first takes out two things at once.)
#
# The turn: each pair of features is a complex number, times e^(i·angle). To multiply by that is to turn by the angle.

# %%
from course_lib.kernels.rotary import rotary_reference

show(rotary_reference)

# %% [markdown]
# The gate, the block, and which layers are local:

# %%
from course_lib.family.modernbert import GatedFeedForward, ModernAttention, modern_block

show(GatedFeedForward.forward, modern_block, ModernAttention.__init__)

# %% [markdown]
# And the window, as a mask. The models run a faster form of it, which computes blocks along the diagonal and never the rest.

# %%
from course_lib.kernels.sliding_window import sliding_window_attention_reference, window_mask

show(window_mask, sliding_window_attention_reference)

# %% [markdown]
# ### The encoders of 2025 and 2026
#
# **EuroBERT** takes the block of a decoder, Llama, and lets it see both ways. **UltraBERT** takes EuroBERT's block and ModernBERT's local layers. Each is a few lines of difference:
#
# - **RMSNorm**: a vector over the root of its mean square. LayerNorm takes the mean off first; RMSNorm does not, and has no bias.
# - **SwiGLU**: the gate stays, SiLU, x · sigmoid(x), stands for GELU.
# - **Grouped heads**: several heads of queries share one head of keys and values.

# %%
from course_lib.family.eurobert import GroupedAttention, RMSNorm, SwiGLU
from course_lib.family.ultrabert import UltraBertConfig, UltraBertHead

show(RMSNorm.forward, SwiGLU.forward, GroupedAttention.repeat_heads, UltraBertConfig.is_global, UltraBertHead.forward)

# %% [markdown]
# By hand: RMSNorm of (3, 4) divides by √((9 + 16) / 2) = 3.54 and gives (0.85, 1.13). LayerNorm of (3, 4) gives (−1, 1), and so it does for (103, 104): RMSNorm does not.
#
# Grouped heads were made for **decoders**, which store keys and values of everything that they have written: a quarter of the heads, a quarter of the memory. An encoder stores nothing. It saves two projections, and no attention score:

# %% tags=["nbval-check-output"]
from functools import partial

from course_lib.train.flops import forward_flops

for groups in (12, 4, 1):
    build = partial(eurobert, "210m", num_key_value_heads=groups)
    with torch.device("meta"):
        blocks = count_parameters(build().stack)
    flops = [forward_flops(build, tokens) / 1e9 for tokens in (128, 8_192)]
    print(f"{groups:2} heads of keys for 12: blocks {blocks:11,} · one text of 128 tokens {flops[0]:5.1f}, of 8,192 {flops[1]:7,.0f} billion FLOPs")

# %% [markdown]
# ### What a window of 128 means
#
# The same number, two models, and twice as many tokens: ModernBERT's `local_attention` is the whole width, UltraBERT's `sliding_window` a radius. Ours has one `window`, the width, for both:

# %% tags=["nbval-check-output"]
tiny = {"num_layers": 6, "hidden_size": 16, "num_heads": 2, "intermediate_size": 8, "vocab_size": 50, "pad_token_id": 0}
for name, ours in (("ModernBERT", modernbert("base", **tiny)), ("UltraBERT", ultrabert_for_masked_lm(**tiny).encoder)):
    config = to_transformers(ours).config
    number_there = getattr(config, "sliding_window" if name == "UltraBERT" else "local_attention")
    layers = ["all" if block.attention.window is None else block.attention.window // 2 for block in ours.stack.blocks]
    print(f"{name:10} transformers' number: {number_there} · on either side, layer by layer: {layers}")

# %% [markdown]
# ## Is it right?
#
# Ours beside transformers' `ModernBertForMaskedLM`, small, with the same random weights, on texts six times as long as the window: outputs and gradients.

# %%
small = {"vocab_size": 500, "num_layers": 4, "hidden_size": 64, "num_heads": 2, "intermediate_size": 96, "pad_token_id": 0}
torch.manual_seed(0)
compare(modernbert_for_masked_lm("base", window=16, **small), length=96)

# %% [markdown]
# And the two newer ones, with two heads of keys for four of queries:

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
# ModernBERT's paper says 149 and 395 million; EuroBERT's sizes are in their names.
#
# Without padding the states must be the same, at every real token:

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
# And the first guess: a whole text moved 100 positions on. With rotary positions no state changes, whatever the layer.

# %% tags=["nbval-check-output"]
moved_mask = torch.nn.functional.pad(mask, (100, 0))  # padding in front, which nobody sees
moved_ids = torch.nn.functional.pad(ids, (100, 0))
with torch.no_grad():
    moved = encoder(moved_ids, moved_mask).last_hidden_state[:, 100:]
same = torch.allclose(padded[mask.bool()], moved[mask.bool()], atol=1e-4)
print("the same states 100 positions further on:", same)

# %% [markdown]
# ## See it
#
# ### Distance is all that counts

# %%
rotation_view()

# %% [markdown]
# *Move both sliders by the same amount: both arrows turn, the angle between them stays, and so does the product. Move one: the product changes. The last slider is the angle of one position; a head has many, from quick to slow.*
#
# ### Who sees whom

# %%
window_view()

# %% [markdown]
# *One grid a layer, queries down, keys across. Blue: a global layer. Orange: a local one. Narrow the window: fewer scores, and news takes more layers. The next global layer brings it to everybody.*
#
# ### Norms before, norms after
#
# At random initialisation (standard deviation 0.125), one seed, one batch, twelve layers: how large is the loss's gradient for each layer's last matrix?

# %%
norms = {way: [list(enumerate(gradients.gradient_norms(way), start=1))] for way in gradients.WAYS}
curves_chart(norms, title="Gradients before the first step", x_title="layer", y_title="norm of the gradient")

# %%
for layers in (3, 12, 24):
    last = {way: gradients.gradient_norms(way, layers)[-1] for way in gradients.WAYS}
    print(f"{layers:3} layers, the last one's gradient:", *(f"{way} {norm:.2f}" for way, norm in last.items()))

# %% [markdown]
# In the chart post-norm's gradients are about equally large in all twelve layers; pre-norm's shrink from the first to the last. In the printed lines post-norm's last gradient is as large in a deep model as in a shallow one; pre-norm's falls with the depth L, about as 1/√L (Xiong et al. 2020 derive both). By this they explain **warm-up**, a learning rate that grows over the first steps: with gradients as large as post-norm's, first steps at the full rate go too far. One batch of an untrained model does not show that; "Deep: who learns at all?" below tries it.
#
# ### Twice as much masked

# %%
world = MicroWorld.load()
for rung in ("local layers", ladder.LAST):
    batch = ladder.batches_of(ladder.RUNGS[rung], 0)(0)
    said = [world.tokenizer.token(i) for i in batch.inputs["input_ids"][0, :20].tolist()]
    print(f"{ladder.RUNGS[rung].rate:.0%}: {len(batch.targets['labels'])} to predict in a batch")
    print("    " + " ".join(said))

# %% [markdown]
# Twice as many answers in each step, but fewer clues for each of them. Which of the two wins is a question for the ladder.
#
# ### Logits where they are needed
#
# The decoder is the largest matrix of a small model. Only masked positions need its logits. BERT's own program gathered them before the head; transformers' ModernBERT has it as `sparse_prediction`, all our models as `predict_at`.

# %%
from course_lib.objectives.masked_lm import masked_lm_loss
from course_lib.train.flops import step_flops

model = ladder.model_of(ladder.RUNGS["local layers"], 0)
batch = ladder.batches_of(ladder.RUNGS["local layers"], 0)(0)
every = torch.arange(batch.inputs["input_ids"].numel())
for name, at in (("masked", batch.inputs["predict_at"]), ("all", every)):
    labels = batch.inputs["input_ids"].flatten()[at]
    asked = batch._replace(inputs=batch.inputs | {"predict_at": at}, targets={"labels": labels})
    flops = step_flops(model, masked_lm_loss, asked)
    print(f"logits at {name:6} positions: {len(at):5} of them, {flops / 1e9:5.1f} billion FLOPs a step")

# %% [markdown]
# ### Where it breaks
#
# A window of nothing, a head that cannot be paired, a text beyond the positions:

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
# The last one is a choice, not a need: there is no table that ends. The limit says how far the model was meant to read.
#
# ### A trap in another program
#
# Padding is hidden by a mask that is *added* to the scores: the smallest number that their format has. transformers' ModernBERT and UltraBERT then take the softmax in float32, whatever the format is. The smallest number of float64 is none of float32: it becomes minus infinity there. A query that sees nothing but hidden keys has a row of those, and no numbers come out. That query is padding, and nobody wants its answer; but the next layer multiplies it by the weight 0, and 0 times no number is no number. It takes four things at once: `attn_implementation="eager"` (which is asked for where attention weights are wanted), float64, local layers, and padding longer than half a window:

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
    print(f"{name:20} real tokens without a state: {broken} of {int(short_and_long.sum())}")

# %% [markdown]
# In float32 nothing breaks. So the short half of a batch turns to nothing just where somebody computes in double precision to be careful. Ours takes the softmax in the format of the scores.
#
# Padding has a second trap, deeper down. A row that sees no key at all has the mean of all values, forwards; backwards, torch's fused attention on a processor gives every value T times the gradient. Losses that read padding (the softmax over possible starts of an answer does) then learn from it. In our local layers a padding sees itself, and the gradient is right.
#
# Three more, for who loads such models with transformers: `EuroBertConfig()` has the base 10,000, while the released files say 250,000; both EuroBERT and UltraBERT compute their norms in float32 whatever the model's format is, so `model.double()` is not double; and an UltraBERT's file calls its weights `ultrabert.…` and `cls`, its loaded model `model.…` and `head.decoder`.
#
# ## Measure it
#
# ### The ladder
#
# Four layers, 128 wide, {{number:STORIES}} stories of the micro-world. Each rung keeps the changes of those before it. All get as many FLOPs as BERT needs for {{number:runs_of('BERT')[0]['steps']}} steps, and the same learning rate. Then {{number:HELDOUT}} new stories, 15% of the words masked. {{number:len(runs_of('BERT'))}} seeds.

# %%
ladder_chart()

# %% [markdown]
# *Held-out masked words found at the end of the training. Read from above. A dot is a seed, a bar their mean.*

# %%
ladder_table()

# %% [markdown]
# *Right: held-out masked words found, mean of the seeds. FLOPs of a step, BERT = 1. Milliseconds of a training step ({{number:where_measured(stored(TIMES)['machine'])}}). "Beside the one before": points, and the course's rule for a difference: settled if it has one sign in every seed and is larger than the larger of the two rows' standard deviations. Such a one is called better or worse. (So a step that is up in every seed can be open: one of the two rows scatters more.) Equal time: after as many seconds as the quickest rung needs; rungs cut off before the end of their own schedule have that against them. Half-way: after half of the steps. The last two rows have one change alone, and stand beside BERT.*
#
# - The whole ladder: {{number:right('BERT')}} for BERT, **{{number:right('30% masked')}}** at the top, {{number:gained(LAST, 'BERT')}}.
# - Segments and biases out: {{number:gained('no segments, no biases', 'BERT')}}. Which of the two does it, one rung cannot say. Norms before: {{number:gained('pre-norm', 'no segments, no biases')}}, at four layers.
# - **RoPE**: {{number:gained('RoPE', 'pre-norm')}} at the end; as BERT's only change {{number:alone_rope}}. But *half-way* it is {{number:in_points(half_way('RoPE'), half_way('pre-norm'))}}: {{number:percent(half_way('RoPE'))}} for {{number:percent(half_way('pre-norm'))}}. See the curves below.
# - **What is there already matters.** RoPE adds more to BERT, as its only change, than to the rung with the norms before, in every seed. Alone it brings BERT to {{number:right('BERT + RoPE')}}, most of the way to the top, and in two seeds of three beyond the rung that has RoPE and the two changes before it. So "what RoPE is worth" has no one answer; ask in which model.
# - GeGLU: {{number:gained('GeGLU', 'RoPE')}}; as BERT's only change {{number:alone_geglu}}.
# - Local layers: {{number:gained('local layers', 'GeGLU')}}. A story has some fifty tokens and the window 32, so this says little about long texts.
# - 30% masked: {{number:gained('30% masked', 'local layers')}}, in {{number:runs_of(LAST)[0]['steps']}} steps, as each costs more.

# %%
ladder_curves()

# %% [markdown]
# *Held-out masked words found over the training, whose length is 1, for four of the rungs; bands: all seeds. The first steps find the commonest words alone; all lines leave that plateau well before their end.*
#
# What RoPE brings on the ladder is above all *when*. A likely reason: who stands next to whom need not be learned from a table first. Stop half-way, and RoPE looks like everything; at the end the lines have come closer. What a longer training would say was not measured. A comparison after a fixed budget mixes two things: how well, and how soon.
#
# Where a step is not settled, or goes the other way than in the papers, think of size first: four layers, texts of some fifty tokens, one learning rate for all, and seeds that differ by several points. Norms before are made for depth, local layers for length. "Deep" and "Further back, and longer" below give them a chance.
#
# ### Text that people wrote
#
# Stories are made by rules. So the whole ladder once more: {{number:stored(REAL)['read']['words'] / 1000000.0:.1f}} million words of documentation in the course's word pieces, four layers, 256 wide, as many FLOPs as BERT needs for {{number:real_text.Recipe().steps:,}} steps. Texts of 32 tokens, so that the plateau ends soon. {{number:len(real_runs(LAST))}} seeds, trained on a GPU ({{number:stored(REAL)['device']}}, bfloat16). In an earlier run on a CPU, of two seeds, every mean was within half a point of these.

# %%
real_text_table()

# %% [markdown]
# *Right: held-out masked word pieces found, mean of the seeds. Beside the one before: points, with the rule's word; last, what the same step brought on the stories.*

# %%
real_text_curves()

# %% [markdown]
# *Four of the rungs over the training; bands: all seeds. Who always says the commonest piece finds 6%: one line never leaves it. It is our first try: with 36 steps of warm-up BERT stays on the plateau. So all others warm up for a quarter of their steps.*
#
# From {{number:read_well('BERT')}} to **{{number:read_well('30% masked')}}**: **{{number:gained_there(LAST, 'BERT')}}**. Step by step: no segments and no biases {{number:gained_there('no segments, no biases', 'BERT')}}, norms before {{number:gained_there('pre-norm', 'no segments, no biases')}}, RoPE {{number:gained_there('RoPE', 'pre-norm')}}, GeGLU {{number:gained_there('GeGLU', 'RoPE')}}, local layers {{number:gained_there('local layers', 'GeGLU')}}, 30% masked {{number:gained_there('30% masked', 'local layers')}}. Two things to see. Norms before cost points on the stories and bring some here: a step's worth depends on the text, too. And as rungs GeGLU and local layers are settled in neither text (alone, GeGLU is settled on the stories); local layers cannot help in texts of 32 tokens. All other steps are settled here, where the seeds of a row lie within a point of each other; on the stories they differ by several.
#
# (Page 13 has another figure for BERT on this text: there it learns next-sentence prediction as well, in pairs of segments, and takes half as many steps again.)
#
# ### Three rungs further: 2026
#
# The stories again, and the ladder goes on from its top with what EuroBERT and UltraBERT have: RMSNorm, then SwiGLU, then one head of keys and values for the two of queries that this size has. The same FLOPs, learning rate and seeds.

# %%
ladder_2026_table()

# %% [markdown]
# *First row: the ladder's top. FLOPs of a step, BERT = 1; steps for equal FLOPs; right: held-out masked words found, mean and each seed. No times: nothing else was quiet on that machine.*
#
# RMSNorm {{number:gained('RMSNorm', LAST)}}, SwiGLU {{number:gained('SwiGLU', 'RMSNorm')}}, grouped heads {{number:gained('grouped heads', 'SwiGLU')}}. All three together: {{number:right('grouped heads')}} beside ModernBERT's {{number:right(LAST)}}, {{number:gained('grouped heads', LAST)}}. Look at the seeds before you look at the means: in a row they lie points apart. These changes were not made to find more words in four layers of 128. RMSNorm is one step less to compute; SiLU is a curve like GELU that is cheaper; shared keys save a decoder's memory. A likely reason why encoders have them all the same: Llama's block is what fast programs for training exist for.
#
# ### A checkpoint of each kind
#
# The course ships two models of documentation. `course-bert` you know. `course-modernbert` is the top of the ladder in the same shape: about as many weights, the same text in the same pieces, as many FLOPs of training. Predicting 30% of the words costs more a step than predicting 15%, so it has fewer steps. (Positions: tokens read, repeats counted.)

# %%
checkpoints_table()

# %%
checkpoint_curves()

# %% [markdown]
# *Held-out masked pieces found over the training, 15% of the tokens replaced by [MASK] for both; one run each.*
#
# {{number:own_right('course-bert')}} and **{{number:own_right('course-modernbert')}}**: on this text, at this size, the modern encoder is ahead from the first tenth of the training to its end. It was trained with 30% masked and is measured with BERT's 15%. One run of each, but the ladder's rungs on the same text point the same way.
#
# Both fill sentences that were written before either was trained:

# %%
from course_lib.checkpoints import load_pretrained
from course_lib.teaching.predictions import predict_masked
from course_lib.text import english

ours = {"BERT": load_pretrained("course-bert"), "ModernBERT": load_pretrained("course-modernbert")}
found = dict.fromkeys(ours, 0)
print("".join(f"{name:14}" for name in (*ours, "the writer")))
for blank in english.blanks():
    said = {name: predict_masked(one.model, one.tokenizer, blank.text, top=1)[0] for name, one in ours.items()}
    for name, (word, _) in said.items():
        found[name] += word == blank.word
    print("".join(f"{f'{word} {p:.0%}':14}" for word, p in said.values()) + f"{blank.word:11}{blank.text}")
print("\nthe writer's word comes first:", found, "of", len(english.blanks()))

# %% [markdown]
# (`##` marks a piece inside a word.) So few sentences prove nothing: four of them only one model has right, each time the same one,
# and a fair coin would fall so in one try of eight (page 13's test). And much is missed by both: they have read documentation and nothing else.
#
# A model is made to be fine-tuned. Four tasks of lecture 03, up to 2,000 labelled texts each, BERT's head on both, for each checkpoint the better of two rates:

# %%
tasks_chart()

# %% [markdown]
# *A dot a seed. Left: text like what both have read. Right: packages that neither has read. (The task *packages* is to say from which of eight a paragraph is; there the packages are known, the paragraphs unread.)*
#
# course-modernbert's mean over the four is {{number:own_tuned('course-modernbert')}}, course-bert's {{number:own_tuned('course-bert')}}: {{number:after_tuning('mean')}} (in points, and the rule's word). Task by task: code words {{number:after_tuning('code words')}}, sections {{number:after_tuning('sections')}}, packages {{number:after_tuning('packages')}}, kinds of parameters {{number:after_tuning('kinds of parameters')}}. In text that neither has read: {{number:after_tuning('mean', 'outside')}}. The seeds are those of fine-tuning. Each kind was pre-trained once, and another run of it could lie elsewhere.
#
# ### Deep: who learns at all?

# %%
norms_chart()

# %% [markdown]
# *Held-out masked words found; a dot is a seed. Twelve layers, 64 wide, 250 steps, two learning rates. Without warm-up the first step has the full rate; with it, the rate grows over the first fifth. Weights begin with standard deviation 1/√64 = 0.125; with the ladder's 0.05 both ways begin nearly alike. Pre-norm with warm-up was not run.*
#
# - At the higher rate: post-norm {{number:normed('post-norm, 0.002')}}, with warm-up {{number:normed('post-norm, 0.002, warm-up')}}; pre-norm without any **{{number:normed('pre-norm, 0.002')}}**.
# - At the lower: {{number:normed('post-norm, 0.0005')}}, with warm-up **{{number:normed('post-norm, 0.0005, warm-up')}}**; pre-norm {{number:normed('pre-norm, 0.0005')}}.
#
# The lowest figure is one token said everywhere. Post-norm leaves it only with the low rate *and* a warm-up, and then in two seeds of three. Pre-norm needs neither, and makes use of the higher rate. (These are 250 steps: they say who leaves the ground, not who wins. On the stories' ladder, four layers deep and with warm-up, norms before cost two points.)
#
# ### Further back, and longer
#
# The ladder's models, trained on 64 tokens. First the same held-out stories with padding *before* them: nothing changes but the position numbers.

# %%
longer_chart("further_back")

# %% [markdown]
# *Held-out masked words found, by the number of padding tokens in front. Learned positions: the rung "pre-norm", whose position embeddings above 64 were never trained. RoPE: the rung with global layers only ("GeGLU"), and the next one, with local layers. With RoPE nothing changes at all: {{number:back_rope}} at the far end, as at the start; learned {{number:back_learned}}. That is the second guess. (The gate is not the reason: BERT with GeGLU alone finds as little as BERT.)*
#
# Now texts that *are* longer: stories one after another.

# %%
longer_chart()

# %% [markdown]
# *Held-out masked words found, by length; 64 is what training saw. At 256 tokens: learned {{number:accuracy_at('pre-norm', 'longer', 256)}}, RoPE {{number:accuracy_at('GeGLU', 'longer', 256)}}, with local layers {{number:accuracy_at('local layers', 'longer', 256)}}. At 512: {{number:accuracy_at('pre-norm', 'longer', 512)}}, {{number:accuracy_at('GeGLU', 'longer', 512)}}, {{number:accuracy_at('local layers', 'longer', 512)}}.*
#
# RoPE alone is no cure. Likely reasons: distances above 64 are new to it, and a softmax over 512 keys is spread more thinly than ever in training. The surprise is the **local layers**, better in every seed. They never see more than their window, however long the text is: only the global layers meet something new.
#
# Still they lose much. A model that is to read long texts should be trained on some. ModernBERT was: first on 1,024 tokens, then on 8,192, with a larger base for the angles of its global layers (160,000 instead of 10,000), so that they turn more slowly.
#
# ### Longer in a hundred steps
#
# So let us do that: the rung "RMSNorm" has read 64 tokens at a time. It reads on, in a hundred more steps of as many tokens each: texts of 64 (which says what mere training brings), texts of 512, and texts of 512 with the global layers' base at 160,000. Of five learning rates other stories choose the best, for seed 0.

# %%
extension_table()

# %% [markdown]
# *Held-out masked words found, mean of three seeds, by the length of the text. The commonest token said everywhere would find {{number:normed('post-norm, 0.002')}}; what the model finds at 64 tokens is what it could find at 512. Last: points at 512, with the rule's word.*
#
# - **It works.** A hundred steps of 512 tokens bring {{number:longer_by('100 steps of 512, base kept', 'as it is', 512)}} at 512 tokens, with the larger base {{number:longer_by('100 steps of 512, larger base', 'as it is', 512)}}. As many steps of 64 tokens: {{number:longer_by('100 steps of 64 tokens', 'as it is', 512)}}. It is the length that teaches, not the steps. (With texts of 64 the smallest of the five rates is the best one, the end of the grid: there the model has little left to learn.)
# - **It reaches further than it read.** At 2,048 tokens, four times what any step held, {{number:at_length('as it is', 2048)}} become {{number:at_length('100 steps of 512, base kept', 2048)}}. A likely reason: these stories stand one after another without a word to each other, and what had to be learned was to leave the others alone. That is all that is shown here. Whether a model *uses* what stands 500 tokens away needs texts in which that matters.
# - **Where it may break: short texts.** At 64 tokens the hundred long steps bring {{number:longer_by('100 steps of 512, base kept', 'as it is', 64)}}, with the larger base {{number:longer_by('100 steps of 512, larger base', 'as it is', 64)}}. Three seeds do not settle that; who needs both lengths mixes them.
# - **The larger base** does little by itself: {{number:longer_by('larger base alone', 'as it is', 512)}} at 512 tokens. After the hundred steps, beside the base that was kept: {{number:longer_by('100 steps of 512, larger base', '100 steps of 512, base kept', 512)}} at 512 tokens, {{number:longer_by('100 steps of 512, larger base', '100 steps of 512, base kept', 2048)}} at 2,048. The weights know the old angles and must first learn the new ones. ModernBERT gave its larger base 300 billion tokens; here a step holds two thousand.
#
# ### What a text costs, by its length

# %%
cost_chart("flops")

# %%
cost_chart()

# %% [markdown]
# *One text, by its length. One shape for all: six layers, 256 wide, about as many weights. Above FLOPs, below time on one thread. In FLOPs BERT and the ModernBERT with all layers global lie on each other.*
#
# Short texts first: for 128 tokens ModernBERT takes {{number:timed('ModernBERT', 'BERT', 128)}} times as long as BERT. At 2,048 BERT takes {{number:timed('BERT', 'ModernBERT', 2048)}} times as long as ModernBERT, a ModernBERT with all layers global {{number:timed('ModernBERT, all layers global', 'ModernBERT', 2048)}} times, and DeBERTa (an encoder that adds two more products to every score) {{number:timed('DeBERTa', 'ModernBERT', 2048)}} times.
#
# Beside transformers' own class with the same weights, and texts of up to 8,192 tokens:

# %%
speed_table()

# %% [markdown]
# *Tokens a second, forward only; "ours" and transformers' two are ModernBERT. Eager: plain products; sdpa: PyTorch's fused attention; ours / theirs: beside the quicker of the two. Six layers of 256, window 128, bfloat16 ({{number:speed_measured_on}}; `python -m course_lib.bench --tables modern`). A batch holds 2,048 tokens, or one text. A dash: needs more than 2 GB.*
#
# transformers computes all scores and masks those outside the window; ours computes only blocks near the diagonal. For 128 tokens that is no gain ({{number:times_ahead(128):.2f}} times as fast as transformers' quicker way), for 8,192 it is {{number:times_ahead(8192):.1f}} times.
#
# On your machine, now. (Two rounds: where other programs run beside, they may say the opposite.)

# %%
encoders = {name: build().eval() for name, build in step_times.ENCODERS.items()}
for tokens in (128, 512, 1_024):
    found = step_times.best({name: step_times.reading(e, tokens) for name, e in encoders.items()}, rounds=2)
    print(f"{tokens:5} tokens:", "   ".join(f"{name} {1e3 * seconds:.0f} ms" for name, seconds in found.items()))

# %%
answers = {
    "the score": "no: only the distance counts",
    "learned, rotary": f"{number('16', 'back_learned')}, {number('16', 'back_rope')}",
    "brings most": ("\n" + " " * 35).join((
        "on the stories, half-way: RoPE. At the end no step stands out:",
        "RoPE and 30% masked have the largest means, neither settled;",
        "no segments, no biases is nearly as large, and settled.",
        f"Alone: RoPE {number('16', 'alone_rope')}, GeGLU {number('16', 'alone_geglu')}",
    )),
}  # fmt: skip
print(f"{'':18}{'you said':>14}   answer")
for name, value in answers.items():
    print(f"{name:18}{str(my_guesses[name]).replace('Ellipsis', '–'):>14}   {value}")

# %% [markdown]
# ## Pre-train your own
#
# A folder of plain text (.txt, paragraphs apart by an empty line) and a recipe are all it takes:
#
#     python -m course_lib.train.pretrain RECIPE --out FOLDER
#
# Here it is in small, in this very process. The texts are 400 stories; put your own in their place.
# They may be in any language: accents, vowel signs and tone marks stay where they tell words apart. The
# run begins by saying whether they do, and what it left out of the folder.

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
# What comes out is a folder that transformers reads:

# %%
from transformers import AutoModelForMaskedLM, AutoTokenizer

own = AutoModelForMaskedLM.from_pretrained(work / "run" / "model").eval()
tokenizer = AutoTokenizer.from_pretrained(work / "run" / "model")
print(type(own).__name__, "·", own.config.layer_types)
given = tokenizer("the storm flooded the [MASK] .", return_tensors="pt")
with torch.no_grad():
    logits = own(**given).logits
best = logits[given["input_ids"] == tokenizer.mask_token_id][0].topk(5).indices
print("after 60 steps it says:", tokenizer.convert_ids_to_tokens(best.tolist()))

# %% [markdown]
# Sixty steps are enough for full stops and the commonest words. What it takes to get further:
#
# - *A laptop and an evening.* The course's `course-bert` (four layers of 256, {{number:stored('03_checkpoint')['text']['words'] / 1000000.0:.1f}} million words) read {{number:rate():,.0f}} tokens a second on two cores and was done in an hour and a half. `data/recipes/course_modernbert.toml` is a recipe for a ModernBERT of that kind; give it your folder as its `source`. A few million words of one domain are a good beginning; a killed run goes on where it stopped.
# - *A GPU, or several.* The same command under `torchrun` trains in many processes (README, "Pre-train your own").
# - *The real thing.* A token costs ModernBERT-base {{number:base_flops(TRAINED_AT):.0f}} times as many FLOPs as that checkpoint. Its two trillion tokens would take these two cores some {{number:TOKENS * base_flops(TRAINED_AT) / rate() / 31560000.0:.0f}} years. Rather begin with released weights (`load_pretrained`) and continue on your texts, as in lecture 11.
#
# ## Since then
#
# - **NeoBERT** (Le Breton et al. 2025): 28 layers at BERT-base's width, RoPE, SwiGLU, RMSNorm before the halves, 20% masked, texts of up to 4,096 tokens. transformers has no class of its own for it.
# - **EuroBERT** (Boizard et al. 2025), on this page: 15 languages, 5 trillion tokens, up to 8,192 of them at once.
# - **Ettin** (Weller et al. 2025): pairs of an encoder and a decoder, from 17 million to a billion weights, with the same recipe and text. Each is better at its own trade: encoders at classification and retrieval, decoders at writing. To train one of them further in the other's way does not make up for it. Its encoders are of ModernBERT's class.
# - **mmBERT** (Marone et al. 2025): ModernBERT's class for over 1,800 languages. Most of them join only in the last, short phase of the training, while the learning rate falls; so little text of each is not repeated until it is memorised.
# - **LFM2.5-Encoder** (Liquid AI): by UltraBERT's card the one to beat at retrieval (BEIR) before UltraBERT, as Ettin was at GLUE and RoBERTa at names.
# - **UltraBERT** (dmis-lab 2026), on this page: 150 and 380 million weights, English, 32,768 tokens, by its card the first to lead in classification *and* retrieval at its size. Its embedder's 67.24 on MTEB (English, version 2) is the card's figure; it was not measured here.
# - **Decoders as embedders.** A decoder can be made to see both ways and to give vectors of texts (LLM2Vec, BehnamGhader et al. 2024). It is many times an encoder's size, and so is what each text costs.
#
# ### The recipe of today, in words
#
# What a modern run does besides, none of which was measured here:
#
# - **Warm-up, stable, decay.** The rate rises, stays for most of the training, and falls at the very end (ModernBERT: 3 billion tokens of warm-up, then 1.7 trillion at one rate). A run can so be prolonged, or branched: the decay is a short piece of its own, with the best text, or with another 1,700 languages. BERT's falling line must know its end before it begins.
# - **StableAdamW.** AdamW, whose step of each matrix is made smaller where the gradient is suddenly far larger than its own recent mean. It takes the place of clipping the whole gradient.
# - **Packing.** Texts of all lengths are laid into rows without gaps, and a block mask keeps them apart. Restarting the positions does not: that is one more trap, since with RoPE the positions of two texts hardly matter, and who sees whom does.
# - **Two lengths.** Most of the training short, then longer, with a larger base: what a hundred steps above do in small.
#
# ## What they claim, what you measured
#
# Each line was settled by code that ran just now, by a result file, or, where neither can, by a source.

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
# To go on: add a rung of your own to `ladder.CHANGES` (a window of 8? the old order of norms at the top?) and run it.

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
# - NeoBERT, arXiv 2502.19587; EuroBERT, arXiv 2503.05500; Ettin, arXiv 2507.11412; mmBERT, arXiv 2509.06888; LLM2Vec, arXiv 2404.05961.
