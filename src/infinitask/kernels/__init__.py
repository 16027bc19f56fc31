"""Kernels: what "similar inputs" and "similar tasks" mean.

Two families, one habit. A kernel is a small parameter object; ``resolve`` turns a data dependent ``gamma``
into a number and returns a new object, and calling the result gives a Gram matrix. An input kernel compares
rows of X; a task kernel compares tasks θ and knows its derivatives, which the non-crossing penalty needs.
"""

from ._base import CallableKernel, InputKernel, Precomputed, Product, Sum
from ._features import Additive, Scaled
from ._finite import TaskMatrix
from ._input import RBF, Chi2, Laplacian, Linear, Matern, Polynomial, input_kernel
from ._task import (
    ConstantTask,
    Diagonal,
    Gaussian,
    MaternTask,
    PiecewiseLinear,
    PolynomialTask,
    TaskKernel,
    task_kernel,
)
from ._warped import Ranks, Warped

__all__ = [
    "RBF",
    "Additive",
    "CallableKernel",
    "Chi2",
    "ConstantTask",
    "Diagonal",
    "Gaussian",
    "InputKernel",
    "Laplacian",
    "Linear",
    "Matern",
    "MaternTask",
    "PiecewiseLinear",
    "Polynomial",
    "PolynomialTask",
    "Precomputed",
    "Product",
    "Ranks",
    "Scaled",
    "Sum",
    "TaskKernel",
    "TaskMatrix",
    "Warped",
    "input_kernel",
    "task_kernel",
]
