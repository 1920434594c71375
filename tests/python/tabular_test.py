"""Tabular models made by skl2onnx give what onnxruntime gives: labels equal, probabilities and values within
1e-5, with and without ZipMap.

scikit-learn and skl2onnx lie in the folder CORELANE_TABULAR_DIR, where `./dev test` puts them
(requirements/tabular.txt), or in the environment; where they are missing the test fails, unless
CORELANE_SKIP_PACKAGES=1 leaves it out on purpose.
"""
import os
import sys
import unittest
import warnings

import numpy as np

sys.path.append(os.environ.get("CORELANE_TABULAR_DIR", ""))
SKIPPED = os.environ.get("CORELANE_SKIP_PACKAGES") == "1"
if SKIPPED:
    unittest.main(module=unittest, argv=["tabular_test.py", "-q", "unittest.mock"], exit=False)
    sys.exit(0)

import onnxruntime  # noqa: E402
from skl2onnx import to_onnx  # noqa: E402
from skl2onnx.common.data_types import FloatTensorType, StringTensorType  # noqa: E402
from sklearn import (calibration, cluster, compose, discriminant_analysis, ensemble, feature_extraction,  # noqa: E402
                     linear_model, naive_bayes, neighbors, neural_network, pipeline, preprocessing, svm, tree)

import corelane  # noqa: E402

RNG = np.random.default_rng(7)
X = RNG.normal(size=(120, 4)).astype(np.float32)
CLASSES = (X[:, 0] + X[:, 1] > 0).astype(np.int64) + (X[:, 2] > 1)
TEXT_CLASSES = np.array(["low", "mid", "high"])[CLASSES]
VALUES = (X @ np.array([1, -2, 0.5, 3], np.float32) + 1).astype(np.float32)
COLORS = np.array(["red", "green", "blue", "gr\u00fcn"])[RNG.integers(0, 4, (120, 2))]
WORDS = np.array([" ".join(words) for words in np.array(["good", "bad", "film", "plot", "the"])[
    RNG.integers(0, 5, (120, 6))]])

CLASSIFIERS = {
    "logistic": linear_model.LogisticRegression(),
    "sgd": linear_model.SGDClassifier(loss="log_loss", random_state=0),
    "decision tree": tree.DecisionTreeClassifier(max_depth=5, random_state=0),
    "extra tree": tree.ExtraTreeClassifier(max_depth=5, random_state=0),
    "random forest": ensemble.RandomForestClassifier(10, max_depth=5, random_state=0),
    "extra trees": ensemble.ExtraTreesClassifier(10, max_depth=5, random_state=0),
    "gradient boosting": ensemble.GradientBoostingClassifier(n_estimators=10, random_state=0),
    "calibrated": calibration.CalibratedClassifierCV(linear_model.LogisticRegression(), cv=2),
    "ada boost": ensemble.AdaBoostClassifier(n_estimators=5, random_state=0),
    "bagging": ensemble.BaggingClassifier(n_estimators=5, random_state=0),
    "voting": ensemble.VotingClassifier([("a", linear_model.LogisticRegression()),
                                         ("b", tree.DecisionTreeClassifier(max_depth=4, random_state=0))],
                                        voting="soft", flatten_transform=False),
    "neighbors": neighbors.KNeighborsClassifier(5),
    "gaussian bayes": naive_bayes.GaussianNB(),
    "bernoulli bayes": naive_bayes.BernoulliNB(),
    "support vectors": svm.SVC(probability=True, random_state=0),
    "network": neural_network.MLPClassifier((8,), max_iter=200, random_state=0),
    "discriminant": discriminant_analysis.LinearDiscriminantAnalysis(),
    "scaled": pipeline.make_pipeline(preprocessing.StandardScaler(), preprocessing.PolynomialFeatures(2),
                                     linear_model.LogisticRegression(max_iter=500)),
}
REGRESSORS = {
    "linear": linear_model.LinearRegression(),
    "ridge": linear_model.Ridge(),
    "random forest": ensemble.RandomForestRegressor(10, max_depth=5, random_state=0),
    "gradient boosting": ensemble.GradientBoostingRegressor(n_estimators=10, random_state=0),
    "lasso": linear_model.Lasso(0.1),
    "extra trees": ensemble.ExtraTreesRegressor(10, max_depth=5, random_state=0),
    "network": neural_network.MLPRegressor(hidden_layer_sizes=(8,), max_iter=200, random_state=0),
    "support vectors": svm.SVR(),
    "neighbors": neighbors.KNeighborsRegressor(5),
}


class Tabular(unittest.TestCase):
    def check(self, model, feed):
        """The same outputs of both, by type: labels equal, numbers within 1e-5."""
        data = model.SerializeToString()
        reference = onnxruntime.InferenceSession(data, providers=["CPUExecutionProvider"])
        own = corelane.InferenceSession(data)
        for one, other in ((reference.get_inputs(), own.get_inputs()), (reference.get_outputs(), own.get_outputs())):
            self.assertEqual([(n.name, n.type, n.shape) for n in one], [(n.name, n.type, n.shape) for n in other])
        for expected, given in zip(reference.run(None, feed), own.run(None, feed)):
            self.same(expected, given)
        return own

    def same(self, expected, given):
        self.assertIs(type(given), type(expected))
        if isinstance(expected, list):
            self.assertEqual(len(given), len(expected))
            for one, other in zip(expected, given):
                self.same(one, other)
        elif isinstance(expected, dict):
            self.assertEqual(list(given), list(expected))
            np.testing.assert_allclose(list(given.values()), list(expected.values()), rtol=1e-5, atol=1e-5)
        else:
            self.assertEqual((given.dtype, given.shape), (expected.dtype, expected.shape))
            if expected.dtype.kind == "f":
                np.testing.assert_allclose(given, expected, rtol=1e-5, atol=1e-5)
            else:
                np.testing.assert_array_equal(given, expected)

    def test_classifiers_with_both_kinds_of_labels_with_and_without_zip_map(self):
        for name, made in CLASSIFIERS.items():
            for labels in (CLASSES, TEXT_CLASSES):
                fitted = made.fit(X, labels)
                for zipmap in (True, False):
                    with self.subTest(name, labels=labels.dtype.kind, zipmap=zipmap):
                        self.check(to_onnx(fitted, X[:1], options={id(fitted): {"zipmap": zipmap}}), {"X": X})

    def test_regressors(self):
        for name, made in REGRESSORS.items():
            with self.subTest(name):
                self.check(to_onnx(made.fit(X, VALUES), X[:1]), {"X": X})

    def test_clusters(self):
        self.check(to_onnx(cluster.KMeans(3, n_init=2, random_state=0).fit(X), X[:1]), {"X": X})

    def test_columns_of_strings_are_encoded(self):
        encoder = preprocessing.OneHotEncoder(handle_unknown="ignore")
        for step in (encoder, preprocessing.OrdinalEncoder()):
            with self.subTest(type(step).__name__):
                fitted = pipeline.make_pipeline(step, linear_model.LogisticRegression()).fit(COLORS, CLASSES)
                model = to_onnx(fitted, initial_types=[("c", StringTensorType([None, 2]))])
                self.check(model, {"c": COLORS.astype(object)})
                self.check(model, {"c": COLORS})

    def test_numbers_and_strings_together(self):
        both = compose.ColumnTransformer([("n", preprocessing.StandardScaler(), [0, 1]),
                                          ("c", preprocessing.OneHotEncoder(), [2])])
        table = np.empty((120, 3), object)
        table[:, :2], table[:, 2] = X[:, :2], COLORS[:, 0]
        fitted = pipeline.make_pipeline(both, ensemble.RandomForestClassifier(5, random_state=0)).fit(
            table, TEXT_CLASSES)
        types = [("a", FloatTensorType([None, 1])), ("b", FloatTensorType([None, 1])),
                 ("c", StringTensorType([None, 1]))]
        self.check(to_onnx(fitted, initial_types=types), {"a": X[:, :1], "b": X[:, 1:2], "c": COLORS[:, :1]})

    def test_labels_are_encoded(self):
        fitted = preprocessing.LabelEncoder().fit(COLORS[:, 0])
        self.check(to_onnx(fitted, initial_types=[("c", StringTensorType([None]))]), {"c": COLORS[:, 0]})

    def test_words_are_counted_and_weighed(self):
        for made in (feature_extraction.text.TfidfVectorizer, feature_extraction.text.CountVectorizer):
            with self.subTest(made.__name__):
                # In lower case is a matter of locales, of which the machine may have none.
                vectorizer = made(token_pattern="[a-z]+", lowercase=False)
                fitted = pipeline.make_pipeline(vectorizer, linear_model.LogisticRegression()).fit(WORDS, TEXT_CLASSES)
                model = to_onnx(fitted, initial_types=[("w", StringTensorType([None, 1]))])
                self.check(model, {"w": WORDS.reshape(-1, 1)})

    def test_dicts_are_vectorized(self):
        rows = [{"a": 1.0, "b": 2.0}, {"b": 3.0}]
        from skl2onnx.common.data_types import DictionaryType
        fitted = feature_extraction.DictVectorizer(sparse=False).fit(rows)
        types = [("d", DictionaryType(StringTensorType([1]), FloatTensorType([1])))]
        model = to_onnx(fitted, initial_types=types)
        for row in rows:
            self.check(model, {"d": row})


if __name__ == "__main__":
    warnings.simplefilter("ignore")
    unittest.main()
