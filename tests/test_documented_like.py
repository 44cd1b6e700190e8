"""Docstrings that share entries, and what `help()` shows of every public estimator."""

import inspect
import re

import pytest
from sklearn.base import BaseEstimator

import neverworse
from neverworse import methods
from neverworse._words import documented_like

PUBLIC = [getattr(room, name) for room in (neverworse, methods) for name in room.__all__]
ESTIMATORS = [one for one in PUBLIC if isinstance(one, type) and issubclass(one, BaseEstimator)]


class First:
    """Something.

    Parameters
    ----------
    alpha : float
        Penalty, or

        - 0: none.
    beta : int
        Of the first.

    Attributes
    ----------
    coef_ : array
    """


class Second:
    """Something else.

    Parameters
    ----------
    beta : int
        Of the second.
    """


def test_entries_come_from_the_first_source_that_has_them():
    @documented_like(Second, First)
    class Third:
        r"""A formula, :math:`\frac{a}{b}`.

        Parameters
        ----------
        gamma : str
        {alpha, beta}

        Attributes
        ----------
        {coef_}
        """

    assert Third.__doc__.splitlines()[2:] == [
        "Parameters",
        "----------",
        "gamma : str",
        "alpha : float",
        "    Penalty, or",
        "",
        "    - 0: none.",
        "beta : int",
        "    Of the second.",
        "",
        "Attributes",
        "----------",
        "coef_ : array",
    ]
    assert Third.__doc__.startswith(r"A formula, :math:`\frac{a}{b}`.")


def test_whole_sections():
    @documented_like(Second, First)
    class Third:
        """Something like both.

        {Parameters}

        {Attributes}
        """

    head = ["Something like both.", ""]
    parameters = ["Parameters", "----------", "beta : int", "    Of the second.", ""]
    attributes = ["Attributes", "----------", "coef_ : array"]
    assert Third.__doc__.splitlines() == [*head, *parameters, *attributes]


def test_an_entry_that_no_source_has_is_an_error():
    with pytest.raises(KeyError, match="nonsense"):

        @documented_like(First)
        class Third:
            """Something.

            Parameters
            ----------
            {nonsense}
            """


def entries(docstring, section):
    """The names of the entries of a section, each with the lines below it."""
    text = inspect.cleandoc(docstring)
    found = re.search(rf"^{section}\n-+\n(.*?)(?=\n\n\S[^\n]*\n-+\n|\Z)", text, re.S | re.M)
    blocks = re.split(r"\n(?=\S)", found[1])
    return {name: block for block in blocks for name in block.split(" : ")[0].split(", ")}


@pytest.mark.parametrize("estimator", ESTIMATORS, ids=lambda one: one.__name__)
def test_every_parameter_of_an_estimator_has_a_type_and_a_description(estimator):
    documented = entries(estimator.__doc__, "Parameters")
    assert set(documented) == set(estimator._get_param_names())
    for name, entry in documented.items():
        assert re.match(r"[\w, ]+ : \S.*\n +\S", entry), name


@pytest.mark.parametrize("estimator", ESTIMATORS, ids=lambda one: one.__name__)
def test_attributes_of_an_estimator_have_types(estimator):
    for name, entry in entries(estimator.__doc__, "Attributes").items():
        assert re.match(r"\w+_\Z", name)
        assert " : " in entry.splitlines()[0], name
    assert not re.search(r"^\{[\w, ]+\}$", estimator.__doc__, re.M)  # all places are filled
