//! Chat template and tokenizer: conversation to tokens.
