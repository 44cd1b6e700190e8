"""Support vector classifiers with squared hinge loss: supervised, transductive and safe."""

from neverworse.methods.svm._l2svm import L2SVMClassifier
from neverworse.methods.svm._safe import SafeSVMClassifier
from neverworse.methods.svm._transductive import TransductiveSVMClassifier

__all__ = ["L2SVMClassifier", "SafeSVMClassifier", "TransductiveSVMClassifier"]
