"""Arrays as the whole package writes them in its signatures."""

import numpy as np
import numpy.typing as npt

BoolArray = npt.NDArray[np.bool_]
FloatArray = npt.NDArray[np.float64]
IntArray = npt.NDArray[np.int64]
Votes = npt.NDArray[np.int16]  # short: a row of 128 votes is read in four cache lines
