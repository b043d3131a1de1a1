//! The plan of one receive graph: every element, property and bound, as data with a stable text form.

use std::fmt;

use super::decoders::{DecoderRow, Memory, Setting};
use super::replay;
use super::shape::StreamShape;

/// Caps of everything before the decoder. Without `alignment=au` the parser waits for the next access unit
/// before it lets one go: a whole picture of delay.
pub const UNIT_CAPS: &str = "video/x-h264,stream-format=byte-stream,alignment=au";

/// Sample layouts that [`Frame`](crate::picture::Frame) can show.
pub const FORMATS: &[&str] = &["NV12", "I420", "YV12", "Y42B", "Y444", "GRAY8"];

/// Most access units before the decoder: a replayed group and as many live ones. The worker skips decoding
/// before the queue could fill, so it never blocks the tap; this is the wall behind that rule.
pub const QUEUE_UNITS: u32 = 2 * replay::MAX_UNITS as u32;
/// Most bytes before the decoder; see [`QUEUE_UNITS`].
pub const QUEUE_BYTES: u32 = 2 * replay::MAX_BYTES as u32 + 4 * 1024 * 1024;
/// Most pictures between the decoder and the worker. Small, because each may be one of a device's few surfaces.
pub const SINK_PICTURES: u32 = 2;

/// A property value with its GStreamer type.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Value {
    /// Boolean.
    Bool(bool),
    /// Signed or unsigned number, whichever the property has.
    Int(i32),
    /// Enum or flags nick.
    Nick(&'static str),
}

impl fmt::Display for Value {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Bool(value) => write!(f, "{value}"),
            Self::Int(value) => write!(f, "{value}"),
            Self::Nick(value) => f.write_str(value),
        }
    }
}

/// What the picture sink tells a decoder about the memory it accepts.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Allocation {
    /// Nothing: pictures come row after row, at the price of a copy in most decoders. For pictures that do not
    /// start with the first decoded sample: `avdec_h264` of 1.22 forgets the offset of what it did not copy.
    Packed,
    /// Rows and planes may lie anywhere in the buffer: hardware decoders show their own memory.
    Strided,
    /// The same, and software decodes into our pool, whose pictures are shown while it predicts from them. Not
    /// for fields: the second is written into a frame that may be out already.
    Lent,
}

impl fmt::Display for Allocation {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Packed => "packed",
            Self::Strided => "strided",
            Self::Lent => "lent",
        })
    }
}

/// Everything that tells one receive graph from another.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct DecodePlan {
    /// GStreamer factory of the decoder.
    pub factory: &'static str,
    /// Decoder properties, in order; those the element lacks are left out when it is built.
    pub properties: Vec<(&'static str, Value)>,
    /// Memory types the picture sink accepts, best first.
    pub memory: &'static [Memory],
    /// What the picture sink answers when the decoder asks where to put them.
    pub allocation: Allocation,
}

impl DecodePlan {
    /// The plan for giving `shape` to the decoder of `row` on a machine with `cores` cores.
    pub fn new(row: &DecoderRow, shape: &StreamShape, cores: u32) -> Self {
        let value = |setting: Setting| match setting {
            Setting::Bool(value) => Value::Bool(value),
            Setting::Int(value) => Value::Int(value),
            Setting::Nick(nick) => Value::Nick(nick),
            Setting::Cores => Value::Int(i32::try_from(cores).unwrap_or(1).clamp(1, 16)),
            Setting::LowDelay => Value::Bool(shape.low_delay()),
            Setting::Compliance if shape.reorder_known() => Value::Nick("normal"),
            Setting::Compliance => Value::Nick("strict"),
        };
        Self {
            factory: row.factory,
            properties: row
                .settings
                .iter()
                .map(|&(name, setting)| (name, value(setting)))
                .collect(),
            memory: row.memory,
            allocation: if shape.starts_cropped() {
                Allocation::Packed
            } else if row.hardware || !shape.frames_only {
                Allocation::Strided
            } else {
                Allocation::Lent
            },
        }
    }

    /// The element that brings pictures into ordinary memory, where mapping alone cannot.
    pub fn download(&self) -> Option<&'static str> {
        (self.memory.first() == Some(&Memory::Vulkan)).then_some("vulkandownload")
    }

    /// Caps of the picture sink.
    pub fn picture_caps(&self) -> String {
        let formats = FORMATS.join(", ");
        let memory: &[Memory] = if self.download().is_some() {
            &[Memory::System]
        } else {
            self.memory
        };
        memory
            .iter()
            .map(|memory| match memory.caps_feature() {
                Some(feature) => format!("video/x-raw({feature}),format={{{formats}}}"),
                None => format!("video/x-raw,format={{{formats}}}"),
            })
            .collect::<Vec<_>>()
            .join("; ")
    }
}

impl fmt::Display for DecodePlan {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        writeln!(f, "(access units: {UNIT_CAPS})")?;
        writeln!(f, "  ! h264parse config-interval=-1 ! {UNIT_CAPS} ! tee name=t")?;
        writeln!(
            f,
            "t. ! appsink name=tap sync=false async=false max-buffers={SINK_PICTURES}"
        )?;
        write!(
            f,
            "t. ! queue max-size-buffers={QUEUE_UNITS} max-size-bytes={QUEUE_BYTES} max-size-time=0\n  ! {}",
            self.factory
        )?;
        for (name, value) in &self.properties {
            write!(f, " {name}={value}")?;
        }
        if let Some(download) = self.download() {
            write!(f, " ! {download}")?;
        }
        writeln!(
            f,
            "\n  ! appsink name=pictures sync=false async=false max-buffers={SINK_PICTURES} caps=\"{}\"\n  allocation: {}",
            self.picture_caps(),
            self.allocation
        )
    }
}

#[cfg(test)]
mod tests {
    use crossdesk_core::h264::Reorder;
    use expect_test::expect;

    use super::*;
    use crate::plan::decoders::row;
    use crate::plan::shape::tests::shape;

    fn plan(factory: &str, reorder: Reorder) -> String {
        let shape = StreamShape {
            reorder,
            ..shape(1920, 1080)
        };
        DecodePlan::new(row(factory).unwrap(), &shape, 2).to_string()
    }

    #[test]
    fn software_on_a_reorder_free_stream() {
        expect![[r#"
            (access units: video/x-h264,stream-format=byte-stream,alignment=au)
              ! h264parse config-interval=-1 ! video/x-h264,stream-format=byte-stream,alignment=au ! tee name=t
            t. ! appsink name=tap sync=false async=false max-buffers=2
            t. ! queue max-size-buffers=120 max-size-bytes=20971520 max-size-time=0
              ! avdec_h264 qos=false thread-type=slice max-threads=2 std-compliance=normal
              ! appsink name=pictures sync=false async=false max-buffers=2 caps="video/x-raw,format={NV12, I420, YV12, Y42B, Y444, GRAY8}"
              allocation: lent
        "#]].assert_eq(&plan("avdec_h264", Reorder::None));
    }

    #[test]
    fn a_stream_that_promises_nothing_gets_a_careful_decoder() {
        assert!(plan("avdec_h264", Reorder::Unknown).contains("std-compliance=strict"));
        assert!(plan("avdec_h264", Reorder::Frames(2)).contains("std-compliance=normal"));
        assert!(plan("vaapih264dec", Reorder::Frames(2)).contains("low-latency=false"));
    }

    #[test]
    fn hardware_memory_is_asked_for_first() {
        expect![[r#"
            (access units: video/x-h264,stream-format=byte-stream,alignment=au)
              ! h264parse config-interval=-1 ! video/x-h264,stream-format=byte-stream,alignment=au ! tee name=t
            t. ! appsink name=tap sync=false async=false max-buffers=2
            t. ! queue max-size-buffers=120 max-size-bytes=20971520 max-size-time=0
              ! vah264dec qos=false compliance=normal
              ! appsink name=pictures sync=false async=false max-buffers=2 caps="video/x-raw(memory:VAMemory),format={NV12, I420, YV12, Y42B, Y444, GRAY8}; video/x-raw,format={NV12, I420, YV12, Y42B, Y444, GRAY8}"
              allocation: strided
        "#]].assert_eq(&plan("vah264dec", Reorder::None));
        expect![[r#"
            (access units: video/x-h264,stream-format=byte-stream,alignment=au)
              ! h264parse config-interval=-1 ! video/x-h264,stream-format=byte-stream,alignment=au ! tee name=t
            t. ! appsink name=tap sync=false async=false max-buffers=2
            t. ! queue max-size-buffers=120 max-size-bytes=20971520 max-size-time=0
              ! vulkanh264dec qos=false compliance=normal ! vulkandownload
              ! appsink name=pictures sync=false async=false max-buffers=2 caps="video/x-raw,format={NV12, I420, YV12, Y42B, Y444, GRAY8}"
              allocation: strided
        "#]].assert_eq(&plan("vulkanh264dec", Reorder::None));
    }
}
