#!/usr/bin/env bash
# transformers 5.23.0 with huggingface_hub 2.4.0, tokenizers 0.23.3
#
# One would guess: while the hub is busy (429) or out of order (503), AutoTokenizer.from_pretrained
# raises an error, as it does for a repository that is not there.
# What happens: an answer of 429 or 503 for a file of the tokenizer counts as "the repository has no
# such file".
#   - 429 for tokenizer.json and vocab.txt: a BertTokenizer of 5 pieces comes back, which reads every
#     word of every text as [UNK].
#   - 429 for tokenizer_config.json alone: a cased model's tokenizer comes back as an uncased one,
#     although tokenizer.json, which did arrive, says that case stays.
# No error; the log of huggingface_hub speaks of tries that it repeats, not of files left out.
# Who is hurt: who starts many jobs at once and is slowed down by the hub. One of them trains or
# scores on [UNK], or on lower-cased text, and looks like a bad seed.
set -euo pipefail

tmp=$(mktemp -d)
trap 'rm -rf "$tmp"' EXIT
python3 -m venv "$tmp/venv"
"$tmp/venv/bin/pip" install -q transformers==5.23.0 huggingface_hub==2.4.0 tokenizers==0.23.3
export HF_HOME="$tmp/hf"
unset HF_HUB_OFFLINE TRANSFORMERS_OFFLINE HF_TOKEN
cat > "$tmp/busy.py" <<'PY'
import json
import os
import tempfile
import threading
import time
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

SPECIAL = ["[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]"]
VOCAB = [*SPECIAL, "Paris", "in", "Spring"]
NORMALIZER = {"type": "BertNormalizer", "clean_text": True, "handle_chinese_chars": True,
              "strip_accents": None, "lowercase": False}
TOKENIZER = {
    "version": "1.0", "truncation": None, "padding": None, "added_tokens": [],
    "normalizer": NORMALIZER, "pre_tokenizer": {"type": "BertPreTokenizer"},
    "post_processor": None, "decoder": None,
    "model": {"type": "WordPiece", "unk_token": "[UNK]", "continuing_subword_prefix": "##",
              "max_input_chars_per_word": 100, "vocab": {t: i for i, t in enumerate(VOCAB)}},
}
FILES = {
    "config.json": json.dumps({"model_type": "bert"}),
    "tokenizer_config.json": json.dumps({"tokenizer_class": "BertTokenizer", "do_lower_case": False}),
    "tokenizer.json": json.dumps(TOKENIZER),
    "vocab.txt": "".join(f"{t}\n" for t in VOCAB),
}
busy = {}  # file -> status


class Hub(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"

    def do_HEAD(self):
        name = self.path.rpartition("/")[2]
        if self.path.startswith("/api/models/o/m?") or self.path == "/api/models/o/m":
            self.answer(200, b"{}", {"Content-Type": "application/json"})
        elif name in busy and "/resolve/" in self.path:
            self.answer(busy[name], b"Too many requests", {})
        elif "/resolve/" in self.path and name in FILES:
            self.answer(200, FILES[name].encode(), {"X-Repo-Commit": "c" * 40, "ETag": f'"{name}"'})
        else:
            self.answer(404, b"", {"X-Error-Code": "EntryNotFound", "X-Repo-Commit": "c" * 40})

    do_GET = do_HEAD

    def answer(self, status, body, headers):
        self.send_response(status)
        for key, value in {**headers, "Content-Length": str(len(body))}.items():
            self.send_header(key, value)
        self.end_headers()
        if self.command == "GET":
            self.wfile.write(body)

    def log_message(self, *_):
        pass


server = ThreadingHTTPServer(("127.0.0.1", 0), Hub)
threading.Thread(target=server.serve_forever, daemon=True).start()
os.environ["HF_ENDPOINT"] = f"http://127.0.0.1:{server.server_address[1]}"
time.sleep, wait = (lambda seconds: None), time.sleep  # the client waits between its five tries

from transformers import AutoTokenizer  # noqa: E402


def read(**status):
    busy.clear()
    busy.update({name.replace("_json", ".json").replace("_txt", ".txt"): code
                 for name, code in status.items()})
    with tempfile.TemporaryDirectory() as cache:
        tokenizer = AutoTokenizer.from_pretrained("o/m", cache_dir=cache)
        return len(tokenizer), tokenizer.tokenize("Paris in Spring")


seen = {
    "answers all": read(),
    "429 for tokenizer.json, vocab.txt": read(tokenizer_json=429, vocab_txt=429),
    "503 for tokenizer.json, vocab.txt": read(tokenizer_json=503, vocab_txt=503),
    "429 for tokenizer_config.json": read(tokenizer_config_json=429),
}
server.shutdown()
for how, (size, pieces) in seen.items():
    print(f"{how}: {size} pieces; 'Paris in Spring' is {pieces}")
lost, cased = ["[UNK]"] * 3, ["Paris", "in", "Spring"]
expected = [(8, cased), (5, lost), (5, lost), (8, ["[UNK]", "in", "[UNK]"])]
if list(seen.values()) != expected:
    raise SystemExit("it behaves otherwise than described above")
PY
"$tmp/venv/bin/python" "$tmp/busy.py" 2> "$tmp/log" || { cat "$tmp/log" >&2; exit 1; }
