//! A decoded picture as a reference to the decoder's buffer.

use std::sync::Weak;

use crossdesk_core::units::PixelSize;
use gst_video::prelude::*;

use super::lent;
use super::receive::Inbox;
use crate::picture::{Frame, MapError, Plane, Planes};
use crate::plan::shape::{StreamShape, visible_origin};

/// A decoder's buffer and where in it the visible picture lies.
pub(super) struct GstFrame {
    buffer: gst::Buffer,
    info: gst_video::VideoInfo,
    origin: (u32, u32),
    size: PixelSize,
    complain: Option<(Weak<Inbox>, u32)>,
}

impl GstFrame {
    /// The picture in `sample`, which must be one of a stream shaped like `shape`.
    ///
    /// # Errors
    /// A reason, when it has no picture of that size in a known layout.
    pub fn new(sample: &gst::Sample, shape: &StreamShape) -> Result<Self, String> {
        let caps = sample.caps().ok_or("gives pictures without a format")?;
        let info =
            gst_video::VideoInfo::from_caps(caps).map_err(|_| "gives pictures in an unknown format")?;
        let buffer = sample.buffer_owned().ok_or("gives empty pictures")?;
        let (left, top, size) = match buffer.meta::<gst_video::VideoCropMeta>() {
            Some(crop) => {
                let (x, y, width, height) = crop.rect();
                (x, y, PixelSize::new(width, height))
            }
            None => (0, 0, PixelSize::new(info.width(), info.height())),
        };
        let (x, y) = visible_origin(shape, size).ok_or_else(|| {
            let (is, should) = (size, shape.visible);
            format!(
                "gives pictures of {}x{} instead of {}x{}",
                is.width, is.height, should.width, should.height
            )
        })?;
        Ok(Self {
            buffer,
            info,
            origin: (left + x, top + y),
            size: shape.visible,
            complain: None,
        })
    }

    /// Reports a later mapping failure to `inbox` as a failure of try `attempt`.
    pub fn complaining_to(mut self, inbox: Weak<Inbox>, attempt: u32) -> Self {
        self.complain = Some((inbox, attempt));
        self
    }

    /// Calls `read` with the visible samples.
    fn read(&self, read: &mut dyn FnMut(Planes<'_>)) -> Result<(), MapError> {
        let frame = gst_video::VideoFrameRef::from_buffer_ref_readable(&self.buffer, &self.info)
            .map_err(|_| MapError("the decoder's memory cannot be mapped"))?;
        read(self.planes(&frame)?);
        Ok(())
    }

    /// The visible picture as a buffer of `colorimetry` that shares the decoder's memory; `None` when that is
    /// not ordinary memory and needs a download instead.
    pub fn shared(&self, colorimetry: &gst_video::VideoColorimetry) -> Option<(gst::Buffer, gst::Caps)> {
        let memory = self.buffer.peek_memory(0);
        if !memory.is_type("SystemMemory") && !memory.is_type(lent::MEMORY_TYPE) {
            return None;
        }
        let visible = gst_video::VideoInfo::builder(self.info.format(), self.size.width, self.size.height)
            .colorimetry(colorimetry)
            .build()
            .ok()?;
        let (mut offsets, strides) = match self.buffer.meta::<gst_video::VideoMeta>() {
            Some(meta) => (meta.offset().to_vec(), meta.stride().to_vec()),
            None => (self.info.offset().to_vec(), self.info.stride().to_vec()),
        };
        let format = self.info.format_info();
        for (plane, offset) in offsets.iter_mut().enumerate() {
            // The first component stored in a plane says how its samples relate to luma.
            let component = format.plane().iter().position(|of| *of as usize == plane)? as u8;
            let column = format.scale_width(component, self.origin.0) as usize;
            let row = format.scale_height(component, self.origin.1) as usize;
            let bytes = usize::try_from(format.pixel_stride()[component as usize]).ok()?;
            *offset += row * usize::try_from(strides[plane]).ok()? + column * bytes;
        }
        let mut buffer = self.buffer.copy_region(gst::BufferCopyFlags::MEMORY, ..).ok()?;
        let (format, size) = (self.info.format(), self.size);
        let flags = gst_video::VideoFrameFlags::empty();
        let fresh = buffer.get_mut()?;
        gst_video::VideoMeta::add_full(fresh, flags, format, size.width, size.height, &offsets, &strides)
            .ok()?;
        Some((buffer, visible.to_caps().ok()?))
    }

    fn planes<'a>(
        &self,
        frame: &'a gst_video::VideoFrameRef<&gst::BufferRef>,
    ) -> Result<Planes<'a>, MapError> {
        use gst_video::VideoFormat as Format;
        let y = self.plane(frame, 0, Sampling::LUMA)?;
        Ok(match self.info.format() {
            Format::Nv12 => Planes::Nv12 {
                y,
                uv: self.plane(frame, 1, Sampling::new(2, 2, 2))?,
            },
            Format::I420 => Planes::I420 {
                y,
                u: self.plane(frame, 1, Sampling::new(2, 2, 1))?,
                v: self.plane(frame, 2, Sampling::new(2, 2, 1))?,
            },
            Format::Yv12 => Planes::I420 {
                y,
                u: self.plane(frame, 2, Sampling::new(2, 2, 1))?,
                v: self.plane(frame, 1, Sampling::new(2, 2, 1))?,
            },
            Format::Y42b => Planes::I422 {
                y,
                u: self.plane(frame, 1, Sampling::new(2, 1, 1))?,
                v: self.plane(frame, 2, Sampling::new(2, 1, 1))?,
            },
            Format::Y444 => Planes::I444 {
                y,
                u: self.plane(frame, 1, Sampling::LUMA)?,
                v: self.plane(frame, 2, Sampling::LUMA)?,
            },
            Format::Gray8 => Planes::Gray { y },
            _ => return Err(MapError("the decoder's sample layout is not supported")),
        })
    }

    fn plane<'a>(
        &self,
        frame: &'a gst_video::VideoFrameRef<&gst::BufferRef>,
        index: u32,
        sampling: Sampling,
    ) -> Result<Plane<'a>, MapError> {
        const SHORT: MapError = MapError("the decoder's memory is smaller than its picture");
        let data = frame.plane_data(index).map_err(|_| SHORT)?;
        let stride = usize::try_from(frame.plane_stride()[index as usize]).map_err(|_| SHORT)?;
        let row_bytes = self.size.width.div_ceil(sampling.across) as usize * sampling.bytes;
        let rows = self.size.height.div_ceil(sampling.down) as usize;
        let start = (self.origin.1 / sampling.down) as usize * stride
            + (self.origin.0 / sampling.across) as usize * sampling.bytes;
        let needed = (rows.max(1) - 1) * stride + row_bytes;
        let data = data
            .get(start..)
            .filter(|data| data.len() >= needed)
            .ok_or(SHORT)?;
        Ok(Plane { data, stride })
    }
}

/// How a plane's samples relate to luma samples.
#[derive(Clone, Copy)]
struct Sampling {
    across: u32,
    down: u32,
    bytes: usize,
}

impl Sampling {
    const LUMA: Self = Self::new(1, 1, 1);

    /// One sample for `across` x `down` luma samples, in `bytes` bytes.
    const fn new(across: u32, down: u32, bytes: usize) -> Self {
        Self { across, down, bytes }
    }
}

impl Frame for GstFrame {
    fn map(&self, read: &mut dyn FnMut(Planes<'_>)) -> Result<(), MapError> {
        let result = self.read(read);
        if let (Err(error), Some((inbox, attempt))) = (&result, &self.complain)
            && let Some(inbox) = inbox.upgrade()
        {
            inbox.report_unreadable(*attempt, error.0);
        }
        result
    }
}
