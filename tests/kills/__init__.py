"""kill −9 at random moments of every command that writes: `python -m tests.kills`."""
