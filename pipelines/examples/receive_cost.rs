//! CPU time per picture of the receive graph against a bare decoder pipeline, in one process.
//!
//! `cargo run --release -p crossdesk-pipelines --example receive_cost -- FILE [ROUNDS]`: rounds alternate, so
//! that noise of the machine meets both alike.
#![expect(clippy::print_stdout, reason = "a measuring program prints its table")]

use std::sync::{Arc, Condvar, Mutex, PoisonError};
use std::time::Duration;

use bytes::Bytes;
use crossdesk_core::h264::AccessUnits;
use crossdesk_core::media::{AccessUnit, TapUnit};
use crossdesk_pipelines::clock;
use crossdesk_pipelines::gst::receive::Receiver;
use crossdesk_pipelines::picture::Picture;
use crossdesk_pipelines::receive::{
    DecoderChoice, Pace, Receive, ReceiveConfig, ReceiveEvent, ReceiveOutput, Refused,
};
use gst::prelude::*;

#[derive(Default)]
struct Count {
    state: Mutex<(u32, bool)>,
    news: Condvar,
}

impl ReceiveOutput for Count {
    fn unit(&self, _: TapUnit) {}

    fn picture(&self, _: Picture) {
        self.state.lock().unwrap_or_else(PoisonError::into_inner).0 += 1;
    }

    fn event(&self, event: ReceiveEvent) {
        if event == ReceiveEvent::Drained {
            self.state.lock().unwrap_or_else(PoisonError::into_inner).1 = true;
            self.news.notify_all();
        }
    }
}

fn cpu_ms() -> f64 {
    let spent = rustix::time::clock_gettime(rustix::time::ClockId::ProcessCPUTime);
    spent.tv_sec as f64 * 1e3 + spent.tv_nsec as f64 / 1e6
}

fn ours(units: &[Bytes]) -> u32 {
    let count = Arc::new(Count::default());
    let config = ReceiveConfig {
        decoder: DecoderChoice::Software,
        pace: Pace::Lossless,
    };
    let receiver = Receiver::start(&config, count.clone()).expect("GStreamer works");
    for data in units {
        let unit = AccessUnit {
            data: data.clone(),
            received: clock::now(),
        };
        while receiver.push(unit.clone()) == Err(Refused::Full) {
            receiver.wait_for_room(data.len(), Duration::from_secs(1));
        }
    }
    receiver.finish();
    let state = count.state.lock().unwrap_or_else(PoisonError::into_inner);
    let state = count
        .news
        .wait_while(state, |(_, done)| !*done)
        .unwrap_or_else(PoisonError::into_inner);
    state.0
}

fn bare(units: &[Bytes]) -> u32 {
    let cores = std::thread::available_parallelism().map_or(1, |cores| cores.get());
    let launch = format!(
        "appsrc name=in is-live=true format=time block=true max-buffers=24 \
         caps=video/x-h264,stream-format=byte-stream,alignment=au ! h264parse \
         ! avdec_h264 name=dec qos=false thread-type=slice max-threads={cores} std-compliance=normal \
         ! fakesink sync=false async=false"
    );
    let pipeline = gst::parse::launch(&launch).expect("the elements exist");
    let pipeline = pipeline
        .downcast::<gst::Pipeline>()
        .expect("several elements make a pipeline");
    let source = pipeline
        .by_name("in")
        .and_downcast::<gst_app::AppSrc>()
        .expect("named above");
    let decoder = pipeline.by_name("dec").expect("named above");
    let pictures = Arc::new(Mutex::new(0));
    let counted = pictures.clone();
    let pad = decoder.static_pad("src").expect("decoders have one");
    pad.add_probe(gst::PadProbeType::BUFFER, move |_, _| {
        *counted.lock().unwrap_or_else(PoisonError::into_inner) += 1;
        gst::PadProbeReturn::Ok
    });
    pipeline.set_state(gst::State::Playing).expect("it plays");
    for (n, data) in units.iter().enumerate() {
        let mut buffer = gst::Buffer::from_slice(data.clone());
        let pts = gst::ClockTime::from_mseconds(16) * n as u64;
        buffer.get_mut().expect("new").set_pts(pts);
        source.push_buffer(buffer).expect("it plays");
    }
    source.end_of_stream().expect("it plays");
    let bus = pipeline.bus().expect("a pipeline has a bus");
    bus.timed_pop_filtered(
        gst::ClockTime::NONE,
        &[gst::MessageType::Eos, gst::MessageType::Error],
    );
    pipeline.set_state(gst::State::Null).expect("it stops");
    *pictures.lock().unwrap_or_else(PoisonError::into_inner)
}

fn cost(run: fn(&[Bytes]) -> u32, units: &[Bytes]) -> f64 {
    let before = cpu_ms();
    let pictures = run(units);
    (cpu_ms() - before) / f64::from(pictures)
}

fn main() {
    let mut arguments = std::env::args().skip(1);
    let file = arguments.next().expect("usage: receive_cost FILE [ROUNDS]");
    let rounds: usize = arguments.next().and_then(|text| text.parse().ok()).unwrap_or(5);
    let stream = std::fs::read(file).expect("the file can be read");
    let units: Vec<Bytes> = AccessUnits::new(&stream).map(Bytes::copy_from_slice).collect();
    crossdesk_pipelines::gst::init().expect("GStreamer works");
    // Once each to warm up.
    bare(&units);
    ours(&units);
    let mut table: Vec<(f64, f64)> = (0..rounds)
        .map(|_| (cost(bare, &units), cost(ours, &units)))
        .collect();
    table.sort_by(|a, b| (a.1 / a.0).total_cmp(&(b.1 / b.0)));
    for (bare, ours) in &table {
        println!("bare {bare:.3} ms  ours {ours:.3} ms  ratio {:.3}", ours / bare);
    }
    let (bare, ours) = table[table.len() / 2];
    println!("median ratio {:.3}", ours / bare);
}
