"""Layer-wise relevance propagation: rules applied to the operations of a forward pass."""
