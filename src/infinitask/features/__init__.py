"""Features: φ of the input kernel, ψ of the task kernel.

A kernel enters the problem only through features with φ(x)ᵀφ(z) = k(x, z), exactly or nearly. A *recipe*
(:class:`PivotedCholesky`, :class:`Nystroem`, :class:`RandomFourier`, :class:`Auto`) decides which features; it builds a
*map* for new inputs and its values on the training rows. Tasks are few, and their features are always exact:
:func:`task_features`.

Recipes are in ``_recipes.py``, maps in ``_maps.py``, the factorisation in ``_cholesky.py``, ψ in ``_task.py``.
"""

from ._maps import FeatureMap, Features, FourierMap, KernelMap, NodeMap, PrecomputedMap, TaskMap
from ._recipes import Auto, FeatureRecipe, Nystroem, PivotedCholesky, RandomFourier, feature_recipe
from ._task import TaskFeatures, integrated_basis, node_basis, node_values, task_features

__all__ = [
    "Auto",
    "FeatureMap",
    "FeatureRecipe",
    "Features",
    "FourierMap",
    "KernelMap",
    "NodeMap",
    "Nystroem",
    "PivotedCholesky",
    "PrecomputedMap",
    "RandomFourier",
    "TaskFeatures",
    "TaskMap",
    "feature_recipe",
    "integrated_basis",
    "node_basis",
    "node_values",
    "task_features",
]
