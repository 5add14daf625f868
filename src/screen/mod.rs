//! Pixels: smart resize, patches, PNG, thumbnails.
