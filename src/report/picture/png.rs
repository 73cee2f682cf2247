//! A picture as PNG. Text is drawn with the glyphs of Noto Sans Mono as they are compiled in: no
//! font of the machine is needed, and the same picture gives the same bytes everywhere.

use noto_sans_mono_bitmap::{FontWeight, RasterHeight, get_raster};

use super::PictureError;
use super::scene::{Anchor, CHAR, Fill, Ink, PAPER, Scene, Shape, columns, sign};

/// Rows of a glyph, and how far its base line is below its top.
const GLYPH: RasterHeight = RasterHeight::Size16;
const BASE: i32 = 12;
/// Rows of the box that stands for a letter which the font does not have.
const BOX: i32 = 9;
/// Points of a pixel that are looked at, in each direction, for the edges of signs.
const FINE: i32 = 4;

/// The file.
pub fn write(scene: &Scene) -> Result<Vec<u8>, PictureError> {
    let mut pixels = Pixels::new(scene.width, scene.height);
    for shape in &scene.shapes {
        pixels.shape(shape);
    }
    let mut out = Vec::new();
    let (w, h) = (scene.width.unsigned_abs(), scene.height.unsigned_abs());
    let mut encoder = png::Encoder::new(&mut out, w, h);
    encoder.set_color(png::ColorType::Rgb);
    encoder.set_depth(png::BitDepth::Eight);
    encoder.set_compression(png::Compression::Balanced);
    let title: String = scene.title.chars().take(79).collect();
    let failed = |error: png::EncodingError| PictureError::Png(error.to_string());
    let keyword = "Title".to_owned();
    let titled = if title.is_ascii() {
        encoder.add_text_chunk(keyword, title)
    } else {
        encoder.add_itxt_chunk(keyword, title)
    };
    titled.map_err(failed)?;
    let mut writer = encoder.write_header().map_err(failed)?;
    writer.write_image_data(&pixels.bytes).map_err(failed)?;
    writer.finish().map_err(failed)?;
    Ok(out)
}

/// Texts with a letter or a mark that the font does not have.
pub fn unshown(scene: &Scene) -> usize {
    let lacks = |c: char| get_raster(c, FontWeight::Regular, GLYPH).is_none();
    let texts = scene.shapes.iter().filter(|shape| match shape {
        Shape::Text { text, .. } => text.chars().any(lacks),
        _ => false,
    });
    texts.count()
}

struct Pixels {
    width: i32,
    height: i32,
    bytes: Vec<u8>,
}

impl Pixels {
    fn new(width: i32, height: i32) -> Self {
        let count = width.unsigned_abs() as usize * height.unsigned_abs() as usize;
        Self { width, height, bytes: vec![0xff; 3 * count] }
    }

    /// Mixes a colour in; `share` of 255 is all of it.
    fn mix(&mut self, x: i32, y: i32, ink: Ink, share: u8) {
        if x < 0 || y < 0 || x >= self.width || y >= self.height {
            return;
        }
        let at = 3 * (y as usize * self.width as usize + x as usize);
        for (old, new) in self.bytes[at..at + 3].iter_mut().zip([ink.0, ink.1, ink.2]) {
            let sum = u16::from(*old) * u16::from(255 - share) + u16::from(new) * u16::from(share);
            *old = (sum / 255) as u8;
        }
    }

    fn shape(&mut self, shape: &Shape) {
        match shape {
            Shape::Rect([x, y, w, h], fill) => self.fill((*x, x + w), (*y, y + h), *fill),
            Shape::Frame([x, y, w, h], ink) => {
                let fill = Fill::Plain(*ink);
                self.fill((*x, x + w), (*y, y + 1), fill);
                self.fill((*x, x + w), (y + h - 1, y + h), fill);
                self.fill((*x, x + 1), (*y, y + h), fill);
                self.fill((x + w - 1, x + w), (*y, y + h), fill);
            }
            Shape::Area(_, steps, fill) => {
                for step in steps {
                    self.fill((step.x, step.end), (step.top, step.bottom), *fill);
                }
            }
            Shape::Dashes([x, y, h], ink) => {
                for row in (0..*h).filter(|row| row % 6 < 3) {
                    self.mix(*x, y + row, *ink, 255);
                }
            }
            Shape::Sign([x, y], kind, _) => {
                let (polygons, ink) = sign(*kind);
                self.polygons(polygons, (*x, *y), ink);
            }
            Shape::Text { at, text, ink, anchor, bold } => {
                self.text(*at, text, *ink, *anchor, *bold);
            }
        }
    }

    fn fill(&mut self, (from, to): (i32, i32), (top, bottom): (i32, i32), fill: Fill) {
        for y in top.max(0)..bottom.min(self.height) {
            for x in from.max(0)..to.min(self.width) {
                let ink = match fill {
                    Fill::Plain(ink) => ink,
                    Fill::Striped(ink) if (x + y) % 6 < 2 => ink,
                    Fill::Dotted(ink) if x % 4 < 2 && y % 4 < 2 => ink,
                    _ => PAPER,
                };
                self.mix(x, y, ink, 255);
            }
        }
    }

    /// Signs are small: every point of their neighbourhood is looked at. A thin edge of paper keeps
    /// them apart from what lies beneath.
    fn polygons(&mut self, polygons: &[&[(i32, i32)]], (x, y): (i32, i32), ink: Ink) {
        let share = |dx: i32, dy: i32, grown: i32| {
            let mut inside = 0;
            for n in 0..FINE * FINE {
                let point =
                    (2 * FINE * dx + 2 * (n % FINE) + 1, 2 * FINE * dy + 2 * (n / FINE) + 1);
                let near = [(0, 0), (-grown, 0), (grown, 0), (0, -grown), (0, grown)];
                let hit = near.iter().any(|by| {
                    let point = (point.0 + by.0, point.1 + by.1);
                    polygons.iter().any(|polygon| contains(polygon, point))
                });
                inside += i32::from(hit);
            }
            (inside * 255 / (FINE * FINE)) as u8
        };
        for dy in -8..8 {
            for dx in -8..8 {
                self.mix(x + dx, y + dy, PAPER, share(dx, dy, 2 * FINE));
                self.mix(x + dx, y + dy, ink, share(dx, dy, 0));
            }
        }
    }

    fn text(&mut self, at: [i32; 2], text: &str, ink: Ink, anchor: Anchor, bold: bool) {
        let pixels = columns(text) * CHAR;
        let mut x = match anchor {
            Anchor::Start => at[0],
            Anchor::Middle => at[0] - pixels / 2,
            Anchor::End => at[0] - pixels,
        };
        let weight = if bold { FontWeight::Bold } else { FontWeight::Regular };
        for c in text.chars() {
            let columns = columns(c.encode_utf8(&mut [0; 4]));
            if columns == 0 {
                continue;
            }
            let Some(raster) = get_raster(c, weight, GLYPH) else {
                // An empty box, as wide as what it stands for: a question mark may be a name's own.
                let frame = [x + 1, at[1] - BOX, columns * CHAR - 2, BOX];
                self.shape(&Shape::Frame(frame, ink));
                x += columns * CHAR;
                continue;
            };
            for (dy, row) in (0..).zip(raster.rows()) {
                for (dx, share) in (0..).zip(row) {
                    self.mix(x + dx, at[1] - BASE + dy, ink, *share);
                }
            }
            x += columns * CHAR;
        }
    }
}

/// Whether a point, in eighths of a pixel, lies in a polygon: by counting the edges to its right.
fn contains(polygon: &[(i32, i32)], (x, y): (i32, i32)) -> bool {
    let fine = |n: i32| n * 2 * FINE;
    let mut inside = false;
    for (n, &(ax, ay)) in polygon.iter().enumerate() {
        let (bx, by) = polygon[(n + 1) % polygon.len()];
        let (ax, ay, bx, by) = (fine(ax), fine(ay), fine(bx), fine(by));
        if (ay > y) != (by > y) {
            // x < ax + (y - ay) * (bx - ax) / (by - ay), without the division.
            let left = (x - ax) * (by - ay);
            let right = (y - ay) * (bx - ax);
            inside ^= if by > ay { left < right } else { left > right };
        }
    }
    inside
}
