//! H.264 streams for tests: splitting, building and rewriting parameter sets, seeded damage.

mod damage;
mod generate;
mod rewrite;

pub use damage::Damage;
pub use generate::{SliceFields, pps_nal, random_sps, slice_nal, sps_of_size};
pub use rewrite::{annex_b, rewrite_sps, set_colour, set_crop, without_restriction};

pub use crate::h264::AccessUnits;
