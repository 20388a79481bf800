"""The room of lecture 04: everything that belongs to it alone."""
