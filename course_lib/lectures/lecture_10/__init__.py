"""The room of lecture 10: everything that belongs to it alone."""
