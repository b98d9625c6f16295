"""Rules that deal arrays and ranks out otherwise: axes, blocks or cyclic pieces, meshes."""
