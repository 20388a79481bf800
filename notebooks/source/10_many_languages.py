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
# - say how often each language is read, and compute it: p^α, in the three definitions of mBERT, XLM and XLM-R;
# - build XLM's translation language modelling (TLM), with its positions, languages and separators;
# - find a sentence's translation by its vector, and say which part of a vector only tells the language;
# - test a classifier in a language that it never had a label in, and name what that needs;
# - say what a hundred languages cost: words in the vocabulary, capacity, and the small language's turn.
#
# You need masked words (**MLM**), the encoder of lecture 02 and fine-tuning (lecture 03). Nothing is downloaded.
# Sliders and menus are there once a cell is run; the saved page shows one setting of each.
#
# {{parts}}

# %%
from statistics import mean

import torch

from course_lib import (
    MicroWorld, bert, check, claims_table, compare, quiz, show, xlm_for_language_model, xlm_roberta_for_masked_lm,
)  # fmt: skip
from course_lib.lectures.lecture_10.views import (
    across_view, centring_view, fertility_view, alignment_table, objectives_drawing, pair_view, parallel_view,
    sampling_view, size_of, sizes_table,
)  # fmt: skip
from course_lib.teaching import LiveLoss

# %% [markdown]
# ## Predict first
#
# One encoder, one vocabulary, text of a hundred languages shuffled together. Three models did it:
#
# | | mBERT | XLM | XLM-R |
# |---|---|---|---|
# | from | Google, November 2018, no paper | Lample and Conneau 2019, arXiv 1901.07291 | Conneau et al. 2019, arXiv 1911.02116 |
# | is | BERT, as it was | BERT with a vector for each language | RoBERTa, as it was |
# | languages | 104 (uncased: 102) | 15, 17 or 100 | 100 |
# | text | Wikipedias | Wikipedias; for TLM also translations | 2.5 TB of filtered CommonCrawl |
# | vocabulary | WordPiece, 119,547 | BPE, 95,000 or 200,000 | SentencePiece, 250,002 |
# | trained by | MLM and NSP | CLM, or MLM, or MLM and TLM | MLM |
# | is told the language | no, on purpose | every token (15 languages); not in 17 and 100 | no |
# | needs translations | no | for TLM | no |
# | reads a language with | p^0.7 | p^α over sentences | p^0.3 |
#
# *p^0.7*: a language that makes up the fraction p of the text is read with a probability proportional to p^0.7 (by hand below). **CLM** predicts the next word, **MLM** a masked one, **TLM** a masked one beside
# the translation; **NSP** is BERT's task on two sentences. WordPiece, **BPE** and SentencePiece are vocabularies of pieces of words; CommonCrawl is a copy of much of the web: XLM-R's text is one
# dump of English and twelve of every other language, read in 1.5 million updates of 8,192 sequences on 500 GPUs.
#
# Without TLM nobody tells these models that *dog* and *chien* mean the same. Still, fine-tuned on English labels they answer in French.
#
# Three guesses, each a percentage. Write them down before you go on.
#
# 1. XLM-R base has the blocks of BERT-base. What fraction of all its parameters is the embedding matrix of the vocabulary?
# 2. A classifier learns a task with English labels. Then it is asked in a language of another script, with another word order and not
#    one word in common. The encoder has read stories in both languages, never a translation. How often is it right, between chance ({{number:pair_majority}}) and
#    English (nearly always)?
# 3. Another model of the same size reads every sentence beside its translation (TLM), in that same far language. How often is the nearest vector of a sentence, in the
#    other language, its translation: 10%, 50%, 90%?

# %%
my_guesses = {"words": ..., "transfer": ..., "retrieval": ...}

# %% [markdown]
# ## By hand
#
# ### Who is read how often
#
# Two languages, 900 sentences of one and 100 of the other. Read as they come, nine of ten sentences are of the first. Raise both
# fractions to a power α below one and divide by the sum:
#
# | | large | small | sum |
# |---|---|---|---|
# | sentences | 900 | 100 | 1,000 |
# | p | 0.9 | 0.1 | 1 |
# | p^0.5 | 0.949 | 0.316 | 1.265 |
# | read with probability | 0.75 | 0.25 | 1 |
# | each sentence is read, in 1,000 draws | 0.83 times | 2.5 times | |
#
# α = 1 reads as the data are, α = 0 reads all languages alike. The last row is the price: the small language's few sentences come round
# three times as often as the large one's, and can be memorised.
#
# ### A sentence and its translation
#
# XLM's new objective puts translations side by side. *The old mill* is *da kvern ald* in Norlish, an invented language that you will meet below.
#
# | token | `</s>` | the | old | mill | `</s>` | `</s>` | da | kvern | ald | `</s>` |
# |---|---|---|---|---|---|---|---|---|---|---|
# | position | 0 | 1 | 2 | 3 | 4 | **0** | 1 | 2 | 3 | 4 |
# | language | 0 | 0 | 0 | 0 | 0 | **1** | 1 | 1 | 1 | 1 |
#
# Four separators of one kind, no [CLS], no [SEP]. Positions *start again*, so *mill* and *ald* share position 3,
# although *mill* is *kvern*. Equal positions are a hint, no more: which words belong together the model must learn. Now mask *old*: its own sentence says that an adjective is missing; the translation says which.

# %%
objectives_drawing()

# %% [markdown]
# *A row looks, a column is seen; × is a look into the other language. [M] is a masked word. CLM sees a word itself and what came before; MLM both sides of one text; TLM both sides of
# two texts. Separators are not drawn, so the words have positions 1 to 3 as in the table.*
#
# ### Nearest neighbours
#
# Three sentences, 1 to 3, and their translations, two numbers each: *a* translates 1, *b* 2, *c* 3. Which translation is nearest, by cosine, that is by the angle between the rays? Guess before you move the slider.

# %%
centring_view()

# %% [markdown]
# *Grey: rays from the origin. Solid: the nearest is the translation; dashed: it is not. The translations lie one step to the left and one below their sentences. Every vector of a
# language is moved alike: this step says nothing but the language. With each language's own mean taken off, all three are found.*
#
# The English mean is (0, 2), the other one (−1, 1). Subtract each, and both languages have the same three vectors: (1, 0), (0, 1), (−1, −1).
# Real vectors are not so tidy, but the experiment below does just this.
#
# ## Try it
#
# Three exercises here, three where their subject comes: 10.4 behind the vectors of sentences, 10.5 and 10.6 behind sizes and vocabularies. Pieces to build before the page shows them. A wrong answer gets the name of its mistake; `hint("10.1")` helps a step at a time,
# `reveal("10.1")` shows a solution. No later cell needs your answers.
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
# The formula is the same in all three programs. What p *counts* is not.

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
# A language of short sentences is large for XLM and is not for the others. And the default of neither program is the published α: XLM's reads all languages
# alike, as α = 0 does, XLM-R's reads them as the data are, as α = 1. The numbers 0.7 and 0.3 are settings of the runs that were published.
#
# ### XLM, the network
#
# A BERT with four differences. Each is a few lines.

# %%
from course_lib.family.xlm import TiedOutput, XlmConfig, XlmStack

show(XlmConfig, XlmStack, TiedOutput)

# %% [markdown]
# - Where BERT adds the vector of a *segment*, XLM adds that of a *language*, to every token.
# - States at padding are zero, in every layer.
# - Words are predicted by the embedding matrix alone; BERT has a layer and a LayerNorm before it.
# - With `causal` the same network predicts the next word (CLM).
#
# Three lines of `XlmStack` say it: `seen = …` is who may be looked at, `real = …` is 0 at padding, and the last one multiplies by it. (`Packing` and `output_positions` save work: texts without their padding, states at some
# positions only.)
#
# ### Two texts in one sequence

# %%
from course_lib.objectives.translation_lm import mask_anywhere, mix_of, translation_sequences

show(translation_sequences, mask_anywhere)

# %% [markdown]
# Three lines matter in the first function: `sides = …` puts a separator on both sides of each text (XLM gives `</s>` as `cls` and as `sep`), `[languages[0]] * …` gives each side its language, `positions.append(…)` begins
# again. In the second it is `selected[:, 1:] &= …`: every token is drawn by itself, but the first. `numbered` and `random_bits` draw alike on every machine.
#
# Two traps for whoever compares with BERT. XLM masks any token but the very first, *separators too*; BERT never masks a separator. And its setting
# `word_mask_keep_rand` lists mask, **keep**, random:

# %% tags=["nbval-check-output"]
for setting in ("0.8,0.1,0.1", "0.8,0.15,0.05"):
    masked, random, kept = mix_of(setting)
    print(f"{setting:14} [MASK] {masked:.0%}, random {random:.0%}, kept {kept:.0%}")

# %% [markdown]
# The paper also selects rare tokens more often, with weights 1/√frequency. The program can (`sample_alpha`), but its default is 0: all tokens alike, as here.
#
# ### Vectors of sentences

# %%
from course_lib.train.retrieval import retrieval, sentence_vectors

show(sentence_vectors, retrieval)

# %% [markdown]
# Nothing is trained for this: the mean of the words' vectors, the nearest by cosine, is it the translation? If the answer is yes, the
# model has put two languages into one space, and nobody asked it to.
#
# Why not simply the cosine of a sentence and its translation? In many layers *all* sentences lie close together: where any two have a cosine of 0.98, a pair of translations with 0.98 says nothing. Is the translation
# *nearer than the others*, that is the question.
#
# {{exercise:10.4}}


# %%
def my_neutral(vectors, language, known):
    return ...


check("10.4", my_neutral)

# %% [markdown]
# ## Is it right?
#
# XLM against the reference implementation, outputs and gradients, weights copied from ours to theirs and back; then XLM-R, and mBERT, which is `bert` with another
# vocabulary.

# %%
torch.manual_seed(0)
small = {"vocab_size": 2_000, "num_layers": 3, "hidden_size": 128, "num_heads": 4, "intermediate_size": 512}
compare(xlm_for_language_model(**small))

# %%
compare(xlm_roberta_for_masked_lm(**small))

# %%
compare(bert("multilingual-cased", **small))

# %% [markdown]
# A trap here, too. `XLMRobertaConfig()` of transformers is not XLM-R: its defaults are BERT's vocabulary and 512 positions. Whoever builds it without giving
# the sizes gets another model.

# %%
import transformers

from course_lib.family.xlm_roberta import XlmRobertaConfig

theirs, released = transformers.XLMRobertaConfig(), XlmRobertaConfig()
print("released:             ", released.vocab_size, "rows,", released.max_positions, "positions")
print("transformers' default:", theirs.vocab_size, "rows,", theirs.max_position_embeddings, "positions")

# %% [markdown]
# **If you are online** the released models load into our classes, vocabulary included: mBERT's WordPiece, XLM-R's SentencePiece. Write their names into the list, `"google-bert/bert-base-multilingual-cased"` and
# `"FacebookAI/xlm-roberta-base"`, and see one sentence cut by both.

# %%
from course_lib import load_pretrained

names = []  # nothing is asked of the network while it is empty
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
# mBERT has BERT's blocks to the last parameter, and so has XLM-R base but for two positions and a segment vector. What a hundred languages cost stands in the column of words: half of mBERT's
# {{number:parameters('mBERT, cased')}} (its README says 110M, which is the English model), {{number:embedding_fraction('XLM-R base')}} of XLM-R base. That is the first guess. Its matrix weighs as much as {{number:round(weights(*sizes_of(MODELS['XLM-R base']))[2])}} blocks, where
# the model has 12, and makes it {{number:times_roberta}} times as large as RoBERTa-base. At large size the words are {{number:embedding_fraction('XLM-R large')}}, since blocks grow with the square of the width and the embedding matrix does not.
# (XLM grew otherwise: for 100 languages it has 16 layers, 1,280 wide.)
#
# (A row of the vocabulary takes memory, hardly any time: of 250,002 rows a sentence reads twenty. The time goes into predicting, in pre-training only.)
#
# ## See it
#
# ### A world in four languages
#
# Real translations come with trouble: free wording, noise, unknown overlap. So the course's micro-world, whose grammar writes little stories and knows what each word means (`MicroWorld`, in code), learned languages. **Norlish** (invented) is close to English: same
# script, the same names, cousins like *drum*, *vrend* (friend) or *ketel* (kettle) beside words of its own such as *kvern* (mill), the verb second, adjectives behind. **Sumorian** (invented) is far: Georgian
# letters, the verb last, no articles, postpositions. Chinese you know from lecture 09. Stories are parallel sentence by sentence, so every transfer has a right answer.

# %%
english = MicroWorld.load()
norlish, sumorian, chinese = (MicroWorld.load(language=name) for name in ("norlish", "sumorian", "chinese"))
stories = english.stories(12, seed=16, split="heldout")
parallel_view({"norlish": norlish, "sumorian": sumorian, "chinese": chinese}, stories)

# %% [markdown]
# *Framed is the same meaning in each language, with the number of its place. Choose another meaning: the hero's name looks alike in two of them, the adjective moves, the verb moves most.*
#
# How many words do they share? In the world that is a setting; here is how they were made:

# %% tags=["nbval-check-output"]
from course_lib.text.shared_words import shared_words, with_shared_words

some = english.stories(200, seed=0)
for world, name in ((norlish, "Norlish"), (sumorian, "Sumorian"), (with_shared_words("sumorian", 0.3), "Sumorian, 30% shared")):
    found = shared_words(world, english, some)
    print(f"{name:22} {found.types:4.0%} of its word types are English words, {found.tokens:4.0%} of the words in stories")

# %% [markdown]
# ### How often each is read

# %%
sampling_view()

# %% [markdown]
# *Above what there is, below what is read. mBERT's README: a thousand times as much English as Icelandic, with α = 0.7 read "about 100" times as often
# (126 to be exact). When the cell is run: choose "mBERT's README" among the languages, then move α to 0.3, XLM-R's: 8 times.*
#
# mBERT's languages are often sorted into large (English, German, Chinese), medium (Italian, Russian) and small ones (Estonian, Malayalam). The sampling knows no such classes: choose the ten languages above, each half of the one
# before, and see where α begins to give instead of taking.
#
# ### And how often its words are cut
#
# The vocabulary is learned from the same mixture. A language of which little is read gets few pieces of its own, and its words fall apart. Here a thousand stories in English, a hundred in Norlish, thirty in Sumorian; a WordPiece
# vocabulary is learned anew at every move.

# %%
fertility_view()

# %% [markdown]
# *A bar is the fertility: pieces a word, in unseen text. Beside it the longest word of a first sentence, as it is cut.*
#
# Fertility hides one thing: a word that no piece can write is [UNK], and [UNK] is *one* piece. A vocabulary that knows nothing of a language has fertility 1. So count [UNK] beside it (here a few words of the unseen Sumorian text, none of the others).
#
# α from 1 to 0: Sumorian words hold together, English ones begin to fall apart. A larger vocabulary helps both: the one thing of which all can have more is rows, and that is why XLM-R has 250,002.
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
# *Under each token: its language, its position, and the word that was masked. When the cell is run: uncheck "positions start again" to see them run on; raise the rate, draw another seed. Separators
# are masked like words: so XLM's program does it.*
#
# ### TLM, live
#
# An XLM of two layers, 64 wide, that reads 5,380 sentences of the world beside their translations. A quarter of the words is masked (a sentence is short). Twenty seconds or so for each language:

# %%
from course_lib.lectures.lecture_10.pairs import dictionary_retrieval, sentence_pairs, train_pairs, translation_retrieval

others = {"norlish": norlish, "sumorian": sumorian}
training, models = english.stories(1_000, seed=0), {}
for name, other in others.items():
    pairs = sentence_pairs(english, other, training)
    models[name], history = train_pairs(pairs, callbacks=[LiveLoss()])
    print(f"English and {name}: loss {history.losses['total'][0]:.2f} at first, {sum(history.losses['total'][-20:]) / 20:.2f} at the end")

# %% [markdown]
# Where does a masked word look?

# %%
across_view(models, english, others, stories[:6], sentence=16, word=6, head=2)

# %% [markdown]
# *On the left the English sentence with one word masked, on the right its translation; a line and a bar for each attention weight of 2% and more. When the cell is run: move the sentence, the word, the head, the
# language.*
#
# The masked word, *letter*, is *brev* in Norlish: nothing in the spelling tells, and the two stand at different positions. The head finds it all the same, and *letter* is the model's guess: nobody has given it an alignment, or a dictionary.
# It had to make one to lower its loss. How often, in all sentences of unseen stories? Words that are spelled alike in both languages need no dictionary, so they are counted apart:

# %%
unseen = english.stories(60, seed=0, split="heldout")
for name, other in others.items():
    for head in (1, 2):
        print(f"{name}, layer 2, head {head}\n{alignment_table(models[name], english, other, unseen[:20], head=head)}\n")

# %% [markdown]
# **The model has learned a dictionary of Norlish: words that are spelled otherwise are found as often as those that are spelled alike, and at distance one more often.**
#
# Where the translation stands at the same position, it is nearly always found; one place away, mostly, and by the second head more often than by the first; further away, seldom. (A meaning of several words is found at any of them.) Where it is missed, a head looks at the word of the *same position*, or at one near it: mask the words of sentence 5
# above, one after the other. So positions that begin again are a hint that helps, and that misleads. In Sumorian, after as many steps, the model has not got that far.
#
# Is each sentence's vector now near that of its translation?

# %%
print(f"{'retrieval accuracy, unseen sentences':52}{'embeddings':>12}{'layer 1':>9}{'layer 2':>9}")
for name, other in others.items():
    pairs, known = sentence_pairs(english, other, unseen), sentence_pairs(english, other, training)
    ways = {"raw": {}, "mean-centred, these sentences": {"centred": True}, "mean-centred, training sentences": {"known": known}}
    for way, how in ways.items():
        found = [100 * layer.mean for layer in translation_retrieval(models[name], pairs, **how)]
        print(f"{f'{name}, {way}':52}" + "".join(f"{x:{w}.0f}%" for x, w in zip(found, (11, 8, 8))))
    print(f"{f'{name}, a dictionary by counting':52}{dictionary_retrieval(known, pairs):11.0%}")
different = len(set(map(tuple, pairs.first))) / len(pairs.first)
print(f"chance {1 / len(pairs.first):.1%}; ceiling {different:.0%}, since some sentences come twice")

# %% [markdown]
# *Retrieval accuracy*: how often the nearest vector in the other language is the translation. *Raw*: the vectors as they come. *Mean-centred*: each language's own mean subtracted first. *A dictionary by counting*: no network, only how often two words stand in
# a sentence and its translation, learned from the same pairs.
#
# One success, one failure. Norlish sentences find their translations. Sumorian ones seldom do, at equal steps: no names in common, all words in other places. Counting words finds both, as far as they can be told apart: with parallel text and one sentence at a time a dictionary is the line to beat, and this model does not beat it. And in both, taking each language's mean off
# (a step that needs no translation) finds far more: much of what keeps two languages apart is one direction that says *which* language this is.
#
# *Whose means?* The second line of each language takes the means over the tested sentences, and so do all results below (*mean-centred*). By exercise 10.4 that is a mean that has seen the test. It does not use which sentence translates
# which. But it wants all tested sentences at once, and it assumes that both sides say the same on the whole, so that their means differ by the language alone. The third line is the control: means of training
# sentences, English from one half of them, the other language from the other half, so that no translation is in both. It finds about as much here. With few tested sentences, or with other topics on each side, the two could differ.
#
# ## Measure it
#
# ### Are two languages aligned?
#
# **Text alone aligns the close language if it is read long, the far one not at all; translations align both.**
#
# Models of the live one's size, {{number:len(stored('10_pairs')['runs']['norlish, TLM'])}} seeds each. *TLM* is the live one: it reads sentences beside their translations. *MLM* reads the same sentences each for itself, and never learns that they are pairs.
# *MLM + TLM* reads by turns, as XLM was trained: half of the words alone, half in pairs. All read as many words a step; *longer* is 6,000 steps instead of 1,200. Beside them stands random initialisation.

# %%
from course_lib.lectures.lecture_10.views import (
    aligned_chart, by_model, by_pair, by_spelling, curse_table, four_languages_chart, low_resource_chart,
    spelling_chart, table_of, transfer_chart,
)  # fmt: skip
from course_lib.teaching.results import read_result

found = read_result("10_pairs")
print(f"the nearest of {found['looked_up']} sentences is the translation, mean of {len(found['runs']['norlish, TLM'])} seeds")
print(table_of(by_pair(), {"raw": "retrieval", "mean-centred": "retrieval centred"}))

# %%
aligned_chart()

# %% [markdown]
# *A dot is a run. Chance is one in {{number:stored('10_pairs')['looked_up']}}.*
#
# - *Norlish.* Without one translation the longer MLM finds {{number:pairs('retrieval', 'norlish', 'MLM, longer')}}. With translations a fifth of the steps is enough for {{number:pairs('retrieval', 'norlish', 'TLM')}}, and 6,000 reach
#   {{number:pairs('retrieval', 'norlish', 'TLM, longer')}}. Mean-centred, {{number:pairs('retrieval centred', 'norlish', 'MLM, longer')}} and {{number:pairs('retrieval centred', 'norlish', 'TLM, longer')}}. Mind the first row: random initialisation has {{number:pairs('retrieval centred', 'norlish', 'random initialisation')}}, because shared names have the same rows of the embedding matrix.
# - *Sumorian.* Not one shared word, another order: MLM stays at chance, {{number:pairs('retrieval centred', 'sumorian', 'MLM, longer')}}, however long it reads. TLM finds {{number:pairs('retrieval centred', 'sumorian', 'TLM, longer')}}. Here, with not one word shared, text alone does not align; shared words would (below).
#   By turns with MLM it is {{number:pairs('retrieval centred', 'sumorian', 'MLM + TLM, longer')}}, but one run has {{number:both_in_sumorian()[-1]:.0%}} and the other four {{number:other_four}}: half as many pairs were read, and the seeds lie too far apart for a finding.
# - *A dictionary by counting* (above) finds {{number:by_dictionary()}} in both languages, which is the ceiling: nothing here beats it. Its point is what comes next: it translates words, and cannot be fine-tuned.
# - *The mean.* After 1,200 steps of TLM it moves Norlish from {{number:pairs('retrieval', 'norlish', 'TLM')}} to {{number:pairs('retrieval centred', 'norlish', 'TLM')}}: the two languages stood side by side, not on top of one another. After long training there is less to take off
#   ({{number:pairs('retrieval', 'norlish', 'TLM, longer')}}, then {{number:pairs('retrieval centred', 'norlish', 'TLM, longer')}}). In Sumorian there is as much as before: {{number:pairs('retrieval', 'sumorian', 'TLM')}} to {{number:pairs('retrieval centred', 'sumorian', 'TLM')}}, after long training {{number:pairs('retrieval', 'sumorian', 'TLM, longer')}} to {{number:pairs('retrieval centred', 'sumorian', 'TLM, longer')}}.
#
# So "a word and its translation have about the same vector" is right for some pairs, some training and some part of the vector.
#
# ### English labels, another language
#
# **What is learned with English labels holds in the close language without any translation, hardly in the far one, and not at all in one that was never read.**
#
# Now a task. *What kind of word is this*: a hero, a job, a look, a place … ({{number:stored('10_pairs')['slots']}} classes)? A linear classifier on the frozen vectors (lecture 07's slot-category probe) learns from
# English words, and is asked in Norlish and Sumorian, on unseen stories. Words that are spelled as in English would be too easy, so they are left out.
# *Read* is the language that the encoder read beside English; *unread* the other one, whose words it never met.

# %%
measures = {"English": "slots english", "read, all words": "slots other", "read": "slots other own",
            "read, mean-centred": "slots other own centred", "unread": "slots unread own centred"}  # fmt: skip
print(table_of(by_pair(), measures))
print(f"always the commonest class: {found['majority']:.1%}")

# %%
transfer_chart()

# %% [markdown]
# *A dot is a run. The classifier has never seen a label in Norlish or Sumorian; in these, vectors are mean-centred, and words spelled as in English left out.*
#
# - *Unread is chance.* A language that the encoder has not read has between {{number:unread()[0]:.1%}} and {{number:unread()[-1]:.1%}} ({{number:pair_majority}}: always the commonest class), with translations of another language or without. "Zero-shot" is a word about labels: text of the language
#   must have been there.
# - *Norlish, no label, no translation*: {{number:pairs('slots other own centred', 'norlish', 'MLM, longer')}}, where English itself has {{number:pairs('slots english', 'norlish', 'MLM, longer')}}: far above chance, below English.
# - *Sumorian, no translation*: {{number:pairs('slots other own centred', 'sumorian', 'MLM, longer')}}, chance {{number:pair_majority}}. That is the second guess, for the far language: nearer to chance. With TLM {{number:pairs('slots other own centred', 'sumorian', 'TLM, longer')}}, by turns with MLM {{number:pairs('slots other own centred', 'sumorian', 'MLM + TLM, longer')}}.
# - *Where TLM does not help*: Norlish, after the long runs, {{number:pairs('slots other own centred', 'norlish', 'TLM, longer')}} with TLM, {{number:pairs('slots other own centred', 'norlish', 'MLM, longer')}} with MLM. One suspect: TLM never reads a sentence alone, and the task asks about sentences alone. Tested: by turns,
#   as XLM does it, {{number:pairs('slots other own centred', 'norlish', 'MLM + TLM, longer')}}.
#
# Finding translations and transferring a task are two measures, and a model can lead in one and trail in the other.
#
# ### One model, four languages
#
# **Without translations the topic of a far language's text is not transferred; with them it is in one of two far languages. The kind of its words hardly even then.**
#
# mBERT reads many languages and is fine-tuned whole. So here: one model of English, Norlish, Sumorian and Chinese, 64 wide, 9,000 steps, fine-tuned *in English only*, asked in all four; {{number:len(stored('10_transfer')['runs'][FOUR['tlm']])}} seeds.
# *Topic*: what is this text about, of 12? *Kind*: what kind of word is this, now with everything learning?
#
# *English only* never read another language; *told* has XLM's language embeddings; *TLM* has translations in every second batch, English with each other one. *Spelling alone* has no encoder: it classifies words, and bags of words, by how they are spelled.

# %%
four = read_result("10_transfer")
for task, said in (("topic", "topic of a text"), ("slots", "kind of a word")):
    print(f"{said}; always the commonest class: {four['majority'][task]:.0%}")
    rows = by_model() | {"spelling alone": [four["words_alone"]]}
    print(table_of(rows, {language: f"{task} {language}" for language in four["languages"]}))

# %%
four_languages_chart()

# %% [markdown]
# *A dot is a run, fine-tuned on English texts alone.*
#
# - *A far language*: without translations the topic of a Sumorian text is right in {{number:four_languages('topic', 'sumorian', 'mlm')}}, told the language {{number:four_languages('topic', 'sumorian', 'told')}}, less than always naming the commonest class
#   ({{number:four_majority}}): it is not ignorant, it is misled. With TLM {{number:four_languages('topic', 'sumorian', 'tlm')}}.
# - *Chinese, a far language again, one character a token*: {{number:four_languages('topic', 'chinese', 'mlm')}} without, {{number:four_languages('topic', 'chinese', 'tlm')}} with TLM, and the seeds are far apart. A word is several tokens in Chinese, one in the others; more steps were not tried.
# - *Texts before words*: TLM moves the kinds of Sumorian words from {{number:four_languages('slots', 'sumorian', 'mlm')}} to {{number:four_languages('slots', 'sumorian', 'tlm')}} only, of Chinese ones to {{number:four_languages('slots', 'chinese', 'tlm')}}. A topic needs one aligned word in a text, a kind needs this one.
# - *A close language is a poor test*: by shared spellings alone, with no encoder, a Norlish topic is right in {{number:spelling_alone('topic norlish')}}; random initialisation has {{number:four_languages('topic', 'norlish', 'random')}}. Kinds tell more: MLM {{number:four_languages('slots', 'norlish', 'mlm')}}, TLM {{number:four_languages('slots', 'norlish', 'tlm')}}, spelling
#   alone {{number:spelling_alone('slots norlish')}}. And *English only* has {{number:four_languages('slots', 'norlish', 'only')}}, below random initialisation ({{number:four_languages('slots', 'norlish', 'random')}}): what it knows of English misleads it about words that it never read.
#
# ### Order, or shared words?
#
# **With an equal word order no shared word is needed to tell a word's kind. With another order, sharing 30% of the word types ({{number:running_words_shared}} of the running words) brings most of what is missing.**
#
# Norlish shares names with English and has another word order. Which of the two carries the transfer, which one hinders it? The spelling is a setting, so we can take them apart. *English respelled* is English with every word
# spelled otherwise: the same order, the same frequencies, not a word in common. MLM alone, 6,000 steps. *kind*: words whose kind is right; *retrieval*: sentences whose nearest vector is their translation; –: every word is spelled as in English, so none is left to ask.

# %%
print(table_of(by_spelling(), {"kind, mean-centred": "slots other own centred", "kind, all words": "slots other",
                                   "retrieval, raw": "retrieval", "retrieval, mean-centred": "retrieval centred"}))  # fmt: skip

# %%
spelling_chart()

# %% [markdown]
# *A dot is a run; 0%, 30%: word types spelled as in English. Both panels mean-centred.*
#
# - *No word in common, same order*: {{number:spelled('slots other own centred', 'english respelled, 0% shared')}} of the words' kinds are right. Shared words are not needed at all; an equal grammar is enough. But of the sentences only {{number:spelled('retrieval centred', 'english respelled, 0% shared')}} find their translation, and the seeds lie far apart: the model knows that this is *a name*, *a colour*, and not which. Nothing in its text
#   could tell.
# - *30% shared*: raw, {{number:spelled('retrieval', 'english respelled, 30% shared')}} find their translation instead of {{number:spelled('retrieval', 'english respelled, 0% shared')}}; random initialisation finds {{number:range_at_random}}. (Mean-centred, {{number:spelled('retrieval centred', 'english respelled, 30% shared')}}, but random initialisation then has
#   {{number:percent(spelled_at_random('retrieval centred'))}}, by the shared words alone.)
# - *Norlish, another order*: {{number:spelled('slots other own centred', 'norlish, 0% shared')}} of the kinds with no word in common, {{number:spelled('slots other own centred', 'norlish, 30% shared')}} with 30% shared. For kinds, then, shared words matter where the order differs; respelled English had nothing to gain. To find translations they
#   matter in both: raw, Norlish goes from {{number:spelled('retrieval', 'norlish, 0% shared')}} to {{number:spelled('retrieval', 'norlish, 30% shared')}}.
# - *Norlish as it is* has more in common, {{number:norlish_types}} of its word types, and only {{number:spelled('slots other own centred', 'norlish, as it is')}}. What it shares are names, looks and things, but no verb; of the little words (articles, prepositions, "then", whatever has no kind) {{number:little_words_shared(None):.0%}}.
#   Where 30% were drawn from all words, {{number:little_words_shared(0.3):.0%}} of the little ones are. It seems that these carry the order over. Tested by itself it was not.
# - *Sumorian, which failed*: {{number:spelled('slots other own centred', 'sumorian, 0% shared')}} with no word in common, {{number:spelled('slots other own centred', 'sumorian, 30% shared')}} with 30%, and {{number:spelled('retrieval', 'sumorian, 30% shared')}} of the translations, raw. So its
#   verb at the end was not the obstacle by itself: with 30% shared words most of its kinds are learned too.
# - *All words shared, another order*: {{number:spelled('slots other', 'norlish, 100% shared')}} of all words. Now the two differ in grammar alone, and that is hardly an obstacle.
#
# Hence "XLM maps words to each other by sharing BPE" is half right. Shared pieces anchor; what transfers is shared parameters and a similar grammar. And *aligned* must be asked with a measure: in kind, or word by word?
#
# ### The small language's turn
#
# **The small language gains by sharing a model with a large one. Reading it more often helps no further here.**
#
# English from {{number:LARGE}} stories, Norlish from {{number:SMALL}} others: thirty to one. One model reads both, MLM, with p^α; {{number:len(stored('10_low_resource')['runs']['α = 1'])}} seeds. How many masked words of unseen sentences are right?

# %%
low = read_result("10_low_resource")
print(table_of(low["runs"], {"English": "masked 0", "Norlish": "masked 1"}))

# %%
low_resource_chart()

# %% [markdown]
# *A dot is a run. Below: a model that reads the {{number:SMALL}} Norlish stories and nothing else.*
#
# - *Sharing helps the small language*: {{number:shared_model('10_low_resource', 'masked 1', 'Norlish alone')}} alone, {{number:shared_model('10_low_resource', 'masked 1', 'α = 1')}} beside English with α = 1, though only one batch in thirty is then Norlish.
# - *α hardly matters here*: {{number:shared_model('10_low_resource', 'masked 1', 'α = 1')}}, {{number:shared_model('10_low_resource', 'masked 1', 'α = 0.7')}}, {{number:shared_model('10_low_resource', 'masked 1', 'α = 0.3')}}, {{number:shared_model('10_low_resource', 'masked 1', 'α = 0')}} with α = 1, 0.7, 0.3, 0. Less than sharing brings; and from 0.7 to 0, where Norlish is read more and more often, every seed falls a little.
# - *English loses nothing*: {{number:shared_model('10_low_resource', 'masked 0', LOW['1'])}} with α = 1, {{number:shared_model('10_low_resource', 'masked 0', LOW['0'])}} with 0. With a smaller α less English is read, always: steps that one language gets another loses. With α = 0 it has half of the steps, and half is enough for {{number:LARGE}} stories.
#
# In the papers α is a choice that matters. Two things differ here. Their vocabulary is learned from the same mixture, so α also decides how a small language's words are cut (above: fertility); here every word is one piece whatever α is, and this channel is
# switched off. And with few stories, drawing them more often means drawing the same ones again. Which of the two explains it was not tested: "α hardly matters" holds for a fixed vocabulary only.
#
# ### The curse
#
# **At equal steps more languages in one small model cost each of them. At equal reading they cost nothing here.**
#
# One, two, four languages (English, Norlish, Sumorian, respelled English; equally much of each, none parallel) in one model, 32 or 96 wide, 6,000 steps where the row says nothing else. Masked words right, mean of {{number:len(stored('10_low_resource')['runs']['α = 1'])}} seeds:

# %%
curse_table()

# %% [markdown]
# - *32 wide*: English falls from {{number:shared_model('10_curse', 'masked 0', '1 language, 32 wide')}} alone to {{number:shared_model('10_curse', 'masked 0', '2 languages, 32 wide')}} and {{number:shared_model('10_curse', 'masked 0', '4 languages, 32 wide')}}. It looks like the curse.
# - *Or is it reading?* Of four languages each gets a quarter of the steps. English *alone*, with a quarter of the steps: {{number:shared_model('10_curse', 'masked 0', '1 language, 32 wide, a quarter of the steps')}}. At equal reading, then, three companions cost nothing. They even helped.
# - *96 wide*: {{number:shared_model('10_curse', 'masked 0', '1 language, 96 wide')}} alone, {{number:shared_model('10_curse', 'masked 0', '4 languages, 96 wide')}} with three others. With room enough nothing is lost, which is why the paper widened its models.
# - *And reading has an end*: 96 wide, English alone has {{number:shared_model('10_curse', 'masked 0', '1 language, 96 wide, a quarter of the steps')}} after a quarter of the steps. Four times the reading adds nothing on unseen text, while the training loss falls from {{number:training_loss('wide_quarter'):.2f}} to {{number:training_loss('wide_one'):.2f}}: it memorises its thousand stories.
#
# Four languages that tell of the same small world are not a hundred that tell of everything. But the control is worth keeping: a table of "more languages, lower score" at a fixed number of steps
# shows two things at once, less room and less reading.
#
# ## Real text: what interfaces say
#
# The languages above are invented, so that every answer is known. Now real ones. Sphinx, Django and JupyterLab ship the messages of their interfaces in many languages. Here {{number:in_letters(len(stored('10_vocabulary')['learned_from']))}} are read: messages of four words and
# more, paired by their common English original. `make lab` installs them (the extra `languages`).

# %%
from course_lib.lectures.lecture_10.translations import translations

try:
    messages = translations()
    for said in messages.aligned("en", "fr", "zh", split="heldout")[0]:
        print(said)
except (LookupError, ValueError) as trouble:  # not installed, or a language without messages
    print(trouble)

# %% [markdown]
# What the stored runs read (with their licences: other versions of the packages have other messages):

# %%
from course_lib.lectures.lecture_10.views import (
    languages_table, layers_table, real_counts, retrieval_chart, vocabulary_chart,
)  # fmt: skip

print(real_counts())

# %% [markdown]
# ### One vocabulary for seven languages
#
# Vocabularies of {{number:stored('10_vocabulary')['recipes'][VOCABULARY['1']]['size']}} pieces, of two kinds: BPE begins with letters and merges them, *unigram* begins with many pieces and drops the least useful. The `tokenizers` library learns them from these messages and from English documentation. English is by far the largest. Into how many
# pieces is a word cut?

# %%
vocabulary_chart()

# %% [markdown]
# *A dot is a draw of the text ({{number:len(stored('10_vocabulary')['runs'][VOCABULARY['1']])}} each). A Korean word, between spaces, holds more than an English one, so compare a language with itself.*
#
# - *α from 1 to 0.3* (unigram): a French word falls from {{number:vocabulary('words fr', '1')}} to {{number:vocabulary('words fr', '03')}} pieces, a Korean one from {{number:vocabulary('words ko', '1')}} to {{number:vocabulary('words ko', '03')}}. English pays: from {{number:vocabulary('words en', '1')}} to {{number:vocabulary('words en', '03')}}. Beside its English original a French message shrinks from {{number:vocabulary('beside English fr', '1')}} to
#   {{number:vocabulary('beside English fr', '03')}} times as many pieces, but more than half of that is English growing: mind what a ratio is divided by.
# - *Twice the vocabulary* (unigram, α = 0.3): English has {{number:vocabulary('words en', 'twice')}} again, and the others keep what they gained. As in the invented world: rows are the one thing of which all can have more.
#
# ### Do they find their translations?
#
# An XLM of two layers, 128 wide, 6,000 steps, on the training messages: each alone (MLM), or every second batch beside a translation (MLM + TLM); {{number:real_seeds}} seeds. Then {{number:read_of('real', 'looked_up')}} unseen messages (those held out that are not too long): whose vector is nearest?
#
# **Read twice as long, the XLM with translations finds {{number:real_retrieval('tried', 'twice the steps')}} of them (one seed), more than spelling ({{number:without_network('real', 'spelling')}}). Counting pieces finds {{number:without_network('real', 'counts')}}.**
#
# Beside it two searches without a network. *Spelling* counts runs of characters: digits, names, commands are the same everywhere. *Counts* learns from the training pairs which pieces occur together (latent semantic indexing).

# %%
print(layers_table())

# %%
retrieval_chart()

# %% [markdown]
# *A dot is a run ({{number:real_seeds}} seeds); last layer, mean-centred. The table is the mean of English with French and English with Chinese; its last two rows have no layers, and one number. The third panel asks French and Chinese, of which no pair was read side by side.*
#
# - *Translations help here too*: {{number:real_retrieval('real', 'MLM + TLM')}} of the messages with TLM. MLM has {{number:real_retrieval('real', 'MLM')}}, hardly more than random initialisation, {{number:real_retrieval('real', 'random initialisation')}} (pieces that are spelled alike share a row).
# - *At 6,000 steps it is behind spelling*, {{number:without_network('real', 'spelling')}}, and far behind counts of pieces, {{number:without_network('real', 'counts')}}. But its curve still rises there, so this run says when it was stopped.
# - *Twice the steps*, one seed of MLM + TLM (it has {{number:percent([first_seed('MLM + TLM')])}} above): {{number:real_retrieval('tried', 'twice the steps')}}, past spelling, and there its curve is nearly flat. MLM alone for as long, and two more seeds, were not run. A third of the vocabulary finds {{number:real_retrieval('tried', 'a third of the vocabulary')}} (of the {{number:stored(REAL['tried'])['asked']['a third of the vocabulary']}} messages that are short enough then).
# - So steps were one cause. The other is left: {{number:read_of('real', 'pairs')}} pairs, from which counting learns more than a network that starts from nothing. Whoever has a few thousand pairs and no multilingual model should count first.
# - The *upper* layers (of the table) are no better than the embeddings: at this size little more than words is compared.
#
# ### Seven languages in one model
#
# The same with all seven: 8,000 pieces, 4,000 steps, {{number:read_of('seven', 'pairs')}} pairs, each English and another language. {{number:read_of('seven', 'looked_up')}} unseen messages are there, and not too long, in all seven: fewer to choose from, so do not compare with the table above.

# %%
print(languages_table(), "\n")
print(layers_table("seven"))

# %%
retrieval_chart("seven")

# %% [markdown]
# *A dot is a run; last layer, mean-centred. Left: English and one of the six; right: two of the six, which were never read side by side.*
#
# - *English and another language*: with TLM {{number:real_retrieval('seven', 'MLM + TLM')}}, without {{number:real_retrieval('seven', 'MLM')}}. TLM is ahead in every seed. But random initialisation has {{number:real_retrieval('seven', 'random initialisation')}}: in the last layer MLM alone has lost what equal spelling gives, and TLM has hardly more than won it back.
# - *The embeddings* have learned: {{number:real_embeddings('seven', 'MLM + TLM')}} with TLM, {{number:real_embeddings('seven', 'random initialisation')}} at random initialisation. The two layers above lose it again.
# - *Two languages that were never side by side*: {{number:real_retrieval('seven', 'MLM + TLM', 'retrieval without English')}} with TLM, {{number:real_retrieval('seven', 'random initialisation', 'retrieval without English')}} at random initialisation. That both were read beside English has not brought them together.
# - *Without a network*: spelling {{number:without_network('seven', 'spelling')}}, counts {{number:without_network('seven', 'counts')}}. French leads by spelling; Chinese, among the last there, is first by counts.
#
# ## What the papers found
#
# ### Zero-shot: labels in English only
#
# All numbers here are the papers'. XNLI asks whether one sentence follows from another, in 15 languages. Average accuracy, after fine-tuning on English:
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
# So the usual ranking *XLM-R, XLM, mBERT* is right for this column, and is no ranking of ideas: data (Wikipedia against 2.5 TB), size and number of languages change from row to row.
# With the training labels translated into every language XLM-R large reaches 83.6.
#
# Names of persons and places show the same pattern: F1 80.94 with English labels, 90.24 with each language's own, 89.43 with all of them in one model. And English pays little: XLM-R large has 91.8 on seven tasks of GLUE, RoBERTa 92.8.
#
# mBERT by language (uncased, English labels; below, labels translated into the language, cased):
#
# | | en | zh | es | de | ar | ur |
# |---|---|---|---|---|---|---|
# | English labels | 81.4 | 63.8 | 74.3 | 70.5 | 62.1 | 58.3 |
# | translated labels | 81.9 | 76.6 | 77.8 | 75.9 | 70.7 | 61.6 |
#
# Compared with English, Spanish and German lose least, Arabic and Urdu most. Compared with labels of its own (the row below) Urdu loses least: its own labels do not help it much either, little Urdu was read. Several things change along this row at once: the script, the word order, how words are built (*morphology*), and how large the Wikipedia is. (Pires, Schlinger and Garrette
# (2019) took them apart: transfer works across scripts, so shared pieces are not what carries it; it is best between languages of similar order; a model that read only text of one language at a time copes with text that
# mixes two, *code-switching*; and translations can be found by vectors, with "systematic deficiencies affecting certain language pairs".)
#
# ### Are translations worth it?
#
# | XNLI | average | en | sw | ur |
# |---|---|---|---|---|
# | XLM, MLM | 71.5 | 83.2 | 64.6 | 63.4 |
# | XLM, MLM and TLM | 75.1 | 85.0 | 68.4 | 67.3 |
#
# 3.6 points, most where there is least text. Then XLM-R's authors found that XLM's model *without* translations had been stopped too early, when its perplexity no longer fell. With training on, in their own program, 71.3 became
# more than 75: as good as with TLM. (71.3 is in their table the XLM of 100 languages, not the 71.5 above.) "TLM brings 3.6 points" was true of those two runs.
#
# XLM is used in two ways. For classification its first vector goes into a linear layer, as BERT's does. For translation it *initialises* an encoder and a decoder: 34.3 BLEU from German into English without any
# parallel text, 38.5 from Romanian with it (the paper's abstract; BLEU counts, from 0 to 100, the runs of words that a translation shares with a person's).
#
# ### The curse of many languages
#
# One size, more languages: XLM-R's XNLI falls from 71.8 (7 languages) to 67.7 (100). At first languages of little text gain from their relatives, up to about 15; then all share a capacity that does not grow.
# Widening from 768 to 960 or 1,152 rescues 30 languages, not 100. A vocabulary of 256k instead of 32k gives 2.8 points at constant size.
#
# And against one model a language, on seven languages: one model of seven, *XLM-7*, with English labels has 76.2. A BERT for each language has 77.5; such a model cannot be zero-shot, it needs labels in its own language. Fine-tuned
# on the labels of all seven languages (translated by machine), XLM-7 has 80.0, and one model for all wins.
#
# A "scaling law" goes round: performance ∝ data^0.3 · size^0.2 · languages^0.1. No paper has it. Its last exponent says that more languages help, and they do not; its 0.3 is the
# α of the sampling, strayed into another formula.
#
# ### Why does it work without translations?
#
# Our invented languages have ancestors: four papers of 2020 took the question apart, three of them with English in another spelling, as here.
#
# | | what they changed | what they found |
# |---|---|---|
# | K et al., *Cross-Lingual Ability of Multilingual BERT* | word overlap, depth, width, word order | overlap matters little; depth and a similar structure matter |
# | Dufter and Schütze, *Identifying Elements Essential for BERT's Multilinguality* | position vectors, special tokens, size, word order, comparable text | shared position vectors and special tokens are needed, and a model that is not too large |
# | Conneau et al., *Emerging Cross-lingual Structure in Pretrained Language Models* | anchors, vocabulary, which layers are shared | shared parameters in the upper layers matter most; models trained apart can be aligned by a linear map |
# | Artetxe et al., *On the Cross-lingual Transferability of Monolingual Representations* | a model of one language, frozen; only an embedding matrix for the second is learned | it transfers: neither a shared vocabulary nor joint training is needed |
#
# What came after: **LaBSE** (Feng et al. 2022) trains an encoder to find translations, which XLM never was: 83.7% of them in 112 languages on Tatoeba, by the abstract. **XTREME** (Hu et al. 2020) tests nine tasks in forty languages, so that nobody has to argue from XNLI alone. **mT5** (Xue et al. 2021)
# is an encoder and decoder for 101 languages, read with α = 0.3. **Adapters** (MAD-X, Pfeiffer et al. 2020) give each language a few layers of its own beside a frozen model, against the curse above. And **Rust et al.** (2021) ask how much of "multilingual models are worse" is the tokenizer: a good part, together with how
# much of the language was read.
#
# ### Which one?
#
# | you have | take |
# |---|---|
# | one language, much text of it | a model of that language (Chinese XNLI: 77.2, mBERT 74.2) |
# | labels in English, readers in twenty languages | XLM-R; translate the labels if you can pay for it |
# | a language of little text | a multilingual model that read it, and if possible its relatives; a low α, a large vocabulary |
# | a language that no model read | none of these: continue pre-training on it first (lecture 11 does so with domains) |
#
# A *multilingual ALBERT* for small devices is sometimes recommended. There is none: Google released ALBERT in English and in Chinese.

# %%
print(f"{'':14}{'you said':>14}   answer, in this world")
sumorian_runs = {said: found["runs"][f"sumorian, {said}, longer"] for said in ("MLM", "TLM")}
answers = {
    "words": f"{size_of('XLM-R base').embedding_fraction:.0%}",
    "transfer": f"{mean(run['slots other own centred'] for run in sumorian_runs['MLM']):.0%}, chance {found['majority']:.0%}, in English 100%",
    "retrieval": f"{mean(run['retrieval centred'] for run in sumorian_runs['TLM']):.0%}, without translations {mean(run['retrieval centred'] for run in sumorian_runs['MLM']):.1%}",
}
for name, value in answers.items():
    print(f"{name:14}{str(my_guesses[name]).replace('Ellipsis', '–'):>14}   {value}")

# %% [markdown]
# ## What they claim, what you measured
#
# Each line was settled by code that ran just now, by a result file, or, where neither can, by a source.

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
# - Google (2018), `multilingual.md` beside BERT's code: mBERT's only paper.
# - Lample and Conneau (2019), *Cross-lingual Language Model Pretraining*, arXiv 1901.07291: section 3, figure 1.
# - Conneau et al. (2019), *Unsupervised Cross-lingual Representation Learning at Scale*, arXiv 1911.02116: section 5.1 before all tables.
# - Pires, Schlinger, Garrette (2019), *How multilingual is Multilingual BERT?*, ACL: what transfer needs.
# - Dufter and Schütze (2020), arXiv 2005.00396; K et al. (2020), arXiv 1912.07840; Conneau et al. (2020), arXiv 1911.01464; Artetxe et al. (2020), arXiv 1910.11856: English respelled, taken apart.
# - Rust et al. (2021), *How Good is Your Tokenizer?*, arXiv 2012.15613; Feng et al. (2022), *LaBSE*, arXiv 2007.01852.
