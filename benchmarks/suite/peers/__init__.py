"""The peers, one module for each kind."""
