"""One example of every view, by name: shown in a kernel that has Google Colab's versions."""

from __future__ import annotations

import inspect
from collections.abc import Callable
from functools import lru_cache
from types import SimpleNamespace
from typing import Any

import torch

from course_lib import MicroWorld, teaching
from course_lib.files import read_result
from course_lib.heads import BertForTokenClassification
from course_lib.images import digits, scenes
from course_lib.teaching.documentation_tasks import CODE_TAGS
from course_lib.teaching.quizzes import read_quiz
from course_lib.teaching.rooms import lectures_with, room

ROOMS = (teaching, *(room(lecture, "views") for lecture in lectures_with("views")))


def offered(place: Any) -> list[str]:
    """What a room's views offer: their list, or else every function that the room imports."""
    if hasattr(place, "__all__"):
        return list(place.__all__)
    return [name for name, thing in vars(place).items() if callable(thing)]


def collected() -> dict[str, Any]:
    """Every view by its name; one whose name another lecture's view has, with its lecture too."""
    by_name: dict[str, Any] = {}
    for place in ROOMS:
        for name in offered(place):
            view = getattr(place, name)
            if by_name.setdefault(name, view) is not view:
                by_name[f"{name}_{place.__name__.split('.')[-2]}"] = view
    return by_name


views = SimpleNamespace(**collected())

WORDS = ["the", "river", "rose", "over", "its", "bank", "after", "rain"]
TOKENS = ["[CLS]", "the", "river", "rose", "[SEP]"]
EXITS = {"a text": [(0.5, 0.3, 0.2), (0.9, 0.1, 0.0)]}  # what two exits say
LOSSES = {"total": [6.0, 5.0, 4.0], "mlm": [5.3, 4.4, 3.5], "nsp": [0.7, 0.6, 0.5]}


@lru_cache(maxsize=1)
def tokenizer() -> Any:
    from course_lib.text.wordpiece import WordPiece

    return WordPiece.from_words(WORDS)


@lru_cache(maxsize=1)
def world() -> Any:
    from course_lib import MicroWorld

    return MicroWorld.load()


@lru_cache(maxsize=1)
def graph() -> Any:
    from course_lib.text.knowledge_graph import world_graph

    return world_graph(world())


@lru_cache(maxsize=1)
def norlish() -> Any:
    return MicroWorld.load(language="norlish")


def offers() -> Any:
    """The ways to serve that lecture 12's budget chooses from."""
    from course_lib.lectures.lecture_12.serving_runs import offers

    return offers()


def pairs_model() -> Any:
    """A small XLM of English and Norlish, not trained."""
    from course_lib.lectures.lecture_10.pairs import sentence_pairs, small_xlm

    return small_xlm(sentence_pairs(world(), norlish(), world().stories(1)).special, seed=0)


def translations() -> Any:
    from course_lib.objectives.transe import Translations

    torch.manual_seed(0)
    return Translations(torch.randn(len(graph().entities), 4), torch.randn(5, 4))


@lru_cache(maxsize=1)
def byte_bpe() -> Any:
    from course_lib.text.byte_bpe import train_byte_bpe

    return train_byte_bpe([" ".join(WORDS * 3)], 280)


@lru_cache(maxsize=1)
def encoder() -> Any:
    from course_lib import bert

    torch.manual_seed(0)
    return bert("tiny", vocab_size=tokenizer().vocab_size).eval()


def ids() -> torch.Tensor:
    return torch.tensor([tokenizer().id(token) for token in TOKENS])


def model() -> Any:
    from course_lib import bert_for_pretraining

    torch.manual_seed(0)
    return bert_for_pretraining("tiny", vocab_size=tokenizer().vocab_size).eval()


@lru_cache(maxsize=1)
def electra() -> Any:
    from course_lib.family.electra import ElectraConfig, electra_from

    torch.manual_seed(0)
    size = {"hidden_size": 32, "num_layers": 1, "num_heads": 2, "intermediate_size": 64}
    return electra_from(
        ElectraConfig(vocab_size=tokenizer().vocab_size, embedding_size=32, **size), 1 / 2
    )


@lru_cache(maxsize=1)
def vit() -> Any:
    from course_lib import vit_for_classification

    torch.manual_seed(0)
    size = {"hidden_size": 32, "num_layers": 2, "num_heads": 2, "intermediate_size": 64}
    small = {"image_size": 8, "patch_size": 2, "num_channels": 1, **size}
    return vit_for_classification("B/16", classes=10, **small).eval()


def digit() -> torch.Tensor:
    return digits("test").pixel_values[0]


@lru_cache(maxsize=1)
def deberta() -> Any:
    from course_lib import deberta

    torch.manual_seed(0)
    size = {"hidden_size": 32, "num_layers": 1, "num_heads": 2, "intermediate_size": 64}
    return deberta("base", vocab_size=tokenizer().vocab_size, span=8, **size).eval()


def speeds() -> dict[str, Any]:
    """A bench of one table, as its command saves it."""
    rows = [{"name": "peer", "rates": [1.0, 1.1]}, {"name": "ours", "rates": [2.0, 2.2]}]
    on = {"processor": "x86_64", "threads": 2, "date": "2026-01-01"}
    on |= {"torch": "2", "transformers": "5"}
    return {"machine": on, "tables": {"Masking": rows}, "remarks": {"Masking": "twice"}}


def queue_results() -> dict[str, Any]:
    run = {"seed": 0, "accuracy": 1.0, "places": [1.0] * 8, "curve": [(20, 0.125), (40, 1.0)]}
    return {"runs": {"BERT": [run, run]}, "recipes": {"BERT": {"steps": 40}}, "words": ["a"] * 8}


def counted(*faults):
    from course_lib.lectures.lecture_14.views.page_faults import Counted

    return [Counted(n, 0.25) for n in faults]


def placed() -> list[Any]:
    from course_lib.bench.roofline import Placed

    return [
        Placed("loss", twin, flops=10**8, unavoidable=10**6, moved=moved, seconds=seconds)
        for twin, moved, seconds in (("reference", 10**7, 0.02), ("fast", 10**6, 0.01))
    ]


def history() -> Any:
    return SimpleNamespace(steps=[1, 2, 3], losses=LOSSES, seconds=1.0, tokens_per_second=1e4)


def after_a_report(callback: Any) -> Any:
    """What a progress display leaves after the last of three steps."""
    for step in (1, 2, 3):
        losses = {name: values[step - 1] for name, values in LOSSES.items()}
        callback(
            SimpleNamespace(step=step, steps=3, losses=losses, tokens_per_second=1e4, model=None)
        )


def watched() -> Any:
    watch = views.WatchWord(tokenizer(), "the [MASK] rose", looks=2)
    report = SimpleNamespace(step=1, steps=1, losses={}, tokens_per_second=1.0, model=model())
    watch(report)
    return views.prediction_slider(watch.snapshots, "the [MASK] rose", truth="river")


def traffic_of(work: Callable[..., Any]) -> Any:
    from course_lib.bench.traffic import by_kind, traffic

    return by_kind(traffic(lambda: work(torch.ones(4, 4), -1)))


def question() -> tuple[list[str], torch.Tensor, torch.Tensor, torch.Tensor]:
    """Tokens, start and end scores, and where a span may be."""
    tokens = ["[CLS]", "what", "rose", "?", "[SEP]", "the", "river", "rose", "[SEP]"]
    start = torch.tensor([1.0, 0, 0, 0, 0, 3, 2, 0, 0])
    allowed = torch.tensor([5 <= k <= 7 for k in range(9)])
    return tokens, start, start.roll(1), allowed


def curves_of_training_sizes() -> dict[str, Any]:
    starts = {
        "pre-trained": {"20": [0.4, 0.5], "80": [0.6, 0.7]},
        "random": {"20": [0.3, 0.3], "80": [0.3, 0.4]},
    }
    return {"nli": starts, "ner": starts, "baselines": {"nli": {"bag of words": 0.4}}}


def bilm() -> tuple[Any, Any]:
    """A small ELMo that predicts next and previous words, and the words that it predicts."""
    from course_lib.family.elmo import ElmoConfig, ElmoForBiLM
    from course_lib.text.characters import WordVocabulary

    torch.manual_seed(0)
    words = WordVocabulary([*WORDS, "was"])
    size = {"filters": ((1, 4), (2, 4)), "projection_size": 8, "cell_size": 12, "num_highways": 1}
    return ElmoForBiLM(ElmoConfig(vocab_size=words.vocab_size, **size)), words


def occurrences() -> Any:
    from course_lib.lectures.lecture_01.senses import Mention, elmo_layers

    mentions = [Mention(tuple(WORDS), WORDS.index("bank"), sense, "") for sense in (0, 1)]
    senses = {"bank": ("of a river", "of money")}
    return views.index_occurrences(mentions, senses, elmo_layers(bilm()[0].encoder))


def static_tables() -> dict[str, Any]:
    from course_lib.text.static_vectors import StaticVectors

    return {"PPMI": StaticVectors(tuple(WORDS[1:]), torch.eye(7))}


LIVE: dict[str, Callable[[], Any]] = {  # with a widget and a picture
    "neighbours_view": lambda: views.neighbours_view(static_tables(), "river"),
    "guesses_view": lambda: views.guesses_view(*bilm(), "the river rose", word=2),
    "layers_view": lambda: views.layers_view({"ELMo": occurrences()}, {"ELMo": ("the bank", 2)}),
    "hand_attention_view": views.hand_attention_view,
    "masks_view": views.masks_view,
    "tree_view": views.tree_view,
    "temperature_view": lambda: views.temperature_view(
        [2.0, 1.0, 0.0], ["river", "bank", "rain"], truth="bank"
    ),
    "layer_map_view": lambda: views.layer_map_view(2, 4),
    "corruptor_view": lambda: views.corruptor_view(electra(), tokenizer(), " ".join(WORDS)),
    "score_maps": lambda: views.score_maps(deberta(), tokenizer(), "the river rose"),
    "bucket_chart": views.bucket_chart,
    "delta_tables": views.delta_tables,
    "score_variance": views.score_variance,
    "speed_chart": lambda: views.speed_chart(speeds()),
    "attention_view": lambda: views.attention_view(encoder(), ids(), TOKENS),
    "bertviz_view": lambda: views.bertviz_view(encoder(), ids(), TOKENS),
    "masking_playground": lambda: views.masking_playground(tokenizer(), "the river rose"),
    "embedding_stack_view": lambda: views.embedding_stack_view(
        encoder(), tokenizer(), "the river rose", "over its bank"
    ),
    "mask_epochs_view": lambda: views.mask_epochs_view(tokenizer(), "the river rose over its bank"),
    "parameter_calculator": views.parameter_calculator,
    "byte_pieces_view": lambda: views.byte_pieces_view(byte_bpe(), wordpiece=tokenizer()),
    "span_explorer": lambda: views.span_explorer(*question()),
    "code_words_view": lambda: views.code_words_view(
        BertForTokenClassification(encoder(), CODE_TAGS), tokenizer(), "the river rose"
    ),
    "cut_view": lambda: views.cut_view(WORDS, WORDS[:2], length=9),
    "spans_view": lambda: views.spans_view(tokenizer(), "the river rose over its bank"),
    "lengths_view": views.lengths_view,
    "units_view": lambda: views.units_view(world()),
    "chinese_view": lambda: views.chinese_view(MicroWorld.load(language="chinese"), world()),
    "graph_view": lambda: views.graph_view(graph(), "goza"),
    "steps_view": lambda: views.steps_view(graph(), translations(), "goza", "job"),
    "linked_view": lambda: views.linked_view(graph(), world().tokenizer, "goza walks to lion mill"),
    "sampling_view": views.sampling_view,
    "centring_view": views.centring_view,
    "fertility_view": views.fertility_view,
    "parallel_view": lambda: views.parallel_view({"norlish": norlish()}, world().stories(2)),
    "pair_view": lambda: views.pair_view(world(), {"norlish": norlish()}, world().stories(1)[0]),
    "across_view": lambda: views.across_view(
        {"norlish": pairs_model()}, world(), {"norlish": norlish()}, world().stories(1)
    ),
    "pieces_view": lambda: views.pieces_view({"the world's": tokenizer()}),
    "swaps_view": lambda: views.swaps_view(read_result("07_past_plateau")["swaps"]),
    "prediction_slider": watched,
    "reliability_view": lambda: views.reliability_view(
        torch.tensor([[2.0, 0.0], [0.0, 3.0]]), torch.tensor([0, 0]), 2.0
    ),
    "quiz_view": lambda: views.quiz_view(read_quiz("02")),
    "benchmark_view": views.benchmark_view,
    "guide_view": views.guide_view,
    "index_view": views.index_view,
    "rotation_view": views.rotation_view,
    "window_view": views.window_view,
    "exits_view": lambda: views.exits_view(EXITS),
    "budget_view": lambda: views.budget_view(offers()),
    "attention_maps_view": lambda: views.attention_maps_view(vit(), digit()[None]),
}
FIGURES: dict[str, Callable[[], Any]] = {
    "plot_loss": lambda: views.plot_loss(history()),
    "accuracy_chart": lambda: views.accuracy_chart(
        [1, 2, 3], [0.2, 0.5, 0.7], unigram=0.1, count_model=0.4, oracle=0.9
    ),
    "bar_chart": lambda: views.bar_chart({"a": 1.0, "b": 2.0}),
    "coverage_chart": views.coverage_chart,
    "heat_chart": lambda: views.heat_chart([[1.0, 2.0], [3.0, 4.0]], ["a", "b"], ["c", "d"]),
    "curves_chart": lambda: views.curves_chart(
        {"static": [[(1, 3.0), (2, 2.0)], [(1, 3.2), (2, 2.1)]], "dynamic": [[(1, 3.0), (2, 1.5)]]},
        x_title="step",
        y_title="loss (nats)",
        title="Two ways to mask",
    ),
    "dots_chart": lambda: views.dots_chart(
        {"static": [0.3, 0.32], "dynamic": [0.5]}, title="Two ways", y_title="share", percent=True
    ),
    "layer_distance_chart": lambda: views.layer_distance_chart(
        {"ours": ([3.0, 2.0], [40.0, 30.0])}, title="How far a layer moves a vector"
    ),
    "tradeoff_chart": lambda: views.tradeoff_chart(
        [
            {"name": "BERT", "x": 110, "y": 79.5},
            {"name": "DistilBERT", "x": 66, "y": 77.0, "low": 76.0, "high": 78.0},
        ],
        x="weights (millions)",
        y="score",
    ),
    "gradient_chart": lambda: views.gradient_chart(
        {"KL alone": [0.5, 0.1], "T² · KL": [0.5, 0.4]}, [1, 2]
    ),
    "ablation_chart": lambda: views.ablation_chart(
        {
            "equal steps": {"BERT": [0.5, 0.52], "ELECTRA": [0.6, 0.61]},
            "equal arithmetic": {"BERT": [0.5, 0.52], "ELECTRA": [0.55, 0.57]},
        },
        title="Two stones",
        x_title="share",
        percent=True,
    ),
    "queue_chart": lambda: views.queue_chart(queue_results()),
    "traffic_chart": lambda: views.traffic_chart(
        {"reference": traffic_of(torch.softmax), "fast": traffic_of(torch.amax)}, title="Two ways"
    ),
    "faults_chart": lambda: views.faults_chart(counted(900, 800), counted(3)),
    "roofline_chart": lambda: views.roofline_chart(
        {"float32": 100.0, "bfloat16": None, "memory": 20.0}, placed()
    ),
    "learning_curves": lambda: views.learning_curves(curves_of_training_sizes()),
    "shared_words_chart": views.shared_words_chart,
    "course_table": views.course_table,
    "sizes_chart": views.sizes_chart,
    "cosines_chart": lambda: views.cosines_chart({"not trained": torch.eye(3)}),
    "loss_line": lambda: views.loss_line(
        {"random": {"alpha": [0, 0.5, 1], "train_loss": [1, 0.5, 0], "test_score": [0.3, 0.5, 0.6]}}
    ),
}
PLAIN = {  # those that need nothing
    name: view
    for name, view in vars(views).items()
    if inspect.isfunction(view)
    and all(p.default is not p.empty for p in inspect.signature(view).parameters.values())
}
VIEWS = {
    **PLAIN,
    **LIVE,
    **FIGURES,
    "show": lambda: views.show(views.tokens_row),
    "Html": lambda: views.Html("<b>bold</b>", "bold"),
    "Live": lambda: views.Live(None, views.Html("<b>bold</b>", "bold")),
    "caption": lambda: views.caption("What to see."),
    "check_machine": views.check_machine,
    "colour": lambda: views.colour("bert"),
    "corrupt_and_detect": lambda: views.corrupt_and_detect(electra(), tokenizer(), " ".join(WORDS)),
    "measure_scores": lambda: views.measure_scores(deberta(), tokenizer(), "the river rose"),
    "draw_score_maps": lambda: views.draw_score_maps(
        views.measure_scores(deberta(), tokenizer(), "the river rose")
    ),
    "attention_parts": lambda: (
        views.attention_parts(deberta(), ids()[None], torch.ones(1, len(TOKENS)), 1).content.shape
    ),
    "count_faults": lambda: [one.faults for one in views.count_faults(list, 2)],
    "fresh_faults": lambda: len(views.fresh_faults("tiny", 1)),
    "score_statistics": lambda: views.score_statistics(16, 3),
    "t5_bucket": lambda: views.t5_bucket(20),
    "span_lengths": lambda: views.span_lengths(0.2, 3).mean,
    "story_units": lambda: views.story_units(world(), world().stories(1)[0], "phrase"),
    "table_of": lambda: views.table_of({"a": [{"x": 0.5}]}, {"right": "x"}),
    "nearest_on_paper": lambda: views.nearest_on_paper(0.5).nearest,
    "size_of": lambda: views.size_of("XLM-R base").parameters,
    "tokens_row": lambda: views.tokens_row(TOKENS, [0, 1, 2, 3, 0]),
    "alignment_table": lambda: views.alignment_table(
        pairs_model(), world(), norlish(), world().stories(1)
    ),
    "exits_chart": lambda: views.exits_chart("pairs"),
    "exits_picture": lambda: views.exits_picture(EXITS),
    "attentions_of": lambda: views.attentions_of(vit(), digit())[0].shape,
    "rollout": lambda: views.rollout(views.attentions_of(vit(), digit())[0]).shape,
    "attention_maps": lambda: views.attention_maps(vit(), digit()),
    "position_similarity": lambda: views.position_similarity(vit()),
    "scene_cards": lambda: views.scene_cards(scenes(2)),
    "rotation_picture": lambda: views.rotation_picture(1, 3),
    "window_picture": lambda: views.window_picture(6, 2),
    "packing_drawing": lambda: views.packing_drawing((3, 1)),
    "longer_chart": lambda: views.longer_chart("further_back"),
    "cost_chart": lambda: views.cost_chart("flops"),
    "index_occurrences": lambda: len(occurrences().mentions),
    "some_mentions": lambda: len(views.some_mentions(MicroWorld.load(), each=1, stories=20)),
    "attention_picture": lambda: views.attention_picture(
        views.attention_weights(encoder(), ids()), TOKENS
    ),
    "attention_weights": lambda: views.attention_weights(encoder(), ids()).shape,
    "tag_view": lambda: views.tag_view(["Ada", "sang"], ["B-PER", "O"], ["B-PER", "B-LOC"]),
    "span_table": lambda: views.span_table(*question(), longest=2),
    "WatchWord": watched,
    "predict_masked": lambda: views.predict_masked(model(), tokenizer(), "the [MASK] rose"),
    "ProgressBar": lambda: after_a_report(views.ProgressBar()),
    "LiveLoss": lambda: after_a_report(views.LiveLoss()),
}
