"""Run the command line as ``python -m neverworse``."""

import sys

from neverworse.cli import main

if __name__ == "__main__":
    sys.exit(main())
