"""Image encoders: pictures in, regions out."""
