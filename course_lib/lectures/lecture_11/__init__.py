"""The room of lecture 11: everything that belongs to it alone."""
