"""The bench measures what it says: each contender does its work, takes its turns, and is tabled."""

from __future__ import annotations

import json

import numpy as np
import pytest
import torch

from course_lib.bench import (
    Contender,
    Measured,
    Table,
    __main__,
    as_table,
    corruption,
    distillation,
    inputs,
    masked_loss,
    masking,
    measure,
    measuring,
    pretraining,
    sharing,
)
from course_lib.config import published
from course_lib.family.electra import ElectraConfig
from course_lib.objectives.masked_lm import mask_sequences, mask_whole_words

TINY = {"num_layers": 3, "hidden_size": 16, "num_heads": 2, "intermediate_size": 32}


def test_contenders_take_turns_and_rates_are_tokens_per_second(monkeypatch):
    calls, clock = [], [0.0]
    monkeypatch.setattr(measuring.time, "perf_counter", lambda: clock[0])

    def contender(name, cost):
        def step():
            calls.append(name)
            clock[0] += cost

        return Contender(name, lambda: step, tokens=100)

    results = measure([contender("slow", 0.5), contender("quick", 0.1)], rounds=3, seconds=1.0)
    assert [r.median for r in results] == pytest.approx([200, 1_000])
    turns = "".join(name[0] for name in calls[8:])  # after building and warming up
    assert turns == ("ss" + "q" * 10) * 3


def test_the_table_shows_every_row_with_its_ratio():
    text = as_table([Measured("peer", [10.0, 20.0, 30.0]), Measured("ours", [40.0] * 3)], "peer")
    peer, ours = text.splitlines()[1:]
    assert "1.00×" in peer and "2.00×" in ours and "40" in ours


# ---- pre-training --------------------------------------------------------------------------------


def test_flops_per_token_by_hand():
    # tiny: a block of 4·128² + 2·128·512 and attention of 2·128·128; of the last block all keys and
    # values, the rest only for [CLS] and the 15% selected; head 0.15·(128² + 128·8192). Rows have
    # not all the same number selected; the table of these positions is as wide as the fullest.
    first = 65_536 + 131_072 + 2 * 128 * 128
    selected = (0.15 * 128 + 1) / 128
    last = 2 * 128**2 + selected * (2 * 128**2 + 131_072 + 2 * 128 * 128)
    by_hand = 6 * (first + last + 0.15 * (16_384 + 1_048_576))
    counted = pretraining.training_flops_per_token("tiny")
    assert counted == pytest.approx(by_hand, rel=0.02)


def test_both_sides_train_the_same_number_of_weights_and_each_step_moves_them(monkeypatch):
    from transformers import BertForMaskedLM

    made = []
    plain = pretraining.peer_model

    def peer_model(*args):
        made.append(plain(*args))
        return made[-1]

    monkeypatch.setattr(pretraining, "peer_model", peer_model)
    for settings in ({}, {"tuned": True, "attention": "eager"}):
        step = pretraining.peer_step("tiny", **settings)
        model = made[-1]
        assert isinstance(model, BertForMaskedLM)
        before = model.bert.encoder.layer[0].attention.self.query.weight.clone()
        step()
        assert not torch.equal(before, model.bert.encoder.layer[0].attention.self.query.weight)
    ours = pretraining.bert_for_pretraining("tiny", vocab_size=inputs.SPECIAL.vocab_size)
    pooler_and_pair = 128 * 128 + 128 + 2 * 128 + 2  # ours has them, BertForMaskedLM does not
    count = sum(p.numel() for p in ours.parameters()) - pooler_and_pair
    assert count == sum(p.numel() for p in made[0].parameters())
    pretraining.our_step("tiny", "float32", "plain")()


def test_the_remark_compares_with_the_best_peer_and_with_the_machine():
    names = ("shipped", "tuned", "ours in float32", "ours, the course's step")
    results = [
        Measured(name, [rate] * 2) for name, rate in zip(names, (10, 40, 50, 80), strict=True)
    ]
    on = {"gflops_float32": 1.0, "gflops_bfloat16": 1.0}
    said = pretraining.remark("tiny", results, on)
    assert "ours / shipped 8.00×" in said and "(tuned) 2.00×" in said
    assert f"{80 * pretraining.training_flops_per_token('tiny') / 1e9:.0%}" in said


# ---- the masked-LM loss ------------------------------------------------------------------------


def test_logits_where_selected_give_the_peer_the_same_loss_and_gradients():
    model, batch = pretraining.peer_model("tiny", 0.0, "sdpa"), pretraining.our_batch(0, 2)
    gradients = []
    for loss in (masked_loss.all_logits, masked_loss.selected_logits):
        found = loss(model, batch)
        gradients.append([found.detach(), *torch.autograd.grad(found, list(model.parameters()))])
    for every, selected in zip(*gradients, strict=True):
        torch.testing.assert_close(selected, every, rtol=1e-4, atol=1e-6)


def test_the_limits_and_the_memory_of_logits_where_selected():
    found = [masked_loss.masked_only_limit(published("bert", size)) for size in masked_loss.ROWS]
    assert [round(limit, 2) for limit in found] == [1.22, 2.46, 4.18]
    assert masked_loss.memory_ratio(width=16, tokens=128) > 5
    assert set(masked_loss.GOALS) == set(masked_loss.ROWS)


def test_each_side_of_the_masked_loss_trains():
    for contender in masked_loss.contenders("tiny", 2):
        contender.make()()


# ---- masking -------------------------------------------------------------------------------------


def test_sequences_hold_words_of_one_piece_and_of_more():
    rows = inputs.random_sequences(64, 128)
    numbers = masking.numbers_of(rows)
    assert (numbers[:, [0, -1]] == -1).all() and (numbers[:, 1:-1] >= 0).all()
    words = int((numbers.max(dim=1).values + 1).sum())
    goes_on = 64 * 126 - words
    assert abs(goes_on - inputs.PIECES * 64 * 125) < 5 * (64 * 125 * 0.16) ** 0.5  # five sd


def test_the_peer_sees_the_same_words():
    """Its collator, from the offsets, draws the lines between words where ours does."""
    rows = inputs.random_sequences(8, 40)
    collate = inputs.peer_collator(whole_words=True)
    found, barred = collate._calc_word_ids_and_prob_mask(
        masking.offsets(rows).numpy(), masking.special_tokens(rows).numpy()
    )
    ours = masking.numbers_of(rows).numpy()
    assert (np.where(found < 0, -1, found - 1) == ours).all()  # it counts from 1
    begins = (ours[:, 1:] != ours[:, :-1]) & (ours[:, 1:] >= 0)
    assert (barred[:, 1:] == ~begins).all()


@pytest.mark.parametrize("whole_words", [False, True], ids=["tokens", "words"])
def test_every_masking_contender_hides_about_fifteen_percent(monkeypatch, whole_words):
    rows, seen = inputs.random_sequences(128, 128), []
    collator = type(inputs.peer_collator())
    plain = collator.torch_mask_tokens

    def watched(self, *args, **known):
        seen.append(plain(self, *args, **known)[1])
        return args[0], seen[-1]

    def ours(mask):
        def masked(*args, **settings):
            result = mask(*args, **settings)
            seen.append(result.labels)
            return result

        return masked

    monkeypatch.setattr(collator, "torch_mask_tokens", watched)
    monkeypatch.setattr(masking, "mask_sequences", ours(mask_sequences))
    monkeypatch.setattr(masking, "mask_whole_words", ours(mask_whole_words))
    kind = masking.word_contenders if whole_words else masking.plain_contenders
    contenders = kind(rows)
    for contender in contenders:
        assert contender.tokens == 128 * 128
        contender.make()()
    assert len(seen) == len(contenders)
    for labels in seen:
        assert 0.14 < (labels != -100).float().mean() < 0.16


# ---- sharing -------------------------------------------------------------------------------------


def blocks_of(model):
    """Weights outside the tables, the projection and the pooler."""
    apart = ("embedding", "pooler")
    return sum(p.numel() for n, p in model.named_parameters() if not any(a in n for a in apart))


def test_sharing_compares_the_same_blocks():
    made = []

    def step(model):
        made.append(model)
        return lambda: None

    for contender in sharing.contenders(TINY, 2, step):
        assert contender.tokens == 2 * sharing.TOKENS
        contender.make()
    bert, albert, own, shared = made
    assert blocks_of(own) == blocks_of(bert) == 3 * blocks_of(shared)
    assert blocks_of(shared) == blocks_of(albert)
    assert len(own.stack.plan) == len(shared.stack.plan) == 3
    ids = inputs.random_sequences(2, 10).input_ids
    for model in made:
        assert model(ids).last_hidden_state.shape == (2, 10, 16)


@pytest.mark.parametrize("precision", ["float32", "bfloat16"])
def test_every_sharing_contender_does_its_work(precision):
    for contender in sharing.contenders(TINY, 2, lambda m: sharing.inference(m, 2, precision)):
        contender.make()()
    made = []

    def training(model):
        made.append(model)
        return sharing.training(model, 2, precision)

    for contender in sharing.contenders(TINY, 2, training):
        step = contender.make()
        before = [p.detach().clone() for n, p in made[-1].named_parameters() if "pooler" not in n]
        step()
        after = [p for n, p in made[-1].named_parameters() if "pooler" not in n]
        # Of the tables' rows only those that occur move, and of the segment table one of two.
        assert all(not torch.equal(a, b) for a, b in zip(before, after, strict=True))


def test_the_sharing_tables_state_the_arithmetic_of_their_shape():
    # A block at width H: 12·H² multiply-adds a token, and T·H twice for the attention's products.
    for shape in (sharing.LARGE, sharing.SMALL):
        H = shape["hidden_size"]
        by_hand = 2 * 12 * (12 * H * H + 2 * sharing.TOKENS * H)
        table = sharing._table("inference", shape, 1, "float32", lambda model: None, 1)
        results = [
            Measured(name, [rate] * 2) for name, rate in zip("abcd", (1, 2, 3, 4), strict=True)
        ]
        said = table.remark(results, {"gflops_float32": 4 * by_hand / 1e9})
        assert "transformers 2.00×, ours 1.33×" in said and "100% of the matrix products" in said


# ---- distillation --------------------------------------------------------------------------------


def test_peak_memory_by_hand():
    """float32: a and b stand side by side (2 · 4,000 bytes), c and d after them; views and changes
    in place add nothing, nor does what was there before."""
    before = torch.zeros(5_000)

    def step():
        a = torch.zeros(1_000)
        b = a + 1
        del a
        c = b.view(10, 100) * 2
        b.add_(before[:1_000])
        del b
        d = c + c
        del c, d

    assert measuring.peak_bytes(step) == 8_000
    assert measuring.peak_bytes(step) == 8_000
    assert measuring.peak_bytes(lambda: before.mul_(2)) == 0


@pytest.fixture
def small_loss(monkeypatch):
    monkeypatch.setattr(distillation, "VOCABULARY", 60)
    monkeypatch.setattr(distillation, "WIDTH", 6)


@pytest.mark.parametrize("precision", ["float32", "bfloat16"])
def test_every_distillation_contender_gives_the_same_loss_and_gradients(
    small_loss, monkeypatch, precision
):
    found = []
    bound = {"float32": 1e-5, "bfloat16": 3e-2}[precision]

    def watched(loss):
        def call(*given):
            found.append((loss(*given), given[:3]))
            return found[-1][0]

        return call

    for loss in ("peer_loss", "distillation_loss_reference", "distillation_loss"):
        monkeypatch.setattr(distillation, loss, watched(getattr(distillation, loss)))
    for contender in distillation.contenders(20, precision):
        assert contender.tokens == 20
        step = contender.make()
        step()
        step()  # gradients begin anew
    assert len(found) == 6
    (first, leaves), others = found[0], found[1:]
    for loss, given in others:
        assert loss.item() == pytest.approx(first.item(), rel=bound)
        for a, b in zip(given, leaves, strict=True):
            assert (a.grad - b.grad).abs().max() <= bound * b.grad.abs().max()


def test_the_distillation_remark_counts_memory_and_work(small_loss):
    compared = distillation.contenders(200, "float32")
    results = [Measured(c.name, [rate] * 2) for c, rate in zip(compared, (2, 3, 5), strict=True)]
    by_hand = 5 * 4 * 2 * 60 * 6  # a second; four products of 2·V·H a position
    said = distillation.remark(compared, "float32", results, {"gflops_float32": by_hand / 1e9})
    assert "time 2.50× less" in said and "100% of the matrix products" in said
    assert all(c.name in said for c in compared)


def test_chunks_hold_less_than_a_fifth(small_loss, monkeypatch):
    """The course's goal for memory, at a scale of its own: a chunk is a fiftieth of the scores."""
    from course_lib.kernels import distillation as kernel

    monkeypatch.setattr(kernel, "CHUNK_BYTES", 20 * 60 * 8)
    peer, _, chunked = (
        measuring.peak_bytes(c.make()) for c in distillation.contenders(1_000, "float32")
    )
    assert peer >= 5 * chunked


# ---- corruption ----------------------------------------------------------------------------------


@pytest.mark.parametrize("precision", ["float32", "bfloat16"])
def test_every_corruption_contender_does_its_work(monkeypatch, precision):
    monkeypatch.setattr(corruption, "ROWS", 2)
    monkeypatch.setattr(corruption, "TOKENS", 20)
    filled = []

    def watched(fill):
        def call(ids, predict_at, logits):
            assert logits.shape == (6, 50)  # 15% of 40
            after = fill(ids, predict_at, logits)
            filled.append((ids, predict_at, after))
            return after

        return call

    for fill in ("fill_in", "torch_fill_in"):
        monkeypatch.setattr(corruption, fill, watched(getattr(corruption, fill)))
    shape = {"num_layers": 2, "hidden_size": 8, "num_heads": 2, "intermediate_size": 16}
    config = ElectraConfig(vocab_size=50, embedding_size=4, **shape)
    for contender in corruption.contenders(config, precision):
        assert contender.tokens == 40
        contender.make()()
    assert len(filled) == 2
    for ids, predict_at, after in filled:
        untouched = torch.ones(40, dtype=torch.bool)
        untouched[predict_at] = False
        assert torch.equal(ids.flatten()[untouched], after.flatten()[untouched])
        assert after.min() >= 0 and after.max() < 50


def test_the_corruption_remark_is_in_times_not_rates():
    rates = (110, 100, 55)
    results = [Measured(n, [r] * 2) for n, r in zip("abc", rates, strict=True)]
    assert "ours 1.10×, torch's 2.00×" in corruption.remark(results, {})


# ---- the command ---------------------------------------------------------------------------------


def test_the_command_measures_the_tables_asked_for_and_saves_them(monkeypatch, tmp_path, capsys):
    monkeypatch.setattr(measuring, "matrix_product_rate", lambda precision: 100.0)
    monkeypatch.setattr(masking, "SHAPES", ((4, 16),))
    path = tmp_path / "speed.json"
    arguments = ["--tables", "masking", "--rounds", "2", "--seconds", "0", "--json", str(path)]
    __main__.main(arguments)
    saved = json.loads(path.read_text(encoding="utf-8"))
    assert saved["machine"]["gflops_float32"] == 100
    assert list(saved["tables"]) == [t.title for t in masking.tables()]
    shown = capsys.readouterr().out
    for rows in saved["tables"].values():
        assert all(len(row["rates"]) == 2 and row["name"] in shown for row in rows)


def test_without_a_choice_every_subject_is_measured(monkeypatch):
    asked = []
    monkeypatch.setattr(__main__, "tables_of", lambda name, *_: asked.append(name) or [])
    monkeypatch.setattr(__main__, "run", lambda *_: {})
    __main__.main([])
    assert tuple(asked) == __main__.TABLES


@pytest.mark.parametrize("subject", __main__.TABLES)
def test_every_subject_has_tables_with_titles_of_their_own(subject):
    tables = __main__.tables_of(subject, ["tiny", "mini"], False)
    least = 0 if subject == "disentangled_gpu" and not torch.cuda.is_available() else 2
    assert len({t.title for t in tables}) == len(tables) >= least
    for table in tables:
        assert isinstance(table, Table)
        names = [c.name for c in table.contenders]
        assert len(set(names)) == len(names) and max(map(len, names)) <= 56  # the column's width


@pytest.mark.parametrize(
    ("arguments", "says"),
    [(["--rounds", "1"], "expected 2 or more"), (["--tables", "speed"], "invalid choice: 'speed'")],
)
def test_the_command_refuses_what_makes_no_sense(arguments, says, capsys):
    with pytest.raises(SystemExit):
        __main__.main(arguments)
    assert says in capsys.readouterr().err
