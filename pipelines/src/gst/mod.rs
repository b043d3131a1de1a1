//! The only place where GStreamer types exist: plans become elements, bus and pads become typed events.

use std::sync::OnceLock;

pub mod capture;
mod elements;
mod encoder;
mod frame;
#[expect(unsafe_code, reason = "an allocator is a table of C functions")]
mod lent;
pub mod probe;
mod proof;
pub mod receive;
pub mod registry;
mod samples;
pub mod source;
mod tag;
mod trial;
pub mod window;

/// GStreamer could not be initialised; holds its message.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct InitError(pub String);

impl std::fmt::Display for InitError {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "GStreamer cannot start: {}", self.0)
    }
}

impl std::error::Error for InitError {}

/// Initialises GStreamer once; later calls return the first result.
///
/// # Errors
/// When the library or its registry cannot be loaded.
pub fn init() -> Result<(), InitError> {
    static DONE: OnceLock<Result<(), InitError>> = OnceLock::new();
    DONE.get_or_init(|| {
        gst::init().map_err(|error| InitError(error.to_string()))?;
        tag::register();
        Ok(())
    })
    .clone()
}
