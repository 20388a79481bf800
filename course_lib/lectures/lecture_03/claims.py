"""What is claimed about fine-tuning, the tasks it is tried on, and benchmarks."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterator
from functools import lru_cache
from itertools import chain
from math import prod

import torch

from course_lib.config import BertConfig, published
from course_lib.encoder import count_parameters
from course_lib.family.bert import bert
from course_lib.family.distilbert import DistilBertConfig, distilbert
from course_lib.heads import (
    BertForClassification,
    BertForQuestionAnswering,
    BertForTokenClassification,
)
from course_lib.objectives.spans import best_spans
from course_lib.teaching.averages import AVERAGES, glue_average
from course_lib.teaching.claims import Settled, parameters, printed, result
from course_lib.teaching.results import in_words
from course_lib.text import english
from course_lib.text.english import ENTITY_TAGS, UPOS
from course_lib.train.baselines import cross_validated, label_accuracy
from course_lib.train.span_metrics import answer_f1, span_scores
from course_lib.train.task_metrics import accuracy, matthews

from .experiments import rise_beyond
from .numbers import CODE, enough_code, markup, markup_sizes
from .starts import COURSE, MINILM, STARTS

# ================================================================ what fine-tuning adds and costs


def new_weights() -> Settled:
    """Weights on top of BERT-base for three classes, for CoNLL-2003's nine tags, for answers."""
    with torch.device("meta"):  # counts without filling 110 million numbers
        encoder = bert("base")
        whole = count_parameters(encoder)
        heads = (
            BertForClassification(encoder, 3),
            BertForTokenClassification(encoder, 9),
            BertForQuestionAnswering(encoder),
        )
        added = tuple(count_parameters(head) - whole for head in heads)
    detail = f"{added[0]:,} for three classes, {added[1]:,} for nine tags, {added[2]:,} for answers"
    return Settled(added, f"{detail}; at most {max(added) / whole:.4%} of BERT-base's {whole:,}")


def changed_settings() -> Settled:
    """Which settings the paper takes anew, and how many runs trying all of their values takes."""
    before, tuned = printed("bert")["pretraining"], printed("bert")["finetuning"]
    values = {name: tried for name, tried in tuned.items() if isinstance(tried, list)}
    changed = tuple(name for name, tried in values.items() if before[name] not in tried)
    detail = "; ".join(
        f"{name.replace('_', ' ')} {before[name]} → {' or '.join(map(str, values[name]))}"
        for name in changed
    )
    runs = prod(len(values[name]) for name in changed)
    detail += f": {runs} runs a task if all are tried, times the seeds"
    return Settled((changed, runs), detail)


def half_an_hour() -> Settled:
    """The README's F1 less that of either size in Table 2, on the same development set."""
    table, readme = printed("bert")["squad"], printed("bert")["readme_finetuning"]
    readme_f1 = readme["squad_1_dev_f1"]
    gaps = tuple(round(readme_f1 - table[f"{size}_1_dev"][1], 2) for size in ("large", "base"))
    weights = parameters(bert, "large")
    detail = (
        f"{readme_f1} is {gaps[0]:+.1f} from BERT-large's development F1, {gaps[1]:+.1f} from "
        f"BERT-base's. The large one's {weights / 1e6:.0f} million weights, their gradient and "
        f"Adam's two numbers take {16 * weights / 1e9:.1f} GB before the first text comes in"
    )
    return Settled(gaps, detail)


def runs_of_mrpc() -> Settled:
    """MRPC's gain where Table 6 widens twelve layers; the range over runs of one model."""
    rows = printed("bert")["ablation_size"]["rows"]
    narrower, wider = (next(row for row in rows if row[:2] == [12, H]) for H in (768, 1024))
    lowest, highest = printed("bert")["readme_finetuning"]["mrpc_dev_accuracy"]
    gain, spread = round(wider[5] - narrower[5], 1), highest - lowest
    detail = f"MRPC {narrower[5]} → {wider[5]} ({gain:+.1f}); one model's runs lie {spread} apart"
    return Settled((gain, spread), detail)


# ================================================================ texts, pairs, tags

# The models of two worked examples that stand under the heading BERT.
UNDER_BERT = (
    "distilbert-base-uncased-finetuned-sst-2-english",
    "distilbert-base-cased-distilled-squad",
)


def not_bert() -> Settled:
    """Of how many of these examples the model is a BERT; layers of what they have, and BERT's."""
    families = Counter(name.partition("-")[0] for name in UNDER_BERT)
    config: BertConfig = published("distilbert", "base", DistilBertConfig)
    layers = config.num_layers, published("bert", "base").num_layers
    size, usual = (parameters(make, "base") for make in (distilbert, bert))
    detail = (
        f"{families['distilbert']} of {len(UNDER_BERT)} names say distilbert: {layers[0]} layers "
        f"and {size / 1e6:.0f} million weights, BERT-base has {layers[1]} and {usual / 1e6:.0f}"
    )
    return Settled((families["bert"], *layers), detail)


def tags_settled() -> Settled:
    """Labels that POS tags and entity tags share; fraction of words in an entity; the same of words
    with a part of speech."""
    sentences = english.tagged_sentences()
    entities = [tag for sentence in sentences for tag in sentence.entities]
    inside = sum(tag != "O" for tag in entities) / len(entities)
    pos = sum(tag in UPOS for sentence in sentences for tag in sentence.pos) / len(entities)
    detail = (
        f"{len(UPOS)} parts of speech and {len(ENTITY_TAGS)} entity tags, none in both lists; of "
        f"{len(entities):,} words {pos:.0%} have a part of speech, {inside:.0%} are in an entity"
    )
    return Settled((len({*UPOS} & {*ENTITY_TAGS}), inside, pos), detail)


def entity_table() -> Settled:
    """Cells that Table 7 rounds otherwise; BERT-base over ELMo, BERT-large under Flair; accuracy
    and F1, on our test sentences, of finding no entity at all."""
    lecture, paper = printed("ner")["lecture"], printed("ner")["bert"]
    scores = {name: score for name, score in paper.items() if isinstance(score, float)}
    other = sum(round(lecture[name], 1) != score for name, score in scores.items())
    gaps = (
        round(scores["BERT-base"] - scores["ELMo"], 1),
        round(scores["Flair"] - scores["BERT-large"], 1),
    )
    truth = [sentence.entities for sentence in english.tagged_sentences("test")]
    silent = [["O"] * len(tags) for tags in truth]
    words = accuracy(chain.from_iterable(truth), chain.from_iterable(silent))
    spans = span_scores(truth, silent).f1
    detail = (
        f"{other} of {len(scores)} cells differ from Table 7; BERT-base {gaps[0]:+.1f} to ELMo, "
        f"Flair {gaps[1]:+.1f} to BERT-large. On our test sentences who finds nothing has "
        f"{words:.0%} of the words right and an F1 of {spans:.0f}"
    )
    return Settled((other, *gaps, words, spans), detail)


# ================================================================ answers in a text

# (answer, start, end as printed; where it begins in the context as printed), of a source lecture.
PRINTED_ANSWERS = (
    ("the Moon", 93, 101, 103),
    ("at least 220", 600, 612, 597),
    ("There is no", 220, 231, 225),
)
PRINTED_NAMES = (("Dmitrii", 15, 22), ("London", 32, 38), ("Super Company", 50, 63))


def _our_offsets() -> Iterator[tuple[str, str, int]]:
    """(text, stretch, where it is said to begin): the worked examples, and every passage's."""
    examples = english.examples()
    for item in examples["entities"]:
        yield from ((item["text"], one["text"], one["start"]) for one in item["entities"])
    for passage in examples["questions"]:
        for item in passage["items"]:
            yield from ((passage["text"], one["text"], one["start"]) for one in item["answers"])
    for question in english.questions():
        yield from ((question.passage, one.text, one.start) for one in question.answers)


def offsets() -> Settled:
    """Whether end − start is the length of every printed stretch; how far each printed answer is
    from its place; and of our own stretches those that are not where they are said to be."""
    stretches = [*((text, a, b) for text, a, b, _ in PRINTED_ANSWERS), *PRINTED_NAMES]
    lengths_fit = all(len(text) == end - start for text, start, end in stretches)
    shifts = tuple(at - start for _, start, _, at in PRINTED_ANSWERS)
    ours = list(_our_offsets())
    wrong = sum(text[at : at + len(part)] != part for text, part, at in ours)
    detail = (
        f"end − start is the length of every printed stretch, yet the answers stand "
        f"{', '.join(f'{shift:+d}' for shift in shifts)} characters from their printed places. Of "
        f"{len(ours)} stretches of ours {wrong} are elsewhere than they say"
    )
    return Settled((lengths_fit, shifts, wrong), detail)


def yes_or_no() -> Settled:
    """The best F1 with "yes" or "no" of any span of our passage; whether each of 300 answers by
    the rule, with logits at random, is such a span."""
    passage = next(
        one["text"]
        for one in english.examples()["questions"]
        if not all(item["answers"] for item in one["items"])
    )
    words = [match.span() for match in re.finditer(r"\S+", passage)]
    spans = {
        passage[words[i][0] : words[j][1]]
        for i in range(len(words))
        for j in range(i, min(i + 30, len(words)))
    }
    best = max(answer_f1(span, [gold]) for span in spans for gold in ("yes", "no"))
    draw = torch.Generator().manual_seed(0)
    start, end = torch.randn(2, 300, 1 + len(words), generator=draw)  # [CLS] comes first
    allowed = torch.ones_like(start, dtype=torch.bool)
    allowed[:, 0] = False
    chosen = best_spans(start, end, allowed)
    answers = [
        passage[words[i - 1][0] : words[j - 1][1]]
        for i, j in zip(chosen.start.tolist(), chosen.end.tolist(), strict=True)
    ]
    copied = all(answer in spans for answer in answers)
    return Settled(
        (best, copied),
        f"of {len(spans):,} spans of our passage none shares a word with “yes” or “no” (best F1 "
        f"{best:.0f}); whatever the scores, the rule gives one of them, or nothing",
    )


def both_ends_count() -> Settled:
    """Words of the answers (17, 17) and (77, 79), and of what is printed beside them."""
    answers = (((17, 17), "gravity"), ((77, 79), "within a cloud"))
    counted = tuple(end - start + 1 for (start, end), _ in answers)
    agree = all(len(text.split()) == n for (_, text), n in zip(answers, counted, strict=True))
    detail = f"79 − 77 + 1 = {counted[1]} words, and {counted[0]} word for (17, 17)"
    return Settled((*counted, agree), detail)


def people_settled() -> Settled:
    """BERT's best test F1 less people's: SQuAD 1.1, one model and seven; SQuAD 2.0."""
    table, people = printed("bert")["squad"], printed("bert")["squad_people"]
    easier, harder = people["test_1"][1], people["test_2"][1][0]
    one, seven = (table[f"{name}_triviaqa_1_test"][1] for name in ("large", "ensemble"))
    second = table["large_2_test"][1]
    gaps = tuple(round(x, 1) for x in (one - easier, seven - easier, second - harder))
    detail = (
        f"SQuAD 1.1, with TriviaQA's texts: {gaps[0]:+.1f} for one model, {gaps[1]:+.1f} for "
        f"seven; SQuAD 2.0: {gaps[2]:+.1f} at least"
    )
    return Settled(gaps, detail)


# ================================================================ the course's own texts


@lru_cache(maxsize=1)
def hypothesis_alone() -> Settled:
    """Accuracy of a classifier that sees hypotheses only: on the test pairs, over ten folds."""
    pairs = english.nli_pairs()
    train, test = (english.nli_pairs(split) for split in ("train", "test"))
    tested = label_accuracy(train, test, "hypothesis")
    folded = cross_validated(pairs, "hypothesis")
    detail = f"{tested:.1%} of the test pairs, {folded:.1%} of all {len(pairs)} over ten folds"
    return Settled((tested, folded), f"{detail}; chance is {1 / 3:.1%}")


@lru_cache(maxsize=1)
def words_alone() -> Settled:
    """Test accuracy of bags of words: reviews, pairs, messages, plain reviews."""
    accuracies = {
        name: label_accuracy(read("train"), read("test"), "words")
        for name, read in (
            ("reviews", english.reviews),
            ("pairs", english.nli_pairs),
            ("messages", english.messages),
            ("plain reviews", english.plain_reviews),
        )
    }
    detail = ", ".join(f"{name} {share:.1%}" for name, share in accuracies.items())
    return Settled(tuple(accuracies.values()), f"bag-of-words accuracy: {detail}")


# ================================================================ benchmarks


def without_wnli() -> Settled:
    """BERT-large's WNLI less the constant answer's, which is what was submitted; its leaderboard
    mean of nine, and of eight; Matthews' correlation of the constant answer."""
    row = printed("glue")["bert_large_leaderboard"]
    constant = printed("glue")["tasks"]["WNLI"]["majority"]
    nine = glue_average(row["scores"], "leaderboard")
    tasks = len(AVERAGES["leaderboard"].tasks)
    eight = (tasks * nine - row["scores"]["WNLI"]) / (tasks - 1)
    ones = round(10 * constant)
    truth = [1] * ones + [0] * (1_000 - ones)
    scores = (
        round(row["scores"]["WNLI"] - constant, 1), round(nine, 2), round(eight, 2),
        matthews(truth, [1] * 1_000),
    )  # fmt: skip
    detail = (
        f"the majority class: {constant}, Matthews {scores[3]:.0f}; BERT-large gave just that: "
        f"{row['scores']['WNLI']}. Its mean is {scores[1]} of nine tasks, {scores[2]} without WNLI"
    )
    return Settled(scores, detail)


def unequal_tasks() -> Settled:
    """How many times RTE's examples MNLI has; tasks with fewer than 10,000."""
    tasks = printed("glue")["tasks"]
    sizes = {name: task["train"] for name, task in tasks.items() if "train" in task}
    small = tuple(name for name, size in sizes.items() if size < 10_000)
    ratio = max(sizes.values()) / min(sizes.values())
    detail = f"from {min(sizes.values()):,} to {max(sizes.values()):,} examples, {ratio:.0f} times"
    return Settled((round(ratio), small), f"{detail}; under 10,000: {', '.join(small)}")


def progress() -> Settled:
    """ALBERT's gain over BERT-large on the leaderboard, and for one model each on eight
    development sets."""
    rows = printed("glue")
    board = rows["albert_test"]["printed"] - rows["bert_large_leaderboard"]["printed"]
    ours, theirs = (rows[f"{name}_dev"] for name in ("albert", "bert_large"))
    dev = [glue_average(row["scores"], "dev-8") for row in (ours, theirs)]
    gains = round(board, 1), round(dev[0] - dev[1], 1)
    detail = (
        f"leaderboard {gains[0]:+.1f}, {rows['albert_test']['model']} against one; one model each, "
        f"development sets {gains[1]:+.1f} ({dev[1]:.2f} → {dev[0]:.2f})"
    )
    return Settled(gains, detail)


# ================================================================ what this page measured


def _runs_of(task: str, start: str) -> list[float]:
    return [run["score"] for run in result("03_tasks")["runs"][task][start]]


def worth() -> Settled:
    """For names, parts of speech, pairs and answers: is the course's BERT's worst seed better than
    the best of the same shape from random initialisation?"""
    runs = {task: [_runs_of(task, start) for start in STARTS[:2]]
            for task in ("ner", "pos", "nli", "qa")}  # fmt: skip
    detail = "; ".join(f"{task} {in_words(ours)}, random initialisation {in_words(at_random)}"
                     for task, (ours, at_random) in runs.items())  # fmt: skip
    return Settled(tuple(min(ours) > max(at_random) for ours, at_random in runs.values()), detail)


def labels_saved() -> Settled:
    """Code words: how many times as many sentences random initialisation needed at least; is the
    course's BERT above the window regression in every run with 100 of them, and with all?"""
    few, many = enough_code()
    sizes = markup_sizes(CODE)
    ahead = tuple(min(markup(CODE, COURSE, n)) > max(markup(CODE, "baseline", n))
                  for n in (few, sizes[-1]))  # fmt: skip
    detail = "; ".join(
        f"{n:,} sentences: {in_words(markup(CODE, COURSE, n))}, random initialisation "
        f"{in_words(markup(CODE, STARTS[1], n))}, window regression "
        f"{in_words(markup(CODE, 'baseline', n))}"
        for n in sizes
    )
    return Settled((many // few, *ahead), f"span F1 with {detail}")


def last_layer() -> Settled:
    """For names, by MiniLM's frozen layers: do the last four beat the last alone, and does an
    earlier one?"""
    scores = result("03_features")["layers"][MINILM]["ner"]
    layers = [value for name, value in scores.items() if name.startswith("layer")]
    best, last, four = layers.index(max(layers)), len(layers) - 1, scores["last four"]
    detail = (
        f"accuracy over words: layer {best} {layers[best]:.1%}, the last, {last}, "
        f"{layers[-1]:.1%}; the last four {four:.1%}"
    )
    return Settled((four > layers[-1], best < last), detail)


def valley() -> Settled:
    """Does the training loss rise less beyond the end where the weights were pre-trained?"""
    lines = [result("03_loss_line")["lines"][start] for start in STARTS[:2]]
    ours, at_random = map(rise_beyond, lines)
    longer = lines[0]["distance"] / lines[1]["distance"]
    detail = (
        f"loss half a way beyond the end: pre-trained {ours:+.3f}, random initialisation "
        f"{at_random:+.3f} nats; the pre-trained path was {longer:.1f} times as long; one seed"
    )
    return Settled(ours < at_random, detail)
