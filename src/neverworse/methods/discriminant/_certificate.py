"""What is proved about the likelihood of a classifier, in numbers and in words."""

from __future__ import annotations

from dataclasses import dataclass

from neverworse.projection import Certificate
from neverworse.projection.certificate.certificate import EXACT


@dataclass(frozen=True)
class LikelihoodCertificate(Certificate):
    """What is proved about the likelihood of a classifier against its supervised baseline.

    A `Certificate` whose losses are negative log-likelihoods: sums of -log p(x, k) over the rows x
    with their classes k (weighted, and penalised if there is a penalty). All attributes mean the
    same, and `distance` is "likelihood".

    `duality_gap` is how much more the worst case could be improved at most, relative to the
    improvement.
    """

    def _loss(self) -> str:
        return ("penalised " if self.penalty else "") + "negative log-likelihood"

    def _penalty(self) -> str:
        return ""  # said by the name of the loss

    def _how(self) -> str:
        if not self.n_unlabeled:
            return ""
        labels = f"Most pessimistic labels: {self._counts()}."
        gap = f"relative duality gap {self.duality_gap:.1g}"
        if self.converged and self.duality_gap <= EXACT:
            return f"{labels} No other parameters guarantee more: {gap}."
        if self.converged:
            return f"{labels} No other parameters guarantee noticeably more."
        how = "was stopped early" if self.stopped_early else "made no more progress"
        return f"{labels} The solver {how}, at a {gap}; what is said above holds all the same."
