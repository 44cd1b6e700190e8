"""The array types that the package speaks."""

from typing import Any

import numpy as np
from numpy.typing import NDArray

Vector = NDArray[np.float64]
Matrix = NDArray[np.float64]
Indices = NDArray[np.intp]
Mask = NDArray[np.bool_]
AnyArray = NDArray[Any]
# One number, or one for each class.
Scalars = float | Vector
