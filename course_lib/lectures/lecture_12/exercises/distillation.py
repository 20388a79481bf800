"""Exercise 12.3: exits learn from the last one. S students, B texts, N classes."""

from __future__ import annotations

import torch
from torch import Tensor

from course_lib.teaching.exercises.form import Case, Draw, Edit, Exercise, Stage, each, written
from course_lib.teaching.exercises.outputs import Number


def self_distillation(student_logits: Tensor, teacher_logits: Tensor) -> Tensor:
    """Σ over students of the mean over texts of KL(teacher ‖ student): (S, B, N), (B, N) -> ()."""
    student = student_logits.log_softmax(dim=-1)
    teacher = teacher_logits.detach().log_softmax(dim=-1)
    kl = (teacher.exp() * (teacher - student)).sum(dim=-1)  # (S, B)
    return kl.mean(dim=1).sum()


# ---------------------------------------------------------------- cases


def by_hand(draw: Draw) -> list[Case]:
    """The statement's teacher, and students that know nothing."""
    p = torch.tensor([[1 / 2, 1 / 4, 1 / 4], [1.0, 2.0, 5.0]], dtype=torch.float64)
    unsure = torch.zeros(1, 1, 3, dtype=torch.float64)
    return [(unsure + 1, p[:1].log()), *each(case, (1, 1, 3), (1, 1, 5))(draw),
            (p[1].log()[None, None], p[:1].log())]  # fmt: skip


def case(draw: Draw, students: int, texts: int, classes: int) -> Case:
    return 2 * draw.normal(students, texts, classes), 2 * draw.normal(texts, classes)


def alike(draw: Draw) -> list[Case]:
    """Logits that differ by a constant, which no softmax sees."""
    teacher = 2 * draw.normal(3, 4)
    return [(teacher + draw.normal(students, 3, 1), teacher) for students in (2, 4)]


def certain(draw: Draw, *sizes: int) -> Case:
    """The teacher is certain of the first text."""
    students, teacher = case(draw, *sizes)
    teacher[0, draw.integer(0, sizes[2] - 1)] += 1000
    return students, teacher


STUDENT = "student_logits.log_softmax(dim=-1)"
TEACHER = "teacher_logits.detach().log_softmax(dim=-1)"
KL, SUM = "(teacher.exp() * (teacher - student)).sum(dim=-1)", "kl.mean(dim=1).sum()"

DISTILLATION = Exercise(
    **written("12.3"),
    solution=self_distillation,
    returns=Number("loss", "nats"),
    see='course_lib.objectives.exits.self_distillation_loss("forward"); "reverse" is the paper\'s',
    gradient=("students",),
    infinite="Your loss is not a finite number. Did exp overflow? softmax and log_softmax subtract "
    "the largest logit first. Was a logarithm taken of a probability that was rounded to 0? "
    "log_softmax keeps it finite. Or of a logarithm? F.kl_div expects the teacher's "
    "*probabilities* as its second argument, unless you say log_target=True.",
    when_raised=(
        (r"size|shape|dimension", "There is one teacher for all students: its (B, N) is broadcast "
         "over the first axis of (L − 1, B, N)."),
    ),
    stages=(
        Stage("one student, one text", by_hand),
        Stage("one student, several texts", each(case, (1, 4, 3), (1, 3, 5))),
        Stage("several students", each(case, (3, 4, 5), (2, 5, 3), (5, 3, 4))),
        Stage("students that answer like the teacher", alike),
        Stage("a teacher that is certain", each(certain, (3, 2, 4), (2, 4, 3))),
    ),
    axes={"0": "the students", "-1": "the classes"},
    mistakes=(
        Edit(KL, "(student.exp() * (student - teacher)).sum(dim=-1)", "The other direction: you "
             "have KL(student ‖ teacher), as the paper prints it. The authors' code weights with "
             "the *teacher's* probabilities."),
        Edit(KL, "((teacher.exp() - student.exp()) * (teacher - student)).sum(dim=-1)", "You add "
             "both directions. Take KL(teacher ‖ student) alone."),
        Edit(KL, "-(teacher.exp() * student).sum(dim=-1)", "This is the cross-entropy with the "
             "teacher's probabilities. Its gradient is the same, but a student that answers like "
             "its teacher must have loss 0: take log teacher − log student."),
        Edit(KL, "-student.gather(-1, teacher.argmax(dim=-1).expand(student.shape[:2])[..., "
             "None])[..., 0]", "Your teacher gives hard labels: only its best class counts, and "
             "its probabilities of the others are lost."),
        Edit("(teacher - student)", "(teacher - student.exp())", "You use the students' "
             "probabilities instead of their logarithms. F.kl_div expects log-probabilities as its "
             "first argument, and does not complain."),
        Edit(STUDENT, "student_logits.softmax(dim=-1).log_softmax(dim=-1)", "The students' softmax "
             "is taken twice. log_softmax expects logits, not probabilities."),
        Edit(TEACHER, "teacher_logits.detach().softmax(dim=-1).log_softmax(dim=-1)", "The "
             "teacher's softmax is taken twice: it looks less sure than it is."),
        Edit(TEACHER, "teacher_logits.detach().softmax(dim=-1).log()", "A certain teacher: one of "
             "its probabilities is 0, and 0 · log 0 is nan. log_softmax keeps it finite."),
        Edit(SUM, "kl.mean()", "You take the mean over the students. Take their sum: each "
             "student learns at the full rate, however many there are."),
        Edit(SUM, "kl.sum()", "You add up over the texts. Take their mean, and add up the "
             "students."),
        Edit(SUM, "kl.sum() / len(kl)", "You divide by the number of *students*: that is what "
             '"batchmean" does, which divides by the first axis. The mean is over the texts.'),
        Edit(KL, "(teacher.exp() * (teacher - student)).mean(dim=-1)", "You divide by the number "
             'of classes, too, as reduction="mean" does. A divergence is a sum over the classes.'),
        Edit(SUM, "kl.mean() / student.shape[-1]", "You take the mean over everything, as "
             'reduction="mean" does, students and classes included. The mean is over the texts '
             "alone."),
        Edit(SUM, "kl[:-1].mean(dim=1).sum()", "The last student is left out. `students` holds "
             "students only, without the teacher."),
        Edit(SUM, "kl.mean(dim=1)[-1]", "You train the last student only. Add up over all."),
        Edit(SUM, "(kl.mean(dim=1) * torch.arange(1, len(kl) + 1)).sum()", "You weight students by "
             "their layer. FastBERT uses no weights."),
        Edit(TEACHER, "torch.cat([student_logits[1:], teacher_logits[None]]).detach()"
             ".log_softmax(dim=-1)", "Each student learns from the next one in your answer. All "
             "learn from the last exit: it is the teacher."),
        Edit(STUDENT, "student_logits.softmax(dim=-1).mean(dim=0, keepdim=True).log()", "You mix "
             "the students' answers before you compare them. Each must be able to answer alone."),
        Edit(STUDENT, "student_logits.log_softmax(dim=1)", "The softmax runs over the texts. It "
             "must run over the classes, dim=-1.",
             more=((TEACHER, "teacher_logits.detach().log_softmax(dim=0)"),)),
        Edit(KL, "(student_logits - teacher_logits.detach()).square().sum(dim=-1)", "This is the "
             "squared distance of the logits. Take the divergence of the probabilities."),
        Edit(KL, "(teacher.exp() - student.exp()).square().sum(dim=-1)", "This is the squared "
             "distance of the probabilities. Take their divergence."),
    ),
)  # fmt: skip
