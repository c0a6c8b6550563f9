"""Which method's band is best? A comparison of methods on a task.

A task is a folder (`darcy`, `cars`) behind the contract in `task`, of which the command line needs
no more than its `description`; a method is a record in `methods`.
`settings` says what a comparison is made of, `runs` describes the folder it is worked out in,
`workshop` trains operators and models, `experiment` does it all, with the processes of `jobs`.
`profiles` keeps what matters of each function, `measuring` measures it, `conclusions` sums it up
in the record of `results`, which `table` shows in words; `pictures` and `exploring` show functions
in their bands. `extensions` loads tasks and methods from outside the package.

Nothing is imported here, so that reading a record needs neither torch nor matplotlib.
"""
