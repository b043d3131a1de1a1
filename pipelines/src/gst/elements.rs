//! Elements from plans: properties with the types they have, links that say what failed.

use gst::glib;
use gst::prelude::*;
use gst_app::{AppSink, AppSrc};

use super::lent::{Lender, LentPool};
use crate::plan::decode::{Allocation, DecodePlan, UNIT_CAPS, Value};

/// Creates an element and sets properties from their text form.
pub(super) fn make(factory: &str, properties: &[(&str, &str)]) -> Result<gst::Element, String> {
    let element = gst::ElementFactory::make(factory)
        .build()
        .map_err(|_| format!("GStreamer element {factory} is missing"))?;
    for (name, value) in properties {
        element.set_property_from_str(name, value);
    }
    Ok(element)
}

/// A source for whole access units. Its queue is not bounded by itself: whoever pushes looks at its level.
pub(super) fn unit_source() -> AppSrc {
    AppSrc::builder()
        .is_live(true)
        .format(gst::Format::Time)
        .block(false)
        .max_buffers(0)
        .max_bytes(0)
        .caps(&unit_caps())
        .build()
}

/// A pad of no element from which a thread of ours pushes whole access units of a live stream.
pub(super) fn unit_entry() -> gst::Pad {
    gst::Pad::builder(gst::PadDirection::Src)
        .name("units")
        .query_function(|pad, parent, query| {
            if let gst::QueryViewMut::Latency(latency) = query.view_mut() {
                // Some decoders hold nothing back for the sake of output order when they know they are live.
                latency.set(true, gst::ClockTime::ZERO, gst::ClockTime::NONE);
                return true;
            }
            gst::Pad::query_default(pad, parent, query)
        })
        .build()
}

/// Makes an entry ready to push; false when what follows refuses.
pub(super) fn open_entry(entry: &gst::Pad) -> bool {
    let segment = gst::FormattedSegment::<gst::ClockTime>::new();
    entry.set_active(true).is_ok()
        && entry.push_event(gst::event::StreamStart::new("units"))
        && entry.push_event(gst::event::Caps::new(&unit_caps()))
        && entry.push_event(gst::event::Segment::new(&segment))
}

fn unit_caps() -> gst::Caps {
    UNIT_CAPS
        .parse()
        .expect("the caps of access units are well formed")
}

/// A filter that holds the parser to whole access units in Annex B form.
pub(super) fn unit_caps_filter() -> Result<gst::Element, String> {
    make("capsfilter", &[("caps", UNIT_CAPS)])
}

/// What the picture sink accepts.
pub(super) fn picture_caps(plan: &DecodePlan) -> gst::Caps {
    plan.picture_caps()
        .parse()
        .expect("the caps of pictures are well formed")
}

/// Answers the decoder's question about memory in place of `sink`, which says nothing by itself.
pub(super) fn answer_allocation(sink: &AppSink, allocation: Allocation) {
    if allocation == Allocation::Packed {
        return;
    }
    let pad = sink.static_pad("sink").expect("a sink has a sink pad");
    pad.add_probe(gst::PadProbeType::QUERY_DOWNSTREAM, move |_, info| {
        let Some(gst::QueryViewMut::Allocation(query)) = info.query_mut().map(gst::QueryRef::view_mut) else {
            return gst::PadProbeReturn::Ok;
        };
        if allocation == Allocation::Lent {
            let (caps, _) = query.get();
            let size = caps.and_then(|caps| gst_video::VideoInfo::from_caps(caps).ok());
            if let Some(size) = size.and_then(|info| u32::try_from(info.size()).ok()) {
                query.add_allocation_pool(Some(&LentPool::default()), size, 0, 0);
                query.add_allocation_param(Some(&Lender::default()), gst::AllocationParams::default());
            }
        }
        query.add_allocation_meta::<gst_video::VideoMeta>(None);
        gst::PadProbeReturn::Handled
    });
}

/// The decoder of `plan` with its properties, and the element that follows it, if any.
pub(super) fn decoder(plan: &DecodePlan) -> Result<Vec<gst::Element>, String> {
    let decoder = make(plan.factory, &[])?;
    for (name, value) in &plan.properties {
        set_if_present(&decoder, name, *value);
    }
    let mut elements = vec![decoder];
    if let Some(download) = plan.download() {
        elements.push(make(download, &[])?);
    }
    Ok(elements)
}

/// Sets a property that only some versions of an element have, or know this value for.
fn set_if_present(element: &gst::Element, name: &str, value: Value) {
    let Some(spec) = element.find_property(name) else {
        return;
    };
    let text = value.to_string();
    if let Ok(value) = glib::Value::deserialize_with_pspec(&text, &spec) {
        element.set_property_from_value(name, &value);
    } else {
        tracing::debug!(
            property = name,
            value = text,
            "the element does not know this value"
        );
    }
}

/// Adds elements to a pipeline and links them in a row.
pub(super) fn add_and_link(pipeline: &gst::Pipeline, elements: &[gst::Element]) -> Result<(), String> {
    pipeline.add_many(elements).map_err(|error| error.to_string())?;
    gst::Element::link_many(elements).map_err(|error| error.to_string())
}
