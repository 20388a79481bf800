# ---
# jupyter:
#   jupytext:
#     cell_metadata_filter: tags,slideshow,-all
#     text_representation:
#       extension: .py
#       format_name: percent
# ---

# %% [markdown]
# # Beyond text: ViT, the same encoder on patches
#
# **Lecture 15** · {{duration}} · {{colab}}
#
# After this page you can
#
# - cut a picture into patches, and make a token of each, by a convolution or by a matrix;
# - say what ViT changes of BERT, and what it does not touch;
# - feed words and patches to one and the same stack of layers;
# - test what positions, labels and pre-training are worth to a model that knows nothing of pictures;
# - train two encoders to match pictures with sentences (CLIP);
# - look at what a ViT reads, and say how far to trust such a picture.
#
# You need the encoder of lecture 02. Masking, for one section, is lecture 02's too. Nothing is downloaded.
#
# {{parts}}

# %%
from dataclasses import replace

import torch

from course_lib import (
    bert, check, claims_table, compare, count_parameters, hint, quiz, reveal, show, vit, vit_for_classification,
)  # fmt: skip
from course_lib.family.vit import AUTHORS, VitConfig, VitEncoder, resize_positions
from course_lib.images import cut_patches, digits, join_patches, scenes
from course_lib.lectures.lecture_15 import clip_runs, picture_runs
from course_lib.lectures.lecture_15.views import (
    attention_maps_view, attentions_of, masked_chart, orders_chart, pictures_chart, position_similarity,
    positions_chart, resolution_chart, retrieval_table, rollout, scene_cards, two_inputs_drawing,
)  # fmt: skip
from course_lib.teaching import LiveLoss

# %% [markdown]
# ## Predict first
#
# An encoder reads a sequence of vectors. So far each vector stood for a piece of text. ViT (*Vision Transformer*, Dosovitskiy et al. 2020) cuts a picture into squares, **patches**, and makes a vector of each. The rest is BERT's encoder, nearly.
#
# Three guesses before you go on.
#
# 1. A picture of 224×224 pixels, patches of 16×16. How many tokens does the encoder read?
# 2. Shuffle the patches of all pictures, always in the same way, and train anew. What happens to a ViT's accuracy? And to a CNN's? (A *convolutional network* slides small windows of weights, its *kernels*, over the picture.)
# 3. Handwritten digits, ten classes, sixteen patches each. A ViT *without* positions sees the patches, but not where they are. How many digits will it get right?

# %%
my_guesses = {"tokens": ..., "shuffled, ViT": ..., "shuffled, CNN": ..., "without positions": ...}

# %% [markdown]
# ## By hand
#
# ### A picture in patches
#
# A picture of 4×4 pixels, one channel, patches of 2×2:
#
# | | | | |
# |---|---|---|---|
# | 0 | 1 | **2** | **3** |
# | 4 | 5 | **6** | **7** |
# | 8 | 9 | 10 | 11 |
# | 12 | 13 | 14 | 15 |
#
# Four patches, in reading order, each laid out as a row: (0, 1, 4, 5), **(2, 3, 6, 7)**, (8, 9, 12, 13), (10, 11, 14, 15). Nothing is lost: they can be put together again.

# %% tags=["nbval-check-output"]
picture = torch.arange(16.0).reshape(1, 1, 4, 4)  # (B, C, height, width)
patches = cut_patches(picture, 2)  # (B, N, C·P·P)
print(patches[0].int().tolist())
print("put together again:", torch.equal(join_patches(patches, 2, rows=2), picture))

# %% [markdown]
# ### How many, and how large
#
# 224 / 16 = 14 patches in a row, 14 · 14 = 196 in all. With a class token in front: **197 tokens**, the first guess. A patch in colour holds 16 · 16 · 3 = 768 numbers. BERT-base's vectors have 768, too: by chance, so here the matrix is square.
#
# Twice the height and width, with the same patches: 784 patches. Attention compares each with each, so it has 16 times as many pairs.
#
# ## Try it
#
# Six pieces to build, one here, the others where they belong. A wrong answer gets the name of its mistake; `hint("15.1")` helps a step at a time, `reveal("15.1")` shows a solution. No later cell needs your answers.
#
# {{exercise:15.1}}


# %%
def my_patches(pictures, P):
    return ...


check("15.1", my_patches)

# %% [markdown]
# ## The code
#
# ### ViT as a difference from BERT

# %%
two_inputs_drawing()

# %% [markdown]
# *The two inputs, from above. What the last box names is one piece of code for both.*
#
# | | BERT | ViT |
# |---|---|---|
# | a token is | a piece of a word, its row of the embedding matrix | a patch, times one matrix |
# | in front | [CLS], a token like others | the **class token**, a learned vector: [CLS] by another name |
# | positions | learned, a vector for each place | the same: places are numbered in reading order (**1-D**) |
# | segments | two | none |
# | LayerNorm | behind each half of a block | before it, and once at the end (**pre-LN**) |
# | learns from | masked words, no labels | *labels*: 14 to 303 million labelled pictures (ImageNet-21k, JFT) |
#
# The last line is the largest difference. What is called "BERT for pictures" has BERT's encoder and not BERT's objective.

# %%
from course_lib.family.vit import PatchEmbeddings

show(PatchEmbeddings.forward)

# %% [markdown]
# ### One convolution, or one matrix
#
# The paper says: lay each patch out as a row, multiply by a matrix. The programs say: a convolution whose kernel is as large as a patch, and moves on by its own width. Each number is then read once, so both are the same.
#
# {{exercise:15.2}}


# %%
def my_projection(pictures, weight, bias):
    return ...


check("15.2", my_projection)

# %%
from course_lib.family.vit import project_by_convolution, project_by_product

show(project_by_convolution, project_by_product)

# %% tags=["nbval-check-output"]
torch.manual_seed(0)
images, weight, bias = torch.rand(2, 3, 32, 32), torch.randn(64, 3, 8, 8) / 14, torch.randn(64)
one, other = (way(images, weight, bias) for way in (project_by_convolution, project_by_product))
print(tuple(one.shape), "· equal:", torch.allclose(one, other, atol=1e-5))

# %% [markdown]
# ### The encoder does not know what it reads
#
# A *scene* of the micro-world: two things in a 3×3 grid, and the sentence that tells it. Sentence and picture go through **one** stack. To share one, both must have LayerNorm in the same place: here before each half of a block, as in ViT (`PreNormBlock`).

# %%
shown = scenes(4, seed=2)
scene_cards(shown)

# %% [markdown]
# *Four scenes, each with its sentence. The dotted lines are the borders of patches of 8×8.*

# %%
from course_lib.config import BertConfig
from course_lib.encoder import Encoder, Stack
from course_lib.family.gpt import PreNormBlock
from course_lib.text.wordpiece import WordPiece

shape = {"hidden_size": 64, "num_layers": 2, "num_heads": 4, "intermediate_size": 256}
words = WordPiece.from_words(sorted({word for sentence in shown.sentences for word in sentence.split()}))
of_pictures = VitConfig(image_size=24, patch_size=8, **shape)
torch.manual_seed(0)
stack = Stack(of_pictures, block=PreNormBlock)  # one, for both
# Two encoders: each has its own embeddings, and neither has a stack of its own.
reads_text = Encoder(BertConfig(vocab_size=words.vocab_size, max_positions=32, **shape), stack=stack).eval()
reads_pictures = VitEncoder(of_pictures, stack=stack).eval()

ids = torch.tensor([words.encode(shown.sentences[0])])
text = reads_text(ids).last_hidden_state
patch = reads_pictures(shown.pixel_values[:1]).last_hidden_state
print("text   ", tuple(ids.shape), "->", tuple(text.shape))
print("picture", tuple(shown.pixel_values[:1].shape), "->", tuple(patch.shape))
print("the same layers:", reads_text.stack is reads_pictures.stack, f"· {count_parameters(stack):,} parameters")

# %% [markdown]
# Random weights, so the vectors mean nothing yet. The point is that nothing had to be changed. What a stack *learns* depends on what it read, and whether weights learned on text are good for pictures is another question, not asked here.
#
# ### What the authors' program has, and transformers has not

# %%
for name, value in AUTHORS.items():
    print(f"{name:16} authors {value!s:12} transformers {getattr(VitConfig(), name)}")

# %% [markdown]
# GELU by its tanh formula, another ε in LayerNorm, positions for pictures of another size interpolated in straight lines (*bilinear*; *bicubic* draws curves), class token and classifier at zero in the beginning, and the other weights drawn otherwise: Xavier's rule instead of a standard deviation of 0.02, biases of 1e-6, positions not cut at two standard deviations. All are settings: `vit("B/16", **AUTHORS)`. Do they matter? The same random weights, both ways, for the first three (the last two concern the beginning of training only; so does a dense layer with a tanh that the authors put before the classifier while they pre-train):

# %%
small = {"image_size": 32, "patch_size": 8, "num_layers": 4, "hidden_size": 64, "num_heads": 4, "intermediate_size": 256}
torch.manual_seed(0)
theirs = vit("B/16", **small).eval()
with torch.no_grad():
    right = theirs(images).last_hidden_state
    for name in ("hidden_act", "layer_norm_eps"):
        # the same weights, one setting changed
        ours = vit("B/16", **small, **{name: AUTHORS[name]}).eval()
        ours.load_state_dict(theirs.state_dict())
        gap = (ours(images).last_hidden_state - right).abs().max() / right.abs().max()
        print(f"{name:16} changes the vectors by at most {gap:.1e} of the largest number")
    table = theirs.embeddings.position[0]  # 4×4 patches, to be 8×8
    both = [resize_positions(table, (8, 8), how) for how in ("bicubic", "bilinear")]
    print(f"resize           changes resized positions by {(both[0] - both[1]).abs().max() / table.abs().max():.2f} of the largest")

# %% [markdown]
# With these random weights the activation and ε hardly matter. The way of resizing does: random positions are not smooth. Learned ones we measure below, under *Larger pictures*.
#
# ### Larger pictures
#
# More pixels and the same patches: more tokens than there are positions. The positions are seen as a small picture themselves and interpolated; the class token's is left alone.
#
# {{exercise:15.3}}


# %%
def my_resized(table, rows, columns):
    return ...


check("15.3", my_resized)

# %%
show(resize_positions)

# %% [markdown]
# ## Is it right?
#
# Ours beside transformers' own, built on the spot with the same random weights: `ViTModel`, then `ViTForImageClassification`.

# %%
compare(vit("B/16", **small))

# %%
compare(vit_for_classification("B/16", classes=10, **small))

# %% [markdown]
# And the published size, by shapes alone:

# %% tags=["nbval-check-output"]
with torch.device("meta"):
    whole, base = vit("B/16"), bert("base")
print(f"ViT-B/16 {count_parameters(whole):,}")
for name, model in (("ViT", whole), ("BERT", base)):
    print(f"{name:5} blocks {count_parameters(model.stack):,}   embeddings {count_parameters(model.embeddings):,}")

# %% [markdown]
# Twelve blocks each, with equally many parameters. Patches need no vocabulary and no table of one, so ViT's embeddings are thirty times smaller. (What is missing to the whole: the last LayerNorm and the pooler.)
#
# ### Where it breaks

# %%
grey, odd = torch.rand(1, 1, 32, 32), torch.rand(1, 3, 30, 32)
for wrong in (grey, odd, torch.rand(1, 3, 48, 48), torch.randint(0, 256, (1, 3, 32, 32))):
    try:
        theirs(wrong)
    except ValueError as error:
        print(f"{error}\n")

# %% [markdown]
# Four pictures that this model cannot read: grey, of a size that patches do not fill, larger than its positions, and in whole numbers. Each message says what to do.
#
# ## See it
#
# ### Train one, live
#
# scikit-learn's digits: {{number:len(digits())}} pictures of 8×8 to learn from, {{number:len(digits('test'))}} to be tested on. Patches of 2×2 pixels, so 17 tokens. Four layers, {{number:picture_runs.MAIN.hidden_size}} wide.

# %%
LIVE = replace(picture_runs.MAIN, num_layers=4)
model, losses = picture_runs.trained(LIVE, seed=0, callbacks=[LiveLoss(part="total")])
test = digits("test")
print(f"{picture_runs.class_accuracy(model, test):.1%} of the test pictures are right")

# %% [markdown]
# *The curve: the loss on its training pictures, in nats; for a mere guess it is ln 10 = 2.3.*
#
# ### What does it read?
#
# **Attention rollout** (Abnar and Zuidema 2020): suppose that in each layer half of a vector goes past attention, in the residual sum, and the other half is a mean of all tokens, weighted by attention. Multiply that through the layers: how much of the class token's last vector comes from which patch?
#
# {{exercise:15.4}}


# %%
def my_rollout(attentions):
    return ...


check("15.4", my_rollout)

# %%
attention_maps_view(model, test.pixel_values[:20])

# %% [markdown]
# *Left the picture, right how much is read from each patch. Move the layer: at layer 1 little has come from anywhere; watch where it gathers. Then let it show one patch (framed): does it look at its neighbours, at ink, at everything?*
#
# Such a picture is a hint. Rollout takes the mean of heads that do different things, and leaves out values and feed-forward parts. Test what it says: make one patch dark, and see whether the answer is still right. Which one? The patch that the class token reads most, by rollout; the one it reads least; and, as a control, the one with most ink, which needs no model to be found.

# %%
some = test[:200]
read = torch.stack([rollout(attentions_of(model, image)[0])[-1, 0, 1:] for image in some.pixel_values])  # (200, 16)
ink = cut_patches(some.pixel_values, 2).sum(-1)
choices = {"none": None, "read most": read.argmax(1), "read least": read.argmin(1), "most ink": ink.argmax(1)}
for name, dark in choices.items():
    patches = cut_patches(some.pixel_values, 2)
    if dark is not None:
        patches[torch.arange(len(some)), dark] = 0
    covered = replace(some, pixel_values=join_patches(patches, 2, rows=4))
    print(f"dark: {name:12}{picture_runs.class_accuracy(model, covered):6.1%} right")

# %% [markdown]
# Compare the last line with *read most*. Only if the patch read most cost more than the one with most ink would rollout say more than the picture itself; here it costs less. *Read least* proves little: such a patch may be empty, and then nothing was covered.
#
# ### Which positions are alike?
#
# Nobody told the model that patch 5 lies below patch 1. A small map for each patch: the cosine similarity of its position (framed) with all others.

# %%
position_similarity(model)

# %% [markdown]
# *Sixteen maps, laid out as the patches are. In the paper's figure, of a model that saw millions of pictures, rows and columns can be seen. Here neighbours are hardly more alike than others. We have not tested why; {{number:len(digits())}} pictures are few.*
#
# ### What it is held against, live
#
# A ViT as above, but of two layers: as it is; without positions; with the patches shuffled, in one way for all pictures (*one permutation*) or in another way for each (*one a picture*). Beside it a small CNN, two convolutions and a dense layer, and a logistic regression, one dense layer on the pixels.

# %%
names = ("1-D positions", "no positions", "ViT, one permutation", "ViT, one a picture", "CNN", "CNN, one permutation")
live = {}
for name in names:
    recipe = picture_runs.POSITIONS[name]
    _, tested = picture_runs.sides(recipe, seed=0)
    live[name] = picture_runs.class_accuracy(picture_runs.trained(recipe, seed=0)[0], tested)
live["logistic regression"] = picture_runs.logistic_accuracy(digits(), test)
for name, accuracy in live.items():
    print(f"{name:24}{accuracy:6.1%}")

# %% [markdown]
# One seed: a first look. {{number:len(digits('test'))}} test pictures, so one of them is 0.3 points. Do not read small differences yet: three seeds follow.

# %% [markdown]
# ## Measure it
#
# All from the result files: {{number:len(picture_runs.SEEDS)}} seeds, {{number:picture_runs.MAIN.num_layers}} layers, {{number:picture_runs.MAIN.hidden_size}} wide. A dot is a seed. Differences are in points, with the rule of this course: *better* or *worse* is of one sign in every seed, and larger than the seeds differ; all else is *not settled*.
#
# ### Positions

# %%
positions_chart()

# %% [markdown]
# *Right on test pictures; the line is the mean, sd the standard deviation of the seeds. Left the digits. In the middle a question to a scene: in which row does the first thing stand, of the two that its sentence tells? On the right: is there a circle? 2-D: half of a position is learned for the row, half for the column.*
#
# - Without positions a picture is a bag of patches. Of the digits {{number:none}} are right, not {{number:one_d}}; with four times the steps {{number:right(POSITIONS, 'no positions, longer')}}, and then it has memorised its training pictures ({{number:right(POSITIONS, 'no positions, longer', 'train_accuracy')}}).
# - **It depends on the question.** Where a thing stands cannot be said without positions: {{number:right(POSITIONS, 'which row, none')}}, just what the majority class, *top*, would give. Whether there is a circle can: {{number:right(POSITIONS, 'a circle, none')}}.
# - 1-D or 2-D positions: {{number:one_d}} and {{number:right(POSITIONS, '2-D positions')}}, no difference that the seeds show. So in the paper, on ImageNet with five labelled pictures a class (5-shot): {{number:printed('vit')['positions']['one_dimension']:.1f}}% and {{number:printed('vit')['positions']['two_dimensions']:.1f}}%, and {{number:printed('vit')['positions']['none']:.1f}}% without.
#
# ### The order of the patches

# %%
orders_chart()

# %% [markdown]
# *Right on test pictures of digits. From above: patches as they are; all pictures shuffled in one and the same way; each picture in its own way.*
#
# - **One way for all**: in points, ViT {{number:vit_lost_rule}}, CNN {{number:cnn_lost_rule}}, logistic regression exactly 0. Inside a patch neighbours stay neighbours, and the CNN's last layer sees the whole picture.
# - **Each in its own way**: what is left is what single patches say. The ViT has {{number:right(POSITIONS, 'ViT, one a picture')}}, less than without positions ({{number:none}}), in every seed; perhaps as it has to learn that its positions mean nothing. The CNN has {{number:right(POSITIONS, 'CNN, one a picture')}}; chance level is 10%.
#
# A sharper question: what is it worth that *near is near*? Move every picture by up to a pixel whenever it is read, then shuffle the patches in one way. With patches as they are, the CNN has {{number:cnn_moved}}. Shuffled, it has {{number:right(PICTURES, 'CNN shifted, all, one permutation')}}: {{number:compared(PICTURES, 'CNN shifted, all, one permutation', 'CNN shifted, all')}}. The ViT's difference: {{number:compared(PICTURES, 'ViT shifted, all, one permutation', 'ViT shifted, all')}}.
#
# This is what *inductive bias* means: what a network takes for granted before it has seen a single picture.
#
# ### How many labelled pictures?

# %%
pictures_chart()

# %% [markdown]
# *Right on test pictures, by how many pictures have labels: means of the seeds, the band from the worst to the best. ViT and CNN take equally many steps. "Shifted", measured with 200 and with all: every picture is moved by up to a pixel whenever it is read, with twice the steps.*
#
# - **Few pictures**: with 50, the ViT has {{number:right('15_pictures', 'ViT, 50')}}, the CNN {{number:right('15_pictures', 'CNN, 50')}} ({{number:compared(PICTURES, 'ViT, 50', 'CNN, 50')}}), a logistic regression {{number:right('15_pictures', 'logistic regression, 50')}}. With 200 it is {{number:right(PICTURES, 'ViT, 200')}}, {{number:right(PICTURES, 'CNN, 200')}} and {{number:right(PICTURES, 'logistic regression, 200')}}. Here a ViT does not pay at all.
# - **All pictures**: {{number:right('15_pictures', 'ViT, all')}}, {{number:right('15_pictures', 'CNN, all')}}, {{number:right('15_pictures', 'logistic regression, all')}}. ViT against CNN is {{number:compared(PICTURES, 'ViT, all', 'CNN, all')}}. In the paper a ViT overtakes, with millions of pictures; these digits end before.
# - Mind the size: the ViT has {{number:stored(PICTURES)['runs']['ViT, all'][0]['parameters']}} parameters, the CNN {{number:stored(PICTURES)['runs']['CNN, all'][0]['parameters']}}. So they differ in more than in what is built in; a pair of equal size was not run.
# - *Shifted* should tell a ViT what a CNN has built in: a digit one pixel further is the same digit. With all pictures the CNN gains: {{number:cnn_moved}}, {{number:compared(PICTURES, 'CNN shifted, all', 'CNN, all')}}. The ViT has {{number:right(PICTURES, 'ViT shifted, all')}}, {{number:compared(PICTURES, 'ViT shifted, all', 'ViT, all')}}; it has not finished, of its training pictures it knows {{number:right(PICTURES, 'ViT shifted, all', 'train_accuracy')}}. With 200 the CNN's gain is {{number:compared(PICTURES, 'CNN shifted, 200', 'CNN, 200')}}, the ViT's {{number:compared(PICTURES, 'ViT shifted, 200', 'ViT, 200')}}. A control with twice the steps and no shifts was not run.
#
# ### Masked patches: BERT's idea on pictures
#
# Half of the patches are hidden behind a learned vector, and the pixels behind it are to be told. No label is read. Afterwards the model is fine-tuned on few labels.
#
# {{exercise:15.5}}


# %%
def my_hidden_loss(reconstruction, pictures, hidden, P):
    return ...


check("15.5", my_hidden_loss)

# %%
from course_lib.objectives.masked_patches import masked_patch_loss

show(masked_patch_loss)

# %%
masked_chart()

# %% [markdown]
# *Right on test pictures after few labels, 50 on the left, 200 on the right. From above: randomly initialised; the same, with the FLOPs of pre-training (its multiplications and additions) spent on more steps with labels; after masked patches.*
#
# - **50 labels**: {{number:right(MASKED, 'random, 50')}} from random initialisation, {{number:right(MASKED, 'masked patches, 50')}} after masked patches: {{number:compared(MASKED, 'masked patches, 50', 'random, 50')}}. The same FLOPs spent on more steps with the 50 labels: {{number:right(MASKED, 'equal FLOPs, 50')}}. Against that, masked patches are {{number:compared(MASKED, 'masked patches, 50', 'equal FLOPs, 50')}}.
# - **200 labels**: {{number:right(MASKED, 'random, 200')}} from random initialisation, {{number:right(MASKED, 'masked patches, 200')}} after masked patches ({{number:compared(MASKED, 'masked patches, 200', 'random, 200')}}), {{number:right(MASKED, 'equal FLOPs, 200')}} at equal FLOPs.
#
# So it fails here, and we tested two causes with 50 labels. *Fine-tuning too fast?* At a quarter of the learning rate, for both, it is still {{number:gentle_rule}}. *The class token?* No prediction is made from its last vector while patches are predicted, so it is never asked to sum up a picture. With a classifier that reads the mean of the patches instead: {{number:mean_random}} from random initialisation and {{number:mean_masked}} after masked patches, {{number:mean_rule}}. The third cause is the pictures: {{number:len(digits())}} of them, sixteen patches each, are very little to pre-train on. (The paper's B/16 reaches {{number:printed('vit')['masked']['accuracy']}}% on ImageNet with masked patches, 2 points above training from scratch and 4 below pre-training on labels.)
#
# ### Pictures and sentences: CLIP
#
# An idea that works at this size, and that made ViTs useful, needs no labels either, only pictures with their captions. CLIP (Radford et al. 2021) trains two encoders, one for pictures and one for texts. Each makes one vector. In a batch of pairs every picture must find its own sentence among all of them, and every sentence its own picture:

# %%
show(clip_runs.contrastive_loss)

# %% [markdown]
# A minute of it on this machine, or less: {{number:clip_runs.LIVE.steps}} steps on scenes drawn anew. Then {{number:clip_runs.CANDIDATES}} scenes and sentences that were never shown, no two alike.

# %%
clip, _ = clip_runs.trained_clip(clip_runs.LIVE, seed=0, callbacks=[LiveLoss(part="total")])
retrieved = clip_runs.retrieved(clip)
for name in ("accuracy", "picture_accuracy", "five"):
    print(f"{name:18}{retrieved[name]:7.1%}")
print(f"{'chance level':18}{1 / clip_runs.CANDIDATES:7.1%}   (of the first two)")

# %% [markdown]
# *accuracy: of a picture the right sentence is first; picture_accuracy: of a sentence the right picture; five: the right sentence is among the first five.*
#
# With {{number:clip_runs.CLIP.steps}} steps, from the result file:

# %%
retrieval_table()

# %% [markdown]
# None of these sentences stood in training, so the model has not memorised captions: it has learned what *red*, *circle* and *top left* look like from nothing but pairs. Where its first sentence is wrong, {{number:wrong_words()}} of the eight words that vary are wrong on average. In a batch of {{number:clip_runs.CLIP.batch_size}} two scenes seldom share so much, so the loss rarely asks for the last word. CLIP's authors used batches of 32,768.
#
# ### Larger pictures
#
# The weights of 8×8 go on with 16×16: four times as many patches, so positions are missing.

# %%
resolution_chart()

# %% [markdown]
# *Right on test pictures of 16×16, by the steps taken on such pictures; the band from the worst seed to the best. Positions interpolated in two ways; drawn anew, all other weights kept; all weights random (with twice the learning rate, as on 8×8).*
#
# - *Before any step* the interpolated model has {{number:right(LARGER, 'bicubic', 'at_once')}} by bicubic and {{number:right(LARGER, 'bilinear', 'at_once')}} by bilinear with the corners kept; with new positions {{number:right(LARGER, 'new positions', 'at_once')}}. So positions carry over, though a patch now shows a quarter of what it did. The way of resizing matters at first, for learned positions, too ({{number:in_points(reached(LARGER, 'bicubic', 'at_once'), reached(LARGER, 'bilinear', 'at_once'))}}).
# - *After all steps*: bicubic {{number:right('15_resolution', 'bicubic')}}, bilinear {{number:right('15_resolution', 'bilinear')}}, new positions {{number:right('15_resolution', 'new positions')}}, random initialisation {{number:right('15_resolution', 'random initialisation')}}. All four still rise, the last two most; so this says who is sooner there, not who ends higher.
# - The pictures are interpolated, too: there is nothing new in them, and no reason to be better than on 8×8.

# %%
from course_lib.teaching.numbers import signed

answers = {
    "tokens": (224 // 16) ** 2 + 1,
    "shuffled, ViT": f"{signed(100 * (live['ViT, one permutation'] - live['1-D positions']))} points, here",
    "shuffled, CNN": f"{signed(100 * (live['CNN, one permutation'] - live['CNN']))} points, here",
    "without positions": f"{live['no positions']:.0%}, here",
}
print(f"{'':24}{'you said':>14}   answer")
for name, value in answers.items():
    print(f"{name:24}{str(my_guesses[name]).replace('Ellipsis', '–'):>14}   {value}")

# %% [markdown]
# One seed, this page's. Over {{number:len(picture_runs.SEEDS)}} seeds, in points: ViT {{number:vit_lost_rule}}, CNN {{number:cnn_lost_rule}}. For the second guess that is the better answer.
#
# ## What they claim, what you measured
#
# Each line was settled by code that ran just now, by a result file, or, where neither can, by a source.

# %%
claims_table("15")

# %% [markdown]
# ## More exercises
#
# {{exercise:15.6}}


# %%
def my_sizes(config):
    return ...


check("15.6", my_sizes)

# %% [markdown]
# To go on: give the two encoders of *The encoder does not know what it reads* a head each, and train their one stack on a question about scenes, by sentence and by picture in turns. Does reading help seeing? As a control, train one by pictures alone, with as many steps on pictures.

# %% [markdown]
# ## Quiz

# %%
quiz("15")

# %% [markdown]
# ## Questions for review
#
# {{review:15}}

# %% [markdown]
# ## Read on
#
# Since then:
#
# - **DeiT** (Touvron et al. 2020, arXiv 2012.12877): a ViT trained on ImageNet alone, with strong data augmentation and a CNN as its teacher. No 300 million pictures are needed.
# - **BEiT** (Bao et al. 2021, arXiv 2106.08254): hidden patches are predicted as tokens of a learned visual vocabulary, as BERT predicts words.
# - **MAE** (He et al. 2021, arXiv 2111.06377): three patches of four are hidden, the encoder reads the others alone, and a small decoder, thrown away later, predicts the pixels. With enough pictures it beats pre-training on labels.
# - **DINO** (Caron et al. 2021, arXiv 2104.14294; DINOv2: Oquab et al. 2023, arXiv 2304.07193): no labels; a student must agree with a slowly moving copy of itself about other crops of a picture. Its attention shows objects. DINOv2 adds hidden patches.
# - **CLIP** (Radford et al. 2021, arXiv 2103.00020; SigLIP: Zhai et al. 2023, arXiv 2303.15343, with a sigmoid for each pair): pictures and captions. Measured above. Many language models that read pictures see through such an encoder.
#
# The papers of this page:
#
# - Dosovitskiy et al. (2020), *An Image is Worth 16x16 Words: Transformers for Image Recognition at Scale*, arXiv 2010.11929: section 3, and its table of positions in the appendix.
# - The authors' program, `google-research/vision_transformer`: `models_vit.py` is shorter than the paper.
# - Abnar and Zuidema (2020), *Quantifying Attention Flow in Transformers*, arXiv 2005.00928: attention rollout, and when it disagrees with raw attention.
