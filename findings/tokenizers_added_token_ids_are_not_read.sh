#!/usr/bin/env bash
# tokenizers 0.23.3
#
# One would guess: the "id" of an entry of added_tokens in a tokenizer.json is that token's id. It is
# the only place in the file where the id of a token outside the vocabulary stands.
# What happens: the id is not read. Added tokens get the next free numbers in the order in which they
# are listed: [E2] with id 7 listed before [E1] with id 6 gives both the other's id; an id that
# leaves a gap (reserved rows, a table padded to a multiple of 8) is moved down. No error.
# Who is hurt: whoever writes or sorts a tokenizer.json by a program, or reserves rows of the table
# for tokens to come. The model then reads the row of another token.
set -euo pipefail

tmp=$(mktemp -d)
trap 'rm -rf "$tmp"' EXIT
python3 -m venv "$tmp/venv"
"$tmp/venv/bin/pip" install -q tokenizers==0.23.3
cat > "$tmp/ids.py" <<'PY'
import json

from tokenizers import Tokenizer, models, pre_tokenizers

vocab = {token: id for id, token in enumerate(["[UNK]", "the", "cat", "sat", "on", "it"])}
tokenizer = Tokenizer(models.WordPiece(vocab, unk_token="[UNK]"))
tokenizer.pre_tokenizer = pre_tokenizers.BertPreTokenizer()
tokenizer.add_tokens(["[E1]", "[E2]"])
content = json.loads(tokenizer.to_str())
text = "the [E1] cat [E2]"


def ids(change):
    changed = json.loads(json.dumps(content))
    change(changed["added_tokens"])
    read = Tokenizer.from_str(json.dumps(changed))
    written = {token["content"]: token["id"] for token in changed["added_tokens"]}
    got = {token: read.token_to_id(token) for token in written}
    print(f"  ids in the file {written}, ids of the tokenizer {got}, {text!r}: {read.encode(text).ids}")
    return written, got


def gap(tokens):
    tokens[0]["id"], tokens[1]["id"] = 8, 9


print("as the library wrote it:")
written, got = ids(lambda tokens: None)
assert written == got == {"[E1]": 6, "[E2]": 7}, "the ordinary case is no longer as described"
print("the same entries in another order:")
written, got = ids(lambda tokens: tokens.reverse())
swapped = written == {"[E1]": 6, "[E2]": 7} and got == {"[E1]": 7, "[E2]": 6}
print("with ids 8 and 9, which leave 6 and 7 free:")
written, got = ids(gap)
moved = written == {"[E1]": 8, "[E2]": 9} and got == {"[E1]": 6, "[E2]": 7}
if not (swapped and moved):
    raise SystemExit("tokenizers no longer behaves as described here: ids of added tokens are read")
PY
"$tmp/venv/bin/python" "$tmp/ids.py"
