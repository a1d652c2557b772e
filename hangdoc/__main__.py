"""`python -m hangdoc`: the command line, where its script is not on PATH."""

from hangdoc.cli.entry import main

if __name__ == "__main__":
    main()
