"""What deck 03 shows: computed here, or read from data/results and data/papers; never trained."""

from __future__ import annotations

from functools import lru_cache
from html import escape
from typing import Any

import drawing
import torch
from drawing import (
    apart,
    arrow,
    bars,
    body_of,
    code,
    for_a_hall,
    large,
    rect,
    spread,
    svg,
    table,
    words,
)

from course_lib import to_transformers
from course_lib.heads import (
    BertForClassification,
    BertForQuestionAnswering,
    BertForTokenClassification,
)
from course_lib.lectures.lecture_03 import numbers
from course_lib.lectures.lecture_03.claims import PRINTED_ANSWERS
from course_lib.lectures.lecture_03.experiments import TuningRecipe, read_task
from course_lib.lectures.lecture_03.numbers import (
    CAP,
    END_LOGITS,
    HEADS,
    PASSAGE,
    ROOM,
    SCORED,
    SHOWN_PAIR,
    START_LOGITS,
    best,
    best_rule,
    course,
    intro,
    result,
    scores,
)
from course_lib.lectures.lecture_03.starts import COURSE, MINILM, STARTS
from course_lib.lectures.lecture_03.views import learning_curves, loss_line, tag_view, task_shapes
from course_lib.lectures.lecture_03.views.cut_pairs import cut_picture
from course_lib.objectives.spans import best_spans
from course_lib.teaching import curves_chart
from course_lib.teaching.claims import printed
from course_lib.teaching.numbers import signed
from course_lib.teaching.style import BLUE, GREY, INK, ORANGE, VERMILION
from course_lib.text import english
from course_lib.text.features import tagged_sequences
from course_lib.train.finetuning import LOSSES, head_on, model_inputs, targets_of
from course_lib.train.span_metrics import bio_spans, span_scores
from course_lib.train.task_metrics import accuracy

BOLD = ' font-weight="650"'
MUTED = ' fill="#5a5a5a"'
MONO = f' style="{drawing.MONO}"'
SHADED = "#cfe5f3"  # vectors that are read, ends that are predicted


FINE = TuningRecipe("", "")


# ---------------------------------------------------------------- 2: two stages


def two_stages() -> str:
    """One pre-training, and from its weights as many fine-tunings as there are tasks."""
    tasks = ("sentiment, spam", "pairs (NLI)", "parts of speech", "names", "answers")
    parts = [
        rect(0, 84, 190, 76, fill="#f7f7f6", dash="6 4"),
        words(95, 116, "much text,"), words(95, 142, "no labels"),
        arrow(192, 122, 238, 122),
        rect(240, 64, 250, 116, fill="#e3f0f8", ink=BLUE, wide=2),
        words(365, 102, "pre-training", 24, style=BOLD), words(365, 132, "predict masked words"),
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
    steps = numbers.recipe().training.steps
    tokens = numbers.tokens_read(numbers.checkpoint()) // steps
    ours = [len(_train(name)) for name in ("sentiment", "spam", "nli", "ner")]
    words_read = before["words_books"] + before["words_wikipedia"]
    rows = (
        ("<strong>BERT</strong> reads", f"{words_read / 1e9:.1f} billion words",
         f"{min(texts):,} to {max(texts):,} labelled texts (GLUE)"),
        ("for", f"{before['steps']:,} steps of {before['batch']} sequences",
         f"{min(after['epochs'])} to {max(after['epochs'])} epochs, "
         f"{' or '.join(map(str, after['batch']))} texts a step"),
        ("<strong>ours</strong> reads",
         f"{result('03_checkpoint')['text']['words'] / 1e6:.1f} million words of documentation",
         f"{min(ours)} to {max(ours)} labelled texts"),
        ("for", f"{steps:,} steps of {tokens:,} tokens",
         f"{FINE.steps} steps of {FINE.batch_size} texts"),
    )  # fmt: skip
    return table(("", "pre-training", "fine-tuning, each task"), rows, numbers=False, size=22)


@lru_cache(maxsize=8)
def _train(name: str) -> Any:
    return read_task(name, "train", course().tokenizer)


# ---------------------------------------------------------------- 3: four heads


def four_heads() -> str:
    return task_shapes().inner


# ---------------------------------------------------------------- 4: how little is new


def new_weights() -> str:
    whole, *base = numbers.sizes()["base"]
    _, *ours = numbers.sizes()["ours"]
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
            ("batch", "sequences a step"), ("learning_rate", "learning rate"), ("epochs", "epochs"),
        )
    ]  # fmt: skip
    return table(("", "before", "fine-tuning"), rows, size=22)


def _short(value: float) -> str:
    return f"{value:g}" if value >= 1 else f"{value:.0e}".replace("e-0", "e−")


# ---------------------------------------------------------------- 5: labels for words

SHOWN_SENTENCE = 103  # as in the notebook: two entities side by side


def first_pieces() -> str:
    """A training sentence: its words over its tokens, and each token's label below."""
    sentence = english.tagged_sentences("train")[SHOWN_SENTENCE]
    tokenizer = course().tokenizer
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
        x, labelled = step * k, labels[k] >= 0
        token = escape(tokenizer.token(number))
        look = {"fill": SHADED, "ink": BLUE} if labelled else {"dash": "5 4"}
        middle = x + step / 2 - 2
        parts += [
            rect(x, 50, step - 4, 40, token, size=15, mono=True, wide=2, **look),
            words(middle, 122, row.names[labels[k]] if labelled else "–", 18,
                  style=BOLD * labelled),
            words(middle, 150, f"{labels[k]}".replace("-", "−"), 17,
                  style=MONO if labelled else MONO + MUTED),
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
    return large(tag_view(NAMED, SAID, TRUE).inner, 1.75)


def tag_scores() -> str:
    true, said = bio_spans(TRUE), bio_spans(SAID)
    scores, hits = span_scores([TRUE], [SAID]), len(true & said)
    right = sum(a == b for a, b in zip(TRUE, SAID, strict=True))
    rows = (
        ("accuracy over words", f"{right} of {len(TRUE)}", f"{accuracy(TRUE, SAID):.0%}"),
        ("precision: of predicted entities", f"{hits} of {len(said)}", f"{scores.precision:.2f}"),
        ("recall: of true entities", f"{hits} of {len(true)}", f"{scores.recall:.2f}"),
        ("<strong>F1</strong>, their harmonic mean", "", f"<strong>{scores.f1:.2f}</strong>"),
    )
    return table(("", "right", "score"), rows, size=24)


# ---------------------------------------------------------------- 7: a pair, and what is cut


def cut_pair() -> str:
    """A training pair in a sequence that is too short for it."""
    pair, tokenizer = english.nli_pairs("train")[SHOWN_PAIR], course().tokenizer
    first, second = (
        [tokenizer.token(i) for i in tokenizer.encode(text)]
        for text in (pair.premise, pair.hypothesis)
    )
    return large(cut_picture(first, second, ROOM).html, 1.36)


def what_was_cut() -> str:
    """How many training texts fit into their sequences, and how passages are cut in windows."""
    rows = []
    for name, said in (("sentiment", "reviews"), ("nli", "pairs"), ("ner", "sentences")):
        task = _train(name)
        assert task.cut.texts == 0  # as the notes say
        rows.append((said, f"{len(task)}", f"{task.cut.length}", f"{task.cut.texts}"))
    windows = _train("qa")
    said = f"{len(windows.questions)} in {len(windows)} windows"
    rows.append(("questions", said, f"{windows.cut.length}", f"{windows.cut.texts}"))
    return table(("training texts", "how many", "positions", "cut"), rows, size=20)


# ---------------------------------------------------------------- 8: an answer is a stretch


def span_grid() -> str:
    """Start plus end for every pair of words: below the diagonal impossible, far from it too long;
    the best span without a cap is dashed, the best with it shaded."""
    loose, capped = ((int(f.start), int(f.end)) for f in (best(8), best(CAP)))
    x0, y0, wide, high = 128, 62, 66, 36
    parts = [words(0, 22, "start", 20, "start", BOLD), words(x0, 22, "end →", 20, "start", BOLD)]
    for k, word in enumerate(PASSAGE, 1):
        parts += [
            words(x0 + wide * (k - 0.5), 50, f"{END_LOGITS[k]:.1f}", 19, style=BOLD),
            words(0, y0 + high * (k - 0.5) + 7, word, 20, "start"),
            words(x0 - 12, y0 + high * (k - 0.5) + 7, f"{START_LOGITS[k]:.1f}", 19, "end", BOLD),
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
            said = f"{START_LOGITS[i] + END_LOGITS[j]:.1f}"
            parts.append(rect(x + 2, y + 2, wide - 4, high - 4, said, size=19, **look))
    return svg(660, 352, *parts, says="sums of start and end logits of all pairs of eight words")


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
    search = body_of(best_spans, start="starts =").splitlines()
    search = [line for line in search if not line.startswith(("first", "null", "return", "#"))]
    source = "\n".join([*kept, "# best span", *search])
    return f'<div style="zoom:0.87">{code(source)}</div>'


def parity() -> str:
    """Of three tasks: transformers' class, our loss and theirs, same weights and same sequences."""
    rows = []
    for name, theirs_say in (
        ("nli", {"labels": "classes"}),
        ("ner", {"labels": "token_labels"}),
        ("qa", {"start_positions": "start", "end_positions": "end"}),
    ):
        part = read_task(name, "test", course().tokenizer)[:12]
        ours = head_on(course().encoder, part).eval()
        theirs = to_transformers(ours).eval()
        targets, inputs = targets_of(part), model_inputs(part)
        wanted = {key: targets[value] for key, value in theirs_say.items()}
        with torch.no_grad():
            loss = LOSSES[type(part)](ours(**inputs), targets)["total"].item()
            other = theirs(**inputs, **wanted).loss.item()
        assert abs(loss - other) < 1e-5, name
        names = type(theirs).__name__, f"{loss:.6f}", f"{other:.6f}", f"{abs(loss - other):.1g}"
        rows.append(names)
    return table(("head, on 12 test texts", "our loss", "transformers", "apart"), rows, size=21)


# ---------------------------------------------------------------- 10: check the printed number


def ruler() -> str:
    """The first sentence of the self-introduction, a mark every ten characters."""
    text = intro()["text"].split(". ")[0] + "."
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
    first, second = intro()["entities"][:2]
    rows = [
        (f"“{one['text']}”", f"{one['start'] - shift}–{one['end'] - shift}",
         f"{one['end'] - one['start']}", f"{len(one['text'])}")
        for one, shift in ((first, 0), (second, at - start))
    ]  # fmt: skip
    return table(("a page prints", "at", "end − start", "letters"), rows, size=22)


def lecture_offsets() -> str:
    rows = [
        (f"“{escape(answer)}”", f"{start}–{end}", f"{at}–{at + len(answer)}", signed(at - start, 0))
        for answer, start, end, at in PRINTED_ANSWERS
    ]
    return table(("printed", "at", "it stands at", "off by"), rows, size=21)


# ---------------------------------------------------------------- 11: the checkpoint, the plateau


def _plateau_losses() -> dict[str, list[tuple[int, float]]]:
    """For each run the steps at which its loss was written down, and the loss."""
    found = result("03_plateau")
    every = {name: found["steps"] // len(run["loss"]) for name, run in found["runs"].items()}
    return {
        name: [(every[name] * k, loss) for k, loss in enumerate(run["loss"], 1)]
        for name, run in found["runs"].items()
    }


def plateau() -> Any:
    """Training losses of the first steps, begun in four ways, and that of frequencies alone."""
    found = result("03_plateau")
    figure = curves_chart(
        {f"{name}:": [losses] for name, losses in _plateau_losses().items()},
        levels={"frequencies alone": found["unigram"]}, title="",
        x_title=f"steps of {found['tokens_a_step']:,} tokens", y_title="training loss, nats",
    )  # fmt: skip
    return apart(for_a_hall(figure, 690, 370, right=235).update_annotations(font_size=17), 0.3)


UNDER = 1.0  # nats, under the loss of frequencies


def off_the_plateau() -> str:
    """For each run the steps after which its loss is so far under that of frequencies."""
    found = result("03_plateau")
    rows = []
    for name, losses in _plateau_losses().items():
        first = next((step for step, loss in losses if loss < found["unigram"] - UNDER), None)
        rows.append((name, f"{first:,} steps" if first else f"not in {found['steps']:,}"))
    assert sum("not" in said for _, said in rows) == len(rows) - 1  # as the notes say
    return table((f"{UNDER:g} nat under {found['unigram']:.2f}", "after"), rows, size=20)


def our_checkpoint() -> str:
    found = result("03_checkpoint")
    shape, reached = course().encoder.config, found["reached"]
    rows = (
        ("layers × width", f"{shape.num_layers} × {shape.hidden_size}"),
        ("weights", f"{found['parameters'] / 1e6:.1f}M"),
        ("words of text", f"{found['text']['words'] / 1e6:.1f}M"),
        ("tokens read", f"{numbers.tokens_read(numbers.checkpoint()) / 1e6:.0f}M"),
        ("masked-token accuracy", f"<strong>{reached['heldout_accuracy']:.1%}</strong>"),
        ("most frequent token", f"{found['commonest']:.1%}"),
    )
    return table(("course-bert", ""), rows, size=20)


# ---------------------------------------------------------------- 12, 13: what is to be beaten


RULES = {"nothing": "majority class", "length": "lengths", "words": "bags of<br>both texts’ words",
         "hypothesis": "the hypothesis<br>alone"}  # fmt: skip


def pair_rules() -> Any:
    """Test accuracy of baselines on NLI pairs, and the level a hypothesis alone must not pass."""
    rules = numbers.baselines()["nli", "accuracy"]
    values = {said: rules[rule] for rule, said in RULES.items()}
    figure = bars(values, (GREY, GREY, ORANGE, BLUE), 690, 380, percent=True, y_title="accuracy")
    figure.add_shape(
        type="line", x0=2.6, x1=3.4, y0=LIMIT, y1=LIMIT, line={"color": INK, "dash": "dot"}
    )
    figure.add_annotation(
        x=3.4, y=LIMIT, text=f"limit {LIMIT:.0%}", showarrow=False, xanchor="right",
        yanchor="bottom",
    )  # fmt: skip
    figure.update_xaxes(tickangle=0, tickfont_size=17)
    return figure.update_yaxes(range=[0, 0.55]).update_annotations(font_size=20)


LIMIT = 0.45  # accuracy that the hypothesis alone may reach, by the data sheet


def other_rules() -> str:
    rows = []
    for task, (said, data, measure) in SCORED.items():
        if task != "nli":
            rule, score = best_rule(task)
            rows.append((said, RULE_NAMES[rule], f"{score:.0%}"))
            assert numbers.baselines()[data, measure][rule] == score
    return table(("", "best baseline", ""), rows, numbers=False, size=20)


RULE_NAMES = {"nothing": "majority class", "words": "bag of words", "length": "length",
              "word list": "usual tag", "list of names": "seen before",
              "no answer": "never answer", "overlap": "shared words"}  # fmt: skip


def worth() -> str:
    """Every task from every start: mean of the seeds, and their standard deviation."""
    rows = []
    for task, (said, *_) in SCORED.items():
        rule, at_random = best_rule(task)[1], scores(task, STARTS[1]) + scores(task, STARTS[3])
        cells = []
        for start in (STARTS[1], STARTS[0], STARTS[3], STARTS[2]):
            found = scores(task, start)
            shown = spread(found, "") if found else "–"
            clear = found and min(found) > max(rule, *at_random)
            cells.append(f"<strong>{shown}</strong>" if clear else shown)
        rows.append((said, f"{100 * rule:.0f}", *cells))
    head = ("test, %", "baseline", "ours, random", "ours", "MiniLM, random", "MiniLM")
    return table(head, rows, size=22)


# ---------------------------------------------------------------- 14: learning curves


def curves() -> Any:
    found = result("03_curves")
    code = numbers.markup_curves()[numbers.CODE]
    shown = {numbers.CODE: code, "ner": found["curves"]["ner"]}
    figure = learning_curves({**shown, "baselines": {"ner": found["baselines"]["ner"]}})
    return for_a_hall(figure, 1120, 420).update_annotations(font_size=18)


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
    curves = {}
    for task, said in (("ner", "names"), ("sentiment", "reviews")):
        for start in (MINILM, COURSE):
            curves[f"{said}, {start}"] = [list(enumerate(numbers.by_layer(task, start)))]
    figure = curves_chart(
        curves, percent=True, title="", x_title="layer, 0: the embeddings", y_title="test accuracy"
    )
    figure.update_xaxes(dtick=1)
    return for_a_hall(figure, 690, 380, right=225).update_annotations(font_size=17)


# ---------------------------------------------------------------- 16: the line


def line() -> Any:
    figure = loss_line(result("03_loss_line")["lines"])
    return for_a_hall(figure, 1120, 400).update_layout(margin_t=70).update_annotations(font_size=18)


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
