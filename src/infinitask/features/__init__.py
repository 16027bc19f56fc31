"""Features: φ of the input kernel, ψ of the task kernel.

A kernel enters the problem only through features whose inner products give it back, φ(x)ᵀφ(z) = k(x, z), exactly
or nearly. A *recipe* (:class:`PivotedCholesky`, :class:`Nystroem`, :class:`RandomFourier`, :class:`Auto`) decides
which; what it builds is a *map* for new inputs with its values on the training rows. Tasks are few, and theirs
is always exact: :func:`task_features`.
"""

from ._maps import FeatureMap, Features, FourierMap, KernelMap, PrecomputedMap
from ._recipes import Auto, FeatureRecipe, Nystroem, PivotedCholesky, RandomFourier, feature_recipe
from ._task import TaskFeatures, TaskMap, integrated_basis, node_basis, task_features

__all__ = [
    "Auto",
    "FeatureMap",
    "FeatureRecipe",
    "Features",
    "FourierMap",
    "KernelMap",
    "Nystroem",
    "PivotedCholesky",
    "PrecomputedMap",
    "RandomFourier",
    "TaskFeatures",
    "TaskMap",
    "feature_recipe",
    "integrated_basis",
    "node_basis",
    "task_features",
]
