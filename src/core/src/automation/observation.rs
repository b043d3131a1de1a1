//! Screenshots that actions may refer to, and how their pixels map to the remote picture.

use std::collections::VecDeque;
use std::time::Duration;

use crate::control::Point;
use crate::error::ErrorCode;
use crate::time::Monotonic;
use crate::units::{PixelRect, PixelSize};

use super::request::ImagePoint;

/// Most observations kept (protocol, "Actions").
pub(super) const CAPACITY: usize = 32;
/// How long an observation may be acted on (protocol, "Actions").
pub(super) const LIFETIME: Duration = Duration::from_secs(30);

/// What a screenshot showed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct View {
    /// The whole picture.
    pub(super) source_size: PixelSize,
    /// The part shown.
    pub(super) source_rect: PixelRect,
    /// The image it was scaled to.
    pub(super) image_size: PixelSize,
}

impl View {
    /// The place on the remote picture that `at` shows: the middle of the pixel, so that rounding down on the host
    /// meets the same pixel again when the image is not scaled.
    pub(super) fn locate(&self, at: ImagePoint) -> Result<Point, ErrorCode> {
        if at.x >= self.image_size.width || at.y >= self.image_size.height {
            return Err(ErrorCode::CoordinateOutOfBounds);
        }
        let rect = self.source_rect;
        Ok(Point {
            x: axis(
                at.x,
                self.image_size.width,
                rect.x,
                rect.width,
                self.source_size.width,
            ),
            y: axis(
                at.y,
                self.image_size.height,
                rect.y,
                rect.height,
                self.source_size.height,
            ),
        })
    }
}

fn axis(pixel: u32, pixels: u32, start: u32, length: u32, whole: u32) -> f64 {
    let across = (f64::from(pixel) + 0.5) / f64::from(pixels);
    let source = f64::from(start) + across * f64::from(length);
    (source / f64::from(whole)).clamp(0.0, 1.0)
}

#[derive(Clone, Debug)]
struct Observation {
    id: String,
    view: View,
    made: Monotonic,
}

/// The newest observations of the current generation and geometry.
#[derive(Debug, Default)]
pub(super) struct Observations {
    kept: VecDeque<Observation>,
    issued: u64,
}

impl Observations {
    /// Remembers a screenshot and names it.
    pub(super) fn add(&mut self, now: Monotonic, generation: u32, view: View) -> String {
        if self.kept.len() == CAPACITY {
            self.kept.pop_front();
        }
        self.issued += 1;
        let id = format!("obs_{generation}_{}", self.issued);
        self.kept.push_back(Observation {
            id: id.clone(),
            view,
            made: now,
        });
        id
    }

    /// What the screenshot called `id` showed, while it may still be acted on.
    pub(super) fn find(&self, now: Monotonic, id: &str) -> Result<View, ErrorCode> {
        self.kept
            .iter()
            .find(|observation| observation.id == id && now.since(observation.made) < LIFETIME)
            .map(|observation| observation.view)
            .ok_or(ErrorCode::ObservationInvalid)
    }

    /// Forgets all: what they showed is not what is there now.
    pub(super) fn clear(&mut self) {
        self.kept.clear();
    }

    /// How many are kept.
    #[cfg(any(test, feature = "testing"))]
    pub(super) fn len(&self) -> usize {
        self.kept.len()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn view(source: (u32, u32), rect: [u32; 4], image: (u32, u32)) -> View {
        let [x, y, width, height] = rect;
        View {
            source_size: PixelSize::new(source.0, source.1),
            source_rect: PixelRect { x, y, width, height },
            image_size: PixelSize::new(image.0, image.1),
        }
    }

    /// The source pixel a host hits that rounds down.
    fn hit(view: &View, x: u32, y: u32) -> (u32, u32) {
        let point = view.locate(ImagePoint { x, y }).expect("inside");
        let pixel = |along: f64, whole: u32| (along * f64::from(whole)) as u32;
        (
            pixel(point.x, view.source_size.width),
            pixel(point.y, view.source_size.height),
        )
    }

    #[test]
    fn unscaled_pixels_hit_themselves() {
        let view = view((1920, 1080), [0, 0, 1920, 1080], (1920, 1080));
        for at in [(0, 0), (1, 1), (959, 539), (1919, 1079)] {
            assert_eq!(hit(&view, at.0, at.1), at);
        }
    }

    #[test]
    fn scaled_and_cropped_pixels_hit_the_middle_of_what_they_show() {
        let halved = view((2000, 1200), [0, 0, 2000, 1200], (1000, 600));
        // The middle of a 2x2 block lies on a pixel border, so either neighbour is right.
        assert!(matches!(hit(&halved, 500, 300), (1000 | 1001, 600 | 601)));
        let cropped = view((1920, 1080), [100, 200, 320, 240], (320, 240));
        assert_eq!(hit(&cropped, 0, 0), (100, 200));
        assert_eq!(hit(&cropped, 319, 239), (419, 439));
        // A capped image of a 2560x2880 picture: the result stays inside the region.
        let capped = view((2560, 2880), [0, 0, 2560, 2880], (2133, 2400));
        assert!(matches!(hit(&capped, 1066, 1867), (1279 | 1280, 2240 | 2241)));
    }

    #[test]
    fn bounds_are_those_of_the_image_not_of_the_source() {
        let view = view((2880, 1800), [0, 0, 2880, 1800], (1280, 800));
        assert!(view.locate(ImagePoint { x: 1279, y: 799 }).is_ok());
        for (x, y) in [(1280, 0), (0, 800), (1900, 1190), (u32::MAX, u32::MAX)] {
            assert_eq!(
                view.locate(ImagePoint { x, y }),
                Err(ErrorCode::CoordinateOutOfBounds)
            );
        }
    }

    #[test]
    fn they_expire_are_bounded_and_named_by_generation() {
        let mut observations = Observations::default();
        let view = view((64, 64), [0, 0, 64, 64], (64, 64));
        let first = observations.add(Monotonic::ZERO, 2, view);
        assert_eq!(first, "obs_2_1");
        let almost = Monotonic::ZERO + (LIFETIME - Duration::from_micros(1));
        assert!(observations.find(almost, &first).is_ok());
        let late = Monotonic::ZERO + LIFETIME;
        assert_eq!(
            observations.find(late, &first),
            Err(ErrorCode::ObservationInvalid)
        );
        for _ in 0..CAPACITY {
            observations.add(Monotonic::ZERO, 2, view);
        }
        assert_eq!(observations.len(), CAPACITY);
        assert!(observations.find(Monotonic::ZERO, &first).is_err());
        assert!(observations.find(Monotonic::ZERO, "obs_2_2").is_ok());
        observations.clear();
        assert!(observations.find(Monotonic::ZERO, "obs_2_2").is_err());
    }
}
