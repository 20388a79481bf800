"""What is hidden, what must be said about it, and the loss, by name. An objective never knows a
model."""
