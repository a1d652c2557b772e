"""Stand-in for torchao, which SGLang 0.5.8 imports and the tiny model does not use."""

import _mock

__version__ = "0.9.0"
__getattr__ = _mock.install("torchao")
