//! What a step changes, and what to type.

use super::{Case, USUAL_QUANT};
use crate::cmd::fit::answer::{Fits, Step, Verdict, fits, label, overhead, reference};
use crate::model::ggml::CacheType;
use crate::model::quant::named;
use crate::model::savings::Running;
use crate::sample::text::shell_word;

impl Case<'_> {
    pub(super) fn steps(&self) -> Vec<Step> {
        let running =
            Running { shape: self.shape(), weights: &self.model.weights, settings: &self.settings };
        let s = &self.settings;
        let layers = s.gpu_layers.min(self.all_layers());
        let mut steps = Vec::new();
        let mut step = |title: String, frees: u64, flag: String| {
            steps.push(Step { title, frees_bytes: frees, flag, then_fits: false });
        };
        if s.compute.flash && !s.cache.keys.is_quantised() {
            for (kind, name) in [(CacheType::Q8_0, "q8_0"), (CacheType::Q4_0, "q4_0")] {
                let freed = running.cache_type(kind).bytes;
                step(format!("{name} cache"), freed, format!("-ctk {name} -ctv {name}"));
            }
        }
        let half = s.cache.context / 2;
        step("half the context".into(), running.half_context().bytes, format!("-c {half}"));
        if s.cache.slots > 1 {
            step("one slot".into(), running.slots(1).bytes, "-np 1".into());
        }
        if s.cache.ubatch > 128 {
            let half = s.cache.ubatch / 2;
            step(
                "half the micro-batch".into(),
                running.micro_batch(half).bytes,
                format!("-ub {half}"),
            );
        }
        if self.model.weights.has_experts() {
            for n in [1, self.all_layers() / 4] {
                let title =
                    format!("experts of {n} {} to CPU", if n == 1 { "layer" } else { "layers" });
                let flag = format!("--n-cpu-moe {}", s.cpu_experts.saturating_add(n));
                step(title, running.experts_to_cpu(n).bytes, flag);
            }
        } else if layers > 4 {
            for n in [1, 4] {
                let title =
                    format!("{n} {} fewer on the GPU", if n == 1 { "layer" } else { "layers" });
                step(title, running.fewer_layers(n).bytes, format!("-ngl {}", layers - n));
            }
        }
        for name in ["Q4_K_M", "Q3_K_M"] {
            if let Some(quant) = named(name).filter(|_| self.model.quant.as_deref() != Some(name)) {
                let freed = running.quantised(&quant).bytes;
                step(format!("weights in {name}"), freed, format!("a {name} file"));
            }
        }
        steps.retain(|step| step.frees_bytes >= 1 << 20);
        steps.sort_by_key(|step| std::cmp::Reverse(step.frees_bytes));
        self.mark(&mut steps);
        steps
    }

    /// Marks the steps that would be enough, where it does not fit now.
    fn mark(&self, steps: &mut [Step]) {
        let Some((gpu, free)) = reference(self.cards).and_then(|g| Some((g, g.free.get()?))) else {
            return;
        };
        let cuda = overhead(self.options, Some(gpu));
        let need = self.placement.on_gpus().saturating_add(cuda.bytes);
        if fits(need, self.margin, free) == Fits::Yes {
            return;
        }
        for step in steps {
            let less = need.saturating_sub(step.frees_bytes);
            step.then_fits = fits(less, self.margin, free) == Fits::Yes;
        }
    }

    pub(super) fn lines(&self, verdicts: &[Verdict]) -> Vec<String> {
        let mut now = verdicts.iter().filter(|v| v.when == "now");
        let asked = (self.settings.gpu_layers, self.settings.cpu_experts);
        let context = self.settings.cache.context;
        let main = reference(self.cards).map(label);
        if let Some(fitting) = now.clone().find(|v| v.fits == Fits::Yes) {
            let chosen = now.find(|v| v.fits == Fits::Yes && Some(&v.gpu) == main.as_ref());
            let line = self.line(asked.0, asked.1, None);
            return vec![self.on(chosen.unwrap_or(fitting), line)];
        }
        // Together, or the one with the most room.
        let last = verdicts.last().filter(|v| v.gpu.starts_with("all "));
        let first = last.or_else(|| now.find(|v| Some(&v.gpu) == main.as_ref()));
        let Some(first) = first else { return vec![self.line(asked.0, asked.1, None)] };
        let mut lines = Vec::new();
        let shorter = first.longest_context.filter(|n| *n >= 2048 && *n < context);
        if let Some(best) = first.best {
            lines.push(self.line(best.gpu_layers, best.cpu_experts, None));
        }
        if let Some(shorter) = shorter {
            lines.push(self.line(self.all_layers(), 0, Some(shorter)));
        }
        lines
    }

    /// Names the GPU where it is not the only one.
    fn on(&self, verdict: &Verdict, line: String) -> String {
        let gpu = self.cards.iter().find(|gpu| label(gpu) == verdict.gpu);
        match gpu.and_then(|gpu| gpu.index).filter(|_| self.cards.len() > 1) {
            Some(n) => format!("CUDA_DEVICE_ORDER=PCI_BUS_ID CUDA_VISIBLE_DEVICES={n} {line}"),
            None => line,
        }
    }

    fn line(&self, gpu_layers: u64, cpu_experts: u64, context: Option<u64>) -> String {
        let s = &self.settings;
        let path = self.model.path.as_ref().map(|p| p.to_string_lossy().into_owned());
        let usual = format!("MODEL-{}.gguf", self.model.quant.as_deref().unwrap_or(USUAL_QUANT));
        let mut words = vec![
            "llama-server".to_owned(),
            format!("-m {}", shell_word(path.as_deref().unwrap_or(&usual))),
            format!("-c {}", context.unwrap_or(s.cache.context)),
            format!("-ngl {}", if gpu_layers >= self.all_layers() { 99 } else { gpu_layers }),
        ];
        let mut flag = |on: bool, text: String| {
            if on {
                words.push(text);
            }
        };
        flag(cpu_experts > 0 && gpu_layers > 0, format!("--n-cpu-moe {cpu_experts}"));
        flag(s.cache.keys != CacheType::F16, format!("-ctk {}", s.cache.keys.name()));
        flag(s.cache.values != CacheType::F16, format!("-ctv {}", s.cache.values.name()));
        flag(s.cache.values.is_quantised(), "-fa on".to_owned());
        flag(!s.compute.flash, "-fa off".to_owned());
        let slots = s.cache.slots;
        let say_slots = slots > 1 || self.shape().depends_on_slots();
        flag(say_slots, format!("-np {slots}"));
        flag(s.cache.ubatch != 512, format!("-ub {}", s.cache.ubatch));
        flag(s.cache.full_window, "--swa-full".to_owned());
        flag(!s.cache_on_gpu, "-nkvo".to_owned());
        let encoder = self.options.mmproj.as_deref().unwrap_or_default();
        flag(!encoder.is_empty(), format!("--mmproj {}", shell_word(encoder)));
        words.join(" ")
    }
}
