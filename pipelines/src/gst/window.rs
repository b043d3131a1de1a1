//! A native window that shows decoded pictures straight from the decoder's memory.
//!
//! A second, small graph: `appsrc ! videoconvert ! autovideosink`. The converter passes buffers through when
//! the sink takes the decoder's layout. Pictures in ordinary memory are references to the decoder's buffers;
//! those in GPU memory are downloaded and packed once.

use std::any::Any;
use std::sync::{Mutex, PoisonError};
use std::time::Duration;

use gst::prelude::*;
use gst_video::NavigationEvent;

use crossdesk_core::media::{Color, Matrix};

use super::frame::GstFrame;
use crate::picture::{MapError, Picture};
use crate::pixels::pack_nv12;

/// What happened to a window.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum WindowEvent {
    /// The person closed it, or pressed `q` or Esc in it.
    Closed,
    /// It cannot go on; the text is for people.
    Failed(String),
}

/// An open window.
pub struct Window {
    pipeline: gst::Pipeline,
    input: gst_app::AppSrc,
    bus: gst::Bus,
    /// The title, until the first picture was sent: events before its format would be out of order.
    title: Mutex<Option<gst::Event>>,
}

impl Window {
    /// Opens a window; it appears with its first picture.
    ///
    /// # Errors
    /// A sentence for people, when there is no display or no plugin that can draw on it.
    pub fn open(title: &str) -> Result<Self, String> {
        super::init().map_err(|error| error.to_string())?;
        let pipeline = gst::Pipeline::new();
        // The newest picture only: an old one would make the window lag behind.
        let input = gst_app::AppSrc::builder()
            .is_live(true)
            .format(gst::Format::Time)
            .do_timestamp(true)
            .max_buffers(1)
            .leaky_type(gst_app::AppLeakyType::Downstream)
            .build();
        let convert = element("videoconvert")?;
        let sink = element("autovideosink")?;
        sink.set_property("sync", false);
        let elements = [input.upcast_ref(), &convert, &sink];
        pipeline.add_many(elements).map_err(|error| error.to_string())?;
        gst::Element::link_many(elements).map_err(|error| error.to_string())?;
        let bus = pipeline.bus().expect("a pipeline has a bus");
        let window = Self {
            pipeline,
            input,
            bus,
            title: Mutex::new(Some(title_event(title))),
        };
        window.start(&sink)?;
        Ok(window)
    }

    fn start(&self, sink: &gst::Element) -> Result<(), String> {
        let started = self.pipeline.set_state(gst::State::Playing);
        if started.is_err() || is_pretending(sink) {
            let reason = match self.poll(Duration::ZERO) {
                Some(WindowEvent::Failed(reason)) => reason,
                _ => "no window can be opened here".to_owned(),
            };
            return Err(reason);
        }
        Ok(())
    }

    /// Shows `picture` next, instead of one that was not drawn yet; never blocks.
    ///
    /// # Errors
    /// When its memory cannot be read.
    pub fn show(&self, picture: &Picture) -> Result<(), MapError> {
        let frame: &dyn Any = &*picture.frame;
        let shared = frame
            .downcast_ref::<GstFrame>()
            .and_then(|frame| frame.shared(&colorimetry(picture.color)));
        let (buffer, caps) = match shared {
            Some(shared) => shared,
            None => copied(picture)?,
        };
        if self.input.caps().as_ref() != Some(&caps) {
            self.input.set_caps(Some(&caps));
        }
        // A refusal means that the window is closing, which the bus says too.
        let _ = self.input.push_buffer(buffer);
        let title = self.title.lock().unwrap_or_else(PoisonError::into_inner).take();
        if let Some(title) = title {
            self.input.send_event(title);
        }
        Ok(())
    }

    /// Waits up to `timeout` for something to happen to the window.
    pub fn poll(&self, timeout: Duration) -> Option<WindowEvent> {
        let timeout = gst::ClockTime::try_from(timeout).unwrap_or(gst::ClockTime::SECOND);
        let kinds = [gst::MessageType::Error, gst::MessageType::Element];
        let message = self.bus.timed_pop_filtered(timeout, &kinds)?;
        match message.view() {
            gst::MessageView::Error(error) => Some(failure(error)),
            _ => is_farewell(&message).then_some(WindowEvent::Closed),
        }
    }
}

impl Drop for Window {
    fn drop(&mut self) {
        // A failure to stop leaves nothing to do; the process is about to end.
        let _ = self.pipeline.set_state(gst::State::Null);
    }
}

fn title_event(title: &str) -> gst::Event {
    let mut tags = gst::TagList::new();
    tags.get_mut()
        .expect("a new list has one owner")
        .add::<gst::tags::Title>(&title, gst::TagMergeMode::Replace);
    gst::event::Tag::new(tags)
}

fn element(name: &str) -> Result<gst::Element, String> {
    gst::ElementFactory::make(name)
        .build()
        .map_err(|_| format!("the GStreamer element `{name}` is missing; `make setup` installs it"))
}

/// True when the automatic sink found nothing to draw on and swallows pictures instead.
fn is_pretending(sink: &gst::Element) -> bool {
    let Some(bin) = sink.downcast_ref::<gst::Bin>() else {
        return false;
    };
    bin.children().iter().any(|child| {
        child
            .factory()
            .is_some_and(|factory| factory.name().starts_with("fake"))
    })
}

/// Sinks report a closed window as a resource that is not there any more.
fn failure(error: &gst::message::Error) -> WindowEvent {
    let error = error.error();
    if error.matches(gst::ResourceError::NotFound) && error.message().contains("closed") {
        WindowEvent::Closed
    } else {
        WindowEvent::Failed(error.message().to_owned())
    }
}

fn is_farewell(message: &gst::Message) -> bool {
    let Ok(navigation) = gst_video::NavigationEventMessage::parse(message) else {
        return false;
    };
    matches!(
        NavigationEvent::parse(&navigation.event),
        Ok(NavigationEvent::KeyPress { key, .. }) if matches!(key.as_str(), "q" | "Q" | "Escape")
    )
}

/// The picture packed into a buffer of its own, for memory that the window cannot read.
fn copied(picture: &Picture) -> Result<(gst::Buffer, gst::Caps), MapError> {
    const NO_MEMORY: MapError = MapError("no memory for a picture");
    let size = picture.size.even();
    let info = gst_video::VideoInfo::builder(gst_video::VideoFormat::Nv12, size.width, size.height)
        .colorimetry(&colorimetry(Color::BT601_LIMITED))
        .build()
        .map_err(|_| MapError("the picture's size cannot be shown"))?;
    let mut packed = vec![0; info.size()];
    picture
        .frame
        .map(&mut |planes| pack_nv12(&planes, size, picture.color, &mut packed))?;
    let caps = info.to_caps().map_err(|_| NO_MEMORY)?;
    Ok((gst::Buffer::from_mut_slice(packed), caps))
}

/// How samples map to colours, in GStreamer's words. Transfer and primaries follow the matrix, as is usual
/// where only the matrix is known.
fn colorimetry(color: Color) -> gst_video::VideoColorimetry {
    use gst_video::{
        VideoColorMatrix as M, VideoColorPrimaries as P, VideoColorRange, VideoTransferFunction,
    };
    let range = if color.full_range {
        VideoColorRange::Range0_255
    } else {
        VideoColorRange::Range16_235
    };
    let (matrix, primaries) = match color.matrix {
        Matrix::Bt601 => (M::Bt601, P::Smpte170m),
        Matrix::Bt709 => (M::Bt709, P::Bt709),
        Matrix::Bt2020 => (M::Bt2020, P::Bt2020),
        Matrix::Smpte240 => (M::Smpte240m, P::Smpte240m),
        Matrix::Fcc => (M::Fcc, P::Bt470m),
    };
    gst_video::VideoColorimetry::new(range, matrix, VideoTransferFunction::Bt709, primaries)
}
