"""Sixteen middle-sized tables, 1 026 to 58 788 rows: the page on which nothing was developed.

The list was made by name and by what the columns mean, before any method had seen one of the tables. It must never be
changed because of results. Each has a numeric target with many distinct values, at least three inputs, and a question
that a person would ask. Numbers of rows, names, and columns that contain the target or follow from it are left out, and
so are columns that are known only after the target. Panels (rice, guns, gapminder) are split by rows, as the others.

None of them is among the tables of :mod:`experiments.raw_tables` and :mod:`experiments.fresh_sets` or the paper's sets.
scikit-learn has no such table that it does not download. Text becomes one column of 0 and 1 for each of its values, a
missing number the median of the training rows; the target has mean 0 and standard deviation 1.
"""

from __future__ import annotations

from dataclasses import dataclass

from .raw_tables import Table, coded, encoded, inputs_and_target, table_of, two_parts
from .tuned import Values

__all__ = ["MAX_ROWS", "TABLES", "Split", "split"]

MAX_ROWS = 60_000
"""Larger tables are cut to this many rows, drawn with seed 0. None is today."""

TABLES: dict[str, Table] = {
    # the harvest of a rice farm, from its size, what it uses and what that costs
    "rice": table_of(
        "plm",
        "RiceFarms",
        1026,
        "goutput",
        "size status varieties bimas seed urea phosphate pesticide pseed purea pphosph hiredlabor famlabor wage price "
        "region",
    ),
    # violent crimes in a state and year; murders and robberies are among them and left out
    "guns": table_of(
        "AER", "Guns", 1173, "violent", "year prisoners afam cauc male population income density law"
    ),
    # the weight that people gained in eleven years, from what was known before, and whether they stopped smoking
    "weight": table_of(
        "causaldata",
        "nhefs_complete",
        1566,
        "wt82_71",
        "qsmk sex age race income marital school ht wt71 smokeintensity smokeyrs asthma bronch tb hf hbp pepticulcer "
        "colitis hepatitis chroniccough hayfever diabetes polio tumor nervousbreak alcoholpy alcoholfreq alcoholtype "
        "headache otherpain weakheart allergies nerves lackpep hbpmed boweltrouble wtloss infection active exercise "
        "cholesterol price71 tax71",
    ),
    "gapminder": table_of("gapminder", "gapminder", 1704, "lifeExp", "continent year pop gdpPercap"),
    # what a large company is worth; its rank is made from that and left out
    "forbes": table_of("HSAUR", "Forbes2000", 2000, "marketvalue", "country category sales profits assets"),
    # the score of a pupil at sixteen, from that at eleven and the school
    "exam": table_of("mlmRev", "Exam", 4059, "normexam", "standLRT schavg vr intake sex type schgend"),
    "grades": table_of(
        "wooldridge", "gpa2", 4137, "colgpa", "sat tothrs athlete verbmath hsize hsrank hsperc female white black"
    ),
    # rain of three days at Innsbruck, from the eleven members of an ensemble forecast
    "rain": table_of(
        "crch",
        "RainIbk",
        4971,
        "rain",
        "rainfc.1 rainfc.2 rainfc.3 rainfc.4 rainfc.5 rainfc.6 rainfc.7 rainfc.8 rainfc.9 rainfc.10 rainfc.11",
    ),
    # passengers of a station in Chicago, from those of twenty stations two weeks before, the weather and the games
    "chicago": table_of(
        "modeldata",
        "Chicago",
        5698,
        "ridership",
        "Austin Quincy_Wells Belmont Archer_35th Oak_Park Western Clark_Lake Clinton Merchandise_Mart Irving_Park "
        "Washington_Wells Harlem Monroe Polk Ashland Kedzie Addison Jefferson_Park Montrose California temp_min temp "
        "temp_max temp_change dew humidity pressure pressure_change wind wind_max gust gust_max percip percip_max "
        "weather_rain weather_snow weather_cloud weather_storm Blackhawks_Away Blackhawks_Home Bulls_Away Bulls_Home "
        "Bears_Away Bears_Home WhiteSox_Away WhiteSox_Home Cubs_Away Cubs_Home",
    ),
    # what a family owns, less its debts
    "assets": table_of("wooldridge", "k401ksubs", 9275, "nettfa", "e401k inc marr male age fsize p401k pira"),
    # the interest of a loan; the grade that the lender gave, and everything after it, is left out
    "loans": table_of(
        "openintro",
        "loans_full_schema",
        10000,
        "interest_rate",
        "emp_length state homeownership annual_income verified_income debt_to_income delinq_2y earliest_credit_line "
        "inquiries_last_12m total_credit_lines open_credit_lines total_credit_limit total_credit_utilized "
        "num_collections_last_12m num_historical_failed_to_pay total_collection_amount_ever "
        "current_installment_accounts accounts_opened_24m months_since_last_credit_inquiry num_satisfactory_accounts "
        "num_active_debit_accounts total_debit_limit num_total_cc_accounts num_open_cc_accounts "
        "num_cc_carrying_balance num_mort_accounts account_never_delinq_percent tax_liens public_record_bankrupt "
        "loan_purpose application_type loan_amount term issue_month",
    ),
    # how long the check of an R package takes; whether it was broken off is known only afterwards
    "checks": table_of(
        "modeldata",
        "check_times",
        13626,
        "check_time",
        "authors imports suggests depends Roxygen gh rforge descr r_count r_size ns_import ns_export s3_methods "
        "s4_methods doc_count doc_size src_count src_size data_count data_size testthat_count testthat_size",
    ),
    # the pressure in the middle of a storm, from its place, time and wind
    "storms": table_of("dplyr", "storms", 19537, "pressure", "year month day hour lat long status wind"),
    # the share of a Spanish household's money that goes into food
    "food": table_of("Ecdat", "BudgetFood", 23972, "wfood", "totexp age size town sex"),
    # the temperature at an hour; dew point and humidity nearly give it and are left out
    "weather": table_of(
        "nycflights13",
        "weather",
        26114,
        "temp",
        "origin month day hour wind_dir wind_speed precip pressure visib",
    ),
    # how people rate a film; the shares of each rating are left out
    "movies": table_of(
        "ggplot2movies",
        "movies",
        58788,
        "rating",
        "year length budget votes mpaa Action Animation Comedy Drama Documentary Romance Short",
    ),
}  # fmt: skip
"""The tables, from small to large."""


@dataclass(frozen=True, eq=False)
class Split:
    """A table, split; y is standardised, inputs are in their own units.

    Parameters
    ----------
    X, X_test : arrays
        With a column of 0 and 1 for each value of a text.
    native, native_test : arrays
        For methods that know categories and missing values: text is a code, a missing number nan.
    categories : list of int
        The columns of ``native`` that are codes.
    y, y_test : arrays
    """

    X: Values
    X_test: Values
    native: Values
    native_test: Values
    categories: list[int]
    y: Values
    y_test: Values


def split(name: str, i: int) -> Split:
    """A table, split with seed i."""
    columns, y = inputs_and_target(TABLES[name], MAX_ROWS)
    train, test = two_parts(y.size, i)
    X, (native, categories), y = encoded(columns, train), coded(columns, train), (y - y.mean()) / y.std()
    return Split(X[train], X[test], native[train], native[test], categories, y[train], y[test])
