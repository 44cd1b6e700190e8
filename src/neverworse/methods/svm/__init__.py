"""Support vector classifiers with squared hinge loss: supervised, transductive and safe."""
