"""A program of no known engine with the same kinds of children."""

import actor

if __name__ == "__main__":
    actor.main()
