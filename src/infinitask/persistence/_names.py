"""Which classes, functions and types a file may name, and how errors show the content of a file.

A name is the public import path, not the place of the definition, so files remain valid if code moves.
"""

from __future__ import annotations

import inspect
from collections.abc import Callable, Container, Mapping
from contextlib import suppress
from enum import Enum
from functools import lru_cache
from importlib import import_module
from importlib.util import find_spec
from typing import Any

import numpy as np

ALL = "*"
"""Stands for all classes, or all functions, of its own that a module or package makes public."""

WHOLE_MODULES = (
    "estimators features features._maps integrations._level kernels losses losses._observed losses._rows measures "
    "measures._rules measures._spaces metrics metrics._level_sets metrics._scorers penalties pipelines predictive "
    "tasks tuning"
)
"""Modules of this library whose classes may all be named."""

OWN_CLASSES = {
    **{f"infinitask.{module}": ALL for module in WHOLE_MODULES.split()},
    "infinitask.calibration": "ClassScale ConformalCalibration CrossCalibration Levels Rearrangement ShareScale Shift",
    "infinitask.field": "Field",
    "infinitask.fitting": "Recipe Relevance Units",
    "infinitask.objective": "Smoothing",
    "infinitask.pipelines._table_step": "TableEncoder",  # imported only if a file has one: it needs skrub
    "infinitask.solvers": "Reason Solution Start",
}
"""Classes of this library; modules with an underscore are private, but models contain objects of their classes."""

OTHER_CLASSES = {
    "collections": "OrderedDict",
    "optuna.distributions": "CategoricalDistribution FloatDistribution IntDistribution",
    "sklearn.compose": "ColumnTransformer TransformedTargetRegressor make_column_selector",
    "sklearn.compose._column_transformer": "_RemainderColsList",
    "sklearn.decomposition": "PCA TruncatedSVD",
    "sklearn.feature_extraction.text": "CountVectorizer HashingVectorizer TfidfTransformer TfidfVectorizer",
    "sklearn.feature_selection": "SelectKBest SelectPercentile VarianceThreshold",
    "sklearn.impute": "KNNImputer MissingIndicator SimpleImputer",
    "sklearn.kernel_approximation": "Nystroem RBFSampler",
    "sklearn.metrics._scorer": "_PassthroughScorer _Scorer",
    "sklearn.model_selection": (
        "GridSearchCV GroupKFold KFold LeaveOneOut PredefinedSplit RandomizedSearchCV RepeatedKFold "
        "RepeatedStratifiedKFold ShuffleSplit StratifiedKFold StratifiedShuffleSplit TimeSeriesSplit"
    ),
    "sklearn.pipeline": "FeatureUnion Pipeline",
    "sklearn.preprocessing": (
        "Binarizer FunctionTransformer KBinsDiscretizer LabelBinarizer LabelEncoder MaxAbsScaler MinMaxScaler "
        "Normalizer OneHotEncoder OrdinalEncoder PolynomialFeatures PowerTransformer QuantileTransformer RobustScaler "
        "SplineTransformer StandardScaler TargetEncoder"
    ),
    "sklearn.utils": "Bunch",
    "skrub": (
        "ApplyToCols Cleaner DatetimeEncoder Drop DropCols DropUninformative DurationToFloat MinHashEncoder SelectCols "
        "SquashingScaler StringEncoder TableVectorizer ToCategorical ToDatetime ToFloat"
    ),
    "skrub._apply_to_each_col": "ApplyToEachCol",
    "skrub._apply_to_frame": "ApplyToFrame",
    "skrub._check_input": "CheckInputDataFrame",
    "skrub._clean_categories": "CleanCategories",
    "skrub._clean_null_strings": "CleanNullStrings",
    "skrub._datetime_encoder": "_CircularEncoder _SplineEncoder",
    "skrub._table_vectorizer": "PassThrough ShortReprDict",
    "skrub._to_str": "ToStr",
    "skrub._utils": "LRUDict",
    "skrub.selectors._base": "All And Cols Filter Inv NameFilter Or Sub XOr",
}
"""Classes of other libraries, imported only if a file or a model has one."""

FUNCTIONS = {
    "infinitask.metrics": ALL,
    "infinitask.tasks.ridge_path": "_power_of_ten",
    "numpy": (
        "absolute arcsinh arctan cbrt cos exp exp2 expm1 log log10 log1p log2 negative reciprocal sign sin "
        "sinh sqrt square tanh"
    ),
    "scipy.special": "exp10 expit log1p logit ndtr ndtri",
    "sklearn.feature_selection": "chi2 f_classif f_regression mutual_info_classif mutual_info_regression r_regression",
    "sklearn.metrics": (
        "accuracy_score average_precision_score balanced_accuracy_score brier_score_loss d2_pinball_score f1_score "
        "fbeta_score log_loss mean_absolute_error mean_pinball_loss mean_squared_error median_absolute_error "
        "precision_score r2_score recall_score roc_auc_score root_mean_squared_error"
    ),
    "skrub._dataframe._common": (
        "is_any_date is_bool is_categorical is_duration is_float is_integer is_numeric is_object is_string"
    ),
    "skrub._table_vectorizer": "_created_by_predicate",
    "skrub.selectors._selectors": "_cardinality_below _has_dtype _null_count_check",
}
"""Functions that models contain: none of them reads, writes or runs anything."""

TYPES: dict[str, type[Any]] = {
    **{f"builtins.{t.__name__}": t for t in (bool, bytes, complex, float, int, object, str)},
    **{f"numpy.{t.__name__}": t for t in np.sctypeDict.values()},
}
"""Types that are used as values, such as ``dtype=np.float64``."""

PLAIN_CLASS_FLAG = 1 << 9
"""CPython's flag of classes written in Python: attributes are all that their objects hold."""

LONGEST = 50
"""The maximum number of characters of a text from a file that an error shows."""

_registered: dict[str, type[Any]] = {}


def register(cls: type[Any]) -> type[Any]:
    """Let objects of your own class be saved and loaded; also usable as a decorator.

    The attributes of an object are saved, as its ``__getstate__`` returns them. ``load`` creates the object without
    calling its constructor and sets the attributes, through its ``__setstate__`` if it has one. Register a class in
    every program that loads it, and only if its ``__setstate__`` is safe to call with any value.

    Parameters
    ----------
    cls : type
        A class written in Python: an estimator, a loss, a kernel, a dataclass, a named tuple or an enumeration.

    Returns
    -------
    cls : type
        The same class.

    Examples
    --------
    >>> from infinitask.losses import BoxLoss, Row
    >>> from infinitask.persistence import register
    >>> @register
    ... class Tilted(BoxLoss):
    ...     def row(self, theta, y):
    ...         return Row(theta - 1.0, theta)
    """
    if not isinstance(cls, type):
        raise TypeError(f"{cls!r} was given to register; it must be a class, such as register(MyLoss).")
    name = qualified(cls)
    if cls.__module__ == "builtins" or is_listed(cls):
        raise ValueError(
            f"{name} was given to register, which is for classes of your own; this one is known already, or is not "
            "made to be saved."
        )
    bases = {base for base in cls.__mro__ if not base.__flags__ & PLAIN_CLASS_FLAG} - {object}
    if bases and not (issubclass(cls, Enum) or is_named_tuple(cls)):
        raise TypeError(
            f"{name} was given to register, which derives from {', '.join(sorted(b.__name__ for b in bases))}, so its "
            "objects hold more than attributes; register a class that is written in Python alone."
        )
    _registered[name] = cls
    return cls


def registered_classes() -> list[type[Any]]:
    """The classes that were passed to :func:`register`."""
    return list(_registered.values())


def class_named(name: str) -> type[Any]:
    """The class that a file names."""
    if type(name) is str and name in _registered:
        return _registered[name]
    check_word(
        name,
        known_classes(),
        f"it names the class {shown(name)}, which is not among those that a file may name; if you trust it, import it "
        "and call infinitask.persistence.register with it",
    )
    found: type[Any] = _resolved(name)
    return found


def name_of_class(cls: type[Any]) -> str | None:
    """The name of a class that may be saved; None for other classes."""
    return qualified(cls) if _registered.get(qualified(cls)) is cls else _name_of(cls, known_classes())


def is_listed(cls: type[Any]) -> bool:
    """Whether files may name a class that is not registered."""
    return cls not in _registered.values() and name_of_class(cls) is not None


def function_named(name: str) -> Any:
    """The function that a file names."""
    check_word(
        name, known_functions(), f"it names the function {shown(name)}, which is not among those that a file may name"
    )
    return _resolved(name)


def name_of_function(function: Any) -> str | None:
    """The name of a function that may be saved; None for other functions."""
    return _name_of(function, known_functions())


def qualified(cls: type[Any]) -> str:
    """The full name of a class, by the place of its definition."""
    return f"{cls.__module__}.{cls.__qualname__}"


def is_named_tuple(cls: type[Any]) -> bool:
    """Whether a class is a named tuple."""
    return issubclass(cls, tuple) and isinstance(getattr(cls, "_fields", None), tuple)


@lru_cache(maxsize=1)
def known_classes() -> frozenset[str]:
    """The names of all classes that may be saved without registration."""
    return _listed(OWN_CLASSES | OTHER_CLASSES, inspect.isclass)


@lru_cache(maxsize=1)
def known_functions() -> frozenset[str]:
    """The names of all functions that may be saved."""
    return _listed(FUNCTIONS, inspect.isfunction)


def _listed(names: Mapping[str, str], which: Callable[[Any], bool]) -> frozenset[str]:
    """The full names in a table."""
    words = [(module, word) for module, line in names.items() for word in line.split()]
    return frozenset(
        f"{module}.{name}" for module, word in words for name in (_offered(module, which) if word == ALL else [word])
    )


def _offered(name: str, which: Callable[[Any], bool]) -> list[str]:
    """The names that a module of this library defines itself, without those that begin with an underscore."""
    found = vars(import_module(name)).items()
    return [key for key, thing in found if which(thing) and key[0] != "_" and thing.__module__.startswith(name)]


def _name_of(thing: Any, known: frozenset[str]) -> str | None:
    """The known name, with the same last part, that refers to this very object."""
    name, module = getattr(thing, "__name__", ""), getattr(thing, "__module__", None)
    for candidate in sorted(known):
        place, _, last = candidate.rpartition(".")
        # functions compiled in C do not know their module
        may_be_there = module is None or module.partition(".")[0] == place.partition(".")[0]
        if last == name and may_be_there:
            with suppress(ValueError):  # other versions of a library have the name elsewhere
                if _resolved(candidate) is thing:
                    return candidate
    return None


@lru_cache(maxsize=512)
def _resolved(name: str) -> Any:
    """The object that a name of the tables refers to."""
    module, _, last = name.rpartition(".")
    try:
        return getattr(import_module(module), last)
    except (ImportError, AttributeError) as error:
        package = name.partition(".")[0]
        if find_spec(package) is None:
            raise ValueError(f"it names {name!r}, and {package} is not installed") from error
        have = getattr(import_module(package), "__version__", "that is installed")
        raise ValueError(f"it names {name!r}, which {package} {have} does not have") from error


# ------------------------------------------------------------------------------------------------------- errors
def check_word(value: Any, words: Container[str], reason: str) -> None:
    """Raise a ValueError with this reason if a value from a file is not one of the given words."""
    if type(value) is not str or value not in words:
        raise ValueError(reason)


def shown(value: Any) -> str:
    """Format a value for an error: a text or a number, truncated; only the type of anything else.

    A tuple of tuples can take a kilobyte in a file and print for years, since each may hold the previous one twice.

    Examples
    --------
    >>> shown("x" * 1000)[:8], len(shown("x" * 1000))
    ("'xxxxxxx", 53)
    >>> shown(3), shown((1, 2)), shown(10**5000)
    ('3', 'a tuple', 'a whole number of 16610 bits')
    """
    if isinstance(value, str):
        text = str.__str__(value[:LONGEST])
        return repr(text if len(value) <= LONGEST else f"{text}…")
    if type(value) is int and value.bit_length() > LONGEST * 3:
        return f"a whole number of {value.bit_length()} bits"
    if value is None or isinstance(value, (bool, int, float, complex, np.number, np.bool_)):
        return str(value)
    return f"a {type(value).__name__}"
