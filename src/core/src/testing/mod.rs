//! Generators, damage and oracles for tests of this and other crates (feature `testing`).

pub mod h264;
pub mod link;
pub mod oracles;
mod seeded;

pub use seeded::Seeded;
