//! The command line; everything it does lives in the library.

fn main() {}
