"""Exercises of lecture 16, one file each."""

from course_lib.teaching.exercises.form import Exercise

EXERCISES: tuple[Exercise, ...] = ()
