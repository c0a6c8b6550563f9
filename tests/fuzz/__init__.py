"""A bounded, seeded fuzzer: `make fuzz`. Each case is repeated by its kind, its seed and number."""
