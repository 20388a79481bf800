"""The room of lecture 03: everything that belongs to it alone."""
