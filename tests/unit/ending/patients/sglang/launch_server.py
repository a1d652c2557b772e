"""Stands for SGLang's launcher: its command line is one."""

import os

import acts

if __name__ == "__main__":
    acts.main(os.environ["HANGDOC_TEST_ACT"])
