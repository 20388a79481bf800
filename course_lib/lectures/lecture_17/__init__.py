"""The room of lecture 17: everything that belongs to it alone."""
