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
# - make static vectors in two ways, and say what one vector per word cannot do;
# - compute attention among four words on paper: dot product, weights, output;
# - build ELMo from characters and LSTMs, and say what each of its two directions sees;
# - turn one block into an encoder, a decoder and an encoder-decoder, and say which of them BERT, GPT, BART and T5 are.
#
# You need Python with a little PyTorch (tensors, a training loop), matrix products, logarithms and the softmax. From [page 00](00_start_here.ipynb) you know
# what a hidden word and a loss are. Attention and the LSTM are explained below. Nothing is downloaded.
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
# *We sat on the **bank** and watched the boats. The **bank** raised its fees.* One word, two meanings: **polysemy**. You told them apart by the other words of
# the sentence.
#
# Three guesses. Write them down before you go on.
#
# 1. A script counts which words stand near each other in the manuals of Python libraries, and gives every word one vector. In these manuals a
#    *kernel* is part of a support vector machine, or a program on a graphics card. Which words will be nearest to `kernel`?
# 2. ELMo (2018) reads a sentence from the left with one network and from the right with another. At a word in the middle:
#    does either of them see the whole sentence?
# 3. GPT and BERT are stacks of the same block. What must change to turn one into the other?

# %%
my_guesses = {"nearest to kernel": ..., "sees the whole sentence": ..., "from BERT to GPT": ...}

# %% [markdown]
# ## By hand: one vector a word
#
# Words of similar meaning tend to occur beside the same words. This is the **distributional hypothesis** (Harris 1954; Firth 1957, who judged a word by the
# company that it keeps). So we count neighbours. These counts are small enough to check by hand (rows: words; columns: neighbours).

# %% tags=["nbval-check-output"]
from course_lib.lectures.lecture_01.by_hand import COUNTS, NEAR, ppmi_by_hand

print(f"{'':8}" + "".join(f"{near:>8}" for near in NEAR))
for word, row in COUNTS.items():
    print(f"{word:8}" + "".join(f"{n:8}" for n in row))

# %% [markdown]
# *the* is the most frequent neighbour of `bank`, but it says nothing about `bank`, because it is near everything. So we ask how much *more often than by
# chance* two words are neighbours. `bank` has 8 of the 32 counts, and `river` has 4. By chance they would share 8/32 · 4/32 of the 32 counts, that is, one.
# They share two: ln(2/1) = 0.69. This logarithm is the **pointwise mutual information**, PMI; **positive PMI** (PPMI) sets negative values to zero.

# %% tags=["nbval-check-output"]
from torch.nn.functional import cosine_similarity

vectors = {word: torch.tensor(row) for word, row in ppmi_by_hand().items()}
for word, row in vectors.items():
    print(f"{word:8}" + "".join(f"{n:8.2f}" for n in row))
for a, b in (("bank", "shore"), ("bank", "loan"), ("shore", "loan")):
    print(f"cosine of {a} and {b}: {cosine_similarity(vectors[a], vectors[b], dim=0):.2f}")

# %% [markdown]
# Each row is a vector. `shore` and `loan` have nothing in common. `bank` lies halfway between them, at the same angle to both: it is neither shore nor loan but
# a mixture, and the same mixture in every sentence.
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
# We make such vectors in two ways. (Here a text is cut at spaces and punctuation marks. Lectures 02 and 04 cut it into smaller pieces, by
# WordPiece and by byte pair encoding, **BPE**.)
#
# ### Counts, PMI, and few numbers a word
#
# With thousands of words, a row has thousands of numbers, nearly all of them zero. The truncated **SVD** (singular value decomposition) keeps the few
# directions that reproduce the table best.

# %%
from course_lib.text.static_vectors import positive_pmi, ppmi_vectors, skip_gram_loss, skip_gram_vectors, svd_vectors

show(positive_pmi, svd_vectors)

# %% [markdown]
# ### word2vec: guess instead of count
#
# **word2vec** (Mikolov et al. 2013, arXiv 1301.3781) *learns* the vectors. Its **skip-gram** form predicts the neighbours from a word; **CBOW**, its other
# form, predicts a word from its neighbours. With **negative sampling** (their second paper) the prediction becomes a yes-or-no question: a true pair of
# neighbours should have a large dot product, a random pair a small one.

# %%
show(skip_gram_loss)

# %% [markdown]
# Counting and guessing are closer than they look: at its optimum, skip-gram with negative sampling factorises a table of PMI values shifted by a constant
# (Levy and Goldberg 2014). **GloVe** (Pennington et al. 2014) counts first and then fits dot products to the logarithms of the counts. **fastText**
# (Bojanowski et al. 2017) builds a word's vector from those of its character n-grams (runs of n letters), so that a new word gets one too.
#
# We now run PPMI with SVD, and skip-gram, on the documentation of five Python libraries:

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
# *The words whose vectors have the greatest cosine with that of the word you type, in both tables. Only words that occur at least five times have a vector.* On
# the machine where this page was written, `kernel` gets words of graphics cards and of support vector machines side by side (`rbf` and `polynomial` are
# kernels of the latter). Try `key`.
#
# Such vectors also solve some *analogies* (Mikolov et al. 2013): Paris − France + Italy lies near Rome. But the question's three words are left out of the
# search, because one of them is often the nearest.
#
# ### What they can do, and what they cannot
#
# **Static vectors capture which things belong together.** In the course's **micro-world**, a small invented world, things belong to twelve topics. With
# skip-gram vectors, the nearest neighbour of a one-topic thing, among such things, shares its topic in {{number:table('skip-gram')['same_topic']:.0%}} of the cases; a
# random one would in about one of twelve. But seven words belong to two topics. To which do their nearest things (at most ten) belong? (A stored result.)

# %%
from course_lib.teaching.results import read_result

static = read_result("01_static")["runs"]["world"]["tables"]
print(f"{'':8}" + "".join(f"{name:28}" for name in static))
for word in static["skip-gram"]["topics"]:
    columns = [", ".join(f"{n} {topic}" for topic, n in table["topics"][word].items()) for table in static.values()]
    print(f"{word:8}" + "".join(f"{column:28}" for column in columns))

# %% [markdown]
# **A word with two senses gets one row, and one sense often dominates it.** With skip-gram, `spring` lies between its senses:
# {{number:table('skip-gram')['topics']['spring']['river']}} things of the river and {{number:table('skip-gram')['topics']['spring']['workshop']}} of the
# workshop.
#
# Whatever the sentence, the row is the same (two texts of three words, with the vectors made by hand):

# %% tags=["nbval-check-output"]
row_of = {word: number for number, word in enumerate(vectors)}
rows = torch.stack(list(vectors.values()))
first = rows[[row_of[word] for word in ("table", "bank", "shore")]]
second = rows[[row_of[word] for word in ("loan", "bank", "table")]]
print(f"cosine of the two vectors of bank: {cosine_similarity(first[1], second[1], dim=0):.2f}")

# %% [markdown]
# The cosine is 1.00 by construction: that is what *static* means.
#
# ## By hand: attention from zero
#
# A vector *in context* must be computed anew in each sentence, from the words around it. In a network that reads word after word, a distant word arrives only
# through many steps. **Attention** lets a word look at all others directly. (It began in 2014: Bahdanau, Cho and Bengio, arXiv 1409.0473, let
# such a network, a translation model, look back at every word it had read.) It takes three steps that you can do on paper.
#
# We take four words of four numbers each and decide what the numbers mean: water, money, place, event. `bank` is half water and half money; no word
# here is a place.

# %% tags=["nbval-check-output"]
from course_lib.lectures.lecture_01.by_hand import OTHER_WORDS, WORDS, attention_by_hand, positions, vectors_of

x = vectors_of(WORDS)
for word, row in zip(WORDS, x.tolist()):
    print(f"{word:8}" + "".join(f"{number:4.0f}" for number in row))

# %% [markdown]
# **Step 1, the scores.** The score says how well two words fit. It is their dot product, divided by √4 = 2 (four numbers a vector). For `bank` and `river` it
# is (1 · 2 + 1 · 0 + 0 + 0) / 2 = 1. Here are all sixteen:

# %% tags=["nbval-check-output"]
scores = x @ x.T / 4**0.5
for word, row in zip(WORDS, scores.tolist()):
    print(f"{word:8}" + "".join(f"{number:4.0f}" for number in row))

# %% [markdown]
# **Step 2, the weights.** The softmax turns each row into **attention weights** that sum to one. For `bank` the scores are 0, 1, 1, 1. Since e⁰ = 1 and e¹ =
# 2.718, the exponentials sum to 9.154. So `the` gets the weight 0.109, and each of the others 0.297.
#
# **Step 3, the output.** It is the sum of the vectors, each times its weight. The first number of `bank` becomes 0.109 · 0 + 0.297 · (2 + 1 + 2) = 1.48.

# %% tags=["nbval-check-output"]
weights = scores.softmax(dim=-1)
output = weights @ x
for word, row, new in zip(WORDS, weights.tolist(), output.tolist()):
    line = [" ".join(f"{number:5.2f}" for number in numbers) for numbers in (row, new)]
    print(f"{word:8}{line[0]}   output {line[1]}")

# %%
hand_attention_view()

# %% [markdown]
# *For one word (orange): its scores, its weights, what each word adds, and the sum. Choose the other sentence, or let a word see only itself and the words
# before it.*
#
# Before attention, `bank` had water 1 and money 1. Afterwards it has water 1.48 and money 0.30: `river` and `flooded` have told it which bank it is. In *the
# savings bank paid* it moves the other way:

# %% tags=["nbval-check-output"]
other = attention_by_hand(vectors_of(OTHER_WORDS))[2]
print(f"cosine of the two banks: before {cosine_similarity(x[2], vectors_of(OTHER_WORDS)[2], dim=0):.2f}, "
      f"after {cosine_similarity(output[2], other[2], dim=0):.2f}")  # fmt: skip

# %% [markdown]
# ### Queries, keys, values
#
# So far each vector was all three: what looks (the **query**), what is looked at (the **key**), and what is passed on (the **value**). A Transformer computes
# them with three learned matrices, so that what a word looks for may differ from what it offers:
#
# softmax(Q Kᵀ / √D) V, with Q = x W_Q, K = x W_K, V = x W_V.
#
# Watch W_Q and W_K being learned. Without them, `bank` gives all words of water or money equal weight. Suppose that the task rewards looking at what
# *happened*, the last word:

# %% tags=["nbval-check-output"]
torch.manual_seed(0)
W_Q, W_K = (torch.randn(4, 4, requires_grad=True) for _ in "QK")
optimizer = torch.optim.Adam([W_Q, W_K], lr=0.05)
for step in range(201):
    bank_weights = [((y @ W_Q) @ (y @ W_K).T / 4**0.5).softmax(dim=-1)[2] for y in (x, vectors_of(OTHER_WORDS))]
    if step in (0, 200):
        for words, row in zip((WORDS, OTHER_WORDS), bank_weights):
            print(f"step {step:3}, bank: " + ", ".join(f"{word} {weight:.1f}" for word, weight in zip(words, row.tolist())))
    loss = -sum(row[3].log() for row in bank_weights)  # word 3 is the event
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()

# %% [markdown]
# **With learned queries and keys, `bank` attends to the event in both sentences, although its own vector has no event in it.**
#
# Why divide by √D? A sum of D products of independent numbers with mean 0 and variance 1 has the standard deviation √D. Without the division, a large D
# would put nearly all weight on one word.
#
# ### Heads
#
# With one softmax, a word cannot look at its verb for one reason and at its noun for another. So each vector is cut into **heads**, each with its own scores
# and weights, and their outputs are put side by side again. Here are two heads of two numbers for `flooded` (the divisor is √2 now, because D is a head's
# width):

# %% tags=["nbval-check-output"]
for head, (row, features) in enumerate(zip(attention_by_hand(x, heads=2)[1][:, 3], ("water, money", "place, event")), 1):
    print(f"head {head} ({features:12}): " + ", ".join(f"{word} {weight:.2f}" for word, weight in zip(WORDS, row.tolist())))

# %% [markdown]
# The first head mostly divides its attention among the words of water; the second attends mostly to the only event.
#
# ### Order lost, order regained
#
# Nothing so far says *where* in the sentence a word is. Reverse the sentence, and every word gets exactly the vector that it had:

# %% tags=["nbval-check-output"]
reverse = [3, 2, 1, 0]
reverse_output = attention_by_hand(x[reverse])[2]
print(f"without positions, largest difference: {(reverse_output - output[reverse]).abs().max():.2f}")
with_positions = attention_by_hand(x + positions(4))[2]
reverse_with_positions = attention_by_hand(x[reverse] + positions(4))[2]
print(f"with positions,    largest difference: {(reverse_with_positions - with_positions[reverse]).abs().max():.2f}")

# %% [markdown]
# Each word of *dog bites man* would get the same vector in *man bites dog*. So it gets its position as well. The first Transformer adds sine and cosine
# waves (this is what `positions` returns), BERT and GPT add learned vectors (lecture 02), and DeBERTa uses distances (lecture 08).
#
# ## ELMo: vectors in context
#
# Five years after word2vec came **ELMo** (Peters et al., February 2018, arXiv 1802.05365): *embeddings from language models*. A language model predicts the
# next word, and to do so well it must know what the words so far *mean together*. ELMo takes this model's inner vectors, its *hidden states*.

# %%
elmo_drawing()

# %% [markdown]
# *Left: a word is read as letters, between two signs that mark its ends, so no word is unknown. Middle: two LSTM layers read from the left, and two from the
# right. The first layers of both directions read the same word vectors; each second layer reads the first layer of its direction. Right: what a task takes,
# with one weight for each layer. Sizes as released: {{number:elmo_parameters}} parameters.*
#
# An **LSTM** reads word after word and carries a memory along, its *cells*. At each word it computes three **gates**, numbers between 0 and 1, from the word
# and from its own last output. For every cell they decide how much of the old content stays, how much new content is written, and how much is output. The
# output is the word's vector; it depends on the words so far. One more matrix, the *projection*, makes it narrower than the memory.

# %% [markdown]
# The parts, one by one:
#
# - *Character CNN*: filters of seven widths slide over the letters. Each filter keeps its largest value, and ReLU is applied. A **highway** layer is g ·
#   relu(Wx) + (1 − g) · x: its gate g decides, number by number, between a new value and the old one.
# - *Two language models*: the forward one predicts the next word, the backward one the word before. They share the character encoder and the softmax layer, but
#   nothing else. The loss is ½ (forward + backward). e to the loss is the **perplexity**: at ELMo's 39.7 the model is as unsure as if it chose among 39.7
#   equally likely words.
# - *Pre-training* needs plain text only, because the text itself holds the answers (**self-supervised**).
# - *Use*: freeze all weights. A task feeds γ · Σ s_j · layer_j into a network of its own; s is the softmax of three numbers, learned with γ. This
#   is the **feature-based** approach; BERT is **fine-tuned** instead (lecture 03).
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
#
# The first cell shows the parts, the second how they join, and the loss.

# %%
from course_lib.family.elmo import CharacterEncoder, Direction, Elmo, Highway, ProjectedLSTM, ScalarMix

show(CharacterEncoder.of_words, Highway.forward, ProjectedLSTM.step)

# %%
from course_lib.objectives.bilm import bilm_labels, bilm_loss

show(Direction.forward, Elmo.forward, ScalarMix.forward, bilm_labels, bilm_loss)

# %% [markdown]
# What does a task gain? In the paper, ELMo raises the test F1 for named entities from 90.15 to 92.22 (Table 1; F1 is the harmonic mean of precision and
# recall). On SQuAD, questions about a paragraph, the last layer alone brings 3.9 points of F1, the mean of all layers adds 0.3, and learned weights add
# another 0.2 (section 5.1). So most of the gain does not come from the mix.
#
# ### Is it right? The LSTM
#
# transformers has no ELMo. So we compare our LSTM's outputs and gradients with PyTorch's (`proj_size`; without the clipping at ±3, which
# PyTorch lacks and the paper does not mention). The tests compare the rest with an independent plain version.

# %%
torch.manual_seed(0)
lstm = ProjectedLSTM(input_size=64, cells=128, size=64).double()
reference = torch.nn.LSTM(64, 128, proj_size=64, batch_first=True).double()
reference.load_state_dict({
    "weight_ih_l0": lstm.weight_input, "weight_hh_l0": lstm.weight_hidden, "weight_hr_l0": lstm.projection,
    "bias_ih_l0": lstm.bias, "bias_hh_l0": torch.zeros_like(lstm.bias),
})  # fmt: skip
x = torch.randn(8, 20, 64, dtype=torch.float64)
outputs = lstm(x)[0], reference(x)[0]
for out in outputs:
    out.square().mean().backward()
gradient_gap = (lstm.weight_input.grad - reference.weight_ih_l0.grad).abs().max() / lstm.weight_input.grad.abs().max()
print(f"largest difference of outputs {(outputs[0] - outputs[1]).abs().max():.1e}, of gradients {gradient_gap:.1e} (float64)")

# %% [markdown]
# ### See it: two readers, one gap
#
# The course includes a small ELMo ({{number:count_parameters(micro_elmo()[0])}} parameters), trained on stories of the micro-world. Hide a word: what does
# each of its two language models expect there?

# %%
world = MicroWorld.load()
small_elmo, vocabulary = micro_elmo()
guesses_view(small_elmo, vocabulary, "first mekus rows the red bank with his friend .", word=6)

# %% [markdown]
# *One column's model has read the words before the hidden one, the other's the words after it. Move the slider: which of them knows more, and where?*
#
# Neither has read both sides, which answers the second guess. Compare three models of 2018:

# %%
three_drawing()

# %% [markdown]
# *ELMo has two chains, one from each side, that run side by side without meeting ("shallowly bidirectional"). GPT reads from the left only. In BERT every
# position reads both sides, in every layer ("deeply bidirectional").*
#
# Bidirectional LSTMs are older than all three; what BERT's paper claims is *deep* bidirectionality (its Figure 3 and Appendix A.4).
#
# ### Two banks, two vectors
#
# In the micro-world `bank` belongs to those who count and lend, or to those who row and fish. Here it is in two sentences, layer by layer:

# %%
from course_lib.text.characters import spell_sentences

pair = [words_of(text) for text in (
    "the clerk vasar finds one red bank . first she counts the bank and talks to drizi .",
    "the fisher mekus finds one red bank . first he crosses the bank and talks to hala .",
)]  # fmt: skip
with torch.no_grad():
    states = small_elmo.encoder(*spell_sentences(pair), output_hidden_states=True).hidden_states
position = 1 + pair[0].index("bank")  # <S> stands first
for number, (one, other) in enumerate(layer[:, position] for layer in states):
    columns = [" ".join(f"{value:6.2f}" for value in row[:5].tolist()) for row in (one, other)]
    print(f"layer {number}: {columns[0]} …   {columns[1]} …   cosine {cosine_similarity(one, other, dim=0):.2f}")

# %% [markdown]
# *The first numbers of both vectors, and their cosine.* Layer 0 has read only the letters, so the cosine is 1.00. **In the layers above, the two vectors
# differ: that is what *contextual* means.** (Two mentions with the same sense differ as well; we compare the two cases below.)
#
# ## Measure it: which vectors tell senses apart?
#
# Seven words of the documentation mean one thing in one package and something else in another: *kernel, key, tree, axis, field, token, root* (`kernel` is a
# process in Jupyter and a function of two points in scikit-learn). So the package serves as the (nearly exact) label of {{number:mentions}} mentions
# (occurrences). The vectors are frozen, and a **linear probe** (a linear classifier) predicts the sense from them. It is trained on half of the Python
# modules and tested on the rest. Both senses are drawn equally often, so chance level is 50%.
#
# Here we use another ELMo, which has read the documentation, like the course's BERT, but much less of it. **The two are not equals**: BERT read {{number:times_elmos('tokens'):.0f}}
# times as many tokens and is larger, so it took about {{number:times_flops():.0f}} times the training FLOPs (arithmetic operations). So we also train the same ELMo for ten times as many steps,
# {{number:equal_steps('ELMo')}}, and a BERT for as many FLOPs as this longer ELMo, {{number:equal_steps('BERT')}} steps at the better of two rates (by held-out loss).

# %%
from statistics import mean

from course_lib.lectures.lecture_01.numbers import trained_longer
from course_lib.teaching import ablation_chart

senses = read_result("01_senses")["runs"]["documentation"]["vectors"]
rows = {
    "skip-gram": ("skip-gram", "word"), "bag of the neighbours": ("bag of words", "bag"),
    "ELMo, random, layer 2": ("ELMo, random initialisation", "2"),
    **{f"ELMo, layer {layer}": ("ELMo", layer) for layer in "12"},
    "ELMo, 10× steps, layer 2": ("ELMo, longer", "2"), "BERT, equal FLOPs, layer 4": ("BERT, equal FLOPs", "4"),
    **{f"BERT, layer {layer}": ("BERT", layer) for layer in "14"},
}  # fmt: skip
senses |= {"ELMo, longer": trained_longer("ELMo"), "BERT, equal FLOPs": trained_longer("BERT")}


def by_word(name, layer, measure="probe"):
    (result,) = [entry for entry in senses[name] if entry["layer"] == layer]
    return [mean(word[measure]) for word in result["words"].values()]


ablation_chart({"seven words": {label: by_word(*name_and_layer) for label, name_and_layer in rows.items()}}, percent=True,
               title="Which sense? A linear probe on frozen vectors", x_title="accuracy")  # fmt: skip

# %% [markdown]
# *A dot is a word (the mean of three splits), a bar the mean of the seven; each network was trained once. BERT is the course's own, with four layers.*
#
# - *Static vectors* reach {{number:senses(DOCS, 'skip-gram', 'word')}}, by construction. So does ELMo's layer 0 ({{number:senses(DOCS, 'ELMo', '0')}}), which
#   has read the letters only.
# - *ELMo's* LSTM layers reach {{number:senses(DOCS, 'ELMo', '1')}} and {{number:senses(DOCS, 'ELMo', '2')}}. But the same network with *random* weights reaches
#   {{number:best(DOCS, 'ELMo, random initialisation')}}, because an LSTM mixes neighbours into a word even before it has learned anything. So most of *this*
#   ELMo's margin above chance needs no training. After ten times the steps it is otherwise: {{number:best_longer('ELMo')}}.
# - *BERT* reaches {{number:best(DOCS, 'BERT')}} in its best layer, and {{number:best(DOCS, 'BERT, random initialisation')}} with random weights. MiniLM, a
#   larger model trained to compare sentences, reaches {{number:best(DOCS, 'MiniLM')}}.
# - *A bag of words*, the other words of the sentence without any network, reaches {{number:senses(DOCS, 'bag of words', 'bag')}}; the mean of their static
#   vectors, {{number:senses(DOCS, "mean of the neighbours' PPMI vectors", 'context')}}. These senses are coarse: the words around give them away, and so may a
#   package's style.
#
# **Contextual vectors tell senses apart, a word's static vector cannot; how well they do depends on training.** At equal FLOPs, ELMo
# ({{number:best_longer('ELMo')}}) and BERT ({{number:best_longer('BERT')}}) are about level, with each other and with the bag. With
# {{number:times_flops(longer=True):.0f}} times those FLOPs, BERT is ahead of all. So to compare the chart's briefly trained ELMo with its last BERT is to compare two amounts of training,
# not an LSTM and attention. (One run each. An equal budget is not enough for a fair comparison: at twice its learning rate this BERT stays on the plateau of word
# frequencies, which lecture 03 explains, and has {{number:best_longer('BERT', max)}}.)

# %% [markdown]
# **The published ELMo's vectors hold something of fine senses.** It read a billion words ten times. On a dictionary's senses (*word sense disambiguation*) its F1 is
# 67.4 in layer 1 and 69.0 in layer 2; always taking the first sense gives 65.9, and a method made for the task 70.1 (ELMo's Table 5).
#
# **For parts of speech its *first* layer is better** (accuracy 97.3 against 96.8, Table 6). On the course's tagged sentences, layers 0, 1 and 2 of
# our ELMo reach {{number:mean(tags('0')):.1%}}, {{number:mean(tags('1')):.1%}} and {{number:mean(tags('2')):.1%}}; the most frequent tag alone has
# {{number:most_frequent_tag()}}, BERT's best layer {{number:max(map(mean, stored('01_senses')['tags']['BERT'].values())):.0%}}, MiniLM's
# {{number:max(map(mean, stored('01_senses')['tags']['MiniLM'].values())):.0%}}. (The order of layers 1 and 2 is the paper's, but the margin is tiny, and an
# ELMo with random weights shows it too. Skip-gram vectors, on the words that have one, reach {{number:mean(tags('word', 'skip-gram')):.1%}}.)

# %% [markdown]
# **In the micro-world (four of its two-sense words occur often enough) the telling words mostly stand *before* the word**, on the side that the backward
# model has not read. Given one sentence (chance level is 50% here, too),
# ELMo's layer 2 reaches {{number:senses(WORLD, 'ELMo', '2')}}; its forward half alone reaches {{number:senses(WORLD, 'ELMo', '2 forward')}},
# and its backward half {{number:senses(WORLD, 'ELMo', '2 backward')}} (with random weights
# {{number:senses(WORLD, 'ELMo, random initialisation', '2 forward')}} and
# {{number:senses(WORLD, 'ELMo, random initialisation', '2 backward')}}); a whole ELMo with random weights reaches
# {{number:best(WORLD, 'ELMo, random initialisation')}}. BERT reaches {{number:senses(WORLD, 'BERT', '4')}}, and a bag of words
# {{number:senses(WORLD, 'bag of words', 'bag')}}.

# %% [markdown]
# **A cosine means something only beside the cosine expected by chance.** On the documentation, in ELMo's layer 2, two mentions of a word with the same sense
# have a cosine of {{number:cosine('ELMo', '2', 'same')}}, with different senses {{number:cosine('ELMo', '2', 'other')}}; but two mentions of *different
# words* have {{number:cosine('ELMo', '2', 'chance')}}. In BERT's last layer the three are {{number:cosine('BERT', '4', 'same')}},
# {{number:cosine('BERT', '4', 'other')}} and {{number:cosine('BERT', '4', 'chance')}}. A network's vectors often crowd into one direction (**anisotropy**).
#
# ### See it: nearest mentions, layer by layer
#
# We index a dozen mentions for each sense of the micro-world's two-sense words, and the documentation's sentences with *kernel*. Type a text, pick a word by
# its number, and choose model and layer: which mentions have the nearest vectors?

# %%
from course_lib import load_pretrained
from course_lib.lectures.lecture_01.senses import (
    DOCUMENTATION, bert_layers, documentation_mentions, elmo_layers, two_sense_words,
)  # fmt: skip
from course_lib.lectures.lecture_01.views import some_mentions

kernels = documentation_mentions({"kernel": DOCUMENTATION["kernel"]})["kernel"]
meanings = {"kernel": [sense.meaning for sense in DOCUMENTATION["kernel"]]}
world_mentions, topics = some_mentions(world), two_sense_words(world)
course, teacher = load_pretrained("course-bert"), micro_teacher()
indexes = {
    "micro-ELMo": index_occurrences(world_mentions, topics, elmo_layers(small_elmo.encoder)),
    "micro-BERT": index_occurrences(world_mentions, topics, bert_layers(teacher.encoder, world.tokenizer)),
}
if kernels:  # where Jupyter and scikit-learn are installed
    indexes["course's BERT"] = index_occurrences(kernels, meanings, bert_layers(course.encoder, course.tokenizer))
story = "caro is a clerk . then she stamps the green seal with her friend ."
texts = dict.fromkeys(("micro-ELMo", "micro-BERT"), (story, 11))  # a text, and which of its words
layers_view(indexes, texts | {"course's BERT": ("the client sends a message to the kernel and waits for its reply", 8)})

# %% [markdown]
# *Each line is a mention: its cosine with the word that you picked, the words around it, and its sense. Where all cosines are 1.00, the order says nothing.
# Which of the two micro-world models mixes the senses? (micro-BERT, the teacher of lecture 06, has read the micro-world, the course's BERT the
# documentation.) Try* `caro is a sailor . then he hauls the green seal` *(word 10), or* `a kernel of degree two` *(word 2), and the layers in
# between.*
#
# %% [markdown]
# ## The code: three kinds from one block
#
# {{exercise:01.5}}


# %%
def my_attention(queries, keys, values, visible):
    return ...


check("01.5", my_attention)

# %% [markdown]
# The library's attention handles many heads and texts at once:

# %%
from course_lib.kernels.attention import attention_reference, attention_scores, causal_mask

show(attention_scores, attention_reference)

# %% [markdown]
# ### The block
#
# A **Transformer** (Vaswani et al., June 2017, arXiv 1706.03762) stacks blocks. Each has attention and a feed-forward network (two linear layers with a nonlinearity between), which is applied to each word by itself.

# %%
from course_lib.lectures.lecture_02.views import block_drawing

block_drawing()

# %% [markdown]
# *One of BERT's blocks. In attention the words meet; the feed-forward network changes each word by itself. After each of the two, the input is added back, and
# LayerNorm brings a vector's numbers to mean 0 and variance 1, then scales and shifts each. F is the inner width of the feed-forward network.*
#
# Three kinds of model are built of such blocks; they differ in *who may see whom*. An **encoder** reads a finished text, and each word sees all words. A
# **decoder** writes: each word sees itself and those before it. An **encoder-decoder** does both; the written words also look at the whole text that was
# read, by **cross-attention**.
#
# {{exercise:01.6}}


# %%
def my_visible(source, target, real):
    return ...


check("01.6", my_visible)

# %%
masks_view()

# %% [markdown]
# *Rows are the tokens that look, columns those that are seen. Filled squares are allowed; striped ones are cross-attention. Choose a kind (ELMo's two
# LSTMs are among them) and the token that looks.*
#
# | kind | sees | trained to | called | good for | examples |
# |---|---|---|---|---|---|
# | **encoder** | both sides | restore hidden words, or find changed ones | auto-encoding | *reading*: classify, find names, find answers | BERT, RoBERTa, ELECTRA |
# | **decoder** | itself and what stands before | predict the next word | auto-regressive | *writing* | GPT-2, GPT-3, LLaMA |
# | **encoder-decoder** | the whole source, and its own text so far | write the target text | sequence to sequence | *rewriting*: translate, summarise | the first Transformer, BART, T5 |
#
# In *the bank of the river*, at `bank`, the decoder has seen only *the bank* and cannot know which bank is meant. The encoder sees *river*. But it has learned
# to fill gaps with words on both sides, and a text that is being written has no right side yet. So BERT is used for reading. The experiment below tests
# whether an encoder *can* write.
#
# ### From BERT to GPT
#
# GPT (2018) and BERT have the same block but differ around it. GPT's mask is a triangle. Its loss asks for the next word at *every* position instead of the
# hidden words. It has no segments (which tell BERT's two input sentences apart), no LayerNorm on the embeddings and no extra layer before the softmax. GPT-2
# also moves LayerNorm before each half of the block, and adds one at the end:

# %%
from course_lib.family.gpt import CausalStack, PreNormBlock
from course_lib.family.seq2seq import CrossBlock, Seq2Seq

show(PreNormBlock.attend, PreNormBlock.apply_feed_forward, CausalStack.forward, causal_mask)

# %% [markdown]
# ### From both to an encoder-decoder
#
# BERT's encoder reads. The decoder's block has a third part between BERT's two: cross-attention. Its queries come from the text being written, its keys and
# values from the text that was read.

# %%
show(CrossBlock.read, Seq2Seq.forward)

# %% [markdown]
# The loss of the decoder and the encoder-decoder is next-token prediction: at each position, the word after it.

# %%
from course_lib.objectives.next_token import next_token_labels, next_token_loss

show(next_token_labels, next_token_loss)

# %% [markdown]
# ### Is it right?
#
# With the same weights, we compare the decoder with transformers' GPT-2 and the encoder-decoder with its BART.

# %%
from transformers.utils import logging

from course_lib.checkpoints.decoders import to_bart, to_gpt2
from course_lib.family.gpt import gpt
from course_lib.family.seq2seq import bart

logging.set_verbosity_error()  # transformers warns of so small a vocabulary
shape = {"vocab_size": 500, "hidden_size": 64, "num_heads": 4, "num_layers": 3, "intermediate_size": 256,
         "max_positions": 50, "initializer_range": 0.1}  # fmt: skip
torch.manual_seed(0)
source, target = torch.randint(500, (4, 20)), torch.randint(500, (4, 12))
decoder, encoder_decoder = gpt(**shape).eval(), bart(**shape).eval()
with torch.no_grad():
    difference = (decoder(source).logits - to_gpt2(decoder)(source).logits).abs().max()
    outputs = encoder_decoder(source, None, target, output_attentions=True)
    reference = to_bart(encoder_decoder, "eager")(input_ids=source, decoder_input_ids=target, output_attentions=True)
cross = max((a - b).abs().max() for a, b in zip(outputs.cross_attentions, reference.cross_attentions))
print(f"GPT-2: largest difference of logits {difference:.1e}")
print(f"BART:  largest difference of logits {(outputs.logits - reference.logits).abs().max():.1e}, "
      f"of cross-attention weights {cross:.1e}")  # fmt: skip

# %% [markdown]
# (The tests also compare gradients, padding and converted weights. T5, which differs from BART in positions, norms and biases, is not built here.)
#
# ## Measure it: one task, three kinds
#
# All three kinds, with the same block, width and text, now learn to *translate*. The micro-world speaks English only, so a rule makes the second language:
# every word is spelt backwards, and the sentence is read from its end. The models see numbers, not letters, so they must learn each word's translation as
# well as the order.
#
# The encoder gets the sentence and one `[MASK]` (*predict a word here*) for each word of the translation, and predicts them all at once. (So it knows the
# length.) The decoder reads the sentence and `[SEP]` (a separator), and then writes word after word. The encoder-decoder reads with one half and writes with
# the other. Each trains for 250 steps:

# %%
from course_lib.lectures.lecture_01.three_kinds import KINDS, heldout_examples, recipes, train, two_languages

both_languages = two_languages()
unseen = heldout_examples(both_languages, "translate")
kinds = {}
for kind in KINDS:
    kinds[kind] = train(recipes()[f"{kind}: translate"], steps=250)
    accuracy = kinds[kind].measure(unseen)
    print(f"{kind:16}{kinds[kind].history.seconds:4.0f} s   "
          f"accuracy: {accuracy['words']:.0%} of words, {accuracy['whole']:.0%} of whole sentences")  # fmt: skip

# %%
for example in unseen[:3]:
    print(f"{'read':16}{both_languages.text(example.source)}\n{'reference':16}{both_languages.text(example.target)}")
    for kind, model in kinds.items():
        print(f"{kind:16}{both_languages.text(model.say([example])[0])}")
    print()

# %% [markdown]
# *These sentences were not in the training data.*
#
# **All three kinds can do this task.** The next table shows longer, stored runs, three seeds each, on three tasks:
#
# - *Fill gaps*: three words are missing from two sentences; what fraction is recovered ({{number:steps_of('encoder: fill gaps')}} steps)?
# - *Continue*: write the next sentence; is it one that the micro-world could produce? (This checks grammar only: repeating the text would pass.)
# - *Translate*: as above; is the whole sentence correct? (The last two: {{number:steps_of('encoder: translate')}} steps.)

# %%
from course_lib.lectures.lecture_01.three_kinds import LEFT, MEASURES, SHOWN, STEPWISE
from course_lib.teaching.results import in_words

runs = read_result("01_three_kinds")["runs"]
print(f"{'':24}" + "".join(f"{task:>23}" for task in MEASURES))
for kind in (KINDS[0], STEPWISE, SHOWN, *KINDS[1:], LEFT):
    cells = [[run[measure] for run in runs.get(f"{kind}: {task}", [])] for task, measure in MEASURES.items()]
    print(f"{kind:24}" + "".join(f"{in_words(values) if values else '':>23}" for values in cells))
print(f"{'counting neighbours':24}{read_result('01_three_kinds')['counted']:>23.1%}")

# %% [markdown]
# *Mean and standard deviation over the seeds. "Left only": at each gap this decoder has read only the words before it, earlier gaps filled correctly. "Word
# by word": the encoder fills one `[MASK]` at a time, from the left, and reads what it has filled. "Trained for it": the same, and training shows it a random
# number of the answer's first words. "Counting neighbours": no network; it is told the two true words beside each gap.*
#
# **The encoder is best at gaps**, with {{number:kind_score('encoder', 'fill gaps', 'words')}}; the encoder-decoder, which also reads both sides, reaches
# {{number:kind_score('encoder-decoder', 'fill gaps', 'words')}}. The decoder reads the whole text before it writes the missing words, but with
# {{number:kind_score('decoder', 'fill gaps', 'words')}} it is at this learning rate hardly better than counting or than the decoder that has read the left side only
# ({{number:kind_score(LEFT, 'fill gaps', 'words')}} with earlier gaps filled correctly, {{number:kind_score(LEFT, 'fill gaps', 'own')}} with its own guesses there, as the decoder has). While it reads, no word sees what comes later; unlike the
# encoder, it does not fill each gap in its place; and it reads its own earlier guesses. The table cannot say which of these matters.

# %% [markdown]
# **Whether the encoder can write depends on its training.** The encoder that predicts all words at once reaches
# {{number:kind_score('encoder', 'continue', 'possible')}} (its seeds differ a lot), perhaps because each word is predicted without the others: they
# need not fit one another. Filling them word by word does not help a model that was not trained that way ({{number:kind_score(STEPWISE, 'continue', 'possible')}}). *Trained
# for it*, the same encoder reaches {{number:kind_score(SHOWN, 'continue', 'possible')}}. Decoder and encoder-decoder, which train that way by construction,
# reach {{number:kind_score('decoder', 'continue', 'possible')}} and {{number:kind_score('encoder-decoder', 'continue', 'possible')}}. The decoder keeps three
# advantages: it need not be told the length, it learns from every word of a text in one pass, and it reuses what it has computed while it writes.

# %% [markdown]
# **In translation the differences lie within the seeds' spread**: {{number:kind_score('encoder', 'translate', 'whole')}},
# {{number:kind_score('decoder', 'translate', 'whole')}}, {{number:kind_score('encoder-decoder', 'translate', 'whole')}}.
#
# These are two-layer models, trained on one topic's stories at one learning rate for equally many *steps*. We tried half and twice the rate with
# one seed: with half of it the decoder fills {{number:at_rate('decoder: fill gaps', 0.001)}} of the gaps, more than the left-only decoder ({{number:at_rate('decoder, left only: fill gaps', 0.001)}}) and still fewer than the encoder ({{number:at_rate('encoder: fill gaps', 0.001)}}); with twice the rate decoder and encoder-decoder lose
# most of this skill ({{number:at_rate('decoder: fill gaps', 0.004)}} and {{number:at_rate('encoder-decoder: fill gaps', 0.004)}}). The encoder-decoder has its two layers twice, so
# it has more parameters and its steps cost more. Today's large decoders do all three; this page cannot speak for their size.
#
# ## See it: the family tree
#
# Which model grew from which? Choose a model, or mark a group.

# %%
tree_view()

# %% [markdown]
# *Blue, solid: encoders; green, dashed: decoders; yellow, dotted: encoder-decoders. Underlined names have a page in this course. Dates are those of the first
# version on arXiv, where there is one.*
#
# - *BERT, GPT, BART and T5.* From the Transformer of 2017, GPT (June 2018) took the decoder and BERT (October 2018) the encoder; T5 and BART (both October
#   2019) kept both halves. BART's encoder reads a damaged text, and its decoder writes the whole text. T5's decoder writes only what was taken out; T5 also
#   phrases every task as text.
# - *Between the kinds*: XLNet (June 2019) predicts the words of a text one after the other, as a decoder does, but in a random order, so that over many orders
#   each word is predicted from both sides.
# - *Sesame Street.* Mark that group: ELMo, BERT, two unrelated models named ERNIE (lecture 09), and Big Bird, whose sparse attention allows long texts.
# - *Dates*: an arXiv number begins with year and month, so you can check a date yourself.
#
# ### The road so far
#
# | step | what was new | what was missing |
# |---|---|---|
# | word2vec (2013) | a vector for each word, learned from raw text | one vector for all senses |
# | RNN, LSTM, GRU | a state handed from word to word: order, context | long distances; one word after the other, so slow |
# | attention between encoder and decoder | the writer looks back at every word read | still an RNN on both sides |
# | Transformer (2017) | attention instead of recurrence; all positions at once | each task still trained its own model from random weights |
# | ELMo (2018) | vectors in context, from language models | two one-sided readers; a new network for each task |
# | GPT, BERT (2018), T5, BART (2019) | one pre-trained Transformer for many tasks | it fills in or continues text, it does not follow instructions |
# | alignment (InstructGPT 2022, ChatGPT) | supervised fine-tuning (SFT) on answers, then feedback by people (RLHF) | text only |
# | multimodal models (GPT-4, 2023) | images beside text | training to think step by step |
# | reasoning models (DeepSeek-R1, 2025) | trained by reinforcement learning to reason | still open |
#
# ### Why BERT changed things
#
# Words got vectors *in context* (this page), computed from *both sides in every layer* (lecture 02). One pre-trained **encoder became the standard** start for
# understanding tasks, with a small head on top (lecture 03): pre-train once, fine-tune often.

# %%
print(f"{'':26}{'your guess':>14}   answer")
answers = {"nearest to kernel": "a mixture of both, often one sense first", "sees the whole sentence": "no, neither",
           "from BERT to GPT": "mask and loss; drop segments and a LayerNorm"}  # fmt: skip
for name, value in answers.items():
    print(f"{name:26}{str(my_guesses[name]).replace('Ellipsis', '–'):>14}   {value}")

# %% [markdown]
# ## What they claim, what you measured
#
# Each line was checked by code that ran just now, by a stored result or, where neither is possible, by a source.

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
# - Lewis et al. (2019), *BART*, arXiv 1910.13461: Figure 1 shows the three kinds side by side.
