"""The data sets of the paper, and generators of artificial ones."""

from neverworse.datasets._generators import (
    make_g241c,
    make_g241d,
    make_helpful,
    make_misleading,
    make_neutral,
    make_two_gaussians,
)
from neverworse.datasets._loaders import PAPER_DATASETS, load_paper_dataset, load_secstr, loader
from neverworse.datasets._sources import DataNotFoundError, data_folders, user_cache

__all__ = ["make_g241c", "make_g241d", "make_helpful", "make_misleading", "make_neutral"]
__all__ += ["DataNotFoundError", "data_folders", "make_two_gaussians", "user_cache"]
__all__ += ["PAPER_DATASETS", "load_bci", "load_coil2", "load_diabetes", "load_digit1"]
__all__ += ["load_g241c", "load_g241d", "load_haberman", "load_ionosphere", "load_mammography"]
__all__ += ["load_paper_dataset", "load_parkinsons", "load_sonar", "load_spect", "load_spectf"]
__all__ += ["load_secstr", "load_transfusion", "load_usps", "load_wdbc"]

load_bci = loader("BCI")
load_coil2 = loader("COIL2")
load_diabetes = loader("Diabetes")
load_digit1 = loader("Digit1")
load_g241c = loader("g241c")
load_g241d = loader("g241d")
load_haberman = loader("Haberman")
load_ionosphere = loader("Ionosphere")
load_mammography = loader("Mammography")
load_parkinsons = loader("Parkinsons")
load_sonar = loader("Sonar")
load_spect = loader("SPECT")
load_spectf = loader("SPECTF")
load_transfusion = loader("Transfusion")
load_usps = loader("USPS")
load_wdbc = loader("WDBC")
