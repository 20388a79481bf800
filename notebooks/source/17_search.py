# ---
# jupyter:
#   jupytext:
#     cell_metadata_filter: tags,slideshow,-all
#     text_representation:
#       extension: .py
#       format_name: percent
# ---

# %% [markdown]
# # Sentence embeddings: one vector a text, and how to find it again
#
# **Lecture 17** · {{duration}} · {{colab}}
#
# After this page you can
#
# - say why BERT's own vectors search badly, and what a contrastive loss changes;
# - train a small search model on pairs that need no labelling;
# - distinguish a bi-encoder, a cross-encoder and late interaction, and say what each costs;
# - compute recall, MRR and nDCG by hand, and choose the baseline that a sceptic would ask for;
# - shorten vectors, quantise them, and say what is lost.
#
# You need the encoder of lecture 02. Nothing is downloaded.
#
# {{parts}}

# %%
import warnings

import torch
import torch.nn.functional as F

from course_lib import (
    BM25, SentenceEncoder, VectorIndex, check, claims_table, hint, info_nce_loss, load_pretrained, quiz, reveal, show,
)  # fmt: skip
from course_lib.lectures.lecture_17 import search
from course_lib.lectures.lecture_17.pairs import slice_pairs
from course_lib.lectures.lecture_17.views import cosines_chart, course_table, shared_words_chart, sizes_chart, trials_table, ways_table

warnings.filterwarnings("ignore", message=".*positions: .* tokens were left out.*")  # long documents are cut on purpose

# %% [markdown]
# ## Predict first
#
# We build a search engine for documentation: a sentence goes in, and the correct text should come out first. Every docstring gives us an example for free: its **first sentence is the query**, and the rest is the **document** to be found among some 1,500 others.
#
# Three guesses before you go on.
#
# 1. BERT reads the query and every document, each text becomes the mean of its vectors, and the nearest document wins. The rival is BM25, a formula from 1994 that counts shared words. Which finds more?
# 2. We train BERT for a few minutes on pairs of query and document. Does it overtake BM25 on modules it has never seen? And on whole *packages* it has never seen?
# 3. BM25 is combined with a weaker model. Is the result better than BM25 alone, or worse?

# %%
my_guesses = {"untrained": ..., "known packages": ..., "new packages": ..., "together": ...}

# %% [markdown]
# ## By hand
#
# ### How good is a ranking?
#
# A query has one relevant document, and the search returns a list of ten. Suppose the relevant one is at rank 3.
#
# - *recall@10* is 1, because the document is in the list.
# - *reciprocal rank* is 1/3; its mean over all queries is **MRR**.
# - *nDCG@10* (normalised discounted cumulative gain) is 1/log₂(1 + 3) = 0.5. (With several relevant documents each adds its own term, and the sum is divided by that of the best possible order.)
#
# What if all 1,500 documents get the *same* score? A program that only counts documents with a *larger* score gives every document rank 1, and a broken model looks perfect. We take the mean over all orders of equal scores.

# %% tags=["nbval-check-output"]
scores = torch.tensor([[0.9, 0.2, 0.1], [0.8, 0.1, 0.3], [0.5, 0.5, 0.5]])  # row n: query n; its document is column n
print([round(float(x), 3) for x in search.ndcg(scores)])

# %% [markdown]
# The first query finds its document at rank 1, the second at rank 3. The third has three equal scores, so its value is the mean of 1, 0.631 and 0.5.
#
# ### Attract your own, repel the others
#
# Take a batch of four pairs and compare each query with all four documents: a 4×4 table of cosines. In every row the correct entry is on the diagonal. So each row is a **classification among the texts of the batch**, and its loss is a cross-entropy, called *InfoNCE*. The other documents are *negatives*; they need no labels.
#
# Cosines lie between −1 and 1, and a softmax over such numbers is nearly flat. So we first divide them by a *temperature*, here 0.05.

# %% tags=["nbval-check-output"]
cosines = torch.tensor([[0.6, 0.5], [0.1, 0.3]])
for temperature in (1.0, 0.05):
    probabilities = (cosines / temperature).softmax(dim=1).diagonal()
    print(f"temperature {temperature}: P(correct) {[round(p, 3) for p in probabilities.tolist()]}, "
          f"loss {-probabilities.log().mean():.3f}")

# %% [markdown]
# With two pairs, a uniform guess gives a loss of ln 2 = 0.69; with four pairs it is ln 4 = {{number:chance_loss}}.
#
# ## Try it
#
# You will write six functions: one here, the others in the sections they belong to. The check names the mistake in a wrong answer; `hint("17.1")` helps one step at a time, and `reveal("17.1")` shows a solution. No later cell needs your answers.
#
# {{exercise:17.1}}


# %%
def my_info_nce(queries, documents, temperature):
    return ...


check("17.1", my_info_nce)

# %% [markdown]
# ## The code
#
# ### Three ways to compare two texts
#
# | | what is compared | what can be precomputed | cost of a query among N documents |
# |---|---|---|---|
# | **bi-encoder** | one vector per text, by dot product | all documents | one text through the model, N dot products |
# | **late interaction** (ColBERT) | one vector per *token*; each query token takes its best match (*MaxSim*) | all documents, with one vector per token (ColBERT shortens and compresses them) | one text through the model, N times some thousand dot products |
# | **cross-encoder** | both texts in one input, with [SEP] between | nothing | N texts through the model |
#
# So a cross-encoder reads only the first 50 or so documents that a cheaper method found. The stored results below compare all three; on the page itself you train a simpler bi-encoder, a table of token vectors. Here is the encoder:

# %%
show(SentenceEncoder.forward)

# %% [markdown]
# The loss normalises both sides and calls a cross-entropy that never holds the whole table of scores. With `symmetric=True` every document must also find its query.

# %%
show(info_nce_loss)

# %% [markdown]
# ### More negatives than memory
#
# The more texts a batch has, the harder the task and, usually, the better the vectors. But gradients of *parts* of a batch do not add up to that of the whole, because a part's texts are compared only with each other. *GradCache* (Gao et al. 2021) solves this: encode everything without a graph; compute the gradient of the loss with respect to the *vectors*; then encode each chunk again and backpropagate its vectors' gradient.

# %%
from course_lib.kernels.contrastive import backward_in_chunks

show(backward_in_chunks)

# %% [markdown]
# ## Is it right?
#
# The tests compare our losses and gradients with those of sentence-transformers 6.2, with and without *hard negatives* (similar wrong documents), in one direction and in both, and find them equal within 10⁻⁶. (For both directions, set `partition_mode="per_direction"` there; its default is another loss.) Three checks run here: random vectors have the chance loss; gradients in chunks equal the plain ones; MaxSim in chunks equals plain MaxSim.

# %% tags=["nbval-check-output"]
from course_lib.kernels.maxsim import maxsim, maxsim_reference

generator = torch.Generator().manual_seed(0)
query, document = (torch.randn(64, 512, generator=generator) for _ in range(2))
print(f"random vectors, temperature 1: {info_nce_loss(query, document, temperature=1.0):.2f}, a uniform guess {torch.tensor(64.0).log():.2f}")

torch.manual_seed(0)
layer = torch.nn.Linear(512, 16).double()
sides = [query.double().split(10), document.double().split(10)]


def loss_of(a, b):
    return info_nce_loss(a, b, temperature=0.05)


loss_of(layer(query.double()), layer(document.double())).backward()
plain = layer.weight.grad.clone()
layer.weight.grad = None
backward_in_chunks(layer, sides, loss_of)
print("gradients in chunks agree:", torch.allclose(layer.weight.grad, plain))

tokens = F.normalize(torch.randn(6, 9, 32, generator=generator), dim=-1)
mask = (torch.arange(9) < torch.tensor([[9], [4], [1], [7], [2], [5]])).long()
together = maxsim(tokens[:3], tokens, mask[:3], mask), maxsim_reference(tokens[:3], tokens, mask[:3], mask)
print("MaxSim agrees:", torch.allclose(*together, atol=1e-5))

# %% [markdown]
# ## See it
#
# ### Why BERT's own vectors search badly
#
# We take one document from each module and compare each with the next one in the list. They have little in common, so good vectors should give cosines near zero.

# %%
train, unseen = slice_pairs("train"), slice_pairs("modules")
print(f"{len(train):,} training pairs, {len(unseen)} of other modules:", train.pairs[0].query, "->", train.pairs[0].document[:60], "…")

start = load_pretrained("course-bert")
texts = list({pair.module: pair.document for pair in unseen.pairs}.values())[:200]  # one of each module
vectors = {
    "[CLS]": SentenceEncoder(start.encoder, start.tokenizer, "cls", length=128).encode(texts),
    "mean": SentenceEncoder(start.encoder, start.tokenizer, "mean", length=128).encode(texts),
}
vectors["mean, centred"] = vectors["mean"] - vectors["mean"].mean(dim=0)
cosines_chart(vectors)

# %% [markdown]
# *Each dot is a pair of documents from two modules, each bar a mean. With [CLS] or the mean of all tokens, nearly all look alike. Subtracting their common part brings the average close to 0, as it must; the cosines now spread to both sides.*
#
# Vectors that all point in similar directions are called **anisotropic**. Their common part says nothing about a text. Predicting masked words never required BERT to keep different texts apart. But centring alone helps little: below, it lifts the mean from {{number:mean_of('mean', 'modules')}} to {{number:mean_of('mean, centred', 'modules')}}, and BM25 has {{number:mean_of('BM25', 'modules')}}. Most of the distance has another cause, probably that nothing in the pre-training compares two texts.
#
# ### A first success, in seconds
#
# The *token table* has no encoder: a text is the weighted mean of its tokens' vectors. It starts from course-bert's token embeddings, weighted by how rare each token is; InfoNCE trains vectors and weights. It knows no word order and no context, but it learns while you wait.

# %%
from course_lib.lectures.lecture_17.live import LiveSearch

live = LiveSearch(train, unseen)
print(f"a random order: nDCG@10 {live.chance:.3f}")
print(f"token table, untrained: {live.table():.3f}")
live.train(steps=60)
print(f"token table, trained:   {live.table():.3f}")
print(f"BM25:                   {live.words():.3f}")

# %% [markdown]
# **Training a bag of token vectors helps at once, but BM25 is still ahead.** (The stored results below have more training pairs and other test documents, so their numbers differ.) Look at what each of them finds and misses. For each document we print the first sentence of its docstring, which the search has not read:

# %%
for question in ("sort numbers", "how likely is an outcome", "open a file that is compressed"):
    print(question)
    for name, ranking in live.search(question).items():
        print(f"   {name:12}", " | ".join(text[:60] for text in ranking))

# %% [markdown]
# *Change the questions to your own and run the cell again.*
#
# ### Words: BM25
#
# A document scores for each query word that it contains: more if the word is rare (*idf*), more if it occurs several times (but the tenth time adds little), less if the document is long. Words are cut to their stems; *stop words* (the, of) are left out.
#
# {{exercise:17.2}}


# %%
def my_bm25(query, documents, k1, b):
    return ...


check("17.2", my_bm25)

# %% [markdown]
# Next, the measure from *By hand*:
#
# {{exercise:17.3}}


# %%
def my_ndcg(relevant, ranking, k):
    return ...


check("17.3", my_ndcg)

# %% [markdown]
# ## Measure it
#
# The {{number:queries('train')}} training pairs come from the packages on which course-bert was pre-trained. There are two tests: {{number:queries('modules')}} queries from **unseen modules of known packages**, and {{number:queries('packages')}} from **packages that no training here ever read**. Learning rates and mixing weights are chosen on {{number:queries('dev')}} training pairs set aside. Trained models have three seeds, but the encoder from random weights has one. (The results are stored; `python -m course_lib.teaching.results 17` makes them in {{number:cpu_hours('17_search')}} hours on one core, the choice of learning rates not counted.) BM25 reads whole documents, the models their first 128 tokens, in training 64. A second document that would also answer counts as wrong.

# %%
ways_table()

# %% [markdown]
# *nDCG@10 on unseen modules and on unseen packages, mean ± standard deviation over seeds (chance in the choice of queries is not in it). The second column gives the training steps. "Fused": with BM25, by ranks (reciprocal rank fusion). "Mix": with BM25's scores, both brought to mean 0 and standard deviation 1; the weight is chosen on queries of known packages. A random order has .003, a perfect one 1.*
#
# - **Untrained BERT (only pre-trained) loses**, the first guess: {{number:mean_of('mean', 'modules')}} with the mean and {{number:mean_of('[CLS]', 'modules')}} with [CLS], against BM25's {{number:mean_of('BM25', 'modules')}}.
# - **Training pays, but does not overtake BM25**, the second guess: the bi-encoder rises from {{number:mean_of('mean', 'modules')}} to {{number:mean_of('bi-encoder', 'modules')}} on unseen modules and from {{number:mean_of('mean', 'packages')}} to {{number:mean_of('bi-encoder', 'packages')}} on unseen packages. From random weights the same steps reach only {{number:mean_of('bi-encoder from nothing', 'modules')}} and {{number:mean_of('bi-encoder from nothing', 'packages')}} (one seed; its loss is still falling).
# - **New packages are harder for all**: BM25 falls to {{number:mean_of('BM25', 'packages')}}, by a smaller fraction than any model trained here. A token table, trained in seconds on thirteen times as many pairs (repeats included) in larger batches, is level with the bi-encoder on unseen modules ({{number:mean_of('token table', 'modules')}}) and ahead on new packages ({{number:mean_of('token table', 'packages')}}): probably part of what the encoder learned belongs to its packages. MiniLM, which others trained on a billion pairs (perhaps these docstrings among them), is slightly ahead of BM25, on new packages perhaps by chance: {{number:mean_of('MiniLM', 'modules')}} and {{number:mean_of('MiniLM', 'packages')}}.
# - **A vector per token keeps more than a vector per text**: MaxSim reaches {{number:mean_of('MaxSim, trained', 'modules')}} and {{number:mean_of('MaxSim, trained', 'packages')}}, {{number:beside('MaxSim, trained', 'bi-encoder', 'packages')}} compared with the bi-encoder on unseen packages. Even untrained it has {{number:mean_of('MaxSim, untrained', 'packages')}}. (Before you trust another library's reranker, give it the right document *last*: rerankers 0.10.0 with a PyLate model never moves it.)
#
# ### Late interaction
#
# In MaxSim each query token takes its best match among the document's tokens, and the matches are added up.
#
# {{exercise:17.4}}


# %%
def my_maxsim(query, documents, query_mask, document_mask):
    return ...


check("17.4", my_maxsim)

# %% [markdown]
# ### Where each method wins

# %%
shared_words_chart()

# %% [markdown]
# *Unseen packages. To the right, query and document share more words; bands show the range over seeds.* Without a shared word BM25 finds nothing by construction, and many such queries may have no recognisable answer. So look at queries with **at most one** shared word: BM25 {{number:figure(where_few_words('BM25', 'packages'))}}, TF-IDF {{number:figure(where_few_words('TF-IDF', 'packages'))}}, bi-encoder {{number:figure(where_few_words('bi-encoder', 'packages'))}}, MiniLM {{number:figure(where_few_words('MiniLM', 'packages'))}}. With three or more, for BM25, bi-encoder and MiniLM: {{number:figure(where_many_words('BM25', 'packages'))}}, {{number:figure(where_many_words('bi-encoder', 'packages'))}} and {{number:figure(where_many_words('MiniLM', 'packages'))}}. **With at most one shared word all vectors in the chart beat BM25; from three words on, BM25 wins.** For our small encoder much of the lead is BM25's own weakness, since TF-IDF, which also counts words, has more than half of it. Still, each finds what the other misses; that is why both are used together.
#
# ### Together
#
# In a fusion by ranks, a weak partner counts as much as a strong one. Fused with the bi-encoder, BM25 loses on unseen packages ({{number:beside('bi-encoder', 'BM25', 'packages', 'fused')}}) and gains on unseen modules, where the partner is better ({{number:beside('bi-encoder', 'BM25', 'modules', 'fused')}}). A mix of scores, with a weight chosen on other queries, gains on both: {{number:beside('bi-encoder', 'BM25', 'packages', 'mix')}} and {{number:beside('bi-encoder', 'BM25', 'modules', 'mix')}}. (With untrained BERT, the zero line of a mix, it gains {{number:beside('mean', 'BM25', 'packages', 'mix')}} and {{number:beside('mean', 'BM25', 'modules', 'mix')}}.) That settles the third guess: **it depends on how you combine them, and on how weak the partner is.** (Measure with lists of equal length: sentence-transformers 6.2.0 evaluates a fusion as if each list that stops early went on with all relevant documents.)
#
# {{exercise:17.5}}


# %%
def my_mix(first, second, weight):
    return ...


check("17.5", my_mix)

# %% [markdown]
# ### What else might help
#
# We tried these next, by the rules above:
#
# - **Hard negatives**: each step also compares every query with one of BM25's twenty best wrong documents.
# - **A newer start**: course-modernbert instead of course-bert.
# - **SimCSE** (Gao, Yao and Chen 2021) needs no queries: a document is encoded twice, with different dropout, and must find itself.
# - **A cross-encoder** reads a query and a document together, as one input, and puts BM25's first {{number:CANDIDATES}} documents in a new order. It is slow, {{number:cross_seconds():.1f}} seconds of one core per query, so only every third query is asked. It trains for 1,200 steps, at the learning rate that was best of three after 300 steps, with two seeds.
# - **Code** is another task: the query is the first sentence of a function's docstring, the document its code, without the docstring.

# %%
trials_table()

# %% [markdown]
# *As above: nDCG@10, alone and mixed with BM25. The first two rows repeat the table above; "a third": of the queries. "BM25, 128 tokens" reads no more of a document than the encoders do.*
#
# - **Hard negatives change little here**: {{number:mean_of('hard negatives', 'modules')}} and {{number:mean_of('hard negatives', 'packages')}}, without them {{number:mean_of('bi-encoder', 'modules')}} and {{number:mean_of('bi-encoder', 'packages')}}. Perhaps the random ones of a batch of 64 are hard enough for so few steps; we did not train for longer.
# - **The newer start helps**: {{number:beside('from course-modernbert', 'bi-encoder', 'modules')}} and {{number:beside('from course-modernbert', 'bi-encoder', 'packages')}} compared with the bi-encoder, after the same 120 steps. Both checkpoints were pre-trained on the same text for equal FLOPs (page 16). Mixed with BM25 little of that is left on unseen modules and nothing on unseen packages: {{number:mean_of('from course-modernbert', 'modules', 'mix')}} and {{number:mean_of('from course-modernbert', 'packages', 'mix')}}, against {{number:mean_of('bi-encoder', 'modules', 'mix')}} and {{number:mean_of('bi-encoder', 'packages', 'mix')}}.
# - **SimCSE** improves on the untrained mean ({{number:mean_of('mean', 'modules')}} and {{number:mean_of('mean', 'packages')}}) and stays behind training on pairs: {{number:mean_of('SimCSE', 'modules')}} and {{number:mean_of('SimCSE', 'packages')}}.
# - **Reading more is not what keeps BM25 ahead**: cut to the encoders' 128 tokens, it has {{number:mean_of('BM25, 128 tokens', 'modules')}} and {{number:mean_of('BM25, 128 tokens', 'packages')}}. Only trained MaxSim is level with that, on unseen modules.
# - **The cross-encoder learns slowly.** BM25's first {{number:CANDIDATES}} documents all share words with the query, so it probably must learn a finer comparison. Its loss, with one correct document and three wrong ones, begins at ln 4 = {{number:chance_loss}} and ends at {{number:cross_loss():.2f}}. Its own order is worse than BM25's. A mix of both gains {{number:beside(CROSS, 'BM25, a third', 'modules', 'mix')}} and {{number:beside(CROSS, 'BM25, a third', 'packages', 'mix')}}; with the untrained cross-encoder, {{number:beside(UNTRAINED, 'BM25, a third', 'modules', 'mix')}} and {{number:beside(UNTRAINED, 'BM25, a third', 'packages', 'mix')}}.
# - **On code, MiniLM wins**: it has {{number:beside('code: MiniLM', 'code: BM25', 'modules')}} and {{number:beside('code: MiniLM', 'code: BM25', 'packages')}} compared with BM25. (Its billion training pairs, by its authors' list, include code with descriptions.) Our bi-encoder, trained in minutes, is level with BM25 on unseen modules and behind on unseen packages; mixed with it, {{number:beside('code: bi-encoder', 'code: BM25', 'modules', 'mix')}} and {{number:beside('code: bi-encoder', 'code: BM25', 'packages', 'mix')}} (untrained BERT in the mix: {{number:beside('code: untrained', 'code: BM25', 'modules', 'mix')}} and {{number:beside('code: untrained', 'code: BM25', 'packages', 'mix')}}).
#
# **Nothing that we trained beats BM25 by itself on unseen packages. In a mix, vectors add more on code than on text.**
#
# %% [markdown]
# ### Shorter vectors
#
# A vector's first numbers can be trained to be useful by themselves. In *Matryoshka* training the loss is the sum of the losses for the first 16, 32, 64 … numbers.

# %%
sizes_chart()

# %% [markdown]
# *nDCG@10 of the token table on unseen modules, by how many numbers of each vector are kept; bands show the range over seeds.* With 32 of 256 numbers the table trained for it keeps {{number:at_size('Matryoshka table', 32, 'modules')}} of {{number:at_size('Matryoshka table', 256, 'modules')}}, the other {{number:at_size('token table', 32, 'modules')}} of {{number:at_size('token table', 256, 'modules')}}. (Each has its own best learning rate; we did not try PCA.)
#
# ### Smaller numbers
#
# A million documents of 256 float32 numbers take 1 GB. One byte per number takes a quarter of that, one *bit* 1/32. Scoring a short list again with the exact vectors (*rescoring*) recovers most of the loss; the exact vectors must then be kept as well, for example on disk.

# %%
from course_lib.train.searching import QuantisedIndex

exact = live.index
truth = exact.search(live.queries, k=10)


def recall(rankings):
    return sum(len(set(a) & set(b)) for a, b in zip(truth, rankings)) / sum(map(len, truth))


print(f"{'':28}{'bytes':>10}   recall@10 against exact search")
print(f"{'float32':28}{exact.nbytes:10,}   {recall(truth):.2f}")
for bits, name in ((8, "8 bits per number"), (1, "1 bit per number")):
    index = QuantisedIndex(exact.vectors, exact.ids, bits=bits)
    print(f"{name:28}{index.nbytes:10,}   {recall(index.search(live.queries, k=10)):.2f}")
    print(f"{'   the first 50 rescored':28}{'+ float32':>10}   {recall(index.search(live.queries, k=10, candidates=50)):.2f}")

# %% [markdown]
# With millions of documents you no longer compare the query with all. The index HNSW walks a graph of neighbours towards the query (`from course_lib.train.searching import HnswIndex`, after `pip install usearch`). It is fast because it is *not* exact. On 10,000 random vectors of 64 numbers, a hard case, hnswlib, faiss and usearch found 35, 65 and 82% of the true ten nearest at their default settings; a larger search effort finds more. So measure the recall of your index.
#
# {{exercise:17.6}}


# %%
def my_codes(vectors, query):
    return ...


check("17.6", my_codes)

# %% [markdown]
# ### Searching this course
#
# `python -m course_lib.search "your question"` finds the page and section of this course that answer a question. Its ranking is BM25, over the sections of all pages and of the README. Would vectors do better? The quiz questions of all lectures make a labelled set: they are not in the index, and each belongs to one page. For {{number:questions_on_course('sections')}} of them, from five lectures, we also noted which sections answer them, before we looked at any ranking. The models read a section in pieces of {{number:PIECE}} words; its best piece counts. The weight of a mix is chosen on the questions for review.

# %%
from course_lib.search import search as search_course

try:
    for section in search_course("How can a large batch be trained with little memory?", 2):
        print(section)
except FileNotFoundError as missing:  # where only the package is installed
    print(missing)

course_table()

# %% [markdown]
# *nDCG@10 of {{number:questions_on_course('quiz')}} quiz questions for their page, and of {{number:questions_on_course('sections')}} of them for the section; alone, and mixed with BM25. The last columns give the gain of the mix on sections, and its 95% interval (bootstrap over questions).*
#
# **No encoder beats BM25 by itself here, and our mixes do not show that meaning helps.** On sections BM25 by pieces, mixed with BM25 by sections, gains {{number:on_course('BM25, piece by piece', 'sections', 'mix', 'gain')}}, our bi-encoder {{number:on_course('bi-encoder', 'sections', 'mix', 'gain')}}, and course-bert before any training on pairs ("mean") {{number:on_course('mean', 'sections', 'mix', 'gain')}}. With {{number:questions_on_course('sections')}} questions the differences between these gains are within chance. MiniLM gains most, {{number:on_course('MiniLM', 'sections', 'mix', 'gain')}}, and {{number:on_course('MiniLM', 'quiz', 'mix', 'gain')}} on pages, where BM25 by pieces gains nothing. The questions were written by the authors of the pages, in the words of the pages, which suits a search by words. Ask a question in your own words, and look at what the search misses.
#
# ### Where it breaks
#
# Each error says what is wrong and what to do.

# %%
wrong = {
    "an empty query": lambda: BM25(["sort a list"]).search([" "]),
    "an empty corpus": lambda: BM25([]),
    "one id twice": lambda: BM25(["sort", "open"], ids=["a", "a"]),
    "vectors of another model": lambda: VectorIndex(torch.ones(3, 8)).search(torch.ones(1, 4)),
}
for what, attempt in wrong.items():
    try:
        attempt()
    except ValueError as error:
        print(f"{what}: {error}")

# %% [markdown]
# Six traps raise no error:
#
# - *Half a batch has a smaller loss.* Negatives stay within a part, so losses and gradients of parts do not add up.
# - *Padding can win.* MaxSim takes a maximum; if all real tokens have negative products, a padded row of zeros has the largest product. Ours is masked.
# - *Evaluation libraries differ.* torchmetrics 1.9.0 counts a relevant document with a score of 0 or less as irrelevant in MRR, recall and precision. ir_measures 0.4.3 gives one ranking of four equal scores RR 0.25 and RR@10 1.0 in the same call. torchmetrics' BERTScore compares other pairs than you gave it when the texts differ in length, and its classifiers' metrics decide batch by batch whether they read logits or probabilities.
# - *The first word goes with the prompt.* If sentence-transformers 6.2.0 leaves a prompt such as "query: " out of the mean (`include_prompt=False`), a byte-level BPE model (RoBERTa, ModernBERT) loses the first token of each text as well.
# - *Mined negatives can be old, or the query itself.* With a `cache_folder`, `mine_hard_negatives` of sentence-transformers 6.2.0 goes on using the vectors from before your training. And if your pairs come in both orders, each query's best "negative" is the query.
# - *No duplicates, but batches of one.* If many pairs share a text, the no-duplicates sampler of sentence-transformers 6.2.0 runs out of other pairs and ends in batches of a single pair. Its in-batch loss is exactly 0, and the epoch stops before all pairs were read.
#
# ## What they claim, what you measured
#
# Each row was checked by code that ran just now, by stored results or, where neither is possible, by a source.

# %%
claims_table("17")

# %% [markdown]
# ## More exercises
#
# To go further, make the **cross-encoder** better: start from `course-modernbert`, train it longer, or let it learn from random wrong documents first. (`TRIALS`, `fit_trial` and `reranked` are in `course_lib.lectures.lecture_17.more`.) What does it gain on unseen packages, and what does a query cost?
#
# You can save an encoder as a folder that sentence-transformers (6.2) and fastembed read, with the same vectors:
#
# ```python
# encoder = SentenceEncoder(start.encoder, start.tokenizer, length=128)
# encoder.save_folder("my-search-model")  # SentenceTransformer("my-search-model") reads it
# ```

# %% [markdown]
# ## Quiz

# %%
quiz("17")

# %% [markdown]
# ## Questions for review
#
# {{review:17}}

# %% [markdown]
# ## Read on
#
# - Reimers and Gurevych (2019), *Sentence-BERT*, arXiv 1908.10084: two texts through one BERT, a classifier on (u, v, |u − v|), and [CLS] alone, worse than averaged GloVe.
# - Gao, Yao and Chen (2021), *SimCSE*, arXiv 2104.08821: two dropout masks of one sentence as a pair; anisotropy.
# - Karpukhin et al. (2020), *Dense Passage Retrieval*, arXiv 2004.04906: in-batch negatives, and BM25's best wrong ones.
# - Khattab and Zaharia (2020), *ColBERT*, arXiv 2004.12832: late interaction.
# - Kusupati et al. (2022), *Matryoshka Representation Learning*, arXiv 2205.13147; Gao et al. (2021), arXiv 2101.06983, for gradients in chunks.
# - Thakur et al. (2021), *BEIR*, arXiv 2104.08663: eighteen data sets on which the models were not trained. BM25 is a strong baseline there, too.
