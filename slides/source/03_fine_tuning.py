"""What deck 03 shows: computed here, or read from data/results and data/papers; never trained."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import lru_cache
from html import escape
from itertools import chain
from math import prod
from statistics import mean, stdev
from typing import Any

import drawing
import torch
from drawing import apart, arrow, body_of, code, for_a_hall, large, rect, svg, table, words

from course_lib import bert, count_parameters, load_pretrained, to_transformers
from course_lib.files import data_path
from course_lib.heads import (
    BertForClassification,
    BertForQuestionAnswering,
    BertForTokenClassification,
)
from course_lib.lectures.lecture_03.claims import PRINTED_ANSWERS
from course_lib.lectures.lecture_03.experiments import (
    COURSE,
    CURVES,
    MINILM,
    STARTS,
    WORLD_NLI,
    TuningRecipe,
    read_task,
)
from course_lib.lectures.lecture_03.views import learning_curves, loss_line
from course_lib.lectures.lecture_03.views.cut_pairs import cut_picture
from course_lib.objectives.spans import Spans, best_spans
from course_lib.teaching import bar_chart, curves_chart
from course_lib.teaching.claims import claims, printed
from course_lib.teaching.results import read_result
from course_lib.teaching.style import BLUE, GREY, INK, ORANGE, VERMILION
from course_lib.text import english
from course_lib.text.features import tagged_sequences
from course_lib.train.finetuning import LOSSES, head_on, targets_of, text_inputs
from course_lib.train.pretrain_recipe import PretrainRecipe, read_recipe
from course_lib.train.span_metrics import bio_spans, span_scores
from course_lib.train.task_metrics import accuracy

BOLD = ' font-weight="650"'
MUTED = ' fill="#5a5a5a"'
MONO = f' style="{drawing.MONO}"'
SHADED = "#cfe5f3"  # vectors that are read, ends that are chosen


def _signed(points: float, digits: int = 1) -> str:
    return f"{points:+.{digits}f}".replace("-", "−")


@lru_cache(maxsize=1)
def _course() -> Any:
    """The course's checkpoint: encoder and tokenizer."""
    return load_pretrained("course-bert")


@lru_cache(maxsize=1)
def _recipe() -> PretrainRecipe:
    return read_recipe(data_path("recipes", "course_bert.toml"))


@lru_cache(maxsize=1)
def _fine() -> TuningRecipe:
    return TuningRecipe("", "")


# ---------------------------------------------------------------- 2: two stages


def two_stages() -> str:
    """One pre-training, and from its weights as many fine-tunings as there are tasks."""
    tasks = ("sentiment, spam", "pairs (NLI)", "parts of speech", "names", "answers")
    parts = [
        rect(0, 84, 190, 76, fill="#f7f7f6", dash="6 4"),
        words(95, 116, "much text,"), words(95, 142, "no labels"),
        arrow(192, 122, 238, 122),
        rect(240, 64, 250, 116, fill="#e3f0f8", ink=BLUE, wide=2),
        words(365, 102, "pre-training", 24, style=BOLD), words(365, 132, "guess hidden words"),
        words(365, 160, "once: days", 20, style=MUTED),
        arrow(492, 122, 548, 122),
        rect(550, 84, 170, 76, fill=SHADED, ink=BLUE, wide=3), words(635, 116, "the weights", 22),
        words(635, 142, "of an encoder"),
    ]  # fmt: skip
    for k, task in enumerate(tasks):
        y = 2 + 48 * k
        parts += [
            arrow(722, 122, 838, y + 20),
            rect(840, y, 200, 40, task, fill="#fdf1d6", ink="#8a5f00", wide=2, dash="7 4"),
        ]
    parts += [
        words(1056, 102, "fine-", 22, "start", BOLD),
        words(1056, 128, "tuning:", 22, "start", BOLD),
        words(1056, 156, "minutes", 20, "start", MUTED),
    ]  # fmt: skip
    return svg(1150, 244, *parts, says="pre-training once, then fine-tuning for each of five tasks")


def sizes() -> str:
    """What is read in either stage: BERT as its paper has it, and the course's BERT."""
    paper, glue = printed("bert"), printed("glue")["tasks"]
    before, after = paper["pretraining"], paper["finetuning"]
    texts = [task["train"] for task in glue.values() if "train" in task]
    recipe = _recipe()
    steps = recipe.training.steps
    tokens = recipe.training.batch_size * recipe.text.length
    ours = [len(_train(name)) for name in ("sentiment", "spam", "nli", "ner")]
    low, high = (f"{rows}" for rows in after["batch"])
    rows = (
        ("<strong>BERT</strong> reads", f"{_billions(before)} billion words",
         f"{min(texts):,} to {max(texts):,} labelled texts (GLUE)"),
        ("for", f"{before['steps']:,} steps of {before['batch']} rows",
         f"{min(after['epochs'])} to {max(after['epochs'])} passes, {low} or {high} texts a step"),
        ("<strong>ours</strong> reads",
         f"{_result('03_checkpoint')['text']['words'] / 1e6:.1f} million words of documentation",
         f"{min(ours)} to {max(ours)} labelled texts"),
        ("for", f"{steps:,} steps of {tokens:,} tokens",
         f"{_fine().steps} steps of {_fine().batch_size} texts"),
    )  # fmt: skip
    return table(("", "pre-training", "fine-tuning, each task"), rows, numbers=False, size=22)


def _billions(pretraining: dict[str, Any]) -> str:
    return f"{(pretraining['words_books'] + pretraining['words_wikipedia']) / 1e9:.1f}"


@lru_cache(maxsize=8)
def _train(name: str) -> Any:
    return read_task(name, "train", _course().tokenizer)


def _rows_share() -> str:
    """Rows that three passes over MNLI read, of those that BERT's pre-training reads."""
    before = printed("bert")["pretraining"]
    share = 3 * printed("glue")["tasks"]["MNLI"]["train"] / (before["steps"] * before["batch"])
    return f"{share:.1%}"


# ---------------------------------------------------------------- 3: four heads

ENCODER, VECTORS, HEAD = 112, 84, 38  # from the top of a panel to each, pixels
PANEL = 556


def four_heads() -> str:
    """Which of the encoder's vectors a task reads: filled; the others are empty and dashed."""
    panels = (
        ("a text → a class", "[CLS] the soup was cold [SEP]", {0: "negative"}),
        ("a pair → a class", "[CLS] all slept [SEP] one woke [SEP]", {0: "contradiction"}),
        ("every word → a tag", "[CLS] Ines moved to Turin [SEP]",
         {1: "B-PER", 2: "O", 3: "O", 4: "B-LOC"}),
        ("two vectors → start and end", "[CLS] when ? [SEP] it opens at noon [SEP]",
         {0: "none, or", 4: "", 5: "", 6: "start", 7: "end"}),
    )  # fmt: skip
    parts = [
        f'<g transform="translate({(PANEL + 38) * (k % 2)},{226 * (k // 2)})">{_panel(*one)}</g>'
        for k, one in enumerate(panels)
    ]
    return svg(1150, 430, *parts, says="four tasks and the vectors that their heads read")


def _panel(title: str, text: str, answers: dict[int, str]) -> str:
    tokens = text.split()
    wide = [14 + 9.7 * len(token) for token in tokens]
    space = (PANEL - sum(wide)) / (len(tokens) - 1)
    lefts = [sum(wide[:k]) + k * space for k in range(len(tokens))]
    parts = [
        words(0, 16, title, 21, "start", BOLD),
        rect(0, ENCODER, PANEL, 36, "the same pre-trained encoder", size=18, fill="#e3f0f8",
             ink=BLUE, wide=2),
    ]  # fmt: skip
    for k, (token, left, w) in enumerate(zip(tokens, lefts, wide, strict=True)):
        middle = left + w / 2
        read = k in answers
        look = {"fill": BLUE, "ink": INK} if read else {"fill": "#fff", "dash": "3 3"}
        parts += [
            rect(left, ENCODER + 46, w, 32, token, size=16, mono=True),
            rect(middle - 7, VECTORS, 14, 27, **look),
        ]
        if read:
            parts.append(arrow(middle, VECTORS - 2, middle, HEAD + 24))
            x, anchor = (0, "start") if k == 0 else (middle, "middle")
            parts.append(words(x, HEAD + 16, answers[k], 18, anchor, BOLD))
    return "".join(parts)


# ---------------------------------------------------------------- 4: how little is new

HEADS: dict[str, Callable[[Any], Any]] = {
    "sentiment: 2": lambda encoder: BertForClassification(encoder, 2),
    "NLI: 3": lambda encoder: BertForClassification(encoder, 3),
    "names: 7 tags": lambda encoder: BertForTokenClassification(encoder, english.ENTITY_TAGS),
    "answers: 2 ends": BertForQuestionAnswering,
}


@lru_cache(maxsize=1)
def _sizes() -> dict[str, tuple[int, ...]]:
    """Weights of an encoder of BERT-base's shape and of ours, then of each head on it."""
    with torch.device("meta"):  # counts without memory
        shapes = {"base": bert("base"), "ours": bert("mini", vocab_size=8_192, max_positions=128)}
        return {
            name: (count_parameters(encoder), *(_on(encoder, head) for head in HEADS.values()))
            for name, encoder in shapes.items()
        }


def _on(encoder: Any, head: Callable[[Any], Any]) -> int:
    return count_parameters(head(encoder)) - count_parameters(encoder)


def new_weights() -> str:
    whole, *base = _sizes()["base"]
    _, *ours = _sizes()["ours"]
    rows = [
        (name, f"{new:,}", f"{whole // new:,}", f"{small:,}")
        for name, new, small in zip(HEADS, base, ours, strict=True)
    ]
    return table(("new weights", "BERT-base", "one in", "ours"), rows, size=22)


def changed_settings() -> str:
    before, after = printed("bert")["pretraining"], printed("bert")["finetuning"]
    rows = [
        (said, _short(before[name]), ", ".join(map(_short, after[name])))
        for name, said in (
            ("batch", "rows a step"), ("learning_rate", "learning rate"), ("epochs", "passes"),
        )
    ]  # fmt: skip
    return table(("", "before", "fine-tuning"), rows, size=22)


def _short(value: float) -> str:
    return f"{value:g}" if value >= 1 else f"{value:.0e}".replace("e-0", "e−")


def _runs_a_task() -> int:
    """Runs, if every combination of the values is tried."""
    return prod(len(v) for v in printed("bert")["finetuning"].values() if isinstance(v, list))


# ---------------------------------------------------------------- 5: labels for words

SHOWN_SENTENCE = 103  # as in the notebook: two entities side by side


def first_pieces() -> str:
    """A training sentence: its words over its tokens, and each token's label below."""
    sentence = english.tagged_sentences("train")[SHOWN_SENTENCE]
    tokenizer = _course().tokenizer
    row = tagged_sequences([sentence], "entities", tokenizer, 40)
    ids = row.sequences.input_ids[0, : int(row.sequences.attention_mask.sum())].tolist()
    labels, first = row.labels[0].tolist(), row.first[0]
    step = 1150 / len(ids)
    parts = []
    for n, word in enumerate(sentence.words):
        end = first[n + 1] if n + 1 < len(first) else len(ids) - 1
        left, right = step * first[n], step * end
        parts += [
            words((left + right) / 2 - 3, 22, escape(word), 22),
            arrow(left + 4, 42, left + 4, 34, right - 10, 34, right - 10, 42, tip=False),
        ]
    for k, number in enumerate(ids):
        x, asked = step * k, labels[k] >= 0
        token = escape(tokenizer.token(number))
        look = {"fill": SHADED, "ink": BLUE} if asked else {"dash": "5 4"}
        middle = x + step / 2 - 2
        parts += [
            rect(x, 50, step - 4, 40, token, size=15, mono=True, wide=2, **look),
            words(middle, 122, row.names[labels[k]] if asked else "–", 18, style=BOLD * asked),
            words(middle, 150, f"{labels[k]}".replace("-", "−"), 17,
                  style=MONO if asked else MONO + MUTED),
        ]  # fmt: skip
    return svg(1150, 160, *parts, says="words, tokens, tags and their numbers of one sentence")


def way_back() -> str:
    """From the tags of that sentence to its entities, as stretches of the text."""
    sentence = english.tagged_sentences("train")[SHOWN_SENTENCE]
    rows = []
    for kind, first, last in sorted(bio_spans(sentence.entities), key=lambda span: span[1]):
        start, end = sentence.offsets[first][0], sentence.offsets[last][1]
        found = f"“{escape(sentence.text[start:end])}”"
        rows.append((kind, f"{first} to {last}", f"{start} to {end}", found))
    head = ("entity", "words", "characters", "text[start:end]")
    return table(head, rows, numbers=False, size=22)


# ---------------------------------------------------------------- 6: BIO, and a score by hand

NAMED = ["Edda", "Marlow", "plays", "for", "North", "Quay", "Rovers", "in", "Tromsø", "."]
TRUE = ["B-PER", "I-PER", "O", "O", "B-ORG", "I-ORG", "I-ORG", "O", "B-LOC", "O"]
SAID = [*TRUE[:6], "O", *TRUE[7:]]  # one word wrong


def two_taggings() -> str:
    """The true tags above, those of a tagger below; brackets are entities, ✗ is a wrong word."""
    step = 115
    parts = []
    for k, word in enumerate(NAMED):
        wrong = TRUE[k] != SAID[k]
        parts.append(rect(step * k, 66, step - 8, 44, word, wide=3.5 if wrong else 1.5,
                          ink=VERMILION if wrong else "#8a8a8a"))  # fmt: skip
    for y, tags, ys, side in ((30, TRUE, (48, 56), "true"), (160, SAID, (128, 120), "said")):
        parts += [
            words(step * k + 53, y, f"{'✗ ' * (side == 'said' and tag != TRUE[k])}{tag}", 20,
                  style=BOLD if tag != "O" else MUTED)
            for k, tag in enumerate(tags)
        ]  # fmt: skip
        for _, first, last in bio_spans(tags):
            left, right = step * first + 3, step * (last + 1) - 11
            parts.append(arrow(left, ys[1], left, ys[0], right, ys[0], right, ys[1], tip=False))
    return svg(1150, 172, *parts, says="true tags above ten words, a tagger's below; one is wrong")


def tag_scores() -> str:
    true, said = bio_spans(TRUE), bio_spans(SAID)
    scores, hits = span_scores([TRUE], [SAID]), len(true & said)
    right = sum(a == b for a, b in zip(TRUE, SAID, strict=True))
    rows = (
        ("words with the right tag", f"{right} of {len(TRUE)}", f"{accuracy(TRUE, SAID):.0%}"),
        ("precision: of the entities it said", f"{hits} of {len(said)}", f"{scores.precision:.2f}"),
        ("recall: of the true entities", f"{hits} of {len(true)}", f"{scores.recall:.2f}"),
        ("<strong>F1</strong>, their harmonic mean", "", f"<strong>{scores.f1:.2f}</strong>"),
    )
    return table(("", "right", "score"), rows, size=24)


@lru_cache(maxsize=1)
def _silent() -> tuple[float, float]:
    """Words right, and F1, of a tagger that finds nothing in the test sentences."""
    truth = [sentence.entities for sentence in english.tagged_sentences("test")]
    silent = [["O"] * len(tags) for tags in truth]
    right = accuracy(chain.from_iterable(truth), chain.from_iterable(silent))
    return right, span_scores(truth, silent).f1


# ---------------------------------------------------------------- 7: a pair, and what is cut

SHOWN_PAIR, ROOM = 3, 24


def cut_pair() -> str:
    """A training pair in a row that is too short for it."""
    pair, tokenizer = english.nli_pairs("train")[SHOWN_PAIR], _course().tokenizer
    first, second = (
        [tokenizer.token(i) for i in tokenizer.encode(text)]
        for text in (pair.premise, pair.hypothesis)
    )
    return large(cut_picture(first, second, ROOM).html, 1.36)


def what_was_cut() -> str:
    """How many of our training texts fit into their rows, and how passages are cut in windows."""
    rows = []
    for name, said in (("sentiment", "reviews"), ("nli", "pairs"), ("ner", "sentences")):
        task = _train(name)
        assert task.cut.texts == 0  # as the notes say
        rows.append((said, f"{len(task)}", f"{task.cut.length}", f"{task.cut.texts}"))
    asked = _train("qa")
    said = f"{len(asked.questions)} in {len(asked)} windows"
    rows.append(("questions", said, f"{asked.cut.length}", f"{asked.cut.texts}"))
    return table(("to learn from", "how many", "places", "cut"), rows, size=20)


# ---------------------------------------------------------------- 8: an answer is a stretch

PASSAGE = ["Along", "cracks", "the", "stone", "is", "eaten", "away", "first"]
START_SCORES = (0.4, 2.0, 1.5, 0.1, 0.3, 0.0, 0.2, 0.4, 0.9)  # [CLS] comes first
END_SCORES = (0.9, 0.2, 2.5, 0.0, 0.8, 0.1, 0.0, 0.6, 3.0)
CAP = 3


@lru_cache(maxsize=2)
def _best(longest: int) -> Spans:
    allowed = torch.ones(1, len(START_SCORES), dtype=torch.bool)
    allowed[0, 0] = False
    return best_spans(torch.tensor([START_SCORES]), torch.tensor([END_SCORES]), allowed, longest)


def _text_of(found: Spans) -> str:
    return " ".join(PASSAGE[int(found.start) - 1 : int(found.end)])


def span_grid() -> str:
    """Start plus end for every pair of words: below the diagonal impossible, far from it too long;
    the best span without a cap is dashed, the best with it shaded."""
    loose, capped = ((int(f.start), int(f.end)) for f in (_best(8), _best(CAP)))
    x0, y0, wide, high = 128, 62, 66, 36
    parts = [words(0, 22, "start", 20, "start", BOLD), words(x0, 22, "end →", 20, "start", BOLD)]
    for k, word in enumerate(PASSAGE, 1):
        parts += [
            words(x0 + wide * (k - 0.5), 50, f"{END_SCORES[k]:.1f}", 19, style=BOLD),
            words(0, y0 + high * (k - 0.5) + 7, word, 20, "start"),
            words(x0 - 12, y0 + high * (k - 0.5) + 7, f"{START_SCORES[k]:.1f}", 19, "end", BOLD),
        ]
    for i in range(1, 9):
        for j in range(1, 9):
            x, y = x0 + wide * (j - 1), y0 + high * (i - 1)
            if j < i:
                parts.append(words(x + wide / 2, y + 25, "✗", 18, style=' fill="#767676"'))
                continue
            long = j - i >= CAP
            look = {"fill": "#f1f1f1", "ink": "#cfcfcf"} if long else {}
            if (i, j) == capped:
                look = {"fill": SHADED, "ink": BLUE, "wide": 3.5}
            elif (i, j) == loose:
                look = {"fill": "#f1f1f1", "ink": VERMILION, "wide": 3.5, "dash": "6 4"}
            said = f"{START_SCORES[i] + END_SCORES[j]:.1f}"
            parts.append(rect(x + 2, y + 2, wide - 4, high - 4, said, size=19, **look))
    return svg(660, 352, *parts, says="sums of start and end scores of all pairs of eight words")


# ---------------------------------------------------------------- 9: the code, and is it right?

TASK_HEADS = (
    ("class", BertForClassification),
    ("tag", BertForTokenClassification),
    ("answer", BertForQuestionAnswering),
)


def code_heads() -> str:
    """What differs between the three forward passes, and the search for the best span."""
    lines = [
        f"# {name}\n{body_of(head.forward, start=start)}"
        for (name, head), start in zip(TASK_HEADS, ("logits", "logits", "start"), strict=True)
    ]
    shown = "\n".join(lines).splitlines()
    kept = [line for line in shown if line.startswith(("#", "logits", "start"))]
    search = body_of(best_spans, start="start, end").splitlines()
    search = [line for line in search if not line.startswith(("first", "null", "return", "#"))]
    source = "\n".join([*kept, "# best span", *search])
    return f'<div style="zoom:0.95">{code(source)}</div>'


@lru_cache(maxsize=1)
def _parity() -> list[tuple[str, float, float]]:
    """Of three tasks: transformers' class, our loss and theirs, same weights and same rows."""
    found = []
    for name, theirs_say in (
        ("nli", {"labels": "classes"}),
        ("ner", {"labels": "token_labels"}),
        ("qa", {"start_positions": "start", "end_positions": "end"}),
    ):
        part = read_task(name, "test", _course().tokenizer)[:12]
        ours = head_on(_course().encoder, part).eval()
        theirs = to_transformers(ours).eval()
        targets, inputs = targets_of(part), text_inputs(part)
        asked = {key: targets[value] for key, value in theirs_say.items()}
        with torch.no_grad():
            loss = LOSSES[type(part)](ours(**inputs), targets)["total"].item()
            other = theirs(**inputs, **asked).loss.item()
        assert abs(loss - other) < 1e-5, name
        found.append((type(theirs).__name__, loss, other))
    return found


def parity() -> str:
    rows = [
        (theirs, f"{loss:.6f}", f"{other:.6f}", f"{abs(loss - other):.1g}")
        for theirs, loss, other in _parity()
    ]
    return table(("head, on 12 test rows", "our loss", "transformers", "apart"), rows, size=21)


# ---------------------------------------------------------------- 10: check the printed number


def _intro() -> dict[str, Any]:
    return english.examples()["entities"][0]


def ruler() -> str:
    """The first sentence of the self-introduction, a mark every ten characters."""
    text = _intro()["text"].split(". ")[0] + "."
    step = 13.2
    parts = []
    for k, sign in enumerate(text):
        x = step * (k + 0.5)
        if sign != " ":
            parts.append(words(x, 28, escape(sign), 22, style=MONO))
        tall = 8 if k % 10 else 14
        parts.append(arrow(x, 40, x, 40 + tall, tip=False))
        if k % 10 == 0:
            parts.append(words(x, 74, str(k), 18))
    return svg(1150, 80, *parts, says=text)


def printed_names() -> str:
    """Two stretches as a page might print them: one in its place, one as far off as the lecture's
    first answer."""
    _, start, _, at = PRINTED_ANSWERS[0]
    first, second = _intro()["entities"][:2]
    rows = [
        (f"“{one['text']}”", f"{one['start'] - shift}–{one['end'] - shift}",
         f"{one['end'] - one['start']}", f"{len(one['text'])}")
        for one, shift in ((first, 0), (second, at - start))
    ]  # fmt: skip
    return table(("a page prints", "at", "end − start", "letters"), rows, size=22)


def lecture_offsets() -> str:
    rows = [
        (f"“{escape(answer)}”", f"{start}–{end}", f"{at}–{at + len(answer)}", _shift(at - start))
        for answer, start, end, at in PRINTED_ANSWERS
    ]
    return table(("lecture 002", "at", "it stands at", "off by"), rows, size=21)


def _shift(characters: int) -> str:
    return f"{characters:+d}".replace("-", "−")


@lru_cache(maxsize=16)
def _settled(claim: str) -> Any:
    one = next(one for one in claims("03") if one.id == claim)
    assert one.settle is not None
    return one.settle()


def _question() -> str:
    """The worked question whose answer stands nowhere in its passage."""
    asked = chain.from_iterable(passage["items"] for passage in english.examples()["questions"])
    return next(item["question"] for item in asked if not item["answers"])


def _spans_counted() -> str:
    """How many spans the passage of that question has, as the claim counts them."""
    value, said = _settled("E90").value, _settled("E90").detail
    assert value == (0.0, True)  # as the slide says
    return said.split()[1]


# ---------------------------------------------------------------- 11: the checkpoint, the plateau

OURS = COURSE, f"{COURSE}, fresh"  # starts of one shape


@lru_cache(maxsize=8)
def _result(name: str) -> dict[str, Any]:
    try:
        return read_result(name)
    except FileNotFoundError as missing:
        raise RuntimeError(
            f"data/results/{name}.json is not there, and this slide shows what it holds. "
            "`python -m course_lib.teaching.results 03` makes it (hours on two cores)."
        ) from missing


def plateau() -> Any:
    """Training losses of the first steps, begun in four ways, and that of frequencies alone."""
    found = _result("03_plateau")
    curves = {}
    for name, run in found["runs"].items():
        every = found["steps"] // len(run["loss"])
        curves[name] = [[(every * (k + 1), loss) for k, loss in enumerate(run["loss"])]]
    figure = curves_chart(
        curves, levels={"frequencies alone": found["unigram"]}, title="",
        x_title=f"steps of {found['tokens_a_step']:,} tokens", y_title="training loss, nats",
    )  # fmt: skip
    return apart(for_a_hall(figure, 690, 370, right=235).update_annotations(font_size=17), 0.3)


UNDER = 1.0  # nats, under the loss of frequencies


def off_the_plateau() -> str:
    """For each run the steps after which its loss is so far under that of frequencies."""
    found = _result("03_plateau")
    rows = []
    for name, run in found["runs"].items():
        every = found["steps"] // len(run["loss"])
        low = (k for k, loss in enumerate(run["loss"], 1) if loss < found["unigram"] - UNDER)
        first = next(low, None)
        said = f"{every * first:,} steps" if first else f"not in {found['steps']:,}"
        rows.append((name, said))
    assert sum("not" in said for _, said in rows) == len(rows) - 1  # as the notes say
    return table((f"{UNDER:g} nat under it", "after"), rows, size=20)


def our_checkpoint() -> str:
    found = _result("03_checkpoint")
    shape, reached = _course().encoder.config, found["reached"]
    tokens = _recipe().training.steps * _recipe().training.batch_size * _recipe().text.length
    rows = (
        ("layers × width", f"{shape.num_layers} × {shape.hidden_size}"),
        ("weights", f"{found['parameters'] / 1e6:.1f}M"),
        ("words of text", f"{found['text']['words'] / 1e6:.1f}M"),
        ("tokens read", f"{tokens / 1e6:.0f}M"),
        ("hidden tokens found", f"<strong>{reached['heldout_accuracy']:.1%}</strong>"),
        ("by the commonest token", f"{found['commonest']:.1%}"),
    )
    return table(("course-bert", ""), rows, size=20)


def _minutes() -> str:
    """How long the run takes at its median speed."""
    tokens = _recipe().training.steps * _recipe().training.batch_size * _recipe().text.length
    return f"{tokens / _result('03_checkpoint')['tokens_per_second'] / 60:.0f}"


def _look(after: int) -> int:
    """The last step in short rows at which the run was measured, or the first after it."""
    every = _recipe().reports.evaluate_every
    return every * (_recipe().training.short_steps // every + after)


def _found_at(step: int) -> str:
    """Hidden tokens of held-out rows found after so many steps."""
    curve = _result("03_checkpoint")["curve"]
    measured = {line["step"]: line for line in curve if "heldout_accuracy" in line}
    return f"{measured[step]['heldout_accuracy']:.0%}"


# ---------------------------------------------------------------- 12, 13: what is to be beaten

# task -> what it is called, and the data and measure of its baselines
SCORED = {
    "sentiment": ("reviews", "reviews", "accuracy"),
    "spam": ("messages", "messages", "accuracy"),
    "nli": ("pairs", "nli", "accuracy"),
    "pos": ("parts of speech", "tagged", "POS accuracy"),
    "ner": ("names, F1", "tagged", "entity F1"),
    "qa": ("answers, F1", "passages", "F1"),
}


@lru_cache(maxsize=1)
def _baselines() -> dict[tuple[str, str], dict[str, float]]:
    """(data, measure) -> rule -> its score on the test texts."""
    found: dict[tuple[str, str], dict[str, float]] = {}
    for data, measure, rule, score in _result("03_tasks")["baselines"]:
        found.setdefault((data, measure), {})[rule] = score
    return found


RULES = {"nothing": "always the same", "length": "lengths", "words": "bags of<br>both texts’ words",
         "hypothesis": "the hypothesis<br>alone"}  # fmt: skip


def pair_rules() -> Any:
    """Test accuracy of rules on NLI pairs, with the level that a hypothesis alone must not pass."""
    rules = _baselines()["nli", "accuracy"]
    figure = bar_chart(
        {said: rules[rule] for rule, said in RULES.items()}, percent=True, y_title="pairs right"
    )
    figure.add_shape(
        type="line", x0=2.6, x1=3.4, y0=LIMIT, y1=LIMIT, line={"color": INK, "dash": "dot"}
    )
    figure.add_annotation(
        x=3.4, y=LIMIT, text=f"limit {LIMIT:.0%}", showarrow=False, xanchor="right",
        yanchor="bottom",
    )  # fmt: skip
    figure.update_traces(marker_color=[GREY, GREY, ORANGE, BLUE])
    figure.update_xaxes(tickangle=0, tickfont_size=17)
    figure.update_yaxes(range=[0, 0.55])
    return for_a_hall(figure, 690, 380)


LIMIT = 0.45  # share of pairs that the hypothesis alone may tell, by the data sheet


def other_rules() -> str:
    rows = []
    for task, (said, data, measure) in SCORED.items():
        if task != "nli":
            rule, score = _best_rule(task)
            rows.append((said, RULE_NAMES[rule], f"{score:.0%}"))
            assert _baselines()[data, measure][rule] == score
    return table(("", "best rule", ""), rows, numbers=False, size=20)


RULE_NAMES = {"nothing": "always the same", "words": "bag of words", "length": "length",
              "word list": "its usual tag", "list of names": "seen before",
              "no answer": "never answer", "overlap": "shared words"}  # fmt: skip


def _best_rule(task: str) -> tuple[str, float]:
    rules = _baselines()[SCORED[task][1:]]
    best = max(rules, key=lambda rule: rules[rule])
    return best, rules[best]


def _scores(task: str, start: str) -> list[float]:
    return [run["score"] for run in _result("03_tasks")["runs"][task].get(start, [])]


def worth() -> str:
    """Every task from every start: mean of the seeds, and their deviation."""
    rows = []
    for task, (said, *_) in SCORED.items():
        rule, fresh = _best_rule(task)[1], _scores(task, OURS[1]) + _scores(task, STARTS[3])
        cells = []
        for start in (OURS[1], OURS[0], STARTS[3], STARTS[2]):
            found = _scores(task, start)
            shown = _spread(found) if found else "–"
            clear = found and min(found) > max(rule, *fresh)
            cells.append(f"<strong>{shown}</strong>" if clear else shown)
        rows.append((said, f"{100 * rule:.0f}", *cells))
    head = ("test, %", "rule", "ours, fresh", "ours", "MiniLM, fresh", "MiniLM")
    return table(head, rows, size=22)


def _spread(values: Sequence[float]) -> str:
    return f"{100 * mean(values):.1f} (sd {100 * stdev(values):.1f})"


def _share(task: str, start: str) -> str:
    return f"{mean(_scores(task, start)):.0%}"


def _gain(task: str) -> float:
    """Points that pre-training our small BERT adds."""
    before, after = (mean(_scores(task, start)) for start in (OURS[1], OURS[0]))
    return 100 * (after - before)


def _clear_gain(task: str) -> str:
    """The same, of a task where every pre-trained run is better than every fresh one."""
    assert min(_scores(task, OURS[0])) > max(_scores(task, OURS[1])), task  # as the slide says
    return _signed(_gain(task), 0)


def _no_clear_gain(task: str) -> str:
    """The same, of a task where the runs overlap."""
    assert min(_scores(task, OURS[0])) <= max(_scores(task, OURS[1])), task  # as the slide says
    return _signed(_gain(task))


def _under_rule(task: str, starts: Sequence[str]) -> str:
    """The best simple rule's score, which none of the starts reaches in the mean."""
    rule = _best_rule(task)[1]
    assert all(mean(_scores(task, start)) < rule for start in starts), task  # as the slide says
    return f"{rule:.0%}"


# ---------------------------------------------------------------- 14: learning curves


def curves() -> Any:
    found = _result("03_curves")
    shown = {task: found["curves"][task] for task in CURVES}
    figure = learning_curves({**shown, "baselines": found["baselines"]})
    return for_a_hall(figure, 1120, 420).update_annotations(font_size=18)


def _points(task: str, start: str) -> list[tuple[int, float]]:
    """(number of training texts, mean score of the seeds), rising."""
    found = _result("03_curves")["curves"][task][start]
    return sorted((int(n), mean(scores)) for n, scores in found.items())


def _few_against_all() -> tuple[int, float, int, float]:
    """Names: the fewest sentences with which our BERT is as good as its shape from fresh weights
    with all, and those."""
    most = _points("ner", OURS[1])[-1]
    few = next(point for point in _points("ner", OURS[0]) if point[1] >= most[1])
    return (*few, *most)


def _world(start: str) -> str:
    """The micro-world's pairs right, with rising numbers of them to learn from."""
    points = _points(WORLD_NLI, start)
    return ", ".join(f"{score:.0%} with {n:,}" for n, score in points)


# ---------------------------------------------------------------- 15: frozen, or fine-tuned

FEATURES = {
    "fine_tuned": "fine-tuned", "concatenated_last_four": "last four, side by side",
    "weighted_sum_last_four": "last four, weighted sum", "second_to_last": "last but one",
    "weighted_sum_all": "all, weighted sum", "last": "last", "embeddings": "embeddings",
}  # fmt: skip


def features_table() -> str:
    paper = printed("bert")["features"]
    rows = [
        (f"<strong>{said}</strong>" if name == "fine_tuned" else said, f"{paper[name]}")
        for name, said in FEATURES.items()
    ]
    return table(("BERT, Table 7: names", "dev F1"), rows, size=20)


def layers() -> Any:
    """A linear classifier on the frozen vectors of each layer, two encoders, two tasks."""
    found = _result("03_features")["layers"]
    curves = {}
    for task, said in (("ner", "names"), ("sentiment", "reviews")):
        for start in (MINILM, COURSE):
            values = [v for name, v in found[start][task].items() if name.startswith("layer")]
            curves[f"{said}, {start}"] = [list(enumerate(values))]
    figure = curves_chart(
        curves, percent=True, title="", x_title="layer, 0: the embeddings", y_title="test, right"
    )
    figure.update_xaxes(dtick=1)
    return for_a_hall(figure, 690, 380, right=225).update_annotations(font_size=17)


def _by_layer(task: str, start: str) -> list[float]:
    found = _result("03_features")["layers"][start][task]
    return [share for name, share in found.items() if name.startswith("layer")]


def _best_layer(task: str, start: str) -> tuple[int, float]:
    """The layer whose frozen vectors tell most; not the last one, as the slide says."""
    shares = _by_layer(task, start)
    best = max(range(len(shares)), key=shares.__getitem__)
    assert best < len(shares) - 1
    return best, shares[best]


# ---------------------------------------------------------------- 16: the line


def line() -> Any:
    figure = loss_line(_result("03_loss_line")["lines"])
    return for_a_hall(figure, 1120, 400).update_layout(margin_t=70).update_annotations(font_size=18)


def _on_the_line(start: str, what: str, alpha: float) -> float:
    found = _result("03_loss_line")["lines"][start]
    return float(found[what][found["alpha"].index(alpha)])


def _highest_between(start: str) -> str:
    """Where the loss between before and after is highest: at the start, as the slide says."""
    found = _result("03_loss_line")["lines"][start]
    inner = [
        loss for a, loss in zip(found["alpha"], found["train_loss"], strict=True) if 0 <= a <= 1
    ]
    assert inner == sorted(inner, reverse=True)
    return f"{inner[0]:.1f}"


def _best_on_the_line(start: str) -> str:
    """The best test score on the line, and where it is."""
    found = _result("03_loss_line")["lines"][start]
    best, at = max(zip(found["test_score"], found["alpha"], strict=True))
    return f"{best:.0%} at α = {at:g}"


# ---------------------------------------------------------------- GLUE, names, answers


def glue_tasks() -> str:
    rows = [
        (f"<strong>{name.replace('-', '‑')}</strong>", task["input"],
         f"{task['train']:,}" if "train" in task else "–", ", ".join(task["metrics"]))
        for name, task in printed("glue")["tasks"].items()
        if isinstance(task, dict)
    ]  # fmt: skip
    return table(("", "one example", "texts", "scored by"), rows, numbers=False, size=20)


def names_table() -> str:
    lecture = printed("ner")["lecture"]
    scores = {name: f1 for name, f1 in lecture.items() if isinstance(f1, float)}
    rows = [(name, f"{f1:.2f}") for name, f1 in sorted(scores.items(), key=lambda one: one[1])]
    return table(("CoNLL-2003, names", "test F1"), rows, size=22)


def answers_table() -> str:
    """SQuAD's F1 as printed: which model, which half of the data, trained on what."""
    squad, people = printed("bert")["squad"], printed("bert")["squad_people"]
    readme = printed("bert")["readme_finetuning"]
    rows = (
        ("“30 minutes, 91%”", "1.1 dev", f"{readme['squad_1_dev_f1']}"),
        ("BERT-large", "1.1 dev", f"{squad['large_1_dev'][1]}"),
        ("BERT-base", "1.1 dev", f"{squad['base_1_dev'][1]}"),
        ("seven models, more texts", "1.1 test", f"{squad['ensemble_triviaqa_1_test'][1]}"),
        ("people", "1.1 test", f"{people['test_1'][1]}"),
        ("BERT-large", "2.0 test", f"{squad['large_2_test'][1]}"),
        ("people", "2.0 test", f"{people['test_2'][1][0]}"),
    )
    return table(("answers", "SQuAD", "F1"), rows, size=22)


# ---------------------------------------------------------------- to keep

CHOSEN = ("a small layer", "E93", "unequal tasks", "GLUE's progress")


def claims_rows() -> str:
    return drawing.claims_rows("03", CHOSEN)


def exercises() -> str:
    return drawing.exercise_list("03")


def _glue(name: str, what: str) -> Any:
    return printed("glue")["tasks"][name][what]


def _split(read: Callable[[str], Sequence[Any]], split: str) -> int:
    return len(read(split))


NUMBERS: dict[str, Callable[[], Any]] = {
    "old_weights": lambda: f"{_sizes()['base'][0] / 1e6:.0f}",
    "new_for_three": lambda: _sizes()["base"][2],
    "ours_weights": lambda: f"{count_parameters(_course().encoder) / 1e6:.1f}",
    "pooler": lambda: _pooler(),
    "train_sentences": lambda: _split(english.tagged_sentences, "train"),
    "test_sentences": lambda: _split(english.tagged_sentences, "test"),
    "train_pairs": lambda: _split(english.nli_pairs, "train"),
    "train_questions": lambda: _split(english.questions, "train"),
    "train_passages": lambda: _split(english.passages, "train"),
    "venus": _question,
    "rows_share": _rows_share,
    "runs_a_task": _runs_a_task,
    "silent_words": lambda: f"{_silent()[0]:.0%}",
    "silent_f1": lambda: f"{_silent()[1]:.0f}",
    "entity_words": lambda: f"{1 - _silent()[0]:.0%}",
    "cut_at": lambda: ROOM,
    "row_length": lambda: _train("nli").sequences.input_ids.shape[1],
    "cap": lambda: CAP,
    "loose": lambda: _text_of(_best(8)),
    "loose_score": lambda: f"{_best(8).score.item():.1f}",
    "capped": lambda: _text_of(_best(CAP)),
    "capped_score": lambda: f"{_best(CAP).score.item():.1f}",
    "null_score": lambda: f"{_best(CAP).null_score.item():.1f}",
    "null_start": lambda: START_SCORES[0],
    "null_end": lambda: END_SCORES[0],
    "margin": lambda: _signed(_best(CAP).margin.item()),
    "true_second": lambda: _place(1),
    "spans_counted": _spans_counted,
    "wnli_majority": lambda: _glue("WNLI", "majority"),
    "glue_ratio": lambda: _settled("unequal tasks").value[0],
    "nine_mean": lambda: _settled("E78").value[1],
    "eight_mean": lambda: _settled("E78").value[2],
    "bert_over_elmo": lambda: _signed(_settled("E92").value[1]),
    "flair_over_bert": lambda: _signed(_settled("E92").value[2]),
    "over_people_one": lambda: _signed(_settled("people").value[0]),
    "over_people_seven": lambda: _signed(_settled("people").value[1]),
    "under_people": lambda: _signed(_settled("people").value[2]),
    "mrpc_gain": lambda: _settled("runs of MRPC").value[0],
    "mrpc_range": lambda: _settled("runs of MRPC").value[1],
    "checkpoint_minutes": _minutes,
    "checkpoint_reached": lambda: f"{_result('03_checkpoint')['reached']['heldout_accuracy']:.1%}",
    "checkpoint_trained": lambda: f"{_result('03_checkpoint')['as_trained']:.1%}",
    "short_steps": lambda: _recipe().training.short_steps,
    "last_short": lambda: _look(0),
    "found_short": lambda: _found_at(_look(0)),
    "first_long": lambda: _look(1),
    "found_long": lambda: _found_at(_look(1)),
    "unigram": lambda: f"{_result('03_plateau')['unigram']:.1f}",
    "folds_hypothesis": lambda: f"{_baselines()['nli', 'accuracy, ten folds']['hypothesis']:.0%}",
    "gain_pos": lambda: _clear_gain("pos"),
    "gain_ner": lambda: _clear_gain("ner"),
    "gain_reviews": lambda: _no_clear_gain("sentiment"),
    "gain_messages": lambda: _no_clear_gain("spam"),
    "gain_pairs": lambda: _no_clear_gain("nli"),
    "gain_answers": lambda: _no_clear_gain("qa"),
    "rule_pairs": lambda: _under_rule("nli", (*STARTS,)),
    "rule_answers": lambda: _under_rule("qa", OURS),
    "rule_names": lambda: _under_rule("ner", OURS),
    "ner_ours": lambda: _share("ner", OURS[0]),
    "ner_fresh": lambda: _share("ner", OURS[1]),
    "ner_minilm": lambda: _share("ner", MINILM),
    "nli_ours": lambda: _share("nli", OURS[0]),
    "nli_fresh": lambda: _share("nli", OURS[1]),
    "nli_minilm": lambda: _share("nli", MINILM),
    "reviews_ours": lambda: _share("sentiment", OURS[0]),
    "reviews_minilm": lambda: _share("sentiment", MINILM),
    "few": lambda: _few_against_all()[0],
    "few_score": lambda: f"{_few_against_all()[1]:.0%}",
    "most": lambda: _few_against_all()[2],
    "most_score": lambda: f"{_few_against_all()[3]:.0%}",
    "world_nli_before": lambda: _world("fresh"),
    "world_nli_after": lambda: _world("pre-trained"),
    "best_layer": lambda: _best_layer("ner", MINILM)[0],
    "best_layer_score": lambda: f"{_best_layer('ner', MINILM)[1]:.1%}",
    "last_layer_score": lambda: f"{_by_layer('ner', MINILM)[-1]:.1%}",
    "best_layer_ours": lambda: f"{_best_layer('ner', COURSE)[1]:.1%}",
    "frozen_reviews": lambda: f"{_best_layer('sentiment', MINILM)[1]:.0%}",
    "line_start_ours": lambda: _highest_between(OURS[0]),
    "line_start_fresh": lambda: _highest_between(OURS[1]),
    "line_end_ours": lambda: f"{_on_the_line(OURS[0], 'train_loss', 1.0):.3f}",
    "line_end_fresh": lambda: f"{_on_the_line(OURS[1], 'train_loss', 1.0):.3f}",
    "line_score_ours": lambda: f"{_on_the_line(OURS[0], 'test_score', 1.0):.0%}",
    "line_score_fresh": lambda: f"{_on_the_line(OURS[1], 'test_score', 1.0):.0%}",
    "line_best": lambda: _best_on_the_line(OURS[0]),
    "times_weights": lambda: round(_sizes()["base"][0] / count_parameters(_course().encoder)),
    "times_words": lambda: round(_times_words(), -2),
    "mnli_texts": lambda: _glue("MNLI", "train"),
    "features_tuned": lambda: printed("bert")["features"]["fine_tuned"],
    "features_frozen": lambda: printed("bert")["features"]["concatenated_last_four"],
    "never_answer": lambda: f"{_baselines()['passages', 'F1']['no answer']:.0%}",
    "claims_in_all": lambda: len(claims("03")),
    "exercise_minutes": lambda: drawing.exercise_minutes("03"),
}  # fmt: skip


def _pooler() -> int:
    """Weights of the pooler that a classifier on our checkpoint gets anew."""
    width = _course().encoder.config.hidden_size
    assert _course().encoder.pooler is None  # as the notes say
    return width * width + width


def _times_words() -> int:
    """Words that BERT's pre-training had, for each of ours."""
    paper = printed("bert")["pretraining"]
    ours = _result("03_checkpoint")["text"]["words"]
    return round((paper["words_books"] + paper["words_wikipedia"]) / ours)


def _place(which: int) -> str:
    one = _intro()["entities"][which]
    return f"{one['start']}–{one['end']}"
