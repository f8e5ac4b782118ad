"""`python -m tests.mutations`, from the root of the repository."""

import pathlib
import sys

from tests.mutations import catalogue
from tests.mutations import runner

if __name__ == '__main__':
  root = pathlib.Path(__file__).resolve().parents[2]
  sys.exit(runner.main(sys.argv[1:], catalogue.MUTATIONS, root))
