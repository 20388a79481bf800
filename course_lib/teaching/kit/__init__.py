"""The instructor's kit: syllabi, notes on each lecture, an exam bank, a grading command.

`python -m course_lib.teaching.kit` writes all of it as a folder (`make kit`); `.exam` draws a
paper, `.grading` grades a folder of submitted notebooks."""
