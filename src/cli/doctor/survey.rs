//! Everything the report says, put together from decoders, encoders and facts about the machine.

use std::io;
use std::net::{Ipv4Addr, TcpListener, TcpStream};

use crossdesk_pipelines::gst::InitError;
use crossdesk_pipelines::gst::probe::{self, DecoderReport, Verdict};
use crossdesk_platform::facts::Machine;

use super::advice::{self, State};
use super::report::{Candidate, Encoder, Loopback, Report};

/// Looks at the machine; takes less than ten seconds.
pub fn look() -> Report {
    let machine = crossdesk_platform::look();
    let loopback = loopback();
    let probed = probe::decoders();
    let (works, reason) = conclusion(&probed, &loopback);
    let gstreamer = probed.is_ok();
    let candidates: Vec<Candidate> = probed
        .unwrap_or_default()
        .iter()
        .map(|decoder| candidate(decoder, &machine))
        .collect();
    Report {
        version: env!("CARGO_PKG_VERSION"),
        automation_protocol: "crossdesk-automation/1",
        automation_video_transport: "loopback-websocket/1",
        automation_video_protocols: ["h264-annexb/1", "nv12/1"],
        automation_video_decoders: ["auto", "software"],
        gstreamer_version: gstreamer.then(probe::version),
        remote_viewing: works,
        remote_viewing_reason: reason,
        candidates,
        encoders: if gstreamer { encoders() } else { Vec::new() },
        display_server: machine.display,
        credential_store: machine.credentials,
        loopback,
        gpu: machine.gpu,
        system: machine.system,
        distribution: machine.distribution,
        bench: None,
    }
}

fn candidate(decoder: &DecoderReport, machine: &Machine) -> Candidate {
    let state = State {
        verdict: decoder.verdict.as_str(),
        plugin: decoder.plugin_version.is_some(),
        switched_off: decoder.switched_off,
    };
    Candidate {
        name: decoder.row.factory.to_owned(),
        installed: decoder.installed,
        // Beside `installed: false` a version would read as if the decoder were there.
        plugin_version: decoder.plugin_version.clone().filter(|_| decoder.installed),
        hardware: decoder.row.hardware,
        verdict: decoder.verdict.as_str(),
        reason: decoder.reason.clone(),
        frames_held: decoder.frames_held,
        ms_per_frame_1080p: decoder.ms_per_frame_1080p.map(rounded),
        ms_per_frame_4k: decoder.ms_per_frame_4k.map(rounded),
        memory: decoder.memory.map(str::to_owned),
        fix: advice::fix(decoder.row, state, machine),
    }
}

/// Hundredths: what lies behind is noise.
fn rounded(ms: f64) -> f64 {
    (ms * 100.0).round() / 100.0
}

fn encoders() -> Vec<Encoder> {
    probe::encoders()
        .into_iter()
        .map(|(row, installed)| Encoder {
            name: row.element.to_owned(),
            installed,
            hardware: row.hardware,
        })
        .collect()
}

/// Whether a browser on this machine could reach a listener of ours.
fn loopback() -> Loopback {
    let tried = || -> io::Result<()> {
        let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, 0))?;
        TcpStream::connect(listener.local_addr()?)?;
        Ok(())
    };
    let reason = tried().err().map(|error| error.to_string());
    Loopback {
        listening: reason.is_none(),
        reason,
    }
}

/// Does remote viewing work, and why. A slow decoder still shows pictures, so it counts when nothing is better.
fn conclusion(probed: &Result<Vec<DecoderReport>, InitError>, loopback: &Loopback) -> (bool, String) {
    let decoders = match probed {
        Ok(decoders) => decoders,
        Err(error) => return (false, error.to_string()),
    };
    if let Some(reason) = &loopback.reason {
        return (false, format!("no listener can be opened on 127.0.0.1: {reason}"));
    }
    let first = |verdict| decoders.iter().find(|decoder| decoder.verdict == verdict);
    if let Some(best) = first(Verdict::Proven) {
        let kind = if best.row.hardware { "hardware" } else { "software" };
        let speed = best
            .ms_per_frame_1080p
            .map_or(String::new(), |ms| format!(", {ms:.1} ms a picture at 1080p"));
        return (true, format!("{} ({kind}) is proven{speed}.", best.row.factory));
    }
    if let Some(slow) = first(Verdict::TooSlow) {
        return (true, format!("{} works, but slowly.", slow.row.factory));
    }
    let installed = decoders.iter().any(|decoder| decoder.installed);
    let reason = if installed {
        "no installed decoder is usable; the fixes above say why."
    } else {
        "no H.264 decoder is installed; the fix of a software decoder above is the quickest."
    };
    (false, reason.to_owned())
}

#[cfg(test)]
mod tests {
    use super::*;

    const WORKING: Loopback = Loopback {
        listening: true,
        reason: None,
    };

    #[test]
    fn without_a_decoder_viewing_does_not_work() {
        let (works, reason) = conclusion(&Ok(Vec::new()), &WORKING);
        assert!(!works);
        assert!(reason.contains("no H.264 decoder is installed"));
    }

    #[test]
    fn without_gstreamer_its_own_message_is_the_reason() {
        let (works, reason) = conclusion(&Err(InitError("broken".to_owned())), &WORKING);
        assert!(!works);
        assert!(reason.contains("broken"));
    }

    #[test]
    fn a_listener_can_be_reached_here() {
        assert!(loopback().listening);
    }
}
