#!/usr/bin/env bash
# pylate 1.6.0 (ColBERT.encode_multi_process) with sentence-transformers 5.3.0, transformers 5.3.0,
# voyager 2.1.0 and torch 2.13.0
#
# One would guess: encode_multi_process, which encodes on several GPUs or processors, returns what encode
# returns: one matrix of token vectors a text, "list[np.ndarray]".
# What happens: each part of the texts that a process takes at once ("chunk") comes back as *one* matrix, the
# tokens of all its texts one after the other. Up to 10 texts a process the parts are of one text, so the
# documentation's example, with three, is right. Below, with one process, 10 texts give 10 matrices, 11 give 6
# and 60 give 10. An index takes ids and matrices in pairs without counting them: the first 10 ids get six
# documents each, and the other 50 ids are not in it. Searched with its own text, a document is found first
# 59 times of 60 where encode made the vectors, and once where the pool did. Nothing is raised or said.
# Who is hurt: whoever encodes a corpus, the case that this is for: by the formula of the parts' size, a million
# passages on 8 GPUs would come back as 200 joined ones of 5000 texts each. The answers are ids that exist, with
# high scores (the more tokens, the better the best match), for the wrong documents.
# What to do instead: chunk_size=1 (slow: each chunk is one batch), or split the texts oneself and call encode
# in each process. len(vectors) == len(texts) is worth a check.
set -euo pipefail
tmp=$(mktemp -d)
trap 'rm -rf "$tmp"' EXIT
python3 -m venv "$tmp/venv"
"$tmp/venv/bin/pip" install -q torch==2.13.0 transformers==5.3.0 sentence-transformers==5.3.0 datasets==5.2.0 \
    ujson==5.12.0 voyager==2.1.0
# pylate also asks for fast-plaid, an index with its own copy of torch, which nothing here needs
"$tmp/venv/bin/pip" install -q --no-deps pylate==1.6.0
cd "$tmp"
cat >try.py <<'PY'
import random
import sys

import torch
import transformers
from pylate import indexes, models, retrieve
from tokenizers import Tokenizer, pre_tokenizers, processors
from tokenizers.models import WordPiece

WORDS = [f"word{n}" for n in range(60)]


def small_colbert():
    """An untrained ColBERT whose token vectors are mostly those of the words."""
    pieces = ["[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]", *".,?!", *WORDS]
    words = Tokenizer(WordPiece({piece: n for n, piece in enumerate(pieces)}, unk_token="[UNK]"))
    words.pre_tokenizer = pre_tokenizers.WhitespaceSplit()
    words.post_processor = processors.TemplateProcessing(
        single="[CLS] $A [SEP]", special_tokens=[("[CLS]", 2), ("[SEP]", 3)]
    )
    transformers.PreTrainedTokenizerFast(
        tokenizer_object=words, unk_token="[UNK]", pad_token="[PAD]", cls_token="[CLS]", sep_token="[SEP]",
        mask_token="[MASK]", model_max_length=64,
    ).save_pretrained("encoder")  # fmt: skip
    torch.manual_seed(0)
    encoder = transformers.BertModel(transformers.BertConfig(
        vocab_size=len(pieces), hidden_size=64, num_hidden_layers=1, num_attention_heads=2,
        intermediate_size=64, max_position_embeddings=64, initializer_range=0.2,
    ))  # fmt: skip
    layer = encoder.encoder.layer[0]
    for weights in (layer.attention.output.dense, layer.output.dense, encoder.embeddings.position_embeddings):
        weights.weight.data.mul_(0.1)
    encoder.save_pretrained("encoder")
    return models.ColBERT("encoder", embedding_size=32, query_length=12, document_length=32, device="cpu")


def found_first(vectors, queries, ids, name):
    index = indexes.Voyager(index_folder="index", index_name=name, override=True, embedding_size=32)
    index.add_documents(documents_ids=ids, documents_embeddings=vectors)
    hits = retrieve.ColBERT(index=index).retrieve(queries, k=1)
    return sum(hit[0]["id"] == name for hit, name in zip(hits, ids, strict=True))


def main():
    draws = random.Random(0)
    texts = [" ".join(draws.sample(WORDS, draws.randint(4, 8))) for _ in range(60)]
    ids = [f"document {n}" for n in range(60)]
    model = small_colbert()
    alone = model.encode(texts, is_query=False)
    queries = model.encode(texts, is_query=True)
    pool = model.start_multi_process_pool(target_devices=["cpu"])
    counts = {}
    for number in (3, 10, 11, 60):
        pooled = model.encode_multi_process(texts[:number], pool, is_query=False)
        counts[number] = len(pooled)
    ones = model.encode_multi_process(texts, pool, is_query=False, chunk_size=1)
    model.stop_multi_process_pool(pool)
    print("texts given and matrices returned", counts)
    print("tokens of the first texts", [len(vectors) for vectors in alone[:6]])
    print("tokens of the pool's first matrices", [len(vectors) for vectors in pooled[:3]])
    joined = abs(pooled[0] - torch.cat([torch.tensor(v) for v in alone[:6]]).numpy()).max()
    print(f"the pool's first matrix is that of texts 0 to 5, joined: they differ by {joined:.0e}")
    right = found_first(alone, queries, ids, "alone")
    wrong = found_first(pooled, queries, ids, "pooled")
    single = found_first(ones, queries, ids, "ones")
    print(f"found first by its own text, of 60: encode {right}, the pool {wrong}, with chunk_size=1 {single}")
    if counts != {3: 3, 10: 10, 11: 6, 60: 10} or min(right, single) < 57 or wrong > 5 or joined > 1e-4:
        print("not as described")
        sys.exit(1)


if __name__ == "__main__":
    main()
PY
HF_HUB_OFFLINE=1 OMP_NUM_THREADS=1 TOKENIZERS_PARALLELISM=false "$tmp/venv/bin/python" try.py 2>"$tmp/err" || {
    tail -3 "$tmp/err"
    exit 1
}
