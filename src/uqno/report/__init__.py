"""What a run looks like: `figures` draws every figure from `results.json` alone."""
