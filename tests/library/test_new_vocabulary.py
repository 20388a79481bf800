"""A model moved to another vocabulary, layer-wise rates, and the losses of domain models."""

from __future__ import annotations

import json
from dataclasses import replace

import pytest
import torch
import torch.nn.functional as F

from course_lib import load_pretrained
from course_lib.checkpoints import FAMILIES, save_folder
from course_lib.config import BertConfig
from course_lib.encoder import Encoder, Pooler
from course_lib.family.albert import (
    AlbertConfig,
    albert_encoder,
    albert_for_pretraining,
    tables_of,
)
from course_lib.family.bert import bert_for_pretraining
from course_lib.family.distilbert import distilbert_for_masked_lm
from course_lib.family.electra import ElectraConfig, electra_encoder
from course_lib.family.mobilebert import mobilebert_for_masked_lm
from course_lib.family.modernbert import modernbert_for_masked_lm
from course_lib.family.roberta import roberta_for_masked_lm
from course_lib.heads import BertForClassification, BertForMaskedLM
from course_lib.objectives.classification import (
    classification_loss,
    inverse_frequency,
    weighted_classification_loss,
)
from course_lib.objectives.pretraining import pretraining_batch
from course_lib.objectives.sequences import Batch
from course_lib.objectives.token_labels import padded_token_loss
from course_lib.text.wordpiece import WordPiece, train_wordpiece
from course_lib.train.layer_rates import both, gradual_unfreezing, layer_of, layerwise_rates
from course_lib.train.loop import fit
from course_lib.train.new_vocabulary import extended, fertility, old_rows, with_vocabulary
from course_lib.train.pretrain import measure, pretrain, set_up, store
from course_lib.train.pretrain_recipe import (
    ModelPart,
    ObjectivePart,
    PretrainRecipe,
    ReportsPart,
    TextPart,
    TrainingPart,
    read_recipe,
)

torch.set_num_threads(1)
PIECES = ["the", "bo", "##ot", "##s", "lace", "a", "##a", "b", "##b", "."]


@pytest.fixture
def old():
    return WordPiece.from_words(PIECES)


@pytest.fixture
def model(old):
    torch.manual_seed(0)
    config = BertConfig(
        vocab_size=len(old), hidden_size=8, num_layers=2, num_heads=2, intermediate_size=16,
        max_positions=16, pad_token_id=old.special.pad,
    )  # fmt: skip
    found = BertForMaskedLM(Encoder(config)).eval()
    with torch.no_grad():
        found.mlm.bias.copy_(torch.arange(len(old)) / 10)
    return found


# ---------------------------------------------------------------- vocabularies


def test_words_that_save_most_pieces_are_added(old):
    texts = ["the boots boots boots", "the boot boot the lace ba ba"]
    more = extended(old, texts, 2)  # boots 3·2, boot 2·1, ba 2·1: the first in the alphabet
    assert more.vocab[: len(old)] == old.vocab and more.vocab[len(old) :] == ["boots", "ba"]
    short = extended(WordPiece(old.vocab, max_chars=5), texts, 2)
    assert short.tokenize("boots bootss") == ["boots", "[UNK]"]
    assert more.tokenize("the boots") == ["the", "boots"]
    short = extended(WordPiece(old.vocab, max_chars=5, lowercase=False), texts, 2)
    assert short.tokenize("The bootss boots") == ["[UNK]", "[UNK]", "boots"]  # its settings stay
    with pytest.raises(ValueError, match="added=9 was given; expected 1 to 3"):
        extended(old, texts, 9)


def test_old_rows_are_those_of_the_pieces(old):
    ids = old.ids
    assert old_rows("boots", old) == [ids["bo"], ids["##ot"], ids["##s"]]
    assert old_rows("lace", old) == [ids["lace"]]
    assert old_rows("##ba", old) == [ids["##b"], ids["##a"]]  # it goes on with a word
    assert old_rows("ζ", old) == []


def test_rows_are_kept_or_means_and_the_rest_is_as_it_was(old, model):
    new = WordPiece.from_words(["boots", "lace", "the", "ζ"])
    moved = with_vocabulary(model, old, new)
    before, after = (m.encoder.embeddings.token.weight for m in (model, moved))
    assert torch.equal(after[new.ids["lace"]], before[old.ids["lace"]])
    rows = [old.ids[piece] for piece in ("bo", "##ot", "##s")]
    assert torch.allclose(after[new.ids["boots"]], before[rows].mean(0))
    assert torch.allclose(moved.mlm.bias[new.ids["boots"]], model.mlm.bias[rows].mean())
    assert moved.mlm.bias[new.ids["ζ"]] == 0
    assert moved.config.vocab_size == moved.encoder.config.vocab_size == len(new)
    assert model.config.vocab_size == len(old)  # a copy
    for name, value in moved.encoder.stack.state_dict().items():
        assert torch.equal(value, model.encoder.stack.state_dict()[name])


def test_added_words_leave_the_old_logits_as_they_were(old, model):
    more = WordPiece([*old.vocab, "boots"])
    ids = torch.tensor([old.encode("the bo lace .")])
    with torch.no_grad():
        before, after = model(ids).logits, with_vocabulary(model, old, more)(ids).logits
    assert after.shape[-1] == len(more)
    assert torch.allclose(before, after[..., : len(old)], atol=1e-6)


def test_random_rows_are_drawn_by_the_seed(old, model):
    more = WordPiece([*old.vocab, *(f"w{chr(97 + n)}" for n in range(26))])
    drawn = [
        with_vocabulary(model, old, more, "random", seed).encoder.embeddings.token.weight
        for seed in (0, 0, 1)
    ]
    assert torch.equal(drawn[0], drawn[1]) and not torch.equal(drawn[0], drawn[2])
    assert torch.equal(drawn[0][: len(old)], drawn[2][: len(old)])
    sd = drawn[0][len(old) :].std()
    assert float(sd) == pytest.approx(model.config.initializer_range, rel=0.3)


SMALL = {
    "hidden_size": 16, "num_layers": 2, "num_heads": 2, "intermediate_size": 16,
    "max_positions": 40, "pad_token_id": 0, "initializer_range": 0.2,
}  # fmt: skip
NARROW = {**SMALL, "embedding_size": 8}
MEMBERS = {
    "BERT": lambda size: BertForMaskedLM(Encoder(BertConfig(size, **SMALL))),
    "BERT with pairs": lambda size: bert_for_pretraining("base", vocab_size=size, **SMALL),
    "RoBERTa": lambda size: roberta_for_masked_lm(vocab_size=size, **SMALL),
    "ALBERT": lambda size: BertForMaskedLM(
        albert_encoder(AlbertConfig(size, **NARROW), pooler=False)
    ),
    "ALBERT with pairs": lambda size: albert_for_pretraining(vocab_size=size, **NARROW),
    "DistilBERT": lambda size: distilbert_for_masked_lm(vocab_size=size, **SMALL),
    "MobileBERT": lambda size: mobilebert_for_masked_lm(
        vocab_size=size, **NARROW, bottleneck_size=8
    ),
    "ModernBERT": lambda size: modernbert_for_masked_lm(vocab_size=size, **SMALL),
    "ELECTRA's generator": lambda size: BertForMaskedLM(
        electra_encoder(ElectraConfig(size, **NARROW))
    ),
}


@pytest.mark.parametrize(
    ("member", "added"),
    [*((member, 3) for member in MEMBERS),
     *((member, 0) for member in ("ALBERT", "MobileBERT", "ELECTRA's generator"))],
)  # fmt: skip
def test_a_run_starts_with_any_member_whose_head_is_berts(folder, tmp_path_factory, member, added):
    """What it starts with says of old pieces what the checkpoint says, and is saved and read again;
    of a piece that is new, the row is the mean of its old ones."""
    torch.manual_seed(0)
    pieces = train_wordpiece([TEXT], 60)
    saved = tmp_path_factory.mktemp("start")
    theirs = MEMBERS[member](len(pieces)).eval()
    save_folder(theirs, saved, pieces)
    vocabulary = saved / "vocab.txt"
    begun = set_up(
        recipe(folder, start=str(saved), vocabulary=str(vocabulary), added=added, length=38)
    )
    ours, words, known = begun.model.eval(), begun.reading.tokenizer, len(pieces)
    assert len(words) == known + added == ours.config.vocab_size
    with torch.no_grad():
        ids = begun.train.input_ids[:2].clamp(max=known - 1)
        expected = theirs(ids)
        expected = getattr(expected, "prediction_logits", getattr(expected, "logits", None))
        found = ours(ids).logits
    assert torch.allclose(found[..., :known], expected, atol=1e-5)
    rows = [old_rows(piece, pieces) for piece in words.vocab[known:]]
    decoder = [tables_of(ours.encoder).token.weight, *(
        [] if ours.mlm.extra is None else [ours.mlm.extra.weight.T])]  # fmt: skip
    for table in decoder:
        assert len(table) == len(words)
        for new, from_rows in enumerate(rows, known):
            assert torch.allclose(table[new], table[from_rows].mean(0), atol=1e-6)

    batch = pretraining_batch(begun.train[:4], begun.special)
    losses = begun.objective(begun.model(**batch.inputs), batch.targets)
    losses["total"].backward()
    assert decoder[0].grad is not None and decoder[0].grad[known:].any() == (added > 0)
    assert store(ours, words, saved / "again") == "model"  # as transformers reads it
    again = load_pretrained(saved / "again" / "model").model.eval()
    assert torch.equal(again(ids).logits, ours(ids).logits)


def test_positions_that_are_counted_from_padding_keep_its_number():
    other = WordPiece(["[UNK]", "[PAD]", "[CLS]", "[SEP]", "[MASK]", *PIECES])
    with pytest.raises(ValueError, match=r"expected \[PAD\] at 0\. Put it there"):
        with_vocabulary(MEMBERS["RoBERTa"](15), WordPiece.from_words(PIECES), other)
    moved = with_vocabulary(MEMBERS["BERT"](15), WordPiece.from_words(PIECES), other)
    assert moved.config.pad_token_id == 1


def test_another_vocabulary_or_word_is_refused(old, model):
    with pytest.raises(ValueError, match="rows='zeros' was given; expected one of mean, random"):
        with_vocabulary(model, old, old, "zeros")
    with pytest.raises(ValueError, match=r"vocabulary of \d+ pieces was given for a model with"):
        with_vocabulary(model, WordPiece.from_words(["a"]), old)


def test_fertility_counts_words_of_letters_and_digits(old):
    assert fertility(old, ["the boots .", "lace ."]) == pytest.approx((1 + 3 + 1) / 3)
    assert fertility(old, ["ζ"]) == 1.0  # [UNK] is a word of one piece
    with pytest.raises(ValueError, match="no text was given"):
        fertility(old, [])


# ---------------------------------------------------------------- rates


def test_rates_by_hand():
    scale = layerwise_rates(2, 2.0)
    names = ("encoder.embeddings.token.weight", "encoder.stack.blocks.0.x",
             "encoder.stack.blocks.1.x", "classifier.weight")  # fmt: skip
    assert [layer_of(name, 2) for name in names] == [-1, 0, 1, 2]
    assert [scale(name, 7) for name in names] == [1 / 8, 1 / 4, 1 / 2, 1]
    open_ = gradual_unfreezing(2, 10)
    assert [[open_(n, step) for n in names] for step in (0, 10, 29, 30)] == [
        [0, 0, 0, 1], [0, 0, 1, 1], [0, 1, 1, 1], [1, 1, 1, 1],
    ]  # fmt: skip
    assert both(scale, open_)(names[2], 10) == 0.5 and both(scale, open_)(names[2], 9) == 0
    with pytest.raises(ValueError, match=r"divisor=0\.5 was given; expected at least 1"):
        layerwise_rates(2, 0.5)
    with pytest.raises(ValueError, match="every=0 was given; expected at least one step"):
        gradual_unfreezing(2, 0)


@pytest.mark.parametrize("family", FAMILIES)
def test_every_weight_of_an_encoder_is_its_embeddings_or_a_layers(family):
    """DeBERTa's table of distances counts as embeddings, a norm after the last layer with it."""
    row = FAMILIES[family]
    with torch.device("meta"):
        encoder = row.encoder(row.config_class(num_layers=2), False)
    layers = {name: layer_of(name, 2) for name, _ in encoder.named_parameters()}
    layers |= {f"encoder.{name}": layer for name, layer in layers.items() if family != "vit"}
    last = {name: layer for name, layer in layers.items() if "stack.norm." in name}
    assert all(layer_of(name, 2) == layer for name, layer in layers.items())
    assert set(last.values()) <= {1}
    assert {layer for name, layer in layers.items() if "positions" in name} <= {-1}
    norm = {"norm.weight", "norm.bias"}  # ViT's, whose name alone is any norm's
    assert {layer for name, layer in layers.items() if name not in norm} <= {-1, 0, 1}
    assert layer_of("encoder.norm.weight", 2) == 1 and layer_of("mlm.norm.weight", 2) == 2


def trained(scale=None, steps=4):
    torch.manual_seed(0)
    config = BertConfig(
        vocab_size=20, hidden_size=8, num_layers=2, num_heads=2, intermediate_size=16,
        max_positions=8,
    )  # fmt: skip
    model = BertForClassification(Encoder(config, pooler=Pooler(config)), 3)
    start = {name: p.detach().clone() for name, p in model.named_parameters()}
    ids = torch.arange(6).view(2, 3) + 5
    batch = Batch({"input_ids": ids}, {"classes": torch.tensor([0, 2])})
    fit(model, classification_loss, lambda step: batch, steps=steps, learning_rate=0.01, seed=0,
        precision="float32", scale=scale)  # fmt: skip
    return start, dict(model.named_parameters())


def test_what_is_frozen_does_not_move():
    start, after = trained(gradual_unfreezing(2, 100))
    moved = {name for name in start if not torch.equal(start[name], after[name])}
    assert moved and all(layer_of(name, 2) == 2 for name in moved)


def test_a_factor_of_one_changes_nothing():
    (_, plain), (_, scaled) = trained(), trained(lambda name, step: 1.0)
    for name, value in plain.items():
        assert torch.allclose(value, scaled[name], atol=1e-6), name


# ---------------------------------------------------------------- losses


def outputs(*shape):
    logits = torch.randn(*shape, generator=torch.Generator().manual_seed(0))
    return type("Out", (), {"logits": logits})()


def test_weights_are_inverse_frequencies():
    weights = inverse_frequency(torch.tensor([0] * 9 + [1]), 2)
    assert weights.tolist() == pytest.approx([10 / 9, 10])
    labels, given = torch.tensor([0, 1, 1]), outputs(3, 2)
    loss = weighted_classification_loss(weights)(given, {"classes": labels})["total"]
    each, w = F.cross_entropy(given.logits, labels, reduction="none"), weights[labels]
    assert float(loss) == pytest.approx(float((w * each).sum() / w.sum()))
    with pytest.raises(ValueError, match="expected at least one of each"):
        inverse_frequency(torch.tensor([0, 0]), 2)
    with pytest.raises(ValueError, match="expected a positive one a class"):
        weighted_classification_loss(torch.tensor([1.0, 0.0]))
    with pytest.raises(ValueError, match="2 weights were given for 3 classes"):
        weighted_classification_loss(weights)(outputs(1, 3), {"classes": torch.tensor([0])})


def test_padding_is_in_the_loss():
    given, labels = outputs(1, 4, 3), torch.tensor([[2, 1, -100, -100]])
    loss = padded_token_loss(given, {"token_labels": labels})["total"]
    flat = given.logits[0]
    assert float(loss) == pytest.approx(float(F.cross_entropy(flat, torch.tensor([2, 1, 0, 0]))))


# ---------------------------------------------------------------- the command


TEXT = "The cobbler mends a boot. It has lost its lace, and the sole is thin. " * 3


@pytest.fixture
def folder(tmp_path):
    for n in range(40):
        (tmp_path / f"{n}.txt").write_text(f"{TEXT} Number {n} is a bootblack's.\n\n{TEXT[5:]}")
    return tmp_path


def recipe(folder, *, start="course-bert", objective="mlm", **more):
    model = {
        name: more.pop(name) for name in ("settings", "rows", "family", "size") if name in more
    }
    return PretrainRecipe(
        name="t", about="t",
        model=ModelPart(start=start, **model),
        text=TextPart(**{"source": str(folder), "vocabulary": "course-bert", "length": 32,
                         "heldout": 4, **more}),
        objective=ObjectivePart(name=objective),
        training=TrainingPart(steps=2, batch_size=2),
    )  # fmt: skip


def test_a_run_starts_with_a_checkpoint(folder):
    found, course = set_up(recipe(folder)), load_pretrained("course-bert")
    assert isinstance(found.model, BertForMaskedLM) and len(found.train) > 0
    for name, value in found.model.encoder.state_dict().items():
        assert torch.equal(value, course.encoder.state_dict()[name]), name


def test_the_log_begins_with_what_the_checkpoint_is_worth(folder, tmp_path_factory, capsys):
    """Before step 1, on text held out of the run's own; a run at random begins with its steps."""
    mine = replace(recipe(folder), reports=ReportsPart(log_every=1, evaluate_every=2))
    out = tmp_path_factory.mktemp("run")
    pretrain(mine, out)
    first, *others = [json.loads(line) for line in (out / "log.jsonl").read_text().splitlines()]
    ready = set_up(mine)
    with torch.no_grad():
        expected = measure(ready, ready.model.eval())
    assert first == {"step": 0, **{name: round(x, 5) for name, x in expected.items()}}
    assert [line["step"] for line in others] == [1, 2, 2]
    assert f"step 0: held-out loss {first['heldout_loss']:.3f}" in capsys.readouterr().out


def test_without_a_vocabulary_a_start_keeps_its_own(folder):
    """No row is made again, and the recipe says whose vocabulary it is."""
    part = TextPart(str(folder), length=32, heldout=4)
    asked = PretrainRecipe("t", model=ModelPart(start="course-bert"), text=part)
    assert asked.text.vocabulary == asked.as_dict()["text"]["vocabulary"] == "course-bert"
    assert "size" not in asked.as_dict()["model"]
    course = load_pretrained("course-bert")
    rows = course.encoder.embeddings.token.weight
    assert torch.equal(set_up(asked).model.encoder.embeddings.token.weight, rows)
    for other in (8_192, 300):  # said, so another one is learned
        assert replace(asked, text=replace(part, vocabulary=other)).text.vocabulary == other
    assert PretrainRecipe("t", text=part).text.vocabulary == 8_192


@pytest.mark.parametrize("size", ["mini", "tiny"])
def test_a_file_with_a_start_and_a_size_is_refused(tmp_path, size):
    (tmp_path / "r.toml").write_text(f'name = "t"\n[model]\nstart = "course-bert"\nsize = "{size}"')
    with pytest.raises(
        ValueError, match=f"size='{size}' beside start='course-bert'; .*Leave size o"
    ):
        read_recipe(tmp_path / "r.toml")


def test_rows_without_a_start_are_refused(folder):
    with pytest.raises(ValueError, match=r"rows was given; .*only a start has them"):
        set_up(recipe(folder, start="", rows="random"))


def test_a_run_starts_with_words_added_or_another_vocabulary(folder):
    course = load_pretrained("course-bert")
    rows = course.encoder.embeddings.token.weight
    added = set_up(recipe(folder, added=3))
    table = added.model.encoder.embeddings.token.weight
    assert len(table) == len(rows) + 3 == len(added.reading.tokenizer)
    assert torch.equal(table[: len(rows)], rows)
    own = set_up(recipe(folder, vocabulary=120))
    assert len(own.model.encoder.embeddings.token.weight) == len(own.reading.tokenizer) <= 120
    the = own.reading.tokenizer.ids["the"]
    assert torch.equal(
        own.model.encoder.embeddings.token.weight[the], rows[course.tokenizer.ids["the"]]
    )


@pytest.mark.parametrize(
    ("changes", "said"),
    [
        ({"settings": {"num_layers": 2}}, r"with settings \['num_layers'\]; expected its own"),
        ({"objective": "electra"}, "'electra'"),
        ({"length": 4_096}, "expected at most"),
        ({"rows": "zeros"}, "expected one of mean, random"),
        ({"family": "modernbert"}, "with family='modernbert'; expected its own family"),
        (
            {"size": "base"},
            "start='course-bert' was given, with size='base'; expected its own size",
        ),
    ],
)
def test_what_does_not_go_with_a_start_is_refused_before_the_text_is_read(
    folder, changes, said, monkeypatch
):
    monkeypatch.setattr("course_lib.train.pretrain.read_text", None)
    with pytest.raises(ValueError, match=said):
        set_up(recipe(folder, **changes))


def test_an_unknown_start_is_refused(folder):
    with pytest.raises(FileNotFoundError):
        set_up(recipe(folder, start=str(folder / "no-such-checkpoint")))
