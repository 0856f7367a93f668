"""Caption metrics, equal to the field's reference tools, without Java."""
