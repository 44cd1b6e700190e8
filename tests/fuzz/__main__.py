import os
import signal
import sys

from tests.fuzz.run import main

if __name__ == "__main__":
    os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")  # one process for each core is enough
    # Whoever ends the run ends its processes, too.
    signal.signal(signal.SIGTERM, lambda number, _: sys.exit(128 + number))
    sys.exit(main())
