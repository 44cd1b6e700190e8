"""Support vector classifiers with squared hinge loss: supervised, transductive and safe."""

from neverworse.estimators.svm._l2svm import L2SVMClassifier
from neverworse.estimators.svm._safe import SafeSVMClassifier
from neverworse.estimators.svm._transductive import TransductiveSVMClassifier

__all__ = ["L2SVMClassifier", "SafeSVMClassifier", "TransductiveSVMClassifier"]
