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
# BERT reads text in both directions at once and learned to do so by guessing hidden words. A family of models
# grew from it. This course builds its members from scratch, compares each with the published one where that
# runs here (and with its formulas where it does not), and measures every claim in front of you, on the machine
# you sit at, without a network.
#
# After this page you know that your machine is ready, what the course holds, and what a *masked word* is,
# because you will have trained a model to guess one. You need Python, and have seen a training loop before; nothing else.
#
# {{parts}}
#
# ## Predict first
#
# In a moment a model will read about ten thousand short stories, for half a minute to two minutes, by machine.
# Then it sees a story it has never met, twice, with one word hidden:
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
# what, which things belong to which trade.

# %% tags=["nbval-check-output"]
import torch

from course_lib import MicroWorld, bert_for_pretraining, fit, make_pairs, pretraining_batches, pretraining_loss
from course_lib.teaching import LiveLoss, WatchWord, prediction_slider

world = MicroWorld.load()
stories = world.stories(20_000, seed=0)
print(stories[1].text)

# %% [markdown]
# Fifteen in a hundred words are *selected for prediction*, and most of them hidden; the model guesses, it is told the
# right word, its weights change a little; then the next stories. The curve is the *loss*: how surprised the model is by
# the right words.
# We watch the first gap.

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
# *Surprise at a selected word, in nats (natural logarithms): about 7 at first, any of a thousand words equally likely, then
# fewer. MLM: masked language modelling, the guessing of hidden words.*

# %%
print(f"{first}\n{easy}\nhidden: then")
prediction_slider(watch.snapshots, f"{first} {easy}", truth="then")

# %% [markdown]
# *Move the slider: at the first steps the words that are frequent anywhere, at the last* then *with a large probability.* **In about a minute the model has
# learned how these stories are built**: what opens a sentence, what stands between two names.
#
# Now the second gap, one word further on:

# %%
from course_lib.teaching import predict_masked

print(f"{second}\nhidden: {pronoun}")
guesses = predict_masked(model, words, first, second=second, top=6)
print("    " + ", ".join(f"{word} {probability:.0%}" for word, probability in guesses))

# %% [markdown]
# **Here it breaks.** Pronouns, verbs, *both*: none has much more than a tenth of the probability, and whether the right one comes first is luck. The word depends on a person who was
# named in the sentences before; so far the model has learned little more than what stands near what. Lecture 02 trains four times as long and counts, kind of word by
# kind of word, what is learned and what is not.
#
# That is the whole trick of BERT's pre-training, on a thumbnail. How well it does in full, what it cannot know,
# and how one tells: lecture 02.
#
# ## The same in real English
#
# The course brings a small BERT of its own, trained by the same trick for well over an hour on the documentation of Python
# and its libraries. The sentences below were written before it was trained, each with a word in mind: two of fifteen that it completes as its writer did, and two
# that it does not. (All fifteen: lecture 02.)

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
# *Five guesses each, as they come out, with their probabilities. `##`: a piece that goes on with a word (lecture 02).*
#
# Fixed turns of its trade it knows well. In the third sentence it repeats a word that it has just read, and is sure of it: it knows what often stands near, and little of
# what is meant. And it has read technical English and nothing else: ask it about arrays, not about grandmothers. How it was made, and how it
# learns to sort reviews, find names and answer questions: [lecture 03](03_fine_tuning.ipynb).
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
# What you have solved, on this machine; run the cell again to see it grow:

# %%
from course_lib import progress

progress()

# %% [markdown]
# *✓ solved, ○ open. Point at a number to see its title.*
#
# Each page has the same parts, so you always know where you are: *predict first* · *by hand* · *try it* · *the code* ·
# *is it right?* · *see it* · *measure it* · *what they claim, what you measured* · *more exercises* · *quiz* ·
# *questions for review* · *read on*.
#
# ## How to use it
#
# Run a cell with Shift+Enter. `show(thing)` prints the library's own source. `check("02.1", my_function)` judges
# an exercise and names the mistake; `hint("02.1")` gives one step of help; `reveal("02.1")` shows a solution.
# If a cell never ends, press *Interrupt* (■). Nothing you do can break a page: *Restart kernel and run all* brings
# it back.
#
# ## What the course answers
#
# Statements of lectures and papers that are wrong or easily misread are settled on the page that teaches their subject, by code where code can: its part
# *what they claim, what you measured*. [Page 13](13_choosing_a_variant.ipynb) has the index of them all, and of the questions for review. What became of the
# papers' best-known claims at this course's size, with small models in an invented world or on short English texts, you can look up here at any time:

# %%
from course_lib.teaching import replication_table

replication_table()

# %% [markdown]
# *A sign, a colour and words for each outcome; the evidence unfolds. "Contradicted" means: the opposite was seen here,
# and the causes named were tested. It does not mean that the paper is wrong at its own size. "Not settled": runs were made, and
# do not decide.*
