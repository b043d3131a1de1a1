//! The one integration test binary.

mod docs;
mod tidy;
