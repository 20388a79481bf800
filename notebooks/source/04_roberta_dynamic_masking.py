# ---
# jupyter:
#   jupytext:
#     cell_metadata_filter: tags,slideshow,-all
#     text_representation:
#       extension: .py
#       format_name: percent
# ---

# %% [markdown]
# # RoBERTa: the same model, trained with care
#
# **Lecture 04** · {{duration}} · {{colab}}
#
# After this page you can
#
# - tell static from dynamic masking, say which of them BERT really used, and what the difference is worth;
# - pack text into sequences in four ways, build a large batch out of small ones, and cut any text into pieces made of bytes;
# - read a table of results without comparing a test score with a development score.
#
# You need what lecture 02 builds: masked language modelling (**MLM**) and next-sentence prediction (**NSP**). The paper's tables show models fine-tuned as in
# lecture 03. Nothing is downloaded.
#
# {{parts}}

# %%
import torch

from course_lib import (
    MicroWorld, bert, check, claims_table, compare, count_parameters, documentation_slice, hint, masked_lm_loss,
    pretraining_batches, quiz, reveal, roberta, roberta_for_masked_lm, show, train_byte_bpe,
)  # fmt: skip
from course_lib.teaching import LiveLoss, bar_chart, coverage_chart, curves_chart, dots_chart
from course_lib.lectures.lecture_04.views import byte_pieces_view, mask_epochs_view

# %% [markdown]
# ## Predict first
#
# RoBERTa (Liu et al. 2019, arXiv 1907.11692) is a *replication study*. Its authors took BERT's blocks as they are and
# asked: was BERT trained well? Their answer: it was "significantly undertrained". Trained longer, on more text and with
# other settings, nearly the same model scored higher on all three benchmarks they report.
#
# BERT selects {{number:paper()['rate']:.0%}} of a text's positions for prediction. With *static masking* they are
# selected **once**; with *dynamic masking* they are selected anew in every epoch (one reading of the whole text). Write
# down three guesses before you go on:
#
# 1. What fraction of all positions is ever selected in forty epochs of static masking? And of dynamic masking?
# 2. A small model reads {{number:LIVE.stories}} stories for forty epochs with static masking, another with dynamic masking.
#    Which reaches the lower *training* loss, and which the higher *masked-token accuracy* (the fraction of selected
#    tokens predicted correctly) on new stories?
# 3. Pairs of single sentences are packed into sequences of {{number:POSITIONS}} positions. What fraction of these is padding?

# %%
my_guesses = {
    "ever selected, static": ..., "ever selected, dynamic": ..., "lower training loss": ...,
    "higher accuracy": ..., "padding": ...,
}  # fmt: skip

# %% [markdown]
# ## By hand
#
# ### How often is a position selected?
#
# An epoch selects 15% of the positions. With dynamic masking, a position escapes an epoch with probability 0.85, two
# epochs with 0.85 · 0.85 = 0.7225. So 27.75% of the positions have been selected after two epochs. With static masking
# it is still 15%: the second epoch selects the same positions again.

# %% tags=["nbval-check-output"]
for epochs in (1, 2, 10, 13, 40):
    dynamic, ten = 1 - 0.85**epochs, 1 - 0.85 ** min(epochs, 10)
    print(f"after {epochs:2} epochs: static 15.0%   ten copies {ten:6.2%}   dynamic {dynamic:6.2%}")

# %% [markdown]
# The middle column is what BERT did, by RoBERTa's account: BERT's code wrote **ten copies** of the text, each with its
# own mask, and training read these again and again. (Ten is the default of its flag `dupe_factor`; the example command in
# its README uses five.) That BERT had one mask (first column) is a common misconception.
#
# How often were the copies read? BERT's paper counts forty epochs. But nine in ten of its steps read sequences of 128
# tokens instead of 512, which adds up to about {{number:epochs_by_schedule}} epochs. By this count the model met each
# mask once or twice.
#
# ### Where does counting begin?
#
# A model knows a token's position from the position embeddings, a matrix with one row for each position. BERT counts 0,
# 1, 2, … RoBERTa starts at the padding token's id plus one. That id is 1, so the first token has position 2. Padding
# itself has position 1.

# %% tags=["nbval-check-output"]
from course_lib.family.roberta import position_ids_after_padding

ids = torch.tensor([[0, 713, 16, 10, 1296, 2, 1, 1]])  # <s> four words </s> <pad> <pad>
print("ids      ", ids[0].tolist())
print("positions", position_ids_after_padding(ids, pad_token_id=1)[0].tolist())

# %% [markdown]
# So {{number:models()[ROBERTA].config.longest_text}} positions of text need {{number:table_rows('position')[1]}} rows,
# and no word ever uses rows 0 and 1.
#
# ### Two small batches, one large
#
# A batch that does not fit into memory is read in parts, and the gradients of the parts are added. Suppose that 3
# positions are selected in one part, with a mean loss of 2.0 nats (the unit of a loss that uses the natural logarithm),
# and 1 in the other, with a loss of 6.0. The large batch's mean is (3 · 2.0 + 1 · 6.0) / 4 = 3.0. The mean of the two
# means is 4.0: there the single position counts three times as much as each of the others.

# %% [markdown]
# ## Try it
#
# Build three pieces before the page shows them. Checks name known mistakes; `hint("04.1")` helps
# one step at a time, and `reveal("04.1")` shows a solution. No later cell needs your answers.
#
# {{exercise:04.1}}


# %%
def my_selection(sequences, examples, epoch, copies, count, draw):
    return ...


check("04.1", my_selection)

# %% [markdown]
# {{exercise:04.2}}


# %%
def my_fraction(length, count, epochs, copies):
    return ...


check("04.2", my_fraction)

# %% [markdown]
# {{exercise:04.3}}


# %%
def my_positions(input_ids, pad_id):
    return ...


check("04.3", my_positions)

# %% [markdown]
# ## The code
#
# ### RoBERTa's model is BERT's
#
# What changed is the training. BERT had a second task, NSP: does the second text follow the first, or does it come from
# another document? RoBERTa leaves it out; the section *Full sequences* below says why.
#
# The blocks are BERT's: the file below imports them unchanged. Three small things around them differ. There is one
# segment type instead of two, there is no pooler (the small layer above `[CLS]`, which NSP trained), and positions
# start at the padding's id plus one. The vocabulary also differs (section *Bytes instead of words*), and so does a
# small constant in the LayerNorms. Neither changes a block's shape.

# %%
from course_lib.family.roberta import RobertaConfig, roberta_encoder

show(RobertaConfig, position_ids_after_padding, roberta_encoder, roberta_for_masked_lm)

# %% [markdown]
# Without NSP only one loss remains: the mean over the positions selected for prediction.

# %%
from course_lib.heads import BertForMaskedLM

show(BertForMaskedLM, masked_lm_loss)

# %% [markdown]
# ### Three schemes in one line
#
# Here a mask is never stored. It is a function of (seed, epoch, example): the same three numbers give the same mask.
# The schemes differ in the *epoch* that is passed on: always 0 (static), the epoch modulo ten (ten copies), or the
# epoch itself (dynamic). Look for `mask_copies`; you can skip the rest.

# %%
show(pretraining_batches)

# %% [markdown]
# ## Is it right?
#
# We give our model and the transformers library's the same weights and one padded batch, and compare outputs and
# gradients (of a mean loss).

# %%
small = {
    "num_layers": 2, "hidden_size": 128, "num_heads": 2, "intermediate_size": 512,
    "hidden_dropout": 0.0, "attention_dropout": 0.0,
}  # fmt: skip
compare(roberta_for_masked_lm("base", vocab_size=2_000, **small))

# %% [markdown]
# Outputs and gradients agree up to the rounding of 32-bit numbers.
#
# ### Where do 15 million more parameters come from?
#
# RoBERTa-base has {{number:millions(ROBERTA)}} million parameters, BERT-base {{number:millions(BERT)}}. (Both are
# counted with a pooler, as is usual, though RoBERTa's pre-training does not train one.) If the architecture is the
# same, the difference must be in the embedding matrices. Check it on paper first: there are
# {{number:table_rows('token')[1]}} tokens instead of {{number:table_rows('token')[0]}}, and each has a row of
# {{number:models()[BERT].config.hidden_size}} numbers.

# %% tags=["nbval-check-output"]
with torch.device("meta"):  # shapes without memory
    encoders = bert("base"), roberta("base")
for name in ("token", "position", "segment"):
    bert_rows, roberta_rows = (getattr(encoder.embeddings, name).num_embeddings for encoder in encoders)
    difference = (roberta_rows - bert_rows) * 768
    print(f"{name:9} {bert_rows:6,} rows → {roberta_rows:6,} rows: {difference:+12,} parameters")
bert_total, roberta_total = map(count_parameters, encoders)
print(f"{'all':9} {bert_total:,} → {roberta_total:,}: {roberta_total - bert_total:+,}")

# %% [markdown]
# The embedding matrices explain the whole difference. RoBERTa is not "an optimised architecture", as some say.
#
# ## See it
#
# ### One text, many epochs
#
# Here your own sentence is masked in every epoch. Set the scheme to *static* and the number of epochs to 40, and count
# the words that were never selected. Then choose *ten copies*: from the eleventh epoch on, the rows repeat.

# %%
world = MicroWorld.load()
tokenizer, special = world.tokenizer, world.special
mask_epochs_view(tokenizer)

# %% [markdown]
# *Rows are epochs, columns are tokens. Hatched: masked. Double outline: replaced by a random token. Dotted: selected,
# but left unchanged. Where the three schemes are shown side by side, a dashed frame encloses the epochs that bring no
# new mask.*

# %% [markdown]
# ### The fraction ever selected
#
# This answers your first guess. The lines show the formula; the marks are counts on {{number:LIVE.stories}} stories
# with the library's own masks.

# %%
from course_lib.teaching.coverage import simulated_coverage
from course_lib.lectures.lecture_04.experiments import LIVE, SCHEMES, prepare_masking

material = prepare_masking(LIVE, world)
epochs = int(LIVE.epochs)
ever_selected = {
    scheme: simulated_coverage(material.train, special, epochs, copies=copies) for scheme, copies in SCHEMES.items()
}
print({scheme: f"{fractions[-1]:.1%}" for scheme, fractions in ever_selected.items()})
coverage_chart(0.15, epochs, 10, simulated=ever_selected)

# %% [markdown]
# *By the formula, static masking stays at {{number:ever(1)}}, ten copies stop at {{number:ever(10)}} after ten epochs,
# and dynamic masking approaches 100%. The counts are a little higher.*

# %% [markdown]
# Why are they higher? In a sequence of 53 tokens round(0.15 · 53) = 8 are selected. `[CLS]` and `[SEP]` count among the
# 53 but are never selected themselves, so a *word* is selected slightly more often than {{number:paper()['rate']:.0%}}.
#
# This is BERT's rule, and our experiments keep it. RoBERTa's own code (in fairseq) draws a little differently: `<s>`
# and `</s>` are masked like words ({{number:2 / 64:.1%}} of the selected positions at 64 tokens), 0.15 · n is rounded
# up or down at random, and the random word is never a separator. `pretraining_batches(…, rule="roberta")` follows that
# rule.
#
# A stopped run should go on with the masks that it would have had. Ours are computed from seed and step, so a resumed run gets them.
# With transformers' Trainer (5.23.0) the first batch after a resume gets the mask of the run's *first* batch instead.
# If its mask collator has a seed and runs in worker processes, *every epoch* begins with the same masks (unless the workers
# are persistent): texts in a fixed order are then masked statically.
#
# ## Measure it
#
# ### Three schemes, all else equal
#
# A RoBERTa with two layers of width 128 reads {{number:LIVE.stories}} stories from the micro-world, an invented world
# of a thousand words with known rules. Each sequence is one story, MLM is the only task, and training lasts forty
# epochs. All three runs share the learning rate, the random initialisation and the order of the sequences; only the
# masks differ. The three runs take a minute or two.
#
# This tests your second guess. We read so little text for forty epochs on purpose: if static masking does harm, it must
# show here.

# %%
from course_lib.lectures.lecture_04.experiments import LossCurve, train_scheme

print(f"{LIVE.stories} stories, {LIVE.steps:,} steps of {LIVE.batch_size} sequences, {LIVE.epochs:.0f} epochs")
live = {}
for scheme in SCHEMES:
    curve = LossCurve(material, LIVE.steps, evaluations=1)
    print(f"masking: {scheme}")
    _, history = train_scheme(scheme, LIVE, material, callbacks=[LiveLoss(), curve])
    live[scheme] = curve.points[-1]

# %%
print(f"{'one seed, just now':20}{'training loss':>15}{'same stories,':>15}{'new stories':>13}{'masked-token':>14}")
print(f"{'':20}{'own masks':>15}{'new masks':>15}{'loss':>13}{'accuracy':>14}")
for scheme, end in live.items():
    print(
        f"{scheme:20}{end['train_loss']:15.2f}{end['retold_loss']:15.2f}"
        f"{end['heldout_loss']:13.2f}{end['heldout_accuracy']:14.1%}"
    )

# %% [markdown]
# Two baselines need no network, only counts of the same stories. One always predicts the most frequent word; the
# other predicts the most likely word between two neighbours. (The second sees those neighbours unmasked, which favours
# it.)

# %%
from course_lib.lectures.lecture_04.numbers import by_counting

for rule, accuracy in by_counting(LIVE.stories).items():
    print(f"{rule:28}{accuracy:.1%} masked-token accuracy on new stories")

# %% [markdown]
# **On so little text, one mask read forty times leaves the model far worse than counting neighbours; with ten masks
# or dynamic masking it does better.**
#
# Read the first row from left to right. With static masking the training loss is almost nothing: the model has
# *memorised* the tokens at its selected positions. If other positions **of the very same stories** are selected, its
# loss is higher than that of a guess from word frequencies, about {{number:by_frequency():.1f}} nats. It has learned
# little else about the stories; this is *overfitting* to one mask.
#
# In the other rows, ten copies show a little of this overfitting and dynamic masking none: no mask came twice. All three
# models find new stories harder than those they have read.
#
# ### Five seeds
#
# Here is the same experiment with five seeds, each with its own initialisation and masks (a result file, made in
# {{number:cpu_hours('04_masking_schemes')}} hours on one core by `python -m course_lib.teaching.results 04`, which also
# makes the next ones).

# %%
from course_lib.lectures.lecture_04.experiments import outcome
from course_lib.teaching.results import read_result

result = read_result("04_masking_schemes")
few, more = result["runs"]
curves = {
    scheme: [[(p["step"], p["heldout_loss"]) for p in run["curve"]] for run in runs]
    for scheme, runs in result["runs"][few].items()
}
curves_chart(curves, x_title="step", y_title="loss on new stories, nats", title=f"{few}, forty epochs, five seeds")

# %% [markdown]
# *Each line is the mean of five seeds, and its band is their range. With static masking the loss on new stories
# climbs; with ten copies and dynamic masking it keeps falling.*

# %%
figure = dots_chart(
    outcome(result, "heldout_accuracy", few), percent=True,
    title=f"Masked-token accuracy on new stories ({few})", y_title="accuracy",
)  # fmt: skip
figure.update_yaxes(range=[0, 1])

# %% [markdown]
# *Each mark is a seed, each bar a mean. Static masking is far below even counting neighbours; ten copies come close to
# dynamic masking.*

# %% [markdown]
# ### More text, or more steps?
#
# Four times as many stories, again read for forty epochs, take four times as many *steps*: two things change at once.
# The table therefore has all four combinations (dynamic masking, {{number:text_seeds()}} each). Guess first: which is
# worth more here, four times the text or four times the steps?

# %%
from course_lib.lectures.lecture_04.numbers import masks_or_text, text_and_steps
from course_lib.teaching.results import in_words

for stories, row in text_and_steps().items():
    cells = "   ".join(f"{steps:,} steps: {in_words(values)}" for steps, values in row.items())
    print(f"{stories:5,} stories   {cells}   two neighbours, counted: {by_counting(stories)['two neighbours, counted']:.1%}")

# %% [markdown]
# **Steps, by far.** Four times the steps bring {{number:steps_gain()}} points, four times the text
# {{number:text_gain()}}: after 1,000 steps the model has not yet learned what {{number:LIVE.stories}} stories can
# teach. RoBERTa's Table 4, below, points the same way at large scale.
#
# ### When do ten masks run out?
#
# RoBERTa's authors expect dynamic masking to become crucial with more steps or more text (section 4.1). Here is its
# gain over ten copies, seed by seed:

# %%
from course_lib.lectures.lecture_04.numbers import over_ten_copies

for what, points in over_ten_copies().items():
    print(f"{what:32}" + ", ".join(f"{100 * gain:+.1f}" for gain in points) + " points")

# %% [markdown]
# **Masks wear out by being read again.** When the same {{number:LIVE.stories}} stories are read four times as often,
# dynamic masking gains more. With four times as many stories, read equally often, it gains no more than before (though
# fewer errors are left there). It is ahead of ten copies at every seed, and far ahead of *one* mask:
# {{number:signed(gain('static', FEW))}} points on {{number:LIVE.stories}} stories,
# {{number:signed(gain('static', MORE))}} on 1,600.
#
# More masks bring no new text, but how close do they come? {{number:LIVE.stories}} stories with ten masks and 4,000
# stories with one mask give equally many masked texts, and in 1,000 steps each is read four times:

# %%
for what, values in masks_or_text().items():
    print(f"{what:32}{in_words(values)}")

# %% [markdown]
# **Ten masks on one text are worth {{number:of_new_text()}} points less than one mask on ten times the text.** One mask
# on one text, as you saw, is far behind both. In this world, after so few steps, new masks are nearly as good as new
# text. (The model has two layers and its world is invented. BERT's text was some {{number:text_times}} times larger than
# our 1,600 stories.)
#
# ### What the paper measured
#
# RoBERTa's authors trained a model of BERT-base's size twice, on
# {{number:printed('roberta')['data']['books_and_wikipedia']}} GB of text, and fine-tuned both (Table 1: medians of five
# runs on development sets, whose answers the authors may look at):
#
# | masking | SQuAD 2.0, F1 | MNLI-m | SST-2 |
# |---|---|---|---|
# | for reference: BERT-base, from Yang et al. (2019) | 76.3 | 84.3 | 92.8 |
# | static (ten copies), their own | 78.3 | 84.3 | 92.5 |
# | dynamic, their own | 78.7 | 84.0 | 92.9 |
#
# (SQuAD 2.0: find the answer in a text, or say that there is none; F1 measures the overlap of words. MNLI: does one
# sentence follow logically from another? -m means *matched*: test texts of the same kinds as the training texts. SST-2: is a review
# good?)
#
# The first row is not from BERT's paper, which has no SQuAD 2.0 for the base size: the authors took it from the XLNet
# paper (Yang et al. 2019). There the whole training differed, so only the lower two rows compare masks:
# {{number:paper_gains}}. One of the three is negative, and no spread is printed. The authors rightly call this
# "comparable or slightly better". Their "static" masking already had ten masks; the harm of *one* mask, which you just
# saw, was never part of that comparison.
#
# So dynamic masking saves disk space, but RoBERTa's gain probably comes mostly from elsewhere. The next sections go through
# the other changes.
#
# ## Full sequences
#
# ### Four input formats
#
# | format | a sequence holds | NSP |
# |---|---|---|
# | segment-pair | two runs of sentences, as BERT had it | yes |
# | sentence-pair | two single sentences | yes |
# | full-sentences | consecutive sentences until it is full, also across documents | no |
# | doc-sentences | the same, but a sequence ends with its document | no |
#
# We pack {{number:PACKED}} stories into sequences of {{number:POSITIONS}} positions and print the first two of each
# format, one letter for each position.

# %%
from course_lib.text.packing import INPUT_FORMATS, input_sequences

stories = world.documents(world.stories(2_000, seed=0))
packed = {name: input_sequences(name, stories, special, 64) for name in INPUT_FORMATS}


def letters(ids, segments):
    marks = {special.pad: "·", special.cls: "[", special.sep: "|"}
    return "".join(marks.get(id, "AB"[segment]) for id, segment in zip(ids, segments))


for name, sequences in packed.items():
    for ids, segments in zip(sequences.input_ids[:2].tolist(), sequences.token_type_ids.tolist()):
        print(f"{name:15}{letters(ids, segments)}")

# %% [markdown]
# *A and B are words of the two segments, `[` is `[CLS]`, `|` is `[SEP]`, a dot is padding. Without NSP there is no
# segment B; a `|` inside a full-sentences sequence marks the end of a story.*
#
# How much of the sequences is padding? This was your third guess.

# %%
padding = {name: sequences.padding_share for name, sequences in packed.items()}
bar_chart(padding, percent=True, title="Padding, stories in sequences of 64", y_title="fraction of positions")

# %% [markdown]
# *Pairs of single sentences waste most of each sequence; sequences that run across documents waste least.*

# %% [markdown]
# The paper's Table 2 compares the four formats (BERT-base's size, development sets; RACE: school exam questions with
# four choices):
#
# | format | SQuAD 1.1 / 2.0, F1 | MNLI-m | SST-2 | RACE |
# |---|---|---|---|---|
# | segment-pair, NSP | 90.4 / 78.7 | 84.0 | **92.9** | 64.2 |
# | sentence-pair, NSP | 88.7 / 76.2 | 82.9 | 92.1 | 63.0 |
# | full-sentences | 90.4 / 79.1 | **84.7** | 92.5 | 64.8 |
# | doc-sentences | **90.6 / 79.7** | **84.7** | 92.7 | **65.6** |
#
# Does NSP hurt? The table does not say so. Both upper rows have NSP, and *single sentences* do the damage: the
# authors suppose that they leave the model no distant words to learn from. Without NSP the scores are equal or
# slightly better, except on SST-2, where they are 0.2 to 0.4 lower.
#
# Doc-sentences is best or level on every other task. The authors chose full-sentences all the same: sequences that end
# with their document vary in length, and so their batches vary in size. (RoBERTa's code also keeps a separator at the
# edge of a full-sentences sequence and does not cut overlong sentences; ours drops that separator and cuts.)
#
# Between its upper and lower rows this table changes two things, the packing and the loss. We can change them one at a time.
# A small BERT reads 1,600 stories in each format, and in segment pairs also without the NSP loss, all with equally many steps and
# tokens (padding not counted), {{number:batch_seeds}} seeds and two learning rates; the table shows the better one.

# %%
from course_lib.lectures.lecture_04.numbers import by_format

print(f"{'masked-token accuracy':22}{'whole stories':>24}{'segment pairs':>24}")
for label, scores in by_format().items():
    print(f"{label:22}{in_words(scores['masked_accuracy']):>24}{in_words(scores['pairs_accuracy']):>24}")

# %% [markdown]
# *New stories: each whole in its own sequence, or cut into segment pairs, about half of them with a B from another story.*
#
# **Here the NSP loss itself costs a little**: without it segment pairs gain {{number:without_nsp()}} points on whole stories, and they gain with
# each seed and at both rates. **Doc-sentences have the highest mean on whole stories, which is what they read** (the
# seeds overlap with those of segment pairs without NSP); full-sentences, which cross documents, reach
# {{number:in_format('full-sentences')}} instead of {{number:in_format('doc-sentences')}}. Compare only with care: each column favours the format that trained on such sequences. The lower two never saw a
# segment B, and sentence pairs never fill the later positions, which probably explains much of their {{number:in_format('sentence-pair')}}. The paper
# avoids this by fine-tuning.
#
# Why could NSP be dropped? A later paper gave a likely reason: topic alone mostly solves it. ALBERT's authors found
# that a model trained on NSP tells real from foreign continuations in 90.5% of the cases, but puts two neighbouring
# passages in order in only 52.0% (their Table 5; chance level is a half).
#
# ## Large batches
#
# RoBERTa's batches hold 8,000 sequences, too many for the memory of one GPU. *Gradient accumulation* reads the batch in
# parts, adds the gradients, and updates once. It is exact if the losses of a part are *summed* and the sum is divided
# by the number of positions selected in the **whole** batch, as you did by hand above.

# %%
from course_lib.objectives.pretraining import split_batch
from course_lib.lectures.lecture_04.experiments import small_roberta


def gradient(parts, naive=False):
    model = small_roberta(LIVE, world, seed=0).double().train()
    for part in parts:
        # split_batch adds "num_labels", the count of the whole batch; naive leaves it out
        targets = {"labels": part.targets["labels"]} if naive else part.targets
        loss = masked_lm_loss(model(**part.inputs), targets)["total"]
        (loss / len(parts) if naive else loss).backward()
    return torch.cat([p.grad.flatten() for p in model.parameters() if p.grad is not None])


large = pretraining_batches(material.train, special, batch_size=64)(0)
whole = gradient([large])
for name, total in (
    ("four parts, global count", gradient(split_batch(large, 4))),
    ("four parts, mean of means", gradient(split_batch(large, 4), naive=True)),
):
    print(f"{name:28} largest difference {(total - whole).abs().max() / whole.abs().max():.1e} of the largest entry")

# %% [markdown]
# The first difference is the rounding error of float64 numbers. The second line is a different gradient: a part with
# few selected positions counts as much as one with many. (These four parts have {{number:selected_in_parts}} each, so
# the harm is small.)
#
# Check what your library does. transformers' Trainer (5.23.0) fine-tunes classifiers with the *sum* of the parts' means:
# with four parts, the loss and the gradient are four times too large (`findings/transformers_trainer_accumulates_means.sh`). And with
# texts grouped by length, its `predict` returns the rows in another order than yours.
#
# Are large batches better? The paper's Table 3 keeps the number of epochs fixed, so larger batches mean fewer steps
# (BERT-base; perplexity is e to the loss, and lower is better):
#
# | sequences a batch | steps | learning rate | perplexity | MNLI-m | SST-2 |
# |---|---|---|---|---|---|
# | 256 | 1,000,000 | 1e-4 | 3.99 | 84.7 | 92.7 |
# | 2,000 | 125,000 | 7e-4 | **3.68** | **85.2** | **92.9** |
# | 8,000 | 31,000 | 1e-3 | 3.77 | 84.6 | 92.8 |
#
# 2,000 is best. The authors used 8,000 because large batches spread over many GPUs more easily (section 4.3). The
# learning rate was tuned for each batch size, and all three cost equally many FLOPs. (Up to a *critical batch size*,
# which grows while the loss falls, twice the batch needs about half the steps; above it, more than half: McCandlish et
# al. 2018.) The appendix explains the learning rate and Adam's β₂ for large batches.
#
# Can we see this here? Our small RoBERTa reads 1,600 stories for forty epochs, with dynamic
# masking, in batches of three sizes. Each size is tried at several learning rates, {{number:batch_seeds}} seeds each:

# %%
from course_lib.lectures.lecture_04.numbers import by_batch

rates = sorted({rate for by_rate in by_batch().values() for rate in by_rate})
print(f"{'learning rate':32}" + "".join(f"{rate:>13g}" for rate in rates))
for (size, steps), by_rate in by_batch().items():
    cells = (" / ".join(f"{accuracy:.0%}" for accuracy in by_rate.get(rate, ())) or "–" for rate in rates)
    print(f"{size:3} stories a batch, {steps:5,} steps" + "".join(f"{cell:>13}" for cell in cells))

# %% [markdown]
# *Masked-token accuracy on new stories, both seeds. Counting two neighbours gives
# {{number:by_counting(1_600)['two neighbours, counted']:.0%}}.*
#
# **With a learning rate twice as high, batches of 64 do as well in a quarter of the steps; batches of 256 do not.** At their
# best rates the three sizes reach {{number:best_of_batch(16)}}, {{number:best_of_batch(64)}} and
# {{number:best_of_batch(256)}}. The seeds of 16 and 64 overlap; 256 is far behind both, and no higher rate that we tried makes up for its
# few steps. So for this model the critical batch size seems to lie between 64 and 256 stories. At the smallest batch's best
# rate the smallest batch has the highest mean: a comparison of batch sizes needs a rate for each.
#
# ## Bytes instead of words
#
# BERT's WordPiece knows 30,522 pieces; what it cannot spell becomes `[UNK]` and is lost. RoBERTa starts from **bytes**,
# of which there are 256. Training counts pairs of *neighbours* inside words and joins the most frequent pair into one
# piece, and it does so 50,000 times: this is *byte-level byte-pair encoding* (BPE). RoBERTa did not count anew; it
# reuses GPT-2's merges. (256 bytes, 50,000 merges and 9 other entries make 50,265.)
#
# Every text is a sequence of bytes, so no word is unknown. We learn such pieces from the documentation of the Python
# packages installed here. `Ġ` is a space.

# %%
corpus = documentation_slice(paragraphs=400)
bpe = train_byte_bpe(corpus.paragraphs, 2_000)
print(f"{bpe.vocab_size:,} pieces; the first merges: {bpe.merges[:8]}")

# %%
byte_pieces_view(bpe, "Ça marche: naïve café 🐙 at 25 °C")

# %% [markdown]
# *Every byte is shown as a letter: `Ç` is the two bytes c3 87, here `Ã ĩ`. Below each piece you see its id, and its
# bytes if it holds more than plain letters. Rare characters fall apart into bytes; nothing is unknown. Type your own
# text.*

# %% [markdown]
# Does the `tokenizers` library learn the same pieces from the same text? And do both cut unseen text in the same way?
# (The `<unk>` in its list is a convention and is never used.)

# %%
from tokenizers import Tokenizer, decoders, models, pre_tokenizers, trainers

peer = Tokenizer(models.BPE())
peer.pre_tokenizer = pre_tokenizers.ByteLevel(add_prefix_space=False)
peer.decoder = decoders.ByteLevel()
peer.train_from_iterator(corpus.paragraphs, trainers.BpeTrainer(
    vocab_size=2_000, min_frequency=2, show_progress=False,
    special_tokens=["<s>", "<pad>", "</s>", "<unk>", "<mask>"],
    initial_alphabet=pre_tokenizers.ByteLevel.alphabet(),
))  # fmt: skip
heldout = documentation_slice(paragraphs=100, split="heldout").paragraphs
heldout_text = " ".join(heldout) + " 🐙 naïve\tcafé"
pieces = [bpe.token(i) for i in bpe.encode(heldout_text)]
print("the same pieces:", pieces == peer.encode(heldout_text).tokens, f"({len(pieces):,} of them)")
print("back to the text:", bpe.decode(bpe.encode(heldout_text)) == heldout_text)

# %% [markdown]
# Was it an improvement? The authors say that the byte-level vocabulary did *slightly worse* on some tasks than BERT's, and that they kept it because it can
# encode every text (section 4.4). It also costs 15 million parameters. But size and case changed along with the bytes (BERT's 30,522 pieces are
# lower-cased, RoBERTa's keep case), so neither costs nor scores isolate the effect of bytes. And bytes are not equally cheap for every language: a Greek or
# Cyrillic letter takes two bytes, a Chinese character three, and merges learned from English text rarely join such letters into longer pieces.
#
# ## What it took, what it gave
#
# | | BERT-large | RoBERTa-large | RoBERTa-base |
# |---|---|---|---|
# | parameters | 335M | 355M | 125M |
# | layers, width, heads | 24, 1024, 16 | 24, 1024, 16 | 12, 768, 12 |
# | text | 16 GB | 160 GB | 160 GB |
# | batch × steps | 256 × 1,000,000 | 8,000 × 500,000 | 8,000 × 500,000 |
# | learning rate, warm-up | 1e-4, 10,000 | 4e-4, 30,000 | 6e-4, 24,000 |
# | Adam β₂, ε | 0.999, 1e-6 | 0.98, 1e-6 | 0.98, 1e-6 |
# | masking; pair task | ten copies; NSP | dynamic; none | dynamic; none |
# | training FLOPs, as ELECTRA's authors count | 1.9e20 | 3.2e21 | |
#
# (Sources: BERT, sections 3 and A.2 and its released code; RoBERTa, section 3 and Table 9; ELECTRA, Tables 1 and 2. The
# 160 GB are books and Wikipedia, 16; CC-News, 76; OpenWebText, 38; and Stories, 31.)
#
# "One day on 1,024 V100 GPUs" (section 5) describes a run of 100,000 steps on the 16 GB. The released model took {{number:times('roberta_500k')}} times
# BERT-large's FLOPs by ELECTRA's count, or about
# {{number:times_whole_short}} times if BERT's short sequences are counted as short.

# %% [markdown]
# ### Step by step
#
# Table 4 of the paper adds text and then steps, one after the other (large models, development sets):
#
# | | SQuAD 1.1 / 2.0, F1 | MNLI-m | SST-2 |
# |---|---|---|---|
# | BERT-large | 90.9 / 81.8 | 86.6 | 93.7 |
# | 16 GB, 100,000 steps | 93.6 / 87.3 | 89.0 | 95.3 |
# | 160 GB, 100,000 steps | 94.0 / 87.7 | 89.3 | 95.6 |
# | 160 GB, 300,000 steps | 94.4 / 88.7 | 90.0 | 96.1 |
# | 160 GB, 500,000 steps | 94.6 / 89.4 | 90.2 | 96.4 |
#
# **The first stage, on BERT's own 16 GB, brings {{number:first_stage(min)}} to {{number:first_stage(max)}} of a task's
# whole gain; ten times the text, at equal steps, brings less than half a point.** That stage bundles dynamic masking, full
# sequences, no NSP, large batches, bytes and more reading ({{number:more_read('sequences')}} times as many *sequences*,
# {{number:more_read('tokens')}} times as many *tokens*). This table cannot tell how much each of them is worth.

# %% [markdown]
# ### Development set, test set, ensemble
#
# The answers of a *development set* are known, and authors choose settings by it. The answers of a *test set* are
# withheld. Do not compare the two, nor one model with an *ensemble*, several models whose answers are averaged. Before
# you compare, ask four questions: Development or test set? One model or an ensemble? Extra data? Which average?
#
# GLUE consists of nine tasks on English sentences and one average. RoBERTa's paper reports it twice (Table 5):
#
# | task: what is asked | BERT-large, dev, one model | RoBERTa-large, dev, one model | BERT-large, test, one model | RoBERTa, test, 5 to 7 models a task |
# |---|---|---|---|---|
# | MNLI: does it follow? | 86.6 | 90.2 / 90.2 | 86.7 / 85.9 | 90.8 / 90.2 |
# | QNLI: is the answer in the text? | 92.3 | 94.7 | 92.7 | 98.9 |
# | QQP: the same question? | 91.3 | 92.2 | 72.1 / 89.3 | 90.2 |
# | RTE: does it follow? (few examples) | 70.4 | 86.6 | 70.1 | 88.2 |
# | SST-2: is the review good? | 93.2 | 96.4 | 94.9 | 96.7 |
# | MRPC: the same meaning? | 88.0 | 90.9 | 89.3 / 85.4 | 92.3 |
# | CoLA: is it grammatical? | 60.6 | 68.0 | 60.5 | 67.8 |
# | STS-B: how similar? | 90.0 | 92.4 | 87.6 / 86.5 | 92.2 |
# | WNLI: whom does the pronoun mean? | – | 91.3 | 65.1 | 89.0 |
# | **average** | **{{number:bert_dev}}** | **{{number:roberta_dev}}** | **{{number:str(printed('glue')['bert_large_leaderboard']['printed'])}}** | **{{number:str(printed('glue')['roberta_test']['printed'])}}** |
#
# **On the same development sets, with one model each, all eight scores rise: {{number:dev_gain(max)}} the most, {{number:dev_gain(min)}} the least** (left
# half; RoBERTa: medians of five runs). The training FLOPs, counted above, are far from equal. The left average is ours: eight tasks, one number each, without
# WNLI, which is small and unusual. (For BERT-large on SST-2, Table 4 has another score.)
#
# The right half mixes better training with ensembles and tricks (RTE, STS-B and MRPC start from the MNLI model; QNLI
# and WNLI are reformulated). Both its averages are as printed: over nine tasks, using the mean where a task has two
# numbers (BERT-large's column is from the README of the XLM repository).
#
# | RACE, test, one model (Table 7) | accuracy |
# |---|---|
# | BERT-large, from Yang et al. (2019) | 72.0 |
# | RoBERTa-large | 83.2 |
#
# These two are comparable: RoBERTa is
# {{number:printed('roberta')['race']['roberta'] - printed('roberta')['race']['bert_large']:.1f}} points better.

# %% [markdown]
# ### Three comparisons that circulate
#
# Each of these fails at least one of the four questions:
#
# | as quoted | what the two numbers are | like for like |
# |---|---|---|
# | SQuAD 1.1: 94.6 against 93.2 | one model, dev; against seven models with extra data, test | 94.6 against 90.9, dev |
# | SQuAD 2.0: 89.4 against 83.1 | dev; against test | 89.4 against 81.8 dev; 89.8 against 83.1 test |
# | GLUE: 88.5 against 84.6 | an ensemble's test average; against *base*'s score on one task | {{number:roberta_dev}} against {{number:bert_dev}}, mean of eight dev tasks |
#
# Exercise 04.5 rebuilds four GLUE averages from the printed rows.
#
# ### Your three guesses

# %%
print(f"{'':26}{'your guess':>12}{'measured':>12}")
answers = {
    "ever selected, static": f"{ever_selected['static'][-1]:.1%}",
    "ever selected, dynamic": f"{ever_selected['dynamic'][-1]:.1%}",
    "lower training loss": min(live, key=lambda scheme: live[scheme]["train_loss"]),
    "higher accuracy": max(live, key=lambda scheme: live[scheme]["heldout_accuracy"]),
    "padding": f"{padding['sentence-pair']:.0%}",
}
for name, value in answers.items():
    print(f"{name:26}{str(my_guesses[name]).replace('Ellipsis', '–'):>12}{value:>12}")

# %% [markdown]
# ## Appendix: β₂ and the learning rate
#
# β₂ and the learning rate belong to large batches: the authors found training with a smaller β₂ more stable there
# (section 3.1), and their learning rates are four and six times BERT's. You can skip this section, but some quiz
# questions and one claim in the table below refer to it.
#
# ### β₂: how far back Adam looks
#
# Adam divides each gradient by a running estimate of its size. β₂ says how slowly that estimate forgets: with 0.999
# about the last 1,000 steps count, with RoBERTa's 0.98 about the last 50. When gradients suddenly grow, a slow estimate
# is still small, and the step is too large. In the chart below a gradient of size 1 jumps to 10 at step 100.

# %%
from course_lib.train.schedule import adam_trace, warmup_then_linear

jump = [1.0] * 100 + [10.0] * 100
traces = {f"β₂ = {beta}:": [list(enumerate(adam_trace(jump, betas=(0.9, beta))))] for beta in (0.999, 0.98)}
curves_chart(
    traces, x_title="step", y_title="size of the step ÷ learning rate",
    title="A jump in the gradient, seen by Adam",
)  # fmt: skip

# %% [markdown]
# *The right step has size 1. Both overshoot after the jump, the one with 0.999 to more than twice that size. Fifty
# steps later the step is a fifth too large with 0.98 and two thirds too large with 0.999. This is arithmetic on one
# invented gradient: it shows what β₂ does, not how much it was worth to RoBERTa.*
#
# ### Warm-up: small steps first
#
# At the very start Adam's estimates rest on a handful of gradients. That is one reason for a small learning rate at first. The rate climbs in a straight line
# (the *warm-up*) and then falls in a straight line. RoBERTa's climbs for 24,000 (base) or 30,000 (large) of 500,000 steps.

# %%
schedule = {
    name: [
        [(step, 1e4 * top * warmup_then_linear(step, 500_000, climb / 500_000)) for step in range(0, 500_000, 1_000)]
    ]
    for name, top, climb in (("base", 6e-4, 24_000), ("large", 4e-4, 30_000))
}
figure = curves_chart(schedule, x_title="step", y_title="learning rate × 10⁴", title="RoBERTa's learning rate (Table 9)")
figure.for_each_annotation(lambda label: label.update(text=label.text.split()[0]))  # the name alone

# %% [markdown]
# *The smaller model has the higher rate and the shorter warm-up. A common error combines base's rate with large's
# warm-up.*

# %% [markdown]
# ## What they claim, what you measured
#
# Each line was checked by code that ran just now, by a result file, or, where neither is possible, by a source.

# %%
claims_table("04")

# %% [markdown]
# ## More exercises
#
# {{exercise:04.4}}


# %%
def my_bpe(word, merges):
    return ...


check("04.4", my_bpe)

# %% [markdown]
# {{exercise:04.5}}


# %%
def my_average(row, recipe):
    return ...


check("04.5", my_average)

# %% [markdown]
# {{exercise:04.6}}


# %%
def my_large_loss(losses, selected, sequences, tokens):
    return ...


check("04.6", my_large_loss)

# %% [markdown]
# ## Quiz

# %%
quiz("04")

# %% [markdown]
# ## Questions for review
#
# {{review:04}}

# %% [markdown]
# ## Read on
#
# - Liu et al. (2019), *RoBERTa*, arXiv 1907.11692. Read section 4 beside this page, then Tables 4 to 7 with the four
#   questions in mind.
# - Sennrich, Haddow, Birch (2016), arXiv 1508.07909: byte-pair encoding for words.
# - Training well on a small budget: Izsak et al. (2021), *How to Train BERT with an Academic Budget*, arXiv 2104.07705 (one day, eight
#   GPUs); Geiping and Goldstein (2022), *Cramming*, arXiv 2212.14034 (one day, one GPU).
# - Sellam et al. (2021), *The MultiBERTs*, arXiv 2106.16163: 25 BERTs that differ only in their seed, and how much their scores vary.
# - McCandlish et al. (2018), arXiv 1812.06162: critical batch sizes. Wettig et al. (2022), arXiv 2202.08005: masking more than 15%
#   (lecture 16).
# - Wang et al. (2018), *GLUE*, arXiv 1804.07461: the tasks behind the averages.
# - Lan et al. (2019), *ALBERT*, arXiv 1909.11942, Table 5: what NSP learns, measured.
