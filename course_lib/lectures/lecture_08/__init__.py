"""The room of lecture 08: everything that belongs to it alone."""
