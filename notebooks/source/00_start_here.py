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
# BERT reads both sides of a word at once, and learned to do so by guessing hidden words. A family of models grew from it. This course builds its members
# from scratch. We compare each with the published model if that runs here, and otherwise with the paper's formulas. Claims are measured in front of you, or
# traced to a stored run or a source. No network is needed.
#
# After this page you know that your machine is ready, what the course covers, and what a *masked word* is: you will have trained a model to guess one. You need
# Python and some idea of a training loop.
#
# {{parts}}
#
# ## Predict first
#
# In a moment a model will read about ten thousand short stories. That takes half a minute to two
# minutes. Then it sees a new story twice, each time with one word hidden:
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
# ## A first masked word
#
# The stories below come from an invented world. Every sentence obeys its rules: who lives where, who does
# what, and which things belong to which trade. The cell makes more than are read.

# %% tags=["nbval-check-output"]
import torch

from course_lib import MicroWorld, bert_for_pretraining, fit, make_pairs, pretraining_batches, pretraining_loss
from course_lib.teaching import LiveLoss, WatchWord, prediction_slider

world = MicroWorld.load()
stories = world.stories(20_000, seed=0)
print(stories[1].text)

# %% [markdown]
# Of every hundred words, fifteen are *selected for prediction*, and most of those are hidden. The model guesses, sees the right word, and adjusts its weights a
# little. Then it reads the next stories. The curve is the *loss*: how surprised the model is by the right words. We watch the first gap (`easy` in the code).

# %%
words = world.tokenizer
sequences = make_pairs(world.documents(stories), world.special, length=64)
batches = pretraining_batches(sequences, world.special, batch_size=32, seed=0)
torch.manual_seed(0)
model = bert_for_pretraining(
    "tiny", vocab_size=words.vocab_size, max_positions=64, initializer_range=0.05,
    hidden_dropout=0.0, attention_dropout=0.0,
)  # fmt: skip

first, second, pronoun = world.stories(1, seed=3, split="heldout")[0].with_gap("agreement")
easy = second.replace("then [MASK]", f"[MASK] {pronoun}")  # another word of the same story
watch = WatchWord(words, first, second=easy, truth="then", looks=9)
history = fit(model, pretraining_loss, batches, steps=600, learning_rate=2e-3, callbacks=[LiveLoss(), watch])
print(f"{history.seconds:.0f} seconds, {history.tokens:,} positions read")

# %% [markdown]
# *Surprise at a selected word, in nats (natural logarithms). It starts at about 7, where all of a thousand words are equally likely, and falls. MLM: masked
# language modelling, the guessing of hidden words. A position holds one word or sign.*

# %%
print(f"{first}\n{easy}\nhidden: then")
prediction_slider(watch.snapshots, f"{first} {easy}", truth="then")

# %% [markdown]
# *Move the slider. At the first steps you see the words that are frequent anywhere; at the last, the word `then` has a large probability.* **In about a minute
# the model has learned much of how these stories are built**, for instance what opens a sentence.
#
# Now the second gap, one word further on:

# %%
from course_lib.teaching import predict_masked

print(f"{second}\nhidden: {pronoun}")
guesses = predict_masked(model, words, first, second=second, top=6)
print("    " + ", ".join(f"{word} {probability:.0%}" for word, probability in guesses))

# %% [markdown]
# **Here it fails.** It offers pronouns, verbs and the word *both*. None has much more than a tenth of the probability, so their order means little. The word
# depends on a person who was named earlier; so far the model seems to know little more than which words stand near each other.
#
# That is the main idea of BERT's pre-training, in miniature. Lecture 02 trains four times as long
# and counts, for each kind of word, what is learned and what is not.
#
# ## The same in real English
#
# The course includes a small BERT of its own, trained in the same way for well over an hour on the documentation of Python
# and its libraries. Before that training, we wrote fifteen sentences, each with one word in mind. Here are two that the
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
# *The model's five best guesses for each, with their probabilities. `##` marks a piece that continues a word (lecture 02).*
#
# It knows some set phrases of technical English. In the third sentence it repeats a word that it has just read, and is sure of it: it knows which words often
# occur together, but little of their meaning. It has read only technical English: ask it about arrays, not about grandmothers. [Lecture
# 03](03_fine_tuning.ipynb) tells how it was made, and how it learns to sort reviews, find names and answer questions.
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
# Each page says at its head which pages it needs: most need page 02, and some need one or two more.
#
# The next cell shows what you have solved on this machine. Run it again to see the list grow:

# %%
from course_lib import progress

progress()

# %% [markdown]
# *✓ solved, ○ open. Point at a number to see its title.*
#
# Most pages have the same parts, so you always know where you are: *predict first* · *by hand* · *try it* ·
# *the code* · *is it right?* · *see it* · *measure it* · *what they claim, what you measured* · *more
# exercises* · *quiz* · *questions for review* · *read on*.
#
# ## How to use it
#
# Run a cell with Shift+Enter. `show(thing)` prints the library's own source. `check("02.1", my_function)` judges an exercise and names known mistakes;
# `hint("02.1")` gives one step of help; `reveal("02.1")` shows a solution. If a cell never ends, press *Interrupt* (■). *Restart kernel and run all* puts a
# page in order again.
#
# ## What the course answers
#
# Some statements in lectures and papers are wrong or easily misread. The page on their subject settles them, by code where possible, under *what they claim,
# what you measured*. [Page 13](13_choosing_a_variant.ipynb) has an index of them all, and of the questions for review. The table below shows how the papers'
# best-known claims fared at this course's size, with small models in an invented world or on short English texts:

# %%
from course_lib.teaching import replication_table

replication_table()

# %% [markdown]
# *Each outcome has a sign, a colour and a few words; click to unfold the evidence. "Contradicted" means that the opposite was seen here,
# and that the causes it names were tested. It does not mean that the paper is wrong at its own size. "Not settled" means that runs were
# made but do not decide.*
