//! Screenshots: a picture or a part of it as PNG, made only when somebody asks.

mod deflate;
mod fit;
mod huffman;
mod render;

use crossdesk_core::media::Color;
use crossdesk_core::units::{PixelRect, PixelSize};

use self::deflate::Deflater;
use self::render::Renderer;
use super::covers;
use super::rgb::RGB;
use crate::picture::{MapError, Picture, Planes};

/// What part of a picture is wanted and how large the result may be.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct PngRequest {
    /// The part wanted, in source pixels; `None` is the whole picture.
    pub region: Option<PixelRect>,
    /// Longest edge of the result in pixels; the result is never larger than the part it shows.
    pub max_edge: u32,
    /// Most bytes of the PNG file; dimensions are reduced until it fits.
    pub max_bytes: usize,
}

/// A finished PNG file and what it shows.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Png {
    /// The PNG file.
    pub data: Vec<u8>,
    /// The source pixels it shows, all of them and no others.
    pub source_rect: PixelRect,
    /// Its width and height in pixels.
    pub image_size: PixelSize,
    /// The size of the picture it was taken from.
    pub source_size: PixelSize,
}

/// Why there is no PNG.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum PngError {
    /// The region has no pixel in common with the picture.
    OutsidePicture,
    /// The decoder's memory could not be read.
    Map(MapError),
    /// The decoder's planes are smaller than the picture they belong to.
    ShortPlanes,
    /// Not even one pixel fits into the bytes allowed.
    TooFewBytes,
}

impl std::fmt::Display for PngError {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Self::OutsidePicture => f.write_str("the region lies outside the picture"),
            Self::Map(error) => write!(f, "the decoded picture cannot be read: {error}"),
            Self::ShortPlanes => f.write_str("the decoded planes are smaller than their picture"),
            Self::TooFewBytes => f.write_str("no PNG fits into so few bytes"),
        }
    }
}

impl std::error::Error for PngError {
    fn source(&self) -> Option<&(dyn std::error::Error + 'static)> {
        match self {
            Self::Map(error) => Some(error),
            _ => None,
        }
    }
}

/// Files made before one of a size that fits whatever the picture shows.
const GUESSES: usize = 4;

/// Makes PNG files and keeps its working memory for the next one; one per worker thread.
#[derive(Default)]
pub struct PngEncoder {
    renderer: Renderer,
    deflater: Deflater,
}

impl std::fmt::Debug for PngEncoder {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("PngEncoder")
    }
}

impl PngEncoder {
    /// An encoder that holds no memory yet.
    pub fn new() -> Self {
        Self::default()
    }

    /// Crops, scales, converts and compresses `picture` as `request` asks.
    ///
    /// The same picture and request give the same file. A region that lies partly outside is cut at the edge of the
    /// picture; `source_rect` says what is left.
    ///
    /// # Errors
    /// When the region shows nothing, the decoder's memory cannot be read, or nothing fits into the bytes allowed.
    pub fn encode(&mut self, picture: &Picture, request: &PngRequest) -> Result<Png, PngError> {
        let mut result = Err(PngError::Map(MapError("the decoder gave no samples")));
        let mut read = |planes: Planes<'_>| {
            result = self.encode_planes(&planes, picture.size, picture.color, request);
        };
        picture.frame.map(&mut read).map_err(PngError::Map)?;
        result
    }

    /// The same for samples that are mapped already.
    ///
    /// # Errors
    /// As `encode`.
    pub fn encode_planes(
        &mut self,
        planes: &Planes<'_>,
        source_size: PixelSize,
        color: Color,
        request: &PngRequest,
    ) -> Result<Png, PngError> {
        let source_rect = fit::clamp_region(request.region, source_size).ok_or(PngError::OutsidePicture)?;
        if !covers(planes, source_size) {
            return Err(PngError::ShortPlanes);
        }
        let mut image_size = fit::within_edge(source_rect.size(), request.max_edge);
        let sure_edge = fit::edge_that_surely_fits(source_rect.size(), request.max_bytes).unwrap_or(1);
        let mut effort = Effort::Little;
        for guess in 1.. {
            let rgb = self.renderer.render(planes, color, source_rect, image_size);
            let data = compress(&mut self.deflater, rgb, image_size, effort);
            if data.len() <= request.max_bytes {
                return Ok(Png {
                    data,
                    source_rect,
                    image_size,
                    source_size,
                });
            }
            let edge = image_size.longest_edge();
            if edge <= sure_edge && effort == Effort::More {
                break;
            }
            let bytes = effort.bytes_with_more(data.len());
            effort = Effort::More;
            let next = match guess {
                GUESSES.. => sure_edge,
                _ if bytes <= request.max_bytes => edge,
                _ => fit::smaller_edge(edge, bytes, request.max_bytes),
            };
            image_size = fit::within_edge(source_rect.size(), next.max(sure_edge));
        }
        Err(PngError::TooFewBytes)
    }
}

/// How hard to look for a small file.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Effort {
    /// The same filter for every row, and no matches but zeros: the fastest.
    Little,
    /// The best filter of every row: compressing takes three times as long, for a tenth less on desktop pictures.
    More,
}

impl Effort {
    /// What a file of `bytes` is likely to take with more effort.
    fn bytes_with_more(self, bytes: usize) -> usize {
        match self {
            Self::Little => bytes - bytes / 10,
            Self::More => bytes,
        }
    }
}

/// A PNG file of tight RGB rows; see `docs/decisions/screenshots.md` for the choice of compression.
fn compress(deflater: &mut Deflater, rgb: &[u8], size: PixelSize, effort: Effort) -> Vec<u8> {
    // Desktop pictures take about one byte a pixel.
    let mut data = Vec::with_capacity(size.area() as usize);
    let mut encoder = png::Encoder::new(&mut data, size.width, size.height);
    encoder.set_color(png::ColorType::Rgb);
    encoder.set_depth(png::BitDepth::Eight);
    encoder.set_compression(png::Compression::Fast);
    encoder.set_filter(png::Filter::Adaptive);
    let fast = match effort {
        Effort::Little => Some(deflater.compress(rgb, size.width as usize * RGB)),
        Effort::More => None,
    };
    encoder
        .write_header()
        .and_then(|mut writer| {
            match fast {
                Some(fast) => writer.write_chunk(png::chunk::IDAT, fast)?,
                None => writer.write_image_data(rgb)?,
            }
            writer.finish()
        })
        .expect("memory takes every write, and the rows are as long as the header says");
    data
}

#[cfg(test)]
mod tests;
