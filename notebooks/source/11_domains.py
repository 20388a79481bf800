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
# - split text whose documents are written from each other;
# - say what BioBERT, LEGAL-BERT and the two FinBERTs did, and test details of their code one by one.
#
# You need masked words (**MLM**) and WordPiece from lecture 02, and fine-tuning from lecture 03. Nothing is downloaded.
#
# {{parts}}

# %%
from statistics import mean

import torch

from course_lib import bert, check, claims_table, compare, load_pretrained, quiz, show
from course_lib.lectures.lecture_11.views import (
    decision_table, forgetting_chart, hidden_words_chart, law_chart, pieces_view, switches_table, tasks_chart, words_table,
)  # fmt: skip
from course_lib.lectures.lecture_11.views.results import CONTINUED, GENERAL, finance_rows
from course_lib.teaching import LiveLoss
from course_lib.teaching.results import outcome, read_result
from course_lib.text.domains import domain, installed

# %% [markdown]
# ## Predict first
#
# BERT read encyclopedias and novels. A hospital has diagnoses, a court has judgments, a bank has reports. Four models that went there:
#
# | | BioBERT | LEGAL-BERT | FinBERT (Araci) | FinBERT (Yang, Uy, Huang) |
# |---|---|---|---|---|
# | paper | Lee et al. 2019 | Chalkidis et al. 2020 | 2019 | 2020 |
# | text | PubMed abstracts, {{number:biobert_read}} billion words | 12 GB of laws, cases, contracts | a part of Reuters TRC2 | filings, earnings calls, analysts' reports: 4.9 billion tokens |
# | starts from | BERT | BERT, *or* random | BERT | BERT, *or* random |
# | vocabulary | BERT's | BERT's, *or* its own | BERT's | BERT's, *or* its own |
#
# (SciBERT did it for papers of all sciences, with a vocabulary of its own; PubMedBERT did BioBERT's job again from random initialisation.)
#
# Two roads, then: **read on** with what one has, or **start afresh** with words that fit. Three guesses before you go on.
#
# 1. Into how many pieces does BERT's vocabulary cut *diabetic retinopathy*?
# 2. A small BERT finds {{number:old_general}} of hidden words in general text. Now it reads nothing but diagnoses, for {{number:budget}} steps. How many general words does it still find?
# 3. To which of 21 chapters does a diagnosis belong? Twenty labelled examples of each. Which is better, the model that has read diagnoses, or counting words without any model?

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
# What lies near the text should move less, says FinBERT's code: layer *i* of *L* learns with the rate divided by 1.2^(L − i). For four layers and a rate of 1: 0.83 at the top, then 0.69, 0.58, 0.48.
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
# ### The four ways, as recipes
#
# Each is a file for the pre-training command. To read on is two lines:

# %%
from course_lib.files import data_path

for name in ("medicine_continued", "medicine_added", "medicine_replaced", "medicine_afresh"):
    told = data_path("recipes", f"{name}.toml").read_text(encoding="utf-8").splitlines()
    chosen = [line for line in told if line.startswith(("start", "rows", "vocabulary", "added", "size", "family"))]
    print(f"{name:20}", " · ".join(chosen))

# %% [markdown]
# ### Switches of fine-tuning
#
# Four details of the authors' programs that are easy to copy and seldom tested. First three of them as exercises.
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
# BioBERT and FinBERT *are* BERT: no new class, only other rows. So the comparison is BERT's, with BioBERT's 28,996 rows (the cased vocabulary):

# %%
torch.manual_seed(0)
compare(bert("tiny", vocab_size=28_996))

# %% [markdown]
# And a new vocabulary must leave the old words alone. Add two words to the course's BERT and ask it about a sentence without them: the old logits must be the same.

# %% tags=["nbval-check-output"]
course = load_pretrained("course-bert")
more = extended(course.tokenizer, ["retinopathy neuropathy retinopathy neuropathy"] * 2, 2)
moved = with_vocabulary(course.model, course.tokenizer, more).eval()
ids = torch.tensor([course.tokenizer.encode("the function returns a [MASK] array .")])
with torch.no_grad():
    before, after = course.model(ids).logits, moved(ids).logits
print("added:", more.vocab[len(course.tokenizer) :])
print("rows:", before.shape[-1], "→", after.shape[-1], "· old logits equal:", torch.equal(before, after[..., : before.shape[-1]]))

# %% [markdown]
# **With a network** the released models load by their names into our classes: write some into the list, such as `"dmis-lab/biobert-base-cased-v1.2"`, `"nlpaueb/legal-bert-base-uncased"`, `"ProsusAI/finbert"`.
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
# They are on your disk, in packages that `make lab` installs (the extra `domains`), read as files. Nothing is copied into this course.
#
# - *Medicine*: what ICD-10-CM, a classification of diagnoses, says of each.
# - *Law*: licences of software, in 2,000 texts.
# - *Finance*: the documentation of a library for balance sheets and prices.
# - *General*: the documentation that the course's BERT has read.

# %%
for name in ("medicine", "law", "finance"):
    try:
        read = domain(name)
        print(read)
        print("   ", read.documents[7].paragraphs[0][:150])
    except LookupError as missing:
        print(missing)

# %% [markdown]
# ### How are their words cut?

# %%
vocabularies = {"course-bert": course.tokenizer}
try:
    vocabularies["bert-base-uncased"] = load_pretrained("all-MiniLM-L6-v2").tokenizer  # MiniLM has it
except FileNotFoundError as missing:
    print(missing)
if "medicine" in installed():
    from course_lib.lectures.lecture_11.words import own_vocabulary

    vocabularies["learned from diagnoses"] = own_vocabulary("medicine")
pieces_view(vocabularies)

# %% [markdown]
# *Choose an example or write your own words. Diagnoses fall apart under the first two vocabularies. So do rare words of law and finance; but they are rare, as the table below counts.*
#
# *Diabetic retinopathy* is {{number:cut_retinopathy}} pieces of BERT's vocabulary: the first guess. A lecture praises BioBERT for gene and drug names. Its vocabulary is BERT's: *BRCA1* stays `{{number:cut_brca1}}` and *metformin* `{{number:cut_metformin}}`,
# however much it reads. (And diagnoses name neither: their own vocabulary has `{{number:own_brca1}}`, too. A vocabulary knows what was in its text.)
#
# {{exercise:11.6}}


# %%
def my_repeated(train, test, n):
    return ...


check("11.6", my_repeated)

# %% [markdown]
# ### The three numbers to measure first

# %%
words_table()

# %% [markdown]
# *Course, bert-base, own: pieces a word of held-out text under three vocabularies (letters and digits; the own one has 8,192 pieces). Shared: how many of the 2,000 most frequent words are frequent in general text, too. Sentence: words. Read: how much of the held-out
# text stands in the training text, as runs of eight words.*
#
# - **Only medicine has a mismatch**: {{number:pieces_medicine_bert}} pieces a word under BERT's vocabulary, {{number:pieces_general_bert}} in general text. Law has {{number:pieces_law_bert}}, finance {{number:pieces_finance_bert}}: an own vocabulary would save nothing there. So measure before you train one.
# - *Frequent words* tell the same: of medicine's {{number:shared_medicine}} are general ones, of finance's {{number:shared_finance}}.
# - *Long legal sentences*: a lecture says 40 words and more. Licences have {{number:sentence_law}}, our documentation {{number:sentence_general}}, that of finance {{number:sentence_finance}}. Longer, not three times as long; other law may differ.
# - **The last two columns** are a warning. Licences are written from each other. Split them at random, and {{number:repeated_law_random}} of what you test on was read in training. Here families stay together: {{number:repeated_law_family}}, and what is left are phrases that all lawyers use.
#
# ### Reading on, live
#
# The course's BERT reads diagnoses for 80 steps: half a minute or so. What does it gain, and what does it lose?

# %%
if "medicine" in installed():
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
# Eighty steps, and the general words have begun to go. A hidden *word* counts as found if all its pieces are, so the measure is fair to any vocabulary.
#
# ## Measure it
#
# ### Four ways, at equal FLOPs
#
# course-bert (4 layers, 256 wide), {{number:seeds}} seeds. {{number:budget}} steps of the first way set the budget; the others get as many FLOPs. All by the pre-training command, from the recipes that you saw.
#
# - *as it is*: the general model;
# - *continued* (BioBERT): the same vocabulary, read on; once also with *general text mixed in*, one batch in four;
# - *own vocabulary, afresh* (LEGAL-BERT-SC, SciBERT): 4,096 pieces of its own, random initialisation; *longer* has three times the FLOPs;
# - *rows added*: a thousand whole words behind the old pieces, as *means* of old rows or at *random*; *rows replaced*: the own vocabulary, with means, and the old blocks.

# %%
decision_table()

# %% [markdown]
# *Means over the seeds. Steps differ where a step costs more.*

# %%
hidden_words_chart()

# %% [markdown]
# *A dot is a run. Left: hidden words of unseen diagnoses. Right: of general documentation, the price.*
#
# - **Reading on pays**: {{number:own_general}} → {{number:own_continued}} of the domain's hidden words.
# - **Words of its own pay more**: with rows added {{number:own_added}}, with rows replaced {{number:own_replaced}}. (Part of this is the measure: one piece is one guess, four pieces are four.)
# - **Afresh is on the plateau** at this budget, {{number:own_afresh}}. With three times the FLOPs it has {{number:own_longer}}. Both numbers are true; who shows you one of them only has chosen the winner.
#
# ### What is forgotten

# %%
forgetting_chart()

# %% [markdown]
# *Mean of the seeds as a line, all of them as a band.*
#
# General words: {{number:old_general}} before, {{number:old_continued}} after. Most is lost in the first third of the steps: forgetting is faster than learning. With one general batch in four {{number:old_mixed}} are kept, and the domain pays little
# ({{number:own_mixed}} instead of {{number:own_continued}}). That is the second guess.
#
# ### Does it help a task?
#
# Two tasks that the classification labels by itself. *Chapter*: to which of 21 chapters belongs a diagnosis; 420 labels. *Added words*: ICD titles say what the entry above them says, and add something; tag what is added, without seeing the entry above; 400 labels.

# %%
tasks_chart()

# %% [markdown]
# *A dot is a run. Without any encoder: chapters by counting words {{number:bag_chapters}}, added words by a rule {{number:rule_tags}}.*
#
# - *Chapters*: {{number:chapters_general}} as it is, which is no more than random initialisation has ({{number:chapters_random}}); {{number:chapters_continued}} after reading on, better in every seed. Afresh {{number:chapters_afresh}}; afresh and longer {{number:chapters_longer}}.
# - *Added words*: {{number:tags_general}}, {{number:tags_continued}}, with rows added {{number:tags_added}} (random rows: {{number:tags_drawn}}), afresh and longer {{number:tags_longer}}. The seeds lie as far apart as the ways.
# - **Rows from means are no better than random ones** after a thousand steps. They begin better, as they should.
# - **An honest failure**: counting words has {{number:bag_chapters}} of the chapters. With twenty labels a chapter and telling words, nothing here is clearly better than a bag of words: the third guess.
#
# ### Law, where the vocabulary fits
#
# Licences, half the budget. *Category*: one of six, by the first sixty words; families apart.

# %%
law_chart()

# %% [markdown]
# *A dot is a run. Counting words: {{number:bag_licences}}.*
#
# - *Hidden words*: {{number:law_own_general}} as it is, {{number:law_own_continued}} continued, {{number:law_own_replaced}} with rows replaced. The vocabulary fitted, and reading on pays still: phrases are learned, not only words.
# - *Category*: {{number:law_licences_general}}, {{number:law_licences_continued}}, {{number:law_licences_replaced}}; random initialisation {{number:law_licences_random}}. **A failure**: the seeds lie further apart than the ways, and random initialisation is not behind. 180 labels do not teach a
#   category that lawyers argue about, from a licence's first sixty words.
#
# ### The switches
#
# Details of BioBERT's and FinBERT's fine-tuning, each alone, on course-bert.

# %%
switches_table()

# %% [markdown]
# *One value a seed. Chapters and added words as above; natural chapters: 600 diagnoses as they come, tested on all chapters alike.*
#
# - **Loss over padding** (BioBERT's released NER code has its mask commented out): F1 {{number:switch_tags}} → {{number:switch_padded}} with 32 positions, {{number:switch_padded_128}} with 128. Padding is learned at once, and then thins out the words' gradient.
# - **Inverse-frequency weights** (FinBERT): {{number:switch_natural}} → {{number:switch_weights}}; better in every seed, though in two of three by a point only.
# - **Layer-wise rates, gradual unfreezing** (FinBERT, against forgetting): {{number:switch_chapters}} → {{number:switch_layers}}, {{number:switch_unfreeze}}, both {{number:switch_both}}. But what had they to guard? Fine-tuned plainly the encoder still finds {{number:still_chapters}} of general words, with both guards
#   {{number:still_both}}. Simply a third of the rate: {{number:switch_third}}, and {{number:still_third}}. At 300 steps they are a smaller rate by another name. Longer training, or a larger model, may need them.
#
# ### Good news or bad?
#
# 150 sentences written for this course, plain (*The company doubled its profit.*) and hedged (*The loss was smaller than feared.*); good, bad, or no news. {{number:finance_learned}} to learn from, {{number:finance_tested}} to be tested on.

# %%
for name, values in finance_rows().items():
    print(f"{name:30}", ", ".join(f"{value:.0%}" for value in values))

# %% [markdown]
# A third is chance. course-bert {{number:finance_course}}, without its pre-training {{number:finance_random}}; MiniLM {{number:finance_minilm}}, without {{number:finance_minilm_random}} (percent, a value a seed). One sentence is three points. So: pre-training helps a little, and ninety labels do not
# teach what *smaller than feared* does to a loss. Financial PhraseBank, on which FinBERT was tuned, has some thousands of sentences.
#
# ## What the papers found
#
# | | they report | note |
# |---|---|---|
# | BioBERT | NER +0.62 F1, relations +2.80 F1, questions +12.24 MRR | over the *best systems before*, not over BERT |
# | PubMedBERT | afresh 81.16, BioBERT 80.34 (BLURB) | one protocol for both; a million steps of text |
# | LEGAL-BERT | three ways compared: as it is, continued, afresh | small version: a third of the size, about four times as fast |
#
# A source of this course prints a BioBERT table with *QA: BERT 12.24 → BioBERT 19.62*. 12.24 is the gain in the abstract. Compare a suspicious number with the abstract before you build on it.
#
# ### Which way?
#
# | you have | do | here |
# |---|---|---|
# | few labels, telling words | count words first; it is the bar | {{number:bag_chapters}} of chapters |
# | text of the domain, words that fit | read on; mix in general text if you still need it | {{number:own_general}} → {{number:own_continued}}, {{number:old_mixed}} of general words kept |
# | words that are cut to pieces | read on with words added or replaced | {{number:own_added}} |
# | very much text, and compute | afresh, with an own vocabulary | {{number:own_afresh}}, three times the FLOPs {{number:own_longer}} |
# | less than that | the released model of a neighbour: BioBERT, LEGAL-BERT, FinBERT (say which) | not tried |

# %%
print(f"{'':20}{'you said':>14}   answer, here")
medicine = read_result("11_medicine")
general = {name: mean(values) for name, values in outcome(medicine, "general").items()}
chapters = {name: mean(values) for name, values in outcome(medicine, "chapters").items()}
answers = {
    "pieces": len(read_result("11_words")["pieces"]["diabetic retinopathy"]["bert-base"]),
    "general words left": f"{general[CONTINUED]:.0%} of {general[GENERAL]:.0%}",
    "chapter": f"level: {chapters[CONTINUED]:.0%} against {mean(medicine['without_encoder']['chapters']):.0%}",
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
# All six stand above, each before the code that answers it. To go on: write a folder of your own text, and start the first recipe with it:
# `python -m course_lib.train.pretrain my_recipe.toml --out runs/mine`, with `source = "path/to/folder"`.

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
# - Beltagy, Lo, Cohan (2019), *SciBERT*, arXiv 1903.10676: an own vocabulary, tested beside BERT's.
