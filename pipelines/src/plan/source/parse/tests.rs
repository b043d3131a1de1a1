//! What each form of `--source` means, and what is refused.

use super::*;

fn file(text: &str) -> FileSource {
    match parse(text) {
        Ok(SourceSpec::File(file)) => file,
        other => panic!("{text}: {other:?}"),
    }
}

fn test_source(text: &str) -> TestSource {
    match parse(text) {
        Ok(SourceSpec::Test(test)) => test,
        other => panic!("{text}: {other:?}"),
    }
}

fn rtp_source(text: &str) -> RtpSource {
    match parse(text) {
        Ok(SourceSpec::Rtp(rtp)) => rtp,
        other => panic!("{text}: {other:?}"),
    }
}

fn refusal(text: &str) -> String {
    parse(text).expect_err(text).to_string()
}

#[test]
fn file_names_are_tried_as_written_and_then_decoded() {
    let cases: &[(&str, &[&str], bool)] = &[
        ("file:clip.h264", &["clip.h264"], false),
        ("clip.h264", &["clip.h264"], false),
        ("./a:b.mp4?once", &["./a:b.mp4"], true),
        ("file:/srv/clip.h264?once", &["/srv/clip.h264"], true),
        ("file:///srv/my%20clip.mkv", &["/srv/my clip.mkv"], false),
        ("file://localhost/a%3Fonce", &["/a?once"], false),
        ("file:my%20clip.mp4", &["my%20clip.mp4", "my clip.mp4"], false),
        ("file:100%.h264", &["100%.h264"], false),
        ("file:what?.h264#1", &["what?.h264#1"], false),
        ("file:a?once=1", &["a?once=1"], false),
        ("file:a?once?once", &["a?once"], true),
        ("FILE:a", &["a"], false),
        (r"C:\clip.mp4", &[r"C:\clip.mp4"], false),
    ];
    for (text, expected, once) in cases {
        let expected: Vec<PathBuf> = expected.iter().map(PathBuf::from).collect();
        let got = file(text);
        assert_eq!((got.candidates, got.once), (expected, *once), "{text}");
    }
}

#[test]
fn session_descriptions_are_recognised_by_scheme_or_name() {
    for text in [
        "sdp:cam.txt",
        "file:cam.sdp",
        "/srv/cam.SDP",
        "file:///srv/cam.sdp",
    ] {
        assert!(matches!(parse(text), Ok(SourceSpec::Sdp(_))), "{text}");
    }
}

#[test]
fn the_test_source_has_defaults_and_options() {
    let plain = test_source("test:");
    assert_eq!(plain.size, PixelSize::new(1920, 1080));
    assert_eq!((plain.rate, plain.gop), (FrameRate { num: 60, den: 1 }, 60));
    assert_eq!(plain, test_source("test:?pattern=desktop"));
    let full = test_source("test:?size=3840x2160&fps=30&gop=15&bitrate=8000&slices=4&frames=9");
    assert_eq!(full.size, PixelSize::new(3840, 2160));
    assert_eq!((full.rate.num, full.gop, full.slices), (30, 15, 4));
    assert_eq!((full.bitrate.bits(), full.frames), (8_000_000, Some(9)));
}

#[test]
fn the_test_source_refuses_what_it_cannot_do() {
    for text in [
        "test:?size=1921x1080",
        "test:?size=14x16",
        "test:?size=8194x16",
        "test:?size=8192x8192",
        "test:?size=640",
        "test:?size=+640x480",
        "test:?size=640x480x2",
        "test:?fps=0",
        "test:?fps=241",
        "test:?fps=-1",
        "test:?fps=30&fps=30",
        "test:?fps",
        "test:?pattern=ball",
        "test:?speed=2",
        "test:fps=30",
        "test:?gop=0",
        "test:?bframes=2",
    ] {
        assert!(!refusal(text).is_empty());
    }
}

#[test]
fn rtp_takes_an_address_and_options() {
    let plain = rtp_source("rtp://127.0.0.1:5004");
    assert_eq!(
        (plain.host.as_str(), plain.port, plain.payload_type),
        ("127.0.0.1", 5004, None)
    );
    let full = rtp_source("rtp://[::1]:5004/?pt=97&latency=0");
    assert_eq!((full.host.as_str(), full.payload_type), ("::1", Some(97)));
    assert_eq!(full.latency, Duration::ZERO);
    for text in [
        "rtp://127.0.0.1",
        "rtp:5004",
        "rtp://:5004",
        "rtp://a:0",
        "rtp://a:65536",
        "rtp://a:1?pt=128",
    ] {
        assert!(!refusal(text).is_empty());
    }
    assert!(refusal("rtp://a:1?codec=x").contains("known are pt, latency"));
}

#[test]
fn rtsp_keeps_the_address_and_refuses_credentials_without_repeating_them() {
    for (text, host, port) in [
        ("rtsp://cam/stream?a=b#c", "cam", 554),
        ("rtsp://[fe80::1]:8554/x", "fe80::1", 8554),
        ("rtspt://cam:5540", "cam", 5540),
        ("rtsps://cam/", "cam", 322),
        ("rtsp://h/a@b", "h", 554),
    ] {
        let expected = RtspSource {
            uri: text.to_owned(),
            host: host.to_owned(),
            port,
        };
        assert_eq!(parse(text), Ok(SourceSpec::Rtsp(expected)), "{text}");
    }
    for text in [
        "rtsp://ann:hush@cam/x",
        "rtsp://hush@cam",
        "rtsp://ann:hu/hush@cam/x",
    ] {
        let refusal = refusal(text);
        assert!(
            refusal.contains("password descriptor") && !refusal.contains("hush"),
            "{refusal}"
        );
    }
    for text in [
        "rtsp:cam",
        "rtsp://",
        "rtsp://cam:x/",
        "rtsp://ca m/",
        "rtsp://[::1]x/",
    ] {
        assert!(!refusal(text).is_empty());
    }
}

#[test]
fn the_path_of_an_rtsp_address_is_told_without_its_query() {
    for (text, path) in [
        ("rtsp://cam/live/1?key=hush#x", "/live/1"),
        ("rtsp://cam", "/"),
        ("rtsp://cam?key=hush/x", "/"),
    ] {
        let Ok(SourceSpec::Rtsp(source)) = parse(text) else {
            panic!("{text}");
        };
        assert_eq!(source.path(), path, "{text}");
    }
}

#[test]
fn nonsense_is_refused() {
    for text in [
        "",
        "file:",
        "sdp:",
        "file://host/x",
        "file://x",
        "file:///a%zz",
        "file:///a%00",
        "a\nb",
        "http://x",
    ] {
        assert!(!refusal(text).is_empty());
    }
    assert!(refusal("http://x").contains("http"));
    assert!(parse(&"x".repeat(20_000)).is_err());
}
