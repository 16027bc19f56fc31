"""What every other package builds on: arrays, threads, validation, events."""
