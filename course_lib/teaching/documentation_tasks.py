"""Tasks with thousands of labels that nobody had to write for them: the markup of docstrings.

`code_words`: which words of a sentence are code, as its author marked them with backticks or a
role of Sphinx. `sections`: under which heading of a docstring a description stands.
`parameter_kinds`: of which type a parameter is, by its description. `packages`: from which package
a paragraph is. The markup is taken out before a model sees the text. Modules are read in the order
of a hash of their names until there is enough, so that a smaller set is the beginning of a larger
one; each module is on one side, train or test, by its name; of texts that are nearly alike only the
first stays. "outside" comes from packages that the course's checkpoint never read, for `packages`
from paragraphs that it never read.

What comes out depends on the versions installed, and is nowhere shipped: results made from it
record `versions` and `hash`. Built in seconds, then read from the cache.
"""

from __future__ import annotations

import hashlib
import json
import re
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cache
from pathlib import Path
from typing import Any, Generic, TypeVar

from course_lib.files import cache_dir
from course_lib.text.documentation import (
    blocks,
    corpus_hash,
    installed_versions,
    is_prose,
    module_docstrings,
    plain,
    read_cache,
    source_files,
    split_of,
    split_sentences,
    write_cache,
)
from course_lib.text.english import LabelledText, TaggedSentence
from course_lib.text.features import Tokenizer, tagged_sequences, text_sequences
from course_lib.train.baselines import label_accuracy
from course_lib.train.span_metrics import span_scores

# Not sympy nor mpmath: their single backticks are formulas.
INSIDE = (
    "python", "numpy", "scipy", "sklearn", "torch", "networkx", "huggingface_hub", "accelerate",
    "tornado", "jinja2", "IPython",
)  # fmt: skip
# None of these is in `documentation.PACKAGES`; absent ones are left out.
OUTSIDE = (
    "anyio", "attr", "babel", "bs4", "click", "docutils", "httpx", "jedi", "jsonschema",
    "lightning_utilities", "narwhals", "packaging", "parso", "PIL", "playwright", "psygnal",
    "pydantic", "pygments", "requests", "rich", "sentence_transformers", "setuptools", "sphinx",
    "torchmetrics", "urllib3",
)  # fmt: skip
CODE_TAGS = ("O", "B-CODE", "I-CODE")
SECTIONS = ("Summary", "Parameters", "Returns", "Raises", "Attributes")
KINDS = {  # kind of a parameter -> how its type is written
    "bool": r"\bbool", "int": r"\bint(?:eger)?\b", "float": r"\bfloat|\bscalar",
    "str": r"\bstr\b|\bstring", "array": r"array|matrix|tensor", "callable": r"callable|function",
}  # fmt: skip
EIGHT = ("python", "numpy", "scipy", "sklearn", "torch", "sympy", "networkx", "transformers")
CODE, SECTION, PACKAGE, KIND = "code words", "sections", "packages", "kinds of parameters"
CLASSES = {SECTION: SECTIONS, PACKAGE: EIGHT, KIND: (*KINDS,)}
SPLITS = ("train", "test", "outside")
LENGTH = 40  # tokens of a text
MOST_A_MODULE = 12  # texts of each class, so that no module fills a set
RULES = 1  # of the sets; raise it when what is below changes what comes out

Item = TypeVar("Item", TaggedSentence, LabelledText)
Modules = Iterable[tuple[str, Iterable[list[Any]]]]  # (name, what is found there)


@dataclass(frozen=True)
class DocumentationTask(Generic[Item]):
    """Labelled texts of each of SPLITS; versions: package -> version; hash: SHA-256 of them all;
    validation: see `documentation_task`."""

    train: list[Item]
    test: list[Item]
    outside: list[Item]
    versions: dict[str, str]
    hash: str
    validation: list[Item] = field(default_factory=list)


def code_words(
    train: int = 2_000, test: int = 600, outside: int = 600
) -> DocumentationTask[TaggedSentence]:
    """Sentences and their words marked as code, tagged CODE_TAGS (`tags("entities")`): at most so
    many of each split. Each has a marked word of small letters only, which could be an ordinary
    word. Words are runs of letters, digits and underscores; every other sign is a word of its own.
    """
    splits, about = _from_docstrings("code words", marked_sentences, (train, test, outside))
    return _task(splits, about, lambda id, split, item: tagged(item, id=id, split=split))


def sections(
    train: int = 2_000, test: int = 600, outside: int = 600
) -> DocumentationTask[LabelledText]:
    """The first sentences of descriptions and the section each is from: at most so many of each
    split, and at most a fifth of each class."""
    most = train, test, outside
    return _texts(_from_docstrings("sections", section_sentences, most, len(SECTIONS)))


def parameter_kinds(
    train: int = 2_000, test: int = 600, outside: int = 600
) -> DocumentationTask[LabelledText]:
    """The first sentences of parameters' descriptions and which of KINDS each is: at most so many
    of each split, and at most a sixth of each class."""
    most = train, test, outside
    return _texts(_from_docstrings("parameter kinds", described_parameters, most, len(KINDS)))


def packages(
    train: int = 2_000, test: int = 600, outside: int = 600
) -> DocumentationTask[LabelledText]:
    """Paragraphs without names and code, and which of EIGHT each is from: at most so many of each
    split, and at most an eighth of each class. outside: paragraphs of the modules to test with that
    the checkpoint never read."""
    modules = [nameless_paragraphs(held_out) for held_out in (False, True)]
    versions, most = installed_versions(EIGHT), (train, test, outside)
    return _texts(_built("packages", modules, versions, most, len(EIGHT)))


TASKS: Mapping[str, Callable[..., DocumentationTask[Any]]] = {
    CODE: code_words, SECTION: sections, PACKAGE: packages, KIND: parameter_kinds,
}  # fmt: skip


@cache
def documentation_task(
    name: str, train: int, test: int, outside: int, validation: int = 0
) -> DocumentationTask[Any]:
    """One of TASKS. The validation texts are the last of those to learn from, so from other modules
    than most of them."""
    task = TASKS[name](train + validation, test, outside)
    learned = max(0, len(task.train) - validation)
    return replace(task, train=task.train[:learned], validation=task.train[learned:])


def as_sequences(
    task: str, items: Sequence[Any], tokenizer: Tokenizer, length: int = LENGTH
) -> Any:
    """Tagged sentences or labelled texts of one of TASKS as sequences of ids."""
    if task == CODE:
        return tagged_sequences(items, "entities", tokenizer, length, names=CODE_TAGS)
    labels = [item.label for item in items]
    return text_sequences([item.text for item in items], labels, CLASSES[task], tokenizer, length)


def _texts(built: tuple[list[list[str]], dict[str, str]]) -> DocumentationTask[LabelledText]:
    return _task(*built, lambda id, split, item: LabelledText(id, item[0], item[1], split))


def _task(splits: list[list[str]], about: dict[str, str], item: Callable[..., Any]) -> Any:
    train, test, outside = (
        [item(f"{split}-{n}", split, json.loads(line)) for n, line in enumerate(lines)]
        for split, lines in zip(SPLITS, splits, strict=True)
    )
    return DocumentationTask(train, test, outside, about, corpus_hash(splits))


# ---------------------------------------------------------------- which words are code

# A role, double backticks, single ones, and a link, which is no code.
_MARK = re.compile(r":([\w:+.-]+):`([^`<]+)`|``([^`]+)``|`([^`<]+)`(?!_)|`[^`]*`_")
_CODE_ROLES = {"class", "func", "meth", "mod", "attr", "obj", "data", "exc", "const"}
# What is left of markup, and what looks like code although nobody marked it.
_UNCLEAR = re.compile(
    r"[`*|=<>\\{}\[\]]|\w_|_\w|[a-z][A-Z]|[a-z]\d|\d[a-z]|\w\(|\w\.\w\w|(['\"])\w+\1"
    r"|\b(?:None|True|False|NaN|str|int|bool|dict|ndarray|dtype|args|kwargs)\b"
)
_ORDINARY = re.compile(r"[a-z]{2,}")
_WORDS = re.compile(r"\w+|[^\w\s]")


def marked_sentences(docstring: str) -> Iterator[list[Any]]:
    """[sentence without markup, [[start, end], …] of its code], for each sentence of prose that has
    code of small letters and no sign of code that is not marked."""
    for block in blocks(docstring) if "`" in docstring else ():
        for sentence in split_sentences(" ".join(block.split())):
            text, spans = without_marks(sentence)
            if not any(_ORDINARY.fullmatch(text[start:end]) for start, end in spans):
                continue
            rest = "".join(" " if any(s <= n < e for s, e in spans) else sign
                           for n, sign in enumerate(text))  # fmt: skip
            if is_prose(text) and not _UNCLEAR.search(rest) and _whole_words(text, spans):
                yield [text, spans]


def without_marks(sentence: str) -> tuple[str, list[tuple[int, int]]]:
    """The sentence without the marks of code, and where its code stands: (start, end) in it. Other
    marks stay."""
    text, spans, end = "", [], 0
    for mark in _MARK.finditer(sentence):
        role, target, *others = mark.groups()
        code = (target or others[0] or others[1] or "").strip()
        if not code or (role and role.rpartition(":")[2] not in _CODE_ROLES):
            continue
        code = code.rpartition(".")[2] if code.startswith("~") else code.lstrip("!.")
        text += sentence[end : mark.start()]
        spans.append((len(text), len(text) + len(code)))
        text, end = text + code, mark.end()
    return text + sentence[end:], spans


def _whole_words(text: str, spans: Sequence[tuple[int, int]]) -> bool:
    """Whether no word is partly code, and no code is empty."""
    places = [match.span() for match in _WORDS.finditer(text)]
    starts, ends = ({place[side] for place in places} for side in (0, 1))
    return all(start in starts and end in ends for start, end in spans)


def tagged(item: Sequence[Any], *, id: str = "", split: str = "") -> TaggedSentence:
    """A sentence and the places of its code as words and BIO tags."""
    text, spans = item
    first = {start for start, _ in spans}
    inside = {n for start, end in spans for n in range(start, end)}
    places = [match.start() for match in _WORDS.finditer(text)]
    tags = ["B-CODE" if n in first else "I-CODE" if n in inside else "O" for n in places]
    words = tuple(_WORDS.findall(text))
    return TaggedSentence(id, text, words, ("X",) * len(words), tuple(tags), split)


# ---------------------------------------------------------------- which section it is from

_NUMPY = re.compile(r"(?m)^(\w+)\n-{3,}\n((?:(?!\w[\w ]*\n-{3,}\n).*\n?)*)")
_GOOGLE = re.compile(r"(?m)^(Args|Returns|Raises|Attributes):[ \t]*\n((?:[ \t]+.*\n?|[ \t]*\n)+)")
# "name : type", with its description below; "name (type): description", and more below.
_NUMPY_ENTRY = re.compile(r"(?m)^\S.*\n((?:[ \t]+\S.*\n?)+)")
_GOOGLE_ENTRY = re.compile(r"(?m)^\S[^:\n]*: *(\S.*(?:\n[ \t]+\S.*)*)")


def section_sentences(docstring: str) -> Iterator[list[Any]]:
    """[first sentence of a description, its section], in the conventions of NumPy and of Google.
    "Summary" is what a docstring with such sections begins with."""
    entries = [
        *((name, _NUMPY_ENTRY.findall(body)) for name, body in _NUMPY.findall(docstring + "\n")),
        *(("Parameters" if name == "Args" else name, _GOOGLE_ENTRY.findall(_dedented(body)))
          for name, body in _GOOGLE.findall(docstring + "\n")),
    ]  # fmt: skip
    if entries:
        yield from _first_sentences([next(iter(blocks(docstring)))], "Summary")
    for name, paragraphs in entries:
        if name in SECTIONS:
            yield from _first_sentences(paragraphs, name)


def _dedented(body: str) -> str:
    """The lines less the indentation of the first: Google's entries are those at the margin."""
    margin = len(body) - len(body.lstrip(" \t"))
    return "\n".join(line[margin:] for line in body.split("\n"))


def _first_sentences(descriptions: Iterable[str], section: str) -> Iterator[list[Any]]:
    for description in descriptions:
        sentence = (split_sentences(plain(description)) or [""])[0].rstrip(" .:")
        # One form for all, so that capitals and full stops tell nothing.
        sentence = f"{sentence[:1].upper()}{sentence[1:]}."
        if len(sentence.split()) <= 40 and is_prose(sentence):
            yield [sentence, section]


# ---------------------------------------------------------------- of which type a parameter is

_NUMPY_TYPED = re.compile(r"(?m)^\S[^:\n]*: *(\S.*)\n((?:[ \t]+\S.*\n?)+)")
_MANY = re.compile(r"list|tuple|dict|sequence|iterable|\bsets?\b")  # "list of str" is no str
_GOOGLE_TYPED = re.compile(r"(?m)^\w+ \(([^()\n]*)\): *(\S.*(?:\n[ \t]+\S.*)*)")


def described_parameters(docstring: str) -> Iterator[list[Any]]:
    """[first sentence of a parameter's description, its kind], in the conventions of NumPy and of
    Google. A type that is none of KINDS, or more than one, is left out."""
    entries = [
        *(entry for name, body in _NUMPY.findall(docstring + "\n") if name == "Parameters"
          for entry in _NUMPY_TYPED.findall(body)),
        *(entry for name, body in _GOOGLE.findall(docstring + "\n") if name == "Args"
          for entry in _GOOGLE_TYPED.findall(_dedented(body))),
    ]  # fmt: skip
    for type_, description in entries:
        classes = [kind for kind, written in KINDS.items() if re.search(written, type_.lower())]
        if len(classes) == 1 and not _MANY.search(type_.lower()):
            yield from _first_sentences([description], classes[0])


# ---------------------------------------------------------------- from which package it is

_CODE = re.compile(r":[\w:+.-]+:`[^`]*`|``[^`]+``|`[^`]+`(?!_)")
# What looks like code: a point, a capital, a digit or an underscore inside; capitals; a call.
_IDENTIFIER = re.compile(r"\w+(?:\.\w+)+|\w+\(\)|\w*_\w*|\w*\d\w*|\w*[a-z][A-Z]\w*|\b[A-Z]{2,}\w*")
# The packages' names, long and short.
_NAMES = re.compile(
    r"\b(?:c?pythons?|num ?py|np|sci ?py|scikits?(?:[- ]learn)?|sk ?learn|(?:py)?torch|sym ?py"
    r"|networkx|nx|transformers?|hugging ?face)\b",
    re.IGNORECASE,
)


def nameless_paragraphs(held_out: bool) -> Modules:
    """[paragraph without names and code, its package], of at least eight words, of the modules of
    EIGHT. held_out: of modules to test with, what the checkpoint never read; else all but that."""
    for name, docstrings in in_order(EIGHT, "test" if held_out else None):
        prose = (b for text in docstrings for b in blocks(text) if is_prose(plain(b)))
        some = (b for b in prose if side_of(name) == "train" or held_out == _unread(b))
        texts = map(without_names, some)
        yield name, ([t, name.partition("/")[0]] for t in texts if len(t.split()) >= 8)


def _unread(block: str) -> bool:
    return split_of(plain(block)) == "heldout"


def without_names(block: str) -> str:
    """A paragraph on one line, without code, what looks like code, and the packages' names."""
    text = _NAMES.sub(" ", _IDENTIFIER.sub(" ", plain(_CODE.sub(" ", block))))
    return re.sub(r" (?=[.,;:!?)])", "", " ".join(text.split()))


# ---------------------------------------------------------------- from modules to sets


def _from_docstrings(
    what: str, read: Callable[[str], Iterable[list[Any]]], most: Sequence[int], classes: int = 1
) -> tuple[list[list[str]], dict[str, str]]:
    """What `read` finds in the docstrings of INSIDE and of OUTSIDE, as `_built` gives it."""
    modules = [read_modules(group, read) for group in (INSIDE, OUTSIDE)]
    return _built(what, modules, installed_versions((*INSIDE, *OUTSIDE)), most, classes)


def read_modules(packages: Iterable[str], read: Callable[[str], Iterable[list[Any]]]) -> Modules:
    """(name, what `read` finds in its docstrings) of the packages' modules."""
    for name, docstrings in in_order(packages):
        yield name, (item for text in docstrings for item in read(text))


def _built(
    what: str, modules: Sequence[Modules], versions: dict[str, str], most: Sequence[int],
    classes: int,
) -> tuple[list[list[str]], dict[str, str]]:  # fmt: skip
    """The items of each split as lines of JSON, and the versions they come from; from the cache
    where the same was built before. modules: those of train and test, and those of outside."""
    about = {**versions, what: f"rules {RULES}, at most {'/'.join(map(str, most))}"}
    path = cache_dir("documentation") / f"{what.replace(' ', '-')}-{'-'.join(map(str, most))}.jsonl"
    splits = read_cache(path, about)
    if splits is None:
        seen: set[str] = set()
        sides = dict(zip(SPLITS, most, strict=True))
        inside = drawn(modules[0], {s: sides[s] for s in SPLITS[:2]}, seen, classes)
        outside = drawn(modules[1], {"outside": sides["outside"]}, seen, classes)
        splits = [*inside.values(), *outside.values()]
        write_cache(path, splits, about)
    return splits, versions


def in_order(
    packages: Iterable[str],
    side: str | None = None,
    read: Callable[[Path], list[str]] | None = None,
) -> Iterator[tuple[str, list[str]]]:
    """(name, docstrings) of the packages' modules, or of those of one side, in the order of a hash
    of their names. read: what else is taken from a file."""
    read = read or module_docstrings
    files: dict[str, Path] = {}
    for package in packages:
        files |= source_files(package)
    for name in sorted(files, key=lambda name: hashlib.sha256(name.encode()).digest()):
        if side in (None, side_of(name)):
            yield name, read(files[name])


def side_of(module: str) -> str:
    """ "test" for one module in four, else "train": a function of its name alone."""
    return "test" if hashlib.sha256(module.encode()).digest()[-1] < 64 else "train"


def drawn(
    modules: Modules, most: Mapping[str, int], seen: set[str], classes: int = 1
) -> dict[str, list[str]]:
    """split -> lines of JSON, at most `most` of each and an equal part of each class. seen: the
    4-grams so far, which grow; a text of which more than half stood there is left out."""
    lines: dict[str, list[str]] = {split: [] for split in most}
    count: Counter[tuple[str, Any]] = Counter()
    for name, items in modules:
        if all(len(lines[split]) >= most[split] for split in most):
            break
        split = "outside" if "outside" in most else side_of(name)
        here: Counter[Any] = Counter()
        for item in items:
            label = item[1] if classes > 1 else ""
            full = count[split, label] >= most[split] // classes or here[label] >= MOST_A_MODULE
            if is_new(item[0], seen) and not full:
                count[split, label] += 1
                here[label] += 1
                lines[split].append(json.dumps(item, ensure_ascii=False))
    return lines


def is_new(text: str, seen: set[str]) -> bool:
    """Whether at most half of a text's 4-grams are among those seen, which it then joins."""
    words = re.findall(r"\w+", text.lower())
    grams = {" ".join(words[n : n + 4]) for n in range(max(1, len(words) - 3))}
    new = 2 * len(grams & seen) <= len(grams)
    seen |= grams
    return new


# ---------------------------------------------------------------- without an encoder


def window_tags(train: Sequence[TaggedSentence], test: Sequence[TaggedSentence]) -> list[list[str]]:
    """Tags of a logistic regression that sees each word, its form and two words to either side."""
    from sklearn.feature_extraction import DictVectorizer
    from sklearn.linear_model import LogisticRegression
    from sklearn.pipeline import make_pipeline

    model = make_pipeline(DictVectorizer(), LogisticRegression(max_iter=300))
    model.fit([window for s in train for window in windows(s)],
              [tag for s in train for tag in s.entities])  # fmt: skip
    return [_continued(model.predict(list(windows(s))).tolist()) for s in test]


def windows(sentence: TaggedSentence) -> Iterator[dict[str, bool]]:
    """What the window regression sees of each word."""
    words = ["", "", *sentence.words, "", ""]
    for n, word in enumerate(sentence.words):
        near = {f"{k:+} {words[n + 2 + k].lower()}": True for k in (-2, -1, 0, 1, 2)}
        form = {
            "capital": word[0].isupper(), "inner capital": not word[1:].islower(),
            "underscore": "_" in word, "digit": any(c.isdigit() for c in word),
            "one letter": len(word) == 1, f"ends {word[-3:].lower()}": True,
        }  # fmt: skip
        yield {**near, **{name: True for name, has in form.items() if has}}


def _continued(tags: list[str]) -> list[str]:
    """An I- that continues nothing begins a span: so every list is BIO."""
    before = ["O", *tags]
    return ["B-CODE" if tag == "I-CODE" and before[n] == "O" else tag for n, tag in enumerate(tags)]


def without_encoder(task: str, train: Sequence[Any], test: Sequence[Any]) -> float:
    """Span F1 of the window regression, or accuracy of a bag of words."""
    if task == CODE:
        return span_scores([s.entities for s in test], window_tags(train, test)).f1
    return label_accuracy(train, test, "words")
