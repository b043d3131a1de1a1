//! The one integration test binary.

mod docs;
