# ---
# jupyter:
#   jupytext:
#     cell_metadata_filter: tags,slideshow,-all
#     text_representation:
#       extension: .py
#       format_name: percent
# ---

# %% [markdown]
# # Words in context: from one vector a word to three kinds of Transformer
#
# **Lecture 01** · {{duration}} · {{colab}}
#
# After this page you can
#
# - make static vectors in two ways, and say what one vector a word cannot do;
# - compute attention among four words on paper: dot product, weights, output;
# - build ELMo from characters and LSTMs, and say what each of its two directions sees;
# - turn one block into an encoder, a decoder and an encoder-decoder, and say which of them BERT, GPT, BART and T5 are.
#
# You need Python with a little PyTorch (tensors, a training loop), matrix products, logarithms and the softmax; and from [page 00](00_start_here.ipynb) what a
# hidden word and a loss are. What attention and an LSTM are stands below. Nothing is downloaded.
#
# {{parts}}

# %%
import torch

from course_lib import MicroWorld, check, claims_table, hint, quiz, reveal, show
from course_lib.teaching.shipped import micro_elmo, micro_teacher
from course_lib.lectures.lecture_01.views import (
    elmo_drawing, guesses_view, hand_attention_view, index_occurrences, layers_view, masks_view, neighbours_view,
    three_drawing, tree_view,
)  # fmt: skip

# %% [markdown]
# ## Predict first
#
# *We sat on the **bank** and watched the boats. The **bank** raised its fees.* One word, two meanings: **polysemy**. You
# needed the other words of the sentence to tell them apart, and you did not notice.
#
# Three guesses. Write them down before you go on.
#
# 1. A program counts which words stand near which, in the manuals of Python libraries, and gives every word one vector. A
#    *kernel* is part of a support vector machine there, and a program on a graphics card. Which words will be nearest to `kernel`?
# 2. ELMo (2018) reads a sentence from the left with one network and from the right with another. At a word in the middle:
#    does either of them see the whole sentence?
# 3. GPT and BERT are stacks of the same block. What must change to turn one into the other?

# %%
my_guesses = {"nearest to kernel": ..., "sees the whole sentence": ..., "from BERT to GPT": ...}

# %% [markdown]
# ## By hand: one vector a word
#
# Words that mean alike stand beside the same words: the **distributional hypothesis** (Harris 1954; Firth 1957, who judged a word by the company that it
# keeps). So count who stands near whom. A text so small that the counts fit on this page gave these (rows: words; columns: the neighbours we count).

# %% tags=["nbval-check-output"]
from course_lib.lectures.lecture_01.by_hand import COUNTS, NEAR, ppmi_by_hand

print(f"{'':8}" + "".join(f"{near:>8}" for near in NEAR))
for word, row in COUNTS.items():
    print(f"{word:8}" + "".join(f"{n:8}" for n in row))

# %% [markdown]
# *the* is the most frequent neighbour of `bank`, and says nothing about it: it is near everything. So we ask how much *more often than by
# chance* two words are neighbours. `bank` has 8 of the 32 counts, `river` 4 of 32. By chance both would meet in
# 8/32 · 4/32 of them, which is once. They met twice: ln(2/1) = 0.69. This logarithm is the **pointwise mutual
# information**, PMI; **positive PMI** (PPMI) sets what is below zero to zero.

# %% tags=["nbval-check-output"]
from torch.nn.functional import cosine_similarity

vectors = {word: torch.tensor(row) for word, row in ppmi_by_hand().items()}
for word, row in vectors.items():
    print(f"{word:8}" + "".join(f"{n:8.2f}" for n in row))
for a, b in (("bank", "shore"), ("bank", "loan"), ("shore", "loan")):
    print(f"cosine of {a} and {b}: {cosine_similarity(vectors[a], vectors[b], dim=0):.2f}")

# %% [markdown]
# Each row is a vector. `shore` and `loan` have nothing in common; `table`, in this text, stood beside *the* alone. `bank` lies halfway between them, at the same angle to
# both: it is not the shore and not the lender but a mixture, in every sentence the same. Keep this in mind.
#
# ## Try it: static vectors
#
# {{exercise:01.1}}


# %%
def my_ppmi(counts, smoothing):
    return ...


check("01.1", my_ppmi)

# %% [markdown]
# {{exercise:01.2}}


# %%
def my_neighbours(vectors, word, k):
    return ...


check("01.2", my_neighbours)

# %% [markdown]
# ## The code: static vectors
#
# Two ways to the same kind of table. (The words, before: how a text is cut into words or pieces, by byte pair encoding
# (**BPE**) or WordPiece, is lecture 02's and 04's subject. Here a word is what stands between spaces.)
#
# ### Counts, PMI, and few numbers a word
#
# With thousands of words a row has thousands of numbers, nearly all zero. The truncated **SVD** keeps the few directions that
# reproduce the table best.

# %%
from course_lib.text.static_vectors import positive_pmi, ppmi_vectors, skip_gram_loss, skip_gram_vectors, svd_vectors

show(positive_pmi, svd_vectors)

# %% [markdown]
# ### word2vec: guess instead of count
#
# **word2vec** (Mikolov et al. 2013, arXiv 1301.3781) *learns* the vectors. Its **skip-gram** form predicts from a word the words
# near it; **CBOW**, its other form, predicts a word from those near it. With **negative sampling** (their second paper) the prediction becomes a yes or no: a true
# pair of neighbours shall have a large dot product, a word and one drawn at random a small one.

# %%
show(skip_gram_loss)

# %% [markdown]
# The two are closer than they look: skip-gram with negative sampling factorises, without writing it down, a table of PMI values
# shifted by a constant (Levy and Goldberg 2014). Two relatives: **GloVe** (Pennington et al. 2014) counts first and then fits dot products to the logarithms of
# the counts; **fastText** (Bojanowski et al. 2017) makes a word's vector of those of its letter groups, so that a new word has one too.
#
# Both live, on prose from the documentation of five Python libraries that this course installs anyway:

# %%
import time

from course_lib.text.characters import words_of
from course_lib.text.documentation import documentation_slice

corpus = documentation_slice(8_000)
sentences = [words_of(paragraph) for paragraph in corpus.paragraphs]
tables = {}
for name, make, settings in (("PPMI + SVD", ppmi_vectors, {}), ("skip-gram", skip_gram_vectors, {"epochs": 4})):
    start = time.perf_counter()
    tables[name] = make(sentences, **settings)
    print(f"{name:12}{len(tables[name].words):6,} words in {time.perf_counter() - start:4.1f} s")
print(corpus)

# %%
neighbours_view(tables, "kernel")

# %% [markdown]
# *The words whose vectors have the greatest cosine with that of the word you type, in both tables. What is known was in the
# text at least five times.* On the machine where this page was written, `axis` and `random` have good company; `kernel` has graphics cards' and support vector
# machines' words side by side (`rbf` and `polynomial` are kernels of the latter). Try `key`.
#
# Such vectors also solve *analogies* (Mikolov et al. 2013): Paris − France + Italy lies near Rome. Read such examples with care: the three words of the question
# are left out of the search, for one of them is often the nearest.
#
# ### What they can do, and what not
#
# **Static vectors know what belongs together.** In the invented stories of the course's **micro-world** every thing has a topic, and the nearest other thing (of those with one topic) has the same one in {{number:table('skip-gram')['same_topic']:.0%}} of the cases, by skip-gram (there are twelve topics). But seven of its words have two topics. To which of them do their (up to ten) nearest things belong? (From the result file; more text than above.)

# %%
from course_lib.teaching.results import read_result

static = read_result("01_static")["runs"]["world"]["tables"]
print(f"{'':8}" + "".join(f"{name:28}" for name in static))
for word in static["skip-gram"]["topics"]:
    found = [", ".join(f"{n} {topic}" for topic, n in table["topics"][word].items()) for table in static.values()]
    print(f"{word:8}" + "".join(f"{said:28}" for said in found))

# %% [markdown]
# **A word with two senses gets one row, and the sense that occurs more often takes it**; `spring`, by skip-gram, lies between: {{number:table('skip-gram')['topics']['spring']['river']}} things of the river and {{number:table('skip-gram')['topics']['spring']['workshop']}} of the workshop.
#
# A table has one row a word. Whatever the sentence, the row is the same:

# %% tags=["nbval-check-output"]
numbered = {word: number for number, word in enumerate(vectors)}
rows = torch.stack(list(vectors.values()))
first = rows[[numbered[word] for word in ("table", "bank", "shore")]]
second = rows[[numbered[word] for word in ("loan", "bank", "table")]]
print(f"cosine of the two vectors of bank: {cosine_similarity(first[1], second[1], dim=0):.2f}")

# %% [markdown]
# 1.00, by construction. That is what *static* means. In *context* the two must differ, and below they do.
#
# ## By hand: attention from zero
#
# A vector *in context* must be made anew in each sentence, from the words around. Networks that read word after word hand on one state; what stood far away has
# passed through many hands. **Attention** lets a word look at all others directly. (It began in 2014 as an aid to such a network: Bahdanau, Cho and Bengio, arXiv
# 1409.0473, let a translator look back at every word that it had read.) It takes three steps, and you can do them on paper. (Later pages point here.)
#
# Four words, four numbers each. What the numbers stand for we decide: water, money, place, event. `bank` is half
# water, half money; no word here is a place.

# %% tags=["nbval-check-output"]
from course_lib.lectures.lecture_01.by_hand import OTHER_WORDS, WORDS, attention_by_hand, positions, vectors_of

x = vectors_of(WORDS)
for word, row in zip(WORDS, x.tolist()):
    print(f"{word:8}" + "".join(f"{number:4.0f}" for number in row))

# %% [markdown]
# **Step 1, the scores.** How well do two words fit? Their dot product, divided by √4 = 2 (four numbers a vector). `bank` and
# `river`: (1 · 2 + 1 · 0 + 0 + 0) / 2 = 1. All sixteen:

# %% tags=["nbval-check-output"]
scores = x @ x.T / 4**0.5
for word, row in zip(WORDS, scores.tolist()):
    print(f"{word:8}" + "".join(f"{number:4.0f}" for number in row))

# %% [markdown]
# **Step 2, the weights.** Each row becomes **attention weights** that sum to one: the softmax. For `bank` the scores are 0, 1, 1, 1. e⁰ = 1 and e¹ = 2.718; their sum is
# 9.154; so 0.109 for `the`, and 0.297 for each of the others.
#
# **Step 3, the output.** The sum of the vectors, each times its weight. The first number of `bank`: 0.109 · 0 + 0.297 · (2 + 1 + 2) = 1.48.

# %% tags=["nbval-check-output"]
weights = scores.softmax(dim=-1)
output = weights @ x
for word, row, new in zip(WORDS, weights.tolist(), output.tolist()):
    line = [" ".join(f"{number:5.2f}" for number in numbers) for numbers in (row, new)]
    print(f"{word:8}{line[0]}   output {line[1]}")

# %%
hand_attention_view()

# %% [markdown]
# *One word gathers (orange): its scores, its weights, what each word adds, and the sum. Choose the other sentence, or let a word see only what stands before it.*
#
# Before, `bank` was water 1, money 1. After, it is water 1.48, money 0.30: `river` and `flooded` have told it which bank it is. Beside *the savings bank paid* it goes the other way:

# %% tags=["nbval-check-output"]
other = attention_by_hand(vectors_of(OTHER_WORDS))[2]
print(f"cosine of the two banks: before {cosine_similarity(x[2], vectors_of(OTHER_WORDS)[2], dim=0):.2f}, "
      f"after {cosine_similarity(output[2], other[2], dim=0):.2f}")  # fmt: skip

# %% [markdown]
# ### Queries, keys, values
#
# Here a vector played three parts: what looks (the **query**), what is looked at (the **key**), what is handed over (the **value**). A Transformer makes the three by three
# matrices that it learns, so that what a word looks for may differ from what it offers:
#
# softmax(Q Kᵀ / √D) V, with Q = x W_Q, K = x W_K, V = x W_V.
#
# Watch two of them being learned. Without them `bank` looks at all words of water or money alike. Suppose that the task rewards looking at what *happened*:

# %% tags=["nbval-check-output"]
torch.manual_seed(0)
W_Q, W_K = (torch.randn(4, 4, requires_grad=True) for _ in "QK")
optimizer = torch.optim.Adam([W_Q, W_K], lr=0.05)
for step in range(201):
    both = [((y @ W_Q) @ (y @ W_K).T / 4**0.5).softmax(dim=-1)[2] for y in (x, vectors_of(OTHER_WORDS))]
    if step in (0, 200):
        for words, row in zip((WORDS, OTHER_WORDS), both):
            print(f"step {step:3}, bank: " + ", ".join(f"{word} {weight:.1f}" for word, weight in zip(words, row.tolist())))
    loss = -sum(row[3].log() for row in both)
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()

# %% [markdown]
# **With learned queries and keys `bank` finds the event in both sentences, though it has nothing of an event itself.** What it looks for is no longer what it is.
#
# Why divide by √D? The typical size of a sum of D products of independent numbers around zero grows like √D; without the division, the softmax of long vectors would put everything on one word.
#
# ### Heads
#
# One softmax gives one set of weights: a word cannot look at its verb for one reason and at its noun for another. So the numbers are cut into **heads**, each with its
# own scores and weights; the outputs are put side by side again. Two heads of two numbers, for `flooded` (divided by √2 now: D is a head's width):

# %% tags=["nbval-check-output"]
for head, (row, said) in enumerate(zip(attention_by_hand(x, heads=2)[1][:, 3], ("water, money", "place, event")), 1):
    print(f"head {head} ({said:12}): " + ", ".join(f"{word} {weight:.2f}" for word, weight in zip(WORDS, row.tolist())))

# %% [markdown]
# The first head divides its attention among the words of water; the second stays with the only event.
#
# ### Order lost, order regained
#
# Nothing so far says *where* a word stands. Turn the sentence round, and every word gets exactly the vector that it had:

# %% tags=["nbval-check-output"]
turned = [3, 2, 1, 0]
after = attention_by_hand(x[turned])[2]
print(f"without positions, largest difference: {(after - output[turned]).abs().max():.2f}")
x_placed = x + positions(4)
placed, placed_turned = attention_by_hand(x_placed)[2], attention_by_hand(x[turned] + positions(4))[2]
print(f"with positions,    largest difference: {(placed_turned - placed[turned]).abs().max():.2f}")

# %% [markdown]
# *dog bites man* and *man bites dog* would be one. So a vector for the position is added to each word: waves of several speeds in the first Transformer
# (`positions` does that), learned vectors in BERT and GPT (lecture 02), distances in DeBERTa (lecture 08).
#
# ## ELMo: vectors in context
#
# Five years after word2vec came **ELMo** (Peters et al., February 2018, arXiv 1802.05365): *embeddings from language models*. A language model predicts the next
# word, and to do so it must know what the words so far *mean together*. So take its inner states as vectors.

# %%
elmo_drawing()

# %% [markdown]
# *Left: a word is read letter by letter, between two signs for its ends, so no word is unknown. Middle: two LSTM layers from the left, and two from the right; the first layers of
# both read the same word vectors, each second layer reads the first of its own direction. Right: what a task takes, one weight a layer. Sizes as released: {{number:elmo_parameters}} parameters.*
#
# An **LSTM** reads word after word and carries a memory, its *cells*, along. At each word it computes three **gates**, numbers between 0 and 1, from the word and from what it said last. They
# decide for every cell how much of the old stays, how much of the new is written, and how much is let out. What is let out is the word's vector: it depends on the words so far. A
# *projection*, one more matrix, makes it narrower than the memory.

# %% [markdown]
# The parts, one by one:
#
# - *Character CNN*: filters of seven widths slide over the letters. Of each filter the largest value stays, **then** ReLU (so the authors' program). A
#   **highway** layer is g · relu(Wx) + (1 − g) · x: its gate g decides, number by number, between a new value and the old.
# - *Two language models*: the forward one predicts the next word, the backward one the word before. They share the character encoder and the softmax layer,
#   nothing else. The loss is ½ (forward + backward); e to the loss is the **perplexity**: 39.7 means as unsure as among 39.7 equally likely words.
# - *Pre-training* needs plain text only: the text itself has the answers (**self-supervised**).
# - *Use*: freeze it all. A task takes γ · Σ s_j · layer_j, with s a softmax of three learned numbers, as the input of its own network: the **feature-based** way,
#   where BERT is **fine-tuned** (lecture 03).
#
# ### Try it: ELMo
#
# {{exercise:01.3}}


# %%
def my_bilm_loss(forward_logits, backward_logits, ids, real):
    return ...


check("01.3", my_bilm_loss)

# %% [markdown]
# {{exercise:01.4}}


# %%
def my_mix(word, forward, backward, weights, gamma):
    return ...


check("01.4", my_mix)

# %% [markdown]
# ### The code

# %%
from course_lib.family.elmo import CharacterEncoder, Direction, Elmo, Highway, ProjectedLSTM, ScalarMix

show(CharacterEncoder.of_words, Highway.forward, ProjectedLSTM.step)

# %%
from course_lib.objectives.bilm import bilm_labels, bilm_loss

show(Direction.forward, Elmo.forward, ScalarMix.forward, bilm_labels, bilm_loss)

# %% [markdown]
# What a task gains, by the paper: named entities, test F1, 90.15 without and 92.22 with ELMo (Table 1). (F1 is the harmonic mean of precision and recall.) On SQuAD, questions about a paragraph, the last layer alone brings 3.9 points of F1, the mean of all layers 0.3 more, learned weights
# another 0.2 (section 5.1): most of it is not in the mix.
#
# Two things that the paper does not say, and its authors' program does: cells and projections are clipped at ±3; and layer 0, half as wide as the others, is put in
# twice. (That the second layer adds its input, a *residual connection*, is in both.)
#
# ### Is it right? The LSTM
#
# transformers has no ELMo. The LSTM is compared with PyTorch's own (`proj_size`; it knows no clipping, so ours has none
# here), live, in outputs and gradients. The rest is tested against an independent plain version.

# %%
torch.manual_seed(0)
ours = ProjectedLSTM(input_size=64, cells=128, size=64).double()
theirs = torch.nn.LSTM(64, 128, proj_size=64, batch_first=True).double()
theirs.load_state_dict({
    "weight_ih_l0": ours.weight_input, "weight_hh_l0": ours.weight_hidden, "weight_hr_l0": ours.projection,
    "bias_ih_l0": ours.bias, "bias_hh_l0": torch.zeros_like(ours.bias),
})  # fmt: skip
x = torch.randn(8, 20, 64, dtype=torch.float64)
outputs = ours(x)[0], theirs(x)[0]
for out in outputs:
    out.square().mean().backward()
apart = (ours.weight_input.grad - theirs.weight_ih_l0.grad).abs().max() / ours.weight_input.grad.abs().max()
print(f"largest difference of outputs {(outputs[0] - outputs[1]).abs().max():.1e}, of gradients {apart:.1e} (float64)")

# %% [markdown]
# ### See it: two readers, one gap
#
# A small ELMo ({{number:count_parameters(micro_elmo()[0])}} parameters), trained for this course on stories of an invented world (the **micro-world**) and shipped with it. Hide
# a word: what does each of its language models expect there?

# %%
world = MicroWorld.load()
small_elmo, vocabulary = micro_elmo()
guesses_view(small_elmo, vocabulary, "first mekus rows the red bank with his friend .", word=6)

# %% [markdown]
# *One column has read what stands before the hidden word, the other what stands after it. Move the slider: where does which know more?*
#
# Neither has read both. That is the answer to the second guess, and what the next picture says of the three models of 2018.

# %%
three_drawing()

# %% [markdown]
# *ELMo: two chains, each from one side, next to each other but not in each other ("shallowly bidirectional"). GPT: only from the left. BERT: every position from
# both sides, in every layer ("deeply bidirectional").*
#
# A common misconception: before 2018 all models read in one direction. Bidirectional LSTMs are older; what BERT's paper claims is *deep* bidirectionality (its Figure 3 and
# Appendix A.4).
#
# ### Two banks, two vectors
#
# In the micro-world `bank` has two senses: one belongs to the people who count and lend, another to those who row and fish. The same word, two sentences, each layer:

# %%
from course_lib.text.characters import spell_sentences

pair = [words_of(text) for text in (
    "the clerk vasar finds one red bank . first she counts the bank and talks to drizi .",
    "the fisher mekus finds one red bank . first he crosses the bank and talks to hala .",
)]  # fmt: skip
with torch.no_grad():
    states = small_elmo.encoder(*spell_sentences(pair), output_hidden_states=True).hidden_states
at = 1 + pair[0].index("bank")  # <S> stands first
for number, (one, other) in enumerate(layer[:, at] for layer in states):
    shown = [" ".join(f"{value:6.2f}" for value in row[:5].tolist()) for row in (one, other)]
    print(f"layer {number}: {shown[0]} …   {shown[1]} …   cosine {cosine_similarity(one, other, dim=0):.2f}")

# %% [markdown]
# *The first numbers of both vectors, layer by layer.* Layer 0 knows the letters only: 1.00. **In the layers above the two part: that is what *contextual* means.**
#
# ## Measure it: who tells senses apart?
#
# Seven words of the documentation mean one thing in one package and something else in another: *kernel, key, tree, axis, field, token, root* (`kernel`: a process in Jupyter, a function of two points in scikit-learn). So the package is the label of
# {{number:mentions}} mentions. Each kind of vector is frozen, and a **linear probe** (a linear classifier) says the sense from it. Half of the modules train the probe and
# the other half tests it, both senses equally often: chance level is 50%. The ELMo here has read the documentation, as the course's BERT has, but much less of it. **The two are not
# equals**: BERT read {{number:times_elmos('tokens'):.0f}} times as many tokens and has {{number:times_elmos('parameters'):.0f}} times as many parameters, some {{number:round(times_elmos('tokens') * times_elmos('parameters'), -1):.0f}} times the training FLOPs. So the chart compares two models, not two ideas.

# %%
from statistics import mean

from course_lib.teaching import ablation_chart

senses = read_result("01_senses")["runs"]["documentation"]["vectors"]
rows = {
    "skip-gram": ("skip-gram", "word"), "bag of the neighbours": ("bag of words", "bag"),
    "ELMo, random initialisation, layer 2": ("ELMo, random initialisation", "2"),
    **{f"ELMo, layer {layer}": ("ELMo", layer) for layer in "12"},
    **{f"BERT, layer {layer}": ("BERT", layer) for layer in "14"},
}  # fmt: skip


def by_word(name, layer, measure="probe"):
    (found,) = [of for of in senses[name] if of["layer"] == layer]
    return [mean(word[measure]) for word in found["words"].values()]


ablation_chart({"seven words": {said: by_word(*which) for said, which in rows.items()}}, percent=True,
               title="Which sense? A linear probe on frozen vectors", x_title="accuracy")  # fmt: skip

# %% [markdown]
# *A dot is a word (the mean of three splits), a bar the mean of the seven. BERT: the course's own, of four layers.*
#
# - *Static*: {{number:senses(DOCS, 'skip-gram', 'word')}}, by construction. So is ELMo's layer 0 ({{number:senses(DOCS, 'ELMo', '0')}}), which knows the letters only.
# - *ELMo's* LSTM layers: {{number:senses(DOCS, 'ELMo', '1')}} and {{number:senses(DOCS, 'ELMo', '2')}}. But the same network with *random* weights has {{number:best(DOCS, 'ELMo, random initialisation')}}: an LSTM mixes neighbours into a word
#   even before it has learned anything. Of what *this* ELMo has above chance, that is the larger part; one trained as long as BERT may well learn more.
# - *BERT*: {{number:best(DOCS, 'BERT')}} in its best layer; random weights {{number:best(DOCS, 'BERT, random initialisation')}}. MiniLM, larger and trained for sentences, has {{number:best(DOCS, 'MiniLM')}}.
# - *A bag of words*, the neighbours without any model, has {{number:senses(DOCS, 'bag of words', 'bag')}}; the mean of the neighbours' static vectors {{number:senses(DOCS, "mean of the neighbours' PPMI vectors", 'context')}}. These senses are coarse, and the words around
#   give them away.
#
# **Contextual vectors beat static ones by far; of ours, only BERT's beat a bag of the neighbours. Whether attention beats LSTMs is not shown: the two had unequal training.**

# %% [markdown]
# **The published ELMo tells fine senses, too.** It read a billion words ten times (mean perplexity 39.7) and has F1 67.4 in layer 1 and 69.0 in layer 2, where always taking a dictionary's first sense has 65.9,
# and a method made for the task 70.1 (its Table 5).
#
# **For parts of speech its *first* layer is better**, 97.3 against 96.8 (Table 6). Ours, on the course's tagged sentences: layers 0, 1, 2 have
# {{number:mean(tags('0')):.1%}}, {{number:mean(tags('1')):.1%}}, {{number:mean(tags('2')):.1%}}; BERT {{number:max(map(mean, stored('01_senses')['tags']['BERT'].values())):.0%}}. (The same order as the paper's,
# by a hair; and an ELMo with random weights has it too.)

# %% [markdown]
# **In the micro-world the telling words mostly stand *before* the word**, where the backward reader has not been. From one sentence, every sense known: ELMo's layer 2 {{number:senses(WORLD, 'ELMo', '2')}}, its forward half alone {{number:senses(WORLD, 'ELMo', '2 forward')}}, its backward half
# {{number:senses(WORLD, 'ELMo', '2 backward')}}. BERT {{number:senses(WORLD, 'BERT', '4')}}, a bag of words {{number:senses(WORLD, 'bag of words', 'bag')}}.

# %% [markdown]
# **A cosine says something only beside the one of chance.** Two mentions of a word with the same sense have a cosine of {{number:cosine('ELMo', '2', 'same')}} in ELMo's layer 2, with different senses {{number:cosine('ELMo', '2', 'other')}}; but two mentions of *different
# words* have {{number:cosine('ELMo', '2', 'chance')}}. In BERT's last layer: {{number:cosine('BERT', '4', 'same')}}, {{number:cosine('BERT', '4', 'other')}}, {{number:cosine('BERT', '4', 'chance')}}. Vectors of a network often crowd into one direction (**anisotropy**).
#
# ### See it: nearest mentions, layer by layer
#
# A dozen mentions for each sense of each such word of the world, and as many sentences with *kernel* as the documentation has: a running process (Jupyter) or a function of two
# points (scikit-learn). Type a text, pick a word by its number, choose model and layer: which mentions have the nearest vectors?

# %%
from course_lib import load_pretrained
from course_lib.lectures.lecture_01.senses import (
    DOCUMENTATION, bert_layers, documentation_mentions, elmo_layers, two_sense_words,
)  # fmt: skip
from course_lib.lectures.lecture_01.views import some_mentions

kernels = documentation_mentions({"kernel": DOCUMENTATION["kernel"]})["kernel"]
meanings = {"kernel": [sense.meaning for sense in DOCUMENTATION["kernel"]]}
told, topics = some_mentions(world), two_sense_words(world)
course, teacher = load_pretrained("course-bert"), micro_teacher()
indexes = {
    "micro-ELMo": index_occurrences(told, topics, elmo_layers(small_elmo.encoder)),
    "micro-BERT": index_occurrences(told, topics, bert_layers(teacher.encoder, world.tokenizer)),
}
if kernels:  # where Jupyter and scikit-learn are installed
    indexes["course's BERT"] = index_occurrences(kernels, meanings, bert_layers(course.encoder, course.tokenizer))
story = "caro is a clerk . then she stamps the green seal with her friend ."
texts = dict.fromkeys(("micro-ELMo", "micro-BERT"), (story, 11))  # a text, and which of its words
layers_view(indexes, texts | {"course's BERT": ("the client sends a message to the kernel and waits for its reply", 8)})

# %% [markdown]
# *Each line is a mention: its cosine with the word that you picked, the words around it, its sense. Where all cosines are 1.00 the order says nothing. Which of the two models of the world mixes the senses? micro-BERT is the small BERT of the same
# world that lecture 06 uses as a teacher; the course's BERT has read the documentation. Try *caro is a sailor . then he hauls the green seal* (word 10), or *a kernel of degree two* (word 2); and the layers in between.*
#
# %% [markdown]
# ## The code: three kinds from one block
#
# First attention as code, then what is built around it.
#
# {{exercise:01.5}}


# %%
def my_attention(queries, keys, values, visible):
    return ...


check("01.5", my_attention)

# %% [markdown]
# And the library's, for many heads and texts at once:

# %%
from course_lib.kernels.attention import attention_reference, attention_scores, causal_mask

show(attention_scores, attention_reference)

# %% [markdown]
# ### The block
#
# A **Transformer** (Vaswani et al., June 2017, arXiv 1706.03762) stacks blocks of attention and a small network applied to each word.

# %%
from course_lib.lectures.lecture_02.views import block_drawing

block_drawing()

# %% [markdown]
# *One block, as BERT has it. In attention the words meet; the feed-forward network changes each word by itself. After both, what came in is added back, and LayerNorm brings a vector's numbers
# to mean 0 and variance 1. Lecture 02 builds it line by line. F: how wide the feed-forward network is inside.*
#
# Three kinds are built of such blocks. They differ in *who may see whom*. An **encoder** reads a finished text, and each word sees all. A **decoder** writes: each word sees itself and those before it.
# An **encoder-decoder** does both, and what is written also looks at all that was read: **cross-attention**.
#
# {{exercise:01.6}}


# %%
def my_visible(source, target, real):
    return ...


check("01.6", my_visible)

# %%
masks_view()

# %% [markdown]
# *A row looks, a column is seen; filled squares are allowed, striped ones are cross-attention. Choose a kind and the token that looks. Also there: what each of ELMo's
# two LSTMs can know.*
#
# | kind | sees | trained to | called | good for | examples |
# |---|---|---|---|---|---|
# | **encoder** | both sides | restore hidden or find changed words | auto-encoding | *reading*: classify, find names, find answers | BERT, RoBERTa, ELECTRA |
# | **decoder** | itself and what stands before | predict the next word | auto-regressive | *writing* | GPT-2, GPT-3, LLaMA |
# | **encoder-decoder** | the source whole, its own text so far | write the target text | sequence to sequence | *rewriting*: translate, summarise | the first Transformer, BART, T5 |
#
# *The bank of the river*: at `bank` the decoder has seen *the bank* and cannot know which. The encoder sees *river*. But it has learned to fill gaps that have a right side, and a text
# that is being written has none yet: BERT as it is published reads. Whether an encoder *can* write, the experiment below tells.
#
# ### From BERT to GPT
#
# GPT (2018) keeps the block and changes what is around it: the mask is a triangle; the loss asks for the next word at *every* position instead of the hidden words; and there are no
# segments and no LayerNorm on the embeddings. GPT-2 also moves LayerNorm before each half of the block, with one more at the end:

# %%
from course_lib.family.gpt import CausalStack, PreNormBlock
from course_lib.family.seq2seq import CrossBlock, Seq2Seq

show(PreNormBlock.attend, PreNormBlock.apply_feed_forward, CausalStack.forward, causal_mask)

# %% [markdown]
# ### From both to an encoder-decoder
#
# BERT's encoder reads. The decoder's block has a third part between BERT's two: **cross-attention**, whose queries come from what is being written and whose keys and values from
# what was read.

# %%
show(CrossBlock.read, Seq2Seq.forward)

# %% [markdown]
# The loss of both is next-token prediction: at each position the word after it.

# %%
from course_lib.objectives.next_token import next_token_labels, next_token_loss

show(next_token_labels, next_token_loss)

# %% [markdown]
# ### Is it right?
#
# The decoder against transformers' GPT-2, the encoder-decoder against its BART, from the same weights.

# %%
from transformers.utils import logging

from course_lib.checkpoints.decoders import to_bart, to_gpt2
from course_lib.family.gpt import gpt
from course_lib.family.seq2seq import bart

logging.set_verbosity_error()  # they warn of a vocabulary so small
shape = {"vocab_size": 500, "hidden_size": 64, "num_heads": 4, "num_layers": 3, "intermediate_size": 256,
         "max_positions": 50, "initializer_range": 0.1}  # fmt: skip
torch.manual_seed(0)
read, write = torch.randint(500, (4, 20)), torch.randint(500, (4, 12))
decoder, both = gpt(**shape).eval(), bart(**shape).eval()
with torch.no_grad():
    difference = (decoder(read).logits - to_gpt2(decoder)(read).logits).abs().max()
    mine = both(read, None, write, output_attentions=True)
    reference = to_bart(both, "eager")(input_ids=read, decoder_input_ids=write, output_attentions=True)
cross = max((a - b).abs().max() for a, b in zip(mine.cross_attentions, reference.cross_attentions))
print(f"GPT-2: largest difference of logits {difference:.1e}")
print(f"BART:  largest difference of logits {(mine.logits - reference.logits).abs().max():.1e}, "
      f"of cross-attention weights {cross:.1e}")  # fmt: skip

# %% [markdown]
# (Gradients, padding, weights there and back: in the tests. What is compared is GPT-2's arrangement and BART's. T5 differs from BART in its positions, which are relative, its norms and its
# biases; this course does not build it.)
#
# ## Measure it: one task, three kinds
#
# The same block, the same width, the same text, three kinds, and a task that each can be put to: *translate*. The micro-world speaks English only, so the second language is made by a rule:
# every word is spelt backwards, and the sentence is read from its end. The models see numbers, not letters; they must learn each word's translation, and the order.
#
# The encoder gets the sentence and as many `[MASK]` (a sign for *a word is wanted here*) as there are words to say, and says them all at once. (So it is told the length.) The decoder reads
# sentence, `[SEP]` (a sign that separates), and then says word after word. The encoder-decoder reads with one half and says with the other. 250 steps each:

# %%
from course_lib.lectures.lecture_01.three_kinds import KINDS, heldout_examples, recipes, train, two_languages

both_languages = two_languages()
unseen = heldout_examples(both_languages, "translate")
kinds = {}
for kind in KINDS:
    kinds[kind] = train(recipes()[f"{kind}: translate"], steps=250)
    found = kinds[kind].measure(unseen)
    print(f"{kind:16}{kinds[kind].history.seconds:4.0f} s   "
          f"right: {found['words']:.0%} of the words, {found['whole']:.0%} of whole sentences")  # fmt: skip

# %%
for example in unseen[:3]:
    print(f"{'read':16}{both_languages.text(example.source)}\n{'right':16}{both_languages.text(example.target)}")
    for kind, one in kinds.items():
        print(f"{kind:16}{both_languages.text(one.say([example])[0])}")
    print()

# %% [markdown]
# *Sentences that no training has seen.*
#
# **For this task all three will do.** Longer runs, three seeds each, from the result file, on three tasks. *Fill gaps*: three words are missing from two sentences ({{number:steps_of('encoder: fill gaps')}} steps); how many of them
# are right? *Continue*: say the next sentence; is it one that the world could say? (A question of grammar only: repeating what was read would pass.) *Translate*: as above; is it right from end to end? ({{number:steps_of('encoder: translate')}} steps each.)

# %%
from course_lib.lectures.lecture_01.three_kinds import LEFT, SHOWN, STEPWISE
from course_lib.teaching.results import in_words

runs = read_result("01_three_kinds")["runs"]
measures = {"fill gaps": "words", "continue": "possible", "translate": "whole"}
print(f"{'':24}" + "".join(f"{task:>23}" for task in measures))
for kind in (KINDS[0], STEPWISE, SHOWN, *KINDS[1:], LEFT):
    cells = [[run[measure] for run in runs.get(f"{kind}: {task}", [])] for task, measure in measures.items()]
    print(f"{kind:24}" + "".join(f"{in_words(values) if values else '':>23}" for values in cells))

# %% [markdown]
# *Mean and standard deviation over the seeds. "Left only": at each gap this decoder has read what stands before it, and nothing else. "Word by word": the encoder fills one `[MASK]` at a time, from the left, and
# reads what it has filled. "Trained for it": the same, and in training the first words of the answer, a random number of them, are shown.*
#
# **Gaps want both sides.** The encoder is ahead, {{number:kind_score('encoder', 'fill gaps', 'words')}}; the encoder-decoder has {{number:kind_score('encoder-decoder', 'fill gaps', 'words')}}. The decoder, {{number:kind_score('decoder', 'fill gaps', 'words')}}, has read the whole text before it says the missing words, and is no
# better than one that has read the left side only, {{number:kind_score(LEFT, 'fill gaps', 'words')}}. A likely reason: while it reads, no word of it sees what comes later.

# %% [markdown]
# **Writing is a matter of training and decoding, not of the kind.** The encoder that says all words at once has {{number:kind_score('encoder', 'continue', 'possible')}} (its seeds differ much): each word is likely by itself, and they do not fit one another. Filling them word by word
# does not help a model that never trained so, {{number:kind_score(STEPWISE, 'continue', 'possible')}}. *Trained for it*, the same encoder has {{number:kind_score(SHOWN, 'continue', 'possible')}}; decoder and encoder-decoder, which train so by construction, {{number:kind_score('decoder', 'continue', 'possible')}} and {{number:kind_score('encoder-decoder', 'continue', 'possible')}}. What remains the
# decoder's own: it need not be told the length, learns from every word of a text in one pass, and keeps what it has computed while it writes. The encoder computes everything anew for each word.

# %% [markdown]
# **Translating tells no difference that three seeds could show**: {{number:kind_score('encoder', 'translate', 'whole')}}, {{number:kind_score('decoder', 'translate', 'whole')}}, {{number:kind_score('encoder-decoder', 'translate', 'whole')}}. For a rule as simple as ours, any of the three will do.
#
# And mind the scale: two layers, one topic's stories, equal *steps*. The encoder-decoder has its two layers
# twice, so it has more parameters and its step costs more; and today's large decoders do all three, at a size where this page says nothing.
#
# ## See it: the family tree
#
# Who came from whom. Choose a model; mark a group.

# %%
tree_view()

# %% [markdown]
# *Blue, solid: encoders; green, dashed: decoders; yellow, dotted: encoder-decoders. Underlined names have a page in this course. Dates are those of the first version on arXiv where
# there is one. What this course has not read about a model is left out.*
#
# - *Where BERT, GPT, BART and T5 stand.* GPT (June 2018) took the decoder, BERT (October 2018) the encoder, of the Transformer of 2017; T5 and BART (both October 2019) kept both halves. BART's
#   encoder reads a damaged text, and its decoder writes it whole; T5 writes only what was taken out, and tells every task as text.
# - *Between the kinds*: XLNet (June 2019) predicts the words of a text one after the other, as a decoder does, but in a random order, so that over many orders each word is predicted from both sides.
# - *Sesame Street.* Mark that group: ELMo, BERT, two models named ERNIE that have nothing to do with each other (lecture 09), and Big Bird, whose attention is sparse so that texts can be long.
# - *Dates*: an arXiv number begins with year and month. That is how to check one.
#
# ### The road so far
#
# | step | what was new | what was missing |
# |---|---|---|
# | word2vec (2013) | a vector for each word, learned from raw text | one for all senses |
# | RNN, LSTM, GRU | a state handed from word to word: order, context | long distances; one word after the other, so slow |
# | attention between encoder and decoder | the writer looks back at every word read | still an RNN on both sides |
# | Transformer (2017) | attention only; all positions at once | its need for large data and machines |
# | ELMo (2018) | vectors in context, from language models | two one-sided readers; a new network for each task |
# | GPT, BERT (2018), T5, BART (2019) | one pre-trained Transformer for many tasks | it completes text, it does not follow wishes |
# | alignment (InstructGPT 2022, ChatGPT) | supervised fine-tuning (SFT) on answers, then feedback by people (RLHF) | text only |
# | multimodal models (GPT-4, 2023) | images beside text | step-by-step thinking |
# | reasoning models (DeepSeek-R1, 2025) | trained by reinforcement learning to reason | ask again next year |
#
# ### Why BERT changed things
#
# Three reasons, and each has its page: words got vectors *in context* (here); from *both sides in every layer* (lecture 02); and one pre-trained **encoder became the standard** start for tasks of understanding, with a
# small head on top (lecture 03): pre-train once, fine-tune often. Its vocabulary of 30,000 pieces and its special tokens are lecture 02's.

# %%
print(f"{'':26}{'you said':>14}   answer")
answers = {"nearest to kernel": "a mixture of both, the frequent sense first", "sees the whole sentence": "no, neither",
           "from BERT to GPT": "mask and loss; segments and a LayerNorm go"}  # fmt: skip
for name, value in answers.items():
    print(f"{name:26}{str(my_guesses[name]).replace('Ellipsis', '–'):>14}   {value}")

# %% [markdown]
# ## What they claim, what you measured
#
# Each line was settled by code that ran just now, by a result file, or, where neither can, by a source.

# %%
claims_table("01")

# %% [markdown]
# ## Quiz

# %%
quiz("01")

# %% [markdown]
# ## Questions for review
#
# {{review:01}}

# %% [markdown]
# ## Read on
#
# - Peters et al. (2018), *Deep contextualized word representations*, arXiv 1802.05365: section 3 first; then its analysis of what each layer knows.
# - Vaswani et al. (2017), *Attention is all you need*, arXiv 1706.03762: sections 3.1 to 3.3, with this page's four words beside it.
# - Levy and Goldberg (2014), *Neural word embedding as implicit matrix factorization*: why counting and guessing agree.
# - Lewis et al. (2019), *BART*, arXiv 1910.13461: Figure 1 has the three kinds side by side.
