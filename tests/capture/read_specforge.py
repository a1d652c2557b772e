"""Read a directory of samples with SpecForge's own reader and print what it sees; its package has to be on the path."""

from __future__ import annotations

import json
import sys

from specforge.runtime.data_plane.feature_store import load_feature_file
from specforge.runtime.data_plane.offline_reader import OfflineManifestReader

references = OfflineManifestReader(sys.argv[1], validate_files=True).read()
samples = {}
for reference in references:
    path = reference.feature_store_uri.removeprefix("file://")
    samples[path] = {
        "tokens": reference.num_tokens,
        "specs": {name: [list(spec.shape), spec.dtype] for name, spec in reference.feature_specs.items()},
        "ids": load_feature_file(path)["input_ids"].tolist(),
    }
print(json.dumps(samples))
