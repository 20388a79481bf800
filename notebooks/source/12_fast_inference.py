# ---
# jupyter:
#   jupytext:
#     cell_metadata_filter: tags,slideshow,-all
#     text_representation:
#       extension: .py
#       format_name: percent
# ---

# %% [markdown]
# # Fast inference: leave early, be thin, count in small numbers
#
# **Lecture 12** · {{duration}} · {{colab}}
#
# After this page you can
#
# - let a text leave a model as soon as the model is sure of its answer, and say what that saves and when it costs time (FastBERT);
# - build MobileBERT, which is thin and deep, and say why its normalisation costs next to nothing;
# - round a model's weights to 8-bit integers, and export the model to another runtime;
# - measure latency, throughput, memory and size, and say where they disagree with FLOPs and with each other;
# - choose a way to serve a model under a budget.
#
# You need the encoder of lecture 02, fine-tuning from lecture 03, and **teacher** and **student** from lecture 06. Nothing is downloaded.
#
# {{parts}}

# %%
import torch

from course_lib import (
    check, claims_table, compare, count_parameters, hint, load_pretrained, mobilebert, published, quiz, reveal,
    show,
)  # fmt: skip
from course_lib.bench import serving
from course_lib.lectures.lecture_12 import fast_runs, serving_runs
from course_lib.lectures.lecture_12.views import (
    blocks_drawing, budget_view, entropies_chart, exits_chart, exits_view, flops_and_time_chart, lost_table,
    readers_table, roads_chart, roads_table, serving_table, strategies_chart, training_chart,
)  # fmt: skip
from course_lib.teaching import LiveLoss

# %% [markdown]
# ## Predict first
#
# A company answers messages with a fine-tuned BERT. Each answer takes too long, and the machine is too small. Nobody wants to train a new model from scratch. What can be done?
#
# - *Leave early*: most messages are easy, so let them leave the model after a few layers.
# - *Be thin*: use a model with narrow layers that learned from a wide one.
# - *Count in small numbers*: a weight does not need 32 bits.
#
# Three guesses before you go on.
#
# 1. MobileBERT has {{number:published('mobilebert', 'base').num_layers}} layers, BERT-base {{number:published('bert', 'base').num_layers}}. For one text, what fraction of BERT-base's FLOPs does MobileBERT need?
# 2. After two of four layers a classifier gives one text the probabilities (0.6, 0.4, 0) and another (0.6, 0.2, 0.2). Which of the two should leave first?
# 3. All dense layers compute with 8-bit integers instead of 32-bit floats. For one message, how many times faster are BERT-base's layers on this machine?

# %%
my_guesses = {"fraction of the FLOPs": ..., "should leave": ..., "times faster in int8": ...}

# %% [markdown]
# ## By hand
#
# ### How unsure is an answer?
#
# The **entropy** of a distribution, −Σ p log p, is 0 if one class has all the probability, and log N if all N classes are equally likely. Divided by log N, it lies between 0 and 1. FastBERT calls this the *uncertainty*.
#
# | answer | largest probability | uncertainty |
# |---|---|---|
# | (0.6, 0.4, 0) | 0.6 | (0.31 + 0.37 + 0) / 1.10 = **0.61** |
# | (0.6, 0.2, 0.2) | 0.6 | (0.31 + 0.32 + 0.32) / 1.10 = **0.86** |
#
# The largest probability cannot separate the two. The entropy can: the first answer has ruled a class out. That settles the second guess. With *two* classes the two rules are equivalent, if the thresholds correspond.
#
# ### What leaving early saves
#
# A model has four layers and gets a hundred texts. Of these, 50 leave after the first layer, 20 after the second and 10 after the third; 20 stay to the end.
#
# (50 · 1 + 20 · 2 + 10 · 3 + 20 · 4) / 100 = **2.0 layers** per text, half of the work. Each exit on the way costs a little, so slightly less than half is saved.
#
# ### A norm that costs nothing
#
# LayerNorm needs each vector's mean and variance. MobileBERT's **NoNorm** is γ·h + β alone. After a dense layer y = 3x + 1, with γ = 2 and β = 5, it gives 2(3x + 1) + 5 = **6x + 7**. That is one dense layer again, so after training this norm can be folded into it. (Of a block's eight norms only the two in the input bottlenecks, explained below, follow a dense layer; the six after residual sums remain, at one multiplication and one addition per number.)
#
# ### A weight in eight bits
#
# Take a row of weights: (0.50, −1.27, 0.02). The largest absolute value is 1.27, so the **scale** is 1.27 / 127 = 0.01. The row becomes (50, −127, 2), one byte per weight. A weight's error is at most half the scale, 0.005.
#
# ## Try it
#
# You will build six pieces, two here and four in the next part, each before the page shows its code. The check names the mistake in a wrong answer; `hint("12.1")` helps one step at a time, and `reveal("12.1")` shows a solution. No later cell needs your answers.
#
# {{exercise:12.1}}


# %%
def my_uncertainty(logits):
    return ...


check("12.1", my_uncertainty)

# %% [markdown]
# {{exercise:12.2}}


# %%
def my_exits(uncertainties, speed):
    return ...


check("12.2", my_exits)

# %% [markdown]
# ## The code
#
# ### FastBERT: an exit behind every layer
#
# FastBERT (Liu et al. 2020) puts a small classifier, an **exit** (`ExitHead`), after each layer of a BERT. At inference a text passes through layer after layer and leaves at the first exit whose uncertainty is at most a number that you choose, the **speed**. A *higher* speed lets *more* texts out.

# %%
from course_lib import FastBert
from course_lib.family.fastbert import ExitHead

show(ExitHead)

# %% [markdown]
# `answer` goes through the layers one by one. A text that has left is removed from the batch, so the later layers see fewer texts. Otherwise FLOPs would be saved only on paper.

# %%
show(FastBert.answer)

# %% [markdown]
# ### How the exits learn
#
# Training has two steps:
#
# 1. *With labels*, the encoder and the last exit are trained. The last exit is the **teacher**; the other exits, the **students**, are not touched.
# 2. *Without labels*, encoder and teacher are frozen, and each student learns to reproduce the teacher's answer to a text. This is **self-distillation**: teacher and students belong to one model.
#
# The loss is one Kullback–Leibler divergence (lecture 06) per student, summed. The paper prints KL(student ‖ teacher); the authors' code computes KL(teacher ‖ student). You build the code's version. The library has both. Its default is the paper's, and the models called FastBERT below use it. We measure below whether the direction matters.
#
# {{exercise:12.3}}


# %%
def my_students_loss(students, teacher):
    return ...


check("12.3", my_students_loss)

# %%
from course_lib.objectives.exits import joint_exits_loss, self_distillation_loss

show(self_distillation_loss)

# %% [markdown]
# ### MobileBERT: thin and deep
#
# MobileBERT (Sun et al. 2020) has as many layers as BERT-large. Its vectors are 512 wide between blocks and 128 wide inside them.

# %%
blocks_drawing()

# %% [markdown]
# *Read from the bottom: the wider a bar, the wider the vectors. MobileBERT's block begins and ends with a **bottleneck**, a dense layer that changes the width. Its teacher does the reverse: with an **inverted bottleneck** it is wide inside. A second bottleneck at the input, which query and key read, is not drawn.*
#
# In BERT, two thirds of a block's weights are in its feed-forward part. In a thin block one feed-forward part would have a smaller fraction, so MobileBERT has **four**, one after the other.
#
# Its embedding matrix is only 128 wide. Each position gets three of its rows: those of the next token, its own token and the previous one.
#
# {{exercise:12.4}}


# %%
def my_trigram(x):
    return ...


check("12.4", my_trigram)

# %%
from course_lib.family.mobilebert import BottleneckAttention, MobileBlock, NoNorm, TrigramEmbeddings

show(TrigramEmbeddings, BottleneckAttention, MobileBlock)

# %% [markdown]
# Look at `BottleneckAttention.forward`: query and key read `x`, the bottleneck (128), but the *values* read the wide states (512). The authors' code does this; the paper's drawing could mean either.
#
# The norm is NoNorm and the activation is ReLU. Exercise 12.5 folds such a norm away; its code follows.
#
# {{exercise:12.5}}


# %%
def my_folded(weight, bias, gamma, beta):
    return ...


check("12.5", my_folded)

# %%
show(NoNorm)

# %% [markdown]
# ### How MobileBERT learns
#
# According to the paper, a thin, deep network learns badly by itself. Its teacher has the same depth and the same width *between* blocks, and is wide inside. So each layer can learn from the teacher's layer directly, without a projection in between (TinyBERT needed one, lecture 06).
#
# | what is compared, layer by layer | how | weight in the loss (authors' code) |
# |---|---|---|
# | the states ("feature maps") | squared distance, after a LayerNorm | {{number:PROGRAM_WEIGHTS['feature_map']:,g}} |
# | each state's mean | squared distance | {{number:PROGRAM_WEIGHTS['mean']:,g}} |
# | each state's variance | absolute distance | {{number:PROGRAM_WEIGHTS['variance']:,g}} |
# | attention weights of each head | cross-entropy (paper: KL, with the same gradient) | {{number:PROGRAM_WEIGHTS['attention']:,g}} |
#
# *When* is this done? There are three strategies. **Auxiliary** transfers all layers throughout, while also predicting masked words. **Joint** transfers all layers first, then predicts masked words. **Progressive** transfers one layer at a time from the bottom, then predicts masked words. MobileBERT uses the progressive strategy.

# %%
from course_lib.train.knowledge_transfer import stages

show(stages)

# %% [markdown]
# **A bug in the authors' code.** It averages over the *list* of the teacher's states, so each student layer's mean and variance are pulled towards those of *all* teacher layers together. `transfer_loss(all_teacher_layers=True)`, in `course_lib.objectives.knowledge_transfer`, reproduces this, and we measure below whether it hurts. Two smaller differences: the authors' means include padding (`over_padding=True`), and they train with LAMB (an optimizer for large batches), at three times the last stage's learning rate during transfer. We use AdamW and one learning rate throughout.
#
# ### Eight bits
#
# {{exercise:12.6}}


# %%
def my_int8(weight):
    return ...


check("12.6", my_int8)

# %% [markdown]
# torch does this for all dense layers of a model, but with one scale per matrix. It also rounds a layer's inputs as they arrive (**dynamic quantisation**). The first function below does that; the second exports a model to **ONNX**, a file format that other runtimes execute. Often both are combined: in ONNX *with* int8 the embedding matrix is rounded as well, so the file shrinks to about a quarter.
#
# Take care with a masked language model, whose decoder is tied to the embeddings. In torch and torchao (0.18.0) the decoder gets an int8 copy of its own, so a small model can become *larger*: leave the decoder out. In an ONNX file the decoder's product stays in float32 unless you run onnxruntime's `quant_pre_process` first (1.32.0).

# %%
show(serving.in_int8, serving.in_onnx_runtime)

# %% [markdown]
# ## Is it right?
#
# We compare a small MobileBERT for masked LM with the one from transformers. Both have the same random weights. Do they have as many parameters, the same outputs and the same gradients?

# %%
from course_lib import mobilebert_for_masked_lm

small = {"num_layers": 2, "hidden_size": 64, "embedding_size": 16, "bottleneck_size": 32, "intermediate_size": 32}
compare(mobilebert_for_masked_lm("base", vocab_size=2_000, **small))

# %%
from course_lib import bert, ib_bert

with torch.device("meta"):  # knows shapes only
    for name, model in (("MobileBERT", mobilebert("base")), ("BERT-base", bert("base")), ("IB-BERT, its teacher", ib_bert("large"))):
        print(f"{name:22}{count_parameters(model):13,}")

# %% [markdown]
# The paper prints 25.3 million for MobileBERT; our count above, without heads, is slightly smaller. (transformers cannot build the teacher's shape; our tests compare it with a second, plainly written version.)
#
# For early exit, a batch that shrinks must give the same answers as one in which every text goes through all layers.

# %% tags=["nbval-check-output"]
from course_lib.kernels.early_exit import early_exit, early_exit_reference, entropy_at_most

torch.manual_seed(0)
mix, say, x = torch.randn(4, 8, 8) / 3, 2 * torch.randn(4, 8, 3), torch.randn(6, 5, 8)
layers = [lambda x, mask, n=n: torch.tanh(x @ mix[n]) for n in range(4)]
exits = [lambda x, mask, n=n: x[:, 0] @ say[n] for n in range(4)]
slow, fast = (run(x, layers, exits, entropy_at_most(0.2)) for run in (early_exit_reference, early_exit))
print("left at layer", fast.layers_used.tolist(), "· same layers:", torch.equal(slow.layers_used, fast.layers_used))
print("same answers:", torch.allclose(slow.logits, fast.logits, atol=1e-5))

# %% [markdown]
# Finally we check the ways to serve a model. How far are their outputs from the original's? (*bfloat16* uses 16 bits per number instead of 32. *Padding removed* computes only a batch's real tokens.)

# %%
classifier = serving.random_classifier(load_pretrained("course-bert").encoder)
ids = torch.randint(5, 8_000, (4, 24), generator=torch.Generator().manual_seed(0))
mask = (torch.arange(24) < torch.tensor([[24], [16], [9], [4]])).long()
with torch.no_grad():
    expected = classifier(ids, mask).logits
    for name, make in serving.ways().items():
        if name != "torch.compile":  # the compiler takes a while
            served = make(classifier)
            gap = (served.answer(ids, mask) - expected).abs().max() / expected.abs().max()
            print(f"{name:18} largest difference {gap:8.1e} of the largest logit · {served.stored / 1e6:5.1f} MB")
for name, wants in serving.missing().items():
    print(f"{name}: not on this machine; it wants {wants}")

# %% [markdown]
# bfloat16 and both int8 versions round; the others differ only by float32's own rounding. Whether rounding changes *answers* must be measured on a task.
#
# ## See it
#
# ### Texts on their way through the layers
#
# Here is a stored model of eight layers. It reads a story of the micro-world (lecture 01) and a statement about it. Does the story entail the statement, contradict it, or neither?

# %%
exits_view(fast_runs.shown_texts())

# %% [markdown]
# *When the cell is run, move the speed. At 0 all texts stay to the end; at 1 all leave at once; at 0.7 the uncertain ones leave at layer 2. Switch to the rule of the largest probability: each cell then shows 1 minus that probability, and a text leaves where this is at most the slider's value. Can any value do what 0.7 did?*
#
# ### Easy and hard texts

# %%
entropies_chart()

# %% [markdown]
# *Each line is the mean uncertainty, layer by layer, of the test texts of one class (their number is in brackets). Two of the lines coincide.*
#
# The *neutral* statements are easy: from the second layer on the model is sure of them, and correct. Early exit depends on such texts. *Entailment* and *contradiction* stay close to {{number:log(2) / log(3):.2f}} up to the last layer. That is log 2 / log 3: one class is ruled out, the two others are equally likely. This model has not learned to distinguish the two. On these texts its last exit always answers contradiction, by a hair, so the contradictions count as correct.
#
# The model cannot know that more layers will not help a text, so such a text pays for all of them.
#
# ### Train one, live
#
# The course's BERT reads sentences of documentation: to which section of a docstring does a sentence belong (Summary, Parameters, Returns, Raises, Attributes)? First the encoder and the teacher learn from labels, then the students learn from the teacher's answers. The first curve shows the teacher's cross-entropy, the second the sum of the students' divergences.

# %%
live = fast_runs.trained_live(lambda: LiveLoss(part="total"))
test = fast_runs.texts_of(fast_runs.SECTION).test[:300]
for speed in (0.0, 0.3, 0.6, 1.0):
    row = fast_runs.leaving_at(live, test, speed)
    print(f"speed {speed:.1f}: accuracy {row['accuracy']:.1%} after {row['layers']:.2f} layers of 4")

# %% [markdown]
# This is only a first look: one seed, at most half the steps of the runs below, and 300 texts, so that one text is a third of a point.
#
# ## Measure it
#
# ### Where early exit pays
#
# Early exit needs texts that differ in the depth they need. Here are some. From each of eight places one road leads to another place. The question: where are you after one road, after two, after three? Half of the texts take one road, a quarter two, a quarter three.

# %% tags=["nbval-check-output"]
from course_lib.lectures.lecture_12 import roads

texts = roads.road_texts(3, seed=12)
for n in range(len(texts)):
    print(roads.as_text(texts, n))

# %% [markdown]
# To follow a road is to look up your place in the list and to read where its road leads. One attention layer can do that once; the exit's own attention can do it once more. So how many layers does a text need?

# %%
roads_table()

# %% [markdown]
# *Accuracy on {{number:stored(results.ROADS)['texts']['test']:,}} new texts: mean over {{number:len(results.runs_of('joint', results.ROADS))}} seeds, and the worst seed in brackets. First the exits of a four-layer and of a two-layer model, in each of which all exits were trained jointly; then models of one layer and of two, with one exit trained alone, at the better of two learning rates (chosen on these texts; the jointly trained models had one rate each). All but the four-layer model had twice the steps. A uniform guess among the seven places other than the start is correct in {{number:1 / 7:.1%}}.*

# %%
roads_chart()

# %% [markdown]
# *The same four-layer model: accuracy against the mean number of layers per text. Line: mean of the seeds, band: all seeds.*
#
# **Early exit pays here.** At speed 0.3 the four-layer model answers {{number:roads_at('accuracy', '.1%')}} of the texts correctly (one number per seed; we chose this speed on these texts) after {{number:roads_at('layers', '.2f')}} layers. If as many texts leave at random, {{number:roads_at('at_random', '.1%')}} are correct. No single exit of this model is as good for so few layers.
#
# - The exits let out mainly texts that they can answer; no label says how many layers a text needs. But each text states its number of roads, so an exit need only read one token. Real texts rarely announce how hard they are.
# - *A sceptic's control*: two layers suffice (trained alone, in two of three seeds). With two exits they are correct in {{number:roads_at('accuracy', '.1%', 'joint, two layers')}} after {{number:roads_at('layers', '.2f', 'joint, two layers')}} layers instead of 2, exits not counted. So early exit still gains when the model has no layer too many; the other two layers buy nothing.
# - How many layers a text of two roads uses differs from seed to seed: one, two or three.
# - These exits were trained jointly, so the lower layers learn from their own losses. FastBERT's two steps are measured below, on sections.
#
# ### What leaving early costs
#
# These runs are stored, with {{number:len(results.runs_of(MAIN))}} seeds. Every point of the chart is a speed, a threshold or a depth.

# %%
exits_chart("sections")

# %% [markdown]
# *course-bert, sections of docstrings, {{number:len(results.runs_of(MAIN))}} seeds (line: mean, band: all). Vertical axis: points of accuracy above the same seed's full depth, which is {{number:last(MAIN)}} on average. The curves are FastBERT at several speeds; the same exits with the largest probability as the rule; as many texts leaving at each layer, but drawn at random; and models of fixed depth, each fine-tuned by itself.*
#
# - **Early exit saves FLOPs**: at speed 0.4 a text takes {{number:fewer_04}} times fewer FLOPs, with an accuracy of {{number:at_04}} against {{number:last(MAIN)}} at full depth. If equally many texts leave at random, accuracy is {{number:at_speed(MAIN, 0.4, 'at_random'):.1%}}, lower by {{number:known_whom(MAIN, 0.4)[0]:.1f}} to {{number:known_whom(MAIN, 0.4)[-1]:.1f}} points in every seed. So the exits select better than chance *which* texts to let go. (We chose this speed on these very texts; neighbouring speeds look alike.) But these sections hardly need depth: the second exit alone, for all texts, reaches {{number:layer(MAIN, 2)}}. So most of the saving needs no choice for each text. (A bag of words with the same labels reaches {{number:stored('12_fastbert')['texts']['sections']['words']:.1%}}.)
# - **A sceptic's control**: a model of two layers, fine-tuned by itself, reaches {{number:last('fixed depth 2')}} at about the same cost, though its seeds differ widely. So three seeds do not show that choosing the depth for each text gains anything here.
# - The largest probability does about as well as the entropy: the two curves are close.
# - With a quarter of the labels (not in the chart) the last exit reaches {{number:layer(FEW, -1)}} and the first {{number:layer(FEW, 1)}}. If the students also read the other texts, *without* labels, the first reaches {{number:layer('few labels, all texts', 1)}}, more in every seed; the second and third exits gain nothing. Self-distillation can use texts without labels, but here only the lowest exit profits.

# %%
exits_chart("pairs")

# %% [markdown]
# *A model of eight layers on the pairs of story and statement, one seed.*
#
# - The first exit reaches {{number:layer(PAIRS, 1)}} (the majority class alone gives {{number:stored('12_fastbert')['texts']['pairs']['majority']:.0%}}). The second already reaches {{number:layer(PAIRS, 2)}}, as much as the last ({{number:last(PAIRS)}}). Here accuracy jumps; it does not climb layer by layer.
# - Speed 0.7 gives {{number:at_speed(PAIRS, 0.7):.1%}} for {{number:at_speed(PAIRS, 0.7, 'fewer'):.1f}} times fewer FLOPs. Speed 0.5 needs only {{number:at_speed(PAIRS, 0.5, 'fewer'):.1f}} times fewer; at 0.8 all texts leave too soon ({{number:at_speed(PAIRS, 0.8):.1%}}). **Choose the speed on held-out texts of the task**: 0.4 suits the sections but saves little here, and 0.7 costs one seed of the sections three points.
# - With the largest probability as the rule, no threshold does the same. On the uncertain texts the first exit's best class has a median probability of {{number:hesitant(1)}}, the second's only {{number:hesitant(2)}}. But the second has ruled a class out, and the entropy sees that.
# - A model of two layers reaches {{number:last('pairs: fixed depth 2')}}. (None of these models has converged: with three times the steps lecture 03's model solves {{number:percent(outcome(stored('03_world'), 'score')['NLI, pre-trained'])}} of its pairs.)
#
# So on the sections we see no gain over a fixed depth. The pairs cannot tell, because the models compared stop at the same accuracy. On the roads early exit gains; those texts differ in the depth they need, but their exits were also trained differently. FastBERT's paper, too, finds early exit better than a fixed depth, on book reviews (all texts at two layers of FastBERT {{number:printed('fastbert')['ablation']['two_layers']}}, early exit {{number:printed('fastbert')['ablation']['full']}}).
#
# ### How the exits learn, compared

# %%
training_chart()

# %% [markdown]
# *Sections. Left: accuracy of the last exit. Right: accuracy at {{number:results.HALF:.0%}} of the FLOPs, interpolated between two speeds. Each dot is a seed. The rows, from the top: self-distillation with the paper's divergence, with the code's, and with a teacher without dropout; students trained on labels; all exits and the encoder trained jointly on labels.*
#
# - Self-distillation does not change the last exit, which is frozen: its accuracy is identical in four of the five rows.
# - With *joint* training the first exit reaches {{number:layer('joint', 1)}} (self-distilled: {{number:layer(MAIN, 1)}}), the last {{number:last('joint')}} against {{number:last(MAIN)}}. The seeds disagree about both, so we do not see joint training hurt the last exit.
# - On the pairs (one seed, not in the chart) it helps the *first* exit: {{number:layer('pairs: joint', 1)}} instead of {{number:layer(PAIRS, 1)}}, as much as all layers reach. A possible cause, not tested: joint training also fits the encoder to the first exit, FastBERT only to the last one. (Joint training had only the first stage's steps; FastBERT's students had 585 more on the sections and 1,000 more on the pairs.)
# - These seeds show no difference for the direction of the divergence, the teacher's dropout, or labels instead of the teacher's answers.
#
# ### On the clock
#
# FLOPs are not time. Here is the model that you just trained, timed on this machine, one text at a time and in batches of 32.

# %%
for batch_size in (1, 32):
    print(f"\nbatches of {batch_size:<4}{'ms per text':>19}{'layers':>9}{'FLOPs':>9}   (full depth, one classifier = 1)")
    times = fast_runs.wall_times(live, test, speeds=(0.0, 0.3, 0.6, 1.0), batch_size=batch_size, rounds=2)
    whole = times[fast_runs.PLAIN]
    for name, row in times.items():
        print(f"{name:26}{row['milliseconds']:8.2f}{row['layers']:9.2f}{row['flops'] / whole['flops']:9.2f}   {row['milliseconds'] / whole['milliseconds']:.2f} of the time")

# %% [markdown]
# Compare the last two columns. One text at a time, an exit (small matrix products, and the check whether to leave) takes a good part of a layer's time but hardly any FLOPs. So early exit can **lose** time. At *speed 0* it must, and a hard text is in the same case: it pays for every exit and leaves at none. In batches, time comes closer to the FLOPs: an exit's fixed cost is spread over many texts (compare the rows of speed 0). (These are means per text: a batch is finished only when its hardest text is.)
#
# ### MobileBERT in miniature
#
# Our teacher has four layers with inverted bottlenecks and a masked-token accuracy of {{number:stored(MOBILE)['teacher']['masked_accuracy']:.0%}}. The students have the same depth, are narrow inside, and all get as many steps. We also give them lecture 06's unstated-fact probe: what is the hero's job, if the story does not say it?

# %%
strategies_chart()

# %% [markdown]
# *Left: masked-token accuracy on new stories; right: the unstated-fact probe after fine-tuning. Each dot is a seed. "LN, GELU" has LayerNorm and GELU instead of NoNorm and ReLU. "Embeddings": embeddings and masked-word head are copied from the teacher, without and with its answers. The last five rows use layer-wise transfer.*
#
# With {{number:len(stored(MOBILE)['runs']['labels'])}} seeds:
#
# - *Alone*, a thin student reaches {{number:student('labels')}}. If only its embeddings and its masked-word head start as the **teacher's**, it reaches {{number:student("labels, the teacher's embeddings")}}. The better start alone explains {{number:start}} of joint transfer's apparent gain. This control is easy to forget.
# - With the teacher's *answers* on top it reaches {{number:student('no transfer')}}. With layer-wise transfer: auxiliary {{number:student('auxiliary')}}, joint {{number:student('joint')}}, progressive {{number:student('progressive')}}. So transfer pays, at equally many steps. With four layers and these steps progressive is not the best strategy (the paper's model has 24).
# - The *bug* in the authors' code has no visible cost: {{number:student('progressive, the slip')}}.
# - With progressive transfer, *NoNorm with ReLU costs accuracy* against LayerNorm with GELU: {{number:student('progressive')}} against {{number:student('progressive, LayerNorm and GELU')}}, which is above the teacher itself. Without a teacher the seeds overlap ({{number:student('labels')}} against {{number:student('labels, LayerNorm and GELU')}}). We changed both at once, so we cannot say which of the two is responsible. The paper, too, reports a loss; it chose both for latency on a phone. On the probe the order is reversed, {{number:student('progressive', 'job_accuracy')}} against {{number:student('progressive, LayerNorm and GELU', 'job_accuracy')}}; we do not know why.
# - On the probe the student alone reaches {{number:student('labels', 'job_accuracy')}}, and with the teacher's embeddings {{number:student("labels, the teacher's embeddings", 'job_accuracy')}}. Joint transfer is better than the teacher's embeddings and head alone in every seed ({{number:student('joint', 'job_accuracy')}}); auxiliary ({{number:student('auxiliary', 'job_accuracy')}}) and progressive ({{number:student('progressive', 'job_accuracy')}}) are not. (The teacher itself reaches {{number:percent([stored(MOBILE)['teacher']['job_accuracy']])}}, so a higher number here does not mean that more was taken over from it.)
#
# (A step with a teacher costs about three times the FLOPs of one without, so equal steps are not equal FLOPs; we did not compare at equal FLOPs.)
#
# ### What users do today
#
# We serve the same task and the same texts in each of several ways. Accuracy is the mean of {{number:len(results.runs_of(MAIN))}} seeds; times were measured once, on an otherwise idle machine ({{number:where_measured(stored('12_serving_times')['machine'])}}).

# %%
serving_table()

# %% [markdown]
# *Latency: one text at a time, the median and the 95th percentile. Throughput: batches of 32. The two columns in MB: the bytes of the weights (counted; for ONNX the real file), and these plus the tensors alive while a batch is answered. ONNX Runtime's own memory cannot be seen from torch.*
#
# - **Another runtime**: ONNX Runtime answers one text {{number:times('ONNX Runtime', 'float32')}} times as fast, with the same numbers; torch.compile {{number:times('torch.compile', 'float32')}} times.
# - **int8** needs no training either: {{number:int8_times}} times as fast for one text, {{number:times('int8', 'float32', 'texts_a_second')}} times the throughput, and a file {{number:time_of('int8', 'stored') / time_of('float32', 'stored'):.0%}} as large. Accuracy changes by {{number:int8_cost}} points, and by as much in ONNX Runtime's int8 ({{number:results.served_accuracy(serving_runs.ONNX_INT8):.1%}}), whose file is {{number:onnx_int8_size()}} as large as float32's.
# - *Half the layers*, distilled on documentation, reach {{number:results.served_accuracy('half the layers'):.1%}} ({{number:results.served_accuracy('float32'):.1%}} for all of them), {{number:times(serving_runs.HALF, 'float32')}} times as fast. On this task two layers lose nothing measurable.
# - *MobileBERT's shape*, randomly initialised and distilled equally briefly, reaches {{number:results.served_accuracy("MobileBERT's shape"):.1%}}. To compare shapes, half the layers must begin at random, too: they then reach {{number:results.served_accuracy(serving_runs.RANDOM_HALF):.1%}}. So about half of the gap is due to the teacher's weights, the rest to the shape and its smaller size (all at one learning rate). After a thousand steps, that is: the real MobileBERT had half a million, of 2,048 sequences each.
# - *Early exit* at speed {{number:serving_runs.SPEED:g}} reaches {{number:results.served_accuracy('early exit'):.1%}}. Do not compare this with the row of float32: the early-exit model was fine-tuned differently (dropout, another head, more steps) and has {{number:last(MAIN)}} at full depth. Its median latency is good, but look at its 95th percentile.
# - *Padding removed* costs a little for one text alone, which has no padding. In batches it gives {{number:times('padding removed', 'float32', 'texts_a_second')}} times the throughput.

# %%
flops_and_time_chart()

# %% [markdown]
# *Each dot is a way to serve. If FLOPs were time, all dots would lie on one rising line. (The axes do not begin at 0.) Colours and shapes only distinguish the dots.*
#
# Six of them have the same FLOPs, yet the slowest takes {{number:times('ONNX Runtime', 'padding removed')}} times as long as the fastest. Conversely, MobileBERT's shape has {{number:flops(serving_runs.MOBILE)}} of the FLOPs and takes {{number:mobile_ms}} ms; half the layers have {{number:flops(serving_runs.HALF)}} and take {{number:half_ms}} ms. A likely reason: the thin shape's eight layers mean many small matrix products, and each call takes time of its own. In batches of 32 the products are larger, and the same thin shape gives {{number:times(serving_runs.MOBILE, 'float32', 'texts_a_second')}} times float32's throughput. FLOPs count arithmetic; time also includes calls and waiting for memory (lecture 14).
#
# ### Who reads what we save
#
# Your users may serve a model with some other program. Two functions of `course_lib` help: `save_folder(model, folder, tokenizer)` writes what transformers writes. `export_onnx(model, "model.onnx")` writes the computation itself, with all inputs, and compares it with torch before it keeps the file. We saved the course's two checkpoints and a small random model of each family in these two ways, and opened them in other programs. Which programs reproduce our numbers?

# %%
readers_table()

# %% [markdown]
# *The largest difference from our model, as a fraction of its largest value. "Wrong": the program reads the file without complaint and computes another model. A dash means that the model was not tried: it needs images (ViT), or lacks the masked-LM head that our test of transformers.js uses.*
#
# - **Only transformers and the ONNX file keep the head.** The others read the encoder; the next table lists what they lose.
# - **A file that loads may still be wrong.** {{number:readers_wrong}} times a program gave other numbers without a message: a vector was left out, positions were off by one, a language was not passed on. Comparing the outputs on ten texts takes a minute and reveals this. Make it a test.
# - **Saving has traps of its own.** Of two tied matrices safetensors' `save_model` keeps the one whose name comes first in the alphabet; for RoBERTa and ModernBERT that is the decoder's. If you read such a file as an encoder, its word embeddings are random (`findings/safetensors_alphabet_keeps_the_decoder.sh`). And torch's older exporter may leave your model with its dropout on (`findings/torch_onnx_export_wakes_the_dropout.sh`).
# - llama.cpp, which reads GGUF files, looks GELU up in a table of 16-bit numbers: the difference of {{number:readers.largest(readers.stored()['GGUF']['rows']):.3f}} is probably its rounding, not another model.

# %%
lost_table()

# %% [markdown]
# *How many of the models each program reads correctly, and what is lost. `python -m course_lib.bench.readers --others all` makes both tables again; the scripts in `findings/` show the surprises one by one.*
#
# ### On your machine
#
# The next cell times two layers of BERT-base's width on one message of 32 tokens. The vocabulary is small and the weights are random; neither noticeably affects the time.

# %%
from course_lib.bench import as_table, measure

compared = ("float32", "bfloat16", "int8", "ONNX Runtime", "ONNX Runtime, int8")
rows = measure([row for row in serving.contenders(1, 32, num_layers=2, vocab_size=2_000) if row.name in compared], rounds=3, seconds=0.3)
print(as_table(rows, "float32"))
int8_gain = next(r.median for r in rows if r.name == "int8") / next(r.median for r in rows if r.name == "float32")

# %% [markdown]
# The ratio of torch's int8 settles the third guess; the last row is int8 in ONNX Runtime. The gain depends on the processor: those with 8-bit instructions (VNNI, AMX, Arm's dot products) gain much, others little. The same is true of bfloat16. The gain may also depend on the width. In the table above int8 was {{number:int8_times}} times as fast on course-bert, whose matrix products are smaller, so more of the time may go elsewhere.
#
# ### Which one? A budget decides

# %%
budget_view(serving_runs.offers())

# %% [markdown]
# *Move the two budgets. The frame marks the most accurate way within both; the sentence says what the next better one would need. Seeds differ by more than a few tenths of a point, so between ways as close as that, take the faster one.*
#
# ### A queue
#
# A service does not receive batches; it makes them. Here the model really answers the texts; only their random arrival and the waiting are simulated.

# %%
from course_lib.lectures.lecture_12.queueing import Policy, arrivals, serve

tokens = [row[: int(n)].tolist() for row, n in zip(test.sequences.input_ids, test.sequences.attention_mask.sum(1))]
model = serving.in_float32(classifier)
policies = {
    "one by one": Policy(), "up to 16, as they come": Policy(most=16),
    "up to 16, wait 20 ms": Policy(most=16, wait=0.02), "up to 16, of like length": Policy(most=16, spread=4),
}  # fmt: skip
alone = serve(arrivals(tokens[:50], a_second=1.0), model.answer, Policy()).median
for load in (0.5, 1.5):  # of what the model can do, one by one
    for name, policy in policies.items():
        with torch.inference_mode():
            run = serve(arrivals(tokens, a_second=load / alone), model.answer, policy)
        print(f"load {load}: {name:26} median {1e3 * run.median:8.1f} ms   95th {1e3 * run.p95:8.1f} ms   padding {run.padding:.0%}")

# %% [markdown]
# The load is relative to what the model can answer one by one. At load 0.5 answering one by one keeps up. At 1.5 it falls further behind with every text. Batches keep up only if a batch of 16 takes less than two thirds of the time of 16 single texts; with texts of similar length that is easier, because little padding is computed. See in your output which policies keep up. Waiting 20 ms to fill a batch costs latency, in our run at both loads; at high load batches form without it. This is the simulation:

# %%
show(serve)

# %%
answers = {
    "fraction of the FLOPs": serving_runs.mobile_fraction(),
    "should leave": "the first: 0.61 against 0.86",
    "times faster in int8": f"{int8_gain:.1f}, here",
}
print(f"{'':24}{'your guess':>14}   answer")
for name, value in answers.items():
    print(f"{name:24}{str(my_guesses[name]).replace('Ellipsis', '–'):>14}   {value}")

# %% [markdown]
# ## What they claim, what you measured
#
# Each row was settled by code that ran just now, by stored results or, where neither is possible, by a source.

# %%
claims_table("12")

# %% [markdown]
# ## More exercises
#
# All six are above, each before the code that answers it. To go further, put `FastBert` on an encoder of your own, plot its curve on your texts, and find the speed at which you would serve it.

# %% [markdown]
# ## Quiz

# %%
quiz("12")

# %% [markdown]
# ## Questions for review
#
# {{review:12}}

# %% [markdown]
# ## Read on
#
# - Liu et al. (2020), *FastBERT: a Self-distilling BERT with Adaptive Inference Time*, arXiv 2004.02178: section 3, and Table 2.
# - Sun et al. (2020), *MobileBERT: a Compact Task-Agnostic BERT for Resource-Limited Devices*, arXiv 2004.02984: section 3.
# - Xin et al. (2020), *DeeBERT: Dynamic Early Exiting for Accelerating BERT Inference*, arXiv 2004.12993: the exits are trained on labels while the encoder is frozen; the exit rule is the entropy, as here.
# - Zhou et al. (2020), *BERT Loses Patience: Fast and Robust Inference with Early Exit* (PABEE), arXiv 2006.04152: a text leaves when several exits in a row give the same answer.
# - Sanh, Wolf and Rush (2020), *Movement Pruning: Adaptive Sparsity by Fine-Tuning*, arXiv 2005.07683: weights that fine-tuning moves towards zero are removed. Michel et al. (2019), *Are Sixteen Heads Really Better than One?*, arXiv 1905.10650: whole heads are removed.
# - Zafrir et al. (2019), *Q8BERT: Quantized 8Bit BERT*, arXiv 1910.06188: quantisation-aware training, which rounds during fine-tuning, so that the weights adapt to it.
# - Jacob et al. (2018), *Quantization and Training of Neural Networks for Efficient Integer-Arithmetic-Only Inference*, arXiv 1712.05877: how to compute with 8-bit integers.
