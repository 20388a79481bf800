#!/usr/bin/env bash
# fastembed 0.9.1 (TextEmbedding.add_custom_model) with a folder of sentence-transformers before 6
#
# One would guess: a sentence encoder whose sentence_bert_config.json says max_seq_length = 16, given
# to fastembed with the same pooling and normalisation, has the same vectors there as in
# sentence-transformers.
# What happens: it has for texts of up to 16 tokens. A longer one is read to the limit in
# tokenizer_config.json (model_max_length, or max_length if that is smaller), here 64. Versions of
# sentence-transformers before 6 leave that file as it was (6.2.0 writes its limit there, and still
# obeys the older file), and most published encoders come from them. Nothing is said.
# Who is hurt: whoever indexes with one program and searches with the other. Long documents, the
# ones in an index, get other vectors than those the encoder was trained and measured with.
# Writing the limit to tokenizer_config.json by hand makes both agree.
set -euo pipefail
tmp=$(mktemp -d)
trap 'rm -rf "$tmp"' EXIT
python3 -m venv "$tmp/venv"
"$tmp/venv/bin/pip" install -q torch==2.13.0 transformers==5.23.0 sentence-transformers==6.2.0 \
    fastembed==0.9.1 numpy onnx==1.23.2 onnxscript==0.7.2
cd "$tmp"
HF_HUB_OFFLINE=1 HF_HOME="$tmp/hf" OMP_NUM_THREADS=1 "$tmp/venv/bin/python" - <<'PY' 2>"$tmp/err" || { tail -3 "$tmp/err"; exit 1; }
import json
import sys
from pathlib import Path

import torch
from fastembed import TextEmbedding
from fastembed.common.model_description import ModelSource, PoolingType
from sentence_transformers import SentenceTransformer
from sentence_transformers.models import Normalize, Pooling, Transformer
from transformers import BertConfig, BertModel, BertTokenizerFast

WORDS = "the a of to and in is it on as at by we he or an be so if do".split()
with open("vocab.txt", "w") as file:
    file.write("\n".join(["[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]", *WORDS]))
torch.manual_seed(0)
config = BertConfig(
    vocab_size=25, hidden_size=32, num_hidden_layers=2, num_attention_heads=2, intermediate_size=64,
    max_position_embeddings=64, initializer_range=0.5,
)
BertModel(config).save_pretrained("bert")
BertTokenizerFast("vocab.txt", model_max_length=64).save_pretrained("bert")
theirs = SentenceTransformer(modules=[Transformer("bert", max_seq_length=16), Pooling(32), Normalize()])
theirs.save("encoder")
folder = Path("encoder")
settings = json.loads((folder / "tokenizer_config.json").read_text())
# As versions before 6 write both files.
(folder / "sentence_bert_config.json").write_text(json.dumps({"max_seq_length": 16, "do_lower_case": False}))
(folder / "tokenizer_config.json").write_text(json.dumps(settings | {"model_max_length": 64}))
theirs = SentenceTransformer("encoder")
print("sentence-transformers reads up to", theirs.max_seq_length, "tokens")


class States(torch.nn.Module):
    def __init__(self):
        super().__init__()
        self.bert = BertModel.from_pretrained("bert", attn_implementation="eager").eval()

    def forward(self, input_ids, attention_mask, token_type_ids):
        return self.bert(input_ids, attention_mask, token_type_ids).last_hidden_state


ones = torch.ones(2, 12, dtype=torch.long)
mask = ones.clone()
mask[1, 8:] = 0
free = {0: torch.export.Dim("batch"), 1: torch.export.Dim("tokens", max=64)}
torch.onnx.export(
    States(), (ones, mask, 0 * ones), str(folder / "model.onnx"), dynamo=True, verbose=False,
    input_names=["input_ids", "attention_mask", "token_type_ids"],
    output_names=["last_hidden_state"], dynamic_shapes=(free, free, free),
)
texts = [" ".join(WORDS[:10]), " ".join(WORDS)]  # 12 and 22 tokens


def cosines(name):
    TextEmbedding.add_custom_model(
        model=name, pooling=PoolingType.MEAN, normalization=True, sources=ModelSource(hf=name),
        dim=32, model_file="model.onnx",
    )
    model = TextEmbedding(name, specific_model_path=str(folder), threads=1)
    ours = torch.tensor([list(map(float, vector)) for vector in model.embed(texts)])
    return (ours * torch.as_tensor(theirs.encode(texts))).sum(1).tolist()


short, long = cosines("as/saved")
print(f"cosine of both programs' vectors: 12 tokens {short:.4f}, 22 tokens {long:.4f}")
(folder / "tokenizer_config.json").write_text(json.dumps(settings | {"model_max_length": 16}))
_, mended = cosines("with/limit")
print(f"with model_max_length 16 in tokenizer_config.json: 22 tokens {mended:.4f}")
if theirs.max_seq_length != 16 or short < 0.9999 or long > 0.99 or mended < 0.9999:
    print("not as described")
    sys.exit(1)
PY
