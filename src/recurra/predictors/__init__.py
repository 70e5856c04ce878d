"""Predictors: how the tasks answer from the functions of an exported model. Nothing here needs torch to answer."""
