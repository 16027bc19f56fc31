"""Synthetic data whose truth is known: :func:`make_sine` with :func:`sine_quantile`, and :func:`make_mixture`."""

from ._synthetic import make_mixture, make_sine, sine_quantile

__all__ = ["make_mixture", "make_sine", "sine_quantile"]
