//! Counters in the text form that Prometheus reads.

use std::fmt::{Display, Write as _};

use crossdesk_core::signaling::Stats;

/// The page. Labels are fixed words; no identity, address or secret appears.
pub(super) fn render(stats: &Stats) -> String {
    let mut page = Page(String::new());
    for (name, value, help) in [
        ("connections", stats.connections, "WebSocket connections"),
        (
            "authenticated",
            stats.authenticated,
            "Connections that are logged in",
        ),
        ("devices_online", stats.devices, "Devices online"),
        ("sessions", stats.sessions, "Guests bound to hosts"),
        ("store_queue", stats.queued, "Device store operations waiting"),
        (
            "parked_messages",
            stats.parked,
            "Messages waiting behind store operations",
        ),
    ] {
        page.metric(name, "gauge", help);
        page.value(name, "", value);
    }
    for (name, value, help) in [
        (
            "refused_connections_total",
            stats.refused,
            "Connections refused because there were too many",
        ),
        ("received_total", stats.received, "Requests received"),
        (
            "dropped_total",
            stats.dropped,
            "Messages ignored or not passed on",
        ),
        (
            "forwarded_total",
            stats.forwarded,
            "Messages passed from peer to peer",
        ),
        ("registered_total", stats.registered, "Devices created"),
        ("logins_total", stats.logins, "Logins"),
        ("joins_total", stats.joins, "Joins"),
    ] {
        page.metric(name, "counter", help);
        page.value(name, "", value);
    }
    let refusals = [
        ("logins_refused_total", &stats.logins_refused, "Logins refused"),
        ("joins_refused_total", &stats.joins_refused, "Joins refused"),
    ];
    for (name, counts, help) in refusals {
        page.metric(name, "counter", help);
        for (reason, count) in counts {
            page.value(name, &label("reason", reason.as_str()), *count);
        }
    }
    page.metric("closed_total", "counter", "Connections closed by the server");
    for (reason, count) in &stats.closed {
        page.value("closed_total", &label("reason", reason.close().text), *count);
    }
    page.metric("clients_total", "counter", "Devices by the platform they name");
    for (platform, count) in &stats.platforms {
        page.value("clients_total", &label("platform", platform), *count);
    }
    page.0
}

fn label(name: &str, value: &str) -> String {
    format!("{{{name}=\"{}\"}}", value.to_lowercase().replace(' ', "_"))
}

struct Page(String);

impl Page {
    fn metric(&mut self, name: &str, kind: &str, help: &str) {
        // Writing to a `String` cannot fail.
        let _ = writeln!(
            self.0,
            "# HELP crossdesk_signal_{name} {help}.\n# TYPE crossdesk_signal_{name} {kind}"
        );
    }

    fn value(&mut self, name: &str, labels: &str, value: impl Display) {
        let _ = writeln!(self.0, "crossdesk_signal_{name}{labels} {value}");
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crossdesk_core::signaling::CloseReason;
    use std::collections::BTreeMap;

    #[test]
    fn every_line_is_a_comment_or_a_name_and_a_number() {
        let stats = Stats {
            connections: 3,
            closed: BTreeMap::from([(CloseReason::LoginTimeout, 2)]),
            platforms: BTreeMap::from([("linux", 1)]),
            ..Stats::default()
        };
        let page = render(&stats);
        for line in page.lines().filter(|line| !line.starts_with('#')) {
            let (name, value) = line.rsplit_once(' ').expect("two words");
            assert!(name.starts_with("crossdesk_signal_"), "{line}");
            assert!(value.parse::<u64>().is_ok(), "{line}");
        }
        assert!(page.contains("crossdesk_signal_connections 3\n"));
        assert!(page.contains("crossdesk_signal_closed_total{reason=\"authentication_timeout\"} 2\n"));
        assert!(page.contains("crossdesk_signal_clients_total{platform=\"linux\"} 1\n"));
    }
}
