//! From the tap to the last byte of the socket: the video service in this process, viewers beside it.

use std::sync::mpsc::channel;
use std::time::{Duration, Instant};

use anyhow::{Context as _, anyhow};
use bytes::Bytes;
use crossdesk::video::{VideoConfig, VideoService};
use crossdesk_core::media::TapUnit;
use crossdesk_core::video::{Grant, OriginRule, PanelOrigin, Protocol, SessionId, Ticket, ViewId};
use crossdesk_pipelines::clock;

use super::Work;
use crate::Options;
use crate::agent::token;
use crate::clips;
use crate::report::{Bar, Figure, Spec};
use crate::stats::median_of;
use crate::viewer::{ORIGIN, Viewers};

/// Access units in one round. The service remembers 512 samples of each viewer, and these fit.
const UNITS: usize = 500;

/// Between two access units at 60/s.
const PERIOD: Duration = Duration::from_nanos(1_000_000_000 / 60);

pub const ONE: Work = Work {
    specs: &[Spec {
        name: "h264 tap to last byte, p99, 1 viewer, 1080p60",
        unit: "ms",
        bar: Bar::Below(1.0),
    }],
    run: |options| measure(options, 1),
};

pub const EIGHT: Work = Work {
    specs: &[Spec {
        name: "h264 tap to last byte, p99, 8 viewers, 1080p60",
        unit: "ms",
        bar: Bar::Below(3.0),
    }],
    run: |options| measure(options, 8),
};

/// What one round found, in milliseconds.
struct Latency {
    /// 99th percentile of the slowest viewer, by the service's own books.
    p99: f64,
    /// Median of the slowest viewer.
    p50: f64,
    /// 99th percentile from the tap to the last byte read by a viewer.
    read_p99: f64,
}

fn measure(options: &Options, viewers: usize) -> anyhow::Result<Vec<Figure>> {
    let units = clips::hd60()?.units()?;
    let rounds = if options.quick { 1 } else { 3 };
    let found: Vec<Latency> = (0..rounds)
        .map(|_| round(&units, viewers))
        .collect::<anyhow::Result<_>>()?;
    let p99: Vec<f64> = found.iter().map(|latency| latency.p99).collect();
    let p50 = median_of(found.iter().map(|latency| latency.p50));
    let read = median_of(found.iter().map(|latency| latency.read_p99));
    Ok(vec![Figure::new(
        &p99,
        format!("p50 {p50:.3} ms; p99 to the last byte read {read:.3} ms"),
    )])
}

fn round(units: &[Bytes], count: usize) -> anyhow::Result<Latency> {
    let keyframe_wanted = Box::new(|| {});
    let service = VideoService::start(VideoConfig { keyframe_wanted })?;
    service.begin(1, Protocol::H264AnnexB)?;
    let mut viewers = Viewers::new();
    for number in 0..count as u64 {
        let ticket = token(3 * number);
        service.grant(grant(&ticket, number)?)?;
        viewers.open(service.port(), &ticket)?;
    }
    publish(&service, units, &viewers)?;
    let reports = service.stats()?.viewers;
    let points = reports.iter().filter_map(|report| report.tap_to_send);
    let (p50, p99) = points.fold((0, 0), |(p50, p99), of| (of.p50_us.max(p50), of.p99_us.max(p99)));
    if reports.len() != count {
        return Err(anyhow!("{} of {count} viewers are left", reports.len()));
    }
    let mut ages = viewers.close().concat();
    ages.sort_unstable();
    let read = ages
        .get((ages.len() * 99).div_ceil(100).saturating_sub(1))
        .context("nothing was read")?;
    Ok(Latency {
        p99: p99 as f64 / 1e3,
        p50: p50 as f64 / 1e3,
        read_p99: *read as f64 / 1e3,
    })
}

/// Publishes at 60/s on a fixed beat, each unit stamped when it is handed over.
fn publish(service: &VideoService, units: &[Bytes], viewers: &Viewers) -> anyhow::Result<()> {
    let publisher = service.publisher();
    // Nobody ever sends: waiting on it is waiting for the beat.
    let (_quiet, beat) = channel::<()>();
    let start = Instant::now();
    for (index, data) in units.iter().cycle().take(UNITS).enumerate() {
        let due = start + PERIOD * u32::try_from(index)?;
        let _ = beat.recv_timeout(due.saturating_duration_since(Instant::now()));
        let place = index % units.len();
        publisher.publish_unit(TapUnit {
            data: data.clone(),
            // The clips have a keyframe at their beginning and every 120 pictures.
            idr: place.is_multiple_of(120),
            sequence: u32::try_from(index)? + 1,
            received: clock::now(),
        });
    }
    viewers.watch_for(PERIOD * 4)
}

fn grant(ticket: &str, number: u64) -> anyhow::Result<Grant> {
    let view = ViewId::parse(&token(3 * number + 1)).context("a view id")?;
    Ok(Grant {
        ticket: Ticket::parse(ticket).context("a ticket")?,
        view,
        view_generation: 1.try_into()?,
        generation: 1,
        session: SessionId::parse(&token(3 * number + 2)).context("a session id")?,
        origin: OriginRule {
            panel: PanelOrigin::parse(ORIGIN).context("an origin")?,
            apps: false,
        },
    })
}
