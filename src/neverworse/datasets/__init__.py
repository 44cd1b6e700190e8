"""The data sets of the paper, and generators of artificial ones."""

from neverworse.datasets._generators import (
    make_g241c,
    make_g241d,
    make_helpful,
    make_misleading,
    make_neutral,
    make_two_gaussians,
)
from neverworse.datasets._loaders import (
    PAPER_DATASETS,
    load_bci,
    load_coil2,
    load_diabetes,
    load_digit1,
    load_g241c,
    load_g241d,
    load_haberman,
    load_ionosphere,
    load_mammography,
    load_paper_dataset,
    load_parkinsons,
    load_secstr,
    load_sonar,
    load_spect,
    load_spectf,
    load_transfusion,
    load_usps,
    load_wdbc,
)
from neverworse.datasets._sources import DataNotFoundError, data_folders, user_cache

__all__ = ["make_g241c", "make_g241d", "make_helpful", "make_misleading", "make_neutral"]
__all__ += ["make_two_gaussians"]
__all__ += ["PAPER_DATASETS", "load_bci", "load_coil2", "load_diabetes", "load_digit1"]
__all__ += ["load_g241c", "load_g241d", "load_haberman", "load_ionosphere", "load_mammography"]
__all__ += ["load_paper_dataset", "load_parkinsons", "load_sonar", "load_spect", "load_spectf"]
__all__ += ["load_secstr", "load_transfusion", "load_usps", "load_wdbc"]
__all__ += ["DataNotFoundError", "data_folders", "user_cache"]
