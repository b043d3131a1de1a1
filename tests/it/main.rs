//! The one integration test binary.

mod docs;
mod fuzz_inputs;
mod protocol;
mod streams;
