"""Where files of models name the inverse of a Cholesky factor."""

from infinitask.features._cholesky import Inverse as Inverse
