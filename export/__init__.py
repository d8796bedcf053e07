"""From a trained model to TF Serving: SavedModels, retriever, client."""
