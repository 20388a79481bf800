"""The training loop and what it needs: schedules, precision, resuming, metrics, the course's
experiments."""
