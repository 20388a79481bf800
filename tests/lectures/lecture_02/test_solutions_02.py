"""The solutions of lecture 02's exercises beside the library, and the hints beside the truth."""

from __future__ import annotations

import torch

from course_lib.config import BertConfig
from course_lib.encoder import count_parameters
from course_lib.family.bert import bert
from course_lib.heads import PreTrainingOutput
from course_lib.kernels.attention import attention_reference
from course_lib.kernels.masking import count_to_predict
from course_lib.lectures.lecture_02.exercises import attention, choosing, count, loss, words
from course_lib.objectives.masked_lm import masked_lm_loss
from course_lib.objectives.pretraining import pretraining_loss
from course_lib.objectives.sequences import SpecialIds
from course_lib.teaching.exercises import exercise
from course_lib.teaching.exercises.form import Draw
from course_lib.text.wordpiece import longest_match


def test_the_count_is_that_of_built_models() -> None:
    for size in ("tiny", "mini"):
        model = bert(size, vocab_size=300)
        assert count.parameter_count(model.config) == count_parameters(model)


def test_the_hint_of_the_count_is_right() -> None:
    sizes = {"vocab_size": 10, "hidden_size": 4, "num_heads": 2, "intermediate_size": 8}
    counts = []
    for layers in (0, 1):
        config = BertConfig(**sizes, max_positions=6, type_vocab_size=2, num_layers=layers)
        counts.append(count.parameter_count(config))
    without, whole = counts
    sums = f"embeddings {without - 20}, block {whole - without}, pooler {4 * 4 + 4}: {whole}"
    assert sums in exercise("02.1").hints[-1]


def test_the_attention_is_the_librarys() -> None:
    q, k, v = torch.randn(3, 2, 4, 7, 5)
    mask = (torch.arange(7) < torch.tensor([[4], [7]])).long()
    ours = attention.attend(q, k, v, mask)
    torch.testing.assert_close(ours, attention_reference(q, k, v, mask)[0])


def test_the_number_to_predict_is_the_librarys() -> None:
    special = SpecialIds(0, 1, 2, 3, 4, vocab_size=500)
    for length in range(1, 60):
        row = torch.tensor([2, *range(10, 10 + length), 3, 0, 0])
        selected = choosing.choose(row, special, 0.15, 6, torch.Generator())
        assert int(selected.sum()) == min(length, count_to_predict(length + 2, 0.15, 6))


def test_the_hint_of_the_number_can_be_copied() -> None:
    (line,) = [h for h in exercise("02.4").hints if "length = " in h]
    code = line.split("length = ")[1].split(", then")[0]
    names = {"input_ids": torch.tensor([2, 9, 3, 0]), "special": SpecialIds(0, 1, 2, 3, 4, 50)}
    assert round(0.5 * eval(code, names)) == 2


def test_the_loss_is_the_librarys() -> None:
    logits, pair = torch.randn(2, 5, 9), torch.randn(2, 2)
    labels, truth = torch.tensor([[-100, 4, -100, 1, -100], [7] + [-100] * 4]), torch.tensor([0, 1])
    ours = loss.joint_loss(logits, labels, pair, truth)
    outputs = PreTrainingOutput(logits, pair)
    targets = {"labels": labels, "next_sentence_label": truth}
    torch.testing.assert_close(ours, pretraining_loss(outputs, targets)["total"])
    assert abs(ours - masked_lm_loss(outputs, targets)["total"]) > 0.01


def test_the_pieces_are_the_librarys() -> None:
    for word, vocab, _ in words.spelled(Draw(3), 500):
        assert words.wordpiece(word, vocab, 100) == (longest_match(word, vocab) or ["[UNK]"])
