"""What must hold of every captioner, objective, method and encoder, ours or a plug-in's."""
