"""Exercise 06.2: how far a student's answers are from its teacher's. N positions, V choices."""

from __future__ import annotations

from torch import Tensor

from course_lib.teaching.exercises.form import Case, Draw, Edit, Exercise, Stage, each, written
from course_lib.teaching.exercises.outputs import Number


def soft_loss(student_logits: Tensor, teacher_logits: Tensor, temperature: float) -> Tensor:
    """T² · KL(teacher ‖ student) of answers softened by T, the mean over N positions."""
    student = (student_logits / temperature).log_softmax(-1)
    teacher = (teacher_logits.detach() / temperature).log_softmax(-1)
    apart = (teacher.exp() * (teacher - student)).sum(-1)  # (N,)
    return temperature**2 * apart.mean()


def case(draw: Draw, N: int, V: int, T: float) -> Case:
    return 2 * draw.normal(N, V), 2 * draw.normal(N, V), T


def equal_answers(draw: Draw) -> list[Case]:
    """The logits differ by a constant that the softmax ignores."""
    logits = 2 * draw.normal(3, 5)
    return [(logits + draw.normal(3, 1), logits, T) for T in (1.0, 3.0)]


other_temperatures = each(case, *((*NV, T) for NV in ((3, 4), (2, 6)) for T in (2.0, 0.5, 4.0)))

STUDENT, TEACHER = "student_logits / temperature", "teacher_logits.detach() / temperature"
KL = "teacher.exp() * (teacher - student)"

TARGETS = Exercise(
    **written("06.2"),
    solution=soft_loss,
    returns=Number("loss", "nats"),
    library=("course_lib.kernels.distillation:soft_target_loss",),
    when_raised=(
        ("must match the size", "Both logits have the same shape (N, V). Sum over the last axis "
         "only after they are multiplied."),
    ),
    stages=(
        Stage("one position, T = 1", each(case, (1, 3, 1.0), (1, 5, 1.0))),
        Stage("several positions, T = 1", each(case, (3, 4, 1.0), (5, 6, 1.0))),
        Stage("equal answers cost nothing", equal_answers),
        Stage("other temperatures", other_temperatures),
    ),
    gradient=("student_logits",),
    infinite="Your loss is not a finite number. Did exp overflow? softmax and log_softmax subtract "
    "the largest logit first. Did you take the logarithm of something negative, or of a "
    "probability that was rounded to 0? F.kl_div expects the teacher's *probabilities* as its "
    "second argument; if you give their logarithms, say log_target=True.",
    mistakes=(
        Edit("temperature**2 * apart", "apart",
             "The factor T² is missing. Softening shrinks the gradient about as 1/T²; the factor "
             "compensates for that at high T."),
        Edit("temperature**2", "temperature",
             "The factor is T; it must be T²: one 1/T comes from dividing the student's logits, "
             "another because softened answers are closer together."),
        Edit("temperature**2", "temperature**-2",
             "The loss is divided by T². Softening makes the gradient too *small*: multiply."),
        Edit("temperature**2 * apart", "apart", "T has no effect. Divide both networks' logits by "
             "it, and multiply the loss by its square.",
             more=((STUDENT, "student_logits"), (TEACHER, "teacher_logits.detach()"))),
        Edit(TEACHER, "teacher_logits.detach()", "Only the student's logits are divided by T. Even "
             "a student that answers exactly as its teacher would then have a loss. Soften both."),
        Edit(STUDENT, "student_logits", "Only the teacher's logits are divided by T. Even a "
             "student that answers exactly as its teacher would then have a loss. Soften both."),
        Edit(STUDENT, "student_logits", "You multiply by T², but divide no logits by T. Soften "
             "both networks' answers.", more=((TEACHER, "teacher_logits.detach()"),)),
        Edit(STUDENT, "student_logits * temperature", "You multiply the logits by T, which "
             "sharpens. Divide by T.", more=((TEACHER, "teacher_logits.detach() * temperature"),)),
        Edit(KL, "student.exp() * (student - teacher)",
             "The divergence is the wrong way round: yours weights by the student's probabilities, "
             "KL(student ‖ teacher). Weight by the teacher's: Σ teacher · (log teacher − log "
             "student). In F.kl_div the student's *logarithms* are the first argument."),
        Edit(KL, "-teacher.exp() * student", "This is the cross-entropy, −Σ teacher · log student. "
             "It has the same gradient, but it is larger by the teacher's entropy: a perfect "
             "student would not reach 0. Subtract that entropy: log teacher − log student."),
        Edit(KL, "-student.exp() * teacher", "This is −Σ student · log teacher: a cross-entropy "
             "with the roles exchanged. Return Σ teacher · (log teacher − log student)."),
        Edit("(teacher - student)", "(teacher - student.exp())",
             "You use the student's probabilities where their logarithms belong. F.kl_div expects "
             "log-probabilities as its first argument and raises no error otherwise: use "
             "log_softmax."),
        Edit("(teacher - student)", "(teacher - student_logits / temperature)",
             "You use the student's logits where log-probabilities belong. Put log_softmax around "
             "them."),
        Edit("teacher.exp() *", "(teacher == teacher.amax(-1, keepdim=True)) *",
             "You use only the teacher's best choice, as if it were a label. Distillation needs "
             "its probabilities for all choices.",
             more=(("(teacher - student)", "-student"),)),
        Edit(KL, "((student_logits - teacher_logits) / temperature) ** 2",
             "This is the squared distance of the logits, a different loss that is also in use; "
             "here return the divergence of the probabilities."),
        Edit(KL, "(teacher.exp() - student.exp()) ** 2", "This is the squared distance of the "
             "probabilities; return their divergence, Σ teacher · (log teacher − log student)."),
        Edit(".sum(-1)  #", ".mean(-1)  #", "The mean runs over all N · V entries. Take a *sum* "
             "over the V choices (this makes it a divergence) and a mean over the N positions: "
             'reduction="batchmean", not "mean".'),
        Edit("apart.mean()", "apart.sum()", "This is the sum over the positions; take their mean, "
             "so that large batches count no more than small ones."),
        Edit(".log_softmax(-1)\n    teacher", ".log_softmax(0)\n    teacher",
             "The softmax runs over the positions; it must run over the V choices, the last axis.",
             more=((".log_softmax(-1)\n    apart", ".log_softmax(0)\n    apart"),)),
        Edit("return temperature", "return -temperature",
             "The sign is wrong: a divergence is never negative, and 0 only for equal answers."),
    ),
)  # fmt: skip
