#!/usr/bin/env bash
# sentence-transformers 6.2.0 (ReciprocalRankFusionEvaluator; the "Base" figures of CrossEncoderRerankingEvaluator)
# with torch 2.13.0
#
# One would guess: a relevant document that a retriever does not return counts as not found, so a list with one of
# five relevant documents at its top has MAP 0.2 and nDCG@10 0.34, and a list that is cut shorter is never better.
# What happens: the relevant documents that are missing are put right behind the end of the list, as if they had
# been found there. A list of nothing but one relevant document has MAP 1.0 and nDCG@10 1.0: the other four take
# ranks 2 to 5. Below, one dense ranking has nDCG@10 0.38 with 20 documents a query, and 0.57 cut to its first 5,
# where the true figure falls from 0.38 to 0.25. A keyword search that returns one to three documents, one of them
# relevant, has 0.86 instead of 0.28. The fused list is longer, so fusion seems to lose against it (0.49, "Gain vs
# Sparse" -0.36), and is in truth the best of the three (0.49 against 0.38 and 0.28). A list with no relevant
# document at all does count as 0. With k or more documents a query nDCG@k is right, so a trial with 100 shows
# nothing; MAP is too high for lists of any length.
# CrossEncoderRerankingEvaluator does the same for its "Base" of samples with "documents". (Its open pull request
# 4054 of September 2026 takes this as the intended cap of the base, and asks for it in the reranked figure, too.)
# Who is hurt: whoever decides on hybrid search with it: sparse retrievers (BM25, SPLADE with few active words) do
# return few documents, and look better than dense ones and than the fusion. Retrievers with a threshold, too.
# What to do instead: write the lists as runs and measure them with pytrec_eval or ir_measures; or fill each list
# up to k with documents that are not relevant.
set -euo pipefail
tmp=$(mktemp -d)
trap 'rm -rf "$tmp"' EXIT
python3 -m venv "$tmp/venv"
"$tmp/venv/bin/pip" install -q torch==2.13.0 sentence-transformers==6.2.0 transformers==5.23.0
cd "$tmp"
HF_HUB_OFFLINE=1 HF_HOME="$tmp/hf" OMP_NUM_THREADS=1 "$tmp/venv/bin/python" - <<'PY' 2>"$tmp/err" || { tail -3 "$tmp/err"; exit 1; }
import random
import sys
from math import log2

from sentence_transformers.sparse_encoder.evaluation import ReciprocalRankFusionEvaluator

QUERIES, RELEVANT, K = 200, 5, 10
draw = random.Random(0)


def lists(query):
    """Of one query: relevant documents; a dense list of 20; the few that hold the query's word."""
    relevant = [f"q{query} relevant {i}" for i in range(RELEVANT)]
    others = [f"q{query} other {i}" for i in range(16)]
    dense = draw.sample(others, 16)
    for document in relevant[:4]:  # the fifth is not found
        dense.insert(draw.randrange(0, 15), document)
    sparse = [draw.choice(relevant), *draw.sample(others, draw.randrange(0, 3))]
    draw.shuffle(sparse)
    return relevant, dense, sparse


def ndcg(relevant, documents):
    """What trec_eval says: only documents in the list count, of all that are relevant."""
    gains = sum(1 / log2(rank + 1) for rank, text in enumerate(documents[:K], 1) if text in relevant)
    return gains / sum(1 / log2(rank + 1) for rank in range(1, min(len(relevant), K) + 1))


def average_precision(relevant, documents):
    ranks = [rank for rank, text in enumerate(documents, 1) if text in relevant]
    return sum(found / rank for found, rank in enumerate(ranks, 1)) / len(relevant)


def fused(dense, sparse):
    score = {}
    for documents in (dense, sparse):
        for rank, text in enumerate(documents, 1):
            score[text] = score.get(text, 0) + 1 / (60 + rank)
    return sorted(score, key=score.get, reverse=True)


def compare(cases):
    """nDCG and MAP of dense, sparse and fused lists: by the evaluator, and true."""
    dense, sparse = (
        [{"query_id": str(i), "query": f"q{i}", "positive": case[0], "documents": case[at]}
         for i, case in enumerate(cases)] for at in (1, 2)
    )  # fmt: skip
    said = ReciprocalRankFusionEvaluator(dense, sparse, at_k=K, write_csv=False)()
    out = {}
    for name, prefix, documents in (
        ("dense", "dense_", lambda case: case[1]), ("sparse", "sparse_", lambda case: case[2]),
        ("fused", "", lambda case: fused(*case[1:])),
    ):  # fmt: skip
        true = [sum(measure(case[0], documents(case)) for case in cases) / len(cases)
                for measure in (ndcg, average_precision)]  # fmt: skip
        out[name] = float(said[f"{prefix}ndcg@{K}"]), true[0], float(said[f"{prefix}map"]), true[1]
    return out


one = compare([(["a", "b", "c", "d", "e"], ["a"], ["a"])])["dense"]
print("a list of one of five relevant documents: nDCG %.2f, true %.2f; MAP %.2f, true %.2f" % one)
cases = [lists(query) for query in range(QUERIES)]
seen = compare(cases)
for name, figures in seen.items():
    print(f"{name:7}nDCG@10 %.2f, true %.2f; MAP %.2f, true %.2f" % figures)
cut = {}
for size in (20, 10, 5, 3):
    cut[size] = compare([(relevant, dense[:size], sparse) for relevant, dense, sparse in cases])["dense"]
    print(f"dense list cut to {size:2}: nDCG@10 %.2f, true %.2f; MAP %.2f, true %.2f" % cut[size])

if abs(cut[20][0] - cut[20][1]) > 1e-6:
    sys.exit("not as described: the control, nDCG@10 of lists of 20, is not trec_eval's")
if one[0] != 1.0 or one[2] != 1.0 or not 0.33 < one[1] < 0.35:
    sys.exit("not as described: missing documents are not counted as found")
if cut[5][0] < cut[20][0] + 0.1 or cut[5][1] > cut[20][1] - 0.1:
    sys.exit("not as described: a shorter list is not better")
if not (seen["fused"][0] < seen["sparse"][0] - 0.2 and seen["fused"][1] > max(seen["dense"][1], seen["sparse"][1])):
    sys.exit("not as described: the fusion does not seem to lose")
PY
