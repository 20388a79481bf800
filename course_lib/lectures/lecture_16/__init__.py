"""The room of lecture 16: everything that belongs to it alone."""
