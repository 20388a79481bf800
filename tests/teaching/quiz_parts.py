"""What tests of quizzes read: an item or an answer, found by words of its question."""

from __future__ import annotations

from course_lib.teaching.quizzes import read_quiz, read_review


class Quiz:
    """The items and the questions for review of one lecture."""

    def __init__(self, lecture):
        self.items, self.review = read_quiz(lecture), read_review(lecture)

    def item(self, words):
        """The item about this, and its right choice."""
        (found,) = (entry for entry in self.items if words in entry.question)
        (right,) = (choice for choice in found.choices if choice.correct)
        return found, right

    def answer(self, words):
        """The answer to the question for review about this."""
        (found,) = (entry.answer for entry in self.review if words in entry.question)
        return found

    def check_not_given_away(self, by_length_at_most=0.45):
        """Neither its place nor its length tells the right choice."""
        items = self.items
        places = [[choice.correct for choice in entry.choices].index(True) for entry in items]
        assert max(map(places.count, range(3))) <= 0.4 * len(items)
        for extreme in (max, min):
            by_length = [extreme(e.choices, key=lambda c: len(c.text)).correct for e in items]
            assert sum(by_length) <= by_length_at_most * len(items)
