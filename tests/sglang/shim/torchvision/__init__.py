"""Stand-in for torchvision: PyPI's build is linked to CUDA, and text models never use it."""

import _mock

__version__ = "0.28.0"
__getattr__ = _mock.install("torchvision")
