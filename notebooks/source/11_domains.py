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
# - measure how far a domain is from the text that a model has read, in three numbers;
# - take a model into a domain in four ways, and say what each keeps, gains and forgets;
# - give a model new words: choose them, and make their rows;
# - split text whose documents are copied from one another;
# - say what BioBERT, LEGAL-BERT and the two FinBERTs did, and test details of their code one by one.
#
# You need masked words (**MLM**) and WordPiece from lecture 02, and fine-tuning from lecture 03. The text comes with packages (*Three real domains*, below); nothing else is downloaded.
#
# {{parts}}

# %%
from statistics import mean

import torch

from course_lib import bert, check, claims_table, compare, load_pretrained, quiz, show
from course_lib.lectures.lecture_11.views import (
    differences_table, forgetting_chart, hidden_words_chart, labels_chart, labels_table, law_chart, pieces_view, switches_table,
    tasks_chart, ways_table, words_table,
)  # fmt: skip
from course_lib.lectures.lecture_11.views.results import CONTINUED, GENERAL, finance_rows, labelled
from course_lib.teaching import LiveLoss
from course_lib.teaching.results import in_words, outcome, read_result
from course_lib.text.domains import domain

# %% [markdown]
# ## Predict first
#
# BERT read encyclopedias and novels. A hospital has diagnoses, a court has judgments, a bank has reports. Four models that went there:
#
# | | BioBERT | LEGAL-BERT | FinBERT (Araci) | FinBERT (Yang, Uy, Huang) |
# |---|---|---|---|---|
# | paper | Lee et al. 2019 | Chalkidis et al. 2020 | 2019 | 2020 |
# | text | PubMed abstracts, {{number:printed('biobert')['words']['pubmed']}} billion words | 12 GB of laws, cases, contracts | a part of Reuters TRC2 | filings, earnings calls, analysts' reports: 4.9 billion tokens |
# | starts from | BERT | BERT, *or* random | BERT | BERT, *or* random |
# | vocabulary | BERT's | BERT's, *or* its own | BERT's | BERT's, *or* its own (*FinVocab*) |
#
# (SciBERT did it for scientific papers, 82% of them biomedicine and 18% computer science, with a vocabulary of its own; PubMedBERT did BioBERT's job again from random initialisation. *LEGAL-BERT-SC* is the one of the LEGAL-BERTs that was trained from scratch.)
#
# Two roads, then: **read on** with what one has, or **start afresh** with words that fit. Three guesses before you go on.
#
# 1. Into how many pieces does BERT's vocabulary cut *diabetic retinopathy*?
# 2. A small BERT finds {{number:way('general', 'as it is')}} of hidden words in general text (its *masked-word accuracy*). Now it reads nothing but diagnoses, for {{number:budget}} steps. How many general words does it still find?
# 3. To which of 21 chapters of the classification does a diagnosis belong? Twenty labelled examples of each. Which is better, the model that has read diagnoses, or counting words without any model?

# %%
my_guesses = {"pieces": ..., "general words left": ..., "chapter": ...}

# %% [markdown]
# ## By hand
#
# ### What a word costs
#
# Ten words of a domain's text. Six are `fracture`, in three pieces; three are `of`, one piece; one is `osteolysis`, in four.
#
# | word | times | pieces | saved by a piece of its own |
# |---|---|---|---|
# | fracture | 6 | 3 | 6 · (3 − 1) = **12** |
# | of | 3 | 1 | 0 |
# | osteolysis | 1 | 4 | 1 · (4 − 1) = 3 |
#
# All pieces: 18 + 3 + 4 = 25, so 2.5 pieces a word. One word may be added: `fracture`. Then 6 + 3 + 4 = 13, so 1.3 pieces. Rare words are cut into more pieces, and adding them
# saves little.
#
# ### A row for a new word
#
# The new row must begin somewhere. With rows (2, 0), (0, 4), (1, 2) of the three old pieces, their **mean** is (1, 2). Which piece came first is lost: it is a start, no more.
#
# ### A rate for every layer
#
# What lies near the text should move less, says FinBERT's code: layer *i* = 0 … *L* − 1, counted from the text, learns with the rate divided by 1.2^(L − i). For four layers and a rate of 1: 0.83 at the top, then 0.69, 0.58, 0.48.
#
# ## Try it
#
# Pieces to build before the page shows them. A wrong answer gets the name of its mistake; `hint("11.1")` helps a step at a time,
# `reveal("11.1")` shows a solution. No later cell needs your answers.
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
# Two ways to one: add words behind the old pieces, or learn a vocabulary of the domain and keep what both have.

# %%
from course_lib.train.new_vocabulary import extended, fertility, old_rows, with_vocabulary

show(extended, old_rows, with_vocabulary)

# %% [markdown]
# Nothing but the embedding matrix and the output's bias changes. The blocks do not know that their words have changed hands.
#
# The rows of one piece, by `old_rows`. `##` (`CONTINUES`) marks a piece that goes on with a word. So a new word is written as any word is; a new piece that begins with `##` is written with such pieces only.

# %%
course = load_pretrained("course-bert")
for piece in ("array", "retinopathy", "##opathy"):
    print(f"{piece:12} ←", *(course.tokenizer.vocab[row] for row in old_rows(piece, course.tokenizer)))

# %% [markdown]
# `array` has a row and keeps it; the others begin with the mean of theirs. With `rows="random"`, the other one of `ROWS`, they begin with random numbers. `_put` sets the new matrix into the copy, as input and, tied, as output.
#
# ### The four ways, as recipes
#
# Each is a file for the pre-training command. What differs:

# %%
from course_lib.files import data_path
from course_lib.train.pretrain_recipe import read_recipe

for name in ("medicine_continued", "medicine_added", "medicine_replaced", "medicine_afresh"):
    recipe = read_recipe(data_path("recipes", f"{name}.toml"))
    rows = f"new rows: {recipe.model.rows}" if recipe.model.start else "all rows: random"
    print(f"{name:19} start: {recipe.model.start or 'none':12} vocabulary: {recipe.text.vocabulary!s:12} added: {recipe.text.added:5}  {rows}")

# %% [markdown]
# (A vocabulary is a checkpoint's, or so many pieces to be learned. *Continued* meets no new word, so its rule for new rows is idle.) Three controls change one thing each: random rows, one batch in four of general text, three times the steps.
#
# ### Switches of fine-tuning
#
# Four details of the authors' programs that are easy to copy and seldom tested:
#
# - a rate for every layer (FinBERT, exercise 11.3);
# - weights for rare classes (FinBERT, 11.4);
# - a loss that sees padding (BioBERT's program, 11.5);
# - *gradual unfreezing* (FinBERT): at first only the new head learns; then, from the top, one layer more at a time. (The program itself never reaches the lowest two layers, nor the pooler: `gradual_unfreezing(…, as_released=True)`. Ours goes down to the embeddings.)
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
# BioBERT and FinBERT *are* BERT: no new class, only other weights. So the comparison is BERT's, with BioBERT's 28,996 rows (the cased vocabulary):

# %%
torch.manual_seed(0)
compare(bert("tiny", vocab_size=28_996))

# %% [markdown]
# And a new vocabulary must leave the old words alone. Add two words to the course's BERT and ask it about a sentence without them: the old logits must be the same. (The probabilities are not: two words more share in the softmax.)

# %% tags=["nbval-check-output"]
more = extended(course.tokenizer, ["retinopathy neuropathy retinopathy neuropathy"] * 2, 2)
moved = with_vocabulary(course.model, course.tokenizer, more).eval()
ids = torch.tensor([course.tokenizer.encode("the function returns a [MASK] array .")])
with torch.no_grad():
    before, after = course.model(ids).logits, moved(ids).logits
print("added:", more.vocab[len(course.tokenizer) :])
print("rows:", before.shape[-1], "→", after.shape[-1], "· old logits equal:", torch.equal(before, after[..., : before.shape[-1]]))

# %% [markdown]
# **If you are online** the released models load by their names into our classes: write some into the list, such as `"dmis-lab/biobert-base-cased-v1.2"`, `"nlpaueb/legal-bert-base-uncased"`, `"ProsusAI/finbert"`.
# Repositories that hold pickled weights only are refused, since a pickle may run code; transformers reads those with care, and `from_transformers` carries its model over.

# %%
released = []  # names go here; nothing is asked of the network while it is empty
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
# They are in packages that `make lab` installs, and are read as files. Nothing is copied into this course. In Colab, or where one is missing, this line brings them:
#
#     {{number:INSTALL.replace('python -m ', '%')}}
#
# - *Medicine*: what ICD-10-CM, a classification of diagnoses, says of each.
# - *Law*: software licences, in 2,000 texts.
# - *Finance*: the documentation of a library for balance sheets and prices. It is software's documentation, too, as the general text is: near to it for that reason alone.
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
# *Choose an example or write your own words. Diagnoses fall apart under the first two vocabularies. So do rare words of law and finance; but they are rare, as the table below counts. Punctuation is shown and not counted.*
#
# *Diabetic retinopathy* is {{number:cut_retinopathy}} pieces of BERT's vocabulary: the first guess. A common misconception: BioBERT's vocabulary knows gene and drug names. It is BERT's: *BRCA1* stays `{{number:pieces('BRCA1', 'bert-base')}}` and *metformin* `{{number:pieces('metformin', 'bert-base')}}`,
# however much it reads. Other names fare alike: *TP53* is `{{number:pieces('TP53', 'bert-base')}}`, *EGFR* `{{number:pieces('EGFR', 'bert-base')}}`, *aspirin* `{{number:pieces('aspirin', 'bert-base')}}`, *ibuprofen* `{{number:pieces('ibuprofen', 'bert-base')}}`.
#
# Diagnoses name few of these. Their own vocabulary has `{{number:pieces('aspirin', 'medicine')}}` whole, and cuts *BRCA1* into `{{number:pieces('BRCA1', 'medicine')}}`: a vocabulary knows what was in its text.
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
# ① pieces a word, ② the fraction of frequent words that are shared with general text, ③ words a sentence.

# %%
words_table()

# %% [markdown]
# *① Of held-out text, under three vocabularies; own: 8,192 pieces learned from the domain (in the runs below 4,096). ② Of the domain's 2,000 most frequent words. ③ The mean. Read: how much of the held-out text stands in the training text, as runs of eight words.*
#
# - **① depends on the model you have.** Under bert-base's vocabulary only medicine has a mismatch: {{number:fertility('medicine', 'bert-base')}} pieces a word, general text {{number:fertility('general', 'bert-base')}}, law {{number:fertility('law', 'bert-base')}}, finance {{number:fertility('finance', 'bert-base')}}. A new vocabulary would save next to nothing in law.
# - *course-bert's vocabulary* is smaller and learned from documentation alone. It cuts all three: medicine {{number:fertility('medicine', 'course')}}, law {{number:fertility('law', 'course')}}, finance {{number:fertility('finance', 'course')}}, general text {{number:fertility('general', 'course')}}. Our runs start from it: a large mismatch in medicine, a small one in law.
# - *② Frequent words*: {{number:stored('11_words')['domains']['medicine']['shared']:.0%}} of medicine's frequent words are also frequent in general text, {{number:stored('11_words')['domains']['finance']['shared']:.0%}} of finance's.
# - *③ Long legal sentences*: 40 words and more, it is often said. Licences have {{number:stored('11_words')['domains']['law']['sentence']['mean']:.0f}}, our documentation {{number:stored('11_words')['domains']['general']['sentence']['mean']:.0f}}, that of finance {{number:stored('11_words')['domains']['finance']['sentence']['mean']:.0f}}. Longer, not three times as long; other law may differ.
# - *Latin and nested clauses*, said to be other marks of law: licences have {{number:stored('11_words')['domains']['law']['latin']:.1f}} Latin phrases in 10,000 words, documentation {{number:stored('11_words')['domains']['general']['latin']:.1f}}; {{number:stored('11_words')['domains']['law']['clauses']:.1f}} words such as *which* and *unless* a sentence, documentation {{number:stored('11_words')['domains']['general']['clauses']:.1f}}. A licence is no judgment: here neither mark tells much.
# - **The last two columns** are a warning. Licences are copied from one another. Split them at random, and {{number:stored('11_words')['domains']['law']['repeated']['at random']:.0%}} of what you test on was read in training. Here families stay together: {{number:stored('11_words')['domains']['law']['repeated']['by family']:.0%}}, and what is left was not looked at; phrases that all lawyers use, perhaps.
#
# ### Reading on, live
#
# The course's BERT reads diagnoses for 80 steps: half a minute or so, two minutes on a processor that does not multiply bfloat16 itself. What does it gain, and what does it lose?

# %%
if "medicine" in readable:
    from course_lib.lectures.lecture_11 import ways

    way = ways.MEDICINE[CONTINUED]
    ready = ways.ready(way, 0)
    before = ways.hidden_words(ready.model, ready.reading.tokenizer, "medicine")
    ways.pretrain(way, 0, 80, [LiveLoss()])
    after = ways.hidden_words(ready.model, ready.reading.tokenizer, "medicine")
    for text in before:
        print(f"hidden words found in {text} text: {before[text]:.0%} before, {after[text]:.0%} after")
else:
    print("The package with the diagnoses is not installed: see the stored runs below.")

# %% [markdown]
# *The curve: the MLM loss on diagnoses, in nats.*
#
# Eighty steps, and the general words have begun to go. ({{number:way('general', GENERAL, '11_law')}} before, {{number:way('general', 'as it is')}} in the stored runs below: those hid words of other sentences.)
#
# This is **masked-word accuracy**: a hidden *word* counts as found if all its pieces are. So vocabularies can be compared; but a word in one piece is one guess, a word in four pieces is four.
#
# ## Measure it
#
# ### Four ways, at equal FLOPs
#
# **Reading on learns the domain's words at once. Starting afresh, at equal FLOPs, has hardly begun.**
#
# course-bert (4 layers, 256 wide), {{number:in_letters(len(ways('general')[CONTINUED]))}} seeds. {{number:budget}} steps of *continued* set the budget; the others get as many FLOPs (additions and multiplications). All by the pre-training command.
#
# - *as it is*: the general model; *random initialisation*: a model that has read nothing;
# - *continued* (BioBERT): the same vocabulary, read on; once also *mixed*, one batch in four of general text;
# - *afresh* (LEGAL-BERT-SC, SciBERT): 4,096 pieces of its own, random initialisation; also with three times the FLOPs;
# - *rows added*: {{number:added}} whole words behind the old pieces, as *means* of old rows or at *random*; *rows replaced*: 4,096 pieces of its own, with means, and the old blocks.

# %%
ways_table()

# %% [markdown]
# *A step is dear where its 32 positions are well filled: whole words pack better. The output layer counts little, so half the pieces save little. FLOPs are counted on five batches, and batches differ: the {{number:stored('11_medicine')['runs'][MIXED][0]['steps']}} steps of the mixed one, instead of {{number:budget}}, are no more than that.*
#
# **One rule for this page.** One way is *better* than another if it is so in every seed, and on average by more than the standard deviation over the seeds, the larger of the two. Otherwise: *not settled*. The rule knows the seeds only; a small test is uncertain besides.

# %%
hidden_words_chart()

# %% [markdown]
# *A dot is a run. Masked-word accuracy; left: on unseen diagnoses; right: on general documentation, the price.*
#
# - **Reading on pays**: {{number:own_general}} → {{number:own_continued}} of the domain's hidden words.
# - **Words of its own pay more**: with rows added {{number:way('in domain', 'rows added, means')}}, with rows replaced {{number:way('in domain', 'rows replaced, means')}}. Part of this is the measure, which is kinder to words in one piece; how much, would be seen in bits a character (below), which were not measured for these two.
# - **Afresh is on the plateau** at this budget, {{number:way('in domain', 'own vocabulary, afresh')}}. A model from random initialisation at first learns only how frequent words are. Then its loss hardly falls for hundreds of steps: the plateau. After that it learns what words do in a sentence.
# - **With three times the FLOPs** afresh has {{number:way('in domain', 'own vocabulary, afresh, longer')}}. But then it was given three times as much, and reading on was not: that is no comparison. (To make it one, reading on has to go on for 3,000 steps as well: about half an hour of one core for three seeds. It was not run.)
#
# ### What is forgotten
#
# **At a learning rate of 1e-3, the only one tried, two thirds of the general words go, and quickly. One general batch in four keeps nearly all of them.**
#
# (At 3e-4 or 1e-4 less may be forgotten, and less learned. Three seeds of both take twenty minutes of one core; `PLANNED` in `further.py` has the recipes.)

# %%
forgetting_chart()

# %% [markdown]
# *Masked-word accuracy, mean of the seeds as a line, all of them as a band. Mixed: one batch in four is general text.*
#
# General words: {{number:way('general', 'as it is')}} before, {{number:way('general', 'continued')}} after: the second guess. **Forgetting is faster than learning.** After a third of the steps general words are down at {{number:old_third}} and stay there. Words of diagnoses are at {{number:own_third}}, and still rise to {{number:own_continued}}.
#
# With one general batch in four {{number:way('general', 'continued, general text mixed in')}} are kept, and the domain pays little: {{number:way('in domain', 'continued, general text mixed in')}} instead of {{number:own_continued}}.
#
# ### A task that words alone cannot answer
#
# **With 500 labels the model that has read on has {{number:labelled_at('word order, 500', CONTINUED)}}, the general one {{number:labelled_at('word order, 500', GENERAL)}}, a bag of words {{number:labelled_at('word order, 500', BAG)}}.**
#
# Is a diagnosis as it was written, or have two neighbouring words changed places? *Unspecified fracture of left femur* stands as it was; *unspecified of fracture left femur* does not. Each of the titles comes once, and half of them are changed, so which words it has says nothing of the answer: a bag of words is at
# chance. 400 unseen titles, 20 to 500 labelled ones, three seeds. The general model at the best of two rates of fine-tuning (of three at the chapter, which is in the first column and comes next), the other at 1e-3. All here in bfloat16.

# %%
labels_table()

# %%
labels_chart()

# %% [markdown]
# *A line is the mean of three seeds, the band goes from the least to the most; 50% is chance.*
#
# - Reading on less as it is, by the rule above: {{number:against('word order, 500', CONTINUED, GENERAL)}} with 500 labels, {{number:against('word order, 100', CONTINUED, GENERAL)}} with 100. With 20 and 100 labels neither is far from chance: the small model must first learn what is asked.
# - In **bits a character** (−log2 of what the model gives the right pieces of hidden words, over the letters that they have; it can be compared whatever the vocabulary is) diagnoses cost {{number:bits_at('in domain', GENERAL)}} before and {{number:bits_at('in domain', CONTINUED)}} after reading on; general text {{number:bits_at('general', GENERAL)}} and {{number:bits_at('general', CONTINUED)}}.
#
# ### Does it help where words tell?
#
# **At its best rate the general model is level with counting words. At the rate first taken it was seven points behind.**
#
# Two tasks that the classification labels by itself. (Body sites and drugs are marked nowhere in it, so they cannot be a task.)
#
# - *Chapter*: to which of 21 chapters does a diagnosis belong (the last of 22 has too few to be tested on)? {{number:stored('11_switches')['sizes']['chapters'][0]}} to learn from, {{number:stored('11_switches')['sizes']['chapters'][1]}} to be tested on. Accuracy. Without an encoder: logistic regression on which words a diagnosis has (a bag of words).
# - *Added words*: a title repeats the title above it, and adds something. Tag what is added, without seeing the title above. {{number:stored('11_switches')['sizes']['added words'][0]}} titles to learn from, {{number:stored('11_switches')['sizes']['added words'][1]}} to be tested on; one in three adds nothing. F1 of whole spans: a span counts if both its ends are right.
# - Without an encoder, for added words: a rule. What is added begins behind the first comma; else with the first of *with*, *without*, *due*, *in*, *by*.

# %%
if "medicine" in readable:
    from course_lib.lectures.lecture_11 import tasks

    for one in tasks.added_words(seed=0).test[:5]:
        for said, tags in (("right", one.entities), ("rule", tasks.cut_by_rule(one))):
            words = (w if tag == "O" else w.upper() for w, tag in zip(one.words, tags))
            print(f"{said:6}", " ".join(words))

# %% [markdown]
# The learning rate of fine-tuning first. The general model at the chapter, three seeds:

# %%
for rate in (3e-4, 1e-3, 3e-3):
    print(f"rate {rate:g}: {in_words(labelled('chapters', [rate])['as it is'])}")
print(f"bag of words: {in_words(labelled('chapters')['bag of words'])}")

# %% [markdown]
# **One early table stays as a lesson.** All ways of this page were compared at 3e-4, and nothing was clearly better than a bag of words ({{number:bag_chapters}}): it looked like a failure of BERT, and was one of ours. With 1e-3 the general model alone goes from {{number:labelled_at('chapters', GENERAL, 3e-4)}} to {{number:labelled_at('chapters', GENERAL)}}. So read the next chart for
# what differs between ways at one rate that is too low for all, not for how good they can be.

# %%
tasks_chart()

# %% [markdown]
# *A dot is a run, fine-tuned at 3e-4.*

# %%
differences_table()

# %% [markdown]
# *One way less another: the mean difference in points, and what the rule says of it. No encoder: the bag of words, or the rule of commas.*
#
# - *Chapters*: at 3e-4 reading on is better, {{number:way('chapters', 'as it is')}} → {{number:way('chapters', 'continued')}}. At 1e-3 it has {{number:labelled_at('chapters', CONTINUED)}} against {{number:labelled_at('chapters', GENERAL)}}: {{number:against('chapters', CONTINUED, GENERAL)}}; less a bag of words, {{number:against('chapters', CONTINUED, BAG)}}. Whether added or replaced rows are better still is not settled.
# - *Added words*: with rows added better than as it is. Reading on alone: not settled. (Only 3e-4 was tried.)
# - **Rows from means or random ones?** Means begin better: at step 0 they find {{number:on_the_way('added', 0, 'medicine')}} of the words of diagnoses and {{number:start_means_old}} of the general ones, random rows {{number:on_the_way('drawn', 0, 'medicine')}} and {{number:start_random_old}}. At the first look on the way, a sixth of the steps, it is {{number:on_the_way('added', 1, 'medicine')}} and
#   {{number:on_the_way('drawn', 1, 'medicine')}} of the diagnoses. In the end means keep a little more of the general words; all else is not settled.
# - **What we do not understand**: a model that has read nothing has {{number:way('chapters', 'random initialisation')}} of the chapters at 3e-4, as many as the general one (which has other pieces, 8,192 of them). After {{number:stored('11_medicine')['runs'][AFRESH][0]['steps']}} steps on diagnoses, afresh, it has {{number:way('chapters', 'own vocabulary, afresh')}}, fewer. Why reading *hurts* on the plateau was not tried.
#
# ### Law: a small mismatch
#
# **Where words fit, reading on helps with the words, and new pieces add little.**
#
# Licences, half the budget. course-bert's vocabulary cuts them into {{number:fertility('law', 'course')}} pieces a word. (bert-base's would fit: {{number:fertility('law', 'bert-base')}}.) *Category*: one of the six (of eleven) that have twenty licences to be tested on, by the first sixty words; families apart; 180 labels.

# %%
law_chart()

# %% [markdown]
# *A dot is a run; dashed: a bag of words.*
#
# - *Masked-word accuracy*: {{number:way('in domain', 'as it is', '11_law')}} as it is, {{number:way('in domain', 'continued', '11_law')}} continued, {{number:way('in domain', 'rows replaced, means', '11_law')}} with rows replaced, each better than the one before. The mismatch is small, and so is the gain from new pieces. Most of the gain is from reading on.
# - *Category*: {{number:way('licences', 'as it is', '11_law')}}, {{number:way('licences', 'continued', '11_law')}}, {{number:way('licences', 'rows replaced, means', '11_law')}}; random initialisation {{number:way('licences', 'random initialisation', '11_law')}}. **A failure**: nothing is better than a bag of words, {{number:percent(stored('11_law')['without_encoder']['licences'])}}, nor than random initialisation. So few labels do not teach a
#   category that lawyers argue about, from a licence's first sixty words.
#
# ### The switches
#
# **A loss over padding costs some points. The guards against forgetting cost more than they keep, in runs as short as these.**
#
# Details of BioBERT's and FinBERT's fine-tuning, each alone, on course-bert.

# %%
switches_table()

# %% [markdown]
# *Change: against plain fine-tuning on the same task. Natural chapters: 600 diagnoses as they come, tested on all chapters alike. General words kept: the fine-tuned encoder's masked-word accuracy on general text; {{number:way('general', 'as it is')}} before.*
#
# - **Loss over padding** (BioBERT's released program has its mask commented out, too): worse with 32 positions, and with 128, and hardly worse with 128 than with 32. So thinning by padding is not the whole reason; this loss also calls special tokens and the further pieces of tagged words *outside*. Which of these does it was not tried.
# - **Inverse-frequency weights** (FinBERT): not settled. Better in every seed, but by less than two points in two of three.
# - **Layer-wise rates, gradual unfreezing** (FinBERT, against forgetting): worse at the task, each and both. And there was little to guard: fine-tuned plainly the encoder still finds {{number:switched('chapters', 'general')}} of the general words.
# - **Simply a third of the rate** keeps as many ({{number:switched('chapters, a third of the rate', 'general')}}, both guards {{number:switched('chapters, both', 'general')}}). It costs the task more on average, {{number:lost('third')}} points against {{number:lost('both')}}; between these two nothing is settled. Longer training, or a larger model, may need the guards.
#
# ### Good news or bad?
#
# **Ninety labels are too few for a finding.**
#
# 150 sentences written for this course, half plain (*The company doubled its profit.*), half hedged (*The loss was smaller than feared.*); good, bad, or no news. {{number:len(finance('train'))}} to learn from, {{number:len(finance('test'))}} to be tested on.

# %%
for measure, said in (("score", "all"), ("plain", "the plain half"), ("hedged", "the hedged half")):
    print(said)
    for name, values in finance_rows(measure).items():
        print(f"   {name:30}", ", ".join(f"{value:.0%}" for value in values))

# %% [markdown]
# A third is chance, counting words has {{number:news_of('counting words', 'score')}}. Both starts are better than their shapes at random, by the rule; but the best mean is {{number:percent(max(finance_rows().values(), key=mean))}}. And the rule knows the seeds only: with {{number:len(finance('test'))}} sentences a score is uncertain by eight points. So pre-training may help a little.
#
# - *The plain half*: course-bert {{number:news_of('course-bert', 'plain')}}, MiniLM {{number:news_of('MiniLM', 'plain')}}.
# - *The hedged half stays near chance*: {{number:news_of('course-bert', 'hedged')}} and {{number:news_of('MiniLM', 'hedged')}}. Ninety labels do not teach what *smaller than feared* does to a loss. Financial PhraseBank, on which FinBERT was tuned, has some thousands of sentences.
# - *Not tested*: *numbers*, and *time* (what was good news last year need not be so today). FinBERT's program says P(positive) − P(negative), so that *no news* lies between.
#
# ## What the papers found
#
# | | they report | note |
# |---|---|---|
# | BioBERT | names in text (NER) +0.62 F1, relations +2.80 F1, questions +12.24 MRR | over the *best systems before*, not over BERT |
# | PubMedBERT | afresh 81.16, BioBERT 80.34 | on BLURB, a benchmark of biomedical tasks; one protocol for both |
# | LEGAL-BERT | a small version: a third of the size, about four times as fast | the paper compares three ways: BERT as it is, continued, afresh |
#
# (MRR, mean reciprocal rank: 1 if the right answer stands first in a list, 1/2 if second.) What the models were made of, by their authors:
#
# | | text | steps and vocabulary | fine-tuning |
# |---|---|---|---|
# | BioBERT | on top of BERT's {{number:biobert_inherited}} billion words: PubMed abstracts, {{number:printed('biobert')['words']['pubmed']}} billion; some versions 1.0 also articles of PMC, {{number:printed('biobert')['words']['pmc']}} billion | version 1.1, the one to use: PubMed alone, a million steps, BERT's own MLM and NSP (next-sentence prediction). BERT-base's cased vocabulary; the large model has one of its own | – |
# | LEGAL-BERT | 12 GB: {{number:printed('legal_bert')['text']['eu_laws']}} EU laws, {{number:printed('legal_bert')['text']['uk_laws']}} UK laws, {{number:printed('legal_bert')['text']['ecj_cases']}} cases of the European Court of Justice, {{number:printed('legal_bert')['text']['echr_cases']}} of the Court of Human Rights; US cases and contracts | a million steps | – |
# | FinBERT (Araci) | a part of Reuters TRC2 | BERT's vocabulary | Financial PhraseBank; score P(positive) − P(negative) |
# | FinBERT (Yang et al.) | filings, earnings calls, analysts' reports | FinVocab: {{number:printed('finbert')['yang']['vocabulary_uncased']}} pieces, uncased | – |
#
# BioBERT's gain of 12.24 is often printed as BERT's *score*. Compare a suspicious number with the abstract before you build on it.
#
# ### The names for it
#
# - **DAPT and TAPT** (Gururangan et al. 2020, *Don't Stop Pretraining*): *domain-adaptive* pre-training is our reading on; *task-adaptive* pre-training reads the task's own texts, without their labels, in a small part of the time. With RoBERTa on eight tasks of four domains both help, and one after the other helps most
#   (ChemProt, F1: 81.9 as it is, 84.2 DAPT, 82.6 TAPT, 84.4 both).
# - **ULMFiT** (Howard and Ruder 2018) had the same order two years before, with an LSTM: a language model, read on in the task's text, then a classifier. *Discriminative fine-tuning* (a rate for every layer) and *gradual unfreezing* are from there; FinBERT took them over.
# - **Catastrophic forgetting** (McCloskey and Cohen 1989) is what the curve above shows; mixing old text in is called **replay**, or rehearsal.
# - **FinBERT's own table 4** (Araci), accuracy on PhraseBank: BERT fine-tuned 0.85, after reading the task's text 0.86, after reading the domain's 0.86. A gain of one point, which its author calls small.
# - **PubMedBERT's ablations**: a vocabulary of the domain helps, masking whole words helps, and general text before the domain's does not. With full articles beside abstracts it has to be trained longer to gain.
#
# ### Which way?
#
# | you have | do | here | the papers |
# |---|---|---|---|
# | few labels, telling words | count words first; it is the bar | chapters: counting {{number:bag_chapters}}, the general model {{number:labelled_at('chapters', GENERAL)}}, reading on {{number:labelled_at('chapters', CONTINUED)}} | – |
# | text of the domain, words that fit | read on; mix in general text if you still need it | masked-word accuracy {{number:own_general}} → {{number:own_continued}}; {{number:way('general', 'continued, general text mixed in')}} of general words kept | BioBERT: +0.62 (names), +2.80 (relations) F1, over the best before |
# | words that are cut to pieces | read on with words added or replaced | masked-word accuracy {{number:way('in domain', 'rows added, means')}}, {{number:way('in domain', 'rows replaced, means')}} | FinBERT (Yang et al.): a vocabulary of {{number:printed('finbert')['yang']['vocabulary_uncased']}} of its own |
# | very much text, and compute | afresh, with a vocabulary of its own | masked-word accuracy {{number:way('in domain', 'own vocabulary, afresh')}}; with three times the FLOPs {{number:way('in domain', 'own vocabulary, afresh, longer')}}, which reading on was not given | PubMedBERT 81.16, BioBERT 80.34 |
# | little text, little compute | the released model of a neighbour: BioBERT, LEGAL-BERT, FinBERT (say which) | not tried | LEGAL-BERT, small: a third of the size, four times as fast |

# %%
print(f"{'':20}{'you said':>14}   answer, here")
medicine = read_result("11_medicine")
general = {name: mean(values) for name, values in outcome(medicine, "general").items()}
chapters = {name: mean(values) for name, values in labelled("chapters").items()}
answers = {
    "pieces": len(read_result("11_words")["pieces"]["diabetic retinopathy"]["bert-base"]),
    "general words left": f"{general[CONTINUED]:.0%} of {general[GENERAL]:.0%}",
    "chapter": f"{chapters[CONTINUED]:.0%} against {chapters['bag of words']:.0%}",
}
for name, value in answers.items():
    print(f"{name:20}{str(my_guesses[name]).replace('Ellipsis', '–'):>14}   {value}")

# %% [markdown]
# ## What they claim, what you measured
#
# Each line was settled by code that ran just now, by a result file, or, where neither can, by a source.

# %%
claims_table("11")

# %% [markdown]
# ## More exercises
#
# All six stand above, each before the library's own code for it. To go on, read on in a text of your own: a folder of plain text, paragraphs apart by an empty line. Copy the first recipe, and change its `source`:

# %%
my_recipe = data_path("recipes", "medicine_continued.toml").read_text(encoding="utf-8")
my_recipe = my_recipe.replace('source = "medicine"', 'source = "path/to/folder"')
print(my_recipe[my_recipe.index("[text]") : my_recipe.index("[training]")].strip())

# %% [markdown]
# Save it with `from pathlib import Path; Path("my_recipe.toml").write_text(my_recipe)`, and start `python -m course_lib.train.pretrain my_recipe.toml --out runs/mine`.

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
# - Lee et al. (2019), *BioBERT*, arXiv 1901.08746: section 3; then the README, where the versions are.
# - Gu et al. (2020), *Domain-Specific Language Model Pretraining for Biomedical Natural Language Processing*, arXiv 2007.15779: afresh against continued, under one protocol.
# - Chalkidis et al. (2020), *LEGAL-BERT*, arXiv 2010.02559: three ways on one page.
# - Araci (2019), arXiv 1908.10063, and Yang, Uy, Huang (2020), arXiv 2006.08097: the two FinBERTs.
# - Beltagy, Lo, Cohan (2019), *SciBERT*, arXiv 1903.10676: a vocabulary of its own, tested beside BERT's.
# - Gururangan et al. (2020), *Don't Stop Pretraining*, arXiv 2004.10964: DAPT and TAPT; read section 4 first.
# - Howard and Ruder (2018), *ULMFiT*, arXiv 1801.06146: where layer-wise rates and unfreezing come from.
