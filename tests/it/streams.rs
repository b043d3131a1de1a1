//! The conformance streams, cut into access units and conditioned: pictures, sizes and promises.

use std::path::PathBuf;

use bytes::Bytes;
use crossdesk_core::h264::{AccessUnits, Conditioned, Conditioner, NalKind, Reorder, nals};
use crossdesk_core::testing::Seeded;
use crossdesk_core::testing::h264::Damage;
use crossdesk_core::units::PixelSize;

/// One row of `manifest.tsv`.
struct Row {
    file: String,
    size: PixelSize,
    pictures: usize,
    damaged: bool,
}

fn folder() -> PathBuf {
    PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("tests/data/h264")
}

fn read(file: &str) -> Vec<u8> {
    std::fs::read(folder().join(file)).expect(file)
}

fn rows() -> Vec<Row> {
    let manifest = std::fs::read_to_string(folder().join("manifest.tsv")).expect("manifest");
    let row = |line: &str| {
        let cells: Vec<_> = line.split('\t').collect();
        let number = |index: usize| cells[index].parse::<u32>().expect(line);
        Row {
            file: cells[0].to_owned(),
            size: PixelSize::new(number(1), number(2)),
            pictures: number(3) as usize,
            damaged: cells[6].starts_with("damaged"),
        }
    };
    manifest.lines().skip(1).map(row).collect()
}

/// Every access unit of `stream` through one conditioner; those without a picture are left out.
fn pictures(file: &str, stream: &[u8]) -> Vec<Conditioned> {
    let mut conditioner = Conditioner::new();
    AccessUnits::new(stream)
        .map(|unit| conditioner.condition(Bytes::copy_from_slice(unit)).expect(file))
        .filter(|unit| unit.has_picture)
        .collect()
}

#[test]
fn every_stream_has_the_pictures_and_sizes_of_the_manifest() {
    let rows = rows();
    assert!(rows.len() > 10, "the manifest is read");
    for row in rows {
        let pictures = pictures(&row.file, &read(&row.file));
        let sps = |unit: &Conditioned| unit.sps.clone().expect("every stream begins with its SPS");
        assert!(
            pictures.iter().all(|unit| sps(unit).frames_only),
            "{}: frames",
            row.file
        );
        if row.damaged {
            // A decoder shows fewer than arrive: it has nothing to begin with before the next IDR picture.
            assert!(pictures.len() >= row.pictures, "{}", row.file);
        } else {
            assert_eq!(pictures.len(), row.pictures, "{}", row.file);
        }
        assert_eq!(sps(&pictures[0]).visible_size(), row.size, "{}", row.file);
        assert!(pictures[0].changed, "{}", row.file);
        assert!(pictures[0].idr || row.damaged, "{}", row.file);
        assert!(sps(&pictures[0]).displayable().is_ok(), "{}", row.file);
    }
}

#[test]
fn every_idr_can_be_started_from() {
    for row in rows() {
        let found = pictures(&row.file, &read(&row.file));
        for unit in found.iter().filter(|unit| unit.idr) {
            let leading: Vec<_> = nals(&unit.data)
                .map(|nal| nal.kind())
                .take_while(|kind| !kind.is_slice())
                .collect();
            assert!(
                leading.contains(&NalKind::Sps) && leading.contains(&NalKind::Pps),
                "{}: {leading:?}",
                row.file
            );
        }
    }
}

#[test]
fn order_is_promised_for_baseline_and_never_for_b_frames() {
    for row in rows() {
        let found = pictures(&row.file, &read(&row.file));
        let sps = found.last().and_then(|unit| unit.sps.clone()).expect("SPS");
        if sps.profile_idc == 66 {
            assert_eq!(sps.reorder(), Reorder::None, "{}", row.file);
            let promise = sps.vui.as_ref().and_then(|vui| vui.restriction);
            assert!(promise.is_some(), "{}: written down for other decoders", row.file);
        } else if row.file.contains("Bframe") || row.file.contains("temporal_direct") {
            assert_ne!(sps.reorder(), Reorder::None, "{}", row.file);
        }
    }
}

#[test]
fn conditioning_twice_changes_nothing_more() {
    for row in rows() {
        let once = pictures(&row.file, &read(&row.file));
        let mut again = Conditioner::new();
        for unit in once {
            let twice = again.condition(unit.data.clone()).expect("passes");
            assert_eq!(twice.data.as_ptr(), unit.data.as_ptr(), "{}: copied", row.file);
            assert_eq!((twice.idr, twice.sps), (unit.idr, unit.sps), "{}", row.file);
        }
    }
}

#[test]
fn damaged_streams_come_back_with_the_next_whole_idr() {
    let stream = read("MIDR_MW_D.264");
    let units: Vec<_> = AccessUnits::new(&stream).collect();
    for seed in 0..20 {
        let mut random = Seeded::new(seed);
        let mut conditioner = Conditioner::new();
        for unit in &units {
            let damage = [Damage::FlipBits(8), Damage::Truncate][random.index(2)];
            let data = if random.once_in(3) {
                damage.apply(unit, &mut random)
            } else {
                unit.to_vec()
            };
            // What became of a damaged unit is not the point; that the next whole one passes is.
            let _ = conditioner.condition(data.into());
        }
        let idr = conditioner
            .condition(Bytes::copy_from_slice(units[0]))
            .expect("a whole IDR access unit passes");
        assert!(idr.idr);
        assert_eq!(
            idr.sps.map(|sps| sps.visible_size()),
            Some(PixelSize::new(176, 144))
        );
    }
}
