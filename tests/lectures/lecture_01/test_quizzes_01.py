"""The numbers in the quiz and the questions for review of lecture 01, computed or read again."""

from __future__ import annotations

import math

import torch
from quiz_parts import Quiz

from course_lib.config import published
from course_lib.encoder import Encoder, count_parameters
from course_lib.family.elmo import Elmo, ElmoConfig, ScalarMix, elmo
from course_lib.lectures.lecture_01.exercises import attention, counting, visible
from course_lib.teaching.claims import printed

QUIZ = Quiz("01")
item, answer = QUIZ.item, QUIZ.answer
SIZES = ElmoConfig()


def choices(found):
    return [choice.text for choice in found.choices]


def test_the_right_choice_is_given_away_neither_by_place_nor_by_length():
    QUIZ.check_not_given_away()


def test_the_pmi_is_computed():
    """The three words' row and column totals, and what is left of 100,000 pairs."""
    found, right = item("What are the two PMI")
    total, the, canal, steep, pairs = 100_000, 20_000, 500, 60, (100, 12)
    for number in (total, the, canal, steep, *pairs):
        assert f"{number:,}" in found.question
    counts = torch.tensor([  # canal, all else
        [pairs[0], the - pairs[0]],
        [pairs[1], steep - pairs[1]],
        [canal - sum(pairs), total - the - steep - canal + sum(pairs)],
    ]).double()  # fmt: skip
    assert int(counts.sum()) == total
    pmi = counting.ppmi(counts, 1.0)[:2, 0].tolist()
    assert right.text == f"{pmi[0]:.0f} and {pmi[1]:.2f}"
    assert f"{the * canal / total:.0f} times" in right.why
    assert f"{steep * canal / total:.1f} times" in right.why
    assert f"ln {pairs[1] / (steep * canal / total):.0f} =" in right.why
    logs, of_canal = ([math.log(n / part) for n in pairs] for part in (1, canal))
    assert choices(found)[1] == f"{logs[0]:.2f} and {logs[1]:.2f}"
    assert choices(found)[2] == f"{of_canal[0]:.2f} and {of_canal[1]:.2f}".replace("-", "−")


def test_the_perplexity_is_converted():
    found, right = item("perplexity of 39.7")
    assert right.text == f"{math.log(39.7):.2f}"
    assert choices(found)[1] == f"{math.log2(39.7):.2f}"
    assert f"{SIZES.vocab_size:,} words" in right.why
    assert f"{math.log(SIZES.vocab_size):.2f}" in right.why
    assert f"{SIZES.vocab_size:,} whole words" in answer("vocabulary of about 30,000")


def test_the_mixture_begins_as_the_mean():
    _, right = item("mixing weights (0, 0, 0)")
    layers = torch.randn(3, 2, 4, 6)
    begins = ScalarMix(3).eval()
    assert torch.allclose(begins(tuple(layers)), layers.mean(0), atol=1e-6)
    assert begins.weights.tolist() == [0, 0, 0] and begins.gamma.item() == 1
    assert right.text == "The mean of the three layers"


def test_the_released_elmo_is_counted():
    with torch.device("meta"):
        number = count_parameters(elmo())
    millions = f"{number / 1e6:.1f}M"
    assert millions in choices(item("used *feature-based*")[0])[1]
    said = answer("Draw ELMo")
    assert millions in said
    widths, numbers = zip(*SIZES.filters, strict=True)
    assert f"widths {widths[0]} to {widths[-1]}" in said
    assert ", ".join(f"{n:,}" for n in numbers[:-1]) + f" and {numbers[-1]:,}" in said
    assert f"{sum(numbers):,} in all" in said and f"{SIZES.cell_size:,} cells" in said
    assert f"projection to {SIZES.projection_size}" in said and f"{SIZES.hidden_size:,}" in said
    assert f"±{SIZES.clip:.0f}" in said and f"{SIZES.max_characters} characters" in said
    assert f"vector of {SIZES.character_size} numbers" in said
    assert (SIZES.num_highways, SIZES.num_layers) == (2, 2)


def test_the_attention_weights_are_computed():
    found, right = item("What are the attention weights")
    query, keys = torch.tensor([[2.0, 0, 0, 0]]), torch.tensor([[2.0, 0, 0, 0], [0.0, 1, 0, 0]])
    assert (query @ keys.T).tolist() == [[4, 0]]
    weights, _ = attention.attend(query, keys, keys, torch.ones(1, 2, dtype=torch.bool))

    def said(pair):
        return f"{pair[0]:.2f} and {pair[1]:.2f}"

    assert right.text == said(weights[0])
    for place, scores in ((1, (4.0, 0.0)), (3, (1.0, 0.0))):
        assert choices(found)[place] == said(torch.tensor(scores).softmax(0))


@torch.no_grad()
def test_without_positions_words_keep_their_vectors():
    torch.manual_seed(0)
    sizes = dict(vocab_size=20, hidden_size=16, num_heads=2, num_layers=2, intermediate_size=32)
    model = Encoder(published("bert", "tiny", **sizes)).double().eval()
    ids, order = torch.arange(5, 12)[None], torch.tensor([3, 0, 6, 2, 5, 1, 4])
    for kept in (True, False):
        if not kept:
            model.embeddings.position.weight.zero_()
        one, other = (model(x).last_hidden_state for x in (ids, ids[:, order]))
        assert torch.allclose(one[:, order], other, atol=1e-9) != kept


def test_the_cells_are_counted():
    found, right = item("picture of 7 × 7")
    both = int(visible.visible(4, 3, torch.ones(7, dtype=torch.bool)).sum())
    triangle = int(visible.visible(0, 7, torch.ones(7, dtype=torch.bool)).sum())
    assert right.text == str(both) and "16 + 12 + 6" in right.why and both == 16 + 12 + 6
    assert choices(found)[0] == str(triangle) and choices(found)[3] == str(both - 4 * 3)


@torch.no_grad()
def test_elmos_directions_never_meet_and_layer_0_is_static():
    """Other characters behind a word leave its forward half alone, and its layer 0 whole."""
    torch.manual_seed(0)
    model = Elmo(ElmoConfig(vocab_size=9, character_size=4, max_characters=6, filters=((1, 4),),
                            projection_size=4, cell_size=6)).eval()  # fmt: skip
    ids = torch.randint(1, 200, (1, 5, 6))
    behind = ids.clone()
    behind[0, 3] = 7
    for layer, (a, b) in enumerate(
        zip(*(model(x, output_hidden_states=True).hidden_states for x in (ids, behind)),
            strict=True)):  # fmt: skip
        assert torch.allclose(a[:, 1, :4], b[:, 1, :4], atol=1e-7)
        assert torch.allclose(a[:, 1, 4:], b[:, 1, 4:], atol=1e-7) == (layer == 0)


def test_the_printed_numbers_are_the_papers():
    said = answer("numbers beside ELMo's not say")
    ner = printed("ner")["bert"]
    assert f"{ner['ELMo']} for ELMo" in said and f"{ner['BERT-base']} for BERT-base" in said
    assert f"BERT-base {printed('glue')['bert_base_test']['printed']}" in said
    vocabulary = published("bert", "base").vocab_size
    assert f"{vocabulary:,}" in answer("vocabulary of about 30,000")


def test_months_are_those_of_the_arxiv_numbers():
    months = {"10": "October", "05": "May", "07": "July"}
    said = answer("Correct a slide")
    found = [("BART", "1910.13461"), ("GPT-3", "2005.14165"), ("BigBird", "2007.14062"),
             ("M2M-100", "2010.11125")]  # fmt: skip
    for name, number in found:
        year, month = f"20{number[:2]}", months[number[2:4]]
        assert f"{name} {number}" in said
        assert f"{month} {year}" in said[said.index(number) :][:40]
