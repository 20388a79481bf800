"""The room of lecture 14: everything that belongs to it alone."""
