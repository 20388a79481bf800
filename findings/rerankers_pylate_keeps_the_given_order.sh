#!/usr/bin/env bash
# rerankers 0.10.0 (Reranker(..., model_type="pylate")) with pylate 1.6.0, sentence-transformers 5.3.0,
# transformers 5.3.0 and torch 2.13.0
#
# One would guess: Reranker(model, model_type="pylate").rank(query, docs, doc_ids) ranks by pylate's MaxSim, as
# pylate's own rank.rerank does with the same model.
# What happens: rerankers calls rank.rerank, which returns the scores from the highest to the lowest, each with
# the id of its document. rerankers does not read the ids: it gives the highest score to the first document that
# it was handed, the second highest to the second, and so on. The result has falling scores and looks ranked,
# but the documents stand in the order in which they came, whatever they say: below, the one document that
# answers is last of ten and stays last (MRR 0.10; first of ten, it is first, 1.00), and every document's score
# is another one's. pylate alone has MRR 1.00. (FlashRank's ranker had the same, issue 39 of rerankers, fixed in
# 2024. Without doc_ids pylate's ranker raises an error, so one gives them.)
# Who is hurt: whoever reranks a first stage's hits with ColBERT through rerankers: the time is spent, nothing
# changes, and measured it reads as "late interaction adds nothing to BM25". A threshold on the score cuts by
# place. (model_type="colbert" is other code, for other checkpoints, and does sort.)
# What to do instead: rank.rerank of pylate.
set -euo pipefail
tmp=$(mktemp -d)
trap 'rm -rf "$tmp"' EXIT
python3 -m venv "$tmp/venv"
"$tmp/venv/bin/pip" install -q torch==2.13.0 transformers==5.3.0 sentence-transformers==5.3.0 datasets==5.2.0 \
    ujson==5.12.0 rerankers==0.10.0
# pylate also asks for fast-plaid, an index with its own copy of torch, which nothing here needs
"$tmp/venv/bin/pip" install -q --no-deps pylate==1.6.0
cd "$tmp"
HF_HUB_OFFLINE=1 OMP_NUM_THREADS=1 "$tmp/venv/bin/python" - <<'PY' 2>"$tmp/err" || { tail -3 "$tmp/err"; exit 1; }
import random
import sys

import torch
import transformers
from pylate import models, rank
from rerankers import Reranker
from tokenizers import Tokenizer, pre_tokenizers, processors
from tokenizers.models import WordPiece

WORDS = [f"word{n}" for n in range(40)]
pieces = ["[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]", *".,?!", *WORDS]
words = Tokenizer(WordPiece({piece: n for n, piece in enumerate(pieces)}, unk_token="[UNK]"))
words.pre_tokenizer = pre_tokenizers.WhitespaceSplit()
words.post_processor = processors.TemplateProcessing(
    single="[CLS] $A [SEP]", special_tokens=[("[CLS]", 2), ("[SEP]", 3)]
)
tokenizer = transformers.PreTrainedTokenizerFast(
    tokenizer_object=words, unk_token="[UNK]", pad_token="[PAD]", cls_token="[CLS]", sep_token="[SEP]",
    mask_token="[MASK]", model_max_length=64,
)  # fmt: skip
torch.manual_seed(0)
config = transformers.BertConfig(
    vocab_size=len(pieces), hidden_size=64, num_hidden_layers=1, num_attention_heads=2, intermediate_size=64,
    max_position_embeddings=64, initializer_range=0.2,
)  # fmt: skip
encoder = transformers.BertModel(config)
# an untrained encoder whose layer and positions say little, so that a token's vector is mostly its word's
for block in (encoder.encoder.layer[0].attention.output.dense, encoder.encoder.layer[0].output.dense):
    block.weight.data.mul_(0.1)
encoder.embeddings.position_embeddings.weight.data.mul_(0.1)
encoder.save_pretrained("encoder")
tokenizer.save_pretrained("encoder")
model = models.ColBERT("encoder", embedding_size=32, query_length=12, document_length=32, device="cpu")
model.save("late-model")
ranker = Reranker("late-model", model_type="pylate", device="cpu", verbose=0)

draws = random.Random(0)
places = {(who, given): [] for who in ("pylate", "rerankers") for given in ("first", "last")}
for n in range(20):
    asked = draws.sample(WORDS, 5)
    rest = [word for word in WORDS if word not in asked]
    query, answer = " ".join(asked), " ".join(draws.sample(asked, 5))
    others = {f"other{k}": " ".join(draws.sample(rest, 5)) for k in range(9)}
    for given in ("first", "last"):
        documents = {"answer": answer, **others} if given == "first" else {**others, "answer": answer}
        ids, texts = list(documents), list(documents.values())
        found = rank.rerank(
            documents_ids=[ids],
            queries_embeddings=model.encode([query], is_query=True),
            documents_embeddings=[model.encode(texts, is_query=False)],
        )[0]
        own = [hit["id"] for hit in found]
        results = ranker.rank(query, texts, doc_ids=ids)
        theirs = [result.doc_id for result in results]
        places["pylate", given].append(own.index("answer") + 1)
        places["rerankers", given].append(theirs.index("answer") + 1)
        if theirs != ids:
            sys.exit("not as described: rerankers has changed the order")

print("the last question, answer given last")
print("   pylate:   ", [(hit["id"], round(hit["score"], 1)) for hit in found[:3]], "...")
print("   rerankers:", [(hit.doc_id, round(hit.score, 2)) for hit in results[:3]], "...",
      (results[9].doc_id, round(results[9].score, 2)))  # fmt: skip
mrr = {case: sum(1 / place for place in seen) / len(seen) for case, seen in places.items()}
for (who, given), value in mrr.items():
    print(f"{who}: MRR {value:.2f} where the answer is given {given} of ten")
if min(mrr["pylate", "first"], mrr["pylate", "last"]) < 0.99 or mrr["rerankers", "last"] > 0.11:
    print("not as described")
    sys.exit(1)
PY
