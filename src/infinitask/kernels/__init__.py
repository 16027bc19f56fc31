"""Kernels: how similar two rows are, and how similar two tasks are.

A kernel is a small parameter object. ``resolve`` returns a copy in which a data-dependent ``gamma`` is a number.
Calling the copy returns a Gram matrix. An input kernel compares rows of X; a task kernel compares tasks θ and knows its
derivatives, which the non-crossing penalty needs.

``describe()`` returns the kernel as plain data, which an HTML page and an ONNX graph can evaluate (``_base.py``).

To add an input kernel, write a class with a ``profile``, like those in ``_input.py``, and ``names`` by which users can
select it. No other file changes. Kernels composed of other kernels are in ``_composed.py`` and ``_metric.py``, task
kernels in ``_task.py`` and ``_finite.py``. Sums and products are written ``RBF() + Linear()`` and ``RBF() * Linear()``.
Functions and "precomputed" are passed directly. Classes and functions below that are not in ``__all__`` are for other
packages of this library.
"""

from ._base import InputKernel
from ._composed import Additive, Warped
from ._composed import Product as Product
from ._composed import Ranks as Ranks
from ._composed import Sum as Sum
from ._finite import ClassTask as ClassTask
from ._finite import Diagonal, TaskMatrix
from ._input import RBF, Chi2, Laplacian, Linear, Matern, Polynomial, Scaled
from ._input import CallableKernel as CallableKernel
from ._input import Precomputed as Precomputed
from ._input import input_kernel as input_kernel
from ._input import takes_gamma as takes_gamma
from ._metric import LearntMetric, Metric
from ._task import ConstantTask as ConstantTask
from ._task import Gaussian, MaternTask, TaskKernel
from ._task import PiecewiseLinear as PiecewiseLinear
from ._task import PolynomialTask as PolynomialTask
from ._task import task_kernel as task_kernel

__all__ = [
    "RBF",
    "Additive",
    "Chi2",
    "Diagonal",
    "Gaussian",
    "InputKernel",
    "Laplacian",
    "LearntMetric",
    "Linear",
    "Matern",
    "MaternTask",
    "Metric",
    "Polynomial",
    "Scaled",
    "TaskKernel",
    "TaskMatrix",
    "Warped",
]
