import os
import sys

from tests.fuzz.run import main

if __name__ == "__main__":
    os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")  # one process for each core is enough
    sys.exit(main())
