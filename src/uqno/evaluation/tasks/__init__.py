"""What a comparison is about: `contract` says what is asked of a task, then a file for each.

Nothing is imported here, so that reading a record does not need torch.
"""
