"""The bench measures what it says: contenders do their work in turns, and figures are told."""

from __future__ import annotations

import json
from dataclasses import replace
from functools import partial
from string import ascii_lowercase

import pytest
import torch

from course_lib import files
from course_lib.bench import (
    Contender,
    Measured,
    Table,
    __main__,
    as_table,
    attention,
    contrastive,
    corruption,
    disentangled,
    disentangled_gpu,
    distillation,
    early_exit,
    masked_loss,
    masking,
    measure,
    measuring,
    modern,
    pretraining,
    sharing,
    unpadding,
)
from course_lib.bench.roofline import Placed

TINY = {"num_layers": 2, "hidden_size": 16, "num_heads": 2, "intermediate_size": 32}
both_precisions = pytest.mark.parametrize("precision", ["float32", "bfloat16"])


def measured(*rates):
    """Results of as many contenders, a letter each."""
    return [Measured(name, [rate] * 2) for name, rate in zip(ascii_lowercase, rates, strict=False)]


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
    rows = [Measured("peer", [10.0, 20.0, 30.0]), Measured("ours", [40.0] * 3)]
    text = as_table(rows, "peer", "pairs")
    assert "pairs/s" in text and "tokens/s" in as_table(rows, "peer")
    peer, ours = text.splitlines()[1:]
    assert "1.00×" in peer and "2.00×" in ours and "40" in ours


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


def test_a_slow_table_warms_up_once_and_takes_three_rounds(monkeypatch):
    monkeypatch.setattr(measuring, "matrix_product_rate", lambda precision: 1.0)
    monkeypatch.setattr(__main__, "memory_rate", lambda: 1.0)
    calls = dict.fromkeys(("slow", "quick"), 0)

    def table(name):
        def step():
            calls[name] += 1

        return Table(name, [Contender(name, lambda: step, 1)], slow=name == "slow")

    found = __main__.run(map(table, calls), rounds=5, seconds=0.0)
    assert {name: len(rows[0]["rates"]) for name, rows in found["tables"].items()} == {
        "slow": 3, "quick": 5
    }  # fmt: skip
    assert calls == {"slow": 1 + 3, "quick": 4 + 5}


# ---- every contender works (test_bench_peers.py watches more closely) ----------------------------


def work(contenders, tokens):
    assert len({contender.name for contender in contenders}) == len(contenders) >= 2
    for contender in contenders:
        assert contender.tokens == tokens
        contender.make()()


@both_precisions
def test_every_contender_does_its_work(monkeypatch, precision):
    work(sharing.contenders(TINY, 2, lambda m: sharing.inference(m, 2, precision)), 256)
    for what in disentangled.STEPS:
        work(disentangled.contenders(what, precision, 2, 10, TINY), 20)
    monkeypatch.setattr(attention, "TOKENS", 64)
    work(attention.contenders(32, precision, True, 0.5), 64)
    monkeypatch.setattr(unpadding, "SHAPE", TINY)
    work(unpadding.attention_contenders(6, 20, precision), 120)


def test_each_side_of_the_masked_loss_trains():
    work(masked_loss.contenders("tiny", 2), 256)


# ---- what is said of the figures -----------------------------------------------------------------

MODERN_ROWS = [c.name for c in modern.contenders(128, "float32")]
REMARKS = {
    "attention": (attention.remark, (10, 20, 15, 30), "fused is quicker, 2.00× … best 1.50×"),
    "DeBERTa": (
        partial(disentangled.remark, 1.5, 100),
        (1e3, 2e3, 4e3, 5e3),
        "DeBERTa 100.0, reference 50.0, ours 25.0, transformers' BERT 20.0 … 4.00× (goal 1.5×) … "
        "would be 5.00×",
    ),
    "DeBERTa compiled": (
        partial(disentangled.remark, 1.5, 100),
        (1e3, 2e3, 4e3, 5e3, 2e3),
        "DeBERTa 100.0, compiled 50.0 (2.00× ours), reference 50.0",
    ),
    "no goal": (partial(disentangled.remark, None, 100), (1e3, 2e3, 4e3, 5e3), "no goal set"),
    "padding removed": (
        partial(unpadding.remark, 1_000, 400),
        (5, 10, 12, 18, 35, 20, 24, 38, 70, 6, 9, 14),
        "\npadding 50%: 3.60× transformers', 2.00× its sorted texts, 1.80× ours padded; linear "
        "part 1.90× (goal 1.80×, limit 2.00×)\n"
        "padding 75%: 7.00× transformers', 2.50× its sorted texts, 3.50× ours padded; linear "
        "part 3.50×",
    ),
    "early exit": (
        partial(early_exit.remark, {"num_layers": 4}),
        (100, 144),
        "time 1.44× less, FLOPs 1.60× fewer: 0.90 of",
    ),
    "ModernBERT": (
        lambda results, on: modern.remark(
            2_000,
            [Measured(name, r.rates) for name, r in zip(MODERN_ROWS, results, strict=True)],
            on,
        ),
        (1e3, 2e3, 5e3, 2.5e3, 1e3),
        "ours 400 ms, ours / transformers' better one 2.50× … BERT 2.00×, DeBERTa 5.00×",
    ),
    "corruption": (corruption.remark, (110, 100, 55), "ours 1.10×, torch's 2.00×"),
    "masked loss": (
        partial(masked_loss.remark, "mini"),
        (10, 25, 40),
        "2.50× (goal 2.00×, limit by FLOPs 2.46×)   ours / transformers' 4.00×",
    ),
}


@pytest.mark.parametrize("remark, rates, says", REMARKS.values(), ids=REMARKS)
def test_remarks_are_in_times_not_rates(remark, rates, says):
    said = remark(measured(*rates), {})
    for part in says.split(" … "):
        assert part in said


def test_the_pretraining_remark_compares_with_the_best_peer_and_with_the_machine():
    results = measured(10, 40, 50, 80)
    for result, name in zip(results[1:], ("tuned", "ours in float32", "ours"), strict=True):
        result.name = name
    said = pretraining.remark("tiny", results, {"gflops_float32": 1.0, "gflops_bfloat16": 1.0})
    assert "ours / shipped 8.00×" in said and "(tuned) 2.00×" in said
    assert f"{80 * pretraining.training_flops_per_token('tiny') / 1e9:.0%}" in said


@pytest.mark.parametrize("shape", [sharing.LARGE, sharing.SMALL], ids=["large", "small"])
def test_the_sharing_remark_states_the_flops_of_its_shape(shape):
    # A block at width H: 12·H² multiply-adds a token, and T·H twice for the attention's products.
    H = shape["hidden_size"]
    by_hand = 2 * 12 * (12 * H * H + 2 * sharing.TOKENS * H)
    table = sharing._table("inference", shape, 1, "float32", lambda model: None, 1)
    said = table.remark(measured(1, 2, 3, 4), {"gflops_float32": 4 * by_hand / 1e9})
    assert "transformers 2.00×, ours 1.33×" in said and "100% of the matrix products" in said


def test_the_distillation_remark_counts_memory_and_work(monkeypatch):
    monkeypatch.setattr(distillation, "VOCABULARY", 60)
    monkeypatch.setattr(distillation, "WIDTH", 6)
    compared = distillation.contenders(200, "float32")
    by_hand = 5 * 4 * 2 * 60 * 6  # a second; four products of 2·V·H a position
    results = [Measured(c.name, [rate] * 2) for c, rate in zip(compared, (2, 3, 5), strict=True)]
    said = distillation.remark(compared, "float32", results, {"gflops_float32": by_hand / 1e9})
    assert "time 2.50× less" in said and "100% of the matrix products" in said
    assert all(c.name in said for c in compared)


@pytest.mark.parametrize(("training", "products"), [(False, 2), (True, 7)])
def test_the_gpu_remark_counts_work_by_hand(monkeypatch, training, products):
    monkeypatch.setattr(torch.cuda, "get_device_name", lambda: "a chip")
    for name in ("memory_allocated", "max_memory_allocated"):
        monkeypatch.setattr(torch.cuda, name, lambda: 0)
    monkeypatch.setattr(torch.cuda, "reset_peak_memory_stats", lambda: None)
    row = Contender("a", lambda: lambda: None, 1_000)
    # A step a second: each product multiplies and adds 64 numbers for each pair, in 12 heads.
    said = disentangled_gpu.remark([row], 1_000, training, measured(1_000.0), {})
    assert f"a: {products * 2 * 64 * 12 * 1_000**2 / 1e12:.1f} TFLOP/s, 0 MB" in said


def test_a_contrastive_step_and_maxsim_do_their_work():
    compared = [
        *(Contender(name, partial(contrastive.batch_step, way, 4, 8), 8)
          for name, way in (("plain", contrastive.backward_in_chunks_reference),
                            ("ours", contrastive.backward_in_chunks))),
        *(Contender(str(training), partial(contrastive.maxsim_step, contrastive.maxsim,
                                           (2, 4, 4, 8, 6), training), 8)
          for training in (False, True)),
    ]  # fmt: skip
    for contender in compared:
        contender.make()()
    said = contrastive.remark(compared[:2], measured(1.0, 2.0), {})
    assert said.startswith("peak memory: plain") and "time 0.50×, memory 1/" in said


# ---- the command ---------------------------------------------------------------------------------


def test_the_command_measures_the_tables_asked_for_and_saves_them(monkeypatch, tmp_path, capsys):
    (tmp_path / files.MANIFEST).write_text("", encoding="utf-8")
    for module in (files, __main__):
        monkeypatch.setattr(module, "data_root", lambda: tmp_path)
    monkeypatch.setattr(measuring, "matrix_product_rate", lambda precision: 100.0)
    monkeypatch.setattr(masking, "SHAPES", ((4, 16),))
    point = Placed("loss", "fast", flops=2, unavoidable=1, moved=1, seconds=1.0)
    monkeypatch.setattr(__main__, "placements", lambda: [point])
    tables = masking.tables()
    said = replace(tables[0], remark=lambda results, on: f"goal {on['gflops_float32']}")
    monkeypatch.setitem(__main__.OF_ONE_KIND, "masking", lambda: [said, *tables[1:]])
    path = tmp_path / "speed.json"
    asked = ["--tables", "masking", "--rounds", "2", "--seconds", "0", "--json", str(path)]
    __main__.main([*asked, "--store", "14_speed"])
    saved = json.loads(path.read_text(encoding="utf-8"))
    assert saved["machine"]["gflops_float32"] == 100
    assert saved["remarks"] == {tables[0].title: "goal 100"}
    assert list(saved["tables"]) == [t.title for t in tables]
    shown = capsys.readouterr().out
    for rows in saved["tables"].values():
        assert all(len(row["rates"]) == 2 and row["name"] in shown for row in rows)
    stored = json.loads(files.data_path("results", "14_speed.json").read_text(encoding="utf-8"))
    assert [Placed(**about) for about in stored.pop("points")] == [point] and stored == saved


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


@pytest.mark.parametrize("text", ["mine", "[]", "3", '{"machine": 1}', b"\xff"])
def test_a_file_that_it_did_not_write_is_left_alone(text, tmp_path, capsys):
    path = tmp_path / "mine.json"
    path.write_bytes(text if isinstance(text, bytes) else text.encode())
    before = path.read_bytes()
    with pytest.raises(SystemExit):
        __main__.main(["--tables", "masking", "--json", str(path)])
    assert "holds no figures of this command" in capsys.readouterr().err
    assert path.read_bytes() == before
