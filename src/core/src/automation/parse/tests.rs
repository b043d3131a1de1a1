//! Every rule of the request grammar, by example.

use super::*;
use crate::automation::request::Action;
use proptest::prelude::*;

const TOKEN: &str = "abcdefghijklmnopqrstuvwxyzAB-_09";

fn refusal(line: &str) -> (Option<u64>, ErrorCode) {
    let refusal = parse_line(line.as_bytes()).expect_err(line);
    (refusal.id, refusal.code)
}

/// A request with id 7 and these members is accepted.
fn accept(members: &str) -> Method {
    let line = format!("{{\"id\":7,{members}}}");
    let request = parse_line(line.as_bytes()).unwrap_or_else(|refusal| panic!("{line}: {refusal:?}"));
    assert_eq!(request.id, 7);
    request.method
}

/// A request with id 7 and these members is refused as an argument error, with its id.
fn refuse_argument(members: &str) {
    let line = format!("{{\"id\":7,{members}}}");
    assert_eq!(refusal(&line), (Some(7), ErrorCode::InvalidArgument), "{line}");
}

fn action(members: &str) -> String {
    format!(
        "\"method\":\"action\",\"operation_id\":\"o\",\"observation_id\":\"obs_1_1\",\"action\":{{{members}}}"
    )
}

#[test]
fn the_documented_examples_parse() {
    let hello = br#"{"id":1,"method":"hello","protocol":"crossdesk-automation/1"}"#;
    assert_eq!(
        parse_line(hello),
        Ok(Request {
            id: 1,
            method: Method::Hello
        })
    );
    let click = br#"{"id":10,"method":"action","operation_id":"click-1","observation_id":"obs_2_1","action":{"type":"click","x":120,"y":80,"button":"left"}}"#;
    assert!(matches!(
        parse_line(click),
        Ok(Request {
            id: 10,
            method: Method::Action { .. }
        })
    ));
}

#[test]
fn what_is_not_an_object_gets_a_null_id() {
    for line in [
        "",
        "  ",
        "x",
        "[]",
        "7",
        "null",
        "\"id\"",
        "{\"id\":7",
        "{\"id\":7}}",
        "{\"id\":7,}",
    ] {
        assert_eq!(refusal(line), (None, ErrorCode::InvalidJson), "{line}");
    }
    let invalid_utf8 = parse_line(b"{\"id\":7,\"method\":\"\xc3\x28\"}").expect_err("not UTF-8");
    assert_eq!(
        (invalid_utf8.id, invalid_utf8.code),
        (None, ErrorCode::InvalidJson)
    );
    let nul = parse_line(b"{\"id\":7,\"method\":\"status\"}\0").expect_err("a NUL");
    assert_eq!((nul.id, nul.code), (None, ErrorCode::InvalidJson));
}

#[test]
fn what_stands_for_no_value_is_refused_under_its_id() {
    for line in [
        r#"{"id":1,"x":1e400}"#,
        r#"{"id":1,"method":"\ud800"}"#,
        r#"{"method":"status","x":"\ud800","id":1}"#,
    ] {
        assert_eq!(refusal(line), (Some(1), ErrorCode::InvalidJson), "{line}");
    }
}

#[test]
fn a_carriage_return_before_the_newline_is_white_space() {
    assert!(parse_line(b"{\"id\":7,\"method\":\"status\"}\r").is_ok());
}

#[test]
fn ids_are_non_negative_integers() {
    for id in [
        "-1",
        "1.0",
        "1e0",
        "\"1\"",
        "null",
        "true",
        "[1]",
        "18446744073709551616",
        "-0",
    ] {
        let line = format!("{{\"id\":{id},\"method\":\"status\"}}");
        assert_eq!(refusal(&line), (None, ErrorCode::InvalidRequest), "{id}");
    }
    for id in [0, 1, 1 << 53, u64::MAX] {
        let line = format!("{{\"id\":{id},\"method\":\"status\"}}");
        assert_eq!(parse_line(line.as_bytes()).map(|request| request.id), Ok(id));
    }
    assert_eq!(
        refusal(r#"{"method":"status"}"#),
        (None, ErrorCode::InvalidRequest)
    );
}

#[test]
fn keys_appear_once() {
    assert_eq!(
        refusal(r#"{"id":1,"id":1,"method":"status"}"#),
        (None, ErrorCode::InvalidRequest)
    );
    assert_eq!(
        refusal(r#"{"id":1,"method":"status","method":"exit"}"#),
        (Some(1), ErrorCode::InvalidRequest)
    );
    let region = r#"{"id":1,"method":"screenshot","region":{"x":0,"x":1,"y":0,"width":1,"height":1}}"#;
    assert_eq!(refusal(region), (Some(1), ErrorCode::InvalidRequest));
}

#[test]
fn methods_are_known_strings() {
    assert_eq!(refusal(r#"{"id":1}"#), (Some(1), ErrorCode::InvalidRequest));
    assert_eq!(
        refusal(r#"{"id":1,"method":null}"#),
        (Some(1), ErrorCode::InvalidRequest)
    );
    assert_eq!(
        refusal(r#"{"id":1,"method":"Hello"}"#),
        (Some(1), ErrorCode::UnknownMethod)
    );
}

#[test]
fn lines_are_bounded_with_their_newline() {
    let padded = |length: usize| {
        let mut line = String::from(r#"{"id":7,"method":"status"}"#);
        line.push_str(&" ".repeat(length - line.len()));
        line
    };
    assert!(parse_line(padded(65_535).as_bytes()).is_ok());
    assert_eq!(refusal(&padded(65_536)), (None, ErrorCode::RequestTooLarge));
}

#[test]
fn nesting_is_bounded() {
    let nested = |levels: usize| {
        format!(
            "{{\"id\":7,\"x\":{}{}}}",
            "[".repeat(levels - 1),
            "]".repeat(levels - 1)
        )
    };
    assert_eq!(refusal(&nested(32)), (Some(7), ErrorCode::InvalidRequest));
    assert_eq!(refusal(&nested(33)), (Some(7), ErrorCode::RequestTooDeep));
}

#[test]
fn unknown_members_are_refused_everywhere() {
    for method in [
        "status",
        "disconnect",
        "exit",
        "video_revoke",
        "screenshot",
        "preview",
    ] {
        refuse_argument(&format!("\"method\":\"{method}\",\"extra\":1"));
    }
    refuse_argument(&action(r#""type":"move","x":1,"y":1,"z":1"#));
    refuse_argument(&action(r#""type":"move","x":1,"y":1,"button":"left""#));
    refuse_argument(r#""method":"screenshot","region":{"x":0,"y":0,"width":1,"height":1,"z":1}"#);
    refuse_argument(&action(
        r#""type":"drag","path":[{"x":1,"y":1,"z":1},{"x":1,"y":1}]"#,
    ));
}

#[test]
fn hello_names_the_protocol() {
    refuse_argument(r#""method":"hello""#);
    refuse_argument(r#""method":"hello","protocol":1"#);
    let other = r#"{"id":7,"method":"hello","protocol":"crossdesk-automation/2"}"#;
    assert_eq!(refusal(other), (Some(7), ErrorCode::ProtocolUnsupported));
}

#[test]
fn connect_checks_each_member() {
    let connect = |rest: &str| format!("\"method\":\"connect\",{rest}");
    let full =
        r#""device":"012345678","mode":"control","display":63,"decode_path":"minirtc","decoder":"software""#;
    let Method::Connect(connected) = accept(&connect(full)) else {
        panic!("connect")
    };
    assert_eq!((connected.mode, connected.display), (Mode::Control, 63));
    assert_eq!(connected.decode_path, DecodePath::Minirtc);
    assert_eq!(connected.decoder, DecoderPreference::Software);
    let short = r#""device":"123456789","mode":"observe","display":0"#;
    let Method::Connect(defaults) = accept(&connect(short)) else {
        panic!("connect")
    };
    assert_eq!((defaults.decode_path, defaults.decoder), Default::default());
    for bad in [
        r#""device":"12345678","mode":"observe","display":0"#,
        r#""device":"1234567890","mode":"observe","display":0"#,
        r#""device":"12345678x","mode":"observe","display":0"#,
        r#""device":"１23456789","mode":"observe","display":0"#,
        r#""device":123456789,"mode":"observe","display":0"#,
        r#""device":"123456789","mode":"watch","display":0"#,
        r#""device":"123456789","mode":"observe","display":64"#,
        r#""device":"123456789","mode":"observe","display":-1"#,
        r#""device":"123456789","mode":"observe","display":"0""#,
        r#""device":"123456789","mode":"observe""#,
        r#""device":"123456789","mode":"observe","display":0,"decode_path":"auto""#,
        r#""device":"123456789","mode":"observe","display":0,"decoder":"hardware""#,
        r#""device":"123456789","mode":"observe","display":0,"decoder":null"#,
    ] {
        refuse_argument(&connect(bad));
    }
}

#[test]
fn images_check_each_member() {
    for good in [
        r#""method":"screenshot""#,
        r#""method":"screenshot","max_edge":64"#,
        r#""method":"screenshot","max_edge":2048,"timeout_ms":5000"#,
        r#""method":"screenshot","region":{"x":0,"y":0,"width":1,"height":4294967295}"#,
        r#""method":"screenshot","after_frame_id":0,"generation":1,"timeout_ms":0"#,
        r#""method":"preview","max_edge":960"#,
        r#""method":"preview","generation":4294967295"#,
    ] {
        accept(good);
    }
    for bad in [
        r#""method":"screenshot","max_edge":63"#,
        r#""method":"screenshot","max_edge":2049"#,
        r#""method":"screenshot","timeout_ms":5001"#,
        r#""method":"screenshot","timeout_ms":-1"#,
        r#""method":"screenshot","after_frame_id":5"#,
        r#""method":"screenshot","generation":0"#,
        r#""method":"screenshot","generation":4294967296"#,
        r#""method":"screenshot","region":{"x":0,"y":0,"width":0,"height":1}"#,
        r#""method":"screenshot","region":{"x":-1,"y":0,"width":1,"height":1}"#,
        r#""method":"screenshot","region":{"x":0,"y":0,"width":1}"#,
        r#""method":"screenshot","region":[0,0,1,1]"#,
        r#""method":"preview","max_edge":961"#,
        r#""method":"preview","region":{"x":0,"y":0,"width":1,"height":1}"#,
    ] {
        refuse_argument(bad);
    }
}

fn video_open_with(member: &str, value: &str) -> String {
    let mut line = String::from("\"method\":\"video_open\"");
    for (name, usual) in [
        ("ticket", format!("\"{TOKEN}\"")),
        ("view", format!("\"{TOKEN}\"")),
        ("view_generation", "1".into()),
        ("session", format!("\"{TOKEN}\"")),
        ("origin", "\"http://127.0.0.1:1\"".into()),
        ("apps", "false".into()),
    ] {
        let value = if name == member { value } else { &usual };
        if !value.is_empty() {
            line.push_str(&format!(",\"{name}\":{value}"));
        }
    }
    line
}

#[test]
fn video_open_needs_all_six_members() {
    accept(&video_open_with("", ""));
    for member in ["ticket", "view", "view_generation", "session", "origin", "apps"] {
        refuse_argument(&video_open_with(member, ""));
        refuse_argument(&video_open_with(member, "null"));
    }
    refuse_argument(&video_open_with("view_generation", "0"));
    refuse_argument(&video_open_with("ticket", "\"short\""));
    refuse_argument(&video_open_with("view", "\"abcdefghijklmnopqrstuvwxyzAB+/09\""));
    refuse_argument(&video_open_with("apps", "0"));
}

#[test]
fn origins_are_written_exactly() {
    for good in ["http://127.0.0.1:80", "http://127.0.0.1:65535"] {
        accept(&video_open_with("origin", &format!("\"{good}\"")));
    }
    for bad in [
        "http://127.0.0.1",
        "http://127.0.0.1:",
        "http://127.0.0.1:0",
        "http://127.0.0.1:08",
        "http://127.0.0.1:+8",
        "http://127.0.0.1:65536",
        "http://127.0.0.1:80/",
        "http://localhost:80",
        "https://127.0.0.1:80",
        "http://127.0.0.1.evil.test:80",
        "HTTP://127.0.0.1:80",
        "null",
    ] {
        refuse_argument(&video_open_with("origin", &format!("\"{bad}\"")));
    }
}

#[test]
fn switches_and_numbers_check_their_type() {
    accept(r#""method":"control","enabled":true"#);
    accept(r#""method":"viewer_control","operation":"resume""#);
    accept(r#""method":"display","index":63"#);
    accept(r#""method":"cancel","request_id":0"#);
    accept(&format!("\"method\":\"video_revoke\",\"view\":\"{TOKEN}\""));
    for bad in [
        r#""method":"control","enabled":1"#,
        r#""method":"control""#,
        r#""method":"viewer_control","operation":"stop""#,
        r#""method":"display","index":64"#,
        r#""method":"display","index":1.0"#,
        r#""method":"cancel","request_id":-1"#,
        r#""method":"cancel""#,
        r#""method":"video_revoke","view":"x""#,
        r#""method":"video_revoke","view":null"#,
    ] {
        refuse_argument(bad);
    }
}

#[test]
fn actions_check_each_member() {
    for good in [
        r#""type":"move","x":0,"y":0"#,
        r#""type":"double_click","x":0,"y":0,"button":"middle""#,
        r#""type":"scroll","x":0,"y":0,"direction":"left","ticks":10"#,
        r#""type":"drag","path":[{"x":0,"y":0},{"x":1,"y":1}],"duration_ms":100"#,
        r#""type":"key_press","key":"ENTER""#,
        r#""type":"hotkey","keys":["CTRL","SHIFT","ESC"]"#,
        r#""type":"type_text","text":"Привет €""#,
    ] {
        accept(&action(good));
    }
    for bad in [
        r#""x":0,"y":0"#,
        r#""type":"jump","x":0,"y":0"#,
        r#""type":"move","x":0"#,
        r#""type":"move","x":-1,"y":0"#,
        r#""type":"move","x":0.5,"y":0"#,
        r#""type":"click","x":0,"y":0,"button":"x1""#,
        r#""type":"scroll","x":0,"y":0"#,
        r#""type":"scroll","x":0,"y":0,"direction":"up","ticks":0"#,
        r#""type":"scroll","x":0,"y":0,"direction":"up","ticks":11"#,
        r#""type":"drag","path":[{"x":0,"y":0}]"#,
        r#""type":"drag","path":[{"x":0,"y":0},[1,1]]"#,
        r#""type":"drag","path":[{"x":0,"y":0},{"x":1,"y":1}],"duration_ms":99"#,
        r#""type":"drag","path":[{"x":0,"y":0},{"x":1,"y":1}],"duration_ms":2001"#,
        r#""type":"key_press","key":"HYPER""#,
        r#""type":"key_press","keys":["A","B"]"#,
        r#""type":"hotkey","keys":["CTRL"]"#,
        r#""type":"hotkey","keys":["A","B","C","D","E","F","G"]"#,
        r#""type":"hotkey","keys":["CTRL","A","ctrl"]"#,
        r#""type":"type_text","text":"""#,
        r#""type":"type_text","text":"a\u0000b""#,
    ] {
        refuse_argument(&action(bad));
    }
}

#[test]
fn path_and_text_lengths_are_bounded() {
    let drag = |points: usize| {
        let path = vec![r#"{"x":1,"y":1}"#; points].join(",");
        action(&format!("\"type\":\"drag\",\"path\":[{path}]"))
    };
    accept(&drag(128));
    refuse_argument(&drag(129));
    let text = |bytes: usize| {
        action(&format!(
            "\"type\":\"type_text\",\"text\":\"{}\"",
            "x".repeat(bytes)
        ))
    };
    accept(&text(16_384));
    refuse_argument(&text(16_385));
    // Two bytes each: the limit counts bytes, not characters.
    refuse_argument(&action(&format!(
        "\"type\":\"type_text\",\"text\":\"{}\"",
        "é".repeat(8193)
    )));
}

#[test]
fn operation_and_observation_ids_are_short_plain_strings() {
    let with = |operation: &str, observation: &str| {
        format!(
            "\"method\":\"action\",\"operation_id\":\"{operation}\",\"observation_id\":\"{observation}\",\
             \"action\":{{\"type\":\"move\",\"x\":0,\"y\":0}}"
        )
    };
    accept(&with(&"o".repeat(128), "obs_1_1"));
    refuse_argument(&with(&"o".repeat(129), "obs_1_1"));
    refuse_argument(&with("", "obs_1_1"));
    refuse_argument(&with("a\\nb", "obs_1_1"));
    refuse_argument(&with("o", ""));
}

#[test]
fn typed_text_is_not_in_debug_output() {
    let method = accept(&action(r#""type":"type_text","text":"hunter2""#));
    assert!(matches!(
        &method,
        Method::Action {
            action: Action::TypeText(_),
            ..
        }
    ));
    assert!(!format!("{method:?}").contains("hunter2"));
}

proptest! {
    #[test]
    fn no_bytes_panic(line in proptest::collection::vec(any::<u8>(), 0..300)) {
        let _ = parse_line(&line);
    }

    #[test]
    fn json_like_text_does_not_panic(line in r#"[\{\}\[\]",:0-9a-z\\ \-\.eu]{0,120}"#) {
        let _ = parse_line(line.as_bytes());
    }

    #[test]
    fn a_readable_id_comes_back(id in any::<u64>(), method in "[a-z_]{0,12}", extra in "[a-z]{1,8}") {
        let line = format!("{{\"id\":{id},\"method\":\"{method}\",\"{extra}\":[1,{{}}]}}");
        match parse_line(line.as_bytes()) {
            Ok(request) => prop_assert_eq!(request.id, id),
            Err(refusal) if extra != "id" && extra != "method" => prop_assert_eq!(refusal.id, Some(id)),
            Err(_) => {}
        }
    }
}
