#!/usr/bin/env bash
# rerankers 0.10.0 (Reranker(..., model_type="cross-encoder")) with transformers 5.23.0 and torch 2.13.0,
# beside sentence-transformers 6.2.0
#
# One would guess: a cross-encoder with two classes, not relevant and relevant, as monoBERT and amberoad's
# multilingual one have them, is ranked by its second class, or refused. sentence-transformers'
# CrossEncoder.rank refuses it.
# What happens: the documents are sorted by the pair of logits as it stands, so by the logit of *not relevant*,
# the highest first. Below, a small BERT with two classes is trained to tell whether a document holds the
# question's word. It is right about 99% of the documents. rerankers puts the only relevant one of ten last, for
# every question: MRR 0.10, where a random order has 0.29. Only where the path or name of the model holds
# "monobert" is the difference of the two taken: the same model in a folder of such a name has MRR 0.97. Nothing
# is said; "score" is a list of two numbers.
# Who is hurt: whoever reranks with a two-class checkpoint, from the hub or of their own (a
# BertForSequenceClassification trained on pairs has two classes by default): the best documents of the first
# stage are put last, and what is handed on is the worst.
# What to do instead: use a model of one output, or rank by logits[:, 1] - logits[:, 0] oneself.
set -euo pipefail
tmp=$(mktemp -d)
trap 'rm -rf "$tmp"' EXIT
python3 -m venv "$tmp/venv"
"$tmp/venv/bin/pip" install -q torch==2.13.0 transformers==5.23.0 sentence-transformers==6.2.0 rerankers==0.10.0
cd "$tmp"
HF_HUB_OFFLINE=1 OMP_NUM_THREADS=1 "$tmp/venv/bin/python" - <<'PY' 2>"$tmp/err" || { tail -3 "$tmp/err"; exit 1; }
import random
import sys

import torch
import transformers
from rerankers import Reranker
from sentence_transformers import CrossEncoder
from tokenizers import Tokenizer, models, pre_tokenizers, processors

TOPICS = [f"topic{n}" for n in range(20)]
FILLERS = [f"filler{n}" for n in range(10)]
pieces = ["[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]", *TOPICS, *FILLERS]
words = Tokenizer(models.WordPiece({piece: n for n, piece in enumerate(pieces)}, unk_token="[UNK]"))
words.pre_tokenizer = pre_tokenizers.WhitespaceSplit()
words.post_processor = processors.TemplateProcessing(
    single="[CLS] $A [SEP]", pair="[CLS] $A [SEP] $B:1 [SEP]:1", special_tokens=[("[CLS]", 2), ("[SEP]", 3)]
)
tokenizer = transformers.PreTrainedTokenizerFast(
    tokenizer_object=words, unk_token="[UNK]", pad_token="[PAD]", cls_token="[CLS]", sep_token="[SEP]",
    mask_token="[MASK]", model_max_length=32,
)  # fmt: skip
draws = random.Random(0)


def document(topic):
    return f"{draws.choice(FILLERS)} {topic} {draws.choice(FILLERS)}"


torch.manual_seed(0)
model = transformers.BertForSequenceClassification(transformers.BertConfig(
    vocab_size=len(pieces), hidden_size=64, num_hidden_layers=2, num_attention_heads=4, intermediate_size=128,
    max_position_embeddings=32, hidden_dropout_prob=0.0, attention_probs_dropout_prob=0.0, num_labels=2,
    id2label={0: "not relevant", 1: "relevant"}, label2id={"not relevant": 0, "relevant": 1},
))  # fmt: skip
optimizer = torch.optim.AdamW(model.parameters(), lr=1e-3)
for step in range(700):
    pairs = [(draws.choice(TOPICS), draws.choice(TOPICS)) for _ in range(32)]
    pairs = [(query, query if n % 2 else other) for n, (query, other) in enumerate(pairs)]
    labels = torch.tensor([int(query == topic) for query, topic in pairs])
    batch = tokenizer([q for q, _ in pairs], [document(t) for _, t in pairs], return_tensors="pt")
    loss = model(**batch, labels=labels).loss
    loss.backward()
    optimizer.step()
    optimizer.zero_grad()
model.eval()
for name in ("two-classes", "monobert-two-classes"):
    model.save_pretrained(name)
    tokenizer.save_pretrained(name)

questions = []
for query in TOPICS:
    others = draws.sample([topic for topic in TOPICS if topic != query], 9)
    topics = draws.sample([query, *others], 10)
    questions.append((query, [document(topic) for topic in topics], topics.index(query)))


@torch.no_grad()
def accuracy():
    right = []
    for query, documents, relevant in questions:
        logits = model(**tokenizer([query] * 10, documents, return_tensors="pt")).logits
        right += [int(c) == int(n == relevant) for n, c in enumerate(logits.argmax(-1))]
    return sum(right) / len(right)


def mrr(folder):
    ranker = Reranker(folder, model_type="cross-encoder", device="cpu", verbose=0)
    places = []
    for query, documents, relevant in questions:
        results = ranker.rank(query, documents)
        places.append([result.doc_id for result in results].index(relevant) + 1)
    first = ranker.rank(questions[0][0], questions[0][1])[0].score
    return sum(1 / place for place in places) / len(places), first


correct = accuracy()
backwards, score = mrr("two-classes")
named, other = mrr("monobert-two-classes")
try:
    CrossEncoder("two-classes", device="cpu").rank(*questions[0][:2])
    refused = "no error"
except ValueError as error:
    refused = str(error)
print(f"accuracy of the two classes {correct:.3f}; ten documents a question, one of them relevant")
print(f"rerankers: MRR {backwards:.2f}, first score {score}")
print(f"the same in a folder named monobert-...: MRR {named:.2f}, first score {other}")
print("sentence-transformers:", refused)
if correct < 0.97 or backwards > 0.12 or named < 0.9 or "num_labels=1" not in refused:
    print("not as described")
    sys.exit(1)
PY
