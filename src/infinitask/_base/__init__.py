"""Utilities for all other packages: arrays, threads, validation, events."""
