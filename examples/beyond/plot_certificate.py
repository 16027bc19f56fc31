"""
When is a fit good enough? What the certified gap says
======================================================

Every solver stops somewhere, and most do not say how far from the goal. Here a fit ends with a proof: a bound on how
far its objective is from the best possible one. What is that worth to someone who reads the predictions? How small
must the gap be until they stop moving?
"""

# %%
# The data are 442 patients with diabetes, ten measurements and a score of the progress of their disease after a year
# (scikit-learn's ``load_diabetes``). We fit the quantiles of that score.
import matplotlib.pyplot as plt
import numpy as np
from sklearn.datasets import load_diabetes

from infinitask import InfiniteQuantileRegressor
from infinitask.plotting import LIGHT, ConvergenceDisplay

X, y = load_diabetes(return_X_y=True)
train, new = slice(0, 300), slice(300, None)
levels = np.linspace(0.05, 0.95, 19)

# %%
# A fit to a gap of one in a million, as an example and as the reference below. The solver keeps the best objective
# that it has seen and the best lower bound that it has proved; the gap is the distance between the two.
reference = InfiniteQuantileRegressor(tol=1e-6).fit(X[train], y[train])
print(f"{reference.solution_.n_evaluations} evaluations. {reference.solution_.message}")

# %%
# Now the same problem with wider tolerances. We look at the predictions for patients that the fit has not seen: how
# far are they from the reference, in points of the score?
tolerances = 10.0 ** np.arange(-1, -6, -1)
fits = [InfiniteQuantileRegressor(tol=tol).fit(X[train], y[train]) for tol in tolerances]
target = reference.predict(X[new], quantiles=levels)
moved = np.array([np.abs(fit.predict(X[new], quantiles=levels) - target) for fit in fits])
for tol, fit, change in zip(tolerances, fits, moved, strict=True):
    evaluations, score = fit.solution_.n_evaluations, fit.score(X[new], y[new])
    print(f"tol {tol:.0e}: {evaluations} evaluations, moved by {change.mean():.2f} points on average, D² {score:.4f}")

# %%
# Left, how the gap of the reference closed. Right, what the predictions did meanwhile, beside the typical distance of
# a patient from the median: the part of the score that no tolerance can explain.
plt.rcParams.update(LIGHT.settings())
fig, (left, right) = plt.subplots(1, 2, figsize=(11, 4.4), layout="constrained")
ConvergenceDisplay.from_estimator(reference, ax=left)
left.set_title("How the gap closed")
noise = np.median(np.abs(y[new] - reference.predict(X[new], quantiles=0.5)))
gaps = [fit.dual_gap_ for fit in fits]
right.axhline(noise, linestyle=":", color=LIGHT.ink, label="a patient, from the median")
right.plot(gaps, moved.max(axis=(1, 2)), marker="o", markersize=4, **LIGHT.curve(1), label="a prediction, at most")
right.plot(gaps, moved.mean(axis=(1, 2)), marker="o", markersize=4, **LIGHT.curve(0), label="a prediction, on average")
right.axvline(1e-4, linestyle="--", color=LIGHT.muted, linewidth=1.0, label="the default tolerance")
right.set(xscale="log", yscale="log", xlabel="certified gap, relative", ylabel="distance, points of the score")
right.set_title("What still moves")
right.invert_xaxis()
_ = right.legend()

# %%
# The first fits move predictions by a point or two, on a score in which patients differ from their median by dozens.
# At the default tolerance what still moves is a small part of a point. The share of the loss that is explained (D²)
# is the same to about one in a thousand throughout, so a wide tolerance is enough to compare models; a narrow one is
# for answers that must not depend on the solver. A gap seldom ends at the tolerance: it falls in steps, and the first
# step below it ends the fit. A fit that misses its tolerance warns.
