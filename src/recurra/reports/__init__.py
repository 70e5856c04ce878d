"""Finished work in words, tables and pages: reports, comparisons, explanations, speed."""
