//! Replies from a file or from an expert, instead of a model.
