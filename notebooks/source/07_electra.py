# ---
# jupyter:
#   jupytext:
#     cell_metadata_filter: tags,slideshow,-all
#     text_representation:
#       extension: .py
#       format_name: percent
# ---

# %% [markdown]
# # ELECTRA: learn from every token
#
# **Lecture 07** · about 105 minutes with the exercises, 40 without · {{colab}}
#
# After this page you can
#
# - build ELECTRA's two networks, and say what passes between them (words, embedding tables) and what does not (gradients);
# - write its loss with λ on the right term, and show what the other place would mean;
# - count a training step honestly, with both networks in it, and compare at equal steps and at equal arithmetic;
# - say of "a quarter of the compute" whose compute that is.
#
# You need masked words (**MLM**) and the encoder of lecture 02; the narrow embedding table of lecture 05 is used again.
# Nothing is downloaded.

# %%
import torch

from course_lib import (
    MicroWorld, bert, check, claims_table, compare, count_parameters, electra, electra_discriminator, hint,
    quiz, reveal, show,
)  # fmt: skip
from course_lib.lectures.lecture_07.experiments import micro_electra, prepare
from course_lib.teaching import LiveLoss, dots_chart, ablation_chart
from course_lib.lectures.lecture_07.views import corruptor_view

# %% [markdown]
# ## Predict first
#
# BERT hides 15% of a text and learns from these 15%. ELECTRA (Clark et al. 2020, arXiv 2003.10555) lets a small BERT,
# the **generator**, fill the gaps; a second network, the **discriminator**, reads the result and says of *every* token:
# original, or replaced? Afterwards the generator is thrown away.
#
# Three guesses. Write them down before you go on.
#
# 1. The generator fills 15% of the positions and guesses right in 4 of 10. What share of the tokens the
#    discriminator reads has really been replaced?
# 2. The two losses are added, one of them times 50. Which one?
# 3. An ELECTRA-base and a BERT-base are both trained and both used. Which of the two *reads a text* faster?

# %%
my_guesses = {"share replaced": ..., "times 50": ..., "reads faster": ...}

# %% [markdown]
# ## By hand
#
# ### One sentence, worked
#
# Two positions of *"the gardener waters the old roses"* are masked. The generator fills both, by drawing from its
# distribution. Once it draws the very word that stood there.

# %% tags=["nbval-check-output"]
text = ["the", "gardener", "waters", "the", "old", "roses"]
masked = ["the", "gardener", "[MASK]", "the", "[MASK]", "roses"]
filled = ["the", "gardener", "waters", "the", "wet", "roses"]
for before, gap, after in zip(text, masked, filled):
    label = int(before != after)
    print(f"{before:10}{gap:10}{after:10}{label}  {'replaced' if label else 'original'}")

# %% [markdown]
# *waters* was masked, drawn again, and is **original**: label 0. *wet* is a good word in its place, and still
# replaced: label 1. The discriminator sees the third column only. There is no `[MASK]` in it; the second column, which
# the generator reads, has two. "ELECTRA replaces tokens instead of masking" forgets that column.
#
# Two conventions. The paper's discriminator gives the probability that a token is *original*; the released code, and
# this course, that it is *replaced*. They differ by a sign. And the paper masks every chosen position, while the code
# leaves 15% of them as they are.
#
# ### Two losses of different size
#
# At the start both networks guess. With 30,522 words the generator's loss is ln 30,522; with two labels the
# discriminator's is ln 2. The paper minimises L_MLM + λ·L_Disc with λ = 50. Some lectures print L_Disc + λ·L_MLM.

# %% tags=["nbval-check-output"]
from math import log

mlm, disc = log(30_522), log(2)
print(f"L_MLM {mlm:.2f}, L_Disc {disc:.3f}")
print(f"discriminator's share of L_MLM + 50 · L_Disc: {50 * disc / (mlm + 50 * disc):.1%}")
print(f"discriminator's share of L_Disc + 50 · L_MLM: {disc / (disc + 50 * mlm):.2%}")

# %% [markdown]
# A discriminator's loss is small by nature: two answers, and most tokens are original. λ lifts it up. On the other term
# it would drown it. What that does to training we measure below.
#
# ## Try it
#
# Two pieces to build before the page shows them. A wrong answer gets the name of its mistake; `hint("07.1")` helps a
# step at a time, `reveal("07.1")` shows a solution. No later cell needs your answers.
#
# {{exercise:07.1}}

# %%
def my_labels(original_ids, masked_ids, corrupted_ids):
    return ...


check("07.1", my_labels)

# %% [markdown]
# {{exercise:07.2}}

# %%
def my_corrupt(input_ids, predict_at, logits):
    return ...


check("07.2", my_corrupt)

# %% [markdown]
# ## The code
#
# ### Two networks, one table
#
# Both are BERT encoders. The generator is narrower, and as deep. Its table of words is the discriminator's own, of the
# same width; a projection leads to its narrower inside (lecture 05's factorised embeddings).

# %%
from course_lib.family.electra import ElectraConfig, electra_encoder, electra_from, fill_in, generator_config

show(electra_encoder, generator_config, electra_from)

# %% [markdown]
# ### What passes between them
#
# Words, drawn at random. A draw has no slope: nothing flows back through it, so the generator never hears what the
# discriminator thinks. It is not an adversary. It learns to guess well, as BERT does, and nothing else. `sample_tokens`
# draws each word with its probability after the softmax; the library has a quick way to do it.

# %%
from course_lib.family.electra import Electra

show(Electra.forward, fill_in)

# %% [markdown]
# ### The loss
#
# Over *all* real tokens, and over the masked ones for the generator.

# %%
from course_lib.objectives.replaced_tokens import electra_loss, replaced_labels, replaced_token_loss

show(replaced_labels, replaced_token_loss, electra_loss)

# %% [markdown]
# ## Is it right?
#
# Both networks against the reference implementation, outputs and gradients.

# %%
small = {"vocab_size": 2_000, "num_layers": 3, "hidden_size": 128, "num_heads": 4, "intermediate_size": 512}
torch.manual_seed(0)
both = electra("small", embedding_size=64, **small)
compare(both.discriminator)

# %%
compare(both.generator)

# %% [markdown]
# ### What is shared, counted

# %% tags=["nbval-check-output"]
with torch.device("meta"):
    for size in ("small", "base", "large"):
        kept = electra_discriminator(size)
        added = count_parameters(electra(size)) - count_parameters(kept)
        print(f"ELECTRA-{size:6} encoder {count_parameters(kept.encoder):12,} + head {count_parameters(kept.rtd):10,}"
              f"; the generator adds {added:11,}")  # fmt: skip
    print(f"BERT-base without pooler  {count_parameters(bert('base')) - 768 * 769:12,}")

# %% [markdown]
# What is kept of ELECTRA-base has exactly BERT-base's encoder. So the third guess: neither; the same encoder reads at the
# same speed. "Faster inference" is said of ELECTRA, and is wrong. A *training step* costs more, because there are two
# networks in it.
#
# ### Where gradients stop
#
# Only the discriminator's loss, backwards. Which of the generator's weights hear of it?

# %%
rows = torch.randint(5, 2_000, (4, 20))
at = torch.tensor([3, 11, 25, 47, 66])
out = both(rows.flatten().index_fill(0, at, 4).view(4, 20), predict_at=at)
replaced_token_loss(out, {"labels": rows.flatten()[at]})["total"].backward()
shared = {id(p) for p in both.discriminator.parameters()}
own = [p for p in both.generator.parameters() if id(p) not in shared]
print(f"weights only the generator has: {sum(p.numel() for p in own):,}, with a gradient:",
      sum(p.numel() for p in own if p.grad is not None))  # fmt: skip
print(f"tables both read: {sum(p.numel() for p in both.generator.parameters() if id(p) in shared):,}, all with a gradient:",
      all(p.grad is not None for p in both.generator.parameters() if id(p) in shared))  # fmt: skip

# %% [markdown]
# ## See it
#
# ### A corruptor
#
# An ELECTRA of the micro-world, trained for this course and shipped with it. Write a story of your own (in its words:
# people, jobs, places, things), choose how much to mask, draw again.

# %%
world = MicroWorld.load()
trained = micro_electra()
story = world.stories(3, seed=5, split="heldout")[0]
corruptor_view(trained, world.tokenizer, " ".join(story.sentences[:4]))

# %% [markdown]
# *Rows: the text; with gaps; as the generator filled it; and how strongly the discriminator doubts each token, in
# percent and as shade. Tokens that were really replaced are outlined twice.*

# %% [markdown]
# Try a story that contradicts itself, and mask nothing: does it doubt your own words?
#
# ## Measure it
#
# ### One, live
#
# A small ELECTRA from fresh weights: discriminator of two layers, 128 wide; generator a quarter as wide; 200 steps.

# %%
from course_lib.lectures.lecture_07.experiments import (
    FULL,
    area_under_curve,
    batches_of,
    discriminator_logits,
    train_ablation_step,
)

material = prepare(world)
model, history = train_ablation_step(FULL, material, steps=200, callbacks=[LiveLoss()])

# %%
probe = [batches_of(FULL, material, 1)(step) for step in range(8)]
for name, either in (("200 steps", model), ("shipped", trained)):
    scores, labels = discriminator_logits(either, probe)
    print(f"{name:10} replaced {labels.float().mean():.1%} of all tokens; told apart in {area_under_curve(scores, labels):.0%}"
          f" of pairs; loss {torch.nn.functional.binary_cross_entropy_with_logits(scores, labels.float()):.3f}")  # fmt: skip

# %% [markdown]
# "Told apart" takes a replaced and an original token at random and asks which has the higher doubt: a coin reaches 50%.
# (Always answering "14%" would give a loss of 0.41.) For one and the same discriminator, a better generator's replacements
# are fewer (first guess: 15% · 0.6 = 9%) and harder to tell. The shipped pair is better in *both* networks.
#
# ### From BERT to ELECTRA in five steps
#
# ELECTRA changes several things at once. The paper takes them apart (Table 5), and so do we:
#
# | stone | reads | says | at |
# |---|---|---|---|
# | BERT | `[MASK]` | the word | masked positions |
# | Replace MLM | the generator's words | the word | masked positions |
# | ELECTRA 15% | the generator's words | replaced or not | masked positions |
# | All-tokens MLM | the generator's words | the word, mixed with a yes-or-no score "keep what stands here" | all positions |
# | ELECTRA | the generator's words | replaced or not | all positions |
#
# A step does not cost the same for each. Operations, counted while a step runs, both networks included:

# %%
from course_lib.lectures.lecture_07.experiments import EQUAL_STEPS, flops_a_step

costs = {name: flops_a_step(recipe, material) for name, recipe in EQUAL_STEPS.items()}
for name, cost in costs.items():
    print(f"{name:16}{cost / 1e9:6.2f} billion operations a step, {cost / costs['BERT']:.2f} of BERT's")

# %% [markdown]
# (BERT and Replace MLM compute their last layer only where a word is asked. All-tokens MLM and ELECTRA must answer
# everywhere. ELECTRA 15% could save it too; our code judges every token and then leaves most out of the loss.)
#
# How good is an encoder? We freeze it and ask a linear classifier two questions about its vectors. **Kinds**: what kind
# of word stands here (a hero, a city, a thing …), asked of words whose kind the classifier was never told. **Jobs**:
# what is the hero's job, of stories that do not say it. The result file: three seeds each; BERT a second time, with as
# many steps as cost what ELECTRA's steps cost.

# %%
from course_lib.lectures.lecture_07.experiments import outcome
from course_lib.teaching.results import in_words, read_result

found = read_result("07_stepping_stones")
kinds, jobs = outcome(found, "kinds"), outcome(found, "jobs")
print(f"{'':34}{'steps':>6}{'kinds':>24}{'jobs':>24}")
for name in kinds:
    print(f"{name:34}{found['recipes'][name]['steps']:6}{in_words(kinds[name]):>24}{in_words(jobs[name]):>24}")
fresh = found["untrained"]
print(f"{'fresh weights':40}{in_words([f['kinds'] for f in fresh]):>24}{in_words([f['jobs'] for f in fresh]):>24}")

# %%
points = {name.split(": ")[1]: values for name, values in kinds.items() if name.startswith("equal steps")}
ablation_chart({"equal steps": points}, percent=True, title="Kinds of words told by a linear probe", x_title="share right")

# %% [markdown]
# *Each dot is a seed, each bar a mean. Fresh weights tell 17%.*

# %%
equal = {name.split(": ")[1]: values for name, values in kinds.items() if name.startswith("equal arithmetic")}
dots_chart(equal, percent=True, title="Kinds of words, for the same arithmetic", y_title="share right")

# %% [markdown]
# *BERT, with 1,310 steps, against ELECTRA with 800.*

# %% [markdown]
# Read it as it is: for kinds of words, every stone away from BERT costs something here, and the two that answer "replaced
# or not" are the last. For the same arithmetic BERT is further ahead still. The paper found the reverse. Why might that
# be?
#
# - *A word says more than yes or no.* A hidden word, one of a thousand, is a large surprise; a label is a small one, and
#   most labels are "original". In our world nearly every hidden word can be found out from the rest of its story, so each
#   one teaches. In real text many are easy and many cannot be guessed, and "all tokens" weighs more.
# - *Beginners.* After 800 steps the generator finds one word in five, the discriminator tells three of four pairs apart.
#   Both are at the start. The shipped ELECTRA, five times as long, tells nearly all pairs and 77% of kinds (its result
#   file); BERT is past that after 1,310 steps. The paper trains for hundreds of thousands of steps.
# - *Two layers.* The last layer of a discriminator is for one yes or no. A deep network has room below it.
#
# Asking at all tokens does not help by itself: All-tokens MLM and Replace MLM are level (63% and 64%), at 1.8 times the
# cost.
#
# And the jobs? Fresh weights tell *more* of them (48%) than any stone: random vectors keep every name apart, so a linear
# classifier can learn them by heart. Training first pulls names together, as names (BERT even falls from 37% to 31%); who
# is who comes later: asked in the same way, the teacher of lecture 06, after 6,000 steps, tells 56%.
#
# The paper's own stones, at base size (mean of the GLUE development scores):
#
# | BERT | Replace MLM | ELECTRA 15% | All-tokens MLM | ELECTRA |
# |---|---|---|---|---|
# | 82.2 | 82.4 | 82.4 | 84.3 | 85.0 |
#
# There most of the gain comes with "all tokens", and little from being asked "replaced or not" instead of "which word".
#
# ### How good should the generator be? What should be shared? Where does λ go?

# %%
variants = read_result("07_variants")
measured = {k: outcome(variants, k) for k in ("kinds", "auc", "words_by_generator")}
print(f"{'':22}{'cost':>6}{'kinds':>24}{'told apart':>24}{'generator right':>24}")
first = variants["flops_a_step"]["generator 1/4"]
for name in variants["runs"]:
    cost = variants["flops_a_step"][name] / first
    print(f"{name:22}{cost:6.2f}" + "".join(f"{in_words(values[name]):>24}" for values in measured.values()))

# %%
dots_chart(measured["kinds"], percent=True, title="ELECTRA's variants: kinds of words", y_title="share right")

# %% [markdown]
# *Each dot is a seed. "Generator 1/4" is the recipe of the stones.*

# %% [markdown]
# - *A generator twice as wide* finds more words; the discriminator's vectors gain a little (46% against 43%, less than
#   the spread).
# - *Without shared tables* each seed is worse than the same seed with them: 34% against 43%. That agrees with the paper.
# - *λ on the generator's loss*, the form of the source lecture: the discriminator learns its own work hardly at all, 59%
#   of pairs against 75%. It does not stay at chance: Adam divides every weight's gradient by its usual size, so a small
#   loss still moves the weights that only the discriminator has. What λ decides is who rules the *shared* tables. And now
#   look at the first column: with the generator in charge of them, the same encoder's vectors tell *more* kinds, 60%. In
#   our small world a table taught by words is worth more than a discriminator that works. Which of the two you call
#   better depends on what you ask.
#
# In the paper generators of a quarter to a half of the discriminator's width are best (Figure 3), an adversarial
# generator is worse than one that just guesses, and so is training the two one after the other. Sharing no tables gives
# 83.6 on GLUE, sharing the tables of tokens 84.3, sharing all weights (generator as large as the discriminator) 84.4.
#
# ## What the paper reached, and at what price
#
# GLUE development means, and the operations of pre-training (Tables 1 and 2):
#
# | | operations | GLUE |
# |---|---|---|
# | BERT-small | 1.4e18 | 75.1 |
# | ELECTRA-small | 1.4e18 | 79.9 |
# | BERT-base | 6.4e19 | 82.2 |
# | ELECTRA-base | 6.4e19 | 85.1 |
# | BERT-large | 1.9e20 | 84.0 |
# | BERT (large, trained by ELECTRA's authors) | 7.1e20 | 87.2 |
# | ELECTRA-400K (large) | 7.1e20 | 89.0 |
# | RoBERTa-500K | 3.2e21 | 88.9 |
# | ELECTRA-1.75M (large) | 3.1e21 | 89.5 |
#
# At equal arithmetic ELECTRA wins in every size. But read claims with a divisor in hand:

# %% tags=["nbval-check-output"]
large, bert_large, roberta = 7.1e20, 1.9e20, 3.2e21
print(f"ELECTRA-400K used {large / roberta:.2f} of RoBERTa-500K's operations")
print(f"           ... and {large / bert_large:.1f} times those of BERT-large")

# %% [markdown]
# "The performance of BERT-large with a quarter of the compute", as one of the lectures has it, mixes the two lines.
# What is a third of BERT-large's compute, and better, is ELECTRA-*base* (6.4e19, 85.1). In tables of training
# cost ELECTRA-base is given a quarter of BERT-base; the paper's figures are equal. And in the overview tables that lecture 13
# takes apart, ELECTRA stands with 81.6: its GLUE mean is 85.1 on development sets, 82.7 on the test sets.
#
# What it cannot do: name the word for a gap. The kept network has no vocabulary head; its generator, thrown away, had.

# %%
print(f"{'':16}{'you said':>14}   answer")
answers = {"share replaced": "9%", "times 50": "the discriminator's", "reads faster": "neither: the same encoder"}
for name, value in answers.items():
    print(f"{name:16}{str(my_guesses[name]).replace('Ellipsis', '–'):>14}   {value}")

# %% [markdown]
# ## What they claim, what you measured
#
# Each line was settled by code that ran just now, by a result file, or, where neither can, by a source.

# %%
claims_table("07")

# %% [markdown]
# ## More exercises
#
# {{exercise:07.3}}

# %%
def my_judge_loss(logits, labels, attention_mask):
    return ...


check("07.3", my_judge_loss)

# %% [markdown]
# {{exercise:07.4}}

# %%
def my_start(V, weight):
    return ...


check("07.4", my_start)

# %% [markdown]
# {{exercise:07.5}}

# %%
def my_step(blocks, T, H, V, k, g):
    return ...


check("07.5", my_step)

# %% [markdown]
# {{exercise:07.6}}

# %%
def my_shares(model, rows):
    return ...


check("07.6", my_shares)

# %% [markdown]
# ## Quiz

# %%
quiz("07")

# %% [markdown]
# ## Questions for review
#
# {{review:07}}

# %% [markdown]
# ## Read on
#
# - Clark, Luong, Le and Manning (2020), *ELECTRA*, arXiv 2003.10555: section 2 is two pages; then Table 5.
# - Goodfellow et al. (2014), *Generative Adversarial Nets*, arXiv 1406.2661: what ELECTRA looks like and is not.
# - He, Gao and Chen (2021), *DeBERTaV3*, arXiv 2111.09543: replaced tokens again, with other sharing of the tables.
