"""The room of lecture 12: everything that belongs to it alone."""
