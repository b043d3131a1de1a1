//! Reply lines, byte for byte.

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use bytes::Bytes;
use serde::Serialize;

use crate::error::ErrorCode;
use crate::units::{PixelRect, PixelSize};

use super::operation::ActionResult;
use super::request::DecodePath;
use super::{
    MAX_REQUEST_BYTES, MAX_RESPONSE_BYTES, PROTOCOL, VIDEO_DECODERS, VIDEO_PROTOCOLS, VIDEO_TRANSPORT,
};

/// How long a ticket is good for, in milliseconds (protocol, "Authorization and transport").
const TICKET_EXPIRES_MS: u32 = 15_000;

#[derive(Serialize)]
struct Success<'a, T> {
    id: u64,
    ok: bool,
    result: &'a T,
}

#[derive(Serialize)]
struct Failure {
    id: Option<u64>,
    ok: bool,
    error: FailureBody,
}

#[derive(Serialize)]
struct FailureBody {
    code: &'static str,
    retryable: bool,
    side_effect_possible: bool,
}

/// A successful reply line.
pub(super) fn success<T: Serialize>(id: u64, result: &T) -> Bytes {
    line(&Success { id, ok: true, result })
}

/// An error reply line; `id` is `None` when the request's could not be read.
pub(super) fn failure(id: Option<u64>, code: ErrorCode) -> Bytes {
    let error = FailureBody {
        code: code.as_str(),
        retryable: code.retryable(),
        side_effect_possible: code.side_effect_possible(),
    };
    line(&Failure { id, ok: false, error })
}

fn line<T: Serialize>(value: &T) -> Bytes {
    let mut bytes = serde_json::to_vec(value).expect("replies hold only strings, numbers, lists and structs");
    bytes.push(b'\n');
    Bytes::from(bytes)
}

/// An image reply line; the picture goes into the line once, without passing through a JSON string escaper.
pub(super) fn image(id: u64, png: &[u8], metadata: &Metadata<'_>) -> Bytes {
    let metadata = serde_json::to_string(metadata).expect("metadata holds only strings and numbers");
    let head = format!("{{\"id\":{id},\"ok\":true,\"result\":{{\"mime_type\":\"image/png\",\"data\":\"");
    let mut text = String::with_capacity(head.len() + png.len().div_ceil(3) * 4 + metadata.len() + 32);
    text.push_str(&head);
    STANDARD.encode_string(png, &mut text);
    text.push_str("\",\"metadata\":");
    text.push_str(&metadata);
    text.push_str("}}\n");
    Bytes::from(text)
}

/// What an image shows.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub(super) struct Metadata<'a> {
    pub(super) generation: u32,
    pub(super) geometry_epoch: u32,
    pub(super) frame_id: u64,
    pub(super) display_index: u8,
    pub(super) source_size: PixelSize,
    pub(super) source_rect: PixelRect,
    pub(super) image_size: PixelSize,
    pub(super) frame_age_ms: u64,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) observation_id: Option<&'a str>,
}

/// Limits and abilities.
#[derive(Serialize)]
pub(super) struct Hello {
    protocol: &'static str,
    image_formats: [&'static str; 1],
    action_completion: &'static str,
    human_pause: bool,
    max_request_bytes: usize,
    max_response_bytes: usize,
    operation_cache_entries: usize,
    operation_cache_ms: u128,
    #[serde(flatten)]
    video: Option<HelloVideo>,
}

#[derive(Serialize)]
struct HelloVideo {
    video_transport: &'static str,
    video_protocols: [&'static str; 2],
    video_decoders: [&'static str; 2],
}

impl Hello {
    /// Live video is advertised only when it is there.
    pub(super) fn new(video_ws: bool) -> Self {
        Self {
            protocol: PROTOCOL,
            image_formats: ["image/png"],
            action_completion: "submitted",
            human_pause: true,
            max_request_bytes: MAX_REQUEST_BYTES,
            max_response_bytes: MAX_RESPONSE_BYTES,
            operation_cache_entries: super::operation::CAPACITY,
            operation_cache_ms: super::operation::RETENTION.as_millis(),
            video: video_ws.then_some(HelloVideo {
                video_transport: VIDEO_TRANSPORT,
                video_protocols: VIDEO_PROTOCOLS,
                video_decoders: VIDEO_DECODERS,
            }),
        }
    }
}

/// Reply to `connect`, `display`, `disconnect` and `exit`.
#[derive(Serialize)]
pub(super) struct Moved {
    pub(super) state: &'static str,
    pub(super) generation: Option<u32>,
    pub(super) display_index: Option<u8>,
}

/// Reply to `control` and `viewer_control`.
#[derive(Serialize)]
pub(super) struct Permissions {
    pub(super) control_allowed: bool,
    pub(super) control_enabled: bool,
    pub(super) human_paused: bool,
}

/// Reply to `cancel`.
#[derive(Serialize)]
pub(super) struct Cancelled {
    pub(super) request_id: u64,
    pub(super) cancelled: bool,
}

/// Reply to `video_revoke`.
#[derive(Serialize)]
pub(super) struct Revoked {
    pub(super) revoked: bool,
}

/// Reply to `preview` when there is nothing newer.
#[derive(Serialize)]
pub(super) struct Unchanged {
    pub(super) unchanged: bool,
    pub(super) frame_age_ms: u64,
    pub(super) stale: bool,
    pub(super) generation: u32,
    pub(super) frame_id: u64,
}

/// Reply to `video_open`.
#[derive(Serialize)]
pub(super) struct VideoOpened {
    url: String,
    transport: &'static str,
    protocol: &'static str,
    decoder: &'static str,
    expires_in_ms: u32,
}

impl VideoOpened {
    pub(super) fn new(port: u16, path: DecodePath, decoder: &'static str) -> Self {
        Self {
            url: format!("ws://127.0.0.1:{port}/api/video"),
            transport: VIDEO_TRANSPORT,
            protocol: path.protocol(),
            decoder,
            expires_in_ms: TICKET_EXPIRES_MS,
        }
    }
}

/// Reply to `action`.
#[derive(Serialize)]
pub(super) struct ActionReply<'a> {
    operation_id: &'a str,
    status: &'static str,
    retryable: bool,
    side_effect_possible: bool,
    #[serde(skip_serializing_if = "Option::is_none")]
    generation: Option<u32>,
    #[serde(skip_serializing_if = "Option::is_none")]
    after_frame_id: Option<u64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    code: Option<&'static str>,
}

impl<'a> ActionReply<'a> {
    /// Still running: asking again is harmless, the input is not undone.
    pub(super) fn in_progress(operation_id: &'a str) -> Self {
        Self {
            operation_id,
            status: "in_progress",
            retryable: true,
            side_effect_possible: true,
            generation: None,
            after_frame_id: None,
            code: None,
        }
    }

    /// What came of it.
    pub(super) fn done(operation_id: &'a str, result: &ActionResult) -> Self {
        let (status, retryable, side_effect_possible) = result.status.facts();
        Self {
            operation_id,
            status,
            retryable,
            side_effect_possible,
            generation: Some(result.generation),
            after_frame_id: Some(result.after_frame_id),
            code: result.code.map(ErrorCode::as_str),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn text(bytes: &Bytes) -> &str {
        std::str::from_utf8(bytes).expect("UTF-8")
    }

    #[test]
    fn hello_is_the_documented_line() {
        let expected = concat!(
            r#"{"id":1,"ok":true,"result":{"protocol":"crossdesk-automation/1","image_formats":["image/png"],"#,
            r#""action_completion":"submitted","human_pause":true,"max_request_bytes":65536,"#,
            r#""max_response_bytes":4194304,"operation_cache_entries":128,"operation_cache_ms":300000}}"#,
            "\n"
        );
        assert_eq!(text(&success(1, &Hello::new(false))), expected);
    }

    #[test]
    fn hello_advertises_video_after_the_documented_members() {
        let line = success(1, &Hello::new(true));
        let tail = concat!(
            r#""operation_cache_ms":300000,"video_transport":"loopback-websocket/1","#,
            r#""video_protocols":["h264-annexb/1","nv12/1"],"video_decoders":["auto","software"]}}"#,
            "\n"
        );
        assert!(text(&line).ends_with(tail), "{}", text(&line));
    }

    #[test]
    fn errors_are_the_documented_lines() {
        let denied = r#"{"id":2,"ok":false,"error":{"code":"CONTROL_DENIED","retryable":false,"side_effect_possible":false}}"#;
        assert_eq!(
            text(&failure(Some(2), ErrorCode::ControlDenied)),
            format!("{denied}\n")
        );
        let null = r#"{"id":null,"ok":false,"error":{"code":"INVALID_JSON","retryable":false,"side_effect_possible":false}}"#;
        assert_eq!(text(&failure(None, ErrorCode::InvalidJson)), format!("{null}\n"));
    }

    #[test]
    fn the_largest_image_fits_the_response_limit() {
        let metadata = Metadata {
            generation: u32::MAX,
            geometry_epoch: u32::MAX,
            frame_id: u64::MAX,
            display_index: 63,
            source_size: PixelSize::new(8192, 8192),
            source_rect: PixelRect::whole(PixelSize::new(8192, 8192)),
            image_size: PixelSize::new(2048, 2048),
            frame_age_ms: 2000,
            observation_id: Some("obs_4294967295_18446744073709551615"),
        };
        let line = image(u64::MAX, &vec![0xff; 2 * 1024 * 1024], &metadata);
        assert!(line.len() <= MAX_RESPONSE_BYTES);
        let value: serde_json::Value = serde_json::from_slice(&line).expect("JSON");
        assert_eq!(value["result"]["mime_type"], "image/png");
        assert_eq!(value["result"]["metadata"]["source_size"]["width"], 8192);
    }
}
