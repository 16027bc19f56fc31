"""Kernels: what "similar inputs" and "similar tasks" mean.

A kernel is a small parameter object. ``resolve`` returns a copy in which a data dependent ``gamma`` is a number, and
calling the copy gives a Gram matrix. An input kernel compares rows of X; a task kernel compares tasks θ and knows its
derivatives, which the non-crossing penalty needs.

``describe()`` says what a kernel is, as plain data that a page and an ONNX graph evaluate (``_description.py``).

To add an input kernel, write a class with a ``profile``, as those in ``_input.py``, and ``names`` by which users find
it. No other file changes. Kernels made of other kernels are in ``_composed.py`` and ``_metric.py``, task kernels in
``_task.py``. Sums and products are written ``RBF() + Linear()`` and ``RBF() * Linear()``; a function and "precomputed"
are given as they are. Classes and functions below that are not in ``__all__`` serve other packages of this library.
"""

from ._base import InputKernel
from ._classes import ClassTask as ClassTask
from ._composed import Additive, Scaled, Warped
from ._composed import Product as Product
from ._composed import Sum as Sum
from ._finite import TaskMatrix
from ._input import RBF, Chi2, Laplacian, Linear, Matern, Polynomial
from ._metric import LearntMetric, Metric
from ._own import CallableKernel as CallableKernel
from ._own import Precomputed as Precomputed
from ._own import input_kernel as input_kernel
from ._own import takes_gamma as takes_gamma
from ._ranks import Ranks as Ranks
from ._task import ConstantTask, Diagonal, Gaussian, MaternTask, PiecewiseLinear, PolynomialTask, TaskKernel
from ._task import task_kernel as task_kernel

__all__ = [
    "RBF",
    "Additive",
    "Chi2",
    "ConstantTask",
    "Diagonal",
    "Gaussian",
    "InputKernel",
    "Laplacian",
    "LearntMetric",
    "Linear",
    "Matern",
    "MaternTask",
    "Metric",
    "PiecewiseLinear",
    "Polynomial",
    "PolynomialTask",
    "Scaled",
    "TaskKernel",
    "TaskMatrix",
    "Warped",
]
