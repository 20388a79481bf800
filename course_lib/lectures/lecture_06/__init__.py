"""The room of lecture 06: everything that belongs to it alone."""
