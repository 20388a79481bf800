"""The room of lecture 13: everything that belongs to it alone."""
