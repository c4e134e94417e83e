"""What an API server does with an object before it is stored: types, defaults, admission, validation.

`strict.StrictRules` is the door; a module for each family of kinds, a table of rules in each.
"""
