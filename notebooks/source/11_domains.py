# ---
# jupyter:
#   jupytext:
#     cell_metadata_filter: tags,slideshow,-all
#     text_representation:
#       extension: .py
#       format_name: percent
# ---

# %% [markdown]
# # Domains: read on, or start afresh?
#
# **Lecture 11** · {{duration}} · {{colab}}
#
# After this page you can
#
# - measure with three numbers how far a domain is from the text that a model has read;
# - adapt a model to a domain in four ways, and say what each keeps, gains and forgets;
# - give a model new words: choose them, and make their rows;
# - split text into training and test when its documents are copied from one another;
# - say what BioBERT, LEGAL-BERT and the two FinBERTs did, and test details of their code one by one.
#
# You need masked language modelling (**MLM**) and WordPiece from lecture 02, and fine-tuning from lecture 03. The
# text comes with packages (*Three real domains*, below); nothing else is downloaded.
#
# {{parts}}

# %%
from statistics import mean

import torch

from course_lib import bert, check, claims_table, compare, hint, load_pretrained, quiz, reveal, show
from course_lib.lectures.lecture_11.views import (
    differences_table, forgetting_chart, hidden_words_chart, labels_chart, labels_table, law_chart, pieces_view, rates_table,
    switches_table, tasks_chart, ways_table, words_table,
)  # fmt: skip
from course_lib.lectures.lecture_11.views.results import CONTINUED, GENERAL, finance_rows, labelled
from course_lib.teaching import LiveLoss
from course_lib.teaching.results import in_words, outcome, read_result
from course_lib.text.domains import domain

# %% [markdown]
# ## Predict first
#
# BERT read encyclopedias and novels. Hospitals write diagnoses, courts judgments, banks reports. Four models were
# made for such domains:
#
# | | BioBERT | LEGAL-BERT | FinBERT (Araci) | FinBERT (Yang, Uy, Huang) |
# |---|---|---|---|---|
# | paper | Lee et al. 2019 | Chalkidis et al. 2020 | 2019 | 2020 |
# | text | PubMed abstracts, {{number:printed('biobert')['words']['pubmed']}} billion words | 12 GB of laws, cases, contracts | a part of Reuters TRC2 | filings, earnings calls, analysts' reports: 4.9 billion tokens |
# | starts from | BERT | BERT, *or* random | BERT | BERT, *or* random |
# | vocabulary | BERT's | BERT's, *or* its own | BERT's | BERT's, *or* its own (*FinVocab*) |
#
# (SciBERT is for scientific papers, 82% of them biomedicine and 18% computer science, with a vocabulary of its own.
# PubMedBERT is for BioBERT's domain, but was trained from scratch. So was *LEGAL-BERT-SC*, one of the LEGAL-BERTs.)
#
# So there are two options: let a trained model **read on** (*continued pre-training*), or **start afresh** with a
# vocabulary that fits. Make three guesses before you go on.
#
# 1. Into how many pieces does BERT's vocabulary cut *diabetic retinopathy*?
# 2. A small BERT predicts {{number:way('general', 'as it is')}} of masked words in general text correctly (its
#    *masked-word accuracy*). Then it reads only diagnoses, for {{number:budget}} steps. What is its accuracy on
#    general words afterwards?
# 3. To which of 21 chapters of ICD-10-CM, a medical classification, does a diagnosis belong? There are twenty
#    labelled examples of each. Which is better: the model that has read diagnoses, or a classifier that only counts
#    words?

# %%
my_guesses = {"pieces": ..., "general words left": ..., "chapter": ...}

# %% [markdown]
# ## By hand
#
# ### What a word costs
#
# Take ten words of a domain's text. Six are `fracture`, cut into three pieces; three are `of`, which is one piece;
# one is `osteolysis`, cut into four.
#
# | word | count | pieces | pieces saved by its own row |
# |---|---|---|---|
# | fracture | 6 | 3 | 6 · (3 − 1) = **12** |
# | of | 3 | 1 | 0 |
# | osteolysis | 1 | 4 | 1 · (4 − 1) = 3 |
#
# These are 18 + 3 + 4 = 25 pieces, or 2.5 per word. If we add one word, we choose `fracture`: 6 + 3 + 4 = 13 pieces
# remain, or 1.3 per word. Rare words are cut into more pieces, but adding them saves little.
#
# ### A row for a new word
#
# The new word's row in the embedding matrix needs initial values. If its three old pieces have the rows (2, 0), (0,
# 4), (1, 2), their **mean** is (1, 2). The order of the pieces is lost, so this is only a start.
#
# ### A rate for every layer
#
# In FinBERT's code, layers near the input learn more slowly. Number the layers *i* = 0 … *L* − 1 from the input. Layer *i*
# has the full rate divided by 1.2^(L − i). With four layers and a rate of 1, the rates are 0.83 at the
# top, then 0.69, 0.58, 0.48.
#
# ## Try it
#
# Build these pieces before the page shows them. The check names your mistake, `hint("11.1")` helps one step at a
# time, and `reveal("11.1")` shows a solution. No later cell needs your answers.
#
# {{exercise:11.1}}


# %%
def my_added(counts, pieces, added):
    return ...


check("11.1", my_added)

# %% [markdown]
# {{exercise:11.2}}


# %%
def my_rows(table, written, unknown):
    return ...


check("11.2", my_rows)

# %% [markdown]
# ## The code
#
# ### Another vocabulary for a trained model
#
# There are two ways: append words to the old vocabulary, or learn a vocabulary of the domain and keep the rows of the
# pieces in both.

# %%
from course_lib.train.new_vocabulary import extended, fertility, old_rows, with_vocabulary

show(extended, old_rows, with_vocabulary)

# %% [markdown]
# Only the embedding matrix and the output's bias change; the blocks stay the same.
#
# `old_rows` finds the old pieces that spell a new one. `##` (`CONTINUES`) marks a piece that continues a word. So a
# new word is tokenised like any word; a new piece that starts with `##` is spelled only with such pieces.

# %%
course = load_pretrained("course-bert")
for piece in ("array", "retinopathy", "##opathy"):
    print(f"{piece:12} ←", *(course.tokenizer.vocab[row] for row in old_rows(piece, course.tokenizer)))

# %% [markdown]
# `array` has a row and keeps it; the other two start with the mean of their pieces' rows. With `rows="random"`
# they start with random numbers. `_put` places the new matrix into the copy, as input and
# (tied) as output.
#
# ### The four ways, as recipes
#
# Each way (read on, add words, replace the vocabulary, start afresh) is a recipe file for the pre-training command. They differ in this:

# %%
from course_lib.files import data_path
from course_lib.train.pretrain_recipe import read_recipe

for name in ("medicine_continued", "medicine_added", "medicine_replaced", "medicine_afresh"):
    recipe = read_recipe(data_path("recipes", f"{name}.toml"))
    rows = f"new rows: {recipe.model.rows}" if recipe.model.start else "all rows: random"
    print(f"{name:19} start: {recipe.model.start or 'none':12} vocabulary: {recipe.text.vocabulary!s:12} added: {recipe.text.added:5}  {rows}")

# %% [markdown]
# (The vocabulary is a checkpoint's, or a number of pieces to learn. *Continued* has no new words, so its rule for new
# rows is unused.) Three controls change one thing each: random rows, one batch in four of general text, three times
# the steps.
#
# ### Switches of fine-tuning
#
# Four details of the authors' programs are easy to copy. We test them below:
#
# - a rate for every layer (FinBERT, exercise 11.3);
# - weights for rare classes (FinBERT, 11.4);
# - a loss that includes padding (BioBERT's program, 11.5);
# - *gradual unfreezing* (FinBERT): first only the new head learns, then the layers join one at a time, from the top.
#   (The released program never reaches the lowest two layers or the pooler: `gradual_unfreezing(…,
#   as_released=True)`. Ours goes down to the embeddings.)
#
# {{exercise:11.3}}


# %%
def my_rates(rate, layers, divisor):
    return ...


check("11.3", my_rates)

# %% [markdown]
# {{exercise:11.4}}


# %%
def my_weighted_loss(logits, labels, counts):
    return ...


check("11.4", my_weighted_loss)

# %% [markdown]
# {{exercise:11.5}}


# %%
def my_losses(logits, labels):
    return ...


check("11.5", my_losses)

# %%
from course_lib.objectives.classification import inverse_frequency, weighted_classification_loss
from course_lib.objectives.token_labels import padded_token_loss
from course_lib.train.layer_rates import gradual_unfreezing, layerwise_rates

show(layerwise_rates, gradual_unfreezing, inverse_frequency, weighted_classification_loss, padded_token_loss)

# %% [markdown]
# ## Is it right?
#
# BioBERT and FinBERT *are* BERT with other weights and need no new class. So we build a BERT with BioBERT's 28,996
# rows (the cased vocabulary) and compare it with the one from transformers:

# %%
torch.manual_seed(0)
compare(bert("tiny", vocab_size=28_996))

# %% [markdown]
# Added words must not change the old words' logits. We add two words to the course's BERT and give it a sentence
# without them. (The probabilities do change, because the softmax has two more words.)

# %% tags=["nbval-check-output"]
more = extended(course.tokenizer, ["retinopathy neuropathy retinopathy neuropathy"] * 2, 2)
moved = with_vocabulary(course.model, course.tokenizer, more).eval()
ids = torch.tensor([course.tokenizer.encode("the function returns a [MASK] array .")])
with torch.no_grad():
    before, after = course.model(ids).logits, moved(ids).logits
print("added:", more.vocab[len(course.tokenizer) :])
print("rows:", before.shape[-1], "→", after.shape[-1], "· old logits equal:", torch.equal(before, after[..., : before.shape[-1]]))

# %% [markdown]
# **If you are online**, our classes can load the released models by name. Write some into the list, such as
# `"dmis-lab/biobert-base-cased-v1.2"`, `"nlpaueb/legal-bert-base-uncased"`, `"ProsusAI/finbert"`. Repositories with
# only pickled weights are refused, because a pickle may run code; load those with transformers and convert the model
# (`from course_lib import from_transformers`, then `from_transformers(model)`).

# %%
released = []  # names go here; while it is empty, nothing is downloaded
for name in released:
    try:
        print(f"{name}: {len(load_pretrained(name).encoder.embeddings.token.weight):,} rows")
    except FileNotFoundError as missing:
        print(missing)

# %% [markdown]
# ## See it
#
# ### Three real domains
#
# Their text is in packages that `make lab` installs; we read it from there, and the course contains no copy. In
# Colab, or if a package is missing, this line installs them:
#
#     {{number:INSTALL.replace('python -m ', '%')}}
#
# - *Medicine*: descriptions of diagnoses from the classification ICD-10-CM.
# - *Law*: 2,000 texts of software licences.
# - *Finance*: the documentation of a library for balance sheets and prices. It is close to the general text, which is
#   software documentation, too.
# - *General*: the documentation that the course's BERT has read.

# %%
readable = []
for name, word in {"medicine": "retinopathy", "law": "damages", "finance": "dividend"}.items():
    try:
        read = domain(name)
        print(read)
        print("   ", next(p for d in read.documents for p in d.paragraphs if word in p)[:150])
        readable.append(name)
    except (LookupError, ValueError) as trouble:  # not installed, or nothing in it can be read
        print(trouble)

# %% [markdown]
# ### How are their words cut?

# %%
vocabularies = {"course-bert": course.tokenizer}
try:
    vocabularies["bert-base-uncased"] = load_pretrained("all-MiniLM-L6-v2").tokenizer  # this small distilled BERT has it
except FileNotFoundError as missing:
    print(missing)
if "medicine" in readable:
    from course_lib.lectures.lecture_11.words import own_vocabulary

    vocabularies["learned from diagnoses"] = own_vocabulary("medicine")
pieces_view(vocabularies)

# %% [markdown]
# *Choose an example or write your own words. The first two vocabularies cut diagnoses into many pieces. They also cut
# some words of law and finance: bert-base's vocabulary rarely, course-bert's more often (table below). Punctuation is shown but
# not counted.*
#
# *Diabetic retinopathy* is {{number:cut_retinopathy}} pieces in BERT's vocabulary, the answer to the first guess. A
# common misconception is that BioBERT's vocabulary contains gene and drug names. In fact it has BERT's vocabulary
# (shown here uncased): *BRCA1* stays `{{number:pieces('BRCA1', 'bert-base')}}` and *metformin*
# `{{number:pieces('metformin', 'bert-base')}}`, however much the model reads. Other names are cut, too: *TP53* is
# `{{number:pieces('TP53', 'bert-base')}}`, *EGFR* `{{number:pieces('EGFR', 'bert-base')}}`, *aspirin*
# `{{number:pieces('aspirin', 'bert-base')}}`, *ibuprofen* `{{number:pieces('ibuprofen', 'bert-base')}}`.
#
# Diagnoses contain few of these names. The vocabulary learned from them has
# `{{number:pieces('aspirin', 'medicine')}}` as one piece, but cuts *BRCA1* into
# `{{number:pieces('BRCA1', 'medicine')}}`: a vocabulary contains what is frequent in its text.
#
# {{exercise:11.6}}


# %%
def my_repeated(train, test, n):
    return ...


check("11.6", my_repeated)

# %%
from course_lib.text.domains import repeated

show(repeated)

# %% [markdown]
# ### The three numbers to measure first
#
# ① pieces per word (*fertility*), ② the fraction of frequent words shared with general text, ③ words per sentence.

# %%
words_table()

# %% [markdown]
# *① is measured on held-out text with three vocabularies; own: 8,192 pieces learned from the domain (4,096 in the
# runs below). ② concerns the domain's 2,000 most frequent words. ③ is the mean. The last two columns: the fraction of the held-out
# text's 8-grams (eight words in a row) that occur in the training text, if we split by family or at random.*
#
# - **① depends on the model you have.** With bert-base's vocabulary only medicine is cut much more than general text:
#   {{number:fertility('medicine', 'bert-base')}} pieces per word, general text
#   {{number:fertility('general', 'bert-base')}}, law {{number:fertility('law', 'bert-base')}}, finance
#   {{number:fertility('finance', 'bert-base')}}. In law a new vocabulary would save almost nothing.
# - *course-bert's vocabulary* is smaller and learned from documentation alone. It cuts all three domains more:
#   medicine {{number:fertility('medicine', 'course')}}, law {{number:fertility('law', 'course')}}, finance
#   {{number:fertility('finance', 'course')}}, general text {{number:fertility('general', 'course')}}. Our runs start
#   from it: a large mismatch in medicine, a small one in law.
# - *② Frequent words*: {{number:stored('11_words')['domains']['medicine']['shared']:.0%}} of medicine's frequent
#   words are also frequent in general text, {{number:stored('11_words')['domains']['finance']['shared']:.0%}} of
#   finance's. To compare: one half of the general text's modules shares
#   {{number:stored('11_words')['domains']['general']['shared']:.0%}} with the other half.
# - *③ Long legal sentences*: one of the source lectures says that legal sentences have 40 words and more. Licences have
#   {{number:stored('11_words')['domains']['law']['sentence']['mean']:.0f}}, our documentation
#   {{number:stored('11_words')['domains']['general']['sentence']['mean']:.0f}}, that of finance
#   {{number:stored('11_words')['domains']['finance']['sentence']['mean']:.0f}}. Their sentences are longer than the documentation's,
#   but far below 40 words; other law may differ.
# - *Latin and nested clauses* are also said to be typical of law. Licences have
#   {{number:stored('11_words')['domains']['law']['latin']:.1f}} Latin phrases in 10,000 words, documentation
#   {{number:stored('11_words')['domains']['general']['latin']:.1f}}. They have
#   {{number:stored('11_words')['domains']['law']['clauses']:.1f}} words such as *which* and *unless* per sentence,
#   documentation {{number:stored('11_words')['domains']['general']['clauses']:.1f}}. So by this
#   count of a few phrases neither is typical of licences. (A licence is not a judgment.)
# - **The last two columns** are a warning. Licences are copied from one another. If you split them at random,
#   {{number:stored('11_words')['domains']['law']['repeated']['at random']:.0%}} of the 8-grams that you test on were
#   read in training. We keep families (a licence and its variants) together, which leaves
#   {{number:stored('11_words')['domains']['law']['repeated']['by family']:.0%}}. We did not examine the rest.
#
# ### Reading on, live
#
# The course's BERT reads diagnoses for 80 steps. This takes from half a minute to two minutes, depending on
# the processor. What does it gain, and what does it lose?

# %%
if "medicine" in readable:
    from course_lib.lectures.lecture_11 import ways

    way = ways.MEDICINE[CONTINUED]
    ways.ready.cache_clear()  # a second run of this cell begins anew
    ready = ways.ready(way, 0)
    before = ways.hidden_words(ready.model, ready.reading.tokenizer, "medicine")
    ways.pretrain(way, 0, 80, [LiveLoss()])
    after = ways.hidden_words(ready.model, ready.reading.tokenizer, "medicine")
    for text in before:
        print(f"masked-word accuracy on {text} text: {before[text]:.0%} before, {after[text]:.0%} after")
else:
    print("The package with the diagnoses is not installed: see the stored runs below.")

# %% [markdown]
# *The curve: the MLM loss on diagnoses, in nats.*
#
# After eighty steps the model has already forgotten many general words. (It starts at
# {{number:way('general', GENERAL, '11_law')}} here, and at {{number:way('general', 'as it is')}} in the stored runs
# on diagnoses below, which were measured on other sentences.)
#
# In **masked-word accuracy** a masked *word* counts as correct if all its pieces are. So we can compare vocabularies.
# But the comparison favours long pieces: a word in one piece needs one correct prediction, a word in four pieces
# needs four.
#
# ## Measure it
#
# ### Four ways, at equal FLOPs
#
# **A model that reads on learns the domain's words quickly. At equal FLOPs and one learning rate, a model started afresh reaches about
# a third of its accuracy.**
#
# We use course-bert (4 layers, width 256) and {{number:in_letters(len(ways('general')[CONTINUED]))}} seeds. The
# budget is {{number:budget}} steps of *continued*; the others get the same number of FLOPs (additions and
# multiplications).
#
# - *as it is*: the general model; *random initialisation*: a model that has read nothing;
# - *continued* (BioBERT): the same vocabulary, read on; also *mixed*, with one batch in four of general text, and with three times the FLOPs;
# - *afresh* (LEGAL-BERT-SC, SciBERT): a vocabulary of its own (4,096 pieces), random initialisation; also with three
#   times the FLOPs;
# - *rows added*: {{number:added}} whole words after the old pieces, with *means* of old rows or *random* rows; *rows
#   replaced*: a vocabulary of its own (4,096 pieces) with means, but the old blocks.

# %%
ways_table()

# %% [markdown]
# *A batch is cut to its longest sequence. So a step costs more if more of its 32 positions hold words instead of padding. The output layer costs little, so half the pieces save
# little. FLOPs are counted on five batches. In the mixed recipe one of them is general text, which costs less; so it has
# {{number:stored('11_medicine')['runs'][MIXED][0]['steps']}} steps instead of {{number:budget}}.*
#
# **This page uses one rule.** One way is *better* than another if it is better with every seed, and on average by
# more than the larger of the two standard deviations over the seeds. Otherwise the comparison is *not settled*. The
# rule covers only the seeds; a small test set adds uncertainty of its own. And with three seeds it settles about one in
# six comparisons of two equal ways (lecture 13), so a few verdicts below may be chance.

# %%
hidden_words_chart()

# %% [markdown]
# *A dot is a run. Left: masked-word accuracy on unseen diagnoses; right: on general documentation, the price.*
#
# - **Reading on helps**: {{number:own_general}} → {{number:own_continued}} of the domain's masked words.
# - **With own words the accuracy is higher**: {{number:way('in domain', 'rows added, means')}} with rows added,
#   {{number:way('in domain', 'rows replaced, means')}} with rows replaced. Part of this, or all, may be due to the measure, which
#   favours words in one piece. Bits per character (below) would compare them more fairly, but we did not measure
#   them for these two ways.
# - **Afresh seems to be still on the plateau** at this budget, with {{number:way('in domain', 'own vocabulary, afresh')}}.
#   (We did not measure what guessing by frequency alone gives.)
#   From random initialisation a model first learns only word frequencies. Then its loss hardly falls for hundreds of
#   steps: the plateau (lecture 02). Only after that does it use the context.
# - **With three times the FLOPs for both** the difference is not settled: afresh reaches {{number:way('in domain', 'own vocabulary, afresh, longer')}},
#   reading on {{number:way('in domain', 'continued, longer')}} (and on general words {{number:way('general', 'own vocabulary, afresh, longer')}}
#   and {{number:way('general', 'continued, longer')}}). So at a third of the FLOPs afresh had stopped too early.
#   (Reading on for longer was measured later, on another sample of sentences: there the general model has
#   {{number:stored('11_medicine')['runs']['continued, longer'][0]['curve'][0]['medicine']:.1%}} of the domain's words, in the other rows {{number:way('in domain', 'as it is')}}.)
#
# ### What is forgotten
#
# **At a learning rate of 1e-3 two thirds of the general accuracy is lost, and quickly. One general batch in four keeps
# most of it.**

# %%
forgetting_chart()

# %% [markdown]
# *Masked-word accuracy, mean of the seeds as a line, all of them as a band. Mixed: one batch in four is general text.*
#
# Accuracy on general words falls from {{number:way('general', 'as it is')}} to
# {{number:way('general', 'continued')}}, which answers the second guess. **Forgetting is faster than learning.**
# After a third of the steps, accuracy on general words has fallen to {{number:old_third}} and stays there. On words
# of diagnoses it is then at {{number:own_third}}, and still rises to {{number:own_continued}}. With one general batch
# in four it ends at {{number:way('general', 'continued, general text mixed in')}} on general words, and the domain
# loses little: {{number:way('in domain', 'continued, general text mixed in')}} instead of {{number:own_continued}}.
#
# Does a lower learning rate do the same?

# %%
rates_table()

# %% [markdown]
# *Masked-word accuracy, and bits per character of masked words (explained below; lower is better). Task text: only the
# 500 titles of the next task are read, for a fifth of the budget. These runs use bfloat16; the charts above use float32.*
#
# **A lower rate forgets less, but also learns less.** At 3e-4 the model keeps
# {{number:hidden_at('general', 'continued, rate 3e-4')}} of general words instead of
# {{number:hidden_at('general', CONTINUED)}}, and reaches {{number:hidden_at('in domain', 'continued, rate 3e-4')}} of the
# words of diagnoses instead of {{number:hidden_at('in domain', CONTINUED)}}. General text mixed in at 1e-3 (the runs above, on
# other sentences) is better on both counts.
#
# ### A task that words alone cannot answer
#
# **With 500 labels the model that has read on reaches an accuracy of {{number:labelled_at('word order, 500', CONTINUED)}}, the general one {{number:labelled_at('word order, 500', GENERAL)}}, a regression on neighbouring words {{number:labelled_at('word order, 500', NEIGHBOURS)}}.**
#
# Is a diagnosis written correctly, or have two neighbouring words been swapped? *Unspecified fracture of left femur*
# is correct; *unspecified of fracture left femur* is not. Each title occurs once, and half of them are changed. So
# the set of words in a title says nothing about the answer, and a bag of words is at chance. We train on 20 to 500
# labelled titles and test on 400 unseen ones, with three seeds. Random initialisation, the general model (*as it is*)
# and the model that has read on (*continued*) use the best of three learning rates of fine-tuning (chosen on the test titles, so their results look slightly too good), the others 1e-3. The
# first column is the chapter task, which comes next. There are two baselines without an encoder: logistic regression on
# the words of a title (a bag of words), and on its words and its pairs of neighbouring words.

# %%
labels_table()

# %%
labels_chart()

# %% [markdown]
# *A line is the mean of three seeds, the band their range; 50% is chance.*
#
# - By the rule above, reading on compared with *as it is*: {{number:against('word order, 500', CONTINUED, GENERAL)}}
#   with 500 labels, {{number:against('word order, 100', CONTINUED, GENERAL)}} with 100. With 20 and 100 labels both
#   are near chance.
# - **Reading only the 500 titles of the task** (task text), for a fifth of the budget and without their labels, brings
#   most of it: {{number:labelled_at('word order, 500', TASK_TEXT)}}, {{number:against('word order, 500', TASK_TEXT, GENERAL)}}
#   than as it is. Reading on is {{number:against('word order, 500', CONTINUED, TASK_TEXT)}} than that.
# - *Without an encoder*: random initialisation stays at chance, a bag of words must, and words with their neighbours
#   reach {{number:labelled_at('word order, 500', NEIGHBOURS)}}. Reading on is
#   {{number:against('word order, 500', CONTINUED, NEIGHBOURS)}} than that; for the general model it is
#   {{number:against('word order, 500', GENERAL, NEIGHBOURS)}}.
# - *Lower rates of pre-training* help this task less ({{number:labelled_at('word order, 500', 'continued, rate 3e-4')}} at
#   3e-4) than 1e-3 does; on chapters they are level with 1e-3.
# - **Bits per character** are −log2 of the probability of a masked word's pieces, divided by its number of letters.
#   They can be compared across vocabularies only roughly: the masks show how many pieces a word has, and the pieces are
#   predicted independently. (Here both models have the same vocabulary.) Diagnoses cost {{number:bits_at('in domain', GENERAL)}} before and
#   {{number:bits_at('in domain', CONTINUED)}} after reading on; general text {{number:bits_at('general', GENERAL)}}
#   and {{number:bits_at('general', CONTINUED)}}. An even guess among the same pieces costs
#   {{number:even_bits('medicine')}} on diagnoses: there the general model is no better than guessing. (Random
#   initialisation, with longer pieces of its own, has {{number:bits_at('in domain', RANDOM)}}.)
#
# ### Does it help where words tell?
#
# **At the best of three learning rates the general model is level with counting words. At the rate tried first it was
# {{number:points_behind}} points behind.**
#
# The classification provides labels for two tasks. (It does not mark body sites or drugs, so they cannot be a task.)
#
# - *Chapter*: to which of 21 chapters does a diagnosis belong? (The last of 22 is too small to test.) There are
#   {{number:stored('11_switches')['sizes']['chapters'][0]}} training and
#   {{number:stored('11_switches')['sizes']['chapters'][1]}} test diagnoses; we measure accuracy. The baseline without
#   an encoder is logistic regression on the words of a diagnosis (a bag of words).
# - *Added words*: in the classification, most titles repeat the title above them and add something. Tag the added
#   words, without seeing the title above. There are {{number:stored('11_switches')['sizes']['added words'][0]}}
#   training and {{number:stored('11_switches')['sizes']['added words'][1]}} test titles; one in three adds nothing.
#   We measure F1 of whole spans: a span counts if both its ends are correct.
# - The baseline for added words is a rule: the addition starts after the first comma, or else with the first of
#   *with*, *without*, *due*, *in*, *by*. (Below, capitals mark the added words.)

# %%
if "medicine" in readable:
    from course_lib.lectures.lecture_11 import tasks

    for one in tasks.added_words(seed=0).test[:5]:
        for label, tags in (("right", one.entities), ("rule", tasks.cut_by_rule(one))):
            words = (w if tag == "O" else w.upper() for w, tag in zip(one.words, tags))
            print(f"{label:6}", " ".join(words))

# %% [markdown]
# First we compare learning rates of fine-tuning. This is the general model on the chapter task, with three seeds.
# (The scores are those of the test texts, since the task has no validation part; so the best rate looks slightly too
# good.)

# %%
for rate in (3e-4, 1e-3, 3e-3):
    print(f"rate {rate:g}: {in_words(labelled('chapters', [rate])['as it is'])}")
print(f"bag of words: {in_words(labelled('chapters')['bag of words'])}")

# %% [markdown]
# **We keep one early chart as a lesson.** We first compared all ways at 3e-4, and at equal FLOPs none was clearly better than a bag
# of words ({{number:bag_chapters}}). It looked like BERT's failure, but our learning rate was too low: with 1e-3 the
# general model rises from {{number:labelled_at('chapters', GENERAL, 3e-4)}} to
# {{number:labelled_at('chapters', GENERAL)}}. So use the next chart only to compare ways at one rate, not to see how good
# they can be: that rate was too low, at least for the general model.

# %%
tasks_chart()

# %% [markdown]
# *A dot is a run, fine-tuned at 3e-4.*

# %%
differences_table()

# %% [markdown]
# *The mean difference between two ways in points, and the verdict of the rule. "No encoder" is the bag of words, or
# for added words the rule.*
#
# - *The zero line*: at 3e-4 random initialisation reaches {{number:way('chapters', 'random initialisation')}} on chapters,
#   the general model {{number:way('chapters', 'as it is')}}. So at this rate general pre-training alone shows no gain there. (These runs are in float32, those at several rates in bfloat16.)
#   At the best of three rates they have {{number:labelled_at('chapters', RANDOM)}} and
#   {{number:labelled_at('chapters', GENERAL)}}: general pre-training is {{number:against('chapters', GENERAL, RANDOM)}}.
# - *Chapters*: at 3e-4 reading on is better, {{number:way('chapters', 'as it is')}} →
#   {{number:way('chapters', 'continued')}}. At 1e-3 it has {{number:labelled_at('chapters', CONTINUED)}} against
#   {{number:labelled_at('chapters', GENERAL)}}: {{number:against('chapters', CONTINUED, GENERAL)}}. Compared with a
#   bag of words: {{number:against('chapters', CONTINUED, BAG)}}. Whether added or replaced rows are
#   better still is not settled. With three times the FLOPs afresh is ahead of reading on, {{number:way('chapters', 'own vocabulary, afresh, longer')}}
#   against {{number:way('chapters', 'continued, longer')}}, which gained nothing here from reading longer.
# - *Added words*: rows added are better than *as it is*. For reading on alone it is not settled. (We tried only
#   3e-4.)
# - **Mean rows or random rows?** Means start better: at step 0 accuracy is
#   {{number:on_the_way('added', 0, 'medicine')}} on the words of diagnoses and {{number:start_means_old}} on general
#   ones; with random rows it is {{number:on_the_way('drawn', 0, 'medicine')}} and {{number:start_random_old}}. At the
#   first evaluation, after a sixth of the steps, it is {{number:on_the_way('added', 1, 'medicine')}} and
#   {{number:on_the_way('drawn', 1, 'medicine')}} on diagnoses. At the end means keep slightly more of the general
#   words; everything else is not settled.
# - **What we do not understand**: after {{number:stored('11_medicine')['runs'][AFRESH][0]['steps']}} steps on diagnoses the
#   model started afresh has only {{number:way('chapters', 'own vocabulary, afresh')}} on chapters, below random initialisation. We did not examine why
#   pre-training *hurts* on the plateau.
#
# ### Law: a small mismatch
#
# **Where the vocabulary fits better than in medicine, reading on raises masked-word accuracy, and new pieces add little.**
#
# For licences we use half the budget. course-bert's vocabulary cuts them into {{number:fertility('law', 'course')}}
# pieces per word. The task is to predict a licence's *category* from its first sixty words. We use the six categories
# (of eleven) that have twenty licences to test on. Families are kept together, and there are 180 labels.

# %%
law_chart()

# %% [markdown]
# *A dot is a run; dashed: a bag of words.*
#
# - *Masked-word accuracy*: {{number:way('in domain', 'as it is', '11_law')}} as it is,
#   {{number:way('in domain', 'continued', '11_law')}} continued,
#   {{number:way('in domain', 'rows replaced, means', '11_law')}} with rows replaced, each better than the one before.
#   The mismatch is small, and so is the gain from new pieces.
# - *Category*, in the same order: {{number:way('licences', 'as it is', '11_law')}}, {{number:way('licences', 'continued', '11_law')}},
#   {{number:way('licences', 'rows replaced, means', '11_law')}}; random initialisation
#   {{number:way('licences', 'random initialisation', '11_law')}}. **This failed**: no way is better than a bag of
#   words, {{number:percent(stored('11_law')['without_encoder']['licences'])}}, or than random initialisation. Perhaps
#   the labels are too few, or the rate, again 3e-4, is too low; we tried neither more nor higher.
#
# ### The switches
#
# **A loss over padding costs some points. At a learning rate of 3e-4, which is already too low for this task, the guards
# against forgetting (layer-wise rates, gradual unfreezing) cost accuracy on the task.**
#
# We test details of BioBERT's and FinBERT's fine-tuning one at a time, on course-bert.

# %%
switches_table()

# %% [markdown]
# *Change: compared with plain fine-tuning on the same task. Natural chapters: 600 diagnoses in their natural
# proportions, tested on all chapters equally. General words kept: the fine-tuned encoder's masked-word accuracy on
# general text; {{number:way('general', 'as it is')}} before.*
#
# - **Loss over padding** (BioBERT's released program also has its mask commented out): worse with 32 and with 128
#   positions, and with 128 hardly worse than with 32. So the amount of padding is not the whole reason. This loss
#   also labels special tokens and the further pieces of tagged words as *outside*. We did not test which of these
#   matters.
# - **Inverse-frequency weights** (FinBERT): not settled. They are better with every seed, but with two of the three
#   by less than two points.
# - **Layer-wise rates, gradual unfreezing** (FinBERT, against forgetting): worse on the task, separately and
#   together. And little had to be guarded: after plain fine-tuning the encoder still has
#   {{number:switched('chapters', 'general')}} on general words.
# - **A third of the rate** keeps as many general words
#   ({{number:switched('chapters, a third of the rate', 'general')}}) as both guards
#   ({{number:switched('chapters, both', 'general')}}). On average it costs more points on the task,
#   {{number:lost('third')}} against {{number:lost('both')}}, but this comparison is not settled. Longer training or a
#   larger model may need the guards. (Both lower the rate of most layers, and plain fine-tuning was better at 1e-3 than at
#   3e-4. We did not run the guards at 1e-3, where more might be forgotten.)
#
# ### Good news or bad?
#
# **With {{number:len(finance('test'))}} test sentences and one learning rate, nothing can be concluded.**
#
# We wrote 150 sentences for this course, half plain (*The company doubled its profit.*), half hedged (*The loss was
# smaller than feared.*), with the labels good, bad, or no news. {{number:len(finance('train'))}} are for training,
# {{number:len(finance('test'))}} for testing; the rest, for validation, is not used here.

# %%
for measure, label in (("score", "all"), ("plain", "the plain half"), ("hedged", "the hedged half")):
    print(label)
    for name, values in finance_rows(measure).items():
        print(f"   {name:30}", ", ".join(f"{value:.0%}" for value in values))

# %% [markdown]
# Chance is a third; counting words reaches {{number:news_of('counting words', 'score')}}. By the rule both
# pre-trained models are better than the same models at random initialisation, but the best mean is only
# {{number:percent(max(finance_rows().values(), key=mean))}}. And the rule covers only the seeds: with
# {{number:len(finance('test'))}} sentences the standard error of a score is eight points. So the best mean cannot be told from counting words.
#
# - *The plain half*: course-bert {{number:news_of('course-bert', 'plain')}}, MiniLM
#   {{number:news_of('MiniLM', 'plain')}}.
# - *The hedged half stays near chance*: {{number:news_of('course-bert', 'hedged')}} and
#   {{number:news_of('MiniLM', 'hedged')}}. Nothing here shows that ninety labels teach that *smaller than feared* makes a loss
#   good news. Financial PhraseBank, on which FinBERT was tuned, has some thousands of sentences.
# - *Not tested*: *numbers*, and *time* (last year's good news may not be good today). FinBERT's score, P(positive) −
#   P(negative), places *no news* between the two.
#
# ## What the papers found
#
# | | they report | note |
# |---|---|---|
# | BioBERT | names in text (NER) +0.62 F1, relations +2.80 F1, questions +12.24 MRR | over the *best systems before*, not over BERT |
# | PubMedBERT | afresh 81.16, BioBERT 80.34 | on BLURB, a benchmark of biomedical tasks; fine-tuned by one protocol, but pre-trained differently |
# | LEGAL-BERT | a small version: a third of the size, about four times as fast | the paper compares three ways: BERT as it is, continued, afresh |
#
# (MRR, mean reciprocal rank, gives 1 if the right answer is first in a list, 1/2 if it is second.) This is how the
# authors made their models:
#
# | | text | steps and vocabulary | fine-tuning |
# |---|---|---|---|
# | BioBERT | in addition to BERT's {{number:biobert_inherited}} billion words: PubMed abstracts, {{number:printed('biobert')['words']['pubmed']}} billion; some versions 1.0 also articles of PMC, {{number:printed('biobert')['words']['pmc']}} billion | version 1.1, which the authors recommend: PubMed alone, a million steps, BERT's own MLM and NSP (next-sentence prediction), BERT-base's cased vocabulary; the large model has a vocabulary of its own | – |
# | LEGAL-BERT | 12 GB: {{number:printed('legal_bert')['text']['eu_laws']}} EU laws, {{number:printed('legal_bert')['text']['uk_laws']}} UK laws, {{number:printed('legal_bert')['text']['ecj_cases']}} cases of the European Court of Justice, {{number:printed('legal_bert')['text']['echr_cases']}} of the Court of Human Rights; US cases and contracts | afresh: a million steps; continued: up to 500,000 more than BERT | – |
# | FinBERT (Araci) | a part of Reuters TRC2 | BERT's vocabulary | Financial PhraseBank; score P(positive) − P(negative) |
# | FinBERT (Yang et al.) | filings, earnings calls, analysts' reports | FinVocab: {{number:printed('finbert')['yang']['vocabulary_uncased']}} pieces, uncased | – |
#
# One of the source lectures prints BioBERT's gain of 12.24 as BERT's *score*.
#
# ### The names for it
#
# - **DAPT and TAPT** (Gururangan et al. 2020, *Don't Stop Pretraining*): *domain-adaptive* pre-training is our
#   reading on; *task-adaptive* pre-training (our *task text*) reads the task's own texts, without labels, and takes a
#   small part of the time. With RoBERTa on eight tasks of four domains both help on most, and DAPT followed by TAPT is best on most (ChemProt, F1:
#   81.9 as it is, 84.2 DAPT, 82.6 TAPT, 84.4 both).
# - **ULMFiT** (Howard and Ruder 2018) used the same steps two years earlier, with an LSTM: train a language model,
#   read on in the task's text, then train a classifier. It introduced *discriminative fine-tuning* (a rate for every
#   layer) and *gradual unfreezing*; FinBERT adopted them.
# - The curve above shows **catastrophic forgetting** (McCloskey and Cohen 1989); mixing in old text is called
#   **replay**, or rehearsal.
# - **FinBERT's own table 4** (Araci), accuracy on PhraseBank: BERT fine-tuned 0.85, after reading the task's text
#   0.86, after reading the domain's 0.86. The gain is one point, which its author calls small.
# - **PubMedBERT's ablations**: a vocabulary of the domain helps, masking whole words helps, and general text before
#   the domain's does not. Full articles beside abstracts help only with longer training.
#
# ### Which way?
#
# | you have | do | here | the papers |
# |---|---|---|---|
# | few labels, informative words | count words first, as the baseline | chapters: counting {{number:bag_chapters}}, the general model {{number:labelled_at('chapters', GENERAL)}}, reading on {{number:labelled_at('chapters', CONTINUED)}} | – |
# | text of the domain, words that fit | read on; mix in general text if you still need it | licences: masked-word accuracy {{number:way('in domain', 'as it is', '11_law')}} → {{number:way('in domain', 'continued', '11_law')}} (no gain on the category); with general text mixed in (diagnoses), {{number:way('general', 'continued, general text mixed in')}} of general words | BioBERT: +0.62 (names), +2.80 (relations) F1, over the best before |
# | words that are cut into many pieces | read on with words added or replaced | masked-word accuracy {{number:way('in domain', 'rows added, means')}}, {{number:way('in domain', 'rows replaced, means')}}, above reading on alone; on the tasks this is not settled | FinBERT (Yang et al.): a vocabulary of {{number:printed('finbert')['yang']['vocabulary_uncased']}} of its own |
# | very much text, and compute | afresh, with a vocabulary of its own | masked-word accuracy {{number:way('in domain', 'own vocabulary, afresh')}}; with three times the FLOPs {{number:way('in domain', 'own vocabulary, afresh, longer')}} (reading on: {{number:way('in domain', 'continued, longer')}}) | PubMedBERT 81.16, BioBERT 80.34 |
# | little text, little compute | a released model of a related domain: BioBERT, LEGAL-BERT, FinBERT (say which) | not tried | LEGAL-BERT, small: a third of the size, four times as fast |

# %%
print(f"{'':20}{'your guess':>14}   answer, here")
medicine = read_result("11_medicine")
general = {name: mean(values) for name, values in outcome(medicine, "general").items()}
chapters = {name: mean(values) for name, values in labelled("chapters").items()}
answers = {
    "pieces": len(read_result("11_words")["pieces"]["diabetic retinopathy"]["bert-base"]),
    "general words left": f"{general[CONTINUED]:.0%}, before {general[GENERAL]:.0%}",
    "chapter": f"{chapters[CONTINUED]:.0%} against {chapters['bag of words']:.0%}",
}
for name, value in answers.items():
    print(f"{name:20}{str(my_guesses[name]).replace('Ellipsis', '–'):>14}   {value}")

# %% [markdown]
# ## What they claim, what you measured
#
# Each line was checked by code that ran just now, by a stored result, or, where neither is possible, by a source.

# %%
claims_table("11")

# %% [markdown]
# ## More exercises
#
# All six are above, each before the library's own code for it. To go further, continue the model on your own text: a
# folder of plain text with empty lines between paragraphs. Copy the first recipe and change its `source`:

# %%
my_recipe = data_path("recipes", "medicine_continued.toml").read_text(encoding="utf-8")
my_recipe = my_recipe.replace('source = "medicine"', 'source = "path/to/folder"')
print(my_recipe[my_recipe.index("[text]") : my_recipe.index("[training]")].strip())

# %% [markdown]
# To use it, save it with `from pathlib import Path; Path("my_recipe.toml").write_text(my_recipe)`, and run `python -m
# course_lib.train.pretrain my_recipe.toml --out runs/mine`.

# %% [markdown]
# ## Quiz

# %%
quiz("11")

# %% [markdown]
# ## Questions for review
#
# {{review:11}}

# %% [markdown]
# ## Read on
#
# - Lee et al. (2019), *BioBERT*, arXiv 1901.08746: section 3; then the README, which explains the versions.
# - Gu et al. (2020), *Domain-Specific Language Model Pretraining for Biomedical Natural Language Processing*, arXiv
#   2007.15779: afresh against continued, fine-tuned by one protocol.
# - Chalkidis et al. (2020), *LEGAL-BERT*, arXiv 2010.02559: three ways compared.
# - Araci (2019), arXiv 1908.10063, and Yang, Uy, Huang (2020), arXiv 2006.08097: the two FinBERTs.
# - Beltagy, Lo, Cohan (2019), *SciBERT*, arXiv 1903.10676: a vocabulary of its own, tested beside BERT's.
# - Gururangan et al. (2020), *Don't Stop Pretraining*, arXiv 2004.10964: DAPT and TAPT; read section 4 first.
# - Howard and Ruder (2018), *ULMFiT*, arXiv 1801.06146: where layer-wise rates and unfreezing come from.
