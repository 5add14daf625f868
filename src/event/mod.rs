//! The vocabulary of the event stream and its fold.
