# ---
# jupyter:
#   jupytext:
#     cell_metadata_filter: tags,slideshow,-all
#     text_representation:
#       extension: .py
#       format_name: percent
# ---

# %% [markdown]
# # Start here
#
# **Lecture 00** · about 5 minutes · {{colab}}
#
# BERT reads text in both directions at once and learned to do so by guessing hidden words. A family of models
# grew from it. This course builds its members from scratch, proves each one equal to the published one, and
# measures every claim in front of you, on the machine you sit at, without a network.
#
# After this page you know that your machine is ready, what the course holds, and what a *masked word* is,
# because you will have trained a model to guess one.
#
# ## Predict first
#
# A model sees: *the baker opened the* `[MASK]` *and lit the oven*. It has read nothing but a few thousand
# short stories, for less than half a minute. Will it put a sensible **kind** of word there? The **right**
# word? Decide before you run the last cell of this page.
#
# ## Is this machine ready?

# %%
from course_lib.views import check_machine

check_machine()

# %% [markdown]
# ## A first masked word
#
# The stories below come from an invented world. Every sentence obeys its rules: who lives where, who does
# what, which things belong to which trade.

# %%
import torch

from course_lib import MicroWorld, bert_for_pretraining, fit, make_pairs, pretraining_batches, pretraining_loss
from course_lib.views import LiveLoss, WatchWord, caption, prediction_slider

world = MicroWorld.load()
stories = world.stories(8_000, seed=0)
print(stories[1].text)

# %% [markdown]
# Fifteen in a hundred words are hidden, the model guesses, it is told the right word, it changes its numbers a
# little; then the next stories. The curve shows how surprised it is by the right words.

# %%
words = world.tokenizer
rows = make_pairs(world.documents(stories), world.special, length=64)
torch.manual_seed(0)
model = bert_for_pretraining(
    "tiny", vocab_size=words.vocab_size, max_positions=64, hidden_dropout=0.0, attention_dropout=0.0
)
watch = WatchWord(words, "[MASK] buys seven woollen boats .", steps=9)
history = fit(
    model, pretraining_loss, pretraining_batches(rows, world.special, batch_size=64),
    steps=300, learning_rate=2e-3, callbacks=[LiveLoss(), watch],
)  # fmt: skip
print(f"{history.seconds:.0f} seconds, {history.tokens:,} positions read")

# %%
caption("Nats of surprise at a hidden word, step by step: about 7 at first (any of 1,100 words), then fewer.")

# %%
prediction_slider(watch.snapshots, watch.text)

# %%
caption("Move the slider: at step 0 any word will do; soon the kind of word is right.")
