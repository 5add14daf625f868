//! Profiles: TOML to checked structs.
