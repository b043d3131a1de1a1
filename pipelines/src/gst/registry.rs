//! Which decoders this machine offers: the table's rows against GStreamer's registry.

use gst::prelude::*;

use crate::plan::decoders::{self, DecoderRow, Platform};
use crate::receive::DecoderChoice;

/// Factories that GStreamer itself ships with rank NONE in some versions, because it does not plug them
/// automatically. Here a candidate is proven before it is trusted, so only an explicit wish takes them out.
const RANKED_NONE_BY_DEFAULT: &[&str] = &["vaapih264dec", "vulkanh264dec", "qsvh264dec", "d3d12h264dec"];

/// The rows to try, best first.
pub fn candidates(choice: &DecoderChoice) -> Vec<&'static DecoderRow> {
    decoders::candidates(choice, Platform::current(), is_usable)
}

/// Why `choice` leaves nothing to try.
pub(super) fn why_none(choice: &DecoderChoice) -> String {
    match choice {
        DecoderChoice::Named(name) => decoders::row(name).map_or_else(
            || format!("there is no decoder {name:?}"),
            |row| absence(row, gst::Registry::get().find_plugin(row.plugin).is_some()),
        ),
        DecoderChoice::Auto | DecoderChoice::Software => {
            "no H.264 decoder of the kind asked for is usable on this machine; `doctor` says what to install"
                .to_owned()
        }
    }
}

fn absence(row: &DecoderRow, plugin: bool) -> String {
    let DecoderRow {
        factory: name,
        plugin: home,
        ..
    } = row;
    if gst::ElementFactory::find(name).is_some() {
        format!("the decoder {name} is switched off: GST_PLUGIN_FEATURE_RANK ranks it NONE")
    } else if plugin {
        format!(
            "the decoder {name} is not there: the plugin `{home}` is installed, but finds no device or driver for it"
        )
    } else {
        format!(
            "the decoder {name} is not installed; it comes with {}",
            row.packages()
        )
    }
}

/// The first usable software decoder for pictures of `row`'s kind other than `row` itself: the judge of its
/// first picture.
pub(super) fn reference_for(
    row: &DecoderRow,
    chroma: crossdesk_core::h264::ChromaFormat,
) -> Option<&'static DecoderRow> {
    candidates(&DecoderChoice::Software)
        .into_iter()
        .find(|software| software.factory != row.factory && software.takes(chroma))
}

/// True when the factory is installed and not ranked NONE by the user.
pub fn is_usable(factory: &str) -> bool {
    gst::ElementFactory::find(factory).is_some_and(|found| !is_excluded(&found))
}

/// True when the user ranked an installed factory NONE.
pub(super) fn is_excluded(factory: &gst::ElementFactory) -> bool {
    let name = factory.name();
    factory.rank() == gst::Rank::NONE
        && (!RANKED_NONE_BY_DEFAULT.contains(&name.as_str()) || is_named_in_environment(&name))
}

fn is_named_in_environment(factory: &str) -> bool {
    std::env::var("GST_PLUGIN_FEATURE_RANK").is_ok_and(|ranks| ranks_none(&ranks, factory))
}

/// True when a value of `GST_PLUGIN_FEATURE_RANK` (`name:rank,…`) gives `factory` rank NONE.
fn ranks_none(ranks: &str, factory: &str) -> bool {
    ranks.split(',').any(|entry| {
        entry.split_once(':').is_some_and(|(name, rank)| {
            name.trim() == factory && (rank.trim().eq_ignore_ascii_case("none") || rank.trim() == "0")
        })
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_rank_of_none_is_read_from_the_environment_variable() {
        assert!(ranks_none("a:MAX, vaapih264dec:none", "vaapih264dec"));
        assert!(ranks_none("vaapih264dec:0", "vaapih264dec"));
        assert!(!ranks_none("vaapih264dec:1", "vaapih264dec"));
        assert!(!ranks_none("xvaapih264dec:NONE", "vaapih264dec"));
        assert!(!ranks_none("", "vaapih264dec"));
    }

    #[test]
    fn a_decoder_that_is_not_there_is_named_with_its_package() {
        crate::gst::init().unwrap();
        let row = decoders::row("vtdec").unwrap();
        assert_eq!(
            absence(row, false),
            "the decoder vtdec is not installed; it comes with the GStreamer plugin `applemedia`"
        );
        assert!(absence(row, true).contains("no device or driver"));
        let named = DecoderChoice::Named("vtdec".to_owned());
        assert!(candidates(&named).is_empty() && why_none(&named).contains("vtdec"));
    }

    #[test]
    fn an_installed_software_decoder_is_usable_and_an_unknown_one_is_not() {
        crate::gst::init().unwrap();
        assert!(is_usable("avdec_h264"));
        assert!(!is_usable("nosuchdec"));
    }
}
