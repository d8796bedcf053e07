"""Exported SavedModels as graphs: what each kind computes, and signatures."""
