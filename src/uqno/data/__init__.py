"""Where functions come from: files, solvers, stored sets."""
