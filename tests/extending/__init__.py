"""Extensions written outside the package: each one file of at most 80 lines, and a test of it."""
