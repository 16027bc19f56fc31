"""Examples that run as scripts, each by itself, and all of them as ``python -m infinitask.demo``."""
