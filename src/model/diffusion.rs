//! Diffusion pipelines: text encoders, denoiser, VAE, and the scratch of each.

use std::fs::File;
use std::path::Path;

use serde::Serialize;
use serde_json::Value as Json;

use super::error::ModelError;
use super::safetensors;

/// Scratch of the VAE's decoder in 32-bit, bytes an output pixel: 13 maps of 512 channels at an
/// eighth of the side in each direction, 4 bytes a value (512 × 13).
const VAE_BYTES_PER_PIXEL: u64 = 6656;
/// Of it, what 16-bit takes.
const VAE_HALF: u64 = 2;
/// Side of a tile that the decoder works on where tiling is on, in pixels.
const TILE: u64 = 512;

/// A pipeline.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Pipeline {
    /// What to call it. Hostile text.
    pub name: String,
    /// The family whose scratch figures are used.
    pub family: Option<&'static str>,
    /// Bytes of the text encoders.
    pub text_bytes: u64,
    /// Bytes of the denoiser.
    pub denoiser_bytes: u64,
    /// Bytes of the VAE.
    pub vae_bytes: u64,
}

struct Family {
    key: &'static str,
    names: &'static [&'static str],
    /// 16-bit weights in thousands of bytes: text encoders, denoiser, VAE.
    kilobytes: [u64; 3],
    /// Scratch of the denoiser in KiB by side in pixels, without flash attention.
    plain: &'static [(u64, u64)],
    /// The same with flash attention.
    flash: &'static [(u64, u64)],
}

/// Weights after the model cards; scratch as stable-diffusion.cpp logs it.
const FAMILIES: [Family; 7] = [
    Family {
        key: "sd1",
        names: &["sd1", "sd1.5", "sd15", "stable-diffusion-v1-5"],
        kilobytes: [246_000, 1_720_000, 167_000],
        plain: &[(512, 573_338), (1024, 8_561_664)],
        flash: &[],
    },
    Family {
        key: "sd2",
        names: &["sd2", "sd2.1", "stable-diffusion-2-1"],
        kilobytes: [681_000, 1_732_000, 167_000],
        plain: &[(512, 376_812)],
        flash: &[(512, 133_612), (1024, 531_456)],
    },
    Family {
        key: "sdxl",
        names: &["sdxl", "stable-diffusion-xl", "stable-diffusion-xl-base-1.0"],
        kilobytes: [1_640_000, 5_135_000, 167_000],
        plain: &[(512, 135_219), (1024, 850_801), (1536, 3_694_162)],
        flash: &[(512, 135_219), (1024, 451_584), (1536, 1_136_722)],
    },
    Family {
        key: "sd3.5-medium",
        names: &["sd3", "sd3-medium", "sd3.5-medium", "stable-diffusion-3.5-medium"],
        kilobytes: [11_150_000, 4_940_000, 168_000],
        plain: &[(1024, 1_828_864)],
        flash: &[],
    },
    Family {
        key: "sd3.5-large",
        names: &["sd3.5-large", "stable-diffusion-3.5-large"],
        kilobytes: [11_150_000, 16_100_000, 168_000],
        plain: &[(1024, 2_934_211)],
        flash: &[],
    },
    Family {
        key: "flux.1",
        names: &["flux", "flux.1", "flux.1-dev", "flux.1-schnell", "flux1-dev", "flux1-schnell"],
        kilobytes: [9_780_000, 23_800_000, 168_000],
        plain: &[(512, 407_603), (1024, 2_637_824), (1536, 10_262_006)],
        flash: &[],
    },
    Family {
        key: "qwen-image",
        names: &["qwen-image"],
        kilobytes: [16_600_000, 40_900_000, 254_000],
        plain: &[],
        flash: &[],
    },
];

/// Classes of `model_index.json` by which a family is known.
const CLASSES: [(&str, &str); 6] = [
    ("StableDiffusionXL", "sdxl"),
    ("StableDiffusion3", "sd3.5-medium"),
    ("Flux", "flux.1"),
    ("QwenImage", "qwen-image"),
    ("StableDiffusion2", "sd2"),
    ("StableDiffusion", "sd1"),
];

fn family(key: &str) -> Option<&'static Family> {
    FAMILIES.iter().find(|f| f.key == key)
}

/// The pipeline of this name, 16-bit.
pub fn named(text: &str) -> Option<Pipeline> {
    let text = text.to_ascii_lowercase();
    let found = FAMILIES.iter().find(|f| f.names.contains(&text.as_str()))?;
    let [text_bytes, denoiser_bytes, vae_bytes] = found.kilobytes.map(|k| k * 1000);
    let name = found.key.to_owned();
    Some(Pipeline { name, family: Some(found.key), text_bytes, denoiser_bytes, vae_bytes })
}

/// The pipeline of a folder of diffusers: every component's safetensors are summed up.
pub(crate) fn from_folder(path: &Path, index: &Json) -> Result<Pipeline, ModelError> {
    let class = index.get("_class_name").and_then(Json::as_str).unwrap_or_default();
    let family = CLASSES.iter().find(|row| class.starts_with(row.0)).map(|row| row.1);
    let name = path.file_name().map_or_else(String::new, |n| n.to_string_lossy().into_owned());
    let mut pipeline = Pipeline { name, family, text_bytes: 0, denoiser_bytes: 0, vae_bytes: 0 };
    let parts = index.as_object().into_iter().flat_map(|map| map.keys());
    for part in parts.filter(|k| !k.starts_with('_') && !k.contains(['/', '\\', '.'])).take(64) {
        let bytes = component(&path.join(part))?;
        let sum = if part.starts_with("text_encoder") || part.starts_with("image_encoder") {
            &mut pipeline.text_bytes
        } else if part.starts_with("vae") {
            &mut pipeline.vae_bytes
        } else {
            &mut pipeline.denoiser_bytes
        };
        *sum = sum.saturating_add(bytes);
    }
    Ok(pipeline)
}

fn component(path: &Path) -> Result<u64, ModelError> {
    let Ok(entries) = std::fs::read_dir(path) else { return Ok(0) };
    let mut names: Vec<String> =
        entries.flatten().take(1000).filter_map(|e| e.file_name().into_string().ok()).collect();
    names.retain(|n| n.ends_with(".safetensors"));
    // A half-precision double of the same weights is the one that is used.
    if names.iter().any(|n| n.contains(".fp16.")) {
        names.retain(|n| n.contains(".fp16."));
    }
    let mut sum = 0_u64;
    for name in names {
        let file = path.join(name);
        let open = File::open(&file).map_err(|source| ModelError::Io { path: file, source })?;
        for tensor in safetensors::read(open)? {
            sum = sum.saturating_add(tensor.bytes);
        }
    }
    Ok(sum)
}

/// How a pipeline is run.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
pub struct Image {
    /// Width in pixels.
    pub width: u64,
    /// Height in pixels.
    pub height: u64,
    /// Images at the same time; twice that where guidance is batched.
    pub batch: u64,
    /// Flash attention.
    pub flash: bool,
    /// Whether the VAE decodes in tiles.
    pub tiled: bool,
    /// Whether the VAE works in 32-bit.
    pub vae_f32: bool,
}

impl Default for Image {
    fn default() -> Self {
        let (width, height) = (1024, 1024);
        Self { width, height, batch: 1, flash: true, tiled: false, vae_f32: false }
    }
}

/// The moments of a run in bytes, with everything resident.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize)]
pub struct DiffusionNeed {
    /// All weights.
    pub weights: u64,
    /// Scratch of the denoiser; `None` where no figure is known for the family.
    pub denoiser_scratch: Option<u64>,
    /// Scratch of the VAE's decoder.
    pub vae_scratch: u64,
}

impl DiffusionNeed {
    /// The peak with everything resident.
    pub fn peak(&self) -> u64 {
        self.weights.saturating_add(self.vae_scratch.max(self.denoiser_scratch.unwrap_or(0)))
    }
}

/// Scratch of the denoiser in bytes, from the measured sides; between and beyond them it grows
/// with the pixels, or with their square where attention is not fused.
pub fn denoiser_scratch(family_key: &str, image: &Image) -> Option<u64> {
    let family = family(family_key)?;
    let fused = image.flash && !family.flash.is_empty();
    let points = if fused { family.flash } else { family.plain };
    let pixels = image.width.saturating_mul(image.height).clamp(1, 1 << 40);
    let nearest = points.iter().min_by_key(|p| (p.0 * p.0).abs_diff(pixels))?;
    let base = u128::from(nearest.1) * 1024;
    let from = u128::from(nearest.0 * nearest.0);
    let to = u128::from(pixels);
    let scaled = if fused || to < from { base * to / from } else { base * to / from * to / from };
    u64::try_from(scaled * u128::from(image.batch.max(1))).ok()
}

/// Scratch of the VAE's decoder in bytes.
pub fn vae_scratch(image: &Image) -> u64 {
    let pixels = image.width.saturating_mul(image.height);
    let pixels = if image.tiled { pixels.min(TILE * TILE) } else { pixels };
    let full = pixels.saturating_mul(VAE_BYTES_PER_PIXEL);
    let one = if image.vae_f32 { full } else { full / VAE_HALF };
    one.saturating_mul(image.batch.max(1))
}

/// What a run needs.
pub fn need(pipeline: &Pipeline, image: &Image) -> DiffusionNeed {
    let weights = pipeline.text_bytes.saturating_add(pipeline.denoiser_bytes);
    DiffusionNeed {
        weights: weights.saturating_add(pipeline.vae_bytes),
        denoiser_scratch: pipeline.family.and_then(|f| denoiser_scratch(f, image)),
        vae_scratch: vae_scratch(image),
    }
}
