"""Training: recipes, one loop, one file per objective, checkpoints."""
