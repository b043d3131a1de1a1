//! A real RTSP server for tests: `rtsp-server [port=N] [tcp-only] [auth=USER:PASSWORD] [jpeg]`.
//!
//! Serves a moving picture at `/live`. The port is printed on standard output as soon as it is bound, and
//! the process ends when its standard input does, so that it never outlives a test.

use std::io::{Read, Write};

use anyhow::Context as _;
use gst::glib;
use gst_rtsp_server::prelude::*;
use gst_rtsp_server::{RTSPAuth, RTSPMediaFactory, RTSPServer, RTSPToken};

const H264: &str = "( videotestsrc is-live=true pattern=ball ! video/x-raw,width=320,height=240,framerate=30/1 ! \
    x264enc tune=zerolatency speed-preset=ultrafast key-int-max=30 ! rtph264pay name=pay0 pt=96 )";
const JPEG: &str = "( videotestsrc is-live=true ! video/x-raw,format=I420,width=320,height=240,framerate=30/1 ! \
    jpegenc ! rtpjpegpay name=pay0 pt=26 )";

fn main() -> anyhow::Result<()> {
    gst::init()?;
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let value = |name: &str| arguments.iter().find_map(|argument| argument.strip_prefix(name));
    let flag = |name: &str| arguments.iter().any(|argument| argument == name);

    let factory = RTSPMediaFactory::new();
    factory.set_shared(true);
    factory.set_launch(if flag("jpeg") { JPEG } else { H264 });
    if flag("tcp-only") {
        factory.set_property_from_str("protocols", "tcp");
    }
    let server = RTSPServer::new();
    server.set_address("127.0.0.1");
    server.set_service(value("port=").unwrap_or("0"));
    if let Some((user, password)) = value("auth=").and_then(|both| both.split_once(':')) {
        require(&server, &factory, user, password);
    }
    let mounts = server.mount_points().context("a new server has mount points")?;
    mounts.add_factory("/live", factory);
    let _source = server.attach(None)?;

    let mut out = std::io::stdout();
    writeln!(out, "{}", server.bound_port())?;
    out.flush()?;
    let main_loop = glib::MainLoop::new(None, false);
    let ending = main_loop.clone();
    std::thread::spawn(move || {
        let _ = std::io::stdin().read_to_end(&mut Vec::new());
        ending.quit();
    });
    main_loop.run();
    Ok(())
}

/// Lets in `user` with `password` and nobody else.
fn require(server: &RTSPServer, factory: &RTSPMediaFactory, user: &str, password: &str) {
    let role = gst::Structure::builder("viewer")
        .field("media.factory.access", true)
        .field("media.factory.construct", true)
        .build();
    factory.add_role_from_structure(&role);
    let token = RTSPToken::builder().field("media.factory.role", "viewer").build();
    let auth = RTSPAuth::new();
    auth.add_basic(RTSPAuth::make_basic(user, password).as_str(), &token);
    server.set_auth(Some(&auth));
}
