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
# **Lecture 00** · {{duration}} · {{colab}}
#
# BERT is a language model that reads both sides of a word at once. It learned to do so by guessing hidden words, and a family of models grew from it. This
# course builds its members from scratch. We compare each with a published implementation where that runs here, and otherwise with the paper's formulas. Claims are
# measured in front of you, or traced to a stored run or a source. No network is needed.
#
# After this page you know whether your machine is ready, what the course covers, and what a *masked word* is: you will have trained a model to guess one. You
# need Python and some idea of a training loop.
#
# {{parts}}
#
# ## Predict first
#
# A model will read over ten thousand short stories from an invented world. That takes half a
# minute to two minutes. Then it sees a new story twice, each time with `[MASK]` for one word:
#
# 1. *… [MASK] she waters the green rose for jonen . finally the gardener picks the green rose …*
# 2. *… then [MASK] waters the green rose for jonen . finally the gardener picks the green rose …*
#
# Will it find the word in the first gap? In the second? Decide before you look.
#
# ## Is this machine ready?

# %%
from course_lib.teaching import check_machine

check_machine()

# %% [markdown]
# *Where a line has ✗, first do what it says; lines with – can wait.*
#
# ## A first masked word
#
# Every sentence of the stories obeys the rules of their world: who lives where, who does what, and
# which things belong to which trade. The cell makes more stories than the model will read.

# %% tags=["nbval-check-output"]
import torch

from course_lib import MicroWorld, bert_for_pretraining, fit, make_pairs, pretraining_batches, pretraining_loss
from course_lib.teaching import LiveLoss, WatchWord, prediction_slider

world = MicroWorld.load()
stories = world.stories(20_000, seed=0)
print(stories[1].text)

# %% [markdown]
# Of every hundred words, fifteen are *selected for prediction*, and most of those are hidden. The model guesses, sees the right word, and adjusts its weights a
# little. (`pretraining_loss` has a second task, too: see lecture 02.) The curve is the *loss*: how surprised the model is by the right words. We watch the
# first gap (`then_gap`).

# %%
tokenizer = world.tokenizer
sequences = make_pairs(world.documents(stories), world.special, length=64)
batches = pretraining_batches(sequences, world.special, batch_size=32, seed=0)
torch.manual_seed(0)
model = bert_for_pretraining(
    "tiny", vocab_size=tokenizer.vocab_size, max_positions=64, initializer_range=0.05,
    hidden_dropout=0.0, attention_dropout=0.0,
)  # fmt: skip

first_half, pronoun_gap, pronoun = world.stories(1, seed=3, split="heldout")[0].with_gap("agreement")
then_gap = pronoun_gap.replace("then [MASK]", f"[MASK] {pronoun}")  # hides the word before instead
watch = WatchWord(tokenizer, first_half, second=then_gap, truth="then", looks=9)
history = fit(model, pretraining_loss, batches, steps=600, learning_rate=2e-3, callbacks=[LiveLoss(), watch])
print(f"{history.seconds:.0f} seconds, {history.tokens:,} positions read")

# %% [markdown]
# *The loss at a selected word, in nats (natural logarithms). It starts at about 7, as if all of a thousand words were equally likely, and falls. MLM is masked
# language modelling, the guessing of hidden words. A position holds a word, a full stop, a special token such as `[MASK]`, or padding.*

# %%
print(f"{first_half}\n{then_gap}\nhidden: then")
prediction_slider(watch.snapshots, f"{first_half} {then_gap}", truth="then")

# %% [markdown]
# *Move the slider. At first you see the words that are frequent anywhere; at the last step, `then` has a large probability.* **In about a minute
# the model has learned to fill this gap.** This is one example; counting which words stand together may be enough for it.
#
# Now the second gap:

# %%
from course_lib.teaching import predict_masked

print(f"{pronoun_gap}\nhidden: {pronoun}")
guesses = predict_masked(model, tokenizer, first_half, second=pronoun_gap, top=6)
print("    " + ", ".join(f"{word} {probability:.0%}" for word, probability in guesses))

# %% [markdown]
# **Here it stays unsure.** We saw it offer mostly pronouns, verbs and *both*, none with much more than a tenth of the probability. So their order means
# little, even if the hidden word comes first. The word depends on a person named earlier; so far the model seems to know little beyond neighbouring words.
#
# Guessing hidden words is the main idea of BERT's *pre-training*, its training on plain text. Lecture
# 02 trains up to four times as long and counts, for each kind of word, what is learned and what is not.
#
# ## The same in real English
#
# The course includes a small BERT of its own, trained for well over an hour to guess hidden words in the documentation of
# Python and its libraries. Before that, we wrote fifteen sentences, each with one word in mind. Here are two that the
# model completes as intended, and two that it does not. (Lecture 02 shows all fifteen.)

# %%
from course_lib import load_pretrained
from course_lib.text import english

course = load_pretrained("course-bert")
blanks = english.blanks()
for blank in (blanks[12], blanks[1], blanks[9], blanks[-1]):
    guesses = predict_masked(course.model, course.tokenizer, blank.text, top=5)
    print(f"{blank.text}   (in mind: {blank.word})")
    print("    " + ", ".join(f"{word} {probability:.0%}" for word, probability in guesses))

# %% [markdown]
# *The model's five best guesses, with their probabilities. `##` marks a piece that continues a word (lecture 02).*
#
# It knows some set phrases of technical English. In the third sentence it repeats a word that it has just read, and is sure of it, as if it knew which words
# go together but not what they mean. It has read only technical English (`sugar` is not even a piece of its vocabulary): ask it about arrays, not about grandmothers. [Lecture
# 03](03_fine_tuning.ipynb) tells how it was made, and how well it learns to sort reviews, find names and answer questions.
#
# ## The map
#
# | no. | page | state |
# |---|---|---|
# | 00 | start here | you are here |
# | 01 | [Words in context: from one vector a word to three kinds of Transformer](01_words_in_context.ipynb) | ready |
# | 02 | [BERT: hide some words, ask for them back](02_bert_mlm_nsp.ipynb) | ready |
# | 03 | [Fine-tuning: one encoder, many tasks](03_fine_tuning.ipynb) | ready |
# | 04 | [RoBERTa: the same model, trained with care](04_roberta_dynamic_masking.ipynb) | ready |
# | 05 | [ALBERT: a tenth of the weights, all of the work](05_albert_factorization.ipynb) | ready |
# | 06 | [Distillation: a small model learns from a large one's answers](06_distillation.ipynb) | ready |
# | 07 | [ELECTRA: learn from every token](07_electra.ipynb) | ready |
# | 08 | [DeBERTa: disentangled attention](08_deberta_attention.ipynb) | ready |
# | 09 | [Spans and entities: what to mask, and what to know](09_spans_and_entities.ipynb) | ready |
# | 10 | [Many languages: one model reads them all](10_many_languages.ipynb) | ready |
# | 11 | [Domains: read on, or start afresh?](11_domains.ipynb) | ready |
# | 12 | [Fast inference: leave early, be thin, count in small numbers](12_fast_inference.ipynb) | ready |
# | 13 | [Choosing a variant: nine tasks, one honest benchmark, and a guide](13_choosing_a_variant.ipynb) | ready |
# | 14 | [Kernels: why the fast versions are fast](14_kernels.ipynb) | ready |
# | 15 | [Beyond text: ViT, the same encoder on patches](15_beyond_text.ipynb) | ready |
# | 16 | [Modern encoders: from BERT to ModernBERT and on to 2026, change by change](16_modern_encoders.ipynb) | ready |
# | 17 | [Sentence embeddings: one vector a text, and how to find it again](17_search.ipynb) | ready |
#
# Each page says at its head which pages it needs: most need page 02, some one or two more.
#
# The next cell shows what you have solved on this machine. Run it again to see the list grow:

# %%
from course_lib import progress

progress()

# %% [markdown]
# *✓ solved, ○ open. Point at a number to see its title.*
#
# Most pages have the same parts: *predict first* · *by hand* · *try it* ·
# *the code* · *is it right?* · *see it* · *measure it* · *what they claim, what you measured* · *more
# exercises* · *quiz* · *questions for review* · *read on*.
#
# ## How to use it
#
# Run a cell with Shift+Enter. `show(thing)` prints the library's own source. `check("02.1", my_function)` tests your answer to exercise 02.1 and names common
# mistakes; `hint("02.1")` gives one step of help; `reveal("02.1")` shows a solution. If a cell never ends, press *Interrupt* (■). *Restart kernel and run all*
# puts a page in order again.
#
# ## What the course answers
#
# Some statements in lectures and papers are wrong or easily misread. The page on their subject checks them, under *what they claim, what you
# measured*. [Page 13](13_choosing_a_variant.ipynb) indexes them all, and the questions for review. The table below shows how the papers'
# headline claims fared at this course's size, with small models, little text and few seeds:

# %%
from course_lib.teaching import replication_table

replication_table()

# %% [markdown]
# *"The evidence" unfolds with a click. "Contradicted" means that the opposite was seen here, and that we tested the cause named
# beside it. It does not mean that the paper is wrong at its own size. "Not settled" means that runs were made but do not decide.*
