"""Small extensions of Sphinx that the documentation needs."""
