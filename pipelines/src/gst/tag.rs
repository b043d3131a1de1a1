//! A note on a buffer that survives parser and decoder, so that a picture finds its access unit again.
//!
//! Timestamps alone do not do that: the decoder base class of GStreamer raises timestamps that go backwards
//! in reordered streams, and two pictures then share one.

use crossdesk_core::time::Monotonic;
use gst::meta::CustomMeta;

/// Name of the meta; has no tags, so every element copies it.
const NAME: &str = "CrossDeskUnitMeta";

/// What the note says.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Tag {
    /// Place in the receive order.
    pub sequence: u32,
    /// When the access unit arrived.
    pub received: Monotonic,
    /// True for an IDR access unit.
    pub idr: bool,
    /// False when only the tap is to see it.
    pub decode: bool,
}

/// Makes the meta known; once, after GStreamer's own initialisation.
pub(super) fn register() {
    CustomMeta::register_simple(NAME);
}

impl Tag {
    /// Writes the note on `buffer`.
    pub fn attach(self, buffer: &mut gst::BufferRef) {
        let mut meta = CustomMeta::add(buffer, NAME).expect("the meta is registered by init()");
        let structure = meta.mut_structure();
        structure.set("sequence", self.sequence);
        structure.set("received", self.received.as_micros());
        structure.set("flags", u32::from(self.idr) | u32::from(self.decode) << 1);
    }

    /// Reads the note from `buffer`, when it carries one.
    pub fn read(buffer: &gst::BufferRef) -> Option<Self> {
        let meta = CustomMeta::from_buffer(buffer, NAME).ok()?;
        let structure = meta.structure();
        let flags: u32 = structure.get("flags").ok()?;
        Some(Self {
            sequence: structure.get("sequence").ok()?,
            received: Monotonic::from_micros(structure.get("received").ok()?),
            idr: flags & 1 != 0,
            decode: flags & 2 != 0,
        })
    }
}
