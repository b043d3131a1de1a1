//! The parameter sets of one stream, by id.

use std::collections::BTreeMap;
use std::sync::Arc;

use bytes::Bytes;

use super::pps::Pps;
use super::repair;
use super::sps::Sps;

/// Longest SPS remembered: HRD parameters at their very largest take under 2 KiB.
const MAX_SPS_BYTES: usize = 4096;

/// Longest PPS remembered: explicit slice groups of a 4096x4096 picture take 24 KiB. With 256 of them the
/// worst stream can hold 8 MiB here.
const MAX_PPS_BYTES: usize = 32 * 1024;

/// An SPS as it came, and as it is published when the order promise was added.
#[derive(Clone, Debug)]
pub(super) struct SpsEntry {
    /// The NAL unit as received.
    pub(super) received: Bytes,
    /// What it says.
    pub(super) sps: Arc<Sps>,
    /// The NAL unit and its meaning with the promise, when there is a proof for it.
    pub(super) repaired: Option<Repaired>,
}

#[derive(Clone, Debug)]
pub(super) struct Repaired {
    pub(super) nal: Bytes,
    pub(super) sps: Arc<Sps>,
    pub(super) proof: repair::Proof,
}

#[derive(Clone, Debug)]
pub(super) struct PpsEntry {
    pub(super) nal: Bytes,
    pub(super) pps: Pps,
}

/// All parameter sets seen so far; a later one replaces an earlier one of the same id.
#[derive(Clone, Debug, Default)]
pub(super) struct ParameterSets {
    sps: BTreeMap<u8, SpsEntry>,
    pps: BTreeMap<u8, PpsEntry>,
}

impl ParameterSets {
    /// Remembers an SPS NAL unit and returns its entry; damaged and oversized ones are passed over.
    pub(super) fn remember_sps(&mut self, nal: &[u8]) -> Option<&SpsEntry> {
        if nal.len() > MAX_SPS_BYTES {
            return None;
        }
        let sps = Sps::parse(nal).ok()?;
        let id = sps.id;
        if self.sps.get(&id).is_none_or(|known| known.received != nal) {
            self.sps.insert(id, SpsEntry::new(nal, sps));
        }
        self.sps.get(&id)
    }

    /// Remembers a PPS NAL unit and returns its id; damaged and oversized ones are passed over.
    pub(super) fn remember_pps(&mut self, nal: &[u8]) -> Option<u8> {
        if nal.len() > MAX_PPS_BYTES {
            return None;
        }
        let pps = Pps::parse(nal).ok()?;
        if self.pps.get(&pps.id).is_none_or(|known| known.nal != nal) {
            let nal = Bytes::copy_from_slice(nal);
            self.pps.insert(pps.id, PpsEntry { nal, pps });
        }
        Some(pps.id)
    }

    pub(super) fn sps(&self, id: u8) -> Option<&SpsEntry> {
        self.sps.get(&id)
    }

    pub(super) fn pps(&self, id: u8) -> Option<&PpsEntry> {
        self.pps.get(&id)
    }

    /// Every PPS that uses the SPS `id`, by rising id.
    pub(super) fn pps_of(&self, id: u8) -> impl Iterator<Item = &PpsEntry> {
        self.pps.values().filter(move |entry| entry.pps.sps_id == id)
    }

    /// The PPS `id` and the SPS it uses.
    pub(super) fn of_picture(&self, id: u8) -> Option<(&SpsEntry, &Pps)> {
        let pps = &self.pps(id)?.pps;
        Some((self.sps(pps.sps_id)?, pps))
    }
}

impl SpsEntry {
    fn new(nal: &[u8], sps: Sps) -> Self {
        // Only an SPS that is written back exactly is understood well enough to be changed.
        let repaired = repair::proof(&sps)
            .filter(|_| nal.starts_with(&sps.to_nal()))
            .map(|proof| {
                let sps = repair::repaired(&sps);
                Repaired {
                    nal: sps.to_nal().into(),
                    sps: Arc::new(sps),
                    proof,
                }
            });
        Self {
            received: Bytes::copy_from_slice(nal),
            sps: Arc::new(sps),
            repaired,
        }
    }
}
