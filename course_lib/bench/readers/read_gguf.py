"""GGUF, the format of llama.cpp: our tensors under the names that the gguf package has for them,
written to a file, and the mean state of texts as llama.cpp (in the package xllamacpp) gives it.

llama.cpp's own converter is no package. What it does for these architectures is done here: BERT's
settings, the vocabulary with ▁ before what begins a word, and position rows from the first that a
text reads."""

from __future__ import annotations

import json
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import numpy as np
from each import difference

PACKAGES = ("gguf", "xllamacpp", "safetensors")
ARCHITECTURES = {  # of those for which llama.cpp has one, by transformers' model_type
    "bert": "BERT", "distilbert": "BERT", "roberta": "BERT", "xlm-roberta": "BERT",
    "modernbert": "MODERN_BERT",
}  # fmt: skip


def read(folder: Path) -> dict[str, Any]:
    settings = json.loads((folder / "config.json").read_text(encoding="utf-8"))
    if settings["model_type"] not in ARCHITECTURES:
        raise ValueError(f"llama.cpp has no architecture for {settings['model_type']}")
    with TemporaryDirectory() as out:
        file = Path(out, "model.gguf")
        nameless = write(folder, settings, file)
        answers = json.loads((folder / "expected.json").read_text(encoding="utf-8"))
        means = embeddings(file, answers["ids"])
    assert nameless
    return {"difference": difference(folder, "means", means), "lost": "the head"}


def write(folder: Path, settings: dict[str, Any], file: Path) -> list[str]:
    """Returns the tensors for which GGUF has no name, or llama.cpp no use."""
    import gguf
    from safetensors.numpy import load_file

    kind = gguf.MODEL_ARCH[ARCHITECTURES[settings["model_type"]]]
    modern = kind == gguf.MODEL_ARCH.MODERN_BERT
    layers = settings.get("num_hidden_layers", settings.get("n_layers"))
    names = gguf.get_tensor_name_map(kind, layers)
    writer = gguf.GGUFWriter(file, gguf.MODEL_ARCH_NAMES[kind])
    writer.add_block_count(layers)
    first = settings["pad_token_id"] + 1 if "roberta" in settings["model_type"] else 0
    writer.add_context_length(settings["max_position_embeddings"] - first)
    writer.add_embedding_length(settings.get("hidden_size", settings.get("dim")))
    writer.add_feed_forward_length(settings.get("intermediate_size", settings.get("hidden_dim")))
    writer.add_head_count(settings.get("num_attention_heads", settings.get("n_heads")))
    writer.add_layer_norm_eps(settings.get("norm_eps", settings.get("layer_norm_eps", 1e-12)))
    writer.add_causal_attention(False)
    writer.add_pooling_type(gguf.PoolingType.MEAN)
    writer.add_file_type(gguf.LlamaFileType.ALL_F32)
    if modern:
        ropes = settings["rope_parameters"]
        writer.add_rope_freq_base(ropes["full_attention"]["rope_theta"])
        writer.add_rope_freq_base_swa(ropes["sliding_attention"]["rope_theta"])
        writer.add_sliding_window(settings["local_attention"])
        writer.add_sliding_window_pattern(settings["global_attn_every_n_layers"])
        writer.add_vocab_size(settings["vocab_size"])
    writer.add_token_type_count(settings.get("type_vocab_size", 2))
    add_vocabulary(writer, folder)
    nameless = []
    for full, value in load_file(folder / "model.safetensors").items():
        bare = full.partition(".")[2]
        name = names.get_name(full, (".weight", ".bias")) or names.get_name(
            bare, (".weight", ".bias")
        )
        if name is None or name.startswith("cls."):
            nameless.append(full)
            continue
        value = value[first:] if name == "position_embd.weight" else value
        writer.add_tensor(name, np.ascontiguousarray(value.astype(np.float32)))
    writer.write_header_to_file()
    writer.write_kv_data_to_file()
    writer.write_tensors_to_file()
    writer.close()
    return nameless


def add_vocabulary(writer: Any, folder: Path) -> None:
    content = json.loads((folder / "tokenizer.json").read_text(encoding="utf-8"))
    vocabulary = content["model"]["vocab"]
    special = {token["content"]: token["id"] for token in content["added_tokens"]}
    if content["model"]["type"] == "WordPiece":
        writer.add_tokenizer_model("bert")
        tokens = [
            token if token in special else
            token[2:] if token.startswith("##") else f"\u2581{token}"
            for token in sorted(vocabulary, key=vocabulary.get)
        ]  # fmt: skip
    else:
        writer.add_tokenizer_model("gpt2")
        writer.add_tokenizer_pre("roberta-bpe")
        merges = content["model"]["merges"]
        writer.add_token_merges([m if isinstance(m, str) else " ".join(m) for m in merges])
        tokens = sorted(vocabulary, key=vocabulary.get)
    writer.add_token_list(tokens)
    writer.add_token_types([3 if token in special else 1 for token in tokens])
    ids = {name.strip("[]<>").lower(): number for name, number in special.items()}
    writer.add_bos_token_id(ids.get("cls", ids.get("s")))
    writer.add_sep_token_id(ids.get("sep", ids.get("/s")))
    writer.add_eos_token_id(ids.get("sep", ids.get("/s")))
    writer.add_pad_token_id(ids["pad"])
    writer.add_unk_token_id(ids["unk"])
    writer.add_mask_token_id(ids["mask"])


def embeddings(file: Path, ids: list[list[int]]) -> np.ndarray:
    import xllamacpp

    params = xllamacpp.CommonParams()
    params.model.path = str(file)
    params.embedding = True
    params.embd_normalize = -1
    params.pooling_type = xllamacpp.llama_pooling_type.LLAMA_POOLING_TYPE_MEAN
    params.n_ctx = 128
    server = xllamacpp.Server(params)
    answer = server.handle_embeddings({"input": ids, "embd_normalize": -1})
    return np.array([item["embedding"] for item in answer["data"]])
