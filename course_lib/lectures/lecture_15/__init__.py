"""The room of lecture 15: everything that belongs to it alone."""
