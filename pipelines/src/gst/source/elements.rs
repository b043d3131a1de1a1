//! Small pieces every source graph is made of, and what GStreamer's errors mean here.

use std::sync::Arc;

use bytes::Bytes;
use crossdesk_core::error::ErrorCode;
use gst::prelude::*;
use gst_app::{AppSink, AppSinkCallbacks};

use super::port::Port;
use crate::plan::source::SourceFailure;

/// What every source yields.
pub(in crate::gst) const UNIT_CAPS: &str = "video/x-h264,stream-format=byte-stream,alignment=au";

/// A pipeline that is taken down when it goes out of scope, on the thread that owns it.
pub(in crate::gst) struct Pipeline(pub(in crate::gst) gst::Pipeline);

impl Drop for Pipeline {
    fn drop(&mut self) {
        if self.0.set_state(gst::State::Null).is_err() {
            tracing::warn!("a source pipeline did not stop cleanly");
        }
    }
}

/// One element by factory name.
pub(in crate::gst) fn make(factory: &str) -> Result<gst::Element, SourceFailure> {
    gst::ElementFactory::make(factory).build().map_err(|_| {
        let reason = format!("the GStreamer element {factory} is not installed");
        SourceFailure::lasting(ErrorCode::PluginMissing, reason)
    })
}

/// `h264parse` with SPS and PPS before every IDR picture when `repeat_headers`.
pub(in crate::gst) fn parser(repeat_headers: bool) -> Result<gst::Element, SourceFailure> {
    let parser = make("h264parse")?;
    if repeat_headers {
        parser.set_property("config-interval", -1i32);
    }
    Ok(parser)
}

/// The end of every graph. `queue` access units wait in it at most; then upstream waits.
pub(in crate::gst) fn unit_sink(queue: u32) -> Result<AppSink, SourceFailure> {
    let caps = UNIT_CAPS
        .parse::<gst::Caps>()
        .map_err(|error| broken(error.to_string()))?;
    Ok(AppSink::builder()
        .caps(&caps)
        .sync(false)
        .async_(false)
        .max_buffers(queue)
        .build())
}

/// Delivers every access unit of `sink` to `port` on the streaming thread.
pub(super) fn deliver(sink: &AppSink, port: &Arc<Port>) {
    let port = Arc::clone(port);
    let callbacks = AppSinkCallbacks::builder().new_sample(move |sink| {
        let sample = sink.pull_sample().map_err(|_| gst::FlowError::Eos)?;
        if let Some((data, keyframe)) = unit(&sample) {
            port.unit(data, keyframe);
        }
        Ok(gst::FlowSuccess::Ok)
    });
    sink.set_callbacks(callbacks.build());
}

/// The bytes of an access unit, shared with GStreamer, and whether it starts a group of pictures.
pub(in crate::gst) fn unit(sample: &gst::Sample) -> Option<(Bytes, bool)> {
    let buffer = sample.buffer_owned()?;
    let keyframe = !buffer.flags().contains(gst::BufferFlags::DELTA_UNIT);
    let mapped = buffer.into_mapped_buffer_readable().ok()?;
    (!mapped.is_empty()).then(|| (Bytes::from_owner(mapped), keyframe))
}

/// Adds and links a chain of elements.
pub(in crate::gst) fn chain(
    pipeline: &gst::Pipeline,
    elements: &[&gst::Element],
) -> Result<(), SourceFailure> {
    pipeline
        .add_many(elements)
        .map_err(|error| broken(error.to_string()))?;
    gst::Element::link_many(elements).map_err(|error| broken(error.to_string()))
}

/// A graph that could not be built from elements that exist: our mistake or an odd installation.
pub(in crate::gst) fn broken(reason: impl Into<String>) -> SourceFailure {
    SourceFailure::lasting(ErrorCode::Internal, reason)
}

/// What an error message on the bus means.
pub(in crate::gst) fn failure(message: &gst::message::Error) -> SourceFailure {
    let error = message.error();
    let message = sentence(error.message(), message.debug().as_deref());
    if let Some(kind) = error.kind::<gst::ResourceError>() {
        return match kind {
            gst::ResourceError::NotAuthorized => SourceFailure::lasting(
                ErrorCode::AuthenticationFailed,
                format!("the server refused the credentials ({message})"),
            ),
            gst::ResourceError::NotFound => SourceFailure::passing(ErrorCode::SourceRefused, message),
            gst::ResourceError::Busy => SourceFailure::passing(ErrorCode::SourceUnreachable, message),
            gst::ResourceError::Settings => SourceFailure::lasting(ErrorCode::SourceInvalid, message),
            _ => SourceFailure::passing(ErrorCode::SourceUnreachable, message),
        };
    }
    if error.is::<gst::StreamError>() {
        return SourceFailure::passing(ErrorCode::ConnectionLost, message);
    }
    match error.kind::<gst::CoreError>() {
        Some(gst::CoreError::MissingPlugin) => SourceFailure::lasting(ErrorCode::PluginMissing, message),
        _ => SourceFailure::passing(ErrorCode::ConnectionLost, message),
    }
}

/// What an error says beyond its general sentence, or that sentence.
pub(in crate::gst) fn detail(message: &gst::message::Error) -> String {
    let error = message.error();
    let text = error.message().trim().trim_end_matches('.');
    detail_of(message.debug().as_deref()).unwrap_or_else(|| text.to_owned())
}

/// The error in words. The debug text's first line is a place in the source code; its last one often says
/// what really happened, such as a refused connection, and never holds credentials: they are properties.
fn sentence(text: &str, debug: Option<&str>) -> String {
    let text = text.trim().trim_end_matches('.');
    match detail_of(debug) {
        Some(detail) => format!("{text}: {detail}"),
        None => text.to_owned(),
    }
}

fn detail_of(debug: Option<&str>) -> Option<String> {
    let (_, detail) = debug?.trim().split_once('\n')?;
    let last = detail.lines().next_back()?.trim().trim_end_matches('.');
    (!last.is_empty()).then(|| last.to_owned())
}

#[cfg(test)]
mod tests {
    use super::sentence;

    #[test]
    fn the_last_line_of_the_debug_text_is_told() {
        let debug = "../x.c(7): open (): /A:b\nFailed to connect. (Connection refused)";
        let told = sentence("Could not open resource.", Some(debug));
        assert_eq!(
            told,
            "Could not open resource: Failed to connect. (Connection refused)"
        );
        assert_eq!(sentence("Gone.", Some("../x.c(7): open ()")), "Gone");
        assert_eq!(sentence("Gone.", None), "Gone");
    }
}
