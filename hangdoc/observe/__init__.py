"""The observation: joins launch, probes, trace and diagnosis, for one look and for hours."""
