"""Recurrent: deep, bidirectional stacks of cells; how directions merge; weights to and from torch.nn."""
