"""Many documents: files of them, encoded parts, shards, approximate indexes."""
