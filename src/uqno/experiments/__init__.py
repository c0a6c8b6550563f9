"""Which method's band is best? `presets` says what is compared, `tasks` on which functions,
`methods` trains it, `experiment` runs it in the folder that `runs` describes, `conclusions` sums
it up; `profile` keeps what matters of each function, `measuring` measures it, `results` is the record
of a run, `table` shows it in words, `paper` holds the paper's numbers.

Nothing is imported here, so that reading a record needs neither torch nor matplotlib.
"""
