"""Capture of hidden states inside the layer loop: runs in the server's interpreter, where nothing of hangdoc is.

hangdoc copies these files to a private directory under the name `hangdoc_capture`, so every import here is relative, of
the standard library or, late, of the server's torch. Python 3.10 and newer.
"""
