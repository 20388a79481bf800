"""The room of lecture 09: everything that belongs to it alone."""
