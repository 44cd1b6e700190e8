"""A callback of scikit-learn for tests of any estimator."""


class Callback:
    """Does something at the end of a stage."""

    def __init__(self, act):
        self.act = act

    def setup(self, estimator, context):
        pass

    def teardown(self, estimator, context):
        pass

    def on_fit_task_begin(self, estimator, context):
        pass

    def on_fit_task_end(self, estimator, context):
        return self.act(context.task_name)


def interrupt(stage):
    raise KeyboardInterrupt
