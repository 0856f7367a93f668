"""SPICE (Anderson et al. 2016): a scene graph of a caption against those of its references."""
