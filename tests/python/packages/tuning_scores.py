"""surfaces: what scikit-learn's models would score with given settings, by small tabular networks and a tree."""
from itertools import product

from package_report import report
from surfaces.test_functions.machine_learning import GradientBoostingRegressorFunction, KNeighborsClassifierFunction

neighbours = KNeighborsClassifierFunction(dataset="iris", cv=5, use_surrogate=True)
boosting = GradientBoostingRegressorFunction(dataset="diabetes", cv=3, use_surrogate=True)
report(scores=[neighbours({"n_neighbors": n, "algorithm": a}) for n, a in product((3, 9, 60), ("auto", "brute"))] +
       [boosting({"n_estimators": n, "max_depth": d}) for n, d in product((20, 80), (2, 6))])
