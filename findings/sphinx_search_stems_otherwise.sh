#!/usr/bin/env bash
# Sphinx 9.0.4 with snowballstemmer 3.1.1, each the newest: the search of a built site, in English
#
# One would guess: the search of a built site finds every page that holds the word as it is typed, since
# the page's script stems a question as the build has stemmed the pages.
# What happens: the index is stemmed by the installed snowballstemmer, the question by a script that is
# stored inside Sphinx, of Snowball 3.0.1. Since 3.1 "internal", "international" and "interval" keep
# their ends. The script still looks for "intern" and "interv". Where no page has that stem, such terms
# are found as parts of others; but one page with "interned" is enough, and a search for "internal"
# shows it and hides every page that has the word. With snowballstemmer 3.0.1 all is found.
# Who is hurt: readers of a documentation that was built anew: its page on internals is there, but no
# search finds it.
set -euo pipefail
tmp=$(mktemp -d)
trap 'rm -rf "$tmp"' EXIT
python3 -m venv "$tmp/venv"
"$tmp/venv/bin/pip" install -q Sphinx==9.0.4 snowballstemmer==3.1.1 quickjs==1.19.4
cd "$tmp"
mkdir pages
echo 'project = "example"' > pages/conf.py
printf 'Start\n=====\n\n.. toctree::\n\n   one\n   two\n' > pages/index.rst
printf 'One\n===\n\nHow the internal interval is chosen.\n' > pages/one.rst
printf 'Two\n===\n\nNames are interned.\n' > pages/two.rst
cat > search.py <<'PY'
import sys

import quickjs

folder, words = sys.argv[1], sys.argv[2:]
page = quickjs.Context()
page.eval("var window = globalThis, _ready = () => {}, SPHINX_HIGHLIGHT_ENABLED = false;")
for script in ("language_data", "base-stemmer", "english-stemmer", "searchtools"):
    try:
        page.eval(open(f"{folder}/_static/{script}.js").read())
    except FileNotFoundError:  # older ones are all in language_data
        pass
page.eval(open(f"{folder}/searchindex.js").read())
for word in words:
    page.eval(f"var parsed = Search._parseQuery('{word}')")
    stem = page.eval("[...parsed[1]].join()")
    pages = page.eval("Search.performTermsSearch(parsed[1], parsed[2]).map(r => r[0]).sort().join()")
    print(f"{word}: looks for {stem!r}, finds {pages or 'nothing'}")
PY
run() { # installs that stemmer, builds, and searches
    "$tmp/venv/bin/pip" install -q "snowballstemmer==$1"
    "$tmp/venv/bin/python" -m sphinx -q -E -b html pages "built-$1"
    "$tmp/venv/bin/python" search.py "built-$1" internal interval interned
}
new=$(run 3.1.1)
old=$(run 3.0.1)
printf 'snowballstemmer 3.1.1\n%s\nsnowballstemmer 3.0.1\n%s\n' "$new" "$old"
grep -q "^internal: looks for 'intern', finds two$" <<< "$new"
grep -q "^internal: .* finds one,two$" <<< "$old"
