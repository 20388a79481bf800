"""The room of lecture 02: everything that belongs to it alone."""
