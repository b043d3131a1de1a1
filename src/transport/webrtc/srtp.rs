//! Protection of media (SRTP, SRTCP) with the keys of the DTLS handshake.

use bytes::Bytes;
use crossdesk_core::rtp::packet::Packet;
use dimpl::SrtpProfile;
use rtc_srtp::config::Config;
use rtc_srtp::context::Context;
use rtc_srtp::crypto::{RTCCryptoProvider, default_provider};
use rtc_srtp::option::{srtcp_replay_protection, srtp_replay_protection};
use rtc_srtp::protection_profile::ProtectionProfile;
use std::sync::Arc;

/// Packets that may come later than others: more than senders keep for retransmission, and below half of the
/// sequence numbers.
const REPLAY_WINDOW: usize = 16_384;
/// Most streams that packets are taken from, of media and of feedback each.
const MAX_STREAMS: usize = 64;

/// Keys of both directions.
pub(super) struct Srtp {
    profile: ProtectionProfile,
    config: Config,
    provider: Arc<dyn RTCCryptoProvider>,
    out: Context,
    media: Streams,
    feedback: Streams,
}

/// One context for each stream that proved itself: contexts keep a state for every stream they are shown, even by a
/// forged packet.
type Streams = Vec<(u32, Context)>;

impl Srtp {
    /// Takes what the handshake exported; `client` tells which half is ours.
    ///
    /// # Errors
    /// When the profile is not supported, or the keys do not go with it.
    pub(super) fn new(profile: SrtpProfile, keys: &[u8], client: bool) -> Result<Self, String> {
        let profile = match profile {
            SrtpProfile::AES128_CM_SHA1_80 => ProtectionProfile::Aes128CmHmacSha1_80,
            SrtpProfile::AEAD_AES_128_GCM => ProtectionProfile::AeadAes128Gcm,
            SrtpProfile::AEAD_AES_256_GCM => ProtectionProfile::AeadAes256Gcm,
            other => return Err(format!("SRTP profile {other} is not known")),
        };
        let mut config = Config {
            profile,
            ..Config::default()
        };
        let set = config.set_session_keys_from_keying_material(keys, client);
        set.map_err(|error| error.to_string())?;
        let provider = default_provider().map_err(|error| error.to_string())?;
        let (key, salt) = (&config.keys.local_master_key, &config.keys.local_master_salt);
        let out = Context::new(key, salt, profile, None, None, provider.crypto());
        Ok(Self {
            out: out.map_err(|error| error.to_string())?,
            profile,
            config,
            provider,
            media: Vec::new(),
            feedback: Vec::new(),
        })
    }

    /// A packet as it goes on the wire; `None` when its stream has used up the keys.
    pub(super) fn protect(&mut self, packet: &Packet) -> Option<Bytes> {
        let wire = self.out.encrypt_rtp(&packet.to_bytes()).ok()?;
        Some(wire.freeze())
    }

    /// A compound RTCP packet as it goes on the wire.
    pub(super) fn protect_feedback(&mut self, compound: &[u8]) -> Option<Bytes> {
        Some(self.out.encrypt_rtcp(compound).ok()?.freeze())
    }

    /// The packet inside; `None` when it is forged, damaged or came before.
    pub(super) fn open(&mut self, wire: &[u8]) -> Option<Bytes> {
        let ssrc = u32::from_be_bytes(*wire.get(8..)?.first_chunk()?);
        let opened = self.with_stream(Self::media, ssrc, |context| context.decrypt_rtp(wire).ok());
        opened.map(bytes::BytesMut::freeze)
    }

    /// The compound RTCP packet inside.
    pub(super) fn open_feedback(&mut self, wire: &[u8]) -> Option<Bytes> {
        let ssrc = u32::from_be_bytes(*wire.get(4..)?.first_chunk()?);
        let opened = self.with_stream(Self::feedback, ssrc, |context| context.decrypt_rtcp(wire).ok());
        opened.map(bytes::BytesMut::freeze)
    }

    fn media(&mut self) -> &mut Streams {
        &mut self.media
    }

    fn feedback(&mut self) -> &mut Streams {
        &mut self.feedback
    }

    fn with_stream<T>(
        &mut self,
        streams: fn(&mut Self) -> &mut Streams,
        ssrc: u32,
        open: impl FnOnce(&mut Context) -> Option<T>,
    ) -> Option<T> {
        if let Some((_, context)) = streams(self).iter_mut().find(|(known, _)| *known == ssrc) {
            return open(context);
        }
        if streams(self).len() == MAX_STREAMS {
            return None;
        }
        let (key, salt) = (
            &self.config.keys.remote_master_key,
            &self.config.keys.remote_master_salt,
        );
        let (media, feedback) = (srtp_replay_protection(REPLAY_WINDOW), srtcp_replay_protection(64));
        let context = Context::new(
            key,
            salt,
            self.profile,
            Some(media),
            Some(feedback),
            self.provider.crypto(),
        );
        let mut context = context.ok()?;
        let opened = open(&mut context)?;
        streams(self).push((ssrc, context));
        Some(opened)
    }
}
