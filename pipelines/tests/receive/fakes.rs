//! Hardware decoders that do not exist: registered in this process under real factory names, decoding with
//! `avdec_h264` inside and failing the way they are told.

use std::collections::VecDeque;
use std::sync::{Mutex, MutexGuard, PoisonError, mpsc};
use std::time::Duration;

use gst::glib;
use gst::prelude::*;
use gst::subclass::prelude::*;

/// How a fake decoder misbehaves; counts are of access units or pictures of one instance.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Fault {
    /// It works.
    None,
    /// Its device cannot be opened.
    OpenFails,
    /// Opening its device never ends.
    OpenHangs,
    /// Its pictures cannot be mapped from this one on.
    MapFailsAfter(usize),
    /// Its pictures are too narrow.
    WrongSize,
    /// Every picture is the same grey surface.
    Grey,
    /// One sample is wrong.
    WrongPixel,
    /// It blocks for ever at this access unit.
    HangsAfter(usize),
    /// It reports an error at this access unit.
    DiesAfter(usize),
    /// It swallows access units from this one on.
    StallsAfter(usize),
}

/// Faults of the instances to come: candidates are opened in a known order, and all of them share one type.
static FAULTS: Mutex<VecDeque<Fault>> = Mutex::new(VecDeque::new());
static SERIAL: Mutex<()> = Mutex::new(());

/// Makes each factory a hardware decoder with its fault, given in the order of the decoder table, for as long as the guard lives. Tests that do so run
/// one after the other, even as threads of one process.
pub struct Hardware {
    factories: Vec<&'static str>,
    _serial: MutexGuard<'static, ()>,
}

impl Hardware {
    pub fn new(faults: &[(&'static str, Fault)]) -> Self {
        let serial = SERIAL.lock().unwrap_or_else(PoisonError::into_inner);
        crossdesk_pipelines::gst::init().unwrap();
        *FAULTS.lock().unwrap() = faults.iter().map(|(_, fault)| *fault).collect();
        for (name, _) in faults {
            gst::Element::register(None, name, gst::Rank::PRIMARY, Decoder::static_type()).unwrap();
            // Registering a second time does not bring the rank back.
            gst::ElementFactory::find(name)
                .unwrap()
                .set_rank(gst::Rank::PRIMARY);
        }
        Self {
            factories: faults.iter().map(|(name, _)| *name).collect(),
            _serial: serial,
        }
    }
}

impl Drop for Hardware {
    fn drop(&mut self) {
        for name in &self.factories {
            if let Some(factory) = gst::ElementFactory::find(name) {
                factory.set_rank(gst::Rank::NONE);
            }
        }
    }
}

fn next_fault() -> Fault {
    FAULTS.lock().unwrap().pop_front().unwrap_or(Fault::None)
}

/// What a hung driver does, in effect for ever: longer than any test looks.
fn hang() {
    let (keep, wait) = mpsc::channel::<()>();
    let _ = wait.recv_timeout(Duration::from_secs(8));
    drop(keep);
}

glib::wrapper! {
    pub struct Decoder(ObjectSubclass<imp::Decoder>) @extends gst::Bin, gst::Element, gst::Object;
}

mod imp {
    use std::sync::LazyLock;
    use std::sync::atomic::{AtomicUsize, Ordering};

    use super::*;

    #[derive(Default)]
    pub struct Decoder;

    #[glib::object_subclass]
    impl ObjectSubclass for Decoder {
        const NAME: &'static str = "CrossDeskFakeHardwareDecoder";
        type Type = super::Decoder;
        type ParentType = gst::Bin;
    }

    impl ObjectImpl for Decoder {
        fn constructed(&self) {
            self.parent_constructed();
            for direction in ["sink", "src"] {
                let template = self.obj().pad_template(direction).unwrap();
                let pad = gst::GhostPad::builder_from_template(&template)
                    .name(direction)
                    .build();
                self.obj().add_pad(&pad).unwrap();
            }
        }
    }

    impl GstObjectImpl for Decoder {}

    impl ElementImpl for Decoder {
        fn metadata() -> Option<&'static gst::subclass::ElementMetadata> {
            static METADATA: LazyLock<gst::subclass::ElementMetadata> = LazyLock::new(|| {
                let class = "Codec/Decoder/Video/Hardware";
                gst::subclass::ElementMetadata::new("Fake decoder", class, "Fails as told", "CrossDesk")
            });
            Some(&METADATA)
        }

        fn pad_templates() -> &'static [gst::PadTemplate] {
            static TEMPLATES: LazyLock<Vec<gst::PadTemplate>> = LazyLock::new(|| {
                let template = |name, direction, caps: &gst::Caps| {
                    gst::PadTemplate::new(name, direction, gst::PadPresence::Always, caps).unwrap()
                };
                let input = "video/x-h264,stream-format=byte-stream,alignment=au"
                    .parse()
                    .unwrap();
                let output = "video/x-raw".parse().unwrap();
                vec![
                    template("sink", gst::PadDirection::Sink, &input),
                    template("src", gst::PadDirection::Src, &output),
                ]
            });
            &TEMPLATES
        }

        fn change_state(
            &self,
            transition: gst::StateChange,
        ) -> Result<gst::StateChangeSuccess, gst::StateChangeError> {
            if transition == gst::StateChange::NullToReady {
                let fault = next_fault();
                match fault {
                    Fault::OpenFails => {
                        gst::element_imp_error!(self, gst::ResourceError::OpenRead, ["no such device"]);
                        return Err(gst::StateChangeError);
                    }
                    Fault::OpenHangs => hang(),
                    _ => {}
                }
                self.fill(fault);
            }
            self.parent_change_state(transition)
        }
    }

    impl BinImpl for Decoder {}

    impl Decoder {
        fn fill(&self, fault: Fault) {
            let bin = self.obj();
            let decoder = gst::ElementFactory::make("avdec_h264").build().unwrap();
            decoder.set_property_from_str("thread-type", "slice");
            decoder.set_property_from_str("std-compliance", "normal");
            let crop = gst::ElementFactory::make("videocrop").build().unwrap();
            if fault == Fault::WrongSize {
                crop.set_property("right", 16);
            }
            bin.add_many([&decoder, &crop]).unwrap();
            decoder.link(&crop).unwrap();
            let target = |name: &str, pad: gst::Pad| {
                let ghost = bin.static_pad(name).unwrap().downcast::<gst::GhostPad>().unwrap();
                ghost.set_target(Some(&pad)).unwrap();
                pad
            };
            let input = target("sink", decoder.static_pad("sink").unwrap());
            let output = target("src", crop.static_pad("src").unwrap());
            Self::spoil_input(&input, fault, bin.upcast_ref());
            Self::spoil_output(&output, fault);
        }

        fn spoil_input(pad: &gst::Pad, fault: Fault, element: &gst::Element) {
            let (count, element) = (AtomicUsize::new(0), element.downgrade());
            pad.add_probe(gst::PadProbeType::BUFFER, move |_, info| {
                let n = count.fetch_add(1, Ordering::Relaxed);
                match fault {
                    Fault::HangsAfter(limit) if n >= limit => hang(),
                    Fault::DiesAfter(limit) if n >= limit => {
                        if let Some(element) = element.upgrade() {
                            gst::element_error!(element, gst::StreamError::Decode, ["the device was lost"]);
                        }
                        drop(info.data.take());
                        info.flow_res = Err(gst::FlowError::Error);
                        return gst::PadProbeReturn::Handled;
                    }
                    Fault::StallsAfter(limit) if n >= limit => {
                        drop(info.data.take());
                        info.flow_res = Ok(gst::FlowSuccess::Ok);
                        return gst::PadProbeReturn::Handled;
                    }
                    _ => {}
                }
                gst::PadProbeReturn::Ok
            });
        }

        fn spoil_output(pad: &gst::Pad, fault: Fault) {
            let count = AtomicUsize::new(0);
            pad.add_probe(gst::PadProbeType::BUFFER, move |_, info| {
                let n = count.fetch_add(1, Ordering::Relaxed);
                let Some(buffer) = info.buffer_mut() else {
                    return gst::PadProbeReturn::Ok;
                };
                match fault {
                    Fault::MapFailsAfter(limit) if n >= limit => {
                        let buffer = buffer.make_mut();
                        buffer.remove_all_memory();
                        buffer.append_memory(gst::Memory::from_slice([0; 4]));
                    }
                    Fault::Grey => *buffer = Self::changed(buffer, |samples| samples.fill(128)),
                    Fault::WrongPixel => {
                        let stride = buffer
                            .meta::<gst_video::VideoMeta>()
                            .map_or(320, |meta| meta.stride()[0]);
                        let at = 70 * usize::try_from(stride).unwrap() + 5;
                        *buffer = Self::changed(buffer, |samples| samples[at] ^= 1);
                    }
                    _ => {}
                }
                gst::PadProbeReturn::Ok
            });
        }

        fn changed(buffer: &gst::Buffer, change: impl FnOnce(&mut [u8])) -> gst::Buffer {
            let mut copy = buffer.copy_deep().unwrap();
            change(copy.get_mut().unwrap().map_writable().unwrap().as_mut_slice());
            copy
        }
    }
}
