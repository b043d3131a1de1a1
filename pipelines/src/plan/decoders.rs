//! The decoder table.
