"""A Python parent of several programs, as a test harness or a home-made supervisor is one; adopts what they lose."""

import ctypes
import json
import subprocess
import sys

PR_SET_CHILD_SUBREAPER = 36

if __name__ == "__main__":
    ctypes.CDLL(None).prctl(PR_SET_CHILD_SUBREAPER, 1)
    children = [subprocess.Popen(argv) for argv in json.loads(sys.argv[1])]
    for child in children:
        child.wait()
